"""Figures: what is drawn is what was measured, in colours, markers and line styles that differ, and always the same."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from minmaxcon.results.figures import png, trace_figure


def trace(runs: int, levels: int = 4) -> dict[str, Any]:
    rows = [(j, k) for k in range(levels) for j in range(runs)]
    run, level = np.array(rows).T
    return {
        "run": run,
        "level": level,
        "steps": 1000 * (level + 1),
        "objective": 0.3 + 0.1 / (level + 1) + 0.01 * run,
        "lower": np.where(level == 0, -np.inf, 0.3 - 0.1 / (level + 1) + 0.01 * run),
        "violation": -0.1 / (level + 1),
    }


def test_a_trace_shows_both_bounds_and_the_violation() -> None:
    columns = trace(1)
    figure = trace_figure(columns, title="one run")
    top, bottom = figure.axes
    upper, lower = top.lines
    np.testing.assert_allclose(upper.get_ydata(), columns["objective"])
    np.testing.assert_allclose(lower.get_ydata()[1:], columns["lower"][1:])
    assert np.isnan(lower.get_ydata()[0])  # no bound yet: nothing is drawn, and the axis stays finite
    assert upper.get_linestyle() != lower.get_linestyle()
    assert upper.get_marker() != lower.get_marker()
    np.testing.assert_allclose(bottom.lines[0].get_ydata(), columns["violation"])
    assert bottom.get_ylim()[1] >= 0.0  # the border of feasibility is in sight


def test_an_infeasible_point_is_no_upper_bound() -> None:
    columns = trace(1)
    columns["violation"] = np.array([0.2, 0.1, -0.1, -0.1])
    upper = trace_figure(columns).axes[0].lines[0].get_ydata()
    assert np.isnan(upper[:2]).all()
    assert np.isfinite(upper[2:]).all()


def test_many_runs_differ_by_more_than_colour() -> None:
    labels = [f"bound {j}" for j in range(12)]
    figure = trace_figure(trace(12), labels)
    drawn = [line for line in figure.axes[0].lines if line.get_label() in labels]
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in drawn}
    assert len(looks) == len(drawn) == 12
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == labels


@pytest.mark.parametrize("columns", [{}, {"run": np.zeros(0), "level": np.zeros(0)}])
def test_a_solve_that_ended_at_once_has_a_figure_that_says_so(columns: dict[str, Any]) -> None:
    figure = trace_figure(columns)
    assert "before its first level" in figure.axes[0].texts[0].get_text()
    assert png(figure).startswith(b"\x89PNG")


def test_the_same_figure_gives_the_same_bytes() -> None:
    first, second = (png(trace_figure(trace(3), ["a", "b", "c"])) for _ in range(2))
    assert first == second


def test_names_are_no_formulas() -> None:
    """What files, groups and models are called is set as it stands, and no character of it is an error."""
    names = ["$_$ of $^$.csv", "a$\\x$b", "$25,000-$50,000", "行.csv", "\U0001f600"]
    figure = trace_figure(trace(len(names)), names, title=names[0])
    for axes, name in zip(figure.axes, names[1:], strict=False):
        axes.set_title(name)
    assert png(figure).startswith(b"\x89PNG")
    assert figure.axes[1].yaxis.label.get_parse_math()  # our own formula
    titles, (legend,) = [axes.title for axes in figure.axes], figure.legends
    assert [text.get_text() for text in legend.get_texts()] == names
    assert not any(text.get_parse_math() for text in (*titles, *legend.get_texts()))


def test_no_window_and_no_global_state() -> None:
    script = (
        "import sys; from minmaxcon.results.figures import png, trace_figure; png(trace_figure({}));"
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
