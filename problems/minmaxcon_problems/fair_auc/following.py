r"""Constraints that follow the true AUC gap from a proximal point on, in its own unit and from single samples."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import Array, Constant, namespace, to_numpy

from .frozen import FrozenDistributions

__all__ = ["FollowedLoss", "FollowingAUC", "FollowingFamily"]


class FollowingAUC(mm.StochasticMinMaxConstraint):
    r"""One side of the followed gap, :math:`\pm(M_s(G_1, G_1') - M_s(G_2, G_2')) \le b`, without inner variables.

    A batch carries ``features`` (B, p) and ``subsets`` (B, 4), the entries :math:`1_G/\Pr(G)`.

    Parameters
    ----------
    model : Model
        The scoring model, whose parameters come first in x.
    frozen : FrozenDistributions
        The distributions at the proximal points of R runs.
    sign : float
        1.0 or -1.0.
    bound : float or array (R,)
        b, in the unit of the AUC.
    name : str
        For reports.
    modulus : float
        A modulus of weak convexity, infinite where none is known.
    """

    def __init__(
        self,
        model: mm.Model,
        frozen: FrozenDistributions,
        sign: float,
        bound: Any = 0.0,
        name: str = "AUC gap",
        modulus: float = float("inf"),
    ) -> None:
        self.model, self.frozen, self.sign, self.bound, self.name = model, frozen, float(sign), bound, name
        self.weak_convexity = modulus

    def terms(self, x: Array, batch: mm.Batch) -> tuple[Array, None]:
        """See :meth:`minmaxcon.StochasticMinMaxConstraint.terms`."""
        return self.evaluate(x, batch).F, None

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        """See :meth:`minmaxcon.StochasticMinMaxConstraint.evaluate`; closed-form slopes in the scores."""
        found = FollowingFamily([self]).evaluate(x, batch)
        return mm.Evaluation(found.F[..., 0], found.G, lambda y, a: found.pullback(y[..., None], a))

    @classmethod
    def fuse(cls, constraints: Sequence[FollowingAUC]) -> FollowingFamily:
        """Both sides read the tables once."""
        return FollowingFamily(constraints)

    def take(self, runs: Any) -> FollowingAUC:
        """Return the constraint of some of the runs."""
        other = copy.copy(self)
        other.frozen = self.frozen.take(runs)
        return other


class FollowingFamily(mm.ConstraintFamily):
    """The sides of one followed gap, evaluated together."""

    def __init__(self, constraints: Sequence[FollowingAUC]) -> None:
        super().__init__(constraints)
        self.model, self.frozen = constraints[0].model, constraints[0].frozen
        if any(other.frozen is not self.frozen for other in constraints):
            raise mm.Unsupported("sides of one problem must follow the same distributions: make them together.")
        self._signs = Constant([constraint.sign for constraint in constraints])

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        """See :meth:`minmaxcon.ConstraintFamily.evaluate`."""
        xp = namespace(x)
        size = self.model.dimension
        scores, score_pullback = self.model.evaluate(x[..., :size], batch["features"])
        read = np.asarray(to_numpy(scores), dtype=np.float64)
        values, slopes = self.frozen.follow(np.atleast_2d(read), np.asarray(to_numpy(batch["subsets"])))
        value = xp.asarray(values.reshape(read.shape[:-1]), x)
        slope = xp.asarray(slopes.reshape(read.shape), x)
        signs = self._signs.like(x)

        def pullback(y: Array, _a: Array) -> Array:
            gradient = score_pullback((y @ signs)[..., None] * slope)
            return xp.concat([gradient, xp.zeros((*x.shape[:-1], x.shape[-1] - size), x)])

        return mm.Evaluation(value[..., None] * signs, xp.zeros((*x.shape[:-1], 0), x), pullback)


class FollowedLoss(mm.StochasticMinMaxConstraint):
    r"""The loss :math:`1 - M_s(D_+, D_-)`, which follows one minus the AUC from a proximal point on.

    A batch carries ``features`` (B, p) and ``weights`` (B, 2), the entries :math:`1_G/\Pr(G)` of the two classes.

    Parameters
    ----------
    model : Model
        The scoring model, whose parameters come first in x.
    frozen : FrozenDistributions
        The distributions of the classes' scores at the proximal points of R runs.
    """

    name = "one minus the AUC"

    def __init__(self, model: mm.Model, frozen: FrozenDistributions) -> None:
        self.model, self.frozen = model, frozen
        self.weak_convexity = float("inf")

    def terms(self, x: Array, batch: mm.Batch) -> tuple[Array, None]:
        """See :meth:`minmaxcon.StochasticMinMaxConstraint.terms`."""
        return self.evaluate(x, batch).F, None

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        """See :meth:`minmaxcon.StochasticMinMaxConstraint.evaluate`; closed-form slopes in the scores."""
        xp, size = namespace(x), self.model.dimension
        scores, score_pullback = self.model.evaluate(x[..., :size], batch["features"])
        read = np.asarray(to_numpy(scores), dtype=np.float64)
        values, slopes = self.frozen.follow(np.atleast_2d(read), np.asarray(to_numpy(batch["weights"])), (-1.0,))
        value = 1.0 + xp.asarray(values.reshape(read.shape[:-1]), x)
        slope = xp.asarray(slopes.reshape(read.shape), x)

        def pullback(y: Array, _a: Array) -> Array:
            gradient = score_pullback(y[..., None] * slope)
            return xp.concat([gradient, xp.zeros((*x.shape[:-1], x.shape[-1] - size), x)])

        return mm.Evaluation(value, xp.zeros((*x.shape[:-1], 0), x), pullback)
