"""Pairs of points between which functions are concave: quotients of gradients, and Hessian-vector products."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.core.constraint import ConstraintFamily, Evaluation
from minmaxcon.core.level import expectations
from minmaxcon.core.source import Source
from minmaxcon.geometry import DistanceGenerator, PerspectiveGenerator

__all__ = ["CurvatureSearch", "Pairs"]

_KEPT = 6
"""Pairs of each function that are refined."""

_STEP = {4: 1e-2, 8: 1e-4}
_ROUNDING = {4: 4e-6, 8: 1e-12}
"""Length of difference steps, and the allowance for rounding in a gradient, by the bytes of a number."""


@dataclass(frozen=True, eq=False, slots=True)
class Pairs:
    """Pairs (n, d) with the function (n,) and inner variables (n, p) of each, and what the quotient is."""

    x: Any
    y: Any
    function: Any
    alpha: Any
    modulus: Any

    def take(self, rows: Any) -> Pairs:
        """Return some of the pairs."""
        return Pairs(self.x[rows], self.y[rows], self.function[rows], self.alpha[rows], self.modulus[rows])

    def worst(self, count: int) -> Pairs:
        """Return the ``count`` worst pairs of each function."""
        order = np.lexsort((-self.modulus, self.function))
        place = np.arange(order.size) - np.searchsorted(self.function[order], self.function[order])
        return self.take(order[place < count])


class CurvatureSearch:
    """Quotients and Hessian-vector products of all functions of a problem, at ndarrays in float64.

    Parameters
    ----------
    family : ConstraintFamily
        The functions.
    primal : DistanceGenerator
        The set X.
    data : Source
        Finite data.
    rng : Generator
        For all draws.
    runs : int, optional
        Functions that differ from run to run take so many points at once: then one point after the other is handed to
        all runs, and the first run is looked at. By default all points are evaluated together, as so many runs.
    """

    def __init__(
        self, family: ConstraintFamily, primal: DistanceGenerator, data: Source, rng: Any, runs: int | None = None
    ) -> None:
        self.family, self.primal, self.data, self.rng, self.runs = family, primal, data, rng, runs
        self.dual = PerspectiveGenerator([function.dual for function in family.constraints])
        self.bytes = int(data.like.dtype.itemsize)
        self.reach = float(np.sqrt(2.0 * primal.squared_diameter))
        # Directions that leave the affine hull of a set, such as the simplex, are of no interest.
        self.span = None if primal.euclidean else _row_space(primal.sample(rng, 2 * primal.dimension + 2))

    def rounded(self, x: Any) -> Any:
        """Return points as the data's precision holds them."""
        xp = namespace(self.data.like)
        return np.asarray(to_numpy(xp.asarray(np.ascontiguousarray(x), self.data.like)), dtype=np.float64)

    def gradients(self, x: Any, function: Any, alpha: Any) -> Any:
        """Return the gradient (n, d) of one function at each point."""
        xp, like = namespace(self.data.like), self.data.like
        parts = []
        for rows, found in self.evaluated(x):
            weights = xp.asarray(np.eye(self.dual.levels)[function[rows]], like)
            scaled = self.dual.spread(weights) * xp.asarray(alpha[rows], like)
            parts.append(np.asarray(to_numpy(found.pullback(weights, scaled)), dtype=np.float64))
        return np.concatenate(parts) if self.runs is None else np.stack([part[0] for part in parts])

    def evaluated(self, x: Any) -> Iterator[tuple[Any, Evaluation]]:
        """Evaluate the functions: at all points, or at one after the other, repeated for each run."""
        xp, like, every = namespace(self.data.like), self.data.like, np.arange(len(x))
        for rows in [every] if self.runs is None else np.repeat(every[:, None], self.runs, axis=1):
            yield rows, expectations(self.family, xp.asarray(x[rows], like), self.data)

    def chords(self, centers: Any, pairs: int, near: float) -> tuple[Any, Any]:
        """Draw pairs of all lengths in the relative interior of X; where there are centers, near them."""
        inside = np.asarray(self.primal.center, dtype=np.float64)
        drawn = 0.9 * np.asarray(self.primal.sample(self.rng, 2 * pairs), dtype=np.float64) + 0.1 * inside
        x, y = drawn[:pairs], drawn[pairs:]
        share = 10.0 ** self.rng.uniform(-3.0, 0.0, (2, pairs, 1))
        if centers is not None:
            mine = centers[np.arange(pairs) % len(centers)]
            x, y = mine + near * share[0] * (x - mine), mine + near * (y - mine)
        return x, x + share[1] * (y - x)

    def worst_inner(self, x: Any, y: Any) -> Any:
        r"""Return the :math:`\alpha` (n, p) that is worst along chords, by second differences of E G."""
        if self.dual.inner_dimension == 0:
            return np.zeros((len(x), 0))
        xp, like = namespace(self.data.like), self.data.like
        points = np.concatenate([x, 0.5 * (x + y), y])
        parts = [np.asarray(to_numpy(found.G)) for _, found in self.evaluated(points)]
        moments = parts[0] if self.runs is None else np.stack([part[0] for part in parts])
        first, middle, last = np.split(moments, 3)
        bend = np.nan_to_num(2.0 * middle - first - last)
        bend = bend / np.maximum(np.abs(bend).max(axis=1, keepdims=True), 1e-300)
        # So long a linear term that the penalty counts for nothing: the maximiser is a corner of the set.
        return np.asarray(to_numpy(self.dual.stack.maximize(xp.asarray(1e6 * bend, like))[0]), dtype=np.float64)

    def judged(self, x: Any, y: Any, function: Any, alpha: Any) -> Pairs:
        """Return the pairs with their quotients; minus infinity where one is no pair of points of X."""
        x, y = self.rounded(x), self.rounded(y)
        g = self.gradients(np.concatenate([x, y]), np.tile(function, 2), np.tile(alpha, (2, 1)))
        first, second = g[: len(x)], g[len(x) :]
        chord, length = x - y, np.linalg.norm(x - y, axis=1)
        size = 1.0 + np.linalg.norm(first, axis=1) + np.linalg.norm(second, axis=1)
        drop = -np.vecdot(first - second, chord) - _ROUNDING[self.bytes] * size * length
        scale = np.vecdot(self.primal.gradient(x) - self.primal.gradient(y), chord)
        valid = (scale > 0) & np.isfinite(drop) & self.primal.contains(x, 1e-9) & self.primal.contains(y, 1e-9)
        modulus = np.where(valid, drop / np.where(valid, scale, 1.0), -np.inf)
        return Pairs(x, y, function, alpha, modulus)

    def first(self, x: Any, y: Any) -> Pairs:
        """Return the worst of the drawn pairs for each function."""
        count = self.dual.levels
        function = np.repeat(np.arange(count), len(x))
        alpha = np.tile(self.worst_inner(x, y), (count, 1))
        return self.judged(np.tile(x, (count, 1)), np.tile(y, (count, 1)), function, alpha).worst(_KEPT)

    def refined(self, pairs: Pairs, share: float, products: int = 8, moves: int = 6) -> Pairs:
        """Return the worst pairs after a refinement, the old ones among them.

        Parameters
        ----------
        pairs : Pairs
            What is refined.
        share : float
            How far points may move, as a share of the size of X.
        products : int
            Hessian-vector products, each two gradients of every pair.
        moves : int
            Places near each pair that are tried with the direction found.
        """
        middle, function = 0.5 * (pairs.x + pairs.y), pairs.function
        step = _STEP[self.bytes] * (1.0 + np.linalg.norm(middle, axis=1, keepdims=True))
        step = np.minimum(step, 0.01 * self.reach)
        along = self.direction(middle, function, pairs.alpha, pairs.x - pairs.y, step, products)
        alpha = self.worst_inner(middle - step * along, middle + step * along)
        moved = np.concatenate([middle, *(middle + self.move(along, share) for _ in range(moves))])
        many = 1 + moves
        along, step, function = np.tile(along, (many, 1)), np.tile(step, (many, 1)), np.tile(function, many)
        found = self.judged(moved + step * along, moved - step * along, function, np.tile(alpha, (many, 1)))
        return _joined([pairs, found]).worst(_KEPT)

    def direction(self, x: Any, function: Any, alpha: Any, first: Any, step: Any, products: int) -> Any:
        """Return unit directions (n, d) of most negative curvature, by Lanczos' method with full orthogonalisation."""
        basis, images, alive = [_unit(self.within(first))], [], []
        for _ in range(min(products, self.primal.dimension)):
            ends = np.concatenate([x + step * basis[-1], x - step * basis[-1]])
            g = self.gradients(ends, np.tile(function, 2), np.tile(alpha, (2, 1)))
            image = self.within(np.nan_to_num(g[: len(x)] - g[len(x) :]) / (2.0 * step))
            images.append(image)
            alive.append(np.linalg.norm(basis[-1], axis=1) > 0.5)
            rest = image
            for vector in (*basis, *basis):  # twice, as once leaves rounding errors
                rest = rest - np.vecdot(rest, vector)[:, None] * vector
            small = np.linalg.norm(rest, axis=1) <= 1e-9 * np.linalg.norm(image, axis=1)
            basis.append(np.where(small[:, None], 0.0, _unit(rest)))
        vectors = np.stack(basis[:-1], axis=1)
        matrix = np.stack(images, axis=1) @ np.swapaxes(vectors, 1, 2)
        matrix = 0.5 * (matrix + np.swapaxes(matrix, 1, 2))
        # A basis that has become complete goes on with zeros, which must not be chosen.
        large = 1.0 + 2.0 * np.abs(matrix).max(axis=(1, 2))
        matrix[:, range(len(alive)), range(len(alive))] += large[:, None] * ~np.stack(alive, axis=1)
        least = np.linalg.eigh(matrix)[1][:, :, 0]
        return _unit(np.einsum("nk,nkd->nd", least, vectors))

    def move(self, along: Any, share: float) -> Any:
        """Draw displacements (n, d): along the directions, or in any."""
        drawn = _unit(self.within(self.rng.standard_normal(along.shape)))
        length = share * self.reach * 10.0 ** self.rng.uniform(-2.0, -0.3, (len(along), 1))
        return length * np.where(self.rng.random((len(along), 1)) < 0.5, along * self.rng.choice([-1.0, 1.0]), drawn)

    def within(self, directions: Any) -> Any:
        """Return directions without what leaves the affine hull of X."""
        return directions if self.span is None else directions @ self.span.T @ self.span


def _joined(parts: Sequence[Pairs]) -> Pairs:
    """Return the pairs of all parts."""
    names = ("x", "y", "function", "alpha", "modulus")
    return Pairs(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _unit(directions: Any) -> Any:
    return directions / np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-300)


def _row_space(points: Any) -> Any:
    """Return orthonormal rows that span the differences of points."""
    _, sizes, rows = np.linalg.svd(points[1:] - points[:-1], full_matrices=False)
    return rows[sizes > 1e-9 * max(float(sizes.max(initial=0.0)), 1e-300)]
