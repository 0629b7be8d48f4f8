r"""
The divergence of the dual variables
====================================

The dual variables are a weight :math:`y` on each function and, inside each, :math:`\alpha` in a set :math:`A` scaled by the
weight: :math:`a = y\alpha \in yA`. Their divergence is the Kullback-Leibler divergence of the weights plus the perspective of the
squared distance (:doc:`../../theory/generator`). Its balls shrink with the weight: if :math:`y` is small, :math:`\alpha` may move far at a small
cost, since it then has little effect.
"""

import matplotlib.pyplot as plt
import numpy as np

import minmaxcon as mm

# %%
# There are two functions, and the second has :math:`\alpha \in [-1, 1]`. The figure shows :math:`V(z, \bar z)` for a centre
# :math:`\bar z` with a large and with a small weight, in the coordinates :math:`(y_1, a_1)` that the steps are taken in.

generator = mm.PerspectiveGenerator([None, mm.interval(1.0)])
weights, share = np.meshgrid(np.linspace(0.01, 0.99, 150), np.linspace(-1.0, 1.0, 151))


def point(y, alpha):
    return generator.point(np.stack([1 - y, y], -1), np.asarray(alpha)[..., None])


figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for ax, (y, alpha) in zip(axes, ((0.6, 0.3), (0.15, 0.3)), strict=True):
    values = generator.divergence(point(weights, share), point(np.array(y), np.array(alpha)))
    levels = [0.01, 0.03, 0.1, 0.3, 1.0]
    drawn = ax.contour(weights, weights * share, values, levels=levels, cmap="viridis_r")
    ax.clabel(drawn, fontsize=8)
    ax.plot(y, y * alpha, "kD")
    ax.fill_between([0, 1], [0, 1], [1.05, 1.05], color="0.9")
    ax.fill_between([0, 1], [0, -1], [-1.05, -1.05], color="0.9")
    ax.set(xlabel="weight $y_1$", xlim=(0, 1), ylim=(-1.05, 1.05), title=f"centre: $y_1$ = {y:g}")
axes[0].set_ylabel(r"$a_1 = y_1\alpha_1$")
