"""Results that an outsider can check: true ones are confirmed, altered ones are not."""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.cli import main
from minmaxcon.results import measure, model_bytes, record, to_json
from minmaxcon.results.verification import Finding, verify
from tests.cli.conftest import FILE_OPTIONS, table_rows, write_table
from tests.figures import Figure
from tests.normal_stream import half_space, true_values
from tests.outlines import outline
from tests.problem_library import HalfSquare


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Give results of fair AUC on a file, of two runs, of the toy, and of a problem without a solution."""
    where = tmp_path_factory.mktemp("results")
    table = str(write_table(where / "rows.csv", table_rows()))
    fair = ("solve", "fair_auc", "--data", table, *FILE_OPTIONS, "--quiet")
    commands = {
        "model": (*fair, "--kappa", "0.3"),
        "runs": (*fair, "--kappa", "0.1,0.3", "--time-limit", "60"),
        "toy": ("solve", "toy", "--quiet"),
        "hopeless": ("solve", "worst_group", "--quiet", "--bound", "0.0001"),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("minmaxcon.results.png", outline)
        for name, words in commands.items():
            assert main([*words, "--out", str(where / name)]) in (0, 1)
    return {name: where / name for name in commands}


@pytest.mark.parametrize(
    "name, status", [("model", "solved"), ("runs", "solved"), ("toy", "solved"), ("hopeless", "infeasible")]
)
def test_what_is_true_is_confirmed(
    name: str, status: str, folders: dict[str, Path], capsys: Any, figure: Figure
) -> None:
    record = json.loads((folders[name] / "result.json").read_text())
    assert all(run["status"] == status for run in record.get("runs", [record]))
    capsys.readouterr()
    assert main(["verify", str(folders[name])]) == 0
    assert "all confirmed" in capsys.readouterr().out
    assert main(["verify", str(folders[name]), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["confirmed"] is True
    claims = {one["claim"] for one in found["findings"]}
    told = [one["text"] for one in found["findings"] if one["claim"] in ("train", "test")]
    assert all(text.startswith("computed again, it agrees") for text in told)
    assert {"objective", "constraints", "feasible", "status"} <= claims
    assert ("lower" in claims) == (status == "solved")
    assert ("model" in claims) == (name in ("model", "runs"))
    figure.total(1, "true results, each confirmed")


def scaled(field: str, factor: float) -> Callable[[Any], None]:
    def change(record: Any) -> None:
        *parents, last = field.split(".")
        for part in parents:
            record = record[part]
        value = record[last]
        record[last] = [factor * item for item in value] if isinstance(value, list) else factor * value

    return change


def put(field: str, value: Any) -> Callable[[Any], None]:
    def change(record: Any) -> None:
        *parents, last = field.split(".")
        for part in parents:
            record = record[part]
        record[last] = value

    return change


@pytest.mark.parametrize(
    "change, claim",
    [
        (scaled("objective", 1.001), "objective"),
        (scaled("constraints", 1.01), "constraints"),
        (put("feasible", False), "feasible"),
        (scaled("train.auc", 1.001), "train"),
        (scaled("test.auc_gap", 0.5), "test"),
        (scaled("certificate.upper", 0.99), "upper"),
        (put("certificate.lower", 0.9), "lower"),
        (scaled("evidence.x", 1.001), "objective"),
        (scaled("evidence.x", 1.001), "model"),
        (scaled("evidence.x", 1e6), "x"),
        (put("evidence.weights", [0.0, 0.5, 0.5]), "lower"),
        (put("evidence.weights", [1.0]), "status"),
        (put("evidence.weights", None), "status"),
        (put("status", "infeasible"), "status"),
        (put("train.auc", None), "train"),
        (put("test.auc_gap_interval", "wide"), "test"),
        (put("test.accuracy", 1.0), "test"),
        (put("validation", {"auc": 1.0}), "validation"),
        (put("certificate.gap", 0.0), "gap"),
        (put("settings.kappa", 0.05), "constraints"),
        (put("settings.seed", 5), "objective"),
        (put("settings.test_fraction", 0.4), "objective"),
    ],
)
def test_what_was_altered_is_not(
    change: Callable[[Any], None], claim: str, folders: dict[str, Path], tmp_path: Path, figure: Figure
) -> None:
    shutil.copytree(folders["model"], tmp_path / "r")
    path = tmp_path / "r" / "result.json"
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))
    wrong = {one.claim: one.text for one in verify(tmp_path / "r") if not one.confirmed}
    assert claim in wrong
    assert (wrong[claim] == "the problem measures nothing of it.") is (claim == "validation")
    assert main(["verify", str(tmp_path / "r")]) == 1
    figure.total(1, "altered ones, each noticed")


@pytest.mark.parametrize("near", [None, [], [0.0], [1e300, 0.0]])
def test_where_the_search_starts_is_no_claim(near: Any, folders: dict[str, Path], tmp_path: Path) -> None:
    """A point that is none of the set is not searched from, and an older result has none."""
    shutil.copytree(folders["toy"], tmp_path / "r")
    path = tmp_path / "r" / "result.json"
    record = json.loads(path.read_text())
    assert len(record["evidence"]["near"]) == 1
    record["evidence"]["near"] = near
    path.write_text(json.dumps(record))
    assert all(one.confirmed for one in verify(tmp_path / "r"))


def test_a_model_of_another_solve_is_noticed(folders: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(folders["model"], tmp_path / "r")
    shutil.copy(folders["runs"] / "model-0.safetensors", tmp_path / "r" / "model.safetensors")
    assert [one.claim for one in verify(tmp_path / "r") if not one.confirmed] == ["model"]
    (tmp_path / "r" / "model.safetensors").write_bytes(model_bytes({"hidden_weight": np.ones((2, 4))}, {}))
    (wrong,) = [one for one in verify(tmp_path / "r") if not one.confirmed]
    assert wrong.text == "it holds ['hidden_weight'], and the point gives ['weight']."
    (tmp_path / "r" / "model.safetensors").unlink()
    wrong = [one for one in verify(tmp_path / "r") if not one.confirmed]
    assert [(one.claim, one.text.partition(";")[0]) for one in wrong] == [("model", "no such model file")]


def test_more_than_memory_holds_is_one_line(folders: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(folders["toy"], tmp_path / "r")
    path = tmp_path / "r" / "result.json"
    record = json.loads(path.read_text())
    record["settings"]["samples"] = 2**50
    path.write_text(json.dumps(record))
    with pytest.raises(mm.DataError, match=r"result\.json: the problem cannot be loaded as recorded"):
        verify(tmp_path / "r")


@pytest.mark.parametrize(
    "change, said",
    [
        (put("settings.problem", 5), "result.json: settings.problem is no name of a problem"),
        (put("settings.problem", "nothing"), "unknown name"),
        (put("settings.data", "/nowhere.csv"), "/nowhere.csv"),
        (put("settings.c1", "text"), "c1"),
        (put("settings.kappa", [0.1, 0.2]), "result.json: the settings of one run are those of several"),
        (put("evidence.x", "text"), "evidence.x"),
        (put("evidence.x", [None]), "evidence.x.0"),
        (put("evidence", None), "result.json: evidence is missing"),
    ],
)
def test_a_folder_that_cannot_be_checked_is_one_line(
    change: Callable[[Any], None], said: str, folders: dict[str, Path], tmp_path: Path, capsys: Any
) -> None:
    shutil.copytree(folders["model"], tmp_path / "r")
    path = tmp_path / "r" / "result.json"
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "r")]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


def test_a_target_is_recomputed_and_its_optimality_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minmaxcon.results.png", outline)
    table = str(write_table(tmp_path / "rows.csv", table_rows()))
    words = ["solve", "fair_auc", "--data", table, *FILE_OPTIONS, "--max-gap", "0.05", "--quiet"]
    main([*words, "--out", str(tmp_path / "r")])
    found = verify(tmp_path / "r")
    assert all(one.confirmed for one in found), found


@pytest.mark.parametrize("memory", ["lots", -1, [1]])
def test_a_limit_of_memory_that_is_none_is_named(memory: Any, folders: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(folders["toy"], tmp_path / "r")
    path = tmp_path / "r" / "result.json"
    record = json.loads(path.read_text())
    record["settings"]["memory"] = memory
    path.write_text(json.dumps(record))
    with pytest.raises(mm.DataError, match=r"result\.json: settings\.memory="):
        verify(tmp_path / "r")


def test_a_status_that_claims_nothing_is_not_checked(folders: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(folders["toy"], tmp_path / "r")
    path = tmp_path / "r" / "result.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "status": "budget"}))
    found = verify(tmp_path / "r")
    assert "status" not in {one.claim for one in found}
    assert all(one.confirmed for one in found)


ON_STREAMS = mm.SFLS(mm.SMD(steps=100, batch_size=20), levels=4, tolerance=0.9)


@pytest.fixture(scope="module")
def streamed() -> dict[str, Any]:
    """A solve of a stream whose population is known, as result.json tells it."""
    problem, best = half_space()
    solution = mm.solve(problem, ON_STREAMS, seed=0)
    assert solution.status is mm.Status.SOLVED
    assert solution.certificate.lower <= best <= solution.certificate.upper
    told: dict[str, Any] = json.loads(
        to_json(record(measure(None, problem, solution)[0], solution, {"problem": "toy"}))
    )
    return told


def checked(told: dict[str, Any], problem: mm.MinMaxProblem, folder: Path) -> dict[str, tuple[bool, str]]:
    """Verify a result of this problem."""
    (folder / "result.json").write_text(json.dumps(told))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("minmaxcon.results.verification.load_problem", lambda *_, **__: problem)
        return {one.claim: (one.confirmed, one.text) for one in verify(folder)}


def test_claims_on_a_stream_are_checked_by_samples_that_follow(streamed: dict[str, Any], tmp_path: Path) -> None:
    """What the fresh samples bound holds of the population, and the same claims get the same answer."""
    problem, best = half_space()
    found = checked(streamed, problem, tmp_path)
    assert list(found) == ["feasible", "upper", "lower", "status"]
    assert all(confirmed for confirmed, _ in found.values()), found
    assert all(text.startswith("with confidence 0.9, by ") for _, text in found.values())
    x = np.array(streamed["evidence"]["x"])
    high, low = (float(re.findall(r"-?\d+\.?\d*", found[name][1])[k]) for name, k in (("upper", -1), ("lower", -1)))
    assert true_values(x)["square"] <= high <= streamed["certificate"]["upper"]
    assert low <= best
    assert checked(streamed, problem, tmp_path) == found


@pytest.mark.parametrize(
    "place, value, claims",
    [
        ("certificate.upper", lambda told: told["certificate"]["upper"] - 0.6 * gap_of(told), ["upper"]),
        ("certificate.lower", lambda told: told["certificate"]["lower"] + 0.9 * gap_of(told), ["lower"]),
        ("evidence.x", lambda _: [1.0, 1.0, 1.0], ["feasible", "upper", "status"]),
        ("evidence.weights", lambda _: [-1.0, 2.0], ["lower", "status"]),
        ("evidence.weights", lambda _: [0.0, 1.0], ["lower", "status"]),
        ("evidence.weights", lambda _: [1.0], ["lower", "status"]),
        ("evidence.weights", lambda _: None, ["lower", "status"]),
        ("evidence.samples", lambda _: None, ["samples"]),
        ("settings.solver_settings.tolerance", lambda _: 0.01, ["status"]),
        ("settings.solver_settings.tolerance", lambda _: None, ["status"]),
        ("status", lambda _: "infeasible", ["status"]),
    ],
)
def test_no_false_claim_on_a_stream_is_confirmed(
    place: str, value: Any, claims: list[str], streamed: dict[str, Any], tmp_path: Path
) -> None:
    told = copy.deepcopy(streamed)
    *path, name = place.split(".")
    held = functools.reduce(lambda part, key: part[key], path, told)
    held[name] = value(streamed)
    found = checked(told, half_space()[0], tmp_path)
    assert [claim for claim, (confirmed, _) in found.items() if not confirmed] == claims


def gap_of(told: dict[str, Any]) -> float:
    return float(told["certificate"]["upper"] - told["certificate"]["lower"])


@pytest.mark.parametrize("limit", ["0.3", "-1"])
def test_a_check_ends_at_its_time_limit(
    limit: str,
    streamed: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many samples of an endless stream a forged result says that the solve has read."""
    told = copy.deepcopy(streamed)
    told["evidence"]["samples"] = 10**15
    (tmp_path / "result.json").write_text(json.dumps(told))
    monkeypatch.setattr("minmaxcon.results.verification.load_problem", lambda *_, **__: half_space()[0])
    began = time.perf_counter()
    status, (out, err) = main(["verify", str(tmp_path), f"--time-limit={limit}"]), capsys.readouterr()
    assert time.perf_counter() - began < 5.0
    late = r"the time limit of 0\.3 s was reached after [\d.]+ s, before every claim was checked; give more time\."
    words = {"0.3": late, "-1": r"error: --time-limit=-1\.0: must be a positive number of seconds\."}
    assert re.match(f"minmaxcon: {words[limit]}", err), err
    assert (status, out, err.count("\n")) == (1 if limit == "0.3" else 2, "", 1)


@pytest.mark.parametrize("thread", [False, True])
def test_a_limit_that_was_not_heard_holds_before_anything_is_printed(
    thread: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the code of a plug-in swallows the error, and in a thread, where no signal comes."""
    begun: list[Any] = []

    def check(folder: Path) -> list[Finding]:
        begun.append(folder)
        with contextlib.suppress(Exception):
            time.sleep(0.5)
        return [Finding(0, "objective", True, "computed again.")]

    monkeypatch.setattr("minmaxcon.results.verification.verify", check)
    done: list[int] = []
    words = ["verify", str(tmp_path), "--time-limit", "0.4", "--json"]
    work = threading.Thread(target=lambda: done.append(main(words)))
    if thread:
        work.start()
        work.join()
    else:
        work.run()
    out, err = capsys.readouterr()
    assert (done, out, begun) == ([1], "", [tmp_path])
    assert re.match(r"minmaxcon: the time limit of 0\.4 s was reached", err), err


def test_a_stream_that_ends_confirms_nothing(streamed: dict[str, Any], tmp_path: Path) -> None:
    """It has no samples but those that the claims rest on; where nothing is claimed nothing is missing."""
    read = streamed["evidence"]["samples"]
    for limit in (read - 100, read + 500):
        ended = checked(streamed, half_space(limit=limit)[0], tmp_path)
        assert list(ended) == ["samples"]
        assert not ended["samples"][0]
        assert ended["samples"][1].startswith("the stream ends before")
    nothing = {"upper": None, "lower": None, "gap": None}
    told = {**streamed, "feasible": False, "status": "budget", "certificate": streamed["certificate"] | nothing}
    assert checked(told, half_space(limit=1)[0], tmp_path) == {"status": (True, "nothing is known of the problem.")}


class Saves(mm.ProblemPlugin):
    """Saves the point of a stream as a model of its own."""

    name = "toy"

    def load(self) -> mm.MinMaxProblem:
        return half_space()[0]

    def export(self, problem: mm.MinMaxProblem, x: Any) -> Any:
        return {"weight": 1e-6 * x}, {"kind": "linear"}  # small weights count as much as others

    def predict(self, arrays: Any, description: Any, data: Any) -> Any:
        return data @ arrays["weight"]


def test_a_model_of_a_stream_is_that_of_the_point(
    streamed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.array(streamed["evidence"]["x"])
    monkeypatch.setattr("minmaxcon.results.verification.plugin_named", lambda _: Saves())
    for weight, alike in ((1e-6 * x, True), (1.001e-6 * x, False)):
        (tmp_path / "model.safetensors").write_bytes(model_bytes({"weight": weight}, {"kind": "linear"}))
        assert checked(streamed, half_space()[0], tmp_path)["model"][0] is alike


def test_fresh_samples_of_a_file_follow_those_that_were_read(streamed: dict[str, Any], tmp_path: Path) -> None:
    """Another seed orders the points within a block: a whole block more is passed over."""
    problem, _ = half_space()
    (batch,) = problem.data.draw(mm.Position.start(np.random.default_rng(5)), 1, 16_000)[0]
    stream = mm.Stream(
        lambda: ({name: batch[name][k] for name in ("points", "costs")} for k in range(16_000)), shuffle=300
    )
    told, drawn, faithful = copy.deepcopy(streamed), set[float](), HalfSquare.evaluate
    told["evidence"]["samples"] = 3000

    def noted(self: HalfSquare, x: Any, rows: mm.Batch) -> mm.Evaluation:
        drawn.update(rows["points"][:, 0].tolist())
        return faithful(self, x, rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HalfSquare, "evaluate", noted)
        found = checked(told, replace(problem, data=stream), tmp_path)
    assert all(confirmed for confirmed, _ in found.values()), found
    assert len(drawn) >= 12_000
    assert not drawn & set(batch["points"][:3000, 0].tolist())


def test_no_solver_is_loaded(folders: dict[str, Path]) -> None:
    """The check shares nothing with what it checks."""
    script = (
        "import sys; from minmaxcon.cli import main\n"
        "from minmaxcon.solvers import SFLS, loop\n"
        "def never(*_, **__): raise AssertionError('a solver was asked')\n"
        "import minmaxcon as mm\n"
        "for solver in (mm.SFLS, mm.IQRC, mm.ConEx, mm.PrimalDual): solver.init = solver.step = never\n"
        "for oracle in (mm.SMD, mm.MirrorProx, mm.VarianceReduced): oracle.begin = oracle.advance = never\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "verify", folders["model"]], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert mm.Status.SOLVED.name.lower() in (folders["model"] / "result.json").read_text()
