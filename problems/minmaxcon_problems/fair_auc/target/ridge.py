r"""Ridge penalties: the constraint that adds one, and what one does to an AUC, whose unit knows no size of w.

Ridge :math:`\tau` says that every feature is known up to noise of variance :math:`\tau` in each row. A quadratic loss
of differences of scores then gains :math:`2c_1\tau|w|^2`, which is ridge regression. An AUC, which no factor of w
changes, becomes that of noisy scores: to its smoothing with bandwidth :math:`\beta_0` the noise adds its own, of equal
variance,

.. math:: \beta^2 = \beta_0^2 + \frac{6}{\pi^2}\tau|w|^2,

since the logistic distribution of scale :math:`\beta` has the variance :math:`\pi^2\beta^2/3`, and a pair has noise
twice. For two normal classes the best w is that of ridge regression, :math:`(S + \tau I)^{-1}\delta`.

References
----------
C. Bishop, Training with noise is equivalent to Tikhonov regularization, Neural Computation 7 (1995).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import Array, namespace

__all__ = ["NOISE", "Ridged", "ridge_matrix"]

NOISE = 6.0 / np.pi**2
"""Square of the logistic scale that noise of unit variance in both scores of a pair amounts to."""


class Ridged(mm.StochasticMinMaxConstraint):
    r"""A function and a ridge penalty, :math:`f(x) + \frac\gamma2|w|^2`, where w is the first part of x.

    ``curvature`` is :math:`\gamma`, ``size`` the length of w; inner set, bound and convexity are those of ``base``.
    """

    def __init__(self, base: mm.StochasticMinMaxConstraint, curvature: float, size: int) -> None:
        self.base, self.ridge, self.size = base, float(curvature), size
        self.bound, self.dual, self.name = base.bound, base.dual, base.name
        self.convex, self.weak_convexity = base.convex, base.weak_convexity

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        """See :meth:`minmaxcon.StochasticMinMaxConstraint.evaluate`."""
        found = self.base.evaluate(x, batch)
        xp, w = namespace(x), x[..., : self.size]
        rest = xp.zeros((*x.shape[:-1], x.shape[-1] - self.size), x)

        def pullback(y: Array, a: Array) -> Array:
            return found.pullback(y, a) + y[..., None] * xp.concat([self.ridge * w, rest])

        return mm.Evaluation(found.F + 0.5 * self.ridge * xp.sum(w * w), found.G, pullback)

    @classmethod
    def fuse(cls, constraints: Sequence[Ridged]) -> mm.ConstraintFamily:
        """Return a family of one, which knows the minimisers that the base knows."""
        if len(constraints) > 1:
            raise mm.Unsupported("one objective has a ridge penalty: give constraints none.")
        return _RidgedFamily(constraints)


class _RidgedFamily(mm.ConstraintFamily):
    def __init__(self, constraints: Sequence[Ridged]) -> None:
        super().__init__(constraints)
        self._base = type(constraints[0].base).fuse([constraints[0].base])

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        """See :meth:`minmaxcon.ConstraintFamily.evaluate`."""
        one: Any = self.constraints[0]
        found = one.evaluate(x, batch)
        return mm.Evaluation(found.F[..., None], found.G, lambda y, a: found.pullback(y[..., 0], a))

    def refine(self, x: Array, data: mm.Source) -> Array:
        """See :meth:`minmaxcon.ConstraintFamily.refine`: the penalty is on none of the variables with a minimiser."""
        return self._base.refine(x, data)


def ridge_matrix(
    matrix: Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Any], curvature: float
) -> Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Any]:
    r"""Return a model of curvature to which the penalty's, :math:`\gamma` for each parameter, is added."""

    def added(jacobians: Sequence[Any], weights: Sequence[Any], scores: Sequence[Any]) -> Any:
        found, size = matrix(jacobians, weights, scores), jacobians[0].shape[1]
        found[np.arange(size), np.arange(size)] += curvature
        return found

    return added
