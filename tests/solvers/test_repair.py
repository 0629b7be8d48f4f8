"""Bringing a point back to feasibility: exactly evaluated, feasible, and as far along the segment as can be."""

from __future__ import annotations

import numpy as np
import pytest

from minmaxcon.solvers.repair import measure, pull_back
from tests import cases


@pytest.mark.parametrize("name", ["fair_auc_inter", "quadratic", "robust", "mean_gap"])
def test_points_are_pulled_back_to_the_boundary(name: str) -> None:
    problem = cases.problem(name)
    points = problem.family.refine(problem.primal.sample(np.random.default_rng(0), 300), problem.data)
    points = points[measure(problem, points)[1].max(axis=1) > 1e-3][:20]
    anchor = problem.family.refine(np.tile(problem.start_point(), (20, 1)), problem.data)
    slack, way = measure(problem, anchor)[1].max(axis=1), points - anchor
    assert (slack < 0).all()
    low, high = np.zeros(20), np.ones(20)  # the last feasible point of each segment, by bisection
    for _ in range(50):
        middle = 0.5 * (low + high)
        good = measure(problem, anchor + middle[:, None] * way)[1].max(axis=1) <= 0
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    outside = anchor + (1.2 * low)[:, None] * way
    violation = measure(problem, outside)[1].max(axis=1)
    assert (violation > 0).all()
    found, objective, constraints = pull_back(problem, anchor, slack, outside, violation)
    exact_objective, exact = measure(problem, found)
    assert exact == pytest.approx(constraints, abs=1e-12)
    assert exact_objective == pytest.approx(objective, abs=1e-12)
    assert (constraints <= 0).all()
    share = np.sum((found - anchor) * way, axis=1) / np.sum(way * way, axis=1)
    assert found == pytest.approx(anchor + share[:, None] * way, abs=1e-12)
    assert (share <= low * (1 + 1e-9)).all()
    assert (share >= 0.95 * low).all()


def test_where_no_point_of_the_segment_is_feasible_the_anchor_is_returned() -> None:
    problem = cases.problem("quadratic")
    anchor = problem.start_point()
    slack = measure(problem, anchor)[1].max(axis=1)
    far = np.array([[3.0, 3.0, 3.0]])
    found, _, constraints = pull_back(problem, anchor, 0.0 * slack, far, measure(problem, far)[1].max(axis=1), passes=1)
    assert (found == anchor).all()
    assert (constraints <= 0).all()
