"""AUC of weighted samples: against weighted pairs, scikit-learn and copies; what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from minmaxcon.errors import InvalidInput
from minmaxcon.metrics import auc, auc_gap

Array = Any

tied = st.lists(st.sampled_from([-1.5, -0.0, 0.0, 0.25, 3.0]), min_size=1, max_size=12)
free = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12)
seeds = st.integers(0, 2**32 - 1)


def every_pair(a: Array, b: Array, weight_a: Array, weight_b: Array, tie: float = 0.5) -> float:
    won = sum(
        u * v * ((x > y) + tie * (x == y))
        for x, u in zip(a, weight_a, strict=True)
        for y, v in zip(b, weight_b, strict=True)
    )
    return float(won / (np.sum(weight_a) * np.sum(weight_b)))


def weights_for(seed: int, *sizes: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [10.0 ** rng.uniform(-3, 3, size=size) for size in sizes]


@given(st.one_of(tied, free), st.one_of(tied, free), seeds)
def test_a_pair_counts_the_product_of_its_weights(a: list[float], b: list[float], seed: int) -> None:
    u, v = weights_for(seed, len(a), len(b))
    assert auc(a, b, weights=(u, v)) == pytest.approx(every_pair(a, b, u, v), abs=1e-12)
    assert auc(a, b, ties="strict", weights=(u, v)) == pytest.approx(every_pair(a, b, u, v, tie=0.0), abs=1e-12)
    assert auc(a, b, weights=(u, v)) + auc(b, a, weights=(v, u)) == pytest.approx(1.0, abs=1e-12)


@given(st.one_of(tied, free), st.one_of(tied, free), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_equal_weights_give_the_unweighted_bits(a: list[float], b: list[float], one: float, other: float) -> None:
    """Each set may have a weight of its own."""
    weights = np.full(len(a), one), np.full(len(b), other)
    assert auc(a, b, weights=weights) == auc(a, b)
    assert auc(a, b, ties="strict", weights=weights) == auc(a, b, ties="strict")


@pytest.mark.parametrize("levels", [2, 7, 10**6])
def test_scikit_learn(levels: int) -> None:
    rng = np.random.default_rng(levels)
    scores, label = rng.integers(0, levels, 2000).astype(float), rng.random(2000) < 0.3
    (weight,) = weights_for(levels, 2000)
    found = auc(scores[label], scores[~label], weights=(weight[label], weight[~label]))
    assert found == pytest.approx(roc_auc_score(label, scores, sample_weight=weight), abs=1e-10)


@given(tied, tied, seeds)
def test_whole_numbers_stand_for_copies(a: list[float], b: list[float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    u, v = rng.integers(1, 5, len(a)), rng.integers(1, 5, len(b))
    assert auc(a, b, weights=(u, v)) == pytest.approx(auc(np.repeat(a, u), np.repeat(b, v)), abs=1e-13)


def test_only_ratios_of_weights_count() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=40), rng.normal(size=30)
    u, v = weights_for(1, 40, 30)
    assert auc(a, b, weights=(1e3 * u, 1e-3 * v)) == pytest.approx(auc(a, b, weights=(u, v)), rel=1e-13)


def test_the_run_axis() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 20)), rng.normal(size=(3, 10))
    u, v = weights_for(2, 20, 10)
    found = auc(a, b, weights=(u, v))
    assert found.shape == (3,)
    assert found.tolist() == [auc(x, y, weights=(u, v)) for x, y in zip(a, b, strict=True)]


def test_an_empty_set_gives_nan() -> None:
    assert math.isnan(auc([], [1.0, 2.0], weights=([], [1.0, 2.0])))
    assert math.isnan(auc([1.0, 2.0], [], weights=([1.0, 2.0], [])))


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, 1e-300, 1e300])
@pytest.mark.parametrize("side", [0, 1])
def test_weights_must_be_positive_and_finite(bad: float, side: int) -> None:
    weights = (np.ones(3), np.ones(2))
    weights[side][1] = bad
    with pytest.raises(InvalidInput, match=r"weights=.*positive and finite, one for each of"):
        auc([1.0, 2.0, 3.0], [0.0, 1.0], weights=weights)


@pytest.mark.parametrize(
    "weights",
    [
        (np.ones(2), np.ones(2)),
        (np.ones(3), np.ones((2, 1))),
        (np.ones(3), 1.0),
        (np.ones(3), None),
        (["a", "b", "c"], np.ones(2)),
        (["1", "2", "3"], np.ones(2)),
        ([True, True, True], np.ones(2)),
        (np.ones(3),),
        np.ones(3),
        2.0,
        "heavy",
    ],
)
def test_weights_of_another_kind_or_number(weights: Any) -> None:
    with pytest.raises(InvalidInput, match="weights="):
        auc([1.0, 2.0, 3.0], [0.0, 1.0], weights=weights)


@pytest.mark.parametrize(
    "row_weight",
    [[1.0, 2.0], [1.0, 0.0, 2.0], [1.0, -1.0, 2.0], [[1.0, 1.0, 2.0]], 2.0, [1e200, 2e200, 1e200], [1.0, 1e-200, 2.0]],
)
def test_weights_of_rows_are_positive_and_one_for_each(row_weight: Any) -> None:
    masks = np.array([True, False, False]), np.array([False, True, True])
    with pytest.raises(InvalidInput, match=r"row_weight=.*positive and finite, one for each of 3 rows; leave out rows"):
        auc_gap([1.0, 2.0, 3.0], masks, masks[::-1], row_weight=row_weight)
