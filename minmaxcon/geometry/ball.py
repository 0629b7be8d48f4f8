"""The Euclidean ball."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.arrays import Array, Constant, namespace
from minmaxcon.checks import dimension_of, finite_array, number
from minmaxcon.errors import InvalidInput
from minmaxcon.geometry.base import EuclideanGenerator

__all__ = ["Ball"]


class Ball(EuclideanGenerator):
    r"""The ball :math:`\{u \in R^d : |u - c|_2 \le \rho\}` with :math:`\omega(u) = \frac12|u - c|_2^2`.

    Parameters
    ----------
    dimension : int
        Length d of a point.
    radius : float
        The radius :math:`\rho > 0`, in the units of u.
    center : array_like (d,), optional
        The centre c; the origin by default.

    Raises
    ------
    InvalidInput
        If the dimension or the radius is not positive and finite, or the centre has another shape.

    Notes
    -----
    :math:`D^2 = \rho^2/2`; norm and dual norm are Euclidean.

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.geometry import Ball
    >>> ball = Ball(2, 1.0)
    >>> ball.prox(np.zeros(2), np.array([-3.0, 4.0]), 1.0).round(2)  # a long step ends on the sphere
    array([ 0.6, -0.8])
    >>> ball.squared_diameter
    0.5
    """

    def __init__(self, dimension: int, radius: float, center: Any = None) -> None:
        self.dimension = dimension_of(dimension)
        self.radius = number("radius", radius, "must be positive and finite: the set has to be compact.", above=0.0)
        remedy = f"must hold {self.dimension} finite numbers."
        middle = np.zeros(self.dimension) if center is None else finite_array("center", center, remedy)
        if middle.shape != (self.dimension,):
            raise InvalidInput("center", center, remedy)
        self._center = Constant(middle)
        self._centered = bool(np.all(middle == 0))

    @property
    def center(self) -> Any:
        """The centre of the ball, shape (d,)."""
        return self._center.value

    @property
    def squared_diameter(self) -> float:
        r""":math:`\rho^2/2`."""
        return 0.5 * self.radius**2

    def project(self, u: Array) -> Array:
        """Shrink u towards the centre where it lies outside."""
        xp = namespace(u)
        offset = u if self._centered else u - self._center.row(u)
        squared = xp.row_dot(offset, offset)
        # Most steps end inside: one test instead of three operations.
        if not xp.traced:
            outside = squared > self.radius**2
            if not (outside.any() if outside.ndim else outside):
                return u
        shrink = self.radius / xp.sqrt(xp.maximum(squared, self.radius**2))
        offset = offset * shrink
        return offset if self._centered else offset + self._center.row(u)

    def inequalities(self, u: Array) -> tuple[Array, Array]:
        r"""Return :math:`(|u - c|^2 - R^2)/(2R) \le 0`, which near the boundary is the distance to it."""
        xp = namespace(u)
        offset = self._offset(u) / self.radius
        return 0.5 * self.radius * (xp.dot(offset, offset)[..., None] - 1.0), offset[..., None, :]

    def linear_minimum(self, g: Array) -> tuple[Array, Array]:
        r"""Return :math:`\langle g, c\rangle - \rho|g|_2`, attained at :math:`c - \rho g/|g|_2`."""
        xp = namespace(g)
        size = self.norm(g)
        middle = self._center.like(g)
        safe = xp.where(size > 0, size, size + 1.0)
        point = middle - (self.radius / safe)[..., None] * g
        return xp.dot(g, xp.broadcast_to(middle, g.shape)) - self.radius * size, point

    def contains(self, u: Array, tolerance: float = 1e-9) -> Array:
        """Tell whether the distance from the centre is at most the radius plus ``tolerance``."""
        return self.norm(u - self._center.like(u)) <= self.radius + tolerance

    def sample(self, rng: Any, count: int) -> Any:
        """Draw uniform directions; half of the radii on the boundary, half inside."""
        direction = rng.standard_normal((count, self.dimension))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        radii = np.where(rng.random(count) < 0.5, 1.0, rng.random(count)) * self.radius
        return self.center + radii[:, None] * direction

    def cvxpy_constraints(self, cp: Any, u: Any) -> list[Any]:
        """Return one second-order cone."""
        return [cp.norm(u - self.center, 2) <= self.radius]

    def __repr__(self) -> str:
        return f"Ball(dimension={self.dimension}, radius={self.radius:g})"
