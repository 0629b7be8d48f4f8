"""Certificates of near stationarity: the proximal point of a point, and the residuals of first-order conditions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.checks import finite_array, number
from minmaxcon.core import MinMaxProblem, Needs, Points, Position, Solver, Start, Status
from minmaxcon.core.linearisation import exact_gradients
from minmaxcon.core.lower import lower_bound
from minmaxcon.core.problem import require_problem
from minmaxcon.core.runs import where_runs
from minmaxcon.errors import InvalidInput
from minmaxcon.oracles.mirror_prox import MirrorProx
from minmaxcon.solvers.feasibility import pull_back
from minmaxcon.solvers.loop import solve
from minmaxcon.solvers.sfls import SFLS
from minmaxcon.solvers.weak_convexity import proximal_inaccuracy, warn_of_weight

__all__ = ["KKTResidual", "Stationarity", "kkt_residual", "stationarity"]

_MOVE = 1e-6
"""Length of the projected step that finds the normal cone, relative to the point."""


@dataclass(frozen=True, eq=False)
class KKTResidual:
    r"""By how much first-order conditions fail at a point with multipliers :math:`\lambda`.

    Attributes
    ----------
    gradient : float or ndarray (R,)
        :math:`\mathrm{Dist}(\nabla f_0 + \sum_i\lambda_i\nabla f_i, -N_X(x))`.
    complementarity : float or ndarray (R,)
        :math:`\max_i |\lambda_i (f_i(x) - b_i)|`.
    violation : float or ndarray (R,)
        :math:`\max_i (f_i(x) - b_i)_+`.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> problem = mm.load_problem("toy")
    >>> found = mm.kkt_residual(problem, [1.0], multipliers=[1.0])
    >>> float(found.violation) <= 0.0
    True
    """

    gradient: Any
    complementarity: Any
    violation: Any

    @property
    def epsilon(self) -> Any:
        r"""The least :math:`\epsilon` with which the point is an :math:`\epsilon`-KKT point by these multipliers.

        In Definition 3 of Yao, Lin and Yang (2023) complementarity may be :math:`\epsilon^2`.
        """
        found = np.maximum(np.maximum(self.gradient, np.sqrt(self.complementarity)), self.violation)
        return float(found) if np.ndim(found) == 0 else found


@dataclass(frozen=True, eq=False)
class Stationarity:
    r"""How near a point is to its proximal point :math:`\hat x`, and how good a KKT point that one is.

    Attributes
    ----------
    point : ndarray (d,) or (R, d)
        The approximation of :math:`\hat x` that was found.
    distance : float or ndarray (R,)
        Its distance from x.
    bound : float or ndarray (R,)
        A proved bound on :math:`|\hat x - x|` for the exact :math:`\hat x`: x is nearly :math:`\epsilon`-stationary
        with this :math:`\epsilon`. Infinite where nothing is proved.
    multipliers : ndarray (m,) or (R, m)
        :math:`\lambda_i = \bar y_i/\bar y_0`, of the averaged duals.
    kkt : KKTResidual
        Of the problem without proximal term, at ``point``. With exact multipliers the gradient's part is at most
        :math:`\hat\rho(1 + \sum_i\lambda_i)|\hat x - x|`.
    status : Status or tuple of Status
        ``SOLVED`` where the bound is finite; else how the solve of the proximal problem ended. Where that problem is
        infeasible, ``point`` violates its constraints least, and the rest says nothing.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> found = mm.stationarity(mm.load_problem("toy"), [1.0], weight=1.0)
    >>> bool(found.distance < 0.1)
    True
    """

    point: Any
    distance: Any
    bound: Any
    multipliers: Any
    kkt: KKTResidual
    status: Any


def kkt_residual(problem: MinMaxProblem, x: Any, multipliers: Any) -> KKTResidual:
    r"""Measure by how much x fails the first-order conditions with given multipliers, exactly on finite data.

    Gradients are those at the maximising inner variables; where these are not unique they are one choice of
    subgradients, and ``gradient`` bounds the distance from above.

    Parameters
    ----------
    problem : MinMaxProblem
        The problem, on finite data and a Euclidean set; a proximal term is part of every function.
    x : array_like (d,) or (R, d)
        Points of X.
    multipliers : array_like (m,) or (R, m)
        :math:`\lambda \ge 0`.

    Returns
    -------
    KKTResidual
        The residuals. The normal cone is that of the faces within a millionth of x, relative to its size.

    Raises
    ------
    InvalidInput
        If the problem is none, x is no point of X, or a multiplier is negative.
    Unsupported
        On streams, and on sets without a Euclidean projection.

    References
    ----------
    Yao, Lin and Yang (2023), definition 3.
    """
    require_problem(problem)
    Needs(finite=True, euclidean=True).check("kkt_residual()", problem)
    primal: Any = problem.primal
    points, single = _checked(problem, x)
    need = "give a finite number of at least 0 for each constraint and run."
    weights = np.atleast_2d(finite_array("multipliers", multipliers, need))
    if weights.shape != (len(points), len(problem.constraints)) or (weights < 0).any():
        raise InvalidInput("multipliers", multipliers, need)
    at = namespace(problem.data.like).asarray(points, problem.data.like)
    values, gradients = exact_gradients(problem.family, at, problem.data)
    if problem.proximal is not None:
        values = values + problem.proximal.value(primal, points)[:, None]
        gradients = gradients + problem.proximal.gradient(primal, points)[:, None]
    total = gradients[:, 0] + np.einsum("rm,rmd->rd", weights, gradients[:, 1:])
    excess = values[:, 1:] - problem.bounds(len(points))
    pick: Any = (lambda value: float(value[0])) if single else (lambda value: value)
    return KKTResidual(
        gradient=pick(_distance_from_normals(primal, points, total)),
        complementarity=pick(np.abs(weights * excess).max(axis=1)),
        violation=pick(np.maximum(excess, 0.0).max(axis=1)),
    )


def stationarity(
    problem: MinMaxProblem, x: Any, weight: float = 1.0, *, solver: Solver | None = None, seed: int = 0
) -> Stationarity:
    r"""Find the proximal point of x, prove how far it is, and measure what kind of KKT point it is.

    .. math::
        \hat x = \arg\min_{u\in X} f_0(u) + \tfrac{\hat\rho}2|u - x|^2 \quad\text{s.t.}\quad
        f_i(u) + \tfrac{\hat\rho}2|u - x|^2 \le b_i

    Parameters
    ----------
    problem : MinMaxProblem
        The problem, on finite data and a Euclidean set.
    x : array_like (d,) or (R, d)
        Points of X.
    weight : float
        :math:`\hat\rho`, above the weak convexity modulus :math:`\rho`: see :func:`minmaxcon.estimate_modulus`.
    solver : Solver, optional
        Finds a first feasible point of the proximal problem, from which Newton's method on its level function goes on
        with exact passes over the data; by default the level-set method, with such passes too.
    seed : int
        Seed of its draws; the default solver makes none.

    Returns
    -------
    Stationarity
        The certificate.

    Warns
    -----
    WeakConvexityWarning
        If the weight is not above a modulus that is declared, or that points near x prove.

    Raises
    ------
    InvalidInput
        If the problem is none, x is no point of X, or the weight is not positive.
    Unsupported
        On streams, on sets without a Euclidean projection, and for problems with a proximal term of their own.

    References
    ----------
    Yao, Lin and Yang (2023), definition 3; Ma, Lin and Yang (2020).
    """
    require_problem(problem)
    Needs(finite=True, euclidean=True, unregularised=True).check("stationarity()", problem)
    primal: Any = problem.primal
    weight = number("weight", weight, "must be positive and finite.", above=0.0)
    points, single = _checked(problem, x)
    at = namespace(problem.data.like).asarray(points, problem.data.like)
    warn_of_weight(problem, at, weight)
    if solver is None:
        solver = SFLS(oracle=MirrorProx(steps=300), tolerance=0.01, levels=5)
    proximal = problem.with_proximal(points, weight)
    begun = solve(proximal, solver, seed=seed, x0=points)
    first = Points(namespace(at).asarray(begun.x, at), begun.objective, begun.constraints)
    lower = np.array([certificate.lower for certificate in begun.certificate])
    found = _close_gap(proximal, _Bracket(first, lower, np.full_like(first.constraints, np.nan)))
    near = np.asarray(to_numpy(found.best.x), dtype=np.float64)
    distance = primal.norm(near - points)
    bound = distance + proximal_inaccuracy(weight - problem.modulus, found.best, found.lower)
    status = tuple(
        Status.SOLVED if np.isfinite(far) and s is not Status.INCONSISTENT else s
        for far, s in zip(bound, begun.status, strict=True)
    )
    pick: Any = (lambda value: value[0]) if single else (lambda value: value)
    size: Any = (lambda value: float(value[0])) if single else (lambda value: value)
    return Stationarity(
        point=pick(near),
        distance=size(distance),
        bound=size(bound),
        multipliers=pick(found.multipliers),
        kkt=kkt_residual(problem, pick(near), pick(found.multipliers)),
        status=pick(status),
    )


@dataclass(frozen=True, eq=False)
class _Bracket:
    r"""The best points of R runs with exact values, and bounds on the optimal values.

    Attributes
    ----------
    best : Points
        The best points, feasible where any is known.
    lower : ndarray (R,)
        Lower bounds on the optimal values.
    multipliers : ndarray (R, m)
        :math:`\bar y_i/\bar y_0` of the duals with the best bound.
    """

    best: Points
    lower: Any
    multipliers: Any

    @property
    def gap(self) -> Any:
        """Upper less lower bound (R,); infinite where one is missing."""
        known = self.best.feasible & np.isfinite(self.lower)
        return np.where(known, self.best.objective, np.inf) - np.where(known, self.lower, 0.0)


def _close_gap(problem: MinMaxProblem, found: _Bracket, gap: float = 1e-8, rounds: int = 12) -> _Bracket:
    r"""Narrow brackets from below, by Newton's method on the level function with exact passes.

    :math:`H(r) \ge D(r)`, which is linear in r with slope :math:`-\bar y_0`, so its root :math:`r + D(r)/\bar y_0` is a
    lower bound on :math:`f^*`, and the next level: Newton's method. What such a level answers is not quite feasible,
    and is pulled back towards the first feasible point.

    Parameters
    ----------
    problem : MinMaxProblem
        The problem, on finite data. Where it is not known to be convex there are no lower bounds, and only the
        multipliers and points at the level of the best objective are sought.
    found : _Bracket
        Where to begin.
    gap : float
        What is asked for, relative to :math:`1 + |f_0|`; what can be reached is limited by the oracle.
    rounds : int
        Largest number of levels.
    """
    oracle, position = MirrorProx(), Position.start(np.random.default_rng(0))  # which draws nothing
    interior = found.best
    start = Start(interior.x, None, position)
    for _ in range(rounds):
        level = np.where(np.isfinite(found.lower), found.lower, found.best.objective)
        question, wanted = problem.at_level(level), gap * (1.0 + np.abs(level))
        answer = oracle.query(question, start, accuracy=float(wanted.min()))
        weights = np.asarray(to_numpy(answer.weights), dtype=np.float64)
        first = np.maximum(weights[:, 0], 1e-300)
        bound = level + lower_bound(question, answer.weights, answer.scaled, answer.x) / first
        better, before = (weights[:, 0] > 1e-8) & (bound > found.lower), found.gap
        fresh = (better | np.isnan(found.multipliers).any(axis=1))[:, None]
        multipliers = np.where(fresh, weights[:, 1:] / first[:, None], found.multipliers)
        best = found.best.or_better(_brought_back(problem, interior, Points.measured(problem, answer.x)))
        found = _Bracket(best, np.where(better, bound, found.lower), multipliers)
        # Newton's method squares the gap; where it does not even halve, the oracle has come to its end.
        if ((found.gap <= wanted) | ~(found.gap < 0.5 * before)).all():
            break
        start = answer.next
    return found


def _brought_back(problem: MinMaxProblem, interior: Points, found: Points) -> Points:
    """Return the points, pulled back towards strictly feasible ones where they are not feasible."""
    back = (found.violation > 0) & (interior.violation < 0)
    if not back.any():
        return found
    violation = np.maximum(found.violation, 1e-300)
    nearer: Points = where_runs(back, pull_back(problem, interior, found.x, violation), found)
    return nearer


def _checked(problem: MinMaxProblem, x: Any) -> tuple[Any, bool]:
    """Return points (R, d) of X, and whether a single one was given for a single run."""
    points = finite_array("x", x, "must be a finite point of the primal set.")
    if points.ndim not in (1, 2) or points.shape[-1] != problem.primal.dimension:
        raise InvalidInput("x", points.shape, f"must have shape ({problem.primal.dimension},) or one row per run.")
    if not np.all(problem.primal.holds(points)):
        raise InvalidInput("x", x, "must be a finite point of the primal set.")
    single = points.ndim == 1 and problem.runs is None
    rows = np.atleast_2d(points)
    if problem.runs is not None and len(rows) not in (1, problem.runs):
        raise InvalidInput("x", points.shape, f"give one row for each of the {problem.runs} runs.")
    return np.broadcast_to(rows, (max(len(rows), problem.runs or 1), rows.shape[1])).copy(), single


def _distance_from_normals(primal: Any, x: Any, gradient: Any) -> Any:
    """Return the distance of gradients (R, d) from minus the normal cone: the length of a short projected step."""
    x = primal.project(x.copy())
    size = np.linalg.norm(gradient, axis=1, keepdims=True)
    step = _MOVE * (1.0 + np.linalg.norm(x, axis=1, keepdims=True)) / np.maximum(size, 1e-300)
    moved = primal.project(x - step * gradient)
    return np.linalg.norm(x - moved, axis=1) / step[:, 0]
