"""Oracles and solvers with the problems that they are tried on; what several checks look at is solved once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from minmaxcon.arrays import to_numpy
from minmaxcon.core import Estimate, MinMaxProblem, Oracle, Position, Solution, Solver, Start, Status
from minmaxcon.errors import Unsupported
from minmaxcon.solvers import solve
from minmaxcon.testing.harness import Skip, reference
from minmaxcon.testing.problem_laws import exact_values

__all__ = ["OracleTrial", "SolverTrial"]


@dataclass(frozen=True)
class OracleTrial:
    """An oracle and what it is tried on.

    Attributes
    ----------
    oracle : Oracle
        The oracle.
    problem : MinMaxProblem
        A problem on finite data.
    quiet : MinMaxProblem
        A problem without noise: a single sample.
    tolerance : float
        By how much of :math:`P(x_0) - H` a bound may be wrong where there is noise.
    seed : int
        Seed of the queries.
    """

    oracle: Oracle
    problem: MinMaxProblem
    quiet: MinMaxProblem
    tolerance: float
    seed: int

    def start(self, problem: MinMaxProblem, runs: int, seed: int | None = None) -> Start:
        """Return where a query starts."""
        rng = np.random.default_rng(self.seed if seed is None else seed)
        return Start(problem.start_point(runs), None, Position.start(rng))

    def query(self, problem: MinMaxProblem, levels: Any, seed: int | None = None) -> Estimate:
        """Return the estimate of a query at some levels, one a run."""
        levels = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        return self.oracle.query(problem.at_level(levels), self.start(problem, levels.size, seed))

    def levels(self, problem: MinMaxProblem) -> Any:
        """Return three levels around the objective at the start."""
        level = problem.at_level(0.0).take([0])
        first = float(level.values(problem.start_point(1))[0, 0])
        return first - np.array([0.0, 0.3, 0.6]) * (0.5 + abs(first))

    @cached_property
    def noisy(self) -> tuple[Any, Estimate]:
        """Levels and estimate on the problem itself."""
        levels = self.levels(self.problem)
        return levels, self.query(self.problem, levels)

    @cached_property
    def still(self) -> tuple[Any, Estimate]:
        """Levels and estimate without noise."""
        levels = self.levels(self.quiet)
        return levels, self.query(self.quiet, levels)


@dataclass(frozen=True)
class SolverTrial:
    """A solver and what it is tried on.

    Attributes
    ----------
    solver : Solver
        The solver.
    problem : MinMaxProblem
        A problem of a single run on finite data.
    tolerance : float
        A solver that says solved must be within this share of :math:`f_0(x_0) - f^*`.
    seed : int
        Seed of the solves.
    """

    solver: Solver
    problem: MinMaxProblem
    tolerance: float
    seed: int

    @cached_property
    def solution(self) -> Solution:
        """The solution of the problem."""
        return solve(self.problem, self.solver, seed=self.seed)

    @cached_property
    def best(self) -> Any:
        """The exact solution, or a reason to skip."""
        try:
            found = reference().solve_exact(self.problem)
        except Unsupported as reason:
            raise Skip(str(reason)) from None
        if found.status is Status.INFEASIBLE:
            raise Skip("cvxpy finds the problem infeasible")
        return found

    @property
    def start_values(self) -> Any:
        """Objective and constraints minus bounds at the starting point."""
        return exact_values(self.problem, to_numpy(self.problem.start_point(1)))[0]
