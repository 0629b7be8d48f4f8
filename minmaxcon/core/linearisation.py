"""Exact values and gradients of the functions of a problem on finite data."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.core.constraint import ConstraintFamily
from minmaxcon.core.level import expectations
from minmaxcon.core.source import Source, in_double
from minmaxcon.geometry import PerspectiveGenerator

__all__ = ["exact_gradients", "exact_values"]


def exact_values(family: ConstraintFamily, x: Array, data: Source) -> Any:
    r"""Return :math:`f_i(x)`, an ndarray (R, k), by one pass over finite data in float64 whatever their precision.

    Parameters
    ----------
    family : ConstraintFamily
        The k functions.
    x : array (R, d)
        One point per run.
    data : Source
        Finite data.
    """
    found = expectations(family, namespace(x).double(x), in_double(data))
    dual = PerspectiveGenerator([c.dual for c in family.constraints])
    return np.asarray(to_numpy(dual.support(found.F, found.G)), dtype=np.float64)


def exact_gradients(family: ConstraintFamily, x: Array, data: Source) -> tuple[Any, Any]:
    r"""Return values and gradients of :math:`f_i(x) = \max_\alpha E F_i + \langle\alpha, E\,G_i\rangle - g_i(\alpha)`.

    By Danskin's theorem :math:`\nabla f_i = E\nabla F_i + \langle\alpha_i^*, E\nabla G_i\rangle` wherever the maximiser
    :math:`\alpha_i^*` is unique, as it is for strongly convex penalties.

    Parameters
    ----------
    family : ConstraintFamily
        The k functions.
    x : array (R, d)
        One point per run.
    data : Source
        Finite data.

    Returns
    -------
    values : ndarray (R, k)
        In float64.
    gradients : ndarray (R, k, d)
        In float64.
    """
    xp = namespace(x)
    found = expectations(family, x, data)
    dual = PerspectiveGenerator([c.dual for c in family.constraints])
    inner, conjugate = dual.stack.maximize(found.G)
    values = np.asarray(to_numpy(found.F + conjugate), dtype=np.float64)
    gradients = []
    for i in range(dual.levels):
        weights = xp.zeros((int(x.shape[0]), dual.levels), x)
        weights[:, i] = 1.0
        pulled = found.pullback(weights, dual.spread(weights) * inner)
        gradients.append(np.asarray(to_numpy(pulled), dtype=np.float64))
    return values, np.stack(gradients, axis=1)
