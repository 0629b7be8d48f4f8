"""Readers that turn a CSV file, a Parquet file or a data frame into a table of columns."""

from __future__ import annotations

import csv
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from minmaxcon.errors import DataError, MissingDependency
from minmaxcon.tables.columns import Column, ColumnBuilder, Table, unknown_column
from minmaxcon.tables.lines import bounded_lines, existing_file, place, shown, source_name

__all__ = ["FORMATS", "file_format", "read_csv", "read_frame", "read_parquet", "read_source"]

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".svmlight": "libsvm",
    ".txt": "libsvm",
    ".t": "libsvm",
    "": "libsvm",
}
"""Format by suffix, after a suffix ``.gz`` is taken off."""

_BLOCK = 2048
_BY = "the columns to read"
_DELIMITERS = (",", ";", "\t")


def file_format(path: str | Path) -> str:
    """Return "csv", "parquet" or "libsvm" by the suffix of a file's name.

    Raises
    ------
    DataError
        The suffix is not known.
    """
    name = Path(path).name
    suffix = Path(name.removesuffix(".gz")).suffix.lower()
    if suffix not in FORMATS:
        known = ", ".join(sorted(filter(None, FORMATS)))
        raise DataError(
            source_name(path), f"the suffix {shown(suffix)} names no known format; rename the file to one of {known}."
        )
    return FORMATS[suffix]


def read_source(source: Any, wanted: Sequence[str] | None = None, *, by: str = _BY) -> Table:
    """Return the table of a CSV or Parquet file, or of a data frame.

    Parameters
    ----------
    source : path or data frame
        A path, or any eager data frame that narwhals knows (pandas, polars, Arrow).
    wanted : sequence of str, optional
        Only these columns are read, in this order; all by default.
    by : str
        Who wants them, as a message about a missing one says.
    """
    if not isinstance(source, str | Path):
        return read_frame(source, "data frame", wanted, by=by)
    kind = file_format(existing_file(source))
    if kind == "libsvm":
        raise DataError(
            source_name(source), "a LIBSVM file has no named columns; if this is a table, rename it to .csv."
        )
    return (read_parquet if kind == "parquet" else read_csv)(source, wanted, by=by)


def _text_lines(path: str | Path) -> Iterator[str]:
    for number, line in bounded_lines(path):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as failure:
            raise DataError(
                source_name(path),
                f"line {number} is not UTF-8 text (byte {line[failure.start]:#04x}); export the file as UTF-8.",
            ) from failure


def _delimiter(path: str | Path, heading: str) -> str:
    def fields(delimiter: str) -> int:
        return len(next(csv.reader([heading], delimiter=delimiter)))

    try:
        return max(_DELIMITERS, key=fields)
    except csv.Error as failure:
        raise DataError(
            source_name(path), f"line 1 is no heading of a table ({failure}); is this a CSV file?"
        ) from failure


def _columns_wanted(source: str, names: Sequence[str], wanted: Sequence[str] | None, by: str) -> list[str]:
    """Return the names of the columns to read, once they are seen to be there and to be unique."""
    used = list(names if wanted is None else wanted)
    missing = [name for name in used if name not in names]
    if missing:
        raise unknown_column(source, missing[0], by, names)
    if "" in used:
        raise DataError(source, f"column {names.index('') + 1} has no name; give every column one in the first line.")
    repeated = [name for name, count in Counter(names).items() if count > 1 and name in used]
    if repeated:
        raise DataError(source, f"two columns are called {shown(repeated[0])}; rename or remove one.")
    return used


def read_csv(path: str | Path, wanted: Sequence[str] | None = None, *, by: str = _BY) -> Table:
    """Return the table of a CSV file with a heading, separated by commas, semicolons or tabs, plain or gzip.

    Blank lines are passed over. A row begins on the line that messages name.

    Parameters
    ----------
    path : path
        The file.
    wanted : sequence of str, optional
        Only these columns, in this order.
    by : str
        Who wants them, as a message about a missing one says.

    Raises
    ------
    DataError
        No such file, binary content, a damaged line, a ragged row, no rows, a missing or repeated column name.
    """
    source = source_name(path)
    lines = _text_lines(path)
    blank, heading = 0, ""
    for heading in lines:
        if heading.strip():
            break
        blank += 1
    if not heading.strip():
        raise DataError(source, "the file is empty; a heading and data rows were expected.")
    reader = csv.reader(
        itertools.chain([heading], lines), delimiter=_delimiter(path, heading), skipinitialspace=True, strict=True
    )
    starts: list[int] = []
    try:
        names = [name.strip() for name in next(reader)]
        used = _columns_wanted(source, names, wanted, by)
        builders = [(names.index(name), ColumnBuilder(name, source)) for name in used]
        rows = _rows(reader, source, len(names), blank, starts)
        while block := list(itertools.islice(rows, _BLOCK)):
            cells = list(zip(*block, strict=True))
            for index, builder in builders:
                builder.add(cells[index])
    except csv.Error as failure:
        line = blank + reader.line_num
        raise DataError(source, f"line {line} cannot be split into cells ({failure}); correct it.") from failure
    if not starts:
        raise DataError(source, "there is a heading but no data row; data rows were expected below it.")
    columns = {builder.name: builder.build() for _, builder in builders}
    return Table(source, columns, len(starts), np.array(starts, dtype=np.int64))


def _rows(reader: Any, source: str, width: int, blank: int, starts: list[int]) -> Iterator[list[str]]:
    """Yield the cells of each row and note in ``starts`` the line on which it begins."""
    begin = blank + int(reader.line_num) + 1
    for cells in reader:
        if len(cells) == width:
            starts.append(begin)
            yield cells
        elif cells:
            where = place(len(starts) + 1, begin)
            raise DataError(
                source, f"{where} has {len(cells)} cells where the heading has {width}; correct the row or its quotes."
            )
        begin = blank + int(reader.line_num) + 1


def read_parquet(path: str | Path, wanted: Sequence[str] | None = None, *, by: str = _BY) -> Table:
    """Return the table of a Parquet file.

    Parameters
    ----------
    path : path
        The file.
    wanted : sequence of str, optional
        Only these columns, in this order.
    by : str
        Who wants them, as a message about a missing one says.

    Raises
    ------
    MissingDependency
        pyarrow is not installed.
    DataError
        Not a Parquet file, no rows, a column that is missing, repeated or of a type other than number, text, boolean.
    """
    file = existing_file(path)
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile
    except ImportError as failure:
        raise MissingDependency("pyarrow", "data", "reading Parquet files") from failure
    try:
        parquet = ParquetFile(file)
        used = _columns_wanted(source_name(path), parquet.schema_arrow.names, wanted, by)
        frame = parquet.read(columns=used)
    except (pa.ArrowException, OSError) as failure:
        cause = " ".join(str(failure).split())[:120]
        raise DataError(source_name(path), f"is not a readable Parquet file ({cause}); export it again.") from failure
    return read_frame(frame, source_name(path), used, by=by)


def read_frame(frame: Any, source: str, wanted: Sequence[str] | None = None, *, by: str = _BY) -> Table:
    """Return the table of an eager data frame (pandas, polars, Arrow, through narwhals).

    Parameters
    ----------
    frame : data frame
        With one column per feature; its index, where it has one, is ignored.
    source : str
        What messages name.
    wanted : sequence of str, optional
        Only these columns, in this order.
    by : str
        Who wants them, as a message about a missing one says.

    Raises
    ------
    DataError
        Not a data frame, no rows, a column that is missing, repeated or of a type other than number, text, boolean.
    """
    import narwhals as nw

    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError as failure:
        kind = type(frame).__name__
        raise DataError(source, f"a {kind} is neither a path nor an eager data frame; give one of these.") from failure
    except nw.exceptions.DuplicateError as failure:
        cause = " ".join(str(failure).split())[:120]
        raise DataError(source, f"two columns have one name ({cause}); rename or remove one.") from failure
    used = _columns_wanted(source, [str(name) for name in table.columns], wanted, by)
    if not len(table):
        raise DataError(source, "there are no data rows; at least one was expected.")
    return Table(source, {name: _frame_column(table[name], name, source) for name in used}, len(table))


def _frame_column(series: Any, name: str, source: str) -> Column:
    """Return one column of a narwhals data frame."""
    import narwhals as nw

    builder = ColumnBuilder(name, source)
    if series.dtype.is_numeric():
        numbers = [math.nan if v is None else float(v) for v in series.to_list()] if series.null_count() else series
        builder.add_numbers(np.asarray(numbers, dtype=np.float64))
    elif series.dtype in (nw.String, nw.Categorical, nw.Enum, nw.Boolean, nw.Object):
        builder.add(["" if value is None else str(value) for value in series.to_list()])
    else:
        raise DataError(
            source, f"column {shown(name)} is of type {series.dtype}; turn it into numbers or text, or remove it."
        )
    return builder.build()
