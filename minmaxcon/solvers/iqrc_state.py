"""Where a solve of IQRC stands, and how its points move."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace
from minmaxcon.core import Outcome, Position, Status
from minmaxcon.core.runs import put_rows
from minmaxcon.solvers.state import RunsState

__all__ = ["IQRCState", "moved", "sought"]


@dataclass(frozen=True, eq=False, slots=True)
class IQRCState(RunsState):
    r"""Where a solve stands; ``x`` is the centre :math:`\tilde x_s`.

    Attributes
    ----------
    best, best_objective, best_constraints : arrays
        The best feasible iterate so far, else the least infeasible one.
    movement : ndarray (R,)
        :math:`|\tilde x_{s+1} - \tilde x_s|` of the last outer step.
    picked : array (R, d)
        The iterate that the ``"random"`` rule returns, with its values.
    picked_values : ndarray (R, 1 + m)
        Its objective and constraints.
    outer : int
        Outer steps done.
    stalls : ndarray (R,)
        How many times in a row the oracle has found nothing better than its start.
    seeking : ndarray (R,) of bool
        The runs that first look for a strictly feasible point of the problem itself.
    active : ndarray of int
        The runs of the current proximal problem, or of the search.
    inner : object or None
        The oracle's state.
    origin : Position
        Where the solve began to read. On finite data the s-th outer step draws random numbers of its own, whatever the
        steps before have used, so that a run of many equals the same run alone.
    """

    best: Array
    best_objective: Any
    best_constraints: Any
    movement: Any
    picked: Array
    picked_values: Any
    outer: int
    stalls: Any
    seeking: Any
    active: Any
    inner: Any
    origin: Position


def moved(state: IQRCState, names: str, runs: Any, x: Array, objective: Any, constraints: Any) -> IQRCState:
    """Put new points and their values in the place of some runs' ``x``, ``best`` or ``picked``, named with blanks."""
    for name in names.split():
        values = np.concatenate([objective[:, None], constraints], axis=1)
        prefix = "" if name == "x" else f"{name}_"
        parts = {"values": values} if name == "picked" else {"objective": objective, "constraints": constraints}
        put = {prefix + key: put_rows(getattr(state, prefix + key), runs, part) for key, part in parts.items()}
        state = replace(state, **{name: put_rows(getattr(state, name), runs, x)}, **put)
    return state


def sought(state: IQRCState, found: Outcome, ended: bool) -> IQRCState:
    """Return the state after a look at the search; a run leaves it with its first strictly feasible point."""
    seeking, status, reason = state.seeking.copy(), list(state.status), list(state.reason)
    better = []
    for i, j in enumerate(state.active):
        worst = found.constraints[i].max()
        final = found.status[i] in {Status.INFEASIBLE, Status.INCONSISTENT, Status.DIVERGED}
        if not seeking[j] or not (worst < 0 or final or ended):
            continue
        seeking[j] = False
        if final and not worst < 0:
            status[j], reason[j] = found.status[i], found.reason[i]
        if worst < state.constraints[j].max():
            better.append(i)
    state = replace(state, seeking=seeking, status=tuple(status), reason=tuple(reason))
    if better:
        x = namespace(state.x).rows(found.x, better)
        values = found.objective[better], found.constraints[better]
        state = moved(state, "x best picked", state.active[better], x, *values)
    if seeking.any():
        return state
    return replace(state, inner=None, steps=state.steps + found.steps, samples=state.samples + found.samples)
