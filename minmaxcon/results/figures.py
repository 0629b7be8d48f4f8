"""Figures of results: the bounds of a solve as they close, and the look that all figures share.

Colours are those of Okabe and Ito, which colour-blind readers tell apart; every series also has a marker and a line
style of its own.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minmaxcon.checks import instance, instances, mapping, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["OKABE_ITO", "empty_figure", "png", "style_axes", "trace_figure"]

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The colours, in the order in which they are used (yellow is left out: it is faint on white)."""

_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_LINES = ("-", "-.")
_GREY = "#6E6E6E"
_INCHES = "must be a positive number of inches."


def png(figure: Figure) -> bytes:
    """Return a figure as a PNG file of 150 dots an inch; the same figure gives the same bytes.

    Formulas between dollar signs are set at the axes alone: titles and legends have names, of files or groups, in which
    a dollar sign is one. A character of a name that the font lacks is a box.
    """
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    instance("figure", figure, Figure, "must be a Figure of matplotlib.")
    axes = [axis for each in figure.axes for axis in (each.xaxis, each.yaxis)]
    formulas = {id(text) for axis in axes for text in axis.findobj(Text)}
    for text in figure.findobj(Text):
        if id(text) not in formulas:
            text.set_parse_math(False)
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    return buffer.getvalue()


def empty_figure(width: float, height: float) -> Figure:
    """Return an empty figure that belongs to no window and no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    size = number("width", width, _INCHES, above=0.0), number("height", height, _INCHES, above=0.0)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def style_axes(axes: Axes) -> None:
    """Give axes the look that all figures share."""
    from matplotlib.axes import Axes

    instance("axes", axes, Axes, "must be Axes of matplotlib.")
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
    mapping("trace", trace, "must be the trace of a Solution.")
    labels = instances("labels", labels, str, "must be a list of names, one for each run.")
    instance("title", title, str, "must be a text.")
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
