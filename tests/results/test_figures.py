"""Figures: what is drawn is what was measured, in colours, markers and line styles that differ, and always the same."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.container import ErrorbarContainer

from minmaxcon.results.figures import OKABE_ITO, FrontPoint, front_figure, png, trace_figure

POINTS = [
    FrontPoint("", 0.88, 0.01, (0.85, 0.91), (0.0, 0.05)),
    FrontPoint("with", 0.89, 0.03, (0.86, 0.92), (0.01, 0.06)),
    FrontPoint("without", 0.90, 0.06, (0.87, 0.93), (0.02, 0.10)),
]


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


def test_a_front_has_error_bars_on_both_axes() -> None:
    figure = front_figure({"training": POINTS, "held out": POINTS}, xlabel="gap", ylabel="AUC")
    assert [axes.get_title() for axes in figure.axes] == ["training", "held out"]
    colours = set()
    for axes in figure.axes:
        (line,) = [line for line in axes.lines if line.get_linestyle() == "-" and len(line.get_xdata()) == 3]
        np.testing.assert_array_equal(line.get_xdata(), [0.01, 0.03, 0.06])
        np.testing.assert_array_equal(line.get_ydata(), [0.88, 0.89, 0.90])
        bars = [box for box in axes.containers if isinstance(box, ErrorbarContainer)]
        assert all(box.has_xerr and box.has_yerr for box in bars)
        horizontal = bars[0].lines[2][0].get_segments()
        np.testing.assert_allclose(np.array(horizontal)[:, :, 0], [[0.0, 0.05], [0.01, 0.06], [0.02, 0.10]])
        assert [text.get_text() for text in axes.texts] == ["with", "without"]
        colours.add((to_hex(line.get_color()), line.get_marker()))
    assert len(colours) == 2
    assert {colour.upper() for colour, _ in colours} <= set(OKABE_ITO)


def test_a_point_without_an_interval_is_drawn_without_a_bar() -> None:
    nan = float("nan")
    figure = front_figure({"one": [FrontPoint("", 0.9, 0.1, (nan, nan), (nan, nan))]}, xlabel="gap", ylabel="AUC")
    assert png(figure).startswith(b"\x89PNG")


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
    labels = [f"kappa {j}" for j in range(12)]
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


def test_no_window_and_no_global_state() -> None:
    script = (
        "import sys; from minmaxcon.results.figures import FrontPoint, front_figure, png;"
        "png(front_figure({'a': [FrontPoint('', .9, .1, (.8, 1), (0, .2))]}, xlabel='x', ylabel='y'));"
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
