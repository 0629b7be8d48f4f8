"""Fronts of gap and AUC as arrays: what dominates, how much area, and the mean of several fronts.

A point is better the smaller its gap and the larger its AUC. Points with NaN count for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["MeanFront", "best_auc", "hypervolume", "mean_and_error", "mean_front", "nondominated"]

WORST_AUC, WORST_GAP = 0.5, 0.3
"""The corner from which area is measured: scores at random, and a gap that nobody would accept."""


def _pair(gap: Any, auc: Any) -> tuple[Any, Any]:
    gap, auc = np.asarray(gap, dtype=np.float64), np.asarray(auc, dtype=np.float64)
    return gap.ravel(), auc.ravel()


def nondominated(gap: Any, auc: Any) -> Any:
    """Return which points no other point is better than, in one measure and at least as good in both.

    Parameters
    ----------
    gap, auc : array_like (n,)
        The points.

    Returns
    -------
    ndarray of bool (n,)
        Equal points stand or fall together.

    Examples
    --------
    >>> nondominated([0.1, 0.2, 0.2], [0.8, 0.9, 0.7]).tolist()
    [True, True, False]
    """
    gap, auc = _pair(gap, auc)
    known = np.isfinite(gap) & np.isfinite(auc)
    found = np.zeros(len(gap), dtype=bool)
    order = np.lexsort((-auc, gap))
    best, at = -np.inf, np.nan
    for j in order[known[order]]:
        found[j] = auc[j] > best or (auc[j] == best and gap[j] == at)
        if auc[j] > best:
            best, at = auc[j], gap[j]
    return found


def hypervolume(gap: Any, auc: Any, *, worst_gap: float = WORST_GAP, worst_auc: float = WORST_AUC) -> float:
    r"""Return the share of the rectangle :math:`[0, g_0] \times [a_0, 1]` that the points dominate.

    Parameters
    ----------
    gap, auc : array_like (n,)
        The points.
    worst_gap, worst_auc : float
        The corner :math:`(g_0, a_0)`; what lies beyond it adds nothing.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> round(hypervolume([0.0, 0.15], [0.75, 1.0]), 4)
    0.75
    """
    gap, auc = _pair(gap, auc)
    front = nondominated(gap, auc) & (gap < worst_gap) & (auc > worst_auc)
    order = np.argsort(gap[front])
    left, height = np.clip(gap[front][order], 0.0, None), np.minimum(auc[front][order], 1.0) - worst_auc
    width = np.diff(np.append(left, worst_gap))
    return float(np.sum(width * height) / (worst_gap * (1.0 - worst_auc)))


def best_auc(gap: Any, auc: Any, limit: float) -> float:
    """Return the best AUC among the points whose gap is at most the limit; NaN if there are none.

    Examples
    --------
    >>> best_auc([0.01, 0.05], [0.8, 0.9], 0.02)
    0.8
    """
    gap, auc = _pair(gap, auc)
    near = auc[(gap <= limit) & np.isfinite(auc)]
    return float(near.max()) if near.size else float("nan")


@dataclass(frozen=True, eq=False, slots=True)
class MeanFront:
    """The mean of several fronts at given gaps.

    Attributes
    ----------
    gap : ndarray (k,)
        Where it was taken.
    auc, error : ndarray (k,)
        Mean and its standard error; NaN where no front, or for the error only one, reaches that gap.
    count : ndarray of int (k,)
        How many fronts do.
    """

    gap: Any
    auc: Any
    error: Any
    count: Any


def mean_front(fronts: Sequence[tuple[Any, Any]], grid: Any) -> MeanFront:
    """Return the mean over fronts of the AUC at each gap of a grid.

    Between its non-dominated points a front is interpolated linearly; right of the last it stays level; left of the
    first it does not exist.

    Parameters
    ----------
    fronts : sequence of (gap, auc)
        The points of each front, such as one for each seed.
    grid : array_like (k,)
        The gaps.
    """
    grid = np.asarray(grid, dtype=np.float64)
    curves = np.full((len(fronts), len(grid)), np.nan)
    for curve, points in zip(curves, fronts, strict=True):
        gap, auc = _pair(*points)
        front = nondominated(gap, auc)
        if front.any():
            order = np.argsort(gap[front])
            curve[:] = np.interp(grid, gap[front][order], auc[front][order], left=np.nan)
    count = np.isfinite(curves).sum(axis=0)
    columns = [mean_and_error(column) for column in curves.T]
    mean, error = np.array(columns, dtype=np.float64).reshape(-1, 2).T
    return MeanFront(grid, mean, error, count)


def mean_and_error(values: Any) -> tuple[float, float]:
    """Return the mean of the finite values and its standard error; NaN where there are too few.

    Examples
    --------
    >>> mean_and_error([1.0, 3.0, float("nan")])
    (2.0, 1.0)
    """
    values = np.asarray(values, dtype=np.float64)
    values = values[np.isfinite(values)]
    if not values.size:
        return float("nan"), float("nan")
    error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else float("nan")
    return float(values.mean()), float(error)
