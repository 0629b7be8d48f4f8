"""Whether bounds and values contradict each other, which proves that a gradient or the declared convexity is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace
from minmaxcon.core import MinMaxProblem, Position
from minmaxcon.solvers.repair import measure

__all__ = ["contradictions"]

_SLACK = {4: 1e-3, 8: 1e-6}
"""By how much a bound may exceed a value by rounding, relative to the values' size, by the bytes of a number. A bound
itself already allows for the rounding of what it is made of."""

_PROBES = 16
"""Points drawn from the set at which the claim that no point is feasible is tried before it is made."""

_CAUSE = "a gradient or the declared convexity is wrong; run `minmaxcon check`."


def contradictions(
    problem: MinMaxProblem,
    x: Array,
    objective: Any,
    constraints: Any,
    lower: Any,
    *,
    bound: Any,
    upper: Any,
    searching: bool,
    position: Position,
) -> list[str | None]:
    """Say of each run which lower bound exceeds a value that it should bound; None where none does.

    Infinite values, and those that are no numbers, contradict nothing.

    Parameters
    ----------
    problem : MinMaxProblem
        The problem, on finite data.
    x : array (R, d)
        The best points.
    objective, constraints : ndarray (R,), (R, m)
        Their exact objectives and :math:`f_i - b_i`.
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
        upper = np.fmin(upper, _probed(problem, x, position))
    what = "the least violation" if searching else "the value of the level problem"
    slack, sizes = _SLACK[x.dtype.itemsize], np.abs(problem.bounds(len(lower))).max(axis=1)
    found: list[str | None] = []
    for i, size in enumerate(sizes):
        violation, value = constraints[i].max(), objective[i]
        seen = np.fmin(upper[i], violation) if searching else upper[i]
        scale = 1.0 + size + abs(seen) + (0.0 if searching else abs(value))
        if bound[i] - seen > slack * scale:
            text = f"the lower bound {bound[i]:.6g} on {what} exceeds {seen:.6g}, the value at a point; {_CAUSE}"
        elif violation <= 0 and lower[i] - value > slack * (1.0 + abs(value)):
            text = f"the lower bound {lower[i]:.6g} exceeds {value:.6g}, the value at a feasible point; {_CAUSE}"
        else:
            found.append(None)
            continue
        found.append(text)
    return found


def _probed(problem: MinMaxProblem, x: Array, position: Position) -> Any:
    """Return the least violation (R,) at some points of X, the problem's start and the set's centre among them."""
    drawn = namespace(x).asarray(problem.primal.sample(position.rng(), _PROBES), x)
    points = [problem.start_point(1)[0], np.asarray(problem.primal.center), *drawn]
    values = [measure(problem, namespace(x).asarray(point, x) + 0.0 * x)[1].max(axis=1) for point in points]
    return np.fmin.reduce(values)
