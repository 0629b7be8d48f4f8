"""The interface of sources of samples: what a problem needs of its data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace
from minmaxcon.checks import instance
from minmaxcon.errors import Unsupported

__all__ = ["Batch", "Batches", "Position", "Source", "in_double"]

Batch = Mapping[str, Array]
"""Named arrays; samples lie along the first axis of each."""


@dataclass(frozen=True, eq=False, slots=True)
class Position:
    """How far a run has read a source; a solve that starts from it draws the same samples again.

    Attributes
    ----------
    generator : mapping
        State of the NumPy bit generator that draws indices.
    samples : int
        Samples drawn so far.
    memory : object
        What a stream has to remember of the samples it has delivered (counts of groups, say); immutable.

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> data = mm.Finite({"z": np.arange(100.0)})
    >>> here = mm.Position.start(np.random.default_rng(0))
    >>> draws = [next(data.draw(here, 1, 3)[0])["z"].tolist() for _ in range(2)]
    >>> draws[0] == draws[1]  # the same position, the same samples
    True
    """

    generator: Mapping[str, Any] = field(repr=False)
    samples: int = 0
    memory: Any = None

    @classmethod
    def start(cls, rng: np.random.Generator) -> Position:
        """Return the first position of a run whose draws come from ``rng``; ``rng`` itself is not advanced.

        Raises
        ------
        InvalidInput
            If it is no generator of random numbers.
        """
        instance("rng", rng, np.random.Generator, "must be a numpy.random.Generator, such as default_rng(0).")
        return cls(rng.bit_generator.state, 0)

    def jumped(self, streams: int) -> Position:
        """Return the position of an independent run of random numbers, far from this one; samples count as before."""
        bits: Any = self.rng().bit_generator
        return Position(bits.jumped(streams).state, self.samples, self.memory)

    def rng(self) -> np.random.Generator:
        """Return a NumPy generator in this position's state."""
        bits: Any = getattr(np.random, self.generator["bit_generator"])()
        bits.state = self.generator
        return np.random.Generator(bits)


class Batches(Iterator[Batch]):
    """The batches of several steps: made one by one, or, in a compiled block of steps, from their number.

    Parameters
    ----------
    make : callable
        ``make(whole, one)`` gives a batch; a function of a module, that can be compiled.
    whole : mapping
        Arrays that all batches are made of; none of them is copied.
    each : mapping
        Arrays whose first axis counts the batches; ``one`` has the entries of one batch.
    placed : mapping, optional
        ``whole`` where compiled blocks find it.

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> data = mm.Finite({"z": np.arange(4.0)})
    >>> batches, position = data.draw(mm.Position.start(np.random.default_rng(0)), steps=3, batch_size=2)
    >>> [batch["z"].shape for batch in batches], position.samples
    ([(2,), (2,), (2,)], 6)
    """

    def __init__(
        self,
        make: Callable[[Mapping[str, Any], Mapping[str, Any]], Batch],
        whole: Mapping[str, Any],
        each: Mapping[str, Any],
        placed: Mapping[str, Any] | None = None,
    ) -> None:
        self.make, self.whole, self.each = make, whole, each
        self.placed = whole if placed is None else placed
        self.count = int(next(iter(each.values())).shape[0]) if each else 0
        self._next = 0

    @classmethod
    def of(cls, batches: Iterator[Batch]) -> Batches:
        """Return any batches of one size as such: what is no :class:`Batches` is made at once."""
        if isinstance(batches, Batches):
            return batches
        made = list(batches)
        each = {name: np.stack([one[name] for one in made]) for name in made[0]} if made else {}
        return cls(_itself, {}, each)

    def __next__(self) -> Batch:
        if self._next >= self.count:
            raise StopIteration
        one = {name: values[self._next] for name, values in self.each.items()}
        self._next += 1
        return self.make(self.whole, one)


def _itself(_: Mapping[str, Any], one: Mapping[str, Any]) -> Batch:
    return one


class Source(ABC):
    """A source of independent samples of z.

    Attributes
    ----------
    size : int or None
        Number of samples of a finite data set; None for a stream.
    like : array
        An array of the engine, precision and device that the samples have; solvers create their own like it.
    engine, device : str
        What computes, and where. With ``"jax"`` the blocks of steps are compiled, and ``like`` is a NumPy array.
    streamed : bool
        Whether pieces of finite data are read anew at each pass, so that nobody may keep all of them.
    leader : bool
        Whether this process writes and reports, where several share a solve.

    Examples
    --------
    >>> import numpy as np
    >>> import minmaxcon as mm
    >>> class Normal(mm.Source):  # a stream of standard normal numbers
    ...     like = np.zeros(0)
    ...     def draw(self, position, steps, batch_size):
    ...         rng = position.rng()
    ...         batches = [{"z": rng.normal(size=batch_size)} for _ in range(steps)]
    ...         return iter(batches), mm.Position(rng.bit_generator.state, position.samples + steps * batch_size)
    >>> batches, position = Normal().draw(mm.Position.start(np.random.default_rng(0)), 3, 10)
    >>> len(list(batches)), position.samples
    (3, 30)
    """

    size: int | None = None
    engine: str = "numpy"
    device: str = "cpu"
    like: Array
    streamed: bool = False
    leader: bool = True

    @property
    def origin(self) -> Source:
        """The data whose numbers these are, where they are read in another precision."""
        return self

    @abstractmethod
    def draw(self, position: Position, steps: int, batch_size: int) -> tuple[Iterator[Batch], Position]:
        """Draw the batches of several steps at once.

        Parameters
        ----------
        position : Position
            Where to begin.
        steps : int
            Number of batches; a stream that ends gives fewer.
        batch_size : int
            Samples in each.

        Returns
        -------
        batches : iterator of mapping
            The batches, made one by one; best as :class:`Batches`, from which compiled blocks read without a copy.
        position : Position
            Where the next draw begins. The samples do not depend on how steps are split among calls.
        """

    def block(self, position: Position, rows: int) -> tuple[Source | None, Position]:
        """Read rows of a stream into finite data, for methods that look at the same samples several times.

        Parameters
        ----------
        position : Position
            Where to begin.
        rows : int
            How many are read; fewer where the stream ends.

        Returns
        -------
        data : Source or None
            Finite data; None where nothing is left.
        position : Position
            Where the next block begins.

        Raises
        ------
        Unsupported
            If the source makes no blocks.
        """
        raise Unsupported(f"{type(self).__name__} makes no blocks: override block() to serve methods that need them.")

    def chunks(self, rows: int | None = None) -> Iterator[tuple[float, Batch]]:
        """Pass once over finite data: the share of the data in each piece, and the piece.

        Parameters
        ----------
        rows : int, optional
            Largest number of rows of a piece; a size that keeps memory bounded by default.

        Raises
        ------
        Unsupported
            If the source is a stream.
        """
        raise Unsupported(f"{type(self).__name__} is a stream: exact values need finite data.")

    def summed(self, function: Callable[[Batch], tuple[Array, ...]], rows: int | None = None) -> tuple[Array, ...]:
        """Return the means over finite data of arrays that a function makes of a piece, by one pass.

        Data of which each process holds a shard are so summed where they lie; :meth:`chunks` would send them around.

        Parameters
        ----------
        function : callable
            Returns the means over a piece, several arrays.
        rows : int, optional
            As for :meth:`chunks`.
        """
        sums: list[tuple[Array, Array]] = []
        for share, batch in self.chunks(rows):
            parts = [share * part for part in function(batch)]
            sums = (
                [_added(old, new) for old, new in zip(sums, parts, strict=True)] if sums else [(p, 0.0) for p in parts]
            )
        return tuple(total + lost for total, lost in sums)

    def shard(self, number: int, shards: int) -> Source:
        """Return rows number, number + shards, ... of finite data.

        Raises
        ------
        Unsupported
            If the source does not divide itself.
        """
        raise Unsupported(f"{type(self).__name__} cannot be divided: override shard(), or give each process its rows.")

    def agreed(self, value: Any) -> Any:
        """Return the value that all processes that share the data go on with: this one's, where there are no others."""
        return value


def _added(sums: tuple[Array, Array], part: Array) -> tuple[Array, Array]:
    """Add an array to a sum and what its roundings have lost (Knuth's two-sum), so that many pieces lose no digit."""
    total, lost = sums
    after = total + part
    back = after - total
    return after, lost + ((total - (after - back)) + (part - back))


def in_double(data: Source) -> Source:
    """Return finite data as a source whose pieces are in float64: the data themselves where they are already.

    What is claimed of a point is evaluated there, on the numbers that the data hold in their own precision.
    """
    return data if data.like.dtype.itemsize == 8 else _Double(data)


class _Double(Source):
    """Finite data of single precision, read piece by piece in double precision."""

    def __init__(self, data: Source) -> None:
        self.data, self.size, self.streamed = data, data.size, data.streamed
        self.engine, self.device = data.engine, data.device
        self.like = namespace(data.like).double(data.like)

    @property
    def origin(self) -> Source:
        """The data in their own precision."""
        return self.data.origin

    def draw(self, position: Position, steps: int, batch_size: int) -> tuple[Iterator[Batch], Position]:
        """See :meth:`Source.draw`."""
        batches, after = self.data.draw(position, steps, batch_size)
        return (_doubled(batch) for batch in batches), after

    def chunks(self, rows: int | None = None) -> Iterator[tuple[float, Batch]]:
        """See :meth:`Source.chunks`."""
        for share, batch in self.data.chunks(rows):
            yield share, _doubled(batch)

    def summed(self, function: Callable[[Batch], tuple[Array, ...]], rows: int | None = None) -> tuple[Array, ...]:
        """See :meth:`Source.summed`."""
        return self.data.summed(lambda batch: function(_doubled(batch)), rows)


def _doubled(batch: Batch) -> Batch:
    """Return a batch in float64; a SciPy sparse array stays one."""
    return {
        name: rows.astype("float64") if hasattr(rows, "tocsr") else namespace(rows).double(rows)
        for name, rows in batch.items()
    }
