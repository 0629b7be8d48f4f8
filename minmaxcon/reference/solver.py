"""The one place that imports cvxpy, the one call of its solver, and the feasible point drawn from its answer."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from minmaxcon.errors import MinMaxConError, MissingDependency
from minmaxcon.geometry import DistanceGenerator

__all__ = ["ReferenceFailed", "feasible_point", "load_cvxpy", "minimize"]

_TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11, "max_iter": 200}
_FAR = 1e-4  # relative to the point: how far a solver's point may lie from the feasible point drawn from it


class ReferenceFailed(MinMaxConError, ArithmeticError):
    """The reference solver gave no usable answer; the message carries its status."""


def load_cvxpy(purpose: str) -> Any:
    """Return the cvxpy module.

    Parameters
    ----------
    purpose : str
        What it is needed for, as the error says it.

    Returns
    -------
    module
        cvxpy, imported when it is first needed: that takes about a second.

    Raises
    ------
    MissingDependency
        If cvxpy or Clarabel is not installed.
    """
    try:
        import clarabel
        import cvxpy
    except ImportError as missing:
        raise MissingDependency((missing.name or "cvxpy").partition(".")[0], "reference", purpose) from None
    del clarabel  # imported to see that it is there: cvxpy finds its solver by itself
    return cvxpy


def minimize(cp: Any, objective: Any, constraints: list[Any]) -> Any:
    """Minimise by Clarabel, as tightly as the problem's conditioning lets it.

    Parameters
    ----------
    cp : module
        cvxpy.
    objective : cvxpy expression
        A convex scalar.
    constraints : list of cvxpy constraints
        The constraints.

    Returns
    -------
    cvxpy.Problem
        Solved: its variables hold the solution unless its status says infeasible.

    Raises
    ------
    ReferenceFailed
        If the solver ends with neither a solution nor a proof of infeasibility.
    """
    problem = cp.Problem(cp.Minimize(objective), constraints)
    for settings in (_TIGHT, {}):
        with warnings.catch_warnings():
            # "may be inaccurate" is cvxpy's word for tolerances of 1e-11 not met in full; the callers judge the point.
            warnings.simplefilter("ignore")
            try:
                problem.solve(solver=cp.CLARABEL, **settings)
            except cp.SolverError:
                continue
        if problem.status in {cp.OPTIMAL, cp.OPTIMAL_INACCURATE, cp.INFEASIBLE}:
            return problem
    raise ReferenceFailed(f"the reference solver ended with status {problem.status!r}; scale the problem's numbers.")


def feasible_point(generator: DistanceGenerator, found: Any) -> Any:
    """Return the point of a set nearest to what a solver found: the generator's prox without a linear term.

    Parameters
    ----------
    generator : DistanceGenerator
        The geometry.
    found : ndarray (d,) or None
        The solver's point; None where it found the set empty.

    Returns
    -------
    ndarray (d,)
        A point of the set, to rounding.

    Raises
    ------
    ReferenceFailed
        If there is no point, or it is far from the set: then cvxpy form and prox contradict each other.
    """
    if found is None:
        raise ReferenceFailed(f"the reference solver found {generator!r} empty; check its cvxpy_constraints.")
    point = generator.prox(found, np.zeros_like(found), 1.0)
    moved = float(np.max(np.abs(point - found)))
    if not generator.contains(point, 1e-9) or moved > _FAR * (1.0 + float(np.max(np.abs(found)))):
        raise ReferenceFailed(
            f"the prox of {generator!r} moved the solver's point by {moved:.2g} although its linear term is zero; "
            "compare its cvxpy_constraints with its prox."
        )
    return point
