"""Counts of pairs by sorted runs on disk: the same numbers as all pairs in memory, ties and all."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.metrics import AUCStatistic, ScoreRuns, auc

SETS = [np.array(cells, dtype=bool) for cells in ([0, 1, 0, 1], [1, 0, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1])]


def counted(scores: Any, cells: Any, rows: int, block: int = 777) -> Any:
    runs = ScoreRuns(4, rows=rows)
    for begin in range(0, len(scores), block):
        runs.add(scores[begin : begin + block], cells[begin : begin + block])
    return runs.counts()


@pytest.mark.parametrize("rows", [37, 300, 5000, 10**6])
@pytest.mark.parametrize("digits", [None, 2, 0, -3])
def test_every_auc_is_that_of_all_pairs(rows: int, digits: int | None) -> None:
    rng = np.random.default_rng(0)
    cells = rng.integers(4, size=5000)
    scores = rng.normal(size=5000) + 0.1 * cells
    scores = scores if digits is None else scores.round(digits)
    found = counted(scores, cells, rows)
    assert found.counts.tolist() == np.bincount(cells).tolist()
    for own, other in itertools.product(SETS, SETS):
        assert found.auc(own, other) == auc(scores[own[cells]], scores[other[cells]])


def test_intervals_are_those_of_delong() -> None:
    rng = np.random.default_rng(1)
    cells = rng.integers(4, size=20_000)
    scores = (rng.normal(size=20_000) + 0.3 * cells).round(2)
    found = counted(scores, cells, 3000)
    for pairs in itertools.product([SETS[:2], SETS[2:0:-1]], [SETS[1:3], [SETS[3], SETS[3]]]):
        first, second = (AUCStatistic.of(scores, own[cells], other[cells]) for own, other in pairs)
        expected, seen = (first - second).estimate(), found.difference(pairs)
        assert seen.value == pytest.approx(expected.value, abs=1e-15)
        assert seen.standard_error == pytest.approx(expected.standard_error, rel=1e-3)
        assert (seen.lower, seen.upper) == pytest.approx((expected.lower, expected.upper), abs=2e-4)
        gap, folded = found.gap(*pairs), abs(first - second).estimate()
        assert (gap.value, gap.lower, gap.upper) == pytest.approx((folded.value, folded.lower, folded.upper), abs=2e-4)


def test_rows_that_tie_are_those_of_one_score() -> None:
    rng = np.random.default_rng(2)
    cells = rng.integers(4, size=500)
    found, same = counted(rng.normal(size=500), cells, 100).tied(), counted(np.ones(500), cells, 100)
    assert found.doubled == same.doubled
    for name in ("counts", "first", "second"):
        np.testing.assert_array_equal(getattr(found, name), getattr(same, name))


def test_what_cannot_be_counted() -> None:
    runs = ScoreRuns(2)
    with pytest.raises(mm.InvalidInput, match="give at least one"):
        runs.counts()
    with pytest.raises(mm.InvalidInput, match="must be finite"):
        runs.add([np.nan], [0])
    with pytest.raises(mm.InvalidInput, match="between 0 and 1"):
        runs.add([0.0], [2])
    with pytest.raises(mm.InvalidInput, match="must have shape"):
        runs.add([0.0], [1, 1])
    runs.add([0.0], [1])
    counts = runs.counts()
    assert np.isnan(counts.auc([True, False], [False, True]))
    nothing = counts.difference([([True, False], [False, True])])
    assert (nothing.defined, nothing.counts, nothing.reason) == (False, (0, 1), "a set has no rows")
    assert np.isnan([nothing.value, nothing.lower, nothing.upper, nothing.standard_error]).all()
