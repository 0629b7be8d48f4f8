"""The oracle interface: approximate solution of a level problem with bounds on its value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

from minmaxcon.arrays import Array
from minmaxcon.core.level import LevelProblem
from minmaxcon.core.needs import Needs
from minmaxcon.core.source import Position
from minmaxcon.geometry import DualPoint

__all__ = ["Estimate", "Oracle", "Start"]


@dataclass(frozen=True, eq=False, slots=True)
class Start:
    """Starting point of an oracle or a solver.

    Attributes
    ----------
    x : array (R, d)
        The primal point of each run.
    dual : DualPoint or None
        Warm duals; None for the generator's centre.
    position : Position
        Where the data are read from.
    memory : tuple of array or None
        What an oracle keeps from one query to the next, such as step sizes: arrays of one row a run, zero in the rows
        of runs that it was not asked about. None at first.

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> problem = mm.load_problem("toy")
    >>> start = mm.Start(problem.start_point(2), None, mm.Position.start(np.random.default_rng(0)))
    >>> start.x.shape, start.position.samples
    ((2, 1), 0)
    """

    x: Array
    dual: DualPoint | None
    position: Position
    memory: tuple[Array, ...] | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Estimate:
    r"""Answer of an oracle to a level problem.

    Attributes
    ----------
    x : array (R, d)
        The approximate solution :math:`\bar x` of each run.
    weights : array (R, k)
        Averaged weights :math:`\bar y`.
    scaled : array (R, p)
        Averaged scaled inner variables :math:`\bar a` (never :math:`\bar\alpha`).
    upper : ndarray (R,)
        The bound U on the optimal value; stochastic unless the oracle says otherwise.
    values : ndarray (R, k)
        Estimates of :math:`f_i + d_x - b_i`, whose largest is ``upper``; for streams, where nothing exact is known.
    samples, steps : int
        What the query cost.
    next : Start
        Where a following query may start.
    failure : tuple of (str or None)
        For each run None, or what stopped being finite and at which step.
    exhausted : bool
        Whether a stream ended before the query did.

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> problem = mm.load_problem("toy")
    >>> start = mm.Start(problem.start_point(1), None, mm.Position.start(np.random.default_rng(0)))
    >>> found = mm.MirrorProx(steps=20).query(problem.at_level(1.5), start)
    >>> found.x.shape, found.weights.shape, found.failure
    ((1, 1), (1, 2), (None,))
    """

    x: Array
    weights: Array
    scaled: Array
    upper: Any
    values: Any
    samples: int
    steps: int
    next: Start
    failure: tuple[str | None, ...]
    exhausted: bool = False


class Oracle(ABC):
    r"""A method that solves level problems.

    A new oracle implements :meth:`begin`, :meth:`advance`, :meth:`finished` and :meth:`estimate`; its state is an
    immutable value, so that one loop can drive it, stop it at any time and go on from it later.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> solution = mm.solve(mm.load_problem("toy"), mm.SFLS(oracle=mm.MirrorProx(steps=50)), seed=0)
    >>> solution.status.name
    'SOLVED'
    """

    compiled: bool = False
    """Whether its steps are compiled where the data's engine compiles, as with ``engine="jax"``."""

    @property
    def needs(self) -> Needs:
        """Properties that a level problem must have; by default none."""
        return Needs()

    @property
    def runs(self) -> int | None:
        """Number of runs where a setting is a vector with one value per run, else None."""
        return None

    @abstractmethod
    def begin(
        self,
        problem: LevelProblem,
        start: Start,
        *,
        accuracy: float = 0.0,
        confidence: float = 0.9,
        effort: float | None = None,
    ) -> Any:
        r"""Return the state at the start of a query.

        Parameters
        ----------
        problem : LevelProblem
            The level problem, of R runs.
        start : Start
            Primal point, duals and data position.
        accuracy : float
            The oracle error :math:`\epsilon_A` that is wanted. An oracle of a fixed number of steps may ignore accuracy
            and confidence, as SMD does.
        confidence : float
            The probability :math:`1 - \delta` with which it is wanted.
        effort : float, optional
            In a sequence of queries that grow, the factor, at least 1, by which this one should be longer than the
            shortest that is worth its end. None for a query that stands alone.
        """

    def take(self, runs: Any) -> Self:
        """Return the oracle of some of the runs (indices), where a setting is a vector with one value per run.

        Queries are asked about the runs that have not ended. The default is the oracle itself.
        """
        return self

    @abstractmethod
    def advance(self, state: Any) -> Any:
        """Return the state after a bounded piece of work (some tens of milliseconds)."""

    @abstractmethod
    def finished(self, state: Any) -> bool:
        """Whether the query is complete."""

    @abstractmethod
    def estimate(self, state: Any) -> Estimate:
        """Return the estimate at this state; valid at any time after the first advance."""

    def query(self, problem: LevelProblem, start: Start, *, accuracy: float = 0.0, confidence: float = 0.9) -> Estimate:
        """Solve a level problem from begin to end; see :meth:`begin` for the parameters.

        Raises
        ------
        Unsupported
            If the problem does not meet :attr:`needs`.
        """
        self.needs.check(type(self).__name__, problem)
        state = self.begin(problem, start, accuracy=accuracy, confidence=confidence)
        while not self.finished(state):
            state = self.advance(state)
        return self.estimate(state)
