"""Searches for a strictly feasible point: what is found, what is proved, and evidence of the point that is returned."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from tests import cases
from tests.problem_library import HalfSquare, Linear
from tests.solvers.test_sfls import shifted

Array = Any

SHORT = mm.SMD(steps=100, batch_size=10)
SOLVERS = {
    "sfls": lambda: mm.SFLS(oracle=SHORT, levels=1, searches=2),
    "mirror_prox": lambda: mm.SFLS(oracle=mm.MirrorProx(steps=5), levels=1, searches=1),
    "iqrc": lambda: mm.IQRC(oracle=mm.SFLS(oracle=SHORT, levels=1, searches=1, least_span=0.0), iterations=1),
    "primal_dual": lambda: mm.PrimalDual(steps=100, evaluations=2),
    "conex": lambda: mm.ConEx(steps=100, evaluations=2),
    "switching": lambda: mm.SwitchingSubgradient(steps=100, evaluations=2),
}


class Coordinate(mm.StochasticMinMaxConstraint):
    """The function sign times x_0."""

    convex = True

    def __init__(self, sign: float, bound: float) -> None:
        self.sign, self.bound, self.name = sign, bound, "coordinate"

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        slope = self.sign * np.eye(x.shape[-1])[0]
        return mm.Evaluation(x @ slope, x[..., :0], lambda y, _: y[..., None] * slope)


def narrow(least: float, most: float) -> mm.MinMaxProblem:
    """Ask for least <= x_0 <= most in a box."""
    data = cases.finite("points")
    box = mm.Box([-1.0] * 3, [1.0] * 3)
    constraints = [Coordinate(-1.0, -least), Coordinate(1.0, most)]
    return mm.MinMaxProblem(HalfSquare(), constraints, box, data, start=np.array([0.5, 0.0, 0.0]))


@pytest.mark.parametrize("margin", [0.003, 1.0])
def test_a_point_of_small_and_large_margin_is_found_after_few_samples(margin: float) -> None:
    for seed in range(2):
        solution = mm.solve(shifted(seed, margin), SOLVERS["sfls"](), seed=seed)
        assert solution.feasible
        assert solution.status in {mm.Status.BUDGET, mm.Status.SOLVED}


@pytest.mark.rel
@pytest.mark.parametrize("margin", [0.003, 0.01, 10.0])
def test_a_point_of_small_and_large_margin_is_found_in_24_problems(margin: float) -> None:
    """Two short searches miss a small margin now and then, and say so."""
    found = [mm.solve(shifted(seed, margin), SOLVERS["sfls"](), seed=seed) for seed in range(24)]
    missed = [solution for solution in found if not solution.feasible]
    assert len(missed) <= (1 if margin < 0.01 else 0)
    assert all("no feasible point was found yet" in solution.reason for solution in missed)


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_claim_is_made_that_none_exists_where_one_does(solver: str) -> None:
    solution = mm.solve(narrow(0.0, 0.01), SOLVERS[solver]())
    assert solution.status in {mm.Status.BUDGET, mm.Status.SOLVED}
    if not solution.feasible:
        assert solution.status is mm.Status.BUDGET
        assert "no feasible point was found yet" in solution.reason


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_evidence_is_that_of_the_point_returned(solver: str) -> None:
    """No x has x >= 1e-4 and x <= 0: whatever is said of a violation is what the point has, or a bound below it."""
    solution = mm.solve(narrow(1e-4, 0.0), SOLVERS[solver]())
    assert not solution.feasible
    worst = float(np.max(solution.constraints))
    if found := re.search(r"the least violation is ([\d.e+-]+\d)", solution.reason):
        assert float(found[1]) == pytest.approx(worst, rel=1e-4)
    else:
        assert solution.status is mm.Status.INFEASIBLE
    said = solution.reason.partition("its oracle said")[0]  # of a proximal problem, which asks for more
    if found := re.search(r"by at least ([\d.e+-]+\d)", said):
        assert float(found[1]) <= 5e-5 * (1 + 1e-6)


def test_no_room_to_spare_is_proved() -> None:
    problem = narrow(0.0, 0.0)
    solution = mm.solve(problem, SOLVERS["sfls"](), x0=np.array([0.0, 0.5, 0.5]))
    assert solution.status is mm.Status.NOT_STRICTLY_FEASIBLE
    low, high = map(float, re.findall(r"-?[\d.]+(?:e-\d+)?(?= and|\.$)", solution.reason))
    assert -1e-6 <= low <= 0 <= high <= 1e-6


def test_nothing_is_searched_exactly_without_convexity() -> None:
    undeclared = Linear(-2.5)
    undeclared.convex = False
    data = cases.finite("points", "costs")
    problem = mm.MinMaxProblem(HalfSquare(), [undeclared], mm.Ball(3, 6.0), data, start=np.full(3, 3.0))
    solution = mm.solve(problem, mm.SFLS(oracle=mm.SMD(steps=3, batch_size=5), searches=2))
    assert solution.status is mm.Status.BUDGET
    assert solution.samples == 15 + 20  # the second search is a tenth longer
