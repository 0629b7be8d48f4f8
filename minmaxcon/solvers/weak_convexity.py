"""The rule that a proximal weight must exceed the weak convexity modulus, and the warning where it does not."""

from __future__ import annotations

import warnings

import numpy as np

from minmaxcon.arrays import Array
from minmaxcon.core import MinMaxProblem
from minmaxcon.core.modulus import modulus_near
from minmaxcon.errors import WeakConvexityWarning

__all__ = ["warn_of_weight"]


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
    declared = np.array([float(function.weak_convexity) for function in functions])
    known = np.where(np.isfinite(declared), declared, 0.0)
    modulus, name, how = float(known.max()), functions[int(known.argmax())].name, "the modulus declared by"
    if weight > modulus and np.isinf(declared).any() and problem.data.size is not None:
        found = modulus_near(problem, x)
        modulus, name = found.value, found.witness.name
        how = "what two points near the start prove of the modulus of"
    if modulus > 0 and weight <= modulus:
        warnings.warn(
            f"weight={weight:g} is not above {modulus:.4g}, {how} {name!r}: proximal problems need not be convex, and "
            f"nothing is proved of their solutions. Use a weight above {modulus:.4g}; estimate_modulus() looks further.",
            WeakConvexityWarning,
            stacklevel=3,
        )
