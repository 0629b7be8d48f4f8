"""Bounds that contradict a value prove that a gradient or the declared convexity is wrong: nothing is claimed then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from tests import cases
from tests.problem_library import HalfSquare, Linear, MeanGap

Array = Any

SOLVERS = {
    "smd": lambda: mm.SFLS(oracle=mm.SMD(steps=150, batch_size=30), levels=6),
    "extragradient": lambda: mm.SFLS(oracle=mm.ExtraGradient(steps=80, batch_size=30), levels=8),
    "mirror_prox": lambda: mm.SFLS(oracle=mm.MirrorProx(steps=20), levels=4),
    "variance_reduced": lambda: mm.SFLS(oracle=mm.VarianceReduced(epochs=4, batch_size=30), levels=8),
    "conex": lambda: mm.ConEx(steps=400, batch_size=30, evaluations=8),
    "primal_dual": lambda: mm.PrimalDual(steps=400, batch_size=30, evaluations=8),
    "switching": lambda: mm.SwitchingSubgradient(steps=400, batch_size=30, test_size=60, evaluations=8),
}


class Flipped(MeanGap):
    """The mean gap with the sign of its gradient turned."""

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        return mm.Evaluation(found.F, found.G, lambda y, a: -found.pullback(y, a))


class FlippedSquare(HalfSquare):
    """The distance to the samples with the sign of its gradient turned."""

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        return mm.Evaluation(found.F, found.G, lambda y, a: -found.pullback(y, a))


class Hollow(mm.StochasticMinMaxConstraint):
    """f(x) = -E |x - z|^2 / 2, which is concave, and declared convex."""

    convex = True

    def __init__(self, bound: Any = 0.0, name: str = "hollow") -> None:
        self.bound, self.name = bound, name

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        points = batch["points"]
        mean = points.mean(0)
        value = -0.5 * ((x * x).sum(-1) - 2.0 * x @ mean + (points * points).sum(-1).mean())
        return mm.Evaluation(value, x[..., :0], lambda y, _: y[..., None] * (mean - x))


def near_mean(objective: Any, constraints: list[Any], start: Any, radius: float = 6.0) -> mm.MinMaxProblem:
    data = cases.finite("points", "costs", "contrast")
    return mm.MinMaxProblem(objective, constraints, mm.Ball(3, radius), data, start=np.asarray(start, dtype=float))


PLANTED = {
    "constraint's sign": lambda: near_mean(HalfSquare(), [Flipped(0.05), Linear(1.0)], [-1.0, 0.0, 0.0]),
    "objective's sign": lambda: near_mean(FlippedSquare(), [Linear(1.0)], [-1.0, -1.0, -1.0]),
    "concave constraint": lambda: near_mean(HalfSquare(), [Hollow(-6.0)], [3.0, 3.0, 3.0]),
    "concave objective": lambda: near_mean(Hollow(), [Linear(1.0)], [-1.0, -1.0, -1.0]),
    "sign, from outside": lambda: near_mean(HalfSquare(), [Flipped(0.05), Linear(1.0)], [4.0, 4.0, 1.0]),
    "concave, from outside": lambda: near_mean(HalfSquare(), [Hollow(-6.0)], [0.5, 0.5, 0.5]),
}

FOUND_BY_OTHERS = {("constraint's sign", "smd"), ("objective's sign", "conex"), ("sign, from outside", "conex")}
"""What is tried every time beside mirror-prox on all; the rest of the crossing is a promise."""


@pytest.mark.parametrize(
    "planted, name",
    [
        pytest.param(
            planted,
            name,
            marks=() if name == "mirror_prox" or (planted, name) in FOUND_BY_OTHERS else pytest.mark.rel,
        )
        for planted in PLANTED
        for name in SOLVERS
    ],
)
def test_nothing_is_claimed_that_a_value_contradicts(planted: str, name: str) -> None:
    """Every planted problem has feasible points: the origin, and for the concave constraint a corner far out."""
    problem = PLANTED[planted]()
    feasible = np.zeros(3) if "constraint" not in planted or "sign" in planted else np.full(3, 3.0)
    if planted == "concave, from outside":
        feasible = np.full(3, 3.0)
    level = problem.at_level(0.0)
    assert (level.values(feasible[None])[0] - level.bounds[0])[1:].max() <= 0
    solution = mm.solve(problem, SOLVERS[name](), seed=0)
    certificate = solution.certificate
    assert solution.status is not mm.Status.INFEASIBLE
    assert certificate.lower <= certificate.upper + 1e-6 * (1.0 + abs(solution.objective))
    if "sign" in planted:
        assert solution.status is mm.Status.INCONSISTENT
        assert certificate.lower == -np.inf
        assert "a gradient or the declared convexity is wrong; run `minmaxcon check`" in solution.reason


def test_a_concave_objective_declared_convex_can_be_found_out() -> None:
    solution = mm.solve(PLANTED["concave objective"](), SOLVERS["conex"](), seed=0)
    assert solution.status is mm.Status.INCONSISTENT
    assert solution.feasible


def test_each_of_several_runs_is_found_out() -> None:
    problem = near_mean(FlippedSquare(), [Linear(1.0)], [-1.0, -1.0, -1.0])
    both = mm.solve(problem, SOLVERS["mirror_prox"](), x0=np.array([[-1.0, -1.0, -1.0], [0.0, 0.0, 0.0]]), seed=0)
    assert both.status == (mm.Status.INCONSISTENT,) * 2
    assert all(one.lower == -np.inf for one in both.certificate)


ALWAYS = ("smd numpy", "mirror_prox torch")


@pytest.mark.parametrize(
    "name, engine",
    [
        pytest.param(name, engine, marks=() if f"{name} {engine}" in ALWAYS else pytest.mark.rel)
        for name in SOLVERS
        for engine in ("numpy", "torch")
        if engine == "numpy" or name not in ("primal_dual", "switching")  # they share their steps with ConEx
    ],
)
def test_single_precision_is_no_contradiction(name: str, engine: str) -> None:
    """A sound problem in float32, far from the origin, where values are rounded most."""
    arrays = {key: cases.arrays()[key].astype(np.float32) for key in ("points", "costs")}
    arrays["points"] += 30.0
    start = np.full(3, 29.0)
    bound = float(arrays["costs"].mean(axis=0) @ start) + 1.0
    data = mm.Finite(arrays, engine=engine, dtype="float32")
    problem = mm.MinMaxProblem(HalfSquare(), [Linear(bound)], mm.Ball(3, 60.0), data, start=start)
    solution = mm.solve(problem, SOLVERS[name](), seed=0)
    assert problem.start_point().dtype.itemsize == 4
    assert solution.status in {mm.Status.SOLVED, mm.Status.BUDGET}
