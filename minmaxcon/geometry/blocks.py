r"""Inner blocks: the set A, generator and penalty of the inner variables of one constraint.

.. math:: \max_{\alpha\in A} \langle\alpha, E\,G\rangle - g(\alpha)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, Constant, namespace
from minmaxcon.checks import finite_array, number
from minmaxcon.errors import InvalidInput, Unsupported
from minmaxcon.geometry.ball import Ball
from minmaxcon.geometry.box import Box
from minmaxcon.geometry.simplex import Simplex, safe_log, softmax

__all__ = ["BallBlock", "BoxBlock", "InnerBlock", "SimplexBlock", "interval"]


class InnerBlock(ABC):
    r"""Inner variables :math:`\alpha \in A \subset R^p` with generator :math:`\omega_A` and penalty g.

    They enter a constraint as :math:`\max_{\alpha\in A} \langle\alpha, E\,G\rangle - g(\alpha)`. A new block implements
    the closed forms below; points are arrays whose last axis has length p. Mirror coordinates and cvxpy forms are
    optional: what needs them says so.

    Attributes
    ----------
    dimension : int
        Number p of inner variables.
    radius : float
        :math:`\max_A |\alpha|_2`.
    reach : float
        The largest absolute value of a single variable on A.
    modulus : float
        Strong convexity modulus of :math:`\omega_A` in the Euclidean norm (1 for all built-in blocks).

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> block = mm.interval(2.0, curvature=1.0)  # A = [-2, 2], g(a) = a^2
    >>> best, value = block.maximize(np.array([3.0]))
    >>> float(value), best
    (2.25, array([1.5]))
    """

    dimension: int
    radius: float
    reach: float
    modulus: float = 1.0

    @property
    def entropy_weight(self) -> float:
        r"""The least K with which the theorem proves :math:`\omega_y` 1-strongly convex: :math:`1 + I^2\mu/(2\mu - 1)`.

        A block for which a smaller one is proved overrides it.

        Raises
        ------
        InvalidInput
            If the modulus is below 1, for which no K works.
        """
        if self.modulus < 1:
            raise InvalidInput("modulus", self.modulus, f"scale the generator of {self!r} up to a modulus of 1.")
        return 1.0 + self.radius**2 * self.modulus / (2.0 * self.modulus - 1.0)

    @property
    @abstractmethod
    def start(self) -> Any:
        r"""The minimiser of :math:`\omega_A`, where its value is 0 and a solver starts, shape (p,)."""

    @property
    @abstractmethod
    def maximum(self) -> float:
        r""":math:`\max_A \omega_A`, where :math:`\min_A \omega_A = 0`."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dimension={self.dimension})"

    @abstractmethod
    def value(self, alpha: Array) -> Array:
        r"""Return :math:`\omega_A(\alpha)`, shape (...,)."""

    @abstractmethod
    def penalty(self, alpha: Array) -> Array:
        r"""Return :math:`g(\alpha)`, shape (...,)."""

    @abstractmethod
    def divergence(self, alpha: Array, anchor: Array) -> Array:
        r"""Return the Bregman divergence of :math:`\omega_A`, shape (...,)."""

    @abstractmethod
    def prox(self, v: Array, anchor: Array, inverse_step: Array) -> tuple[Array, Array]:
        r"""Minimise :math:`-\langle v,\alpha\rangle + g(\alpha) + B(\alpha,\alpha')/\tau` over A.

        Parameters
        ----------
        v : array (..., p)
            The linear term.
        anchor : array (..., p)
            The point :math:`\alpha'`.
        inverse_step : float or array (..., 1)
            :math:`1/\tau`.

        Returns
        -------
        alpha : array (..., p)
            The minimiser.
        value : array (...,)
            The minimum :math:`\nu`.
        """

    @abstractmethod
    def maximize(self, v: Array) -> tuple[Array, Array]:
        r"""Return maximiser and value of :math:`(g + \iota_A)^*(v) = \max_A \langle v,\alpha\rangle - g(\alpha)`."""

    @abstractmethod
    def sample(self, rng: Any, count: int) -> Any:
        """Draw ``count`` points of A from a NumPy generator, shape (count, p)."""

    @property
    def mirrored(self) -> bool:
        """Whether the block has mirror coordinates: whether it overrides :meth:`mirror`."""
        return type(self).mirror is not InnerBlock.mirror

    def mirror(self, alpha: Array) -> tuple[Array, Array]:
        r"""Return the mirror coordinates (m, s) of :math:`\alpha`, shapes (..., p) and (...,), in which anchors mix.

        .. math:: B(\cdot, \alpha) = h - \langle m, \cdot\rangle + s

        with a function h that is the same for all :math:`\alpha`, so that a mixture of divergences depends on the
        mixture of m and s alone. With h half the squared norm they are :math:`\alpha` and
        :math:`\frac12|\alpha|_2^2`. Oracles that remember several anchors need them; the others do not.

        Raises
        ------
        Unsupported
            Unless the block overrides it, and :meth:`unmirror`.
        """
        raise Unsupported(
            f"{self!r} gives no mirror coordinates: override mirror() and unmirror(), or use an oracle without memory "
            "of several anchors, such as MirrorProx or SMD."
        )

    def unmirror(self, m: Array) -> tuple[Array, Array]:
        r"""Return the :math:`\alpha` whose mirror coordinates are m, and s: the inverse of :meth:`mirror`.

        A point of A need not have them: :math:`h - \langle m,\cdot\rangle + s = B(\cdot, \alpha)` on A is enough.

        Raises
        ------
        Unsupported
            Unless the block overrides it.
        """
        raise Unsupported(f"{self!r} gives no mirror coordinates: override mirror() and unmirror().")

    def cvxpy_divergence(self, cp: Any, a: Any, y: Any, anchor: Any) -> Any:
        r"""Return the cvxpy expression of :math:`y\,B(a/y, \alpha')`; ``cp`` is the module.

        Raises
        ------
        Unsupported
            Unless the block overrides it.
        """
        raise Unsupported(f"{self!r} has no cvxpy form: override cvxpy_divergence() to compare with a reference.")

    def cvxpy_penalty(self, cp: Any, a: Any, y: Any) -> Any:
        r"""Return the cvxpy expression of :math:`y\,g(a/y)`.

        Raises
        ------
        Unsupported
            Unless the block overrides it.
        """
        raise Unsupported(f"{self!r} has no cvxpy form: override cvxpy_penalty() to compare with a reference.")

    def cvxpy_constraints(self, cp: Any, a: Any, y: Any) -> list[Any]:
        r"""Return the cvxpy constraints that say :math:`a \in y A`.

        Raises
        ------
        Unsupported
            Unless the block overrides it.
        """
        raise Unsupported(f"{self!r} has no cvxpy form: override cvxpy_constraints() to compare with a reference.")


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
        curvature = self._curvature.like(v)
        alpha = self.set.project((v + inverse_step * anchor) / (2.0 * curvature + inverse_step))
        moved = alpha - anchor
        cost = alpha * (curvature * alpha - v) + (0.5 * inverse_step) * (moved * moved)
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

    def mirror(self, alpha: Array) -> tuple[Array, Array]:
        """See :meth:`InnerBlock.mirror`."""
        return alpha, 0.5 * namespace(alpha).dot(alpha, alpha)

    def unmirror(self, m: Array) -> tuple[Array, Array]:
        """See :meth:`InnerBlock.unmirror`."""
        return self.mirror(m)

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

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.geometry import BoxBlock
    >>> best, value = BoxBlock([-1.0, 0.0], [1.0, 2.0]).maximize(np.array([-3.0, 4.0]))
    >>> float(value), best
    (11.0, array([-1.,  2.]))
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

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.geometry import BallBlock
    >>> best, value = BallBlock(2, 0.5).maximize(np.array([3.0, 4.0]))  # the norm of a vector, times the radius
    >>> float(value), best.round(2)
    (2.5, array([0.3, 0.4]))
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


class SimplexBlock(InnerBlock):
    r"""The simplex with :math:`\omega_A = KL(\alpha, \pi)` and :math:`g(\alpha) = \lambda\,KL(\alpha, \pi)`.

    The prior is the minimiser of :math:`\omega_A`, which differs from the entropy by a linear function only: the
    divergence is the Kullback-Leibler divergence whatever the prior.

    Parameters
    ----------
    dimension : int
        Number p of corners (groups, say).
    temperature : float
        :math:`\lambda`, at least 0.
    prior : array_like (p,), optional
        :math:`\pi`, positive and summing to 1; uniform by default.

    Raises
    ------
    InvalidInput
        If the temperature is negative or the prior is not a positive distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.geometry import SimplexBlock
    >>> best, value = SimplexBlock(3).maximize(np.array([1.0, 3.0, 2.0]))  # the largest entry
    >>> float(value), best
    (3.0, array([0., 1., 0.]))
    >>> best, value = SimplexBlock(3, temperature=1.0).maximize(np.array([1.0, 3.0, 2.0]))  # its smooth form
    >>> round(float(value), 3), best.round(2)
    (2.309, array([0.09, 0.67, 0.24]))
    """

    entropy_weight = 5.0 / 3.0
    radius = 1.0
    reach = 1.0

    def __init__(self, dimension: int, temperature: float = 0.0, prior: Any = None) -> None:
        self.set = Simplex(dimension)
        self.dimension = self.set.dimension
        remedy = "must be finite and at least 0."
        self.temperature = number("temperature", temperature, remedy, least=0.0)
        remedy = f"must hold {self.dimension} positive numbers that sum to 1."
        weights = self.set.center if prior is None else finite_array("prior", prior, remedy)
        if weights.shape != (self.dimension,) or not (weights > 0).all() or abs(weights.sum() - 1) > 1e-9:
            raise InvalidInput("prior", prior, remedy)
        self._prior, self._log_prior = Constant(weights), Constant(np.log(weights))

    @property
    def start(self) -> Any:
        """The prior."""
        return self._prior.value

    @property
    def maximum(self) -> float:
        r""":math:`-\ln\min_j\pi_j`, so :math:`\ln p` for the uniform prior."""
        return float(-np.log(self.start.min()))

    def value(self, alpha: Array) -> Array:
        """See :meth:`InnerBlock.value`."""
        return self.divergence(alpha, self._prior.like(alpha))

    def penalty(self, alpha: Array) -> Array:
        """See :meth:`InnerBlock.penalty`."""
        return self.temperature * self.value(alpha)

    def divergence(self, alpha: Array, anchor: Array) -> Array:
        """Return the Kullback-Leibler divergence."""
        return self.set.divergence(alpha, anchor)

    def prox(self, v: Array, anchor: Array, inverse_step: Array) -> tuple[Array, Array]:
        r"""Return :math:`\alpha \propto (\alpha'\pi^{\lambda\tau}e^{\tau v})^{1/(1 + \lambda\tau)}`, by log-sum-exp."""
        total = inverse_step + self.temperature
        logits = (inverse_step * safe_log(anchor) + self.temperature * self._log_prior.like(v) + v) / total
        # The value is -total * (logits - ln alpha), which is the same in every coordinate: the log of the normaliser.
        alpha, normaliser = softmax(logits)
        return alpha, -(total * normaliser)[..., 0]

    def maximize(self, v: Array) -> tuple[Array, Array]:
        """See :meth:`InnerBlock.maximize`."""
        if self.temperature == 0.0:
            lowest, corner = self.set.linear_minimum(-v)
            return corner, -lowest
        alpha, normaliser = softmax(self._log_prior.like(v) + v / self.temperature)
        return alpha, self.temperature * normaliser[..., 0]

    def mirror(self, alpha: Array) -> tuple[Array, Array]:
        r"""Return :math:`\ln\alpha` and 0: h is the entropy."""
        return safe_log(alpha), 0.0 * alpha[..., 0]

    def unmirror(self, m: Array) -> tuple[Array, Array]:
        r"""Return :math:`\alpha\propto e^m` and the logarithm of the normaliser."""
        alpha, normaliser = softmax(m)
        return alpha, normaliser[..., 0]

    def sample(self, rng: Any, count: int) -> Any:
        """See :meth:`InnerBlock.sample`."""
        return self.set.sample(rng, count)

    def cvxpy_divergence(self, cp: Any, a: Any, y: Any, anchor: Any) -> Any:
        """See :meth:`InnerBlock.cvxpy_divergence`."""
        return cp.sum(cp.rel_entr(a, y * anchor))

    def cvxpy_penalty(self, cp: Any, a: Any, y: Any) -> Any:
        """See :meth:`InnerBlock.cvxpy_penalty`."""
        return self.temperature * cp.sum(cp.rel_entr(a, y * self._prior.value)) if self.temperature else 0.0

    def cvxpy_constraints(self, cp: Any, a: Any, y: Any) -> list[Any]:
        """See :meth:`InnerBlock.cvxpy_constraints`."""
        return [a >= 0, cp.sum(a) == y]

    def __repr__(self) -> str:
        return f"SimplexBlock(dimension={self.dimension}, temperature={self.temperature:g})"
