"""Multi-class Neyman-Pearson: the reference, the solver, the measures, the refusals."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.reference import solve_exact
from minmaxcon_problems.neyman_pearson import ClassLoss, plugin
from tests.problems import plugin_laws as laws


@cache
def problem() -> mm.MinMaxProblem:
    return plugin.load()


@cache
def optimum() -> float:
    """With a matrix of weights and the losses of all rows and rivals in one table."""
    cp = pytest.importorskip("cvxpy")
    rows = problem().details.train
    label = rows.membership.argmax(axis=1)
    weights = cp.Variable((3, rows.features.shape[1]))
    scores = rows.features @ weights.T
    own = cp.sum(cp.multiply(scores, rows.membership.astype(float)), axis=1)
    table = cp.logistic(scores - cp.reshape(own, (len(label), 1), order="C") @ np.ones((1, 3)))
    losses = [(cp.sum(table[label == k]) / (label == k).sum()) - np.log(2.0) for k in range(3)]
    balls = [cp.norm(weights[k]) <= 1.0 for k in range(3)]
    program = cp.Problem(cp.Minimize(losses[0]), [losses[1] <= 0.3, losses[2] <= 0.3, *balls])
    program.solve(solver=cp.CLARABEL)
    return float(program.value)


def test_the_reference_solves_the_same_problem() -> None:
    exact = solve_exact(problem())
    assert exact.objective == pytest.approx(optimum(), abs=1e-6)
    assert exact.constraints == pytest.approx([0.0, 0.0], abs=1e-6)  # both bind


def test_the_solver_reaches_it() -> None:
    laws.solver_reaches(problem(), optimum())


def test_a_class_alone_is_the_class_among_others() -> None:
    x, batch = laws.points(problem()), laws.whole(problem())
    together = problem().family.evaluate(x, batch)
    for place, constraint in enumerate((problem().objective, *problem().constraints)):
        alone = constraint.evaluate(x, batch)
        only = np.eye(3)[place] * np.ones((3, 1))
        assert np.abs(alone.F - together.F[:, place]).max() <= 1e-12
        gradient = together.pullback(only, together.G)
        assert alone.pullback(np.ones(3), alone.G) == pytest.approx(gradient, abs=1e-12)


@pytest.mark.parametrize("chosen", [1, 2])
def test_any_class_may_be_the_target(chosen: int) -> None:
    built = plugin.load(target_class=chosen)
    assert [c.name for c in built.constraints] == [f"loss of class {k}" for k in range(3) if k != chosen]
    assert isinstance(built.objective, ClassLoss)
    assert built.objective.index == chosen
    laws.evaluation_agrees(plugin, built)


@pytest.mark.parametrize("data, classes, rows", [("iris", 3, 150), ("wine", 3, 178), ("digits", 10, 1797)])
def test_data_sets(data: str, classes: int, rows: int) -> None:
    built = plugin.load(data)
    parts = [rows.membership for _, rows in built.details.items()]
    assert sum(map(len, parts)) == rows
    assert len(built.constraints) == classes - 1
    at_zero = built.at_level(0.0).values(np.zeros((1, built.primal.dimension)))
    assert at_zero == pytest.approx(np.full((1, classes), (classes - 1) * np.log(2.0)))


def test_measures_count_rows_one_by_one() -> None:
    x, measured = laws.evaluation_agrees(plugin, problem())
    weights = x.reshape(3, -1)
    for part, rows in problem().details.items():
        found = measured[part]
        label = rows.membership.argmax(axis=1)
        wrong = (rows.features @ weights.T).argmax(axis=1) != label  # no ties at a random point
        assert found["error"] == pytest.approx(wrong.mean())
        for k in range(3):
            assert found[f"error_{k}"] == pytest.approx(wrong[label == k].mean())


@pytest.mark.parametrize(
    "option, value",
    [
        ("data", "roses"),
        ("data", 3),
        ("target_class", 3),
        ("target_class", "red"),
        ("bound", "low"),
        ("bound", float("nan")),
        ("radius", -1.0),
    ],
)
def test_refusals(option: str, value: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=option):
        plugin.load(**{option: value})
