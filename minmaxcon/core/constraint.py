"""One stochastic min-max constraint, and families of constraints that are evaluated together."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from minmaxcon.arrays import Array, namespace
from minmaxcon.core.source import Batch, Source
from minmaxcon.errors import InvalidInput, Unsupported
from minmaxcon.geometry import InnerBlock

__all__ = ["ConstraintFamily", "Evaluation", "SeparateFamily", "StochasticMinMaxConstraint", "family_of"]


@dataclass(frozen=True, slots=True)
class Evaluation:
    r"""Batch means of one or several constraints at x, and their gradient on demand.

    Attributes
    ----------
    F : array (..., k)
        Batch means of F, one per constraint (no last axis for a single constraint).
    G : array (..., p)
        Batch means of G, the inner variables of all constraints joined.
    pullback : callable
        ``pullback(y, a)`` with y (..., k) and a (..., p) gives the gradient in x, shape (..., d), of
        :math:`\sum_i y_i F_i + \langle a, G\rangle`.
    """

    F: Array
    G: Array
    pullback: Callable[[Array, Array], Array]


class StochasticMinMaxConstraint(ABC):
    r"""A maximum over inner variables of an expectation, and its bound.

    .. math:: f(x) = \max_{\alpha\in A} E F(x;z) + \langle\alpha, E\,G(x;z)\rangle - g(\alpha) \le b

    A plug-in implements :meth:`terms`. With torch arrays the gradient then comes from autograd; with NumPy arrays, or
    for speed, it also overrides :meth:`evaluate`. Constraints of one class may be evaluated together by overriding
    :meth:`fuse`.

    Attributes
    ----------
    bound : float or array (R,)
        b in :math:`f(x) \le b`; for the objective it is the level, set by the solver.
    dual : InnerBlock or None
        The inner set A with generator and penalty g; None when there are no inner variables.
    weak_convexity : float
        A modulus :math:`\rho` such that :math:`E F + \langle\alpha, E\,G\rangle + \frac\rho2|x|^2` is convex for every
        :math:`\alpha`; 0 for convex constraints, infinite where it is not known. Lower bounds are claimed only where
        the proximal term is at least as strong.
    name : str
        What reports call the constraint.
    """

    bound: Any = 0.0
    dual: InnerBlock | None = None
    weak_convexity: float = 0.0
    name: str = "constraint"

    @abstractmethod
    def terms(self, x: Array, batch: Batch) -> tuple[Array, Array | None]:
        """Batch means of F, shape (...,), and of G, shape (..., p), or None when ``dual`` is None.

        Parameters
        ----------
        x : array (..., d)
            One point or one per run.
        batch : mapping
            The source's arrays, samples along the first axis. Each sample must enter with weight 1/B, whatever its
            group, so that the mean over any batch is unbiased.
        """

    def evaluate(self, x: Array, batch: Batch) -> Evaluation:
        """Evaluate :meth:`terms` with a pullback; autograd where arrays are torch.

        Raises
        ------
        Unsupported
            If the arrays are not torch tensors and the class does not override this method.
        """
        if namespace(x).name != "torch":
            raise Unsupported(
                f"{type(self).__name__} gives no gradient for {namespace(x).name} arrays: override evaluate(), or load "
                "the problem with engine='torch' to use autograd."
            )
        import torch

        with torch.enable_grad():
            point = x.detach().requires_grad_(True)
            mean, moment = self.terms(point, batch)

        def pullback(y: Array, a: Array) -> Array:
            total = (y * mean).sum() if moment is None else (y * mean).sum() + (a * moment).sum()
            (gradient,) = torch.autograd.grad(
                total, point, retain_graph=True, allow_unused=True, materialize_grads=True
            )
            return gradient

        empty = mean.new_zeros((*mean.shape, 0))
        return Evaluation(mean.detach(), empty if moment is None else moment.detach(), pullback)

    @classmethod
    def fuse(cls, constraints: Sequence[Any]) -> ConstraintFamily:
        """Return one object that evaluates several constraints of this class; one after the other by default."""
        return SeparateFamily(constraints)

    def with_bound(self, bound: Any) -> Self:
        """Return a copy with another bound."""
        other = copy.copy(self)
        other.bound = bound
        return other

    def cvxpy_value(self, cp: Any, x: Any, data: Source) -> Any:
        """The cvxpy expression of f(x) on finite data, for the reference solver; ``cp`` is the module.

        Raises
        ------
        Unsupported
            Unless the plug-in overrides it.
        """
        raise Unsupported(
            f"{type(self).__name__} has no cvxpy form: override cvxpy_value() to compare with a reference."
        )


class ConstraintFamily(ABC):
    """Constraints that are evaluated together.

    Parameters
    ----------
    constraints : sequence of StochasticMinMaxConstraint
        In the order of the levels.
    """

    def __init__(self, constraints: Sequence[StochasticMinMaxConstraint]) -> None:
        self.constraints = tuple(constraints)

    @abstractmethod
    def evaluate(self, x: Array, batch: Batch) -> Evaluation:
        """Batch means F (..., k), G (..., p) and the pullback of all constraints."""

    def refine(self, x: Array, data: Source) -> Array:
        """Return a point that is no worse in any constraint: variables whose minimiser is known in closed form are set.

        The default returns x itself.
        """
        return x

    def lagrangian_minimizer(self, y: Any, a: Any, data: Source, center: Any = None, weight: float = 0.0) -> Any | None:
        r"""Return a minimiser over x of :math:`\sum_i y_i E F_i + \langle a, E\,G\rangle + d_x`, if one is at hand.

        Parameters
        ----------
        y : ndarray (k,)
            Weights of the constraints.
        a : ndarray (p,)
            Scaled inner variables.
        data : Source
            Finite data.
        center : ndarray (d,), optional
            Centre of the proximal term.
        weight : float
            Weight of the proximal term.

        Returns
        -------
        ndarray (d,) or None
            Any point of the primal set will do, the better the tighter: the bound drawn from it is checked. None (the
            default) leaves the search to a general method.
        """
        return None


class SeparateFamily(ConstraintFamily):
    """The default: each constraint evaluated by itself."""

    def evaluate(self, x: Array, batch: Batch) -> Evaluation:
        """See :meth:`ConstraintFamily.evaluate`."""
        xp = namespace(x)
        parts = [constraint.evaluate(x, batch) for constraint in self.constraints]
        sizes = [0 if constraint.dual is None else constraint.dual.dimension for constraint in self.constraints]
        lead = tuple(x.shape[:-1])
        for constraint, part, size in zip(self.constraints, parts, sizes, strict=True):
            if part.F.shape != lead or part.G.shape != (*lead, size):  # a wrong shape would be broadcast silently
                raise InvalidInput(
                    f"terms of {constraint.name}",
                    (tuple(part.F.shape), tuple(part.G.shape)),
                    f"F must have shape {lead} and G {(*lead, size)}: one value a run, then the inner variables.",
                )

        def pullback(y: Array, a: Array) -> Array:
            total, begin = None, 0
            for i, (part, size) in enumerate(zip(parts, sizes, strict=True)):
                gradient = part.pullback(y[..., i], a[..., begin : begin + size])
                if gradient.shape != x.shape:
                    shape = tuple(gradient.shape)
                    name = f"pullback of {self.constraints[i].name}"
                    raise InvalidInput(name, shape, f"must have the shape of x, {tuple(x.shape)}.")
                total, begin = gradient if total is None else total + gradient, begin + size
            return total

        return Evaluation(xp.stack([part.F for part in parts]), xp.concat([part.G for part in parts]), pullback)


class _JoinedFamily(ConstraintFamily):
    """Families of several classes, their results put back into the order of the levels."""

    def __init__(self, constraints: Sequence[Any], groups: Mapping[Any, Sequence[int]]) -> None:
        super().__init__(constraints)
        self.families = [key.fuse([constraints[i] for i in indices]) for key, indices in groups.items()]
        owner = np.repeat(np.arange(len(constraints)), [0 if c.dual is None else c.dual.dimension for c in constraints])
        # Arrays of whole numbers: an empty list would become an array of floats, which indexes nothing.
        self.groups = [np.array(indices, dtype=np.intp) for indices in groups.values()]
        self.inner = [np.concatenate([np.flatnonzero(owner == i) for i in group]) for group in self.groups]
        self._level_order = np.argsort(np.concatenate(self.groups))
        self._inner_order = np.argsort(np.concatenate(self.inner))

    def evaluate(self, x: Array, batch: Batch) -> Evaluation:
        """See :meth:`ConstraintFamily.evaluate`."""
        xp = namespace(x)
        parts = [family.evaluate(x, batch) for family in self.families]

        def pullback(y: Array, a: Array) -> Array:
            pulled = [
                part.pullback(xp.take(y, levels), xp.take(a, inner))
                for part, levels, inner in zip(parts, self.groups, self.inner, strict=True)
            ]
            return sum(pulled[1:], start=pulled[0])

        return Evaluation(
            xp.take(xp.concat([part.F for part in parts]), self._level_order),
            xp.take(xp.concat([part.G for part in parts]), self._inner_order),
            pullback,
        )

    def refine(self, x: Array, data: Source) -> Array:
        """See :meth:`ConstraintFamily.refine`; a shared variable could help one class and harm another, so x stays."""
        return x


def family_of(constraints: Sequence[StochasticMinMaxConstraint]) -> ConstraintFamily:
    """Return the family that evaluates ``constraints``, fused by class.

    Parameters
    ----------
    constraints : sequence of StochasticMinMaxConstraint
        In the order of the levels.

    Returns
    -------
    ConstraintFamily
        The class's own where all are of one class; otherwise one family a class, results put back in order.
    """
    groups: dict[Any, list[int]] = {}
    for i, constraint in enumerate(constraints):
        groups.setdefault(type(constraint), []).append(i)
    if len(groups) == 1:
        return type(constraints[0]).fuse(constraints)
    return _JoinedFamily(constraints, groups)
