"""The figure of the demonstration."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import to_hex
from matplotlib.container import ErrorbarContainer

from minmaxcon.results import OKABE_ITO, png
from minmaxcon_problems.fair_auc.study.demo import FrontPoint, front_figure

POINTS = [
    FrontPoint("", 0.88, 0.01, (0.85, 0.91), (0.0, 0.05)),
    FrontPoint("with", 0.89, 0.03, (0.86, 0.92), (0.01, 0.06)),
    FrontPoint("without", 0.90, 0.06, (0.87, 0.93), (0.02, 0.10)),
]


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
