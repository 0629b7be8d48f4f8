"""The state of successive approximation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from minmaxcon.arrays import Array
from minmaxcon.core import Position, RefreshedProblem, Status

__all__ = ["SuccessiveState"]


@dataclass(frozen=True, slots=True)
class SuccessiveState:
    r"""Where a solve stands.

    Attributes
    ----------
    problem : RefreshedProblem
        The problem.
    x : array (R, d)
        The proximal point :math:`\tilde x_s`.
    objective, constraints : ndarray (R,), (R, m)
        Its objective and true :math:`t_i - b_i`.
    bias : ndarray (R, 1 + m)
        True objective and measures less their smooth forms there.
    gradients : ndarray (R, 1 + m, d)
        Gradients of the objective and of the surrogates there.
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
    position : Position
        Where the solve began to read the data, for the solves that follow.
    status, reason, trace
        As for any solver.
    """

    problem: RefreshedProblem
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
    position: Position
    status: tuple[Status | None, ...]
    reason: tuple[str, ...]
    trace: tuple[Mapping[str, Any], ...]
