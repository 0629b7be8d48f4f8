"""Measures of a trained model: AUC between any two sets of scores and gaps of AUCs, with confidence intervals."""

from __future__ import annotations

from minmaxcon.metrics.auc import AUCEstimate, auc, auc_gap, auc_gap_with_interval, auc_with_interval

__all__ = ["AUCEstimate", "auc", "auc_gap", "auc_gap_with_interval", "auc_with_interval"]
