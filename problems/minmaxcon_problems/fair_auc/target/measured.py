"""True gap and AUC of a model on some rows, weighted or not, with intervals, and whether they meet a target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon import metrics
from minmaxcon.metrics import AUCEstimate, auc_with_interval
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.metrics import FairnessMetric, true_gap_with_interval

__all__ = ["Judge", "measured_model"]


@dataclass(frozen=True, slots=True)
class Judge:
    """Measures models by the data that a target is about: the held-out ones, where there are any.

    Attributes
    ----------
    train, validation : LabelledData
        The data; the second may be None.
    metric : FairnessMetric
        The four subsets.
    model : Model
        The scoring model.
    row_weight : array_like (n,) or None
        Of the training rows.
    gap : float
        The target.
    demand : {"value", "upper"}
        What must meet it on held-out data: the gap itself, or the upper end of its interval.
    """

    train: LabelledData
    validation: LabelledData | None
    metric: FairnessMetric
    model: mm.Model
    row_weight: Any
    gap: float
    demand: str

    def on_train(self, run: mm.Solution) -> tuple[AUCEstimate, AUCEstimate]:
        """Return gap and AUC on the training data."""
        return measured_model(self.model, self.parameters(run), self.train, self.metric, self.row_weight)

    def measured(self, run: mm.Solution) -> tuple[AUCEstimate, AUCEstimate]:
        """Return gap and AUC on the data that the target is about."""
        if self.validation is None:
            return self.on_train(run)
        return measured_model(self.model, self.parameters(run), self.validation, self.metric)

    def parameters(self, run: mm.Solution) -> Any:
        """Return the model's parameters (d,), without variables of the objective's own."""
        return np.asarray(run.x)[: self.model.dimension]

    @property
    def by_interval(self) -> bool:
        """Whether the end of the interval is what counts."""
        return self.demand == "upper" and self.validation is not None

    def reached(self, found: tuple[AUCEstimate, AUCEstimate]) -> float:
        """Return what must not be above the target."""
        return found[0].upper if self.by_interval else found[0].value

    def shortfall(self, found: tuple[AUCEstimate, AUCEstimate]) -> str:
        """Say by how much a target is missed."""
        what = "upper end of the interval of the gap" if self.by_interval else "gap"
        where = "the data" if self.validation is None else "held-out data"
        return f"The least {what} found on {where} is {self.reached(found):.4g}, above the target {self.gap:g}."


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
