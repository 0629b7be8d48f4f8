"""Feasible points on segments: exactly evaluated and as far along as can be. Bounds that a value contradicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.core import Points
from minmaxcon.solvers.feasibility import contradictions, pull_back
from tests import cases
from tests.problem_library import HalfSquare, Linear


@pytest.mark.parametrize("name", ["fair_auc_inter", "quadratic", "robust", "mean_gap"])
def test_points_are_pulled_back_to_the_boundary(name: str) -> None:
    problem = cases.problem(name)
    points = problem.family.refine(problem.primal.sample(np.random.default_rng(0), 300), problem.data)
    points = points[Points.measured(problem, points).violation > 1e-3][:20]
    interior = problem.family.refine(np.tile(problem.start_point(), (20, 1)), problem.data)
    first, way = Points.measured(problem, interior), points - interior
    assert (first.violation < 0).all()
    low, high = np.zeros(20), np.ones(20)  # the last feasible point of each segment, by bisection
    for _ in range(50):
        middle = 0.5 * (low + high)
        good = Points.measured(problem, interior + middle[:, None] * way).violation <= 0
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    outside = interior + (1.2 * low)[:, None] * way
    violation = Points.measured(problem, outside).violation
    assert (violation > 0).all()
    points = pull_back(problem, first, outside, violation)
    found, exact = points.x, Points.measured(problem, points.x)
    assert exact.constraints == pytest.approx(points.constraints, abs=1e-12)
    assert exact.objective == pytest.approx(points.objective, abs=1e-12)
    assert points.feasible.all()
    share = np.sum((found - interior) * way, axis=1) / np.sum(way * way, axis=1)
    assert found == pytest.approx(interior + share[:, None] * way, abs=1e-12)
    assert (share <= low * (1 + 1e-9)).all()
    assert (share >= 0.95 * low).all()


def test_where_no_point_of_the_segment_is_feasible_the_anchor_is_returned() -> None:
    problem = cases.problem("quadratic")
    interior = problem.start_point()
    first = Points.measured(problem, interior)
    first = Points(interior, first.objective, 0.0 * first.constraints)
    far = np.array([[3.0, 3.0, 3.0]])
    found = pull_back(problem, first, far, Points.measured(problem, far).violation, passes=1)
    assert (found.x == interior).all()
    assert found.feasible.all()


class Counted(HalfSquare):
    """Half the squared distance, which counts what it is asked for."""

    asked = 0

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        self.asked += 1
        return super().evaluate(x, batch)


def around(point: Any, *, bound: Any = 0.02, start: Any = None, radius: float = 6.0) -> mm.MinMaxProblem:
    """Half the squared distance to a point as objective and constraint: feasible are the points near it, and known."""
    data = mm.Finite({"points": np.asarray([point], dtype=float)})
    return mm.MinMaxProblem(Counted(), [Counted(bound)], mm.Ball(len(point), radius), data, start=start)


def test_the_search_ends_where_a_line_shows_that_nothing_is_left() -> None:
    """A constraint that is linear on the segment takes one evaluation; a curved one is met to a millionth in six."""
    data = mm.Finite({"points": np.zeros((1, 2)), "costs": np.array([[1.0, 0.0]])})
    objective = Counted()
    linear = mm.MinMaxProblem(objective, [Linear(0.5)], mm.Ball(2, 6.0), data)
    first, far = Points.measured(linear, np.zeros((1, 2))), np.array([[4.0, 0.0]])
    miss, objective.asked = Points.measured(linear, far).violation, 0
    found = pull_back(linear, first, far, miss)
    assert objective.asked == 1
    assert found.x == pytest.approx(np.array([[0.5, 0.0]]), rel=1e-8)
    curved = around([0.0, 0.0], bound=0.5)  # feasible is the unit ball
    first, far = Points.measured(curved, np.zeros((1, 2))), np.array([[0.0, 1.5]])
    for near, passes in ((1e-6, 6), (0.5, 1)):
        curved.objective.asked = 0
        found = pull_back(curved, first, far, Points.measured(curved, far).violation, passes=20, near=near)
        assert passes == 1 or found.x == pytest.approx(np.array([[0.0, 1.0]]), rel=2e-6)
        assert curved.objective.asked - 1 <= passes + 4
        assert found.feasible.all()


def test_each_run_is_brought_back_on_its_own_segment() -> None:
    problem = around([0.0, 0.0], bound=0.5)
    inside = Points.measured(problem, np.array([[0.0, 0.0], [0.5, 0.0], [0.0, -0.9]]))
    far = np.array([[3.0, 0.0], [0.5, 2.0], [0.0, 1.5]])
    found = pull_back(problem, inside, far, Points.measured(problem, far).violation, passes=40)
    assert found.x == pytest.approx(np.array([[1.0, 0.0], [0.5, np.sqrt(0.75)], [0.0, 1.0]]), abs=1e-5)
    assert found.feasible.all()


def said(problem: mm.MinMaxProblem, points: Points, lower: Any, bound: Any, upper: Any, searching: bool) -> list[Any]:
    """Return what contradicts, with bounds for every run."""
    runs = len(points.objective)
    wide = {"bound": np.broadcast_to(bound, runs), "upper": np.broadcast_to(upper, runs), "searching": searching}
    position = mm.Position.start(np.random.default_rng(0))
    return contradictions(problem, points, np.broadcast_to(lower, runs), **wide, position=position)


@pytest.mark.parametrize("kind, slack", [("float64", 1e-6), ("float32", 1e-3)])
@pytest.mark.parametrize("searching", [False, True])
@pytest.mark.parametrize("seen, value, size", [(-0.3, 0.5, 0.0), (-7.0, 40.0, 0.0), (-0.5, -40.0, 90.0)])
def test_a_bound_above_a_value_by_more_than_rounding_contradicts(
    kind: str, slack: float, searching: bool, seen: float, value: float, size: float
) -> None:
    """The room for rounding grows with the bound, the value and, of a level problem, the objective."""
    problem = around([0.0, 0.0], bound=size)
    x = np.zeros((1, 2), dtype=kind)
    points = Points(x, np.array([value]), np.array([[5.0]]))
    room = slack * (1.0 + size + abs(seen) + (0.0 if searching else abs(value)))
    assert said(problem, points, -np.inf, seen + 0.98 * room, seen, searching) == [None]
    (text,) = said(problem, points, -np.inf, seen + 1.02 * room, seen, searching)
    what = "the least violation" if searching else "the value of the level problem"
    assert text.startswith(
        f"the lower bound {seen + 1.02 * room:.6g} on {what} exceeds {seen:.6g}, the value at a point"
    )
    assert "minmaxcon check" in text


def test_a_search_knows_the_violation_of_the_best_point() -> None:
    problem, x = around([0.0, 0.0]), np.zeros((1, 2))
    points = Points(x, np.array([1.0]), np.array([[-2.0]]))
    assert said(problem, points, -np.inf, -1.0, 3.0, False) == [None]
    (text,) = said(problem, points, -np.inf, -1.0, 3.0, True)
    assert "exceeds -2, " in text


@pytest.mark.parametrize("violation, told", [(-1.0, True), (0.0, True), (1e-9, False)])
@pytest.mark.parametrize("value", [0.3, -60.0])
def test_a_bound_on_the_optimum_is_contradicted_by_feasible_points_only(
    violation: float, told: bool, value: float
) -> None:
    problem, x = around([0.0, 0.0]), np.zeros((3, 2))
    points = Points(x, np.full(3, value), np.full((3, 1), violation))
    room = 1e-6 * (1.0 + abs(value))
    lower = np.array([value - 1.0, value + 0.98 * room, value + 1.02 * room])
    *quiet, text = said(problem, points, lower, -np.inf, np.inf, False)
    assert quiet == [None, None]
    assert (text is not None) == told
    assert not told or f"exceeds {value:.6g}, the value at a feasible point" in text


def test_values_that_are_not_finite_contradict_nothing() -> None:
    problem, x = around([0.0, 0.0]), np.zeros((3, 2))
    points = Points(x, np.array([np.inf, np.nan, 1.0]), np.full((3, 1), -1.0))
    for lower, bound, upper in ((0.0, -np.inf, np.inf), (-np.inf, np.nan, 0.0), (np.nan, 3.0, np.nan)):
        assert said(problem, points, lower, bound, upper, False) == [None] * 3


@pytest.mark.parametrize("where", ["centre", "start", "drawn"])
def test_that_no_point_is_feasible_is_tried_at_the_start_the_centre_and_drawn_points(where: str) -> None:
    """A bound of 0.01 on the least violation is false: a feasible point is where only one of the three looks."""
    problem = around([0.0, 0.0, 0.0])
    drawn = problem.primal.sample(mm.Position.start(np.random.default_rng(0)).rng(), 16)
    place = {"centre": np.zeros(3), "start": np.array([3.0, -2.0, 1.0]), "drawn": drawn[15]}[where]
    start = place if where == "start" else np.array([-3.0, 2.0, 2.0])
    problem = around(place, start=start)
    other = np.array([[0.0, 0.0, 5.9], [5.9, 0.0, 0.0]])
    points = Points.measured(problem, other)
    texts = said(problem, points, -np.inf, np.array([0.01, 0.01]), np.array([4.0, 5.0]), True)
    assert all("exceeds -0.02, the value at a point" in text for text in texts)
    assert said(problem, points, -np.inf, -0.5, 4.0, True) == [None, None]
    elsewhere = around([5.0, 0.0, 0.0], start=np.array([-3.0, 2.0, 2.0]))  # no point looked at is feasible
    assert said(elsewhere, points, -np.inf, 0.01, 4.0, True) == [None, None]
