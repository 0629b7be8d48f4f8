r"""The strength of a ridge penalty, by an estimate in closed form of the AUC that each strength has on new rows.

Let :math:`\hat\delta` be the difference of the means of two classes of :math:`n_c` rows, :math:`S_c` their covariances,
and S the mean of both. Ridge :math:`\tau` ranks rows by :math:`w = A\hat\delta` with :math:`A = (S + \tau I)^{-1}`. The
training rows overstate its AUC, since w follows them. A row r, from the mean of its class, is left out by the formula
of Sherman and Morrison: its score :math:`w^\top r` becomes about :math:`(w^\top r \mp r^\top Ar/n_c)/(1 - b_c r^\top
Ar)` with :math:`b_c = 1/(2(n_c - 1))`. Where many features share in it, :math:`r^\top Ar` is near its mean over the
class, :math:`q_c = \operatorname{tr}(AS_c)`, which gives the means and variances of all scores that are left out:

.. math:: \widehat{AUC}(\tau) = \Phi(t_\tau), \quad
    t_\tau = \frac{\hat\delta^\top A\hat\delta - \sum_c g_c/n_c}{\sqrt{\sum_c (1 + b_c g_c)^2\, w^\top S_c w}}, \quad
    g_c = \frac{q_c}{1 - b_c q_c}.

Where the classes have the same size and covariance it comes to the estimator of Zollanvari and Dougherty [1]_, which is
consistent where rows and features grow in proportion; here both may differ. Two things are assumed: scores are normal
within each class, and :math:`r^\top Ar` is much the same for all rows of a class. Features with extreme values break
both. One decomposition serves all strengths, no rows are left out in fact, and nothing is drawn.

Shifts of groups have no penalty: :math:`\tau I` is 0 for them. Regression on them, within the classes, takes from the
other features what shifts tell of those, so that S has one block for each kind, and A has the same eigenvectors for all
:math:`\tau`. An estimate without the shifts would not see that they outweigh features that are shrunken.

Of the strengths that rows cannot tell from the best one the largest is chosen, by the rule of one standard error [2]_.
If :math:`\sigma_\tau` is the denominator, and scores are divided by it, then the difference of two values t has the
squared standard error :math:`\sum_c v_c/n_c`, where :math:`v_c` is the variance within class c of the difference of
both scores, left out as above. An AUC hardly sees how far w follows directions in which features vary little, but gaps
do, which are measured on fewer rows.

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
from scipy.sparse import csr_matrix, vstack
from scipy.special import ndtr

from minmaxcon.errors import InvalidInput

__all__ = ["Shrinkage", "check_magnitude", "chosen_shrinkage"]

_STRENGTHS = np.append(0.0, np.logspace(-5, 1, 25))
""":math:`\tau`, in units of the features' median variance; at the last one means are nearly all that counts."""

_MOST = 2000
"""Features above which, as where they are more than the rows, the rows are decomposed: a sample of at most so many."""

_RANK = 1e-9
"""Eigenvalues that are smaller than this share of the largest one are 0 up to rounding."""

_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""Share of a number that rounding may leave of a difference that is 0."""

_LARGEST = 1e140
"""Numbers up to this one can be squared and added up."""

_COPIES = 10.0
"""Whole numbers up to this one are taken for copies of a row; larger ones are the weights of a survey."""


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

    The last features are ``shifts`` of groups, which hardly count in a penalty: here it leaves them out. A row stands
    for ``row_weight`` (n,) rows, all rows for ``total``. None is returned where a class has too few rows to tell.
    """
    count = len(positive)
    check_magnitude(features)
    wide = features.shape[1] > min(count, _MOST)
    weight: Any = np.ones(count) if row_weight is None else np.asarray(row_weight, dtype=np.float64)
    if wide and count > _MOST:
        kept = _subsample(positive, np.random.default_rng(seed))
        features, positive, weight = features[kept], positive[kept], weight[kept]
    parts = [np.flatnonzero(~positive), np.flatnonzero(positive)]
    sizes = _sizes(weight, parts)
    if min(sizes) < 2.0:
        return None
    classes, weights = [features[part] for part in parts], [weight[part] for part in parts]
    spectrum = (_Spectrum.of_rows if wide else _Spectrum.of_features)(classes, weights, sizes, shifts)
    noise = _STRENGTHS * spectrum.unit
    found, errors = spectrum.estimated(noise)
    if np.isnan(found).all():
        return None
    best = int(np.nanargmax(found))
    chosen, aucs = int(np.flatnonzero(found[best] - found <= errors[best] + 1e-12)[-1]), ndtr(found)
    # A variance of noise hurts less where rows are many: alpha, which does not, carries over to all rows.
    noise = noise * (len(positive) / count)
    return Shrinkage(noise * total, aucs, float(noise[chosen] * total), float(noise[chosen]), float(aucs[chosen]))


def check_magnitude(features: Any) -> None:
    """Refuse features (n, d) whose squares could overflow."""
    largest = float(max(features.max(), -features.min())) if features.shape[1] else 0.0
    if largest > _LARGEST:
        raise InvalidInput("X", largest, "is too large to be squared: scale the features, or set standardize=True.")


def _sizes(weight: Any, parts: Sequence[Any]) -> list[float]:
    """Return how many rows each part has: copies, where weights are small whole numbers, else Kish's effective number.

    Equal weights count once each, whatever they are; others are small up to ten times their greatest common divisor.
    """
    if any(part.size == 0 for part in parts):
        return [0.0]
    if np.array_equal(np.rint(weight), weight) and weight.max() < 2**53:
        unit = float(np.gcd.reduce(weight.astype(np.int64)))
        if weight.max() <= _COPIES * unit:
            return [float(weight[part].sum()) / unit for part in parts]
    own = [weight[part] / weight.max() for part in parts]  # squares of weights could overflow
    return [float(one.sum() ** 2 / (one @ one)) for one in own]


def _subsample(positive: Any, rng: np.random.Generator) -> Any:
    """Return the rows to choose by: the rarer class keeps all of its rows, up to half."""
    kept = [np.flatnonzero(positive == side) for side in (True, False)]
    least = min(_MOST // 2, *(part.size for part in kept))
    parts = [rng.choice(part, min(part.size, _MOST - least), replace=False) for part in kept]
    return np.sort(np.concatenate(parts))


@dataclass(frozen=True, eq=False, slots=True)
class _Spectrum:
    """Eigenvalues (J,) of the mean covariance, components (J,) of the difference of means along its eigenvectors.

    ``second`` (J, J) is the covariance of the second class along them, the last ``free`` are those of shifts,
    ``sizes`` are the numbers of rows of the classes, ``beyond`` is the squared difference in the null space, and
    ``unit`` the features' median variance; both are of features with a penalty.
    """

    values: Any
    along: Any
    second: Any
    free: int
    sizes: Any
    beyond: float
    unit: float

    @classmethod
    def of_features(
        cls, classes: Sequence[Any], weights: Sequence[Any], sizes: Sequence[float], shifts: int
    ) -> _Spectrum:
        """Return the spectrum of rows, dense or CSR, of two classes with weights; the last features are shifts."""
        found = [_moments(*one) for one in zip(classes, weights, sizes, strict=True)]
        covariance, rounding = (0.5 * (found[0][i] + found[1][i]) for i in (0, 2))
        second, delta = found[1][0], found[1][1] - found[0][1]
        lost = np.diagonal(covariance) <= rounding
        for one in (covariance, second):
            one[lost] = one[:, lost] = 0.0
        delta[lost & (delta**2 <= rounding)] = rounding[lost] = 0.0
        plain = len(delta) - shifts
        if shifts:
            rounding[:plain] = np.maximum(rounding[:plain], _RANK * np.diagonal(covariance)[:plain])
            slopes = np.linalg.lstsq(covariance[plain:, plain:], covariance[plain:, :plain], rcond=None)[0]
            for one in (covariance, second):
                one[:, :plain] -= one[:, plain:] @ slopes
                one[:plain] -= slopes.T @ one[plain:]
            delta[:plain] -= delta[plain:] @ slopes
        values, vectors = _eigen(covariance[:plain, :plain], rounding[:plain])
        free, beside = _eigen(covariance[plain:, plain:], rounding[plain:])
        basis = np.zeros((len(delta), len(values) + len(free)))
        basis[:plain, : len(values)], basis[plain:, len(values) :] = vectors, beside
        unit = _unit(np.diagonal(covariance)[:plain], rounding[:plain])
        return cls.of(
            np.append(values, free), delta @ basis, basis.T @ second @ basis, len(free), sizes, delta[:plain], unit
        )

    @classmethod
    def of_rows(cls, classes: Sequence[Any], weights: Sequence[Any], sizes: Sequence[float], shifts: int) -> _Spectrum:
        """Return the same from the products of rows, for fewer rows than features."""
        plain = classes[0].shape[1] - shifts
        make: Any = _SparseRows if hasattr(classes[0], "tocsr") else _DenseRows
        rows = make([part[:, :plain] for part in classes], weights, sizes)
        delta, gram = rows.delta, rows.gram()
        found, variances, rounding = rows.times(delta), rows.variances, rows.rounding
        values, free, along, groups = np.zeros(0), np.zeros(0), np.zeros(0), np.zeros((len(gram), 0))
        if shifts:
            beside = _DenseRows([_dense(part[:, plain:]) for part in classes], weights, sizes)
            free, vectors = _eigen(beside.centred.T @ beside.centred, beside.rounding)
            groups, along = beside.centred @ vectors, beside.delta @ vectors  # scores of rows, and their difference
            basis = groups / np.sqrt(free)
            delta = delta - along @ rows.products(groups / free)
            rounding = np.maximum(rounding, _RANK * variances)
            variances = variances - (rows.products(basis) ** 2).sum(axis=0)
            found = rows.times(delta)
            found -= basis @ (basis.T @ found)
            gram -= basis @ (basis.T @ gram)
            gram -= (gram @ basis) @ basis.T
        values, vectors = _eigen(gram, rounding)
        scores = np.hstack([vectors * np.sqrt(values), groups])  # of rows along the eigenvectors
        along = np.append(scores[:, : len(values)].T @ found / values, along)
        own = scores[classes[0].shape[0] :]
        unit = _unit(variances, rounding)
        return cls.of(np.append(values, free), along, 2.0 * own.T @ own, len(free), sizes, delta, unit)

    @classmethod
    def of(
        cls, values: Any, along: Any, second: Any, free: int, sizes: Sequence[float], delta: Any, unit: float
    ) -> _Spectrum:
        """Return it with what is left of the difference ``delta`` of the features with a penalty."""
        seen = along[: len(along) - free]
        beyond = max(float(delta @ delta - seen @ seen), 0.0)
        return cls(values, along, second, free, np.asarray(sizes), beyond, unit)

    def estimated(self, noise: Any) -> tuple[Any, Any]:
        r"""Return :math:`t` (A,) for each variance of noise, and standard errors (A, A) of their differences.

        It is at least 0, and NaN where rows leave no freedom to tell.
        """
        apart = self.values + np.multiply.outer(noise, np.arange(len(self.values)) < len(self.values) - self.free)
        w = self.along / apart
        whole, half = (w * self.values) @ w.T, w @ self.second @ w.T
        shares = np.diagonal(self.second)
        signal, free, products = w @ self.along, np.ones(len(noise), dtype=bool), []
        classes = ((2.0 * self.values - shares, 2.0 * whole - half), (shares, half))
        with np.errstate(divide="ignore", invalid="ignore"):
            certain = self.beyond <= _RANK * float(self.along @ self.along)
            signal = signal + (0.0 * noise if certain else self.beyond / noise)
            for size, (variances, product) in zip(self.sizes, classes, strict=True):
                q = (variances / apart).sum(axis=1)
                left = 1.0 - q / (2.0 * (size - 1.0))
                free &= left > _RANK
                signal = signal - q / left / size
                products.append(product / np.outer(left, left))
            norms = np.sqrt(np.diagonal(products[0] + products[1]))
            found = signal / norms
            # Features that tell nothing have no scores.
            found = np.where(np.isfinite(signal) & free, np.maximum(np.nan_to_num(found, nan=0.0), 0.0), np.nan)
            scaled = [np.nan_to_num(one / np.outer(norms, norms), posinf=0.0) for one in products]
        errors = 0.0 * whole
        for size, one in zip(self.sizes, scaled, strict=True):
            own = np.diagonal(one)
            errors = errors + np.maximum(own[:, None] + own - 2.0 * one, 0.0) / size
        return found, np.sqrt(errors)


class _DenseRows:
    """Rows of two classes less their means, whose products add up to the mean covariance.

    ``delta`` (d,) is the difference of the means, ``rounding`` (d,) what rounding may have left of ``variances`` (d,).
    Features without a variance have none, and no difference, that is rounding.
    """

    def __init__(self, classes: Sequence[Any], weights: Sequence[Any], sizes: Sequence[float]) -> None:
        found = [_centred(*one) for one in zip(classes, weights, sizes, strict=True)]
        self.centred = np.concatenate([rows for rows, _, _ in found])
        self.centred *= np.sqrt(0.5)
        self.rounding, self.delta = 0.5 * (found[0][2] + found[1][2]), found[1][1] - found[0][1]
        self.variances = np.einsum("ij,ij->j", self.centred, self.centred)
        lost = self.variances <= self.rounding
        self.centred[:, lost] = self.variances[lost] = 0.0
        self.delta[lost & (self.delta**2 <= self.rounding)] = self.rounding[lost] = 0.0

    def gram(self) -> Any:
        """Return the products of all rows with each other (n, n)."""
        return self.centred @ self.centred.T

    def times(self, vector: Any) -> Any:
        """Return the products (n,) of rows with a vector (d,)."""
        return self.centred @ vector

    def products(self, columns: Any) -> Any:
        """Return the sums (k, d) of rows, with factors (n, k)."""
        return columns.T @ self.centred


class _SparseRows:
    """The same of CSR rows: they are not centred, and no feature that all rows lack takes memory.

    Features without a zero in a class are counted from one of its values: of squares little would be left where a mean
    is far larger than the deviations, and a feature with zeros has no such mean.
    """

    def __init__(self, classes: Sequence[Any], weights: Sequence[Any], sizes: Sequence[float]) -> None:
        shifted = [_shifted(part) for part in classes]
        used, places = np.unique(np.concatenate([part.indices for part, _ in shifted]), return_inverse=True)
        self.rows = vstack([part for part, _ in shifted], format="csr")
        self.rows = csr_matrix((self.rows.data, places, self.rows.indptr), shape=(self.rows.shape[0], len(used)))
        self.side = np.repeat([0, 1], [part.shape[0] for part in classes])
        shares = np.concatenate([weight / weight.sum() for weight in weights])
        factor = (np.asarray(sizes) / (np.asarray(sizes) - 1.0))[self.side]
        self.scale = np.sqrt(0.5 * shares * factor)
        self.shares = shares[:, None] * (self.side[:, None] == [0, 1])
        self.means = self.shares.T @ self.rows
        squares = (shares * factor) @ self.rows.power(2)
        self.variances = 0.5 * (squares - factor[[0, -1]] @ self.means**2)
        first = np.array([shift[used] for _, shift in shifted])
        self.rounding = 0.5 * (len(shares) * _ROUNDING * squares + ((_ROUNDING * first) ** 2).sum(axis=0))
        self.delta = (first[1] - first[0]) + (self.means[1] - self.means[0])
        lost = self.variances <= self.rounding
        self.rows.data[lost[self.rows.indices]] = 0.0
        self.means[:, lost] = self.variances[lost] = 0.0
        self.delta[lost & (self.delta**2 <= self.rounding)] = self.rounding[lost] = 0.0

    def gram(self) -> Any:
        """See :meth:`_DenseRows.gram`."""
        found = (self.rows @ self.rows.T).toarray()
        for _ in range(2):  # less the means of the rows, and of the columns
            found = found.T - (found.T @ self.shares)[:, self.side]
        return found * np.outer(self.scale, self.scale)

    def times(self, vector: Any) -> Any:
        """See :meth:`_DenseRows.times`."""
        return self.scale * (self.rows @ vector - (self.means @ vector)[self.side])

    def products(self, columns: Any) -> Any:
        """See :meth:`_DenseRows.products`."""
        return (columns * self.scale[:, None]).T @ self.rows  # columns are of centred rows: means fall out


def _shifted(rows: Any) -> tuple[Any, Any]:
    """Return CSR rows less the first value of each column without a zero, and these values (d,), 0 of other columns."""
    rows = csr_matrix(rows, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    first = np.where(rows.getnnz(axis=0) == rows.shape[0], rows[0].toarray().ravel(), 0.0)
    rows.data -= first[rows.indices]
    return rows, first


def _dense(rows: Any) -> Any:
    return np.asarray(rows.toarray() if hasattr(rows, "tocsr") else rows, dtype=np.float64)


def _centred(rows: Any, weight: Any, size: float) -> tuple[Any, Any, Any]:
    """Return dense rows less their mean, whose products add up to their covariance, the mean, and the rounding."""
    share = weight / weight.sum()
    first = np.asarray(rows[0], dtype=np.float64)
    centred = rows - first  # constant features are exactly 0
    mean = share @ centred
    centred -= mean
    centred *= np.sqrt(share * (size / (size - 1.0)))[:, None]
    return centred, first + mean, (_ROUNDING * abs(rows).max(axis=0).astype(np.float64)) ** 2


def _moments(rows: Any, weight: Any, size: float) -> tuple[Any, Any, Any]:
    """Return the covariance of rows, their mean, and what rounding may have left of each variance.

    CSR rows are not centred but counted from one of them where they have no zero, which leaves more: sums of equal
    squares lose with every row.
    """
    if not hasattr(rows, "tocsr"):
        centred, mean, rounding = _centred(rows, weight, size)
        return centred.T @ centred, mean, rounding
    (rows, first), share = _shifted(rows), weight / weight.sum()
    mean = np.asarray(rows.T @ share).ravel()
    squares = np.asarray((rows.T @ rows.multiply(share[:, None])).todense())
    rounding = len(share) * _ROUNDING * np.diagonal(squares) + (_ROUNDING * first) ** 2
    return (squares - np.outer(mean, mean)) * (size / (size - 1.0)), first + mean, rounding


def _eigen(matrix: Any, rounding: Any) -> tuple[Any, Any]:
    """Return the eigenvalues of a matrix that are more than rounding, and their eigenvectors."""
    values, vectors = np.linalg.eigh(matrix)
    least = np.append(values, 0.0).max() * _RANK
    seen = values > max(float(least), float(np.append(rounding, 0.0).max()))
    return values[seen], vectors[:, seen]


def _unit(variances: Any, rounding: Any) -> float:
    """Return the median of the variances that are more than rounding."""
    found = variances[variances > rounding]
    return float(np.median(found)) if found.size else 1.0
