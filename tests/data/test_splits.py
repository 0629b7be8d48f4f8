"""Splits partition the rows and keep strata; standardising folds back into raw units."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array
from sklearn.preprocessing import StandardScaler

from minmaxcon.data.splits import Standardizer, split_indices, stratified_split_indices
from minmaxcon.errors import InvalidInput

seeds = st.integers(0, 2**32 - 1)
all_fractions = st.sampled_from([(1.0,), (0.7, 0.3), (0.6, 0.2, 0.2), (0.1,) * 10, (1 / 3,) * 3])


@given(st.integers(10, 300), all_fractions, seeds)
def test_a_split_is_a_partition(n: int, fractions: tuple[float, ...], seed: int) -> None:
    parts = split_indices(n, fractions, seed)
    assert sorted(np.concatenate(parts)) == list(range(n))
    for part, fraction in zip(parts, fractions, strict=True):
        assert abs(len(part) - fraction * n) < 1.0
    np.testing.assert_array_equal(np.concatenate(parts), np.concatenate(split_indices(n, fractions, seed)))


def test_the_split_of_the_paper_is_the_permutation_cut() -> None:
    n = 41188
    order = np.random.default_rng(7).permutation(n)
    train, validation, test = split_indices(n, (0.6, 0.2, 0.2), 7)
    np.testing.assert_array_equal(train, order[: int(0.6 * n)])
    np.testing.assert_array_equal(validation, order[int(0.6 * n) : int(0.8 * n)])
    np.testing.assert_array_equal(test, order[int(0.8 * n) :])
    assert not np.array_equal(train, split_indices(n, (0.6, 0.2, 0.2), 8)[0])


@given(st.lists(st.integers(0, 60), min_size=1, max_size=5), all_fractions, seeds)
def test_every_part_has_its_share_of_every_stratum(sizes: list[int], fractions: tuple[float, ...], seed: int) -> None:
    strata = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    parts = stratified_split_indices(strata, fractions, seed)
    assert sorted(np.concatenate(parts)) == list(range(strata.size))
    for stratum, size in enumerate(sizes):
        counts = [int((strata[part] == stratum).sum()) for part in parts]
        if size >= len(fractions):
            assert min(counts) >= 1
        if size >= 2 * len(fractions) * len(fractions):
            assert np.abs(np.array(counts) - np.array(fractions) * size).max() < 1.0


@pytest.mark.parametrize("size, counts", [(2, [2, 0, 0]), (3, [1, 1, 1]), (5, [3, 1, 1]), (40, [36, 2, 2])])
def test_no_part_of_a_stratum_is_empty_that_has_a_row_for_each(size: int, counts: list[int]) -> None:
    parts = stratified_split_indices(np.repeat([0, 1], [size, 100]), (0.9, 0.05, 0.05), 0)
    assert [int((part < size).sum()) for part in parts] == counts


def test_strata_may_have_several_columns() -> None:
    rng = np.random.default_rng(0)
    label, group = rng.choice([-1, 1], 200), rng.choice([-1, 1], 200)
    parts = stratified_split_indices(np.stack([label, group], axis=1), (0.7, 0.3), 3)
    joint = stratified_split_indices(2 * label + group, (0.7, 0.3), 3)
    for part, other in zip(parts, joint, strict=True):
        np.testing.assert_array_equal(part, other)
    assert not np.array_equal(parts[0], stratified_split_indices(2 * label + group, (0.7, 0.3), 4)[0])


@pytest.mark.parametrize("seed", [-1, "one", 0.5])
def test_bad_seeds_are_refused(seed: Any) -> None:
    for split in (lambda: split_indices(9, (0.5, 0.5), seed), lambda: stratified_split_indices([0] * 9, (1.0,), seed)):
        with pytest.raises(InvalidInput, match="seed"):
            split()


BAD_FRACTIONS = [(), (0.5, 0.6), (1.2, -0.2), (0.0, 1.0), (float("nan"), 1.0), ("0.7", "0.3"), (True,), 1.0, None]


@pytest.mark.parametrize("fractions", BAD_FRACTIONS)
def test_bad_fractions_are_refused(fractions: Any) -> None:
    with pytest.raises(InvalidInput, match=r"fractions=.*sum to 1"):
        split_indices(10, fractions, 0)
    with pytest.raises(InvalidInput, match=r"fractions=.*sum to 1"):
        stratified_split_indices(np.zeros(10), fractions, 0)


def test_bad_numbers_of_rows_are_refused() -> None:
    n: Any
    for n in ("10", 2.5, -1, None):
        with pytest.raises(InvalidInput, match="n="):
            split_indices(n, (0.5, 0.5), 0)
    with pytest.raises(InvalidInput, match=r"n=2.*part empty"):
        split_indices(2, (0.1, 0.9), 0)


@given(seeds, st.integers(1, 40), st.integers(1, 6))
def test_standardizer_equals_scikit_learn(seed: int, n: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, d) + rng.normal(size=d)
    features[:, 0] = 0.1
    ours, theirs = Standardizer.fit(features), StandardScaler().fit(features)
    np.testing.assert_allclose(ours.transform(features), theirs.transform(features), rtol=1e-9, atol=1e-9)
    assert ours.scale[0] == 1.0
    np.testing.assert_array_equal(ours.transform(features)[:, 0], 0.0)


@given(seeds, st.integers(2, 30), st.integers(1, 6))
def test_sparse_features_are_scaled_but_not_centred(seed: int, n: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    dense = random_array((n, d), density=0.4, rng=rng).toarray()
    dense[:, 0] = 3.3
    sparse = csr_array(dense)
    scaler = Standardizer.fit(sparse)
    deviation = dense.std(axis=0)
    np.testing.assert_allclose(scaler.scale[1:], np.where(deviation == 0, 1.0, deviation)[1:], rtol=1e-10)
    assert scaler.scale[0] == 1.0
    assert not scaler.mean.any()
    scaled = scaler.transform(sparse)
    assert scaled.format == "csr"
    assert scaled.nnz == sparse.nnz
    np.testing.assert_allclose(scaled.toarray(), dense / scaler.scale, rtol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_a_feature_that_is_constant_up_to_rounding_is_not_blown_up(kind: Any) -> None:
    """Shares that add up to 1: their sums differ in the last bit, and no weight may grow to 1e15 by that."""
    shares = np.random.default_rng(0).dirichlet(np.ones(7), 500)
    raw = np.column_stack([shares.sum(axis=1), 1e5 * shares.sum(axis=1), shares[:, 0]])
    assert raw[:, 0].std() > 0, "the case must differ by rounding"
    scaler = Standardizer.fit(kind(raw))
    np.testing.assert_array_equal(scaler.scale[:2], 1.0)
    assert scaler.scale[2] == pytest.approx(shares[:, 0].std())
    if kind is np.asarray:
        assert np.abs(scaler.transform(raw)[:, :2]).max() < 1e-9


@pytest.mark.parametrize("runs", [(), (3,)])
@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_folding_scores_raw_rows_alike(runs: tuple[int, ...], kind: Any) -> None:
    rng = np.random.default_rng(11)
    raw = rng.normal(5.0, 3.0, (50, 4)) * [1, 10, 100, 0]
    weight = rng.normal(size=(*runs, 4))
    features = kind(raw)
    scaler = Standardizer.fit(features)
    standardized = scaler.transform(features)
    folded, offset = scaler.fold(weight)
    assert folded.shape == weight.shape
    np.testing.assert_allclose(
        (standardized @ weight.T).T, (raw @ folded.T).T + np.asarray(offset)[..., None], rtol=1e-10, atol=1e-10
    )


def test_standardizer_learns_from_its_rows_only() -> None:
    rng = np.random.default_rng(12)
    train, test = rng.normal(size=(30, 2)), rng.normal(9.0, 5.0, (30, 2))
    scaler = Standardizer.fit(train)
    np.testing.assert_allclose(scaler.transform(test), (test - train.mean(axis=0)) / train.std(axis=0), rtol=1e-12)
    other = copy.deepcopy(scaler)
    np.testing.assert_array_equal(other.scale, scaler.scale)


@pytest.mark.parametrize("huge", [1e300, float("nan"), float("inf")])
def test_features_without_a_finite_variance_are_refused(huge: float) -> None:
    features = np.array([[1.0, huge], [2.0, -huge], [3.0, 0.0]])
    with pytest.raises(InvalidInput, match="column 2"):
        Standardizer.fit(features)
    with pytest.raises(InvalidInput, match="column 2"):
        Standardizer.fit(csr_array(features))
    features[1, 1] = 0.0
    for kind in (np.asarray, csr_array):
        with pytest.raises(InvalidInput, match=r"row 1 of the training part, column 2 \('income'\)"):
            Standardizer.fit(kind(features), ("age", "income"))


def test_shapes_are_checked() -> None:
    scaler = Standardizer.fit(np.array([[1.0, 2.0], [2.0, 5.0]]))
    with pytest.raises(InvalidInput, match=r"\(1, 3\).*2 columns"):
        scaler.transform(np.zeros((1, 3)))
    with pytest.raises(InvalidInput, match="toarray"):
        scaler.transform(csr_array((1, 2)))
    with pytest.raises(InvalidInput, match="no rows"):
        Standardizer.fit(np.zeros((0, 2)))
