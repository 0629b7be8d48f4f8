"""What is concluded of an averaged iterate and averaged multipliers: exactly on finite data, else by estimate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.core import LevelProblem, Status
from minmaxcon.core.lower import lower_bound
from minmaxcon.core.runs import choose
from minmaxcon.solvers.consistency import contradictions
from minmaxcon.solvers.repair import measure

if TYPE_CHECKING:
    from minmaxcon.solvers.averaging.base import AveragingSolver, AveragingState
    from minmaxcon.solvers.averaging.lagrangian import Game

__all__ = ["LEAST_SPAN", "checkpoint"]

_TIE = 1e-9
"""Violations and bounds nearer to 0 than this count as 0."""

LEAST_SPAN = 0.01
"""The span of the objective counts as at least this share of 1 + |f_0(x)|; the default of SFLS too."""


def checkpoint(solver: AveragingSolver, game: Game, state: AveragingState) -> AveragingState:
    """Evaluate the average over the tail, keep the best point, bound the optimal value and add rows to the trace."""
    xp, like = namespace(state.sums), state.iterate.x
    parts = (*state.parts, state.sums)
    known = parts[len(parts) - max(1, round(solver.tail * len(parts))) :]
    total = sum(known[1:], start=known[0])
    in_x, in_y, in_a, in_u, in_v = game.cuts
    weight = total[:, -1:]
    begun = weight > 0
    mean = total / xp.where(begun, weight, weight + 1.0)
    average = xp.asarray(xp.where(begun, mean[:, in_x], xp.double(like)), like)
    raw = solver._answer(state, average)
    exact = state.problem.data.size is not None
    lower, proof = state.lower, np.full(len(state.status), -np.inf)
    if exact:
        new = state.problem.family.refine(raw, state.problem.data)
        objective, constraints = measure(state.problem, new)
        bound, proof = _bounds(game, state, total[:, in_y], total[:, in_a], new)
        lower = np.fmax(lower, bound)  # a bound that is no number says nothing
    else:
        new = raw
        u, v = mean[:, in_u], mean[:, in_v]
        values = np.asarray(to_numpy(xp.where(begun, game.dual.support(u, v), u + float("inf"))), dtype=np.float64)
        objective, constraints = values[:, 0], values[:, 1:]

    going = np.array([status is None for status in state.status])
    violation, old = constraints.max(axis=1), state.constraints.max(axis=1)
    finite = np.isfinite(objective) & np.isfinite(violation)
    better = np.where(old <= 0, (violation <= 0) & (objective < state.objective), violation < old) & finite & going
    best = np.where(better, objective, state.objective)
    best_constraints = np.where(better[:, None], constraints, state.constraints)
    feasible = best_constraints.max(axis=1) <= 0
    first = np.where(np.isnan(state.first) & feasible, best, state.first)
    lower = np.where(going, lower, state.lower)

    claims: list[str | None] = [None] * len(state.status)
    if exact:
        known = (state.problem, state.x, best, best_constraints, lower)
        seen = {"bound": proof, "upper": violation, "searching": True}
        claims = contradictions(*known, **seen, position=state.next.position)
    status, reason, rows = list(state.status), list(state.reason), []
    last = state.steps >= solver.steps or state.exhausted
    for j in np.flatnonzero(going):
        found: tuple[Status | None, str] = _verdict(
            best[j], lower[j], first[j], bool(feasible[j]), float(proof[j]), solver.tolerance
        )
        if (claim := claims[j]) is not None:
            found = Status.INCONSISTENT, claim
        if found[0] is None and last:
            ended = "the stream has ended; " if state.exhausted else ""
            found = Status.BUDGET, f"{ended}after {state.steps} steps {found[1]}"
        status[j], reason[j] = found
        rows.append(
            {
                "run": int(j),
                "level": len(state.parts),
                "objective": float(objective[j]),
                "violation": float(violation[j]),
                "best_objective": float(best[j]),
                "best_violation": float(best_constraints[j].max()),
                "lower": float(lower[j]),
                "steps": state.steps,
                "samples": state.samples,
            }
        )
    return replace(
        state,
        x=choose(better, new, state.x),
        objective=best,
        constraints=best_constraints,
        status=tuple(status),
        reason=tuple(reason),
        trace=(*state.trace, *rows),
        sums=0.0 * xp.where(xp.isfinite(state.sums), state.sums, 0.0 * state.sums[:, -1:]),
        parts=parts,
        first=first,
        lower=np.where([one is Status.INCONSISTENT for one in status], -np.inf, lower),
    )


def _bounds(game: Game, state: AveragingState, y: Array, a: Array, x: Array) -> tuple[Any, Any]:
    r"""Lower bounds on :math:`f^*` and on the least violation, each (R,), from summed multipliers y and a.

    Every feasible x has :math:`y_0 f_0(x) \ge \min_X\Phi(\cdot, y, a)`. Without the objective the same minimum bounds
    the least violation, which proves infeasibility where it is positive; it is asked where no feasible point is known.
    """
    weights, scaled = (np.asarray(to_numpy(part), dtype=np.float64) for part in (y, a))
    share, lower = _minimum(game.level, weights, scaled, x)
    lower = np.where(share > 1e-8, lower / np.maximum(share, 1e-8), -np.inf)
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


def _verdict(
    objective: float, lower: float, first: float, feasible: bool, proof: float, tolerance: float
) -> tuple[Status | None, str]:
    if not feasible:
        if proof > _TIE:
            return Status.INFEASIBLE, f"every point violates some constraint by at least {proof:.6g}."
        return None, "no average was feasible."
    gap, span = objective - lower, first - lower
    if not np.isfinite(lower):
        return None, "there is no lower bound on the optimal value."
    relative = max(gap / span, 0.0) if span > 0 else 0.0
    if gap <= tolerance * max(span, LEAST_SPAN * (1.0 + abs(objective))):
        return Status.SOLVED, f"relative optimality is at most {relative:.3g}, exactly on the data."
    return None, f"relative optimality is at most {relative:.3g}."
