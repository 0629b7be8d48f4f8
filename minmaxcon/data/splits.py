r"""Seeded splits of rows, and the standardisation :math:`(x - \mu)/s` that is learned from the training part alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minmaxcon.arrays import to_numpy
from minmaxcon.checks import finite_array, seed_number, whole
from minmaxcon.errors import InvalidInput

__all__ = ["Standardizer", "split_indices", "stratified_split_indices"]

Indices = NDArray[np.int64]

_ROUNDING = 1e-12
"""Deviation of a feature, relative to its mean, up to which it is constant."""


def _cumulative(fractions: Sequence[float]) -> NDArray[np.float64]:
    remedy = "must be positive and sum to 1, such as (0.7, 0.3)."
    shares: NDArray[np.float64] = finite_array("fractions", fractions, remedy)
    if shares.ndim != 1 or not shares.size or not (shares > 0).all() or abs(float(shares.sum()) - 1.0) > 1e-9:
        raise InvalidInput("fractions", fractions, remedy)
    return np.cumsum(shares)[:-1]


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed_number("seed", seed))


def split_indices(n: int, fractions: Sequence[float], seed: int) -> tuple[Indices, ...]:
    r"""Return a random partition of the row indices 0..n-1.

    With the permutation p of ``default_rng(seed)`` and cumulative fractions :math:`c_k`, part k is
    :math:`p[\lfloor c_{k-1} n \rfloor : \lfloor c_k n \rfloor]`, in the order of p.

    Parameters
    ----------
    n : int
        Number of rows.
    fractions : sequence of float
        Positive, summing to 1.
    seed : int
        Seed of the permutation.

    Returns
    -------
    tuple of arrays
        One index array per fraction.

    Raises
    ------
    InvalidInput
        Fractions that are not positive or do not sum to 1, so few rows that a part would be empty, or a seed that is
        none.

    Examples
    --------
    >>> [len(part) for part in split_indices(10, (0.6, 0.2, 0.2), seed=0)]
    [6, 2, 2]
    """
    # A cut such as 0.7 * 10 = 6.999... is the whole number it stands for.
    n = whole("n", n, least=0)
    cuts = np.floor(_cumulative(fractions) * n + 1e-9).astype(np.int64)
    parts = tuple(np.split(_generator(seed).permutation(n), cuts))
    if not all(map(len, parts)):
        raise InvalidInput(
            "n", n, f"so few rows leave a part empty for the fractions {tuple(fractions)}; use more rows."
        )
    return parts


def stratified_split_indices(
    strata: Sequence[Any] | NDArray[Any], fractions: Sequence[float], seed: int
) -> tuple[Indices, ...]:
    """Return a random partition of the rows in which every part holds its fraction of every stratum.

    Each stratum is permuted and cut on its own, by largest remainders; where it has a row for every part, each part
    gets at least one.

    Parameters
    ----------
    strata : array (n,) or (n, k)
        Stratum of each row; with k columns, their combinations.
    fractions : sequence of float
        Positive, summing to 1.
    seed : int
        Seed of the permutation.

    Returns
    -------
    tuple of arrays
        One increasing index array per fraction.

    Raises
    ------
    InvalidInput
        Strata that are no array of rows, fractions that are not positive or do not sum to 1, or a seed that is none.
    """
    _cumulative(fractions)
    columns = np.asarray(to_numpy(strata))
    if not columns.ndim:
        raise InvalidInput("strata", strata, "must hold the stratum of each row: an array (n,) or (n, k).")
    stratum = np.zeros(len(columns), dtype=np.int64)
    for column in columns.reshape(len(columns), -1).T if columns.size else ():
        # One column after another, since whole rows take many times as long to sort. Both factors are at most n.
        values, codes = np.unique(column, return_inverse=True)
        stratum = np.unique(stratum * len(values) + codes, return_inverse=True)[1]
    order = _generator(seed).permutation(stratum.size)
    parts: list[list[Indices]] = [[] for _ in fractions]
    for value in range(int(stratum.max(initial=-1)) + 1):
        members = order[stratum[order] == value]
        for part, chosen in zip(parts, np.split(members, np.cumsum(_sizes(members.size, fractions))[:-1]), strict=True):
            part.append(chosen)
    return tuple(np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *part])) for part in parts)


def _sizes(n: int, fractions: Sequence[float]) -> NDArray[np.int64]:
    """Cut n into whole parts by largest remainders, none empty if n allows it."""
    exact = np.asarray(fractions) * n
    sizes = np.floor(exact + 1e-9).astype(np.int64)
    sizes[np.argsort(sizes - exact, kind="stable")[: n - int(sizes.sum())]] += 1
    while n >= len(sizes) and not sizes.all():
        sizes[np.argmin(sizes)] += 1
        sizes[np.argmax(sizes)] -= 1
    return sizes


@dataclass(frozen=True, eq=False, slots=True)
class Standardizer:
    r"""Centre and scale each feature: :math:`x \mapsto (x - \mu) / s`.

    Attributes
    ----------
    mean : array (d,)
        :math:`\mu`; zeros for sparse features, which keep their zeros.
    scale : array (d,)
        :math:`s > 0`, the population standard deviation; 1 for a feature that is constant up to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.data import Standardizer
    >>> rows = np.array([[1.0, 10.0], [3.0, 30.0]])
    >>> Standardizer(rows.mean(0), rows.std(0)).transform(rows)
    array([[-1., -1.],
           [ 1.,  1.]])
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def fit(cls, features: Any, names: Sequence[str] | None = None) -> Standardizer:
        """Learn mean and scale from the training features.

        Parameters
        ----------
        features : array (n, d) or scipy.sparse CSR
            The training rows.
        names : sequence of str, optional
            Names of the features, for messages.

        Raises
        ------
        InvalidInput
            Features that are no matrix of real numbers, no rows, or a feature so large that its variance is not a
            finite number: row, column and name are given.
        """
        # scikit-learn's StandardScaler has these numbers; its import alone takes as long as to load a problem.
        _check_matrix(features)
        n = features.shape[0]
        if not n:
            raise InvalidInput("features", f"shape {features.shape}", "there are no rows to standardise by.")
        with np.errstate(over="ignore", invalid="ignore"):
            if hasattr(features, "tocsc"):
                centre, deviation = _sparse_moments(features.tocsc(), n)
                mean = np.zeros_like(centre)
            else:
                mean = np.where(np.ptp(features, axis=0) == 0, features[0], np.mean(features, axis=0, dtype=np.float64))
                centre, deviation = mean, np.std(features, axis=0, dtype=np.float64, mean=mean[None, :])
            # A feature that is one value throughout may have rounding for its deviation.
            scale = np.where(deviation <= _ROUNDING * np.abs(centre), 1.0, deviation)
        finite = np.isfinite(centre) & np.isfinite(deviation)
        if not finite.all():
            column = int(np.argmin(finite))
            values = features[:, [column]].toarray() if hasattr(features, "toarray") else features[:, [column]]
            row = int(np.argmax(np.where(np.isnan(values[:, 0]), np.inf, np.abs(values[:, 0]))))
            where = f"row {row + 1} of the training part, column {column + 1}"
            where += "" if names is None else f" ({names[column]!r})"
            remedy = f"{where} is too large or not finite; rescale or correct it first."
            raise InvalidInput("features", float(values[row, 0]), remedy)
        return cls(mean, scale)

    def transform(self, features: Any) -> Any:
        """Return standardised features, of the kind and shape (n, d) that came in.

        Raises
        ------
        InvalidInput
            The features are no matrix of real numbers, or their number differs from that of the training rows.
        """
        _check_matrix(features)
        if features.shape[1] != len(self.scale):
            raise InvalidInput("features", f"shape {features.shape}", f"must have {len(self.scale)} columns.")
        if hasattr(features, "tocsr"):
            if self.mean.any():
                raise InvalidInput("features", "sparse", "these were dense in training; use features.toarray().")
            return features.multiply(1.0 / self.scale).tocsr()
        return (features - self.mean) / self.scale

    def fold(self, weight: Any) -> tuple[Any, Any]:
        r"""Return weight and offset that score raw features as ``weight`` scores standardised ones.

        :math:`\langle w, (x - \mu)/s \rangle = \langle w/s, x \rangle - \langle w/s, \mu \rangle`; the offset moves
        every score alike, and so changes no ranking.

        Parameters
        ----------
        weight : array (d,) or (R, d)
            In standardised units.

        Returns
        -------
        weight : array (d,) or (R, d)
            In raw units.
        offset : float or array (R,)
            To be added to every score.

        Raises
        ------
        InvalidInput
            The weight holds other than finite real numbers, or not one for each feature.
        """
        remedy = (
            f"must hold {len(self.scale)} finite real numbers, one for each feature, or a row of them for each run."
        )
        found = finite_array("weight", weight, remedy)
        if found.ndim not in (1, 2) or found.shape[-1] != len(self.scale):
            raise InvalidInput("weight", f"shape {found.shape}", remedy)
        raw = found / self.scale
        return raw, -(raw @ self.mean)


def _check_matrix(features: Any) -> None:
    """Refuse what is no matrix of real numbers, each with a value."""
    kind = getattr(getattr(features, "dtype", None), "kind", "")
    if kind not in ("i", "u", "f") or features.ndim != 2 or np.ma.is_masked(features):
        remedy = "must be a matrix (n, d) of real numbers, a NumPy array or of scipy.sparse, without masked entries."
        raise InvalidInput("features", features, remedy)


def _sparse_moments(columns: Any, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and population deviation of each column of a CSC matrix, in two passes, zeros included."""
    mean = np.asarray(columns.sum(axis=0)).ravel() / n
    stored = np.diff(columns.indptr)
    place = np.repeat(np.arange(stored.size), stored)
    squares = np.bincount(place, weights=(columns.data - mean[place]) ** 2, minlength=stored.size)
    return mean, np.sqrt((squares + (n - stored) * mean**2) / n)
