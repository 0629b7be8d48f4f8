"""Source of samples that arrive one at a time, in any order, and the preparation that remembers what it has seen."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol

import numpy as np

from minmaxcon.arrays import created, is_complex
from minmaxcon.checks import whole
from minmaxcon.core.source import Batch, Position, Source
from minmaxcon.data.finite import Finite
from minmaxcon.errors import DataError, InvalidInput

__all__ = ["BadPoint", "Preparation", "Stream"]


class BadPoint(Exception):
    """Raised by a preparation that cannot use a point; the stream turns it into an error that names the point.

    Parameters
    ----------
    index : int
        Which of the points it was given, from 0.
    problem : str
        What is wrong and what to do about it.

    Examples
    --------
    >>> from minmaxcon.data import BadPoint
    >>> error = BadPoint(1, "the label is 2; use -1 or +1")
    >>> error.args
    (1, 'the label is 2; use -1 or +1')
    """

    def __init__(self, index: int, problem: str) -> None:
        super().__init__(index, problem)
        self.index, self.problem = index, problem


class Preparation(Protocol):
    """Turns raw points into the arrays that a problem's constraints read, remembering what it has seen.

    The memory is an immutable value and part of the position, so that a solve resumes exactly.

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> class Centred:  # takes off the mean of all points so far
    ...     def start(self):
    ...         return (0, 0.0)
    ...     def __call__(self, memory, points):
    ...         count, total = memory[0] + len(points["z"]), memory[1] + float(points["z"].sum())
    ...         return (count, total), {"z": points["z"] - total / count}
    >>> data = mm.Stream(lambda: ({"z": 5.0} for _ in range(100)), prepare=Centred())
    >>> batches, position = data.draw(mm.Position.start(np.random.default_rng(0)), steps=1, batch_size=2)
    >>> next(iter(batches))["z"]
    array([0., 0.])
    """

    def start(self) -> Any:
        """Return the memory before the first point."""

    def __call__(self, memory: Any, points: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
        """Take points (arrays with samples along the first axis) and return the memory and the prepared arrays.

        Fewer samples may come back than went in, at the beginning: points that only serve to learn frequencies. A point
        that cannot be used is refused by raising :class:`BadPoint`.
        """


class Stream(Source):
    """A source that reads single points from an iterator; memory does not grow with their number.

    Parameters
    ----------
    points : callable or iterable
        A callable that returns a fresh iterator of points, so that the stream can be read again from its beginning; or
        a re-iterable. A point is a mapping of names to numbers or vectors. Points may come in any order, grouped or
        not, and all have the same names and shapes.
    prepare : Preparation, optional
        Turns points into what the problem's constraints read.
    shuffle : int
        Points are read in blocks of this many, and each block is put into a random order by the run's seed, so that
        steps see no pattern that is shorter than a block (points sorted within windows, say). 1 keeps the order.
    engine, dtype : str
        Array engine and precision of the batches.
    device : str
        Where torch or JAX computes, see :class:`~minmaxcon.Finite`.

    Raises
    ------
    InvalidInput
        If ``points`` is neither callable nor iterable, or a one-shot iterator, which could not be read again; or
        ``shuffle`` is not a whole number of at least 1. When points are read: if the callable returns no iterator, or
        the same one again.
    DataError
        When points are read: if one is not finite, does not fit the first, or is refused by ``prepare``; its number
        counts from 1 in the points' own order. Also if the points are opened again and the first is another one.

    Notes
    -----
    A draw reads ahead one block of steps. A stream that ends gives fewer batches, and a last incomplete one is dropped.

    A draw from another position than where the last one ended opens the points again and passes over those before it:
    a resumed solve does so, and so does :class:`~minmaxcon.SFLS` after each search for a feasible point. The points
    must therefore be the same at each opening. Only the first one is compared, by a digest; a source whose later points
    differ goes unnoticed, and then a solve is not repeatable.

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> data = mm.Stream(lambda: ({"z": float(k)} for k in range(1000)), shuffle=10)
    >>> batches, position = data.draw(mm.Position.start(np.random.default_rng(0)), steps=2, batch_size=5)
    >>> [sorted(batch["z"].tolist()) for batch in batches]
    [[3.0, 4.0, 5.0, 7.0, 8.0], [0.0, 1.0, 2.0, 6.0, 9.0]]
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
        device: str = "cpu",
    ) -> None:
        one_shot = not hasattr(points, "__iter__") or hasattr(points, "__next__") or isinstance(points, Mapping)
        if not callable(points) and one_shot:
            raise InvalidInput(
                "points",
                points,
                "give a function that returns a fresh iterator, or a re-iterable; a resumed solve reads again.",
            )
        self.points = points
        self.prepare, self.shuffle = prepare, whole("shuffle", shuffle)
        self.engine, self.dtype, self.device = engine, dtype, device
        self.like = created(np.zeros(0), dtype, engine, device)
        self._first: bytes | None = None
        self._reset()

    def _reset(self) -> None:
        self._iterator: Iterator[tuple[int, Mapping[str, Any]]] = iter(())
        self._consumed, self._opened = 0, -1
        self._latest: Iterator[Mapping[str, Any]] | None = None
        self._form: dict[str, tuple[int, ...]] = {}  # of the first point
        self._numbers: list[int] = []  # of the points read last

    def open(self) -> Iterator[Mapping[str, Any]]:
        """Return a fresh iterator of the points, in their own order.

        Raises
        ------
        InvalidInput
            If the callable returns no iterator, or the one that it returned before.
        """
        found = self.points() if callable(self.points) else self.points
        if not hasattr(found, "__iter__"):
            raise InvalidInput("points", self.points, f"must return an iterator of points, not {type(found).__name__}.")
        iterator = iter(found)
        if iterator is self._latest:
            raise InvalidInput("points", self.points, "returned the same iterator twice: make a fresh one each time.")
        self._latest = iterator
        return iterator

    def _ordered(self, key: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Open the points anew, each with its number, blocks in the order that the key and their number give them."""
        points, number, begin = self.open(), 0, 1
        while block := list(islice(points, self.shuffle)):
            if number == 0:
                self._form = _form(1, block[0])
                self._compare(block[0])
            order = np.random.default_rng([key, number]).permutation(len(block)) if self.shuffle > 1 else [0]
            for i in order:
                yield begin + int(i), block[i]
            number, begin = number + 1, begin + len(block)

    def _compare(self, point: Mapping[str, Any]) -> None:
        """Refuse a first point that is not the one of the opening before."""
        values = (np.asarray(point[name], dtype=np.float64).tobytes() for name in sorted(point))
        digest = hashlib.sha256(b"".join(values)).digest()
        if self._first not in (None, digest):
            remedy = "give a source whose points are the same at each opening, a file or a seeded generator"
            raise DataError("stream", f"point 1 is not what it was when the points were opened before; {remedy}.")
        self._first = digest

    def _read(self, count: int) -> dict[str, Any] | None:
        """Read up to ``count`` points into arrays; None at the end."""
        numbered = list(islice(self._iterator, count))
        if not numbered:
            return None
        self._numbers = [number for number, _ in numbered]
        points = [point for _, point in numbered]
        form = self._form
        try:
            arrays = {name: np.asarray([point[name] for point in points], dtype=np.float64) for name in form}
        except (LookupError, ValueError, TypeError) as error:
            raise _misfit(numbered, form) from error
        shapes = {name: values.shape[1:] for name, values in arrays.items()}
        if shapes != form or any(len(point) != len(form) for point in points):
            raise _misfit(numbered, form)
        for name, values in arrays.items():
            with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, and is named here
                finite = np.isfinite(values.astype(self.dtype, copy=False)).reshape(len(points), -1).all(axis=1)
            if not finite.all():
                first = min(number for (number, _), good in zip(numbered, finite, strict=True) if not good)
                what = "NaN or infinite" if self.dtype == "float64" else f"NaN, infinite or too large for {self.dtype}"
                raise DataError("stream", f"point {first}: {name} is {what}; filter or fill it before it is read.")
        self._consumed += len(points)
        return arrays

    def draw(self, position: Position, steps: int, batch_size: int) -> tuple[Iterator[Batch], Position]:
        """See :meth:`Source.draw`; a position other than where the iterator stands makes it start again and skip."""
        pieces, kept, after = self._pieces(position, steps * batch_size)
        return self._batches(pieces, kept // batch_size, batch_size), after

    def block(self, position: Position, rows: int) -> tuple[Source | None, Position]:
        """See :meth:`Source.block`; the rows are kept in memory."""
        pieces, kept, after = self._pieces(position, rows)
        if kept == 0:
            return None, after
        joined = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        return Finite(joined, engine=self.engine, dtype=self.dtype, device=self.device), after

    def _pieces(self, position: Position, wanted: int) -> tuple[list[Mapping[str, Any]], int, Position]:
        """Read and prepare up to ``wanted`` samples; return them in pieces, their number, and where reading ended."""
        key = int(position.rng().integers(2**62))  # a stream never advances the generator: one key a run
        elsewhere = self._opened != key or self._consumed != position.samples
        self._opened = -1  # after an error the iterator's place is unknown: the next draw starts again
        if elsewhere:
            self._iterator, self._consumed = self._ordered(key), 0
            for _ in islice(self._iterator, position.samples):
                self._consumed += 1
        memory = position.memory
        if memory is None and self.prepare is not None:
            memory = self.prepare.start()
        kept, pieces = 0, []
        while kept < wanted:
            raw = self._read(wanted - kept)
            if raw is None:
                break
            if self.prepare is None:
                arrays: Mapping[str, Any] = raw
            else:
                try:
                    memory, arrays = self.prepare(memory, raw)
                except BadPoint as bad:
                    raise DataError("stream", f"point {self._numbers[bad.index]}: {bad.problem}") from bad
            pieces.append(arrays)
            kept += len(next(iter(arrays.values())))
        self._opened = key
        return pieces, kept, Position(position.generator, self._consumed, memory)

    def _batches(self, pieces: list[Mapping[str, Any]], count: int, size: int) -> Iterator[Batch]:
        if count == 0:
            return
        kind = self.dtype, self.engine, self.device
        joined = {name: created(np.concatenate([piece[name] for piece in pieces]), *kind) for name in pieces[0]}
        for begin in range(0, count * size, size):
            yield {name: values[begin : begin + size] for name, values in joined.items()}

    def __getstate__(self) -> dict[str, Any]:
        # An open iterator cannot be copied.
        open_ones = ("_iterator", "_consumed", "_opened", "_latest", "_form", "_numbers")
        return {name: value for name, value in self.__dict__.items() if name not in open_ones}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reset()

    def __repr__(self) -> str:
        return f"Stream(engine={self.engine!r}, dtype={self.dtype!r})"


def _form(number: int, point: Any) -> dict[str, tuple[int, ...]]:
    """Return the names of a point and the shapes of their values."""
    if not isinstance(point, Mapping) or not point:
        raise DataError("stream", f"point {number} is no mapping of names to numbers: {point!r:.60}.")
    form = {}
    for name, value in point.items():
        try:
            if is_complex(value) or np.ma.is_masked(value):
                raise TypeError("no real number")
            form[name] = np.asarray(value, dtype=np.float64).shape
        except (ValueError, TypeError) as error:
            raise DataError("stream", f"point {number}: {name} is no number or vector: {value!r:.60}.") from error
    return form


def _misfit(numbered: list[tuple[int, Any]], form: Mapping[str, tuple[int, ...]]) -> DataError:
    """Name the first point that is not of this form."""
    for number, point in sorted(numbered, key=lambda pair: pair[0]):
        found = _form(number, point)
        if found != form:
            have, need = (", ".join(f"{name} {shape}" for name, shape in each.items()) for each in (found, form))
            return DataError("stream", f"point {number} has {have}, where the first one has {need}.")
    return DataError("stream", "the points cannot be put into arrays of numbers.")
