"""AUCs as they are defined, over all pairs in O(n^2), and rows with a known bias; nothing of it comes from the library
under test."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from minmaxcon_problems.fair_auc.labelled import LabelledData

Array = Any


def sigmoid(t: Array) -> Array:
    return 0.5 * (1.0 + np.tanh(0.5 * np.asarray(t)))


def smooth_auc(a: Array, b: Array, beta: float, weight_a: Array = None, weight_b: Array = None) -> float:
    """The mean of sigma((h - h') / beta) over all pairs, each counting the product of its weights."""
    return _mean(sigmoid((a[:, None] - b[None, :]) / beta), weight_a, weight_b)


def plain_auc(a: Array, b: Array, weight_a: Array = None, weight_b: Array = None) -> float:
    """The share of pairs that are won, ties one half."""
    return _mean((a[:, None] > b[None, :]) + 0.5 * (a[:, None] == b[None, :]), weight_a, weight_b)


def _mean(won: Array, weight_a: Array, weight_b: Array) -> float:
    share_a = np.ones(won.shape[0]) if weight_a is None else np.asarray(weight_a, dtype=float)
    share_b = np.ones(won.shape[1]) if weight_b is None else np.asarray(weight_b, dtype=float)
    return float(share_a @ won @ share_b / (share_a.sum() * share_b.sum()))


def sklearn_auc(scores: Array, first: Array, second: Array, weight: Array = None) -> float:
    """AUC of the set ``first`` against ``second``; rows that are in both stand twice."""
    both = np.concatenate([scores[first], scores[second]])
    truth = np.concatenate([np.ones(int(first.sum())), np.zeros(int(second.sum()))])
    mass = None if weight is None else np.concatenate([weight[first], weight[second]])
    return float(roc_auc_score(truth, both, sample_weight=mass))


def sklearn_gap(scores: Array, masks: Array, weight: Array = None) -> float:
    """The signed gap of masks (n, 4)."""
    pairs = [(masks[:, 0], masks[:, 1]), (masks[:, 2], masks[:, 3])]
    own, other = (sklearn_auc(scores, first, second, weight) for first, second in pairs)
    return own - other


def cells(rows: LabelledData) -> dict[str, Array]:
    """Masks of the rows by label and group."""
    positive, protected = rows.label > 0, rows.group > 0
    return {
        "everyone": np.ones(len(rows), dtype=bool),
        "positive": positive,
        "negative": ~positive,
        "protected": protected,
        "unprotected": ~protected,
        "positive protected": positive & protected,
        "positive unprotected": positive & ~protected,
        "negative protected": ~positive & protected,
        "negative unprotected": ~positive & ~protected,
    }


DEFINITIONS = {
    "group": ("protected", "unprotected", "everyone", "everyone"),
    "inter_group": ("positive protected", "negative unprotected", "positive unprotected", "negative protected"),
    "intra_group": ("positive protected", "negative protected", "positive unprotected", "negative unprotected"),
    "positive_equality_gap": ("positive protected", "positive", "everyone", "everyone"),
    "negative_equality_gap": ("negative protected", "negative", "everyone", "everyone"),
    "bpsn_bnsp": ("positive", "negative protected", "positive protected", "negative"),
}
"""The metrics of the paper's appendix A, by cells."""


def masks_of(rows: LabelledData, metric: str) -> Array:
    """Masks (n, 4) of a metric, from its definition."""
    cell = cells(rows)
    return np.stack([cell[name] for name in DEFINITIONS[metric]], axis=1)


def biased(seed: int = 0, n: int = 1500, d: int = 6) -> LabelledData:
    """Rows where every metric of an unconstrained model has a gap: the group shifts scores, and blurs one of its own.

    The first feature tells the label, and is noisy for the protected group; the second tells the group, and helps with
    the label, since protected rows are less often positive.
    """
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(n) < 0.35, 1, -1)
    label = np.where(rng.random(n) < np.where(group > 0, 0.25, 0.55), 1, -1)
    features = rng.normal(size=(n, d))
    features[:, 0] += 0.9 * label
    features[:, 0] += np.where(group > 0, 1.3 * rng.normal(size=n), 0.0)
    features[:, 1] += 0.8 * group - 0.2 * label
    features[:, 2] += 0.5 * label * (group < 0)
    features[:, 3] += 0.5 * (label > 0) * (group > 0)
    return LabelledData(features, label, group, tuple(f"x{j}" for j in range(d)), name="biased")
