"""What a solution is worth: surrogates and true measures, from its scores by code that shares nothing with solvers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.metrics import auc_with_interval
from minmaxcon_problems.fair_auc.surrogate.build import pair_masks
from minmaxcon_problems.fair_auc.target.path import NO_TARGET

from .labelled import LabelledData
from .metrics import true_gap_with_interval
from .partition import Dataset

__all__ = ["evaluation", "scores_of"]


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
