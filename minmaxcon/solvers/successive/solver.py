r"""Successive approximation: steps on surrogates, refreshed at each proximal point and accepted by true measures.

On streams one block of rows is read at a time, tied to all those before it. On a block both ends of a step are seen on
the same rows, so that their difference is hardly noisy. What a block says of :math:`\tilde x` itself is averaged with
what was known before: with values and gradients carried along from step to step,
:math:`\hat f \leftarrow \hat f + \frac4k(f_k(\tilde x) - \hat f)`, the error at a point that comes to rest falls like
that of a mean of all rows seen (Cutkosky and Orabona, 2019).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.checks import number, whole
from minmaxcon.core import (
    Evidence,
    Linearised,
    MinMaxProblem,
    Needs,
    Observation,
    Outcome,
    Points,
    Position,
    RefreshedProblem,
    RunsState,
    Solver,
    Start,
    Status,
    allowed_fall,
)
from minmaxcon.core.constraint import ConstraintFamily, family_of
from minmaxcon.core.linearisation import exact_gradients, exact_values
from minmaxcon.core.runs import put_runs, take_runs, where_runs
from minmaxcon.core.solver import GOING_ON, Verdict
from minmaxcon.errors import DataError, InvalidInput
from minmaxcon.solvers.successive.linearised_step import LinearisedStep, linearised_step
from minmaxcon.solvers.successive.tilted import Tilted

__all__ = ["Correction", "SuccessiveApproximation", "SuccessiveState"]

_ACCEPT, _GOOD = 0.1, 0.7
"""Shares of the predicted decrease from which a step is accepted, and from which the next one may be longer."""

_COST = 0.3
"""Least cost of the largest violation in the merit, as a share of the objective."""

_RECENT = 4.0
"""Block k has the share 4 / k in the averages: what was learned at points far away is forgotten as k to the -4.

Equal shares would keep it for long, and the gradient of a share of pairs grows without bound towards a constant model,
from which many runs start.
"""

_AS_SMALL = 4.0
"""How many times the tolerance the best point may fail first-order conditions by, to be returned as solved."""

_RESTARTS = 5
"""How often a run that misses its target and accepts no step begins anew with a larger penalty."""


@dataclass(frozen=True, eq=False, slots=True)
class Correction:
    r"""Linear terms that tie the functions of the present block of a stream to the averages over all blocks.

    At :math:`\tilde x` the functions :math:`f_i(x) + c_i + \langle C_i, x - \tilde x\rangle` have the averages as
    values and gradients.

    Attributes
    ----------
    values : ndarray (R, 1 + m)
        c, the objective first.
    slopes : ndarray (R, 1 + m, d)
        C.
    """

    values: Any
    slopes: Any

    def added(self, runs: Any, moved: Any) -> Any:
        """Return what is added, (R', 1 + m), at points of some runs that have moved by (R', d)."""
        return self.values[runs] + np.einsum("rid,rd->ri", self.slopes[runs], moved)


class Curvature:
    r"""The inverse of a measure's model of curvature, made at points x (R, d) of a problem; else the identity."""

    rebuilt_from = ("problem", "x")

    def __init__(self, problem: RefreshedProblem, x: Array) -> None:
        self.problem, self.x = problem, x
        self._inverse = problem.measure.curvature(x)

    def __call__(self, gradients: Any) -> Any:
        """Return :math:`B^{-1}` times gradients (R, k, d)."""
        return gradients if self._inverse is None else self._inverse(gradients)


@dataclass(frozen=True, eq=False, slots=True)
class SuccessiveState(RunsState):
    r"""State of a solve; ``points`` are the proximal points :math:`\tilde x_s`.

    Their values are the objective and the true :math:`t_i - b_i`, on streams the running averages of these; ``next``
    says where finite data were read first, for the solves that follow, and where a stream's next block begins.

    Attributes
    ----------
    block : RefreshedProblem
        The problem on the rows that are looked at now: itself on finite data, on a block of a stream else.
    correction : Correction or None
        Ties the block to those before it; None on finite data.
    blocks : ndarray (R,) of int
        Blocks of a stream that were read since each run left its start.
    bias : ndarray (R, 1 + m)
        True objective and measures less their smooth forms at the proximal points.
    gradients : ndarray (R, 1 + m, d)
        Gradients of the objective and of the surrogates there; on streams their running averages.
    inverse : Curvature
        The curvature model's inverse, of the runs in ``owners``.
    owners : ndarray of int
        The runs that ``inverse`` was made for; none where it is out of date.
    weight, reach, penalty, margin : ndarray (R,)
        :math:`\hat\rho`, the trust region, the weight of violations in the merit function, and how far below the
        targets the steps aim.
    worst : ndarray (R,)
        The largest violation so far.
    best : Points
        The best point so far that meets the targets, else the one that misses them least.
    moved : ndarray (R,) of bool
        Whether a run has accepted a step.
    rejected, restarts : ndarray (R,) of int
        Steps refused in a row, and how often the penalty was raised because of it.
    outer : int
        Outer steps done.
    first : SuccessiveState or None
        The solve of the problem's ``first``, as long as it goes on.
    """

    problem: RefreshedProblem
    block: RefreshedProblem
    correction: Correction | None
    blocks: Any
    bias: Any
    gradients: Any
    inverse: Curvature
    owners: Any
    weight: Any
    reach: Any
    penalty: Any
    margin: Any
    worst: Any
    best: Points
    moved: Any
    rejected: Any
    restarts: Any
    outer: int
    first: SuccessiveState | None = None


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
        :math:`1 + |f_0|`, at a point that meets the targets. The reason tells the fall that is allowed at the point
        returned, with what the room below the targets costs.
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
        Solves the proximal problems :math:`f_s + \hat\rho V` instead of the linearised step, with V in the norm of
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

    Examples
    --------
    It solves what has a true measure, as the example of :class:`minmaxcon.RefreshedProblem` shows, and nothing else:

    >>> import minmaxcon as mm
    >>> print(mm.SuccessiveApproximation().needs.missing(mm.load_problem("toy")))
    a RefreshedProblem, whose measure says what is true: use SFLS() or IQRC()
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
            block, position = _first_block(problem, position, self.sample)
            samples = position.samples - start.position.samples
        state, first = self._seen(problem, block, start.x, position, samples), problem.first
        if first is None or not np.array_equal(to_numpy(start.x), to_numpy(problem.start_point(len(start.x)))):
            return state
        begin = self._first(problem)
        return replace(state, first=begin.init(first, Start(first.start_point(1), None, start.position)))

    def _first(self, problem: RefreshedProblem) -> SuccessiveApproximation:
        """Return the solver of a problem's ``first``."""
        return SuccessiveApproximation(iterations=problem.first_steps, refresh=self.refresh)

    def _seen(
        self, problem: RefreshedProblem, block: RefreshedProblem, x: Array, position: Position, samples: int
    ) -> SuccessiveState:
        """Return the state before the first step, from what is seen of the starting points x on a block."""
        runs = len(x)
        every, x = np.arange(runs), _refined(block, x)
        points, bias, observation = _observed(block, x, every)
        gradients = _gradients(block, x, observation)
        finite = problem.data.size is not None
        functions = len(problem.constraints) + int(problem.primal.inequalities(x)[0].shape[-1])
        return SuccessiveState(
            problem=problem,
            points=points,
            lower=np.full(runs, -np.inf),
            evidence=replace(Evidence.none(problem, runs), linear=Linearised.none(runs, functions)),
            status=(None,) * runs,
            reason=(GOING_ON,) * runs,
            next=Start(x, None, position),
            trace=(),
            steps=0,
            samples=samples,
            block=block,
            correction=None if finite else Correction(np.zeros(gradients.shape[:2]), np.zeros_like(gradients)),
            blocks=np.zeros(runs, dtype=int),
            bias=bias,
            gradients=gradients,
            inverse=Curvature(block, x),
            owners=every,
            weight=np.full(runs, self.weight),
            reach=np.full(runs, self.reach),
            penalty=np.zeros(runs),
            margin=np.full(runs, self.margin),
            worst=np.zeros(runs),
            best=points,
            moved=np.zeros(runs, dtype=bool),
            rejected=np.zeros(runs, dtype=int),
            restarts=np.zeros(runs, dtype=int),
            outer=0,
        )

    def _begun(self, state: SuccessiveState, first: SuccessiveState) -> SuccessiveState:
        """Return the state at the point that the problem's ``first`` has led to."""
        point = np.asarray(to_numpy(first.best.x), dtype=np.float64)[:, : state.x.shape[-1]]
        x = namespace(state.x).asarray(np.repeat(point, len(state.status), axis=0), state.x)
        begun = self._seen(state.problem, state.block, x, state.next.position, state.samples)
        return replace(begun, steps=first.outer)

    def finished(self, state: SuccessiveState) -> bool:
        """See :meth:`Solver.finished`."""
        return state.first is None and super().finished(state)

    def step(self, state: SuccessiveState) -> SuccessiveState:
        """See :meth:`Solver.step`: one outer step of every run that goes on, or of the problem that is solved first."""
        if state.first is not None:
            begin = self._first(state.problem)
            begun = begin.step(state.first)
            return self._begun(state, begun) if begin.finished(begun) else replace(state, first=begun)
        if state.correction is not None:
            state = _next_block(state, self.sample)
            if self.finished(state):
                return state
        runs, problem = state.going, state.block
        old, bias, margin = take_runs((state.points, state.bias, state.margin), runs)
        inverse, owners = state.inverse, state.owners
        if not np.array_equal(owners, runs):
            inverse, owners = Curvature(problem, old.x), runs
        inside, normals = (np.asarray(to_numpy(part), dtype=np.float64) for part in problem.primal.inequalities(old.x))
        gradients = np.concatenate([state.gradients[runs], normals], axis=1)
        preconditioned = inverse(gradients)
        aim = old.constraints + margin[:, None]
        values = np.concatenate([aim, inside], axis=1)
        step = linearised_step(
            gradients, preconditioned, values, state.weight[runs], state.reach[runs], hard=inside.shape[1]
        )
        worst = np.maximum(state.worst[runs], aim.max(axis=1))
        penalty = self._penalty(state.penalty[runs], step, old.objective, aim.max(axis=1), worst)
        samples = state.samples + (int(problem.data.size or 0) if state.correction is None else 0)
        x = _moved(problem, old.x, step.direction)
        if self.inner is not None:
            x, step, drawn = self._proximal_step(self.inner, state, runs, x, step)
            samples += drawn
        new, new_bias, observation = _observed(problem, x, runs)
        if state.correction is not None:
            added = state.correction.added(runs, np.asarray(to_numpy(x - old.x), dtype=np.float64))
            new = Points(x, new.objective + added[:, 0], new.constraints + added[:, 1:])
        # The smooth forms, corrected as they were when the step was made.
        change = bias - new_bias
        expected, cost = new.constraints + change[:, 1:], new.objective + change[:, 0]

        merit = old.objective + penalty * np.maximum(aim, 0.0).sum(axis=1)
        new_merit = cost + penalty * np.maximum(expected + margin[:, None], 0.0).sum(axis=1)
        model = old.objective + step.objective + penalty * np.maximum(step.constraints, 0.0).sum(axis=1)
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
            weight=put_runs(state.weight, runs, np.clip(weight, 1e-3, 1e12)),
            reach=put_runs(state.reach, runs, np.minimum(reach, 1e12)),
            penalty=put_runs(state.penalty, runs, penalty),
            worst=put_runs(state.worst, runs, worst),
            rejected=put_runs(state.rejected, runs, np.where(accepted, 0, state.rejected[runs] + 1)),
            outer=state.outer + 1,
            steps=state.steps + 1,
            samples=samples,
        )
        if state.correction is not None:
            state = replace(state, margin=self._aimed_lower(state, runs, new.violation, step, accepted))
        state = self._judged(state, runs, step, merit, predicted, accepted)
        first = np.zeros(len(state.status), dtype=bool)
        if accepted.any():
            first[runs[accepted]] = ~state.moved[runs[accepted]]
            fresh = _gradients(problem, x, observation)
            if state.correction is not None:
                fresh = fresh + state.correction.slopes[runs]
            seen = (new, new_bias, fresh, accepted)
            known = take_runs((state.points, state.bias, state.gradients, state.moved), runs)
            points, bias, gradients, moved = put_runs(
                (state.points, state.bias, state.gradients, state.moved), runs, where_runs(accepted, seen, known)
            )
            state = replace(
                state,
                points=points,
                bias=bias,
                gradients=gradients,
                moved=moved,
                next=replace(state.next, x=points.x),
                owners=runs[:0] if state.outer % self.refresh == 0 else owners,
            )
        # The start gives way to the first step that a run accepts: a constant model often starts a fit, and meets every
        # target, but a fit that failed must not return it. On streams the latest point is the best informed one.
        latest = state.points.feasible & state.best.feasible & (state.correction is not None)
        better = state.points.better(state.best) | latest | first
        state = replace(state, best=where_runs(better, state.points, state.best))
        return self._limited(self._claimed(state, runs, old, step.multipliers, self.tolerance * (1.0 + np.abs(merit))))

    def _claimed(self, state: SuccessiveState, runs: Any, old: Points, multipliers: Any, small: Any) -> SuccessiveState:
        """Let runs that end as solved claim what can be checked of the point that they return, and no more.

        The best point may be another than the one at which first-order conditions were seen to hold. It is returned all
        the same, and as solved where they hold there too.
        """
        solved = [i for i, j in enumerate(runs) if state.status[j] is Status.SOLVED]
        if not solved:
            return state
        best, linear, owners = state.best, state.evidence.linear, state.owners
        if linear is None:  # a checkpoint of an older version
            linear = Linearised.none(len(state.status), multipliers.shape[1])
        verdicts: dict[int, Verdict] = {}
        for i in solved:
            j, factors = int(runs[i]), multipliers[i]
            x, here = to_numpy(best.x)[j], to_numpy(old.x)[i]
            if not best.feasible[j]:
                x, best = here, put_runs(best, [j], take_runs(old, [i]))
            found = allowed_fall(state.problem.take([j]), x, factors)
            told = f"first-order optimality allows the objective to fall by {found.total:.2g}"
            if found.is_small(_AS_SMALL * small[i], small[i] / self.tolerance):
                verdicts[j] = Status.SOLVED, f"{told}; the true measure meets its target."
                linear = put_runs(linear, [j], Linearised(factors[None], np.array([found.total])))
            elif np.array_equal(x, here):  # the curvature was modelled at another point
                verdicts[j] = None, f"{told}, with the curvature at the point."
                owners = owners[:0]
            else:
                reason = "first-order conditions hold at a point near the better one that is returned"
                verdicts[j] = Status.BUDGET, f"{reason}, where {(found.fault or told).rstrip('.')}."
        evidence = replace(state.evidence, linear=linear)
        return replace(state, best=best, evidence=evidence, owners=owners).judged(verdicts)

    def outcome(self, state: SuccessiveState) -> Outcome:
        """See :meth:`Solver.outcome`. The problem is not convex, so there is no lower bound.

        A run that is stopped before it has ended is not called out of reach.
        """
        state = state if state.first is None else self._begun(state, state.first)
        return state.outcome(state.best)

    def _judged(
        self, state: SuccessiveState, runs: Any, step: LinearisedStep, merit: Any, predicted: Any, accepted: Any
    ) -> SuccessiveState:
        """Decide which runs end at the point from which this step was taken, and write the trace."""
        verdicts: dict[int, Verdict] = {}
        rows = []
        weight, reach, penalty = state.weight.copy(), state.reach.copy(), state.penalty.copy()
        rejected, restarts = state.rejected.copy(), state.restarts.copy()
        small = self.tolerance * (1.0 + np.abs(merit))
        margin, exact = state.margin.copy(), state.correction is None
        for i, j in enumerate(map(int, runs)):
            here = state.points.violation[j]
            still = exact and step.residual[i] <= small[i] and predicted[i] <= small[i]
            if not np.isfinite(merit[i]):
                verdicts[j] = Status.DIVERGED, f"the merit is not finite at outer step {state.outer}."
            elif still and here <= 0:
                verdicts[j] = Status.SOLVED, "the true measure meets its target."
            elif rejected[j] >= self.patience and here > 0 and restarts[j] < _RESTARTS:
                # The merit traded the target for the objective: let what is missed cost as much as all of that.
                weight[j], reach[j] = self.weight, self.reach
                penalty[j] = max(10.0 * penalty[j], abs(float(state.objective[j])) / here)
                rejected[j], restarts[j] = 0, restarts[j] + 1
            elif rejected[j] >= self.patience and not exact:
                weight[j], reach[j], rejected[j] = self.weight, self.reach, 0
            elif rejected[j] >= self.patience:
                ended = f"{rejected[j]} trial steps in a row did not improve the model as predicted"
                kept = "the last accepted point is returned; a larger tolerance ends such a run sooner"
                reason = (
                    f"{ended}; {kept}."
                    if state.best.feasible[j]
                    else f"the target is missed by {here:.3g}, and {ended}."
                )
                verdicts[j] = Status.BUDGET if state.best.feasible[j] else Status.OUT_OF_REACH, reason
            # The truth jumps between samples where its smooth form does not: aim lower. A step that is too short to
            # come near its aim says nothing of the kind.
            if still and here > 0 and step.constraints[i].max() <= 0.5 * here:
                margin[j] += here
            rows.append(
                {
                    "run": j,
                    "level": state.outer - 1,
                    "objective": float(state.objective[j]),
                    "violation": float(here),
                    "weight": float(state.weight[j]),
                    "stationarity": float(step.residual[i]),
                    "accepted": bool(accepted[i]),
                    "steps": state.outer,
                }
            )
        return replace(
            state.judged(verdicts),
            weight=weight,
            reach=reach,
            penalty=penalty,
            margin=margin,
            rejected=rejected,
            restarts=restarts,
            trace=(*state.trace, *rows),
        )

    def _limited(self, state: SuccessiveState) -> SuccessiveState:
        """End the runs that go on once the outer steps are used up, by the best point that they found."""
        if state.outer < self.iterations:
            return state
        verdicts: dict[int, Verdict] = {}
        for j in map(int, state.going):
            miss, after = float(state.best.violation[j]), f"after {state.outer} outer steps"
            if state.correction is not None:
                verdicts[j] = Status.BUDGET, f"{after}, {_estimated(state, j)}"
            elif miss <= 0:
                verdicts[j] = Status.BUDGET, f"{after} the true measure meets its target."
            else:
                verdicts[j] = Status.OUT_OF_REACH, f"{after} the true measure is {miss:+.3g} from its target."
        return state.judged(verdicts)

    def _aimed_lower(self, state: SuccessiveState, runs: Any, missed: Any, step: LinearisedStep, accepted: Any) -> Any:
        """Return margins for a stream, whose steps aim lower by what the ones before have missed.

        Curvature makes steps miss always to the same side, ever less as they become shorter, and so do the margins.
        """
        promised = step.constraints[:, : state.constraints.shape[1]].max(axis=1)
        more = np.where(accepted & (missed > 0) & (promised <= 0.5 * missed), missed, 0.0)
        kept = np.where(accepted, 0.7, 1.0) * (state.margin[runs] - self.margin)
        return put_runs(state.margin, runs, self.margin + kept + more)

    @staticmethod
    def _penalty(old: Any, step: LinearisedStep, objective: Any, missed: Any, worst: Any) -> Any:
        """Return the weight of violations in the merit: above the multipliers, so that the penalty is exact.

        Where a target is missed it does not fall, and has a least size: the multipliers are small where the trust
        region is short, and a merit that followed them would give the target up.
        """
        least = _COST * np.abs(objective) / np.maximum(worst, 1e-12)
        kept = np.where(missed > 0, np.maximum(old, least), 0.9 * old)
        return np.maximum(kept, 1.5 * step.multipliers.max(axis=1) + 1e-12)

    @staticmethod
    def _proximal_step(
        inner: Solver, state: SuccessiveState, runs: Any, points: Array, step: LinearisedStep
    ) -> tuple[Array, LinearisedStep, int]:
        r"""Let a solver find the next point of each run: return the points, what is promised there, and samples drawn.

        .. math::
            \min_x f_s(x) + \hat\rho V(x, \tilde x_s)\quad\text{s.t.}\quad
            M_{s,i}(x) + \hat\rho V(x, \tilde x_s) \le b_i - \epsilon - (t_i - M_{s,i})(\tilde x_s)

        with the run's own :math:`\hat\rho` and margin :math:`\epsilon`, so one run after the other. A run that has not
        left its start keeps the linearised step, whose length is limited: a constant model often starts a run, and
        gives surrogates nothing to follow. Multipliers and residual stay those of the linearised step.
        """
        points, samples = namespace(points).copy(points), 0
        objective, constraints = step.objective.copy(), step.constraints.copy()
        for i in np.flatnonzero(state.moved[runs]):
            near, smooth = _proximal_problem(state, runs[i])
            inner.needs.check(inner.title, near)
            solve = inner.init(near, Start(near.start_point(1), None, state.next.position.jumped(2 * state.outer + 1)))
            while not inner.finished(solve):
                solve = inner.step(solve)
            found = inner.outcome(solve)
            new = _refined(state.block, found.x)
            points[i] = new[0]
            values = exact_values(near.family, new, near.data)[0]
            objective[i] = values[0] - smooth
            constraints[i] = 0.0  # of the set X, which holds
            constraints[i, : values.size - 1] = values[1:] - near.bounds()[0]
            samples += found.samples
        return points, replace(step, objective=objective, constraints=constraints), samples


def _estimated(state: SuccessiveState, run: int) -> str:
    """Say what is known of a run on a stream."""
    miss = float(state.best.violation[run])
    return f"by an estimate from {state.samples:,} rows the true measure is {miss:+.3g} from its target."


def _first_block(problem: RefreshedProblem, position: Position, rows: int) -> tuple[RefreshedProblem, Position]:
    """Return the problem on the first block of its stream, and where the next one begins."""
    data, position = problem.data.block(position, rows)
    if data is None:
        raise DataError("stream", "it has no points.")
    return problem.on(data), position


def _next_block(state: SuccessiveState, rows: int) -> SuccessiveState:
    """Read a block, look at the proximal points on it, and average; where the stream has ended, so have the runs."""
    data, position = state.problem.data.block(state.next.position, rows)
    if data is None:
        ended = {int(j): (Status.BUDGET, f"the stream has ended; {_estimated(state, j)}") for j in state.going}
        return state.judged(ended)
    block = state.problem.on(data)
    x = _refined(block, state.x)
    points, bias, observation = _observed(block, x, np.arange(len(state.status)))
    seen = np.concatenate([points.objective[:, None], points.constraints], axis=1)
    slopes = _gradients(block, x, observation)
    known = np.concatenate([state.objective[:, None], state.constraints], axis=1)
    blocks = np.where(state.moved, state.blocks + 1, 0)
    share = np.minimum(1.0, _RECENT / np.maximum(blocks, 1.0))[:, None]
    values, gradients = known + share * (seen - known), state.gradients + share[:, :, None] * (slopes - state.gradients)
    return replace(
        state,
        points=Points(x, values[:, 0], values[:, 1:]),
        next=Start(x, None, position),
        samples=state.samples + position.samples - state.next.position.samples,
        block=block,
        correction=Correction(values - seen, gradients - slopes),
        blocks=blocks,
        bias=bias,
        gradients=gradients,
    )


def _refined(problem: MinMaxProblem, x: Array) -> Array:
    """Set the variables whose minimiser is known."""
    return _objective_family(problem).refine(x, problem.data)


_FAMILIES: WeakKeyDictionary[MinMaxProblem, ConstraintFamily] = WeakKeyDictionary()


def _objective_family(problem: MinMaxProblem) -> ConstraintFamily:
    """Return the family of the objective alone, which a step asks for several times."""
    found = _FAMILIES.get(problem)
    if found is None:
        found = _FAMILIES[problem] = family_of([problem.objective])
    return found


def _moved(problem: MinMaxProblem, x: Array, direction: Any) -> Array:
    """Step, go back into X, and set the variables whose minimiser is known."""
    primal: Any = problem.primal  # Euclidean, as the solver needs
    return _refined(problem, primal.project(x + namespace(x).asarray(direction, x)))


def _observed(problem: RefreshedProblem, x: Array, runs: Any) -> tuple[Points, Any, Observation]:
    """Return points with objective and true :math:`t_i - b_i`, by how much these exceed their smooth forms, and more.

    The second is of shape (R, 1 + m), the objective first; the last is the observation, which makes surrogates.
    """
    observation = problem.measure.observe(x)
    if observation.objective is None:
        objective = exact_values(_objective_family(problem), x, problem.data)[:, 0]
        offset = np.zeros_like(objective)
    else:
        objective, smooth = (np.asarray(part, dtype=np.float64) for part in observation.objective)
        offset = objective - smooth
    bounds = problem.bounds()
    true = np.asarray(observation.values, dtype=np.float64)
    bias = np.concatenate([offset[:, None], true - observation.smoothed], axis=1)
    return Points(x, objective, true - (bounds if problem.runs is None else bounds[runs])), bias, observation


def _gradients(problem: RefreshedProblem, x: Array, observation: Observation) -> Any:
    """Return the gradients (R, 1 + m, d) of the objective and of the surrogates at x, where they were made."""
    followed = observation.objective_surrogate()
    own = _objective_family(problem) if followed is None else family_of([followed])
    # One family of both would pull back through the scores twice for each function.
    families = [own, family_of(observation.surrogates())]
    return np.concatenate([exact_gradients(family, x, problem.data)[1] for family in families], axis=1)


def _proximal_problem(state: SuccessiveState, run: Any) -> tuple[MinMaxProblem, float]:
    """Return the proximal problem of a run, which starts at its centre, and the objective's value there."""
    x = take_runs(state.x, [run])
    center = np.asarray(to_numpy(x), dtype=np.float64)[0]
    block = state.block.take([run])
    problem = replace(block.refreshed(block.measure.observe(x)), start=center)
    if state.correction is not None:
        functions, slopes = [problem.objective, *problem.constraints], state.correction.slopes[run]
        tilted = [Tilted(f, slope, center) for f, slope in zip(functions, slopes, strict=True)]
        problem = replace(problem, objective=tilted[0], constraints=tilted[1:])
    smooth = exact_values(problem.family, x, problem.data)[0]
    bounds = smooth[1:] - state.constraints[run] - state.margin[run]
    problem = problem.with_bounds(*(float(bound) for bound in bounds))
    return problem.with_proximal(center, float(state.weight[run])), float(smooth[0])
