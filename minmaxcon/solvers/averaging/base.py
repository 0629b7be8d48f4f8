"""The base of methods on a Lagrangian: steps by samples, weighted averages of iterates, and tests of the average."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.checks import batch_number, check_draw, number, whole
from minmaxcon.core import (
    Batch,
    Evidence,
    LevelProblem,
    MinMaxProblem,
    Needs,
    Outcome,
    Points,
    RunsState,
    Solver,
    Start,
    Status,
)
from minmaxcon.core.certificate import LEAST_SPAN, nearby_variation, optimality
from minmaxcon.core.confidence import look
from minmaxcon.core.lower import lower_bound
from minmaxcon.core.runs import finite_runs, where_runs
from minmaxcon.core.scaling import divided, row_scales
from minmaxcon.core.solver import Verdict
from minmaxcon.errors import InvalidInput
from minmaxcon.oracles.nonfinite import first_failures, nonfinite_cause
from minmaxcon.solvers.averaging.lagrangian import Game
from minmaxcon.solvers.feasibility import contradictions

__all__ = ["AveragingSolver", "AveragingState"]

_LOOK, _DELTA = 0.25, 0.1
"""On streams: fresh samples of an evaluation, as a share of those before it, and the probability of a false claim."""

_NONE = 1e-100
"""Weights of the objective up to this count as 0."""

_TIE = 1e-9
"""Violations and bounds nearer to 0 than this count as 0."""


@dataclass(frozen=True, eq=False, slots=True)
class AveragingState(RunsState):
    """State of a solve; ``points`` are the best averages so far.

    Attributes
    ----------
    iterate : object
        The method's own iterate, a frozen dataclass of arrays with one row per run; ``iterate.x`` is the primal one.
    sums : array (R, d + 2k + 2p + 2)
        Weighted sums, in float64, since the last evaluation, of x, y, a, u, v, the squared gradient and 1.
    parts : tuple of array
        The sums of the stretches between earlier evaluations.
    first : ndarray (R,)
        The objective at the first feasible point known, in units of which optimality is measured; NaN before.
    nearby : ndarray (R,)
        What the objective varies by near the best point; NaN until a run needs it.
    scales : ndarray (k,)
        By what the steps see the functions divided, see :mod:`minmaxcon.core.scaling`.
    proved : ndarray (R,) of bool
        On streams, whether the values of the best points are bounds from fresh samples.
    exhausted : bool
        Whether a stream has ended.
    """

    iterate: Any
    sums: Array
    parts: tuple[Array, ...]
    first: Any
    nearby: Any
    scales: Any
    proved: Any
    exhausted: bool


class AveragingSolver(Solver):
    """Base of the methods whose answer is a weighted average of iterates: a subclass gives the first and the next one.

    Parameters
    ----------
    steps : int
        Steps of a solve.
    batch_size : int
        Samples of a batch.
    evaluations : int
        How often, at equal distances, the average is evaluated; on finite data exactly, by one pass.
    tail : float
        Share of the latest stretches between evaluations that is averaged (Nemirovski et al. 2009, section 2.2, average
        such a tail too); 1 averages from the start.
    tolerance : float
        Relative optimality at which a run counts as solved, where the averaged duals prove it.
    block : int
        Steps between two looks at the clock; results do not depend on it.
    """

    def __init__(
        self, steps: int, batch_size: int, evaluations: int, tail: float, tolerance: float, block: int
    ) -> None:
        self.steps, self.block = whole("steps", steps), whole("block", block)
        self.batch_size = batch_number(batch_size)
        check_draw(self.batch_size, sum(self._sizes), min(self.steps, self.block))
        self.evaluations = whole("evaluations", evaluations)
        if self.evaluations > self.steps:
            raise InvalidInput("evaluations", evaluations, f"there are at most as many as steps, {self.steps}.")
        self.tail = number("tail", tail, "must lie above 0 and be at most 1.", above=0.0, most=1.0)
        self.tolerance = number("tolerance", tolerance, "must lie strictly between 0 and 1.", above=0.0, below=1.0)

    @property
    def needs(self) -> Needs:
        """Convex functions: an average means nothing where they are not."""
        return Needs(convex=True)

    @abstractmethod
    def _begin(self, game: Game, start: Start, objective: Any, violation: Any) -> Any:
        """Return the first iterate, given objective and largest :math:`f_i - b_i` (R,) of the start."""

    @abstractmethod
    def _move(self, game: Game, iterate: Any, batches: Sequence[Batch]) -> tuple[Any, Array]:
        """Return the next iterate and the weighted row (see :meth:`Game.row`) that this step adds to the sums."""

    @property
    def _sizes(self) -> tuple[int, ...]:
        """Samples of each batch of a step; batches of one step are independent."""
        return (self.batch_size,)

    def _looks(self, iterate: Any) -> Sequence[Array]:
        """Return the point at which each batch of the next step is evaluated."""
        return [iterate.x] * len(self._sizes)

    def _answer(self, state: AveragingState, mean: Array) -> Array:
        """Return the point (R, d) that the method answers with, given the average."""
        return mean

    def init(self, problem: MinMaxProblem, start: Start) -> AveragingState:
        """See :meth:`Solver.init`; evaluates the start exactly on finite data."""
        begun, runs = RunsState.begun(problem, start), int(start.x.shape[0])
        points: Points = begun["points"]
        x, xp = points.x, namespace(points.x)
        scales = row_scales(problem)
        game = Game.of(divided(problem.at_level(np.zeros(runs)), scales), x)
        with np.errstate(over="ignore", invalid="ignore"):  # the step that meets such a value names it
            room = (points.constraints / scales[1:]).max(axis=1)
            iterate = self._begin(game, begun["next"], points.objective / scales[0], room)
        first = np.where(points.feasible[:, None], np.asarray(to_numpy(x), dtype=np.float64), np.nan)
        begun["evidence"] = replace(begun["evidence"], first=first)
        return AveragingState(
            **begun,
            iterate=iterate,
            sums=xp.double(xp.zeros((runs, game.layout.width), x)),
            parts=(),
            first=np.where(points.feasible, points.objective, np.nan),
            nearby=np.full(runs, np.nan),
            scales=scales,
            proved=np.zeros(runs, dtype=bool),
            exhausted=False,
        )

    def step(self, state: AveragingState) -> AveragingState:
        """See :meth:`Solver.step`: one block of steps, and an evaluation where one is due."""
        due = math.ceil(self.steps * (len(state.parts) + 1) / self.evaluations - 1e-6)
        count = min(self.block, due - state.steps)
        problem, begun = state.problem, state.next.position
        batches, position = problem.data.draw(begun, count, sum(self._sizes))
        game = Game.of(divided(problem.at_level(np.zeros(len(state.status))), state.scales), state.iterate.x)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # caught below, and named
            after = self._run(game, state, batches)
            if state.going.size < len(state.status) or not bool(namespace(after.sums).isfinite(after.sums).all()):
                again = problem.data.draw(begun, count, sum(self._sizes))[0]
                after = self._freeze(game, state, after, again)
        exhausted = after.steps < state.steps + count
        after = replace(after, next=Start(after.iterate.x, None, position), exhausted=exhausted)
        return self._evaluated(game, after) if exhausted or after.steps == due else after

    def _run(self, game: Game, state: AveragingState, batches: Iterator[Batch]) -> AveragingState:
        iterate, sums, steps = state.iterate, namespace(state.sums).copy(state.sums), state.steps
        for batch in batches:
            iterate, row = self._move(game, iterate, _split(batch, self._sizes))
            sums += row
            steps += 1
        samples = state.samples + (steps - state.steps) * sum(self._sizes)
        return replace(state, iterate=iterate, sums=sums, steps=steps, samples=samples)

    def _freeze(
        self, game: Game, before: AveragingState, after: AveragingState, batches: Iterator[Batch]
    ) -> AveragingState:
        """Put runs that have ended or are no longer finite back to their last good state, and name the step."""
        bad = [int(j) for j in np.flatnonzero(~finite_runs(after.sums)) if before.status[j] is None]

        def cause(last: AveragingState, batch: Batch, _: Any, run: int) -> str:
            looks = zip(self._looks(last.iterate), _split(batch, self._sizes), strict=True)
            return nonfinite_cause(game.level, game.dual, looks, run)

        found: dict[int, str] = {}
        if bad:
            found = first_failures(
                before,
                before.steps,
                batches,
                lambda state, batch: self._run(game, state, iter([batch])),
                lambda state: finite_runs(state.sums),
                cause,
            )
        # A constraint that is not a function of x and the batch may not do it again.
        span = f"a value is not finite between steps {before.steps} and {after.steps}"
        judged = before.judged({j: (Status.DIVERGED, f"{found.get(j, span)}.") for j in bad})
        going = np.array([status is None for status in judged.status])
        iterate, sums = where_runs(going, (after.iterate, after.sums), (before.iterate, before.sums))
        return replace(after, iterate=iterate, sums=sums, status=judged.status, reason=judged.reason)

    def _evaluated(self, game: Game, state: AveragingState) -> AveragingState:
        """Evaluate the average over the tail, keep the best point, bound the optimal value and add to the trace."""
        xp, like = namespace(state.sums), state.iterate.x
        parts = (*state.parts, state.sums)
        known = parts[len(parts) - max(1, round(self.tail * len(parts))) :]
        total = sum(known[1:], start=known[0])
        sums = game.layout.split(total)
        begun = sums.weight > 0
        mean = game.layout.split(total / xp.where(begun, sums.weight, sums.weight + 1.0))
        x = self._answer(state, xp.asarray(xp.where(begun, mean.x, xp.double(like)), like))
        going, exact = np.array([status is None for status in state.status]), state.problem.data.size is not None
        lower, evidence, proof = state.lower, state.evidence, np.full(len(state.status), -np.inf)
        confirmed = False
        if exact:
            new = Points.measured(state.problem, state.problem.family.refine(x, state.problem.data))
            y, a = to_numpy(sums.y) / state.scales, to_numpy(sums.a) / state.scales[game.dual.owner]
            bound, proof = _bounds(game, state, y, a, new.x)
            better = going & (bound > lower)  # a bound that is no number says nothing
            fresh = replace(Evidence.of(y, a, new.x), first=evidence.first)
            lower, evidence = where_runs(better, (bound, fresh), (lower, evidence))
            only = game.dual.owner > 0
            search = Evidence.of_constraints(y[:, 1:], a[:, only], new.x, evidence)
            evidence = where_runs(going & (proof > _TIE), replace(search, first=evidence.first), evidence)
        else:
            values = xp.where(begun, game.dual.support(mean.u, mean.v), mean.u + float("inf"))
            values = np.asarray(to_numpy(values), dtype=np.float64)
            state, new, confirmed, bound = self._confirmed(game, state, Points(x, values[:, 0], values[:, 1:]), sums)
            y, a = to_numpy(sums.y), to_numpy(sums.a)
            better = going & (bound > lower)
            fresh = replace(Evidence.of(y, a, x), first=evidence.first)
            lower, evidence = where_runs(better, (bound, fresh), (lower, evidence))
        # What fresh samples bound replaces what is only estimated.
        better = np.where(state.proved == confirmed, new.better(state.points), confirmed) & going
        best: Points = where_runs(better, new, state.points)
        proved = np.where(better, confirmed, state.proved)
        begins = np.isnan(state.first) & best.feasible
        first = np.where(begins, best.objective, state.first)
        if evidence.first is not None:  # a checkpoint of an older version has none
            x_best = np.asarray(to_numpy(best.x), dtype=np.float64)
            evidence = replace(evidence, first=np.where(begins[:, None], x_best, evidence.first))
        claims: list[str | None] = [None] * len(state.status)
        nearby = state.nearby
        if exact:
            gap, span = best.objective - lower, first - lower
            # Looked at once, and only by runs that have come less than half of the way.
            need = going & np.isnan(nearby) & best.feasible & (gap > self.tolerance * span)
            need &= first - best.objective <= gap
            if need.any():
                near = nearby_variation(state.problem, best.x, LEAST_SPAN, state.next.position)
                nearby = np.where(need, near, nearby)
            seen = {"bound": proof, "upper": new.violation, "searching": True}
            claims = contradictions(state.problem, best, lower, **seen, position=state.next.position)
        last = state.steps >= self.steps or state.exhausted
        verdicts, rows = {}, []
        for j in map(int, state.going):
            feasible = bool(best.feasible[j])
            verdict = self._verdict(best.objective[j], lower[j], first[j], nearby[j], feasible, float(proof[j]))
            if not exact:
                how = f"feasible with confidence {1.0 - _DELTA:g}" if proved[j] else "feasible by estimate"
                verdict = None, f"the best average is {how}." if feasible else "no average was feasible."
            if (claim := claims[j]) is not None:
                verdict = Status.INCONSISTENT, claim
            if verdict[0] is None and last:
                ended = "the stream has ended; " if state.exhausted else ""
                verdict = Status.BUDGET, f"{ended}after {state.steps} steps {verdict[1]}"
            verdicts[j] = verdict
            rows.append(
                {
                    "run": j,
                    "level": len(state.parts),
                    "objective": float(new.objective[j]),
                    "violation": float(new.violation[j]),
                    "best_objective": float(best.objective[j]),
                    "best_violation": float(best.violation[j]),
                    "lower": float(lower[j]),
                    "steps": state.steps,
                    "samples": state.samples,
                }
            )
        state = state.judged(verdicts)
        return replace(
            state,
            points=best,
            trace=(*state.trace, *rows),
            sums=0.0 * xp.where(xp.isfinite(state.sums), state.sums, 0.0 * state.sums[:, -1:]),
            parts=parts,
            proved=proved,
            first=first,
            nearby=nearby,
            evidence=evidence,
            lower=np.where([status is Status.INCONSISTENT for status in state.status], -np.inf, lower),
        )

    def _confirmed(
        self, game: Game, state: AveragingState, estimate: Points, sums: Any
    ) -> tuple[AveragingState, Points, bool, Any]:
        """Return the state after a look at fresh samples, the average with bounds on its values, and one on f*.

        Without such samples, at the end of a stream, the estimates of the average stay, and there is no bound.
        """
        weights, scaled = (np.asarray(to_numpy(part), dtype=np.float64) for part in (sums.y, sums.a))
        total = weights.sum(axis=1, keepdims=True)
        usable = (total > 0) & np.isfinite(total) & np.isfinite(scaled).all(axis=1, keepdims=True)
        weights = np.where(usable, weights / np.where(usable, total, 1.0), np.eye(weights.shape[1])[0])
        scaled = np.where(usable, scaled / np.where(usable, total, 1.0), 0.0)
        xp, x, k = namespace(estimate.x), estimate.x, weights.shape[1]
        seen = look(
            game.level,
            [x],
            xp.asarray(weights, x),
            xp.asarray(scaled, x),
            state.next.position,
            samples=math.ceil(_LOOK * self.steps / self.evaluations * sum(self._sizes)),
            beta=_DELTA / (self.evaluations * (k + 1)),
        )
        nothing = np.full(len(weights), -np.inf)
        if seen is None:
            return state, estimate, False, nothing
        values, some = seen.upper[0] - game.level.bounds, usable[:, 0] & (weights[:, 0] > 0)
        lower = np.where(some, seen.lower / np.where(some, weights[:, 0], 1.0), nothing)
        after = replace(state.next, position=seen.position)
        state = replace(state, next=after, samples=state.samples + seen.samples)
        return state, Points(x, values[:, 0], values[:, 1:]), True, lower

    def outcome(self, state: AveragingState) -> Outcome:
        """See :meth:`Solver.outcome`; on streams with the confidence of what is claimed."""
        found = state.outcome()
        claimed = state.proved | (np.isfinite(state.lower) & ~found.points.feasible)
        return found if found.exact else replace(found, confidence=np.where(claimed, 1.0 - _DELTA, 0.0))

    def _verdict(
        self, objective: float, lower: float, first: float, nearby: float, feasible: bool, proof: float
    ) -> Verdict:
        if not feasible:
            if proof > _TIE:
                return Status.INFEASIBLE, f"every point violates some constraint by at least {proof:.6g}."
            return None, "no average was feasible."
        if not np.isfinite(lower):
            return None, "there is no lower bound on the optimal value."
        gap, span = optimality(objective, lower, first, np.nan_to_num(nearby))
        relative = max((objective - lower) / (first - lower), 0.0) if first > lower else 0.0
        if gap <= 0:
            return Status.SOLVED, "the objective is optimal up to rounding, exactly on the data."
        if gap <= self.tolerance * (first - lower):
            return Status.SOLVED, f"relative optimality is at most {relative:.3g}, exactly on the data."
        if gap <= self.tolerance * span:
            text = f"the objective is within {gap:.3g} of the optimal value, exactly on the data"
            return Status.SOLVED, f"{text}; near this point it varies by {span:.3g}."
        return None, f"relative optimality is at most {relative:.3g}."


def _split(batch: Batch, sizes: tuple[int, ...]) -> list[Batch]:
    """Return the batches of one step, which are drawn together."""
    if len(sizes) == 1:
        return [batch]
    ends = np.cumsum([0, *sizes]).tolist()
    return [{name: rows[i:j] for name, rows in batch.items()} for i, j in pairwise(ends)]


def _bounds(game: Game, state: AveragingState, weights: Any, scaled: Any, x: Array) -> tuple[Any, Any]:
    r"""Lower bounds on :math:`f^*` and on the least violation, each (R,), from summed multipliers y and a.

    Every feasible x has :math:`y_0 f_0(x) \ge \min_X\Phi(\cdot, y, a)`. Without the objective the same minimum bounds
    the least violation, which proves infeasibility where it is positive; it is asked where no feasible point is known.
    """
    share, lower = _minimum(state.problem.at_level(np.zeros(len(weights))), weights, scaled, x)
    lower = np.where(share > _NONE, lower / np.maximum(share, _NONE), -np.inf)
    proof = np.full(lower.shape, -np.inf)
    if (state.constraints.max(axis=1) > 0).any() and (weights[:, 1:].sum(axis=1) > 0).any():
        feasibility = state.problem.feasibility(len(lower))
        proof = _minimum(feasibility, weights[:, 1:], scaled[:, game.dual.owner > 0], x)[1]
    return lower, proof


def _minimum(level: LevelProblem, weights: Any, scaled: Any, x: Array) -> tuple[Any, Any]:
    """Return the first function's share of the weights and the Lagrangian's least value at the scaled duals."""
    xp, total = namespace(x), weights.sum(axis=1, keepdims=True)
    usable = (total > 0) & np.isfinite(total) & np.isfinite(scaled).all(axis=1, keepdims=True)
    total = np.where(usable, total, 1.0)
    # Where there are no multipliers yet, any of the simplex will do.
    weights = np.where(usable, weights / total, np.eye(weights.shape[1])[0])
    scaled = np.where(usable, scaled / total, 0.0)
    found = lower_bound(level, xp.asarray(weights, x), xp.asarray(scaled, x), x)
    return weights[:, 0], np.where(usable[:, 0], found, -np.inf)
