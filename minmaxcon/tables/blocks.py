"""Tables that do not fit in memory, read block by block: Arrow data sets, CSV and LIBSVM files, frames in turn."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from minmaxcon.checks import whole
from minmaxcon.errors import DataError, InvalidInput, MissingDependency
from minmaxcon.tables.columns import Column, ColumnBuilder, Table, check_names, unknown_column
from minmaxcon.tables.formats import CsvRows, file_format, read_source
from minmaxcon.tables.libsvm import LARGEST_INDEX, parsed_lines
from minmaxcon.tables.lines import cause_of, existing_file, shown, source_name

__all__ = ["TableBlocks"]

_ROWS = 2**15
_LIBSVM_LABEL = "label"


class TableBlocks:
    """A data set with named columns that is read block by block, as often as it is asked for.

    Parameters
    ----------
    source : path, pyarrow.dataset.Dataset, callable or iterable
        A Parquet, CSV or LIBSVM file; a folder of Parquet files; any address that fsspec knows, such as
        ``s3://...``, of Parquet files; a data set of pyarrow in any format; or frames (pandas, polars, Arrow): a
        list of them, or a function that returns a fresh iterator.
    n_features : int, optional
        For a LIBSVM file the number of features; the largest index that occurs by default. Columns are ``"label"``,
        ``"1"``, ``"2"``, ... there.
    block : int
        Most rows of a block.

    Attributes
    ----------
    name : str
        What messages call the data set.
    names : tuple of str
        The columns.
    rows : int
        The rows; those of frames and text files are counted by reading them once.

    Raises
    ------
    DataError
        No such file, one that cannot be read, no rows, or files or frames of different columns: which, and how they
        differ.
    InvalidInput
        If the source is nothing of this kind, such as an iterator that can be read once only.

    Examples
    --------
    >>> import pyarrow as pa
    >>> blocks = TableBlocks([pa.table({"x": [1.0, 2.0]}), pa.table({"x": [3.0]})])
    >>> blocks.rows, [table.columns["x"].numbers.tolist() for table in blocks.tables()]
    (3, [[1.0, 2.0], [3.0]])
    """

    def __init__(self, source: Any, *, n_features: int | None = None, block: int = _ROWS) -> None:
        self.block = whole("block", block)
        self._read: Any
        if isinstance(source, str | Path) and "://" not in str(source) and Path(source).is_file():
            kind = file_format(source)
            if kind == "libsvm":
                self._read = _Libsvm(existing_file(source), n_features)
            else:
                self._read = _Csv(existing_file(source)) if kind == "csv" else _Arrow(source)
        elif isinstance(source, str | Path) or hasattr(source, "get_fragments"):
            self._read = _Arrow(source)
        else:
            self._read = _Frames(source)
        self.name: str = self._read.name
        self.names: tuple[str, ...] = self._read.names
        self.rows: int = self._read.rows
        if not self.rows:
            if isinstance(self._read, _Arrow) and not self._read.fragments:
                raise DataError(self.name, "is a folder without Parquet files; give one that holds them, or a file.")
            raise DataError(self.name, "has no rows; at least one was expected.")

    def shard(self, number: int, shards: int) -> TableBlocks:
        """Return the files number, number + shards, ... of a data set of several files.

        Raises
        ------
        DataError
            If there are fewer files than shards.
        """
        part = copy.copy(self)
        part._read = self._read.shard(whole("number", number, 0), whole("shards", shards))
        part.name, part.rows = part._read.name, part._read.rows
        return part

    def tables(self, wanted: Sequence[str] | None = None, *, by: str = "the columns to read") -> Iterator[Table]:
        """Read some columns, all by default, block by block; messages about a cell count rows through all blocks.

        Raises
        ------
        DataError
            As :func:`read_source`, with the row in the whole data set.
        """
        used = list(self.names if wanted is None else wanted)
        for name in used:
            if name not in self.names:
                raise unknown_column(self.name, name, by, self.names)
        found: Iterator[Table] = self._read.tables(used, self.block)
        return found

    def arrays(self, **columns: str | Sequence[str]) -> _Arrays:
        """Return a reader of arrays for :class:`minmaxcon.OnDisk`: each array by its numeric columns.

        Parameters
        ----------
        **columns : str or sequence of str
            For each array one column, which gives (n,), or several, which give (n, k).

        Raises
        ------
        DataError
            If a column does not exist, or when it is read, is no number in every row.
        """
        return _Arrays(self, columns)


class _Arrays:
    """Named arrays of numeric columns, block by block."""

    def __init__(self, source: TableBlocks, columns: Mapping[str, str | Sequence[str]]) -> None:
        if not columns:
            raise InvalidInput("columns", columns, "name at least one array and its columns.")
        self.source, self.columns = source, dict(columns)
        self.name, self.rows = source.name, source.rows
        self._wanted = [
            name for asked in self.columns.values() for name in ([asked] if isinstance(asked, str) else asked)
        ]
        for name in self._wanted:
            if name not in source.names:
                raise unknown_column(source.name, name, "arrays", source.names)

    def blocks(self) -> Iterator[Mapping[str, Any]]:
        for table in self.source.tables(list(dict.fromkeys(self._wanted)), by="arrays"):
            for column in table.columns.values():
                table.require_numbers(column)
            yield {
                array: table.columns[asked].numbers
                if isinstance(asked, str)
                else np.stack([table.columns[name].numbers for name in asked], axis=1)
                for array, asked in self.columns.items()
            }


def _table(source: str, names: Sequence[str], cells: Iterable[Any], rows: int, first: int, lines: Any = None) -> Table:
    columns = {}
    for name, column in zip(names, cells, strict=True):
        builder = ColumnBuilder(name, source)
        builder.add(column)
        columns[name] = builder.build()
    return Table(source, columns, rows, lines, first)


class _Arrow:
    """Fragments of a data set of Arrow, one after the other; Parquet is decoded as it is read, not by row groups."""

    def __init__(self, source: Any) -> None:
        import pyarrow as pa

        self.name = source_name(source) if isinstance(source, str | Path) else "data set"
        try:
            dataset = _dataset(source, self.name)
            self.fragments = list(dataset.get_fragments())
            self.schema = self.fragments[0].physical_schema if self.fragments else dataset.schema
            self.names = tuple(self.schema.names)
            check_names(self.name, self.names, self.names)
            for fragment in self.fragments:
                self._compare(fragment)
            self.counts = [int(fragment.count_rows()) for fragment in self.fragments]
        except (pa.ArrowException, OSError, ValueError) as failure:
            if isinstance(failure, DataError):
                raise
            need = "give Parquet files, or one CSV or LIBSVM file."
            raise DataError(self.name, f"is no data set that can be read ({cause_of(failure)}); {need}") from None

    @property
    def rows(self) -> int:
        return sum(self.counts)

    def _compare(self, fragment: Any) -> None:
        """Refuse a file whose columns are not those of the first."""
        found = fragment.physical_schema
        if found.equals(self.schema, check_metadata=False):
            return
        file = str(getattr(fragment, "path", "a part"))
        check_names(file, found.names, found.names)
        for name in (*self.names, *found.names):
            here, there = (
                part.field(name).type if name in part.names else "no column" for part in (found, self.schema)
            )
            if here != there:
                need = f"column {shown(name)} is {here} in {file}, and {there} in the files before; make them alike."
                raise DataError(self.name, need)
        self_order = ", ".join(self.names[:6])
        raise DataError(self.name, f"{file} has its columns in another order than {self_order}, ...; make them alike.")

    def shard(self, number: int, shards: int) -> _Arrow:
        if len(self.fragments) < shards:
            need = f"has {len(self.fragments)} files for {shards} processes; write at least one file a process"
            raise DataError(self.name, f"{need}, such as with pyarrow.dataset.write_dataset.")
        part = copy.copy(self)
        part.fragments, part.counts = self.fragments[number::shards], self.counts[number::shards]
        return part

    def tables(self, wanted: Sequence[str], block: int) -> Iterator[Table]:
        import pyarrow as pa

        first = 0
        for fragment, claimed in zip(self.fragments, self.counts, strict=True):
            begun = first
            try:
                for batch in _batches(fragment, wanted, block):
                    if batch.num_rows:
                        columns = [batch.column(name) for name in wanted]
                        yield _table(self.name, wanted, columns, batch.num_rows, first)
                        first += batch.num_rows
                if first != begun + claimed:
                    raise pa.ArrowInvalid(f"it claims {claimed:,} rows and holds {first - begun:,}")
            except (pa.ArrowException, OSError, UnicodeDecodeError) as failure:
                file = getattr(fragment, "path", self.name)
                need = f"{file} cannot be read after row {first:,} ({cause_of(failure)}); export it again."
                raise DataError(self.name, need) from None


def _dataset(source: Any, name: str) -> Any:
    """Return a data set of pyarrow; an address is opened by fsspec."""
    import pyarrow.dataset as arrow

    if not isinstance(source, str | Path):
        return source
    if "://" not in str(source):
        path = Path(source)
        if not path.exists():
            raise DataError(name, "no such file; check the path.")
        return arrow.dataset(path, format="parquet")
    try:
        import fsspec
    except ImportError:
        raise MissingDependency("fsspec", "remote", f"the address {name}") from None
    try:
        filesystem, path_there = fsspec.core.url_to_fs(str(source))
        if not filesystem.exists(path_there):
            raise DataError(name, "nothing is at this address; check it.")
    except ImportError as failure:  # the package of this protocol
        raise DataError(name, f"its protocol needs a package: {' '.join(str(failure).split())}.") from None
    return arrow.dataset(path_there, filesystem=filesystem, format="parquet")


def _batches(fragment: Any, wanted: Sequence[str], block: int) -> Iterator[Any]:
    """Yield record batches; a scan of Parquet would decode a whole row group at a time."""
    from pyarrow.dataset import ParquetFileFragment

    if not isinstance(fragment, ParquetFileFragment):
        for batch in fragment.to_batches(columns=list(wanted), batch_size=block, use_threads=False):
            batch.validate(full=True)  # Arrow's own files are taken as they are, places outside of them too
            yield batch
        return
    from pyarrow.parquet import ParquetFile

    # Buffered: a column of a row group is read as it is decoded, whatever its size.
    with ParquetFile(fragment.open(), pre_buffer=False, buffer_size=2**18) as file:
        yield from file.iter_batches(block, columns=list(wanted), use_threads=False)


class _Frames:
    """Frames, one after the other."""

    def __init__(self, source: Any) -> None:
        self.name = "frames"
        once = hasattr(source, "__next__") or not (callable(source) or hasattr(source, "__iter__"))
        need = "give a path, a data set of pyarrow, a list of frames, or a function that returns a fresh iterator."
        if once or hasattr(source, "columns"):
            raise InvalidInput("source", type(source).__name__, need)
        self.source: Callable[[], Iterable[Any]] | Iterable[Any] = source
        self.rows, names = 0, None
        frames = self._frames()
        if not hasattr(frames, "__iter__") or hasattr(frames, "columns"):
            raise InvalidInput("source", source, f"returned {type(frames).__name__}, no iterator of frames; {need}")
        for number, frame in enumerate(frames, start=1):
            found = _columns_of(frame)
            if names is not None and found != names:
                other = next(iter([*(set(found) ^ set(names)), found[0]]))
                need = f"frame {number} has other columns than the first, such as {shown(other)}; make them alike."
                raise DataError(self.name, need)
            names, self.rows = found, self.rows + len(frame)
        self.names = names or ()

    def _frames(self) -> Iterable[Any]:
        return self.source() if callable(self.source) else self.source

    def shard(self, number: int, shards: int) -> _Frames:
        raise DataError(self.name, f"frames cannot be divided among {shards} processes; give files.")

    def tables(self, wanted: Sequence[str], block: int) -> Iterator[Table]:
        first = 0
        for frame in self._frames():
            for begin in range(0, len(frame), block):
                part = frame.iloc[begin : begin + block] if hasattr(frame, "iloc") else frame[begin : begin + block]
                table = read_source(part, wanted)
                yield Table(self.name, table.columns, table.rows, None, first)
                first += table.rows
        if first != self.rows:
            need = "the function must return a fresh iterator of the same frames each time."
            raise DataError(self.name, f"{self.rows:,} rows were read at first and {first:,} now; {need}")


def _columns_of(frame: Any) -> tuple[str, ...]:
    import narwhals as nw

    try:
        return tuple(map(str, nw.from_native(frame, eager_only=True).columns))
    except TypeError as failure:
        need = f"{type(frame).__name__} is no eager data frame; give frames of pandas, polars or pyarrow."
        raise DataError("frames", need) from failure


class _Csv:
    """The rows of a CSV file; the first pass counts them, and refuses what is damaged."""

    def __init__(self, path: Path) -> None:
        self._file = CsvRows(path)
        self.name, self.names = self._file.source, tuple(self._file.names)
        check_names(self.name, self.names, self.names)
        self.rows = sum(1 for _ in self._file)

    def shard(self, number: int, shards: int) -> _Csv:
        raise DataError(self.name, f"one CSV file cannot be divided among {shards} processes; write Parquet files.")

    def tables(self, wanted: Sequence[str], block: int) -> Iterator[Table]:
        first = 0
        for columns, starts in self._file.blocks(wanted):
            lines = np.array(starts)
            for begin in range(0, len(lines), block):
                mine = lines[begin : begin + block]
                cells = [column.slice(begin, block) for column in columns]
                yield _table(self.name, wanted, cells, len(mine), first, mine)
                first += len(mine)


class _Libsvm:
    """The lines of a LIBSVM file; the first pass counts rows and features."""

    def __init__(self, path: Path, n_features: int | None) -> None:
        self.path, self.name, self.rows = path, source_name(path), 0
        self.limit = None if n_features is None else whole("n_features", n_features, most=LARGEST_INDEX)
        largest = 0
        for _, _, indices, _ in parsed_lines(path, self.limit):
            self.rows, largest = self.rows + 1, max(largest, indices[-1] if indices else 0)
        self.width = self.limit or largest
        if self.width > _MOST:
            need = f"has {self.width:,} features, and blocks are dense; up to {_MOST:,} can be read so."
            raise DataError(self.name, need)
        self.names = (_LIBSVM_LABEL, *map(str, range(1, self.width + 1)))

    def shard(self, number: int, shards: int) -> _Libsvm:
        raise DataError(self.name, f"one LIBSVM file cannot be divided among {shards} processes; write Parquet files.")

    def tables(self, wanted: Sequence[str], block: int) -> Iterator[Table]:
        first = 0
        lines: list[int] = []
        labels, features = np.empty(block), np.zeros((block, self.width))
        for number, label, indices, values in parsed_lines(self.path, self.width):
            row = len(lines)
            labels[row] = label
            features[row, np.array(indices, dtype=np.intp) - 1] = values
            lines.append(number)
            if len(lines) == block:
                yield self._table(wanted, labels, features, lines, first)
                first, lines = first + block, []
                labels, features = np.empty(block), np.zeros((block, self.width))
        if lines:
            yield self._table(wanted, labels[: len(lines)], features[: len(lines)], lines, first)

    def _table(self, wanted: Sequence[str], labels: Any, features: Any, lines: list[int], first: int) -> Table:
        columns = {
            name: Column.of_numbers(name, labels if name == _LIBSVM_LABEL else features[:, int(name) - 1])
            for name in wanted
        }
        return Table(self.name, columns, len(lines), np.array(lines, dtype=np.int64), first)


_MOST = 4096
"""Most features of a LIBSVM file whose blocks are made dense."""
