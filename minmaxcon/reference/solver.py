"""The one place that imports cvxpy, and the one call of its solver."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from minmaxcon.errors import MinMaxConError, MissingDependency

__all__ = ["ReferenceFailed", "load_cvxpy", "minimize"]

_TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11, "max_iter": 200}


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
    for package in ("clarabel", "cvxpy"):
        try:
            module = importlib.import_module(package)
        except ImportError:
            raise MissingDependency(package, "reference", purpose) from None
    return module


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
