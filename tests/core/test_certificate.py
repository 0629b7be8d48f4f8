"""Gaps, the yardsticks that they are measured against, and what an objective varies by near a point."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.core.certificate import nearby_variation, optimality
from tests import cases
from tests.problem_library import HalfSquare, Linear


@pytest.mark.parametrize(
    "objective, lower, first, nearby, expected",
    [
        (3.0, 1.0, 5.0, 0.0, (2.0, 4.0)),
        (3.0, 1.0, 5.0, 7.0, (2.0, 7.0)),
        (3.0, 3.5, 5.0, 0.0, (0.0, 1.5)),
        (-3.0, -4.0, -3.0, 0.5, (1.0, 1.0)),
        (100.0, 100.0 - 0.9e-9, 101.0, 0.0, (0.0, 1.0)),
        (-100.0, -100.0 - 0.9e-9, -99.0, 0.0, (0.0, 1.0)),
        (100.0, 100.0 - 1.1e-9, 101.0, 0.0, (1.1e-9, 1.0)),
        (0.0, 0.0, 0.0, 0.25, (0.0, 0.25)),
    ],
)
def test_a_gap_and_its_yardstick(
    objective: float, lower: float, first: float, nearby: float, expected: tuple[float, float]
) -> None:
    found = optimality(objective, lower, first, nearby)
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-8 if expected[0] == 0 else 0)
    assert (found[0] == 0) == (expected[0] == 0)


@pytest.mark.parametrize("share", [1e-3, 0.5, 1.0])
def test_what_an_objective_varies_by_nearby(share: float) -> None:
    """The largest difference on the way to eight drawn points, of each run its own, by the formula."""
    problem, x = cases.quadratic(), np.array([[0.5, -1.0, 2.0], [-2.0, 0.0, 1.0]])
    points = cases.arrays()["points"]
    drawn = problem.primal.sample(mm.Position.start(np.random.default_rng(4)).rng(), 8)

    def value(at: Any) -> Any:
        return 0.5 * ((at[:, None, :] - points) ** 2).sum(-1).mean(-1)

    expected = np.max([np.abs(value(x + share * (u - x)) - value(x)) for u in drawn], axis=0)
    found = nearby_variation(problem, x, share, mm.Position.start(np.random.default_rng(4)))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


class Steep(HalfSquare):
    """The objective is infinite where the first coordinate is positive."""

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        return mm.Evaluation(np.where(x[..., 0] > 0, np.inf, found.F), found.G, found.pullback)


def test_differences_that_are_not_finite_do_not_count() -> None:
    data = cases.finite("points", "costs")
    problem = mm.MinMaxProblem(Steep(), [Linear(0.5)], mm.Ball(3, 6.0), data, start=np.array([-1.0, -1.0, -1.0]))
    x = np.array([[-1.0, -1.0, -1.0], [1.0, 0.0, 0.0]])
    drawn = problem.primal.sample(mm.Position.start(np.random.default_rng(4)).rng(), 8)
    assert 0 < (drawn[:, 0] > 0).sum() < 8
    found = nearby_variation(problem, x, 1.0, mm.Position.start(np.random.default_rng(4)))
    value = 0.5 * ((drawn[drawn[:, 0] <= 0][:, None, :] - cases.arrays()["points"]) ** 2).sum(-1).mean(-1)
    here = 0.5 * ((x[0] - cases.arrays()["points"]) ** 2).sum(-1).mean()
    np.testing.assert_allclose(found, [np.abs(value - here).max(), 0.0], rtol=1e-12)
