"""Checked inputs of the estimator: X, y and sensitive_features as arrays, whichever library they come from."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_random_state, validate_data

from minmaxcon.checks import finite_array
from minmaxcon.errors import DataError, InvalidInput, UnknownName
from minmaxcon.tables import have_decimal_commas, identifies_rows
from minmaxcon_problems.fair_auc.labelled import (
    listed,
    position_of,
    protected_of,
    protected_option,
    require_groups,
    signs_of,
)

__all__ = [
    "MOST_COMPARED",
    "SENSITIVE",
    "Vocabulary",
    "as_it_was_if_refused",
    "checked_against",
    "feature_names",
    "group_signs",
    "one_row",
    "only",
    "positive_code",
    "present",
    "protected_code",
    "require_aligned",
    "require_few_pairs",
    "require_labels",
    "require_numbers",
    "seed_of",
    "sensitive_column",
    "validated",
    "weights_of",
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


def sensitive_column(values: Any, rows: int, unknown: str = "refuse") -> Any:
    """Return the sensitive values (n,) of the rows as an array, from (n,), (n, 1) or several columns.

    Several columns give their intersections, one text for each row, such as "f & old". A missing value is refused by
    default, with the rows that have one, counted from 0: a row without a group belongs to none of the subsets that a
    fairness metric compares. With ``unknown="own_group"`` it is the group "unknown", with ``"drop"`` it is None in the
    result, for the caller to leave out. Raises DataError, too, for another number of values than ``rows``.
    """
    several = _columns(values)
    if len(several) > 1:
        found = [sensitive_column(column, rows, unknown) for column in several]
        return np.array(
            [None if any(v is None for v in row) else " & ".join(map(str, row)) for row in zip(*found, strict=True)],
            dtype=object,
        )
    return _one_column(values, rows, unknown)


def _columns(values: Any) -> list[Any]:
    """Return the columns of a table, or what has one column as it is."""
    import narwhals as nw

    if nw.dependencies.is_pandas_like_dataframe(values):
        return [values.iloc[:, k] for k in range(values.shape[1])]
    known = nw.from_native(values, pass_through=True, allow_series=True, eager_only=True)
    if isinstance(known, nw.DataFrame):
        return [known[name] for name in known.columns]
    if isinstance(known, nw.Series):
        return [values]
    array = as_given(values)
    return list(array.T) if array.ndim == 2 else [values]


def _one_column(values: Any, rows: int, unknown: str) -> Any:
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
        column = known.to_numpy() if isinstance(known, nw.DataFrame) else as_given(known)
        if column.ndim == 2 and column.shape[1] == 1:
            column = column[:, 0]
    if column.ndim != 1:
        raise DataError(
            SENSITIVE, f"has shape {column.shape}; give one value for each row, or a table with a row for each."
        )
    if len(column) != rows:
        raise DataError(SENSITIVE, f"has {len(column):,} values for the {rows:,} rows of X; give one for each row.")
    missing = _missing(column) if absent is None else absent | _missing(column)
    column = np.asarray(column)  # without a mask, whose entries are missing
    if unknown == "refuse":
        remedy = 'remove these rows, or say what they are with unknown="own_group" or "drop".'
        _require_present(SENSITIVE, missing, remedy)
    elif missing.any():
        column = column.astype(object)
        column[missing] = "unknown" if unknown == "own_group" else None
        _require_values(SENSITIVE, column[~missing])
        return column
    _require_values(SENSITIVE, column)
    return column


def present(column: Any) -> Any:
    """Return which rows (n,) have a group, of a column from :func:`sensitive_column`."""
    if column.dtype.kind != "O":
        return np.ones(len(column), dtype=np.bool_)
    return np.array([value is not None for value in column], dtype=np.bool_)


def as_given(values: Any) -> Any:
    """Return values as an array in which those of a list keep their types.

    NumPy would make the text "nan" of a NaN between texts, which would then be a value like any other.
    """
    if isinstance(values, np.ndarray):
        return values
    array = np.asarray(values, dtype=object)
    try:
        plain = np.asarray(values)
    except ValueError:  # lists of several lengths
        return array
    return plain if plain.dtype.kind in "biufmM" else array


def require_labels(y: Any) -> None:
    """Refuse labels that are missing, or no values, in any container.

    Raises DataError: the rows that have them are named, counted from 0.
    """
    import narwhals as nw

    for part in _columns(y):
        known = nw.from_native(part, pass_through=True, allow_series=True, eager_only=True)
        if isinstance(known, nw.Series):
            absent = known.is_null().to_numpy() | _missing(known.to_numpy())  # polars has NaN that is no null
            _require_present("y", absent, "remove these rows.")
        elif (column := as_given(part)).ndim == 1:
            _require_present("y", _missing(column), "remove these rows.")
            _require_values("y", column)


def _require_present(argument: str, missing: Any, remedy: str) -> None:
    if missing.any():
        count = int(missing.sum())
        first = ", ".join(map(str, np.flatnonzero(missing)[:5])) + (", ..." if count > 5 else "")
        raise DataError(
            argument, f"is missing in {count:,} of {len(missing):,} rows, counted from 0: {first}; {remedy}"
        )


def _require_values(argument: str, column: Any) -> None:
    if column.dtype.kind == "O":
        for row, value in enumerate(column):
            if not isinstance(value, Hashable):
                kind = type(value).__name__
                raise DataError(argument, f"row {row} (counted from 0) holds a {kind}; give one number or text a row.")


def _missing(column: Any) -> Any:
    if isinstance(column, np.ma.MaskedArray):
        return np.ma.getmaskarray(column) | _missing(column.data)
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind in "mM":
        return np.isnat(column)
    if column.dtype.kind == "U":
        # What NumPy makes of missing values between texts, and what files have.
        return (column == "nan") | (column == "")
    if column.dtype.kind != "O":
        return np.zeros(len(column), dtype=np.bool_)
    return np.array([_is_missing(value) for value in column], dtype=np.bool_)


def _is_missing(value: Any) -> bool:
    # NaN is the one number that differs from itself; pandas' NA compares to neither, and has this name.
    if isinstance(value, str):
        return not value
    named = value is None or type(value).__name__ in ("NAType", "NaTType")
    return named or (isinstance(value, float | np.floating) and bool(value != value))


def require_aligned(parts: Mapping[str, Any]) -> None:
    """Refuse pandas objects whose indices differ: their rows would be matched by position, against what they say.

    ``parts`` are X, y and sensitive features by name; whatever has no index is passed over. The DataError names the
    first row at which two indices differ, with the labels of both.
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


def require_numbers(X: Any) -> None:
    """Refuse a data frame with columns of words, or with an empty cell, and masked entries of an array.

    Anything else is left to scikit-learn. Raises DataError, in one line that names the columns and the step of a
    pipeline that mends them.
    """
    import narwhals as nw

    if np.ma.is_masked(X):  # scikit-learn would take what lies under the mask
        raise DataError("X", "has masked entries: fill them, X.filled(value), or leave their rows out.")

    pandas_like = nw.dependencies.is_pandas_like_dataframe(X)
    if not pandas_like and not nw.dependencies.is_polars_dataframe(X):
        return
    words: dict[Any, Any] = {}
    unique: list[Any] = []
    missing: dict[Any, int] = {}
    for place, name in enumerate(X.columns):
        cells = np.asarray(X.iloc[:, place] if pandas_like else X[:, place])
        row, value = _first_no_number(cells)
        if value is not None:
            words[name] = value
            texts = {cell for cell in cells.tolist() if isinstance(cell, str)}
            if texts and have_decimal_commas(texts):
                raise DataError(
                    "X",
                    f"column {name!r} holds numbers with decimal commas, such as {value!r}; make numbers of them,"
                    " such as by read_csv(..., decimal=',').",
                )
            if identifies_rows(len(texts), len(cells)):
                unique.append(name)
        elif row is not None:
            missing[name] = row
    if words:
        apart = ""
        if unique:
            told = _told(unique, "has", "have")
            apart = f"{told} another text in nearly every row, which tells nothing of others: leave out such columns; "
        raise DataError(
            "X",
            f"{_told(words, 'holds', 'hold')} words, such as {next(iter(words.values()))!r}; {apart}encode them in a"
            " pipeline, such as make_pipeline(make_column_transformer((OneHotEncoder(handle_unknown='ignore'), [...]),"
            " remainder='passthrough'), FairAUCClassifier()), and leave out identifiers and free text.",
        )
    if missing:
        among = "" if len(missing) == 1 else "some rows, the first in "
        raise DataError(
            "X",
            f"{_told(missing, 'has', 'have')} no value in {among}row {min(missing.values())} (counted from 0); fill"
            " missing cells in a pipeline, such as make_pipeline(SimpleImputer(), FairAUCClassifier()), or leave the"
            " rows out.",
        )


def _told(names: Iterable[Any], one: str, several: str) -> str:
    """Return "columns 'a', 'b' have", at most 12 of them by name, the verb in the number that fits."""
    listed = list(map(repr, names))
    some = ", ".join(listed[:12]) + (f", ... ({len(listed)} in all)" if listed[12:] else "")
    return f"column {some} {one}" if len(listed) == 1 else f"columns {some} {several}"


def _first_no_number(cells: Any) -> tuple[int | None, Any]:
    """Return the first cell that is no number: its row and, unless it is missing, its value; None without one."""
    if cells.dtype.kind in "biu":
        return None, None
    if cells.dtype.kind == "f":
        bad = np.flatnonzero(np.isnan(cells))
        return (int(bad[0]), None) if len(bad) else (None, None)
    empty = None
    for row, value in enumerate(cells.tolist()):
        if _is_missing(value):
            empty = row if empty is None else empty
            continue
        try:
            float(value)
        except (TypeError, ValueError):
            return row, value
    return empty, None


def validated(estimator: Any, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
    """Return features and labels as arrays, checked and noted on the estimator as scikit-learn does.

    Features (n, d) are finite float64, dense or CSR, labels (n,) of at most two values. With ``reset`` the estimator's
    idea of the features, ``n_features_in_`` and names, is set, else it must be met. Raises ValueError for whatever
    scikit-learn refuses: features that are not finite numbers or not those expected, lengths that differ, labels that
    are missing, continuous or of more than two kinds. A path with labels beside it is refused.
    """
    if isinstance(X, str | Path):
        raise InvalidInput(
            "y", type(y).__name__, 'must name a column where X is a data set, as in fit("rows/", "label").'
        )
    require_labels(y)
    require_numbers(X)
    features, labels = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float64, order="C", reset=reset)
    check_classification_targets(labels)
    kind = type_of_target(labels, input_name="y")
    if kind != "binary":
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {kind}; keep the rows of two labels."
        )
    return features, labels


def weights_of(sample_weight: Any, rows: int) -> Any:
    """Return weights (n,) as float64.

    Raises InvalidInput where one is neither 0 nor a number between 1e-100 and 1e100, beyond which sums of products
    leave the range of floats; all are zero; or there is not one for each row.
    """
    remedy = (
        f"must be finite and at least 0, one for each of {rows} rows, not all zero, others between 1e-100 and 1e100."
    )
    weight = finite_array("sample_weight", sample_weight, remedy)
    usable = (weight == 0) | ((weight >= 1e-100) & (weight <= 1e100))
    if weight.shape != (rows,) or not usable.all() or not weight.any():
        raise InvalidInput("sample_weight", sample_weight, remedy)
    return weight


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

    Raises InvalidInput where it is none of those that scikit-learn takes.
    """
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    try:
        if isinstance(random_state, bool):
            raise ValueError
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError:
        raise InvalidInput(
            "random_state", random_state, "must be a whole number of at least 0, a RandomState or None."
        ) from None


SENSITIVE = "sensitive_features"

MOST_COMPARED = 50
"""Most groups that are each compared with the rest."""

_MOST_PAIRED = 16
"""Most groups of which every two are compared: 120 pairs."""

MOST_GROUPS = 1000
"""Most different sensitive values, where one is protected against all others; more are a measurement."""


class Vocabulary:
    """The different values of a column, in order of appearance.

    Messages call the column ``argument`` and end with ``remedy``; value ``most`` + 1 is refused as it arrives.
    """

    def __init__(self, argument: str, most: int, remedy: str) -> None:
        self.argument, self.most, self.remedy = argument, most, remedy
        self.codes: dict[Hashable, int] = {}

    def forget(self, size: int) -> None:
        """Drop the values that came after the first ``size``."""
        while len(self.codes) > size:
            self.codes.popitem()

    @property
    def values(self) -> list[Any]:
        """The values; that of code k at place k."""
        return list(self.codes)

    def encode(self, column: Any) -> Any:
        """Return the code of each value, an integer array (n,); new values get the next codes.

        Raises DataError for more values than the column may have.
        """
        if column.dtype.kind == "O":
            return np.array([self.code(_plain(value)) for value in column], dtype=np.int64)
        if len(column) == 1:
            return np.array([self.code(column.item())], dtype=np.int64)
        found, first, inverse = np.unique(column, return_index=True, return_inverse=True)
        codes = np.empty(len(found), dtype=np.int64)
        for place in np.argsort(first, kind="stable"):
            codes[place] = self.code(found[place].item())
        return codes[inverse]

    def code(self, value: Hashable) -> int:
        """Return the code of one value."""
        code = self.codes.get(value)
        if code is None:
            if len(self.codes) == self.most:
                listed = ", ".join(repr(known) for known in [*self.codes, value][:8])
                raise DataError(self.argument, f"has more than {self.most:,} values ({listed}); {self.remedy}")
            code = self.codes[value] = len(self.codes)
        return code


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _asked(values: Sequence[Any], asked: Any, argument: str, column: str) -> int:
    place = position_of(values, asked)
    if place is None:
        raise InvalidInput(argument, asked, f"is no value of {column}; its values are {listed(values)}.")
    return place


def positive_code(values: Sequence[Any], positive: Any) -> int:
    """Return the code of the positive label: the one asked for, else the last in sorted order, as scikit-learn has it.

    Raises InvalidInput where no label is the one asked for, DataError where numbers and texts are mixed.
    """
    if positive is not None:
        return _asked(values, positive, "positive", "y")
    try:
        return max(range(len(values)), key=values.__getitem__)
    except TypeError:
        raise DataError("y", f"has labels of several types, {list(values)}; use numbers or texts throughout.") from None


def protected_code(values: Sequence[Any], counts: Sequence[int], protected: Any, *, each_other: bool = False) -> int:
    """Return the code of the protected value, among the different values of the sensitive column and rows of each.

    By default, of two values, it is the one with fewer rows (of equally many the one that sorts later). Raises
    DataError for one value only, or more than two where none was asked for; InvalidInput where none is the one asked
    for.
    """
    require_groups(values, SENSITIVE)
    if protected is not None:
        return _asked(values, protected, "protected", SENSITIVE)
    return protected_of(values, counts, SENSITIVE, option=protected_option(each_other))


def group_signs(
    column: Any, protected: Any, most: int = 0, *, each_other: bool = False
) -> tuple[Any, tuple[Any, Any], tuple[Any, ...]]:
    """Return the signs of the groups, their values (unprotected, protected), and all values.

    Signs (n,) are +1 for the protected group. Of more than two values, up to ``most``, without a protected one each is
    compared with the rest: signs are (n, G), one column for each value in sorted order. The column has no missing
    value; several unprotected values are called "not ...". That every two were to be compared,
    ``each_other``, is what a remedy has to undo. Raises as :func:`protected_code`.
    """
    vocabulary = Vocabulary(SENSITIVE, MOST_GROUPS, "merge its values into a few groups.")
    codes = vocabulary.encode(column)
    values = vocabulary.values
    if protected is None and 2 < len(values) <= most:
        order = sorted(range(len(values)), key=lambda code: str(values[code]))
        signs = np.where(codes[:, None] == np.array(order), 1, -1).astype(np.int8)
        listed = tuple(values[code] for code in order)
        return signs, (f"not {listed[0]}", listed[0]), listed
    chosen = protected_code(values, np.bincount(codes).tolist(), protected, each_other=each_other)
    return *signs_of(codes, chosen, values), tuple(values)


def require_few_pairs(groups: int) -> None:
    """Refuse to compare every two of too many groups: raises InvalidInput."""
    if groups > _MOST_PAIRED:
        raise InvalidInput(
            "against",
            "each_other",
            f"compares every two of at most {_MOST_PAIRED} groups, and there are {groups}: merge groups, leave out"
            ' small ones by min_rows_per_cell, or compare each with the rest, against="rest".',
        )


def checked_against(against: Any, protected: Any) -> bool:
    """Return whether every two groups are compared; raises UnknownName or InvalidInput for what cannot be."""
    if not isinstance(against, str) or against not in ("rest", "each_other"):
        raise UnknownName("against", str(against), ("rest", "each_other"))
    if against == "each_other" and protected is not None:
        remedy = "compares every two groups, and protected one with all others: leave one of the two out."
        raise InvalidInput("against", against, remedy)
    return against == "each_other"


def only(values: Any) -> Any:
    """Return the single value of an array or list of one, as Python has it; None where there is not just one."""
    if type(values) is np.ndarray:
        return values.item() if values.shape == (1,) and values.dtype.kind != "O" else None
    return _plain(values[0]) if type(values) in (list, tuple) and len(values) == 1 else None
