r"""What first-order claims rest on, and their checks: a near proximal point, and multipliers of linear models.

**Near stationarity.** With :math:`\hat\rho` above the modulus :math:`\rho` the proximal problem of x is strongly
convex. Multipliers prove :math:`D \le` its optimal value, and a point u of it with the objective U lies no farther than
:math:`\sqrt{2(U - D)/(\hat\rho - \rho)}` from its solution :math:`\hat x`. So

.. math:: |\hat x - x| \le |u - x| + \sqrt{2(U - D)/(\hat\rho - \rho)}.

**First-order optimality of a true measure.** With gradients :math:`g_i` of the smooth forms at x, :math:`n_k` of
the inequalities of the set, slacks :math:`s \ge 0` of both and a model B of the curvature, weak duality says for any
multipliers :math:`\lambda \ge 0`

.. math:: -\min_d\{\langle g_0, d\rangle + \tfrac12\langle d, Bd\rangle : \langle g_i, d\rangle \le s_i\}
    \le \tfrac12\Big|g_0 + \sum_i\lambda_i g_i\Big|^2_{B^{-1}} + \langle\lambda, s\rangle,

so that the linear models allow the objective to fall by no more than this: one number for stationarity and
complementarity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.checks import instance, instances
from minmaxcon.core.constraint import family_of
from minmaxcon.core.evidence import Proved, proved, real_vector
from minmaxcon.core.linearisation import exact_gradients
from minmaxcon.core.problem import MinMaxProblem, solution_point
from minmaxcon.core.refreshed import RefreshedProblem
from minmaxcon.core.solver import Points
from minmaxcon.errors import InvalidInput

__all__ = [
    "AllowedFall",
    "Linearised",
    "Neighbour",
    "ProvedDistance",
    "allowed_fall",
    "by_the_weight",
    "distance_of",
    "proved_distance",
]

_ROUNDED = 1e-9
"""Relative difference of values, and of bounds beside them, that is one of rounding."""

_MOST_ROOM = 0.02
"""The largest cost, relative to the objective, of the room that a target leaves. A true measure jumps from row to row,
so that the best point may lie a jump away from its target."""

_WEAKER = 0.05
"""The gap of a distance that is proved again may be larger by this share: its lower bound is found anew."""


@dataclass(frozen=True, eq=False, slots=True)
class Neighbour:
    r"""What the claim of R runs rests on that their proximal points are near, beside multipliers of these problems.

    Attributes
    ----------
    weight : ndarray (R,)
        :math:`\hat\rho`; NaN of runs that claim nothing of the kind.
    point : ndarray (R, d)
        u, a feasible point of the proximal problem.
    distance : ndarray (R,)
        The claimed bound on :math:`|\hat x - x|`, in units of x.

    Examples
    --------
    >>> from minmaxcon.core.first_order import Neighbour
    >>> Neighbour.none(2, 3).point.shape
    (2, 3)
    """

    weight: Any
    point: Any
    distance: Any

    @classmethod
    def none(cls, runs: int, dimension: int) -> Neighbour:
        """Return that of runs that claim nothing."""
        return cls(np.full(runs, np.nan), np.full((runs, dimension), np.nan), np.full(runs, np.nan))


@dataclass(frozen=True, eq=False, slots=True)
class Linearised:
    r"""What the claim of R runs rests on that first-order optimality allows no larger fall of the objective.

    Attributes
    ----------
    multipliers : ndarray (R, m + k)
        :math:`\lambda` of the m constraints and of the set's k inequalities; NaN of runs that claim nothing.
    fall : ndarray (R,)
        By how much, at most, in the objective's unit.

    Examples
    --------
    >>> from minmaxcon.core.first_order import Linearised
    >>> Linearised.none(2, 3).multipliers.shape
    (2, 3)
    """

    multipliers: Any
    fall: Any

    @classmethod
    def none(cls, runs: int, functions: int) -> Linearised:
        """Return that of runs that claim nothing."""
        return cls(np.full((runs, functions), np.nan), np.full(runs, np.nan))


@dataclass(frozen=True, slots=True)
class ProvedDistance:
    r"""What is proved of the distance of a point from its proximal point.

    Attributes
    ----------
    distance : float
        A bound on it; infinite where nothing is proved.
    fault : str
        Why nothing is; empty where something is.
    cut : bool
        Whether the search for the lower bound ended as no time was left.
    step : float
        :math:`|u - x|`.
    unit : float
        :math:`2(1 + |U|)/(\hat\rho - \rho)`, by which a change of the bound, relative to its size, changes the square.
    """

    distance: float
    fault: str
    cut: bool = False
    step: float = 0.0
    unit: float = 0.0

    def confirms(self, distance: float) -> bool:
        """Whether this proves the ``distance`` that is claimed, but for what a bound that is found anew may be weaker.

        That is a share of the gap, as of any lower bound, and rounding of the values, of which the root counts.
        """
        gap = max(distance - self.step, 0.0) ** 2
        allowed = min(distance, self.step) + math.sqrt((1.0 + _WEAKER) * gap + _ROUNDED * self.unit)
        return not self.fault and self.distance <= allowed * (1.0 + _ROUNDED)


def distance_of(step: float, upper: float, lower: float, modulus: float) -> float:
    r"""Return :math:`|u - x| + \sqrt{2(U - D)/(\hat\rho - \rho)}`; infinite where the last is not positive."""
    if not (modulus > 0 and math.isfinite(upper) and math.isfinite(lower)):
        return math.inf
    return step + math.sqrt(2.0 * max(upper - lower, 0.0) / modulus)


def by_the_weight(distance: Any, weight: Any, modulus: float) -> Any:
    r"""Return distances of proximal points, longer by :math:`\hat\rho/\max(1, 2\rho)` where that is above 1.

    The gradient of the Moreau envelope has the length :math:`\hat\rho|\hat x - x|`. A heavy proximal term keeps the
    proximal point of any x near, so that a distance alone would say nothing.
    """
    return distance * np.maximum(weight / max(1.0, 2.0 * modulus), 1.0)


def proved_distance(
    problem: MinMaxProblem,
    x: Any,
    weights: Any,
    scaled: Any,
    near: Any,
    neighbour: tuple[float, Any],
    over: Callable[[], bool] = lambda: False,
) -> ProvedDistance:
    r"""Return what is proved of the distance of x from its proximal point, exactly on finite data.

    Parameters
    ----------
    problem : MinMaxProblem
        A problem of one run on finite data, without a proximal term.
    x : array_like (d,)
        A feasible point of it.
    weights, scaled, near : array_like
        Multipliers of the proximal problem, and where the search for their bound starts, as for
        :func:`minmaxcon.core.proved`.
    neighbour : (float, array_like (d,))
        :math:`\hat\rho`, and a feasible point u of the proximal problem.
    over : callable
        As for :func:`minmaxcon.core.proved`.

    Raises
    ------
    InvalidInput
        If an argument is of another type, or x is no point.
    """
    x = solution_point(problem, x)
    pair = instances("neighbour", neighbour, object, "must be a pair of the proximal weight and a point.")
    if len(pair) != 2:
        raise InvalidInput("neighbour", neighbour, "must be a pair of the proximal weight and a point.")
    weight = float(real_vector("neighbour[0]", [pair[0]])[0])
    other = np.asarray(real_vector("neighbour[1]", pair[1]), dtype=np.float64)
    if fault := no_proximal_problem(problem, weight, other):
        return ProvedDistance(math.inf, fault)
    proximal = problem.with_proximal(x, weight)
    found: Proved = proved(proximal, weights, scaled, near=near, over=over)
    if found.fault or not math.isfinite(found.lower):
        return ProvedDistance(math.inf, found.fault or "the multipliers prove no bound.", found.cut)
    at = namespace(problem.data.like).asarray(other[None], problem.data.like)
    seen = Points.measured(proximal, at)
    if not seen.feasible[0]:
        miss = f"the point beside it violates the proximal problem by {float(seen.violation[0]):.3g}."
        return ProvedDistance(math.inf, miss)
    step = float(problem.primal.norm(other - x))
    strong, upper = weight - problem.modulus, float(seen.objective[0])
    unit = 2.0 * (1.0 + abs(upper)) / strong
    return ProvedDistance(distance_of(step, upper, found.lower, strong), "", found.cut, step, unit)


def no_proximal_problem(problem: MinMaxProblem, weight: float, other: Any) -> str:
    """Say why a weight and a point belong to no strongly convex proximal problem; empty where they do."""
    if not (math.isfinite(weight) and weight > max(problem.modulus, 0.0)):
        return f"the proximal weight {weight:.6g} is not above the modulus {problem.modulus:.6g} that is declared."
    if other.shape != (problem.primal.dimension,) or not np.isfinite(other).all():
        return "the point beside it is no point."
    if not bool(problem.primal.contains(other, 1e-6)):
        return "the point beside it is no point of the set."
    return ""


@dataclass(frozen=True, slots=True)
class AllowedFall:
    r"""By how much the linear models of a point allow the objective to fall, at most, in its unit.

    Attributes
    ----------
    curved : float
        :math:`\frac12|g_0 + \sum_i\lambda_i g_i|^2_{B^{-1}}`.
    room : float
        :math:`\langle\lambda, s\rangle`: what the room costs that constraints with a multiplier still have.
    fault : str
        Why nothing is known; empty where something is.
    """

    curved: float
    room: float
    fault: str = ""

    @property
    def total(self) -> float:
        """The sum of both."""
        return self.curved + self.room

    def is_small(self, curved: float, scale: float) -> bool:
        """Whether the first part is at most ``curved``, and the second a small part of the objective's ``scale``.

        Large multipliers cancel any gradient; what they cost then is room.
        """
        return not self.fault and self.curved <= curved and self.room <= _MOST_ROOM * scale


def allowed_fall(problem: RefreshedProblem, x: Any, multipliers: Any) -> AllowedFall:
    r"""Return by how much first-order optimality allows the objective to fall at x, by given multipliers.

    Gradients are those of the measure's smooth forms at x, the room is that of the true measure.

    Parameters
    ----------
    problem : RefreshedProblem
        A problem of one run on finite data.
    x : array_like (d,)
        A point of X.
    multipliers : array_like (m + k,)
        :math:`\lambda`, of the constraints and of the set's inequalities.

    Raises
    ------
    InvalidInput
        If an argument is of another type, or x is no point.
    """
    instance("problem", problem, RefreshedProblem, "must be a RefreshedProblem, one with a true measure.")
    factors = real_vector("multipliers", multipliers)
    point = namespace(problem.data.like).asarray(solution_point(problem, x)[None], problem.data.like)
    inside, normals = (to_numpy(part)[0] for part in problem.primal.inequalities(point))
    if factors.shape != (len(problem.constraints) + len(inside),):
        return AllowedFall(math.inf, math.inf, "the multipliers are not as many as the constraints and the set have.")
    if not (np.isfinite(factors).all() and (factors >= 0).all()):
        return AllowedFall(math.inf, math.inf, "the multipliers are not finite and at least 0.")
    seen = problem.measure.observe(point)
    objective = seen.objective_surrogate() or problem.objective
    own = exact_gradients(family_of([objective]), point, problem.data)[1][0]
    others = exact_gradients(family_of(seen.surrogates()), point, problem.data)[1][0]
    slack = -np.concatenate([np.asarray(seen.values)[0] - problem.bounds(1)[0], inside])
    residual = own[0] + factors @ np.concatenate([others, normals])
    inverse = problem.measure.curvature(point)
    pulled = residual if inverse is None else np.asarray(inverse(residual[None, None]))[0, 0]
    curved, room = 0.5 * math.fsum(residual * pulled), math.fsum(factors * slack)
    if not (math.isfinite(curved) and math.isfinite(room)):
        return AllowedFall(math.inf, math.inf, "a gradient is not finite.")
    if curved < 0:
        return AllowedFall(math.inf, math.inf, "the model of the curvature is not positive definite.")
    return AllowedFall(curved, room)
