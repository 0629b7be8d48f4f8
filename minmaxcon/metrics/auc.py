r"""The area under the ROC curve between any two sets of scores, the gap of two such areas, and their intervals.

For two sets G and G' with scores h and h'

.. math:: AUC(G, G') = \Pr(h > h') + \tfrac12 \Pr(h = h'),

so that a constant score has AUC one half, and so has a set against itself.

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
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from minmaxcon.arrays import to_numpy
from minmaxcon.checks import finite_array, number
from minmaxcon.errors import InvalidInput

__all__ = ["AUCEstimate", "auc", "auc_gap", "auc_gap_with_interval", "auc_with_interval"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Pair = tuple[Any, Any]
"""Two boolean masks over the same rows: the set that should score higher, and the other one."""


def _checked_scores(argument: str, scores: Any, dimensions: tuple[int, ...] = (1, 2)) -> NDArray[Any]:
    """Return finite scores as a NumPy array of shape (n,) or (R, n)."""
    try:
        array = np.asarray(to_numpy(scores))
    except (TypeError, ValueError) as failure:
        raise InvalidInput(argument, scores, "scores must be an array of numbers.") from failure
    if array.dtype.kind not in "biuf":
        raise InvalidInput(argument, array.dtype.name, "scores must be real numbers; convert them to float.")
    if array.ndim not in dimensions:
        shapes = " or ".join({1: "(n,)", 2: "(R, n)"}[k] for k in dimensions)
        raise InvalidInput(argument, f"shape {array.shape}", f"scores must have shape {shapes}.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        first = np.argwhere(~np.isfinite(array))[0]
        run = f" of run {first[0] + 1}" if array.ndim == 2 else ""
        raise InvalidInput(
            argument, float(array[tuple(first)]), f"the score of row {first[-1] + 1}{run} is not finite."
        )
    return array


def _mask(argument: str, mask: Any, rows: int) -> Mask:
    array = np.asarray(to_numpy(mask))
    if array.dtype != np.bool_:
        raise InvalidInput(argument, array.dtype.name, "a set must be given as a boolean mask over the rows.")
    if array.shape != (rows,):
        raise InvalidInput(argument, f"shape {array.shape}", f"the mask must have shape ({rows},), as the scores.")
    return array


def _checked_pairs(pair_1: Pair, pair_2: Pair, rows: int) -> list[tuple[Mask, Mask]]:
    """Return the masks of both pairs, each a boolean array of shape (n,)."""
    named = (("pair_1", pair_1), ("pair_2", pair_2))
    return [(_mask(f"{name}[0]", pair[0], rows), _mask(f"{name}[1]", pair[1], rows)) for name, pair in named]


def _auc_of_run(a: NDArray[Any], b: NDArray[Any], tie_weight: int) -> float:
    """Return (2 wins + tie_weight ties) / (2 pairs): exact integers until the division."""
    if not a.size or not b.size:
        return math.nan
    a, b = np.sort(a), np.sort(b)
    below = int(np.searchsorted(b, a, side="left").sum())
    ties = int(np.searchsorted(b, a, side="right").sum()) - below
    return (2 * below + tie_weight * ties) / (2 * a.size * b.size)


def _weighted_auc_of_run(
    a: NDArray[Any], b: NDArray[Any], weight_a: NDArray[Any], weight_b: NDArray[Any], tie_weight: int
) -> float:
    """Return the same with a weight for each score."""
    if not a.size or not b.size:
        return math.nan
    order = np.argsort(b)
    b, below = b[order], np.concatenate([[0.0], np.cumsum(weight_b[order])])
    left, right = np.searchsorted(b, a, side="left"), np.searchsorted(b, a, side="right")
    wins = below[left] + 0.5 * tie_weight * (below[right] - below[left])
    return float(weight_a @ wins / (weight_a.sum() * below[-1]))


def _checked_weights(weights: Any, counts: tuple[int, int]) -> Any:
    """Return the weights of both sets, or None where all of a set are alike and so count nothing."""
    if weights is None:
        return None
    if not isinstance(weights, tuple | list) or len(weights) != 2:
        raise InvalidInput("weights", weights, "must be a pair of arrays of numbers, one for each set.")
    pair = []
    for weight, count in zip(weights, counts, strict=True):
        remedy = f"must be positive and finite, one for each of {count} scores."
        pair.append(finite_array("weights", weight, remedy))
        if pair[-1].shape != (count,) or not (pair[-1] > 0).all():
            raise InvalidInput("weights", weight, remedy)
    return None if all(weight.size == 0 or weight.min() == weight.max() for weight in pair) else pair


def auc(
    scores_a: Any, scores_b: Any, *, ties: Literal["half", "strict"] = "half", weights: tuple[Any, Any] | None = None
) -> Any:
    r"""Return :math:`\Pr(h > h') + \frac12 \Pr(h = h')` between two sets of scores.

    Every pair counts, exactly, in O(n log n) by sorting. ``ties="strict"`` is the printed form of the paper,
    :math:`\Pr(h > h')`, in which a constant score has AUC 0.

    Parameters
    ----------
    scores_a, scores_b : array (n_a,) and (n_b,), or (R, n_a) and (R, n_b)
        Scores h and h' of the two sets, in any unit; with a run axis, one row per run.
    ties : {"half", "strict"}
        What a pair of equal scores counts.
    weights : pair of array (n_a,) and (n_b,), optional
        Positive weights of the samples, for data that stand for a larger set; a pair counts their product.

    Returns
    -------
    float or array (R,)
        A probability; NaN where a set is empty.

    Raises
    ------
    InvalidInput
        Scores that are not numbers, not finite (the first such row is named), or of another shape; weights that are
        not positive, or not one a score.

    Examples
    --------
    >>> auc([2.0, 3.0], [1.0, 2.0])
    0.875
    >>> auc([2.0, 3.0], [1.0, 2.0], ties="strict")
    0.75
    """
    if ties not in ("half", "strict"):
        raise InvalidInput("ties", ties, "must be 'half' or 'strict'.")
    weight = 1 if ties == "half" else 0
    a, b = _checked_scores("scores_a", scores_a), _checked_scores("scores_b", scores_b)
    if a.ndim != b.ndim or a.shape[:-1] != b.shape[:-1]:
        raise InvalidInput("scores_b", f"shape {b.shape}", f"must have the run axis of scores_a, shape {a.shape}.")
    pair = _checked_weights(weights, (a.shape[-1], b.shape[-1]))

    def of_run(x: NDArray[Any], y: NDArray[Any]) -> float:
        return _auc_of_run(x, y, weight) if pair is None else _weighted_auc_of_run(x, y, pair[0], pair[1], weight)

    return of_run(a, b) if a.ndim == 1 else np.array([of_run(x, y) for x, y in zip(a, b, strict=True)])


def auc_gap(scores: Any, pair_1: Pair, pair_2: Pair, *, ties: Literal["half", "strict"] = "half") -> Any:
    r"""Return :math:`|AUC(G_1, G_1') - AUC(G_2, G_2')|` for subsets of the same rows.

    Parameters
    ----------
    scores : array (n,) or (R, n)
        Score of every row, in any unit.
    pair_1, pair_2 : two boolean arrays (n,) each
        Masks of :math:`(G_1, G_1')` and :math:`(G_2, G_2')`. Any of the four may overlap; a row in both sets of a pair
        is compared with itself too, which counts one half.
    ties : {"half", "strict"}
        As in :func:`auc`.

    Returns
    -------
    float or array (R,)
        In [0, 1]; NaN where a set is empty.

    Raises
    ------
    InvalidInput
        Scores that are not finite numbers, or masks that are not boolean or of another length.
    """
    array = _checked_scores("scores", scores)
    (a, b), (c, d) = _checked_pairs(pair_1, pair_2, array.shape[-1])
    gap = auc(array[..., a], array[..., b], ties=ties) - auc(array[..., c], array[..., d], ties=ties)
    return np.abs(gap) if array.ndim == 2 else abs(gap)


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
    confidence = number(
        "confidence", confidence, "must lie strictly between 0 and 1, such as 0.95.", above=0.0, below=1.0
    )
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

    value = _auc_of_run(scores[a], scores[b], 1)
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
    a, b = _checked_scores("scores_a", scores_a, (1,)), _checked_scores("scores_b", scores_b, (1,))
    counts = (a.size, b.size)
    undefined, reason = _why_undefined(counts, ("scores_a", "scores_b"))
    if undefined:
        return AUCEstimate(math.nan, math.nan, math.nan, math.nan, counts, reason)
    first = np.arange(a.size + b.size) < a.size
    value, share = _influence(np.concatenate([a, b]), first, ~first)
    if reason:
        return AUCEstimate(value, math.nan, math.nan, math.nan, counts, reason)
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
    array = _checked_scores("scores", scores, (1,))
    pairs = _checked_pairs(pair_1, pair_2, array.size)
    counts = tuple(int(mask.sum()) for pair in pairs for mask in pair)
    undefined, reason = _why_undefined(counts, ("G1", "G1'", "G2", "G2'"))
    if undefined:
        return AUCEstimate(math.nan, math.nan, math.nan, math.nan, counts, reason)
    (value_1, share_1), (value_2, share_2) = (_influence(array, *pair) for pair in pairs)
    signed = value_1 - value_2
    if reason:
        return AUCEstimate(abs(signed), math.nan, math.nan, math.nan, counts, reason)
    error = math.sqrt(float(np.square(share_1 - share_2).sum()))
    low, high = signed - quantile * error, signed + quantile * error
    nearest = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
    return AUCEstimate(abs(signed), nearest, min(1.0, max(abs(low), abs(high))), error, counts)
