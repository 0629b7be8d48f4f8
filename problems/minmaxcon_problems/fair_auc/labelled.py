r"""Labelled rows with a sensitive group: how a user's file, or a column of two values, becomes them.

One policy for every column: a missing, infinite or unreadable cell is refused, and so is a column that mixes numbers
and texts; the message names file, row, line, column and remedy. Rows count from 1 without the heading.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from minmaxcon.data import Standardizer
from minmaxcon.errors import DataError, InvalidInput
from minmaxcon.tables import (
    Column,
    LibsvmEncoding,
    RowEncoding,
    Table,
    column_names,
    existing_file,
    file_format,
    fit_encoding,
    read_libsvm,
    read_source,
    shown,
    source_name,
)

__all__ = [
    "FileColumns",
    "LabelledData",
    "UnknownCategory",
    "Value",
    "group_of",
    "is_libsvm",
    "label_of",
    "leaving_out",
    "libsvm_table",
    "listed",
    "position_of",
    "protected_of",
    "read_parts",
    "read_table",
    "require_groups",
    "signs_like",
    "signs_of",
    "truth_columns",
    "warn_of_alike",
]

Value = float | str
"""A value of the label or of the sensitive column: a number (int where it is whole) or a text."""

Signs = NDArray[np.int8]

UnknownCategory = Literal["refuse", "zero"]
"""The treatment of a category that the training rows do not have: an error, or 0 in all features of the column."""

_POSITIVE_WORDS = frozenset({"yes", "true", "1", "positive"})


@dataclass(frozen=True, slots=True, eq=False)
class LabelledData:
    """Features, label and sensitive group of n rows.

    Features (n, d) are float64, dense or CSR, in the units of the file unless a step that says so has scaled them. The
    signs (n,) int8 of label and group are +1 positive or protected and -1 otherwise; ``label_values`` and
    ``group_values`` are the values of the file that -1 and +1 stand for. ``name`` is the file or data set, as messages
    name it, and ``encoding`` how new rows of a raw file become features (None where there is no raw file). With several
    groups, each against the rest, ``group`` has the signs of the first, ``more_groups`` (n, k) those of the others, and
    ``groups`` the values of all; ``compared`` are those with signs where they are not all. With ``each_other`` a metric
    compares every two of several groups, and not each with the rest. Raises InvalidInput where lengths differ, or a
    sign is neither -1 nor +1.
    """

    features: Any
    label: Signs
    group: Signs
    feature_names: tuple[str, ...]
    label_values: tuple[Value, Value] = (-1, 1)
    group_values: tuple[Value, Value] = (-1, 1)
    name: str = "data"
    encoding: RowEncoding | None = None
    more_groups: Any = None
    groups: tuple[Any, ...] = ()
    compared: tuple[Any, ...] = ()
    each_other: bool = False

    def __post_init__(self) -> None:
        shape = (*np.shape(self.label), len(self.feature_names))
        if len(shape) != 2 or self.features.shape != shape:
            raise InvalidInput("features", f"shape {self.features.shape}", f"must have shape {shape}, rows by names.")
        for argument in ("label", "group"):
            signs = np.asarray(getattr(self, argument))
            if signs.shape != shape[:1]:
                raise InvalidInput(argument, f"shape {signs.shape}", f"must have shape ({shape[0]},), one per row.")
            if not np.isin(signs, (-1, 1)).all():
                row = int(np.argmin(np.isin(signs, (-1, 1))))
                raise InvalidInput(argument, signs[row], f"row {row + 1} must be -1 or +1.")
            object.__setattr__(self, argument, signs.astype(np.int8))

    def __len__(self) -> int:
        return len(self.label)

    def select(self, indices: Any) -> LabelledData:
        """Return the rows with the given indices, in that order (or where a boolean mask of shape (n,) holds).

        Raises IndexError for an index outside the rows.
        """
        rows = np.asarray(indices)
        more = None if self.more_groups is None else self.more_groups[rows]
        return replace(
            self, features=self.features[rows], label=self.label[rows], group=self.group[rows], more_groups=more
        )

    @property
    def each_group(self) -> list[tuple[Any, Any, Signs]]:
        """Each group that is compared: its value, what the rest is called, and its signs (n,), +1 for its rows."""
        if self.more_groups is None:
            return [(self.group_values[1], self.group_values[0], self.group)]
        signs = [self.group, *self.more_groups.T]
        values = self.compared or self.groups
        return [(value, f"not {value}", sign) for value, sign in zip(values, signs, strict=True)]

    @property
    def left_out(self) -> tuple[Any, ...]:
        """The values of groups that are not compared, though others are."""
        return tuple(value for value in self.groups if value not in self.compared) if self.compared else ()

    def scaled(self, scaler: Standardizer) -> LabelledData:
        """Return the rows with standardised features."""
        return replace(self, features=scaler.transform(self.features))


def _distinct(table: Table, column: Column) -> tuple[list[Value], NDArray[np.int64]]:
    """Return the different values of a column, sorted, and the index of each row's value."""
    if table.is_text(column):
        order = sorted(range(len(column.texts)), key=column.texts.__getitem__)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return [column.texts[code] for code in order], rank[column.codes]
    values, index = np.unique(column.numbers, return_inverse=True)
    return [int(value) if value.is_integer() else float(value) for value in values], index.astype(np.int64)


def position_of(values: Sequence[Any], asked: Any) -> int | None:
    """Return which of the values is asked for, None if none is.

    A text may be asked for by a number that reads alike and the reverse, and a number in any way that reads as it.
    """

    def reads_alike(value: Any) -> bool:
        return str(value) == str(asked).strip()

    def is_number(value: Any) -> bool:
        try:
            return not isinstance(value, str) and bool(value == float(str(asked)))
        except ValueError:
            return False

    if getattr(asked, "shape", ()) != ():  # an array is no value of a row, and compares with none
        return None
    for same in (lambda value: value == asked, reads_alike, is_number):
        for place, value in enumerate(values):
            if same(value):
                return place
    return None


def protected_option(each_other: bool) -> str:
    """Return how Python's arguments say which group is protected, which groups that are compared ``each_other`` bar."""
    return 'protected= and against="rest"' if each_other else "protected="


def protected_of(values: Sequence[Any], counts: Any, source: str, column: str = "", option: str = "") -> int:
    """Return which value is protected where none is asked for: of two, the one with fewer rows.

    Of equally many rows it is the value that sorts later. Messages call the data, the column in it and the option that
    says which one is protected ``source``, ``column`` and ``option``. Raises DataError for more than two values.
    """
    if len(values) > 2:
        raise DataError(
            source,
            f"{column}has {len(values):,} values ({listed(values)}); say with {option} which one is protected,"
            " against all others"
            + ("; FairAUCClassifier in Python takes all groups." if option == "--protected" else "."),
        )
    if counts[0] != counts[1]:
        return int(counts[1] < counts[0])
    try:
        return int(values[1] > values[0])
    except TypeError:  # values of two types have no order of their own
        return int(str(values[1]) > str(values[0]))


def require_groups(values: Sequence[Any], source: str, column: str = "") -> None:
    """Refuse a sensitive column of one value."""
    if len(values) == 1:
        raise DataError(source, f"{column}is {shown(values[0])} in every row; two groups are needed.")


def warn_of_alike(values: Sequence[Any], column: str) -> None:
    """Warn of texts that differ in case or spaces only: they count as different groups, and are probably one."""
    known: dict[str, str] = {}
    for value in values:
        if isinstance(value, str) and (first := known.setdefault(" ".join(value.split()).casefold(), value)) != value:
            told = (
                f"{column} has {shown(first)} and {shown(value)}, which differ in case or spaces only and count as two"
            )
            warnings.warn(f"{told} groups: write them alike if they are one.", UserWarning, stacklevel=4)


def signs_of(index: Any, chosen: int, values: Sequence[Any]) -> tuple[Signs, tuple[Any, Any]]:
    """Return +1 where the chosen value stands and -1 elsewhere, (n,), and what these mean; several are "not ..."."""
    others = values[1 - chosen] if len(values) == 2 else f"not {values[chosen]}"
    return np.where(index == chosen, 1, -1).astype(np.int8), (others, values[chosen])


def _asked(table: Table, column: Column, values: Sequence[Value], asked: object, argument: str) -> int:
    place = position_of(values, asked)
    if place is not None:
        return place
    near = difflib.get_close_matches(str(asked).lower(), [str(value).lower() for value in values], n=1, cutoff=0.6)
    hint = f" did you mean {next(v for v in values if str(v).lower() == near[0])!r}?" if near else ""
    raise DataError(
        table.source,
        f"column {shown(column.name)} has no value {shown(asked)}, asked for by {argument};{hint}"
        f" values are {listed(values)}.",
    )


def listed(values: Sequence[Any]) -> str:
    """Return the first values of a column as they can stand in a message."""
    return ", ".join(shown(value) for value in values[:8]) + (", ..." if len(values) > 8 else "")


def label_of(table: Table, column: Column, positive: object = None) -> tuple[Signs, tuple[Value, Value]]:
    """Return the signs (n,) of a label column and its two values (negative, positive).

    The positive value is ``positive`` or, by default, the larger of two numbers; of two texts the one among yes, true,
    1 and positive if just one is, else the later in lexicographic order. Raises DataError where the column has not
    exactly two values, a cell is missing (its row is named), or ``positive`` is not a value.
    """
    values, index = _distinct(table, column)
    where = f"column {shown(column.name)}"
    if len(values) == 1:
        raise DataError(
            table.source,
            f"one class only: {where}, the label, is {shown(values[0])} in every row; two classes are needed.",
        )
    if len(values) > 2:
        raise DataError(
            table.source,
            f"{where}, the label, has {len(values):,} labels ({listed(values)}) and must have two: keep the rows of"
            " two labels or merge them into two in the file (--positive only says which of two is positive).",
        )
    if positive is not None:
        chosen = _asked(table, column, values, positive, "positive")
    else:
        words = [str(value).strip().lower() in _POSITIVE_WORDS and isinstance(value, str) for value in values]
        chosen = words.index(True) if sum(words) == 1 else 1
    return signs_of(index, chosen, values)


def group_of(table: Table, column: Column, protected: object = None) -> tuple[Signs, tuple[Value, Value]]:
    """Return the signs (n,) of a sensitive column and its values (unprotected, protected).

    The protected value is ``protected``, against all others; by default, of two values, the one with fewer rows (of
    equally many the larger). Raises DataError for one value only, more than two and ``protected`` not given, a missing
    cell (its row is named), or where ``protected`` is not a value.
    """
    values, index = _distinct(table, column)
    where = f"column {shown(column.name)}, the sensitive one, "
    require_groups(values, table.source, where)
    if protected is None:
        chosen = protected_of(values, np.bincount(index), table.source, where, "--protected")
    else:
        chosen = _asked(table, column, values, protected, "protected")
    warn_of_alike(values, f"{table.source}: column {shown(column.name)}")
    return signs_of(index, chosen, values)


def signs_like(
    table: Table, column: Column, values: tuple[Any, Any], known: Sequence[Any] | None, unknown: str
) -> Signs:
    """Return the signs (n,) of a column whose values have their meaning already: +1 for the second of ``values``.

    ``known`` are all values that may occur, any if it is None. Raises DataError for another one, which the message
    places, and says of it ``unknown``.
    """
    found, index = _distinct(table, column)
    if known is not None:
        for place, value in enumerate(found):
            if position_of(known, value) is None:
                where = f"{table.place(int(np.argmax(index == place)))}, column {shown(column.name)}"
                raise DataError(table.source, f"{where}: {shown(value)} {unknown}; known are {listed(known)}.")
    chosen = np.array([position_of(values[1:], value) is not None for value in found])
    return np.where(chosen[index], 1, -1).astype(np.int8)


def _require_all_cells(
    source: str, label: Signs, group: Signs, names: tuple[str, str], label_values: Any, group_values: Any
) -> None:
    """Refuse data in which a combination of group and label never occurs: an AUC within it would be undefined.

    Messages call label and group, signs (n,), by ``names``, and -1 and +1 by their values. The DataError names the
    first empty cell, with the counts of all four.
    """
    counts = {}
    for g, group_value in zip((-1, 1), group_values, strict=True):
        for y, label_value in zip((-1, 1), label_values, strict=True):
            cell = f"{names[1]}={group_value} & {names[0]}={label_value}"
            counts[" ".join(cell.split())] = int(np.sum((group == g) & (label == y)))
    empty = next((cell for cell, count in counts.items() if not count), None)
    if empty is not None:
        listed = ", ".join(f"{cell}: {count:,}" for cell, count in counts.items())
        raise DataError(
            source, f"no row has {empty} (rows of each cell: {listed}); every group needs rows of both labels."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumns:
    """The parts that columns of a user's files play; see ``FairAUC.load``. Equal ones are one key of a cache.

    Raises InvalidInput where label or sensitive column are to be left out.
    """

    label: str | None = None
    positive: Value | None = None
    sensitive: str | int | None = None
    protected: Value | None = None
    keep_sensitive: bool = False
    ignore: tuple[str, ...] = ()
    unknown_category: UnknownCategory = "refuse"

    def __post_init__(self) -> None:
        for name, what in ((self.label, "the label"), (self.sensitive, "the sensitive column")):
            if name is not None and str(name) in self.ignore:
                raise InvalidInput("ignore", str(name), f"is {what}, which is needed; leave it out here.")

    @classmethod
    def of(cls, *, ignore: str | Sequence[str] | None = None, **others: Any) -> FileColumns:
        """Return the columns; a text names those that are left out, separated by commas."""
        named = [name.strip() for name in ignore.split(",")] if isinstance(ignore, str) else map(str, ignore or ())
        return cls(ignore=tuple(dict.fromkeys(named)), **others)

    def given(self) -> dict[str, Any]:
        """Return what is not the default, by name."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        return {one.name: found[one.name] for one in fields(self) if found[one.name] != one.default}


@contextmanager
def leaving_out(ignored: Sequence[str], *needed: Any) -> Iterator[None]:
    """Say how the column is left out that an error is about, beside the ``ignored`` ones, unless it is ``needed``."""
    try:
        yield
    except DataError as failure:
        column = failure.column
        if column is None or failure.remedy or column in map(str, needed):
            raise
        remedy = f"To leave the column out: ignore={','.join((*ignored, column))!r}."
        raise DataError(failure.source, failure.problem, column, remedy) from failure


def read_table(
    source: Any,
    *,
    label: str | None = None,
    sensitive: str | int,
    positive: Value | None = None,
    protected: Value | None = None,
    keep_sensitive: bool = False,
    n_features: int | None = None,
) -> LabelledData:
    """Return the labelled rows of a file or data frame.

    The source is a ``.csv`` or ``.tsv`` file (separated by commas, semicolons or tabs), ``.parquet``, LIBSVM
    (``.libsvm``, ``.svm``, ``.txt``, ``.t`` or no suffix), text also with ``.gz``; or a pandas, polars or Arrow frame.
    ``label`` and ``sensitive`` are columns; in a LIBSVM file the label comes first on each line, ``sensitive`` is the
    1-based index of a feature, and ``n_features`` is their number where the file may lack the last ones (a test file).
    :func:`label_of` and :func:`group_of` say which values are positive and protected by default. ``keep_sensitive``
    makes the sensitive column a feature too.

    A column in which no value reads as a number has one 0/1 feature per category, in lexicographic order; every other
    column is one feature. LIBSVM stays sparse.

    Raises DataError where the file or its content cannot be used (one line names file, row, column and remedy), and
    InvalidInput where ``label`` is absent, given for a LIBSVM file, or the same as ``sensitive``, or ``sensitive`` is
    no feature index of a LIBSVM file.
    """
    columns = FileColumns(
        label=label, sensitive=sensitive, positive=positive, protected=protected, keep_sensitive=keep_sensitive
    )
    return _as_training_rows(_opened(source, columns, n_features), columns)


@dataclass(frozen=True, slots=True, eq=False)
class _Opened:
    """A source that has been read: its columns, which of them are label and sensitive, and all features if sparse."""

    table: Table
    label: str
    sensitive: str
    sparse: Any = None


def truth_columns(source: Any, label: str | None, sensitive: str | int | None) -> None:
    """Refuse names of label and sensitive column that cannot be: raises InvalidInput."""
    if is_libsvm(source):
        if label is not None:
            raise InvalidInput("label", label, "a LIBSVM file has its label first on each line; leave it out.")
    elif label is None:
        remedy = "name the column of the label; only a LIBSVM file has it in a fixed place."
        raise InvalidInput("label", label, remedy)
    elif sensitive is not None and label == str(sensitive):
        raise InvalidInput("sensitive", sensitive, "is the label; the sensitive attribute must be another column.")


def is_libsvm(source: Any) -> bool:
    """Whether a source is a LIBSVM file; raises DataError for a path where no data file is."""
    return isinstance(source, str | Path) and file_format(existing_file(source)) == "libsvm"


def _opened(source: Any, columns: FileColumns, n_features: int | None, training: bool = True) -> _Opened:
    """Read a source without the columns that are left out, which only training rows must have."""
    label, sensitive, ignored = columns.label, columns.sensitive, columns.ignore
    truth_columns(source, label, sensitive)
    if label is None:
        if ignored:
            need = "a LIBSVM file has no named columns; take the feature out of the file."
            raise InvalidInput("ignore", ",".join(ignored), need)
        return _Opened(*libsvm_table(source, sensitive, n_features))
    if not ignored:
        return _Opened(read_source(source), label, str(sensitive))
    names = column_names(source)
    if training and any(name not in names for name in ignored):
        read_source(source, ignored, by="ignore")  # refused here, by its name
    return _Opened(read_source(source, [name for name in names if name not in ignored]), label, str(sensitive))


def _as_training_rows(opened: _Opened, columns: FileColumns) -> LabelledData:
    """Return the labelled rows of a source, from which values and encoding are learned."""
    table, label, sensitive, sparse = opened.table, opened.label, opened.sensitive, opened.sparse
    positive, protected, keep_sensitive = columns.positive, columns.protected, columns.keep_sensitive
    label_column, group_column = table.column(label, "label"), table.column(sensitive, "sensitive")
    signs, label_values = label_of(table, label_column, positive)
    group, group_values = group_of(table, group_column, protected)
    _require_all_cells(table.source, signs, group, (label, sensitive), label_values, group_values)
    encoding: RowEncoding
    if sparse is None:
        unused = {label} if keep_sensitive else {label, sensitive}
        used = [name for name in table.columns if name not in unused]
        encoding = fitted = fit_encoding(table, used)
        warn_of_numbering(table, used)
        features = fitted.encode_table(table)
    else:
        index = int(sensitive.removeprefix("feature "))
        encoding = kept = LibsvmEncoding(sparse.shape[1], None if keep_sensitive else index)
        if not kept.feature_names:
            left = f"no feature is left beside the sensitive one, {shown(index)}; the file needs another."
            raise DataError(table.source, left)
        features = kept.keep(sparse)
    names = encoding.feature_names
    return LabelledData(features, signs, group, names, label_values, group_values, table.source, encoding)


def warn_of_numbering(table: Table, names: Sequence[str]) -> None:
    """Warn of features that number the rows, such as a data frame's index: they say nothing of other rows."""
    for name in names:
        numbers = table.columns[name].numbers
        if table.rows < _NUMBERED or np.ptp(numbers) != table.rows - 1:
            continue
        if (np.diff(np.sort(numbers)) == 1.0).all():
            told = (
                f"column {shown(name)} numbers the rows, and is a feature all the same; ignore it if it says no more."
            )
            warnings.warn(f"{table.source}: {told}", UserWarning, stacklevel=5)


_NUMBERED = 50
"""Rows from which on a column of all whole numbers in a row is no chance."""


def read_parts(
    source: Any, others: Mapping[str, Any], columns: FileColumns
) -> tuple[LabelledData, dict[str, LabelledData]]:
    """Return the training rows of a source, and those of other sources, by name, as their encoding and values have it.

    Categories, and what labels and groups mean, are those of the training rows. Raises what :func:`read_table` raises,
    and DataError where another source has not the same columns, or a label, group or category that the training rows
    have not; ``unknown_category="zero"`` takes such categories.
    """
    with leaving_out(columns.ignore, columns.label, columns.sensitive):
        return _read_parts(source, others, columns)


def _read_parts(
    source: Any, others: Mapping[str, Any], columns: FileColumns
) -> tuple[LabelledData, dict[str, LabelledData]]:
    opened = _opened(source, columns, None)
    train = _as_training_rows(opened, columns)
    groups, _ = _distinct(opened.table, opened.table.columns[opened.sensitive])
    sparse = opened.sparse is not None
    found = {}
    for name, other in others.items():
        if is_libsvm(other) is not sparse:
            kinds = ("a LIBSVM file", "a table") if sparse else ("a table", "a LIBSVM file")
            raise InvalidInput(name, str(other), f"is {kinds[1]}, and the training rows are in {kinds[0]}.")
        part = _opened(other, columns, opened.sparse.shape[1] if sparse else None, training=False)
        found[name] = _like(part, train, opened, groups, columns.unknown_category)
    return train, found


def _like(
    part: _Opened, train: LabelledData, training: _Opened, groups: Sequence[Value], unknown_category: UnknownCategory
) -> LabelledData:
    """Return the rows of a source, whose values and categories mean what they mean in the training rows."""
    table = part.table
    _require_columns(table, training.table)
    unseen = f"is not in the training rows ({training.table.source})"
    label, group = table.columns[part.label], table.columns[part.sensitive]
    labels = signs_like(table, label, train.label_values, train.label_values, unseen)
    signs = signs_like(table, group, train.group_values, groups, unseen)
    names = (part.label, part.sensitive)
    _require_all_cells(table.source, labels, signs, names, train.label_values, train.group_values)
    if isinstance(train.encoding, LibsvmEncoding):
        features = train.encoding.keep(part.sparse)
    else:
        assert train.encoding is not None  # noqa: S101 - rows of a source have one
        features = train.encoding.encode_table(table, unknown_category)
    return replace(train, features=features, label=labels, group=signs, name=table.source)


def _require_columns(table: Table, training: Table) -> None:
    """Refuse a table that has not the columns of the training rows, in any order."""
    lacking = [name for name in training.columns if name not in table.columns]
    further = [name for name in table.columns if name not in training.columns]
    if lacking or further:
        parts = [f"no column {listed(lacking)}"] if lacking else []
        parts += [f"a further column {listed(further)}"] if further else []
        need = "give all parts the same columns."
        raise DataError(table.source, f"has {' and '.join(parts)}, unlike {training.source}; {need}")


def libsvm_table(path: str | Path, sensitive: str | int | None, n_features: int | None) -> tuple[Table, str, str, Any]:
    """Return label and sensitive feature of a LIBSVM file as a table, their names in it, and all features (n, d)."""
    try:
        index = int(str(sensitive))
    except ValueError:
        raise InvalidInput("sensitive", sensitive, "in a LIBSVM file give the 1-based index of a feature.") from None
    rows, name = read_libsvm(path, n_features=n_features), source_name(path)
    n, d = rows.features.shape
    if not 1 <= index <= d:
        raise InvalidInput("sensitive", sensitive, f"{name} has features 1 to {d}; give the index of one of them.")
    numbers = {
        "label": rows.labels,
        f"feature {index}": rows.features[:, [index - 1]].toarray().ravel(),
    }
    columns = {key: Column.of_numbers(key, column) for key, column in numbers.items()}
    return Table(name, columns, n, rows.lines), *columns, rows.features
