"""Streams: order, blocks, resuming, ends, and points that cannot be used."""

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
from minmaxcon.data import BadPoint
from tests.cases import labelled
from tests.problem_library import HalfSquare, Linear


def points(count: int) -> Any:
    def read() -> Iterator[dict[str, Any]]:
        for i in range(count):
            yield {"z": float(i), "features": np.array([float(i), 1.0])}

    return read


def position(seed: int = 0) -> mm.Position:
    return mm.Position.start(np.random.default_rng(seed))


def values(stream: mm.Stream, where: mm.Position, steps: int, size: int) -> tuple[list[float], mm.Position]:
    batches, after = stream.draw(where, steps, size)
    return [float(z) for batch in batches for z in batch["z"]], after


class Every:
    """Lets through the points from the second on whose number is even, with a count of all points so far."""

    def start(self) -> int:
        return 0

    def __call__(self, memory: int, points: Any) -> tuple[int, Any]:
        order = memory + 1.0 + np.arange(len(points["z"]))
        kept = points["z"] % 2 == 0
        return memory + len(kept), {"z": points["z"][kept], "order": order[kept]}


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
    assert where == made().draw(position(), 9, 3)[1]


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
    solver = mm.SFLS(oracle=mm.SMD(steps=40, batch_size=5, block=10), levels=3)

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
    """10^5 points: kept, their mappings alone would take 50 MB."""
    stream, where, seen = mm.Stream(points(100_000)), position(), 0
    tracemalloc.start()
    while True:
        batches, where = stream.draw(where, 50, 20)
        read = sum(len(batch["z"]) for batch in batches)
        if read == 0:
            break
        seen += read
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seen == 100_000
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
    assert values(copied, middle, 3, 3) == values(stream, middle, 3, 3)
    assert before == values(copied, position(), 2, 3)[0]
    assert (copied.shuffle, copied.dtype, copied.engine) == (5, "float32", "numpy")


def test_streams_have_no_exact_values() -> None:
    with pytest.raises(mm.Unsupported, match="finite data"):
        mm.Stream(points(5)).chunks()


# ----------------------------------------------------------------------------------------------------------- bad input


def at(number: int, bad: dict[str, Any], count: int = 40) -> list[dict[str, Any]]:
    """Return good points, but for the one with this number (from 1)."""
    return [{"z": float(i), "v": [1.0, 2.0]} if i + 1 != number else bad for i in range(count)]


@pytest.mark.parametrize("shuffle", [1, 8, 1000])
@pytest.mark.parametrize("steps", [1, 40])
@pytest.mark.parametrize(
    "bad, message",
    [
        ({"z": float("nan"), "v": [1.0, 2.0]}, "point 27: z is NaN or infinite"),
        ({"z": 1.0, "v": [1.0, float("inf")]}, "point 27: v is NaN or infinite"),
        ({"z": 1.0}, r"point 27 has z \(\), where the first one has z \(\), v \(2,\)"),
        ({"z": 1.0, "w": [1.0, 2.0]}, r"point 27 has z \(\), w \(2,\)"),
        ({"z": 1.0, "v": [1.0, 2.0], "w": 3.0}, "point 27 has .*w"),
        ({"z": 1.0, "v": [1.0, 2.0, 3.0]}, r"point 27 has z \(\), v \(3,\)"),
        ({"z": [1.0], "v": [1.0, 2.0]}, r"point 27 has z \(1,\)"),
        ({"z": "text", "v": [1.0, 2.0]}, "point 27: z is no number or vector: 'text'"),
        ({"z": None, "v": [1.0, 2.0]}, "point 27: z is "),
        ({"z": 1.0, "v": [[1.0], [1.0, 2.0]]}, "point 27: v is no number or vector"),
        (3.0, "point 27 is no mapping"),
        ([1.0, 2.0], "point 27 is no mapping"),
    ],
)
def test_bad_points_are_named_by_their_own_number(bad: Any, message: str, shuffle: int, steps: int) -> None:
    """Whatever the blocks' order, and whether points are read one by one or together."""
    stream = mm.Stream(at(27, bad), shuffle=shuffle)

    def read() -> None:
        where = position()
        for _ in range(40 // steps):
            batches, where = stream.draw(where, steps, 1)
            list(batches)

    for _ in range(2):  # a draw after the error does not skip the point
        with pytest.raises(mm.DataError, match=message) as caught:
            read()
        assert "\n" not in str(caught.value)


def test_the_first_of_several_bad_points_is_named() -> None:
    some = at(9, {"z": float("nan"), "v": [1.0, 2.0]})
    some[30] = some[20] = some[8]
    for seed in range(5):
        with pytest.raises(mm.DataError, match="point 9: z"):
            mm.Stream(some, shuffle=40).draw(position(seed), 40, 1)


def test_a_first_point_that_is_bad_is_named() -> None:
    for bad, seed in [({}, 0), ("text", 1), (None, 2)]:
        with pytest.raises(mm.DataError, match="point 1 is no mapping"):
            mm.Stream([bad, {"z": 1.0}, bad]).draw(position(seed), 1, 1)


def test_the_first_point_decides_though_another_is_read_first() -> None:
    for seed in range(10):
        with pytest.raises(mm.DataError, match=r"point 2 has y \(\), where the first one has z \(\)"):
            mm.Stream([{"z": 1.0}, {"y": 1.0}, {"z": 2.0}]).draw(position(seed), 3, 1)


def test_what_does_not_fit_the_precision_is_named() -> None:
    large = [{"z": 1.0}, {"z": 1e39}]
    assert values(mm.Stream(large, shuffle=1), position(), 2, 1)[0] == [1.0, 1e39]
    with pytest.raises(mm.DataError, match="point 2: z is NaN, infinite or too large for float32"):
        mm.Stream(large, shuffle=1, dtype="float32").draw(position(), 2, 1)


def test_an_error_of_the_reader_is_not_an_end() -> None:
    """It is raised as it is, and raised again: a stream that breaks is not one that has ended."""

    def read() -> Iterator[dict[str, Any]]:
        for i in range(10):
            if i == 5:
                raise OSError("the disk is gone")
            yield {"z": float(i)}

    stream = mm.Stream(read, shuffle=1)
    first, middle = values(stream, position(), 2, 2)
    assert first == [0.0, 1.0, 2.0, 3.0]
    for _ in range(2):
        with pytest.raises(OSError, match="the disk is gone"):
            stream.draw(middle, 2, 2)
    assert values(stream, position(), 2, 2)[0] == first


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"points": iter([{"z": 1.0}])}, "fresh iterator"),
        ({"points": points(3)()}, "fresh iterator"),
        ({"points": 3}, "fresh iterator"),
        ({"points": {"z": [1.0, 2.0]}}, "re-iterable"),
        *(({"points": [], "shuffle": bad}, "shuffle") for bad in (0, -1, 2.5, "a", "5", None, True, float("nan"))),
        ({"points": [], "dtype": "int8"}, "float64"),
        ({"points": [], "engine": "jax"}, "unknown array engine"),
    ],
)
def test_what_cannot_be_used_is_named(arguments: dict[str, Any], message: str) -> None:
    given = dict(arguments)
    with pytest.raises(mm.InvalidInput, match=message):
        mm.Stream(given.pop("points"), **given)


def test_a_function_may_return_a_list() -> None:
    stream = mm.Stream(lambda: [{"z": float(i)} for i in range(5)], shuffle=2)
    assert sorted(values(stream, position(), 9, 1)[0]) == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_a_function_that_returns_one_iterator_again_is_refused() -> None:
    once = points(10)()
    stream = mm.Stream(lambda: once, shuffle=1)
    assert values(stream, position(), 3, 1)[0] == [0.0, 1.0, 2.0]
    with pytest.raises(mm.InvalidInput, match="same iterator twice"):
        values(stream, position(), 3, 1)
    with pytest.raises(mm.InvalidInput, match="not int"):
        mm.Stream(lambda: 3).draw(position(), 1, 1)


# ------------------------------------------------------------------------------------ points that change or are refused


class Changing:
    """A callable whose points differ from one opening to the next, from the n-th point on."""

    def __init__(self, since: int) -> None:
        self.since, self.openings = since, 0

    def __call__(self) -> Iterator[dict[str, Any]]:
        self.openings += 1
        for i in range(100):
            yield {"z": float(i + (1000 * self.openings if i + 1 >= self.since else 0)), "features": np.zeros(2)}


def test_a_source_that_begins_differently_each_time_is_refused() -> None:
    stream = mm.Stream(Changing(1))
    stream.draw(position(0), 2, 5)
    with pytest.raises(mm.DataError, match="point 1 is not what it was") as caught:
        stream.draw(position(1), 2, 5)
    assert "\n" not in str(caught.value)
    steady = mm.Stream(Changing(101))
    assert values(steady, position(0), 2, 5)[0] == values(steady, position(0), 2, 5)[0]


class Refusing(Every):
    """A preparation that takes no point of one value."""

    def __init__(self, bad: float) -> None:
        self.bad = bad

    def __call__(self, memory: int, points: Any) -> tuple[int, Any]:
        wrong = np.flatnonzero(points["z"] == self.bad)
        if wrong.size:
            raise BadPoint(int(wrong[0]), "z is not wanted.")
        return super().__call__(memory, points)


@pytest.mark.parametrize("shuffle", [1, 10])
def test_a_point_that_the_preparation_refuses_is_named_by_its_own_number(shuffle: int) -> None:
    stream = mm.Stream(points(40), prepare=Refusing(27.0), shuffle=shuffle)
    with pytest.raises(mm.DataError, match=r"^stream: point 28: z is not wanted\.$"):
        stream.draw(position(), 4, 5)
