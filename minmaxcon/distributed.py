"""One solve over several processes, each with its own shard of the data, by torch.distributed.

Every process takes the same steps from the same point: batch means F and G and the pulled-back gradients are averaged
over the processes, two small reductions a step, so that x and all multipliers are the same everywhere, to the last bit.
N processes with a batch of B are one process with a batch of NB. Exact values are sums over shards. Any problem on
finite data, with any oracle and solver, is distributed by wrapping its family and its source.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace
from minmaxcon.core import (
    Batch,
    ConstraintFamily,
    Evaluation,
    MinMaxProblem,
    Position,
    RefreshedProblem,
    Source,
    WrappedFamily,
)
from minmaxcon.errors import InvalidInput, MinMaxConError, Unsupported

__all__ = ["EndedError", "Processes", "Shards", "SharedError", "current", "distribute", "join"]

_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_STARTED_BY = "torchrun --nproc-per-node=2 -m minmaxcon solve ... --distributed"

_joined: list[Processes] = []


@dataclass(frozen=True, slots=True)
class _Failure:
    """The message of a process that has failed, for the others."""

    text: str


class SharedError(MinMaxConError):
    """The error of one process, which all of them raise, so that only one needs to tell it.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> from minmaxcon.distributed import SharedError
    >>> issubclass(SharedError, mm.MinMaxConError)
    True
    """


class EndedError(MinMaxConError):
    """Another process has ended without a word.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> from minmaxcon.distributed import EndedError
    >>> issubclass(EndedError, mm.MinMaxConError)
    True
    """


class Processes:
    """The processes that share a solve.

    Attributes
    ----------
    rank : int
        Number of this process, from 0; the first one writes checkpoints and reports.
    count : int
        How many there are.

    Examples
    --------
    >>> from minmaxcon.distributed import Processes
    >>> alone = Processes(rank=0, count=1)
    >>> alone.leader
    True
    """

    def __init__(self, rank: int, count: int) -> None:
        self.rank, self.count = rank, count

    @property
    def leader(self) -> bool:
        """Whether this process writes and reports."""
        return self.rank == 0

    def exchange(self, value: Any) -> list[Any]:
        """Return what all processes called this with, in their order.

        Raises
        ------
        MinMaxConError
            If one of them has failed, with its message; or has ended.
        """
        import torch.distributed as dist

        found: list[Any] = [None] * self.count
        _together(dist.all_gather_object, found, value)
        failed = [(rank, part.text) for rank, part in enumerate(found) if isinstance(part, _Failure)]
        if failed:
            rank, text = failed[0]
            alone = any(part.text != text if isinstance(part, _Failure) else True for part in found)
            raise SharedError(f"process {rank}: {text}" if alone else text)
        return found

    def fail(self, error: MinMaxConError) -> MinMaxConError:
        """Tell the others that this process has failed, and return the error that all of them raise."""
        if isinstance(error, SharedError | EndedError):  # they know
            return error
        try:
            self.exchange(_Failure(str(error)))
        except MinMaxConError as shared:
            return shared
        return error

    def send(self, value: Any, source: int) -> Any:
        """Return to all what the process ``source`` called this with."""
        import torch.distributed as dist

        box = [value]
        _together(dist.broadcast_object_list, box, source)
        return box[0]

    def total(self, value: Array) -> Array:
        """Return the sum of an array over all processes, the same bits in each."""
        import torch
        import torch.distributed as dist

        given = value.detach().clone() if isinstance(value, torch.Tensor) else torch.from_numpy(np.array(value))
        if given.numel():
            _together(dist.all_reduce, given)
        return given if isinstance(value, torch.Tensor) else given.numpy()

    def leave(self) -> None:
        """End the connections; nothing is said where they are broken already."""
        import torch.distributed as dist

        _joined.clear()
        with suppress(RuntimeError, ValueError):
            dist.destroy_process_group()


def _together(function: Callable[..., Any], *arguments: Any) -> None:
    """Call a collective function; where another process is gone, say so in one line."""
    try:
        function(*arguments)
    except (RuntimeError, EOFError) as failure:
        raise EndedError(
            "another process of this solve has ended, and so does this one; a checkpoint, where there is one, is whole:"
            " go on with --resume."
        ) from failure


def join(timeout: float = 1800.0) -> Processes:
    """Join the processes that torchrun has started, over gloo.

    Parameters
    ----------
    timeout : float
        Seconds that a process waits for another.

    Returns
    -------
    Processes
        The same at each call.

    Raises
    ------
    InvalidInput
        If this process was not started by torchrun, or a launcher like it.
    MinMaxConError
        If the others cannot be reached.
    """
    if _joined:
        return _joined[0]
    missing = [name for name in _VARIABLES if name not in os.environ]
    if missing:
        raise InvalidInput("distributed", True, f"{missing[0]} is not set: start it by {_STARTED_BY}.")
    import torch.distributed as dist

    try:
        dist.init_process_group("gloo", timeout=timedelta(seconds=timeout))
    except (RuntimeError, ValueError, OSError) as failure:
        where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        cause = " ".join(str(failure).split())[:100]
        raise MinMaxConError(
            f"the other processes cannot be reached at {where} ({cause}); check the launcher."
        ) from None
    _joined.append(Processes(dist.get_rank(), dist.get_world_size()))
    return _joined[0]


def current() -> Processes | None:
    """Return the processes that were joined, None where this one is alone."""
    return _joined[0] if _joined else None


def distribute(problem: MinMaxProblem, processes: Processes | None = None, *, sharded: bool = True) -> MinMaxProblem:
    """Return the problem over all processes.

    Parameters
    ----------
    problem : MinMaxProblem
        The same in all processes but for its data.
    processes : Processes, optional
        Those that were joined by default.
    sharded : bool
        Whether the data are this process's shard already; else each takes every count-th row of the same data.

    Raises
    ------
    Unsupported
        If the data are a stream, or the problem follows a true measure, which looks at all rows at once.
    MinMaxConError
        If the problems of the processes differ.
    """
    processes = join() if processes is None else processes
    if isinstance(problem, RefreshedProblem):
        raise Unsupported("a problem that follows a true measure looks at all rows at once: solve it in one process.")
    if problem.data.size is None:
        raise Unsupported("a stream cannot be distributed: give each process finite data, its shard.")
    data = problem.data if sharded else problem.data.shard(processes.rank, processes.count)
    _require_alike(problem, processes)
    shards = Shards(data, processes)
    return problem.over(shards, lambda family: _Averaged(family, shards))


def _require_alike(problem: MinMaxProblem, processes: Processes) -> None:
    """Refuse problems that differ in what does not lie in the data."""
    like = problem.data.like
    mine = {
        "dimension": problem.primal.dimension,
        "bounds": problem.bounds().tolist(),
        "functions": [constraint.name for constraint in problem.family.constraints],
        "start": problem.start_point(1).tolist(),
        "engine": namespace(like).name,
        "precision": str(like.dtype),
    }
    for rank, other in enumerate(processes.exchange(mine)):
        for name, value in mine.items():
            if other[name] != value:
                have = f"{name} is {value!r:.40} in process {processes.rank} and {other[name]!r:.40} in process {rank}"
                raise MinMaxConError(f"the processes have different problems: {have}; give all the same.")


@dataclass(frozen=True, eq=False)
class _Places:
    """How far each process has read its shard, for the generator that these began with."""

    generator: Mapping[str, Any] = field(repr=False)
    positions: tuple[Position, ...]


class _Drawn(dict[str, Any]):
    """A batch of which each process has its own."""


class Shards(Source):
    """Finite data of which each process holds a shard.

    Parameters
    ----------
    data : Source
        This process's shard.
    processes : Processes
        The processes.

    Attributes
    ----------
    size : int
        Rows of all shards.
    sizes : tuple of int
        Rows of each.
    leader : bool
        Whether this process is the first.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> from minmaxcon.distributed import Shards
    >>> def shard(problem):  # in a process that torchrun has started
    ...     return mm.distributed.distribute(problem, mm.distributed.join()).data
    >>> issubclass(Shards, mm.Source)
    True
    """

    rebuilt_from = ("size", "sizes")
    streamed = True

    def __init__(self, data: Source, processes: Processes) -> None:
        self._data, self._processes = data, processes
        self.like, self.leader = data.like, processes.leader
        self.sizes = tuple(processes.exchange(int(data.size or 0)))
        self.size = sum(self.sizes)
        self._share = self.sizes[processes.rank] / self.size

    def draw(self, position: Position, steps: int, batch_size: int) -> tuple[Iterator[Batch], Position]:
        """See :meth:`Source.draw`: in each process ``batch_size`` rows of its shard, from random numbers of its own."""
        known, rank = position.memory, self._processes.rank
        if isinstance(known, _Places) and known.generator == position.generator:
            here = known.positions[rank]
        else:
            here = Position(position.jumped(rank + 1).generator, position.samples // self._processes.count)
        batches, after = self._data.draw(here, steps, batch_size)
        places = _Places(position.generator, tuple(self._processes.exchange(after)))
        samples = position.samples + steps * batch_size * self._processes.count
        return (_Drawn(batch) for batch in batches), Position(position.generator, samples, places)

    def summed(self, function: Callable[[Batch], tuple[Array, ...]], rows: int | None = None) -> tuple[Array, ...]:
        """See :meth:`Source.summed`: a sum over the shards, each passed over by its process."""
        parts = self._data.summed(function, rows)
        return tuple(self._processes.total(self._share * part) for part in parts)

    def averaged(self, value: Array) -> Array:
        """Return the mean over all rows' processes of an array, each weighted by the rows of its shard."""
        return self._processes.total(self._share * value)

    def chunks(self, rows: int | None = None) -> Iterator[tuple[float, Batch]]:
        """See :meth:`Source.chunks`: every piece is sent to every process, which is dear and always right."""
        for rank in range(self._processes.count):
            own = self._data.chunks(rows) if rank == self._processes.rank else None
            while True:
                sent = self._processes.send(None if own is None else next(own, None), rank)
                if sent is None:
                    break
                share, batch = sent
                yield share * self.sizes[rank] / self.size, batch

    def agreed(self, value: Any) -> Any:
        """See :meth:`Source.agreed`: the value of the first process that has one."""
        return next((found for found in self._processes.exchange(value) if found is not None), None)

    def __repr__(self) -> str:
        return f"Shards({self.size:,} rows in {self._processes.count} processes)"


class _Averaged(WrappedFamily):
    """A family whose batch means and gradients are averaged over the processes; all of them refine with all rows."""

    def __init__(self, family: ConstraintFamily, shards: Shards) -> None:
        super().__init__(family)
        self._shards = shards

    def evaluate(self, x: Array, batch: Batch) -> Evaluation:
        """See :meth:`ConstraintFamily.evaluate`; pieces of exact passes, unlike batches, are this process's alone."""
        found = self.family.evaluate(x, batch)
        if not isinstance(batch, _Drawn):
            return found
        both = self._shards.averaged(namespace(x).concat([found.F, found.G]))
        levels = int(found.F.shape[-1])

        def pullback(y: Array, a: Array) -> Array:
            return self._shards.averaged(found.pullback(y, a))

        return Evaluation(both[..., :levels], both[..., levels:], pullback)
