"""From the model without a target to models that meet one: the start and the bounds of all targets of one fit."""

from __future__ import annotations

from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import namespace
from minmaxcon_problems.fair_auc.labelled import LabelledData

from .objectives import ScoreObjective

__all__ = ["NO_TARGET", "checked_start", "observed", "signed_bounds"]

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
