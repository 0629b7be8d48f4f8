"""Options of fair AUC on the command line: penalties, and columns that are not there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon_problems.fair_auc import FairAUCClassifier, load_dataset
from tests.cli.conftest import FILE_OPTIONS


def test_a_column_that_is_not_there_is_named_by_its_option(call: Callable[..., Any], table: Path) -> None:
    done = call("solve", "fair_auc", "--data", table, "--label", "label", "--sensitive", "grup", "--kappa", 0.3)
    assert done.status == 2
    assert "no column 'grup', asked for by --sensitive; did you mean 'group'" in done.err
    done = call("solve", "fair_auc", "--data", table, "--label", "lable", "--sensitive", "group", "--kappa", 0.3)
    assert "asked for by --label;" in done.err


def test_ridge_penalties_of_a_target(call: Callable[..., Any], table: Path) -> None:
    """The option is the estimator's alpha, over the training rows; where it cannot act it is refused."""
    common = ("solve", "fair_auc", "--data", table, *FILE_OPTIONS, "--quiet")
    assert call(*common, "--max-gap", 0.1, "--alpha", "auto").status == 0
    found = call(*common, "--max-gap", 0.1, "--alpha", 50, "--json")
    assert found.status == 0
    assert json.loads(found.out)["settings"]["alpha"] == 50
    free = json.loads(call(*common, "--max-gap", 0.1, "--json").out)
    assert json.loads(found.out)["train"]["auc"] != free["train"]["auc"]
    for words, says in (
        (("--alpha", 1), "--alpha=1"),
        (("--max-gap", 0.1, "--alpha", -1), "at least 0"),
        (("--max-gap", 0.1, "--alpha", "much"), "'much' is neither a number nor auto"),
        (("--max-gap", 0.1, "--alpha", "auto", "--model", "mlp"), "linear models"),
    ):
        done = call(*common, *words)
        assert (done.status, says in done.err) == (2, True), done.err


def test_a_penalty_from_the_command_is_that_of_the_estimator() -> None:
    """The same alpha on the same rows gives the same coefficients, chosen or given."""
    dataset = load_dataset("loanapp", seed=0)
    rows, directions = dataset.train, []
    for alpha in (300.0, "auto"):
        problem = mm.load_problem("fair_auc", max_gap=1.0, alpha=alpha)
        x = np.asarray(mm.solve(problem, seed=0).x)
        own = None if alpha == "auto" else alpha
        fitted = FairAUCClassifier("inter_group", max_gap=1.0, alpha=own, random_state=0, standardize=False)
        fitted.fit(rows.features, rows.label, sensitive_features=rows.group)
        w = fitted.coef_[0]
        assert w @ x / (np.linalg.norm(w) * np.linalg.norm(x)) > 0.999
        directions.append(x / np.linalg.norm(x))
    assert directions[0] @ directions[1] < 0.999


@pytest.mark.usefixtures("outlined")
@pytest.mark.parametrize(
    "penalty", [(), ("--objective", "quadratic_auc"), pytest.param(("--model", "mlp"), marks=pytest.mark.rel)], ids=str
)
def test_the_objective_of_a_result_has_its_penalty(
    call: Callable[..., Any], tmp_path: Path, table: Path, penalty: Any
) -> None:
    out = tmp_path / "out"
    words = ("--data", table, *FILE_OPTIONS, "--max-gap", 0.1, "--alpha", 50, *penalty, "--time-limit", 5)
    assert call("solve", "fair_auc", *words, "--out", out, "--quiet").status in (0, 1)
    told = json.loads((out / "result.json").read_text())
    assert told["objective"] == pytest.approx(told["certificate"]["upper"], rel=1e-6)
    said = call("verify", out).out
    assert "NOT CONFIRMED" not in said.partition("upper")[0], said


def test_a_strength_that_is_chosen_is_recorded(call: Callable[..., Any]) -> None:
    words = ("--data", "loanapp", "--max-gap", 0.1, "--alpha", "auto", "--json", "--quiet")
    assert json.loads(call("solve", "fair_auc", *words).out)["settings"]["alpha"] > 0


@pytest.mark.usefixtures("outlined")
def test_a_result_is_verified_under_the_memory_that_it_was_solved_with(
    call: Callable[..., Any], tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are read in pieces are divided in another way than rows that are read at once."""
    out = tmp_path / "out"
    monkeypatch.setenv("MINMAXCON_MEMORY", "1KB")
    words = ("--data", table, *FILE_OPTIONS, "--kappa", 0.3, "--time-limit", 5)
    assert call("solve", "fair_auc", *words, "--out", out, "--quiet").status in (0, 1)
    monkeypatch.delenv("MINMAXCON_MEMORY")
    told = json.loads((out / "result.json").read_text())
    assert told["settings"]["memory"] == "1KB"
    said = call("verify", out).out
    assert "NOT CONFIRMED" not in said, said
    told["settings"]["memory"] = "plenty"
    (out / "result.json").write_text(json.dumps(told))
    done = call("verify", out)
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "settings.memory='plenty'" in done.err


def test_scores_that_differ_by_rounding_alone_are_one_score() -> None:
    """With c1 = c2 = 1 and kappa = 1 only constant models are feasible, and loanapp's features depend on each other."""
    problem = mm.load_problem("fair_auc", data="loanapp", c1=1.0, c2=1.0, kappa=1.0)
    x = mm.solve(problem, mm.SFLS(oracle=mm.MirrorProx()), seed=0).x
    found = mm.plugin("fair_auc").evaluate(problem, x)
    for part in ("train", "test"):
        assert (found[part]["auc"], found[part]["auc_gap"]) == (0.5, 0.0)
    notes = mm.plugin("fair_auc").notes(problem, [{**found, "constraints": [0.0, 0.0]}])
    assert "all rows one score" in str(notes)
