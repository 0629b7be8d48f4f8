"""A data set that does not fit in memory: its rows on disk, in random order."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from minmaxcon.arrays import created
from minmaxcon.arrays import engine as engine_named
from minmaxcon.checks import file_path, mapping, seed_number, whole
from minmaxcon.core.source import Batch, Position, Source
from minmaxcon.errors import DataError, InvalidInput
from minmaxcon.files import Scratch

__all__ = ["ArrayBlocks", "BlockReader", "OnDisk"]

_WINDOW = 2**24
"""Bytes of a window, where the caller names no number of rows."""

_BUFFERS = 2**25
"""Bytes of the rows that wait for their window to be written, in all windows."""

_EXTENT = 2**18
"""Bytes of the rows of one window that are written at a time, at most."""

_LEAST = 256
"""Fewest rows of a window."""


class BlockReader(Protocol):
    """Reads the rows of a data set block by block, from the beginning each time it is asked.

    Attributes
    ----------
    name : str
        What messages call the data set.
    rows : int
        How many rows there are in all.

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.data import ArrayBlocks, BlockReader
    >>> reader: BlockReader = ArrayBlocks({"z": np.arange(5.0)})
    >>> reader.rows
    5
    """

    name: str
    rows: int

    def blocks(self) -> Iterable[Mapping[str, Any]]:
        """Return the blocks: named arrays of numbers with rows along their first axis, all of one form."""


class ArrayBlocks:
    """Blocks of arrays that lie on disk, such as NumPy memory maps.

    Parameters
    ----------
    arrays : mapping of str to array_like (n, ...)
        Anything with a shape whose slices are arrays of numbers.
    name : str
        What messages call them.

    Raises
    ------
    InvalidInput
        If there is no array, or their lengths differ.

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.data import ArrayBlocks
    >>> blocks = ArrayBlocks({"z": np.arange(5.0)})
    >>> blocks.rows, sum(block["z"].sum() for block in blocks.blocks()).item()
    (5, 10.0)
    """

    def __init__(self, arrays: Mapping[str, Any], name: str = "arrays") -> None:
        mapping("arrays", arrays, 'must map names to arrays: {"features": array}.')
        lengths = {key: int(np.shape(value)[0]) if np.ndim(value) else 0 for key, value in arrays.items()}
        if not lengths or len(set(lengths.values())) > 1:
            raise InvalidInput("arrays", lengths, "give named arrays with one row a sample, all equally long.")
        self.arrays, self.name, self.rows = dict(arrays), name, next(iter(lengths.values()))

    def blocks(self) -> Iterator[Mapping[str, Any]]:
        """See :meth:`BlockReader.blocks`."""
        for begin in range(0, self.rows, _ROWS_AT_ONCE):
            yield {key: np.asanyarray(value[begin : begin + _ROWS_AT_ONCE]) for key, value in self.arrays.items()}


_ROWS_AT_ONCE = 2**16


class OnDisk(Source):
    r"""A finite data set larger than memory.

    Its rows are read once and copied to a scratch file, and each is put into one of K windows at random, independently
    of all others. Every window is so a simple random sample of all rows, *whatever their order in the data set*: a file
    that is sorted, by label or by date, does no harm. A draw reads whole windows in a random order, which is another
    in every epoch, puts the rows of each into a random order, and hands them out in batches:

    * an epoch delivers every row once, and is a uniformly random order of all rows under the two seeds;
    * the mean of any quantity over the m rows of a window has the expectation of its mean over all n rows and the
      variance :math:`\frac{\sigma^2}{m}\,\frac{n-m}{n-1}`, less than that of m independent draws.

    The next window is read by a thread while the steps use this one. Where a row lies depends on the seeds and its
    number alone, so that any position is found again without reading what came before it.

    Parameters
    ----------
    rows : BlockReader
        The data set, such as :meth:`minmaxcon.tables.TableBlocks.arrays` or :class:`ArrayBlocks`.
    prepare : callable, optional
        Makes of named arrays, rows along the first axis, those that the problem's functions read: row by row, without
        memory. It is applied when rows are used, and so costs no disk.
    seed : int
        Seed of the windows; the order within an epoch follows the seed of the solve.
    window : int, optional
        Rows of a window, about; by default what 16 MiB hold. Four of them are in memory.
    folder : path, optional
        On whose disk the copy lies: n rows of all their numbers in the precision asked for. By default the system's
        folder for temporary files. The copy has no name, and is gone with the process, however that ends.
    engine : {"numpy", "torch", "jax"}
        The array engine of the batches.
    dtype : {"float64", "float32"}
        Their precision, and that of the copy.
    device : str
        Where torch or JAX computes, see :class:`~minmaxcon.Finite`; windows are put there one by one.

    Attributes
    ----------
    size : int
        Number n of rows.
    digest : str
        What tells these rows from others; a solve resumes on the same alone.

    Raises
    ------
    InvalidInput
        If an argument is out of range.
    DataError
        If there is no row, a block is of another form than the first, a number is not finite (its row is named), or
        there are more or fewer rows than were promised.
    MinMaxConError
        If the disk is full; nothing is left of what was written.

    References
    ----------
    C. R. Rao, Generation of random permutation of given number of elements using random sampling numbers, Sankhya A 23
    (1961), 305-307; M. Sandelius, A simple randomization procedure, J. R. Stat. Soc. B 24 (1962), 472-481.

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.data import ArrayBlocks, OnDisk
    >>> data = OnDisk(ArrayBlocks({"points": np.arange(1000.0)}), window=100)
    >>> sum(share * float(batch["points"].mean()) for share, batch in data.chunks())
    499.5
    """

    streamed = True

    def __init__(
        self,
        rows: BlockReader,
        *,
        prepare: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
        seed: int = 0,
        window: int | None = None,
        folder: str | Path | None = None,
        engine: str = "numpy",
        dtype: str = "float64",
        device: str = "cpu",
    ) -> None:
        if not all(hasattr(rows, part) for part in ("name", "rows", "blocks")):
            raise InvalidInput("rows", rows, 'must be a BlockReader; wrap arrays: ArrayBlocks({"name": array}).')
        if folder is not None:
            file_path("folder", folder)
        self.like = created(np.zeros(0), dtype, engine, device)
        self.prepare, self.seed = prepare, seed_number("seed", seed)
        self.engine, self.dtype, self.device = engine, dtype, device
        self._made_of = (rows, {"seed": seed, "window": window, "folder": folder})
        window = None if window is None else whole("window", window)
        self._copy = _Copy(rows, self.seed, window, folder, dtype)
        self.size = self._copy.rows
        self.digest = self._copy.digest
        self._pool: ThreadPoolExecutor | None = None
        self._order: tuple[tuple[int, int], NDArray[np.int64], NDArray[np.int64]] | None = None
        self._now: tuple[tuple[int, int, int], Batch] | None = None
        self._next: tuple[tuple[int, int, int], Future[Batch]] | None = None

    def draw(self, position: Position, steps: int, batch_size: int) -> tuple[Iterator[Batch], Position]:
        """See :meth:`Source.draw`: rows without replacement within an epoch; windows are read when they are reached."""
        key = int(position.rng().integers(2**62))  # the generator never advances: one key a run
        after = Position(position.generator, position.samples + steps * batch_size, position.memory)
        return self._batches(key, position.samples, steps, batch_size), after

    def _batches(self, key: int, begin: int, steps: int, batch_size: int) -> Iterator[Batch]:
        to_numpy = engine_named(self.engine).to_numpy
        for first in range(begin, begin + steps * batch_size, batch_size):
            pieces = list(self._rows(key, first, batch_size))
            if len(pieces) == 1:
                yield pieces[0]
            else:
                whole = {name: np.concatenate([to_numpy(piece[name]) for piece in pieces]) for name in pieces[0]}
                yield self._given(whole)

    def _rows(self, key: int, begin: int, count: int) -> Iterator[Batch]:
        """Yield ``count`` rows from a place of all epochs on, in pieces of one window each."""
        size = int(self.size or 0)
        while count:
            epoch, place = divmod(begin, size)
            order, ends = self._epoch(key, epoch)
            number = int(np.searchsorted(ends, place, side="right"))
            offset = place - (int(ends[number - 1]) if number else 0)
            taken = min(count, int(ends[number]) - place)
            window = self._window(key, epoch, number, len(order))
            yield {name: values[offset : offset + taken] for name, values in window.items()}
            begin, count = begin + taken, count - taken

    def _epoch(self, key: int, epoch: int) -> tuple[Any, Any]:
        """Return the order of the windows in an epoch, and where each ends."""
        if self._order is None or self._order[0] != (key, epoch):
            order = np.random.default_rng([key, epoch]).permutation(len(self._copy.sizes))
            self._order = (key, epoch), order, np.cumsum(self._copy.sizes[order])
        return self._order[1:]

    def _window(self, key: int, epoch: int, number: int, windows: int) -> Batch:
        """Return a window, and let the one after it be read."""
        wanted = (key, epoch, number)
        if self._now is not None and self._now[0] == wanted:
            return self._now[1]
        if self._next is not None and self._next[0] == wanted:
            found = self._next[1].result()
        else:
            found = self._shuffled(wanted)
        self._now = wanted, found
        following = (key, epoch, number + 1) if number + 1 < windows else (key, epoch + 1, 0)
        self._next = following, self._ahead(self._shuffled, following)
        return found

    def _shuffled(self, place: tuple[int, int, int]) -> Batch:
        key, epoch, number = place
        window = int(np.random.default_rng([key, epoch]).permutation(len(self._copy.sizes))[number])
        rows = self._copy.window(window)
        return self._given(self._prepared(rows[np.random.default_rng([key, epoch, window]).permutation(len(rows))]))

    def _ahead(self, function: Callable[..., Batch], *arguments: Any) -> Future[Batch]:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="minmaxcon-read-ahead")
        return self._pool.submit(function, *arguments)

    def _prepared(self, rows: Any) -> Mapping[str, Any]:
        arrays = self._copy.named(rows)
        return arrays if self.prepare is None else self.prepare(arrays)

    def _given(self, arrays: Mapping[str, Any]) -> Batch:
        if self.engine == "numpy":
            return {name: np.asarray(values, dtype=self.dtype) for name, values in arrays.items()}
        kind = self.dtype, self.engine, self.device
        return {name: created(values, *kind) for name, values in arrays.items()}

    def prepared_by(self, prepare: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None) -> OnDisk:
        """Return the same rows, prepared otherwise; they are on disk once, for both."""
        other = copy.copy(self)
        other.prepare, other._pool, other._order, other._now, other._next = prepare, None, None, None, None
        return other

    def chunks(self, rows: int | None = None) -> Iterator[tuple[float, Batch]]:
        """See :meth:`Source.chunks`; no piece is larger than a window, and the next is read ahead."""
        size, most = int(self.size or 0), self._copy.piece
        step = most if rows is None else max(1, min(int(rows), most))

        def piece(begin: int) -> Batch:
            return self._given(self._prepared(self._copy.read(begin, min(size, begin + step))))

        waiting = self._ahead(piece, 0)
        for begin in range(0, size, step):
            found = waiting.result()
            if begin + step < size:
                waiting = self._ahead(piece, begin + step)
            yield (min(size, begin + step) - begin) / size, found

    def __reduce__(self) -> tuple[Any, ...]:
        rows, settings = self._made_of
        kind = {"engine": self.engine, "dtype": self.dtype, "device": self.device}
        return _again, (rows, {**settings, "prepare": self.prepare, **kind})

    def __repr__(self) -> str:
        return f"OnDisk({self.size:,} rows in {len(self._copy.sizes)} windows, {self.engine!r}, {self.dtype!r})"


def _again(rows: BlockReader, settings: Mapping[str, Any]) -> OnDisk:
    return OnDisk(rows, **settings)


class _Copy:
    """The rows as one matrix in a scratch file, in the order of writing, and which of them each window has."""

    def __init__(self, reader: BlockReader, seed: int, window: int | None, folder: Any, dtype: str) -> None:
        self.dtype, self.rows, self.digest = np.dtype(dtype), 0, ""
        self.form: dict[str, tuple[int, ...]] = {}
        self.scratch = Scratch(folder, f"the rows of {reader.name}")
        rng, check = np.random.default_rng(seed), 0
        for block in reader.blocks():
            matrix = self._matrix(reader.name, block)
            if not self.rows:
                self._prepare(int(reader.rows), window)
            check = zlib.crc32(matrix.data, check)
            # Doubles, one a row, so that windows do not depend on how rows are divided into blocks.
            self._sort(matrix, (rng.random(len(matrix)) * self.windows).astype(np.intp))
            self.rows += len(matrix)
        if not self.rows:
            raise DataError(reader.name, "has no rows; at least one was expected.")
        if self.rows != reader.rows:
            raise DataError(reader.name, f"has {self.rows:,} rows, not {reader.rows:,}: it changed while it was read.")
        for number in range(self.windows):
            self._write(number)
        self._settle()
        self.digest = f"{self.rows} x {self.width} {self.dtype.name} {check:08x}"

    def _prepare(self, rows: int, window: int | None) -> None:
        """Lay out windows once the width of a row is known."""
        self.width = sum(int(np.prod(shape)) for shape in self.form.values())
        bytes_ = max(1, self.width * self.dtype.itemsize)
        self.piece = max(_LEAST, _WINDOW // bytes_) if window is None else window
        self.windows = max(1, -(-rows // self.piece))
        self._room = max(1, min(_EXTENT, _BUFFERS // self.windows) // bytes_)
        self._waiting: list[list[Any]] = [[] for _ in range(self.windows)]
        self._held = [0] * self.windows
        self._extents: list[list[tuple[int, int]]] = [[] for _ in range(self.windows)]

    def _matrix(self, name: str, block: Mapping[str, Any]) -> NDArray[Any]:
        """Return a block as one matrix of the copy's precision, its columns those of all arrays."""
        first, arrays = self.rows + 1, {key: np.asarray(value) for key, value in block.items()}
        form = {key: value.shape[1:] for key, value in arrays.items()}
        if not self.form:
            self.form = form
        lengths = {len(value) for value in arrays.values()}
        if form != self.form or len(lengths) != 1:
            have, need = (", ".join(f"{key} {shape}" for key, shape in each.items()) for each in (form, self.form))
            raise DataError(name, f"from row {first:,} on it has {have}, where the rows before have {need}.")
        parts, rows = [], lengths.pop()
        for key, value in arrays.items():
            if np.ma.is_masked(block[key]):
                raise DataError(name, f"{key} has masked entries; fill them or leave their rows out.")
            try:
                if value.dtype.kind == "c":
                    raise TypeError("these are complex")
                with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, and is named below
                    part = value.reshape(rows, -1).astype(self.dtype, copy=False)
            except (TypeError, ValueError) as failure:
                raise DataError(name, f"{key} holds {value.dtype}, not numbers; encode it first.") from failure
            parts.append(part)
        matrix = np.concatenate(parts, axis=1)
        if not np.isfinite(matrix.sum(dtype=np.float64)) and not (finite := np.isfinite(matrix)).all():
            row, column = (int(place) for place in np.argwhere(~finite)[0])
            key = np.repeat(list(self.form), [part.shape[1] for part in parts])[column]
            what = "NaN or infinite" if self.dtype.itemsize == 8 else f"NaN, infinite or too large for {self.dtype}"
            raise DataError(name, f"row {first + row:,}: {key} is {what}; remove or fill it.")
        return matrix

    def _sort(self, matrix: NDArray[Any], which: NDArray[np.intp]) -> None:
        """Put each row into its window, and write what has filled up."""
        ends = np.cumsum(np.bincount(which, minlength=self.windows))
        ordered = matrix[np.argsort(which, kind="stable")]
        begin = 0
        for number, end in enumerate(ends.tolist()):
            if end > begin:
                self._waiting[number].append(ordered[begin:end].copy())
                self._held[number] += end - begin
                if self._held[number] >= self._room:
                    self._write(number)
            begin = end

    def _write(self, number: int) -> None:
        if self._held[number]:
            rows = np.concatenate(self._waiting[number])
            begin = self.scratch.append(rows) // (self.width * self.dtype.itemsize or 1)
            self._extents[number].append((begin, len(rows)))
            self._waiting[number], self._held[number] = [], 0

    def _settle(self) -> None:
        """Note the sizes of the windows that have rows."""
        self._extents = [extents for extents in self._extents if extents]
        self.sizes = np.array([sum(count for _, count in extents) for extents in self._extents], dtype=np.int64)
        del self._waiting, self._held

    def read(self, begin: int, end: int) -> NDArray[Any]:
        """Return rows in the order of writing."""
        rows = np.empty((end - begin, self.width), dtype=self.dtype)
        self.scratch.read(rows, begin * self.width * self.dtype.itemsize)
        return rows

    def window(self, number: int) -> NDArray[Any]:
        """Return the rows of a window, in the order of writing."""
        rows = np.empty((int(self.sizes[number]), self.width), dtype=self.dtype)
        place = 0
        for begin, count in self._extents[number]:
            self.scratch.read(rows[place : place + count], begin * self.width * self.dtype.itemsize)
            place += count
        return rows

    def named(self, rows: NDArray[Any]) -> dict[str, Any]:
        """Return the arrays that lie side by side in rows."""
        found, column = {}, 0
        for name, shape in self.form.items():
            width = int(np.prod(shape))
            found[name] = rows[:, column : column + width] if shape else rows[:, column]
            if len(shape) > 1:
                found[name] = found[name].reshape(len(rows), *shape)
            column += width
        return found
