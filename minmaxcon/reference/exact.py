"""Exact solutions of whole problems on finite data, through the cvxpy form of every constraint."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from minmaxcon.checks import finite_array
from minmaxcon.core import MinMaxProblem, Status
from minmaxcon.core.problem import require_problem
from minmaxcon.reference.solver import feasible_point, load_cvxpy, minimize

__all__ = ["ExactSolution", "level_value", "proximal_point", "solve_exact"]


@dataclass(frozen=True, eq=False)
class ExactSolution:
    r"""The optimum of a problem, to the accuracy of the conic solver (about 1e-8, relative).

    Attributes
    ----------
    x : ndarray (d,) or (R, d)
        A minimiser, in X to rounding; NaN where the problem is infeasible.
    objective : float or ndarray (R,)
        :math:`f^* = f_0(x)`; infinite where infeasible.
    constraints : ndarray (m,) or (R, m)
        :math:`f_i(x) - b_i`.
    multipliers : ndarray (m,) or (R, m)
        The multipliers of :math:`f_i(x) \le b_i`: minus the derivative of :math:`f^*` in :math:`b_i`.
    status : Status or tuple of Status
        ``SOLVED`` or ``INFEASIBLE``.
    seconds : float
        Wall-clock time, cvxpy's import excluded.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> from minmaxcon.reference import solve_exact
    >>> exact = solve_exact(mm.load_problem("toy"))
    >>> round(float(exact.objective), 4), exact.multipliers.round(3)
    (1.0, array([1.]))
    """

    x: Any
    objective: Any
    constraints: Any
    multipliers: Any
    status: Any
    seconds: float


def solve_exact(problem: MinMaxProblem) -> ExactSolution:
    r"""Solve :math:`\min_{x \in X} f_0(x)` subject to :math:`f_i(x) \le b_i` by a conic solver.

    Parameters
    ----------
    problem : MinMaxProblem
        A convex problem on finite data whose constraints have a cvxpy form. With bounds of shape (R,) each run is
        solved by itself. A proximal term is included in every function, as the solvers do.

    Returns
    -------
    ExactSolution
        The optimum.

    Raises
    ------
    InvalidInput
        If it is no problem.
    MissingDependency
        If cvxpy is not installed.
    Unsupported
        If a constraint has no cvxpy form.
    ReferenceFailed
        If the conic solver fails.

    References
    ----------
    Diamond and Boyd (2016), CVXPY; Goulart and Chen (2024), Clarabel.
    """
    require_problem(problem)
    cp = load_cvxpy("exact solutions")
    began = time.perf_counter()
    found = [_solve_run(cp, run) for run in _runs(problem)]
    seconds = time.perf_counter() - began
    if problem.runs is None:
        return ExactSolution(*found[0], seconds)
    x, objective, constraints, multipliers, status = zip(*found, strict=True)
    stacked = [np.array(column) for column in (x, objective, constraints, multipliers)]
    return ExactSolution(stacked[0], stacked[1], stacked[2], stacked[3], status, seconds)


def proximal_point(problem: MinMaxProblem, x: Any, weight: float) -> ExactSolution:
    r"""Find the proximal point of x by a conic solver.

    .. math::
        \hat x = \arg\min_{u\in X} f_0(u) + \hat\rho V(u, x) \quad\text{s.t.}\quad f_i(u) + \hat\rho V(u, x) \le b_i

    Parameters
    ----------
    problem : MinMaxProblem
        As for :func:`solve_exact`; a proximal term of its own is replaced.
    x : array_like (d,) or (R, d)
        The centre, or one for each run.
    weight : float
        :math:`\hat\rho`.

    Returns
    -------
    ExactSolution
        :math:`\hat x` as its ``x``, with its multipliers.

    Raises
    ------
    InvalidInput
        If it is no problem, x is not finite, or the weight is not positive.
    MissingDependency
        If cvxpy is not installed.
    Unsupported
        If a constraint has no cvxpy form.
    ReferenceFailed
        If the conic solver fails.
    """
    require_problem(problem)
    point = finite_array("x", x, "must be finite, a point or one row for each run.")
    return solve_exact(problem.with_proximal(point, weight))


def level_value(problem: MinMaxProblem, r: Any) -> Any:
    r"""Return :math:`H(r) = \min_{x \in X}\max(f_0(x) - r,\ \max_i f_i(x) - b_i)` by a conic solver.

    Parameters
    ----------
    problem : MinMaxProblem
        As for :func:`solve_exact`.
    r : float or array_like (R,)
        The level, or one for each run.

    Returns
    -------
    float or ndarray (R,)
        H at each level, evaluated at a point of X: never below the true value but by rounding.

    Raises
    ------
    InvalidInput
        If it is no problem, or a level is none.
    MissingDependency
        If cvxpy is not installed.
    Unsupported
        If a constraint has no cvxpy form.
    ReferenceFailed
        If the conic solver fails.
    """
    require_problem(problem)
    cp = load_cvxpy("exact level values")
    levels = finite_array("r", r, "must be finite: a level, or one for each run.")
    each = np.broadcast_to(levels, levels.shape or (problem.runs or 1,))
    runs = _runs(problem) if problem.runs is not None else [problem] * each.size
    found = np.array([_level_run(cp, run, float(level)) for run, level in zip(runs, each, strict=True)])
    return float(found[0]) if levels.ndim == 0 and problem.runs is None else found


def _runs(problem: MinMaxProblem) -> list[MinMaxProblem]:
    return [problem] if problem.runs is None else [problem.take([j]) for j in range(problem.runs)]


def _functions(cp: Any, problem: MinMaxProblem, x: Any) -> list[Any]:
    """Return objective and constraints of a single run as cvxpy expressions, the proximal term included."""
    extra: Any = 0.0
    if problem.proximal is not None:
        primal, weight = problem.primal, problem.proximal.least
        center = np.asarray(problem.proximal.center, dtype=np.float64).reshape(-1)
        tangent = primal.value(center) + primal.gradient(center) @ (x - center)
        extra = weight * (primal.cvxpy_value(cp, x) - tangent)
    return [c.cvxpy_value(cp, x, problem.data) + extra for c in (problem.objective, *problem.constraints)]


def _solve_run(cp: Any, problem: MinMaxProblem) -> tuple[Any, float, Any, Any, Status]:
    x = cp.Variable(problem.primal.dimension)
    objective, *others = _functions(cp, problem, x)
    bounds = problem.bounds()[0]
    below = [f <= b for f, b in zip(others, bounds, strict=True)]
    solved = minimize(cp, objective, [*below, *problem.primal.cvxpy_constraints(cp, x)])
    if solved.status == cp.INFEASIBLE:
        nothing = np.full(len(others), np.nan)
        return np.full(x.shape, np.nan), np.inf, nothing, nothing, Status.INFEASIBLE
    multipliers = np.array([np.asarray(constraint.dual_value).item() for constraint in below])
    x.value = feasible_point(problem.primal, x.value)
    values = np.array([float(f.value) for f in others])
    return x.value, float(objective.value), values - bounds, multipliers, Status.SOLVED


def _level_run(cp: Any, problem: MinMaxProblem, level: float) -> float:
    x, top = cp.Variable(problem.primal.dimension), cp.Variable()
    functions = _functions(cp, problem, x)
    bounds = [level, *problem.bounds()[0]]
    below = [f - b <= top for f, b in zip(functions, bounds, strict=True)]
    minimize(cp, top, [*below, *problem.primal.cvxpy_constraints(cp, x)])
    x.value = feasible_point(problem.primal, x.value)
    return max(float(f.value) - float(b) for f, b in zip(functions, bounds, strict=True))
