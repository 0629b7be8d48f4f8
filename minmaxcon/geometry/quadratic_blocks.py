"""Inner blocks with a quadratic generator: the box (so the interval) and the ball."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.arrays import Array, Constant, namespace
from minmaxcon.checks import finite_array, number
from minmaxcon.errors import InvalidInput
from minmaxcon.geometry.ball import Ball
from minmaxcon.geometry.box import Box
from minmaxcon.geometry.inner import InnerBlock

__all__ = ["BallBlock", "BoxBlock", "interval"]


class _QuadraticBlock(InnerBlock):
    r"""A Euclidean set, :math:`\omega_A = \frac12|\alpha - c|^2` with c the start, :math:`g = \sum_j q_j\alpha_j^2`.

    The curvature is uniform unless the set is separable, so every closed form projects the unconstrained solution.
    """

    set: Any
    curvature: Any
    _curvature: Constant
    _start: Constant

    @property
    def start(self) -> Any:
        """The point of the set that is nearest to the origin."""
        return self._start.value

    def value(self, alpha: Array) -> Array:
        """See :meth:`InnerBlock.value`."""
        return self.divergence(alpha, self._start.like(alpha))

    def penalty(self, alpha: Array) -> Array:
        """See :meth:`InnerBlock.penalty`."""
        return namespace(alpha).sum(self._curvature.like(alpha) * alpha * alpha)

    def divergence(self, alpha: Array, anchor: Array) -> Array:
        """Return half the squared distance."""
        offset = alpha - anchor
        return 0.5 * namespace(alpha).dot(offset, offset)

    def prox(self, v: Array, anchor: Array, inverse_step: Array) -> tuple[Array, Array]:
        r"""Return :math:`\Pi_A((v + \alpha'/\tau) / (2q + 1/\tau))`."""
        xp = namespace(v)
        alpha = self.set.project((v + inverse_step * anchor) / (2.0 * self._curvature.like(v) + inverse_step))
        moved = alpha - anchor
        cost = alpha * (self._curvature.like(v) * alpha - v) + (0.5 * inverse_step) * (moved * moved)
        return alpha, xp.sum(cost)

    def maximize(self, v: Array) -> tuple[Array, Array]:
        """See :meth:`InnerBlock.maximize`."""
        xp = namespace(v)
        lowest, corner = self.set.linear_minimum(-v)
        if not self.curvature.any():
            return corner, -lowest
        curvature = self._curvature.like(v)
        bent = curvature > 0
        alpha = xp.where(bent, self.set.project(v / (2.0 * xp.where(bent, curvature, curvature + 1.0))), corner)
        return alpha, xp.dot(v, alpha) - self.penalty(alpha)

    def sample(self, rng: Any, count: int) -> Any:
        """See :meth:`InnerBlock.sample`."""
        return self.set.sample(rng, count)

    def cvxpy_divergence(self, cp: Any, a: Any, y: Any, anchor: Any) -> Any:
        """See :meth:`InnerBlock.cvxpy_divergence`."""
        return 0.5 * cp.quad_over_lin(a - y * anchor, y)

    def cvxpy_penalty(self, cp: Any, a: Any, y: Any) -> Any:
        """See :meth:`InnerBlock.cvxpy_penalty`."""
        if np.max(self.curvature) == 0:
            return 0.0
        root = np.sqrt(np.broadcast_to(self.curvature, (self.dimension,)))
        return cp.quad_over_lin(cp.multiply(root, a), y)


def _nonnegative(curvature: Any, shapes: tuple[tuple[int, ...], ...]) -> Any:
    remedy = "must be finite and at least 0 (g must be convex), one number" + (" or one a variable." if shapes else ".")
    array = finite_array("curvature", curvature, remedy)
    if array.shape not in ((), *shapes) or (array < 0).any():
        raise InvalidInput("curvature", curvature, remedy)
    return array


class BoxBlock(_QuadraticBlock):
    r"""A box :math:`l \le \alpha \le h` with :math:`g(\alpha) = \sum_j q_j\alpha_j^2`.

    Parameters
    ----------
    lower, upper : array_like (p,)
        The bounds.
    curvature : float or array_like (p,)
        q, at least 0.

    Raises
    ------
    InvalidInput
        If the bounds do not describe a box, or the curvature is negative.
    """

    def __init__(self, lower: Any, upper: Any, curvature: Any = 0.0) -> None:
        self.set = Box(lower, upper)
        self.dimension = self.set.dimension
        self.curvature = np.broadcast_to(_nonnegative(curvature, ((self.dimension,),)), (self.dimension,))
        self._curvature = Constant(self.curvature)
        low, high = self.set.lower, self.set.upper
        self._start = Constant(np.clip(0.0, low, high))
        farthest = np.maximum(np.abs(low), np.abs(high))
        self.radius, self.reach = float(np.linalg.norm(farthest)), float(farthest.max())

    @property
    def maximum(self) -> float:
        """Half the squared distance from ``start`` to the farthest corner."""
        reach = np.maximum(np.abs(self.set.lower - self.start), np.abs(self.set.upper - self.start))
        return 0.5 * float(reach @ reach)

    def cvxpy_constraints(self, cp: Any, a: Any, y: Any) -> list[Any]:  # comparisons need no function
        """See :meth:`InnerBlock.cvxpy_constraints`."""
        return [a >= y * self.set.lower, a <= y * self.set.upper]

    def __repr__(self) -> str:
        return f"BoxBlock(dimension={self.dimension}, radius={self.radius:g})"


def interval(radius: float, curvature: float = 0.0) -> BoxBlock:
    r"""Return the block of one inner variable in :math:`[-I, I]` with :math:`g = q\alpha^2`.

    Parameters
    ----------
    radius : float
        I, at least 0 (at 0 the variable is fixed).
    curvature : float
        q, at least 0.

    Returns
    -------
    BoxBlock
        The block.

    Raises
    ------
    InvalidInput
        If the radius is negative or not finite, or the curvature is negative.
    """
    reach = number("radius", radius, "must be finite and at least 0.", least=0.0)
    return BoxBlock([-reach], [reach], curvature)


class BallBlock(_QuadraticBlock):
    r"""A ball :math:`|\alpha|_2 \le I` with :math:`g(\alpha) = q|\alpha|_2^2`.

    Parameters
    ----------
    dimension : int
        p.
    radius : float
        I > 0.
    curvature : float
        q, at least 0.

    Raises
    ------
    InvalidInput
        If the dimension or radius is not positive, or the curvature is negative.
    """

    def __init__(self, dimension: int, radius: float, curvature: float = 0.0) -> None:
        self.set = Ball(dimension, radius)
        self.dimension = self.set.dimension
        self.radius = self.reach = self.set.radius
        self.curvature = _nonnegative(curvature, ())
        self._curvature = Constant(self.curvature)
        self._start = Constant(np.zeros(self.dimension))

    @property
    def maximum(self) -> float:
        r""":math:`I^2/2`."""
        return 0.5 * self.radius**2

    def cvxpy_constraints(self, cp: Any, a: Any, y: Any) -> list[Any]:
        """See :meth:`InnerBlock.cvxpy_constraints`."""
        return [cp.norm(a, 2) <= y * self.radius]

    def __repr__(self) -> str:
        return f"BallBlock(dimension={self.dimension}, radius={self.radius:g})"
