r"""
A root is found in steps
========================

The level-set method looks for the root of

.. math:: H(r) = \min_x \max\{f_0(x) - r,\ f_1(x) - b_1,\ \dots\}

which is :math:`f^*` (:doc:`../../theory/level_set`). On the problem :doc:`../toy` the function is a formula, so that both rules for the
next level can be drawn. The paper's rule is :math:`r + U(r)/2\theta`, from the right. On finite data minmaxcon takes the middle of the bracket
between the best objective and the best lower bound.
"""

import matplotlib.pyplot as plt
import numpy as np

from minmaxcon_problems.toy import level_function

CENTER, BOUND, NOISE, THETA = 4.0, 0.5, 1.0, 0.6


def value(r):
    return level_function(CENTER, BOUND, NOISE, r)


def weight(r):  # of the objective: minus the slope
    return (value(r - 1e-6) - value(r + 1e-6)) / 2e-6


best = 0.5 * (CENTER - BOUND) ** 2 + 0.5 * NOISE**2
paper = [9.0]
for _ in range(6):
    paper.append(paper[-1] + value(paper[-1]) / (2 * THETA))

low, high, middle = -np.inf, 9.0, [9.0]
for _ in range(6):
    r = middle[-1]
    if value(r) <= 0:  # a feasible point with f_0 <= r + H(r)
        high = min(high, r + value(r))
    low = max(low, r + value(r) / weight(r))  # the tangent's root is a lower bound
    middle.append((low + high) / 2)

grid = np.linspace(5.5, 9.2, 300)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for ax, levels, title in zip(axes, (paper, middle), ("the paper's rule", "the middle of the bracket"), strict=True):
    ax.axhline(0, color="grey", linewidth=0.8)
    ax.plot(grid, [value(r) for r in grid])
    ax.plot(levels, [value(r) for r in levels], "o", color="C1")
    for k, r in enumerate(levels[:3]):
        ax.annotate(f"$r_{k}$", (r, value(r)), xytext=(4, 6), textcoords="offset points")
    ax.plot(best, 0, "kD")
    ax.set(title=title, xlabel="level $r$")
axes[0].set_ylabel("$H(r)$")
print("distance to the root after each level")
print("paper ", *(f"{abs(r - best):.2g}" for r in paper))
print("middle", *(f"{abs(r - best):.2g}" for r in middle))
