"""Columns of a table as its file holds them: numbers, texts and missing cells, each with its row.

CSV, Parquet and data frames all become the same :class:`Table`, so that the same data mean the same in every format:
a boolean is a text, a text that reads as a number is a number.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minmaxcon.errors import DataError
from minmaxcon.tables.lines import place, shown

__all__ = ["MAX_CATEGORIES", "MAX_NUMBER", "MISSING", "NUMBER", "Column", "ColumnBuilder", "Table"]

MAX_CATEGORIES = 1000
"""Most different texts of one column; more are names or identifiers, not categories."""

MAX_NUMBER = 1e100
"""Largest magnitude that is read: the squares of larger numbers, and sums of them, soon leave the range of floats."""

NUMBER, MISSING = -1, -2
"""Codes of a cell that is a number, and of one that is missing; a text has its index in ``Column.texts``."""

_MISSING_MARKS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null"})


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
        ``NUMBER``, ``MISSING``, or the index of the cell's text in ``texts``.
    texts : tuple of str
        The different texts, in order of appearance.
    """

    name: str
    numbers: NDArray[np.float64]
    codes: NDArray[np.int32]
    texts: tuple[str, ...]

    def cell(self, row: int) -> str:
        """Return the cell of a row (from 0) as a message shows it."""
        code = int(self.codes[row])
        return shown("") if code == MISSING else f"{self.numbers[row]:g}" if code == NUMBER else shown(self.texts[code])


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
    """

    source: str
    columns: dict[str, Column]
    rows: int
    lines: NDArray[np.int64] | None = None

    def place(self, row: int) -> str:
        """Return "row 7 (line 8)" for the row with index 6."""
        return place(row + 1, None if self.lines is None else int(self.lines[row]))

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
        text = 2 * int((column.codes >= 0).sum()) > int((column.codes != MISSING).sum())
        if text:
            self.require_texts(column)
        else:
            self.require_numbers(column)
        return text

    def require_texts(self, column: Column) -> None:
        """Refuse a column that has a missing cell or a number, by its first row."""
        self._refuse(column, column.codes == MISSING, "is missing")
        self._refuse(column, column.codes == NUMBER, "is a number in a text column")

    def require_numbers(self, column: Column, *, missing: bool = False) -> None:
        """Refuse a column that has a text, a value too large or (unless allowed) a missing one, by its first row."""
        self._refuse(column, column.codes >= 0, "is text in a numeric column")
        self._refuse(column, (column.codes == MISSING) & (not missing), "is missing (or NaN)")
        self._refuse(column, np.isinf(column.numbers), "is not finite")
        self._refuse(column, np.abs(column.numbers) > MAX_NUMBER, f"is too large, above {MAX_NUMBER:g}")

    def _refuse(self, column: Column, bad: NDArray[np.bool_], defect: str) -> None:
        if bad.any():
            row, count = int(np.argmax(bad)), int(bad.sum())
            more = f" ({count} such cells)" if count > 1 else ""
            raise DataError(
                self.source,
                f"{self.place(row)}, column {shown(column.name)}: the value {column.cell(row)} {defect}{more};"
                " correct it in the file or remove the row or the column, nothing is filled in silently.",
            )


def unknown_column(source: str, name: str, argument: str, known: Iterable[str]) -> DataError:
    """Return the error for a column that does not exist; it suggests the nearest name."""
    names = [str(column) for column in known]
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f" did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(shown(column) for column in names[:12]) + (f", ... ({len(names)} in all)" if names[12:] else "")
    return DataError(source, f"no column {shown(name)}, asked for by {argument};{hint} Columns: {listed}.")


class ColumnBuilder:
    """Collects the cells of one column, block by block.

    Parameters
    ----------
    name : str
        Heading of the column.
    source : str
        What messages name.
    """

    def __init__(self, name: str, source: str) -> None:
        self.name, self.source = name, source
        self._numbers: list[NDArray[np.float64]] = []
        self._codes: list[NDArray[np.int32]] = []
        self._known: dict[str, int] = {}

    def add(self, cells: Sequence[str]) -> None:
        """Append a block of cells.

        Raises
        ------
        DataError
            The column has more than ``MAX_CATEGORIES`` different texts.
        """
        try:
            numbers = np.fromiter(map(float, cells), np.float64, len(cells))
        except ValueError:
            numbers = np.array([math.nan])
        if not np.isnan(numbers).any() and "_" not in "".join(cells):
            self.add_numbers(numbers)
            return
        pairs = [self._classify(cell.strip()) for cell in cells]
        self._codes.append(np.array([code for code, _ in pairs], dtype=np.int32))
        self._numbers.append(np.array([number for _, number in pairs], dtype=np.float64))

    def add_numbers(self, numbers: NDArray[np.float64]) -> None:
        """Append cells that are numbers already; NaN means missing."""
        self._numbers.append(numbers)
        self._codes.append(np.where(np.isnan(numbers), MISSING, NUMBER).astype(np.int32))

    def _classify(self, cell: str) -> tuple[int, float]:
        code = self._known.get(cell)
        if code is not None:
            return code, math.nan
        if cell.lower() in _MISSING_MARKS:
            return MISSING, math.nan
        try:
            # Python reads "1_000" as a number; no other tool does.
            number = math.nan if "_" in cell else float(cell)
        except ValueError:
            number = math.nan
        if not math.isnan(number):
            return NUMBER, number
        if len(self._known) == MAX_CATEGORIES:
            raise DataError(
                self.source,
                f"column {shown(self.name)} has more than {MAX_CATEGORIES:,} different texts (such as {shown(cell)});"
                " it looks like a name or an identifier, remove it from the file.",
            )
        return self._known.setdefault(cell, len(self._known)), math.nan

    def build(self) -> Column:
        """Return the column."""
        empty = np.zeros(0)
        numbers = np.concatenate([empty, *self._numbers])
        codes = np.concatenate([empty.astype(np.int32), *self._codes])
        return Column(self.name, numbers, codes, tuple(self._known))
