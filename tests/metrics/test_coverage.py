"""Simulated coverage of intervals: small, separated and tied sets, gaps, paired differences, weights."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from minmaxcon.errors import InvalidInput
from minmaxcon.metrics import AUCEstimate, AUCStatistic, auc, auc_with_interval

SIZES = [(2, 2), (2, 5), (50, 2), (5, 5), (5, 50), (3, 20), (10, 10), (20, 20), (50, 50)]
AREAS = [0.5, 0.7, 0.9, 0.95, 0.99]
QUANTILE = 1.959963984540054
KINDS = ["normal", "exponential", "wide", "narrow", "tied"]


def two_sets(kind: str, area: float, sizes: tuple[int, int], rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw scores of two sets whose AUC is ``area``."""
    m, n = sizes
    if kind == "exponential":
        return rng.exponential(area / (1 - area), m), rng.exponential(1, n)
    spread = {"normal": 1.0, "tied": 1.0, "wide": 3.0, "narrow": 1 / 3}[kind]
    own, other = rng.normal(norm.ppf(area) * np.hypot(spread, 1.0), spread, m), rng.normal(size=n)
    return (np.round(own), np.round(other)) if kind == "tied" else (own, other)


@cache
def true_area(kind: str, area: float) -> float:
    return area if kind != "tied" else float(auc(*two_sets(kind, area, (200_000, 200_000), np.random.default_rng(0))))


def area_of(own: Any, other: Any, weight: Any = None) -> AUCStatistic:
    first = np.arange(len(own) + len(other)) < len(own)
    return AUCStatistic.of(np.concatenate([own, other]), first, ~first, weight)


def covered(draws: Iterator[AUCStatistic], truth: float) -> tuple[float, float]:
    """Return the share of 95% intervals that hold the truth, and their mean width."""
    ends = np.array([statistic.ends(QUANTILE) for statistic in draws])
    inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    return float(inside.mean()), float(np.diff(ends).mean())


CASES = [(kind, area, sizes) for kind in KINDS for area in AREAS for sizes in SIZES]
HARD = [("wide", 0.95, (2, 2)), ("narrow", 0.7, (50, 2)), ("exponential", 0.95, (2, 5)), ("tied", 0.99, (5, 5))]


def area_coverage(kind: str, area: float, sizes: tuple[int, int], draws: int) -> tuple[float, float]:
    rng = np.random.default_rng([sizes[0], sizes[1], int(100 * area)])
    return covered((area_of(*two_sets(kind, area, sizes, rng)) for _ in range(draws)), true_area(kind, area))


@pytest.mark.parametrize("kind, area, sizes", HARD)
def test_areas_are_covered_where_it_is_hardest(kind: str, area: float, sizes: tuple[int, int]) -> None:
    # Binomial(400, .92) is at least 350 with probability .999.
    assert area_coverage(kind, area, sizes, 400)[0] >= 0.875


def gap_coverage(areas: tuple[float, float], sizes: tuple[int, int], draws: int, kind: str) -> tuple[float, float]:
    """Difference of the AUCs of two disjoint pairs, such as an intra-group gap."""
    rng = np.random.default_rng([*sizes, *(int(100 * a) for a in areas)])

    def gaps() -> Iterator[AUCStatistic]:
        for _ in range(draws):
            parts = [two_sets(kind, a, (s, s), rng) for a, s in zip(areas, sizes, strict=True)]
            scores = np.concatenate([half for pair in parts for half in pair])
            cell = np.repeat(np.arange(4), [sizes[0], sizes[0], sizes[1], sizes[1]])
            yield AUCStatistic.of(scores, cell == 0, cell == 1) - AUCStatistic.of(scores, cell == 2, cell == 3)

    return covered(gaps(), true_area(kind, areas[0]) - true_area(kind, areas[1]))


def paired_coverage(own: int, correlation: float, draws: int) -> tuple[float, float]:
    """Difference of the AUCs .9 and .7 of two scores of the same rows."""
    rng = np.random.default_rng([own, int(10 * correlation)])
    label = np.arange(2 * own) < own
    shifts = norm.ppf([0.9, 0.7])[:, None] * np.sqrt(2.0) * label

    def differences() -> Iterator[AUCStatistic]:
        for _ in range(draws):
            common, apart = rng.normal(size=2 * own), rng.normal(size=(2, 2 * own))
            scores = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * apart + shifts
            one, other = (AUCStatistic.of(score, label, ~label) for score in scores)
            yield one - other

    return covered(differences(), 0.2)


def test_gaps_and_paired_differences_are_covered() -> None:
    assert gap_coverage((0.98, 0.82), (50, 4), 300, "normal")[0] >= 0.87
    assert paired_coverage(10, 0.8, 300)[0] >= 0.87


def weighted_coverage(own: int, draws: int) -> tuple[float, float]:
    """AUC of rows that were sampled with probabilities which depend on their scores, and weighted back."""
    rng = np.random.default_rng(own)

    def areas() -> Iterator[AUCStatistic]:
        for _ in range(draws):
            halves = []
            for shift in (norm.ppf(0.8) * np.sqrt(2.0), 0.0):
                pool = rng.normal(size=20 * own)
                keep = rng.choice(pool.size, own, p=(chance := 1 / (1 + np.exp(-pool))) / chance.sum(), replace=False)
                halves.append((pool[keep] + shift, 1 / chance[keep]))
            (a, u), (b, v) = halves
            yield area_of(a, b, np.concatenate([u, v]))

    return covered(areas(), 0.8)


def test_weighted_areas_are_covered() -> None:
    assert weighted_coverage(20, 300)[0] >= 0.87


@pytest.mark.rel
@pytest.mark.timeout(900)
def test_every_interval_covers() -> None:
    """At least .9 at a nominal .95; the table is printed, with the mean width."""
    draws = 300
    found = {("area", *case): area_coverage(*case, draws) for case in CASES}
    found |= {
        ("gap", areas, sizes, kind): gap_coverage(areas, sizes, draws, kind)
        for areas in [(0.5, 0.5), (0.9, 0.7), (0.98, 0.82), (0.99, 0.99)]
        for sizes in [(2, 2), (50, 2), (50, 4), (10, 10), (50, 50)]
        for kind in ("normal", "exponential", "tied")
    }
    found |= {("paired", own, r): paired_coverage(own, r, draws) for own in (2, 5, 10, 50) for r in (0.0, 0.5, 0.9)}
    found |= {("weighted", own): weighted_coverage(own, draws) for own in (5, 10, 20, 50)}
    for case, (share, width) in found.items():
        sys.stdout.write(f"{' '.join(map(str, case))}: {share:.3f}, width {width:.3f}\n")
    worst = min(found, key=lambda case: found[case][0])
    # Binomial(300, .92) is at least 261 with probability .998.
    assert found[worst][0] >= 261 / 300, (worst, found[worst])


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
