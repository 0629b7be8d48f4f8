"""Fronts: against brute force over all pairs, against areas counted by random points, and at their edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minmaxcon_problems.fair_auc.study.fronts import best_auc, hypervolume, mean_and_error, mean_front, nondominated

GRID = st.integers(0, 12).map(lambda k: k / 40)
POINTS = st.lists(st.tuples(GRID | st.just(float("nan")), GRID.map(lambda v: 0.45 + 2 * v)), max_size=25)


def split(points: list[tuple[float, float]]) -> tuple[Any, Any]:
    gap, auc = np.array(points, dtype=float).reshape(-1, 2).T
    return gap, auc


@given(POINTS)
def test_nondominated_is_what_all_pairs_say(points: list[tuple[float, float]]) -> None:
    gap, auc = split(points)
    expected = [
        bool(np.isfinite(g)) and not any(h <= g and b >= a and (h < g or b > a) for h, b in points) for g, a in points
    ]
    assert nondominated(gap, auc).tolist() == expected


@given(POINTS)
def test_hypervolume_is_the_area_counted_cell_by_cell(points: list[tuple[float, float]]) -> None:
    """All coordinates lie on a grid, so that the cells' centres count the area exactly."""
    gap, auc = split(points)
    x = (np.arange(12) + 0.5) / 40
    y = 0.5 + (np.arange(100) + 0.5) / 200
    inside = np.zeros((12, 100), dtype=bool)
    for g, a in points:
        inside |= (x[:, None] >= g) & (y[None, :] <= a)
    assert hypervolume(gap, auc) == pytest.approx(inside.mean(), abs=1e-12)


def test_hypervolume_against_random_points() -> None:
    rng = np.random.default_rng(3)
    gap, auc = rng.uniform(0, 0.35, 15), rng.uniform(0.45, 0.95, 15)
    sample = rng.uniform((0.0, 0.5), (0.3, 1.0), (200_000, 2))
    inside = ((sample[:, :1] >= gap) & (sample[:, 1:] <= auc)).any(axis=1)
    assert hypervolume(gap, auc) == pytest.approx(inside.mean(), abs=5 * 0.5 / np.sqrt(len(sample)))


def test_hypervolume_at_its_edges() -> None:
    assert hypervolume([], []) == 0.0
    assert hypervolume([0.3, 0.0, np.nan], [1.0, 0.5, 0.9]) == 0.0
    assert hypervolume([0.0], [1.0]) == pytest.approx(1.0, abs=1e-15)


@given(POINTS, GRID)
def test_best_auc(points: list[tuple[float, float]], limit: float) -> None:
    expected = max((a for g, a in points if g <= limit), default=float("nan"))
    np.testing.assert_equal(best_auc(*split(points), limit), expected)


def test_mean_front_interpolates_and_says_where_a_front_is_missing() -> None:
    first = ([0.0, 0.1, 0.05], [0.7, 0.9, 0.6])  # the last is dominated
    second = ([0.05, 0.2], [0.6, 0.8])
    auc, error, count = mean_front([first, second], [0.0, 0.05, 0.1, 0.3])
    np.testing.assert_allclose(auc, [0.7, (0.8 + 0.6) / 2, (0.9 + 0.6 + 0.2 / 3) / 2, (0.9 + 0.8) / 2])
    np.testing.assert_array_equal(count, [1, 2, 2, 2])
    np.testing.assert_allclose(error, [np.nan, 0.1, (0.3 - 0.2 / 3) / 2, 0.05])
    nowhere = mean_front([([], [])], [0.1])
    np.testing.assert_equal([found[0] for found in nowhere], [np.nan, np.nan, 0])


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20))
def test_mean_and_error(values: list[float]) -> None:
    mean, error = mean_and_error([*values, float("nan")])
    assert mean == pytest.approx(sum(values) / len(values), abs=1e-9)
    spread = sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values)
    assert error == pytest.approx(spread**0.5, abs=1e-9)
