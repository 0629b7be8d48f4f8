r"""
Toy: everything in closed form
==============================

The problem has one variable and one absolute value of a mean. Optimum, multiplier and level-set function are formulas, so you can
check every printed number by hand.

.. math::

   \min_{|x| \le 2c}\ \E\,\tfrac12(x - z)^2 \quad\text{s.t.}\quad |\E[x - u]| \le b,
   \qquad \E z = c,\ \E u = 0,\ \Var z = \Var u = \sigma^2

In the form of :doc:`the problem class <../theory/problem_class>`
-----------------------------------------------------------------

=========== ============================= ============ =============== =====
function    :math:`F`                     :math:`G`    :math:`A`       :math:`g`
=========== ============================= ============ =============== =====
:math:`f_0` :math:`\frac12(x - z)^2`      none         none            0
:math:`f_1` 0                             :math:`x-u`  :math:`[-1,1]`  0
=========== ============================= ============ =============== =====

:math:`F_0` is a convex quadratic and :math:`\langle\alpha, G\rangle` is linear in :math:`x` for every :math:`\alpha`, so both functions
are convex.

The level-set picture
---------------------

For :math:`b \le c` the optimum is :math:`x^* = b` with :math:`f^* = \frac12(c-b)^2 + \frac12\sigma^2` and multiplier
:math:`\lambda^* = c - b`. With :math:`\varrho = r - \frac12\sigma^2`,

.. math::

   H(r) = \begin{cases}
     -\varrho & \varrho \le b - c \\
     c - b + 1 - \sqrt{1 + 2(c - b + \varrho)} & b - c \le \varrho \le \frac12c^2 + b \\
     -b & \frac12c^2 + b \le \varrho
   \end{cases}
"""

import matplotlib.pyplot as plt
import numpy as np

import minmaxcon as mm
from minmaxcon_problems.toy import level_function, optimum

x, best, multiplier = optimum(center=2.0, bound=1.0, noise=1.0)
problem = mm.load_problem("toy")
solution = mm.solve(problem, seed=0)
print("formulas:", x, best, multiplier)
print(solution)

# %%
# The start :math:`x = 0` is strictly feasible and gives :math:`r_0 = \frac12c^2 + \frac12\sigma^2 = 2.5`. The slope of :math:`H` at its
# root is :math:`-1/(1 + \lambda^*)`, minus the weight :math:`y_0` of the objective. A larger multiplier makes :math:`H` flatter; the
# bracket of :math:`f^*` halves nevertheless (:ref:`bracket`). The figure shows the levels of the solver, with
# the upper bounds :math:`P(r)` of :math:`H(r)` that its oracle returned.

levels = solution.trace["r"]
grid = np.linspace(0.6, 2.7, 300)
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
ax.axhline(0, color="grey", linewidth=0.8)
ax.plot(grid, [level_function(2.0, 1.0, 1.0, r) for r in grid], label="$H(r)$, the formula")
ax.plot(levels, solution.trace["P"], "o", color="C1", label="$P(r)$ at the levels of the solver")
for k, (r, value) in enumerate(zip(levels[:3], solution.trace["P"], strict=False)):
    ax.annotate(f"$r_{k}$", (r, value), xytext=(6, 4), textcoords="offset points")
ax.plot(best, 0, "kD", label="$f^*$")
ax.set(xlabel="level $r$")
ax.legend(frameon=False)
