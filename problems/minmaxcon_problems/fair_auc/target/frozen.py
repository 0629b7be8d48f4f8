r"""Score distributions frozen at a proximal point, from which an AUC is followed in linear time.

At :math:`w_s` let :math:`\Phi_G(t) = E_G\,\sigma((t - h_s)/\beta)`, with one bandwidth for all subsets of a run.
Then :math:`AUC_s = E_G\,\Phi_{G'}(h_s)` is the smoothed AUC of a pair, and

.. math:: M_s(w) = 1 - AUC_s + E_G[\Phi_{G'}(h_w)] - E_{G'}[\Phi_G(h_w)]

is an expectation over single samples that equals it at :math:`w_s` in value and in gradient. The distributions are kept
as tables on a grid of scores, read by linear interpolation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["FrozenDistributions"]

_TAIL = 6.0
"""How many bandwidths the grid goes beyond the scores; farther out the distributions count as constant."""

_EXPONENT = 60.0
"""The logistic function is 0 or 1 to double precision beyond this."""


@dataclass(frozen=True, slots=True)
class FrozenDistributions:
    r"""Smoothed distribution functions of the scores of pairs of subsets, of each run.

    Attributes
    ----------
    low, width : ndarray (R,)
        First grid point and spacing.
    bandwidth : ndarray (R,)
        :math:`\beta`, in the unit of the scores.
    cdf, density : ndarray (R, 2 P, bins)
        :math:`\Phi_G` and its derivative at the grid points, for :math:`G_1, G_1', G_2, G_2'`, say.
    aucs : ndarray (R, P)
        The smoothed AUC of each pair.
    """

    low: Any
    width: Any
    bandwidth: Any
    cdf: Any
    density: Any
    aucs: Any

    @classmethod
    def of(
        cls, scores: Any, weights: Any, *, bandwidth: float, bins: int, row_weight: Any = None
    ) -> FrozenDistributions:
        r"""Freeze the distributions of scores.

        Parameters
        ----------
        scores : ndarray (R, n)
            :math:`h_s` of every sample.
        weights : ndarray (n, 2 P)
            :math:`1_G/\Pr(G)`, or any weights with the same means; two columns a pair.
        bandwidth : float
            :math:`\beta` in standard deviations of all scores of the run.
        bins : int
            Grid points; masses are put on the two nearest, so that means are kept.
        row_weight : ndarray (n,), optional
            Weights of the samples in the standard deviation; equal by default.
        """
        _runs, count = scores.shape
        low, high = scores.min(axis=1), scores.max(axis=1)
        least = 1e-12 * (1.0 + np.abs(high))  # for constant scores, which have no spread to measure by
        beta = np.maximum(bandwidth * _spread(scores, row_weight), least)
        low, high = low - _TAIL * beta, high + _TAIL * beta
        width = (high - low) / (bins - 1)
        mass = _masses(scores, weights / count, low, width, bins)
        offset = (np.arange(2 * bins) - bins)[None, :] * (width / beta)[:, None]
        sigmoid = 1.0 / (1.0 + np.exp(-np.clip(offset, -_EXPONENT, _EXPONENT)))
        cdf = _convolved(mass, sigmoid)
        density = _convolved(mass, sigmoid * (1.0 - sigmoid) / beta[:, None])
        aucs = np.stack([(mass[:, g] * cdf[:, g + 1]).sum(axis=-1) for g in range(0, mass.shape[1], 2)], axis=-1)
        return cls(low, width, beta, cdf, density, aucs)

    def take(self, runs: Any) -> FrozenDistributions:
        """Return the tables of some of the runs."""
        return FrozenDistributions(
            self.low[runs], self.width[runs], self.bandwidth[runs], self.cdf[runs], self.density[runs], self.aucs[runs]
        )

    def follow(self, scores: Any, weights: Any, signs: Sequence[float] = (1.0, -1.0)) -> tuple[Any, Any]:
        r"""Return the batch mean of :math:`\sum_p s_p M_s` over the pairs, and its slopes in the scores.

        Parameters
        ----------
        scores : ndarray (R, B)
            :math:`h_w` of the batch; the tables of one point serve any number of runs.
        weights : ndarray (B, 2 P)
            :math:`1_G/\Pr(G)`, two columns a pair.
        signs : sequence of float (P,)
            :math:`s_p`; the default is the gap :math:`M_s(G_1, G_1') - M_s(G_2, G_2')`.

        Returns
        -------
        values : ndarray (R,)
            The mean of the single-sample terms.
        slopes : ndarray (R, B)
            Its derivative in each score, the factor 1/B included.
        """
        bins = self.cdf.shape[-1]
        place = (scores - self.low[:, None]) / self.width[:, None]
        inside = (place >= 0.0) & (place <= bins - 1.0)
        place = np.clip(place, 0.0, bins - 1.0)
        index = np.minimum(place.astype(np.intp), bins - 2)
        part = place - index
        rows = np.arange(len(scores))[:, None] if len(self.low) > 1 else np.zeros((len(scores), 1), dtype=np.intp)
        values = (1.0 - self.aucs) @ np.asarray(signs)
        slopes = np.zeros_like(scores)
        sides = [
            (2 * p + side, 2 * p + 1 - side, sign * (1 - 2 * side)) for p, sign in enumerate(signs) for side in (0, 1)
        ]
        for member, other, sign in sides:
            share = (sign / scores.shape[1]) * weights[:, member]
            values = values + _read(self.cdf[:, other], rows, index, part) @ share
            slopes += share * _read(self.density[:, other], rows, index, part)
        return values, np.where(inside, slopes, 0.0)


def _spread(scores: Any, row_weight: Any) -> Any:
    """Standard deviation (R,) of the scores of each run."""
    if row_weight is None:
        return scores.std(axis=1)
    share = row_weight / row_weight.sum()
    centred = scores - (scores @ share)[:, None]
    return np.sqrt((centred * centred) @ share)


def _read(table: Any, rows: Any, index: Any, part: Any) -> Any:
    """Interpolate each run's table between the grid points ``index`` and ``index + 1``."""
    left = table[rows, index]
    return left + part * (table[rows, index + 1] - left)


def _masses(scores: Any, shares: Any, low: Any, width: Any, bins: int) -> Any:
    """Weight of each subset on each grid point, (R, 2 P, bins): every sample split between its two neighbours."""
    place = (scores - low[:, None]) / width[:, None]
    index = np.minimum(place.astype(np.intp), bins - 2)
    part = place - index
    mass = np.empty((len(scores), shares.shape[1], bins))
    for r in range(len(scores)):
        for g in range(shares.shape[1]):
            mine = np.flatnonzero(shares[:, g])
            at, right = index[r, mine], part[r, mine] * shares[mine, g]
            mass[r, g] = np.bincount(at, shares[mine, g] - right, bins) + np.bincount(at + 1, right, bins)
    return mass


def _convolved(mass: Any, kernel: Any) -> Any:
    r"""``out[b] = sum_k mass[k] kernel(b - k)`` for the grid, the kernel given at offsets -bins .. bins - 1."""
    bins = mass.shape[-1]
    size = 4 * bins
    product = np.fft.rfft(mass, size) * np.fft.rfft(kernel, size)[:, None, :]
    return np.fft.irfft(product, size)[..., bins : 2 * bins]
