"""``minmaxcon solve``: what it reports, and that it is true."""

from __future__ import annotations

import csv
import json
import math
import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import minmaxcon as mm
from minmaxcon.cli import finish, load
from minmaxcon.results.records import RunRecord, RunsRecord, read_result

FIELDS = {
    *("status", "feasible", "objective", "constraints", "certificate", "train", "test"),
    *("steps", "seconds", "settings", "versions", "reason", "notes", "recomputed", "evidence"),
}


def without_seconds(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_seconds(item) for name, item in value.items() if name != "seconds"}
    return [without_seconds(item) for item in value] if isinstance(value, list) else value


def test_json_is_all_that_standard_output_carries(solve_table: Callable[..., Any]) -> None:
    done = solve_table("--json")
    result = json.loads(done.out)
    assert done.status == 0
    assert set(result) == FIELDS
    assert result["status"] == "solved"
    assert result["feasible"] is True
    assert set(result["certificate"]) == {"kind", "upper", "lower", "gap", "confidence"}
    assert result["certificate"]["lower"] <= result["objective"] <= result["certificate"]["upper"] + 1e-12
    for part in ("train", "test"):
        assert {"auc", "auc_gap", "auc_interval", "auc_gap_interval"} <= set(result[part])
    assert "the true gap" in done.err  # the caution, at the moment when it matters
    assert solve_table("--json", "--quiet").err == ""


def test_settings_and_versions_are_enough_to_repeat(solve_table: Callable[..., Any], table: Path) -> None:
    result = json.loads(solve_table("--json", "--seed", 3, "--steps", 200, "--batch-size", 50, "--quiet").out)
    settings = result["settings"]
    expected = {"problem": "fair_auc", "data": str(table), "kappa": 0.3, "metric": "inter_group", "seed": 3}
    assert expected.items() <= settings.items()
    assert settings["solver_settings"]["oracle"]["batch_size"] == 50
    assert {"c1", "c2", "radius", "label", "positive", "test_fraction", "standardize", "steps"} <= set(settings)
    assert {"minmaxcon", "python", "numpy", "torch", "threads", "cpu_dispatch"} <= set(result["versions"])


@pytest.mark.usefixtures("outlined")
def test_objective_and_constraints_are_those_of_the_saved_model(
    solve_table: Callable[..., Any], table: Path, tmp_path: Path
) -> None:
    """Every pair of the training rows, scored with the raw weight, by the loss's definition."""
    assert solve_table("--out", tmp_path / "r", "--quiet").status == 0
    result = read_result(tmp_path / "r")
    assert isinstance(result, RunRecord)
    weight = load_file(tmp_path / "r" / "model.safetensors")["weight"]
    raw = mm.load_problem(
        "fair_auc", data=str(table), label="label", sensitive="group", kappa=0.3, standardize=False
    ).details.dataset
    assert weight.shape == (raw.train.features.shape[1],)
    h, y, g = raw.train.features @ weight, raw.train.label, raw.train.group

    def loss(first: Any, second: Any) -> float:
        return float(0.5 * np.mean((h[first][:, None] - h[second][None, :] - 1.0) ** 2))

    g1, g1_other, g2, g2_other = ((y == a) & (g == b) for a, b in ((1, 1), (-1, -1), (1, -1), (-1, 1)))
    assert result.objective == pytest.approx(loss(y == 1, y == -1), abs=1e-9)
    assert result.constraints == pytest.approx(
        [loss(g1_other, g1) + loss(g2, g2_other) - 1.3, loss(g2_other, g2) + loss(g1, g1_other) - 1.3], abs=1e-9
    )


def test_several_kappas_are_one_solve_in_the_order_given(
    solve_table: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    real = mm.solve

    def counted(problem: mm.MinMaxProblem, *rest: Any, **options: Any) -> mm.Solution:
        calls.append(problem.runs)
        return real(problem, *rest, **options)

    monkeypatch.setattr(mm, "solve", counted)
    done = solve_table("--kappa", "0.5,0.1,0.3", "--json", "--quiet", "--out", tmp_path / "r")
    result = json.loads(done.out)
    assert calls == [3]
    assert done.status == (0 if all(run["status"] == "solved" for run in result["runs"]) else 1)
    assert [run["settings"]["kappa"] for run in result["runs"]] == [0.5, 0.1, 0.3]
    assert all(set(run) == FIELDS for run in result["runs"])
    assert isinstance(read_result(tmp_path / "r"), RunsRecord)
    assert (tmp_path / "r" / "trace.png").read_bytes().startswith(b"\x89PNG\r\n")
    models = [load_file(tmp_path / "r" / f"model-{j}.safetensors")["weight"] for j in range(3)]
    assert not np.allclose(models[0], models[1])
    alone = json.loads(solve_table("--kappa", "0.1", "--json", "--quiet").out)
    assert result["runs"][1]["objective"] == pytest.approx(alone["objective"], abs=1e-6)
    with (tmp_path / "r" / "trace.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["run"] for row in rows} == {"0", "1", "2"}


def test_a_constraint_that_is_no_number_is_unknown_and_no_point_of_it_feasible(
    solve_table: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its place; of the other run both are known."""
    kind = type(mm.plugin("fair_auc"))
    real, calls = kind.evaluate, []

    def evaluate(self: Any, problem: mm.MinMaxProblem, x: Any) -> dict[str, Any]:
        calls.append(x)
        found = dict(real(self, problem, x))
        return {**found, "values": [found["values"][0], math.nan]} if len(calls) == 1 else found

    monkeypatch.setattr(kind, "evaluate", evaluate)
    done = solve_table("--kappa", "0.5,0.3", "--quiet")
    one, other = (line.split() for line in done.out.splitlines() if line.startswith("kappa "))
    assert (one[2], one[4]) == ("budget", "unknown")
    assert (other[2], float(other[4]) <= 0.0) == ("solved", True)
    assert done.status == 1


@pytest.mark.usefixtures("outlined")
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(
    solve_table: Callable[..., Any], tmp_path: Path
) -> None:
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        assert solve_table("--seed", seed, "--out", tmp_path / name, "--quiet").status == 0

    def content(name: str) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (tmp_path / name).iterdir() if path.suffix != ".json"}

    assert set(content("a")) == {"model.safetensors", "trace.csv", "trace.png"}
    assert content("a") == content("b")
    assert content("a")["model.safetensors"] != content("c")["model.safetensors"]
    results = [json.loads((tmp_path / name / "result.json").read_text()) for name in "ab"]
    assert without_seconds(results[0]) == without_seconds(results[1])


def test_the_report_says_what_is_proved_and_what_is_not(solve_table: Callable[..., Any]) -> None:
    done = solve_table("--metric", "intra_group")
    for words in (
        "SOLVED: A feasible point was found and proved optimal",
        "f_1 - b_1",
        "<= f* <=",
        "exact on the data",
        "true gap [95% interval]",
        "no guarantee for the true gap",
        "cannot make the intra-group gap small",
        "'yes' is positive",
    ):
        assert words in done.out
    assert "\x1b" not in done.out
    assert "Please note" not in solve_table("--quiet").out


def test_a_large_true_gap_is_called_out_where_the_surrogate_holds(solve_table: Callable[..., Any]) -> None:
    """The bound is so loose that it cannot bind, and the groups differ."""
    result = json.loads(solve_table("--metric", "group", "--kappa", 3, "--json").out)
    assert result["train"]["auc_gap"] > 0.05
    assert any("The surrogate is met, yet" in note for note in result["notes"])


@pytest.mark.usefixtures("limit_of_the_solve")
def test_a_time_limit_ends_with_the_best_point_and_exit_status_1(solve_table: Callable[..., Any]) -> None:
    done = solve_table("--steps", 10_000_000, "--time-limit", 0.3, "--json", "--quiet")
    result = json.loads(done.out)
    assert done.status == 1
    assert result["status"] == "budget"
    assert "time limit" in result["reason"]
    assert result["seconds"] < 2.0
    assert result["certificate"]["lower"] is None  # minus infinity is no JSON


@pytest.mark.usefixtures("limit_of_the_solve")
def test_progress_is_a_line_now_and_then_where_no_terminal_is(
    solve_table: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minmaxcon.cli.output._EVERY", 0.1)
    words = ("--steps", 10_000_000, "--time-limit", 0.5)
    lines = [line for line in solve_table(*words).err.splitlines() if " steps" in line]
    assert 2 <= len(lines) <= 6
    assert all(re.match(r"minmaxcon: \d+ s, [\d,]+ steps", line) for line in lines)
    assert solve_table(*words, "--quiet").err == ""


@pytest.mark.usefixtures("outlined")
def test_one_run_that_is_not_solved_is_enough_for_exit_status_1(
    solve_table: Callable[..., Any], tmp_path: Path
) -> None:
    """Its model is saved all the same."""
    done = solve_table("--kappa", "0.3,0", "--out", tmp_path / "r", "--json", "--quiet")
    assert done.status == 1
    assert [run["status"] for run in json.loads(done.out)["runs"]] == ["solved", "not_strictly_feasible"]
    assert (tmp_path / "r" / "model-1.safetensors").exists()


@pytest.mark.usefixtures("limit_of_the_solve")
def test_iqrc_claims_no_lower_bound(solve_table: Callable[..., Any]) -> None:
    result = json.loads(solve_table("--solver", "iqrc", "--time-limit", 0.3, "--steps", 50, "--json", "--quiet").out)
    assert result["feasible"] is True
    assert result["certificate"]["lower"] is None
    assert result["certificate"]["gap"] is None
    assert math.isfinite(result["certificate"]["upper"])


@pytest.mark.usefixtures("limit_of_the_solve")
def test_a_problem_s_own_options_are_read_by_their_types(call: Callable[..., Any]) -> None:
    """Bounds by any name, several in one solve, are labelled and recorded; the measures are the problem's own."""
    asked = ("solve", "worst_group", "--bound", "0.7,0.9", "--radius", 5, "--time-limit", 0.3)
    done = call(*asked)
    assert done.status in {0, 1}  # so little time may not prove it
    assert "bound 0.7" in done.out
    assert "bound 0.9" in done.out
    assert "train worst_loss" in done.out
    assert "AUC" not in done.out
    result = json.loads(call(*asked, "--json", "--quiet").out)
    assert [run["settings"]["bound"] for run in result["runs"]] == [0.7, 0.9]
    assert result["settings"]["radius"] == 5
    for run, bound in zip(result["runs"], (0.7, 0.9), strict=True):
        assert run["constraints"][0] == pytest.approx(run["train"]["worst_loss"] - bound, abs=1e-9)


@pytest.mark.parametrize(
    "words, said",
    [
        (("worst_group", "--bond", "1"), "--bond. Did you mean --bound?"),
        (("fair_auc", "--kapa", "1"), "--kapa. Did you mean --kappa?"),
        (("worst_group", "--bound", "much"), "bound"),
        (("worst_group", "--radius", "-1"), "radius"),
    ],
)
def test_a_problem_s_own_options_are_refused_by_name(
    call: Callable[..., Any], words: tuple[str, ...], said: str
) -> None:
    done = call("solve", *words)
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert done.err.count("\n") == 1


class Foreign(mm.ProblemPlugin):
    """A plug-in that neither evaluates nor exports, and prints while it loads."""

    name, summary = "foreign", "A problem of somebody else."

    def load(self, *, kappa: Any = 1.0, several: bool = False) -> mm.MinMaxProblem:
        sys.stdout.write("noise\n")
        problem = mm.load_problem("fair_auc", kappa=kappa)
        problem = problem.with_bounds(*([float(bound), 2.0] for bound in problem.bounds()[0])) if several else problem
        return mm.MinMaxProblem(
            problem.objective, problem.constraints, problem.primal, problem.data, problem.start, name="foreign"
        )


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    real = mm.plugin
    monkeypatch.setattr(mm, "plugin", lambda name: Foreign() if name == "foreign" else real(name))
    real_load = mm.load_problem

    def load(name: str, **options: Any) -> mm.MinMaxProblem:
        return Foreign().load(**options) if name == "foreign" else real_load(name, **options)

    monkeypatch.setattr(mm, "load_problem", load)


@pytest.mark.usefixtures("foreign", "outlined")
def test_a_plug_in_without_evaluation_or_model_is_served_as_far_as_it_goes(
    call: Callable[..., Any], tmp_path: Path
) -> None:
    done = call("solve", "foreign", "--time-limit", 1.0, "--json", "--out", tmp_path / "r")
    result = json.loads(done.out)
    assert result["recomputed"] is False
    assert "test" not in result
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == ["result.json", "trace.csv", "trace.png"]
    assert "noise" in done.err
    assert "no model is saved" in done.err
    both = call("solve", "foreign", "--several", "--time-limit", 1.0, "--quiet")
    lines = [line.split() for line in both.out.splitlines() if line.startswith("run ")]
    assert [line[:2] for line in lines] == [["run", "0"], ["run", "1"]]
    assert all(len(line) == 6 for line in lines)  # status, objective, constraint and gap, and no measures
    refused = call("solve", "foreign", "--metric", "group")
    assert refused.status == 2
    assert "Unknown option: --metric" in refused.err


def test_a_solver_that_lies_about_feasibility_is_found_out(
    solve_table: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Objective and constraints come from the plug-in's own evaluation."""
    real = mm.solve

    def lying(*rest: Any, **options: Any) -> mm.Solution:
        found = real(*rest, **options)
        return mm.Solution(**{**vars(found), "x": 9.0 * found.x / np.linalg.norm(found.x)})

    monkeypatch.setattr(mm, "solve", lying)
    done = solve_table("--json", "--quiet")
    result = json.loads(done.out)
    assert (done.status, result["feasible"]) == (1, False)
    assert max(result["constraints"]) > 0
    assert "a constraint is violated" in result["reason"]


@pytest.mark.usefixtures("limit_of_the_solve")
def test_a_solve_goes_on_from_a_checkpoint(solve_table: Callable[..., Any], tmp_path: Path) -> None:
    settings = ("--steps", 200, "--kappa", 0.3, "--json", "--quiet")
    whole = json.loads(solve_table(*settings).out)
    kept = ("--checkpoint", tmp_path / "kept", "--resume", tmp_path / "kept")
    first = json.loads(solve_table(*settings, *kept, "--time-limit", 1e-9, "--every", 0).out)
    found = json.loads(solve_table(*settings, *kept).out)
    assert first["steps"] < found["steps"]
    assert {**found, "seconds": 0} == {**whole, "seconds": 0}
    refused = solve_table(*settings, "--checkpoint", tmp_path / "kept")
    assert refused.status == 2
    assert "--checkpoint='" in refused.err
    other = solve_table("--steps", 300, "--kappa", 0.3, "--resume", tmp_path / "kept")
    assert other.status == 2
    assert "was written with solver.oracle.steps = 200, and this solve has 300" in other.err


def test_bounds_keep_their_digits() -> None:
    loaded = load("toy", {"bound": 1.0000001})
    finished = finish(loaded, mm.solve(loaded.problem, mm.SFLS(mm.SMD(steps=10)), seed=0, budget=10), {})
    assert finished.labels == ["bound 1.0000001"]


class Second(mm.distributed.Processes):
    """The second of two processes that do the same."""

    def exchange(self, value: Any) -> list[Any]:
        return [value] * self.count

    def total(self, value: Any) -> Any:
        return self.count * value

    def fail(self, error: mm.MinMaxConError) -> mm.MinMaxConError:
        return mm.distributed.EndedError("another has ended.") if "kappa" in str(error) else error

    def leave(self) -> None:
        """Nothing is joined."""


SHARED = ("solve", "toy", "--solver", "sfls", "--steps", 100, "--distributed")


def test_a_process_alone_solves_what_it_solves_without_others(
    call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(found.getsockname()[1]), "RANK": "0", "WORLD_SIZE": "1"}
    for name, value in place.items():
        monkeypatch.setenv(name, value)
    alone, shared = (json.loads(call(*words, "--json").out) for words in (SHARED[:-1], SHARED))
    assert shared["status"] == alone["status"] == "solved"
    assert shared["objective"] == pytest.approx(alone["objective"], abs=0.02)  # rows are drawn in another order
    for one, other in ((alone, shared), (shared, alone)):
        assert one["certificate"]["lower"] <= other["certificate"]["upper"]
    refused = call(*SHARED, "--samples", -1)
    assert (refused.status, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "--samples -1: must be a whole number of at least 2." in refused.err
    assert mm.distributed.current() is None  # it has left


def test_a_process_that_is_not_the_first_is_silent(
    call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("minmaxcon.cli.solve.join", lambda: Second(1, 2))
    done = call(*SHARED, "--out", tmp_path / "r")
    assert (done.status, done.out, done.err, (tmp_path / "r").exists()) == (0, "", "", False)
    with pytest.raises(SystemExit, match="2"):
        call(*SHARED, "--samples", -1)
    assert capsys.readouterr() == ("", "")  # the first one tells it
    ended = call("solve", "fair_auc", "--kappa", -1.0, "--distributed")
    assert (ended.status, ended.err) == (2, "minmaxcon: error: another has ended.\n")  # that there is no first
