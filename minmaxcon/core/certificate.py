r"""Optimality that is proved: a gap relative to :math:`r_0 - f^*`, or to what the objective varies by nearby."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace
from minmaxcon.core.problem import MinMaxProblem
from minmaxcon.core.solver import Points
from minmaxcon.core.source import Position

__all__ = ["LEAST_SPAN", "nearby_variation", "optimality"]

LEAST_SPAN = 1e-3
"""How far towards other points of X the objective is looked at for what it varies by, as a share of the way."""

_DRAWN = 8
"""Points of X towards which it is looked at."""

_ROUNDING = 1e-11
"""Gaps at or below this share of the objective's own size are those of rounding."""


def nearby_variation(problem: MinMaxProblem, x: Array, share: float, position: Position) -> Any:
    r"""Return what the objective varies by near x: :math:`\max_j|f_0(x + s(u_j - x)) - f_0(x)|`.

    It has the objective's unit, and a constant added to the objective leaves it alone. It takes nine exact passes.

    Parameters
    ----------
    problem : MinMaxProblem
        The problem, on finite data.
    x : array (R, d)
        Points of X.
    share : float
        s, between 0 and 1.
    position : Position
        Whose random numbers draw the eight points :math:`u_j` of X.

    Returns
    -------
    ndarray (R,)
        The largest of the differences that are finite; 0 where none is.
    """
    here, found = Points.measured(problem, x).objective, np.zeros(int(x.shape[0]))
    for u in namespace(x).asarray(problem.primal.sample(position.rng(), _DRAWN), x):
        there = Points.measured(problem, x + share * (u - x)).objective
        with np.errstate(invalid="ignore"):
            difference = np.abs(there - here)
        found = np.maximum(found, np.where(np.isfinite(difference), difference, 0.0))
    return found


def optimality(objective: float, lower: float, first: float, nearby: float) -> tuple[float, float]:
    r"""Return the gap and the yardstick with which a tolerance on it is multiplied.

    With :math:`f^* \in [l, u]`, u the objective of a feasible point, relative optimality is at most

    .. math:: \frac{u - f^*}{r_0 - f^*} \le \frac{u - l}{r_0 - l},

    as the left side falls in :math:`f^*`. So :math:`r_0 - l` is a yardstick; where the start is nearly optimal it
    vanishes, and what the objective varies by nearby takes over. Both have the objective's unit.

    Parameters
    ----------
    objective, lower : float
        u and l.
    first : float
        :math:`r_0`.
    nearby : float
        What the objective varies by near the start, see :func:`nearby_variation`; 0 where it is not known.

    Returns
    -------
    gap : float
        :math:`u - l`; 0 where it is no more than rounding.
    span : float
        :math:`\max(r_0 - l, \text{nearby})`.
    """
    gap = objective - lower
    return (0.0 if gap <= _ROUNDING * abs(objective) else gap), max(first - lower, nearby)
