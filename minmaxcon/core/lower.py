"""Lower bounds on the value of a level problem, from averaged duals and the full data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.core.level import LevelProblem, expectations
from minmaxcon.core.runs import take_runs, where_runs
from minmaxcon.core.source import in_double

__all__ = ["bound_and_values", "bound_at", "closed_form", "least_point", "lower_bound", "minimize_lagrangian"]

_ROUNDING = {4: 4e-6, 8: 1e-12}
"""Allowance for rounding, relative to the size of the terms, by the bytes of a number."""

_TINY = {4: 1e-30, 8: 1e-290}
"""Sizes below which numbers lose digits, so that an allowance relative to them is none."""

_SHARE = 0.1
"""The share of the gap to ``upper`` that a general minimisation may leave."""

_PATIENCE = 20
"""Steps without a hundredth of a gap gained that is near the tolerance: then rounding leaves no more to gain."""

_GROWTH = 8.0
"""The factor by which steps grow until the first one that is too long: objectives come in any units."""

_LARGEST_STEP = 1e15
"""Where nothing curves, steps grow without end; beyond this a step already reaches the boundary of the set."""


_quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")
"""Lets values of large data overflow without a warning: what is not finite bounds nothing, and is dropped."""


@_quiet
def lower_bound(
    problem: LevelProblem,
    weights: Array,
    scaled: Array,
    start: Array,
    *,
    upper: Any = None,
    known: Any = None,
    iterations: int = 200,
    enough: Any = 0.0,
) -> Any:
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
    upper : ndarray (R,), optional
        What the bound will be compared with: the minimisation of a run ends when it can add no more than a tenth of
        the gap between the two. It goes on to the end by default, and where this is infinite.
    known : ndarray (R,), optional
        A bound that is known: the minimisation of a run ends when it cannot give a better one.
    iterations : int
        Its largest number of steps.
    enough : float or ndarray (R,)
        It ends, too, when value and bound differ by no more than this.

    Returns
    -------
    ndarray (R,)
        At any x the Lagrangian's value plus the Frank-Wolfe term :math:`\min_{u\in X}\langle\nabla\Phi(x), u -
        x\rangle`
        is a valid bound when the Lagrangian is convex; it is tight at the minimiser, which the family gives in closed
        form or a general method approximates. It is evaluated in float64 whatever the data's precision. Minus infinity
        where a function is not declared convex, nor with a modulus that the proximal term covers.
    """
    proximal = problem.proximal
    if problem.modulus > 0:
        bounds = np.full(problem.runs, -np.inf)
        if proximal is not None and np.ndim(proximal.weight) == 1:  # one that covers the modulus in some runs alone
            covered = np.flatnonzero(proximal.weight >= problem.modulus + proximal.least)
            if covered.size:
                parts = take_runs((weights, scaled, start), covered)
                ends = {name: take_runs(value, covered) for name, value in (("upper", upper), ("known", known))}
                near: Any = np.broadcast_to(enough, (problem.runs,))[covered]
                part = problem.take(covered)
                bounds[covered] = lower_bound(part, *parts, **ends, iterations=iterations, enough=near)
        return bounds
    points = closed_form(problem, weights, scaled, start)
    if points is None:
        points, bound = minimize_lagrangian(
            problem, weights, scaled, start, upper=upper, known=known, iterations=iterations, enough=enough
        )
        if start.dtype.itemsize == 8:
            return bound
    return bound_at(problem, points, weights, scaled)


def bound_at(problem: LevelProblem, points: Array, weights: Array, scaled: Array) -> Any:
    """Return the bound that the linearisation at the points (R, d) proves, in float64 whatever the data's precision."""
    return bound_and_values(problem, points, weights, scaled)[0]


@_quiet
def bound_and_values(problem: LevelProblem, points: Array, weights: Array, scaled: Array) -> tuple[Any, Any]:
    """Return :func:`bound_at` and the exact :meth:`LevelProblem.values` at the points, from one evaluation of both."""
    exact, xp = replace(problem, data=in_double(problem.data)), namespace(points)
    x, y, a = (xp.double(part) for part in (points, weights, scaled))
    found = expectations(exact.family, x, exact.data)
    values = exact.values_of(found, x)
    if problem.modulus > 0:
        return np.full(problem.runs, -np.inf), values
    value, size, slope = exact.lagrangian_of(y, a, x)(x, found)
    return np.fmax(_bound(exact, x, value, slope(), size), -np.inf), values


def least_point(problem: LevelProblem, weights: Array, scaled: Array, start: Array, *, iterations: int) -> Array:
    """Return points (R, d) near the minimisers of the Lagrangian over X, as for :func:`lower_bound`."""
    found = closed_form(problem, weights, scaled, start)
    return minimize_lagrangian(problem, weights, scaled, start, iterations=iterations)[0] if found is None else found


def closed_form(problem: LevelProblem, weights: Array, scaled: Array, like: Array) -> Array | None:
    """Return the minimisers (R, d) that the family knows, of the engine of ``like``; None where it does not."""
    proximal = problem.proximal
    center = None if proximal is None else np.broadcast_to(proximal.center, (problem.runs, problem.primal.dimension))
    y, a = (np.asarray(to_numpy(part), dtype=np.float64) for part in (weights, scaled))
    weight = 0.0 if proximal is None else proximal.weight
    found = problem.family.lagrangian_minimizer(y, a, problem.data, center, weight)
    return None if found is None else namespace(like).asarray(found, like)


def _bound(problem: LevelProblem, x: Array, value: Array, gradient: Array, size: Array) -> Any:
    """Return the minimum over X of the linearisation at x."""
    return _least(problem, *_line(x, value, gradient, size))


def _line(x: Array, value: Array, gradient: Array, size: Array) -> tuple[Array, Array, Array]:
    """Return a linearisation as a function of x: its constant (R,), its gradient (R, d), and the size of its terms."""
    xp = namespace(x)
    # A sum of products loses by each of them, also where they cancel.
    return value - xp.dot(gradient, x), gradient, size + xp.dot(xp.abs(gradient), xp.abs(x))


def _least(problem: LevelProblem, constant: Array, gradient: Array, size: Array) -> Any:
    """Return the minimum over X of a linear function, less what rounding may have added to it."""
    terms = (problem.primal.linear_minimum(gradient)[0], constant, size)
    least, constant, size = (np.asarray(to_numpy(term), dtype=np.float64) for term in terms)
    # Sums over the data are right to some 1e-6 or 1e-13 of their size; a bound must not profit from that, all the less
    # as it is divided by the weight of the objective. Sizes are those of the terms, so that units do not matter.
    bytes_ = gradient.dtype.itemsize
    return constant + least - _ROUNDING[bytes_] * (size + np.abs(least)) - _TINY[bytes_]


@_quiet
def minimize_lagrangian(
    problem: LevelProblem,
    weights: Array,
    scaled: Array,
    start: Array,
    *,
    upper: Any = None,
    known: Any = None,
    iterations: int = 200,
    tolerance: float = 1e-10,
    enough: Any = 0.0,
    over: Callable[[], bool] | None = None,
) -> tuple[Array, Any]:
    r"""Minimise the Lagrangian over X by accelerated prox steps with backtracking and restarts.

    The bound is the best of the linearisations at single points :math:`m_j`, which are tight at the minimiser of a
    smooth function, and of their averages

    .. math:: \min_{u\in X}\sum_jw_j\big(\Phi(m_j) + \langle\nabla\Phi(m_j), u - m_j\rangle\big)\Big/\sum_jw_j,

    with the weights of the acceleration, which serve functions with kinks: no single gradient vanishes at a kink, and
    an average may.

    A step s is short enough where :math:`\Phi(m^+) \le \Phi(m) + \langle\nabla\Phi(m), m^+ - m\rangle + D(m^+, m)/s`
    or, where rounding hides that,
    :math:`\langle\nabla\Phi(m^+) - \nabla\Phi(m), m^+ - m\rangle \le 2D(m^+, m)/s`, without which steps would grow
    until they overshoot.

    Parameters
    ----------
    problem : LevelProblem
        The level problem of R runs.
    weights, scaled : array (R, k), (R, p)
        The duals.
    start : array (R, d)
        Starting points.
    upper, known : ndarray (R,), optional
        Values that end the minimisation of a run, see :func:`lower_bound`.
    iterations : int
        Largest number of steps.
    tolerance : float
        A run ends when value and Frank-Wolfe bound agree to this share of the sizes of the value's terms.
    enough : float or ndarray (R,)
        Or when they differ by no more than this.
    over : callable, optional
        Tells after each step whether all runs are to end, as no time is left.

    Returns
    -------
    x : array (R, d)
        The points at which the bounds were met.
    bound : ndarray (R,)
        The best Frank-Wolfe bound met on the way; valid wherever it was evaluated.
    """
    xp = namespace(start)
    x, momentum, points = start, start, start
    step = xp.zeros((start.shape[0], 1), start) + 1.0
    speed, growth = 0.0 * step + 1.0, 0.0 * step + _GROWTH
    best, active = np.full(problem.runs, -np.inf), np.ones(problem.runs, dtype=bool)
    rounding = 0.25 * _ROUNDING[start.dtype.itemsize]
    at = problem.lagrangian_of(weights, scaled, x)
    value_x, size_x, slope = at(x)
    highest, total = best, 0.0 * speed
    gap, idle = np.full(problem.runs, np.inf), np.zeros(problem.runs, dtype=int)
    lines = [0.0 * value_x, 0.0 * x, 0.0 * value_x]
    for _ in range(iterations):
        if momentum is x:
            value, gradient, size = value_x, slope(), size_x
        else:
            value, size, slope = at(momentum)
            gradient = slope()
        bound = _bound(problem, momentum, value, gradient, size)
        total = total + speed
        share = speed / total
        for i, part in enumerate(_line(momentum, value, gradient, size)):
            mean = lines[i]
            lines[i] = mean + (share if part.ndim > 1 else share[:, 0]) * (part - mean)
        # A run that has ended keeps its bound, so that it is the one of the run alone.
        points, highest = where_runs(active & (bound > highest), (momentum, bound), (points, highest))
        best = np.where(active, np.fmax(np.fmax(best, highest), _least(problem, *lines)), best)
        least = np.fmax(tolerance * np.asarray(to_numpy(size)), enough)
        reached = np.asarray(to_numpy(value_x))
        gained = reached - best < 0.99 * gap
        gap, idle = np.where(gained, reached - best, gap), np.where(gained, 0, idle + 1)
        stuck = (idle >= _PATIENCE) & (gap <= 100.0 * least)
        active = active & ~stuck & ~_enough(reached, best, upper, known, least)
        if not active.any() or (over is not None and over()):
            break
        moved, value_moved, size_moved, bend = momentum, value, size, size
        for _ in range(40):
            moved = problem.primal.prox(momentum, gradient, step)
            value_moved, size_moved, slope = at(moved)
            move = moved - momentum
            # D is at least half the squared norm, also where it is a difference of which rounding leaves nothing.
            apart = xp.maximum(2.0 * problem.primal.divergence(moved, momentum), problem.primal.squared_norm(move))
            bend = apart / step[:, 0]
            poor = (value_moved > value + xp.dot(gradient, move) + 0.5 * bend + rounding * size)[:, None]
            if not bool(poor.any()):
                break
            step, growth = xp.where(poor, 0.5 * step, step), xp.where(poor, 0.0 * step + 1.2, growth)
        worse = value_moved > value_x
        # Where rounding hides curvature and descent in the values, gradients show them (Becker, Candes and Grant 2011).
        hidden = bend <= 1e3 * rounding * size
        if bool(hidden.any()):
            poor = (hidden & (xp.dot(slope() - gradient, moved - momentum) > bend))[:, None]
            step, growth = xp.where(poor, 0.5 * step, step), xp.where(poor, 0.0 * step + 1.2, growth)
            worse = xp.where(hidden, xp.dot(momentum - moved, moved - x) > 0, worse)
        worse = worse[:, None]
        faster = 0.5 * (1.0 + xp.sqrt(1.0 + 4.0 * speed * speed))
        extrapolated = moved + ((speed - 1.0) / faster) * (moved - x)
        euclidean = problem.primal.euclidean
        # A rise of the value restarts the momentum (O'Donoghue and Candes 2015); entropy takes plain steps.
        inside = problem.primal.prox(extrapolated, 0.0 * gradient, step) if euclidean else moved
        momentum = xp.where(worse, moved, inside) if euclidean else moved
        speed = xp.where(worse, 0.0 * speed + 1.0, faster)
        x, value_x, size_x = moved, value_moved, size_moved
        step = xp.minimum(growth * step, 0.0 * step + _LARGEST_STEP)
    return points, best


def _enough(value: Any, bound: Any, upper: Any, known: Any, least: Any) -> Any:
    """Tell where the least value, which lies between ``bound`` and ``value`` (R,), is known well enough."""
    end = value - bound <= least
    if upper is not None:
        with np.errstate(invalid="ignore"):
            end |= np.isfinite(upper) & (value - bound <= _SHARE * (upper - bound))
    return end if known is None else end | (value <= known)
