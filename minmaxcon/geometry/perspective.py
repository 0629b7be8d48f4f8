r"""The KL-plus-perspective distance generator for any levels and any inner blocks.

.. math:: \omega_y(y, a) = K\Big(\sum_i y_i\ln y_i + \ln k\Big) + \sum_i y_i\,\omega_i(a_i/y_i)

on :math:`y` in the simplex of k levels and :math:`a_i \in y_i A_i`. The state keeps :math:`\ln y` and
:math:`\alpha_i = a_i/y_i`, so that nothing is divided by a vanishing :math:`y_i`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, cast

import numpy as np

from minmaxcon.arrays import Array, Constant, namespace
from minmaxcon.checks import instances, number
from minmaxcon.errors import InvalidInput
from minmaxcon.geometry.blocks import BoxBlock, InnerBlock
from minmaxcon.geometry.simplex import log_softmax, safe_log

__all__ = ["DualPoint", "EntropyWeight", "PerspectiveGenerator", "entropy_weight_bound"]

EntropyWeight = float | Literal["free", "theorem", "paper"]
"""K as a number, or by the rule that sets it."""


class BlockStack(ABC):
    """The inner variables of all k levels joined in one vector of length p.

    Parameters
    ----------
    blocks : sequence of InnerBlock or None
        One per level.

    Attributes
    ----------
    owner : ndarray (p,)
        The level of each variable.
    """

    def __init__(self, blocks: Sequence[InnerBlock | None]) -> None:
        self.blocks = tuple(blocks)
        sizes = [0 if block is None else block.dimension for block in blocks]
        self.owner = np.repeat(np.arange(len(sizes)), sizes)

    @abstractmethod
    def prox(self, v: Array, anchor: Array, inverse_step: Array) -> tuple[Array, Array]:
        """Return every block's :meth:`InnerBlock.prox`: variables (..., p) and values (..., k)."""

    @abstractmethod
    def maximize(self, v: Array) -> tuple[Array, Array]:
        """Return every block's :meth:`InnerBlock.maximize`: variables (..., p) and values (..., k)."""

    @abstractmethod
    def mirror(self, alpha: Array) -> tuple[Array, Array]:
        """Return every block's :meth:`InnerBlock.mirror`: variables (..., p) and numbers (..., k)."""

    @abstractmethod
    def unmirror(self, m: Array) -> tuple[Array, Array]:
        """Return every block's :meth:`InnerBlock.unmirror`: variables (..., p) and numbers (..., k)."""

    @abstractmethod
    def penalty(self, alpha: Array) -> Array:
        """Return every block's penalty, shape (..., k)."""

    @abstractmethod
    def value(self, alpha: Array) -> Array:
        """Return every block's generator, shape (..., k)."""

    @abstractmethod
    def divergence(self, alpha: Array, anchor: Array) -> Array:
        """Return every block's divergence, shape (..., k)."""


class BoxStack(BlockStack):
    """Boxes with quadratic penalties: elementwise formulas, and one product with the 0/1 owner matrix."""

    def __init__(self, blocks: Sequence[BoxBlock | None]) -> None:
        super().__init__(blocks)
        boxes = [block for block in blocks if block is not None]

        def join(parts: list[Any]) -> Constant:
            return Constant(np.concatenate(parts) if parts else np.zeros(0))

        self._lower = join([block.set.lower for block in boxes])
        self._upper = join([block.set.upper for block in boxes])
        self._start = join([block.start for block in boxes])
        self._curvature = join([block.curvature for block in boxes])
        self._twice = Constant(2.0 * self._curvature.value)
        self._flat = Constant(self._curvature.value == 0)
        self._any_flat = bool(self._flat.value.any())
        self._owner = Constant(np.eye(len(self.blocks))[self.owner].reshape(self.owner.size, len(self.blocks)))

    def prox(self, v: Array, anchor: Array, inverse_step: Array) -> tuple[Array, Array]:
        """See :meth:`BlockStack.prox`."""
        xp = namespace(v)
        free = (v + inverse_step * anchor) / (self._twice.row(v) + inverse_step)
        alpha = xp.clip(free, self._lower.row(v), self._upper.row(v))
        moved = alpha - anchor
        cost = alpha * (self._curvature.row(v) * alpha - v) + (0.5 * inverse_step) * (moved * moved)
        return alpha, xp.matmul(cost, self._owner.like(v))

    def maximize(self, v: Array) -> tuple[Array, Array]:
        """See :meth:`BlockStack.maximize`."""
        xp = namespace(v)
        curvature, low, high = self._curvature.like(v), self._lower.like(v), self._upper.like(v)
        flat = self._flat.like(v)
        alpha = xp.clip(v / (self._twice.like(v) + flat), low, high)
        if self._any_flat:
            alpha = xp.where(flat > 0, xp.where(v >= 0, high, low), alpha)
        return alpha, (alpha * (v - curvature * alpha)) @ self._owner.like(v)

    def mirror(self, alpha: Array) -> tuple[Array, Array]:
        """See :meth:`BlockStack.mirror`."""
        return alpha, (0.5 * alpha * alpha) @ self._owner.like(alpha)

    def unmirror(self, m: Array) -> tuple[Array, Array]:
        """See :meth:`BlockStack.unmirror`."""
        return self.mirror(m)

    def penalty(self, alpha: Array) -> Array:
        """See :meth:`BlockStack.penalty`."""
        return (self._curvature.like(alpha) * alpha * alpha) @ self._owner.like(alpha)

    def value(self, alpha: Array) -> Array:
        """See :meth:`BlockStack.value`."""
        return self.divergence(alpha, self._start.like(alpha))

    def divergence(self, alpha: Array, anchor: Array) -> Array:
        """See :meth:`BlockStack.divergence`."""
        return (0.5 * (alpha - anchor) ** 2) @ self._owner.like(alpha)


class MixedStack(BlockStack):
    """Blocks of any kind, one after the other."""

    def __init__(self, blocks: Sequence[InnerBlock | None]) -> None:
        super().__init__(blocks)
        self._plan: list[tuple[InnerBlock, Any]] = []  # each block and the index of its variables
        begin = 0
        for block in self.blocks:
            if block is not None:
                self._plan.append((block, (..., slice(begin, begin + block.dimension))))
                begin += block.dimension

    def _per_level(self, values: list[Array], like: Array) -> Array:
        xp = namespace(like)
        found = iter(values)
        plain = xp.zeros(tuple(like.shape[:-1]), like)
        return xp.stack([plain if block is None else next(found) for block in self.blocks])

    def _both(self, results: list[tuple[Array, Array]], like: Array) -> tuple[Array, Array]:
        xp = namespace(like)
        return xp.concat([alpha for alpha, _ in results]), self._per_level([value for _, value in results], like)

    def prox(self, v: Array, anchor: Array, inverse_step: Array) -> tuple[Array, Array]:
        """See :meth:`BlockStack.prox`."""
        return self._both([b.prox(v[where], anchor[where], inverse_step) for b, where in self._plan], v)

    def maximize(self, v: Array) -> tuple[Array, Array]:
        """See :meth:`BlockStack.maximize`."""
        return self._both([b.maximize(v[where]) for b, where in self._plan], v)

    def mirror(self, alpha: Array) -> tuple[Array, Array]:
        """See :meth:`BlockStack.mirror`."""
        return self._both([b.mirror(alpha[where]) for b, where in self._plan], alpha)

    def unmirror(self, m: Array) -> tuple[Array, Array]:
        """See :meth:`BlockStack.unmirror`."""
        return self._both([b.unmirror(m[where]) for b, where in self._plan], m)

    def penalty(self, alpha: Array) -> Array:
        """See :meth:`BlockStack.penalty`."""
        return self._per_level([b.penalty(alpha[where]) for b, where in self._plan], alpha)

    def value(self, alpha: Array) -> Array:
        """See :meth:`BlockStack.value`."""
        return self._per_level([b.value(alpha[where]) for b, where in self._plan], alpha)

    def divergence(self, alpha: Array, anchor: Array) -> Array:
        """See :meth:`BlockStack.divergence`."""
        return self._per_level([b.divergence(alpha[where], anchor[where]) for b, where in self._plan], alpha)


def stack_blocks(blocks: Sequence[InnerBlock | None]) -> BlockStack:
    """Return the fastest stack for these blocks.

    Parameters
    ----------
    blocks : sequence of InnerBlock or None
        One per level.

    Returns
    -------
    BlockStack
        :class:`BoxStack` where every block is a box (or there is none), else :class:`MixedStack`.
    """
    kinds = {type(block) for block in blocks if block is not None}
    if not kinds:
        return _no_blocks(len(blocks))
    if kinds == {BoxBlock}:
        return BoxStack(cast("Sequence[BoxBlock | None]", blocks))
    return MixedStack(blocks)


@lru_cache(maxsize=64)
def _no_blocks(levels: int) -> BlockStack:
    """Return the stack of levels without inner variables, which solvers ask for at every evaluation."""
    return BoxStack([None] * levels)


@dataclass(frozen=True, slots=True, eq=False)
class DualPoint:
    r"""A point of the dual set.

    Attributes
    ----------
    log_weights : array (..., k)
        :math:`\ln y`.
    weights : array (..., k)
        y, in the simplex.
    inner : array (..., p)
        :math:`\alpha`, the inner variables of all levels joined (not multiplied by y).

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> generator = mm.PerspectiveGenerator([None, mm.interval(1.0)])
    >>> point = generator.center(np.zeros(3))  # of a problem in 3 variables
    >>> point.weights, point.inner
    (array([0.5, 0.5]), array([0.]))
    """

    log_weights: Array
    weights: Array
    inner: Array


def entropy_weight_bound(blocks: Sequence[InnerBlock | None]) -> float:
    r"""Return the least K for which the theorem proves 1-strong convexity.

    Parameters
    ----------
    blocks : sequence of InnerBlock or None
        The inner block of each level; None for a plain expectation.

    Returns
    -------
    float
        The largest :attr:`InnerBlock.entropy_weight`: :math:`1 + \max_i I_i^2\mu_i/(2\mu_i - 1)`, where a simplex
        with entropy needs no more than 5/3.

    Raises
    ------
    InvalidInput
        If blocks are none, or a block's generator has a modulus below 1, for which no K works.
    """
    found = instances(
        "blocks", blocks, (InnerBlock, type(None)), "must be a sequence of inner blocks, None among them."
    )
    return max((block.entropy_weight for block in found if block is not None), default=1.0)


def _entropy_weight(rule: EntropyWeight, blocks: Sequence[InnerBlock | None]) -> float:
    remedy = 'use a positive number, "free", "theorem" or "paper".'
    if not isinstance(rule, str):
        return number("entropy_weight", rule, remedy, above=0.0)
    if rule == "free":
        return 2.0
    if rule == "theorem":
        return entropy_weight_bound(blocks)
    if rule == "paper":
        single = max((block.reach for block in blocks if block is not None), default=0.0)
        return 2.0 * (1.0 + math.sqrt(2.0) * single) ** 2
    raise InvalidInput("entropy_weight", rule, remedy)


class PerspectiveGenerator:
    r"""The generator :math:`\omega_y` over levels with inner blocks.

    Parameters
    ----------
    blocks : sequence of InnerBlock or None
        One per level, in order; None where a level is a plain expectation.
    entropy_weight : float or {"free", "theorem", "paper"}
        K. ``"free"`` is 2, the default: no theorem is claimed for it, and it solves real problems best, because a large
        K makes the inner variables chase the noise of the batch. ``"theorem"`` is :func:`entropy_weight_bound`.
        ``"paper"`` is :math:`2(1 + \sqrt2 I)^2`, I the reach of a single inner variable.

    Attributes
    ----------
    levels : int
        Number k of levels.
    inner_dimension : int
        Number p of inner variables over all levels.
    entropy_weight : float
        K.
    owner : ndarray (p,)
        The level that each inner variable belongs to.

    Raises
    ------
    InvalidInput
        If there is no level, a block is no :class:`InnerBlock`, or K is not positive.

    Notes
    -----
    1-strongly convex in :math:`|(y, a)|^2 = |y|_1^2 + \sum_i |a_i|_2^2` when every :math:`\omega_i` has modulus
    :math:`\mu \ge 1` and :math:`K \ge 1 + I^2\mu/(2\mu - 1)`; tight.
    :math:`D^2 = K\ln k + \max_i\max_{A_i}\omega_i`, exactly: :math:`\omega_y` is convex, so its maximum is at a corner
    of the simplex.

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> generator = mm.PerspectiveGenerator([None, mm.BallBlock(2, 1.0)])  # a constraint has two inner variables
    >>> middle = generator.center(np.zeros(3))
    >>> middle.weights, float(generator.divergence(middle, middle))
    (array([0.5, 0.5]), 0.0)
    """

    rebuilt_from = ("blocks", "entropy_weight")

    def __init__(self, blocks: Sequence[InnerBlock | None], entropy_weight: EntropyWeight = "free") -> None:
        if not isinstance(blocks, Iterable):
            raise InvalidInput("blocks", blocks, "must be a sequence of inner blocks, one for each level.")
        self.blocks = tuple(blocks)
        if not self.blocks:
            raise InvalidInput("blocks", blocks, "there must be at least one level.")
        for block in self.blocks:
            if block is not None and not isinstance(block, InnerBlock):
                raise InvalidInput("blocks", block, "every level needs an InnerBlock, or None for a plain expectation.")
        self.levels = len(self.blocks)
        self.entropy_weight = _entropy_weight(entropy_weight, self.blocks)
        self.stack = stack_blocks(self.blocks)
        self.owner = self.stack.owner
        self.inner_dimension = int(self.owner.size)
        parts = [block.start for block in self.blocks if block is not None]
        self._start = Constant(np.concatenate(parts) if parts else np.zeros(0))

    @property
    def squared_diameter(self) -> float:
        r""":math:`K\ln k + \max_i\max_{A_i}\omega_i`."""
        inner = max((block.maximum for block in self.blocks if block is not None), default=0.0)
        return float(self.entropy_weight * np.log(self.levels) + inner)

    def center(self, like: Array) -> DualPoint:
        """Return uniform weights and the blocks' starting points, shaped and typed as the runs of ``like`` (..., d)."""
        xp = namespace(like)
        shape = tuple(like.shape[:-1])
        weights = xp.zeros((*shape, self.levels), like) + 1.0 / self.levels
        inner = xp.zeros((*shape, self.inner_dimension), like) + self._start.like(like)
        return DualPoint(xp.log(weights), weights, inner)

    def point(self, weights: Array, inner: Array) -> DualPoint:
        r"""Return the dual point of weights y and inner variables :math:`\alpha`."""
        return DualPoint(safe_log(weights), weights, inner)

    def warm(self, point: DualPoint, mixing: float) -> DualPoint:
        """Return ``point`` with its weights mixed with the uniform ones, so that no divergence from it is unbounded."""
        return self.point((1.0 - mixing) * point.weights + mixing / self.levels, point.inner)

    def spread(self, weights: Array) -> Array:
        """Return each inner variable's own level weight, shape (..., p)."""
        return namespace(weights).take(weights, self.owner)

    def scaled(self, point: DualPoint) -> Array:
        r"""Return :math:`a`, the inner variables multiplied by their level's weight, shape (..., p)."""
        return self.spread(point.weights) * point.inner

    def prox(self, anchor: DualPoint, u: Array, v: Array, step: Array) -> DualPoint:
        r"""Minimise :math:`-\langle u,y\rangle - \langle v,a\rangle + V_y/\tau + d_y` with :math:`d_y = \sum y_i g_i`.

        Parameters
        ----------
        anchor : DualPoint
            The point the divergence is taken from.
        u : array (..., k)
            Coefficients of the weights, bounds already subtracted.
        v : array (..., p)
            Coefficients of the scaled inner variables.
        step : float or array (..., 1)
            :math:`\tau > 0`.

        Returns
        -------
        DualPoint
            :math:`\alpha_i^\#` is the block's own prox with value :math:`\nu_i`, and
            :math:`y_i \propto y_i'\exp(\tau(u_i - \nu_i)/K)`.
        """
        inner, cost = self.stack.prox(v, anchor.inner, 1.0 / step)
        log_weights, weights = log_softmax(anchor.log_weights + (step / self.entropy_weight) * (u - cost))
        return DualPoint(log_weights, weights, inner)

    def support(self, u: Array, v: Array) -> Array:
        r"""Return each level's :math:`u_i + (g_i + \iota_{A_i})^*(v_i)`, shape (..., k).

        Their maximum is :math:`\max_{(y,a)} \langle u,y\rangle + \langle v,a\rangle - d_y`.
        """
        return u + self.stack.maximize(v)[1]

    def penalty(self, point: DualPoint) -> Array:
        r"""Return :math:`d_y = \sum_i y_i g_i(\alpha_i)`, shape (...,)."""
        return namespace(point.weights).dot(point.weights, self.stack.penalty(point.inner))

    def value(self, point: DualPoint) -> Array:
        r"""Return :math:`\omega_y`, shape (...,)."""
        xp = namespace(point.weights)
        entropy = xp.dot(point.weights, point.log_weights) + float(np.log(self.levels))
        return self.entropy_weight * entropy + xp.dot(point.weights, self.stack.value(point.inner))

    def divergence(self, point: DualPoint, anchor: DualPoint) -> Array:
        r"""Return :math:`V_y = K\,KL(y, y') + \sum_i y_i B_i(\alpha_i, \alpha_i')`, shape (...,)."""
        xp = namespace(point.weights)
        relative = xp.dot(point.weights, point.log_weights - anchor.log_weights)
        return self.entropy_weight * relative + xp.dot(point.weights, self.stack.divergence(point.inner, anchor.inner))

    def squared_distance(self, first: DualPoint, second: DualPoint) -> Array:
        r"""Return :math:`|y - y'|_1^2 + \sum_i |a_i - a_i'|_2^2`, the squared norm of the theorem, shape (...,)."""
        xp = namespace(first.weights)
        offset = self.scaled(first) - self.scaled(second)
        return xp.sum(xp.abs(first.weights - second.weights)) ** 2 + xp.dot(offset, offset)

    def sample(self, rng: Any, count: int) -> DualPoint:
        """Draw ``count`` points from a NumPy generator: Dirichlet weights and each block's own sample."""
        weights = np.maximum(rng.dirichlet(np.full(self.levels, 0.7), count), 1e-12)
        weights /= weights.sum(axis=1, keepdims=True)
        parts = [block.sample(rng, count) for block in self.blocks if block is not None]
        inner = np.concatenate(parts, axis=1) if parts else np.zeros((count, 0))
        return DualPoint(np.log(weights), weights, inner)

    def __repr__(self) -> str:
        return f"PerspectiveGenerator(levels={self.levels}, entropy_weight={self.entropy_weight:g})"
