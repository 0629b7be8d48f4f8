"""Problems whose bound is a target in the metric's own unit, the true AUC gap at most ``max_gap``, and their starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon import checks
from minmaxcon.arrays import namespace
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.metrics import FairnessMetric

from .followed import AUCGapMeasure
from .objectives import GaussNewton, ScoreObjective, named_objective

__all__ = [
    "NO_TARGET",
    "build_target_problem",
    "checked_gap",
    "checked_masks",
    "checked_start",
    "observed",
    "signed_bounds",
]

_BEFORE = "quadratic_auc"
"""What is minimised before an objective that is followed."""


def build_target_problem(
    rows: LabelledData,
    metric: FairnessMetric,
    max_gap: Any,
    *,
    objective: str | ScoreObjective = "auc",
    model: mm.Model | None = None,
    radius: float = 10.0,
    row_weight: Any = None,
    bandwidth: float = 0.1,
    seed: int = 0,
    engine: str | None = None,
    dtype: str | None = None,
    damping: float | None = None,
    warmup_steps: int = 60,
    time_limit: float | None = None,
    details: Mapping[str, Any] | None = None,
) -> mm.RefreshedProblem:
    r"""Build the problem: the best objective subject to :math:`|AUC(G_1,G_1') - AUC(G_2,G_2')| \le` ``max_gap``.

    Parameters
    ----------
    rows : LabelledData
        The data that the target is about.
    metric : FairnessMetric
        The four subsets.
    max_gap : float or array_like (R,)
        Targets, in the unit of the AUC.
    objective : {"auc", "quadratic_auc", "logistic"} or ScoreObjective
        What is minimised: one minus the AUC itself, in a smooth form; its quadratic loss; or the logistic loss.
    model : Model, optional
        Linear by default.
    radius : float
        Radius of the ball of parameters.
    row_weight : array_like (n,), optional
        Positive weights, for rows that stand for several.
    bandwidth : float
        Smoothing of the followed distributions, in standard deviations of the scores.
    seed : int
        Seed of a network's starting parameters.
    engine, dtype : str, optional
        By default NumPy in float64 for a linear model, and torch in float32 for others.
    damping : float, optional
        Of the Gauss-Newton matrix, relative to the mean of its diagonal; by default next to none for a linear model and
        30 for others. Less is faster, and lets a network learn the rows of a small group by heart.
    warmup_steps : int
        The start of an objective that is followed is found by at most so many outer steps on the quadratic loss.
    time_limit : float, optional
        Seconds that these steps may take.
    details : mapping, optional
        Kept with the problem, beside ``warmup``, the status of these steps (None where there are none).

    Returns
    -------
    RefreshedProblem
        With x = (w, the objective's own variables).

    Raises
    ------
    InvalidInput
        If a number is out of range, or weights are not positive.
    DataError
        If one of the metric's subsets, or of the classes, is empty.
    """
    gaps = checked_gap(max_gap)
    radius = checks.positive("radius", radius)
    warmup = mm.SuccessiveApproximation(iterations=checks.whole("warmup_steps", warmup_steps))
    loss = named_objective(objective)
    masks = checked_masks(rows, metric)
    positive = rows.label > 0
    weight = _checked_weight(row_weight, len(rows))
    model = mm.Linear(rows.features.shape[1]) if model is None else model
    linear = isinstance(model, mm.Linear)
    subsets = masks * weight[:, None]
    features = rows.features if linear or not hasattr(rows.features, "tocsr") else rows.features.toarray()
    data = mm.Finite(
        {"features": features, "subsets": subsets / subsets.mean(axis=0), **loss.arrays(positive, weight)},
        engine=engine or ("numpy" if linear else "torch"),
        dtype=dtype or ("float64" if linear else "float32"),
    )
    parts = [np.flatnonzero(~positive), np.flatnonzero(positive)]
    curvature = GaussNewton(model, features, parts, weight, loss.curvature(), constant=loss.quadratic, ridge=damping)
    kept = None if row_weight is None else weight
    measure = AUCGapMeasure(model, data, curvature, bandwidth=bandwidth, row_weight=kept, follow_loss=loss.followed)
    means = np.stack([np.asarray(features[part].mean(axis=0)).ravel() for part in parts])
    reach = max(float(np.max(model.score_bound(radius, means))), 1e-6)
    start = np.concatenate([model.start(seed), np.zeros(loss.variables)])
    begun: mm.Status | None = None
    if loss.followed:
        first = build_target_problem(
            rows,
            metric,
            1.0,
            objective=_BEFORE,
            model=model,
            radius=radius,
            row_weight=row_weight,
            seed=seed,
            engine=engine,
            dtype=dtype,
            damping=damping,
        )
        solution = mm.solve(first, warmup, seed=seed, time_limit=time_limit)
        start, begun = np.asarray(solution.x)[: start.size], solution.status
    observed = measure.observe(namespace(data.like).asarray(start[None], data.like))
    ball, offsets = mm.Ball(model.dimension, radius), [reach] * loss.variables
    return mm.RefreshedProblem(
        objective=observed.objective_surrogate() or loss.constraint(model, radius, reach),
        constraints=[side.with_bound(gaps) for side in observed.surrogates()],
        primal=mm.product([ball, mm.Box([-bound for bound in offsets], offsets)]) if offsets else ball,
        data=data,
        start=start,
        name=f"fair_auc: {rows.name}, {metric.name}, target gap",
        details={"metric": metric, "model": model, "max_gap": max_gap, "warmup": begun, **(details or {})},
        measure=measure,
    )


def checked_gap(max_gap: Any) -> Any:
    """Return targets as a float or an ndarray (R,).

    Raises
    ------
    InvalidInput
        If one is negative or not a finite number.
    """
    try:
        numbers = np.asarray(max_gap, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.asarray(np.nan)
    if numbers.ndim > 1 or numbers.size == 0 or not (np.isfinite(numbers).all() and (numbers >= 0).all()):
        raise mm.InvalidInput("max_gap", max_gap, "must be a number of at least 0, such as 0.02, or a list of them.")
    return float(numbers) if numbers.ndim == 0 else numbers


def checked_masks(rows: LabelledData, metric: FairnessMetric) -> Any:
    """Return the masks (n, 4) of the metric's subsets.

    Raises
    ------
    DataError
        If one of the subsets, or of the classes, is empty.
    """
    masks = metric.masks(rows.label, rows.group)
    metric.require_members(masks, rows.name)
    positive = rows.label > 0
    if positive.all() or not positive.any():
        raise mm.DataError(rows.name, "has labels of one class only; both are needed.")
    return masks


def _checked_weight(row_weight: Any, count: int) -> Any:
    if row_weight is None:
        return np.ones(count)
    remedy = f"must be positive and finite, one for each of {count} rows."
    try:
        weight = np.asarray(row_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise mm.InvalidInput("row_weight", row_weight, remedy) from None
    if weight.shape != (count,) or not (np.isfinite(weight).all() and (weight > 0).all()):
        raise mm.InvalidInput("row_weight", row_weight, remedy)
    return weight


NO_TARGET = 1.0
"""No two AUCs differ by more than this."""


def observed(problem: mm.RefreshedProblem, x: Any) -> mm.Observation:
    """Return what the problem's measure says at points x (R, d) or (d,)."""
    like = problem.data.like
    return problem.measure.observe(namespace(like).asarray(np.atleast_2d(x), like))


def signed_bounds(problem: mm.RefreshedProblem, free: Any, goals: Any) -> mm.MinMaxProblem:
    r"""Return the problem of several goals, each for the gap in the direction that it has without a target.

    A goal :math:`c \ge 0` bounds the gap on both sides, as a target does. A goal :math:`c < 0` asks for a gap of at
    least :math:`|c|` in the other direction: where held-out data show more bias than the training data, that is what
    brings their gap to 0.

    Parameters
    ----------
    problem : RefreshedProblem
        The problem.
    free : ndarray (d,)
        The solution without a target.
    goals : array_like (R,)
        The goals, one for each run.
    """
    goal = np.asarray(goals, dtype=np.float64)
    positive = bool(observed(problem, free).values[0, 0] >= 0)
    other = np.where(goal >= 0, goal, NO_TARGET)
    return problem.with_bounds(goal, other) if positive else problem.with_bounds(other, goal)


def checked_start(start: Any, model: mm.Model, train: LabelledData, loss: ScoreObjective | None) -> Any:
    """Return a start with zeros for the objective's own variables.

    Parameters
    ----------
    start : array_like
        The model's parameters, or all variables.
    model : Model
        The scoring model.
    train : LabelledData
        The training rows.
    loss : ScoreObjective or None
        The objective; None where the start is of the parameters alone.

    Raises
    ------
    InvalidInput
        If it is of another size or not finite, or gives all rows one score where the objective follows the AUC.
    """
    dimension = model.dimension + (0 if loss is None else loss.variables)
    remedy = f"must hold at most {dimension} finite numbers, the parameters first."
    try:
        given = np.asarray(start, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise mm.InvalidInput("start", start, remedy) from None
    if given.size > dimension or not np.isfinite(given).all():
        raise mm.InvalidInput("start", start, remedy)
    padded = np.concatenate([given, np.zeros(dimension - given.size)])
    if loss is not None and loss.followed and np.ptp(model.predict(padded[: model.dimension], train.features)) == 0:
        raise mm.InvalidInput("start", start, "gives all rows one score, where an AUC has no slope; leave it out.")
    return padded
