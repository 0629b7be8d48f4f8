"""Bringing a point back to feasibility: exactly evaluated, feasible, and as far along the segment as can be."""

from __future__ import annotations

import numpy as np
import pytest

from minmaxcon.core import Points
from minmaxcon.solvers.feasibility import pull_back
from tests import cases


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
