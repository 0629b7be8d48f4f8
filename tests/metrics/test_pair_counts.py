"""Counts of pairs by sorted runs on disk: the same numbers as all pairs in memory, ties and all."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.metrics import AUCStatistic, ScoreRuns, auc

SETS = [np.array(cells, dtype=bool) for cells in ([0, 1, 0, 1], [1, 0, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1])]


def counted(scores: Any, cells: Any, rows: int, block: int = 777, weights: Any = None) -> Any:
    runs = ScoreRuns(4, rows=rows)
    for begin in range(0, len(scores), block):
        part = slice(begin, begin + block)
        runs.add(scores[part], cells[part], None if weights is None else weights[part])
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


@pytest.mark.parametrize("rows", [400, 10**6])
@pytest.mark.parametrize("digits", [None, 0])
def test_weighted_pairs_are_those_of_all_rows_in_memory(rows: int, digits: int | None) -> None:
    """AUC, variance and numbers of rows, tied or not; whole numbers stand for copies, in all but the variance."""
    rng = np.random.default_rng(3)
    cells, weights = rng.integers(4, size=5000), rng.uniform(0.1, 4.0, 5000)
    scores = rng.normal(size=5000) + 0.3 * cells
    scores = scores if digits is None else scores.round(digits)
    found = counted(scores, cells, rows, weights=weights)
    for pairs in itertools.product([SETS[:2], SETS[2:0:-1]], [SETS[1:3], [SETS[3], SETS[3]]]):
        first, second = (AUCStatistic.of(scores, own[cells], other[cells], weights) for own, other in pairs)
        expected, seen = (first - second).estimate(), found.difference(pairs)
        assert seen.value == pytest.approx(expected.value, abs=1e-13)
        assert seen.standard_error == pytest.approx(expected.standard_error, rel=2e-3)
        assert seen.counts == expected.counts
    copies = rng.integers(1, 4, size=5000)
    repeated = counted(np.repeat(scores, copies), np.repeat(cells, copies), rows)
    whole = counted(scores, cells, rows, weights=copies)
    assert whole.doubled == repeated.doubled
    assert whole.mass.tolist() == repeated.counts.tolist()
    assert whole.difference([SETS[:2]]).standard_error > repeated.difference([SETS[:2]]).standard_error


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_tie_are_those_of_one_score(weighted: bool) -> None:
    rng = np.random.default_rng(2)
    cells, weights = rng.integers(4, size=500), rng.integers(1, 5, size=500).astype(float) if weighted else None
    found = counted(rng.normal(size=500), cells, 100, weights=weights).tied()
    same = counted(np.ones(500), cells, 100, weights=weights)
    assert found.doubled == same.doubled
    for name in ("counts", "first", "second", "mass", "squares"):
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
    for bad, said in (([0.0], "weights=0.0: must be positive"), ([1.0, 1.0], "must have shape"), ([np.inf], "=inf")):
        with pytest.raises(mm.InvalidInput, match=said):
            runs.add([0.0], [1], bad)
    runs.add([0.0], [1])
    with pytest.raises(mm.InvalidInput, match="with every block of scores, or with none"):
        runs.add([0.0], [1], [2.0])
    counts = runs.counts()
    assert np.isnan(counts.auc([True, False], [False, True]))
    nothing = counts.difference([([True, False], [False, True])])
    assert (nothing.defined, nothing.counts, nothing.reason) == (False, (0, 1), "a set has no rows")
    assert np.isnan([nothing.value, nothing.lower, nothing.upper, nothing.standard_error]).all()
