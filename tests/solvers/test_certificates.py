"""What a result claims: a start that is optimal already can be solved, rounding is allowed for, and kinds are told."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.core.lower import lower_bound
from minmaxcon_problems.fair_auc.labelled import LabelledData
from tests import cases
from tests.problem_library import HalfSquare, Linear

Array = Any

QUICK = mm.SMD(steps=100, batch_size=40)


def constant_features(value: float) -> mm.MinMaxProblem:
    rows = cases.labelled()
    flat = LabelledData(np.full_like(rows.features, value), rows.label, rows.group, rows.feature_names)
    return cases.fair_auc("inter_group", 0.1, rows=flat)


def minimised_at_the_start(slack: float, offset: float = 0.0, engine: str = "numpy") -> mm.MinMaxProblem:
    """The start is the nearest point to the data's mean (plus an offset), and the constraint leaves it room."""
    data = cases.finite("points", "costs", engine=engine)
    arrays = cases.arrays()
    mean = arrays["points"].mean(axis=0)
    bound = float(arrays["costs"].mean(axis=0) @ mean) + slack
    return mm.MinMaxProblem(HalfSquare(), [Linear(bound)], mm.Ball(3, 6.0), data, start=mean + offset)


STARTS = {
    "constant features": lambda: constant_features(1.0),
    "zero features": lambda: constant_features(0.0),
    "minimum, little room": lambda: minimised_at_the_start(0.1),
    "minimum, much room": lambda: minimised_at_the_start(10.0),
    "minimum, torch": lambda: minimised_at_the_start(1.0, engine="torch"),
    "almost the minimum": lambda: minimised_at_the_start(1.0, offset=1e-4),
}


@pytest.mark.parametrize("name", STARTS)
def test_a_run_that_starts_at_the_optimum_is_solved(name: str) -> None:
    solution = mm.solve(STARTS[name](), mm.SFLS(oracle=QUICK), seed=0)
    assert solution.status is mm.Status.SOLVED
    assert len(solution.trace["r"]) <= 3
    assert 0 <= solution.certificate.gap <= 1e-6 * abs(solution.objective)


def test_several_runs_of_which_one_starts_at_the_optimum() -> None:
    problem = minimised_at_the_start(1.0)
    starts = np.stack([np.asarray(problem.start), np.asarray(problem.start) - 1.0])
    both = mm.solve(problem, mm.SFLS(oracle=QUICK, tolerance=0.05), x0=starts)
    assert both.status == (mm.Status.SOLVED,) * 2


def test_the_relative_tolerance_is_not_weakened() -> None:
    """What the objective varies by nearby moves with the tolerance, and plays no part far from the optimum."""
    problem = cases.problem("fair_auc_inter")
    for tolerance in (0.2, 0.05):
        plain, floored = (
            mm.solve(problem, mm.SFLS(oracle=QUICK, tolerance=tolerance, least_span=share)) for share in (0.0, 0.001)
        )
        assert plain.reason == floored.reason
        assert (plain.x == floored.x).all()
    strict = mm.solve(minimised_at_the_start(1.0, offset=0.01), mm.SFLS(oracle=QUICK, levels=3, tolerance=1e-9))
    assert strict.status is mm.Status.BUDGET
    loose = mm.solve(minimised_at_the_start(1.0, offset=0.01), mm.SFLS(oracle=QUICK, levels=3, least_span=1.0))
    assert loose.status is mm.Status.SOLVED
    assert "within" in loose.reason


def exact_bound(points: Array, costs: Array, bounds: Array, y: Array) -> Fraction:
    """Return the least value over all x of y_0 (E 1/2 |x - z|^2 - r) + y_1 (E <c, x> - b) in rational arithmetic."""

    def mean(values: Any) -> Fraction:
        exact = [Fraction(float(value)) for value in values]
        return sum(exact, Fraction(0)) / len(exact)

    z, c = ([mean(column) for column in part.T] for part in (points, costs))
    y0, y1 = Fraction(float(y[0])), Fraction(float(y[1]))
    square = mean(points.ravel() ** 2) * points.shape[1]  # squares rounded, as the constraint has them
    x = [zi - y1 / y0 * ci for zi, ci in zip(z, c, strict=True)]
    value = y0 * (sum(xi * xi / 2 - xi * zi for xi, zi in zip(x, z, strict=True)) + square / 2)
    value += y1 * sum(xi * ci for xi, ci in zip(x, c, strict=True))
    return value - y0 * Fraction(float(bounds[0])) - y1 * Fraction(float(bounds[1]))


@pytest.mark.parametrize("offset", [0.0, 300.0])
def test_lower_bounds_allow_for_rounding(offset: float) -> None:
    """Against rational arithmetic, at the minimiser, where nothing else is in reserve; also where terms cancel."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        points, costs = rng.normal(size=(50, 2)) + offset, rng.normal(size=(50, 2))
        y = rng.dirichlet([1.0, 1.0])
        data = mm.Finite({"points": points, "costs": costs})
        problem = mm.MinMaxProblem(HalfSquare(), [Linear(0.3)], mm.Ball(2, 1e4), data)
        level = problem.at_level(0.5)
        x = points.mean(axis=0) - y[1] / y[0] * costs.mean(axis=0)
        bound = lower_bound(level, y[None], np.zeros((1, 0)), x[None])
        exact = exact_bound(points, costs, np.array([0.5, 0.3]), y)
        assert Fraction(float(bound[0])) <= exact
        assert float(exact) - bound[0] <= 1e-6 * (1 + offset**2)


def test_kinds_of_certificates() -> None:
    problem = cases.problem("quadratic")
    solved = mm.solve(problem, mm.SFLS(oracle=QUICK, tolerance=0.05)).certificate
    assert (solved.kind, solved.confidence) == ("exact on the data", 1.0)
    nothing = mm.solve(problem.with_bounds(-50.0), mm.SFLS(oracle=QUICK, searches=2)).certificate
    assert (nothing.kind, nothing.confidence) == ("none", 0.0)
    assert (nothing.lower, nothing.upper) == (-np.inf, np.inf)
    assert str(nothing) == "nothing is known of f*"
    assert (
        str(mm.Certificate("estimate", 0.25, -np.inf, 0.0)) == "objective about 0.25, an estimate that proves nothing"
    )


class Careless(mm.Solver):
    """A solver that returns values which are not numbers."""

    def init(self, problem: mm.MinMaxProblem, start: mm.Start) -> Any:
        self.m = len(problem.constraints)
        return start

    def step(self, state: Any) -> Any:
        return state

    def finished(self, state: Any) -> bool:
        return True

    def outcome(self, state: Any) -> mm.Outcome:
        values = np.full(1, np.nan), np.zeros((1, self.m)), np.full(1, np.nan)
        end = (mm.Status.BUDGET,), ("over.",), (), 0, 0
        return mm.Outcome(state.x, *values, True, 1.0, *end, state)


def test_no_solver_can_put_nan_into_a_certificate() -> None:
    found = mm.solve(replace(cases.quadratic()), Careless()).certificate
    assert (found.kind, found.lower, found.upper) == ("none", -np.inf, np.inf)
