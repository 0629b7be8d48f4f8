"""Streams: order, blocks, resuming, ends, and points that cannot be used."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm


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


def test_order_is_kept_without_shuffling() -> None:
    stream = mm.Stream(points(20), shuffle=1)
    assert values(stream, position(), 3, 4)[0] == list(map(float, range(12)))


def test_blocks_are_permuted_by_the_seed() -> None:
    found, _ = values(mm.Stream(points(30), shuffle=10), position(), 30, 1)
    assert [sorted(found[i : i + 10]) for i in (0, 10, 20)] == [list(map(float, range(i, i + 10))) for i in (0, 10, 20)]
    assert found != sorted(found)
    assert found == values(mm.Stream(points(30), shuffle=10), position(), 30, 1)[0]
    assert found != values(mm.Stream(points(30), shuffle=10), position(1), 30, 1)[0]


@pytest.mark.parametrize("shuffle", [1, 7])
def test_a_position_resumes(shuffle: int) -> None:
    whole, _ = values(mm.Stream(points(100), shuffle=shuffle), position(), 20, 3)
    stream = mm.Stream(points(100), shuffle=shuffle)
    first, middle = values(stream, position(), 8, 3)
    values(stream, middle, 5, 3)  # the iterator has moved on; the position has not
    again, _ = values(stream, middle, 12, 3)
    assert first + again == whole
    assert first + values(mm.Stream(points(100), shuffle=shuffle), middle, 12, 3)[0] == whole


def test_two_solves_may_share_a_stream() -> None:
    stream = mm.Stream(points(100), shuffle=10)
    alone = {seed: values(mm.Stream(points(100), shuffle=10), position(seed), 6, 2)[0] for seed in (0, 1)}
    found: dict[int, list[float]] = {0: [], 1: []}
    where = {seed: position(seed) for seed in (0, 1)}
    for _ in range(3):
        for seed in (0, 1):
            piece, where[seed] = values(stream, where[seed], 2, 2)
            found[seed] += piece
    assert found == alone


def test_a_stream_that_ends_gives_fewer_batches() -> None:
    batches, _ = mm.Stream(points(10)).draw(position(), 5, 4)
    assert [len(batch["z"]) for batch in batches] == [4, 4]


def test_memory_does_not_grow() -> None:
    stream, where = mm.Stream(points(10**6)), position()
    _, where = values(stream, where, 100, 10)
    tracemalloc.start()
    for _ in range(30):
        batches, where = stream.draw(where, 100, 10)
        for _ in batches:
            pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000


def test_pickle_reopens() -> None:
    stream = mm.Stream([{"z": float(i)} for i in range(50)], shuffle=5)
    before, middle = values(stream, position(), 4, 3)
    copied = pickle.loads(pickle.dumps(stream))  # noqa: S301
    assert values(copied, middle, 3, 3) == values(stream, middle, 3, 3)
    assert before == values(copied, position(), 4, 3)[0]


def test_streams_have_no_exact_values() -> None:
    with pytest.raises(mm.Unsupported, match="finite data"):
        next(mm.Stream(points(5)).chunks())


def test_bad_points_are_named() -> None:
    nan = [{"z": 0.0}, {"z": 1.0}, {"z": float("nan")}]
    with pytest.raises(mm.DataError, match="point 3"):
        mm.Stream(nan, shuffle=1).draw(position(), 3, 1)
    with pytest.raises(mm.DataError, match="point 2"):
        mm.Stream([{"z": 0.0}, {"y": 1.0}], shuffle=1).draw(position(), 2, 1)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"points": iter([{"z": 1.0}])}, "fresh iterator"),
        ({"points": 3}, "fresh iterator"),
        ({"points": [], "shuffle": 0}, "shuffle"),
        ({"points": [], "dtype": "int8"}, "float64"),
    ],
)
def test_what_cannot_be_used_is_named(arguments: dict[str, Any], message: str) -> None:
    given = dict(arguments)
    with pytest.raises(mm.InvalidInput, match=message):
        mm.Stream(given.pop("points"), **given)
