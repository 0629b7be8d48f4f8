r"""DeLong intervals for an AUC and for the gap of two AUCs on the same rows.

An AUC is a mean of structural components :math:`V_i = \Pr_{G'}(h_i > h') + \frac12 \Pr_{G'}(h_i = h')` of the members
of G and, likewise, of those of G'; its variance follows from theirs [1]_. A row that belongs to several sets adds up
its components, which gives the covariance of two AUCs on the same rows, also where their sets overlap.

References
----------
.. [1] E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson, Comparing the areas under two or more correlated receiver
   operating characteristic curves: a nonparametric approach, Biometrics 44 (1988), 837-845.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minmaxcon.errors import InvalidInput
from minmaxcon.metrics.auc import Mask, Pair, auc_of_run, checked_pairs, checked_scores

__all__ = ["AUCEstimate", "auc_gap_with_interval", "auc_with_interval"]

Floats = NDArray[np.float64]

_NAN = float("nan")


@dataclass(frozen=True, slots=True)
class AUCEstimate:
    """An AUC, or a gap of two AUCs, with its confidence interval; undefined values are NaN and say why.

    Attributes
    ----------
    value : float
        The estimate, in [0, 1]; NaN where a set is empty.
    lower, upper : float
        End points of the interval, within [0, 1]; NaN where there is no interval.
    standard_error : float
        DeLong's standard error; NaN where a set has fewer than two members. For a gap, that of the signed difference.
    counts : tuple of int
        Sizes of the sets, in the order of the arguments.
    reason : str
        Empty, or why the value or its interval is undefined.
    """

    value: float
    lower: float
    upper: float
    standard_error: float
    counts: tuple[int, ...]
    reason: str = ""

    @property
    def defined(self) -> bool:
        """Whether the value is a number."""
        return not math.isnan(self.value)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON knows them: None in the place of NaN."""
        plain = {name: None if isinstance(v, float) and math.isnan(v) else v for name, v in asdict(self).items()}
        return {**plain, "counts": list(self.counts)}

    def __str__(self) -> str:
        if not self.defined:
            return f"undefined ({self.reason})"
        if math.isnan(self.lower):
            return f"{self.value:.4f} (no interval: {self.reason})"
        return f"{self.value:.4f} [{self.lower:.4f}, {self.upper:.4f}]"


def _quantile(confidence: float) -> float:
    """Return the normal quantile of a two-sided interval."""
    if not 0.0 < confidence < 1.0:
        raise InvalidInput("confidence", confidence, "must lie strictly between 0 and 1, such as 0.95.")
    return NormalDist().inv_cdf(0.5 + confidence / 2.0)


def _influence(scores: NDArray[Any], a: Mask, b: Mask) -> tuple[float, Floats]:
    """Return an AUC and each row's share in its error, (n,), scaled so that the variance is the sum of squares.

    The scale 1 / sqrt(n (n - 1)) of a set's components makes the sum DeLong's unbiased form for disjoint sets.
    """
    n_a, n_b = int(a.sum()), int(b.sum())
    sorted_a, sorted_b = np.sort(scores[a]), np.sort(scores[b])

    def rank(values: NDArray[Any], others: NDArray[Any]) -> Floats:
        """Share of the others below each value, ties one half."""
        below = np.searchsorted(others, values, side="left") + np.searchsorted(others, values, side="right")
        share: Floats = below / (2.0 * others.size)
        return share

    value = auc_of_run(scores[a], scores[b], 1)
    share = np.zeros(scores.shape[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        share[a] += (rank(scores[a], sorted_b) - value) / np.sqrt(np.float64(n_a) * (n_a - 1))
        share[b] += (1.0 - rank(scores[b], sorted_a) - value) / np.sqrt(np.float64(n_b) * (n_b - 1))
    return value, share


def _why_undefined(counts: tuple[int, ...], names: tuple[str, ...]) -> tuple[bool, str]:
    """Return whether the value is undefined, and why it or its interval is."""
    for least, defect in ((1, "is empty"), (2, "has one member only")):
        lacking = [name for name, count in zip(names, counts, strict=True) if count < least]
        if lacking:
            return least == 1, f"{' and '.join(lacking)} {defect}"
    return False, ""


def auc_with_interval(scores_a: Any, scores_b: Any, confidence: float = 0.95) -> AUCEstimate:
    r"""Return the AUC between two disjoint sets with DeLong's interval.

    :math:`\widehat{AUC} \pm z \sqrt{S_{10}/n_a + S_{01}/n_b}`, clipped to [0, 1]; S are the sample variances of the
    structural components. The interval degenerates to a point where the sets are separated perfectly.

    Parameters
    ----------
    scores_a, scores_b : array (n_a,) and (n_b,)
        Scores of the two sets, in any unit.
    confidence : float
        Coverage asked for, in (0, 1).

    Returns
    -------
    AUCEstimate
        With ``counts = (n_a, n_b)``; undefined where a set is empty, no interval where one has a single member.

    Raises
    ------
    InvalidInput
        Scores that are not finite numbers, or a confidence outside (0, 1).
    """
    quantile = _quantile(confidence)
    a, b = checked_scores("scores_a", scores_a, (1,)), checked_scores("scores_b", scores_b, (1,))
    counts = (a.size, b.size)
    undefined, reason = _why_undefined(counts, ("scores_a", "scores_b"))
    if undefined:
        return AUCEstimate(_NAN, _NAN, _NAN, _NAN, counts, reason)
    first = np.arange(a.size + b.size) < a.size
    value, share = _influence(np.concatenate([a, b]), first, ~first)
    if reason:
        return AUCEstimate(value, _NAN, _NAN, _NAN, counts, reason)
    error = math.sqrt(float(share @ share))
    return AUCEstimate(value, max(0.0, value - quantile * error), min(1.0, value + quantile * error), error, counts)


def auc_gap_with_interval(scores: Any, pair_1: Pair, pair_2: Pair, confidence: float = 0.95) -> AUCEstimate:
    r"""Return :math:`|AUC(G_1, G_1') - AUC(G_2, G_2')|` with a DeLong interval.

    The signed difference has variance :math:`\sum_k (\psi_{1k} - \psi_{2k})^2`, :math:`\psi` being a row's centred
    components summed over the sets it belongs to: the covariance of the two AUCs is in it, whichever sets overlap. It
    is the error under sampling of rows. The interval of the signed difference is folded at 0: where it contains 0 the
    lower end of the gap is 0 and the upper end the larger of the two distances, so the folded interval covers the true
    gap whenever the signed one covers the signed difference (near a gap of 0 it is conservative). The value itself is
    biased upwards there, as an absolute value is.

    Parameters
    ----------
    scores : array (n,)
        Score of every row, in any unit.
    pair_1, pair_2 : two boolean arrays (n,) each
        Masks of :math:`(G_1, G_1')` and :math:`(G_2, G_2')`; any of the four may overlap.
    confidence : float
        Coverage asked for, in (0, 1).

    Returns
    -------
    AUCEstimate
        With the four sizes as ``counts``; undefined where a set is empty, no interval where one has a single member.

    Raises
    ------
    InvalidInput
        As in :func:`auc_gap`; or a confidence outside (0, 1).
    """
    quantile = _quantile(confidence)
    array = checked_scores("scores", scores, (1,))
    pairs = checked_pairs(pair_1, pair_2, array.size)
    counts = tuple(int(mask.sum()) for pair in pairs for mask in pair)
    undefined, reason = _why_undefined(counts, ("G1", "G1'", "G2", "G2'"))
    if undefined:
        return AUCEstimate(_NAN, _NAN, _NAN, _NAN, counts, reason)
    (value_1, share_1), (value_2, share_2) = (_influence(array, *pair) for pair in pairs)
    signed = value_1 - value_2
    if reason:
        return AUCEstimate(abs(signed), _NAN, _NAN, _NAN, counts, reason)
    error = math.sqrt(float(np.square(share_1 - share_2).sum()))
    low, high = signed - quantile * error, signed + quantile * error
    nearest = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
    return AUCEstimate(abs(signed), nearest, min(1.0, max(abs(low), abs(high))), error, counts)
