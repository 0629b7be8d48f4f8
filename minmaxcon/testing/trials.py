"""Oracles and solvers with the problems that they are tried on; what several checks look at is solved once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.core import Batch, Estimate, MinMaxProblem, Oracle, Position, Solution, Solver, Start, Status
from minmaxcon.data import Finite
from minmaxcon.errors import Unsupported
from minmaxcon.solvers import solve
from minmaxcon.testing.harness import Fault, Skip, reference
from minmaxcon.testing.problem_laws import fresh_values

__all__ = ["OracleTrial", "SolverTrial", "Whole", "without_noise"]

_ROWS = 500  # rows of a problem's data that are drawn at every step where there is to be no noise


class Whole(Finite):
    """Finite data whose every batch is all rows, so that there is no noise, whatever a method draws."""

    def draw(self, position: Position, steps: int, batch_size: int) -> tuple[Iterator[Batch], Position]:
        """See :meth:`Source.draw`."""
        _, after = super().draw(position, steps, batch_size)
        return (dict(self.arrays) for _ in range(steps)), after


def without_noise(problem: MinMaxProblem) -> MinMaxProblem:
    """Return a problem whose every batch is all of its finite data, or the first rows where these are many."""
    _, rows = next(iter(problem.data.chunks(_ROWS)))
    like = problem.data.like
    dtype = "float32" if like.dtype.itemsize == 4 else "float64"
    return replace(problem, data=Whole(rows, engine=namespace(like).name, dtype=dtype))


@dataclass(frozen=True)
class OracleTrial:
    """An oracle and what it is tried on.

    Attributes
    ----------
    oracle : Oracle
        The oracle.
    problem : MinMaxProblem
        A problem on finite data.
    quiet : tuple of MinMaxProblem
        Problems without noise: of a single sample, or with all samples in every batch.
    tolerance : float
        By how much of :math:`P(x_0) - H` a bound may be wrong where there is noise.
    seed : int
        Seed of the queries.
    """

    oracle: Oracle
    problem: MinMaxProblem
    quiet: tuple[MinMaxProblem, ...]
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
        level = problem.at_level(0.0)
        first = float(level.values(problem.start_point(1))[0, 0])
        return first - np.array([0.0, 0.3, 0.6]) * (0.5 + abs(first))

    @cached_property
    def noisy(self) -> tuple[Any, Estimate]:
        """Levels and estimate on the problem itself."""
        levels = self.levels(self.problem)
        return levels, self.query(self.problem, levels)

    @cached_property
    def still(self) -> tuple[tuple[MinMaxProblem, Any, Estimate], ...]:
        """Each problem without noise, with levels and estimate."""
        found = []
        for problem in self.quiet:
            levels = self.levels(problem)
            found.append((problem, levels, self.query(problem, levels)))
        return tuple(found)

    def setback(self, problem: MinMaxProblem) -> float:
        """Return which share of the way from the start a second query may lose: few steps do less on large problems."""
        return 0.1 if problem in self.quiet[:2] else 0.5

    def each(self, check: Callable[[MinMaxProblem, Any, Estimate], str]) -> str:
        """Return what a check tells of each problem without noise; a fault names the problem."""
        told, skipped = [], []
        for problem, levels, found in self.still:
            try:
                told.append(f"{problem.name}: {check(problem, levels, found)}")
            except Skip as reason:
                skipped.append(f"{problem.name}: {reason}")
            except Fault as fault:
                raise Fault(f"{fault.seen} (On {problem.name}, without noise.)", fault.counterexample) from None
        if not told:
            raise Skip("; ".join(skipped))
        return "; ".join(told)


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
        return fresh_values(self.problem, to_numpy(self.problem.start_point(1)))[0]
