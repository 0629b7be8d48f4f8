"""The solver interface: a state machine on a constrained problem that one loop drives, and the states of its runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from minmaxcon.arrays import Array, to_numpy
from minmaxcon.core.evidence import Evidence
from minmaxcon.core.needs import Needs
from minmaxcon.core.oracle import Start
from minmaxcon.core.problem import MinMaxProblem
from minmaxcon.core.runs import where_runs
from minmaxcon.core.solution import Status
from minmaxcon.errors import InvalidInput

__all__ = ["GOING_ON", "Outcome", "Points", "RunsState", "Solver", "Verdict"]

GOING_ON = "the solve is going on."
"""The reason of a run that has not ended."""

Verdict = tuple[Status | None, str]
"""How a run has ended, None while it goes on, and the evidence."""


@dataclass(frozen=True, eq=False, slots=True)
class Points:
    r"""A point of each of R runs and its values: exact on finite data, estimates on streams, infinite where unknown.

    Attributes
    ----------
    x : array (R, d)
        The points.
    objective : ndarray (R,)
        :math:`f_0(x)`.
    constraints : ndarray (R, m)
        :math:`f_i(x) - b_i`.

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> from minmaxcon.core import Points
    >>> points = Points.measured(mm.load_problem("toy"), np.array([[0.5], [1.5]]))
    >>> points.feasible, points.violation.round(2)
    (array([ True, False]), array([-0.5,  0.5]))
    """

    x: Array
    objective: Any
    constraints: Any

    @classmethod
    def measured(cls, problem: MinMaxProblem, x: Array) -> Points:
        """Return points x (R, d) with their exact values on finite data, which need not be finite."""
        runs = int(x.shape[0])
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            values = problem.at_level(np.zeros(runs)).values(x)
        return cls(x, values[:, 0], values[:, 1:] - problem.bounds(runs))

    @classmethod
    def first(cls, problem: MinMaxProblem, x: Array) -> Points:
        """Return starting points x (R, d), refined; on streams their values are infinite.

        Raises
        ------
        InvalidInput
            If an exact value is not finite; the function is named.
        """
        runs = int(x.shape[0])
        if problem.data.size is None:
            return cls(x, np.full(runs, np.inf), np.full((runs, len(problem.constraints)), np.inf))
        found = cls.measured(problem, problem.family.refine(x, problem.data))
        finite = np.isfinite(np.concatenate([found.objective[:, None], found.constraints], axis=1))
        if not finite.all():
            run, function = np.argwhere(~finite)[0]
            name = (problem.objective, *problem.constraints)[function].name
            need = (
                f"{name!r} is not finite there; give the problem a start, or the solve an x0, where every function is."
            )
            raise InvalidInput("start", to_numpy(found.x)[run], need)
        return found

    @property
    def violation(self) -> Any:
        """The largest :math:`f_i - b_i` (R,)."""
        return self.constraints.max(axis=1)

    @property
    def feasible(self) -> Any:
        """Whether no constraint is violated (R,)."""
        return self.violation <= 0

    def better(self, than: Points) -> Any:
        """Tell for each run (R,) whether these are better than others.

        Of feasible points the one with the least objective is best, else the one that is least infeasible; what is not
        finite is never better.
        """
        violation, least = self.violation, than.violation
        finite = np.isfinite(self.objective) & np.isfinite(violation)
        return finite & np.where(least <= 0, (violation <= 0) & (self.objective < than.objective), violation < least)

    def or_better(self, other: Points) -> Points:
        """Return the better of these and other points, for each run."""
        found: Points = where_runs(other.better(self), other, self)
        return found


@dataclass(frozen=True, eq=False, slots=True)
class Outcome:
    r"""Results of R runs at some moment of a solve.

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
    confidence : float or ndarray (R,)
        1 where they are; :math:`1 - \delta` of bounds from fresh samples of a stream; 0 where nothing is proved.
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
    evidence : Evidence or None
        Multipliers that prove the lower bounds, or that no point is feasible.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> solver = mm.SFLS()
    >>> *_, last = mm.iterate(mm.load_problem("toy"), solver, seed=0)
    >>> outcome = solver.outcome(last)
    >>> outcome.status[0].name, outcome.x.shape
    ('SOLVED', (1, 1))
    """

    x: Array
    objective: Any
    constraints: Any
    lower: Any
    exact: bool
    confidence: Any
    status: tuple[Status, ...]
    reason: tuple[str, ...]
    trace: tuple[Mapping[str, Any], ...]
    steps: int
    samples: int
    next: Start
    evidence: Evidence | None = None

    @property
    def points(self) -> Points:
        """The points and their values."""
        return Points(self.x, self.objective, self.constraints)


@dataclass(frozen=True, eq=False, slots=True)
class RunsState:
    """State of R runs, which the state of a solver may extend: :class:`Solver` then knows how it ends.

    Attributes
    ----------
    problem : MinMaxProblem
        The problem.
    points : Points
        The best point of each run so far, unless the solver says otherwise.
    lower : ndarray (R,)
        Lower bounds on the optimal values.
    evidence : Evidence
        Multipliers that prove them, or that no point is feasible.
    status : tuple of (Status or None)
        None while a run goes on.
    reason : tuple of str
        Evidence.
    next : Start
        Where the next query or step starts, for all R runs.
    trace : tuple of mapping
        Rows so far.
    steps, samples : int
        Cost so far, without what is under way.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> state = next(mm.iterate(mm.load_problem("toy"), mm.SFLS(), seed=0))
    >>> state.status, state.x.shape, state.steps
    ((None,), (1, 1), 0)
    """

    problem: MinMaxProblem
    points: Points
    lower: Any
    evidence: Evidence
    status: tuple[Status | None, ...]
    reason: tuple[str, ...]
    next: Start
    trace: tuple[Mapping[str, Any], ...]
    steps: int
    samples: int

    @staticmethod
    def begun(problem: MinMaxProblem, start: Start) -> dict[str, Any]:
        """Return the fields before the first step; the start is measured exactly on finite data.

        Raises
        ------
        InvalidInput
            If an exact value at the start is not finite.
        """
        points, runs = Points.first(problem, start.x), int(start.x.shape[0])
        return {
            "problem": problem,
            "points": points,
            "lower": np.full(runs, -np.inf),
            "evidence": Evidence.none(problem, runs),
            "status": (None,) * runs,
            "reason": (GOING_ON,) * runs,
            "next": replace(start, x=points.x),
            "trace": (),
            "steps": 0,
            "samples": 0,
        }

    @property
    def x(self) -> Array:
        """The points' coordinates (R, d)."""
        return self.points.x

    @property
    def objective(self) -> Any:
        """Their objectives (R,)."""
        return self.points.objective

    @property
    def constraints(self) -> Any:
        """Their :math:`f_i - b_i` (R, m)."""
        return self.points.constraints

    @property
    def going(self) -> Any:
        """The runs that go on, an ndarray of indices."""
        return np.flatnonzero([status is None for status in self.status])

    def judged(self, verdicts: Mapping[int, Verdict]) -> Self:
        """Return the state with new verdicts on some runs."""
        status, reason = list(self.status), list(self.reason)
        for run, verdict in verdicts.items():
            status[run], reason[run] = verdict
        return replace(self, status=tuple(status), reason=tuple(reason))

    def outcome(self, points: Points | None = None, steps: int = 0, samples: int = 0) -> Outcome:
        """Return what is known: by default of the points of the state, at the cost so far and what is added to it."""
        points = self.points if points is None else points
        exact = self.problem.data.size is not None
        return Outcome(
            x=points.x,
            objective=points.objective,
            constraints=points.constraints,
            lower=self.lower,
            exact=exact,
            confidence=float(exact),
            status=tuple(Status.BUDGET if status is None else status for status in self.status),
            reason=self.reason,
            trace=self.trace,
            steps=self.steps + steps,
            samples=self.samples + samples,
            next=self.next,
            evidence=self.evidence,
        )


class Solver(ABC):
    """A method for constrained problems.

    A new solver implements :meth:`init` and :meth:`step` over an immutable state that extends :class:`RunsState`; with
    a state of another kind, :meth:`finished` and :meth:`outcome` too. It serves both :func:`minmaxcon.solve` and, for
    proximal problems, :class:`minmaxcon.IQRC`.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> solver = mm.SFLS(oracle=mm.SMD(), tolerance=0.01)
    >>> mm.solve(mm.load_problem("toy"), solver, seed=0).status.name
    'SOLVED'
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

    @property
    def compiled(self) -> bool:
        """Whether its steps are compiled where the data's engine compiles, as with ``engine="jax"``."""
        return False

    def take(self, runs: Any) -> Self:
        """Return the solver of some of the runs (indices), where a setting is a vector with one value per run."""
        return self

    @abstractmethod
    def init(self, problem: MinMaxProblem, start: Start) -> Any:
        """Return the state before the first step.

        Parameters
        ----------
        problem : MinMaxProblem
            The problem, which meets :attr:`needs`.
        start : Start
            The starting point of each run, shape (R, d), which fixes the number of runs; warm duals; data position.

        Raises
        ------
        InvalidInput
            If an exact value at the start is not finite.
        """

    @abstractmethod
    def step(self, state: Any) -> Any:
        """Return the state after a bounded piece of work (some tens of milliseconds)."""

    def finished(self, state: Any) -> bool:
        """Whether every run has ended."""
        return all(status is not None for status in state.status)

    def outcome(self, state: Any) -> Outcome:
        """Return what is known at this state; valid at any time."""
        found: Outcome = state.outcome()
        return found
