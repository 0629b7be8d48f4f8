"""Inner blocks of all levels in one vector: closed forms for every level at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from minmaxcon.arrays import Array, Constant, namespace
from minmaxcon.geometry.inner import InnerBlock
from minmaxcon.geometry.quadratic_blocks import BoxBlock

__all__ = ["BlockStack", "BoxStack", "MixedStack", "stack_blocks"]


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
        free = (v + inverse_step * anchor) / (self._twice.like(v) + inverse_step)
        alpha = xp.clip(free, self._lower.like(v), self._upper.like(v))
        moved = alpha - anchor
        cost = alpha * (self._curvature.like(v) * alpha - v) + (0.5 * inverse_step) * (moved * moved)
        return alpha, cost @ self._owner.like(v)

    def maximize(self, v: Array) -> tuple[Array, Array]:
        """See :meth:`BlockStack.maximize`."""
        xp = namespace(v)
        curvature, low, high = self._curvature.like(v), self._lower.like(v), self._upper.like(v)
        flat = self._flat.like(v)
        alpha = xp.clip(v / (self._twice.like(v) + flat), low, high)
        if self._any_flat:
            alpha = xp.where(flat > 0, xp.where(v >= 0, high, low), alpha)
        return alpha, (alpha * (v - curvature * alpha)) @ self._owner.like(v)

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
    if kinds <= {BoxBlock}:
        return BoxStack(cast("Sequence[BoxBlock | None]", blocks))
    return MixedStack(blocks)
