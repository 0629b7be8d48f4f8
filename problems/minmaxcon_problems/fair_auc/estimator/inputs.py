"""What a scikit-learn user passes, checked: X, y and sensitive_features as arrays, whichever library they come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_random_state, validate_data

from minmaxcon.errors import DataError, InvalidInput

from .vocabulary import SENSITIVE

__all__ = [
    "as_it_was_if_refused",
    "feature_names",
    "one_row",
    "require_aligned",
    "seed_of",
    "sensitive_column",
    "validated",
]


@contextmanager
def as_it_was_if_refused(estimator: Any) -> Iterator[None]:
    """Undo what a call has noted on the estimator, such as the number of features, if the call is refused."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def sensitive_column(values: Any, rows: int) -> Any:
    """Return the sensitive values of the rows as an array.

    Missing values have one policy: they are refused, with the rows that have them. A row without a group belongs to
    none of the subsets that a fairness metric compares, and leaving it out would say nothing about how the model
    treats it.

    Parameters
    ----------
    values : array_like, series (pandas, polars, Arrow), or anything of one column; (n,) or (n, 1)
        A value for each row.
    rows : int
        The number n of rows of X.

    Returns
    -------
    ndarray (n,)
        The values, of any type.

    Raises
    ------
    DataError
        Values are missing (the rows are named, counted from 0), there is more than one column, or another number of
        values.
    """
    import narwhals as nw

    if nw.dependencies.is_pandas_like_dataframe(values) and values.shape[1] == 1:
        values = values.iloc[:, 0]  # whatever its column is called: a number, or a tuple of names
    known = nw.from_native(values, pass_through=True, allow_series=True, eager_only=True)
    if isinstance(known, nw.DataFrame) and len(known.columns) == 1:
        known = known[known.columns[0]]
    absent: Any = None
    column: Any
    if isinstance(known, nw.Series):
        absent, column = known.is_null().to_numpy(), known.to_numpy()
    else:
        column = known.to_numpy() if isinstance(known, nw.DataFrame) else np.asarray(known)
        if column.ndim == 2 and column.shape[1] == 1:
            column = column[:, 0]
    if column.ndim != 1:
        raise DataError(
            SENSITIVE, f"has shape {column.shape}; give one column, or combine several into one value for each row."
        )
    if len(column) != rows:
        raise DataError(SENSITIVE, f"has {len(column):,} values for the {rows:,} rows of X; give one for each row.")
    missing = _missing(column) if absent is None else absent | _missing(column)
    if missing.any():
        count = int(missing.sum())
        raise DataError(
            SENSITIVE,
            f"is missing in {count:,} of {rows:,} rows, counted from 0: {_listed(np.flatnonzero(missing)[:5], count)};"
            " remove these rows, or give them a value of their own and name the protected one with protected=.",
        )
    return column


def _missing(column: Any) -> Any:
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind in "mM":
        return np.isnat(column)
    if column.dtype.kind != "O":
        return np.zeros(len(column), dtype=np.bool_)
    # NaN is the one value that differs from itself; pandas' NA compares to neither, and has this name.
    return np.array([v is None or type(v).__name__ in ("NAType", "NaTType") or v != v for v in column], dtype=np.bool_)


def _listed(values: Sequence[Any] | Any, count: int) -> str:
    return ", ".join(str(value) for value in values) + (", ..." if count > len(values) else "")


def require_aligned(parts: Mapping[str, Any]) -> None:
    """Refuse pandas objects whose indices differ: their rows would be matched by position, against what they say.

    Parameters
    ----------
    parts : mapping of str to object
        X, y and sensitive features by name; whatever has no index is passed over.

    Raises
    ------
    DataError
        The first row at which two indices differ is named, with the labels of both.
    """
    import narwhals as nw

    is_frame, is_series = nw.dependencies.is_pandas_like_dataframe, nw.dependencies.is_pandas_like_series
    indexed = [(name, part.index) for name, part in parts.items() if is_frame(part) or is_series(part)]
    for name, index in indexed[1:]:
        first, reference = indexed[0]
        if len(index) != len(reference):
            raise DataError(
                name, f"has {len(index):,} rows where {first} has {len(reference):,}; give the same rows of both."
            )
        if not index.equals(reference):
            labels = list(zip(reference.tolist(), index.tolist(), strict=True))
            row, there, here = next((k, a, b) for k, (a, b) in enumerate(labels) if a != b)
            raise DataError(
                name,
                f"its index differs from that of {first}: row {row} (counted from 0) is labelled {here!r} here"
                f" and {there!r} there; align them by label ({name}.loc[{first}.index]) or, if the order is"
                f" right, reset both indices.",
            )


def validated(estimator: Any, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
    """Return features and labels as arrays, checked and noted on the estimator as scikit-learn does.

    Parameters
    ----------
    estimator : BaseEstimator
        Gets or has ``n_features_in_``, and ``feature_names_in_`` where the columns have names.
    X : array_like, data frame or CSR (n, d)
        Features.
    y : array_like (n,)
        Labels.
    reset : bool
        Whether the estimator's idea of the features is set or must be met.

    Returns
    -------
    features : ndarray (n, d) or CSR
        Finite float64.
    labels : ndarray (n,)
        Of at most two values.

    Raises
    ------
    ValueError
        Whatever scikit-learn refuses: features that are not finite numbers or not those expected, lengths that differ,
        labels that are missing, continuous or of more than two kinds.
    """
    features, labels = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float64, order="C", reset=reset)
    check_classification_targets(labels)
    kind = type_of_target(labels, input_name="y")
    if kind != "binary":
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {kind}; keep the rows of two labels."
        )
    return features, labels


def one_row(X: Any, width: int) -> Any:
    """Return X as an array (1, width) where it plainly is one row of real numbers; None where it is anything else.

    One row is an array (1, width), or a list or tuple that holds one array, list or tuple of numbers. Numbers that are
    longer than float64 may overflow in it, and are left to the general way.
    """
    if type(X) in (list, tuple) and len(X) == 1 and type(X[0]) in (np.ndarray, list, tuple):
        try:
            X = np.asarray(X[0])[None]
        except ValueError:  # no row, but a table whose rows differ in length
            return None
    plain = type(X) is np.ndarray and X.shape == (1, width) and X.dtype.kind in "fiu" and X.dtype.itemsize <= 8
    return X if plain else None


def feature_names(estimator: Any) -> tuple[str, ...]:
    """Return the names of the features; x0, x1, ... where they came without."""
    names = getattr(estimator, "feature_names_in_", None)
    return tuple(f"x{k}" for k in range(estimator.n_features_in_)) if names is None else tuple(map(str, names))


def seed_of(random_state: Any) -> int:
    """Return the seed that a ``random_state`` stands for: an int is one, others are asked for one.

    Raises
    ------
    InvalidInput
        It is none of those that scikit-learn takes.
    """
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return int(random_state)
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError:
        raise InvalidInput(
            "random_state", random_state, "must be a whole number of at least 0, a RandomState or None."
        ) from None
