"""Measures of a trained model: AUC between any two sets of scores and gaps of AUCs, with confidence intervals."""

from __future__ import annotations

from minmaxcon.metrics.auc import auc, auc_gap, exact_auc
from minmaxcon.metrics.intervals import AUCEstimate, AUCStatistic, auc_gap_with_interval, auc_with_interval
from minmaxcon.metrics.pair_counts import PairCounts, ScoreRuns

__all__ = [
    "AUCEstimate",
    "AUCStatistic",
    "PairCounts",
    "ScoreRuns",
    "auc",
    "auc_gap",
    "auc_gap_with_interval",
    "auc_with_interval",
    "exact_auc",
]
