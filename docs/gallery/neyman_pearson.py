r"""
Multi-class Neyman-Pearson classification
=========================================

The least loss of one class :math:`k`, subject to bounds on the losses of all others. Each class has its own weights :math:`w_l` in a
ball, and a row of class :math:`l` should score higher for :math:`l` than for any rival :math:`j`:

.. math::

   \min_{|w_1|,\dots,|w_K| \le R}\ f_k(w) \quad\text{s.t.}\quad f_l(w) \le b,\ l \ne k, \qquad
   f_l(w) = \E\Big[\sum_{j \ne l} \ln\big(1 + e^{-\langle w_l - w_j, \xi\rangle}\big)\,\Big|\,l\Big]

The level-set method with expectation constraints was tested on this problem :cite:p:`lin2020data`.

In the form of :doc:`the problem class <../theory/problem_class>`
-----------------------------------------------------------------

=========== ============================================================================== ========= ========= =====
function    :math:`F`                                                                      :math:`G` :math:`A` :math:`g`
=========== ============================================================================== ========= ========= =====
:math:`f_l` :math:`\frac{1_l}{\Pr(l)}\sum_{j\ne l} \ln(1+e^{-\langle w_l-w_j,\xi\rangle})` none      none      0
=========== ============================================================================== ========= ========= =====

A sum of logistic losses of linear functions of :math:`w` is convex. :math:`\Pr(l)` is the share of class :math:`l` in all the data, so a batch
without a member of the class adds nothing. All classes share the scores: the class method ``fuse`` computes them once.

Data: ``wine`` (the default), ``iris`` or ``digits``, which come with scikit-learn; 70% for training and 30% for testing.
"""

import matplotlib.pyplot as plt
import numpy as np

import minmaxcon as mm
from minmaxcon.reference import solve_exact

bounds = [0.2, 0.3, 0.4, 0.6, 0.8]
problem = mm.load_problem("neyman_pearson", bound=bounds)
solution = mm.solve(problem, seed=0)
print(solution)

# %%
# With all weights 0 every class has the loss :math:`(K-1)\ln 2`, here 1.39, which is above every bound, so the solver first looks for a
# strictly feasible point. The five bounds are five runs of one solve.
#
# The price of a tighter bound
# ----------------------------
#
# The interval of each certificate contains the optimum that a conic solver finds.

exact = [solve_exact(mm.load_problem("neyman_pearson", bound=bound)).objective for bound in bounds]
low = [certificate.lower for certificate in solution.certificate]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.fill_between(bounds, low, solution.objective, alpha=0.4, label="certificate")
left.plot(bounds, exact, "k.", label="conic solver")
left.set(xlabel="bound on the losses of classes 1 and 2", ylabel="loss of class 0", ylim=(0, None))
left.legend(frameon=False)

losses = np.column_stack([solution.objective, solution.constraints + np.array(bounds)[:, None]])
for k, marker in enumerate("osD"):
    right.plot(bounds, losses[:, k], marker=marker, label=f"class {k}")
right.plot(bounds, bounds, ":", color="grey", label="bound")
right.set(xlabel="bound", ylabel="loss")
right.legend(frameon=False)
