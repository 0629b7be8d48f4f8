"""Exact values of points, and bringing a nearly feasible one back to feasibility along a segment."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.core import MinMaxProblem
from minmaxcon.core.runs import choose
from minmaxcon.errors import InvalidInput

__all__ = ["first_values", "measure", "pull_back"]


def measure(problem: MinMaxProblem, x: Array) -> tuple[Any, Any]:
    """Return the exact objective (R,) and constraints :math:`f_i - b_i` (R, m) at x (R, d), on finite data."""
    runs = int(x.shape[0])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # callers look whether values are finite
        values = problem.at_level(np.zeros(runs)).values(x)
    return values[:, 0], values[:, 1:] - problem.bounds(runs)


def first_values(problem: MinMaxProblem, x: Array) -> tuple[Array, Any, Any]:
    """Return the starting points, refined, with their objective (R,) and :math:`f_i - b_i` (R, m).

    On streams nothing exact is known, and all values are infinite.

    Raises
    ------
    InvalidInput
        If an exact value is not finite; the function is named.
    """
    runs = int(x.shape[0])
    if problem.data.size is None:
        return x, np.full(runs, np.inf), np.full((runs, len(problem.constraints)), np.inf)
    x = problem.family.refine(x, problem.data)
    objective, constraints = measure(problem, x)
    finite = np.isfinite(np.concatenate([objective[:, None], constraints], axis=1))
    if not finite.all():
        run, function = np.argwhere(~finite)[0]
        name = (problem.objective, *problem.constraints)[function].name
        remedy = f"{name!r} is not finite there; give the problem a start, or the solve an x0, where every function is."
        raise InvalidInput("start", to_numpy(x)[run], remedy)
    return x, objective, constraints


def pull_back(
    problem: MinMaxProblem, anchor: Array, slack: Any, x: Array, violation: Any, *, passes: int = 6
) -> tuple[Array, Any, Any]:
    r"""Find the feasible point farthest along the segment from a strictly feasible anchor to x.

    The largest violation :math:`\phi(t)` at :math:`x_a + t(x - x_a)` is convex in t for convex constraints, negative
    at 0 and positive at 1, so the root of each chord is feasible, and the roots increase to the root of :math:`\phi`.

    Parameters
    ----------
    problem : MinMaxProblem
        The problem, on finite data.
    anchor : array (R, d)
        Strictly feasible points.
    slack : ndarray (R,)
        Their largest :math:`f_i - b_i`, negative.
    x : array (R, d)
        The points to be brought back.
    violation : ndarray (R,)
        Their largest :math:`f_i - b_i`, positive.
    passes : int
        Exact evaluations.

    Returns
    -------
    x : array (R, d)
        Points that were evaluated and found feasible; the anchor where none was.
    objective : ndarray (R,)
        Their objectives.
    constraints : ndarray (R, m)
        Their :math:`f_i - b_i`.
    """
    xp = namespace(x)
    low, low_value = np.zeros(len(slack)), np.asarray(slack, dtype=float)
    high, high_value = np.ones(len(slack)), np.asarray(violation, dtype=float)
    best = anchor
    objective, constraints = measure(problem, anchor)
    for _ in range(passes):
        t = low + (high - low) * (-low_value) / np.maximum(high_value - low_value, 1e-300)
        t = low + (t - low) * (1.0 - 1e-9)  # the chord's root itself can be infeasible by rounding
        point = anchor + xp.asarray(t[:, None], x) * (x - anchor)
        found_objective, found = measure(problem, point)
        value = found.max(axis=1)
        good = value <= 0
        best = choose(good, point, best)
        objective = np.where(good, found_objective, objective)
        constraints = np.where(good[:, None], found, constraints)
        low, low_value = np.where(good, t, low), np.where(good, value, low_value)
        high, high_value = np.where(good, high, t), np.where(good, high_value, value)
        if (-low_value <= 1e-10).all():
            break
    return best, objective, constraints
