"""Points that cannot be used, and readers that fail or change, are named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.data import BadPoint
from tests.data.streams import Every, points, position, values


def at(number: int, bad: dict[str, Any], count: int = 40) -> list[dict[str, Any]]:
    """Return good points, but for the one with this number (from 1)."""
    return [{"z": float(i), "v": [1.0, 2.0]} if i + 1 != number else bad for i in range(count)]


@pytest.mark.parametrize("shuffle, steps", [(1, 40), (8, 1), (1000, 40)])
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


class Fickle:
    """A number that can be read at every time but the third, when it would go into an array."""

    def __init__(self) -> None:
        self.read = 0

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self.read += 1
        if self.read == 3:
            raise ValueError("not now")
        return np.array(1.0, dtype=dtype)


def test_points_that_are_of_one_form_and_make_no_array_are_refused() -> None:
    with pytest.raises(mm.DataError, match="stream: the points cannot be put into arrays of numbers"):
        mm.Stream([{"z": Fickle()}]).draw(position(), 1, 1)


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
        ({"points": [], "engine": "cupy"}, "unknown array engine"),
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
