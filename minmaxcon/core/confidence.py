r"""Bounds that hold with a confidence, from samples of a stream that no iterate has seen.

A look reads blocks of fresh samples. At a point x that was chosen before them, the block means of a function's
terms :math:`W = (F, G)` are independent and, by the central limit theorem, nearly normal; a mean of K such numbers
obeys Student's statement with K - 1 degrees of freedom. That is the one assumption; it asks for no bound on the terms.

*From above.* :math:`f(x) = \max_\alpha\langle(1,\alpha), E\,W\rangle - g(\alpha)` is attained at some :math:`\alpha^*`
that depends on no sample, so with probability :math:`1 - \beta`, :math:`c = t_{K-1,1-\beta}/\sqrt K` and the covariance
S of the block means,

.. math:: f(x) \le \langle(1,\alpha^*), \bar W\rangle - g(\alpha^*) + c\,|S^{1/2}(1,\alpha^*)|_2
    \le \max_{|z|_2\le c} h(\bar W + S^{1/2}z), \qquad h(w) = w_0 + (g+\iota_A)^*(w_1).

h is convex, so its maximum over a polytope around the ball is one of finitely many values.

*From below.* For duals (y, a) that were chosen before the samples, each block's least Lagrangian
:math:`v_j = \min_X\hat\Phi_j` has :math:`E\,v_j \le \min_X\Phi` by Jensen's inequality (Mak, Morton and Wood 1999), so
:math:`\bar v - c\,s_v` bounds :math:`\min_X\Phi` with the same probability, and :math:`f^* \ge r + \min_X\Phi/y_0`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.core.level import LevelProblem
from minmaxcon.core.lower import least_point, lower_bound
from minmaxcon.core.source import Batch, Position, Source, in_double
from minmaxcon.geometry import PerspectiveGenerator

__all__ = ["Look", "look", "share_of_look", "student"]

_BLOCKS = 16
"""Blocks of a look. Each is read as two halves for the bounds from above; the least Lagrangian of a small block is far
below that of the population, so for the bound from below blocks are few and large."""

_FEWEST = 4
"""Blocks below which a stream that ends has left too little to bound anything."""

_LEAST = 16
"""Samples of the smallest half of a block."""

_ENOUGH = 0.01
"""The share of the scatter of half blocks to which a block's least Lagrangian is found."""

_PILOT, _PASSES = 100, 12
"""Passes over the first block and over each other one for its least Lagrangian, where the family knows no minimiser.
Any number gives a valid bound; the first block only finds where the others start."""


@dataclass(frozen=True, eq=False, slots=True)
class Look:
    r"""Bounds from one look; each entry holds with probability :math:`1 - \beta` by itself.

    Attributes
    ----------
    mean : ndarray (P, R, k)
        Estimates of :math:`f_i(x_p)` at P points of each run.
    upper : ndarray (P, R, k)
        Bounds from above.
    first : ndarray (R,)
        A bound from below on the first function at the first point.
    lower : ndarray (R,)
        A bound from below on the value of the Lagrangian; minus infinity where convexity is not declared.
    samples : int
        Samples read.
    position : Position
        Where the data are read from next.
    """

    mean: Any
    upper: Any
    first: Any
    lower: Any
    samples: int
    position: Position


def share_of_look(delta: float, looks: int) -> float:
    r"""Return :math:`\delta_k = 6\delta/(\pi k)^2` of the k-th look: over all k they sum to :math:`\delta`."""
    return 6.0 * delta / (math.pi * looks) ** 2


def student(count: int, beta: float) -> float:
    r"""Return :math:`t_{K-1,1-\beta}/\sqrt K`, by which a mean of K numbers falls short in units of their deviation."""
    from scipy.special import stdtrit

    return float(stdtrit(count - 1, 1.0 - beta)) / math.sqrt(count)


def look(
    problem: LevelProblem,
    points: Sequence[Array],
    weights: Array,
    scaled: Array,
    position: Position,
    *,
    samples: int,
    beta: float,
    lower: bool = True,
) -> Look | None:
    r"""Bound the functions at points, and the Lagrangian at duals, by fresh samples.

    Parameters
    ----------
    problem : LevelProblem
        The level problem of R runs, on a stream.
    points : sequence of array (R, d)
        Points that were chosen before these samples.
    weights, scaled : array (R, k), (R, p)
        Duals that were.
    position : Position
        Where the samples are read from.
    samples : int
        Samples to be read, at least.
    beta : float
        :math:`\beta`.
    lower : bool
        Whether the Lagrangian is bounded.

    Returns
    -------
    Look or None
        None where the stream ends too early.
    """
    lower = lower and (problem.modulus <= 0 or problem.proximal is not None)  # otherwise there is none
    half = max(_LEAST, math.ceil(samples / (2 * _BLOCKS)))
    dual, xp = problem.dual(), namespace(points[0])
    points = [xp.double(x) for x in points]
    y, a = xp.double(weights), xp.double(scaled)
    start: Array | None = None
    terms: list[Any] = []
    least: list[Any] = []
    for _ in range(_BLOCKS):
        batches, after = problem.data.draw(position, 1, 2 * half)
        batch = next(batches, None)
        if batch is None:
            break
        position, block = after, in_double(_Block(batch, 2 * half))
        (_, held), *_ = block.chunks()
        for begin in (0, half):
            rows = {name: values[begin : begin + half] for name, values in held.items()}
            found = [problem.family.evaluate(x, rows) for x in points]
            terms.append([[_rows(part.F), _rows(part.G)] for part in found])
        part = replace(problem, data=block)
        if lower and start is None:
            start = least_point(part, y, a, points[-1], iterations=_PILOT)
        elif lower:
            enough = _ENOUGH * _scatter([part[-1] for part in terms], _rows(y), _rows(a))
            least.append(lower_bound(part, y, a, start, iterations=_PASSES, enough=enough))
    if len(terms) < 2 * _FEWEST:
        return None
    width = student(len(terms), beta)
    bounds = [_bounds(problem, dual, x, [part[i] for part in terms], width) for i, x in enumerate(points)]
    bound = np.full(problem.runs, -np.inf)
    if least:
        with np.errstate(invalid="ignore"):
            bound = np.mean(least, axis=0) - student(len(least), beta) * np.std(least, axis=0, ddof=1)
    return Look(
        mean=np.stack([mean for mean, _ in bounds]),
        upper=np.stack([upper for _, upper in bounds]),
        first=_first(dual, [part[0] for part in terms], _rows(y), _rows(a), width),
        lower=np.where(np.isfinite(bound), bound, -np.inf),
        samples=len(terms) * half,
        position=position,
    )


class _Block(Source):
    """One batch as finite data."""

    def __init__(self, batch: Batch, size: int) -> None:
        self.batch, self.size = batch, size
        self.like = next(iter(batch.values()))

    def draw(self, position: Position, steps: int, batch_size: int) -> tuple[Iterator[Batch], Position]:
        """See :meth:`Source.draw`; the bounds of this file pass over a block, and none draws from it."""
        raise NotImplementedError  # reached by no call: an empty answer would hide one that is wrong

    def chunks(self, rows: int | None = None) -> Iterator[tuple[float, Batch]]:
        """See :meth:`Source.chunks`: one piece."""
        yield 1.0, self.batch


def _scatter(terms: Sequence[Any], y: Any, a: Any) -> Any:
    """Return the standard deviation (R,) of the Lagrangian at a point over half blocks, from their mean terms."""
    values = np.stack([(y * F).sum(axis=-1) + (a * G).sum(axis=-1) for F, G in terms])
    return values.std(axis=0, ddof=1)


def _rows(values: Array) -> Any:
    return np.asarray(to_numpy(values), dtype=np.float64)


def _bounds(
    problem: LevelProblem, dual: PerspectiveGenerator, x: Array, terms: Sequence[Any], width: float
) -> tuple[Any, Any]:
    """Return estimates and bounds from above (R, k) of the functions at x, from the block means of their terms."""
    F, G = (np.stack([part[i] for part in terms]) for i in (0, 1))  # (K, R, k), (K, R, p)
    extra = 0.0 if problem.proximal is None else _rows(problem.proximal.value(problem.primal, x))[:, None]
    mean = np.asarray(dual.support(F.mean(axis=0), G.mean(axis=0)))
    upper = F.mean(axis=0) + width * F.std(axis=0, ddof=1)
    for i, block in enumerate(dual.blocks):
        if block is None:
            continue
        mine = np.flatnonzero(dual.owner == i)
        for run in range(F.shape[1]):
            W = np.concatenate([F[:, run, i, None], G[:, run, mine]], axis=1)
            corners = _around(W, np.asarray(block.maximize(W[:, 1:].mean(axis=0))[0]), width)
            upper[run, i] = (corners[:, 0] + np.asarray(block.maximize(corners[:, 1:])[1])).max()
    return mean + extra, upper + extra


def _around(W: Any, alpha: Any, width: float) -> Any:
    r"""Return the corners (n, q) of a polytope around :math:`\{\bar W + S^{1/2}z : |z|_2 \le c\}`.

    It is a prism along the direction :math:`S^{1/2}(1, \alpha)`, in which h is steepest: its half length is c, so where
    h is smooth nothing is lost to first order. Across it a cross-polytope surrounds the ball.
    """
    mean, count = W.mean(axis=0), len(W)
    _, sizes, axes = np.linalg.svd((W - mean) / math.sqrt(count - 1), full_matrices=False)
    root = axes.T * sizes  # S = root root'
    steep = root.T @ np.concatenate([[1.0], alpha])
    basis, _ = np.linalg.qr(np.column_stack([steep, np.eye(len(steep))]))  # its first column is that direction
    along, across = basis[:, :1], basis[:, 1 : len(steep)]
    sides = math.sqrt(across.shape[1]) * np.concatenate([across, -across], axis=1) if across.shape[1] else 0.0 * along
    corners = np.concatenate([sides + along, sides - along], axis=1)
    return mean + width * (root @ corners).T


def _first(dual: PerspectiveGenerator, terms: Sequence[Any], y: Any, a: Any, width: float) -> Any:
    """Bound the first function from below (R,), at the inner variables of the duals."""
    F, G = (np.stack([part[i] for part in terms]) for i in (0, 1))
    block, mine = dual.blocks[0], np.flatnonzero(dual.owner == 0)
    values, penalty = F[:, :, 0], np.zeros(F.shape[1])
    if block is not None:
        alpha = np.where(y[:, :1] > 0, a[:, mine] / np.where(y[:, :1] > 0, y[:, :1], 1.0), block.start)
        values = values + np.vecdot(G[:, :, mine], alpha)
        penalty = np.asarray(block.penalty(alpha))
    return values.mean(axis=0) - width * values.std(axis=0, ddof=1) - penalty
