"""Successive approximation on problems whose truth has steps: known optima and every status."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from tests import cases
from tests.staircases import (
    POINTS,
    Overstepping,
    Scaled,
    Smooth,
    Staircase,
    Steps,
    Varying,
    best_on_a_grid,
    bowl,
    lifted,
    nearest_in_the_bowl,
    spread,
    staircase,
    wave,
)

Array = Any

TIGHT = mm.SuccessiveApproximation(tolerance=1e-7)


@pytest.mark.parametrize("engine", cases.promises(["numpy", "torch"], ["numpy"]))
@pytest.mark.parametrize("kind", [Staircase, Scaled, Overstepping, Varying])
@pytest.mark.parametrize("height", [0.0, 1e-4, 1e-3])
def test_the_optimum_of_a_convex_problem(height: float, kind: type[Staircase], engine: str) -> None:
    """Feasible, and as good as the truth allows: between the optima of s <= b + h/2 and of s <= b - h."""
    solution = mm.solve(staircase(height=height, kind=kind, engine=engine), TIGHT)
    assert solution.status is mm.Status.SOLVED
    assert solution.reason.startswith("First-order optimality")
    assert solution.feasible
    assert Staircase([bowl], height).observe(solution.x[None]).values[0, 0] <= 0.2
    assert solution.constraints[0] == Staircase([bowl], height).observe(solution.x[None]).values[0, 0] - 0.2
    least, most = nearest_in_the_bowl(0.2 + 0.5 * height), nearest_in_the_bowl(0.2 - height)
    assert least - 1e-6 <= solution.objective <= most + 1e-5
    assert solution.certificate.lower == -np.inf


def test_another_method_solves_the_proximal_problems_of_finite_data() -> None:
    """And comes near the optimum that the linearised steps reach."""
    inner = mm.SFLS(oracle=mm.SMD(steps=50, batch_size=20), levels=2)
    found = mm.solve(staircase(), mm.SuccessiveApproximation(inner=inner, iterations=12), seed=0)
    assert found.feasible
    least = nearest_in_the_bowl(0.2)
    assert least - 1e-3 <= found.objective <= least + 0.02 * (1.0 + abs(least))


@pytest.mark.parametrize("function, bound", [(wave, 0.3), (wave, -0.5), (bowl, 5.0)])
def test_the_optimum_of_a_problem_that_is_not_convex(function: Smooth, bound: float) -> None:
    height = 1e-3
    solution = mm.solve(staircase(function, bound, height), TIGHT)
    assert solution.status is mm.Status.SOLVED
    assert solution.objective >= best_on_a_grid(function, bound + 0.5 * height) - 1e-6
    assert solution.objective <= best_on_a_grid(function, bound - height) + 1e-4


def test_both_sides_of_a_band() -> None:
    """|s(x) - 0.3| <= 0.01 as two constraints, from a start below the band: the far side is where the optimum is."""

    def lower(x: Array) -> tuple[Array, Array]:
        value, slope = bowl(x)
        return 0.3 - value, -slope

    problem = staircase(bowl, 0.0, 1e-4)
    measure = Staircase([lambda x: (bowl(x)[0] - 0.3, bowl(x)[1]), lower], 1e-4)
    sides = measure.observe(np.zeros((1, 2))).surrogates()
    band = replace(problem, constraints=[side.with_bound(0.01) for side in sides], measure=measure)
    solution = mm.solve(band, TIGHT)
    assert solution.status is mm.Status.SOLVED
    assert solution.objective == pytest.approx(nearest_in_the_bowl(0.31), abs=2e-4)


def test_the_set_binds_beside_the_target() -> None:
    lengths = []
    for bound in (0.3, 5.0):
        solution = mm.solve(staircase(wave, bound, 1e-3, primal=mm.Ball(2, 0.5)), TIGHT)
        lengths.append(np.linalg.norm(solution.x))
        assert solution.status is mm.Status.SOLVED
        assert lengths[-1] <= 0.5 + 1e-9
        assert solution.objective == pytest.approx(best_on_a_grid(wave, bound, radius=0.5), abs=1e-3)
    assert lengths[-1] == pytest.approx(0.5, abs=1e-4)


def test_from_a_start_that_misses_its_target() -> None:
    solution = mm.solve(staircase(bowl, 0.2, 1e-3, start=(3.0, -2.0)), TIGHT)
    assert solution.status is mm.Status.SOLVED
    assert solution.objective == pytest.approx(nearest_in_the_bowl(0.2), abs=2e-3)
    again = mm.solve(staircase(bowl, 0.2, 1e-3), TIGHT, x0=[3.0, -2.0])
    np.testing.assert_array_equal(again.x, solution.x)


@pytest.mark.parametrize("tolerance", cases.promises([1e-5, 1e-3, 1e-2], [1e-3]))
@pytest.mark.parametrize("function, bound", [(bowl, 0.2), (wave, 0.3), (wave, -0.5)])
def test_solved_means_near_the_optimum_whatever_the_tolerance(function: Smooth, bound: float, tolerance: float) -> None:
    """Also where a first step was far too long, and short ones had to follow: they are no reason to aim lower."""
    height, solver = 1e-3, mm.SuccessiveApproximation(tolerance=tolerance)
    best = best_on_a_grid(function, bound)
    for start in ((0.0, 0.0), (3.0, -2.0), (-1.0, 2.0)):
        solution = mm.solve(staircase(function, bound, height, start=start), solver)
        assert solution.status is mm.Status.SOLVED
        assert solution.feasible
        assert solution.objective - best <= 2.0 * tolerance * (1.0 + best) + height


# ------------------------------------------------------------------------------------------------------------ statuses


def test_a_target_that_nobody_can_meet_is_out_of_reach() -> None:
    solution = mm.solve(staircase(lifted, 0.3, 1e-3), TIGHT)
    assert solution.status is mm.Status.OUT_OF_REACH
    assert not solution.feasible
    assert "target" in solution.reason
    assert solution.x == pytest.approx(np.zeros(2), abs=0.05)  # the point that comes nearest
    assert solution.certificate.kind == "none"


def test_few_steps_are_no_proof() -> None:
    met = mm.solve(staircase(), mm.SuccessiveApproximation(iterations=2, weight=10.0))
    assert met.status is mm.Status.BUDGET
    assert met.feasible
    assert "after 2 outer steps" in met.reason.lower()
    missed = mm.solve(staircase(start=(3.0, -2.0)), mm.SuccessiveApproximation(iterations=1, reach=1e-3))
    assert missed.status is mm.Status.OUT_OF_REACH
    assert not missed.feasible


@pytest.mark.parametrize("start", [(0.0, 0.0), (3.0, -2.0)])
def test_the_last_step_counts(start: tuple[float, float]) -> None:
    """However few steps there were, the status is about the point that is returned."""
    seen = set()
    for iterations in range(1, 18):
        found = mm.solve(staircase(start=start, height=1e-2), mm.SuccessiveApproximation(iterations=iterations))
        seen.add(found.feasible)
        assert (found.status is mm.Status.OUT_OF_REACH) == (not found.feasible)
        if found.status is not mm.Status.SOLVED:
            missed = f"the true measure is {found.constraints.max():+.3g} from its target."
            assert ("the true measure meets its target." if found.feasible else missed) in found.reason
    assert seen == {True, False}


def test_steps_that_promise_more_than_they_hold_end_the_run() -> None:
    """A measure whose surrogates point the wrong way: nothing is accepted, and the start is what is returned."""

    class Lying(Staircase):
        def observe(self, x: Array) -> Steps:
            self.asked += 1
            true = [lambda at: (bowl(at)[0], -bowl(at)[1])]
            return Steps(true, 0.0, x)

    liar = staircase(bowl, 0.2, 0.0, start=(3.0, -2.0), kind=Lying)
    solution = mm.solve(liar, mm.SuccessiveApproximation(patience=3, iterations=500))
    assert solution.status is mm.Status.OUT_OF_REACH
    assert "in a row did not improve" in solution.reason or "from its target" in solution.reason


class Breaking(Staircase):
    """Not finite at and beyond a first coordinate."""

    beyond = -np.inf

    def observe(self, x: Array) -> Steps:
        found = super().observe(x)
        found.values = np.where(np.asarray(x)[:, :1] >= self.beyond, np.nan, found.values)
        return found


class LaterBreaking(Breaking):
    beyond = 0.3


def test_values_that_are_not_finite_at_the_start() -> None:
    solution = mm.solve(staircase(kind=Breaking), TIGHT)
    assert solution.status is mm.Status.DIVERGED
    assert "not finite" in solution.reason
    assert solution.x.tolist() == [0.0, 0.0]
    both = mm.solve(staircase(kind=LaterBreaking, bound=[0.2, 0.2]), TIGHT, x0=[[0.5, 0.0], [0.0, 0.0]])
    assert both.status[0] is mm.Status.DIVERGED  # and the other run goes on
    assert both.status[1] is not mm.Status.DIVERGED


def test_steps_to_where_values_are_not_finite_are_refused() -> None:
    solution = mm.solve(staircase(kind=LaterBreaking), TIGHT)
    assert solution.feasible
    assert solution.x[0] < 0.3
    start = spread() + 0.5 * float((POINTS.mean(axis=0) ** 2).sum())
    assert solution.objective < start - 0.1
