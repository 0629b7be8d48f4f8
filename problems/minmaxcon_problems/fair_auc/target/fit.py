"""The fit of a model to a target in the metric's own unit, and what the target costs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import minmaxcon as mm
from minmaxcon.checks import number
from minmaxcon.metrics import AUCEstimate
from minmaxcon_problems.fair_auc.evaluation import Judge
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.metrics import FairnessMetric

from .objectives import ScoreObjective, named_objective
from .problem import NO_TARGET, build_target_problem, checked_gap, checked_masks, checked_start, observed, signed_bounds
from .side_bounds import solve_side_bounds

__all__ = ["TargetFit", "fit_target"]

_TIGHTER = (1.0, 0.8, 0.6, 0.4, 0.2, 0.05)
"""Training targets, as shares of the target on held-out data; all are solved at once."""

_BEYOND = (-0.005, -0.01, -0.015, -0.02, -0.03, -0.045, -0.065, -0.09)
"""Signed training gaps that go to the other side, for held-out data that show more bias than the training data."""

_MARGIN = 2e-4
"""How far below a target the steps aim, where the target is not smaller than ten times this."""


@dataclass(frozen=True, eq=False, slots=True)
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
        Those of the best model found without regard to a target, on the data that the target is about.
    price : float
        AUC of that model less the AUC of this one, on the same data: the price of fairness. On held-out data it may be
        negative.
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
        Parameters from which models with a target start, in the place of those of the model without one.
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
    if time_limit is not None:
        time_limit = number("time_limit", time_limit, "must be a positive number of seconds.", above=0.0)
    goals = np.array([gap] if validation is None else [gap * share for share in _TIGHTER] + list(_BEYOND))
    model = mm.Linear(train.features.shape[1]) if model is None else model
    if start is not None:
        start = checked_start(start, model, train, named_objective(objective) if method == "following" else None)
    task = _Task(train, metric, goals, start, seed, time_limit, callbacks)
    options = {"objective": objective, "model": model, "radius": radius, "row_weight": row_weight}
    if method == "bounds":
        if iterations is not None:
            raise mm.InvalidInput("iterations", iterations, 'method "bounds" has no outer steps; leave it out.')
        solved = _by_bounds(task, options)
    else:
        solver = mm.SuccessiveApproximation(
            iterations=200 if iterations is None else iterations,
            tolerance=named_objective(objective).tolerance,
            margin=min(_MARGIN, 0.1 * gap),
        )
        solved = _by_following(task, solver, options)
    return _chosen(solved, Judge(train, validation, metric, model, row_weight, gap, demand))


@dataclass(frozen=True, eq=False, slots=True)
class _Task:
    """What either method is to do: find models for all training goals, and one without a goal."""

    train: LabelledData
    metric: FairnessMetric
    goals: Any
    start: Any
    seed: int
    time_limit: float | None
    callbacks: Sequence[Any]


@dataclass(frozen=True, eq=False, slots=True)
class _Solved:
    """The models for all training goals, the one without a goal, and their smoothed gaps where they are known."""

    goals: Any
    runs: list[mm.Solution]
    free: mm.Solution
    smoothed: Any
    interrupted: bool = False  # by Ctrl-C before the runs began
    time_limit: float | None = None


def _by_bounds(task: _Task, options: Mapping[str, Any]) -> _Solved:
    both = solve_side_bounds(
        task.train,
        task.metric,
        np.append(np.maximum(task.goals, 0.0), NO_TARGET),
        start=task.start,
        seed=task.seed,
        time_limit=task.time_limit,
        callbacks=task.callbacks,
        **options,
    )
    count = len(task.goals)
    runs = [both[j] for j in range(count)]
    return _Solved(task.goals, runs, both[count], np.full(count + 1, np.nan), time_limit=task.time_limit)


def _by_following(task: _Task, solver: mm.SuccessiveApproximation, options: Mapping[str, Any]) -> _Solved:
    began, limit = time.perf_counter(), task.time_limit

    def share(part: float) -> float | None:
        """Return a part of the time that is left: most of it is for what was asked for."""
        return None if limit is None else max(part * (limit - (time.perf_counter() - began)), 1e-3)

    problem = build_target_problem(
        task.train,
        task.metric,
        NO_TARGET,
        seed=task.seed,
        time_limit=share(0.25),
        **options,
    )
    stopped = problem.details["warmup"] is mm.Status.INTERRUPTED
    at_once = [lambda _: True]
    free = mm.solve(
        problem,
        solver,
        seed=task.seed,
        time_limit=share(0.3),
        callbacks=at_once if stopped else task.callbacks,
    )
    stopped |= free.status is mm.Status.INTERRUPTED
    both = mm.solve(
        signed_bounds(problem, free.x, task.goals),
        solver,
        seed=task.seed,
        x0=free.x if task.start is None else task.start,
        time_limit=share(1.0),
        callbacks=at_once if stopped else task.callbacks,
    )
    smoothed = np.abs(observed(problem, np.vstack([both.x, free.x])).smoothed[:, 0])
    return _Solved(task.goals, [both[j] for j in range(len(task.goals))], free, smoothed, stopped, limit)


def _chosen(solved: _Solved, judge: Judge) -> TargetFit:
    """Choose the loosest training goal whose model meets the target on the data that it is about."""
    free, gap = solved.free, judge.gap
    measured = [judge.measured(run) for run in solved.runs]
    without = judge.measured(free)
    reached = [judge.reached(found) for found in measured]
    best = next((j for j, value in enumerate(reached) if value <= gap), -1)
    if best < 0:
        best = int(np.nanargmin(reached))
    chosen, found, goal = solved.runs[best], measured[best], float(solved.goals[best])
    if judge.reached(without) <= gap and without[1].value >= found[1].value:
        chosen, found, goal, best = free, without, gap, len(solved.goals)
    status, reason = chosen.status, chosen.reason
    if reason.startswith("The time limit"):  # each solve had a part of it
        reason = f"The time limit of {solved.time_limit:g} s was reached."
    if judge.reached(found) > gap:
        stopped = solved.interrupted or status is mm.Status.INTERRUPTED
        status = mm.Status.INTERRUPTED if stopped else mm.Status.OUT_OF_REACH
        reason = judge.shortfall(found)
    elif status is mm.Status.OUT_OF_REACH:  # the training goal was missed, and what was asked for is met all the same
        status = mm.Status.BUDGET
    held_out = judge.validation is not None
    # On training data a model with a target may be the best one found of those without, too.
    unconstrained = without if held_out else max(without, found, key=lambda pair: pair[1].value)
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
