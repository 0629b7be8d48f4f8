"""The figure of the paper: fronts of all methods, a row for each data set and a column for each metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minmaxcon.results import OKABE_ITO, empty_figure, style_axes

from .front_tables import series_label
from .series import UNCONSTRAINED, Asked, Series
from .study import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["front_panels"]

_MARKERS = ("o", "s", "^", "D", "v", "P")
_LINES = ("-", (0, (4, 1.5, 1, 1.5)), (0, (7, 2)), ":", (0, (6, 1.5, 1, 1.5, 1, 1.5)), "-.")
_BELOW = 0.12
"""What lies this far below the best AUC of a panel is not drawn but counted: it would flatten all the rest."""
_BEYOND = 0.3
_GREY = "#6E6E6E"


def front_panels(
    panels: Mapping[Panel, Sequence[Series]],
    *,
    order: Sequence[str],
    label: Callable[[str], str],
) -> Figure:
    """Draw the fronts of one model.

    Parameters
    ----------
    panels : mapping of Panel to sequence of Series
        The series of every panel.
    order : sequence of str
        All methods of the study: a method has its colour, marker and line style by its place here, in every figure.
    label : callable
        What a data set, metric, model or method is called.

    Returns
    -------
    Figure
        Means over seeds by asked gap, with standard errors on both axes; a line joins those that no other of the same
        series dominates, the others are small and faint. See :func:`minmaxcon.results.figures.png`.
    """
    rows = list(dict.fromkeys(panel.data for panel in panels))
    columns = list(dict.fromkeys(panel.metric for panel in panels))
    legend = _columns(len({one.key for found in panels.values() for one in found}), len(columns))
    figure = empty_figure(max(4.3 * len(columns) + 0.6, 3.1 * legend), 3.4 * len(rows) + 1.4)
    grid = figure.subplots(len(rows), len(columns), squeeze=False)
    empty = {(data, metric) for data in rows for metric in columns}
    entries: dict[tuple[str, str], Any] = {}
    for panel, found in panels.items():
        axes = grid[rows.index(panel.data), columns.index(panel.metric)]
        empty.discard((panel.data, panel.metric))
        reached = {one.key: one.by_asked() for one in found}
        _limit(axes, reached)
        for key in sorted(reached, key=lambda key: key[1] == "target"):
            entries[key] = _draw(axes, key, reached[key], order)
        style_axes(axes)
    for data, metric in empty:
        grid[rows.index(data), columns.index(metric)].set_visible(False)
    for place, metric in enumerate(columns):
        grid[0, place].set_title(label(metric), fontsize="large")
        grid[-1, place].set_xlabel("true AUC gap on test")
    for place, data in enumerate(rows):
        grid[place, 0].set_ylabel(f"{label(data)}\nAUC on test" if len(rows) > 1 else "AUC on test")
    ranked = sorted(entries, key=lambda key: (_place(key[0], order), key[1]))
    handles, names = [entries[key] for key in ranked], [series_label(*key, label) for key in ranked]
    figure.legend(handles, names, loc="outside lower center", ncols=legend, handlelength=3.2, frameon=False)
    models = ", ".join(dict.fromkeys(label(panel.model) for panel in panels))
    title = models if len(rows) > 1 else f"{label(rows[0])}, {models}"
    figure.suptitle(f"{title}: means over seeds, bars are standard errors", fontsize="medium")
    return figure


def _columns(entries: int, panels: int) -> int:
    """Return how many columns the legend has, so that its rows are even and it is no wider than the panels."""
    most = max(2 * panels - 1, 2)
    return max(1, math.ceil(entries / math.ceil(max(entries, 1) / most)))


def _place(method: str, order: Sequence[str]) -> int:
    return list(order).index(method) if method in order else len(order)


def _limit(axes: Axes, reached: Mapping[tuple[str, str], Sequence[Asked]]) -> None:
    """Set both axes to what is worth seeing, and say how many points lie outside."""
    points = [(one.gap["test"][0], one.auc["test"][0]) for found in reached.values() for one in found]
    gap, auc = np.array(points, dtype=float).reshape(-1, 2).T
    known = np.isfinite(gap) & np.isfinite(auc)
    gap, auc = gap[known], auc[known]
    if not gap.size:
        axes.text(0.5, 0.5, "nothing to draw", ha="center", va="center", transform=axes.transAxes, color=_GREY)
        return
    low, right = max(auc.min(), auc.max() - _BELOW), min(gap.max(), _BEYOND)
    inside = (auc >= low) & (gap <= right)
    height, width = max(auc.max() - low, 0.005), max(right, 0.005)
    axes.set_xlim(-0.04 * width, 1.08 * width)
    axes.set_ylim(low - 0.08 * height, auc.max() + 0.1 * height)
    if not inside.all():
        count = int((~inside).sum())
        text = f"{count} point{'s' if count > 1 else ''} outside"
        axes.text(0.98, 0.02, text, ha="right", va="bottom", transform=axes.transAxes, color=_GREY, fontsize="small")


def _draw(axes: Axes, key: tuple[str, str], reached: Sequence[Asked], order: Sequence[str]) -> Any:
    """Draw one series; return what stands for it in the legend."""
    method, kind = key
    place = _place(method, order)
    colour, target = OKABE_ITO[place % (len(OKABE_ITO) - 1)], kind == "target"
    look: dict[str, Any] = {
        "color": colour,
        "marker": _MARKERS[place % len(_MARKERS)],
        "markersize": 5.0 if kind == "target" else 5.5,
    }
    look |= {
        "linestyle": "--" if target else _LINES[place % len(_LINES)],
        "linewidth": 1.5,
        "zorder": 4 if target else 3,
    }
    look |= {"markerfacecolor": "white" if target else colour}
    if method == UNCONSTRAINED:
        look |= {"color": "black", "markerfacecolor": "black", "marker": "*", "markersize": 12, "linestyle": ""}
        look |= {"zorder": 5}
    columns = np.array([[*one.gap["test"], *one.auc["test"], one.front] for one in reached], dtype=float).reshape(-1, 5)
    gap, gap_error, auc, auc_error, front = columns[np.isfinite(columns[:, 0]) & np.isfinite(columns[:, 2])].T
    on = front > 0
    bars: dict[str, Any] = {"fmt": "none", "ecolor": look["color"], "elinewidth": 0.8, "capsize": 1.5, "zorder": 2}
    errors = np.nan_to_num(np.stack([gap_error, auc_error]))
    x, y, x_error, y_error = np.unique(np.stack([gap[on], auc[on], *errors[:, on]]), axis=1)  # each bar once
    axes.errorbar(x, y, xerr=x_error, yerr=y_error, alpha=0.4, **bars)
    faint = {**look, "linestyle": "", "markersize": 3.5, "alpha": 0.4}
    axes.plot(gap[~on], auc[~on], **faint)
    rank = np.argsort(gap[on])
    (line,) = axes.plot(gap[on][rank], auc[on][rank], **look)
    return line
