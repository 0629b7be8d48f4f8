"""A data set that fits in memory, dense or sparse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from minmaxcon.arrays import Namespace, compiles, created, is_complex, namespace, on_device
from minmaxcon.arrays import engine as engine_named
from minmaxcon.checks import mapping
from minmaxcon.core.source import Batch, Batches, Position, Source
from minmaxcon.errors import InvalidInput

__all__ = ["Finite"]

_ROWS_AT_ONCE = 65_536
"""Rows of a piece, where the caller names no number."""


class Finite(Source):
    """A finite data set: named arrays with one row per sample, drawn uniformly with replacement.

    Parameters
    ----------
    arrays : mapping of str to array_like (n, ...)
        The data. A SciPy sparse array or matrix is kept in CSR form (NumPy engine only).
    engine : {"numpy", "torch", "jax"}
        The array engine of the batches; with ``"jax"`` blocks of steps are compiled, see :doc:`/howto/compiled`.
    dtype : {"float64", "float32"}
        Their precision. Float64 costs about a tenth more at one run and is what exact checks are made with.
    device : str
        Where torch or JAX keeps the data and computes: ``"cpu"``, ``"cuda"``, ``"cuda:1"``.

    Attributes
    ----------
    size : int
        Number n of samples.
    arrays : dict
        The converted arrays, copies; those of NumPy cannot be written into.

    Raises
    ------
    InvalidInput
        If there is no array, lengths differ, an array is empty or no array of numbers, or a value is not finite in the
        precision asked for (with its row and column).

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.data import Finite
    >>> data = Finite({"features": np.eye(3), "label": np.array([1.0, -1.0, 1.0])})
    >>> data.size, sorted(next(data.chunks())[1])
    (3, ['features', 'label'])
    """

    rebuilt_from = ("arrays", "engine", "dtype", "device")

    def __init__(
        self, arrays: Mapping[str, Any], *, engine: str = "numpy", dtype: str = "float64", device: str = "cpu"
    ) -> None:
        if not mapping("arrays", arrays, 'must map names to arrays: {"features": array}.'):
            raise InvalidInput("arrays", arrays, "give at least one named array.")
        self.like = created(np.zeros(0), dtype, engine, device)
        xp = engine_named(engine)
        self.engine, self.dtype, self.device = engine, dtype, device
        self.arrays: dict[str, Any] = {}
        self._placed: dict[str, Any] = {}
        lengths = {}
        for name, value in arrays.items():
            sparse = hasattr(value, "tocsr")
            if sparse and engine != "numpy":
                raise InvalidInput(
                    "engine", engine, f"array {name!r} is sparse: use the numpy engine or make it dense."
                )
            found = self.arrays[name] = _converted(name, value, xp, dtype)
            lengths[name] = int(found.shape[0])
            _check_finite(name, found if sparse else xp.to_numpy(found), dtype)
            self._placed[name] = on_device(found, engine, device)
            # What JAX compiles reads the copy on the device; all other code sees NumPy arrays, here the same memory.
            seen = np.asarray(self._placed[name]) if device == "cpu" else found
            self.arrays[name] = seen if compiles(engine) else self._placed[name]
            _protect(self.arrays[name])
        if len(set(lengths.values())) > 1:
            raise InvalidInput("arrays", lengths, "all arrays must have one row per sample.")
        self.size = next(iter(lengths.values()))
        if self.size == 0:
            raise InvalidInput("arrays", lengths, "there is no sample.")
        self._sparse = {name for name, value in self.arrays.items() if hasattr(value, "tocsr")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Set the attributes; NumPy's arrays come out of pickles and deep copies as ones that can be written into."""
        self.__dict__.update(state)
        for value in self.arrays.values():
            _protect(value)

    def draw(self, position: Position, steps: int, batch_size: int) -> tuple[Iterator[Batch], Position]:
        """See :meth:`Source.draw`: indices of all steps are drawn at once, rows are gathered step by step."""
        rng = position.rng()
        indices = rng.integers(int(self.size or 0), size=(steps, batch_size))
        after = Position(rng.bit_generator.state, position.samples + steps * batch_size)
        return self._gather(indices), after

    def _gather(self, indices: Any) -> Iterator[Batch]:
        if compiles(self.engine):
            return Batches(_rows, self.arrays, {"rows": indices}, self._placed)
        rows, sparse = engine_named(self.engine).rows, self._sparse
        each = [(name, v.__getitem__ if name in sparse else partial(rows, v)) for name, v in self.arrays.items()]
        return ({name: choose(chosen) for name, choose in each} for chosen in indices)

    def chunks(self, rows: int | None = None) -> Iterator[tuple[float, Batch]]:
        """See :meth:`Source.chunks`; one piece where it fits."""
        size = int(self.size or 0)
        rows = _ROWS_AT_ONCE if rows is None else max(1, int(rows))
        if rows >= size:
            yield 1.0, dict(self.arrays)
            return
        for begin in range(0, size, rows):
            end = min(size, begin + rows)
            yield (end - begin) / size, {name: value[begin:end] for name, value in self.arrays.items()}

    def shard(self, number: int, shards: int) -> Finite:
        """See :meth:`Source.shard`."""
        if int(self.size or 0) < shards:
            raise InvalidInput("shards", shards, f"there are {self.size} rows, fewer than one a shard.")
        rows = {name: value[number::shards] for name, value in self.arrays.items()}
        return Finite(rows, engine=self.engine, dtype=self.dtype, device=self.device)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}{tuple(value.shape)}" for name, value in self.arrays.items())
        return f"Finite({shapes}, engine={self.engine!r}, dtype={self.dtype!r})"


def _rows(whole: Batch, one: Batch) -> Batch:
    xp = namespace(one["rows"])
    return {name: xp.rows(values, one["rows"]) for name, values in whole.items()}


def _converted(name: str, value: Any, xp: Namespace, dtype: str) -> Any:
    """Copy one array in the precision asked for."""
    remedy = "must be an array of numbers with samples along its first axis"
    if np.ma.is_masked(value):
        raise InvalidInput(name, value, f"{remedy}: some entries are masked; fill them or leave their samples out.")
    try:
        if is_complex(value):
            raise TypeError("these are complex, and only real numbers are read")
        with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, and is named below
            found = value.tocsr().astype(dtype) if hasattr(value, "tocsr") else xp.create(value, dtype)
            if hasattr(found, "sum_duplicates"):
                found.sum_duplicates()  # which SciPy does in place at the first use, and cannot once rows are read-only
    except (TypeError, ValueError) as error:
        raise InvalidInput(name, value, f"{remedy}: {error}.") from error
    if found.ndim == 0:
        raise InvalidInput(name, value, f"{remedy}.")
    return found


def _protect(value: Any) -> None:
    """Let nobody write into an array: what solvers keep of the rows, such as moments, would be that of others."""
    parts = (value.data, value.indices, value.indptr) if hasattr(value, "tocsr") else (value,)
    for part in parts:
        if isinstance(part, np.ndarray):
            part.setflags(write=False)


def _check_finite(name: str, value: Any, dtype: str) -> None:
    entries = value.data if hasattr(value, "tocsr") else value
    finite = np.isfinite(entries)
    if finite.all():
        return
    if hasattr(value, "tocsr"):
        found = value.tocoo()
        at = int(np.argmin(finite))
        place = f"row {int(found.row[at])}, column {int(found.col[at])}"
    else:
        where = np.argwhere(~finite)[0]
        place = f"row {int(where[0])}" + (f", column {int(where[1])}" if where.size > 1 else "")
    what = "NaN or infinite" if dtype == "float64" else f"NaN, infinite or too large for {dtype}"
    raise InvalidInput(name, "not finite", f"{place} is {what}: remove or fill it.")
