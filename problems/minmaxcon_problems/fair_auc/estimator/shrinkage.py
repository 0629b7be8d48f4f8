r"""The strength of a ridge penalty, by an estimate in closed form of the AUC that each strength has on new rows.

Let :math:`\delta` be the difference of the class means and S the mean of the classes' covariances. Ridge :math:`\tau`
ranks rows by :math:`w = (\hat S + \tau I)^{-1}\hat\delta`. On new rows of normal classes that is an AUC of
:math:`\Phi(w^\top\delta / \sqrt{2 w^\top S w})`. The training rows overstate it: w follows the errors of
:math:`\hat\delta`, whose covariance is S/m with :math:`1/m = 1/n_+ + 1/n_-`, and :math:`\hat S` is too small along w.
With eigenvalues :math:`s_j` of :math:`\hat S`, components :math:`z_j` of :math:`\hat\delta` along its eigenvectors and
degrees of freedom :math:`k = \sum_j s_j/(s_j + \tau)`, both are taken away in

.. math:: \widehat{AUC}(\tau) = \Phi(t_\tau), \quad
    t_\tau = \frac{(1 - k/N)\sum_j z_j^2/(s_j + \tau) - k/m}{\sqrt{2\sum_j s_j z_j^2/(s_j + \tau)^2}}, \quad N = 4m - 2,

which is consistent where rows and features grow in proportion [1]_. One decomposition serves all strengths, no rows
are left out, and nothing is drawn.

Of the strengths that rows cannot tell from the best one the largest is chosen, by the rule of one standard error [2]_:
scores whose correlation within the classes is r have values t with a difference of standard error
:math:`\sqrt{(1 - r)/m}`. An AUC hardly sees how far w follows directions in which features vary little, but gaps do,
which are measured on fewer rows.

References
----------
.. [1] A. Zollanvari and E. R. Dougherty, Generalized consistent error estimator of linear discriminant analysis, IEEE
   Transactions on Signal Processing 63 (2015), 2804-2814.
.. [2] L. Breiman, J. Friedman, R. Olshen and C. Stone, Classification and Regression Trees (1984), section 3.4.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from minmaxcon_problems.fair_auc.target.objectives import auc_curvature

__all__ = ["Shrinkage", "chosen_shrinkage"]

_STRENGTHS = np.append(0.0, np.logspace(-5, 1, 25))
""":math:`\tau`, in units of the features' median variance; at the last one means are nearly all that counts."""

_MOST = 2000
"""Features above which, as where they are more than the rows, the rows are decomposed: a sample of at most so many."""

_RANK = 1e-9
"""Eigenvalues that are smaller than this share of the largest one are 0 up to rounding."""


@dataclass(frozen=True, eq=False, slots=True)
class Shrinkage:
    """Strengths ``alphas`` (A,), the AUC on new rows that is estimated for each, ``aucs`` (A,), and the one chosen.

    It is ``alpha``, of the AUC ``auc``; ``noise`` is its variance for all rows. NaN is an estimate that
    the rows cannot give.
    """

    alphas: Any
    aucs: Any
    alpha: float
    noise: float
    auc: float


def chosen_shrinkage(
    features: Any, positive: Any, row_weight: Any, total: float, seed: int, shifts: int = 0
) -> Shrinkage | None:
    """Choose a strength for features (n, d), dense or CSR, and a mask (n,) of the positive rows.

    The last features are ``shifts`` of groups, which hardly count in a penalty: the others are judged by what they tell
    beside them. A row stands for ``row_weight`` (n,) rows, all rows for ``total``. None is returned where a class has
    too few rows to tell.
    """
    count = len(positive)
    wide = features.shape[1] > min(count, _MOST)
    weight: Any = np.ones(count) if row_weight is None else np.asarray(row_weight, dtype=np.float64)
    if wide and count > _MOST:
        kept = _subsample(positive, np.random.default_rng(seed))
        features, positive, weight = features[kept], positive[kept], weight[kept]
    parts = [np.flatnonzero(~positive), np.flatnonzero(positive)]
    m = 1.0 / float(np.sum([1.0 / size for size in _sizes(weight, parts)]))
    if 4.0 * m < 3.0:
        return None
    classes, weights = [features[part] for part in parts], [weight[part] for part in parts]
    spectrum = (_Spectrum.of_rows if wide else _Spectrum.of_features)(classes, weights, shifts)
    noise = _STRENGTHS * spectrum.unit
    found, errors = spectrum.estimated(noise, m)
    if np.isnan(found).all():
        return None
    best = int(np.nanargmax(found))
    chosen, aucs = int(np.flatnonzero(found[best] - found <= errors[best] + 1e-12)[-1]), ndtr(found)
    # A variance of noise hurts less where rows are many: alpha, which does not, carries over to all rows.
    noise = noise * (len(positive) / count)
    return Shrinkage(noise * total, aucs, float(noise[chosen] * total), float(noise[chosen]), float(aucs[chosen]))


def _sizes(weight: Any, parts: Sequence[Any]) -> list[float]:
    """Return how many rows each part has: copies, where weights are whole numbers, else Kish's effective number."""
    if np.array_equal(np.rint(weight), weight) and weight.max() < 2**53:
        unit = float(np.gcd.reduce(weight.astype(np.int64)))
        return [float(weight[part].sum()) / unit for part in parts]
    return [float(weight[part].sum() ** 2 / (weight[part] @ weight[part])) for part in parts]


def _subsample(positive: Any, rng: np.random.Generator) -> Any:
    """Return the rows to choose by: the rarer class keeps all of its rows, up to half."""
    kept = [np.flatnonzero(positive == side) for side in (True, False)]
    least = min(_MOST // 2, *(part.size for part in kept))
    parts = [rng.choice(part, min(part.size, _MOST - least), replace=False) for part in kept]
    return np.sort(np.concatenate(parts))


@dataclass(frozen=True, eq=False, slots=True)
class _Spectrum:
    """Eigenvalues (J,) of the mean covariance, components (J,) of the difference of means along its eigenvectors.

    ``beyond`` is the squared difference in the null space, and ``unit`` the features' median variance.
    """

    values: Any
    along: Any
    beyond: float
    unit: float

    @classmethod
    def of_features(cls, classes: Sequence[Any], weights: Sequence[Any], shifts: int) -> _Spectrum:
        """Return the spectrum of rows, dense or CSR, of two classes with their weights, less the last features."""
        means = [np.asarray(rows.T @ (own / own.sum())).ravel() for rows, own in zip(classes, weights, strict=True)]
        delta = means[1] - means[0]
        covariance = auc_curvature(0.25)(classes, weights, ()) - 0.5 * np.outer(delta, delta)
        if shifts:
            slopes = np.linalg.lstsq(covariance[-shifts:, -shifts:], covariance[-shifts:, :-shifts], rcond=None)[0]
            covariance = covariance[:-shifts, :-shifts] - covariance[:-shifts, -shifts:] @ slopes
            delta = delta[:-shifts] - delta[-shifts:] @ slopes
        values, vectors = np.linalg.eigh(covariance)
        along = vectors.T @ delta
        seen = values > _RANK * max(float(values[-1]), 0.0)
        return cls(values[seen], along[seen], float(along[~seen] @ along[~seen]), _unit(np.diagonal(covariance)))

    @classmethod
    def of_rows(cls, classes: Sequence[Any], weights: Sequence[Any], shifts: int) -> _Spectrum:
        """Return the same from the products of rows, for fewer rows than features."""
        dense = [np.asarray(rows.toarray() if hasattr(rows, "tocsr") else rows, dtype=np.float64) for rows in classes]
        shares = [own / own.sum() for own in weights]
        means = [share @ rows for share, rows in zip(shares, dense, strict=True)]
        delta, parts = means[1] - means[0], zip(dense, means, shares, strict=True)
        centred = np.concatenate([(rows - mean) * np.sqrt(0.5 * share)[:, None] for rows, mean, share in parts])
        if shifts:
            slopes = np.linalg.lstsq(centred[:, -shifts:], centred[:, :-shifts], rcond=None)[0]
            centred = centred[:, :-shifts] - centred[:, -shifts:] @ slopes
            delta = delta[:-shifts] - delta[-shifts:] @ slopes
        values, vectors = np.linalg.eigh(centred @ centred.T)
        seen = values > _RANK * max(float(values[-1]), 0.0)
        values = values[seen]
        along = (vectors.T @ (centred @ delta))[seen] / np.sqrt(values)
        return cls(values, along, max(float(delta @ delta - along @ along), 0.0), _unit((centred**2).sum(axis=0)))

    def estimated(self, noise: Any, m: float) -> tuple[Any, Any]:
        r"""Return :math:`t` (A,) for each variance of noise, and standard errors (A, A) of their differences.

        It is at least 0, and NaN where rows leave no freedom to tell.
        """
        free = 4.0 * m - 2.0
        values = self.values * (4.0 * m / free)  # each class has lost one row to its mean
        apart = noise[:, None] + values
        used = (values / apart).sum(axis=1)
        w = self.along / apart
        products = (w * values) @ w.T
        norms = np.sqrt(np.diagonal(products))
        with np.errstate(divide="ignore", invalid="ignore"):
            certain = self.beyond <= _RANK * float(self.along @ self.along)
            outside = 0.0 * noise if certain else self.beyond / noise
            signal = (1.0 - used / free) * (w @ self.along + outside) - used / m
            found = signal / (np.sqrt(2.0) * norms)
            correlation = np.nan_to_num(products / np.outer(norms, norms), nan=1.0)
        found = np.maximum(np.nan_to_num(found, nan=0.0), 0.0)  # features that tell nothing have no scores
        found = np.where(np.isfinite(outside) & (used < free), found, np.nan)
        return found, np.sqrt(np.maximum(1.0 - correlation, 0.0) / m)


def _unit(variances: Any) -> float:
    """Return the median variance; the mean where most features are constant."""
    found = float(np.median(variances))
    return found if found > 0 else float(variances.mean()) or 1.0
