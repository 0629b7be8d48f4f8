"""``minmaxcon compare``: the table, the files, and what it refuses."""

from __future__ import annotations

import csv
import inspect
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import minmaxcon as mm
from minmaxcon.cli.check import check
from minmaxcon.cli.compare import compare
from minmaxcon.cli.solve import solve
from minmaxcon.reference import solve_exact
from tests.cli.conftest import FILE_OPTIONS

BUDGET = ("--max-samples", 20_000)
SEVERAL_LEVELS = ("--max-samples", 100_000)


@pytest.fixture
def compare_table(call: Callable[..., Any], table: Path) -> Callable[..., Any]:
    """Give a function that compares solvers for fair AUC on the table, with further options."""

    def run(*words: object) -> Any:
        words = words if "--solvers" in words else (*words, "--solvers", "sfls:steps=100,iqrc:steps=50")
        words = words if "--kappa" in words else (*words, "--kappa", 0.3)
        words = words if "--max-samples" in words else (*words, *BUDGET)
        return call("compare", "fair_auc", "--data", table, *FILE_OPTIONS, *words)

    return run


def without_seconds(value: Any) -> Any:
    if isinstance(value, dict):
        left_out = {"seconds", "load_average"}
        return {name: without_seconds(item) for name, item in value.items() if name not in left_out}
    return [without_seconds(item) for item in value] if isinstance(value, list) else value


def test_the_table_the_json_and_the_csv_say_the_same(compare_table: Callable[..., Any], tmp_path: Path) -> None:
    done = compare_table(*SEVERAL_LEVELS, "--out", tmp_path / "r")
    assert done.status == 0
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == [
        "comparison.csv",
        "comparison.json",
        "comparison.png",
    ]
    assert (tmp_path / "r" / "comparison.png").read_bytes().startswith(b"\x89PNG\r\n")
    result = json.loads((tmp_path / "r" / "comparison.json").read_text())
    (found,) = result["comparisons"]
    assert {"minmaxcon", "python", "numpy"} <= set(result["versions"])
    assert (found["problem"], found["samples"], found["time_limit"]) == ("fair_auc", 100_000, None)
    lines = {line.split()[0]: line.split() for line in done.out.splitlines() if line.startswith(("sfls", "iqrc"))}
    for entry in found["solvers"]:
        line = lines[entry["solver"]]
        assert line[1] == entry["status"]
        assert line[3] == f"{entry['samples']:,}"
        assert float(line[4].rstrip("%")) == pytest.approx(100 * entry["relative_gap"], rel=1e-2)
        assert [int(line[-3]), int(line[-1])] == [entry["infeasible"], entry["checkpoints"]]
    with (tmp_path / "r" / "comparison.csv").open() as file:
        rows = list(csv.DictReader(file))
    listed = [(entry["solver"], row) for entry in found["solvers"] for row in entry["path"]]
    assert [row["solver"] for row in rows] == [solver for solver, _ in listed]
    assert [float(row["objective"]) for row in rows] == [row["objective"] for _, row in listed]
    assert [float(row["violation"]) for row in rows] == [row["violation"] for _, row in listed]


def test_the_optimum_is_that_of_the_problem_asked_for(compare_table: Callable[..., Any], table: Path) -> None:
    """The options reach the plug-in: the exact optimum of the same problem, loaded in Python, is the same."""
    done = compare_table("--json", "--quiet", "--kappa", 0.7, "--metric", "group", "--solvers", "sfls", "--c2", "0.9")
    assert done.err == ""
    (found,) = json.loads(done.out)["comparisons"]
    asked = mm.load_problem(
        "fair_auc", data=str(table), label="label", sensitive="group", kappa=0.7, metric="group", c2=0.9
    )
    assert found["optimum"]["source"] == "exact"
    assert found["optimum"]["value"] == pytest.approx(solve_exact(asked).objective, abs=1e-7)


def test_the_same_seed_gives_the_same_but_for_seconds(compare_table: Callable[..., Any]) -> None:
    words = ("--solvers", "sfls:steps=100", "--json", "--quiet")
    one, again, other = (json.loads(compare_table("--seed", seed, *words).out) for seed in (5, 5, 6))
    assert without_seconds(one) == without_seconds(again)
    assert one["comparisons"][0]["solvers"][0]["objective"] != other["comparisons"][0]["solvers"][0]["objective"]


def test_several_seeds_are_one_line_a_solver(compare_table: Callable[..., Any]) -> None:
    words = ("--seed", "1,2,3", "--solvers", "sfls:steps=100", "--max-samples", 20_000)
    done = compare_table(*words)
    assert "medians over 3 seeds" in done.out
    (line,) = [line for line in done.out.splitlines() if line.startswith("sfls:steps=100 ")]
    data = json.loads(compare_table(*words, "--json", "--quiet").out)
    entries = data["comparisons"][0]["solvers"]
    assert [entry["seed"] for entry in entries] == [1, 2, 3]
    middle = sorted(entry["relative_gap"] for entry in entries)[1]
    assert f"{100 * middle:.3g}%" in line


def test_settings_follow_a_solvers_name(compare_table: Callable[..., Any]) -> None:
    words = ("--solvers", "sfls:steps=100:batch_size=20,sfls:steps=200", "--json", "--quiet")
    (found,) = json.loads(compare_table(*words).out)["comparisons"]
    small, large = (entry["settings"]["oracle"] for entry in found["solvers"])
    assert [(small["steps"], small["batch_size"]), large["steps"]] == [(100, 20), 200]
    assert found["solvers"][0]["path"][1]["samples"] == 100 * 20


def test_by_default_all_solvers_run_that_take_the_problem(
    call: Callable[..., Any], table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minmaxcon.cli.compare.solver_names", lambda: ("sfls", "successive"))
    words = ("compare", "fair_auc", "--data", table, *FILE_OPTIONS, *BUDGET, "--kappa", 0.3)
    done = call(*words)
    assert "sfls" in done.out
    assert "successive" not in done.out
    asked = call(*words, "--solvers", "sfls,successive")
    assert "not run" in asked.out
    assert "RefreshedProblem" in asked.out
    assert asked.status == 0
    assert call(*words, "--solvers", "successive").status == 1  # none ran


@pytest.mark.usefixtures("outlined")
def test_a_folder_that_exists_is_refused_before_any_solve(
    compare_table: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = ("--solvers", "sfls:steps=50", "--max-samples", 5_000)
    assert compare_table("--out", tmp_path / "r", *few).status == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "r").iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr("minmaxcon.results.comparison.solve", lambda *_, **__: pytest.fail("solved"))
        refused = compare_table("--out", tmp_path / "r")
    assert (refused.status, refused.out) == (2, "")
    assert "--overwrite" in refused.err
    assert refused.err.count("\n") == 1
    assert {path.name: path.read_bytes() for path in (tmp_path / "r").iterdir()} == before
    assert compare_table("--out", tmp_path / "r", "--overwrite", "--seed", 1, *few).status == 0
    assert (tmp_path / "r" / "comparison.json").read_bytes() != before["comparison.json"]


def test_a_folder_with_something_else_is_never_replaced(compare_table: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "comparison.json").write_text("{}")
    refused = compare_table("--out", tmp_path / "r", "--overwrite")
    assert refused.status == 2
    assert (tmp_path / "r" / "comparison.json").read_text() == "{}"
    (tmp_path / "r" / "thesis.tex").write_text("x")
    assert "thesis.tex" in compare_table("--out", tmp_path / "r", "--overwrite").err


def test_ctrl_c_writes_nothing_and_tells_what_there_is(
    compare_table: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import signal

    from minmaxcon.results import comparison as module

    real = module.solve

    def pressed(*rest: Any, **options: Any) -> mm.Solution:
        def press(progress: mm.Progress) -> None:
            if progress.outcome.trace:
                signal.raise_signal(signal.SIGINT)

        return real(*rest, **{**options, "callbacks": [*options["callbacks"], press]})

    monkeypatch.setattr(module, "solve", pressed)
    done = compare_table(*SEVERAL_LEVELS, "--out", tmp_path / "r")
    assert done.status == 1
    assert "interrupted" in done.out
    assert "iqrc" not in done.out
    assert "interrupted: solvers are missing, and nothing was written." in done.err
    assert not (tmp_path / "r").exists()
    kept = tmp_path / "kept"
    assert (
        f"and nothing was written; go on with --resume {kept}."
        in compare_table(*SEVERAL_LEVELS, "--out", tmp_path / "r", "--checkpoint", kept).err
    )
    monkeypatch.setattr(module, "solve", real)
    words = ("--checkpoint", kept, "--resume", kept, "--solvers", "sfls:steps=100", "--json", "--quiet")
    other = compare_table(*words)
    assert (other.status, other.out, other.err.count("\n")) == (2, "", 1)
    assert f"--resume='{kept}': was written with solvers = sfls:steps=100, iqrc:steps=50, and" in other.err


@pytest.mark.usefixtures("outlined")
def test_all_draws_every_problem_and_leaves_out_what_cannot_be_loaded(
    call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.cases import quadratic

    class Small(mm.ProblemPlugin):
        def __init__(self, bound: float) -> None:
            self.bound = bound

        def load(self, *, tightness: float = 0.0) -> mm.MinMaxProblem:
            if self.bound > 9:
                raise mm.InvalidInput("bound", self.bound, "is too large.")
            return quadratic(self.bound - tightness)

        def examples(self) -> Any:
            return ({"tightness": 0.1},)

    known = {"one": Small(0.5), "two": Small(0.9), "broken": Small(10.0), "absent": Small(0.7)}
    monkeypatch.setattr("minmaxcon.cli.compare.import_failure", {"absent": "OSError: gone"}.get)
    monkeypatch.setattr(mm, "plugin_names", lambda: tuple(known))
    monkeypatch.setattr(mm, "plugin", lambda name: known[name])
    monkeypatch.setattr(mm, "load_problem", lambda name, **options: known[name].load(**options))
    done = call("compare", "all", "--solvers", "sfls", "--max-samples", 1_000, "--out", tmp_path / "r")
    assert done.status == 0
    assert "broken is left out" in done.err
    assert "absent is left out: it failed to load: OSError: gone." in done.err
    found = json.loads((tmp_path / "r" / "comparison.json").read_text())["comparisons"]
    assert [one["problem"] for one in found] == ["one", "two"]
    for one, bound in zip(found, (0.4, 0.8), strict=True):
        assert one["optimum"]["value"] == pytest.approx(solve_exact(quadratic(bound)).objective, abs=1e-7)
    kept = ("--checkpoint", tmp_path / "kept", "--resume", tmp_path / "kept", "--json", "--quiet")
    few = ("compare", "all", "--solvers", "sfls", "--max-samples", 1_000)
    begun = call(*few, *kept)
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["one", "two"]
    shutil.rmtree(tmp_path / "kept" / "two")  # as if it had not been begun
    for words in (kept, kept[2:]):
        found = json.loads(call(*few, *words).out)["comparisons"]
        assert found[0] == json.loads(begun.out)["comparisons"][0]
        assert without_seconds(found) == without_seconds(json.loads(begun.out)["comparisons"])
        assert (tmp_path / "kept" / "two").is_dir()
        shutil.rmtree(tmp_path / "kept" / "two")
    refused = call("compare", "all", "--tightness", "0.2")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "--tightness" in refused.err
    del known["one"], known["two"]
    refused = call("compare", "all", "--quiet")
    assert (refused.status, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "no installed problem can be loaded" in refused.err


@pytest.mark.parametrize(
    "words, said",
    [
        (("fair_auc", "--solvers", "slfs"), ("--solvers='slfs'", "did you mean 'sfls'")),
        (("fair_auc", "--solvers", "sfls,,iqrc"), ("--solvers", "separated by commas")),
        (("fair_acu",), ("did you mean 'fair_auc'",)),
        (("fair_auc", "--kapa", "0.1"), ("--kapa", "Did you mean --kappa?")),
        (("fair_auc", "--solver", "sfls"), ("--solver", "Did you mean --solvers?")),
        (("fair_auc", "--kappa", "-5"), ("--kappa=-5",)),
        (("fair_auc", "--kappa", "0.1,0.2"), ("several runs",)),
        (("fair_auc", "--max-samples", "0"), ("--max-samples=0",)),
        (("fair_auc", "--max-samples", "many"), ("--max-samples",)),
        (("toy", "--jobs", "0"), ("--jobs=0", "must be at least 1")),
        (("toy", "--samples", "0"), ("--samples=0", "at least")),
        (("toy", "--bound", "abc"), ("--bound", "'abc' is no number")),
        (("fair_auc", "--data", "a9a.csv", "--solvers", "sfls"), ("a9a.csv",)),
        (("fair_auc", "--time-limit", "-1"), ("--time-limit=-1",)),
        (("fair_auc", "--seed", "-1"), ("--seed='-1'",)),
        (("fair_auc", "--seed", "x"), ("--seed='x'",)),
        (("fair_auc", "--solvers", "sfls:stepz=5"), ("stepz=5", "no such setting")),
        (("fair_auc", "--solvers", "sfls:steps"), ("sfls:steps=500",)),
        (("fair_auc", "--solvers", "sfls:steps=0"), ("--solvers='sfls:steps=0'", "steps=0: must be")),
        (("fair_auc", "--solvers", "sfls:steps=abc"), ("--solvers='sfls:steps=abc'",)),
        ((), ("NAME",)),
    ],
    ids=" ".join,
)
def test_refusals_are_one_line(call: Callable[..., Any], words: tuple[str, ...], said: tuple[str, ...]) -> None:
    done = call("compare", *words)
    assert (done.status, done.out) == (2, "")
    assert done.err.count("\n") == 1
    for word in said:
        assert word in done.err


def test_a_problems_own_samples_are_its_own(call: Callable[..., Any]) -> None:
    """The budget has another name: the optimum is that of fifty samples, not of the default's."""
    words = ("compare", "toy", "--max-samples", 10, "--solvers", "switching_subgradient", "--json", "--quiet")
    values = [
        json.loads(call(*words, *more).out)["comparisons"][0]["optimum"]["value"] for more in ((), ("--samples", 50))
    ]
    few = mm.load_problem("toy", samples=50)
    assert values[0] != values[1] == pytest.approx(solve_exact(few).objective, abs=1e-7)


@pytest.mark.usefixtures("outlined")
def test_auto_is_the_solver_that_fits_the_problem(call: Callable[..., Any], tmp_path: Path) -> None:
    words = ("compare", "toy", "--samples", 50, "--max-samples", 500, "--solvers", "auto", "--json", "--out")
    done = call(*words, tmp_path / "r")
    assert done.err == f"minmaxcon: written: {tmp_path / 'r'}\n"
    assert done.out == (tmp_path / "r" / "comparison.json").read_text()
    (entry,) = json.loads(done.out)["comparisons"][0]["solvers"]
    chosen = mm.solve(mm.load_problem("toy", samples=50), seed=0, budget=1).settings["solver"]
    assert entry["settings"] == chosen
    text = " ".join(call(*words[:-2]).out.split())
    assert f"auto: {entry['title']} fits the problem." in text


def test_a_budget_too_small_for_a_look_is_said(call: Callable[..., Any]) -> None:
    words = ("compare", "toy", "--samples", 200, "--solvers", "sfls:steps=100,conex")
    small, large = (call(*words, "--max-samples", samples).out for samples in (1_000, 100_000))
    assert "sfls:steps=100, conex: no checkpoint fell within the budget" in small
    assert "no checkpoint" not in large


def test_no_option_of_a_problem_is_hidden_by_one_of_the_command() -> None:
    """But for the seed, which is the solve's and the data's."""
    for command in (check, compare, solve):
        own = {name for name, one in inspect.signature(command).parameters.items() if one.kind is one.KEYWORD_ONLY}
        for name in mm.plugin_names():
            assert own.intersection(mm.plugin(name).options()) <= {"seed"}, (command, name)


def test_every_solver_is_named_in_the_help(call: Callable[..., Any]) -> None:
    from minmaxcon.solvers import solver_names

    text = " ".join(call("compare", "--help").out.replace("│", " ").split())
    for name in solver_names():
        assert name in text
