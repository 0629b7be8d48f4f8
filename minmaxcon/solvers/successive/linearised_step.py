r"""One proximal step on linearised functions, for many runs at once.

.. math::
    \min_d\ \langle g_0, d\rangle + \tfrac{1 + \hat\rho}2\langle d, Bd\rangle
    \quad\text{s.t.}\quad c_i + \langle g_i, d\rangle \le 0

has the solution :math:`d = -\frac1{1 + \hat\rho}B^{-1}(g_0 + \sum_i\lambda_i g_i)`, whose multipliers solve a
quadratic problem in m variables with the matrix of inner products :math:`\langle g_i, B^{-1}g_j\rangle`. A cap on the
multipliers relaxes constraints that would need too long a step: the exact penalty of a trust region.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["LinearisedStep", "linearised_step"]

_SWEEPS, _CHANGES = 4, 20
"""Sweeps over the multipliers before they are moved together, and most changes of active sets, for each constraint."""

_ROUNDING = 1e-12
"""Slope of the dual value, relative to its terms, that is none."""

_TINY = 1e-300


@dataclass(frozen=True, eq=False, slots=True)
class LinearisedStep:
    r"""The step of each run, and what it is expected to do.

    Attributes
    ----------
    direction : ndarray (R, d)
        d.
    multipliers : ndarray (R, m)
        :math:`\lambda`.
    objective : ndarray (R,)
        Change of the objective's model, :math:`\langle g_0, d\rangle + \frac12\langle d, Bd\rangle`.
    constraints : ndarray (R, m)
        :math:`c_i + \langle g_i, d\rangle`.
    residual : ndarray (R,)
        :math:`\frac12|g_0 + \sum_i\lambda_i g_i|^2_{B^{-1}}`, the decrease of the objective that first-order optimality
        would still allow, in the objective's unit.
    length : ndarray (R,)
        Length, in the norm of B, of the longest part that serves one constraint.
    """

    direction: Any
    multipliers: Any
    objective: Any
    constraints: Any
    residual: Any
    length: Any


def linearised_step(
    gradients: Any, preconditioned: Any, values: Any, weight: Any, reach: Any, hard: int = 0
) -> LinearisedStep:
    r"""Solve the linearised proximal problem of each run.

    Parameters
    ----------
    gradients : ndarray (R, 1 + m, d)
        :math:`g_0, g_1, \dots, g_m`.
    preconditioned : ndarray (R, 1 + m, d)
        :math:`B^{-1}g_i`.
    values : ndarray (R, m)
        :math:`c_i`, at most 0 where a constraint holds.
    weight : ndarray (R,)
        :math:`\hat\rho \ge 0`.
    reach : ndarray (R,)
        Largest length, in the norm of B, of the part of the step that serves one constraint.
    hard : int
        How many of the constraints, the last ones, may take a part of any length: those of the set X, which hold where
        the step begins.
    """
    inner = np.einsum("rid,rjd->rij", gradients, preconditioned)
    share = 1.0 / (1.0 + weight)
    size = np.maximum(np.einsum("rii->ri", inner)[:, 1:], 0.0)
    slope = values - share[:, None] * inner[:, 1:, 0]
    # No step serves a constraint whose gradient vanishes: its multiplier stays 0.
    unit = share[:, None] * np.sqrt(size)
    caps = np.where(unit > 0, reach[:, None] / np.where(unit > 0, unit, 1.0), 0.0)
    caps[:, caps.shape[1] - hard :] = np.inf
    multipliers = _multipliers(slope, share[:, None, None] * inner[:, 1:, 1:], caps)
    both = np.concatenate([np.ones((len(values), 1)), multipliers], axis=1)
    pulled = np.einsum("rij,rj->ri", inner, both)  # <g_i, B^-1 (g_0 + sum lambda g)>
    squared = np.maximum(np.einsum("ri,ri->r", both, pulled), 0.0)
    return LinearisedStep(
        direction=-share[:, None] * np.einsum("ri,rid->rd", both, preconditioned),
        multipliers=multipliers,
        objective=-share * pulled[:, 0] + 0.5 * share**2 * squared,
        constraints=values - share[:, None] * pulled[:, 1:],
        residual=0.5 * squared,
        length=np.max((share[:, None] * multipliers * np.sqrt(size))[:, : size.shape[1] - hard], axis=1),
    )


def _multipliers(slope: Any, matrix: Any, caps: Any) -> Any:
    r"""Maximise :math:`\langle q, \lambda\rangle - \frac12\langle\lambda, Q\lambda\rangle`, :math:`0\le\lambda\le` cap.

    A few sweeps of coordinate ascent are exact for one constraint and for two opposite ones. Gradients of several gaps
    are nearly dependent, and one by one their multipliers would take thousands of sweeps.
    """
    multipliers = np.zeros_like(slope)
    diagonal = np.maximum(np.einsum("rii->ri", matrix), _TINY)
    for _ in range(_SWEEPS):
        before = multipliers.copy()
        for i in range(slope.shape[1]):
            others = np.einsum("rj,rj->r", matrix[:, i], multipliers) - matrix[:, i, i] * multipliers[:, i]
            multipliers[:, i] = np.clip((slope[:, i] - others) / diagonal[:, i], 0.0, caps[:, i])
        if np.allclose(multipliers, before, rtol=1e-10, atol=0.0):
            return multipliers
    return _by_active_sets(multipliers, slope, matrix, caps, diagonal)


def _by_active_sets(multipliers: Any, slope: Any, matrix: Any, caps: Any, diagonal: Any) -> Any:
    """Return the multipliers by the active-set method (Nocedal and Wright, 2006, section 16.5), from a guess.

    Those between their bounds move together, by Newton's method, until one meets a bound; where they are at their best,
    one at a bound is freed from which the dual value rises.
    """
    each, unit = np.arange(len(slope)), np.eye(slope.shape[1])
    free = (multipliers > 0) & (multipliers < caps)
    for _ in range(_CHANGES * slope.shape[1]):
        rise = slope - np.einsum("rij,rj->ri", matrix, multipliers)
        # Opposite gradients leave a direction in which nothing curves: the step along it is long, and ends at a bound.
        kept = np.where(free[:, :, None] & free[:, None, :], matrix, 0.0)
        kept = kept + unit * np.where(free, np.maximum(1e-14 * diagonal, _TINY), 1.0)[:, :, None]
        move = np.linalg.solve(kept, np.where(free, rise, 0.0)[:, :, None])[:, :, 0]
        room = np.where(move > 0, caps - multipliers, multipliers)
        shares = np.where(free & (move != 0), room / np.where(move != 0, np.abs(move), 1.0), np.inf)
        first = np.argmin(shares, axis=1)
        share = np.minimum(shares[each, first], 1.0)
        multipliers = np.clip(multipliers + share[:, None] * move, 0.0, caps)
        met = share < 1.0
        multipliers[each[met], first[met]] = np.where(move > 0, caps, 0.0)[each[met], first[met]]
        free[each[met], first[met]] = False
        rise = slope - np.einsum("rij,rj->ri", matrix, multipliers)
        size = np.abs(slope) + np.einsum("rij,rj->ri", np.abs(matrix), multipliers)
        gain = np.where(multipliers > 0, -rise, rise) / np.sqrt(diagonal)
        gain = np.where(free | (caps <= 0) | (np.abs(rise) <= _ROUNDING * size), 0.0, gain)
        most = np.argmax(gain, axis=1)
        freed = ~met & (gain[each, most] > 0)
        free[each[freed], most[freed]] = True
        if not (met | freed).any():
            break
    return multipliers
