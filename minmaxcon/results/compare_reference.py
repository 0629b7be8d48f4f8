"""The optimal value that solvers are compared with: exact where a conic solver can find it, else the best found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.checks import number
from minmaxcon.core import MinMaxProblem, RefreshedProblem, Status
from minmaxcon.core.linearisation import exact_values
from minmaxcon.errors import MissingDependency, Unsupported
from minmaxcon.solvers.averaging.checkpoint import LEAST_SPAN

__all__ = ["Optimum", "exact_optimum", "found_optimum", "measures"]


@dataclass(frozen=True, slots=True)
class Optimum:
    r"""The optimal value, and the unit in which gaps are measured.

    Attributes
    ----------
    value : float or None
        :math:`f^*`; None where nothing is known.
    source : str
        Where it comes from: ``"exact"`` (a conic solver), ``"given"``, ``"best found"`` (the best feasible point of
        all solvers, so that every gap is to be read as a lower bound), ``"infeasible"`` or ``"unknown"``.
    lower : float or None
        A lower bound on :math:`f^*`: the value itself where it is exact, else the largest that a solver proved.
    start : float or None
        :math:`f_0` at the problem's start where that is feasible, else None.
    scale : float or None
        The unit of relative gaps: :math:`f_0(\text{start}) - f^*`, at least :math:`0.01 (1 + |f^*|)`, from a feasible
        start, else :math:`1 + |f^*|`.
    note : str
        Why it is not exact.
    """

    value: float | None
    source: str
    lower: float | None
    start: float | None
    scale: float | None
    note: str = ""


def measures(problem: MinMaxProblem, x: Any) -> tuple[float, float]:
    """Return objective and largest :math:`f_i - b_i` at a point x (d,), by one exact pass over finite data.

    On a problem that is refreshed these are the true measures.
    """
    like = problem.data.like
    point = namespace(like).asarray(np.asarray(x, dtype=np.float64)[None, :], like)
    values = exact_values(problem.family, point, problem.data)[0]
    objective, constraints = float(values[0]), values[1:] - problem.bounds()[0]
    if isinstance(problem, RefreshedProblem):
        seen = problem.measure.observe(point)
        objective = objective if seen.objective is None else float(seen.objective[0][0])
        constraints = np.asarray(seen.values)[0] - problem.bounds()[0]
    return objective, float(np.max(constraints))


def exact_optimum(problem: MinMaxProblem, reference: float | None = None) -> Optimum:
    """Return the optimum as far as it is known before any solver has run.

    Parameters
    ----------
    problem : MinMaxProblem
        A problem of one run.
    reference : float, optional
        Its optimal value, where the caller knows it.

    Raises
    ------
    InvalidInput
        If the reference is not finite.
    """
    if reference is not None:
        reference = number("reference", reference, "must be a finite number; leave it out where it is unknown.")
    start = None
    if problem.data.size is not None:
        first = problem.family.refine(problem.start_point(1), problem.data)
        objective, violation = measures(problem, to_numpy(first)[0])
        start = objective if violation <= 0 else None
    if reference is not None:
        return _scaled(Optimum(reference, "given", reference, start, None))
    value, why = _by_conic_solver(problem)
    if value is None:
        return Optimum(None, "unknown", None, start, None, why)
    if not np.isfinite(value):
        return Optimum(None, "infeasible", None, start, None, "a conic solver proved that no point is feasible")
    return _scaled(Optimum(value, "exact", value, start, None))


def found_optimum(unknown: Optimum, found: Sequence[tuple[float, float, float]], feasible: float) -> Optimum:
    """Return the optimum as the solvers know it.

    Parameters
    ----------
    unknown : Optimum
        What was known before.
    found : sequence of (objective, violation, lower bound)
        Of the points that were returned.
    feasible : float
        Violation up to which a point counts as feasible.
    """
    upper = min((objective for objective, violation, _ in found if violation <= feasible), default=np.inf)
    lower = max((bound for _, _, bound in found), default=-np.inf)
    if not np.isfinite(upper):
        return replace(unknown, lower=float(lower) if np.isfinite(lower) else None)
    best = replace(unknown, value=float(upper), source="best found", lower=float(lower) if np.isfinite(lower) else None)
    return _scaled(best)


def _scaled(optimum: Optimum) -> Optimum:
    if optimum.value is None:
        return optimum
    size = 1.0 + abs(optimum.value)
    scale = size if optimum.start is None else max(optimum.start - optimum.value, LEAST_SPAN * size)
    return replace(optimum, scale=scale)


def _by_conic_solver(problem: MinMaxProblem) -> tuple[float | None, str]:
    """Return the optimal value, infinite where there is none, or why it is not known."""
    from minmaxcon.reference import ReferenceFailed, solve_exact

    if problem.data.size is None:
        return None, "a stream has no exact values"
    if isinstance(problem, RefreshedProblem):
        return None, "true measures have no cvxpy form"
    if problem.modulus > 0:
        return None, "the problem is not declared convex"
    try:
        found = solve_exact(problem)
    except (MissingDependency, Unsupported, ReferenceFailed) as failure:
        return None, str(failure)
    return (np.inf, "") if found.status is Status.INFEASIBLE else (float(found.objective), "")
