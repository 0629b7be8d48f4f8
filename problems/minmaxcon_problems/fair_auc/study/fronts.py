"""Fronts of gap and AUC: what dominates, how much area, means over seeds, and the series that records hold.

A point is better the smaller its gap and the larger its AUC. Points with NaN count for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .study import Panel

__all__ = [
    "UNCONSTRAINED",
    "Asked",
    "Series",
    "best_auc",
    "hypervolume",
    "mean_and_error",
    "mean_front",
    "nondominated",
    "series_of",
]

WORST_AUC, WORST_GAP = 0.5, 0.3
"""The corner from which area is measured: scores at random, and a gap that nobody would accept."""


def _pair(gap: Any, auc: Any) -> tuple[Any, Any]:
    gap, auc = np.asarray(gap, dtype=np.float64), np.asarray(auc, dtype=np.float64)
    return gap.ravel(), auc.ravel()


def nondominated(gap: Any, auc: Any) -> Any:
    """Return which points (n,) no other point is better than, in one measure and at least as good in both.

    Equal points stand or fall together.

    >>> nondominated([0.1, 0.2, 0.2], [0.8, 0.9, 0.7]).tolist()
    [True, True, False]
    """
    gap, auc = _pair(gap, auc)
    known = np.isfinite(gap) & np.isfinite(auc)
    found = np.zeros(len(gap), dtype=bool)
    order = np.lexsort((-auc, gap))
    best, at = -np.inf, np.nan
    for j in order[known[order]]:
        found[j] = auc[j] > best or (auc[j] == best and gap[j] == at)
        if auc[j] > best:
            best, at = auc[j], gap[j]
    return found


def hypervolume(gap: Any, auc: Any, *, worst_gap: float = WORST_GAP, worst_auc: float = WORST_AUC) -> float:
    r"""Return the share of the rectangle :math:`[0, g_0] \times [a_0, 1]` that the points (n,) dominate.

    What lies beyond the corner, ``worst_gap`` :math:`g_0` and ``worst_auc`` :math:`a_0`, adds nothing.

    >>> round(hypervolume([0.0, 0.15], [0.75, 1.0]), 4)
    0.75
    """
    gap, auc = _pair(gap, auc)
    front = nondominated(gap, auc) & (gap < worst_gap) & (auc > worst_auc)
    order = np.argsort(gap[front])
    left, height = np.clip(gap[front][order], 0.0, None), np.minimum(auc[front][order], 1.0) - worst_auc
    width = np.diff(np.append(left, worst_gap))
    return float(np.sum(width * height) / (worst_gap * (1.0 - worst_auc)))


def best_auc(gap: Any, auc: Any, limit: float) -> float:
    """Return the best AUC among the points whose gap is at most the limit; NaN if there are none.

    >>> best_auc([0.01, 0.05], [0.8, 0.9], 0.02)
    0.8
    """
    gap, auc = _pair(gap, auc)
    near = auc[(gap <= limit) & np.isfinite(auc)]
    return float(near.max()) if near.size else float("nan")


def mean_front(fronts: Sequence[tuple[Any, Any]], grid: Any) -> tuple[Any, Any, Any]:
    """Return the mean over fronts of the AUC at each gap of a grid (k,), its standard error and the number of fronts.

    A front is the points (gap, auc) of one seed, say. Between its non-dominated points it is interpolated linearly;
    right of the last it stays level; left of the first it does not exist. NaN stands where no front, or for the error
    only one, reaches a gap.
    """
    grid = np.asarray(grid, dtype=np.float64)
    curves = np.full((len(fronts), len(grid)), np.nan)
    for curve, points in zip(curves, fronts, strict=True):
        gap, auc = _pair(*points)
        front = nondominated(gap, auc)
        if front.any():
            order = np.argsort(gap[front])
            curve[:] = np.interp(grid, gap[front][order], auc[front][order], left=np.nan)
    count = np.isfinite(curves).sum(axis=0)
    columns = [mean_and_error(column) for column in curves.T]
    mean, error = np.array(columns, dtype=np.float64).reshape(-1, 2).T
    return mean, error, count


def mean_and_error(values: Any) -> tuple[float, float]:
    """Return the mean of the finite values and its standard error; NaN where there are too few.

    >>> mean_and_error([1.0, 3.0, float("nan")])
    (2.0, 1.0)
    """
    values = np.asarray(values, dtype=np.float64)
    values = values[np.isfinite(values)]
    if not values.size:
        return float("nan"), float("nan")
    error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else float("nan")
    return float(values.mean()), float(error)


UNCONSTRAINED = "unconstrained"
"""The method that is drawn as one point."""

_PARTS = ("train", "validation", "test")


@dataclass(frozen=True, slots=True)
class Asked:
    """Results of the seeds for one asked gap: means over seeds and their standard errors.

    ``gap`` and ``auc`` are (mean, error) by part of the data, ``gap_sd`` the standard deviation of the gap on test.
    ``met`` is the share of seeds whose interval for the gap on test reaches down to what was asked, or lies below it
    (NaN where there are no intervals); ``front``, whether the mean point on test is not dominated by another of its
    series.
    """

    asked: float
    seeds: int
    gap: Mapping[str, tuple[float, float]]
    auc: Mapping[str, tuple[float, float]]
    gap_sd: float
    met: float
    front: bool


@dataclass(frozen=True, eq=False, slots=True)
class Series:
    """The points of one method on one panel, chosen in one way: those of each seed, as in the records.

    ``kind`` is ``"selected"`` by validation data, or ``"target"``, as asked for.
    """

    panel: Panel
    method: str
    kind: str
    seeds: Mapping[int, Sequence[Mapping[str, Any]]]

    @property
    def key(self) -> tuple[str, str]:
        """Method and kind."""
        return self.method, self.kind

    def fronts(self, part: str = "test") -> list[tuple[Any, Any]]:
        """Return the gaps and AUCs of each seed."""
        return [
            (np.array([_value(p, part, "gap") for p in points]), np.array([_value(p, part, "auc") for p in points]))
            for points in self.seeds.values()
        ]

    def hypervolumes(self) -> list[float]:
        """Return each seed's normalised hypervolume on test."""
        return [hypervolume(*front) for front in self.fronts()]

    def best_aucs(self, limit: float) -> list[float]:
        """Return each seed's best AUC on test among its points with a gap of at most the limit; NaN where none."""
        return [best_auc(*front, limit) for front in self.fronts()]

    def by_asked(self) -> list[Asked]:
        """Return what was reached for each asked gap, the smallest first."""
        grouped: dict[float, list[Mapping[str, Any]]] = {}
        for points in self.seeds.values():
            for point in points:
                grouped.setdefault(float(point["asked"]), []).append(point)
        found = [_reached(asked, grouped[asked]) for asked in sorted(grouped)]
        gap, auc = [one.gap["test"][0] for one in found], [one.auc["test"][0] for one in found]
        front = nondominated(gap, auc)
        return [replace(one, front=bool(on)) for one, on in zip(found, front, strict=True)]


def series_of(records: Iterable[Mapping[str, Any]]) -> dict[Panel, list[Series]]:
    """Return the series of every panel, in the order of the records; what was selected stands before targets.

    Records are as :meth:`FairAUCStudy.run` returns them, with their names.
    """
    found: dict[tuple[Panel, str, str], dict[int, list[Mapping[str, Any]]]] = {}
    for record in records:
        panel = Panel(record["data"], record["metric"], record["model"])
        for point in record["points"]:
            seeds = found.setdefault((panel, record["method"], point["kind"]), {})
            seeds.setdefault(int(record["seed"]), []).append(point)
    panels: dict[Panel, list[Series]] = {}
    for (panel, method, kind), seeds in found.items():
        panels.setdefault(panel, []).append(Series(panel, method, kind, dict(sorted(seeds.items()))))
    for series in panels.values():
        methods = list(dict.fromkeys(one.method for one in series))
        series.sort(key=lambda one: (methods.index(one.method), one.kind))
    return panels


def _value(point: Mapping[str, Any], part: str, what: str) -> float:
    value = (point.get(part) or {}).get(what)
    return math.nan if value is None else float(value)


def _reached(asked: float, points: Sequence[Mapping[str, Any]]) -> Asked:
    gap = {part: mean_and_error([_value(p, part, "gap") for p in points]) for part in _PARTS}
    auc = {part: mean_and_error([_value(p, part, "auc") for p in points]) for part in _PARTS}
    test = np.array([_value(p, "test", "gap") for p in points])
    test = test[np.isfinite(test)]
    lows = [(p.get("test") or {}).get("gap_interval") for p in points]
    below = [float(low[0]) <= asked for low in lows if low and low[0] is not None]
    return Asked(
        asked=asked,
        seeds=len(points),
        gap=gap,
        auc=auc,
        gap_sd=float(test.std(ddof=1)) if test.size > 1 else math.nan,
        met=sum(below) / len(below) if below else math.nan,
        front=False,
    )
