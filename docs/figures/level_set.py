"""Draw docs/_static/level_set.svg: the level-set function of a small problem, computed on a grid.

Run as ``python docs/figures/level_set.py`` from the root of the repository.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

STYLE = {"svg.hashsalt": "minmaxcon", "font.size": 11, "axes.spines.top": False, "axes.spines.right": False}
BLUE, VERMILLION, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#555555"
THETA, OPTIMUM = 0.6, 1.0
GRID = np.linspace(-1.5, 2.5, 400_001)


def level_value(r: float) -> float:
    """H(r) = min_x max((x - 2)^2 - r, x^2 - 1)."""
    return float(np.min(np.maximum((GRID - 2) ** 2 - r, GRID**2 - 1)))


def objective_weight(r: float) -> float:
    """Weight of the objective at the saddle point, minus the slope of H."""
    return (level_value(r - 1e-3) - level_value(r + 1e-3)) / 2e-3


def draw(target: Path) -> None:
    """Draw the curve, the levels that the method visits, and the lower bound of the last one."""
    levels = [4.0]
    for _ in range(4):
        levels.append(levels[-1] + level_value(levels[-1]) / (2 * THETA))
    r = np.linspace(0.2, 4.3, 200)

    figure, axes = plt.subplots(figsize=(7.2, 3.5), layout="constrained")
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.plot(r, [level_value(v) for v in r], color=BLUE, linewidth=2.2)
    axes.annotate("$H(r)$", (0.35, level_value(0.35)), xytext=(8, 4), textcoords="offset points", color=BLUE)
    for k, level in enumerate(levels[:4]):
        axes.plot([level, level], [0, level_value(level)], color=GREY, linewidth=0.9, linestyle=":")
        axes.plot(level, level_value(level), marker="o", markersize=6, color=VERMILLION)
        axes.annotate(f"$r_{k}$", (level, 0), xytext=(0, 6), textcoords="offset points", ha="center", color=VERMILLION)
    for before, after in pairwise(levels[:4]):
        axes.annotate(
            "",
            xy=(after, level_value(before)),
            xytext=(before, level_value(before)),
            arrowprops={"arrowstyle": "->", "color": VERMILLION, "linewidth": 1.1},
        )

    base = levels[3]
    weight = objective_weight(base)
    lower = base + level_value(base) / weight
    line = np.array([lower - 0.12, base + 0.45])
    axes.plot(line, level_value(base) - weight * (line - base), color=GREEN, linewidth=1.6, linestyle="--")
    axes.plot(lower, 0, marker="s", markersize=6, color=GREEN)
    axes.annotate(
        r"lower bound $r_3 + D(r_3)/\bar y_0 \leq f^*$",
        (lower, 0),
        xytext=(-0.15, -0.55),
        textcoords="data",
        color=GREEN,
        arrowprops={"arrowstyle": "-", "color": GREEN, "linewidth": 0.8},
    )
    axes.plot(OPTIMUM, 0, marker="D", markersize=7, color="black")
    axes.annotate("$f^*$", (OPTIMUM, 0), xytext=(6, 8), textcoords="offset points")
    axes.set(xlabel="level $r$", xlim=(-0.25, 4.4), ylim=(-1.0, 0.75))
    axes.set_yticks([-1.0, -0.5, 0.0, 0.5])
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    with plt.rc_context(STYLE):
        draw(Path(__file__).parents[1] / "_static" / "level_set.svg")
