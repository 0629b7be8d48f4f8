"""Simulated coverage of intervals: small, separated and tied sets, gaps, paired differences, weights."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from minmaxcon.errors import InvalidInput
from minmaxcon.metrics import AUCEstimate, AUCStatistic, auc, auc_with_interval

COVERAGE = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[2] / "docs" / "figures" / "intervals.py")))
"""The simulations, of which the documentation has a table."""

HARD = [("wide", 0.95, (2, 2)), ("narrow", 0.95, (50, 2)), ("exponential", 0.95, (2, 5)), ("tied", 0.99, (5, 5))]


@pytest.mark.parametrize("kind, area, sizes", HARD)
def test_areas_are_covered_where_it_is_hardest(kind: str, area: float, sizes: tuple[int, int]) -> None:
    # Binomial(400, .97) is at least 376 with probability .999.
    assert COVERAGE.area_coverage(kind, area, sizes, 400)[0] >= 0.94


def test_gaps_and_paired_differences_are_covered() -> None:
    assert COVERAGE.gap_coverage((0.98, 0.82), (50, 4), 300, "normal")[0] >= 0.87
    assert COVERAGE.paired_coverage(10, 0.8, 300)[0] >= 0.87
    # Binomial(300, .97) is at least 280 with probability .999; ranks of two members are equal by chance alone.
    assert COVERAGE.gap_difference_coverage(2, 0.9, 300)[0] >= 280 / 300


def test_weighted_areas_are_covered() -> None:
    assert COVERAGE.weighted_coverage(20, 300)[0] >= 0.87


def test_intervals_that_are_known_to_be_too_short_are() -> None:
    """Those of overlapping sets in opposite places: what the documentation says of them is to go once they hold."""
    assert COVERAGE.opposed_coverage(20, 0.04, 300)[0] < 0.85
    assert COVERAGE.opposed_coverage(100, 0.5, 300)[0] >= 0.9
    assert "too short" in (AUCStatistic.__doc__ or "")


@pytest.mark.rel
@pytest.mark.timeout(900)
def test_every_interval_covers() -> None:
    """At least .9 at a nominal .95; the table is printed, with the mean width."""
    found = COVERAGE.areas_found(0.015) | COVERAGE.others_found(0.015)  # the standard error of each
    for case, (share, width) in found.items():
        sys.stdout.write(f"{' '.join(map(str, case))}: {share:.3f}, width {width:.3f}\n")
    worst = min(found, key=lambda case: found[case][0])
    assert {case[0] for case in found} >= {"gap", "weighted gap", "difference of gaps, same rows"}
    assert found[worst][0] >= 0.9, (worst, found[worst])  # .938 with a standard error of .005


@pytest.mark.parametrize("new", [30, 120])
def test_an_interval_for_new_rows_covers_their_auc(new: int) -> None:
    """That of the population does not: new rows are a draw of their own."""
    rng, covered = np.random.default_rng(0), np.zeros(2)
    for _ in range(400):
        found = auc_with_interval(rng.normal(0.8, 1.0, 60), rng.normal(0.0, 1.0, 60))
        value = auc(rng.normal(0.8, 1.0, new), rng.normal(0.0, 1.0, new))
        covered += [one.lower <= value <= one.upper for one in (found.for_new_rows(new / 60), found)]
    assert covered[0] > 0.93 * 400
    assert covered[1] < 0.92 * 400
    with pytest.raises(InvalidInput, match=r"share=0: must be positive"):
        found.for_new_rows(0)


def test_an_interval_for_new_rows_is_made_once_and_of_intervals_only() -> None:
    """Signed differences keep their sides of 0; what has no interval gets none."""
    rng, y = np.random.default_rng(0), np.arange(60) % 2 == 1
    scores = rng.normal(size=60)
    difference = AUCStatistic.of(scores, y, ~y) - AUCStatistic.of(scores + 0.7 * y, y, ~y)
    for found in (
        difference.estimate(),
        abs(difference).estimate(),
        AUCEstimate(-0.2, -0.3, -0.1, 0.05, (9, 9), p_value=0.1),
    ):
        once = found.for_new_rows(1.0)
        assert once.lower <= found.lower <= found.value <= found.upper <= once.upper
        with pytest.raises(InvalidInput, match=r"^share=2\.0: applies once: .*[^\n]$"):
            once.for_new_rows(2.0)
    for found in (
        auc_with_interval([1.0], [0.0]),
        auc_with_interval([], [0.0]),
        AUCEstimate(np.nan, 0.1, 0.2, 0.1, (1,)),
    ):
        assert found.for_new_rows(0.5) is found
