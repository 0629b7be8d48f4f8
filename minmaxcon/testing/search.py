"""Searches that look for the worst: the largest value of a convex function, the smallest curvature."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

__all__ = ["directions", "largest_value", "readable", "smallest_curvature"]


def largest_value(
    value: Callable[[Any], Any], gradient: Callable[[Any], Any], corner: Callable[[Any], Any], starts: Any
) -> tuple[Any, float]:
    """Maximise a convex function over a set: from many starts, jump to the extreme point along the gradient.

    Parameters
    ----------
    value, gradient : callable
        The function, for points (n, d).
    corner : callable
        The points of the set that maximise given linear functions (n, d).
    starts : ndarray (n, d)
        Points of the set.

    Returns
    -------
    point : ndarray (d,)
        The best point found.
    value : float
        The value there; a lower bound of the maximum, attained.
    """
    d = starts.shape[1]
    wide = np.asarray(corner(np.concatenate([np.eye(d), -np.eye(d)])))
    points = np.concatenate([starts, np.asarray(corner(starts - starts.mean(0))), wide])
    for _ in range(200):  # a few are enough for corners; a smooth set takes more
        moved = np.asarray(corner(np.asarray(gradient(points))))
        now = np.asarray(value(points))
        better = np.asarray(value(moved)) > now + 1e-12 * np.abs(now)
        points = np.where(better[:, None], moved, points)
        if not better.any():
            break
    best = points[int(np.argmax(value(points)))]
    # A corner that is best along the gradient need not be the best: try the neighbours along each axis.
    for _ in range(min(d, 40)):
        slope = np.asarray(gradient(best[None, :]))
        push = 1e3 * (1.0 + np.abs(slope).max()) * np.concatenate([np.eye(d), -np.eye(d)])
        others = np.asarray(corner(slope + push))
        values = np.asarray(value(others))
        if values.max() <= float(value(best[None, :])[0]) * (1.0 + 1e-12):
            break
        best = others[int(np.argmax(values))]
    return best, float(value(best[None, :])[0])


def directions(points: Any, most: int, rng: np.random.Generator) -> Any:
    """Return orthonormal directions (k, d) within the set that the points span, at most ``most``."""
    chords = points[1:] - points[:-1]
    if chords.shape[1] > most:
        chords = rng.standard_normal((most, len(chords))) @ chords
    _, sizes, rows = np.linalg.svd(chords, full_matrices=False)
    return rows[sizes > 1e-9 * max(float(sizes.max(initial=0.0)), 1e-300)][:most]


def smallest_curvature(gradient: Callable[[Any], Any], x: Any, basis: Any, h: float = 1e-5) -> tuple[float, Any]:
    """Return the smallest curvature within the directions and where it points.

    The direction is an eigenvector of the Hessian by central differences. Across kinks that matrix means little, so the
    curvature is taken along the direction alone: there a convex function's is never negative, kinks or not.

    Parameters
    ----------
    gradient : callable
        Gradients (n, d) at points (n, d).
    x : ndarray (d,)
        The point.
    basis : ndarray (k, d)
        Orthonormal directions.
    h : float
        The step.
    """
    moved = np.concatenate([x + h * basis, x - h * basis])
    slopes = np.asarray(gradient(moved))
    matrix = (slopes[: len(basis)] - slopes[len(basis) :]) @ basis.T / (2.0 * h)
    along = np.linalg.eigh(0.5 * (matrix + matrix.T))[1][:, 0] @ basis
    ahead, behind = np.asarray(gradient(np.stack([x + h * along, x - h * along])))
    return float((ahead - behind) @ along / (2.0 * h)), along


def readable(values: dict[str, Any], still: Callable[..., bool]) -> dict[str, Any]:
    """Round the numbers of a counterexample as far as it remains one.

    Parameters
    ----------
    values : dict
        Named arrays.
    still : callable
        Tells whether rounded arrays, passed by name, are a counterexample too.
    """
    for digits in range(4):
        rounded = {name: np.round(value, digits) for name, value in values.items()}
        with suppress(Exception):  # a rounded point may lie where the function is not defined
            if still(**rounded):
                return rounded
    return values
