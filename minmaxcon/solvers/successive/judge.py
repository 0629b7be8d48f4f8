"""When runs of successive approximation end, which point they return, and what the trace says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from minmaxcon.core import Status
from minmaxcon.core.runs import put_rows
from minmaxcon.solvers.successive.blocks import estimated
from minmaxcon.solvers.successive.linearised_step import LinearisedStep
from minmaxcon.solvers.successive.state import SuccessiveState

if TYPE_CHECKING:
    from minmaxcon.solvers.successive.solver import SuccessiveApproximation

__all__ = ["judge_step", "keep_best", "limited"]

_RESTARTS = 5
"""How often a run that misses its target and accepts no step begins anew with a larger penalty."""


def keep_best(state: SuccessiveState, first: Any) -> SuccessiveState:
    """Keep the best point of each run; the start gives way to the ``first`` step that a run accepts.

    A constant model often starts a fit, and meets every target: a fit that failed must not return it. On streams
    the latest point is the best informed one.
    """
    violation, least = state.constraints.max(axis=1), state.best_constraints.max(axis=1)
    cheaper = (violation <= 0) & ((state.objective < state.best_objective) | (state.anchor is not None))
    better = np.flatnonzero(np.where(least <= 0, cheaper, violation < least) | first)
    return replace(
        state,
        best=put_rows(state.best, better, state.x[better]),
        best_objective=put_rows(state.best_objective, better, state.objective[better]),
        best_constraints=put_rows(state.best_constraints, better, state.constraints[better]),
    )


def limited(state: SuccessiveState, iterations: int) -> SuccessiveState:
    """End the runs that go on once the outer steps are used up, by the best point that they found."""
    if state.outer < iterations:
        return state
    status, reason = list(state.status), list(state.reason)
    for j in (j for j, ended in enumerate(state.status) if ended is None):
        miss = float(state.best_constraints[j].max())
        if state.anchor is not None:
            status[j], reason[j] = Status.BUDGET, f"after {state.outer} outer steps, {estimated(state, j)}"
            continue
        status[j] = Status.BUDGET if miss <= 0 else Status.OUT_OF_REACH
        reason[j] = f"after {state.outer} outer steps the true measure is {miss:+.3g} from its target."
    return replace(state, status=tuple(status), reason=tuple(reason))


def judge_step(
    solver: SuccessiveApproximation,
    state: SuccessiveState,
    runs: Any,
    step: LinearisedStep,
    merit: Any,
    predicted: Any,
    accepted: Any,
) -> SuccessiveState:
    """Decide which runs end at the point from which this step was taken, and write the trace."""
    status, reason, rows = list(state.status), list(state.reason), list(state.trace)
    weight, reach, penalty = state.weight.copy(), state.reach.copy(), state.penalty.copy()
    rejected, restarts = state.rejected.copy(), state.restarts.copy()
    small = solver.tolerance * (1.0 + np.abs(merit))
    margin, exact = state.margin.copy(), state.anchor is None
    for i, j in enumerate(runs):
        met = state.best_constraints[j].max() <= 0
        here = state.constraints[j].max()
        still = exact and step.residual[i] <= small[i] and predicted[i] <= small[i]
        if not np.isfinite(merit[i]):
            status[j], reason[j] = Status.DIVERGED, f"the merit is not finite at outer step {state.outer}."
        elif still and here <= 0:
            allowed = f"first-order optimality allows the objective to fall by {step.residual[i]:.2g}"
            status[j], reason[j] = Status.SOLVED, f"{allowed}; the true measure meets its target."
        elif rejected[j] >= solver.patience and here > 0 and restarts[j] < _RESTARTS:
            # The merit traded the target for the objective: let what is missed cost as much as all of that.
            weight[j], reach[j] = solver.weight, solver.reach
            penalty[j] = max(10.0 * penalty[j], abs(float(state.objective[j])) / here)
            rejected[j], restarts[j] = 0, restarts[j] + 1
        elif rejected[j] >= solver.patience and not exact:
            weight[j], reach[j], rejected[j] = solver.weight, solver.reach, 0
        elif rejected[j] >= solver.patience:
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
