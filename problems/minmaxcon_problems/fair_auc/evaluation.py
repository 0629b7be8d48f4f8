"""True measures of a solution, from its scores by code that shares nothing with solvers, and cautions to readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import namespace
from minmaxcon.core import solution_point
from minmaxcon.metrics import AUCEstimate, auc_with_interval, exact_auc
from minmaxcon_problems.fair_auc.surrogate.build import pair_masks

from .bounds import Details
from .labelled import LabelledData
from .measured import comparisons, gap_and_area
from .metrics import FairnessMetric, MetricSet

__all__ = [
    "LARGE_GAP",
    "against_free",
    "cautions",
    "enclosed_gap",
    "evaluation",
    "measured_model",
    "measured_scores",
    "objective_at",
    "rounding_of",
    "scores_of",
    "target_cautions",
]


def scores_of(problem: mm.MinMaxProblem, x: Any, features: Any) -> Any:
    """Return the scores (n,) of rows in the units in which the model was trained."""
    model = problem.details.model
    w = np.asarray(x, dtype=np.float64)[: model.dimension]
    scores = model.predict(w, features)
    return np.full_like(scores, scores.mean()) if np.ptp(scores) <= rounding_of(model, w, features) else scores


def rounding_of(model: mm.Model, w: Any, features: Any) -> float:
    """Return by how much scores of features (n, d) may differ from rounding; 0 where the model is not linear.

    Features are alike in size, and so are the rounding errors of weights. The constant model of features that depend on
    each other may have large weights, whose terms cancel.
    """
    if not isinstance(model, mm.Linear):
        return 0.0
    return (
        _ONE_SCORE * float(np.abs(w).max(initial=0.0)) * float(np.asarray(abs(features).sum(axis=1)).max(initial=0.0))
    )


def evaluation(problem: mm.MinMaxProblem, x: Any) -> dict[str, Any]:
    """Return ``objective``, ``values`` of the constraints, and the true measures of every part of the data.

    With a target on the true gap the values are the gap of both sides.
    """
    details: Details = problem.details
    if details.dataset is None:
        raise mm.Unsupported("the problem keeps no data set: there are no rows to measure it on.")
    parts: dict[str, Any] = {name: getattr(details.dataset, name) for name in ("train", "validation", "test")}
    scores = {name: scores_of(problem, x, rows.features) for name, rows in parts.items() if rows is not None}
    found = {name: _measures(scores[name], parts[name], details.metric) for name in scores}
    train, own = parts["train"], scores["train"]
    if details.max_gap is not None:
        masks = details.metric.masks(train.label, train.group)
        first, second = (auc_with_interval(own[masks[:, g]], own[masks[:, g + 1]]).value for g in (0, 2))
        objective = objective_at(problem, x) if details.alpha > 0 else _objective(details, train, x, own)
        return {"objective": objective, "values": [first - second, second - first], **found}
    losses = _losses(details, train, own)
    return {"objective": losses[0], "values": [losses[1] + losses[2], losses[3] + losses[4]], **found}


def _measures(scores: Any, rows: LabelledData, metric: FairnessMetric) -> dict[str, Any]:
    gap, accuracy = measured_scores(scores, rows, metric)
    return {
        "auc": accuracy.value,
        "auc_interval": [accuracy.lower, accuracy.upper],
        "auc_gap": gap.value,
        "auc_gap_interval": [gap.lower, gap.upper],
        "rows": len(rows),
    }


def _losses(details: Details, train: LabelledData, scores: Any) -> list[float]:
    """Quadratic losses of the five pairs, from group means and variances of the training scores."""
    c1, c2 = details.c1, details.c2
    pairs = pair_masks(train.label, details.metric, train.group)
    return [
        c1 * float(scores[g].var() + scores[other].var() + (scores[g].mean() - scores[other].mean() - c2) ** 2)
        for g, other in pairs
    ]


def _objective(details: Details, train: LabelledData, x: Any, scores: Any) -> float:
    label = train.label
    if details.objective == "quadratic_auc":
        return _losses(details, train, scores)[0]
    if details.objective == "auc":
        return 1.0 - float(auc_with_interval(scores[label > 0], scores[label < 0]).value)
    intercept = float(np.asarray(x)[details.model.dimension])
    return float(np.logaddexp(0.0, -label * (scores + intercept)).mean())


def objective_at(problem: mm.MinMaxProblem, x: Any) -> float:
    """Return the objective at x (d,), with its penalty: what the solver minimised and its certificate bounds."""
    like = problem.data.like
    point = namespace(like).asarray(np.asarray(x, dtype=np.float64)[None], like)
    seen = problem.measure.observe(point) if isinstance(problem, mm.RefreshedProblem) else None
    if seen is None or seen.objective is None:
        return float(problem.at_level(0.0).values(point)[0, 0])
    return float(np.asarray(seen.objective[0])[0])


def enclosed_gap(problem: mm.MinMaxProblem, x: Any) -> list[tuple[Fraction, Fraction]] | None:
    """Return between which rationals both sides of the training gap lie; None without a target, or of other models.

    Counts of pairs are whole numbers, so that of given scores the gap is exact. The scores are computed in two ways, in
    float64 and in NumPy's longest float rounded to float64: pairs that they order otherwise are what lies between.
    """
    details: Details = problem.details
    if details.max_gap is None or details.dataset is None or details.dataset.streamed:
        return None
    x, train = solution_point(problem, x), details.dataset.train
    scores, masks = scores_of(problem, x, train.features), details.metric.masks(train.label, train.group)
    longer = _longer_scores(details.model, x, train.features)
    if longer is None:
        return None
    if np.ptp(scores) == 0:
        longer = scores  # one score, but for rounding
    gaps = []
    for found in (scores, longer):
        own, other = (exact_auc(found[masks[:, g]], found[masks[:, g + 1]]) for g in (0, 2))
        gaps.append(own - other)
    return [(min(gaps), max(gaps)), (-max(gaps), -min(gaps))]


def _longer_scores(model: mm.Model, x: Any, features: Any) -> Any | None:
    """Return the scores (n,) of rows, computed in the longest float that NumPy has; None of models of other kinds."""
    w = np.asarray(x, dtype=np.longdouble)[: model.dimension]
    found = []
    for begin in range(0, features.shape[0], _AT_ONCE):
        part = features[begin : begin + _AT_ONCE]
        rows = np.asarray(part.toarray() if hasattr(part, "tocsr") else part, dtype=np.longdouble)
        if isinstance(model, mm.Linear):
            found.append(rows @ w)
        elif isinstance(model, mm.MLP):
            inner, offset, outer = model.layers(w)
            found.append((1.0 / (1.0 + np.exp(-(rows @ inner.T + offset)))) @ outer)
        else:
            return None
    return np.concatenate(found).astype(np.float64)


def against_free(found: Mapping[str, Any], free: Mapping[str, Any]) -> dict[str, Any]:
    """Add to an evaluation what its target costs: the training part's ``without_target``.

    It holds ``auc`` and ``auc_gap`` of ``free``, the evaluation without a target, and ``price``, by how much its AUC is
    higher. Where it is lower, the model with a target is the best that is known without one, too, and the price is 0.
    """
    own = found["train"]
    other = max(free["train"], own, key=lambda part: part["auc"])
    without = {"auc": other["auc"], "auc_gap": other["auc_gap"], "price": other["auc"] - own["auc"]}
    return {**found, "train": {**own, "without_target": without}}


_AT_ONCE = 4096
"""Rows whose scores are computed together in a longer float, so that memory does not grow with the data."""

_ONE_SCORE = 1e-12
"""The share of the largest sum of terms by which scores may differ from rounding."""

LARGE_GAP = 0.05
"""A true gap above this is called out where the surrogate holds."""

_PARTS = {"train": "training", "test": "test"}
_ROUNDING = 1e-9


def cautions(metric: FairnessMetric, measured: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the sentences, from each run's evaluation with the surrogates' ``constraints`` :math:`f_i(x) - b_i`."""
    found = [
        "kappa bounds a quadratic surrogate and is no guarantee for the true gap of AUCs: read the true gap, not kappa."
    ]
    if metric.name == "intra_group":
        found.append(
            "The symmetric surrogate cannot make the intra-group gap small: on a9a its exact optimum keeps a true gap"
            " of at least 0.048 whatever kappa is, while the AUC drops."
        )
    said = [_one_score(measured), *(_large_gap(part, name, measured) for part, name in _PARTS.items())]
    return found + [sentence for sentence in said if sentence]


def target_cautions(metric: FairnessMetric, measured: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the sentences for targets on the true gap: they are met where the model was fitted, and nowhere else.

    ``measured`` are the runs' evaluations, with ``constraints``, the true gap less its target.
    """
    found = [
        f"max_gap holds the {metric.name} gap on the training part; on new rows it varies as its interval says.",
    ]
    prices = [m["train"]["without_target"]["price"] for m in measured if "without_target" in m.get("train", {})]
    if prices:
        cost = f"{prices[0]:.4f}" if len(prices) == 1 else f"{min(prices):.4f} to {max(prices):.4f}"
        found.append(f"The price of fairness is {cost} of training AUC, against the best model known.")
    return [*found, said] if (said := _one_score(measured)) else found


def _one_score(measured: Sequence[Mapping[str, Any]]) -> str:
    """Say where a model tells no rows apart."""
    same = sum(m["train"]["auc"] == 0.5 and m["train"]["auc_gap"] == 0.0 for m in measured if "train" in m)
    if not same:
        return ""
    model = "The model gives" if len(measured) == 1 else f"In {same} of {len(measured)} runs the model gives"
    return f"{model} all rows one score: its AUC is one half, and its gap 0 says nothing."


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


def measured_model(
    model: mm.Model, parameters: Any, rows: LabelledData, metric: FairnessMetric | MetricSet, row_weight: Any = None
) -> tuple[AUCEstimate, AUCEstimate]:
    """Return true gap and AUC of a model with parameters (d,), each with its 95% interval.

    A row stands for ``row_weight`` (n,) rows: values and intervals are weighted.
    """
    return measured_scores(model.predict(parameters, rows.features), rows, metric, row_weight)


def measured_scores(
    scores: Any, rows: LabelledData, metric: FairnessMetric | MetricSet, row_weight: Any = None
) -> tuple[AUCEstimate, AUCEstimate]:
    """Return true gap and AUC of scores (n,) of the rows, as :func:`measured_model` does.

    With several groups or metrics the gap is the largest one.
    """
    return gap_and_area(scores, rows.label, comparisons(rows, metric), metric, row_weight)
