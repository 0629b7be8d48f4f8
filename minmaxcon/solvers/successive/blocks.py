r"""Successive approximation on streams: one block of rows at a time, tied to all those before it.

On a block both ends of a step are seen on the same rows, so that their difference is hardly noisy. What a block says of
:math:`\tilde x` itself is averaged with what was known before: with values and gradients carried along from step to
step, :math:`\hat f \leftarrow \hat f + \frac4k(f_k(\tilde x) - \hat f)`, the error at a point that comes to rest falls
like that of a mean of all rows seen (Cutkosky and Orabona, 2019).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from minmaxcon.core import Position, RefreshedProblem, Status
from minmaxcon.errors import DataError
from minmaxcon.solvers.successive.observed import gradients_at, observe, refined
from minmaxcon.solvers.successive.state import Anchor, SuccessiveState

__all__ = ["estimated", "first_block", "next_block"]

_RECENT = 4.0
"""Block k has the share 4 / k in the averages: what was learned at points far away is forgotten as k to the -4.

Equal shares would keep it for long, and the gradient of a share of pairs grows without bound towards a constant model,
from which many runs start.
"""


def first_block(problem: RefreshedProblem, position: Position, rows: int) -> tuple[RefreshedProblem, Position]:
    """Return the problem on the first block of its stream, and where the next one begins.

    Raises
    ------
    DataError
        If the stream is empty.
    Unsupported
        If the source makes no blocks, or the measure cannot be taken on other rows.
    """
    data, position = problem.data.block(position, rows)
    if data is None:
        raise DataError("stream", "it has no points.")
    return problem.on(data), position


def next_block(state: SuccessiveState, rows: int) -> SuccessiveState:
    """Read a block, look at the proximal points on it, and average; where the stream has ended, so have the runs."""
    data, position = state.problem.data.block(state.position, rows)
    if data is None:
        return _ended(state)
    block = state.problem.on(data)
    x = refined(block, state.x)
    objective, true, bias, observation = observe(block, x, np.arange(len(state.status)))
    seen, slopes = np.concatenate([objective[:, None], true], axis=1), gradients_at(block, x, observation)
    known = np.concatenate([state.objective[:, None], state.constraints], axis=1)
    blocks = np.where(state.moved, state.blocks + 1, 0)
    share = np.minimum(1.0, _RECENT / np.maximum(blocks, 1.0))[:, None]
    values, gradients = known + share * (seen - known), state.gradients + share[:, :, None] * (slopes - state.gradients)
    return replace(
        state,
        block=block,
        anchor=Anchor(values - seen, gradients - slopes),
        blocks=blocks,
        x=x,
        objective=values[:, 0],
        constraints=values[:, 1:],
        bias=bias,
        gradients=gradients,
        samples=state.samples + position.samples - state.position.samples,
        position=position,
    )


def _ended(state: SuccessiveState) -> SuccessiveState:
    status, reason = list(state.status), list(state.reason)
    for j in (j for j, ended in enumerate(state.status) if ended is None):
        status[j], reason[j] = Status.BUDGET, f"the stream has ended; {estimated(state, j)}"
    return replace(state, status=tuple(status), reason=tuple(reason))


def estimated(state: SuccessiveState, run: Any) -> str:
    """Say what is known of a run on a stream."""
    miss = float(state.best_constraints[run].max())
    return f"by an estimate from {state.samples:,} rows the true measure is {miss:+.3g} from its target."
