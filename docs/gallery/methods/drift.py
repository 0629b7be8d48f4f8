"""
A stream that drifts
====================

A stream yields rows one at a time, and their distribution may change. ``partial_fit`` keeps a uniform sample of all rows seen, so the
model follows the mixture of the past. Here one feature depends on the group from row 4,000 on. The figure compares three models on the next
rows: one that was trained before the change, one that goes on learning, and one that starts again at the change.
"""

import matplotlib.pyplot as plt
import numpy as np

from minmaxcon_problems.fair_auc import FairAUCClassifier, measure_scores

rng = np.random.default_rng(0)
n, change, step = 12_000, 4_000, 1_000
group = rng.integers(0, 2, n)
label = (rng.random(n) < 0.5).astype(int)
late = np.arange(n) >= change
features = rng.normal(size=(n, 4)) + 0.8 * label[:, None] * [1, 1, 0, 0]
features[:, 1] += 1.5 * late * group


def learner():
    return FairAUCClassifier("inter_group", max_gap=0.02, random_state=0)


def learn(model, rows):
    return model.partial_fit(features[rows], label[rows], classes=[0, 1], sensitive_features=group[rows])


def gap(model, rows):
    return measure_scores(
        model.decision_function(features[rows]), label[rows], sensitive_features=group[rows], metric="inter_group"
    ).gap.value


frozen, going_on, anew = learn(learner(), np.arange(change)), learner(), learner()
gaps = {"frozen at the change": [], "all rows so far": [], "rows since the change": []}
ends = np.arange(step, n, step)
for end in ends:
    rows, following = np.arange(end - step, end), np.arange(end, end + step)
    learn(going_on, rows)
    gaps["all rows so far"].append(gap(going_on, following))
    if end > change:
        learn(anew, rows)
    gaps["rows since the change"].append(gap(anew, following) if end > change else np.nan)
    gaps["frozen at the change"].append(gap(frozen, following) if end >= change else np.nan)

figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
for (name, values), marker in zip(gaps.items(), "^os", strict=True):
    ax.plot(ends, values, marker=marker, label=name)
ax.axvline(change, color="grey", linestyle=":")
ax.axhline(0.02, color="grey", linewidth=0.8)
ax.set(xlabel="rows seen", ylabel="gap on the next 1,000 rows")
ax.legend(frameon=False)
