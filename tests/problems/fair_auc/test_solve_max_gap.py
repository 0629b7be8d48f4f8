"""``minmaxcon solve --max-gap``: the true gap on the training part is what was asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import minmaxcon as mm
from minmaxcon.arrays import to_numpy
from tests.cases import promises
from tests.cli.conftest import FILE_OPTIONS, call, table

__all__ = ["call", "table"]


@pytest.fixture
def solve(call: Callable[..., Any], table: Path) -> Callable[..., Any]:
    return lambda *words: call("solve", "fair_auc", "--data", table, *FILE_OPTIONS, "--metric", "group", *words)


def group_gap(scores: Any, group: Any) -> float:
    return abs(float(roc_auc_score(group > 0, scores)) - 0.5)


@pytest.mark.parametrize("objective", promises(["auc", "quadratic_auc", "logistic"], ["auc", "logistic"]))
def test_the_training_gap_is_the_target(solve: Callable[..., Any], objective: str) -> None:
    done = solve("--max-gap", 0.05, "--objective", objective, "--json", "--quiet")
    result = json.loads(done.out)
    assert done.status == (0 if result["status"] == "solved" else 1)
    assert result["status"] in ("solved", "budget")
    assert result["feasible"] is True
    assert 0.04 <= result["train"]["auc_gap"] <= 0.05
    assert max(result["constraints"]) == pytest.approx(result["train"]["auc_gap"] - 0.05, abs=1e-12)
    assert result["certificate"]["lower"] is None
    without = result["train"]["without_target"]
    assert without["auc_gap"] > 0.05
    assert without["price"] == pytest.approx(without["auc"] - result["train"]["auc"])
    assert result["settings"]["max_gap"] == 0.05
    assert result["settings"]["kappa"] is None
    assert result["settings"]["solver"] == "successive"


@pytest.mark.parametrize("objective", promises(["auc", "quadratic_auc", "logistic"], ["quadratic_auc"]))
def test_what_is_reported_is_true(table: Path, objective: str) -> None:
    problem = mm.load_problem(
        "fair_auc", data=table, label="label", sensitive="group", metric="group", max_gap=0.05, objective=objective
    )
    solution = mm.solve(problem, mm.SuccessiveApproximation(margin=2e-4), seed=0)
    found = mm.plugin("fair_auc").evaluate(problem, solution.x)
    train = problem.details.dataset.train
    scores = np.asarray(train.features @ solution.x[: train.features.shape[1]])
    assert found["train"]["auc_gap"] == pytest.approx(group_gap(scores, train.group), abs=1e-12)
    assert found["train"]["auc"] == pytest.approx(roc_auc_score(train.label > 0, scores), abs=1e-12)
    assert found["values"][0] == pytest.approx(-found["values"][1])
    assert found["objective"] == pytest.approx(solution.objective, rel=1e-9)
    assert np.isfinite(to_numpy(problem.data.like)).all()


def test_several_targets_are_runs_of_one_solve(solve: Callable[..., Any], tmp_path: Path) -> None:
    done = solve("--max-gap", "0.02,0.1", "--json", "--quiet", "--out", tmp_path / "result")
    runs = json.loads(done.out)["runs"]
    assert [run["settings"]["max_gap"] for run in runs] == [0.02, 0.1]
    for target, run in zip((0.02, 0.1), runs, strict=True):
        assert target - 0.01 <= run["train"]["auc_gap"] <= target
    assert runs[0]["train"]["auc"] <= runs[1]["train"]["auc"] + 1e-9
    assert (tmp_path / "result" / "model-1.safetensors").is_file()


def test_the_table_of_a_target_names_it(solve: Callable[..., Any]) -> None:
    done = solve("--max-gap", 0.05)
    assert "max gap 0.05" in done.out or "target gap" in done.out
    assert "price of fairness" in done.out


@pytest.mark.parametrize(
    "words, said",
    [
        (("--max-gap", "-0.1"), "--max-gap"),
        (("--max-gap", "nan"), "--max-gap"),
        (("--max-gap", "small"), "'small' is no number"),
        (("--max-gap", "0.1", "--kappa", "0.3"), "give one"),
        (("--max-gap", "0.1", "--steps", "10"), "--steps"),
        (("--max-gap", "0.1", "--batch-size", "10"), "--batch-size"),
        (("--max-gap", "0.1", "--solver", "sfls"), "--solver"),
        (("--kappa", "0.3", "--solver", "successive"), "SuccessiveApproximation cannot solve"),
        (("--max-gap", "0.1", "--objective", "acu"), "auc"),
        (("--kappa", "0.3", "--objective", "logistic"), "--objective"),
        (("--max-gap", "0.1", "--model", "linaer"), "linear"),
    ],
)
def test_refusals_are_one_line(solve: Callable[..., Any], words: tuple[str, ...], said: str) -> None:
    done = solve(*words)
    assert done.status == 2
    assert done.out == ""
    assert said in done.err
    assert done.err.count("\n") == 1
