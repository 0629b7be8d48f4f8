"""The product of geometries, on slices of one flat vector."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, Constant, namespace
from minmaxcon.errors import InvalidInput
from minmaxcon.geometry.base import DistanceGenerator, EuclideanGenerator

__all__ = ["EuclideanProduct", "Product", "product"]


def _geometries(parts: Sequence[Any]) -> tuple[DistanceGenerator, ...]:
    if not isinstance(parts, Iterable):
        raise InvalidInput("parts", parts, "must be a sequence of geometries.")
    found = tuple(parts)
    if not found:
        raise InvalidInput("parts", parts, "a product needs at least one geometry.")
    for part in found:
        if not isinstance(part, DistanceGenerator):
            raise InvalidInput("parts", part, "is no geometry; every part must be a DistanceGenerator.")
    return found


class _Slices:
    """The parts of a product and where each lies in the flat vector."""

    parts: tuple[Any, ...]
    slices: tuple[slice, ...]
    dimension: int
    _center: Constant
    _plan: tuple[tuple[Any, Any], ...]  # each part and the index of its slice of the last axis

    def _arrange(self, parts: Sequence[Any]) -> None:
        self.parts = _geometries(parts)
        ends = np.cumsum([part.dimension for part in self.parts]).tolist()
        self.slices = tuple(slice(end - part.dimension, end) for part, end in zip(self.parts, ends, strict=True))
        self._plan = tuple((part, (..., cut)) for part, cut in zip(self.parts, self.slices, strict=True))
        self.dimension = ends[-1]
        self._center = Constant(np.concatenate([part.center for part in self.parts]))

    @property
    def center(self) -> Any:
        """The centres of the parts, joined, shape (d,)."""
        return self._center.value

    @property
    def squared_diameter(self) -> float:
        """The sum over the parts."""
        return float(sum(part.squared_diameter for part in self.parts))

    def linear_minimum(self, g: Array) -> tuple[Array, Array]:
        """Return the sum of the parts' minima, and the minimisers joined."""
        found = [part.linear_minimum(g[where]) for part, where in self._plan]
        return sum(value for value, _ in found), namespace(g).concat([point for _, point in found])

    def inequalities(self, u: Array) -> tuple[Array, Array]:
        """Return those of all parts, each with zeros where the other parts' slices lie."""
        xp = namespace(u)
        values, gradients = [], []
        for part, where in self._plan:
            value, gradient = part.inequalities(u[where])
            whole = xp.zeros((*gradient.shape[:-1], self.dimension), u)
            whole[where] = gradient
            values.append(value)
            gradients.append(whole)
        axis = np.cumsum([0, *(int(value.shape[-1]) for value in values)])
        joined = xp.zeros((*u.shape[:-1], int(axis[-1]), self.dimension), u)
        for begin, end, whole in zip(axis[:-1], axis[1:], gradients, strict=True):
            joined[..., begin:end, :] = whole
        return xp.concat(values), joined

    def contains(self, u: Array, tolerance: float = 1e-9) -> Array:
        """Tell whether every part contains its slice."""
        inside = [part.contains(u[where], tolerance) for part, where in self._plan]
        result = inside[0]
        for more in inside[1:]:
            result = result & more
        return result

    def holds(self, u: Array) -> Array:
        """See :meth:`DistanceGenerator.holds`."""
        return np.logical_and.reduce([part.holds(u[where]) for part, where in self._plan])

    def sample(self, rng: Any, count: int) -> Any:
        """Join independent samples of the parts."""
        return np.concatenate([part.sample(rng, count) for part in self.parts], axis=-1)

    def cvxpy_value(self, cp: Any, u: Any) -> Any:
        """Return the sum over the parts."""
        return sum(part.cvxpy_value(cp, u[cut]) for part, cut in zip(self.parts, self.slices, strict=True))

    def cvxpy_constraints(self, cp: Any, u: Any) -> list[Any]:
        """Return the constraints of all parts."""
        cuts = zip(self.parts, self.slices, strict=True)
        return [constraint for part, cut in cuts for constraint in part.cvxpy_constraints(cp, u[cut])]

    def __repr__(self) -> str:
        return f"product([{', '.join(map(repr, self.parts))}])"


class EuclideanProduct(_Slices, EuclideanGenerator):
    """A product whose parts are all Euclidean: one vector step for all, then the projection of each slice.

    Parameters
    ----------
    parts : sequence of EuclideanGenerator
        The parts, in the order of their slices.

    Raises
    ------
    InvalidInput
        If there is no part, or one is not Euclidean.

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> both = mm.product([mm.Ball(2, 1.0), mm.Box([0.0], [1.0])])
    >>> type(both).__name__, both.project(np.array([3.0, 4.0, 5.0])).round(2)
    ('EuclideanProduct', array([0.6, 0.8, 1. ]))
    """

    def __init__(self, parts: Sequence[DistanceGenerator]) -> None:
        self._arrange(parts)
        for part in self.parts:
            if not part.euclidean:
                raise InvalidInput("parts", part, "is not Euclidean; use product(parts), which takes any geometries.")

    def project(self, u: Array) -> Array:
        """Project each slice, in place where arrays can be written into."""
        xp = namespace(u)
        if xp.traced:
            return xp.concat([part.project(u[where]) for part, where in self._plan])
        for part, where in self._plan:
            piece = u[where]
            projected = part.project(piece)
            if projected is not piece:  # the same object was projected in place, or already lay inside
                u[where] = projected
        return u


class Product(_Slices, DistanceGenerator):
    r"""The product of any geometries: :math:`\omega(u) = \sum_i \omega_i(u_i)`, norm :math:`(\sum_i |u_i|_i^2)^{1/2}`.

    Parameters
    ----------
    parts : sequence of DistanceGenerator
        The parts, in the order of their slices.

    Raises
    ------
    InvalidInput
        If there is no sequence of parts, no part in it, or one is no geometry.

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> both = mm.product([mm.Simplex(2), mm.Box([0.0], [1.0])])
    >>> type(both).__name__, both.center
    ('Product', array([0.5, 0.5, 0.5]))
    """

    def __init__(self, parts: Sequence[DistanceGenerator]) -> None:
        self._arrange(parts)

    def value(self, u: Array) -> Array:
        """Return the sum over the parts."""
        return sum(part.value(u[where]) for part, where in self._plan)

    def gradient(self, u: Array) -> Array:
        """Join the parts' gradients."""
        return namespace(u).concat([part.gradient(u[where]) for part, where in self._plan])

    def divergence(self, u: Array, v: Array) -> Array:
        """Return the sum over the parts."""
        return sum(part.divergence(u[where], v[where]) for part, where in self._plan)

    def prox(
        self, anchor: Array, gradient: Array, step: Array, *, center: Array | None = None, weight: Array = 0.0
    ) -> Array:
        """Solve part by part: the terms are separable."""
        joined = [
            part.prox(
                anchor[where],
                gradient[where],
                step,
                center=None if center is None else center[where],
                weight=weight,
            )
            for part, where in self._plan
        ]
        return namespace(anchor).concat(joined)

    def norm(self, u: Array) -> Array:
        """Return the root of the sum of the parts' squared norms."""
        return namespace(u).sqrt(self.squared_norm(u))

    def dual_norm(self, g: Array) -> Array:
        """Return the root of the sum of the parts' squared dual norms."""
        return namespace(g).sqrt(self.squared_dual_norm(g))

    def squared_norm(self, u: Array) -> Array:
        """Return the sum of the parts' squared norms."""
        return sum(part.squared_norm(u[where]) for part, where in self._plan)

    def squared_dual_norm(self, g: Array) -> Array:
        """Return the sum of the parts' squared dual norms."""
        return sum(part.squared_dual_norm(g[where]) for part, where in self._plan)


def product(parts: Sequence[Any]) -> DistanceGenerator:
    """Return the product of geometries in its fastest form.

    Parameters
    ----------
    parts : sequence of DistanceGenerator
        The parts, in the order of their slices; a single part is returned as it is.

    Returns
    -------
    DistanceGenerator
        One Euclidean step and projections of slices where every part is Euclidean; else part by part.

    Raises
    ------
    InvalidInput
        If there is no part, or one is no geometry.
    """
    found = _geometries(parts)
    if len(found) == 1:
        return found[0]
    return EuclideanProduct(found) if all(part.euclidean for part in found) else Product(found)
