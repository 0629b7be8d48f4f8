"""Rows with a known bias, and the gap as it is defined."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minmaxcon_problems.fair_auc import FairAUCClassifier


class Rows(NamedTuple):
    X: Any
    y: Any
    group: Any

    def take(self, rows: Any) -> Rows:
        return Rows(self.X[rows], self.y[rows], self.group[rows])


def biased_rows(count: int, seed: int) -> Rows:
    """The label depends on the first feature, which members of group b have less of; the second one gives b away."""
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(count) < 0.4, "b", "a")
    shift = np.where(group == "b", -1.0, 0.0)
    features = rng.normal(size=(count, 4))
    features[:, 0] += shift
    features[:, 1] += 2.0 * shift
    label = np.where(features[:, 0] + 0.3 * features[:, 2] + shift + rng.normal(size=count) > -0.6, "yes", "no")
    # Units far apart, as in life.
    return Rows(features * [1.0, 100.0, 0.01, 1.0] + [0.0, 50.0, 0.0, -3.0], label, group)


def every_pair(a: Any, b: Any) -> float:
    """AUC as it is defined: all pairs, ties one half."""
    return float(np.mean((a[:, None] > b[None, :]) + 0.5 * (a[:, None] == b[None, :])))


def gap_by_pairs(metric: str, scores: Any, rows: Rows) -> float:
    """The true gap from its definition, with yes as the positive label and b as the protected group."""
    yes, b = rows.y == "yes", rows.group == "b"
    if metric == "group":
        return abs(every_pair(scores[b], scores[~b]) - 0.5)
    first, second = {"inter_group": (~b, b), "intra_group": (b, ~b)}[metric]
    return abs(every_pair(scores[yes & b], scores[~yes & first]) - every_pair(scores[yes & ~b], scores[~yes & second]))


def model(**settings: Any) -> FairAUCClassifier:
    return FairAUCClassifier(**{"metric": "group", "max_gap": 0.03, "random_state": 0, **settings})


def feed(estimator: FairAUCClassifier, rows: Rows, size: int) -> FairAUCClassifier:
    for begin in range(0, len(rows.y), size):
        part = rows.take(slice(begin, begin + size))
        estimator.partial_fit(part.X, part.y, sensitive_features=part.group)
    return estimator
