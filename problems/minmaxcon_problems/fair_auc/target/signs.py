r"""Coefficients of a fixed sign: the ball of parameters within an orthant of some of its coordinates.

The projection onto :math:`\{u : |u|_2 \le R,\ s_ju_j \ge 0 \text{ where } s_j \ne 0\}` is exact: first onto the cone,
where coordinates of the wrong sign become 0, then onto the ball, by a factor that leaves the cone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import Array, Constant, namespace
from minmaxcon.checks import positive
from minmaxcon.geometry import EuclideanGenerator

__all__ = ["SignedBall"]


class SignedBall(EuclideanGenerator):
    r"""The points of a ball around 0 whose coordinates have given signs.

    Parameters
    ----------
    radius : float
        The radius R.
    signs : array_like (d,)
        1 where a coordinate is to be at least 0, -1 where it is to be at most 0, 0 where it is free.

    Raises
    ------
    InvalidInput
        If the radius is not positive, or a sign is none.

    Examples
    --------
    >>> import numpy as np
    >>> SignedBall(1.0, [1, -1, 0]).project(np.array([-2.0, -3.0, 4.0]))
    array([ 0. , -0.6,  0.8])
    """

    def __init__(self, radius: float, signs: Any) -> None:
        self.radius = positive("radius", radius)
        self.signs = np.asarray(signs)
        if self.signs.ndim != 1 or not self.signs.size or not np.isin(self.signs, (-1, 0, 1)).all():
            raise mm.InvalidInput("signs", signs, "must hold -1, 0 or 1 for each coordinate.")
        self.dimension = int(self.signs.size)
        large = np.finfo(np.float32).max  # a bound that is none, in any precision
        self._lower = Constant(np.where(self.signs > 0, 0.0, -large))
        self._upper = Constant(np.where(self.signs < 0, 0.0, large))
        held = np.flatnonzero(self.signs)
        self._normals = Constant(-self.signs[held, None] * np.eye(self.dimension)[held])

    @property
    def center(self) -> Any:
        """The origin, shape (d,)."""
        return np.zeros(self.dimension)

    @property
    def squared_diameter(self) -> float:
        r""":math:`R^2/2`."""
        return float(0.5 * self.radius**2)

    def _within(self, u: Array) -> Array:
        """Project onto the cone."""
        return namespace(u).clip(u, self._lower.like(u), self._upper.like(u))

    def project(self, u: Array) -> Array:
        """Set coordinates of the wrong sign to 0, then shrink what lies outside the ball."""
        xp, u = namespace(u), self._within(u)
        size = xp.sqrt(xp.maximum(xp.dot(u, u), self.radius**2))
        return u * (self.radius / size)[..., None]

    def linear_minimum(self, g: Array) -> tuple[Array, Array]:
        """Return minus R times the length of the part of -g in the cone, attained along it."""
        xp, down = namespace(g), self._within(-g)
        size = xp.sqrt(xp.dot(down, down))
        return -self.radius * size, down * (self.radius / xp.where(size > 0, size, size + 1.0))[..., None]

    def inequalities(self, u: Array) -> tuple[Array, Array]:
        r"""Return :math:`(|u|^2 - R^2)/(2R) \le 0` and :math:`-s_ju_j \le 0`, with their gradients."""
        xp, normals = namespace(u), self._normals.like(u)
        lead = tuple(u.shape[:-1])
        ball = 0.5 * self.radius * (xp.dot(u, u) / self.radius**2 - 1.0)
        gradients = xp.zeros((*lead, 1 + int(normals.shape[0]), self.dimension), u)
        gradients[..., 0, :] = u / self.radius
        gradients[..., 1:, :] = normals
        return xp.concat([ball[..., None], u @ normals.T]), gradients

    def cvxpy_constraints(self, cp: Any, u: Any) -> list[Any]:
        """Return one second-order cone, and the signs."""
        return [cp.norm(u, 2) <= self.radius, cp.multiply(self.signs, u) >= 0]

    def __repr__(self) -> str:
        held = int(np.count_nonzero(self.signs))
        return f"SignedBall(radius={self.radius:g}, {held} of {self.dimension} coordinates have a sign)"
