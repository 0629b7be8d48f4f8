"""The five functions that check an object and report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from minmaxcon.checks import seed_number
from minmaxcon.testing.parts import (
    Part,
    constraint_part,
    generator_part,
    oracle_part,
    problem_parts,
    run_parts,
    solver_part,
)
from minmaxcon.testing.report import Report

__all__ = ["check_constraint", "check_generator", "check_oracle", "check_problem", "check_solver"]


def _report(title: str, parts: Iterable[Part], seed: Any) -> Report:
    return Report(title, tuple(run_parts(parts, seed_number("seed", seed))))


def check_generator(generator: Any, *, seed: int = 0) -> Report:
    r"""Check a geometry, an inner block, or the perspective generator over the levels of a problem.

    Parameters
    ----------
    generator : DistanceGenerator, InnerBlock or PerspectiveGenerator
        What is checked.
    seed : int
        Seed of the points, steps and linear terms that are drawn.

    Returns
    -------
    Report
        Set, generator, strong convexity at the declared modulus in the declared norm, diameter, prox (three-point
        inequality, and against cvxpy where it is installed), linear minimum; purity, runs, precision and engines.

    Raises
    ------
    InvalidInput
        If it is no generator.
    """
    part = generator_part(generator)
    return _report(repr(generator), [part], seed)


def check_constraint(constraint: Any, primal: Any, data: Any, *, start: Any = None, seed: int = 0) -> Report:
    r"""Check one function of the problem class on a set and data.

    Parameters
    ----------
    constraint : StochasticMinMaxConstraint
        What is checked; also an objective.
    primal : DistanceGenerator
        The set X, from which points are drawn.
    data : Source
        The samples; of finite data the first 20,000 rows are looked at, of a stream the first 4,096 samples.
    start : array_like (d,), optional
        Where solvers start; the centre of X by default.
    seed : int
        Seed of the points that are drawn.

    Returns
    -------
    Report
        Unbiased terms, gradients (by differences and by autograd), convexity in x for every :math:`\alpha` or the
        declared modulus, the maximum over :math:`\alpha` and the cvxpy form; purity, runs, precision and engines.

    Raises
    ------
    InvalidInput
        If an argument is not of its kind, or the start is no finite point of X.
    """
    part = constraint_part(constraint, primal, data, start)
    return _report(part.label, [part], seed)


def check_problem(problem: Any, *, seed: int = 0) -> Report:
    """Check a problem and all that it is made of.

    Parameters
    ----------
    problem : MinMaxProblem
        What is checked.
    seed : int
        Seed of all that is drawn.

    Returns
    -------
    Report
        The findings of :func:`check_generator` on its geometry, its inner blocks and the generator over its levels
        (with the theorem's K), of :func:`check_constraint` on its objective and constraints, and of the problem as a
        whole: fused evaluation, data, starting point, bounds from below, the optimum by cvxpy.

    Raises
    ------
    InvalidInput
        If it is no problem.
    """
    return _report(str(getattr(problem, "name", problem)), problem_parts(problem), seed)


def check_oracle(oracle: Any, problem: Any = None, *, tolerance: float = 0.1, seed: int = 0) -> Report:
    """Check an oracle on a problem with known H, and on problems without noise.

    Parameters
    ----------
    oracle : Oracle
        What is checked; give it few steps, it is asked about thirty times.
    problem : MinMaxProblem, optional
        A small problem on finite data with a cvxpy form; one in two variables by default. What must hold without noise
        is checked on two built-in problems of a single sample (a ball with an inner ball; a simplex times a box with
        an inner simplex and a penalised interval), and on the problem given, with batches that are all of its first
        500 rows.
    tolerance : float
        By how much the upper bound may be too low where there is noise, on average of three queries: a share of
        what the starting point is above H, positive.
    seed : int
        Seed of the queries.

    Returns
    -------
    Report
        The estimate's fields, bounds on H from both sides, progress; determinism, purity, runs, engines.

    Raises
    ------
    InvalidInput
        If it is no oracle, the problem no problem on finite data, or the tolerance not positive.
    """
    part = oracle_part(oracle, problem, tolerance=tolerance, seed=seed)
    return _report(part.label, [part], seed)


def check_solver(solver: Any, problem: Any = None, *, tolerance: float = 0.05, seed: int = 0) -> Report:
    r"""Check a solver on a problem with known optimum, and on one without a feasible point.

    Parameters
    ----------
    solver : Solver
        What is checked; give it few steps, it solves about ten times.
    problem : MinMaxProblem, optional
        A small problem on finite data with a cvxpy form; one in two variables by default.
    tolerance : float
        A solver that says solved must be within this share of :math:`f_0(x_0) - f^*`; positive.
    seed : int
        Seed of the solves.

    Returns
    -------
    Report
        The solution's values, status and certificate; determinism, purity, runs, start and budget.

    Raises
    ------
    InvalidInput
        If it is no solver, the problem no problem on finite data, or the tolerance not positive.
    """
    part = solver_part(solver, problem, tolerance=tolerance, seed=seed)
    return _report(part.label, [part], seed)
