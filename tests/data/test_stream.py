"""Streams: order, blocks, resuming, ends, engines and memory."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.arrays import namespace, to_numpy
from tests.cases import labelled
from tests.data.streams import Every, content, points, position, values
from tests.problem_library import HalfSquare, Linear

# ----------------------------------------------------------------------------------------------------- order, resuming


def test_order_is_kept_without_shuffling() -> None:
    stream = mm.Stream(points(20), shuffle=1)
    assert values(stream, position(), 3, 4)[0] == list(map(float, range(12)))
    (batch,) = stream.draw(position(), 1, 3)[0]
    np.testing.assert_array_equal(batch["features"], [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])


def test_blocks_are_permuted_by_the_seed() -> None:
    found, _ = values(mm.Stream(points(35), shuffle=10), position(), 35, 1)
    blocks = [list(map(float, range(i, min(i + 10, 35)))) for i in (0, 10, 20, 30)]
    assert [sorted(found[i : i + 10]) for i in (0, 10, 20, 30)] == blocks
    assert all(found[i : i + 10] != sorted(found[i : i + 10]) for i in (0, 10, 20))
    assert [z % 10 for z in found[:10]] != [z % 10 for z in found[10:20]], "each block has an order of its own"
    assert found == values(mm.Stream(points(35), shuffle=10), position(), 35, 1)[0]
    assert found != values(mm.Stream(points(35), shuffle=10), position(1), 35, 1)[0]


@pytest.mark.parametrize("shuffle", [1, 7, 1000])
@pytest.mark.parametrize("prepare", [None, Every()])
@pytest.mark.parametrize("parts", [(1,) * 9, (4, 5), (2, 6, 1)])
def test_batches_do_not_depend_on_how_steps_are_split(shuffle: int, prepare: Any, parts: tuple[int, ...]) -> None:
    def made() -> mm.Stream:
        return mm.Stream(points(100), shuffle=shuffle, prepare=prepare)

    whole = [{n: v.tolist() for n, v in batch.items()} for batch in made().draw(position(), 9, 3)[0]]
    stream, where, found = made(), position(), []
    for part in parts:
        batches, where = stream.draw(where, part, 3)
        found += [{n: v.tolist() for n, v in batch.items()} for batch in batches]
    assert len(whole) == 9
    assert found == whole
    assert content(where) == content(made().draw(position(), 9, 3)[1])


@pytest.mark.parametrize("shuffle", [1, 7])
@pytest.mark.parametrize("prepare", [None, Every()])
def test_a_position_resumes(shuffle: int, prepare: Any) -> None:
    def made() -> mm.Stream:
        return mm.Stream(points(200), shuffle=shuffle, prepare=prepare)

    whole, _ = values(made(), position(), 20, 3)
    stream = made()
    first, middle = values(stream, position(), 8, 3)
    values(stream, middle, 5, 3)  # the iterator has moved on; the position has not
    assert first + values(stream, middle, 12, 3)[0] == whole
    kept = pickle.loads(pickle.dumps(middle))
    assert first + values(made(), kept, 12, 3)[0] == whole


class Counted(Iterable[Any]):
    """A re-iterable that counts how often it is opened, and how many points are read."""

    def __init__(self, count: int) -> None:
        self.count, self.opened, self.read = count, 0, 0

    def __iter__(self) -> Iterator[Any]:
        self.opened += 1
        for i in range(self.count):
            self.read += 1
            yield {"z": float(i)}


def test_a_run_that_goes_on_reads_once() -> None:
    counted = Counted(1000)
    stream, where = mm.Stream(counted, shuffle=10), position()
    for _ in range(9):
        _, where = values(stream, where, 5, 2)
    assert (counted.opened, counted.read) == (1, 90)
    values(stream, position(), 1, 1)
    assert (counted.opened, counted.read) == (2, 100)


def test_two_positions_may_share_a_stream() -> None:
    stream = mm.Stream(points(100), shuffle=10)
    alone = {seed: values(mm.Stream(points(100), shuffle=10), position(seed), 6, 2)[0] for seed in (0, 1)}
    found: dict[int, list[float]] = {0: [], 1: []}
    where = {seed: position(seed) for seed in (0, 1)}
    for _ in range(3):
        for seed in (0, 1):
            piece, where[seed] = values(stream, where[seed], 2, 2)
            found[seed] += piece
    assert alone[0] != alone[1]
    assert found == alone


def test_batches_of_two_draws_may_be_read_alternately() -> None:
    stream = mm.Stream(points(100), shuffle=1)
    first, after = stream.draw(position(), 3, 2)
    second, _ = stream.draw(after, 3, 2)
    read = [float(batch["z"][0]) for pair in zip(first, second, strict=True) for batch in pair]
    assert read == [0.0, 6.0, 2.0, 8.0, 4.0, 10.0]


def stream_of(rows: Any, **options: Any) -> mm.Stream:
    def read() -> Iterator[dict[str, Any]]:
        rng = np.random.default_rng(0)
        for _ in range(50_000):
            i = int(rng.integers(len(rows)))
            yield {"points": rows.features[i], "costs": rows.features[-1 - i]}

    return mm.Stream(read, **options)


def test_two_solves_may_share_a_stream() -> None:
    """Interleaved step by step, they end as each does alone."""
    rows = labelled()
    solver = mm.SFLS(oracle=mm.SMD(steps=20, batch_size=5, block=10), levels=1)

    def made() -> mm.MinMaxProblem:
        return mm.MinMaxProblem(HalfSquare(), [Linear(0.5)], mm.Ball(3, 6.0), stream_of(rows))

    alone = [list(mm.iterate(made(), solver, seed=seed))[-1] for seed in (0, 0, 1)]
    shared = made()
    running = [mm.iterate(shared, solver, seed=seed) for seed in (0, 0, 1)]
    last: list[Any] = [None] * 3
    going = [0, 1, 2]
    while going:
        for j in list(going):
            try:
                last[j] = next(running[j])
            except StopIteration:
                going.remove(j)
    for found, expected in zip(last, alone, strict=True):
        np.testing.assert_array_equal(found.x, expected.x)
        assert found.samples == expected.samples > 100
    assert not np.array_equal(last[0].x, last[2].x)


# ---------------------------------------------------------------------------------------------------------------- ends


@pytest.mark.parametrize("shuffle", [1, 4, 1000])
def test_a_stream_that_ends_gives_fewer_batches(shuffle: int) -> None:
    stream = mm.Stream(points(10), shuffle=shuffle)
    batches, after = stream.draw(position(), 5, 4)
    assert [len(batch["z"]) for batch in batches] == [4, 4]  # a last incomplete one is dropped
    for _ in range(2):
        batches, after = stream.draw(after, 3, 4)
        assert list(batches) == []
    assert after.samples == 10


def test_no_points_are_no_batches() -> None:
    assert list(mm.Stream([]).draw(position(), 5, 4)[0]) == []
    only_odd = mm.Stream([{"z": 1.0}] * 30, prepare=Every())
    batches, after = only_odd.draw(position(), 5, 4)
    assert list(batches) == []
    assert after.memory == 30


# ------------------------------------------------------------------------------------------------ engines and memory


@pytest.mark.parametrize("engine", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_engine_and_precision(engine: str, dtype: str) -> None:
    stream = mm.Stream(points(20), engine=engine, dtype=dtype, shuffle=1, prepare=Every())
    for x in (stream.like, *(v for batch in stream.draw(position(), 2, 3)[0] for v in batch.values())):
        assert namespace(x).name == engine
        assert str(x.dtype).endswith(dtype)
    (batch,) = stream.draw(position(), 1, 3)[0]
    np.testing.assert_array_equal(to_numpy(batch["z"]), [0.0, 2.0, 4.0])
    np.testing.assert_array_equal(to_numpy(batch["order"]), [1.0, 3.0, 5.0])
    assert stream.size is None


def test_the_readers_own_arrays_are_copied() -> None:
    """Batches that were drawn stay as they were drawn."""
    mine = [{"z": np.array([float(i)])} for i in range(4)]
    stream = mm.Stream(mine, shuffle=1)
    batches, _ = stream.draw(position(), 2, 2)
    mine[0]["z"][:] = 9.0
    assert [batch["z"].ravel().tolist() for batch in batches] == [[0.0, 1.0], [2.0, 3.0]]


def test_memory_does_not_grow() -> None:
    """20,000 points: kept, their mappings alone would take 10 MB."""
    stream, where, seen = mm.Stream(points(20_000)), position(), 0
    tracemalloc.start()
    while True:
        batches, where = stream.draw(where, 50, 20)
        read = sum(len(batch["z"]) for batch in batches)
        if read == 0:
            break
        seen += read
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seen == 20_000
    assert peak < 3_000_000


@pytest.mark.parametrize("prepare", [None, Every()])
def test_blocks_hold_what_draws_give(prepare: Any) -> None:
    """As finite data; the last one is shorter, and after it there is none."""
    stream = mm.Stream([{"z": float(i)} for i in range(25)], shuffle=5, prepare=prepare, dtype="float32")
    where, found, sizes = position(), [], []
    while True:
        block, where = stream.block(where, 10)
        if block is None:
            break
        ((_, batch),) = block.chunks()
        assert batch["z"].dtype == np.float32
        sizes.append(block.size)
        found += batch["z"].tolist()
    assert found == values(stream, position(), 25, 1)[0]
    assert where.samples == 25
    assert max(sizes) == 10
    assert stream.block(where, 10)[0] is None


def test_other_sources_make_no_blocks() -> None:
    with pytest.raises(mm.Unsupported, match=r"Finite.*block\(\)"):
        mm.Finite({"z": np.zeros(3)}).block(position(), 2)


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_copies_reopen(clone: Any) -> None:
    stream = mm.Stream([{"z": float(i)} for i in range(50)], shuffle=5, prepare=Every(), dtype="float32")
    before, middle = values(stream, position(), 2, 3)
    copied = clone(stream)  # with an iterator that is open
    (found, end), (expected, other) = values(copied, middle, 3, 3), values(stream, middle, 3, 3)
    assert found == expected
    assert content(end) == content(other)
    assert before == values(copied, position(), 2, 3)[0]
    assert (copied.shuffle, copied.dtype, copied.engine) == (5, "float32", "numpy")


def test_streams_have_no_exact_values() -> None:
    with pytest.raises(mm.Unsupported, match="finite data"):
        mm.Stream(points(5)).chunks()
