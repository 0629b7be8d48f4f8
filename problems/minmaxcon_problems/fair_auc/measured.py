"""True gap and AUC of a model on some rows, weighted or not, with intervals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon import metrics
from minmaxcon.data import LabelledData
from minmaxcon.metrics import AUCEstimate, auc_with_interval

from .metrics import FairnessMetric, true_gap_with_interval

__all__ = ["measured_model"]


def measured_model(
    model: mm.Model, parameters: Any, rows: LabelledData, metric: FairnessMetric, row_weight: Any = None
) -> tuple[AUCEstimate, AUCEstimate]:
    """Return true gap and AUC of a model, each with its 95% interval.

    Parameters
    ----------
    model : Model
        The scoring model.
    parameters : ndarray (d,)
        Its parameters.
    rows : LabelledData
        The rows to judge by.
    metric : FairnessMetric
        The four subsets.
    row_weight : array_like (n,), optional
        How many rows each one stands for: values are weighted, and intervals keep the standard errors of the rows.
    """
    scores = model.predict(parameters, rows.features)
    positive = rows.label > 0
    gap = true_gap_with_interval(scores, rows.label, rows.group, metric)
    accuracy = auc_with_interval(scores[positive], scores[~positive])
    if row_weight is None:
        return gap, accuracy
    mass = np.asarray(row_weight, dtype=np.float64)

    def weighted(own: Any, other: Any) -> float:
        return float(metrics.auc(scores[own], scores[other], weights=(mass[own], mass[other])))

    masks = metric.masks(rows.label, rows.group).T
    apart = abs(weighted(masks[0], masks[1]) - weighted(masks[2], masks[3]))
    return _moved(gap, apart), _moved(accuracy, weighted(positive, ~positive))


def _moved(estimate: AUCEstimate, value: float) -> AUCEstimate:
    below, above = estimate.value - estimate.lower, estimate.upper - estimate.value
    return replace(estimate, value=value, lower=max(0.0, value - below), upper=min(1.0, value + above))
