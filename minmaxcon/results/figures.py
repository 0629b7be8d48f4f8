"""Figures of results: the bounds of a solve as they close, and a front of accuracy against the true gap.

Colours are those of Okabe and Ito, which colour-blind readers tell apart; every series also has a marker and a line
style of its own.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["OKABE_ITO", "FrontPoint", "empty_figure", "front_figure", "png", "style_axes", "trace_figure"]

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The colours, in the order in which they are used (yellow is left out: it is faint on white)."""

_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_LINES = ("-", "-.")
_GREY = "#6E6E6E"


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """One model of a front.

    Attributes
    ----------
    label : str
        What stands beside the point; at most two points of a front have one.
    auc, gap : float
        The measures.
    auc_interval, gap_interval : (lower, upper)
        Their confidence intervals.
    """

    label: str
    auc: float
    gap: float
    auc_interval: tuple[float, float]
    gap_interval: tuple[float, float]


def png(figure: Figure) -> bytes:
    """Return a figure as a PNG file of 150 dots an inch; the same figure gives the same bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    return buffer.getvalue()


def empty_figure(width: float, height: float) -> Figure:
    """Return an empty figure that belongs to no window and no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def style_axes(axes: Axes) -> None:
    """Give axes the look that all figures share."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="#E4E4E4", linewidth=0.8)
    axes.set_axisbelow(True)


def trace_figure(trace: Mapping[str, Any], labels: Sequence[str] = (), title: str = "") -> Figure:
    r"""Draw upper and lower bounds on the optimal value and the largest violation, by oracle steps.

    Parameters
    ----------
    trace : mapping
        ``Solution.trace``: columns ``run, steps, objective, violation`` and, where there are lower bounds, ``lower``.
    labels : sequence of str
        A name for each run; needed where there are several.
    title : str
        Heading of the figure.

    Returns
    -------
    Figure
        A matplotlib figure; see :func:`png`.
    """
    several = len(labels) > 1
    figure = empty_figure(8.0 if several else 6.4, 5.2)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    columns = {name: np.asarray(column) for name, column in trace.items()}
    runs = np.unique(columns["run"]) if "run" in columns else np.zeros(0, dtype=int)
    for place, run in enumerate(runs):
        mine = columns["run"] == run
        label = labels[int(run)] if several else ""
        _draw_run(top, bottom, {name: column[mine] for name, column in columns.items()}, place, label)
    if not runs.size:
        top.text(0.5, 0.5, "the solve ended before its first level", ha="center", va="center", transform=top.transAxes)
    bottom.axhline(0.0, color=_GREY, linewidth=1.0)
    top.set_ylabel("optimal value lies between")
    bottom.set_ylabel("largest $f_i - b_i$")
    bottom.set_xlabel("oracle steps")
    for axes in (top, bottom):
        style_axes(axes)
        axes.margins(x=0.03)
    bottom.xaxis.set_major_formatter("{x:,.0f}")
    if runs.size and not several:
        top.legend(frameon=False, loc="best")
    elif runs.size:
        heading = {"title": "best feasible value\n(hollow: lower bound)", "title_fontsize": "small"}
        entries = top.get_legend_handles_labels()
        figure.legend(*entries, loc="outside right upper", frameon=False, fontsize="small", **heading)
    if title:
        figure.suptitle(title, fontsize="medium")
    return figure


def _draw_run(top: Axes, bottom: Axes, columns: Mapping[str, Any], place: int, label: str) -> None:
    """Draw one run: upper bound with filled markers, lower bound dotted with hollow ones."""
    steps, upper = columns["steps"], np.where(columns["violation"] <= 0, columns["objective"], np.nan)
    lower = columns.get("lower", np.full(len(steps), np.nan))
    lower = np.where(np.isfinite(lower), lower, np.nan)
    colour, marker = OKABE_ITO[place % len(OKABE_ITO)], _MARKERS[(place + place // len(OKABE_ITO)) % len(_MARKERS)]
    below = colour if label else OKABE_ITO[1]
    style: dict[str, Any] = {"markersize": 4.0, "linewidth": 1.4}
    line = _LINES[(place // len(OKABE_ITO)) % len(_LINES)]
    top.plot(steps, upper, color=colour, marker=marker, linestyle=line, label=label or "best feasible value", **style)
    if np.isfinite(lower).any():
        hollow: dict[str, Any] = {"markerfacecolor": "white", "linestyle": ":"}
        text = "_nolegend_" if label else "lower bound"
        top.plot(steps, lower, color=below, marker=marker if label else "s", label=text, **hollow, **style)
        if not label:
            top.fill_between(steps, lower, upper, color=colour, alpha=0.08, linewidth=0)
    bottom.plot(steps, columns["violation"], color=colour, marker=marker, linestyle=line, **style)


def front_figure(parts: Mapping[str, Sequence[FrontPoint]], *, xlabel: str, ylabel: str, title: str = "") -> Figure:
    """Draw a front of models, one panel a part of the data, with the intervals of both measures.

    Parameters
    ----------
    parts : mapping of str to sequence of FrontPoint
        The points of each panel, in the order of the bound.
    xlabel, ylabel : str
        What the gap and the AUC are.
    title : str
        Heading of the figure.

    Returns
    -------
    Figure
        A matplotlib figure; see :func:`png`.
    """
    figure = empty_figure(5.0 * len(parts) + 0.2, 4.2)
    panels = figure.subplots(1, len(parts), squeeze=False)[0]
    for place, (axes, (name, points)) in enumerate(zip(panels, parts.items(), strict=True)):
        _draw_front(axes, points, OKABE_ITO[place], _MARKERS[place])
        style_axes(axes)
        axes.set_title(name, fontsize="medium")
        axes.set_xlabel(xlabel)
        axes.margins(0.05)
    panels[0].set_ylabel(ylabel)
    if title:
        figure.suptitle(title)
    return figure


def _draw_front(axes: Axes, points: Sequence[FrontPoint], colour: str, marker: str) -> None:
    """Draw the points as one line; those with a label stand out, and so do their intervals."""
    named = [point for point in points if point.label]
    for group, strength in ((points, 0.22), (named, 1.0)):
        gap, auc = np.array([point.gap for point in group]), np.array([point.auc for point in group])
        bars = {
            "xerr": _lengths(gap, [point.gap_interval for point in group]),
            "yerr": _lengths(auc, [point.auc_interval for point in group]),
        }
        axes.errorbar(gap, auc, **bars, fmt="none", ecolor=colour, elinewidth=0.9, alpha=strength, capsize=3 * strength)
    line = [(point.gap, point.auc) for point in points]
    axes.plot(*zip(*line, strict=True), color=colour, marker=marker, markersize=5, linewidth=1.2)
    for point, offset in zip(named, ((24, 62), (20, -40)), strict=False):
        axes.plot(point.gap, point.auc, marker="o", markersize=12, markerfacecolor="none", color="black", linestyle="")
        axes.annotate(
            point.label,
            (point.gap, point.auc),
            xytext=offset,
            textcoords="offset points",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
            arrowprops={"arrowstyle": "-", "color": _GREY, "linewidth": 0.8, "shrinkB": 7},
        )


def _lengths(values: Any, intervals: Sequence[tuple[float, float]]) -> Any:
    """Return the lengths (2, n) of error bars; 0 where there is no interval."""
    low, high = np.array(intervals, dtype=float).reshape(-1, 2).T
    return np.nan_to_num(np.maximum(np.stack([values - low, high - values]), 0.0))
