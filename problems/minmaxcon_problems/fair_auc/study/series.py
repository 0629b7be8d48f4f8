"""Records of a sweep as series: what one method, on one panel, reached over the seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .fronts import best_auc, hypervolume, mean_and_error, nondominated
from .study import Panel

__all__ = ["UNCONSTRAINED", "Asked", "Series", "series_of"]

UNCONSTRAINED = "unconstrained"
"""The method that is drawn as one point."""

_PARTS = ("train", "validation", "test")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the seeds reached for one asked gap: means over seeds and their standard errors.

    Attributes
    ----------
    asked : float
        The gap that was asked for.
    seeds : int
        Number of seeds.
    gap, auc : mapping of str to (mean, error)
        By part of the data.
    gap_sd : float
        Standard deviation of the gap on test.
    met : float
        Share of seeds whose interval for the gap on test reaches down to what was asked, or lies below it; NaN where
        there are no intervals.
    front : bool
        Whether the mean point on test is not dominated by another of its series.
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
    """The points of one method on one panel, chosen in one way.

    Attributes
    ----------
    panel : Panel
        The panel.
    method : str
        The method.
    kind : str
        ``"selected"`` by validation data, or ``"target"``, as asked for.
    seeds : mapping of int to list
        The points of each seed, as in the records.
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
                grouped.setdefault(_asked(point), []).append(point)
        found = [_reached(asked, grouped[asked]) for asked in sorted(grouped)]
        gap, auc = [one.gap["test"][0] for one in found], [one.auc["test"][0] for one in found]
        front = nondominated(gap, auc)
        return [
            Asked(one.asked, one.seeds, one.gap, one.auc, one.gap_sd, one.met, bool(on))
            for one, on in zip(found, front, strict=True)
        ]


def series_of(records: Iterable[Mapping[str, Any]]) -> dict[Panel, list[Series]]:
    """Return the series of every panel, in the order of the records; what was selected stands before targets.

    Parameters
    ----------
    records : iterable of mapping
        As :meth:`minmaxcon.registry.FairAUCStudy.run` returns them, with their names.
    """
    found: dict[tuple[Panel, str, str], dict[int, list[Mapping[str, Any]]]] = {}
    for record in records:
        panel = Panel(record["data"], record["metric"], record["model"])
        for point in _points(record):
            seeds = found.setdefault((panel, record["method"], point["kind"]), {})
            seeds.setdefault(int(record["seed"]), []).append(point)
    panels: dict[Panel, list[Series]] = {}
    for (panel, method, kind), seeds in found.items():
        panels.setdefault(panel, []).append(Series(panel, method, kind, dict(sorted(seeds.items()))))
    for series in panels.values():
        methods = list(dict.fromkeys(one.method for one in series))
        series.sort(key=lambda one: (methods.index(one.method), one.kind))
    return panels


def _points(record: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return a record's points; where it has only the unconstrained model, that one."""
    points: Sequence[Mapping[str, Any]] = record.get("points") or ()
    alone = record.get("unconstrained")
    if not points and record["method"] == UNCONSTRAINED and alone:
        return ({"kind": "selected", "asked": None, **alone},)
    return points


def _asked(point: Mapping[str, Any]) -> float:
    asked = point.get("asked")
    return math.inf if asked is None else float(asked)


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
