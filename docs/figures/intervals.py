"""How often intervals of AUCs, gaps and differences hold the truth, by simulation, and how wide they are.

``python docs/figures/intervals.py [DRAWS]`` prints two tables, of 95% intervals; ``--out FILE`` writes them for the
documentation, and ``--opposed`` prints those that are known to be too short in their place. DRAWS is a
number of draws for each case or, below 1, the standard error that every coverage is to have. The tests call the same
functions. Sets have 2 to 50 members, whose scores differ in shape and spread, are tied, or are weighted back from a
sample that depends on them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import cache
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

from minmaxcon.cli.output import table
from minmaxcon.metrics import AUCStatistic, auc

SIZES = [(2, 2), (2, 5), (50, 2), (5, 5), (5, 50), (3, 20), (10, 10), (20, 20), (50, 50)]
AREAS = [0.5, 0.7, 0.9, 0.95, 0.99]
KINDS = ["normal", "exponential", "wide", "narrow", "tied"]
QUANTILE = 1.959963984540054

Coverage = tuple[float, float]
"""The share of intervals that hold the truth, and their mean width."""


def two_sets(kind: str, area: float, sizes: tuple[int, int], rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw scores of two sets whose AUC is ``area``."""
    m, n = sizes
    if kind == "exponential":
        return rng.exponential(area / (1 - area), m), rng.exponential(1, n)
    spread = {"normal": 1.0, "tied": 1.0, "wide": 3.0, "narrow": 1 / 3}[kind]
    own, other = rng.normal(ndtri(area) * np.hypot(spread, 1.0), spread, m), rng.normal(size=n)
    return (np.round(own), np.round(other)) if kind == "tied" else (own, other)


@cache
def true_area(kind: str, area: float) -> float:
    """Return the AUC of the distributions, which rounding to ties changes."""
    return area if kind != "tied" else float(auc(*two_sets(kind, area, (200_000, 200_000), np.random.default_rng(0))))


def weighted_sample(area: float, own: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw two sets of ``own`` rows each, with chances that depend on their scores, and the weights that undo them."""
    halves = []
    for shift in (ndtri(area) * np.sqrt(2.0), 0.0):
        pool = rng.normal(size=20 * own)
        chance = 1.0 / (1.0 + np.exp(-pool))
        keep = rng.choice(pool.size, own, p=chance / chance.sum(), replace=False)
        halves.append((pool[keep] + shift, 1.0 / chance[keep]))
    (a, u), (b, v) = halves
    return np.concatenate([a, b]), np.concatenate([u, v])


def covered(statistics: Iterator[AUCStatistic], truth: float, draws: float) -> Coverage:
    """Return the share of 95% intervals that hold the truth, and their mean width.

    ``draws`` is their number or, below 1, the standard error of the share at which no further ones are drawn.
    """
    inside: list[bool] = []
    widths: list[float] = []
    error = 1.0
    while len(inside) < draws if draws >= 1 else error > draws:
        for statistic in islice(statistics, int(draws) if draws >= 1 else _BATCH):
            low, high = statistic.ends(QUANTILE)
            inside.append(low <= truth <= high)
            widths.append(high - low)
        share = (sum(inside) + 2.0) / (len(inside) + 4.0)  # never quite 1, or too few draws would do
        error = float(np.sqrt(share * (1.0 - share) / len(inside)))
    return float(np.mean(inside)), float(np.mean(widths))


_BATCH = 250


def area_of(own: Any, other: Any, weight: Any = None) -> AUCStatistic:
    """Return the AUC of two sets of scores."""
    first = np.arange(len(own) + len(other)) < len(own)
    return AUCStatistic.of(np.concatenate([own, other]), first, ~first, weight)


def area_coverage(kind: str, area: float, sizes: tuple[int, int], draws: float) -> Coverage:
    """Return the coverage of an AUC."""
    rng = np.random.default_rng([sizes[0], sizes[1], int(100 * area)])
    return covered((area_of(*two_sets(kind, area, sizes, rng)) for _ in count()), true_area(kind, area), draws)


def gap_coverage(areas: tuple[float, float], sizes: tuple[int, int], draws: float, kind: str) -> Coverage:
    """Return the coverage of the difference of the AUCs of two disjoint pairs, such as an intra-group gap."""
    rng = np.random.default_rng([*sizes, *(int(100 * a) for a in areas)])

    def gaps() -> Iterator[AUCStatistic]:
        while True:
            parts = [two_sets(kind, a, (s, s), rng) for a, s in zip(areas, sizes, strict=True)]
            scores = np.concatenate([half for pair in parts for half in pair])
            cell = np.repeat(np.arange(4), [sizes[0], sizes[0], sizes[1], sizes[1]])
            yield AUCStatistic.of(scores, cell == 0, cell == 1) - AUCStatistic.of(scores, cell == 2, cell == 3)

    return covered(gaps(), true_area(kind, areas[0]) - true_area(kind, areas[1]), draws)


def paired_coverage(own: int, correlation: float, draws: float) -> Coverage:
    """Return the coverage of the difference of the AUCs .9 and .7 of two scores of the same rows."""
    rng = np.random.default_rng([own, int(10 * correlation)])
    label = np.arange(2 * own) < own
    shifts = ndtri([0.9, 0.7])[:, None] * np.sqrt(2.0) * label

    def differences() -> Iterator[AUCStatistic]:
        while True:
            one, other = (AUCStatistic.of(score, label, ~label) for score in correlated(shifts, correlation, rng))
            yield one - other

    return covered(differences(), 0.2, draws)


def correlated(shifts: Any, correlation: float, rng: np.random.Generator) -> Any:
    """Draw two scores (2, n) of the same rows around shifts (2, n)."""
    common, apart = rng.normal(size=shifts.shape[1]), rng.normal(size=shifts.shape)
    return np.sqrt(correlation) * common + np.sqrt(1 - correlation) * apart + shifts


def weighted_coverage(own: int, draws: float) -> Coverage:
    """Return the coverage of the AUC .8 of rows that are weighted back from a sample which depends on their scores."""
    rng, first = np.random.default_rng(own), np.arange(2 * own) < own

    def areas() -> Iterator[AUCStatistic]:
        while True:
            scores, weight = weighted_sample(0.8, own, rng)
            yield AUCStatistic.of(scores, first, ~first, weight)

    return covered(areas(), 0.8, draws)


def weighted_gap_coverage(own: int, draws: float) -> Coverage:
    """Return the coverage of the gap of two groups of such weighted rows, whose AUCs are .9 and .7."""
    rng, cell = np.random.default_rng(own), np.repeat(np.arange(4), own)

    def gaps() -> Iterator[AUCStatistic]:
        while True:
            parts = [weighted_sample(area, own, rng) for area in (0.9, 0.7)]
            scores, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
            one, other = (AUCStatistic.of(scores, cell == k, cell == k + 1, weight) for k in (0, 2))
            yield abs(one - other)

    return covered(gaps(), 0.2, draws)


def gap_difference_coverage(own: int, correlation: float, draws: float) -> Coverage:
    """Return the coverage of the difference of the gaps .25 and .05 of two scores of the same rows of two groups."""
    rng, cell = np.random.default_rng([own, int(10 * correlation)]), np.repeat(np.arange(4), own)
    areas = np.array([[0.9, 0.65], [0.8, 0.75]])  # of either group, for each score
    shifts = np.where(cell % 2 == 0, np.repeat(ndtri(areas) * np.sqrt(2.0), 2 * own, axis=1), 0.0)

    def differences() -> Iterator[AUCStatistic]:
        while True:
            one, other = (
                abs(AUCStatistic.of(score, cell == 0, cell == 1) - AUCStatistic.of(score, cell == 2, cell == 3))
                for score in correlated(shifts, correlation, rng)
            )
            yield one - other

    return covered(differences(), 0.2, draws)


def opposed_coverage(own: int, area: float, draws: float) -> Coverage:
    """Return the coverage of AUC(A; A or B) less AUC(B; A or B), which is that of A against B less one half.

    No table has it: the interval is known to be too short where that AUC is near 0 or 1 and sets are small.
    """
    rng, first = np.random.default_rng([own, int(100 * area)]), np.arange(2 * own) < own
    every = np.ones(2 * own, dtype=bool)

    def differences() -> Iterator[AUCStatistic]:
        while True:
            scores = np.concatenate(two_sets("normal", area, (own, own), rng))
            one, other = AUCStatistic.of_pairs(scores, [(first, every), (~first, every)])
            yield one - other

    return covered(differences(), area - 0.5, draws)


def areas_found(draws: float) -> dict[tuple[Any, ...], Coverage]:
    """Return the coverage of AUCs, by kind, AUC and sizes."""
    cases = [(kind, area, sizes) for kind in KINDS for area in AREAS for sizes in SIZES]
    return {case: area_coverage(*case, draws) for case in cases}


def others_found(draws: float) -> dict[tuple[Any, ...], Coverage]:
    """Return the coverage of gaps, differences and weighted measures, by what it is and its sizes."""
    found: dict[tuple[Any, ...], Coverage] = {
        ("gap", sizes, areas, kind): gap_coverage(areas, sizes, draws, kind)
        for sizes in [(2, 2), (50, 2), (50, 4), (10, 10), (50, 50)]
        for areas in [(0.5, 0.5), (0.9, 0.7), (0.98, 0.82), (0.99, 0.99)]
        for kind in ("normal", "exponential", "tied")
    }
    for own in (2, 5, 10, 50):
        for r in (0.0, 0.5, 0.9):
            found["difference of AUCs, same rows", own, r] = paired_coverage(own, r, draws)
            found["difference of gaps, same rows", own, r] = gap_difference_coverage(own, r, draws)
    for own in (5, 10, 20, 50):
        found["weighted AUC", own] = weighted_coverage(own, draws)
        found["weighted gap", own] = weighted_gap_coverage(own, draws)
    return found


def main() -> None:
    """Print the tables, or write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("draws", nargs="?", type=float, default=500)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--opposed", action="store_true")
    options = parser.parse_args()
    if options.opposed:
        for own in (20, 50, 100):
            print(f"{own} members a set: {opposed_coverage(own, 0.04, options.draws)[0]:.2f}")
        return
    areas, others = areas_found(options.draws), others_found(options.draws)

    def cell(found: list[Coverage]) -> str:
        return f"{min(share for share, _ in found):.3f}, {np.mean([width for _, width in found]):.2f}"

    rows = [["members", *(f"AUC {area:g}" for area in AREAS)]]
    rows += [
        [f"{m} and {n}", *(cell([areas[kind, area, (m, n)] for kind in KINDS]) for area in AREAS)] for m, n in SIZES
    ]
    more = [["measure", "members", "coverage, width"]]
    for what, size in sorted(dict.fromkeys(case[:2] for case in others), key=lambda case: case[0]):
        members = " and ".join(map(str, size)) if isinstance(size, tuple) else str(size)
        more.append([what, members, cell([found for case, found in others.items() if case[:2] == (what, size)])])
    how = (
        f"{options.draws:,.0f} draws" if options.draws >= 1 else f"draws until the standard error is {options.draws:g}"
    )
    told = f"of {how} for each case: the least coverage, and the mean width of the intervals"
    block = "\n\n.. code-block:: text\n\n"
    text = f"AUCs, {told}:{block}{_indented(rows)}\nOther measures:{block}{_indented(more)}"
    if options.out is None:
        print(text)
    else:
        options.out.write_text(text, encoding="utf-8")


def _indented(rows: list[list[str]]) -> str:
    return "".join(f"   {line}\n" for line in table(rows).splitlines())


if __name__ == "__main__":
    main()
