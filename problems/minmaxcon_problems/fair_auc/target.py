"""Fit a model to a target in the metric's own unit, and say what the target costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import minmaxcon as mm
from minmaxcon.data import LabelledData
from minmaxcon.metrics import AUCEstimate

from .measured import Judge
from .metrics import FairnessMetric
from .objectives import ScoreObjective, named_objective
from .side_bounds import solve_side_bounds
from .target_path import NO_TARGET, observed, signed_bounds
from .target_problem import build_target_problem, checked_gap, checked_masks

__all__ = ["TargetFit", "fit_target"]

_TIGHTER = (1.0, 0.8, 0.6, 0.4, 0.2, 0.05)
"""Training targets, as shares of the target on held-out data; all are solved at once."""

_BEYOND = (-0.005, -0.01, -0.015, -0.02, -0.03, -0.045, -0.065, -0.09)
"""Signed training gaps that go to the other side, for held-out data that show more bias than the training data."""

_MARGIN = 2e-4
"""How far below a target the steps aim, where the target is not smaller than ten times this."""


@dataclass(frozen=True, slots=True)
class TargetFit:
    """A model and what is known of it.

    Attributes
    ----------
    parameters : ndarray (d,)
        Of the model, in the units of the features given.
    model : Model
        The scoring model.
    status : Status
        ``SOLVED`` (the target is met at a nearly stationary point), ``BUDGET`` (met, and stopped early) or
        ``OUT_OF_REACH`` (not met: the fairest model found is returned) or ``INTERRUPTED`` (not met before Ctrl-C).
    reason : str
        The evidence.
    max_gap : float
        The target.
    target : float
        The target that the training data were held to; smaller than ``max_gap`` where held-out data asked for it, and
        negative where they asked for a gap in the other direction.
    train_gap, train_auc : AUCEstimate
        True gap and AUC on the training data, with 95% DeLong intervals.
    validation_gap, validation_auc : AUCEstimate or None
        Likewise on held-out data.
    unconstrained_auc, unconstrained_gap : AUCEstimate
        Those of the model without a target, on the data that the target is about.
    price : float
        AUC of the model without a target less that of this model, on the same data: the price of fairness.
    surrogate : mapping
        The surrogates' values on the training data: ``objective``, and ``gap``, the smoothed one.
    solution : Solution
        The solve that the model comes from.
    """

    parameters: Any
    model: mm.Model
    status: mm.Status
    reason: str
    max_gap: float
    target: float
    train_gap: AUCEstimate
    train_auc: AUCEstimate
    validation_gap: AUCEstimate | None
    validation_auc: AUCEstimate | None
    unconstrained_auc: AUCEstimate
    unconstrained_gap: AUCEstimate
    price: float
    surrogate: dict[str, float]
    solution: mm.Solution


def fit_target(
    train: LabelledData,
    metric: FairnessMetric,
    max_gap: float,
    *,
    validation: LabelledData | None = None,
    demand: Literal["value", "upper"] = "value",
    method: Literal["following", "bounds"] = "following",
    objective: str | ScoreObjective = "auc",
    model: mm.Model | None = None,
    radius: float = 10.0,
    row_weight: Any = None,
    start: Any = None,
    seed: int = 0,
    iterations: int | None = None,
    time_limit: float | None = None,
    callbacks: Sequence[Any] = (),
) -> TargetFit:
    r"""Return the model of best AUC whose true gap is at most ``max_gap``.

    Parameters
    ----------
    train : LabelledData
        The data to fit.
    metric : FairnessMetric
        The fairness metric.
    max_gap : float
        Largest true gap: on ``train``, or on ``validation`` where that is given.
    validation : LabelledData, optional
        Held-out data. The training target is tightened until the gap on them meets ``max_gap``.
    demand : {"value", "upper"}
        What must meet it there: the gap itself, or the upper end of its 95% interval.
    method : {"following", "bounds"}
        Surrogates that follow the true AUC; or one bound for each side of the quadratic surrogate, many pairs of bounds
        in one solve (linear models, not the logistic loss).
    objective : {"auc", "quadratic_auc", "logistic"} or ScoreObjective
        What is best subject to the target: the AUC itself, in a smooth form; its quadratic loss; the logistic loss.
    model : Model, optional
        Linear by default.
    radius : float
        Radius of the ball of parameters.
    row_weight : array_like (n,), optional
        Positive weights, for training rows that stand for several.
    start : array_like (d,), optional
        Parameters to start from.
    seed : int
        Seed of a network's starting parameters and of all draws.
    iterations : int, optional
        Largest number of outer steps, 200 by default; the method "bounds" has none.
    time_limit : float, optional
        Seconds.
    callbacks : sequence of callable
        As for :func:`minmaxcon.solve`.

    Returns
    -------
    TargetFit
        The model; where the target is out of reach, the fairest one found, and a status that says so.

    Raises
    ------
    InvalidInput, DataError, UnknownName
        Whatever cannot be used, named with the remedy.
    """
    if np.ndim(max_gap) != 0:
        raise mm.InvalidInput("max_gap", max_gap, "must be one number; make one fit for each target.")
    gap = float(checked_gap(max_gap))
    if demand not in ("value", "upper"):
        raise mm.InvalidInput("demand", demand, 'use "value" or "upper".')
    if method not in ("following", "bounds"):
        raise mm.InvalidInput("method", method, 'use "following" or "bounds".')
    if validation is not None:
        columns, expected = validation.features.shape[1], train.features.shape[1]
        if columns != expected:
            raise mm.InvalidInput("validation", f"{columns} features", f"must have the {expected} of train.")
        checked_masks(validation, metric)
    goals = np.array([gap] if validation is None else [gap * share for share in _TIGHTER] + list(_BEYOND))
    model = mm.Linear(train.features.shape[1]) if model is None else model
    options = {"objective": objective, "model": model, "radius": radius, "row_weight": row_weight, "seed": seed}
    limits = {"start": start, "time_limit": time_limit, "callbacks": callbacks}
    if method == "bounds":
        if iterations is not None:
            raise mm.InvalidInput("iterations", iterations, 'method "bounds" has no outer steps; leave it out.')
        solved = _by_bounds(train, metric, goals, **options, **limits)
    else:
        solver = mm.SuccessiveApproximation(
            iterations=200 if iterations is None else iterations,
            tolerance=named_objective(objective).tolerance,
            margin=min(_MARGIN, 0.1 * gap),
        )
        solved = _by_following(build_target_problem(train, metric, NO_TARGET, **options), solver, goals, seed, **limits)
    return _chosen(solved, Judge(train, validation, metric, model, row_weight, gap, demand))


@dataclass(frozen=True, slots=True)
class _Solved:
    """The models for all training goals, the one without a goal, and their smoothed gaps where they are known."""

    goals: Any
    runs: list[mm.Solution]
    free: mm.Solution
    smoothed: Any


def _by_bounds(train: LabelledData, metric: FairnessMetric, goals: Any, *, start: Any, **options: Any) -> _Solved:
    start = None if start is None else _padded(start, options["model"].dimension)
    bounds = np.append(np.maximum(goals, 0.0), NO_TARGET)
    both = solve_side_bounds(train, metric, bounds, start=start, **options)
    runs = [both[j] for j in range(len(goals))]
    return _Solved(goals, runs, both[len(goals)], np.full(len(goals) + 1, np.nan))


def _by_following(
    problem: mm.RefreshedProblem,
    solver: mm.SuccessiveApproximation,
    goals: Any,
    seed: int,
    *,
    start: Any,
    time_limit: float | None,
    callbacks: Sequence[Any],
) -> _Solved:
    x0 = None if start is None else _padded(start, problem.primal.dimension)
    began = time.perf_counter()
    third = None if time_limit is None else time_limit / 3.0  # most of the time is for what was asked for
    free = mm.solve(problem, solver, seed=seed, x0=x0, time_limit=third, callbacks=callbacks)
    left = None if time_limit is None else max(time_limit - (time.perf_counter() - began), 1e-3)
    sided = signed_bounds(problem, free.x, goals)
    after = [lambda _: True] if free.status is mm.Status.INTERRUPTED else callbacks
    both = mm.solve(sided, solver, seed=seed, x0=free.x, time_limit=left, callbacks=after)
    smoothed = np.abs(observed(problem, np.vstack([both.x, free.x])).smoothed[:, 0])
    return _Solved(goals, [both[j] for j in range(len(goals))], free, smoothed)


def _chosen(solved: _Solved, judge: Judge) -> TargetFit:
    """Choose the loosest training goal whose model meets the target on the data that it is about."""
    free, gap = solved.free, judge.gap
    unconstrained = judge.measured(free)
    measured = [judge.measured(run) for run in solved.runs]
    reached = [judge.reached(found) for found in measured]
    best = next((j for j, value in enumerate(reached) if value <= gap), -1)
    if best < 0:
        best = int(np.nanargmin(reached))
    chosen, found, goal = solved.runs[best], measured[best], float(solved.goals[best])
    if judge.reached(unconstrained) <= gap and unconstrained[1].value >= found[1].value:
        chosen, found, goal, best = free, unconstrained, gap, len(solved.goals)
    status, reason = chosen.status, chosen.reason
    if judge.reached(found) > gap:
        status = mm.Status.INTERRUPTED if mm.Status.INTERRUPTED in (free.status, status) else mm.Status.OUT_OF_REACH
        reason = judge.shortfall(found)
    elif status is mm.Status.OUT_OF_REACH:  # the training goal was missed, and what was asked for is met all the same
        status = mm.Status.BUDGET
    held_out = judge.validation is not None
    train_gap, train_auc = judge.on_train(chosen) if held_out else found
    return TargetFit(
        parameters=judge.parameters(chosen),
        model=judge.model,
        status=status,
        reason=reason,
        max_gap=gap,
        target=goal,
        train_gap=train_gap,
        train_auc=train_auc,
        validation_gap=found[0] if held_out else None,
        validation_auc=found[1] if held_out else None,
        unconstrained_auc=unconstrained[1],
        unconstrained_gap=unconstrained[0],
        price=unconstrained[1].value - found[1].value,
        surrogate={"objective": float(chosen.objective), "gap": float(solved.smoothed[best])},
        solution=chosen,
    )


def _padded(start: Any, dimension: int) -> Any:
    remedy = f"must hold at most {dimension} finite numbers, the parameters first."
    try:
        given = np.asarray(start, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise mm.InvalidInput("start", start, remedy) from None
    if given.size > dimension or not np.isfinite(given).all():
        raise mm.InvalidInput("start", start, remedy)
    return np.concatenate([given, np.zeros(dimension - given.size)])
