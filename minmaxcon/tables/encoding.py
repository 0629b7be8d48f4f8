"""Encoding of columns as features, learned from one file, applied to new rows and kept in saved models as JSON."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from minmaxcon.checks import choice, flag, instance, instances, whole
from minmaxcon.errors import DataError, InvalidInput
from minmaxcon.tables.columns import Table
from minmaxcon.tables.formats import read_source
from minmaxcon.tables.libsvm import LARGEST_INDEX, read_libsvm
from minmaxcon.tables.lines import shown

__all__ = [
    "ColumnEncoding",
    "LibsvmEncoding",
    "RowEncoding",
    "TableEncoding",
    "encoding_from_dict",
    "fit_encoding",
    "identifies_rows",
    "require_categories",
]


UnknownCategory = Literal["refuse", "zero"]
"""How a category that is not in the training data is treated."""

_TABLE = "must be a Table, such as read_source() returns."

_STRICT = {"strict": True, "extra": "forbid", "allow_inf_nan": False}
"""How the fields of a saved encoding are read: each of its own type, and no others."""


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

    Examples
    --------
    >>> import pandas as pd
    >>> from minmaxcon.tables import ColumnEncoding, read_source
    >>> table = read_source(pd.DataFrame({"job": ["cook", "clerk", "cook"]}))
    >>> encoding = ColumnEncoding("job", categories=("clerk", "cook"))
    >>> encoding.feature_names, encoding.encode(table).tolist()
    (('job=clerk', 'job=cook'), [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    name: str
    categories: tuple[str, ...] | None = None
    drop_first: bool = False
    fill: float | None = None
    missing_code: float | None = None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """``name``, or ``name=category`` for each category that has a feature."""
        if self.categories is None:
            return (self.name,)
        return tuple(f"{self.name}={text}" for text in self.categories[int(self.drop_first) :])

    def encode(self, table: Table, unknown_category: UnknownCategory = "refuse") -> NDArray[np.float64]:
        """Return the features (n, k) of the column.

        Parameters
        ----------
        table : Table
            The rows.
        unknown_category : {"refuse", "zero"}
            How a category that is not in the training data is treated: it is an error, or its row has 0 in all
            features of this column; a warning counts such rows.

        Raises
        ------
        DataError
            The column is absent, or a cell is of the wrong kind, missing, not finite or an unknown category; its row
            and column are named.
        UnknownName
            Another ``unknown_category``.
        """
        column = table.column(self.name, "the model")
        if self.categories is None:
            table.require_numbers(column, missing=self.fill is not None)
            values = column.numbers[:, None]
            if self.fill is None:
                return values
            return np.where(np.isnan(values) | (values == self.missing_code), self.fill, values)
        choice("unknown_category", unknown_category, get_args(UnknownCategory))
        table.require_texts(column)
        place = {text: index for index, text in enumerate(self.categories)}
        index = np.array([place.get(text, -1) for text in column.texts])[column.codes]
        if (index < 0).any() and unknown_category == "zero":
            unseen = [text for text in column.texts if text not in place]
            told = ", ".join(shown(text) for text in unseen[:8]) + (", ..." if unseen[8:] else "")
            message = (
                f"{table.source}: {int((index < 0).sum()):,} rows have a category in column {shown(self.name)} that"
            )
            warnings.warn(f"{message} was not in the training data ({told}): its features are 0.", stacklevel=2)
        elif (index < 0).any():
            row = int(np.argmax(index < 0))
            known = ", ".join(shown(text) for text in self.categories[:12]) + (", ..." if self.categories[12:] else "")
            raise DataError(
                table.source,
                f"{table.place(row)}, column {shown(self.name)}: the category {column.cell(row)} was not in the"
                f" training data; known are {known}.",
                self.name,
                'To take such rows all the same, with 0 in all features of the column: unknown_category="zero".',
            )
        each = np.eye(len(self.categories) + 1, len(self.categories))  # the last row, of 0, is that of unknown ones
        features: NDArray[np.float64] = each[:, int(self.drop_first) :][index]
        return features


@dataclass(frozen=True, slots=True)
class TableEncoding:
    """How the rows of a table (CSV, Parquet, data frame) become features; columns are found by name.

    Attributes
    ----------
    columns : tuple of ColumnEncoding
        In the order of the features.
    format : "table"
        Tells the encodings apart in :func:`encoding_from_dict`.

    Examples
    --------
    >>> import pandas as pd
    >>> from minmaxcon.tables import fit_encoding, read_source
    >>> table = read_source(pd.DataFrame({"age": [30, 40], "job": ["cook", "clerk"]}))
    >>> encoding = fit_encoding(table, ["age", "job"])
    >>> encoding.feature_names, encoding.encode_table(table).tolist()
    (('age', 'job=clerk', 'job=cook'), [[30.0, 0.0, 1.0], [40.0, 1.0, 0.0]])
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    columns: tuple[ColumnEncoding, ...]
    format: Literal["table"] = "table"

    def __post_init__(self) -> None:
        if not instances("columns", self.columns, ColumnEncoding, "must be a sequence of ColumnEncoding."):
            raise InvalidInput("columns", self.columns, "a model needs at least one feature.")

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the d features, in order."""
        return tuple(name for column in self.columns for name in column.feature_names)

    def encode_table(self, table: Table, unknown_category: UnknownCategory = "refuse") -> NDArray[np.float64]:
        """Return the features (n, d) of a table that has been read; see :meth:`ColumnEncoding.encode`.

        UnknownName for another ``unknown_category`` than "refuse" and "zero".
        """
        choice("unknown_category", unknown_category, get_args(UnknownCategory))
        instance("table", table, Table, _TABLE)
        return np.hstack([column.encode(table, unknown_category) for column in self.columns])

    def encode(self, source: Any, unknown_category: UnknownCategory = "refuse") -> NDArray[np.float64]:
        """Return the features (n, d) of a file or data frame, as :func:`read_source` reads it.

        Columns that the model does not use are not read, and need not be there. ``unknown_category`` is that of
        :meth:`ColumnEncoding.encode`.

        Raises
        ------
        DataError
            A column is absent, or a cell is missing, not finite, of the wrong kind or an unknown category: row and
            column are named.
        """
        table = read_source(source, [column.name for column in self.columns], by="the model")
        return self.encode_table(table, unknown_category)

    def as_dict(self) -> dict[str, Any]:
        """Return the encoding as JSON knows it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class LibsvmEncoding:
    """How the rows of a LIBSVM file become features.

    Attributes
    ----------
    n_features : int
        Largest feature index that the training file had.
    removed : int or None
        The 1-based index that is no feature, if any.
    format : "libsvm"
        Tells the encodings apart in :func:`encoding_from_dict`.

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.tables import LibsvmEncoding
    >>> LibsvmEncoding(n_features=3, removed=1).feature_names
    ('2', '3')
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    n_features: int
    removed: int | None = None
    format: Literal["libsvm"] = "libsvm"

    def __post_init__(self) -> None:
        whole("n_features", self.n_features, most=LARGEST_INDEX)
        if self.removed is not None:
            whole("removed", self.removed, most=self.n_features)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The 1-based indices of the features, as text."""
        return tuple(str(index) for index in range(1, self.n_features + 1) if index != self.removed)

    def keep(self, matrix: Any) -> Any:
        """Return the CSR matrix without the removed column."""
        if self.removed is None:
            return matrix
        return matrix[:, np.delete(np.arange(self.n_features), self.removed - 1)]

    def encode(self, source: Any, unknown_category: UnknownCategory = "refuse") -> Any:
        """Return the features (n, d), a CSR array, of a LIBSVM file; its lines may lack the label.

        InvalidInput for another ``unknown_category`` than "refuse": there are no categories.
        """
        asked: object = unknown_category
        if not isinstance(asked, str) or asked != "refuse":
            raise InvalidInput("unknown_category", unknown_category, "a LIBSVM file has no categories; leave it out.")
        return self.keep(read_libsvm(source, n_features=self.n_features, labelled=False).features)

    def as_dict(self) -> dict[str, Any]:
        """Return the encoding as JSON knows it."""
        return asdict(self)


RowEncoding = TableEncoding | LibsvmEncoding
"""How the rows of a raw file become features; ``encode(source)`` does it, ``as_dict()`` is for JSON."""


def encoding_from_dict(fields: object) -> RowEncoding:
    """Return the encoding that ``as_dict`` wrote, read back from JSON.

    Raises
    ------
    InvalidInput
        The fields are not those of an encoding.
    """
    from pydantic import TypeAdapter, ValidationError

    libsvm = isinstance(fields, Mapping) and fields.get("format") == "libsvm"
    kind: type[RowEncoding] = LibsvmEncoding if libsvm else TableEncoding
    try:
        return TypeAdapter(kind).validate_json(json.dumps(fields))
    except ValidationError as failure:
        first = failure.errors()[0]
        cause = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except (TypeError, ValueError, RecursionError) as failure:
        cause = str(failure)
    raise InvalidInput("encoding", fields, f"is no encoding of a data file ({cause}); fit the model again.")


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
    InvalidInput
        An argument is of another type.
    DataError
        A cell is missing or not finite, or numbers and texts are mixed in one column; a column has another text in
        nearly every row; or no column is left.
    """
    instance("table", table, Table, _TABLE)
    wanted = instances("names", names, str, "must be a list of names of columns.")
    drop_first = flag("drop_first", drop_first)
    columns = [table.column(name, "the features") for name in wanted]
    if not columns:
        raise DataError(table.source, "no column is left as a feature; the file needs another one.")
    encodings = []
    for column in columns:
        texts = table.is_text(column)
        if texts:
            require_categories(table.source, column.name, len(column.texts), table.rows)
        encodings.append(
            ColumnEncoding(column.name, tuple(sorted(column.texts)) if texts else None, texts and drop_first)
        )
    return TableEncoding(tuple(encodings))


_MOST_TEXTS, _MOST_SHARE = 20, 0.5
"""Different texts from which a column with more of them than this share of the rows identifies rows."""


def identifies_rows(texts: int, rows: int) -> bool:
    """Whether a text column with so many different texts has another one in nearly every row.

    That is so for more than 20 texts, and more than half as many as rows.

    Examples
    --------
    >>> from minmaxcon.tables import identifies_rows
    >>> identifies_rows(texts=30, rows=1000), identifies_rows(texts=30, rows=40)
    (False, True)
    """
    texts, rows = whole("texts", texts, least=0), whole("rows", rows, least=0)
    return texts > max(_MOST_TEXTS, _MOST_SHARE * rows)


def require_categories(source: str, name: str, texts: int, rows: int) -> None:
    """Refuse a text column that has another text in nearly every row.

    One 0/1 feature for each text would tell the rows apart, and say nothing of new ones.

    Parameters
    ----------
    source, name : str
        The data and the column, as the message names them.
    texts, rows : int
        How many different texts there are, and how many rows.

    Raises
    ------
    DataError
        The column :func:`identifies_rows`.

    Examples
    --------
    >>> from minmaxcon.tables import require_categories
    >>> require_categories("people.csv", "job", texts=30, rows=1000)
    """
    if identifies_rows(texts, rows):
        raise DataError(
            source,
            f"column {shown(name)} has {texts:,} different texts in {rows:,} rows, such as notes or identifiers have,"
            " which tell these rows apart and nothing of others; remove it, or turn it into a few categories.",
            name,
        )
