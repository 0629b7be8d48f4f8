r"""
Robust diet
===========

Stigler asked for the cheapest diet that keeps a man healthy :cite:p:`stigler1945cost`, which became the first large linear program.
Here prices and contents vary from day to day, and the table itself may be wrong: the diet must suffice for every
error of the mean contents in a ball :cite:p:`bental1999robust`.

.. math::

   \min_{0 \le x \le c}\ \E\langle p, x\rangle \quad\text{s.t.}\quad
   \max_{|\alpha|_2 \le s} \E\langle\alpha - \xi_i, x\rangle \le -q, \qquad i = 1..m

:math:`x` is the spending on each food, in dimes a day at the prices of 1939. :math:`\xi_i` is the content of nutrient i in a dime's worth of
each food, as a share of a day's need, and :math:`q` is the share that must be met.

In the form of :doc:`the problem class <../theory/problem_class>`
-----------------------------------------------------------------

=========== ================================= ============ ===================== =====
function    :math:`F`                         :math:`G`    :math:`A`             :math:`g`
=========== ================================= ============ ===================== =====
:math:`f_0` :math:`\langle p, x\rangle`       none         none                  0
:math:`f_i` :math:`-\langle\xi_i, x\rangle`   :math:`x`    ball of radius s      0
=========== ================================= ============ ===================== =====

Everything is linear in :math:`x` for every :math:`\alpha`, and the maximum is
:math:`s|x|_2 - \langle \E\xi_i, x\rangle`, which is convex. At the same cost a mixed diet has a smaller norm than a diet of few foods, so
robust diets are more varied. Equal amounts of every food, which meet the scarcest need with a tenth to spare, are strictly feasible.

Data: 18 foods and 9 nutrients of Stigler's table; each price and content has a lognormal factor of mean 1 and standard deviation
0.2, drawn from a seed.
"""

import matplotlib.pyplot as plt
import numpy as np

import minmaxcon as mm
from minmaxcon.reference import solve_exact
from minmaxcon_problems.robust_diet import FOODS

problem = mm.load_problem("robust_diet")
solution = mm.solve(problem, seed=0)
print(solution)
print("a conic solver finds", round(solve_exact(problem).objective, 5))

# %%
# What robustness costs
# ---------------------
#
# The figure shows the diets for errors of the table in balls of three radii. The smallest radius nearly trusts the table.

figure, ax = plt.subplots(figsize=(9, 3.8), layout="constrained")
place = np.arange(len(FOODS))
for k, size in enumerate((0.01, 0.1, 0.2)):
    found = mm.solve(mm.load_problem("robust_diet", size=size), seed=0)
    ax.bar(place + 0.27 * (k - 1), found.x, 0.27, label=f"radius {size:g}: {10 * found.objective:.1f} cents a day")
ax.set_xticks(place, FOODS, rotation=40, ha="right")
ax.set_ylabel("dimes a day")
ax.legend(frameon=False)
