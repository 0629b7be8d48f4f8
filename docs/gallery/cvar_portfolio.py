r"""
Portfolio with a bounded tail
=============================

The portfolio of the largest expected return whose conditional value-at-risk, the mean of the worst :math:`1-\beta` of its losses, is
bounded :cite:p:`rockafellar2000optimization`.

.. math::

   \min_{w, t}\ -12\,\E\langle r, w\rangle \quad\text{s.t.}\quad
   \E\Big[t + \frac{(-\langle r, w\rangle - t)_+}{1 - \beta}\Big] \le b,
   \qquad w \in \Delta,\ t \in [-T, T]

:math:`r` are the returns of a month in percent, and the objective is that of a year. The weights lie in the simplex with the entropy
geometry, :math:`t` in an interval: ``mm.product([mm.Simplex(assets), mm.Box([-1.0], [1.0])])``, the last coordinate being
:math:`t/T`.

In the form of :doc:`the problem class <../theory/problem_class>`
-----------------------------------------------------------------

=========== ================================================================== ============ ============ =====
function    :math:`F`                                                          :math:`G`    :math:`A`    :math:`g`
=========== ================================================================== ============ ============ =====
:math:`f_0` :math:`-12\langle r, w\rangle`                                     none         none         0
:math:`f_1` :math:`t + p_\epsilon(-\langle r, w\rangle - t)/(1-\beta)`         none         none         0
=========== ================================================================== ============ ============ =====

Variables that are minimised, here :math:`t`, are part of :math:`x`. A maximum of linear functions is convex, and so is its smooth form
:math:`p_\epsilon`, which equals :math:`(u)_+` except for :math:`|u| < \epsilon`, where it is :math:`(u+\epsilon)^2/(4\epsilon)`. The smooth
form is never smaller, so the true conditional value-at-risk is at most the value of the constraint. It makes the certificate tighter: a lower
bound comes from a gradient at a point, and at a kink one subgradient gives a loose bound. A mixture of cash with a little of every asset is
strictly feasible.

Data: 2,000 scenarios of next month's returns of 15 risky assets and cash, from a factor model with Student tails of 4 degrees of
freedom (``minmaxcon_problems.cvar_portfolio.market.simulate`` has its formula), and as many held-out scenarios.
"""

import matplotlib.pyplot as plt
import numpy as np

import minmaxcon as mm
from minmaxcon.reference import solve_exact

bounds = [2.0, 3.0, 4.0, 5.0, 6.0]
problem = mm.load_problem("cvar_portfolio", bound=bounds, assets=7, scenarios=300)
solution = mm.solve(problem, seed=0)
print(solution)
one = mm.load_problem("cvar_portfolio", bound=5.0, assets=7, scenarios=300)
print("a conic solver finds", round(solve_exact(one).objective, 4), "for 5")

# %%
# What a looser tail buys
# -----------------------
#
# A larger bound on the loss in the worst tenth of months moves wealth out of cash (the lowest band), and raises the expected return.

weights = np.asarray(solution.x)[:, :-1]
order = np.argsort(-weights[0])  # cash first
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.stackplot(
    bounds, weights[:, order].T, colors=plt.cm.viridis(np.linspace(0.05, 0.95, len(order))), edgecolor="white"
)
left.set(xlabel="bound on the tail, % a month", ylabel="weights of the assets", xlim=(2, 6), ylim=(0, 1))

plugin = mm.plugin("cvar_portfolio")
for part, marker in (("train", "o"), ("test", "s")):
    found = [plugin.evaluate(problem, x)[part] for x in solution.x]
    right.plot([row["cvar"] for row in found], [row["expected_return"] for row in found], marker=marker, label=part)
right.set(xlabel="conditional value-at-risk, % a month", ylabel="expected return, % a year")
right.legend(frameon=False)
