"""The box (in one dimension, the interval)."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.arrays import Array, Constant, namespace, to_numpy
from minmaxcon.checks import finite_array
from minmaxcon.errors import InvalidInput
from minmaxcon.geometry.base import SINGLE_ROUNDING, EuclideanGenerator

__all__ = ["Box"]


class Box(EuclideanGenerator):
    r"""The box :math:`\{u : l \le u \le h\}` with :math:`\omega(u) = \frac12|u - (l + h)/2|_2^2`.

    Parameters
    ----------
    lower, upper : array_like (d,)
        The bounds :math:`l \le h`, finite.

    Raises
    ------
    InvalidInput
        If a bound is not finite, a lower bound exceeds its upper one, or the shapes differ.

    Notes
    -----
    :math:`D^2 = \frac18\sum_j (h_j - l_j)^2`; norm and dual norm are Euclidean.

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.geometry import Box
    >>> Box([0.0, -1.0], [1.0, 1.0]).project(np.array([2.0, -0.5]))
    array([ 1. , -0.5])
    """

    def __init__(self, lower: Any, upper: Any) -> None:
        remedy = "must be a vector of finite numbers, at least one: the set has to be compact."
        low = np.atleast_1d(finite_array("lower", lower, remedy))
        high = np.atleast_1d(finite_array("upper", upper, remedy))
        if low.ndim != 1 or low.size == 0:
            raise InvalidInput("lower", lower, remedy)
        if high.shape != low.shape:
            raise InvalidInput("upper", upper, f"must have the shape of lower, {low.shape}.")
        if (low > high).any():
            j = int(np.argmax(low > high))
            raise InvalidInput("lower", float(low[j]), f"exceeds upper={high[j]:g} in coordinate {j}.")
        self.dimension = int(low.size)
        self._lower, self._upper, self._center = Constant(low), Constant(high), Constant(0.5 * (low + high))

    @property
    def lower(self) -> Any:
        """Lower bounds, shape (d,)."""
        return self._lower.value

    @property
    def upper(self) -> Any:
        """Upper bounds, shape (d,)."""
        return self._upper.value

    @property
    def center(self) -> Any:
        """The midpoint, shape (d,)."""
        return self._center.value

    @property
    def squared_diameter(self) -> float:
        r""":math:`\frac18\sum_j (h_j - l_j)^2`."""
        return 0.125 * float(np.sum((self.upper - self.lower) ** 2))

    def project(self, u: Array) -> Array:
        """Clip every coordinate."""
        return namespace(u).clip(u, self._lower.row(u), self._upper.row(u))

    def linear_minimum(self, g: Array) -> tuple[Array, Array]:
        """Take the lower bound where the coefficient is positive, the upper one where it is not."""
        xp = namespace(g)
        point = xp.where(g > 0, self._lower.like(g), self._upper.like(g))
        return xp.dot(g, point), point

    def contains(self, u: Array, tolerance: float = 1e-9) -> Array:
        """Tell whether every coordinate lies within its bounds up to ``tolerance``."""
        low, high = self._lower.like(u), self._upper.like(u)
        return ((u >= low - tolerance) & (u <= high + tolerance)).all(-1)

    def holds(self, u: Array) -> Array:
        """See :meth:`DistanceGenerator.holds`."""
        points = np.asarray(to_numpy(u), dtype=np.float64)
        room = SINGLE_ROUNDING * (1.0 + np.abs(points))
        inside = np.isfinite(points) & (points >= self.lower - room) & (points <= self.upper + room)
        return inside.all(-1)

    def sample(self, rng: Any, count: int) -> Any:
        """Draw uniformly from the box; each coordinate on one of its bounds with probability 0.3."""
        share = rng.random((count, self.dimension))
        share = np.where(rng.random(share.shape) < 0.3, np.round(share), share)
        return self.lower + share * (self.upper - self.lower)

    def cvxpy_constraints(self, cp: Any, u: Any) -> list[Any]:  # comparisons need no function of cvxpy
        """Return two vectors of inequalities."""
        return [u >= self.lower, u <= self.upper]
