"""The one place that imports cvxpy, the one call of its solver, and the feasible point drawn from its answer."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from minmaxcon.checks import whole
from minmaxcon.errors import InvalidInput, MinMaxConError, MissingDependency
from minmaxcon.geometry import DistanceGenerator

__all__ = ["ReferenceFailed", "conic_minimum", "feasible_point", "load_cvxpy", "minimize"]

_TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11, "max_iter": 200}
# Clarabel's default regularisation (1e-8) stalls five digits early on the moments of real data; a larger one, undone by
# more steps of iterative refinement, reaches 1e-10 there. On small programs the default is the better one.
_REFINED = {**_TIGHT, "static_regularization_constant": 1e-6, "iterative_refinement_max_iter": 50}
_ATTEMPTS: tuple[dict[str, Any], ...] = (_TIGHT, _REFINED, {})
_FAR = 1e-4  # relative to the point: how far a solver's point may lie from the feasible point drawn from it


class ReferenceFailed(MinMaxConError, ArithmeticError):
    """The reference solver gave no usable answer; the message carries its status.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> from minmaxcon.reference import ReferenceFailed
    >>> issubclass(ReferenceFailed, mm.MinMaxConError)
    True
    """


def load_cvxpy(purpose: str) -> Any:
    """Return the module cvxpy, imported when it is first needed: that takes about a second.

    If cvxpy or Clarabel is not installed, MissingDependency says what ``purpose`` it is needed for.
    """
    try:
        import clarabel
        import cvxpy
    except ImportError as missing:
        raise MissingDependency((missing.name or "cvxpy").partition(".")[0], "reference", purpose) from None
    del clarabel  # imported to see that it is there: cvxpy finds its solver by itself
    return cvxpy


def conic_minimum(size: int, forms: Callable[[Any, Any], tuple[Any, list[Any]]]) -> Any:
    """Minimise a convex function of a vector by cvxpy and Clarabel with its default settings.

    Parameters
    ----------
    size : int
        Dimension d of the vector.
    forms : callable
        Given the module cvxpy and a variable (d,), returns the objective and the constraints.

    Returns
    -------
    ndarray (d,)
        The solver's point, which may violate constraints by its tolerance of 1e-8.

    Raises
    ------
    InvalidInput
        If the size is no whole number of at least 1, or the forms are no function.
    MissingDependency
        If cvxpy is not installed.
    ReferenceFailed
        If the solver fails, or finds no point.
    """
    size = whole("size", size)
    if not callable(forms):
        raise InvalidInput("forms", forms, "must be a function of cvxpy and a variable.")
    cp = load_cvxpy("conic solutions")
    x = cp.Variable(size)
    objective, constraints = forms(cp, x)
    status = _attempt(cp, cp.Problem(cp.Minimize(objective), constraints), {})
    if x.value is None:
        raise ReferenceFailed(f"the reference solver ended with status {status!r}; scale the problem's numbers.")
    return np.asarray(x.value, dtype=np.float64)


def minimize(cp: Any, objective: Any, constraints: list[Any]) -> Any:
    """Minimise a convex scalar by Clarabel, as tightly as the problem's conditioning lets it.

    Returns the cvxpy.Problem, solved: its variables hold the solution unless its status says infeasible. Raises
    ReferenceFailed if the solver ends with neither a solution nor a proof of infeasibility.
    """
    problem = cp.Problem(cp.Minimize(objective), constraints)
    scores, statuses = [], []
    for settings in _ATTEMPTS:
        statuses.append(_attempt(cp, problem, settings))
        if statuses[-1] in {cp.OPTIMAL, cp.INFEASIBLE}:
            return problem
        scores.append(_score(problem) if statuses[-1] == cp.OPTIMAL_INACCURATE else np.inf)
    best = int(np.argmin(scores))
    if not np.isfinite(scores[best]):
        raise ReferenceFailed(f"the reference solver ended with status {statuses[-1]!r}; scale the problem's numbers.")
    if best != len(_ATTEMPTS) - 1:
        _attempt(cp, problem, _ATTEMPTS[best])
    return problem


def _attempt(cp: Any, problem: Any, settings: dict[str, Any]) -> str:
    with warnings.catch_warnings():
        # "may be inaccurate" is cvxpy's word for tolerances of 1e-11 not met in full; the points are compared instead.
        warnings.simplefilter("ignore")
        try:
            problem.solve(solver=cp.CLARABEL, **settings)
        except cp.SolverError:
            return "solver error"
    return str(problem.status)


def _score(problem: Any) -> float:
    """Return the solver's objective at a point that misses the tolerances, made worse by the point's violation."""
    # Not problem.value: a logarithm at -1e-15 would make it infinite.
    reached = float(problem.solution.opt_val)
    violation = max((float(np.max(constraint.violation())) for constraint in problem.constraints), default=0.0)
    return float(np.nan_to_num(reached + 100.0 * (1.0 + abs(reached)) * violation, nan=1e300, posinf=1e300))


def feasible_point(generator: DistanceGenerator, found: Any) -> Any:
    """Return the point of a set (d,), to rounding, nearest to what a solver found: the prox without a linear term.

    ``found`` is the solver's point, None where it found the set empty. Raises ReferenceFailed if there is no point, or
    it is far from the set: then cvxpy form and prox contradict each other.
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
