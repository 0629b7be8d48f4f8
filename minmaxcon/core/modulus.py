r"""The weak convexity modulus of a problem's functions, searched for from below.

.. math:: \rho \ge \frac{-\langle\nabla\phi(x) - \nabla\phi(y), x - y\rangle}
    {\langle\nabla\omega(x) - \nabla\omega(y), x - y\rangle},
    \qquad \phi = E F_i + \langle\alpha, E\,G_i\rangle
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.checks import finite_array, flag, seed_number, whole
from minmaxcon.core.constraint import ConstraintFamily, Evaluation
from minmaxcon.core.level import expectations
from minmaxcon.core.problem import MinMaxProblem, require_problem
from minmaxcon.core.source import Position, Source
from minmaxcon.errors import DataError, InvalidInput
from minmaxcon.geometry import DistanceGenerator, PerspectiveGenerator

__all__ = ["ModulusEstimate", "ModulusWitness", "estimate_modulus", "modulus_near"]

_NEAR = 0.03
"""How far a search near points goes, as a share of the size of X."""

_KEPT = 6
"""_Pairs of each function that are refined."""

_STEP = {4: 1e-2, 8: 1e-4}
_ROUNDING = {4: 4e-6, 8: 1e-12}
"""Length of difference steps, and the allowance for rounding in a gradient, by the bytes of a number."""


@dataclass(frozen=True, eq=False)
class ModulusWitness:
    r"""Two points between which a function is as concave as ``modulus`` says.

    .. math:: \frac{-\langle\nabla\phi(x) - \nabla\phi(y), x - y\rangle}
        {\langle\nabla\omega(x) - \nabla\omega(y), x - y\rangle} \ge \text{modulus},
        \qquad \phi = E F_i + \langle\alpha, E\,G_i\rangle

    On Euclidean sets the denominator is :math:`|x - y|^2`.

    Attributes
    ----------
    function : int
        i: 0 is the objective, 1 the first constraint.
    name : str
        The function's name.
    x, y : ndarray (d,)
        Points of X.
    alpha : ndarray (p_i,)
        The function's own inner variables.
    modulus : float
        The quotient less an allowance for rounding; negative where every pair looked at shows convexity.

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.core import ModulusWitness
    >>> found = ModulusWitness(0, "wave", np.array([0.0]), np.array([1.0]), np.zeros(0), 2.5)
    >>> found.name, found.modulus
    ('wave', 2.5)
    """

    function: int
    name: str
    x: Any
    y: Any
    alpha: Any
    modulus: float


@dataclass(frozen=True, eq=False)
class ModulusEstimate:
    r"""What a search found of the modulus :math:`\rho`: a lower bound, never an upper one.

    Attributes
    ----------
    value : float
        No modulus below this serves for all functions; at least 0.
    witnesses : tuple of ModulusWitness
        The worst pair found for each function, objective first.
    declared : ndarray (1 + m,)
        The modulus that each function declares; infinite where it declares none.
    exact : bool
        Whether gradients were taken over all of finite data. Over a block of a stream the witnesses are about the
        block's functions, and prove nothing of the expectations.
    samples : int
        Samples over which gradients were taken.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> found = mm.estimate_modulus(mm.load_problem("toy"))
    >>> found.value, found.exact, len(found.witnesses)
    (0.0, True, 2)
    """

    value: float
    witnesses: tuple[ModulusWitness, ...]
    declared: Any
    exact: bool
    samples: int

    @property
    def each(self) -> Any:
        """The lower bound of each function, an ndarray (1 + m,)."""
        return np.maximum([witness.modulus for witness in self.witnesses], 0.0)

    @property
    def witness(self) -> ModulusWitness:
        """The witness of :attr:`value`: the worst of all."""
        return max(self.witnesses, key=lambda witness: witness.modulus)

    @property
    def refuted(self) -> tuple[str, ...]:
        """Names of the functions whose witness contradicts what they declare."""
        # On sets that are not Euclidean a modulus in units of V is no larger than one in units of |x|^2 / 2.
        return tuple(w.name for w, claimed in zip(self.witnesses, self.declared, strict=True) if w.modulus > claimed)

    def __str__(self) -> str:
        over = "all samples" if self.exact else f"a block of {self.samples} samples, which proves nothing of the stream"
        text = f"rho >= {self.value:.4g} ({self.witness.name!r}, over {over})"
        return text + (f"; refuted: what {', '.join(map(repr, self.refuted))} declares" if self.refuted else "")


def estimate_modulus(
    problem: MinMaxProblem,
    *,
    around: Any = None,
    pairs: int = 32,
    rounds: int = 3,
    seed: int = 0,
    rows: int = 4096,
    together: bool = True,
) -> ModulusEstimate:
    r"""Search for the least :math:`\rho` with which every function is weakly convex, from below.

    :math:`\phi_i(x) + \rho V(x, \tilde x)` must be convex for every function i and all inner variables :math:`\alpha`
    in their set, :math:`\phi_i = E F_i + \langle\alpha, E\,G_i\rangle`. Random pairs of points give quotients of
    differences of gradients, with the :math:`\alpha` that is worst along the chord; the worst pairs are then refined by
    Lanczos' method on finite-difference Hessian-vector products and moved about.

    Parameters
    ----------
    problem : MinMaxProblem
        The problem; a proximal term is left out.
    around : array_like (d,) or (R, d), optional
        Look near these points only; everywhere in X by default.
    pairs : int
        Random pairs that the search begins with.
    rounds : int
        Refinements, each of some thirty gradients at six points of every function.
    seed : int
        Seed of the draws.
    rows : int
        Samples of the block that is read of a stream.
    together : bool
        Whether all points are evaluated together, as so many runs. False for functions that are made for one run, such
        as surrogates of an observation.

    Returns
    -------
    ModulusEstimate
        A lower bound on :math:`\rho` with the pair that proves it. That nothing was found proves nothing.

    Raises
    ------
    InvalidInput
        If an argument is out of range.
    DataError
        If the stream is empty.
    Unsupported
        If the problem's source is a stream that makes no blocks.

    Notes
    -----
    With :math:`\hat\rho` at or below this value, the proximal problems of :class:`minmaxcon.IQRC` are not all convex.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> found = mm.estimate_modulus(mm.load_problem("toy"))
    >>> found.value, found.refuted
    (0.0, ())
    """
    require_problem(problem)
    pairs, rounds, rows = whole("pairs", pairs), whole("rounds", rounds, 0), whole("rows", rows)
    rng = np.random.default_rng(seed_number("seed", seed))
    data = _finite(problem, rng, rows)
    runs = None if flag("together", together) else problem.runs or 1
    search = _CurvatureSearch(problem.family, problem.primal, data, rng, runs)
    x, y = search.chords(None if around is None else _points(problem.primal, around), pairs, _NEAR)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # such pairs are no witnesses
        best = search.first(x, y)
        for _ in range(rounds):
            best = search.refined(best, 1.0 if around is None else _NEAR)
    return _estimate(problem, data, best)


def modulus_near(problem: MinMaxProblem, x: Array) -> ModulusEstimate:
    """Look at a single pair near the first point, refined once: about ten gradients of each function, over finite data.

    Parameters
    ----------
    problem : MinMaxProblem
        The problem, on finite data.
    x : array (R, d)
        Points of X.

    Returns
    -------
    ModulusEstimate
        As :func:`estimate_modulus`, from far less.
    """
    points = np.asarray(to_numpy(x), dtype=np.float64)
    # Functions may have been made for these runs, and take so many points.
    search = _CurvatureSearch(problem.family, problem.primal, problem.data, np.random.default_rng(0), len(points))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        best = search.first(*search.chords(points, 1, _NEAR))
        best = search.refined(best, _NEAR, products=4, moves=0)
    return _estimate(problem, problem.data, best)


def _estimate(problem: MinMaxProblem, data: Source, pairs: _Pairs) -> ModulusEstimate:
    functions, witnesses = problem.family.constraints, []
    owner = np.repeat(np.arange(len(functions)), [0 if f.dual is None else f.dual.dimension for f in functions])
    for i, function in enumerate(functions):
        worst = pairs.worst(1).take([i])
        x, y, alpha = worst.x[0], worst.y[0], worst.alpha[0][owner == i]
        witnesses.append(ModulusWitness(i, function.name, x, y, alpha, float(worst.modulus[0])))
    return ModulusEstimate(
        value=max(0.0, *(witness.modulus for witness in witnesses)),
        witnesses=tuple(witnesses),
        declared=np.array([function.modulus for function in functions]),
        exact=problem.data.size is not None,
        samples=int(data.size or 0),
    )


def _finite(problem: MinMaxProblem, rng: np.random.Generator, rows: int) -> Source:
    if problem.data.size is not None:
        return problem.data
    block, _ = problem.data.block(Position.start(rng), rows)
    if block is None:
        raise DataError(problem.name, "the stream is empty: there is nothing to take gradients over.")
    return block


def _points(primal: DistanceGenerator, around: Any) -> Any:
    points = np.atleast_2d(finite_array("around", around, "must be finite points of the primal set."))
    if points.ndim != 2 or points.shape[1] != primal.dimension:
        raise InvalidInput("around", np.shape(around), f"must have shape ({primal.dimension},) or one row per point.")
    if not np.all(primal.holds(points)):
        raise InvalidInput("around", around, "must be finite points of the primal set.")
    return points


@dataclass(frozen=True, eq=False, slots=True)
class _Pairs:
    """_Pairs (n, d) with the function (n,) and inner variables (n, p) of each, and what the quotient is."""

    x: Any
    y: Any
    function: Any
    alpha: Any
    modulus: Any

    def take(self, rows: Any) -> _Pairs:
        """Return some of the pairs."""
        return _Pairs(self.x[rows], self.y[rows], self.function[rows], self.alpha[rows], self.modulus[rows])

    def worst(self, count: int) -> _Pairs:
        """Return the ``count`` worst pairs of each function."""
        order = np.lexsort((-self.modulus, self.function))
        place = np.arange(order.size) - np.searchsorted(self.function[order], self.function[order])
        return self.take(order[place < count])


class _CurvatureSearch:
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

    def judged(self, x: Any, y: Any, function: Any, alpha: Any) -> _Pairs:
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
        return _Pairs(x, y, function, alpha, modulus)

    def first(self, x: Any, y: Any) -> _Pairs:
        """Return the worst of the drawn pairs for each function."""
        count = self.dual.levels
        function = np.repeat(np.arange(count), len(x))
        alpha = np.tile(self.worst_inner(x, y), (count, 1))
        return self.judged(np.tile(x, (count, 1)), np.tile(y, (count, 1)), function, alpha).worst(_KEPT)

    def refined(self, pairs: _Pairs, share: float, products: int = 8, moves: int = 6) -> _Pairs:
        """Return the worst pairs after a refinement, the old ones among them.

        Parameters
        ----------
        pairs : _Pairs
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


def _joined(parts: Sequence[_Pairs]) -> _Pairs:
    """Return the pairs of all parts."""
    names = ("x", "y", "function", "alpha", "modulus")
    return _Pairs(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _unit(directions: Any) -> Any:
    return directions / np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-300)


def _row_space(points: Any) -> Any:
    """Return orthonormal rows that span the differences of points."""
    _, sizes, rows = np.linalg.svd(points[1:] - points[:-1], full_matrices=False)
    return rows[sizes > 1e-9 * max(float(sizes.max(initial=0.0)), 1e-300)]
