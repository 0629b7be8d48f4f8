"""Variance-reduced mirror-prox: the accuracy of full passes at nearly the price of small batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, cast

import numpy as np

from minmaxcon.arrays import Array, compiled, compiles, namespace
from minmaxcon.checks import batch_number, check_draw, whole
from minmaxcon.core import Batch, LevelProblem, Needs, Position, Start
from minmaxcon.core.compiled import forget_changed, kept_with, with_padding
from minmaxcon.core.runs import Layout, finite_runs, mask_of, where_runs
from minmaxcon.core.source import Batches
from minmaxcon.geometry import DistanceGenerator, DualPoint, PerspectiveGenerator
from minmaxcon.geometry.perspective import EntropyWeight
from minmaxcon.oracles.exact import ExactOracle, Field, SaddleState, fail, layout
from minmaxcon.oracles.mirror import DualMirror, proximal_parts
from minmaxcon.oracles.nonfinite import first_failures, nonfinite_term

__all__ = ["VarianceReduced", "VarianceReducedState"]

_PIECE = 20
"""Steps whose inequality is tested together."""

_ALONE = 50
"""Most epochs of a query that stands alone, where the user gives no number."""

_FIRST = 2
"""Those of the first of a sequence of growing queries, of which each begins where the one before ended."""


_Results = tuple[tuple[Array, DualPoint], Array, Array, Array]
"""The iterate after the steps of a piece, the sums for averages and epoch, and the parts of the inequality (R, 3)."""


@dataclass(frozen=True, eq=False, slots=True)
class VarianceReducedState(SaddleState):
    """State of a query.

    Attributes
    ----------
    mirror : DualMirror
        Mirror coordinates of dual points.
    x_snapshot, y_snapshot : array (R, d), DualPoint
        The snapshot w.
    anchor_x, anchor_y : array
        Mirror coordinates of the anchor.
    field : Field
        The operator at the snapshot on the full data.
    epoch, epoch_weight : array (R, .), (R, 1)
        Sums over the epoch, in float64, of x, y, a and the mirror coordinates of x and (y, a); and number of steps.
    position : Position
        Where the next piece draws.
    """

    mirror: DualMirror
    x_snapshot: Array
    y_snapshot: DualPoint
    anchor_x: Array
    anchor_y: Array
    field: Field
    epoch: Array
    epoch_weight: Array
    position: Position


class VarianceReduced(ExactOracle):
    r"""Mirror-prox with variance-reduced batches, for finite data.

    An epoch begins with the full operator :math:`\Phi(w)` at a snapshot w, and makes K steps. With
    :math:`\bar V_k = \beta V(\cdot, z_k) + (1-\beta)V(\cdot, \bar w)` and :math:`\beta = 1 - 1/K`,

    .. math::
        z_{k+1/2} &= \arg\min_z \gamma\langle\Phi(w), z\rangle + \bar V_k(z), \\
        z_{k+1} &= \arg\min_z \gamma\langle\Phi(w) + \Phi_\xi(z_{k+1/2}) - \Phi_\xi(w), z\rangle + \bar V_k(z),

    where the proxes hold :math:`d_x` and :math:`d_y` too. The next snapshot is the mean of the :math:`z_k`, and the
    anchor :math:`\bar w` their mean in mirror coordinates. The noise vanishes as iterates and snapshot meet, so steps
    need not shrink. Step sizes adapt: the inequality of the convergence proof,

    .. math::
        \gamma\sum_k\langle\Phi_\xi(z_{k+1/2}) - \Phi_\xi(w), z_{k+1/2} - z_{k+1}\rangle \le
        \sum_k V(z_{k+1}, z_{k+1/2}) + (1-\beta)V(z_{k+1/2}, w),

    is tested on every few steps; where it fails by more than a tenth of the known gap (terms with kinks need that room)
    they are undone and steps become shorter. The estimate is the best of
    snapshots and averages by exact evaluation, as for :class:`~minmaxcon.MirrorProx`.

    Parameters
    ----------
    epochs : int, optional
        Largest number of epochs of a query; of the first, where they grow. By default 2 there, and 50 of a query that
        stands alone.
    batch_size : int
        Samples a step.
    inner_steps : int, optional
        K, rounded up to whole pieces of 20 steps. By default half the number of batches in the data, so that the two
        evaluations of each step cost as much as the pass at the snapshot.
    relative_accuracy : float
        A run ends as soon as U - D is at most this share of abs(U). Below 1 the sign of the level's value is known,
        which halves the bracket of the level method. At 0 only the accuracy counts that is asked for in the query.
    entropy_weight : float or {"free", "theorem", "paper"}
        K of the dual generator, see :class:`~minmaxcon.geometry.PerspectiveGenerator`.
    mixing : float
        Warm duals are mixed with this share of the uniform weights.

    Raises
    ------
    InvalidInput
        If a setting is out of range.
    Unsupported
        When a query is about a stream.

    References
    ----------
    Alacaoglu and Malitsky (2022), "Stochastic variance reduction for variational inequality methods", algorithm 2.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> mm.solve(mm.load_problem("toy"), mm.SFLS(oracle=mm.VarianceReduced()), seed=0).status.name
    'SOLVED'
    """

    compiled = True
    _lengthening = 1.5

    def __init__(
        self,
        epochs: int | None = None,
        batch_size: int = 100,
        inner_steps: int | None = None,
        relative_accuracy: float = 0.5,
        entropy_weight: EntropyWeight = "free",
        mixing: float = 0.001,
    ) -> None:
        super().__init__(relative_accuracy, entropy_weight, mixing)
        self.epochs, self.batch_size = None if epochs is None else whole("epochs", epochs), batch_number(batch_size)
        check_draw(self.batch_size, self.batch_size, _PIECE)
        self.inner_steps = None if inner_steps is None else whole("inner_steps", inner_steps)

    @property
    def needs(self) -> Needs:
        """Finite data, and inner blocks in whose mirror coordinates anchors mix."""
        return Needs(finite=True, mirror=True)

    def begin(
        self,
        problem: LevelProblem,
        start: Start,
        *,
        accuracy: float = 0.0,
        confidence: float = 0.9,
        effort: float | None = None,
    ) -> VarianceReducedState:
        """See :meth:`Oracle.begin`; what is returned is evaluated exactly, so the confidence is 1."""
        if compiles(problem.data.engine):
            forget_changed(problem.family, problem.primal)
        first, field = self._first(problem, start, accuracy, 0.0, 0)
        length = self._length(problem)
        mirror, x = DualMirror(first.dual), first.x
        anchor_x, anchor_y = problem.primal.gradient(x), mirror.coordinates(first.y)
        xp = namespace(x)
        epoch = xp.double(xp.zeros((x.shape[0], _epoch_layout(x, first.dual).width), x))
        given = {one.name: getattr(first, one.name) for one in fields(first)}
        epochs = self.epochs or (_ALONE if effort is None else _FIRST)
        given |= {"limit": length * int(np.ceil(epochs * (effort or 1.0) - 1e-6)), "check": length}
        return VarianceReducedState(
            **given,
            mirror=mirror,
            x_snapshot=x,
            y_snapshot=first.y,
            anchor_x=anchor_x,
            anchor_y=anchor_y,
            field=field,
            epoch=epoch,
            epoch_weight=epoch[:, :1] + 0.0,
            position=start.position,
        )

    def advance(self, state: VarianceReducedState) -> VarianceReducedState:
        """See :meth:`Oracle.advance`: one piece of an epoch, and what the end of an epoch brings."""
        length = self._length(state.problem)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # caught, and named
            batches, position = state.problem.data.draw(state.position, _PIECE, self.batch_size)
            state = replace(self._piece(state, batches, length), position=position)
            if state.steps % length == 0:
                state = self._snapshot(state)
                if state.steps >= min(state.check, state.limit):
                    state = self._window(state, [state.x_snapshot], 1.5)
                    state = replace(state, check=length * -(-state.check // length))
        return state

    def _length(self, problem: LevelProblem) -> int:
        wanted = int(problem.data.size or 0) / (2 * self.batch_size) if self.inner_steps is None else self.inner_steps
        return _PIECE * max(1, int(np.ceil(wanted / _PIECE)))

    def _position(self, state: VarianceReducedState) -> Position:
        # Far from here, wherever this query ends: the draws of the next do not depend on how long other runs took.
        return state.begun.position.jumped(1)

    def _piece(self, state: VarianceReducedState, batches: Iterator[Batch], length: int) -> VarianceReducedState:
        """Make some steps, and keep those of the runs whose inequality holds."""
        steps = self._steps_compiled if compiles(state.problem.data.engine) else self._steps
        after, sums, epoch, parts = steps(state, batches, length)
        xp = namespace(state.x)
        if (state.active & ~finite_runs(parts, sums)).any():
            state = self._name(state, length)
        in_x, in_y, allowed = parts[:, :1], parts[:, 1:2], parts[:, 2:]
        count = _PIECE
        passed = (in_x + in_y <= allowed + count * state.slack) & mask_of(state.active, state.x)
        weight = xp.where(passed, state.size.gamma, 0.0 * state.size.gamma)
        x, y = where_runs(passed, after, (state.x, state.y))
        tried = state.size.tried(passed, in_x, in_y, growth=1.05, shrink=0.5)
        return replace(
            state,
            x=x,
            y=y,
            size=where_runs(state.active, tried, state.size),
            sums=state.sums + xp.where(passed, weight * sums, 0.0 * state.sums),
            weight=state.weight + count * weight,
            epoch=state.epoch + xp.where(passed, epoch, 0.0 * state.epoch),
            epoch_weight=state.epoch_weight + xp.where(passed, 0.0 * weight + count, 0.0 * weight),
            steps=state.steps + count,
            samples=state.samples + 2 * count * self.batch_size,
        )

    def _steps(self, state: VarianceReducedState, batches: Iterable[Batch], length: int) -> _Results:
        """Make a step a batch."""
        known = _Known.of(state)
        step, moved = (
            _stepper(state.problem, state.mirror, known, length),
            known.first(state.problem.primal, state.mirror),
        )
        for batch in batches:
            moved = step(moved, batch)
        return moved.results()

    def _steps_compiled(self, state: VarianceReducedState, drawn: Iterator[Batch], length: int) -> _Results:
        """Make the steps of a whole piece by one compiled function."""
        problem, mirror, batches = state.problem, state.mirror, Batches.of(drawn)

        def compile_block() -> Any:
            def block(proximal: Any, whole: Any, each: Any, known: _Known) -> _Results:
                step = _stepper(replace(problem, proximal=proximal), mirror, known, length)

                def body(t: Any, moved: _Moved) -> _Moved:
                    return step(moved, batches.make(whole, {name: rows[t] for name, rows in each.items()}))

                moved: _Moved = namespace(known.x).loop(_PIECE, body, known.first(problem.primal, mirror))
                return moved.results()

            return compiled(block, problem.data.device)

        key = (type(self), length, problem.primal, mirror.dual.entropy_weight, batches.make, problem.data.device)
        block = kept_with(problem.family, key, compile_block)

        def call(asked: LevelProblem, known: _Known) -> Any:
            return block(asked.proximal, batches.placed, batches.each, known)

        return cast("_Results", with_padding(problem, _Known.of(state), call))

    def _snapshot(self, state: VarianceReducedState) -> VarianceReducedState:
        """End an epoch: its means are the next snapshot and anchor, where any of its steps were kept."""
        xp, x, dual = namespace(state.x), state.x, state.dual
        some = state.epoch_weight > 0
        epoch = xp.asarray(state.epoch / xp.where(some, state.epoch_weight, state.epoch_weight + 1.0), x)
        mean = _epoch_layout(x, dual).split(epoch)
        spread = dual.spread(mean.y)
        inner = xp.where(spread > 0, mean.a / xp.where(spread > 0, spread, spread + 1.0), state.y_snapshot.inner)
        snapshot, y_snapshot, anchor_x, anchor_y = where_runs(
            some,
            (mean.x, dual.point(mean.y, inner), mean.mirror_x, mean.mirror_y),
            (state.x_snapshot, state.y_snapshot, state.anchor_x, state.anchor_y),
        )
        field = Field.at(state.problem, dual, snapshot, y_snapshot)
        state = fail(state, field, field.finite(), state.steps)
        return replace(
            state,
            x_snapshot=snapshot,
            y_snapshot=y_snapshot,
            anchor_x=anchor_x,
            anchor_y=anchor_y,
            field=field,
            samples=state.samples + int(state.problem.data.size or 0),
            epoch=0.0 * state.epoch,
            epoch_weight=0.0 * state.epoch_weight,
        )

    def _name(self, state: VarianceReducedState, length: int) -> VarianceReducedState:
        """Freeze the runs that stop being finite at the beginning of the piece, and name the step.

        Runs whose terms are finite have only made too long a step, and try again.
        """

        def move(probe: tuple[Any, ...], batch: Batch) -> Any:
            after, sums, _, parts = self._steps(probe[0], [batch], length)
            return replace(probe[0], x=after[0], y=after[1]), sums, parts

        def cause(before: Any, batch: Batch, after: Any, run: int) -> str | None:
            ahead = namespace(state.x).asarray(layout(state.x, state.dual).split(after[1]).x, state.x)
            return _cause(before[0], ahead, batch, run) if state.active[run] else None

        batches = state.problem.data.draw(state.position, _PIECE, self.batch_size)[0]
        found = first_failures(
            (state,), state.steps, batches, move, lambda after: finite_runs(after[1], after[2]), cause
        )
        failure = tuple(found.get(run, known) for run, known in enumerate(state.failure))
        return replace(state, failure=failure, active=state.active & np.array([one is None for one in failure]))


@dataclass(frozen=True, eq=False, slots=True)
class _Known:
    """What the steps of a piece read: the iterate, snapshot, anchor and operator of the state, and the step sizes."""

    x: Array
    y: DualPoint
    x_snapshot: Array
    y_snapshot: DualPoint
    anchor_x: Array
    anchor_y: Array
    field: Field
    eta: Array
    tau: Array

    @classmethod
    def of(cls, state: VarianceReducedState) -> _Known:
        """Return that of a state."""
        snapshot = state.x_snapshot, state.y_snapshot, state.anchor_x, state.anchor_y
        return cls(state.x, state.y, *snapshot, state.field, state.size.eta, state.size.tau)

    def first(self, primal: DistanceGenerator, mirror: DualMirror) -> _Moved:
        """Return the iterate of the first step, before which nothing is summed."""
        x, y, xp = self.x, self.y, namespace(self.x)
        runs = x.shape[0]
        sums, epoch = (
            xp.double(xp.zeros((runs, one.width), x)) for one in (layout(x, mirror.dual), _epoch_layout(x, mirror.dual))
        )
        return _Moved(x, y, primal.gradient(x), mirror.coordinates(y), sums, epoch, xp.zeros((runs, 3), x))


@dataclass(frozen=True, eq=False, slots=True)
class _Moved:
    """The iterate of a step: points, their mirror coordinates, sums for averages and epoch, parts of the inequality."""

    x: Array
    y: DualPoint
    mirror_x: Array
    mirror_y: Array
    sums: Array
    epoch: Array
    parts: Array

    def results(self) -> _Results:
        """Return what the steps of a piece give."""
        return (self.x, self.y), self.sums, self.epoch, self.parts


def _stepper(
    problem: LevelProblem, mirror: DualMirror, known: _Known, length: int
) -> Callable[[_Moved, Batch], _Moved]:
    """Return the function that makes a step of an epoch of this length."""
    dual, primal, family, full = mirror.dual, problem.primal, problem.family, known.field
    w, y_w, eta, tau, share = known.x_snapshot, known.y_snapshot, known.eta, known.tau, 1.0 / length
    xp = namespace(known.x)
    center, pull = proximal_parts(problem, known.x)
    scaled_w = dual.scaled(y_w)

    def step(moved: _Moved, batch: Batch) -> _Moved:
        # Apart from the divergence at the iterate itself, the anchor's share is linear: it shifts the gradient.
        shift = (share / eta) * (moved.mirror_x - known.anchor_x)
        anchor, extra = mirror.anchor((1.0 - share) * moved.mirror_y + share * known.anchor_y)
        extra = extra / tau
        ahead = primal.prox(moved.x, full.gradient + shift, eta, center=center, weight=pull)
        y_ahead = dual.prox(anchor, full.u - extra, full.v, tau)
        here, there = family.evaluate(w, batch), family.evaluate(ahead, batch)
        scaled = dual.scaled(y_ahead)
        du, dv = there.F - here.F, there.G - here.G
        change = there.pullback(y_ahead.weights, scaled) - here.pullback(y_w.weights, scaled_w)
        x = primal.prox(moved.x, full.gradient + change + shift, eta, center=center, weight=pull)
        y = dual.prox(anchor, full.u + du - extra, full.v + dv, tau)
        own = dual.scaled(y)
        in_x = xp.dot(change, ahead - x)
        in_y = -xp.dot(du, y_ahead.weights - y.weights) - xp.dot(dv, scaled - own)
        far = (primal.divergence(x, ahead) + share * primal.divergence(ahead, w)) / eta[:, 0]
        far = far + (dual.divergence(y, y_ahead) + share * dual.divergence(y_ahead, y_w)) / tau[:, 0]
        sums = moved.sums + xp.double(xp.concat((ahead, y_ahead.weights, scaled)))
        mirror_x, mirror_y = primal.gradient(x), mirror.coordinates(y)
        epoch = moved.epoch + xp.double(xp.concat((x, y.weights, own, mirror_x, mirror_y)))
        return _Moved(x, y, mirror_x, mirror_y, sums, epoch, moved.parts + xp.stack((in_x, in_y, far)))

    return step


def _epoch_layout(x: Array, dual: PerspectiveGenerator) -> Layout:
    size = x.shape[-1]
    return layout(x, dual, mirror_x=size, mirror_y=2 * dual.levels + dual.inner_dimension)


def _cause(state: VarianceReducedState, ahead: Array, batch: Batch, run: int) -> str | None:
    """Name what is not finite in a batch's terms for one run; None where only the steps are too long."""
    dual = state.dual
    for x in (state.x_snapshot, ahead):
        found = state.problem.family.evaluate(x, batch)
        named = nonfinite_term(state.problem, dual, found.F, found.G, run)
        gradient = found.pullback(state.y.weights, dual.scaled(state.y))
        if named is None and not finite_runs(gradient)[run]:
            named = "the gradient"
        if named is not None:
            return named
    return None
