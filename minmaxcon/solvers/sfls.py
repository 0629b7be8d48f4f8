r"""The stochastic feasible level-set method: the root of :math:`H(r)` in queries of growing length."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Self

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.checks import number, whole
from minmaxcon.core import (
    Estimate,
    Evidence,
    LevelProblem,
    MinMaxProblem,
    Needs,
    Oracle,
    Outcome,
    Points,
    Position,
    RunsState,
    Solver,
    Start,
    Status,
)
from minmaxcon.core.certificate import LEAST_SPAN, nearby_variation, optimality
from minmaxcon.core.confidence import Look, look, share_of_look
from minmaxcon.core.lower import lower_bound
from minmaxcon.core.runs import put_runs, take_runs, where_runs, zero_rows
from minmaxcon.core.scaling import divided, in_units, row_scales
from minmaxcon.core.solver import Verdict
from minmaxcon.errors import InvalidInput
from minmaxcon.geometry import DualPoint
from minmaxcon.oracles.mirror_prox import MirrorProx
from minmaxcon.oracles.smd import SMD
from minmaxcon.solvers.feasibility import contradictions, pull_back

__all__ = ["SFLS", "SFLSState"]

_TIE = 1e-9
"""Violations and bounds nearer to 0 than this count as 0."""

_NONE = 1e-100
"""Weights of the objective up to this count as 0."""

_UNPROVED = "no lower bound is known."
_SMALL, _SEARCH = 2**19, 300
"""Rows x variables up to which a search goes on by exact passes, and how many steps it makes."""

_BOUND, _BOUND_STEPS = 10.0, (10, 200)
"""Steps of a search for a lower bound for each pass that a query took; a row costs a pass a tenth of what it costs a
batch. The least and the largest number of them."""

_NEAR, _ROUGH = 1e-6, 1e-2
"""How near a point is pulled back to the boundary, as a share of the segment; the second where nothing is proved."""

_LOOK = 0.25
"""Fresh samples that bound a query's answer on a stream, as a share of those that it took."""

_KNOWN = ("points", "level", "interior", "first", "lower", "evidence", "opening", "nearby", "below", "proved")
"""The fields that the end of a query changes, one row per run."""


@dataclass(frozen=True, eq=False, slots=True)
class SFLSState(RunsState):
    """State of a solve; ``points`` are the best so far, and ``next`` has the duals of levels.

    Attributes
    ----------
    level : ndarray (R,)
        The level r of each run; infinite while a run is still looking for a strictly feasible point.
    interior : array (R, d)
        A strictly feasible point of each run, where one is known: the point whose objective was the first level.
    first : ndarray (R,)
        The first level :math:`r_0`.
    opening : ndarray (R,)
        The first bound :math:`U(r_0)`, against which progress is measured where there is no certificate.
    nearby : ndarray (R,)
        What the objective varies by near the interior point; NaN until a run needs it.
    below : ndarray (R,)
        On streams, a bound from below on the objective at the interior point.
    proved : ndarray (R,) of bool
        On streams, whether the values of the best points are bounds from fresh samples.
    search_dual : DualPoint or None
        The duals of searches, which have no multiplier of the objective.
    rounds, searched : ndarray (R,) of int
        Queries begun, of each run: its own clock; and how many of them were searches.
    scales : ndarray (k,)
        By what oracles see the functions divided, see :mod:`minmaxcon.core.scaling`.
    positions : tuple of Position
        Where the data are read from in the k-th query of any run, so that each draws what it would draw alone.
    active : ndarray of int
        The runs of the current query.
    query : object or None
        The oracle's state.
    """

    level: Any
    interior: Array
    first: Any
    opening: Any
    nearby: Any
    below: Any
    proved: Any
    search_dual: DualPoint | None
    rounds: Any
    searched: Any
    scales: Any
    positions: tuple[Position, ...]
    active: Any
    query: Any

    @property
    def searching(self) -> bool:
        """Whether the current query looks for strictly feasible points."""
        return bool(np.isinf(self.level[self.active]).any())


class SFLS(Solver):
    r"""Stochastic feasible level-set method: root finding on :math:`H(r)`, all of whose points are feasible.

    The first level :math:`r_0` is the objective at a strictly feasible point: the problem's start, or a point that the
    oracle finds by minimising the violation. Then

    .. math:: r \leftarrow r + U(r)/(2\theta), \qquad \delta_k = \delta/2^{k+1}.

    On finite data every estimate is evaluated exactly at the end of its level: U becomes the exact
    :math:`P(r, \bar x)`, a point counts as feasible only on that, an infeasible estimate is pulled back towards the
    strictly feasible point, and the averaged duals give the certificate's lower bound
    :math:`\underline f = r + D(r)/\bar y_0`. A run is solved when upper and lower bound agree within the tolerance. As
    soon as there is a lower bound, the next level is the middle of the bracket,

    .. math:: r \leftarrow \tfrac12\big(\underline f + \min_k f_0(x_k)\big),

    which halves with each query that finds the sign of :math:`H(r)`, however small the objective's weight
    :math:`\bar y_0` is. On streams the levels move as in the paper, and
    each query is followed by a quarter as many fresh samples: they confirm a feasible point, and bound its objective
    from above and the optimal value from below, all with probability :math:`1 - \delta` together.

    Queries grow by a factor, so that nobody needs to say how many steps one should have: the first are short, as a new
    level helps more than a better answer, and the later ones as long as their precision needs.

    Parameters
    ----------
    oracle : Oracle
        Solves level problems; SMD by default.
    tolerance : float
        :math:`\epsilon`: relative optimality :math:`(f_0(x) - f^*)/(r_0 - f^*)` that is asked for.
    levels : int
        Largest number of levels.
    theta : float
        :math:`\theta > 1/2`, of the rule on streams and where no lower bound is known.
    delta : float
        :math:`\delta`: on streams all that is claimed of a run holds with probability :math:`1 - \delta`, if block
        means are nearly normal; on finite data claims are exact. Query k also asks the oracle for an answer that is
        right with probability :math:`1 - \delta_k`, of which SMD, like any oracle of a fixed number of steps, takes no
        notice.
    oracle_error : float
        :math:`\epsilon_A`, handed to oracles that can aim at an accuracy, which SMD cannot; and taken off
        :math:`|H(r_0)|` in the rule that ends runs without a certificate.
    slack : float
        Added to the first level, for starts that are only nearly feasible.
    searches : int
        Largest number of queries in search of a strictly feasible point.
    growth : float
        Factor, at least 1, by which each query is longer than the one before: the noise that is left in an average
        falls with the root of its length, so any tolerance is reached in the end. The length of the first is the
        oracle's.
    least_span : float
        How near to the start, as a share of the way to other points of X, the objective is looked at for what it varies
        by: :math:`r_0 - f^*` counts as at least that, so that a run that starts at the optimum can be solved. At 0 the
        gap is measured against :math:`r_0 - f^*` alone.

    Raises
    ------
    InvalidInput
        If a setting is out of range.

    References
    ----------
    Lin, Nadarajah, Soheili and Yang (2020); Yao, Lin and Yang (2023), algorithm 1, with the errata.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> solution = mm.solve(mm.load_problem("toy"), mm.SFLS(oracle=mm.SMD(), tolerance=0.01), seed=0)
    >>> solution.status.name, round(float(solution.objective), 2)
    ('SOLVED', 1.0)
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
        searches: int = 20,
        growth: float = 1.2,
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
        self.least_span = number("least_span", least_span, "must lie between 0 and 1.", least=0.0, most=1.0)

    @property
    def runs(self) -> int | None:
        """Number of runs where a setting of the oracle is a vector."""
        return self.oracle.runs

    @property
    def needs(self) -> Needs:
        """Those of the oracle. Convexity is none: without it no lower bound is claimed."""
        return self.oracle.needs

    @property
    def compiled(self) -> bool:
        """See :attr:`Solver.compiled`."""
        return self.oracle.compiled

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
        """See :meth:`Solver.init`; evaluates the start exactly on finite data."""
        begun, runs = RunsState.begun(problem, start), int(start.x.shape[0])
        points: Points = begun["points"]
        level = np.where(points.violation < 0, points.objective + self.slack, np.inf)
        return SFLSState(
            **begun,
            level=level,
            interior=points.x,
            first=level.copy(),
            opening=np.full(runs, np.nan),
            nearby=np.full(runs, np.nan),
            below=np.full(runs, -np.inf),
            proved=np.zeros(runs, dtype=bool),
            search_dual=None,
            rounds=np.zeros(runs, dtype=int),
            searched=np.zeros(runs, dtype=int),
            scales=row_scales(problem),
            positions=(start.position,),
            active=np.arange(0),
            query=None,
        )

    def step(self, state: SFLSState) -> SFLSState:
        """See :meth:`Solver.step`: one advance of the oracle; levels end when the oracle's query does."""
        if state.query is None:
            state = self._begin(state)
        query = self.oracle.advance(state.query)
        state = replace(state, query=query)
        return self._end(state) if self.oracle.finished(query) else state

    def outcome(self, state: SFLSState) -> Outcome:
        """See :meth:`Solver.outcome`; of a query that is under way only the cost counts yet."""
        steps = samples = 0
        if state.query is not None:
            running = self.oracle.estimate(state.query)
            steps, samples = running.steps, running.samples
        found = state.outcome(steps=steps, samples=samples)
        # What the gap is relative to.
        found = replace(found, evidence=replace(state.evidence, first=_known(state.interior, state.first)))
        if found.exact:
            return found
        claimed = state.proved | (np.isfinite(state.lower) & ~found.points.feasible)
        return replace(found, confidence=np.where(claimed, 1.0 - self.delta, 0.0))

    def _begin(self, state: SFLSState) -> SFLSState:
        """Start a query for the runs whose clocks are behind; of those, the ones that search for a feasible point."""
        waiting = state.going
        clock = int(state.rounds[waiting].min())
        ready = waiting[state.rounds[waiting] == clock]
        search = np.isinf(state.level[ready])
        searching = bool(search.any())
        active = ready[search] if searching else ready
        part = state.problem.take(active)
        problem = part.feasibility(active.size) if searching else part.at_level(state.level[active])
        dual, memory = (state.search_dual, None) if searching else (state.next.dual, state.next.memory)
        x, dual, memory = take_runs((state.next.x, dual, memory), active)
        start = Start(x, dual, state.positions[clock], memory)
        # The effort depends on the run's own clock alone, so that a run of many equals the same run alone.
        query = self.oracle.take(active).begin(
            divided(problem, state.scales[1:] if searching else state.scales),
            start,
            accuracy=self.oracle_error,
            confidence=1.0 - self.delta / 2.0 ** (clock + 1),
            effort=self.growth**clock,
        )
        rounds, searched = state.rounds.copy(), state.searched.copy()
        rounds[active] += 1
        searched[active] += searching
        return replace(state, query=query, active=active, rounds=rounds, searched=searched)

    def _end(self, state: SFLSState) -> SFLSState:
        """Judge the estimate, move the levels, and decide which runs have ended."""
        runs, searching = state.active, state.searching
        asked = state.problem.feasibility(len(state.status)) if searching else state.problem.at_level(state.level)
        estimate = in_units(self.oracle.estimate(state.query), asked, state.scales[1:] if searching else state.scales)
        known = SimpleNamespace(**{name: take_runs(getattr(state, name), runs) for name in _KNOWN})
        known.position, known.samples, known.scales = estimate.next.position, 0, state.scales
        judge = self._judge_estimate if state.problem.data.size is None else self._judge_exactly
        verdicts, columns = judge(state, estimate, known)
        for i, failure in enumerate(estimate.failure):
            if failure is not None:
                verdicts[i] = Status.DIVERGED, f"{failure} of query {state.rounds[runs[i]]}."
        after = replace(estimate.next, position=known.position)  # a look on a stream reads on
        positions, clock = state.positions, int(state.rounds[runs[0]])
        if len(positions) == clock and any(failure is None for failure in estimate.failure):
            positions = (*positions, after.position)
        old, dual = state.search_dual if searching else state.next.dual, after.dual
        if dual is not None and len(runs) < len(state.status):
            problem = state.problem.feasibility() if searching else state.problem.at_level(state.level)
            dual = put_runs(problem.dual().center(state.x) if old is None else old, runs, dual)
        level_dual, memory = (state.next.dual, state.next.memory) if searching else (dual, after.memory)
        if memory is not None and not searching and len(runs) < len(state.status):
            memory = put_runs(state.next.memory or zero_rows(memory, len(state.status)), runs, memory)
        changes = {name: put_runs(getattr(state, name), runs, getattr(known, name)) for name in _KNOWN}
        return replace(
            state.judged({int(j): verdict for j, verdict in zip(runs, verdicts, strict=True)}),
            **changes,
            next=Start(put_runs(state.next.x, runs, after.x), level_dual, positions[-1], memory),
            search_dual=dual if searching else state.search_dual,
            positions=positions,
            query=None,
            trace=(*state.trace, *self._rows(state, estimate, columns)),
            steps=state.steps + estimate.steps,
            samples=state.samples + estimate.samples + known.samples,
        )

    def _judge_exactly(
        self, state: SFLSState, estimate: Estimate, known: Any
    ) -> tuple[list[Verdict], Mapping[str, Any]]:
        """Judge a query on finite data by exact evaluation: change what is known, and return verdicts and columns."""
        runs, searching = state.active, state.searching
        problem, old = state.problem.take(runs), known.points
        family = problem.constraint_family if searching else problem.family
        new = found = Points.measured(problem, family.refine(estimate.x, problem.data))
        violation = found.violation
        question = problem.feasibility(runs.size) if searching else problem.at_level(known.level)
        weight = np.asarray(to_numpy(estimate.weights[:, 0]), dtype=np.float64)
        # D is compared with what it says of f*, namely r + D / y_0, and that with the best feasible objective.
        nearest = np.where(violation <= 0, np.fmin(found.objective, old.objective), old.objective)
        served = None if searching else weight * (nearest - known.level)
        # Two passes a step: on large data a bound takes no longer than the query whose duals it is drawn from.
        steps = int(np.clip(_BOUND * estimate.samples / int(problem.data.size or 1), *_BOUND_STEPS))
        bound = lower_bound(question, estimate.weights, estimate.scaled, estimate.x, upper=served, iterations=steps)
        if searching:
            spent = estimate.samples
            found, bound, estimate = _searched_exactly(problem, question, found, bound, estimate, known.scales[1:])
            new, violation, known.samples = found, found.violation, estimate.samples - spent
        unit = min(1.0, float(known.scales[1:].min()))  # in which a violation counts as one
        hit = (violation < -_TIE * unit) & np.isfinite(found.objective)
        if searching:
            upper = violation
            evidence = Evidence.of_constraints(estimate.weights, estimate.scaled, found.x, known.evidence)
            known.evidence = where_runs(bound > _TIE * unit, evidence, known.evidence)
            known.interior = where_runs(hit, found.x, known.interior)
            known.level = np.where(hit, found.objective + self.slack, known.level)
            known.first = np.where(hit, known.level, known.first)
        else:
            upper = np.maximum(found.objective - known.level, violation)
            if (out := np.flatnonzero(violation > 0)).size:
                part, (interior, x) = problem.take(out), take_runs((known.interior, found.x), out)
                miss, exact = np.maximum(violation[out], _TIE * unit), question.modulus <= 0
                back = pull_back(part, Points.measured(part, interior), x, miss, near=_NEAR if exact else _ROUGH)
                new = put_runs(found, out, back)
            root = np.where(weight > _NONE, known.level + bound / np.maximum(weight, _NONE), -np.inf)
            evidence = Evidence.of(estimate.weights, estimate.scaled, estimate.x)
            known.evidence = where_runs(root > known.lower, evidence, known.evidence)
            known.lower = np.maximum(known.lower, root)
            stuck = ((new.objective >= old.objective) | (new.violation > 0)) & (old.objective >= known.level)
            if stuck.any():  # perhaps the first point is the best: then its dual is (1, 0, ..., 0)
                alone, evidence = _unconstrained(question, estimate, upper=old.objective, known=known.lower)
                better = stuck & (alone > known.lower)
                known.lower, known.evidence = where_runs(better, (alone, evidence), (known.lower, known.evidence))
            known.opening = np.where(np.isnan(known.opening), upper, known.opening)
        known.points = best = old.or_better(new)
        if not searching:  # the middle of the bracket, else r + P/(2 theta) with the best feasible objective for r + P
            lowered = known.level + np.minimum(best.objective - known.level, 0.0) / (2.0 * self.theta)
            known.level = np.where(np.isfinite(known.lower), (known.lower + best.objective) / 2.0, lowered)
            gap, span = best.objective - known.lower, known.first - known.lower
            # Looked at once, and only by runs that have come less than half of the way.
            need = np.isnan(known.nearby) & (gap > self.tolerance * span) & (known.first - best.objective <= gap)
            if self.least_span > 0 and need.any():
                near = nearby_variation(problem, known.interior, self.least_span, state.positions[0])
                known.nearby = np.where(need, near, known.nearby)
        seen = {"bound": bound, "upper": upper, "searching": searching}
        claims = contradictions(problem, best, known.lower, **seen, position=state.next.position)
        verdicts: list[Verdict] = []
        clock = (state.rounds if searching else state.rounds - state.searched)[runs]
        for i, (claim, rounds) in enumerate(zip(claims, clock, strict=True)):
            if claim is not None:
                verdicts.append((Status.INCONSISTENT, claim))
            elif searching:  # an objective that is no number is no start
                margin = violation[i] if hit[i] else max(best.violation[i], 0.0)
                verdicts.append(self._search_verdict(margin, bound[i], unit, int(rounds)))
            else:
                verdicts.append(self._level_verdict(known, i, upper[i], int(rounds)))
        columns = {
            "P": upper,
            "D": bound,
            "objective": best.objective,
            "violation": best.violation,
            "estimate_violation": violation,
            "lower": known.lower,
        }
        known.lower = np.where([claim is None for claim in claims], known.lower, -np.inf)
        return verdicts, columns

    def _search_verdict(self, violation: float, bound: float, unit: float, rounds: int) -> Verdict:
        if violation < -_TIE * unit:
            return None, "a strictly feasible point was found."
        if bound > _TIE * unit:
            return Status.INFEASIBLE, f"every point violates some constraint by at least {bound:.6g}."
        if bound >= -1e-6 * unit and violation <= 1e-6 * unit:
            return Status.NOT_STRICTLY_FEASIBLE, f"the least violation lies between {bound:.3g} and {violation:.3g}."
        if rounds >= self.searches:
            proof = f"it cannot be below {bound:.6g}" if np.isfinite(bound) else _UNPROVED[:-1]
            return Status.BUDGET, f"after {rounds} searches there is no point with room to spare, and {proof}."
        return None, "looking for a strictly feasible point."

    def _level_verdict(self, known: Any, run: int, upper: float, rounds: int) -> Verdict:
        objective, lower, opening = known.points.objective[run], known.lower[run], known.opening[run]
        if np.isfinite(lower):
            first = known.first[run]
            gap, span = optimality(objective, lower, first, np.nan_to_num(known.nearby[run]))
            relative = max((objective - lower) / (first - lower), 0.0) if first > lower else 0.0
            if gap <= 0:
                return Status.SOLVED, "the objective is optimal up to rounding, exactly on the data."
            if gap <= self.tolerance * (first - lower):
                return Status.SOLVED, f"relative optimality is at most {relative:.3g}, exactly on the data."
            if gap <= self.tolerance * span:
                text = f"the objective is within {gap:.3g} of the optimal value, exactly on the data"
                return Status.SOLVED, f"{text}; near the start it varies by {span:.3g}."
            if rounds >= self.levels:
                return Status.BUDGET, f"after {rounds} levels relative optimality is at most {relative:.3g}."
            return None, f"relative optimality is at most {relative:.3g}."
        # No certificate (weak convexity): the paper's rule, U >= -eps_opt with |H(r_0)| replaced by its estimate.
        if opening < 0 and -self._stop(opening) <= upper <= 0:
            return Status.BUDGET, f"the level-set rule U >= -eps_opt holds; {_UNPROVED}"
        return (Status.BUDGET if rounds >= self.levels else None), f"after {rounds} levels; {_UNPROVED}"

    def _stop(self, opening: float) -> float:
        r""":math:`\epsilon_{opt} = \frac{4\theta}{6\theta - 1}\,\epsilon\,|H(r_0)|`."""
        size = max(-opening - self.oracle_error, 0.0)
        return 4.0 * self.theta / (6.0 * self.theta - 1.0) * self.tolerance * size

    def _judge_estimate(
        self, state: SFLSState, estimate: Estimate, known: Any
    ) -> tuple[list[Verdict], Mapping[str, Any]]:
        r"""Judge a query on a stream by samples that it has not seen, with confidence.

        After the k-th query a quarter as many samples bound the functions at the estimate and at the interior point
        from above, and the optimal value from below; all these bounds hold with probability
        :math:`1 - 6\delta/(\pi k)^2`. For convex constraints the bounds of both points bound the segment between
        them, and the best point of it that they prove to be feasible is kept. Where the stream has ended there are no
        fresh samples, and the query's own estimates, which prove nothing, steer instead.
        """
        runs, searching, old = state.active, state.searching, known.points
        problem, path = state.problem.take(runs), np.asarray(estimate.upper, dtype=float)
        question = problem.at_level(np.zeros(runs.size) if searching else known.level)
        seen = self._look(state, estimate, question, known)
        values = np.asarray(estimate.values, dtype=float)
        if seen is None:
            objective = _objective_estimate(state, estimate) if searching else values[:, 0] + known.level
            new = Points(estimate.x, objective, values if searching else values[:, 1:])
            violation, proved = new.violation, np.zeros(runs.size, dtype=bool)
        else:
            known.position, known.samples = seen.position, seen.samples
            new, proved = self._confirmed(problem, seen, estimate, known, searching)
            violation = (seen.mean[-1][:, 1:] - problem.bounds(runs.size)).max(axis=1)
        hit = (violation < 0) & np.isfinite(new.objective)
        if searching:
            known.level = known.first = np.where(hit, new.objective + self.slack, known.level)
            known.below = np.where(hit, -np.inf if seen is None else seen.first, known.below)
            known.interior = where_runs(hit, estimate.x, known.interior)
            known.points, known.proved = new, proved
        else:
            known.opening = np.where(np.isnan(known.opening), path, known.opening)
            # What is proved replaces what is not; of two bounds that hold, the better one does too.
            better = np.where(proved == known.proved, new.better(old), proved)
            known.points, known.proved = where_runs(better, new, old), known.proved | proved
            if seen is not None:
                weight = np.asarray(to_numpy(estimate.weights[:, 0]), dtype=np.float64)
                some = weight > 0
                root = np.where(some, known.level + seen.lower / np.where(some, weight, 1.0), -np.inf)
                evidence = Evidence.of(estimate.weights, estimate.scaled, estimate.x)
                known.evidence = where_runs(root > known.lower, evidence, known.evidence)
                known.lower = np.maximum(known.lower, root)
                known.below = np.maximum(known.below, seen.first)
            best = known.points
            moved = np.where(known.proved & best.feasible, best.objective - known.level, path)
            known.level = np.where(moved < 0, known.level + moved / (2.0 * self.theta), known.level)
        verdicts: list[Verdict] = []
        for i, j in enumerate(runs):
            levels = int(state.rounds[j] - state.searched[j])
            if searching:
                rounds = int(state.rounds[j])
                verdicts.append(self._stream_search(bool(hit[i]), violation[i], estimate.exhausted, rounds))
            else:
                verdicts.append(self._stream_level(known, i, path[i], violation[i], levels, estimate.exhausted))
        columns = {
            "objective": known.points.objective,
            "violation": known.points.violation,
            "estimate_violation": violation,
            "lower": known.lower,
        }
        return verdicts, columns

    def _look(self, state: SFLSState, estimate: Estimate, question: LevelProblem, known: Any) -> Look | None:
        """Bound the functions at the interior point and the estimate, and f* from below, by fresh samples."""
        weights, scaled, points = estimate.weights, estimate.scaled, [known.interior, estimate.x]
        if state.searching:  # the duals of a search have no weight of the objective, and bound no optimal value
            dual = question.dual().center(estimate.x)
            weights, scaled, points = dual.weights, question.dual().scaled(dual), [estimate.x]
        statements = 2 * len(question.family.constraints) + 2
        spent = share_of_look(self.delta, int(state.rounds[state.active[0]]))
        return look(
            question,
            points,
            weights,
            scaled,
            estimate.next.position,
            samples=math.ceil(_LOOK * estimate.samples),
            beta=spent / statements,
            lower=not state.searching,
        )

    @staticmethod
    def _confirmed(
        problem: MinMaxProblem, seen: Look, estimate: Estimate, known: Any, searching: bool
    ) -> tuple[Points, Any]:
        r"""Return the best points that a look proves to be feasible, else the estimates, with the bounds of both.

        For convex functions a bound at :math:`x_a + t(x - x_a)` is the same mixture of the bounds at both ends.
        """
        bounds = problem.bounds(int(estimate.x.shape[0]))
        high = seen.upper[-1]
        if searching:
            return Points(estimate.x, high[:, 0], high[:, 1:] - bounds), (high[:, 1:] <= bounds).all(axis=1)
        low, convex = seen.upper[0], problem.at_level(known.level).modulus <= 0
        near, far = low[:, 1:] - bounds, high[:, 1:] - bounds
        with np.errstate(divide="ignore", invalid="ignore"):
            cross = near / (near - far)  # where the mixture is 0
        least = np.where(near > 0, np.where(far <= 0, cross, np.inf), 0.0).max(axis=1)
        most = np.where(far > 0, np.where(near <= 0, cross, -np.inf), 1.0).min(axis=1)
        if not convex:
            least, most = np.where(least > 0, 1.0, 0.0), np.where(most < 1, 0.0, 1.0)
        proved = (least <= most) & np.isfinite(high).all(axis=1) & np.isfinite(low).all(axis=1)
        share = np.where(high[:, 0] <= low[:, 0], most, least)
        share = np.where(proved, share * (1.0 - 1e-9 * (share < 1)), 1.0)[:, None]  # a root can be positive by rounding
        x = known.interior + namespace(estimate.x).asarray(share, estimate.x) * (estimate.x - known.interior)
        mixed = (1.0 - share) * low + share * high
        constraints = np.where(proved[:, None], np.minimum(mixed[:, 1:] - bounds, 0.0), far)
        return Points(x, np.where(proved, mixed[:, 0], high[:, 0]), constraints), proved

    def _stream_level(
        self, known: Any, run: int, path: float, violation: float, levels: int, exhausted: bool
    ) -> Verdict:
        best, lower, below, opening = known.points, known.lower[run], known.below[run], known.opening[run]
        with_confidence = f"with confidence {1.0 - self.delta:g}"
        if known.proved[run] and best.violation[run] <= 0:
            gap, span = float(best.objective[run] - lower), float(below - lower)
            if gap < 0:  # one of the bounds has failed, as they may
                return (Status.BUDGET if exhausted else None), f"the bounds {with_confidence} contradict each other."
            if np.isfinite(span) and gap <= self.tolerance * span:
                return Status.SOLVED, f"relative optimality is at most {gap / span:.3g}, {with_confidence}."
            said = f"feasible {with_confidence}"
        else:
            said = "feasible by estimate" if violation <= 0 else "no feasible point was confirmed"
        if violation <= 0 and not exhausted and path >= -self._stop(opening):
            left = max(-path, 0.0) / max(-opening, 1e-300)
            text = f"the level-set rule U >= -eps_opt holds, U being {left:.3g} of its first value"
            return Status.BUDGET, f"{text}; {said}."
        if exhausted or levels >= self.levels:
            return Status.BUDGET, f"{'the stream has ended' if exhausted else f'after {levels} levels'}; {said}."
        return None, f"after {levels} levels; {said}."

    def _stream_search(self, hit: bool, violation: float, exhausted: bool, rounds: int) -> Verdict:
        if hit:
            text = "the stream has ended; the point is feasible by estimate."
            return (Status.BUDGET, text) if exhausted else (None, "a strictly feasible point was found, by estimate.")
        if exhausted or rounds >= self.searches:
            return Status.BUDGET, f"after {rounds} searches there is no point with room to spare, by estimate."
        return None, "looking for a strictly feasible point."

    @staticmethod
    def _rows(state: SFLSState, estimate: Estimate, columns: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the rows that a query adds to the trace; P and D are NaN where there is none."""
        nothing = np.full(state.active.size, np.nan)
        columns = {"r": state.level[state.active], "U": estimate.upper, "P": nothing, "D": nothing, **columns}
        return [
            {
                "run": int(j),
                "level": int(state.rounds[j]) - 1,
                "phase": "search" if state.searching else "level",
                **{name: float(column[i]) for name, column in columns.items()},
                "steps": state.steps + estimate.steps,
            }
            for i, j in enumerate(state.active)
        ]


def _searched_exactly(
    problem: MinMaxProblem, question: LevelProblem, found: Points, bound: Any, estimate: Estimate, scales: Any
) -> tuple[Points, Any, Estimate]:
    """Return points, bounds and duals of a search after exact passes, for runs to which samples show no interior point.

    Where the constraints are convex and the data small, passes over all of them find a strictly feasible point of any
    margin, or prove that there is none.
    """
    tie = _TIE * min(1.0, float(scales.min()))
    runs = np.flatnonzero((found.violation >= -tie) & (bound <= tie))
    size = int(problem.data.size or 0) * problem.primal.dimension
    dear = size > _SMALL and not question.family.knows_means(problem.data)
    if not runs.size or question.modulus > 0 or dear:
        return found, bound, estimate
    x, dual = take_runs((found.x, estimate.next.dual), runs)
    part = question.take(runs)
    exact, start = MirrorProx(steps=_SEARCH, relative_accuracy=0.3), Start(x, dual, estimate.next.position)
    answer = in_units(exact.query(divided(part, scales), start), part, scales)
    best = take_runs(found, runs).or_better(Points.measured(problem.take(runs), answer.x))
    duals = (bound[runs], *take_runs((estimate.weights, estimate.scaled), runs))
    proof = (lower_bound(part, answer.weights, answer.scaled, answer.x), answer.weights, answer.scaled)
    proof = where_runs(proof[0] > duals[0], proof, duals)
    bound, weights, scaled = put_runs((bound, estimate.weights, estimate.scaled), runs, proof)
    after = replace(estimate, weights=weights, scaled=scaled, samples=estimate.samples + answer.samples)
    return put_runs(found, runs, best), bound, after


def _known(points: Array, objective: Any) -> Any:
    """Return points (R, d) as an ndarray, NaN where no objective is known."""
    return np.where(np.isfinite(objective)[:, None], np.asarray(to_numpy(points), dtype=np.float64), np.nan)


def _unconstrained(question: LevelProblem, estimate: Estimate, *, upper: Any, known: Any) -> tuple[Any, Evidence]:
    """Bound the objective from below by its own minimum over X, at the inner variables of the estimate.

    The minimisation ends early as told by :func:`lower_bound`: ``upper`` and ``known`` are bounds on the optimal value.
    """
    xp = namespace(estimate.x)
    owner = question.dual().owner
    weight = np.asarray(to_numpy(estimate.weights), dtype=np.float64)
    y = np.zeros_like(weight)
    y[:, 0] = 1.0
    scaled = np.asarray(to_numpy(estimate.scaled), dtype=np.float64)
    a = np.where(owner == 0, scaled / np.maximum(weight[:, :1], 1e-300), 0.0)
    level = question.bounds[:, 0]
    ends = {"upper": upper - level, "known": known - level}
    bound = lower_bound(question, xp.asarray(y, estimate.x), xp.asarray(a, estimate.x), estimate.x, **ends)
    return np.where(weight[:, 0] > _NONE, level + bound, -np.inf), Evidence.of(y, a, estimate.x)


def _objective_estimate(state: SFLSState, estimate: Estimate) -> Any:
    """Estimate the objective at the points found from the next samples of the stream, which are not used up.

    Where the stream has ended there are none, and the samples of the search itself serve, read once more.
    """
    runs = state.active
    problem = state.problem.take(runs)
    question = problem.at_level(np.zeros(runs.size))
    begun = state.positions[int(state.rounds[runs[0]]) - 1]
    F: Any = 0.0
    G: Any = 0.0
    count = 0
    for position, steps, size in ((estimate.next.position, 200, 100), (begun, 200, 100), (begun, 100, 1)):
        for batch in problem.data.draw(position, steps, size)[0]:
            found = question.family.evaluate(estimate.x, batch)
            F, G, count = F + found.F, G + found.G, count + 1
        if count:
            break
    else:
        return np.full(runs.size, np.inf)
    return np.asarray(to_numpy(question.dual().support(F / count, G / count)), dtype=np.float64)[:, 0]
