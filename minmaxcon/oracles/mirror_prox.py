"""Deterministic mirror-prox: level problems on finite data, without noise."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.checks import whole
from minmaxcon.core import LevelProblem, Position, Start
from minmaxcon.core.runs import mask_of, where_runs
from minmaxcon.geometry import DualPoint
from minmaxcon.geometry.perspective import EntropyWeight
from minmaxcon.oracles.exact import ExactOracle, Field, SaddleState, fail
from minmaxcon.oracles.mirror import proximal_parts

__all__ = ["MirrorProx", "MirrorProxState"]

_SAMPLES_AT_ONCE = 200_000
_FIRST_WINDOW = 8

_ALONE = 1000
"""Most trials of a query that stands alone, where the user gives no number."""

_FIRST = 20
"""Those of the first of a sequence of growing queries, of which each begins where the one before ended."""


@dataclass(frozen=True, eq=False, slots=True)
class MirrorProxState(SaddleState):
    """State of a query.

    Attributes
    ----------
    field : Field
        The operator that the next trial looks ahead with: of the last point evaluated, or of the iterate.
    missed : ndarray (R,)
        Trials that failed since the last one that held.
    """

    field: Field
    missed: Any

    by_run: ClassVar[tuple[str, ...]] = (*SaddleState.by_run, "field", "missed")


class MirrorProx(ExactOracle):
    r"""Mirror-prox with the full data, a pass a step: exact bounds, and a gap that falls like 1/T.

    With z = (x, y, a), :math:`\Phi = (\nabla_x, -u, -v)` and the proxes of both geometries, which hold :math:`d_x` and
    :math:`d_y`,

    .. math::
        w_t = \mathrm{prox}_{z_t}(\gamma\Phi(w_{t-1})), \qquad z_{t+1} = \mathrm{prox}_{z_t}(\gamma\Phi(w_t)),

    accepted when

    .. math:: \langle\Phi(w_t) - \Phi(w_{t-1}), w_t - z_{t+1}\rangle \le
        \frac{V_x(w_t,z_t) + V_x(z_{t+1},w_t)}\eta + \frac{V_y(w_t,z_t) + V_y(z_{t+1},w_t)}\tau + \varepsilon,

    with :math:`\varepsilon` a tenth of the gap that is known, for terms with kinks; else tried again with a shorter
    step, and in place of :math:`\Phi(w_{t-1})` first the operator at the point that failed and then, as often as it
    takes, :math:`\Phi(z_t)`. The estimate is the best of the step-weighted averages of w and the iterates,
    by exact evaluation: U is the value of the level problem at its x, and its duals have the best lower bound D.

    Parameters
    ----------
    steps : int, optional
        Largest number of trials of a query; of the first, where they grow. Each costs one pass over the data, and one
        more where two in a row fail. By default 20 there, and 1,000 of a query that stands alone.
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
    Nemirovski (2004), "Prox-method with rate of convergence O(1/t) for variational inequalities"; Popov (1980), "A
    modification of the Arrow-Hurwicz method for search of saddle points", for the single pass.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> mm.solve(mm.load_problem("toy"), mm.SFLS(oracle=mm.MirrorProx()), seed=0).status.name
    'SOLVED'
    """

    def __init__(
        self,
        steps: int | None = None,
        relative_accuracy: float = 0.5,
        entropy_weight: EntropyWeight = "free",
        mixing: float = 0.001,
    ) -> None:
        super().__init__(relative_accuracy, entropy_weight, mixing)
        self.steps = None if steps is None else whole("steps", steps)

    def begin(
        self,
        problem: LevelProblem,
        start: Start,
        *,
        accuracy: float = 0.0,
        confidence: float = 0.9,
        effort: float | None = None,
    ) -> MirrorProxState:
        """See :meth:`Oracle.begin`; nothing is random, so the confidence is 1."""
        steps = self.steps or (_ALONE if effort is None else _FIRST)
        first, field = self._first(problem, start, accuracy, steps * (effort or 1.0), _FIRST_WINDOW)
        given = {one.name: getattr(first, one.name) for one in fields(first)}
        return MirrorProxState(**given, field=field, missed=np.zeros(problem.runs, dtype=int))

    def advance(self, state: MirrorProxState) -> MirrorProxState:
        """See :meth:`Oracle.advance`: some trials, as many as the size of the data allows."""
        if self.finished(state):
            return state
        problem = state.problem
        rows = 1 if problem.family.knows_means(problem.data) else int(problem.data.size or 1)
        count = min(max(1, min(50, _SAMPLES_AT_ONCE // (rows * problem.runs))), state.limit - state.steps)
        runs = np.flatnonzero(state.active)  # those that have ended cost nothing
        part = state.only(runs)
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(count):
                part = self._trial(part)
                if part.steps >= min(part.check, part.limit) or not part.active.any():
                    part = self._restarted(self._window(part, [part.x], 2.0), part)
                if self.finished(part):
                    break
                if not part.active.all():
                    state = state.joined(runs, part)
                    runs = np.flatnonzero(state.active)
                    part = state.only(runs)
        return state.joined(runs, part)

    def _restarted(self, state: MirrorProxState, before: MirrorProxState) -> MirrorProxState:
        """Return the state after a window, moved to a minimiser of the Lagrangian that proved to be the best point."""
        found = before.active & state.best.minimiser & (state.best.upper < before.best.upper)
        if not found.any():
            return state
        state = replace(state, x=where_runs(found, state.best.x, state.x))
        if self.finished(state):  # the next query begins there
            return state
        field = where_runs(found, Field.at(state.problem, state.dual, state.x, state.y), state.field)
        state = replace(state, field=field, samples=state.samples + int(state.problem.data.size or 0))
        moved: MirrorProxState = fail(state, field, field.finite(), state.steps)
        return moved

    def _position(self, state: MirrorProxState) -> Position:
        return state.begun.position

    def _trial(self, state: MirrorProxState) -> MirrorProxState:
        problem, dual, primal = state.problem, state.dual, state.problem.primal
        x, y, size, rows = state.x, state.y, state.size, int(state.problem.data.size or 0)
        xp = namespace(x)
        center, pull = proximal_parts(problem, x)
        here = state.field

        def step(at: Field) -> tuple[Array, DualPoint]:
            return primal.prox(x, at.gradient, size.eta, center=center, weight=pull), dual.prox(y, at.u, at.v, size.tau)

        ahead, y_ahead = step(here)
        there = Field.at(problem, dual, ahead, y_ahead)
        state = fail(state, there, there.finite(), state.steps)
        moved, y_moved = step(there)

        scaled = dual.scaled(y_ahead)
        in_x = xp.dot(there.gradient - here.gradient, ahead - moved)
        in_y = xp.dot(here.u - there.u, y_ahead.weights - y_moved.weights)
        in_y = in_y + xp.dot(here.v - there.v, scaled - dual.scaled(y_moved))
        far = (primal.divergence(ahead, x) + primal.divergence(moved, ahead)) / size.eta[:, 0]
        far = far + (dual.divergence(y_ahead, y) + dual.divergence(y_moved, y_ahead)) / size.tau[:, 0]
        passed = (in_x + in_y <= far + state.slack[:, 0])[:, None] & mask_of(state.active, x)

        weight = xp.where(passed, size.gamma, 0.0 * size.gamma)
        x, y = where_runs(passed, (moved, y_moved), (x, y))
        held = np.asarray(to_numpy(passed))[:, 0]
        missed = np.where(held, 0, state.missed + state.active)
        # A point that failed is nearer than the one before it; where that is not enough, the iterate's own operator is.
        field, samples = where_runs(state.active & (missed < 2), there, here), state.samples + rows
        back = state.active & (missed == 2)
        if back.any():
            field, samples = where_runs(back, Field.at(problem, dual, x, y), field), samples + rows
            state = fail(state, field, field.finite(), state.steps + 1)
        tried = size.tried(passed, in_x[:, None], in_y[:, None], growth=1.1, shrink=0.6)
        return replace(
            state,
            x=x,
            y=y,
            field=field,
            missed=missed,
            size=where_runs(state.active, tried, size),
            sums=state.sums + xp.where(passed, weight * xp.concat((ahead, y_ahead.weights, scaled)), 0.0 * state.sums),
            weight=state.weight + weight,
            steps=state.steps + 1,
            samples=samples,
        )
