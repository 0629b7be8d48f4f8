"""The solver interface: a state machine on a constrained problem that one loop drives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from minmaxcon.arrays import Array
from minmaxcon.core.needs import Needs
from minmaxcon.core.oracle import Start
from minmaxcon.core.problem import MinMaxProblem
from minmaxcon.core.solution import Status

__all__ = ["Outcome", "Solver"]


@dataclass(frozen=True, eq=False, slots=True)
class Outcome:
    r"""What a solver knows at some moment of R runs.

    Attributes
    ----------
    x : array (R, d)
        The best feasible point of each run, else the least infeasible one.
    objective : ndarray (R,)
        :math:`f_0(x)`.
    constraints : ndarray (R, m)
        :math:`f_i(x) - b_i`.
    lower : ndarray (R,)
        Lower bounds on each run's optimal value; minus infinity where there is none.
    exact : bool
        Whether these values are exact on finite data.
    confidence : float
        1 where they are; 0 where nothing is proved.
    status : tuple of Status
        How each run ended; :attr:`Status.BUDGET` while it goes on.
    reason : tuple of str
        The evidence, one sentence a run.
    trace : tuple of mapping
        One row a run and level, or outer iteration.
    steps, samples : int
        Oracle steps and samples so far.
    next : Start
        Where a following solve may start.
    """

    x: Array
    objective: Any
    constraints: Any
    lower: Any
    exact: bool
    confidence: float
    status: tuple[Status, ...]
    reason: tuple[str, ...]
    trace: tuple[Mapping[str, Any], ...]
    steps: int
    samples: int
    next: Start


class Solver(ABC):
    """A method for constrained problems.

    A new solver implements these four methods over an immutable state. It serves both :func:`minmaxcon.solve` and,
    for proximal problems, :class:`minmaxcon.IQRC`.
    """

    @property
    def needs(self) -> Needs:
        """Properties that a problem must have, those that an oracle inside asks for included; by default none."""
        return Needs()

    @property
    def title(self) -> str:
        """The method's name in messages, an oracle inside included."""
        return type(self).__name__

    @property
    def runs(self) -> int | None:
        """Number of runs where a setting is a vector with one value per run, else None."""
        return None

    def take(self, runs: Any) -> Self:
        """Return the solver of some of the runs (indices), where a setting is a vector with one value per run."""
        return self

    @abstractmethod
    def init(self, problem: MinMaxProblem, start: Start) -> Any:
        """Return the state before the first step.

        Parameters
        ----------
        problem : MinMaxProblem
            The problem.
        start : Start
            The starting point of each run, shape (R, d), which fixes the number of runs; warm duals; data position.
        """

    @abstractmethod
    def step(self, state: Any) -> Any:
        """Return the state after a bounded piece of work (some tens of milliseconds)."""

    @abstractmethod
    def finished(self, state: Any) -> bool:
        """Whether every run has ended."""

    @abstractmethod
    def outcome(self, state: Any) -> Outcome:
        """Return what is known at this state; valid at any time."""
