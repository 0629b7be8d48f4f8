"""Lower bounds on the value of a level problem, from averaged duals and the full data."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.core.level import LevelProblem

__all__ = ["lower_bound", "minimize_lagrangian"]

_ROUNDING = {4: 4e-6, 8: 1e-12}
"""Allowance for rounding, relative to the size of the terms, by the bytes of a number."""


def lower_bound(problem: LevelProblem, weights: Array, scaled: Array, start: Array, *, iterations: int = 200) -> Any:
    r"""Bound :math:`H \ge D = \min_{x\in X}\Phi(x, \bar y, \bar a)` from below, exactly on finite data.

    Parameters
    ----------
    problem : LevelProblem
        The level problem of R runs, with a finite source.
    weights : array (R, k)
        :math:`\bar y`.
    scaled : array (R, p)
        :math:`\bar a`.
    start : array (R, d)
        Where a general minimisation starts.
    iterations : int
        Its largest number of passes.

    Returns
    -------
    ndarray (R,)
        At any x the Lagrangian's value plus the Frank-Wolfe term :math:`\min_{u\in X}\langle\nabla\Phi(x), u -
        x\rangle`
        is a valid bound when the Lagrangian is convex; it is tight at the minimiser, which the family gives in closed
        form or a general method approximates. Minus infinity where a function is not declared convex, nor with a
        modulus that the proximal term covers.
    """
    if problem.modulus > 0:
        return np.full(problem.runs, -np.inf)
    xp = namespace(start)
    proximal = problem.proximal
    found: list[Any] = []
    for j in range(problem.runs):
        center = None if proximal is None else np.asarray(proximal.take([j]).center).reshape(-1)
        weight = 0.0 if proximal is None else proximal.weight
        y = np.asarray(to_numpy(weights[j]), dtype=np.float64)
        a = np.asarray(to_numpy(scaled[j]), dtype=np.float64)
        found.append(problem.family.lagrangian_minimizer(y, a, problem.data, center, weight))
    if all(x is not None for x in found):
        points = xp.asarray(np.stack(found), start)
        return _frank_wolfe(problem, points, weights, scaled)
    return minimize_lagrangian(problem, weights, scaled, start, iterations=iterations)[1]


def _frank_wolfe(problem: LevelProblem, x: Array, weights: Array, scaled: Array) -> Any:
    return _bound(problem, x, *problem.lagrangian(x, weights, scaled))


def _bound(problem: LevelProblem, x: Array, value: Array, gradient: Array) -> Any:
    xp = namespace(x)
    terms = (value, problem.primal.linear_minimum(gradient)[0], -xp.dot(gradient, x))
    parts = [np.asarray(to_numpy(term), dtype=np.float64) for term in terms]
    # Sums over the data are right to some 1e-6 or 1e-13 of their size; a bound must not profit from that, all the less
    # as it is divided by the weight of the objective.
    share = _ROUNDING[x.dtype.itemsize]
    return sum(parts) - share * (1.0 + sum(np.abs(part) for part in parts))


def minimize_lagrangian(
    problem: LevelProblem,
    weights: Array,
    scaled: Array,
    start: Array,
    *,
    iterations: int = 200,
    tolerance: float = 1e-7,
) -> tuple[Array, Any]:
    r"""Minimise the Lagrangian over X by accelerated prox steps with backtracking and restarts.

    Parameters
    ----------
    problem : LevelProblem
        The level problem of R runs.
    weights, scaled : array (R, k), (R, p)
        The duals.
    start : array (R, d)
        Starting points.
    iterations : int
        Largest number of steps.
    tolerance : float
        Stops when value and Frank-Wolfe bound agree to this.

    Returns
    -------
    x : array (R, d)
        The last points.
    bound : ndarray (R,)
        The best Frank-Wolfe bound met on the way; valid wherever it was evaluated.
    """
    xp = namespace(start)
    x, momentum = start, start
    step = xp.zeros((start.shape[0], 1), start) + 1.0
    speed = xp.zeros((start.shape[0], 1), start) + 1.0
    best = np.full(problem.runs, -np.inf)
    value_x = problem.lagrangian_value(x, weights, scaled)
    for _ in range(iterations):
        value, gradient = problem.lagrangian(momentum, weights, scaled)
        best = np.maximum(best, _bound(problem, momentum, value, gradient))
        if (np.asarray(to_numpy(value_x)) - best <= tolerance).all():
            break
        moved, value_moved = momentum, value
        for _ in range(40):
            moved = problem.primal.prox(momentum, gradient, step)
            value_moved = problem.lagrangian_value(moved, weights, scaled)
            model = value + xp.dot(gradient, moved - momentum)
            model = model + problem.primal.divergence(moved, momentum) / step[:, 0]
            slack = 1e-12 * (1.0 + xp.abs(value))
            poor = (value_moved > model + slack)[:, None]
            if not bool(poor.any()):
                break
            step = xp.where(poor, 0.5 * step, step)
        worse = (value_moved > value_x)[:, None]
        faster = 0.5 * (1.0 + xp.sqrt(1.0 + 4.0 * speed * speed))
        extrapolated = moved + ((speed - 1.0) / faster) * (moved - x)
        euclidean = problem.primal.euclidean
        # A rise of the value restarts the momentum (O'Donoghue and Candes 2015); entropy takes plain steps.
        inside = problem.primal.prox(extrapolated, 0.0 * gradient, step) if euclidean else moved
        momentum = xp.where(worse, moved, inside) if euclidean else moved
        speed = xp.where(worse, 0.0 * speed + 1.0, faster)
        x, value_x = moved, value_moved
        step = 1.2 * step
    return x, best
