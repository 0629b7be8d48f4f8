"""From columns to features, and the same again for new rows: what a model needs to know of the file it learned from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from minmaxcon.errors import DataError, InvalidInput
from minmaxcon.tables.columns import Table
from minmaxcon.tables.formats import read_source
from minmaxcon.tables.libsvm import read_libsvm
from minmaxcon.tables.lines import shown

__all__ = [
    "ColumnEncoding",
    "LibsvmEncoding",
    "RowEncoding",
    "TableEncoding",
    "encode_rows",
    "encoding_from_dict",
    "fit_encoding",
]


class RowEncoding(Protocol):
    """How the rows of a raw file become features."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the d features, in order."""

    def encode(self, source: Any) -> Any:
        """Return the features (n, d) of a raw file or data frame."""

    def as_dict(self) -> dict[str, Any]:
        """Return what :func:`encoding_from_dict` rebuilds the encoding from, as JSON knows it."""


@dataclass(frozen=True, slots=True)
class ColumnEncoding:
    """How one column becomes features.

    Attributes
    ----------
    name : str
        Heading of the column.
    categories : tuple of str or None
        The texts that are known, one 0/1 feature each in this order; None for a column of numbers.
    drop_first : bool
        Whether the first category has no feature of its own.
    fill : float or None
        What a missing number becomes; None refuses it.
    missing_code : float or None
        A number that stands for a missing one.
    """

    name: str
    categories: tuple[str, ...] | None = None
    drop_first: bool = False
    fill: float | None = None
    missing_code: float | None = None

    @property
    def kept(self) -> tuple[str, ...]:
        """The categories that have a feature."""
        return (self.categories or ())[int(self.drop_first) :]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """``name``, or ``name=category`` for each category that has a feature."""
        return (self.name,) if self.categories is None else tuple(f"{self.name}={text}" for text in self.kept)

    def encode(self, table: Table) -> NDArray[np.float64]:
        """Return the features (n, k) of the column.

        Raises
        ------
        DataError
            The column is absent, or a cell is of the wrong kind, missing, not finite or an unknown category; its row
            and column are named.
        """
        column = table.column(self.name, "the model")
        if self.categories is None:
            table.require_numbers(column, missing=self.fill is not None)
            values = column.numbers.copy()
            if self.fill is not None:
                values[np.isnan(values) | (values == self.missing_code)] = self.fill
            return values[:, None]
        table.require_texts(column)
        unknown = [code for code, text in enumerate(column.texts) if text not in self.categories]
        if unknown:
            row = int(np.argmax(np.isin(column.codes, unknown)))
            known = ", ".join(shown(text) for text in self.categories[:12]) + (", ..." if self.categories[12:] else "")
            raise DataError(
                table.source,
                f"{table.place(row)}, column {shown(self.name)}: the category {column.cell(row)} was not in the"
                f" training data; known are {known}.",
            )
        features = np.zeros((table.rows, len(self.kept)))
        place = {text: index for index, text in enumerate(self.kept)}
        target = np.array([place.get(text, -1) for text in column.texts])[column.codes]
        rows = np.flatnonzero(target >= 0)
        features[rows, target[rows]] = 1.0
        return features


@dataclass(frozen=True, slots=True)
class TableEncoding:
    """How the rows of a table (CSV, Parquet, data frame) become features; columns are found by name.

    Attributes
    ----------
    columns : tuple of ColumnEncoding
        In the order of the features.
    """

    columns: tuple[ColumnEncoding, ...]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the d features, in order."""
        return tuple(name for column in self.columns for name in column.feature_names)

    def encode_table(self, table: Table) -> NDArray[np.float64]:
        """Return the features (n, d) of a table that has been read."""
        return np.hstack([column.encode(table) for column in self.columns])

    def encode(self, source: Any) -> NDArray[np.float64]:
        """Return the features (n, d) of a file or data frame; columns that the model does not use are not read."""
        return self.encode_table(read_source(source, [column.name for column in self.columns], by="the model"))

    def as_dict(self) -> dict[str, Any]:
        """Return the encoding as JSON knows it."""
        return {
            "format": "table",
            "columns": [{name: getattr(column, name) for name in _COLUMN_FIELDS} for column in self.columns],
        }


_COLUMN_FIELDS = ("name", "categories", "drop_first", "fill", "missing_code")


@dataclass(frozen=True, slots=True)
class LibsvmEncoding:
    """How the rows of a LIBSVM file become features.

    Attributes
    ----------
    n_features : int
        Largest feature index that the training file had.
    removed : int or None
        The 1-based index that is no feature (the sensitive one), if any.
    """

    n_features: int
    removed: int | None = None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The 1-based indices of the features, as text."""
        return tuple(str(index) for index in range(1, self.n_features + 1) if index != self.removed)

    def keep(self, matrix: Any) -> Any:
        """Return the CSR matrix without the removed column."""
        if self.removed is None:
            return matrix
        return matrix[:, np.delete(np.arange(self.n_features), self.removed - 1)]

    def encode(self, source: Any) -> Any:
        """Return the features (n, d), a CSR array, of a LIBSVM file; its lines may lack the label."""
        return self.keep(read_libsvm(source, n_features=self.n_features, labelled=False).features)

    def as_dict(self) -> dict[str, Any]:
        """Return the encoding as JSON knows it."""
        return {"format": "libsvm", "n_features": self.n_features, "removed": self.removed}


def encoding_from_dict(fields: dict[str, Any]) -> RowEncoding:
    """Return the encoding that ``as_dict`` wrote.

    Raises
    ------
    InvalidInput
        The fields are not those of an encoding.
    """
    try:
        if fields["format"] == "libsvm":
            removed = fields["removed"]
            return LibsvmEncoding(int(fields["n_features"]), None if removed is None else int(removed))
        columns = [dict(column) for column in fields["columns"]]
        for column in columns:
            column["categories"] = None if column["categories"] is None else tuple(column["categories"])
        return TableEncoding(tuple(ColumnEncoding(**column) for column in columns))
    except (KeyError, TypeError, ValueError) as failure:
        raise InvalidInput(
            "encoding", fields, f"is no encoding of a data file ({failure}); fit the model again."
        ) from None


def fit_encoding(table: Table, names: Iterable[str], *, drop_first: bool = False) -> TableEncoding:
    """Return the encoding of some columns of a table: numbers as they are, texts one feature per category, sorted.

    Parameters
    ----------
    table : Table
        The training data.
    names : iterable of str
        The columns that are features.
    drop_first : bool
        Whether the first category of each text column has no feature of its own.

    Raises
    ------
    DataError
        A cell is missing or not finite, or numbers and texts are mixed in one column; or no column is left.
    """
    columns = [table.column(name, "the features") for name in names]
    if not columns:
        raise DataError(table.source, "no column is left as a feature; the file needs one beside label and sensitive.")
    return TableEncoding(
        tuple(
            ColumnEncoding(column.name, tuple(sorted(column.texts)), drop_first)
            if table.is_text(column)
            else ColumnEncoding(column.name)
            for column in columns
        )
    )


def encode_rows(source: Any, encoding: RowEncoding) -> Any:
    """Return the features (n, d) of new rows, encoded as the training data were.

    Columns are found by name; others are ignored, so that the label and (unless it is a feature) the sensitive column
    may be there or not.

    Parameters
    ----------
    source : path or data frame
        A path or data frame, as for :func:`read_frame` and :func:`read_csv`.
    encoding : RowEncoding
        That of the training data.

    Raises
    ------
    DataError
        A column is absent, or a cell is missing, not finite, of the wrong kind or an unknown category: row and column
        are named.
    """
    return encoding.encode(source)
