"""True measures of a solution, from its scores by code that shares nothing with solvers, and cautions to readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon import metrics
from minmaxcon.metrics import AUCEstimate, auc_with_interval
from minmaxcon_problems.fair_auc.surrogate.build import pair_masks
from minmaxcon_problems.fair_auc.target.problem import NO_TARGET

from .datasets import Dataset
from .labelled import LabelledData
from .metrics import FairnessMetric, true_gap_with_interval

__all__ = ["LARGE_GAP", "Judge", "cautions", "evaluation", "measured_model", "scores_of", "target_cautions"]


def scores_of(problem: mm.MinMaxProblem, x: Any, features: Any) -> Any:
    """Return the scores (n,) of rows in the units in which the model was trained."""
    model: mm.Model = problem.details["model"]
    return model.predict(np.asarray(x, dtype=np.float64)[: model.dimension], features)


def evaluation(problem: mm.MinMaxProblem, x: Any) -> dict[str, Any]:
    """Return ``objective``, ``values`` of the constraints, and the true measures of every part of the data.

    With a target on the true gap the values are the gap of both sides, and the training part also tells what the target
    costs: ``without_target``, with ``auc`` and ``auc_gap`` of the model that has none, and ``price``, by how much its
    AUC is higher.
    """
    dataset: Dataset = problem.details["dataset"]
    result: dict[str, Any] = {}
    for part in ("train", "validation", "test"):
        rows = getattr(dataset, part)
        if rows is not None:
            result[part] = _true(problem, x, rows)
    if isinstance(problem, mm.RefreshedProblem):
        result["train"]["without_target"] = _price(problem, result["train"]["auc"])
        gap = _signed_gap(problem, x)
        return {"objective": _objective(problem, x), "values": [gap, -gap], **result}
    losses = _losses(problem, x)
    return {"objective": losses[0], "values": [losses[1] + losses[2], losses[3] + losses[4]], **result}


def _losses(problem: mm.MinMaxProblem, x: Any) -> list[float]:
    """Quadratic losses of the five pairs, from group means and variances of the scores."""
    train, c1, c2 = problem.details["dataset"].train, problem.details["c1"], problem.details["c2"]
    scores = scores_of(problem, x, train.features)
    pairs = pair_masks(train.label, problem.details["metric"], train.group)
    return [
        c1 * float(scores[g].var() + scores[other].var() + (scores[g].mean() - scores[other].mean() - c2) ** 2)
        for g, other in pairs
    ]


def _objective(problem: mm.MinMaxProblem, x: Any) -> float:
    if problem.details["objective"] == "quadratic_auc":
        return _losses(problem, x)[0]
    train: LabelledData = problem.details["dataset"].train
    if problem.details["objective"] == "auc":
        scores = scores_of(problem, x, train.features)
        return 1.0 - float(auc_with_interval(scores[train.label > 0], scores[train.label < 0]).value)
    intercept = float(np.asarray(x)[problem.details["model"].dimension])
    margins = train.label * (scores_of(problem, x, train.features) + intercept)
    return float(np.logaddexp(0.0, -margins).mean())


def _signed_gap(problem: mm.MinMaxProblem, x: Any) -> float:
    train: LabelledData = problem.details["dataset"].train
    scores = scores_of(problem, x, train.features)
    masks = problem.details["metric"].masks(train.label, train.group)
    first, second = (auc_with_interval(scores[masks[:, g]], scores[masks[:, g + 1]]).value for g in (0, 2))
    return first - second


def _true(problem: mm.MinMaxProblem, x: Any, rows: LabelledData) -> dict[str, Any]:
    scores = scores_of(problem, x, rows.features)
    accuracy = auc_with_interval(scores[rows.label > 0], scores[rows.label < 0])
    gap = true_gap_with_interval(scores, rows.label, rows.group, problem.details["metric"])
    return {
        "auc": accuracy.value,
        "auc_interval": [accuracy.lower, accuracy.upper],
        "auc_gap": gap.value,
        "auc_gap_interval": [gap.lower, gap.upper],
        "rows": len(rows),
    }


def _price(problem: mm.RefreshedProblem, accuracy: float) -> Mapping[str, float]:
    """Solve without a target, once for each problem, and compare."""
    kept: dict[str, Any] = problem.details["kept"]
    if "free" not in kept:
        free = problem.with_bounds(NO_TARGET, NO_TARGET)
        kept["free"] = _true(
            problem, mm.solve(free, mm.SuccessiveApproximation(tolerance=1e-4)).x, problem.details["dataset"].train
        )
    free_auc, free_gap = kept["free"]["auc"], kept["free"]["auc_gap"]
    return {"auc": free_auc, "auc_gap": free_gap, "price": free_auc - accuracy}


LARGE_GAP = 0.05
"""A true gap above this is called out where the surrogate holds."""

_PARTS = {"train": "training", "test": "test"}
_ROUNDING = 1e-9


def cautions(metric: FairnessMetric, measured: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the sentences.

    Parameters
    ----------
    metric : FairnessMetric
        The metric.
    measured : sequence of mapping
        For each run the evaluation, with the surrogates' ``constraints`` :math:`f_i(x) - b_i`.
    """
    found = [
        "kappa bounds a quadratic surrogate and is no guarantee for the true gap of AUCs: read the true gap, not kappa."
    ]
    if metric.name == "intra_group":
        found.append(
            "The symmetric surrogate cannot make the intra-group gap small: on a9a its exact optimum keeps a true gap"
            " of at least 0.048 whatever kappa is, while the AUC drops."
        )
    for part, name in _PARTS.items():
        sentence = _large_gap(part, name, measured)
        if sentence:
            found.append(sentence)
    return found


def target_cautions(metric: FairnessMetric, measured: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the sentences for targets on the true gap: they are met where the model was fitted, and nowhere else.

    Parameters
    ----------
    metric : FairnessMetric
        The metric.
    measured : sequence of mapping
        For each run the evaluation, with ``constraints``, the true gap less its target.
    """
    found = [
        f"max_gap holds the {metric.name} gap on the training part; on new rows it varies as its interval says.",
    ]
    prices = [m["train"]["without_target"]["price"] for m in measured if "without_target" in m.get("train", {})]
    if prices:
        cost = f"{prices[0]:.4f}" if len(prices) == 1 else f"{min(prices):.4f} to {max(prices):.4f}"
        found.append(f"The price of fairness is {cost} of training AUC, against the model without a target.")
    return found


def _large_gap(part: str, name: str, measured: Sequence[Mapping[str, Any]]) -> str:
    """Say where the surrogate is met and the true gap of a part is large all the same."""
    kept = [m for m in measured if max(m["constraints"]) <= _ROUNDING]
    large = [m[part] for m in kept if part in m and m[part]["auc_gap"] > LARGE_GAP]
    if not large:
        return ""
    if len(measured) > 1:
        runs = f"in {len(large)} of {len(measured)} runs"
        return f"The surrogate is met, yet {runs} the true gap on the {name} part is above {LARGE_GAP:g}."
    low, high = large[0]["auc_gap_interval"]
    interval = f"95% interval {low:.3f} to {high:.3f}"
    return f"The surrogate is met, yet the true gap on the {name} part is {large[0]['auc_gap']:.3f} ({interval})."


@dataclass(frozen=True, eq=False, slots=True)
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
