r"""A function and a linear one, :math:`f(x) + \langle C, x - \tilde x\rangle`, as a constraint and as a family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace
from minmaxcon.core import Batch, Evaluation, StochasticMinMaxConstraint
from minmaxcon.core.constraint import ConstraintFamily, family_of
from minmaxcon.core.source import Source

__all__ = ["Tilted"]


class Tilted(StochasticMinMaxConstraint):
    r"""A function and a linear one, :math:`f(x) + \langle C, x - \tilde x\rangle`.

    Parameters
    ----------
    base : StochasticMinMaxConstraint
        f, whose inner set, bound and modulus it takes.
    slope, center : ndarray (d,)
        C and :math:`\tilde x`.
    """

    def __init__(self, base: StochasticMinMaxConstraint, slope: Any, center: Any) -> None:
        self.base, self.slope, self.center = base, slope, center
        self.bound, self.dual, self.name = base.bound, base.dual, base.name
        self.convex, self.weak_convexity = base.convex, base.weak_convexity

    def evaluate(self, x: Array, batch: Batch) -> Evaluation:
        """See :meth:`StochasticMinMaxConstraint.evaluate`."""
        found = self.base.evaluate(x, batch)
        slope = namespace(x).asarray(self.slope, x)
        return Evaluation(found.F + self.added(x), found.G, lambda y, a: found.pullback(y, a) + y[..., None] * slope)

    def added(self, x: Array) -> Array:
        """Return the linear function at x (..., d)."""
        xp = namespace(x)
        return xp.dot(x - xp.asarray(self.center, x), xp.asarray(self.slope, x))

    @classmethod
    def fuse(cls, constraints: Sequence[Tilted]) -> ConstraintFamily:
        """Evaluate the functions together, and add the linear ones."""
        return _TiltedFamily(constraints)


class _TiltedFamily(ConstraintFamily):
    def __init__(self, constraints: Sequence[Tilted]) -> None:
        super().__init__(constraints)
        self._base = family_of([constraint.base for constraint in constraints])
        self._slopes = np.stack([constraint.slope for constraint in constraints], axis=1)  # (d, k)
        self._center = constraints[0].center

    def evaluate(self, x: Array, batch: Batch) -> Evaluation:
        """See :meth:`ConstraintFamily.evaluate`."""
        xp = namespace(x)
        found, slopes = self._base.evaluate(x, batch), xp.asarray(self._slopes, x)
        added = (x - xp.asarray(self._center, x)) @ slopes
        return Evaluation(found.F + added, found.G, lambda y, a: found.pullback(y, a) + y @ slopes.T)

    def refine(self, x: Array, data: Source) -> Array:
        """See :meth:`ConstraintFamily.refine`: variables with a known minimiser have no slope."""
        return self._base.refine(x, data)
