"""Tables of fronts: hypervolume, best AUC below a gap, gaps reached against gaps asked; as CSV and as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .fronts import mean_front
from .series import Series
from .study import Panel

__all__ = [
    "GAPS",
    "achieved_rows",
    "best_auc_rows",
    "front_rows",
    "hypervolume_rows",
    "series_label",
    "text_tables",
]

GAPS = (0.01, 0.02, 0.05)
"""Gaps at which the best AUC is reported."""

GRID = tuple(round(0.01 * k, 2) for k in range(31))
"""Gaps at which fronts are interpolated."""

Row = dict[str, Any]
Panels = Mapping[Panel, Sequence[Series]]


def _head(series: Series) -> Row:
    panel = series.panel
    names = {"data": panel.data, "metric": panel.metric, "model": panel.model}
    return {**names, "method": series.method, "kind": series.kind}


def _mean_sd(values: Sequence[float]) -> Row:
    """Return mean, standard deviation and number of the values that exist."""
    known = np.array([value for value in values if math.isfinite(value)])
    mean = float(known.mean()) if known.size else math.nan
    return {"seeds": int(known.size), "mean": mean, "sd": float(known.std(ddof=1)) if known.size > 1 else math.nan}


def _with_best(rows: list[Row]) -> list[Row]:
    """Mark the rows with the largest mean."""
    top = max((row["mean"] for row in rows if math.isfinite(row["mean"])), default=math.nan)
    return [{**row, "best": row["mean"] == top} for row in rows]


def hypervolume_rows(panels: Panels) -> list[Row]:
    """Return mean and standard deviation over seeds of the normalised hypervolume on test, by panel and method."""
    return [
        row
        for found in panels.values()
        for row in _with_best([{**_head(one), **_mean_sd(one.hypervolumes())} for one in found])
    ]


def best_auc_rows(panels: Panels) -> list[Row]:
    """Return the best AUC on test at a gap on test of at most each of :data:`GAPS`.

    ``seeds`` counts those that have such a point; the mean is over them. It is marked as best only among series with as
    many seeds as any.
    """
    rows: list[Row] = []
    for found in panels.values():
        for limit in GAPS:
            mine = [{**_head(one), "gap": limit, **_mean_sd(one.best_aucs(limit))} for one in found]
            most = max(row["seeds"] for row in mine)
            marked = iter(_with_best([row for row in mine if row["seeds"] == most]))
            rows += [next(marked) if row["seeds"] == most else {**row, "best": False} for row in mine]
    return rows


def achieved_rows(panels: Panels) -> list[Row]:
    """Return for each asked gap the means over seeds of gap and AUC on all parts, and the share that met it."""
    return [
        {
            **_head(one),
            "asked": reached.asked,
            "seeds": reached.seeds,
            **{f"{part}_gap": reached.gap[part][0] for part in ("train", "validation", "test")},
            "test_gap_sd": reached.gap_sd,
            "test_auc": reached.auc["test"][0],
            "met": reached.met,
        }
        for found in panels.values()
        for one in found
        for reached in one.by_asked()
    ]


def front_rows(panels: Panels) -> list[Row]:
    """Return what is drawn, mean points by asked gap, and the mean of the seeds' fronts at a grid of gaps."""
    rows: list[Row] = []
    shown: Row
    for one in (series for found in panels.values() for series in found):
        for reached in one.by_asked():
            (gap, gap_error), (auc, auc_error) = reached.gap["test"], reached.auc["test"]
            shown = {"asked": reached.asked, "gap": gap, "gap_error": gap_error, "auc": auc, "auc_error": auc_error}
            rows.append({**_head(one), "curve": "asked", **shown, "seeds": reached.seeds, "front": reached.front})
        mean = mean_front(one.fronts(), GRID)
        for gap, auc, error, count in zip(mean.gap, mean.auc, mean.error, mean.count, strict=True):
            shown = {"asked": "", "gap": float(gap), "gap_error": "", "auc": float(auc), "auc_error": float(error)}
            rows.append({**_head(one), "curve": "interpolated", **shown, "seeds": int(count), "front": ""})
    return rows


def text_tables(panels: Panels, label: Callable[[str], str], table: Callable[..., str]) -> str:
    """Return the tables as text.

    Parameters
    ----------
    panels : mapping
        The series of every panel.
    label : callable
        What a data set, metric, model or method is called.
    table : callable
        Aligns rows of cells; its ``left`` first columns flush left.
    """
    first = "Hypervolume on test (AUC above .5, gap below .3; 1 is perfect): mean and sd over seeds, * best\n"
    second = "Best AUC on test at a test gap of at most g: mean over the seeds that have one (fewer: number), * best\n"
    third = (
        "Gap on test where a target was asked for, by target: mean over seeds, and the share of seeds whose interval\n"
        "on test contains the target or lies below it (achieved.csv has all parts and methods)\n"
    )
    volumes, accuracies = hypervolume_rows(panels), best_auc_rows(panels)
    text = first + _wide(volumes, label, table, lambda row: _number(row, sd=True))
    seeds = max((row["seeds"] for row in volumes), default=0)
    text += "\n" + second + _wide(accuracies, label, table, lambda row: _number(row, seeds=seeds))
    targets = [row for row in achieved_rows(panels) if row["kind"] == "target"]
    if targets:
        text += "\n" + third + _achieved(targets, label, table)
    return text


def series_label(method: str, kind: str, label: Callable[[str], str]) -> str:
    """Return what a series is called."""
    return label(method) + (", no validation" if kind == "target" else "")


def _wide(
    rows: Sequence[Row], label: Callable[[str], str], table: Callable[..., str], cell: Callable[[Row], str]
) -> str:
    """Return a table with a line for each panel (and gap) and a column for each series."""
    columns = list(dict.fromkeys((row["method"], row["kind"]) for row in rows))
    lines: dict[tuple[str, ...], dict[tuple[str, str], str]] = {}
    for row in rows:
        name: tuple[str, ...] = (label(row["model"]), label(row["data"]), label(row["metric"]))
        name += (f"{row['gap']:g}",) if "gap" in row else ()
        lines.setdefault(name, {})[row["method"], row["kind"]] = cell(row)
    head = ["model", "data", "metric", "g"][: len(next(iter(lines), ()))]
    heading = [*head, *(series_label(*column, label) for column in columns)]
    body = [[*name, *(cells.get(column, "") for column in columns)] for name, cells in lines.items()]
    return table([heading, *body], left=len(head)) if body else "nothing has finished\n"


def _number(row: Row, *, sd: bool = False, seeds: int = 0) -> str:
    if not math.isfinite(row["mean"]):
        return "-  "
    text = f"{row['mean']:.4f}"
    if sd and math.isfinite(row["sd"]):
        text += f" ±{row['sd']:.4f}"
    if row["seeds"] < seeds:
        text += f" ({row['seeds']})"
    return text + (" *" if row["best"] else "  ")


def _achieved(rows: Sequence[Row], label: Callable[[str], str], table: Callable[..., str]) -> str:
    """Return a line for each panel and series and a column for each asked gap."""
    asked = sorted({row["asked"] for row in rows})
    lines: dict[tuple[str, ...], dict[float, str]] = {}
    for row in rows:
        name = tuple(label(row[word]) for word in ("model", "data", "metric", "method"))
        met = "" if math.isnan(row["met"]) else f" {row['met']:4.0%}"
        gap = "-" if math.isnan(row["test_gap"]) else f"{row['test_gap']:.3f}"
        lines.setdefault(name, {})[row["asked"]] = gap + met
    heading = ["model", "data", "metric", "method", *(f"{gap:g}" for gap in asked)]
    return table([heading, *([*name, *(cells.get(gap, "") for gap in asked)] for name, cells in lines.items())], left=4)
