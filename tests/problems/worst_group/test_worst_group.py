"""Worst-group risk: the reference, the solver, the measures, the refusals."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.reference import solve_exact
from minmaxcon_problems.worst_group import GROUPS, plugin
from tests.problems import plugin_laws as laws


@cache
def problem() -> mm.MinMaxProblem:
    return plugin.load()


@cache
def optimum() -> tuple[float, Any]:
    """One constraint a group, in place of their maximum."""
    cp = pytest.importorskip("cvxpy")
    rows = problem().details.train
    w = cp.Variable(rows.features.shape[1])
    losses = cp.square(rows.features @ w - rows.target)
    limits = [cp.sum(losses[mine]) / mine.sum() <= 0.65 for mine in rows.groups.T]
    program = cp.Problem(cp.Minimize(cp.sum(losses) / len(rows.target)), [*limits, cp.norm(w) <= 3.0])
    program.solve(solver=cp.CLARABEL)
    return float(program.value), w.value


def test_the_reference_solves_the_same_problem() -> None:
    exact = solve_exact(problem())
    best, w = optimum()
    assert exact.objective == pytest.approx(best, abs=1e-6)
    assert exact.x == pytest.approx(w, abs=1e-3)
    assert exact.constraints[0] == pytest.approx(0.0, abs=1e-6)  # it binds


def test_the_solver_reaches_it() -> None:
    laws.solver_reaches(problem(), optimum()[0])


def test_measures_count_rows_one_by_one() -> None:
    x, measured = laws.evaluation_agrees(plugin, problem())
    for part, rows in problem().details.items():
        found = measured[part]
        scores = [float(row @ x) for row in rows.features]
        losses = [(t - s) ** 2 for t, s in zip(rows.target, scores, strict=True)]
        for place, group in enumerate(GROUPS):
            mine = [loss for loss, member in zip(losses, rows.groups[:, place], strict=True) if member]
            assert found[f"loss_{group}"] == pytest.approx(sum(mine) / len(mine))
        wrong = [t * s <= 0 for t, s in zip(rows.target, scores, strict=True)]
        assert found["error"] == pytest.approx(sum(wrong) / len(scores))
        shares = [sum(w for w, m in zip(wrong, mine, strict=True) if m) / mine.sum() for mine in rows.groups.T]
        assert found["worst_error"] == pytest.approx(max(shares))


def test_every_row_is_in_one_group_and_no_feature_tells_which() -> None:
    train, test = problem().details.train, problem().details.test
    assert (np.concatenate([train.groups, test.groups]).sum(axis=1) == 1).all()
    assert len(train.target) + len(test.target) == 1989
    assert np.abs(np.corrcoef(train.features[:, 1:].T, train.groups.T)[:15, 15:]).max() < 0.7


@pytest.mark.parametrize(
    "option, value",
    [
        ("bound", "low"),
        ("bound", float("nan")),
        ("radius", -1.0),
    ],
)
def test_refusals(option: str, value: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=option):
        plugin.load(**{option: value})
