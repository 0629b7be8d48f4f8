"""Samples that arrive one at a time, in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol

import numpy as np

from minmaxcon.arrays import engine as engine_named
from minmaxcon.core.source import Batch, Position, Source
from minmaxcon.errors import DataError, InvalidInput

__all__ = ["Preparation", "Stream"]


class Preparation(Protocol):
    """Turns raw points into the arrays that a problem's constraints read, remembering what it has seen.

    The memory is an immutable value and part of the position, so that a solve resumes exactly.
    """

    def start(self) -> Any:
        """Return the memory before the first point."""

    def __call__(self, memory: Any, points: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
        """Take points (arrays with samples along the first axis) and return the memory and the prepared arrays.

        Fewer samples may come back than went in, at the beginning: points that only serve to learn frequencies.
        """


class Stream(Source):
    """A source that reads single points from an iterator; memory does not grow with their number.

    Parameters
    ----------
    points : callable or iterable
        A callable that returns a fresh iterator of points, so that the stream can be read again from its beginning; or
        a re-iterable. A point is a mapping of names to numbers or vectors. Points may come in any order, grouped or
        not.
    prepare : Preparation, optional
        Turns points into what the problem's constraints read.
    shuffle : int
        Points are read in blocks of this many, and each block is put into a random order by the run's seed, so that
        steps see no pattern that is shorter than a block (points sorted within windows, say). 1 keeps the order.
    engine, dtype : str
        Array engine and precision of the batches.

    Raises
    ------
    InvalidInput
        If ``points`` is neither callable nor iterable, or a one-shot iterator, which could not be read again; or
        ``shuffle`` is not a whole number of at least 1.

    Notes
    -----
    A draw reads ahead one block of steps. A stream that ends gives fewer batches, and a last incomplete one is dropped.
    """

    size = None

    def __init__(
        self,
        points: Callable[[], Iterator[Mapping[str, Any]]] | Iterable[Mapping[str, Any]],
        *,
        prepare: Preparation | None = None,
        shuffle: int = 1000,
        engine: str = "numpy",
        dtype: str = "float64",
    ) -> None:
        if dtype not in ("float64", "float32"):
            raise InvalidInput("dtype", dtype, 'use "float64" or "float32".')
        if not callable(points) and (not hasattr(points, "__iter__") or hasattr(points, "__next__")):
            raise InvalidInput(
                "points",
                points,
                "give a function that returns a fresh iterator, or a re-iterable; a resumed solve reads again.",
            )
        self.points = points
        if isinstance(shuffle, bool) or int(shuffle) != shuffle or shuffle < 1:
            raise InvalidInput("shuffle", shuffle, "must be a whole number of at least 1 (1 keeps the order).")
        self.prepare, self.shuffle = prepare, int(shuffle)
        self.engine, self.dtype = engine, dtype
        self.like = engine_named(engine).create(np.zeros(0), dtype)
        self._iterator: Iterator[Mapping[str, Any]] = iter(())
        self._consumed, self._opened = 0, -1

    def open(self) -> Iterator[Mapping[str, Any]]:
        """Return a fresh iterator of the points, in their own order."""
        return self.points() if callable(self.points) else iter(self.points)

    def _ordered(self, key: int) -> Iterator[Mapping[str, Any]]:
        """Open the points anew, each block in the order that the key and the block's number give it."""
        points, number = self.open(), 0
        while block := list(islice(points, self.shuffle)):
            order = np.random.default_rng([key, number]).permutation(len(block)) if self.shuffle > 1 else [0]
            for i in order:
                yield block[i]
            number += 1

    def _read(self, count: int) -> dict[str, Any] | None:
        """Read up to ``count`` points into arrays; None at the end."""
        points = list(islice(self._iterator, count))
        if not points:
            return None
        names = list(points[0])
        try:
            arrays = {name: np.asarray([point[name] for point in points], dtype=np.float64) for name in names}
        except (KeyError, ValueError, TypeError) as error:
            place = f"points {self._consumed + 1} to {self._consumed + len(points)}"
            raise DataError("stream", f"{place} do not have the names and shapes of the first one: {error}.") from error
        for name, values in arrays.items():
            finite = np.isfinite(values).reshape(len(points), -1).all(axis=1)
            if not finite.all():
                row = self._consumed + int(np.argmin(finite)) + 1
                raise DataError(
                    "stream", f"point {row}: {name} is NaN or infinite; filter or fill it before it is read."
                )
        self._consumed += len(points)
        return arrays

    def draw(self, position: Position, steps: int, batch_size: int) -> tuple[Iterator[Batch], Position]:
        """See :meth:`Source.draw`; a position other than where the iterator stands makes it start again and skip."""
        key = int(position.rng().integers(2**62))  # a stream never advances the generator: one key a run
        if self._opened != key or self._consumed != position.samples:
            self._iterator, self._consumed, self._opened = self._ordered(key), 0, key
            for _ in islice(self._iterator, position.samples):
                self._consumed += 1
        memory = position.memory
        if memory is None and self.prepare is not None:
            memory = self.prepare.start()
        wanted, kept, pieces = steps * batch_size, 0, []
        while kept < wanted:
            raw = self._read(wanted - kept)
            if raw is None:
                break
            if self.prepare is None:
                arrays: Mapping[str, Any] = raw
            else:
                memory, arrays = self.prepare(memory, raw)
            pieces.append(arrays)
            kept += len(next(iter(arrays.values())))
        after = Position(position.generator, self._consumed, memory)
        return self._batches(pieces, kept // batch_size, batch_size), after

    def _batches(self, pieces: list[Mapping[str, Any]], count: int, size: int) -> Iterator[Batch]:
        if count == 0:
            return
        create = engine_named(self.engine).create
        joined = {name: create(np.concatenate([piece[name] for piece in pieces]), self.dtype) for name in pieces[0]}
        for begin in range(0, count * size, size):
            yield {name: values[begin : begin + size] for name, values in joined.items()}

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.update(_iterator=iter(()), _consumed=0, _opened=-1)  # an open iterator cannot be copied
        return state

    def __repr__(self) -> str:
        return f"Stream(engine={self.engine!r}, dtype={self.dtype!r})"
