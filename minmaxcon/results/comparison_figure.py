"""The figure of a comparison: gap and violation against samples, a pair of panels for each problem."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minmaxcon.checks import instance
from minmaxcon.errors import InvalidInput
from minmaxcon.results.comparison import Comparison, Entry, comparisons_of
from minmaxcon.results.figures import OKABE_ITO, empty_figure, style_axes
from minmaxcon.results.records import FEASIBLE
from minmaxcon.solvers import solver_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.ticker import Formatter

__all__ = ["comparison_figure"]

_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "h")
_LINES = ("-", (0, (5, 1.5)), (0, (4, 1.5, 1, 1.5)), (0, (1, 1.2)))
_COLUMNS = 3
_MARKED = 20
"""Points of a path that have a marker, about; all where there are no more."""

_LEAST_GAP = 1e-7
_LINEAR = 1e-5
"""Violations below this in size are drawn on a linear scale, so that 0 has a place."""

_GREY, _RED = "#6E6E6E", "#D55E00"
_COLOURS = (*OKABE_ITO, "#8A8A8A")


def comparison_figure(comparisons: Sequence[Comparison], title: str = "") -> Figure:
    """Draw comparisons: for each problem the size of the relative gap above, the largest violation below.

    Parameters
    ----------
    comparisons : sequence of Comparison
        One for each problem.
    title : str
        Heading of the figure.

    Returns
    -------
    Figure
        Against samples, on a logarithmic scale; a hollow marker is an infeasible point. Where a solver has several
        seeds each has a line. See :func:`minmaxcon.results.figures.png`.
    """
    comparisons = comparisons_of(comparisons)
    if not comparisons:
        raise InvalidInput("comparisons", comparisons, "give at least one Comparison.")
    instance("title", title, str, "must be a text.")
    columns = min(len(comparisons), _COLUMNS)
    strips = math.ceil(len(comparisons) / columns)
    alone = len(comparisons) == 1
    figure = empty_figure(7.6 if alone else 3.9 * columns + 0.4, (5.6 if alone else 4.7 * strips) + 0.8)
    grid = figure.subplots(2 * strips, columns, squeeze=False, height_ratios=[4, 3] * strips)
    names = list(dict.fromkeys(entry.solver for found in comparisons for entry in found.entries if entry.checkpoints))
    looks = _looks(names)
    for place, found in enumerate(comparisons):
        strip, column = divmod(place, columns)
        top, bottom = grid[2 * strip, column], grid[2 * strip + 1, column]
        _draw(top, bottom, found, looks)
        top.set_title(found.problem, fontsize="medium")
        bottom.set_xlabel("samples")
        if column == 0:
            top.set_ylabel(r"$|f_0 - f^*|$, relative")
            bottom.set_ylabel(r"largest $f_i - b_i$")
    for place in range(len(comparisons), strips * columns):
        strip, column = divmod(place, columns)
        grid[2 * strip, column].set_visible(False)
        grid[2 * strip + 1, column].set_visible(False)
    _legend(figure, looks, 3 if alone else 4)
    if title:
        figure.suptitle(title, fontsize="medium")
    return figure


def _looks(labels: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return colour, marker and line of each solver: by its name's place among all, so that it looks the same anywhere.

    Settings may follow a name after a colon; a name that occurs twice takes a free place the second time.
    """
    order = list(solver_names())
    places: dict[str, int] = {}
    for label in labels:
        name = label.partition(":")[0]
        place = order.index(name) if name in order else len(order)
        free = [other for other in range(len(order) + len(labels)) if other not in places.values()]
        places[label] = place if place in free else free[-1]
    looks = {}
    for label, place in sorted(places.items(), key=lambda item: item[1]):
        colour, line = _COLOURS[place % len(_COLOURS)], _LINES[place % len(_LINES)]
        looks[label] = {"color": colour, "linestyle": line, "marker": _MARKERS[place % len(_MARKERS)]}
    return looks


def _draw(top: Axes, bottom: Axes, found: Comparison, looks: Mapping[str, Mapping[str, Any]]) -> None:
    from matplotlib.ticker import EngFormatter, FuncFormatter

    drawn = [entry for entry in found.entries if entry.checkpoints]
    top.sharex(bottom)
    top.tick_params(labelbottom=False)
    for entry in drawn:
        _draw_path(top, bottom, entry, looks[entry.solver])
    for axes in (top, bottom):
        style_axes(axes)
        axes.margins(x=0.05)
    _scale_log(bottom.xaxis, [row["samples"] for entry in drawn for row in entry.path[1:]], EngFormatter(sep=""))
    gaps = [abs(row["relative_gap"]) for entry in drawn for row in entry.path[1:] if row["relative_gap"] != 0.0]
    if np.isfinite(gaps).any():
        _scale_log(top.yaxis, gaps, FuncFormatter(lambda value, _: f"{100.0 * value:g}%"))
    else:
        text = "no optimal value is known" if drawn else "no solver reached a checkpoint"
        top.text(0.5, 0.5, text, ha="center", va="center", transform=top.transAxes, color=_GREY)
    _scale_violation(bottom, [row["violation"] for entry in drawn for row in entry.path[1:]])


def _draw_path(top: Axes, bottom: Axes, entry: Entry, look: Mapping[str, Any]) -> None:
    """Draw a path in both panels: its line, some markers, hollow where the point is infeasible."""
    columns = {name: np.array([row[name] for row in entry.path[1:]], dtype=float) for name in entry.path[0]}
    samples = np.maximum(columns["samples"], 1.0)
    gap = np.abs(columns["relative_gap"])
    gap = np.where(gap == 0.0, np.nan, np.maximum(gap, _LEAST_GAP))  # 0 only at the point that stands in for f*
    hollow = ~(columns["violation"] <= FEASIBLE)
    marked = _spread(samples)
    for axes, values in ((top, gap), (bottom, columns["violation"])):
        axes.plot(samples, values, color=look["color"], linestyle=look["linestyle"], linewidth=1.3, zorder=3)
        for empty in (False, True):
            some = marked[hollow[marked] == empty]
            face = "white" if empty else look["color"]
            style: dict[str, Any] = {"color": look["color"], "marker": look["marker"], "markerfacecolor": face}
            axes.plot(samples[some], values[some], linestyle="", markersize=4.5, zorder=4, **style)


def _scale_log(axis: Axis, values: Sequence[float], labels: Formatter) -> None:
    """Set a logarithmic scale whose ticks are few and readable, over one decade or seven."""
    from matplotlib.ticker import LogLocator, NullFormatter

    known = np.array([max(value, _LEAST_GAP) for value in values if math.isfinite(value)])
    decades = float(np.log10(known.max() / known.min())) if known.size else 1.0
    axes = axis.axes
    (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 1.7 else (1.0,), numticks=6))
    axis.set_major_formatter(labels)
    axis.set_minor_formatter(NullFormatter())


def _spread(samples: Any) -> Any:
    """Return the indices of points about evenly spread along a logarithmic axis, the last one among them."""
    if len(samples) <= _MARKED:
        return np.arange(len(samples))
    wanted = np.geomspace(samples[0], samples[-1], _MARKED)
    return np.unique(np.minimum(np.searchsorted(samples, wanted), len(samples) - 1))


def _scale_violation(axes: Axes, violations: Sequence[float]) -> None:
    """Set a scale that is logarithmic to both sides of 0, with 0 marked and the infeasible side shaded."""
    known = np.array([value for value in violations if math.isfinite(value)])
    axes.set_yscale("symlog", linthresh=_LINEAR, linscale=0.6)
    most = max(float(known.max(initial=0.0)), 10 * _LINEAR)
    least = min(float(known.min(initial=0.0)), -10 * _LINEAR)
    axes.set_ylim(5.0 * least, 5.0 * most)
    axes.set_yticks([0.0, *_decades(most), *(-value for value in _decades(-least))])
    axes.minorticks_off()
    axes.axhspan(0.0, 5.0 * most, color=_RED, alpha=0.07, linewidth=0)
    axes.axhline(0.0, color="black", linewidth=1.0)
    place: dict[str, Any] = {"ha": "right", "va": "top", "transform": axes.transAxes, "zorder": 5}
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 1.0}
    axes.text(0.99, 0.97, "infeasible", color=_GREY, fontsize="small", bbox=box, **place)


def _decades(most: float) -> list[float]:
    """Return at most three powers of ten up to ``most``, above the linear part."""
    powers = list(range(math.ceil(math.log10(_LINEAR)) + 1, math.floor(math.log10(2.0 * most)) + 1))
    return [10.0**power for power in powers[:: -max(1, math.ceil(len(powers) / 3))]]


def _legend(figure: Figure, looks: Mapping[str, Mapping[str, Any]], columns: int) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], markersize=5.0, linewidth=1.3, **look) for look in looks.values()]
    names = [name.replace("_", " ").replace(":", ", ").replace("=", " ") for name in looks]
    hollow = Line2D([], [], color=_GREY, marker="o", markerfacecolor="white", linestyle="", markersize=5.0)
    handles.append(hollow)
    names.append("hollow: infeasible")
    figure.legend(handles, names, loc="outside lower center", ncols=columns, handlelength=3.4, frameon=False)
