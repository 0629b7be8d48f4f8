"""The state of successive approximation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from minmaxcon.arrays import Array
from minmaxcon.core import Position, RefreshedProblem, Status

__all__ = ["Anchor", "SuccessiveState"]


@dataclass(frozen=True, eq=False, slots=True)
class Anchor:
    r"""What running averages over the blocks of a stream add to the functions of the present block.

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


@dataclass(frozen=True, eq=False, slots=True)
class SuccessiveState:
    r"""Where a solve stands.

    Attributes
    ----------
    problem : RefreshedProblem
        The problem.
    block : RefreshedProblem
        The problem on the rows that are looked at now: itself on finite data, on a block of a stream else.
    anchor : Anchor or None
        Ties the block to those before it; None on finite data.
    blocks : ndarray (R,) of int
        Blocks of a stream that were read since each run left its start.
    x : array (R, d)
        The proximal point :math:`\tilde x_s`.
    objective, constraints : ndarray (R,), (R, m)
        Its objective and true :math:`t_i - b_i`; on streams their running averages.
    bias : ndarray (R, 1 + m)
        True objective and measures less their smooth forms there.
    gradients : ndarray (R, 1 + m, d)
        Gradients of the objective and of the surrogates there; on streams their running averages.
    inverse : callable or None
        The curvature model's inverse, of the runs in ``owners``.
    owners : ndarray of int
        The runs that ``inverse`` was made for; none where it is out of date.
    weight, reach, penalty, margin : ndarray (R,)
        :math:`\hat\rho`, the trust region, the weight of violations in the merit function, and how far below the
        targets the steps aim.
    worst : ndarray (R,)
        The largest violation so far.
    best, best_objective, best_constraints : arrays
        The best point so far that meets the targets, else the one that misses them least.
    moved : ndarray (R,) of bool
        Whether a run has accepted a step.
    rejected, restarts : ndarray (R,) of int
        Steps refused in a row, and how often the penalty was raised because of it.
    outer : int
        Outer steps done.
    samples : int
        Samples looked at.
    position : Position
        Where the solve began to read finite data, for the solves that follow; on streams where the next block begins.
    status, reason, trace
        As for any solver.
    first : SuccessiveState or None
        The solve of the problem's ``first``, as long as it goes on.
    first_steps : int
        Outer steps of that solve.
    """

    problem: RefreshedProblem
    block: RefreshedProblem
    anchor: Anchor | None
    blocks: Any
    x: Array
    objective: Any
    constraints: Any
    bias: Any
    gradients: Any
    inverse: Callable[[Any], Any] | None
    owners: Any
    weight: Any
    reach: Any
    penalty: Any
    margin: Any
    worst: Any
    best: Array
    best_objective: Any
    best_constraints: Any
    moved: Any
    rejected: Any
    restarts: Any
    outer: int
    samples: int
    position: Position
    status: tuple[Status | None, ...]
    reason: tuple[str, ...]
    trace: tuple[Mapping[str, Any], ...]
    first: SuccessiveState | None = None
    first_steps: int = 0
