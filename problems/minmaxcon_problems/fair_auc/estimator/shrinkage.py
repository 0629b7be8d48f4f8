r"""The strength of a ridge penalty by cross-validation: a whole path of strengths from one decomposition a fold.

On the training part of a fold let S be the covariance within the classes and :math:`\delta` the difference of their
means. Ridge regression of the labels, with alpha for n rows, ranks rows by :math:`w = (S + \tau I)^{-1}\delta`,
:math:`\tau = \alpha/n`; with the singular values s and vectors V of the rows less their class means,

.. math:: w = V\Bigl(\frac1{s^2 + \tau} - \frac1\tau\Bigr)V^\top\delta + \frac1\tau\delta .

The strength is the one of the best AUC on the rows left out, averaged over folds; of equally good ones the largest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from minmaxcon import metrics

__all__ = ["FEW", "Shrinkage", "chosen_shrinkage", "folds_of"]

FEW = 20
"""Rows of the rarer class for each feature, below which the strength is chosen by cross-validation by default.

Fewer than 10 to 20 events a variable is what clinical statistics calls too few (Peduzzi et al., 1996).
"""

_STRENGTHS = np.logspace(-4, 2, 13)
""":math:`\\tau`, in units of the features' mean variance."""

_FOLDS, _ROUNDS = 5, 4

_MOST = 2000
"""Rows that the strength is chosen on, at most."""


@dataclass(frozen=True, eq=False, slots=True)
class Shrinkage:
    """Strengths ``alphas`` (A,), the AUC on rows left out for each, ``aucs`` (A,), and the one chosen, ``alpha``.

    ``noise`` is its variance for all rows and ``auc`` the AUC of the one chosen; there were ``folds`` folds in each of
    ``rounds`` rounds.
    """

    alphas: Any
    aucs: Any
    alpha: float
    noise: float
    auc: float
    folds: int
    rounds: int


def folds_of(strata: Any, folds: int, rng: np.random.Generator) -> Iterator[tuple[Any, Any]]:
    """Yield the rows to train on and those left out, of folds in which every stratum has its share.

    ``strata`` (n,) are whole numbers. The first of the larger folds changes from stratum to stratum.
    """
    order = rng.permutation(len(strata))
    place = np.empty(len(strata), dtype=np.int64)
    ranked = order[np.argsort(strata[order], kind="stable")]
    place[ranked] = np.arange(len(strata)) % folds
    for fold in range(folds):
        yield np.flatnonzero(place != fold), np.flatnonzero(place == fold)


def chosen_shrinkage(
    features: Any, positive: Any, group: Any, row_weight: Any, total: float, seed: int
) -> Shrinkage | None:
    """Choose a strength for features (n, d), dense or CSR, and a mask (n,) of the positive rows.

    Folds keep the shares of labels and of ``group`` (n,), whole numbers. A row stands for ``row_weight`` (n,) rows, all
    rows for ``total``; equal rows count as one of their summed weight, so that it makes no difference whether a row is
    repeated or weighted. It is None where a class has too few different rows to be in
    every part.
    """
    rng, count = np.random.default_rng(seed), len(positive)
    weight: Any = np.ones(count) if row_weight is None else np.asarray(row_weight, dtype=np.float64)
    if count > _MOST:
        chosen = _subsample(positive, rng)
        features, positive, group, weight = features[chosen], positive[chosen], group[chosen], weight[chosen]
    rows = np.asarray(features.toarray() if hasattr(features, "tocsr") else features, dtype=np.float64)
    used = len(rows)
    whole = np.column_stack([positive, group, rows])
    _, first, inverse = np.unique(whole, axis=0, return_index=True, return_inverse=True)
    weight = np.bincount(inverse.ravel(), weight)
    rows, positive, group = rows[first], positive[first], group[first]
    folds = int(min(_FOLDS, positive.sum(), (~positive).sum()))
    if folds < 2:
        return None
    share = weight / weight.sum()
    variance = float(share @ ((rows - share @ rows) ** 2).mean(axis=1))
    noise = _STRENGTHS * max(variance, 1e-300)
    found = [
        _left_out(rows, positive, weight, noise, train, rest)
        for _ in range(_ROUNDS)
        for train, rest in folds_of(2 * group.astype(np.int64) + positive, folds, rng)
        if all(positive[part].any() and not positive[part].all() for part in (train, rest))
    ]
    if not found:
        return None
    aucs = np.mean(found, axis=0)
    best = int(np.flatnonzero(aucs >= aucs.max() - 1e-12)[-1])
    # Noise of a given variance hurts less where rows are many: alpha, which does not, carries over to all rows.
    variances = noise * (used / count)
    alphas = variances * total
    return Shrinkage(alphas, aucs, float(alphas[best]), float(variances[best]), float(aucs[best]), folds, _ROUNDS)


def _subsample(positive: Any, rng: np.random.Generator) -> Any:
    """Return the rows to choose by: the rarer class keeps all of its rows, up to half."""
    kept = [np.flatnonzero(positive == side) for side in (True, False)]
    least = min(_MOST // 2, *(part.size for part in kept))
    parts = [rng.choice(part, min(part.size, _MOST - least), replace=False) for part in kept]
    return np.sort(np.concatenate(parts))


def _left_out(rows: Any, positive: Any, weight: Any, noise: Any, train: Any, rest: Any) -> Any:
    """Return the AUC (A,) on the rows left out for each strength."""
    mine, side, own = rows[train], positive[train], weight[train]
    shares = [np.where(side == label, own, 0.0) for label in (True, False)]
    means = [share @ mine / share.sum() for share in shares]
    centred = (mine - np.where(side[:, None], *means)) * np.sqrt(own / own.sum())[:, None]
    delta = means[0] - means[1]
    tall = len(centred) >= centred.shape[1]  # decompose the smaller matrix of products
    if tall:
        squares, vectors = np.linalg.eigh(centred.T @ centred)
        squares = np.maximum(squares, 0.0)
        along = vectors.T @ delta
        w = vectors @ (along[:, None] / (squares[:, None] + noise))
    else:
        _, singular, vectors = np.linalg.svd(centred, full_matrices=False)
        along = vectors @ delta
        part = along[:, None] * (1.0 / (singular[:, None] ** 2 + noise) - 1.0 / noise)
        w = vectors.T @ part + delta[:, None] / noise
    scores = (rows[rest] @ w).T
    first, second = (positive[rest] == label for label in (True, False))
    weights = None if np.ptp(weight) == 0 else (weight[rest][first], weight[rest][second])
    return np.asarray(metrics.auc(scores[:, first], scores[:, second], weights=weights))
