"""The finite source: what it draws, what it refuses, and that it is the caller's data no longer."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import minmaxcon as mm


def source(engine: str = "numpy", dtype: str = "float64", n: int = 50) -> mm.Finite:
    rng = np.random.default_rng(0)
    return mm.Finite({"features": rng.normal(size=(n, 3)), "weights": rng.random((n, 2))}, engine=engine, dtype=dtype)


def position(seed: int = 0) -> mm.Position:
    return mm.Position.start(np.random.default_rng(seed))


def drawn(data: mm.Source, where: mm.Position, steps: int, size: int) -> tuple[Any, mm.Position]:
    batches, after = data.draw(where, steps, size)
    return np.stack([np.asarray(batch["features"]) for batch in batches]), after


@pytest.mark.parametrize("parts", [(1, 9), (3, 3, 4), (10,)])
def test_draws_do_not_depend_on_how_steps_are_split(parts: tuple[int, ...]) -> None:
    whole, end = drawn(source(), position(), 10, 7)
    where, pieces = position(), []
    for part in parts:
        piece, where = drawn(source(), where, part, 7)
        pieces.append(piece)
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    assert where.samples == end.samples == 70
    np.testing.assert_array_equal(drawn(source(), where, 2, 7)[0], drawn(source(), end, 2, 7)[0])


def test_seeds_decide() -> None:
    first = drawn(source(), position(1), 4, 5)[0]
    np.testing.assert_array_equal(first, drawn(source(), position(1), 4, 5)[0])
    assert not np.array_equal(first, drawn(source(), position(2), 4, 5)[0])


def test_torch_draws_the_same_rows() -> None:
    np.testing.assert_array_equal(drawn(source(), position(), 5, 6)[0], drawn(source("torch"), position(), 5, 6)[0])


def test_sparse_rows_equal_dense_ones() -> None:
    dense = np.random.default_rng(0).normal(size=(40, 5)) * (np.random.default_rng(1).random((40, 5)) < 0.4)
    sparse = mm.Finite({"features": scipy.sparse.csr_array(dense)})
    full = mm.Finite({"features": dense})
    for one, other in zip(sparse.draw(position(), 4, 6)[0], full.draw(position(), 4, 6)[0], strict=True):
        np.testing.assert_array_equal(one["features"].toarray(), other["features"])
    pieces = [batch["features"].toarray() for _, batch in sparse.chunks(7)]
    np.testing.assert_array_equal(np.concatenate(pieces), dense)


def test_chunks_cover_the_data_once() -> None:
    data = source()
    shares, pieces = zip(*((share, batch["features"]) for share, batch in data.chunks(8)), strict=True)
    assert sum(shares) == pytest.approx(1.0, abs=1e-15)
    np.testing.assert_array_equal(np.concatenate(pieces), data.arrays["features"])


@pytest.mark.parametrize("engine", ["numpy", "torch"])
def test_precision_is_kept(engine: str) -> None:
    batch = next(iter(source(engine, "float32").draw(position(), 1, 4)[0]))
    assert str(batch["features"].dtype).endswith("float32")


def test_the_callers_arrays_are_copied() -> None:
    mine = np.ones((5, 2))
    data = mm.Finite({"features": mine})
    mine[:] = 7.0
    assert np.all(data.arrays["features"] == 1.0)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda data: pickle.loads(pickle.dumps(data))])  # noqa: S301
def test_copies_draw_the_same(clone: Any) -> None:
    np.testing.assert_array_equal(drawn(clone(source()), position(), 3, 4)[0], drawn(source(), position(), 3, 4)[0])


@pytest.mark.parametrize(
    "arrays, options, message",
    [
        ({}, {}, "at least one"),
        ({"x": np.zeros((0, 2))}, {}, "no sample"),
        ({"x": np.zeros((3, 2)), "y": np.zeros(4)}, {}, "one row per sample"),
        ({"x": np.array([[0.0, 1.0], [2.0, np.nan]])}, {}, "row 1, column 1"),
        ({"x": scipy.sparse.csr_array(np.array([[0.0, np.inf], [2.0, 0.0]]))}, {}, "row 0, column 1"),
        ({"x": np.zeros((3, 2))}, {"dtype": "float16"}, "float64"),
        ({"x": np.zeros((3, 2))}, {"engine": "jax"}, "unknown array engine"),
        ({"x": scipy.sparse.csr_array(np.eye(3))}, {"engine": "torch"}, "sparse"),
    ],
)
def test_what_cannot_be_used_is_named(arrays: Any, options: Any, message: str) -> None:
    with pytest.raises(mm.InvalidInput, match=message) as caught:
        mm.Finite(arrays, **options)
    assert "\n" not in str(caught.value)
