r"""Proximal weight :math:`\hat\rho` against weak convexity modulus :math:`\rho`: an error bound, and a warning."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from minmaxcon.arrays import Array
from minmaxcon.core import MinMaxProblem, Points
from minmaxcon.core.modulus import modulus_near
from minmaxcon.errors import WeakConvexityWarning

__all__ = ["proximal_inaccuracy", "warn_of_weight"]


def warn_of_weight(problem: MinMaxProblem, x: Array, weight: float) -> None:
    r"""Warn where :math:`\hat\rho` is at or below a modulus: one that is declared, or one that two points near x prove.

    The points are looked for only where a function declares no modulus and the data are finite, at the cost of about
    ten gradients of each function. Nothing of a solve depends on them.

    Parameters
    ----------
    problem : MinMaxProblem
        The problem.
    x : array (R, d)
        Where the solve starts.
    weight : float
        :math:`\hat\rho`.
    """
    functions = problem.family.constraints
    declared = np.array([function.modulus for function in functions])
    known = np.where(np.isfinite(declared), declared, 0.0)
    modulus, name, how = float(known.max()), functions[int(known.argmax())].name, "the modulus declared by"
    if weight > modulus and np.isinf(declared).any() and problem.data.size is not None:
        found = modulus_near(problem, x)
        modulus, name = found.value, found.witness.name
        how = "what two points near the start prove of the modulus of"
    if modulus > 0 and weight <= modulus:
        warnings.warn(
            f"weight={weight:g} is not above {modulus:.4g}, {how} {name!r}: proximal problems need not be convex, "
            f"and nothing is proved of their solutions. Use weight=w with w above {modulus:.4g}; "
            "estimate_modulus() looks further.",
            WeakConvexityWarning,
            stacklevel=3,
        )


def proximal_inaccuracy(modulus: float, points: Points, lower: Any) -> Any:
    r"""Bound the distance of points from the solutions of proximal problems, by their optimality gaps.

    A proximal problem is strongly convex with modulus :math:`\hat\rho - \rho`, so its gap bounds
    :math:`\frac{\hat\rho - \rho}2|x - \hat x|^2` at a feasible point; without a gap there is no bound.

    Parameters
    ----------
    modulus : float
        :math:`\hat\rho - \rho`; nothing is proved where it is not positive.
    points : Points
        Points with the exact values of the proximal problem.
    lower : ndarray (R,)
        Lower bounds on its optimal value.

    Returns
    -------
    ndarray (R,)
        The bounds, infinite where nothing is proved.
    """
    gap = np.asarray(points.objective - lower, dtype=float)
    known = np.isfinite(gap) & points.feasible & (modulus > 0)
    return np.where(known, np.sqrt(2.0 * np.maximum(np.where(known, gap, 0.0), 0.0) / max(modulus, 1e-300)), np.inf)
