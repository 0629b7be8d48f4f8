"""The base of stochastic oracles: weighted averages of what the steps visit, and the bound U that they give."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np

from minmaxcon.arrays import Array, compiled, compiles, namespace, to_numpy
from minmaxcon.checks import batch_number, check_draw, whole
from minmaxcon.core import Batch, Estimate, LevelProblem, Oracle, Position, Start
from minmaxcon.core.compiled import by_value, forget_changed, kept_with, padded, with_padding
from minmaxcon.core.runs import Layout, finite_runs, where_runs
from minmaxcon.core.source import Batches
from minmaxcon.geometry import DualPoint, PerspectiveGenerator
from minmaxcon.geometry.perspective import EntropyWeight
from minmaxcon.oracles.mirror import check_mixing, first_dual
from minmaxcon.oracles.nonfinite import first_failures, nonfinite_cause
from minmaxcon.oracles.step_rules import StepRule
from minmaxcon.oracles.step_rules import step_rule as steps_of

__all__ = ["StochasticOracle", "StochasticState"]


@dataclass(frozen=True, eq=False, slots=True)
class StochasticState:
    """State of a query; everything that the next step needs.

    Attributes
    ----------
    problem : LevelProblem
        What is being solved.
    dual : PerspectiveGenerator
        The dual generator.
    x : array (R, d)
        The primal iterate.
    y : DualPoint
        The dual iterate.
    memory : object
        The step rule's memory.
    sums : array (R, d + 2k + 2p + 2)
        Weighted sums, in float64, of x, y, a, u, v, the proximal term and the squared norm of the gradient: whatever
        stops being finite is seen in them.
    weight : array (R, 1)
        The sum of the weights.
    position : Position
        Where the data are read from next.
    steps, limit : int
        Steps taken, and steps to take.
    exhausted : bool
        Whether a stream has ended.
    failure : tuple of (str or None)
        What stopped being finite, per run; such a run is frozen at its last good state.
    """

    problem: LevelProblem
    dual: PerspectiveGenerator
    x: Array
    y: DualPoint
    memory: Any
    sums: Array
    weight: Array
    position: Position
    steps: int
    limit: int
    exhausted: bool
    failure: tuple[str | None, ...]


Iterate = tuple[Array, DualPoint, Any]
"""The iterate of a step: x, y and the memory of the step rule."""

Step = tuple[Iterate, tuple[Array, ...], Any]
"""The iterate after a step, the parts of what the step visits, in the order of the sums, and their weight."""

Stepper = Callable[..., Step]
"""``step(iterate, batch, ...)``, with as many batches as a step takes."""

Moved = tuple[Iterate, Array, Array]
"""An iterate, the weighted sums before it, and the sum of the weights."""


class StochasticOracle(Oracle):
    """A method that draws batches, takes a fixed number of steps and answers with weighted averages of what it visits.

    A subclass gives :meth:`_stepper`, and :meth:`_visited` where a step visits more than the iterate. Parameters are
    those of :class:`~minmaxcon.SMD`.
    """

    compiled = True
    _batches_a_step = 1
    _keeps = True

    def __init__(
        self,
        steps: int | None = None,
        batch_size: int = 100,
        step_rule: str | StepRule = "adaptive",
        entropy_weight: EntropyWeight = "free",
        mixing: float = 0.05,
        block: int | None = None,
    ) -> None:
        self.steps = None if steps is None else whole("steps", steps)
        self.block = None if block is None else whole("block", block)
        self.batch_size = batch_number(batch_size)
        most = self.block or _BLOCK
        check_draw(self.batch_size, self._batches_a_step * self.batch_size, min(self.steps or most, most))
        self.mixing = check_mixing(mixing)
        PerspectiveGenerator([None], entropy_weight)  # refuses a bad value now rather than in the solve
        self.step_rule = steps_of(step_rule)
        self.entropy_weight = entropy_weight

    @property
    def runs(self) -> int | None:
        """Number of runs where a step size is a vector, else None."""
        return self.step_rule.runs

    def take(self, runs: Any) -> Self:
        """See :meth:`Oracle.take`."""
        other = copy.copy(self)
        other.step_rule = self.step_rule.take(runs)
        return other

    def begin(
        self,
        problem: LevelProblem,
        start: Start,
        *,
        accuracy: float = 0.0,
        confidence: float = 0.9,
        effort: float | None = None,
    ) -> StochasticState:
        """See :meth:`Oracle.begin`; ``effort`` sets the number of steps, accuracy and confidence are not used."""
        x = start.x
        xp = namespace(x)
        if compiles(problem.data.engine):
            forget_changed(problem.family, problem.primal)
        dual, y = first_dual(problem, start, self.entropy_weight, self.mixing, self.runs)

        def probe() -> tuple[Array, Array]:
            return self._probe(problem, dual, x, start.position)

        with np.errstate(over="ignore", invalid="ignore"):  # the step that meets such a value names it
            memory = self.step_rule.start(problem, dual, x, probe, start.memory)
        sums = xp.double(xp.zeros((x.shape[0], _layout(x, dual).width), x))
        none: tuple[str | None, ...] = (None,) * problem.runs
        steps = self.steps or (_ALONE if effort is None else self._first(problem))
        limit = math.ceil(steps * (effort or 1.0) - 1e-6)  # 300 * 1.1**2 is 363 and a little, by rounding
        return StochasticState(
            problem, dual, x, y, memory, sums, sums[:, :1] + 0.0, start.position, 0, limit, False, none
        )

    def _first(self, problem: LevelProblem) -> int:
        """Return the steps of the first of a sequence of queries."""
        rows = problem.data.size
        if rows is None:
            return _FIRST_OF_STREAM
        if problem.family.knows_means(problem.data):
            return _FIRST
        # Exact passes follow a query: were it much shorter, they would take most of the time, and were it longer than
        # they, it would answer later than it need. No query is longer than one pass in samples.
        drawn, width = self.batch_size * self._batches_a_step, problem.primal.dimension
        alike = _PASSES * rows * width / (_STEP + drawn * width)
        return max(_FIRST, math.ceil(min(alike, rows / drawn)))

    def block_of(self, problem: LevelProblem) -> int:
        """Return the steps of a block: those that were asked for, else more where they are compiled and short.

        To call a compiled function takes as long as dozens of short steps. Samples that are no rows of an array are all
        made before the call, so there blocks have no more steps than others.
        """
        data, numbers = problem.data, padded(problem.runs) * problem.primal.dimension * self.batch_size
        short = compiles(data.engine) and data.size is not None and not data.streamed and numbers <= _SHORT
        return self.block or (_COMPILED if short else _BLOCK)

    def advance(self, state: StochasticState) -> StochasticState:
        """See :meth:`Oracle.advance`: one block of steps."""
        count = min(self.block_of(state.problem), state.limit - state.steps)
        batches, position = state.problem.data.draw(state.position, count * self._batches_a_step, self.batch_size)
        run = self._run_compiled if compiles(state.problem.data.engine) else self._run
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # caught below, and named
            after = run(state, batches)
            if after.steps < state.steps + count:
                after = replace(after, exhausted=True)
            if any(f is not None for f in state.failure) or not bool(namespace(after.sums).isfinite(after.sums).all()):
                after = self._freeze(state, after, count)
        return replace(after, position=position)

    def finished(self, state: StochasticState) -> bool:
        """See :meth:`Oracle.finished`."""
        return state.steps >= state.limit or state.exhausted or all(f is not None for f in state.failure)

    def estimate(self, state: StochasticState) -> Estimate:
        """See :meth:`Oracle.estimate`."""
        xp = namespace(state.x)
        started, like = state.weight > 0, state.x
        mean = _layout(like, state.dual).split(state.sums / xp.where(started, state.weight, state.weight + 1.0))
        values = state.dual.support(mean.u, mean.v) + mean.proximal
        values = xp.where(started, values, values + float("inf"))
        return Estimate(
            x=xp.asarray(xp.where(started, mean.x, xp.double(like)), like),
            weights=xp.asarray(xp.where(started, mean.y, xp.double(state.y.weights)), like),
            scaled=xp.asarray(mean.a, like),
            upper=np.asarray(to_numpy(xp.max(values))),
            values=np.asarray(to_numpy(values)),
            samples=state.steps * self.batch_size * self._batches_a_step,
            steps=state.steps,
            next=Start(state.x, state.y, state.position, self.step_rule.kept(state.memory) if self._keeps else None),
            failure=state.failure,
            exhausted=state.exhausted,
        )

    @abstractmethod
    def _stepper(self, problem: LevelProblem, dual: PerspectiveGenerator, like: Array) -> Stepper:
        """Return the function that makes a step, for iterates of the engine, precision and runs of ``like`` (R, d).

        It takes the iterate and each of the batches of a step. Where it is compiled, bounds and proximal term of the
        problem are traced, and what else it reads is constant.
        """

    def _run(self, state: StochasticState, batches: Iterator[Batch]) -> StochasticState:
        """Return the state after a step with each batch, or each few that a step takes."""
        step, steps = self._stepper(state.problem, state.dual, state.x), state.steps
        iterate: Iterate = (state.x, state.y, state.memory)
        sums = _sums(state.sums, state.weight)
        # A stream may end within the batches of a step.
        for few in zip(*[batches] * self._batches_a_step, strict=False):
            iterate, visited, weight = step(iterate, *few)
            sums.add(visited, weight)
            steps += 1
        return _moved(state, (iterate, *sums.total()), steps)

    def _run_compiled(self, state: StochasticState, drawn: Iterator[Batch]) -> StochasticState:
        """Return the same by one compiled function, that is made for any number of steps up to a whole block."""
        problem, dual, batches, size = state.problem, state.dual, Batches.of(drawn), self._batches_a_step
        count = batches.count // size
        if count == 0:
            return state
        rule, length = tuple(by_value(value) for value in vars(self.step_rule).values()), self.block_of(problem)
        same = (type(self), length, type(self.step_rule), rule)
        key = (*same, problem.primal, dual.entropy_weight, batches.make, problem.data.device)
        block = kept_with(problem.family, key, lambda: self._compiled(problem, dual, batches.make))
        moved: Moved = ((state.x, state.y, state.memory), state.sums, state.weight)
        each = {name: _lengthened(rows, length * size) for name, rows in batches.each.items()}

        def call(asked: LevelProblem, moved: Moved) -> Moved:
            return cast("Moved", block((asked.bounds, asked.proximal), batches.placed, each, count, moved))

        return _moved(state, with_padding(problem, moved, call), state.steps + count)

    def _compiled(self, problem: LevelProblem, dual: PerspectiveGenerator, make: Callable[..., Batch]) -> Any:
        size = self._batches_a_step

        def block(given: tuple[Any, Any], whole: Any, each: Any, count: Any, moved: Moved) -> Moved:
            bounds, proximal = given
            step = self._stepper(replace(problem, bounds=bounds, proximal=proximal), dual, moved[0][0])

            def body(t: Any, moved: Moved) -> Moved:
                few = ({name: rows[t * size + j] for name, rows in each.items()} for j in range(size))
                iterate, visited, weight = step(moved[0], *(make(whole, one) for one in few))
                sums = _Sums(*moved[1:])
                sums.add(visited, weight)
                return iterate, *sums.total()

            return cast("Moved", namespace(moved[0][0]).loop(count, body, moved))

        return compiled(block, problem.data.device)

    def _visited(self, state: StochasticState, batches: tuple[Batch, ...]) -> list[tuple[Array, Batch]]:
        """Return the points that the next step evaluates, in order, and the batch of each."""
        return [(state.x, batches[0])]

    def _freeze(self, before: StochasticState, after: StochasticState, count: int) -> StochasticState:
        """Put runs that are no longer finite back to their last good state, and name the step."""
        size, failure, found = self._batches_a_step, list(before.failure), {}
        bad = [j for j in np.flatnonzero(~finite_runs(after.sums)) if failure[j] is None]
        if bad:
            drawn = before.problem.data.draw(before.position, count * size, self.batch_size)[0]
            steps = zip(*[drawn] * size, strict=False)  # a stream may end within a step
            found = first_failures(
                before,
                before.steps,
                steps,
                lambda state, batches: self._run(state, iter(batches)),
                lambda state: finite_runs(state.sums),
                lambda last, batches, _, run: nonfinite_cause(
                    last.problem, last.dual, self._visited(last, batches), run
                ),
            )
        for j in bad:
            # A constraint that is not a function of x and the batch may not do it again.
            span = f"a value is not finite between steps {before.steps} and {after.steps}"
            failure[j] = found.get(int(j), span)
        frozen = np.array([f is not None for f in failure])
        names = ("x", "y", "sums", "weight")
        kept = {name: where_runs(frozen, getattr(before, name), getattr(after, name)) for name in names}
        return replace(after, **kept, failure=tuple(failure))

    def _probe(
        self, problem: LevelProblem, dual: PerspectiveGenerator, x: Array, position: Position
    ) -> tuple[Array, Array]:
        """Measure the gradients at points drawn from both sets: the largest mean square of a few."""
        xp, rng = namespace(x), position.rng()
        bounds = xp.asarray(problem.bounds[:, None, :], x)
        points = xp.asarray(problem.primal.sample(rng, _PROBES), x)
        drawn = dual.sample(rng, _PROBES)
        y = dual.point(xp.asarray(drawn.weights, x), xp.asarray(drawn.inner, x))
        in_x: Any = xp.zeros((_PROBES,), x)
        in_y: Any = xp.zeros((int(x.shape[0]), _PROBES), x)
        count = 0
        for batch in problem.data.draw(position, 30, self.batch_size)[0]:
            found = problem.family.evaluate(points, batch)
            u, v = found.F - bounds, found.G
            in_x = in_x + problem.primal.dual_norm(found.pullback(y.weights, dual.scaled(y))) ** 2
            in_y = in_y + xp.max(u * u) + xp.dot(v, v)
            count += 1
        return xp.zeros((int(x.shape[0]),), x) + xp.max(in_x) / max(count, 1), xp.max(in_y) / max(count, 1)


_BLOCK, _COMPILED, _SHORT = 100, 400, 2**18
"""Steps of a block, and of one of short compiled steps: those with up to so many runs x variables x samples."""

_ALONE = 4000
"""Steps of a query that stands alone, where the user gives none."""

_FIRST = 100
"""Those of the first of a sequence. Its answer is evaluated exactly, and the next begins where it ended."""

_PASSES, _STEP = 30, 1e5
"""Exact passes that follow a query on large data, at most; and how many numbers a pass reads in the time that a step
takes beside its own samples."""

_FIRST_OF_STREAM = 1000
"""The same on a stream, where the answer is only estimated, with the noise that these steps leave."""

_PROBES = 16
"""Points of the sets at which the theory's step sizes measure gradients."""


class _Sums:
    """Weighted sums of what steps visit, in float64, and the sum of the weights."""

    def __init__(self, sums: Array, weight: Array) -> None:
        xp = namespace(sums)
        self._sums, self._weight = xp.copy(sums), xp.copy(weight)  # arrays of JAX are not written into below

    def add(self, parts: tuple[Array, ...], weight: Any) -> None:
        """Add a step's parts, joined along the last axis, with its weight (R, 1) or a number."""
        xp = namespace(self._sums)
        joined = xp.concat(parts)
        joined *= weight
        self._sums += xp.double(joined)  # an addition that converts takes several times as long
        self._weight += weight

    def total(self) -> tuple[Array, Array]:
        """Return the sums and the sum of the weights."""
        return self._sums, self._weight


class _Rows:
    """The same of NumPy arrays: the rows of several steps are kept, and added up in their order by one call."""

    def __init__(self, sums: Array, weight: Array, steps: int) -> None:
        runs, width = sums.shape
        self._total = np.concatenate([sums, weight], axis=-1)
        # The first row holds the total when they are added. The last number is the weight's own: 1 times the weight.
        self._rows = np.ones((1 + steps, runs, width + 1))
        self._parts, self._weights = self._rows[..., :-1], np.empty((len(self._rows), runs, 1))
        self._next = 1

    def add(self, parts: tuple[Array, ...], weight: Any) -> None:
        """See :meth:`_Sums.add`."""
        if self._next == len(self._rows):
            self._flush()
        np.concatenate(parts, axis=-1, out=self._parts[self._next])
        self._weights[self._next] = weight
        self._next += 1

    def total(self) -> tuple[Array, Array]:
        """See :meth:`_Sums.total`."""
        self._flush()
        return self._total[:, :-1], self._total[:, -1:]

    def _flush(self) -> None:
        rows = self._rows[: self._next]
        rows[1:] *= self._weights[1 : self._next]
        rows[0] = self._total
        self._total = np.add.reduce(rows, axis=0)  # row by row: the order does not depend on how many are kept
        rows[1:, :, -1], self._next = 1.0, 1


_KEPT, _LEAST, _NUMBERS = 100, 8, 2**15
"""Steps whose rows are kept at most and at least, and numbers in them: what a processor's second cache holds."""


def _sums(sums: Array, weight: Array) -> _Sums | _Rows:
    """Return what adds to these sums; a row that is long by itself is better added at once."""
    steps = min(_KEPT, _NUMBERS // (sums.shape[0] * sums.shape[1]))
    return _Rows(sums, weight, steps) if namespace(sums).name == "numpy" and steps >= _LEAST else _Sums(sums, weight)


def _moved(state: StochasticState, moved: Moved, steps: int) -> StochasticState:
    (x, y, memory), sums, weight = moved
    return replace(state, x=x, y=y, memory=memory, sums=sums, weight=weight, steps=steps)


def _lengthened(rows: Any, length: int) -> Any:
    """Return rows with more of the last one, up to a length, so that one compiled block serves for all lengths."""
    return rows if len(rows) == length else np.concatenate([rows, np.repeat(rows[-1:], length - len(rows), axis=0)])


def _layout(x: Array, dual: PerspectiveGenerator) -> Layout:
    k, p = dual.levels, dual.inner_dimension
    return Layout(x=x.shape[-1], y=k, a=p, u=k, v=p, proximal=1, gradient=1)
