"""What the methods that walk on a Lagrangian share: samples, weighted averages, checkpoints and non-finite values."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace
from minmaxcon.checks import batch_number, check_draw, number, whole
from minmaxcon.core import Batch, MinMaxProblem, Needs, Outcome, Solver, Start, Status
from minmaxcon.core.runs import choose, finite_runs
from minmaxcon.errors import InvalidInput
from minmaxcon.oracles.mirror import nonfinite_term
from minmaxcon.solvers.averaging.checkpoint import checkpoint
from minmaxcon.solvers.averaging.lagrangian import Game
from minmaxcon.solvers.state import RunsState, first_fields

__all__ = ["AveragingSolver", "AveragingState"]


@dataclass(frozen=True, eq=False, slots=True)
class AveragingState(RunsState):
    """Where a solve stands; ``x`` is the best point so far, feasible or least infeasible.

    Attributes
    ----------
    iterate : object
        The method's own iterate, a frozen dataclass of arrays with one row per run; ``iterate.x`` is the primal one.
    sums : array (R, d + 2k + 2p + 2)
        Weighted sums, in float64, since the last checkpoint, of x, y, a, u, v, the squared gradient and 1.
    parts : tuple of array
        The sums of the stretches between earlier checkpoints.
    first : ndarray (R,)
        The objective at the first feasible point known, in units of which optimality is measured; NaN before.
    lower : ndarray (R,)
        Lower bounds on the optimal values.
    exhausted : bool
        Whether a stream has ended.
    """

    iterate: Any
    sums: Array
    parts: tuple[Array, ...]
    first: Any
    lower: Any
    exhausted: bool


class AveragingSolver(Solver):
    """Base of the methods whose answer is a weighted average of iterates: a subclass gives the first and the next one.

    Parameters
    ----------
    steps : int
        Steps of a solve.
    batch_size : int
        Samples of a batch.
    checkpoints : int
        How often, at equal distances, the average is evaluated; on finite data exactly, by one pass.
    tail : float
        Share of the latest stretches between checkpoints that is averaged (Nemirovski et al. 2009, section 2.2, average
        such a tail too); 1 averages from the start.
    tolerance : float
        Relative optimality at which a run counts as solved, where the averaged duals prove it.
    block : int
        Steps between two looks at the clock; results do not depend on it.
    """

    def __init__(
        self, steps: int, batch_size: int, checkpoints: int, tail: float, tolerance: float, block: int
    ) -> None:
        self.steps, self.block = whole("steps", steps), whole("block", block)
        self.batch_size = batch_number(batch_size)
        check_draw(self.batch_size, sum(self._sizes), min(self.steps, self.block))
        self.checkpoints = whole("checkpoints", checkpoints)
        if self.checkpoints > self.steps:
            raise InvalidInput("checkpoints", checkpoints, f"there are at most as many as steps, {self.steps}.")
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
        """See :meth:`Solver.init`; evaluates the start exactly on finite data.

        Raises
        ------
        InvalidInput
            If its values are not finite.
        """
        runs = int(start.x.shape[0])
        level = problem.at_level(np.zeros(runs))
        begun = first_fields(problem, start)
        x, xp = begun["x"], namespace(begun["x"])
        game = Game.of(level, x)
        width = game.cuts[-1].stop + 2
        with np.errstate(over="ignore", invalid="ignore"):  # the step that meets such a value names it
            iterate = self._begin(game, begun["next"], begun["objective"], begun["constraints"].max(axis=1))
        feasible = begun["constraints"].max(axis=1) <= 0
        return AveragingState(
            **begun,
            iterate=iterate,
            sums=xp.double(xp.zeros((runs, width), x)),
            parts=(),
            first=np.where(feasible, begun["objective"], np.nan),
            lower=np.full(runs, -np.inf),
            exhausted=False,
        )

    def finished(self, state: AveragingState) -> bool:
        """See :meth:`Solver.finished`."""
        return all(status is not None for status in state.status)

    def step(self, state: AveragingState) -> AveragingState:
        """See :meth:`Solver.step`: one block of steps, and a checkpoint where one is due."""
        due = math.ceil(self.steps * (len(state.parts) + 1) / self.checkpoints - 1e-6)
        count = min(self.block, due - state.steps)
        problem, begun = state.problem, state.next.position
        batches, position = problem.data.draw(begun, count, sum(self._sizes))
        level = problem.at_level(np.zeros(len(state.status)))
        game = Game.of(level, state.iterate.x)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # caught below, and named
            after = self._run(game, state, batches)
            if any(s is not None for s in state.status) or not bool(namespace(after.sums).isfinite(after.sums).all()):
                again = problem.data.draw(begun, count, sum(self._sizes))[0]
                after = self._freeze(game, state, after, again)
        exhausted = after.steps < state.steps + count
        after = replace(after, next=Start(after.iterate.x, None, position), exhausted=exhausted)
        if exhausted or after.steps == due:
            after = checkpoint(self, game, after)
        return after

    def outcome(self, state: AveragingState) -> Outcome:
        """See :meth:`Solver.outcome`; steps since the last checkpoint count as cost only."""
        exact = state.problem.data.size is not None
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
            steps=state.steps,
            samples=state.samples,
            next=state.next,
        )

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
        status, reason = list(before.status), list(before.reason)
        bad = [j for j in np.flatnonzero(~finite_runs(after.sums)) if status[j] is None]
        if bad:
            found: dict[int, str] = {}
            probe = before
            for batch in batches:
                last, probe = probe, self._run(game, probe, iter([batch]))
                for j in np.flatnonzero(~finite_runs(probe.sums)):
                    if int(j) not in found:
                        cause = _cause(game, self._looks(last.iterate), _split(batch, self._sizes), int(j))
                        found[int(j)] = f"{cause} is not finite at step {last.steps}."
            # A constraint that is not a function of x and the batch may not do it again.
            span = f"a value is not finite between steps {before.steps} and {after.steps}."
            for j in bad:
                status[j], reason[j] = Status.DIVERGED, found.get(int(j), span)
        frozen = np.array([s is not None for s in status])
        iterate, sums = _pick(frozen, before.iterate, after.iterate), _pick(frozen, before.sums, after.sums)
        return replace(after, iterate=iterate, sums=sums, status=tuple(status), reason=tuple(reason))


def _pick(frozen: Any, old: Any, new: Any) -> Any:
    """Return ``new``, an array (R, n), a number or a dataclass of such, with the rows of ``old`` where frozen (R,)."""
    if is_dataclass(new) and not isinstance(new, type):
        parts = {f.name: _pick(frozen, getattr(old, f.name), getattr(new, f.name)) for f in fields(new)}
        return replace(new, **parts)
    if not hasattr(new, "shape"):
        return new
    return choose(frozen, old, new)


def _split(batch: Batch, sizes: tuple[int, ...]) -> list[Batch]:
    """Return the batches of one step, which are drawn together."""
    if len(sizes) == 1:
        return [batch]
    ends = np.cumsum([0, *sizes]).tolist()
    return [{name: rows[i:j] for name, rows in batch.items()} for i, j in pairwise(ends)]


def _cause(game: Game, points: Sequence[Array], batches: Sequence[Batch], run: int) -> str:
    """Name what is not finite for one run in a step, causes before effects."""
    family = game.level.family
    for x, batch in zip(points, batches, strict=True):
        found = family.evaluate(x, batch)
        named = nonfinite_term(game.level, game.dual, found.F, found.G, run)
        if named is not None:
            return named
    return "the gradient"  # or, in float32, its square
