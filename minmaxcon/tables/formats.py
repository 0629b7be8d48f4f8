"""Reader that turns a CSV file, a Parquet file or a data frame into a table of columns.

Cells are split and converted by Arrow. What it is given of a CSV file has been seen before, line by line and within a
fixed memory, so that the first line that is too long, no text, badly quoted or of another width is refused by number.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from minmaxcon.checks import file_path, instance, instances
from minmaxcon.errors import DataError
from minmaxcon.memory import require_memory
from minmaxcon.tables.columns import ColumnBuilder, Table, check_names, unknown_column
from minmaxcon.tables.lines import (
    MAX_LINE,
    bounded_lines,
    cause_of,
    check_ratio,
    existing_file,
    place,
    shown,
    source_name,
)

__all__ = ["FORMATS", "CsvRows", "column_names", "file_format", "read_source", "read_texts"]

FORMATS = {
    **dict.fromkeys((".csv", ".tsv"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".libsvm", ".svm", ".svmlight", ".txt", ".t", ""), "libsvm"),
}
"""Format by suffix, after a suffix ``.gz`` is taken off."""

_BLOCK = 2**22
"""Bytes of a CSV file that are converted at a time, about."""

_BATCH = 2**16
"""Rows of a Parquet file that are converted at a time."""

_BYTES_A_CELL = 24.0
"""Memory of a cell: its number, its features, and what training makes of them."""

_LOOKED_AT = 2**26
"""Bytes from which on it is looked at how much more the rows of a Parquet file are than the file."""

_DELIMITERS = (",", ";", "\t")


def file_format(path: str | Path) -> str:
    """Return "csv", "parquet" or "libsvm" by the suffix of a file's name.

    Raises
    ------
    DataError
        The suffix is not known.
    """
    suffix = Path(file_path("path", path).name.removesuffix(".gz")).suffix.lower()
    if suffix not in FORMATS:
        known = ", ".join(sorted(filter(None, FORMATS)))
        raise DataError(
            source_name(path), f"the suffix {shown(suffix)} names no known format; export the table as one of {known}."
        )
    return FORMATS[suffix]


def read_source(source: Any, wanted: Sequence[str] | None = None, *, by: str = "the columns to read") -> Table:
    """Return the table of a CSV or Parquet file, or of a data frame.

    A CSV file has a heading, is separated by commas, semicolons or tabs, and may be packed by gzip; blank lines are
    passed over, and a row begins on the line that messages name. The index of a data frame is ignored.

    Parameters
    ----------
    source : path or data frame
        A path, or any eager data frame that narwhals knows (pandas, polars, Arrow).
    wanted : sequence of str, optional
        Only these columns are read, in this order; all by default.
    by : str
        Who wants them, as a message about a missing one says.

    Raises
    ------
    InvalidInput
        ``wanted`` is no list of names.
    DataError
        No such file, no table, no rows; a column that is missing, has no name or the name of another, or is of a type
        other than number, text, boolean; in a CSV file binary content, a damaged line or a ragged row.
    """
    if wanted is not None:
        wanted = instances("wanted", wanted, str, "must be a list of names of columns, or None for all.")
    if not isinstance(source, str | Path):
        return _read_frame(source, wanted, by)
    read = _read_parquet if _table_format(source) == "parquet" else _read_csv
    return read(source, source_name(source), wanted, by)


def _table_format(path: str | Path) -> str:
    """Return "csv" or "parquet"; DataError for a LIBSVM file."""
    kind = file_format(existing_file(path))
    if kind == "libsvm":
        need = "a LIBSVM file has no named columns; if this is a table, rename it to .csv."
        raise DataError(source_name(path), need)
    return kind


def column_names(source: Any) -> tuple[str, ...]:
    """Return the headings of the columns of a CSV or Parquet file, or of a data frame; its rows are not read.

    Errors are those of :func:`read_source`.

    Examples
    --------
    >>> import pandas as pd
    >>> from minmaxcon.tables import column_names
    >>> column_names(pd.DataFrame({"age": [30, 40], "job": ["cook", "clerk"]}))
    ('age', 'job')
    """
    if not isinstance(source, str | Path):
        return tuple(_series(source))
    if _table_format(source) == "csv":
        return tuple(CsvRows(source).names)
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(source) as parquet:
            return tuple(parquet.schema_arrow.names)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as failure:
        raise _unreadable(source_name(source), failure) from failure


def read_texts(path: str | Path, name: str, *, by: str = "the columns to read") -> list[str]:
    """Return the cells of one column of a CSV or Parquet file as texts, as they stand there: "007" stays "007".

    A missing cell is an empty text. Parameters and errors are those of :func:`read_source`, but for the number of
    different texts, which is not limited.
    """
    instance("name", name, str, "must be the name of a column.")
    kind, source = file_format(existing_file(path)), source_name(path)
    if kind == "libsvm":
        raise DataError(source, f"a LIBSVM file has no column {shown(name)}, asked for by {by}; leave it out.")
    if kind == "csv":
        rows = CsvRows(path)
        _builders(source, rows.names, [name], by)
        blocks: Iterator[Any] = (columns[0] for columns, _ in rows.blocks([name]))
    else:
        blocks = _parquet_texts(path, source, name, by)
    found: list[str] = []
    for block in blocks:
        found += [cell or "" for cell in block.to_pylist()]
        _check_size(source, len(found), 1)
    return found


def _parquet_texts(path: str | Path, source: str, name: str, by: str) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as parquet:
            _builders(source, parquet.schema_arrow.names, [name], by)
            for batch in parquet.iter_batches(_BATCH, columns=[name]):
                yield batch.column(name).cast(pa.string())
    except (pa.ArrowException, OSError, UnicodeDecodeError) as failure:
        need = f"column {shown(name)} cannot be read as texts ({cause_of(failure)}); export the file again."
        raise DataError(source, need) from failure


def _builders(source: str, names: Sequence[str], wanted: Sequence[str] | None, by: str) -> list[ColumnBuilder]:
    """Return an empty column for each that is to be read, once they are seen to be there and to be unique."""
    known, used = set(names), names if wanted is None else wanted
    for name in used:
        if name not in known:
            raise unknown_column(source, name, by, names)
    check_names(source, names, used)
    return [ColumnBuilder(name, source) for name in used]


def _built(source: str, builders: Sequence[ColumnBuilder], rows: int, lines: Any = None) -> Table:
    if not rows:
        raise DataError(source, "there is a heading but no data row; at least one was expected.")
    return Table(source, {builder.name: builder.build() for builder in builders}, rows, lines)


def _read_csv(path: str | Path, source: str, wanted: Sequence[str] | None, by: str) -> Table:
    rows = CsvRows(path)
    builders = _builders(source, rows.names, wanted, by)
    starts = array("q")
    for columns, numbers in rows.blocks(
        [builder.name for builder in builders], seen=lambda count: _check_size(source, count, len(builders))
    ):
        for builder, cells in zip(builders, columns, strict=True):
            builder.add(cells)
        starts.extend(numbers)
    return _built(source, builders, len(starts), np.array(starts))


class CsvRows:
    """The rows of a CSV file, which is passed over line by line as often as they are asked for.

    ``names`` are those of its columns. Raises DataError for no such file, an empty one, and what is no text.
    """

    def __init__(self, path: str | Path) -> None:
        self.path, self.source = path, source_name(path)
        lines = _text_lines(path, self.source)
        first, heading = next(((number, line) for number, line in lines if line.strip()), (0, ""))
        if not heading:
            raise DataError(self.source, "the file is empty; a heading and data rows were expected.")
        self._delimiter = max(_DELIMITERS, key=re.sub('"[^"]*"', "", heading).count)
        _, heading, self._width = next(_rows(itertools.chain([(first, heading)], lines), self._delimiter, self.source))
        cells = next(csv.reader([heading], delimiter=self._delimiter)) if '"' in heading else None
        self.names = [name.strip() for name in (heading.split(self._delimiter) if cells is None else cells)]

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Yield the line on which each row begins, and the row; DataError where it has other cells than the heading."""
        rows = _rows(_text_lines(self.path, self.source), self._delimiter, self.source)
        next(rows, None)
        for count, (number, row, found) in enumerate(rows, start=1):
            if found != self._width:
                need = f"has {found} cells where the heading has {self._width}; correct the row or its quotes."
                raise DataError(self.source, f"{place(count, number)} {need}")
            yield number, row

    def blocks(
        self, wanted: Sequence[str], *, seen: Callable[[int], None] | None = None
    ) -> Iterator[tuple[list[Any], array[int]]]:
        """Yield blocks of rows: the cells of some columns as arrays of Arrow, and the lines on which the rows begin.

        Before they are converted ``seen`` is called with the rows read so far, now and then.
        """
        import pyarrow as pa
        from pyarrow import csv as arrow

        place = {name: str(at) for at, name in reversed([*enumerate(self.names)])}
        asked = [place[name] for name in wanted]
        parse = arrow.ParseOptions(delimiter=self._delimiter, newlines_in_values=True)
        convert = arrow.ConvertOptions(include_columns=asked, column_types=dict.fromkeys(asked, pa.string()))

        def converted(text: str) -> list[Any]:
            data = text.encode("utf-8-sig")  # Arrow passes over one such mark, which might be a cell's
            # Numbers for names: those that nobody asked for may be repeated. Each block is whole, however long its
            # rows.
            names = list(map(str, range(self._width)))
            read = arrow.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1)
            return list(arrow.read_csv(io.BytesIO(data), read, parse, convert).itercolumns())

        starts, block, size = array("q"), list[str](), 0
        for count, (number, row) in enumerate(self, start=1):
            if seen is not None and count % 10_000 == 0:
                seen(count)
            starts.append(number)
            block.append(row)
            size += len(row)
            if size > _BLOCK:
                yield converted("\n".join(block)), starts
                starts, block, size = array("q"), [], 0
        if block:
            yield converted("\n".join(block)), starts


def _text_lines(path: str | Path, source: str) -> Iterator[tuple[int, str]]:
    for number, line in bounded_lines(path):
        try:
            yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as failure:
            raise DataError(
                source, f"line {number} is not UTF-8 text (byte {line[failure.start]:#04x}); export the file as UTF-8."
            ) from failure


def _rows(lines: Iterator[tuple[int, str]], delimiter: str, source: str) -> Iterator[tuple[int, str, int]]:
    """Yield the line on which each row begins, the row without its end, and its number of cells.

    A row with quotes comes out with all its cells quoted.
    """
    for number, line in lines:
        row = line.rstrip("\r\n")
        if '"' in row or "\r" in row:
            cells = _quoted_cells(number, line, lines, delimiter, source)
            plain = f'"{delimiter}"'.join([cell.replace('"', '""') for cell in cells])
            yield number, f'"{plain}"', len(cells)
        elif row.strip(" "):
            yield number, row, row.count(delimiter) + 1


def _quoted_cells(
    first: int, line: str, following: Iterator[tuple[int, str]], delimiter: str, source: str
) -> list[str]:
    """Return the cells of a row that begins on this line; Python's strict reader decides where its quotes end."""
    last = first

    def lines() -> Iterator[str]:
        nonlocal last
        yield line
        size = len(line)
        for number, text in following:
            last, size = number, size + len(text)
            if size > MAX_LINE:
                raise csv.Error(f"the row that begins on line {first} is longer than {MAX_LINE:,} characters")
            yield text

    try:
        return next(csv.reader(lines(), delimiter=delimiter, skipinitialspace=True, strict=True))
    except csv.Error as failure:
        raise DataError(source, f"line {last} cannot be split into cells ({failure}); correct its quotes.") from failure


def _read_parquet(path: str | Path, source: str, wanted: Sequence[str] | None, by: str) -> Table:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as parquet:
            builders = _builders(source, parquet.schema_arrow.names, wanted, by)
            claimed, rows = parquet.metadata.num_rows, 0
            _check_size(source, claimed, len(builders))
            size = 8.0 * claimed * len(builders)
            if size > _LOOKED_AT:
                check_ratio(source, size, Path(path).stat().st_size)
            for batch in parquet.iter_batches(_BATCH, columns=[builder.name for builder in builders]):
                for builder in builders:
                    builder.add(batch.column(builder.name))
                rows += batch.num_rows
            if rows != claimed:
                raise DataError(source, f"claims {claimed:,} rows and holds {rows:,}; export it again.")
            return _built(source, builders, rows)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as failure:  # names that are no text are read by Python
        raise _unreadable(source, failure) from failure


def _unreadable(source: str, failure: Exception) -> DataError:
    return DataError(source, f"is not a readable Parquet file ({cause_of(failure)}); export it again.")


def _check_size(source: str, rows: int, columns: int) -> None:
    """Refuse a table that does not fit into memory, before it is read or as soon as it is known."""
    remedy = "read fewer columns or rows, keep sparse features in a LIBSVM file, or stream the rows (mm.Stream)."
    require_memory(_BYTES_A_CELL * rows * columns, f"{source}: {rows:,} rows of {columns:,} columns", remedy)


def _read_frame(frame: Any, wanted: Sequence[str] | None, by: str) -> Table:
    series = _series(frame)
    builders = _builders(_FRAME, list(series), wanted, by)
    rows = len(next(iter(series.values()), ()))
    if rows:
        for builder in builders:
            builder.add(_arrow(series[builder.name], builder.name))
    return _built(_FRAME, builders, rows)


_FRAME = "data frame"


def _series(frame: Any) -> dict[str, Any]:
    """Return the columns of an eager data frame by name."""
    import narwhals as nw

    source = _FRAME
    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError as failure:
        kind = type(frame).__name__
        raise DataError(source, f"a {kind} is neither a path nor an eager data frame; give one of these.") from failure
    except nw.exceptions.DuplicateError as failure:
        need = f"two columns have one name ({cause_of(failure)}); rename or remove one."
        raise DataError(source, need) from failure
    return {str(column.name): column for column in table.iter_columns()}


def _arrow(series: Any, name: str) -> Any:
    """Return a narwhals series as an Arrow array; objects of several kinds as texts. Complex numbers are refused."""
    import pyarrow as pa

    try:
        return series.to_arrow()
    except pa.ArrowException:
        values = series.to_list()
    if any(isinstance(value, complex | np.complexfloating) for value in values):
        need = f"column {shown(name)} is of complex numbers; turn it into real numbers or text, or remove it."
        raise DataError(_FRAME, need, name)
    return pa.array([None if value is None else str(value) for value in values])
