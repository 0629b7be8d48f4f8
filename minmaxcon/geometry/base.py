r"""Distance generators on convex compact sets, and Euclidean ones, which follow from a projection.

.. math:: V(u, v) = \omega(u) - \omega(v) - \langle\nabla\omega(v), u - v\rangle
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.errors import Unsupported

__all__ = ["DistanceGenerator", "EuclideanGenerator"]

SINGLE_ROUNDING = 1e-6
"""Rounding in single precision moves a point by at most this, relative to one plus its norm."""


class DistanceGenerator(ABC):
    r"""A distance generator :math:`\omega`, 1-strongly convex on a convex compact set :math:`X \subset R^d`.

    A new geometry implements ``value``, ``gradient``, ``prox``, ``linear_minimum``, ``center``, ``squared_diameter``,
    ``norm``, ``dual_norm``, ``contains`` and ``sample``; the divergence is derived, and a cvxpy form is optional. Where
    the distance is Euclidean, a projection is enough: see :class:`EuclideanGenerator`. Points are arrays whose last
    axis has length ``dimension``; axes before it count runs.

    Attributes
    ----------
    dimension : int
        Length d of a point.
    euclidean : bool
        Whether this is a :class:`EuclideanGenerator`: :math:`\omega(u) = \frac12 |u - c|_2^2` for some c, so that a
        prox is a gradient step and a projection.

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> simplex = mm.Simplex(3)
    >>> point = simplex.prox(simplex.center, np.array([1.0, 0.0, 0.0]), 0.5)
    >>> point.round(3), bool(simplex.divergence(point, simplex.center) > 0)
    (array([0.233, 0.384, 0.384]), True)
    """

    dimension: int
    euclidean: bool = False

    @property
    @abstractmethod
    def center(self) -> Any:
        r"""The minimiser of :math:`\omega` on X, a NumPy array of shape (d,)."""

    @property
    @abstractmethod
    def squared_diameter(self) -> float:
        r""":math:`D^2 = \max_X \omega - \min_X \omega`, exactly."""

    @abstractmethod
    def value(self, u: Array) -> Array:
        r""":math:`\omega(u)`, shape (...,) for u of shape (..., d)."""

    @abstractmethod
    def gradient(self, u: Array) -> Array:
        r""":math:`\nabla\omega(u)`, shape (..., d)."""

    @abstractmethod
    def prox(
        self, anchor: Array, gradient: Array, step: Array, *, center: Array | None = None, weight: Array = 0.0
    ) -> Array:
        r"""Minimise :math:`\langle g, u\rangle + V(u, u')/\eta + \hat\rho V(u, \tilde u)` over X.

        Parameters
        ----------
        anchor : array (..., d)
            The point :math:`u'` in X.
        gradient : array (..., d)
            The linear term g.
        step : float or array (..., 1)
            The step size :math:`\eta > 0`.
        center : array (..., d), optional
            The centre :math:`\tilde u` of the proximal penalty; it and ``weight`` bring no runs of their own.
        weight : float or array (..., 1)
            The weight :math:`\hat\rho \ge 0` of the proximal penalty; needs ``center`` when positive.

        Returns
        -------
        array (..., d)
            The minimiser, a new array: no argument is changed, and none is checked (this is called at every step).

        Notes
        -----
        For a Euclidean geometry the penalty is the quadratic of IQRC, :math:`\frac{\hat\rho}2|u - \tilde u|_2^2`.
        """

    @abstractmethod
    def linear_minimum(self, g: Array) -> tuple[Array, Array]:
        r"""Minimise :math:`\langle g, u\rangle` over X: the value, shape (...,), and a minimiser, shape (..., d)."""

    @abstractmethod
    def norm(self, u: Array) -> Array:
        r"""Return the norm for which :math:`\omega` is 1-strongly convex, shape (...,)."""

    @abstractmethod
    def dual_norm(self, g: Array) -> Array:
        """Return the dual norm, shape (...,)."""

    def squared_norm(self, u: Array) -> Array:
        """Return the square of :meth:`norm`, shape (...,); a geometry that has it without a root overrides it."""
        return self.norm(u) ** 2

    def squared_dual_norm(self, g: Array) -> Array:
        """Return the square of :meth:`dual_norm`, shape (...,)."""
        return self.dual_norm(g) ** 2

    @abstractmethod
    def contains(self, u: Array, tolerance: float = 1e-9) -> Array:
        """Whether u lies in X up to ``tolerance`` in each defining inequality: booleans of shape (...,)."""

    def holds(self, u: Array) -> Array:
        """Whether u is a point of X up to rounding in single precision: booleans of shape (...,), an ndarray.

        That is 1e-6 of one plus its Euclidean norm; a product of sets looks at each of its parts, a box at each entry.
        """
        points = np.asarray(to_numpy(u), dtype=np.float64)
        rows = points.reshape(-1, points.shape[-1])
        with np.errstate(over="ignore"):
            room = SINGLE_ROUNDING * (1.0 + np.linalg.norm(rows, axis=1))
        inside = [np.isfinite(far) and bool(self.contains(row, far)) for row, far in zip(rows, room, strict=True)]
        return np.array(inside, dtype=bool).reshape(points.shape[:-1])

    @abstractmethod
    def sample(self, rng: Any, count: int) -> Any:
        """Draw ``count`` points of X from a NumPy generator, shape (count, d); boundary points are included often."""

    def cvxpy_value(self, cp: Any, u: Any) -> Any:
        r"""Return the cvxpy expression of :math:`\omega(u)`; ``cp`` is the module: geometry never imports it.

        Raises
        ------
        Unsupported
            Unless the geometry overrides it.
        """
        raise Unsupported(f"{self!r} has no cvxpy form: override cvxpy_value() to compare with a reference.")

    def cvxpy_constraints(self, cp: Any, u: Any) -> list[Any]:
        """Return the cvxpy constraints that say u lies in X.

        Raises
        ------
        Unsupported
            Unless the geometry overrides it.
        """
        raise Unsupported(f"{self!r} has no cvxpy form: override cvxpy_constraints() to compare with a reference.")

    def project(self, u: Array) -> Array:
        """Return the Euclidean projection of u onto X, shape (..., d). May overwrite ``u`` and return it.

        Raises
        ------
        Unsupported
            If the geometry is not Euclidean.
        """
        raise Unsupported(f"{self!r} is not Euclidean and has no projection: use a ball, a box or a product of them.")

    def inequalities(self, u: Array) -> tuple[Array, Array]:
        r"""Return convex functions :math:`c_j(u) \le 0` that hold on X, and their gradients.

        Methods that linearise use them beside the constraints; what they leave out, a projection restores.

        Parameters
        ----------
        u : array (..., d)
            Points.

        Returns
        -------
        values : array (..., k)
            The default has k = 0: no function at all.
        gradients : array (..., k, d)
            Their gradients.
        """
        xp = namespace(u)
        lead = tuple(u.shape[:-1])
        return xp.zeros((*lead, 0), u), xp.zeros((*lead, 0, int(u.shape[-1])), u)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dimension={self.dimension})"

    def divergence(self, u: Array, v: Array) -> Array:
        r"""Bregman divergence :math:`V(u, v) = \omega(u) - \omega(v) - \langle\nabla\omega(v), u - v\rangle`."""
        xp = namespace(u)
        return self.value(u) - self.value(v) - xp.dot(self.gradient(v), u - v)


class EuclideanGenerator(DistanceGenerator):
    r"""Base of the Euclidean geometries, :math:`\omega(u) = \frac12|u - c|_2^2`: only the set differs.

    A subclass gives ``project`` (in place where it can), ``dimension``, ``center`` c and ``squared_diameter``, half the
    squared distance from c to the farthest point. All else follows; what a set knows in closed form it overrides.

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.geometry import EuclideanGenerator
    >>> class Unit(EuclideanGenerator):  # the box [0, 1]^d
    ...     def __init__(self, dimension):
    ...         self.dimension = dimension
    ...     @property
    ...     def center(self):
    ...         return np.full(self.dimension, 0.5)
    ...     @property
    ...     def squared_diameter(self):
    ...         return self.dimension / 8
    ...     def project(self, u):
    ...         return np.clip(u, 0.0, 1.0)
    >>> Unit(2).prox(np.zeros(2), np.array([-0.3, 5.0]), 1.0)
    array([0.3, 0. ])
    """

    euclidean = True

    def _offset(self, u: Array) -> Array:
        # A copy of the centre, which is read-only: torch warns about sharing memory that it may not write.
        return u - namespace(u).asarray(np.array(self.center), u)

    @abstractmethod
    def project(self, u: Array) -> Array:
        """Return the Euclidean projection of u onto the set, shape (..., d). May overwrite ``u`` and return it."""

    def linear_minimum(self, g: Array) -> tuple[Array, Array]:
        r"""Bound :math:`\langle g, u\rangle` over X from below by a projection from afar.

        With :math:`p = \Pi(c - tg)` the projection's own inequality says, for every u in X,

        .. math:: \langle g, u\rangle \ge \langle g, p\rangle - \frac1t |c - p|_2(\rho - |c - p|_2),
            \qquad \rho^2 = 2D^2,

        less than the minimum by at most :math:`\rho|g|_2/4M` for :math:`t = M\rho/|g|_2`. With an allowance for
        rounding the loss is at most 5e-8 of :math:`\rho|g|_2` in float64, and 1e-3 in float32. The bound is as right
        as the projection is exact; a closed form, where there is one, loses nothing.
        """
        xp = namespace(g)
        rounding = 2.3e-16 if g.dtype.itemsize == 8 else 1.2e-7
        far = 0.25 / math.sqrt(rounding)
        size, radius = self.norm(g), math.sqrt(2.0 * self.squared_diameter)
        step = far * radius / xp.where(size > 0, size, size + 1.0)
        center = xp.asarray(np.array(self.center), g)
        point = self.project(center - step[..., None] * g)
        reached = self.norm(point - center)
        short = xp.maximum(reached * (radius - reached), 0.0) / step if radius > 0 else 0.0 * size
        return xp.dot(g, point) - short - 8.0 * far * rounding * radius * size, point

    def contains(self, u: Array, tolerance: float = 1e-9) -> Array:
        """Tell whether the distance from the projection is at most ``tolerance``."""
        return self.norm(u - self.project(namespace(u).copy(u))) <= tolerance

    def sample(self, rng: Any, count: int) -> Any:
        """Project points around the centre, half of them from beyond the farthest point, so that boundaries are met."""
        radius = math.sqrt(2.0 * self.squared_diameter)
        direction = rng.standard_normal((count, self.dimension))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        length = radius * np.where(rng.random(count) < 0.5, 1.0 + rng.random(count), rng.random(count))
        return self.project(np.asarray(self.center) + length[:, None] * direction)

    def value(self, u: Array) -> Array:
        """See :meth:`DistanceGenerator.value`."""
        offset = self._offset(u)
        return 0.5 * namespace(u).dot(offset, offset)

    def gradient(self, u: Array) -> Array:
        """See :meth:`DistanceGenerator.gradient`."""
        return self._offset(u)

    def divergence(self, u: Array, v: Array) -> Array:
        r"""Half the squared distance, :math:`\frac12|u - v|_2^2`, without cancellation."""
        offset = u - v
        return 0.5 * namespace(u).dot(offset, offset)

    def prox(
        self, anchor: Array, gradient: Array, step: Array, *, center: Array | None = None, weight: Array = 0.0
    ) -> Array:
        r"""Gradient step and projection: :math:`\Pi((u' - \eta g + \eta\hat\rho\tilde u) / (1 + \eta\hat\rho))`."""
        moved = anchor - step * gradient
        if center is not None:
            scale = step * weight
            moved += scale * center  # in place: a new array costs more than its arithmetic once runs are many
            moved /= 1.0 + scale
        return self.project(moved)

    def norm(self, u: Array) -> Array:
        """Return the Euclidean norm."""
        xp = namespace(u)
        return xp.sqrt(xp.dot(u, u))

    def dual_norm(self, g: Array) -> Array:
        """Return the Euclidean norm."""
        return self.norm(g)

    def squared_norm(self, u: Array) -> Array:
        """Return the inner product of u with itself."""
        return namespace(u).dot(u, u)

    def squared_dual_norm(self, g: Array) -> Array:
        """Return the inner product of g with itself."""
        return namespace(g).dot(g, g)

    def cvxpy_value(self, cp: Any, u: Any) -> Any:
        """See :meth:`DistanceGenerator.cvxpy_value`."""
        return 0.5 * cp.sum_squares(u - self.center)
