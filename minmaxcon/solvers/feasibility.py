"""Feasible points near infeasible ones, and lower bounds that contradict values."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace
from minmaxcon.core import MinMaxProblem, Points, Position
from minmaxcon.core.runs import where_runs

__all__ = ["contradictions", "pull_back"]

_SLACK = {4: 1e-3, 8: 1e-6}
"""By how much a bound may exceed a value by rounding, relative to the values' size, by the bytes of a number. A bound
itself already allows for the rounding of what it is made of."""

_PROBES = 16
"""Points drawn from the set at which the claim that no point is feasible is tried before it is made."""

_CAUSE = "a gradient or the declared convexity is wrong; run `minmaxcon check`."


def pull_back(
    problem: MinMaxProblem, interior: Points, x: Array, violation: Any, *, passes: int = 6, near: float = 1e-6
) -> Points:
    r"""Find the feasible point farthest along the segment from a strictly feasible point to x.

    The largest violation :math:`\phi(t)` at :math:`x_a + t(x - x_a)` is convex in t for convex constraints, negative
    at 0 and positive at 1, so the root of each chord is feasible, and the roots increase to the root of :math:`\phi`.
    That one is not beyond the root of the line through 0 and the last chord's root, and where the two are near each
    other the search ends.

    Parameters
    ----------
    problem : MinMaxProblem
        The problem, on finite data.
    interior : Points
        Strictly feasible points :math:`x_a`, measured.
    x : array (R, d)
        The points to be brought back.
    violation : ndarray (R,)
        Their largest :math:`f_i - b_i`, positive.
    passes : int
        Exact evaluations.
    near : float
        Share of the segment up to which points of it count as one.

    Returns
    -------
    Points
        Points that were evaluated and found feasible; the first ones where none was.
    """
    xp, slack = namespace(x), np.minimum(np.asarray(interior.violation, dtype=float), -1e-300)
    low, low_value = np.zeros(len(slack)), slack
    high, high_value = np.ones(len(slack)), np.asarray(violation, dtype=float)
    best = interior
    for _ in range(passes):
        t = low + (high - low) * (-low_value) / np.maximum(high_value - low_value, 1e-300)
        t = low + (t - low) * (1.0 - 1e-9)  # the chord's root itself can be infeasible by rounding
        found = Points.measured(problem, interior.x + xp.asarray(t[:, None], x) * (x - interior.x))
        value = found.violation
        best = where_runs(value <= 0, found, best)
        low, low_value = where_runs(value <= 0, (t, value), (low, low_value))
        high, high_value = where_runs(value <= 0, (high, high_value), (t, value))
        rise = np.minimum(slack - low_value, -1e-300)  # of the line through 0 and the chord's root, as far as that
        last = np.where(low > 0, np.minimum(low * slack / rise, high), high)
        if (last - low <= near).all():
            break
    return best


def contradictions(
    problem: MinMaxProblem, best: Points, lower: Any, *, bound: Any, upper: Any, searching: bool, position: Position
) -> list[str | None]:
    """Say of each run which lower bound exceeds a value that it should bound; None where none does.

    Infinite values, and those that are no numbers, contradict nothing.

    Parameters
    ----------
    problem : MinMaxProblem
        The problem, on finite data.
    best : Points
        The best points.
    lower : ndarray (R,)
        Lower bounds on the optimal values.
    bound, upper : ndarray (R,)
        A lower bound on the least violation (``searching``) or on the value of a level problem, and an exact value of
        the same function at some points.
    searching : bool
        Which of the two. A positive least violation, which says that no point is feasible, is tried at points of X.
    position : Position
        Whose random numbers draw those points.
    """
    if searching and (bound > 0).any():
        upper = np.fmin(upper, _probed(problem, best.x, position))
    what = "the least violation" if searching else "the value of the level problem"
    slack, sizes = _SLACK[best.x.dtype.itemsize], np.abs(problem.bounds(len(lower))).max(axis=1)
    found: list[str | None] = []
    for i, (size, violation, value) in enumerate(zip(sizes, best.violation, best.objective, strict=True)):
        seen = np.fmin(upper[i], violation) if searching else upper[i]
        scale = 1.0 + size + abs(seen) + (0.0 if searching else abs(value))
        text = None
        if bound[i] - seen > slack * scale:
            text = f"the lower bound {bound[i]:.6g} on {what} exceeds {seen:.6g}, the value at a point; {_CAUSE}"
        elif violation <= 0 and lower[i] - value > slack * (1.0 + abs(value)):
            text = f"the lower bound {lower[i]:.6g} exceeds {value:.6g}, the value at a feasible point; {_CAUSE}"
        found.append(text)
    return found


def _probed(problem: MinMaxProblem, x: Array, position: Position) -> Any:
    """Return the least violation (R,) at some points of X, the problem's start and the set's centre among them."""
    drawn = namespace(x).asarray(problem.primal.sample(position.rng(), _PROBES), x)
    points = [problem.start_point(1)[0], np.asarray(problem.primal.center), *drawn]
    values = [Points.measured(problem, namespace(x).asarray(point, x) + 0.0 * x).violation for point in points]
    return np.fmin.reduce(values)
