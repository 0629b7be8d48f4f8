"""Successive approximation: solve with surrogates that are refreshed at each proximal point, accept by the truth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.core import MinMaxProblem, Observation, Outcome, RefreshedProblem, Solver, Start, Status
from minmaxcon.core.constraint import family_of
from minmaxcon.core.linearisation import exact_gradients, exact_values
from minmaxcon.errors import InvalidInput, Unsupported
from minmaxcon.solvers.checks import number, whole_number
from minmaxcon.solvers.linearised_step import LinearisedStep, linearised_step
from minmaxcon.solvers.runs import put_rows
from minmaxcon.solvers.successive_state import SuccessiveState

__all__ = ["SuccessiveApproximation", "SuccessiveState"]

_ACCEPT, _GOOD = 0.1, 0.7
"""Shares of the predicted decrease from which a step is accepted, and from which the next one may be longer."""

_COST = 0.3
"""What the worst miss of a target costs at least in the merit, as a share of the objective."""

_RESTARTS = 5
"""How often a run that misses its target and accepts no step begins anew with a larger penalty."""


class SuccessiveApproximation(Solver):
    r"""Minimise :math:`f_0(x)` subject to true measures :math:`t_i(x) \le b_i` on finite data.

    At :math:`\tilde x_s` the surrogates are refreshed and everything is linearised; the step minimises

    .. math:: \langle\nabla f_0, d\rangle + \tfrac{1 + \hat\rho}2\langle d, Bd\rangle \quad\text{s.t.}\quad
        t_i(\tilde x_s) - b_i + \langle\nabla t_i, d\rangle \le 0

    with the problem's model B of the curvature. It is accepted when the merit
    :math:`f_0 + \mu\sum_i (t_i - b_i)_+`, made of *true* values, falls by at least a tenth of what was predicted; then
    :math:`\hat\rho` is halved where the prediction was good, else it is trebled. All runs advance in one array.

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
        Steps that may be refused in a row.

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
    ) -> None:
        self.iterations, self.refresh = whole_number("iterations", iterations), whole_number("refresh", refresh)
        self.patience = whole_number("patience", patience)
        self.tolerance = number("tolerance", tolerance, "must be positive and finite.", above=0.0)
        self.margin = number("margin", margin, "must be finite and at least 0.", least=0.0)
        self.weight = number("weight", weight, "must be positive and finite.", above=0.0)
        self.reach = number("reach", reach, "must be positive and finite.", above=0.0)

    def init(self, problem: MinMaxProblem, start: Start) -> SuccessiveState:
        """See :meth:`Solver.init`; measures the start.

        Raises
        ------
        Unsupported
            If the problem has no true measure, or its data are a stream.
        """
        if not isinstance(problem, RefreshedProblem):
            raise Unsupported("SuccessiveApproximation needs a RefreshedProblem, whose measure says what is true.")
        if problem.data.size is None:
            raise Unsupported("SuccessiveApproximation measures on finite data; keep a sample of the stream.")
        runs = int(start.x.shape[0])
        x = family_of([problem.objective]).refine(start.x, problem.data)
        objective, constraints, bias, observation = _observe(problem, x, np.arange(runs))
        gradients = _gradients(problem, x, observation)
        every = np.arange(runs)
        return SuccessiveState(
            problem=problem,
            x=x,
            objective=objective,
            constraints=constraints,
            bias=bias,
            gradients=gradients,
            inverse=problem.measure.curvature(x),
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
            position=start.position,
            status=(None,) * runs,
            reason=("the solve is going on.",) * runs,
            trace=(),
        )

    def finished(self, state: SuccessiveState) -> bool:
        """See :meth:`Solver.finished`."""
        return all(status is not None for status in state.status)

    def step(self, state: SuccessiveState) -> SuccessiveState:
        """See :meth:`Solver.step`: one outer step of every run that goes on."""
        runs = np.flatnonzero([status is None for status in state.status])
        problem, x = state.problem, namespace(state.x).rows(state.x, runs)
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
        new = _moved(problem, x, step.direction)
        objective, true, bias, observation = _observe(problem, new, runs)
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
        )
        state = self._judge(state, runs, step, merit, predicted, accepted)
        first = np.zeros(len(state.status), dtype=bool)
        if accepted.any():
            first[runs[accepted]] = ~state.moved[runs[accepted]]
            fresh = _gradients(problem, new, observation)
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
        return self._limited(self._keep_best(state, first))

    def outcome(self, state: SuccessiveState) -> Outcome:
        """See :meth:`Solver.outcome`. The problem is not convex, so there is no lower bound."""
        size = int(state.problem.data.size or 0)
        return Outcome(
            x=state.best,
            objective=state.best_objective,
            constraints=state.best_constraints,
            lower=np.full(len(state.status), -np.inf),
            exact=True,
            confidence=1.0,
            # What was stopped before it had ended is not said to be out of reach.
            status=tuple(Status.BUDGET if status is None else status for status in state.status),
            reason=state.reason,
            trace=state.trace,
            steps=state.outer,
            samples=(state.outer + 1) * size,
            next=Start(state.x, None, state.position),
        )

    @staticmethod
    def _penalty(old: Any, step: LinearisedStep, objective: Any, missed: Any, worst: Any) -> Any:
        """Return the weight of violations in the merit: above the multipliers, so that the penalty is exact.

        Where a target is missed it does not fall, and has a least size: the multipliers are small where the trust
        region is short, and a merit that followed them would give the target up.
        """
        least = _COST * np.abs(objective) / np.maximum(worst, 1e-12)
        kept = np.where(missed > 0, np.maximum(old, least), 0.9 * old)
        return np.maximum(kept, 1.5 * step.multipliers.max(axis=1) + 1e-12)

    def _keep_best(self, state: SuccessiveState, first: Any) -> SuccessiveState:
        """Keep the best point of each run; the start gives way to the ``first`` step that a run accepts.

        A constant model often starts a fit, and meets every target: a fit that failed must not return it.
        """
        violation, least = state.constraints.max(axis=1), state.best_constraints.max(axis=1)
        cheaper = (violation <= 0) & (state.objective < state.best_objective)
        better = np.flatnonzero(np.where(least <= 0, cheaper, violation < least) | first)
        return replace(
            state,
            best=put_rows(state.best, better, state.x[better]),
            best_objective=put_rows(state.best_objective, better, state.objective[better]),
            best_constraints=put_rows(state.best_constraints, better, state.constraints[better]),
        )

    def _limited(self, state: SuccessiveState) -> SuccessiveState:
        """End the runs that go on once the outer steps are used up, by the best point that they found."""
        if state.outer < self.iterations:
            return state
        status, reason = list(state.status), list(state.reason)
        for j in (j for j, ended in enumerate(state.status) if ended is None):
            miss = float(state.best_constraints[j].max())
            status[j] = Status.BUDGET if miss <= 0 else Status.OUT_OF_REACH
            reason[j] = f"after {state.outer} outer steps the true measure is {miss:+.3g} from its target."
        return replace(state, status=tuple(status), reason=tuple(reason))

    def _judge(
        self, state: SuccessiveState, runs: Any, step: LinearisedStep, merit: Any, predicted: Any, accepted: Any
    ) -> SuccessiveState:
        """Decide which runs end at the point from which this step was taken, and write the trace."""
        status, reason, rows = list(state.status), list(state.reason), list(state.trace)
        weight, reach, penalty = state.weight.copy(), state.reach.copy(), state.penalty.copy()
        rejected, restarts = state.rejected.copy(), state.restarts.copy()
        small = self.tolerance * (1.0 + np.abs(merit))
        margin = state.margin.copy()
        for i, j in enumerate(runs):
            met = state.best_constraints[j].max() <= 0
            here = state.constraints[j].max()
            still = step.residual[i] <= small[i] and predicted[i] <= small[i]
            if not np.isfinite(merit[i]):
                status[j], reason[j] = Status.DIVERGED, f"the merit is not finite at outer step {state.outer}."
            elif still and here <= 0:
                allowed = f"first-order optimality allows the objective to fall by {step.residual[i]:.2g}"
                status[j], reason[j] = Status.SOLVED, f"{allowed}; the true measure meets its target."
            elif rejected[j] >= self.patience and here > 0 and restarts[j] < _RESTARTS:
                # The merit traded the target for the objective: let what is missed cost as much as all of that.
                weight[j], reach[j] = self.weight, self.reach
                penalty[j] = max(10.0 * penalty[j], abs(float(state.objective[j])) / here)
                rejected[j], restarts[j] = 0, restarts[j] + 1
            elif rejected[j] >= self.patience:
                ended = f"{rejected[j]} steps in a row promised more than they held"
                status[j] = Status.BUDGET if met else Status.OUT_OF_REACH
                reason[j] = f"{ended}." if met else f"the target is missed by {here:.3g}, and {ended}."
            # The truth jumps between samples where its smooth form does not: aim lower. A step that is too short to
            # come near its aim says nothing of the kind.
            if still and here > 0 and step.constraints[i].max() <= 0.5 * here:
                margin[j] += here
            rows.append(
                {
                    "run": int(j),
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
            state,
            weight=weight,
            reach=reach,
            penalty=penalty,
            margin=margin,
            rejected=rejected,
            restarts=restarts,
            status=tuple(status),
            reason=tuple(reason),
            trace=tuple(rows),
        )


def _moved(problem: MinMaxProblem, x: Array, direction: Any) -> Array:
    """Step, go back into X, and set the variables whose minimiser is known."""
    xp = namespace(x)
    project = getattr(problem.primal, "project", None)
    if project is None:
        raise InvalidInput("primal", problem.primal, "SuccessiveApproximation needs a Euclidean set.")
    return family_of([problem.objective]).refine(project(x + xp.asarray(direction, x)), problem.data)


def _observe(problem: RefreshedProblem, x: Array, runs: Any) -> tuple[Any, Any, Any, Observation]:
    """Return objective (R,), true :math:`t_i - b_i` (R, m), by how much these exceed their smooth forms, and more.

    The third is of shape (R, 1 + m), the objective first; the last is the observation, which makes surrogates.
    """
    observation = problem.measure.observe(x)
    if observation.objective is None:
        objective = exact_values(family_of([problem.objective]), x, problem.data)[:, 0]
        offset = np.zeros_like(objective)
    else:
        objective, smooth = (np.asarray(part, dtype=np.float64) for part in observation.objective)
        offset = objective - smooth
    bounds = problem.bounds()
    mine = bounds if problem.runs is None else bounds[runs]
    true = np.asarray(observation.values, dtype=np.float64)
    bias = np.concatenate([offset[:, None], true - observation.smoothed], axis=1)
    return objective, true - mine, bias, observation


def _gradients(problem: RefreshedProblem, x: Array, observation: Observation) -> Any:
    objective = observation.objective_surrogate() or problem.objective
    return exact_gradients(family_of([objective, *observation.surrogates()]), x, problem.data)[1]
