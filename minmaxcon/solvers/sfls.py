"""The stochastic feasible level-set method."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from minmaxcon.arrays import Array
from minmaxcon.checks import number, whole
from minmaxcon.core import MinMaxProblem, Needs, Oracle, Outcome, Position, Solver, Start, Status
from minmaxcon.core.runs import put_dual, put_rows, take_start
from minmaxcon.errors import InvalidInput
from minmaxcon.geometry import DualPoint
from minmaxcon.oracles.smd import SMD
from minmaxcon.solvers.averaging.checkpoint import LEAST_SPAN
from minmaxcon.solvers.judge import judge_exactly, judge_stream
from minmaxcon.solvers.state import RunsState, first_fields

__all__ = ["SFLS", "SFLSState"]


@dataclass(frozen=True, eq=False, slots=True)
class SFLSState(RunsState):
    """Where a solve stands; ``x`` is the best point so far, and ``next`` has the duals of levels.

    Attributes
    ----------
    level : ndarray (R,)
        The level r of each run; infinite while a run is still looking for a strictly feasible point.
    anchor : array (R, d)
        A strictly feasible point of each run, where one is known: the point whose objective was the first level.
    first : ndarray (R,)
        The first level :math:`r_0`.
    lower : ndarray (R,)
        Lower bounds on the optimal values.
    opening : ndarray (R,)
        The first bound :math:`U(r_0)`, against which progress is measured where there is no certificate.
    search_dual : DualPoint or None
        The duals of searches, which have no weight of the objective.
    rounds, searched : ndarray (R,) of int
        Queries begun, of each run: its own clock; and how many of them were searches.
    positions : tuple of Position
        Where the data are read from in the k-th query of any run, so that each draws what it would draw alone.
    active : ndarray of int
        The runs of the current query.
    query : object or None
        The oracle's state.
    """

    level: Any
    anchor: Array
    first: Any
    lower: Any
    opening: Any
    search_dual: DualPoint | None
    rounds: Any
    searched: Any
    positions: tuple[Position, ...]
    active: Any
    query: Any


class SFLS(Solver):
    r"""Stochastic feasible level-set method: root finding on :math:`H(r)` from above, so that iterates stay feasible.

    The first level :math:`r_0` is the objective at a strictly feasible point: the problem's start, or a point that the
    oracle finds by minimising the violation. Then

    .. math:: r \leftarrow r + U(r)/(2\theta), \qquad \delta_k = \delta/2^{k+1}.

    On finite data every estimate is evaluated exactly at the end of its level: U becomes the exact
    :math:`P(r, \bar x)`, a point counts as feasible only on that, an infeasible estimate is pulled back towards the
    strictly feasible point, and the averaged duals give the certificate's lower bound :math:`r + D(r)/\bar y_0`. A run
    is solved when upper and lower bound agree within the tolerance. On streams the oracle's U steers the
    levels, as in the paper, but proves nothing: objective and feasibility are estimates, there is no lower bound, and
    no run ends as solved.

    Parameters
    ----------
    oracle : Oracle
        Solves level problems; SMD by default.
    tolerance : float
        :math:`\epsilon`: relative optimality :math:`(f_0(x) - f^*)/(r_0 - f^*)` that is asked for.
    levels : int
        Largest number of levels.
    theta : float
        :math:`\theta > 1/2`.
    delta : float
        :math:`\delta`: query k asks the oracle for an answer that is right with probability :math:`1 - \delta_k`. SMD,
        like any oracle of a fixed number of steps, takes no notice of it, and no result claims it.
    oracle_error : float
        :math:`\epsilon_A`, handed to oracles that can aim at an accuracy, which SMD cannot; and taken off
        :math:`|H(r_0)|` in the rule that ends runs without a certificate.
    slack : float
        Added to the first level, for starts that are only nearly feasible.
    searches : int
        Largest number of queries in search of a strictly feasible point.
    growth : float
        Factor, at least 1, by which each query is longer than the one before: the noise that is left in an average
        falls with the root of its length, so any tolerance is reached in the end.
    least_span : float
        :math:`r_0 - f^*` counts as at least this share of :math:`1 + |f_0(x)|`, so that a run that starts near the
        optimum can be solved: its gap need not be smaller than ``tolerance * least_span * (1 + |f_0(x)|)``.

    Raises
    ------
    InvalidInput
        If a setting is out of range.

    References
    ----------
    Lin, Nadarajah, Soheili and Yang (2020); Yao, Lin and Yang (2023), algorithm 1, with the errata.
    """

    def __init__(
        self,
        oracle: Oracle | None = None,
        tolerance: float = 0.005,
        levels: int = 30,
        theta: float = 0.6,
        delta: float = 0.1,
        oracle_error: float = 0.0,
        slack: float = 0.0,
        searches: int = 5,
        growth: float = 1.1,
        least_span: float = LEAST_SPAN,
    ) -> None:
        self.oracle = SMD() if oracle is None else oracle
        if not isinstance(self.oracle, Oracle):
            raise InvalidInput("oracle", oracle, "must be an Oracle such as SMD().")
        remedy = "must lie strictly between 0 and 1."
        self.tolerance = number("tolerance", tolerance, remedy, above=0.0, below=1.0)
        self.delta = number("delta", delta, remedy, above=0.0, below=1.0)
        self.theta = number("theta", theta, "must be finite and above 1/2.", above=0.5)
        self.levels, self.searches = whole("levels", levels), whole("searches", searches)
        self.oracle_error = number("oracle_error", oracle_error, "must be finite and at least 0.", least=0.0)
        self.slack = number("slack", slack, "must be finite and at least 0.", least=0.0)
        self.growth = number("growth", growth, "must be finite and at least 1.", least=1.0)
        self.least_span = number("least_span", least_span, "must be finite and at least 0.", least=0.0)

    @property
    def runs(self) -> int | None:
        """Number of runs where a setting of the oracle is a vector."""
        return self.oracle.runs

    @property
    def needs(self) -> Needs:
        """Those of the oracle. Convexity is none: without it no lower bound is claimed."""
        return self.oracle.needs

    @property
    def title(self) -> str:
        """See :attr:`Solver.title`."""
        return f"SFLS(oracle={type(self.oracle).__name__})"

    def take(self, runs: Any) -> Self:
        """See :meth:`Solver.take`."""
        other = copy.copy(self)
        other.oracle = self.oracle.take(runs)
        return other

    def init(self, problem: MinMaxProblem, start: Start) -> SFLSState:
        """See :meth:`Solver.init`; evaluates the start exactly on finite data.

        Raises
        ------
        InvalidInput
            If its values are not finite.
        """
        begun = first_fields(problem, start)
        x, objective, runs = begun["x"], begun["objective"], int(start.x.shape[0])
        level = np.where(begun["constraints"].max(axis=1) < 0, objective + self.slack, np.inf)
        return SFLSState(
            **begun,
            level=level,
            anchor=x,
            first=level.copy(),
            lower=np.full(runs, -np.inf),
            opening=np.full(runs, np.nan),
            search_dual=None,
            rounds=np.zeros(runs, dtype=int),
            searched=np.zeros(runs, dtype=int),
            positions=(start.position,),
            active=np.arange(0),
            query=None,
        )

    def finished(self, state: SFLSState) -> bool:
        """See :meth:`Solver.finished`."""
        return all(status is not None for status in state.status)

    def step(self, state: SFLSState) -> SFLSState:
        """See :meth:`Solver.step`: one advance of the oracle; levels end when the oracle's query does."""
        if state.query is None:
            state = self._begin(state)
        query = self.oracle.advance(state.query)
        state = replace(state, query=query)
        return self._end(state) if self.oracle.finished(query) else state

    def outcome(self, state: SFLSState) -> Outcome:
        """See :meth:`Solver.outcome`; a query that is under way counts for nothing yet."""
        exact = state.problem.data.size is not None
        steps, samples = state.steps, state.samples
        if state.query is not None:
            running = self.oracle.estimate(state.query)
            steps, samples = steps + running.steps, samples + running.samples
        return Outcome(
            x=state.x,
            objective=state.objective,
            constraints=state.constraints,
            lower=state.lower,
            exact=exact,
            confidence=float(exact),
            status=tuple(Status.BUDGET if status is None else status for status in state.status),
            reason=state.reason,
            trace=state.trace,
            steps=steps,
            samples=samples,
            next=state.next,
        )

    def _begin(self, state: SFLSState) -> SFLSState:
        """Start a query for the runs whose clocks are behind; of those, the ones that search for a feasible point."""
        waiting = np.flatnonzero([status is None for status in state.status])
        clock = int(state.rounds[waiting].min())
        ready = waiting[state.rounds[waiting] == clock]
        searching = np.isinf(state.level[ready])
        active = ready[searching] if searching.any() else ready
        part = state.problem.take(active)
        problem = part.feasibility(active.size) if searching.any() else part.at_level(state.level[active])
        dual = state.search_dual if searching.any() else state.next.dual
        start = take_start(replace(state.next, dual=dual, position=state.positions[clock]), active)
        confidence = 1.0 - self.delta / 2.0 ** (clock + 1)
        # The effort depends on the run's own clock alone, so that a run of many equals the same run alone.
        effort = self.growth**clock
        query = self.oracle.take(active).begin(
            problem, start, accuracy=self.oracle_error, confidence=confidence, effort=effort
        )
        rounds, searched = state.rounds.copy(), state.searched.copy()
        rounds[active] += 1
        searched[active] += bool(searching.any())
        return replace(state, query=query, active=active, rounds=rounds, searched=searched)

    def _end(self, state: SFLSState) -> SFLSState:
        """Judge the estimate, move the levels, and decide which runs have ended."""
        estimate = self.oracle.estimate(state.query)
        judge = judge_stream if state.problem.data.size is None else judge_exactly
        found = judge(state, estimate, self)
        runs = state.active
        status, reason = list(state.status), list(state.reason)
        for i, j in enumerate(runs):
            status[j], reason[j] = found.status[i], found.reason[i]

        def put(name: str) -> Any:
            return put_rows(getattr(state, name), runs, getattr(found, name))

        after, searched = estimate.next, bool(np.isinf(state.level[runs[0]]))
        problem = state.problem.feasibility() if searched else state.problem.at_level(state.level)
        dual = put_dual(state.search_dual if searched else state.next.dual, runs, after.dual, problem, state.x)
        positions, clock = state.positions, int(state.rounds[runs[0]])
        if len(positions) == clock and any(failure is None for failure in estimate.failure):
            positions = (*positions, after.position)
        level_dual = state.next.dual if searched else dual

        return replace(
            state,
            level=put("level"),
            anchor=put("anchor"),
            first=put("first"),
            x=put("x"),
            objective=put("objective"),
            constraints=put("constraints"),
            lower=put("lower"),
            opening=put("opening"),
            status=tuple(status),
            reason=tuple(reason),
            next=Start(put_rows(state.next.x, runs, after.x), level_dual, positions[-1]),
            search_dual=dual if searched else state.search_dual,
            positions=positions,
            query=None,
            trace=(*state.trace, *found.rows),
            steps=state.steps + estimate.steps,
            samples=state.samples + estimate.samples,
        )
