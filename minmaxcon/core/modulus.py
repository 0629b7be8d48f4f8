"""The weak convexity modulus of a problem's functions, searched for from below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, to_numpy
from minmaxcon.checks import finite_array, seed_number, whole
from minmaxcon.core.curvature import CurvatureSearch, Pairs
from minmaxcon.core.problem import MinMaxProblem
from minmaxcon.core.source import Position, Source
from minmaxcon.errors import DataError, InvalidInput
from minmaxcon.geometry import DistanceGenerator

__all__ = ["ModulusEstimate", "ModulusWitness", "estimate_modulus", "modulus_near"]

_NEAR = 0.03
"""How far a search near points goes, as a share of the size of X."""


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
    pairs, rounds, rows = whole("pairs", pairs), whole("rounds", rounds, 0), whole("rows", rows)
    rng = np.random.default_rng(seed_number("seed", seed))
    data = _finite(problem, rng, rows)
    search = CurvatureSearch(problem.family, problem.primal, data, rng, None if together else problem.runs or 1)
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
    search = CurvatureSearch(problem.family, problem.primal, problem.data, np.random.default_rng(0), len(points))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        best = search.first(*search.chords(points, 1, _NEAR))
        best = search.refined(best, _NEAR, products=4, moves=0)
    return _estimate(problem, problem.data, best)


def _estimate(problem: MinMaxProblem, data: Source, pairs: Pairs) -> ModulusEstimate:
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
    if not np.all(primal.contains(points, 1e-6)):
        raise InvalidInput("around", around, "must be finite points of the primal set.")
    return points
