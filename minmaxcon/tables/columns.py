"""Columns of a table as its file holds them: numbers, texts and missing cells, each with its row.

CSV, Parquet and data frames all become the same :class:`Table`, so that the same data mean the same in every format:
a boolean is a text, a text that reads as a number is a number.
"""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minmaxcon.checks import instance, instances
from minmaxcon.errors import DataError
from minmaxcon.tables.lines import place, shown

__all__ = ["MAX_CATEGORIES", "MAX_NUMBER", "Column", "ColumnBuilder", "Table", "have_decimal_commas"]

MAX_CATEGORIES = 1000
"""Most different texts of one column; more are names or identifiers, not categories."""

MAX_NUMBER = 1e100
"""Largest magnitude that is read: the squares of larger numbers, and sums of them, soon leave the range of floats."""

_MISSING_MARKS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null"})

_READABLE = ("null", "integer", "floating", "decimal", "string", "large_string")
"""Types of Arrow that become numbers."""

_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+\s*")


def have_decimal_commas(texts: Iterable[str]) -> bool:
    """Whether all texts are numbers with decimal commas.

    Examples
    --------
    >>> from minmaxcon.tables import have_decimal_commas
    >>> have_decimal_commas(["1,5", "-2,0"]), have_decimal_commas(["1,5", "a"])
    (True, False)
    """
    found = instances("texts", texts, str, "must be texts, such as the cells of a column.")
    return all(map(_DECIMAL_COMMA.fullmatch, found))


@dataclass(frozen=True, eq=False, slots=True)
class Column:
    """One column.

    Attributes
    ----------
    name : str
        Its heading.
    numbers : array (n,) float64
        The value of each cell that is a number, NaN elsewhere.
    codes : array (n,) int32
        The index of each cell's text in ``texts``; -1 where the cell is a number or missing.
    texts : tuple of str
        The different texts, in order of appearance.

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.tables import Column
    >>> column = Column.of_numbers("age", np.array([30.0, np.nan]))
    >>> column.missing, column.cell(0)
    (array([False,  True]), '30')
    """

    name: str
    numbers: NDArray[np.float64]
    codes: NDArray[np.int32]
    texts: tuple[str, ...] = ()

    @classmethod
    def of_numbers(cls, name: str, numbers: NDArray[np.float64]) -> Column:
        """Return a column without texts, from its numbers (n,); NaN is missing. InvalidInput where they are none."""
        instance("numbers", numbers, np.ndarray, "must be an array (n,) of numbers.")
        return cls(name, numbers, _no_texts(len(numbers)))

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Whether each cell is missing, (n,)."""
        return np.isnan(self.numbers) & (self.codes < 0)

    def cell(self, row: int) -> str:
        """Return the cell of a row (from 0), which is not missing, as a message shows it."""
        code = int(self.codes[row])
        return f"{self.numbers[row]:g}" if code < 0 else shown(self.texts[code])


def _no_texts(n: int) -> NDArray[np.int32]:
    return np.broadcast_to(np.int32(-1), n)


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """Columns of equal length and where they came from.

    Attributes
    ----------
    source : str
        The file, or what else messages should name.
    columns : dict
        Columns by name, in the order of the file.
    rows : int
        Number of data rows n.
    lines : array (n,) int64 or None
        Line of the file on which each row begins, where there are lines.
    first : int
        Rows of the data set that come before the first one here, where this is a block of it.

    Examples
    --------
    >>> import pandas as pd
    >>> from minmaxcon.tables import read_source
    >>> table = read_source(pd.DataFrame({"age": [30, 40], "job": ["cook", "clerk"]}))
    >>> table.rows, list(table.columns), table.column("age", "--label").numbers
    (2, ['age', 'job'], array([30., 40.]))
    """

    source: str
    columns: dict[str, Column]
    rows: int
    lines: NDArray[np.int64] | None = None
    first: int = 0

    def place(self, row: int) -> str:
        """Return "row 7 (line 8)" for the row with index 6."""
        return place(self.first + row + 1, None if self.lines is None else int(self.lines[row]))

    def column(self, name: str, argument: str) -> Column:
        """Return a column by name.

        Raises
        ------
        DataError
            There is none; the message names the argument, the nearest name and the columns that exist.
        """
        if name in self.columns:
            return self.columns[name]
        raise unknown_column(self.source, name, argument, self.columns)

    def is_text(self, column: Column) -> bool:
        """Return whether the column is categorical, that is no cell of it is a number; the rarer kind is refused.

        Raises
        ------
        DataError
            As in ``require_texts`` and ``require_numbers``.
        """
        text = 2 * int((column.codes >= 0).sum()) > int((~column.missing).sum())
        (self.require_texts if text else self.require_numbers)(column)
        return text

    def require_texts(self, column: Column) -> None:
        """Refuse a column that has a missing cell or a number, by its first row; or numbers with decimal commas."""
        self._refuse_commas(column)
        self._refuse(column, column.missing, "is missing")
        self._refuse(column, column.codes < 0, "is a number in a text column")

    def require_numbers(self, column: Column, *, missing: bool = False) -> None:
        """Refuse a column that has a text, a value too large or (unless allowed) a missing one, by its first row."""
        self._refuse_commas(column)
        self._refuse(column, column.codes >= 0, "is text in a numeric column")
        if not missing:
            self._refuse(column, column.missing, "is missing (or NaN)")
        self._refuse(column, np.isinf(column.numbers), "is not finite")
        self._refuse(column, np.abs(column.numbers) > MAX_NUMBER, f"is too large, above {MAX_NUMBER:g}")

    def _refuse_commas(self, column: Column) -> None:
        """Refuse a column whose texts all are numbers with decimal commas; whole numbers have none."""
        if column.texts and have_decimal_commas(column.texts):
            raise DataError(
                self.source,
                f"column {shown(column.name)} holds numbers with decimal commas (such as {shown(column.texts[0])});"
                " export the file with decimal points.",
                column.name,
            )

    def _refuse(self, column: Column, bad: NDArray[np.bool_], defect: str) -> None:
        if bad.any():
            row, count = int(np.argmax(bad)), int(bad.sum())
            value = "the value" if column.missing[row] else f"the value {column.cell(row)}"
            more = f" ({count} such cells)" if count > 1 else ""
            if column.missing[row]:
                more += self._others(column)
            raise DataError(
                self.source,
                f"{self.place(row)}, column {shown(column.name)}: {value} {defect}{more};"
                " correct it in the file or remove the row or the column, nothing is filled in silently.",
                column.name,
            )

    def _others(self, column: Column) -> str:
        """Return the columns that have missing cells beside one, as a part of a sentence; "" where there is none."""
        names = [shown(other.name) for other in self.columns.values() if other is not column and other.missing.any()]
        if not names:
            return ""
        return f", and cells of {', '.join(names[:12])}" + (f", ... ({len(names)} columns)" if names[12:] else "")


def check_names(source: str, names: Sequence[str], used: Iterable[str]) -> None:
    """Raise DataError where one of the ``used`` of the columns of a source has no name, or that of another."""
    counts = Counter(names)
    for name in used:
        if not name:
            need = f"column {names.index('') + 1} has no name; give every column one in its heading."
            raise DataError(source, need, name)
        if counts[name] > 1:
            raise DataError(source, f"two columns are called {shown(name)}; rename or remove one.", name)


def unknown_column(source: str, name: str, argument: str, known: Iterable[str]) -> DataError:
    """Return the error for a column that does not exist; it suggests the nearest name."""
    names = [str(column) for column in known]
    folded = {column.casefold(): column for column in names}
    near = difflib.get_close_matches(str(name).casefold(), folded, n=1, cutoff=0.5)
    hint = f" did you mean {folded[near[0]]!r}?" if near else ""
    several = [part.strip() for part in str(name).split(",")]
    if len(several) > 1 and all(part in names for part in several):
        hint = f" it names {len(several)} columns, and one is taken: join them into one column of the data first."
    listed = ", ".join(shown(column) for column in names[:12]) + (f", ... ({len(names)} in all)" if names[12:] else "")
    return DataError(source, f"no column {shown(name)}, asked for by {argument};{hint} Columns: {listed}.")


class ColumnBuilder:
    """Collects the cells of one column, block by block."""

    def __init__(self, name: str, source: str) -> None:
        self.name, self.source = name, source
        self._numbers: list[NDArray[np.float64]] = []
        self._codes: list[NDArray[np.int32]] = []
        self._known: dict[str, int] = {}

    def add(self, cells: Any) -> None:
        """Append a block of cells, an Arrow array of numbers, texts or booleans; null is missing.

        DataError if they are of another type, or the column has more than ``MAX_CATEGORIES`` different texts.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if isinstance(cells, pa.ChunkedArray):
            cells = cells.combine_chunks()
        if pa.types.is_dictionary(cells.type):
            cells = cells.cast(cells.type.value_type)
        kind = cells.type
        if pa.types.is_boolean(kind):
            cells = pc.if_else(cells, "True", "False")
        elif pa.types.is_string_view(kind):
            cells = cells.cast(pa.large_string())
        elif not any(getattr(pa.types, f"is_{name}")(kind) for name in _READABLE):
            need = f"column {shown(self.name)} is of type {kind}; turn it into numbers or text, or remove it."
            raise DataError(self.source, need, self.name)
        try:
            values = pc.cast(cells, pa.float64(), safe=False)
        except pa.ArrowInvalid:
            self._add_texts(pc.utf8_trim_whitespace(cells))
            return
        # Arrow's own conversion to NumPy imports pandas, which takes longer than most files.
        numbers: Any = values.to_numpy(zero_copy_only=False) if values.null_count else np.from_dlpack(values)
        self._numbers.append(numbers)
        self._codes.append(_no_texts(len(numbers)))

    def _add_texts(self, cells: Any) -> None:
        """Append cells of which one at least is no number: each different text is read once."""
        encoded = cells.dictionary_encode("encode")
        read = [self._read(text or "") for text in encoded.dictionary.to_pylist()]
        which = np.from_dlpack(encoded.indices)
        self._numbers.append(np.array([number for number, _ in read])[which])
        self._codes.append(np.array([code for _, code in read], dtype=np.int32)[which])

    def _read(self, cell: str) -> tuple[float, int]:
        """Return the number and the code of a cell."""
        if cell.lower() in _MISSING_MARKS:
            return math.nan, -1
        try:
            if "_" not in cell:  # Python reads "1_000" as a number; no other tool does
                return float(cell), -1
        except ValueError:
            pass
        if cell not in self._known and len(self._known) == MAX_CATEGORIES:
            raise DataError(
                self.source,
                f"column {shown(self.name)} has more than {MAX_CATEGORIES:,} different texts (such as {shown(cell)});"
                " it looks like a name or an identifier, remove it from the file.",
                self.name,
            )
        return math.nan, self._known.setdefault(cell, len(self._known))

    def build(self) -> Column:
        """Return the column, of at least one block."""
        numbers = np.concatenate(self._numbers)
        codes = np.concatenate(self._codes) if self._known else _no_texts(len(numbers))
        return Column(self.name, numbers, codes, tuple(self._known))
