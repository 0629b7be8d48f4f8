"""The sample of a stream: exact counts, uniform, the same however rows are divided, and bounded."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.stats import chisquare

from minmaxcon_problems.fair_auc.estimator.incremental import CELLS, Reservoir


def stream(count: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, 3)) * (rng.random((count, 3)) < 0.6)
    return features, rng.choice(CELLS, count, p=[0.6, 0.2, 0.15, 0.05])


def kept(reservoir: Reservoir) -> list[Any]:
    features, cell, weight = reservoir.kept(range(CELLS))
    return [features.toarray() if hasattr(features, "toarray") else features, cell, weight]


@given(st.lists(st.integers(0, 60), max_size=8), st.integers(1, 12), st.booleans())
def test_blocks_of_any_size_leave_the_same_rows(cuts: list[int], capacity: int, sparse: bool) -> None:
    features, cells = stream(150, 3)
    whole, parts, single = (Reservoir(capacity, 7) for _ in range(3))
    whole.add(features, cells)
    for block, cell in zip(
        np.split(features, np.cumsum(cuts)[np.cumsum(cuts) < 150]),
        np.split(cells, np.cumsum(cuts)[np.cumsum(cuts) < 150]),
        strict=True,
    ):
        parts.add(csr_matrix(block) if sparse else block, cell)
    for row, cell in zip(features, cells.tolist(), strict=True):
        single.add_row(row[None], cell)
    for other in (parts, single):
        assert other.counts == whole.counts
        for a, b in zip(kept(whole), kept(other), strict=True):
            np.testing.assert_array_equal(a, b)


def test_counts_are_exact_and_weights_add_up_to_them() -> None:
    features, cells = stream(500, 0)
    reservoir = Reservoir(10, 0)
    reservoir.add(features, cells)
    np.testing.assert_array_equal(reservoir.counts, np.bincount(cells, minlength=CELLS))
    _, cell, weight = reservoir.kept(range(CELLS))
    np.testing.assert_allclose(np.bincount(cell, weights=weight), reservoir.counts)


def test_rows_that_lie_elsewhere_are_fetched_by_their_numbers() -> None:
    """A sample of numbers, and then the rows of those that were kept, is the sample of the rows."""
    features, cells = stream(500, 1)
    here, numbers = Reservoir(10, 3), Reservoir(10, 3)
    here.add(features, cells)
    numbers.add(np.arange(500.0)[:, None], cells)
    asked: list[Any] = []
    numbers.fetch(lambda chosen: asked.append(chosen) or features[chosen.astype(int)], features.shape[1])
    for one, other in zip(kept(here), kept(numbers), strict=True):
        np.testing.assert_array_equal(one, other)
    assert [len(chosen) for chosen in asked] == [sum(min(count, 10) for count in here.counts)]


def test_every_row_of_a_cell_is_kept_equally_often() -> None:
    numbers = np.arange(40.0)[:, None]
    times = np.zeros(40)
    for seed in range(1000):
        reservoir = Reservoir(8, seed)
        reservoir.add(numbers, np.zeros(40, dtype=np.int64))
        times[reservoir.kept([0])[0][:, 0].astype(int)] += 1
    assert times.sum() == 8 * 1000
    assert chisquare(times).pvalue > 1e-3


def test_weighted_means_are_unbiased() -> None:
    features, cells = stream(200, 5)
    found = []
    for seed in range(1500):
        reservoir = Reservoir(6, seed)
        reservoir.add(features, cells)
        rows, _, weight = reservoir.kept(range(CELLS))
        found.append(weight @ rows / weight.sum())
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - features.mean(axis=0)) < 4 * error).all()


@pytest.mark.parametrize("sparse", [False, True])
def test_memory_does_not_grow_with_the_stream(sparse: bool) -> None:
    features, cells = stream(1000, 2)
    rows = csr_matrix(features) if sparse else features
    reservoir = Reservoir(20, 0)
    sizes = []
    for _ in range(6):
        reservoir.add(rows, cells)
        sizes.append(len(pickle.dumps(reservoir)))
    assert max(sizes[1:]) < 1.05 * sizes[0]


def test_sparse_and_dense_rows_may_follow_one_another() -> None:
    features, cells = stream(60, 4)
    expected = Reservoir(5, 1)
    expected.add(features, cells)
    for kinds in ((np.asarray, csr_matrix), (csr_matrix, np.asarray)):
        mixed = Reservoir(5, 1)
        for kind, part in zip(kinds, (slice(0, 30), slice(30, 60)), strict=True):
            mixed.add(kind(features[part]), cells[part])
        mixed_row = Reservoir(5, 1)
        mixed_row.add(kinds[0](features[:59]), cells[:59])
        mixed_row.add_row(features[59:], int(cells[59]))
        for other in (mixed, mixed_row):
            for a, b in zip(kept(expected), kept(other), strict=True):
                np.testing.assert_array_equal(a, b)


def test_it_goes_on_as_it_was_after_pickling() -> None:
    features, cells = stream(300, 6)
    straight, halted = Reservoir(5, 2), Reservoir(5, 2)
    straight.add(features, cells)
    halted.add(features[:100], cells[:100])
    halted = pickle.loads(pickle.dumps(halted))
    halted.add(features[100:], cells[100:])
    for a, b in zip(kept(straight), kept(halted), strict=True):
        np.testing.assert_array_equal(a, b)
