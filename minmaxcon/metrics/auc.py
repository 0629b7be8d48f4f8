r"""The area under the ROC curve between any two sets of scores, and the gap of two such areas.

For two sets G and G' with scores h and h'

.. math:: AUC(G, G') = \Pr(h > h') + \tfrac12 \Pr(h = h'),

so that a constant score has AUC one half, and so has a set against itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from minmaxcon.arrays import to_numpy
from minmaxcon.checks import choice, finite_array
from minmaxcon.errors import InvalidInput

__all__ = [
    "auc",
    "auc_gap",
    "checked_mask",
    "checked_pair_weights",
    "checked_pairs",
    "checked_row_weight",
    "checked_scores",
    "exact_auc",
]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Pair = tuple[Any, Any]
"""Two boolean masks over the same rows: the set that should score higher, and the other one."""


def checked_scores(argument: str, scores: Any, dimensions: tuple[int, ...] = (1, 2)) -> NDArray[Any]:
    """Return finite scores as a NumPy array of shape (n,) or (R, n)."""
    try:
        array = np.asarray(to_numpy(scores))
    except (TypeError, ValueError) as failure:
        raise InvalidInput(argument, scores, "scores must be an array of numbers.") from failure
    if np.ma.is_masked(scores):
        raise InvalidInput(argument, scores, "some scores are masked; leave their rows out.")
    if array.dtype.kind not in "iuf":
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


def checked_mask(argument: str, mask: Any, rows: int) -> Mask:
    """Return a boolean mask over the rows (n,)."""
    array = np.asarray(to_numpy(mask))
    if array.dtype != np.bool_:
        raise InvalidInput(argument, array.dtype.name, "a set must be given as a boolean mask over the rows.")
    if array.shape != (rows,):
        raise InvalidInput(argument, f"shape {array.shape}", f"the mask must have shape ({rows},), as the scores.")
    return array


def checked_pairs(pairs: Sequence[Any], rows: int) -> list[tuple[Mask, Mask]]:
    """Return the masks of each pair, each a boolean array of shape (n,)."""
    found = []
    for k, pair in enumerate(pairs, 1):
        if not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
            raise InvalidInput(
                f"pair_{k}", pair, "must be a pair of boolean masks, the set that should score higher first."
            )
        found.append((checked_mask(f"pair_{k}[0]", pair[0], rows), checked_mask(f"pair_{k}[1]", pair[1], rows)))
    return found


def _auc_of_run(a: NDArray[Any], b: NDArray[Any], tie_weight: int) -> float:
    """Return (2 wins + tie_weight ties) / (2 pairs): exact integers until the division."""
    return _doubled_wins(a, b, tie_weight) / (2 * a.size * b.size) if a.size and b.size else math.nan


def _doubled_wins(a: NDArray[Any], b: NDArray[Any], tie_weight: int) -> int:
    """Return 2 wins + tie_weight ties of all pairs."""
    a, b = np.sort(a), np.sort(b)
    below = int(np.searchsorted(b, a, side="left").sum())
    ties = int(np.searchsorted(b, a, side="right").sum()) - below
    return 2 * below + tie_weight * ties


def exact_auc(scores_a: Any, scores_b: Any) -> Fraction:
    r"""Return :math:`\Pr(h > h') + \frac12 \Pr(h = h')` between two sets of scores as the rational number that it is.

    Parameters
    ----------
    scores_a, scores_b : array (n_a,) and (n_b,)
        Scores h and h' of the two sets, in any unit.

    Raises
    ------
    InvalidInput
        Scores that are not numbers, not finite (the first such row is named), or of another shape; an empty set.

    Examples
    --------
    >>> exact_auc([2.0, 3.0, 4.0], [1.0, 2.0, 5.0])
    Fraction(11, 18)
    """
    a, b = checked_scores("scores_a", scores_a, (1,)), checked_scores("scores_b", scores_b, (1,))
    for name, scores in (("scores_a", a), ("scores_b", b)):
        if not scores.size:
            raise InvalidInput(name, "no scores", "a set is empty, and an AUC needs both.")
    return Fraction(_doubled_wins(a, b, 1), 2 * a.size * b.size)


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


_LEAST, _LARGEST = 1e-100, 1e100
"""Weights beyond which products of their sums leave the range of floats."""


def _are_usable(weight: NDArray[Any]) -> bool:
    return bool(((weight >= _LEAST) & (weight <= _LARGEST)).all())


def checked_pair_weights(weights: Any, counts: tuple[int, int]) -> Any:
    """Return the weights of both sets, or None where all of a set are alike and so count nothing."""
    if weights is None:
        return None
    if not isinstance(weights, tuple | list) or len(weights) != 2:
        raise InvalidInput("weights", weights, "must be a pair of arrays of numbers, one for each set.")
    pair = []
    for weight, count in zip(weights, counts, strict=True):
        remedy = f"must be positive and finite, one for each of {count} scores, between {_LEAST:g} and {_LARGEST:g}."
        pair.append(finite_array("weights", weight, remedy))
        if pair[-1].shape != (count,) or not _are_usable(pair[-1]):
            raise InvalidInput("weights", weight, remedy)
    return None if all(weight.size == 0 or weight.min() == weight.max() for weight in pair) else pair


def checked_row_weight(row_weight: Any, rows: int) -> Any:
    """Return positive weights of the rows (n,), or None where all are alike and so count nothing."""
    if row_weight is None:
        return None
    remedy = (
        f"must be positive and finite, one for each of {rows} rows; leave out rows of weight 0, and rescale weights"
        f" that are not between {_LEAST:g} and {_LARGEST:g}."
    )
    weight = finite_array("row_weight", row_weight, remedy)
    if weight.shape != (rows,) or not _are_usable(weight):
        raise InvalidInput("row_weight", row_weight, remedy)
    return None if rows == 0 or weight.min() == weight.max() else weight


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
    choice("ties", ties, ("half", "strict"))
    weight = 1 if ties == "half" else 0
    a, b = checked_scores("scores_a", scores_a), checked_scores("scores_b", scores_b)
    if a.ndim != b.ndim or a.shape[:-1] != b.shape[:-1]:
        raise InvalidInput("scores_b", f"shape {b.shape}", f"must have the run axis of scores_a, shape {a.shape}.")
    pair = checked_pair_weights(weights, (a.shape[-1], b.shape[-1]))

    def of_run(x: NDArray[Any], y: NDArray[Any]) -> float:
        return _auc_of_run(x, y, weight) if pair is None else _weighted_auc_of_run(x, y, pair[0], pair[1], weight)

    return of_run(a, b) if a.ndim == 1 else np.array([of_run(x, y) for x, y in zip(a, b, strict=True)])


def auc_gap(
    scores: Any,
    pair_1: Pair,
    pair_2: Pair,
    *,
    ties: Literal["half", "strict"] = "half",
    row_weight: Any = None,
) -> Any:
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
    row_weight : array (n,), optional
        Positive weights of the rows.

    Returns
    -------
    float or array (R,)
        In [0, 1]; NaN where a set is empty.

    Raises
    ------
    InvalidInput
        Scores that are not finite numbers, masks that are not boolean or of another length, or weights that are not
        positive.
    """
    array = checked_scores("scores", scores)
    weight = checked_row_weight(row_weight, array.shape[-1])

    def area(own: Mask, other: Mask) -> Any:
        pair = None if weight is None else (weight[own], weight[other])
        return auc(array[..., own], array[..., other], ties=ties, weights=pair)

    first, second = checked_pairs((pair_1, pair_2), array.shape[-1])
    gap = area(*first) - area(*second)
    return np.abs(gap) if array.ndim == 2 else abs(gap)
