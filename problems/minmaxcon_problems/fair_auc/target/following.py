r"""Constraints that follow the true AUC gap from a proximal point on, in its own unit and from single samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        value, slopes_to_x = _followed(self.model, self.frozen, x, batch, "subsets", (1.0, -1.0))
        signs = self._signs.like(x)
        empty = namespace(x).zeros((*x.shape[:-1], 0), x)
        return mm.Evaluation(value[..., None] * signs, empty, lambda y, _a: slopes_to_x(y @ signs))


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
        value, slopes_to_x = _followed(self.model, self.frozen, x, batch, "weights", (-1.0,))
        empty = namespace(x).zeros((*x.shape[:-1], 0), x)
        return mm.Evaluation(1.0 + value, empty, lambda y, _a: slopes_to_x(y))


def _followed(
    model: mm.Model, frozen: FrozenDistributions, x: Array, batch: mm.Batch, name: str, signs: Sequence[float]
) -> tuple[Array, Callable[[Array], Array]]:
    r"""Return the batch mean (...,) of :math:`\sum_p s_p M_s` at x (..., d), and how a factor (...,) of it pulls back.

    Parameters
    ----------
    model : Model
        The scoring model, whose parameters come first in x; other variables get the gradient 0.
    frozen : FrozenDistributions
        Of P pairs.
    x : array (..., d)
        One point, or one per run.
    batch : mapping
        With ``features`` and, by ``name``, the entries :math:`1_G/\Pr(G)` of the pairs, (B, 2 P).
    name : str
        The name of these entries.
    signs : sequence of float (P,)
        :math:`s_p`.
    """
    xp, size = namespace(x), model.dimension
    scores, score_pullback = model.evaluate(x[..., :size], batch["features"])
    read = np.asarray(to_numpy(scores), dtype=np.float64)
    values, slopes = frozen.follow(np.atleast_2d(read), np.asarray(to_numpy(batch[name])), signs)
    slope = xp.asarray(slopes.reshape(read.shape), x)

    def to_x(factor: Array) -> Array:
        gradient = score_pullback(factor[..., None] * slope)
        return xp.concat([gradient, xp.zeros((*x.shape[:-1], x.shape[-1] - size), x)])

    return xp.asarray(values.reshape(read.shape[:-1]), x), to_x
