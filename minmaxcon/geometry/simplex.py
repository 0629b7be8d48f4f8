"""The probability simplex with negative entropy."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.arrays import Array, Constant, namespace, to_numpy
from minmaxcon.checks import dimension_of
from minmaxcon.geometry.base import DistanceGenerator

__all__ = ["Simplex", "log_softmax", "safe_log", "softmax"]


def safe_log(u: Array) -> Array:
    r"""Return :math:`\ln u`, where numbers near 0 count as 1e-300 in float64 and 1e-37 in float32."""
    xp = namespace(u)
    return xp.log(xp.maximum(u, 1e-300 if u.dtype.itemsize == 8 else 1e-37))


def log_softmax(logits: Array) -> tuple[Array, Array]:
    r"""Return :math:`\log p` and p for :math:`p \propto \exp(\text{logits})` over the last axis, without overflow."""
    xp = namespace(logits)
    shifted = logits - xp.row_max(logits)
    weights = xp.exp(shifted)
    total = xp.row_sum(weights)
    return shifted - xp.log(total), weights / total


def softmax(logits: Array) -> tuple[Array, Array]:
    r"""Return :math:`p \propto \exp(\text{logits})` and :math:`\ln\sum\exp(\text{logits})`, of shape (..., 1)."""
    xp = namespace(logits)
    top = xp.max(logits, keepdims=True)
    weights = xp.exp(logits - top)
    total = xp.sum(weights, keepdims=True)
    return weights / total, top + xp.log(total)


class Simplex(DistanceGenerator):
    r"""The simplex :math:`\{u \ge 0, \sum_j u_j = 1\}` with :math:`\omega(u) = \sum_j u_j\ln u_j + \ln d`.

    1-strongly convex in the norm :math:`|\cdot|_1` (Pinsker); the dual norm is :math:`|\cdot|_\infty`;
    :math:`D^2 = \ln d`.

    Parameters
    ----------
    dimension : int
        Number d of corners.

    Raises
    ------
    InvalidInput
        If the dimension is not a whole number of at least 1, or too large for memory.

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.geometry import Simplex
    >>> simplex = Simplex(3)
    >>> simplex.prox(simplex.center, np.array([0.0, 0.0, 1.0]), 1.0).round(3)  # a multiplicative step
    array([0.422, 0.422, 0.155])
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension_of(dimension)
        self._center = Constant(np.full(self.dimension, 1.0 / self.dimension))

    @property
    def center(self) -> Any:
        """The uniform distribution, shape (d,)."""
        return self._center.value

    @property
    def squared_diameter(self) -> float:
        r""":math:`\ln d`."""
        return float(np.log(self.dimension))

    def value(self, u: Array) -> Array:
        r"""Return :math:`\sum_j u_j\ln u_j + \ln d`, with :math:`0\ln 0 = 0`."""
        return namespace(u).sum(u * safe_log(u)) + self.squared_diameter

    def gradient(self, u: Array) -> Array:
        r"""Return :math:`1 + \ln u`; see :func:`safe_log` for coordinates at 0."""
        return 1.0 + safe_log(u)

    def divergence(self, u: Array, v: Array) -> Array:
        r"""Return the Kullback-Leibler divergence :math:`\sum_j u_j\ln(u_j/v_j)`."""
        return namespace(u).sum(u * (safe_log(u) - safe_log(v)) - u + v)

    def prox(
        self, anchor: Array, gradient: Array, step: Array, *, center: Array | None = None, weight: Array = 0.0
    ) -> Array:
        r"""Return :math:`u \propto (u'\, \tilde u^{\eta\hat\rho} e^{-\eta g})^{1/(1 + \eta\hat\rho)}`.

        The penalty is :math:`\hat\rho\,KL(u, \tilde u)`, the Bregman form of the proximal term; it is at least
        :math:`\frac{\hat\rho}2|u - \tilde u|_1^2`, so it convexifies whatever the quadratic would.
        """
        logits = safe_log(anchor) - step * gradient
        if center is not None:
            scale = step * weight
            logits = (logits + scale * safe_log(center)) / (1.0 + scale)
        return softmax(logits)[0]

    def linear_minimum(self, g: Array) -> tuple[Array, Array]:
        """Take the corner of the smallest coefficient."""
        xp = namespace(g)
        corner = np.zeros(tuple(g.shape))
        np.put_along_axis(corner, to_numpy(xp.argmin(g))[..., None], 1.0, axis=-1)
        point = xp.asarray(corner, g)
        return xp.dot(g, point), point

    def norm(self, u: Array) -> Array:
        """Return the sum of absolute values."""
        xp = namespace(u)
        return xp.sum(xp.abs(u))

    def dual_norm(self, g: Array) -> Array:
        """Return the largest absolute value."""
        xp = namespace(g)
        return xp.max(xp.abs(g))

    def contains(self, u: Array, tolerance: float = 1e-9) -> Array:
        """Tell whether no coordinate is below 0 and they sum to 1, up to ``tolerance``."""
        xp = namespace(u)
        return (u >= -tolerance).all(-1) & (xp.abs(xp.sum(u) - 1.0) <= tolerance * self.dimension)

    def sample(self, rng: Any, count: int) -> Any:
        """Draw from a Dirichlet law; a third with concentration 0.1, what is below 1e-4 put to 0 (a face)."""
        even = rng.dirichlet(np.ones(self.dimension), count)
        sharp = rng.dirichlet(np.full(self.dimension, 0.1), count)
        sharp[sharp < np.minimum(1e-4, sharp.max(axis=1, keepdims=True))] = 0.0
        sharp /= sharp.sum(axis=1, keepdims=True)
        return np.where((rng.random(count) < 1 / 3)[:, None], sharp, even)

    def cvxpy_value(self, cp: Any, u: Any) -> Any:
        """See :meth:`DistanceGenerator.cvxpy_value`."""
        return -cp.sum(cp.entr(u)) + self.squared_diameter

    def cvxpy_constraints(self, cp: Any, u: Any) -> list[Any]:
        """Return the signs and the sum."""
        return [u >= 0, cp.sum(u) == 1]
