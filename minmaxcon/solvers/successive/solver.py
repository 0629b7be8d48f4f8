"""Successive approximation: solve with surrogates that are refreshed at each proximal point, accept by the truth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.checks import number, whole
from minmaxcon.core import Needs, Outcome, Position, RefreshedProblem, Solver, Start, Status
from minmaxcon.core.runs import put_rows
from minmaxcon.errors import InvalidInput
from minmaxcon.solvers.successive.blocks import first_block, next_block
from minmaxcon.solvers.successive.judge import judge_step, keep_best, limited
from minmaxcon.solvers.successive.linearised_step import LinearisedStep, linearised_step
from minmaxcon.solvers.successive.observed import gradients_at, moved, observe, refined
from minmaxcon.solvers.successive.proximal_step import proximal_step
from minmaxcon.solvers.successive.state import Anchor, SuccessiveState

__all__ = ["SuccessiveApproximation", "SuccessiveState"]

_ACCEPT, _GOOD = 0.1, 0.7
"""Shares of the predicted decrease from which a step is accepted, and from which the next one may be longer."""

_COST = 0.3
"""What the worst miss of a target costs at least in the merit, as a share of the objective."""


class SuccessiveApproximation(Solver):
    r"""Minimise :math:`f_0(x)` subject to true measures :math:`t_i(x) \le b_i`.

    At :math:`\tilde x_s` the surrogates are refreshed and everything is linearised; the step minimises

    .. math:: \langle\nabla f_0, d\rangle + \tfrac{1 + \hat\rho}2\langle d, Bd\rangle \quad\text{s.t.}\quad
        t_i(\tilde x_s) - b_i + \langle\nabla t_i, d\rangle \le 0

    with the problem's model B of the curvature. It is accepted when the merit
    :math:`f_0 + \mu\sum_i (t_i - b_i)_+`, made of *true* values, falls by at least a tenth of what was predicted; then
    :math:`\hat\rho` is halved where the prediction was good, else it is trebled. All runs advance in one array.

    On a stream each outer step reads a block of rows, on which both ends of the step are compared; values and gradients
    at the proximal point are averaged over all blocks, so that the error that is left is that of all rows seen. All
    steps are made then, nothing is proved, and no run ends as solved or out of reach. The latest point whose estimates
    meet the targets is returned.

    Parameters
    ----------
    iterations : int
        Largest number of outer steps.
    tolerance : float
        A run ends once first-order optimality allows the objective to fall by no more than this, relative to
        :math:`1 + |f_0|`, at a point that meets the targets.
    margin : float
        By how much the steps aim below the targets at first, in the unit of the measure, so that the true values end
        below them although no step is exact. It grows where a stationary point misses its target.
    weight : float
        First :math:`\hat\rho`.
    reach : float
        First trust region, in the norm of B.
    refresh : int
        Outer steps after which the curvature model is renewed, if a step was accepted.
    patience : int
        Steps that may be refused in a row; on streams :math:`\hat\rho` and the trust region then begin anew.
    sample : int
        Rows of a stream's block, which bound the memory; finite data are looked at as a whole.
    inner : Solver, optional
        Solves the proximal problems :math:`f_s + \hat\rho V` in the place of the linearised step, with V in the norm of
        X and with the surrogates as constraints: :class:`SFLS`, from single samples. One outer step is
        then one solve a run; a time limit is looked at between them.

    Raises
    ------
    InvalidInput
        If a setting is out of range.

    Notes
    -----
    A sequential quadratic method with an exact penalty (Nocedal and Wright, 2006, chapter 18); in the paper's terms,
    IQRC around constraints that change with the proximal point, one linearised step per proximal problem, and an
    adapted :math:`\hat\rho`.
    """

    def __init__(
        self,
        iterations: int = 200,
        tolerance: float = 1e-5,
        margin: float = 0.0,
        weight: float = 1.0,
        reach: float = 0.1,
        refresh: int = 1,
        patience: int = 12,
        sample: int = 5000,
        inner: Solver | None = None,
    ) -> None:
        self.iterations, self.refresh = whole("iterations", iterations), whole("refresh", refresh)
        self.patience, self.sample = whole("patience", patience), whole("sample", sample)
        self.tolerance = number("tolerance", tolerance, "must be positive and finite.", above=0.0)
        self.margin = number("margin", margin, "must be finite and at least 0.", least=0.0)
        self.weight = number("weight", weight, "must be positive and finite.", above=0.0)
        self.reach = number("reach", reach, "must be positive and finite.", above=0.0)
        if not (inner is None or isinstance(inner, Solver)):
            raise InvalidInput("inner", inner, "must be a Solver such as SFLS(), or None for the linearised step.")
        if inner is not None and (inner.needs.unregularised or inner.needs.measure):
            raise InvalidInput("inner", inner, "solves no problem with a proximal term; use one that does: SFLS().")
        self.inner = inner

    @property
    def needs(self) -> Needs:
        """A true measure, and a Euclidean set to step in."""
        return Needs(measure=True, euclidean=True)

    def init(self, problem: Any, start: Start) -> SuccessiveState:
        """See :meth:`Solver.init`; measures the start.

        Raises
        ------
        Unsupported
            If the measure cannot follow the problem's stream.
        DataError
            If the stream is empty, or its first block is of no use to the measure.
        """
        block, position, samples = problem, start.position, int(problem.data.size or 0)
        if problem.data.size is None:
            block, position = first_block(problem, position, self.sample)
            samples = position.samples - start.position.samples
        state, first = self._seen(problem, block, start.x, position, samples), problem.first
        if first is None or not np.array_equal(to_numpy(start.x), to_numpy(problem.start_point(len(start.x)))):
            return state
        begin = SuccessiveApproximation(iterations=problem.first_steps)
        return replace(state, first=begin.init(first, Start(first.start_point(1), None, start.position)))

    def _seen(
        self, problem: RefreshedProblem, block: RefreshedProblem, x: Array, position: Position, samples: int
    ) -> SuccessiveState:
        """Return the state before the first step, from what is seen of the starting points x on a block."""
        runs, anchor = len(x), None
        every, x = np.arange(runs), refined(block, x)
        objective, constraints, bias, observation = observe(block, x, every)
        gradients = gradients_at(block, x, observation)
        if problem.data.size is None:
            anchor = Anchor(np.zeros(gradients.shape[:2]), np.zeros_like(gradients))
        return SuccessiveState(
            problem=problem,
            block=block,
            anchor=anchor,
            blocks=np.zeros(runs, dtype=int),
            x=x,
            objective=objective,
            constraints=constraints,
            bias=bias,
            gradients=gradients,
            inverse=block.measure.curvature(x),
            owners=every,
            weight=np.full(runs, self.weight),
            reach=np.full(runs, self.reach),
            penalty=np.zeros(runs),
            margin=np.full(runs, self.margin),
            worst=np.zeros(runs),
            best=x,
            best_objective=objective,
            best_constraints=constraints,
            moved=np.zeros(runs, dtype=bool),
            rejected=np.zeros(runs, dtype=int),
            restarts=np.zeros(runs, dtype=int),
            outer=0,
            samples=samples,
            position=position,
            status=(None,) * runs,
            reason=("the solve is going on.",) * runs,
            trace=(),
        )

    def _begun(self, state: SuccessiveState, first: SuccessiveState) -> SuccessiveState:
        """Return the state at the point that the problem's ``first`` has led to."""
        point = np.asarray(to_numpy(first.best), dtype=np.float64)[:, : state.x.shape[-1]]
        x = namespace(state.x).asarray(np.repeat(point, len(state.status), axis=0), state.x)
        begun = self._seen(state.problem, state.block, x, state.position, state.samples)
        return replace(begun, first_steps=first.outer)

    def finished(self, state: SuccessiveState) -> bool:
        """See :meth:`Solver.finished`."""
        return state.first is None and all(status is not None for status in state.status)

    def step(self, state: SuccessiveState) -> SuccessiveState:
        """See :meth:`Solver.step`: one outer step of every run that goes on, or of the problem that is solved first."""
        if state.first is not None:
            begin = SuccessiveApproximation(iterations=state.problem.first_steps)
            begun = begin.step(state.first)
            return self._begun(state, begun) if begin.finished(begun) else replace(state, first=begun)
        if state.anchor is not None:
            state = next_block(state, self.sample)
            if self.finished(state):
                return state
        runs = np.flatnonzero([status is None for status in state.status])
        problem, x = state.block, namespace(state.x).rows(state.x, runs)
        inverse, owners = state.inverse, state.owners
        if not np.array_equal(owners, runs):
            inverse, owners = problem.measure.curvature(x), runs
        inside, normals = (np.asarray(to_numpy(part), dtype=np.float64) for part in problem.primal.inequalities(x))
        gradients = np.concatenate([state.gradients[runs], normals], axis=1)
        preconditioned = gradients if inverse is None else inverse(gradients)
        margin = state.margin[runs][:, None]
        aim = state.constraints[runs] + margin
        values = np.concatenate([aim, inside], axis=1)
        hard = inside.shape[1]
        step = linearised_step(gradients, preconditioned, values, state.weight[runs], state.reach[runs], hard)
        worst = np.maximum(state.worst[runs], aim.max(axis=1))
        penalty = self._penalty(state.penalty[runs], step, state.objective[runs], aim.max(axis=1), worst)
        drawn = int(problem.data.size or 0) if state.anchor is None else 0
        new = moved(problem, x, step.direction)
        if self.inner is not None:
            new, step, read = proximal_step(self.inner, state, runs, new, step)
            drawn += read
        objective, true, bias, observation = observe(problem, new, runs)
        if state.anchor is not None:
            added = state.anchor.added(runs, np.asarray(to_numpy(new - x), dtype=np.float64))
            objective, true = objective + added[:, 0], true + added[:, 1:]
        # The smooth forms, corrected as they were when the step was made.
        change = state.bias[runs] - bias
        expected, cost = true + change[:, 1:], objective + change[:, 0]

        merit = state.objective[runs] + penalty * np.maximum(aim, 0.0).sum(axis=1)
        new_merit = cost + penalty * np.maximum(expected + margin, 0.0).sum(axis=1)
        model = state.objective[runs] + step.objective + penalty * np.maximum(step.constraints, 0.0).sum(axis=1)
        predicted, achieved = merit - model, merit - new_merit
        accepted = (achieved >= _ACCEPT * predicted) & np.isfinite(new_merit) & (predicted > 0)
        good = accepted & (achieved >= _GOOD * predicted)
        weight = state.weight[runs] * np.where(good, 0.5, np.where(accepted, 1.0, 3.0))
        used = np.where(step.length > 0, step.length, state.reach[runs])
        reach = np.where(good, 2.0 * state.reach[runs], np.where(accepted, state.reach[runs], 0.5 * used))
        state = replace(
            state,
            inverse=inverse,
            owners=owners,
            weight=put_rows(state.weight, runs, np.clip(weight, 1e-3, 1e12)),
            reach=put_rows(state.reach, runs, np.minimum(reach, 1e12)),
            penalty=put_rows(state.penalty, runs, penalty),
            worst=put_rows(state.worst, runs, worst),
            rejected=put_rows(state.rejected, runs, np.where(accepted, 0, state.rejected[runs] + 1)),
            outer=state.outer + 1,
            samples=state.samples + drawn,
        )
        if state.anchor is not None:
            state = replace(state, margin=self._aimed_lower(state, runs, true.max(axis=1), step, accepted))
        state = judge_step(self, state, runs, step, merit, predicted, accepted)
        first = np.zeros(len(state.status), dtype=bool)
        if accepted.any():
            first[runs[accepted]] = ~state.moved[runs[accepted]]
            fresh = gradients_at(problem, new, observation)
            if state.anchor is not None:
                fresh = fresh + state.anchor.slopes[runs]
            rows = runs[accepted]
            state = replace(
                state,
                x=put_rows(state.x, rows, new[accepted]),
                objective=put_rows(state.objective, rows, objective[accepted]),
                constraints=put_rows(state.constraints, rows, true[accepted]),
                bias=put_rows(state.bias, rows, bias[accepted]),
                moved=put_rows(state.moved, rows, np.ones(rows.size, dtype=bool)),
                gradients=put_rows(state.gradients, rows, fresh[accepted]),
                owners=runs[:0] if state.outer % self.refresh == 0 else owners,
            )
        return limited(keep_best(state, first), self.iterations)

    def outcome(self, state: SuccessiveState) -> Outcome:
        """See :meth:`Solver.outcome`. The problem is not convex, so there is no lower bound."""
        state = state if state.first is None else self._begun(state, state.first)
        exact = state.anchor is None
        return Outcome(
            x=state.best,
            objective=state.best_objective,
            constraints=state.best_constraints,
            lower=np.full(len(state.status), -np.inf),
            exact=exact,
            confidence=float(exact),
            # What was stopped before it had ended is not said to be out of reach.
            status=tuple(Status.BUDGET if status is None else status for status in state.status),
            reason=state.reason,
            trace=state.trace,
            steps=state.outer + state.first_steps,
            samples=state.samples,
            next=Start(state.x, None, state.position),
        )

    def _aimed_lower(self, state: SuccessiveState, runs: Any, missed: Any, step: LinearisedStep, accepted: Any) -> Any:
        """Return margins for a stream, whose steps aim lower by what the ones before have missed.

        Curvature makes steps miss always to the same side, ever less as they become shorter, and so do the margins.
        """
        promised = step.constraints[:, : state.constraints.shape[1]].max(axis=1)
        more = np.where(accepted & (missed > 0) & (promised <= 0.5 * missed), missed, 0.0)
        kept = np.where(accepted, 0.7, 1.0) * (state.margin[runs] - self.margin)
        return put_rows(state.margin, runs, self.margin + kept + more)

    @staticmethod
    def _penalty(old: Any, step: LinearisedStep, objective: Any, missed: Any, worst: Any) -> Any:
        """Return the weight of violations in the merit: above the multipliers, so that the penalty is exact.

        Where a target is missed it does not fall, and has a least size: the multipliers are small where the trust
        region is short, and a merit that followed them would give the target up.
        """
        least = _COST * np.abs(objective) / np.maximum(worst, 1e-12)
        kept = np.where(missed > 0, np.maximum(old, least), 0.9 * old)
        return np.maximum(kept, 1.5 * step.multipliers.max(axis=1) + 1e-12)
