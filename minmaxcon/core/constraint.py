"""One stochastic min-max constraint, and families of constraints that are evaluated together."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from minmaxcon.arrays import Array, Namespace, namespace
from minmaxcon.checks import number
from minmaxcon.core.source import Batch, Source
from minmaxcon.errors import InvalidInput, Unsupported
from minmaxcon.geometry import InnerBlock

__all__ = [
    "ConstraintFamily",
    "Evaluation",
    "SeparateFamily",
    "StochasticMinMaxConstraint",
    "WrappedFamily",
    "family_of",
]


@dataclass(frozen=True, eq=False, slots=True)
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

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> z = np.array([1.0, 3.0])
    >>> x = np.array([0.5])
    >>> found = mm.Evaluation(0.5 * (x - z[:, None]) ** 2, x[..., :0], lambda y, a: y * (x - z.mean()))
    >>> found.pullback(np.array([1.0]), np.zeros(0))
    array([-1.5])
    """

    F: Array
    G: Array
    pullback: Callable[[Array, Array], Array]


class StochasticMinMaxConstraint:
    r"""A maximum over inner variables of an expectation, and its bound.

    .. math:: f(x) = \max_{\alpha\in A} E F(x;z) + \langle\alpha, E\,G(x;z)\rangle - g(\alpha) \le b

    A plug-in gives :meth:`terms` or :meth:`evaluate`, and each follows from the other: with torch arrays the gradient
    comes from autograd through :meth:`terms`, and so it does with ``engine="jax"``; with NumPy arrays, or for speed,
    :meth:`evaluate` gives it. Constraints
    of one class may be evaluated together by overriding :meth:`fuse`.

    Attributes
    ----------
    bound : float or array (R,)
        b in :math:`f(x) \le b`; for the objective it is the level, set by the solver.
    dual : InnerBlock or None
        The inner set A with generator and penalty g; None when there are no inner variables.
    convex : bool
        Whether :math:`E F + \langle\alpha, E\,G\rangle` is convex in x for every :math:`\alpha` in A. Nothing is
        claimed by default, and without the claim there is no lower bound: declare ``convex = True`` where it is.
    weak_convexity : float
        A modulus :math:`\rho` such that :math:`E F + \langle\alpha, E\,G\rangle + \frac\rho2|x|^2` is convex for every
        :math:`\alpha`; infinite, the default, where none is known. Lower bounds are claimed only where a proximal term
        is at least as strong. It is left alone where ``convex`` is True.
    name : str
        What reports call the constraint.

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> class MeanGap(mm.StochasticMinMaxConstraint):  # |E <x, z>| = max of a E <x, z> over a in [-1, 1]
    ...     name, convex, dual, bound = "mean gap", True, mm.interval(1.0), 0.1
    ...     def evaluate(self, x, batch):
    ...         mean = batch["z"].mean(0)
    ...         return mm.Evaluation(0.0 * x[..., 0], (x @ mean)[..., None], lambda y, a: a * mean)
    >>> found = MeanGap().evaluate(np.array([1.0, 0.0]), {"z": np.array([[0.5, 2.0], [1.5, 0.0]])})
    >>> found.G  # the maximum over a in [-1, 1] is its absolute value
    array([1.])
    """

    bound: Any = 0.0
    dual: InnerBlock | None = None
    convex: bool = False
    weak_convexity: float = math.inf
    name: str = "constraint"

    @property
    def modulus(self) -> float:
        r"""The modulus :math:`\rho` that is declared: 0 where ``convex``, else ``weak_convexity``."""
        return 0.0 if self.convex else float(self.weak_convexity)

    def terms(self, x: Array, batch: Batch) -> tuple[Array, Array | None]:
        """Batch means of F, shape (...,), and of G, shape (..., p), or None when ``dual`` is None.

        Those of :meth:`evaluate` by default.

        Parameters
        ----------
        x : array (..., d)
            One point or one per run.
        batch : mapping
            The source's arrays, samples along the first axis. Each sample must enter with weight 1/B, whatever its
            group, so that the mean over any batch is unbiased.

        Raises
        ------
        Unsupported
            If the class gives neither this method nor :meth:`evaluate`.
        """
        if type(self).__mro__[_giver(self, "evaluate")] is StochasticMinMaxConstraint:
            raise Unsupported(f"{type(self).__name__} gives neither terms() nor evaluate(): define one of them.")
        found = self.evaluate(x, batch)
        return found.F, None if self.dual is None else found.G

    def evaluate(self, x: Array, batch: Batch) -> Evaluation:
        """Evaluate :meth:`terms` with a pullback by the automatic derivatives of torch or JAX.

        Raises
        ------
        Unsupported
            If the engine of the arrays has no automatic derivatives and the class does not override this method.
        InvalidInput
            If :meth:`terms` does not return a pair of arrays of the right shapes that depend on x; the constraint is
            named.
        """
        xp, lead = namespace(x), tuple(x.shape[:-1])
        if xp.differentiate is None:
            raise Unsupported(
                f"{type(self).__name__} gives no gradient for {xp.name} arrays: define evaluate(), or make the data "
                "with engine='torch' or engine='jax' for automatic derivatives, as in Finite(arrays, engine='torch')."
            )

        def function(point: Array) -> tuple[Array, Array]:
            mean, moment = self._checked_terms(self.terms(point, batch), lead, xp)
            return mean, xp.zeros((*lead, 0), x) if moment is None else moment

        (mean, moment), pull = xp.differentiate(function, x)
        if pull is None:
            remedy = (
                "autograd sees no dependence on x: compute it from x without detach(), numpy(), item() or comparisons,"
                " whose steps have no slope; what counts by steps is a TrueMeasure of a RefreshedProblem."
            )
            raise InvalidInput(f"terms of {self.name}", "detached", remedy)
        return Evaluation(mean, moment, lambda y, a: pull((y, a)))

    def _checked_terms(self, found: Any, lead: tuple[int, ...], xp: Namespace) -> tuple[Array, Array | None]:
        """Refuse what :meth:`terms` must not return; on this path autograd costs a hundred times as much."""
        argument = f"terms of {self.name}"
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise InvalidInput(argument, found, "must return a pair (F, G); G is None without inner variables.")
        mean, moment = found
        for name, part in (("F", mean), ("G", moment)):
            if namespace(part) is not xp and not (name == "G" and part is None):
                need = f"must be an array of {xp.name}, computed from x without detours."
                raise InvalidInput(argument, part, f"{name} {need}")
        _check_shapes(self, tuple(mean.shape), (*lead, 0) if moment is None else tuple(moment.shape), lead)
        return mean, moment

    @classmethod
    def fuse(cls, constraints: Sequence[Any]) -> ConstraintFamily:
        """Return one object that evaluates several constraints of this class; one after the other by default.

        A subclass inherits it only where it adds nothing but data and methods that no evaluation rests on
        (``__init__``, ``__repr__``, :meth:`cvxpy_value`, :meth:`with_bound`); otherwise each is evaluated by itself.
        """
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

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> level = mm.load_problem("toy").at_level(1.5)
    >>> batch = {"target": np.array([2.0]), "shift": np.array([0.5])}
    >>> found = level.family.evaluate(np.array([1.0]), batch)
    >>> found.F.round(2), found.G.round(2)
    (array([0.5, 0. ]), array([0.5]))
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

    def knows_means(self, data: Source) -> bool:
        """Tell whether :meth:`means` gives the exact means over these finite data; by default it does not."""
        return False

    def means(self, x: Array, data: Source) -> Evaluation:
        """Return what :meth:`evaluate` gives of all rows at once, from sums that were made of them once.

        It is asked only where :meth:`knows_means` holds; an exact evaluation then costs no pass.
        """
        raise Unsupported(f"{type(self).__name__} knows no means: override means() where knows_means() holds.")

    def lagrangian_minimizer(self, y: Any, a: Any, data: Source, center: Any = None, weight: Any = 0.0) -> Any | None:
        r"""Return minimisers over x of :math:`\sum_i y_i E F_i + \langle a, E\,G\rangle + d_x`, if they are at hand.

        Parameters
        ----------
        y : ndarray (R, k)
            Weights of the constraints.
        a : ndarray (R, p)
            Scaled inner variables.
        data : Source
            Finite data.
        center : ndarray (R, d), optional
            Centres of the proximal term.
        weight : float or ndarray (R,)
            Its weight.

        Returns
        -------
        ndarray (R, d) or None
            Any points of the primal set will do, the better the tighter: the bounds drawn from them are checked. None
            (the default) leaves the search to a general method.
        """
        return None


class WrappedFamily(ConstraintFamily):
    """A family that evaluates the functions of another in its own way, and knows the means and minimisers it knows.

    One whose functions are not those of the other overrides :meth:`means` and :meth:`lagrangian_minimizer` too.

    Parameters
    ----------
    family : ConstraintFamily
        The other.
    constraints : sequence of StochasticMinMaxConstraint, optional
        What is declared of the functions, by default what the other family declares.

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> from minmaxcon.core import WrappedFamily
    >>> class Counted(WrappedFamily):
    ...     calls = 0
    ...
    ...     def evaluate(self, x, batch):
    ...         self.calls += 1
    ...         return self.family.evaluate(x, batch)
    >>> counted = Counted(mm.load_problem("toy").family)
    >>> found = counted.evaluate(np.array([1.0]), {"target": np.array([2.0]), "shift": np.array([0.5])})
    >>> found.F.round(2), counted.calls
    (array([0.5, 0. ]), 1)
    """

    def __init__(
        self, family: ConstraintFamily, constraints: Sequence[StochasticMinMaxConstraint] | None = None
    ) -> None:
        super().__init__(family.constraints if constraints is None else constraints)
        self.family = family

    def refine(self, x: Array, data: Source) -> Array:
        """See :meth:`ConstraintFamily.refine`."""
        return self.family.refine(x, data)

    def knows_means(self, data: Source) -> bool:
        """See :meth:`ConstraintFamily.knows_means`."""
        return self.family.knows_means(data)

    def means(self, x: Array, data: Source) -> Evaluation:
        """See :meth:`ConstraintFamily.means`."""
        return self.family.means(x, data)

    def lagrangian_minimizer(self, y: Any, a: Any, data: Source, center: Any = None, weight: Any = 0.0) -> Any | None:
        """See :meth:`ConstraintFamily.lagrangian_minimizer`."""
        return self.family.lagrangian_minimizer(y, a, data, center, weight)


class SeparateFamily(ConstraintFamily):
    """The default: each constraint evaluated by itself."""

    def evaluate(self, x: Array, batch: Batch) -> Evaluation:
        """See :meth:`ConstraintFamily.evaluate`."""
        xp = namespace(x)
        parts = []
        for constraint in self.constraints:
            try:
                parts.append(constraint.evaluate(xp.shown(x), batch))
            except ValueError as error:
                _check_write(f"evaluate of {constraint.name}", error)
                raise
        sizes = [_inner_dimension(constraint) for constraint in self.constraints]
        lead = tuple(x.shape[:-1])
        for constraint, part, size in zip(self.constraints, parts, sizes, strict=True):
            try:
                fits = part.F.shape == lead and part.G.shape == (*lead, size)
                fits = fits and part.F.dtype == x.dtype == part.G.dtype
            except AttributeError:
                need = "must return an Evaluation(F, G, pullback) of two arrays and a function."
                raise InvalidInput(f"evaluate of {constraint.name}", part, need) from None
            if not fits:  # a wrong shape would be broadcast silently
                _check_shapes(constraint, tuple(part.F.shape), tuple(part.G.shape), lead)
                check_real(f"F of {constraint.name}", part.F, "evaluate gives F")
                check_real(f"G of {constraint.name}", part.G, "evaluate gives G", whole=True)

        def pullback(y: Array, a: Array) -> Array:
            total, begin = None, 0
            for i, (part, size) in enumerate(zip(parts, sizes, strict=True)):
                try:
                    gradient = part.pullback(y[..., i], a[..., begin : begin + size])
                except ValueError as error:
                    _check_write(f"pullback of {self.constraints[i].name}", error)
                    raise
                if getattr(gradient, "shape", None) != x.shape:
                    found = tuple(gradient.shape) if hasattr(gradient, "shape") else gradient
                    name = f"pullback of {self.constraints[i].name}"
                    raise InvalidInput(name, found, f"must be an array of the shape of x, {tuple(x.shape)}.")
                if getattr(gradient, "dtype", None) != x.dtype:
                    name = f"pullback of {self.constraints[i].name}"
                    check_real(name, gradient, "pullback gives a gradient", whole=True)
                total, begin = gradient if total is None else total + gradient, begin + size
            return total

        return Evaluation(xp.stack([part.F for part in parts]), xp.concat([part.G for part in parts]), pullback)


def differentiated(constraints: Sequence[StochasticMinMaxConstraint]) -> bool:
    """Tell whether a function gives terms alone, so that its gradient comes from automatic derivatives."""
    base = [type(one).__mro__.index(StochasticMinMaxConstraint) for one in constraints]
    return any(_giver(one, "evaluate") >= place for one, place in zip(constraints, base, strict=True))


def check_function(constraint: StochasticMinMaxConstraint) -> None:
    """Refuse a function without values, with two that may differ, or whose declared convexity contradicts itself."""
    own, base = type(constraint).__name__, type(constraint).__mro__.index(StochasticMinMaxConstraint)
    terms, evaluate = _giver(constraint, "terms"), _giver(constraint, "evaluate")
    if min(terms, evaluate) >= base:
        raise InvalidInput(constraint.name, own, "gives neither terms() nor evaluate(): define one of them.")
    if terms < evaluate < base:
        raise InvalidInput(
            f"terms of {constraint.name}",
            own,
            "overrides terms(), but the inherited evaluate() need not use it: override evaluate() as well.",
        )
    _check_convexity(constraint)


def _giver(constraint: StochasticMinMaxConstraint, method: str) -> int:
    """Return the place, in the order in which methods are looked up, of the class that gives one; -1: the object."""
    if method in getattr(constraint, "__dict__", {}):
        return -1
    return next(i for i, owner in enumerate(type(constraint).__mro__) if method in vars(owner))


def _check_convexity(constraint: StochasticMinMaxConstraint) -> None:
    convex: Any = constraint.convex
    modulus: Any = constraint.weak_convexity
    if not isinstance(convex, bool | np.bool_):
        raise InvalidInput(f"convex of {constraint.name}", convex, "must be True or False.")
    if isinstance(modulus, float | np.floating) and modulus == math.inf:
        return
    name = f"weak_convexity of {constraint.name}"
    found = number(name, modulus, "must be a modulus of at least 0, or infinite where none is known.", least=0.0)
    if convex and found > 0:
        raise InvalidInput(name, modulus, "contradicts convex = True; declare one of them.")


def _inner_dimension(constraint: StochasticMinMaxConstraint) -> int:
    return 0 if constraint.dual is None else int(constraint.dual.dimension)


def _check_write(name: str, error: ValueError) -> None:
    """Name the function that writes into rows or points, which NumPy refuses namelessly."""
    if not isinstance(error, InvalidInput) and "read-only" in str(error):
        remedy = "rows and points cannot be written into: copy them first, as in batch[name].copy()."
        raise InvalidInput(name, str(error), remedy) from error


def _check_shapes(constraint: Any, mean: Any, moment: Any, lead: tuple[int, ...]) -> None:
    need = (*lead, _inner_dimension(constraint))
    if mean != lead or moment != need:
        said = f"F must have shape {lead} and G {need}: one value a run, then the inner variables."
        raise InvalidInput(f"terms of {constraint.name}", (mean, moment), said)


def check_real(name: str, values: Any, said: str, whole: bool = False) -> None:
    """Refuse values that are no array of real numbers: complex ones would lose their second part.

    Where they are added to others they may be ``whole`` numbers, else they are of floating point.
    """
    kind = getattr(values, "dtype", type(values).__name__)
    kinds, words = ("fiub", ("float", "int", "bool")) if whole else ("f", ("float",))
    if getattr(kind, "kind", "none") not in kinds and not any(word in str(kind) for word in words):
        need = f"{said} of type {kind}: it must be an array of real numbers, float32 or float64."
        raise InvalidInput(name, kind, need)


def check_evaluation(family: ConstraintFamily, found: Evaluation, lead: tuple[int, ...]) -> None:
    """Refuse means that are not one F a constraint and one G an inner variable, in the name of the constraints.

    So it is where a subclass adds a dual set to constraints that are evaluated together without one.
    """
    levels, inner = len(family.constraints), sum(map(_inner_dimension, family.constraints))
    need = (*lead, levels), (*lead, inner)
    if (found.F.shape, found.G.shape) != need:
        names = ", ".join(repr(constraint.name) for constraint in family.constraints)
        seen = tuple(found.F.shape), tuple(found.G.shape)
        said = f"F must have shape {need[0]} and G {need[1]}, by the constraints' dual sets: override evaluate() too."
        raise InvalidInput(f"evaluate of the family of {names}", seen, said)


class _JoinedFamily(ConstraintFamily):
    """Families of several classes, their results put back into the order of the levels."""

    def __init__(self, constraints: Sequence[Any], groups: Mapping[Any, Sequence[int]]) -> None:
        super().__init__(constraints)
        self.families = [_fuse(key, [constraints[i] for i in indices]) for key, indices in groups.items()]
        owner = np.repeat(np.arange(len(constraints)), [_inner_dimension(c) for c in constraints])
        # Arrays of whole numbers: an empty list would become an array of floats, which indexes nothing.
        self.groups = [np.array(indices, dtype=np.intp) for indices in groups.values()]
        self.inner = [np.concatenate([np.flatnonzero(owner == i) for i in group]) for group in self.groups]
        self._level_order = np.argsort(np.concatenate(self.groups))
        self._inner_order = np.argsort(np.concatenate(self.inner))

    def evaluate(self, x: Array, batch: Batch) -> Evaluation:
        """See :meth:`ConstraintFamily.evaluate`."""
        xp = namespace(x)
        parts = [family.evaluate(x, batch) for family in self.families]
        lead = tuple(x.shape[:-1])
        for family, part, levels, inner in zip(self.families, parts, self.groups, self.inner, strict=True):
            if part.F.shape != (*lead, levels.size) or part.G.shape != (*lead, inner.size):
                check_evaluation(family, part, lead)

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
        The class's own where all are of one class; otherwise one family a class, results put back in order. A
        constraint that changes what its parent's family would compute is evaluated by itself.
    """
    groups: dict[Any, list[int]] = {}
    for i, constraint in enumerate(constraints):
        groups.setdefault(type(constraint) if _fused(constraint) else None, []).append(i)
    if len(groups) == 1:
        return _fuse(next(iter(groups)), constraints)
    return _JoinedFamily(constraints, groups)


_HARMLESS = {"__init__", "__repr__", "cvxpy_value", "with_bound"}
"""Methods that a subclass may define, and still be evaluated by the family of its parent."""


def _fused(constraint: StochasticMinMaxConstraint) -> bool:
    """Return whether nothing that is called has changed since the class that gives ``fuse``."""
    mro = type(constraint).__mro__
    since = [vars(owner) for owner in mro[: _giver(constraint, "fuse")]]
    defined = {name for members in since for name, member in members.items() if callable(member) or _bound(member)}
    shadowed = {name for name in getattr(constraint, "__dict__", {}) if callable(getattr(type(constraint), name, None))}
    return not (defined | shadowed) - _HARMLESS


def _bound(member: Any) -> bool:
    """Return whether a member of a class computes what it gives: a property, a class or static method."""
    return hasattr(type(member), "__get__")


def _fuse(key: Any, constraints: Sequence[Any]) -> ConstraintFamily:
    return SeparateFamily(constraints) if key is None else key.fuse(constraints)
