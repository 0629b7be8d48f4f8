"""The metrics of the paper's appendix, subset by subset, and the true gap against every pair."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minmaxcon.errors import DataError, InvalidInput, UnknownName
from minmaxcon_problems.fair_auc.metrics import (
    METRICS,
    FairnessMetric,
    PredicateSubset,
    Subset,
    resolve_metric,
    true_gap,
    true_gap_with_interval,
)

# The examples of appendix A, as the set of (label, group) in G1, G1', G2 and G2'.
POSITIVE, NEGATIVE = {(1, 1), (1, -1)}, {(-1, 1), (-1, -1)}
EVERYONE = POSITIVE | NEGATIVE
PAPER: dict[str, list[set[tuple[int, int]]]] = {
    "group": [{(1, 1), (-1, 1)}, {(1, -1), (-1, -1)}, EVERYONE, EVERYONE],
    "inter_group": [{(1, 1)}, {(-1, -1)}, {(1, -1)}, {(-1, 1)}],
    "intra_group": [{(1, 1)}, {(-1, 1)}, {(1, -1)}, {(-1, -1)}],
    "positive_equality_gap": [{(1, 1)}, POSITIVE, EVERYONE, EVERYONE],
    "negative_equality_gap": [{(-1, 1)}, NEGATIVE, EVERYONE, EVERYONE],
    "bpsn_bnsp": [POSITIVE, {(-1, 1)}, {(1, 1)}, NEGATIVE],
}

LABEL = np.array([1, 1, 1, -1, -1, -1, 1, -1])
GROUP = np.array([1, -1, -1, 1, -1, -1, 1, 1])


def every_pair(a: Any, b: Any) -> float:
    return sum((x > y) + 0.5 * (x == y) for x in a for y in b) / (len(a) * len(b))


def test_the_table_has_the_metrics_of_the_paper() -> None:
    assert list(METRICS) == list(PAPER)
    assert all(name == metric.name and metric.description for name, metric in METRICS.items())


@pytest.mark.parametrize("name", PAPER)
def test_masks_follow_the_appendix(name: str) -> None:
    masks = METRICS[name].masks(LABEL, GROUP)
    assert masks.dtype == np.bool_
    expected = [[(z, g) in inside for inside in PAPER[name]] for z, g in zip(LABEL, GROUP, strict=True)]
    np.testing.assert_array_equal(masks, expected)


@pytest.mark.parametrize("name", PAPER)
@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_true_gap_counts_every_pair(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    label, group = np.append(LABEL, rng.choice([-1, 1], 9)), np.append(GROUP, rng.choice([-1, 1], 9))
    scores = rng.integers(0, 5, (2, label.size)) / 4
    expected = []
    for run in scores:
        sets = [[h for h, z, g in zip(run, label, group, strict=True) if (z, g) in inside] for inside in PAPER[name]]
        expected.append(abs(every_pair(*sets[:2]) - every_pair(*sets[2:])))
    np.testing.assert_allclose(true_gap(scores, label, group, name), expected, atol=1e-15)
    estimate = true_gap_with_interval(scores[0], label, group, name)
    assert estimate.value == pytest.approx(expected[0], abs=1e-15)
    assert estimate.counts == tuple(METRICS[name].masks(label, group).sum(axis=0))


@pytest.mark.parametrize("name", ["group", "positive_equality_gap", "negative_equality_gap"])
def test_everyone_against_everyone_is_one_half(name: str) -> None:
    # So that a constant score has no gap at all, under any metric.
    assert true_gap(np.zeros(8), LABEL, GROUP, name) == 0.0
    scores = np.array([3.0, 1, 1, 3, 1, 1, 3, 3])
    masks = METRICS[name].masks(LABEL, GROUP)
    assert true_gap(scores, LABEL, GROUP, name) == abs(every_pair(scores[masks[:, 0]], scores[masks[:, 1]]) - 0.5)


def test_a_predicted_group_has_the_largest_group_gap() -> None:
    # The surrogate hardly sees scores this small; the true gap does.
    assert true_gap(1e-3 * GROUP, LABEL, GROUP, "group") == 0.5


@pytest.mark.parametrize(
    "subsets",
    [
        (Subset(1, 1), Subset(-1, 1), Subset(1, -1), Subset(-1, -1)),
        [(1, 1), (-1, 1), (1, -1), (-1, -1)],
        tuple((lambda z, g, a=a, b=b: (z == a) & (g == b)) for a, b in ((1, 1), (-1, 1), (1, -1), (-1, -1))),
        [(1, 1), Subset(-1, 1), lambda z, g: z > g, PredicateSubset(lambda z, g: z + g == -2)],
        METRICS["intra_group"],
        "intra_group",
    ],
)
def test_any_four_subsets_may_be_given(subsets: Any) -> None:
    metric = resolve_metric(subsets)
    np.testing.assert_array_equal(metric.masks(LABEL, GROUP), METRICS["intra_group"].masks(LABEL, GROUP))
    scores = np.random.default_rng(0).normal(size=8)
    assert true_gap(scores, LABEL, GROUP, subsets) == true_gap(scores, LABEL, GROUP, "intra_group")


def test_subsets_and_metrics_read_well() -> None:
    assert str(Subset()) == "everyone"
    assert str(Subset(label=-1)) == "negative"
    assert str(Subset(group=1)) == "protected"
    assert str(Subset(1, -1)) == "positive & unprotected"
    assert str(METRICS["group"]) == "group: |AUC(protected; unprotected) - AUC(everyone; everyone)|"

    def elderly(label: Any, group: Any) -> Any:
        return (group == 1) & (label != 0)

    assert str(PredicateSubset(elderly)) == "elderly"
    for metric in METRICS.values():
        assert pickle.loads(pickle.dumps(metric)) == copy.deepcopy(metric) == metric


def test_an_empty_subset_is_named_in_the_data_and_undefined_in_a_test() -> None:
    label, group = np.array([1, 1, -1]), np.array([1, -1, -1])
    metric = METRICS["intra_group"]
    with pytest.raises(DataError) as caught:
        metric.require_members(metric.masks(label, group), "rows.csv")
    message = str(caught.value)
    assert "\n" not in message
    for words in ("rows.csv", "negative & protected", "intra_group", "G1 = positive & protected: 1", "G1' = "):
        assert words in message
    metric.require_members(metric.masks(LABEL, GROUP), "rows.csv")
    assert math.isnan(true_gap(np.arange(3.0), label, group, metric))
    assert true_gap_with_interval(np.arange(3.0), label, group, metric).reason == "G1' is empty"


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: resolve_metric("intergroup"), UnknownName, ("metric='intergroup'", "did you mean 'inter_group'")),
        (lambda: resolve_metric("zzz"), UnknownName, ("zzz", *PAPER)),
        (lambda: resolve_metric([(1, 1)] * 3), InvalidInput, ("metric", "four subsets")),
        (lambda: resolve_metric([(1, 1)] * 3 + [7]), InvalidInput, ("metric=7", "pair (label, group)")),
        (lambda: resolve_metric([(1, 2)] * 4), InvalidInput, ("group=2", "1, -1 or None")),
        (lambda: Subset(label=0), InvalidInput, ("label=0",)),
        (lambda: METRICS["group"].masks([1, 0], [1, -1]), InvalidInput, ("label=0", "row 2")),
        (lambda: METRICS["group"].masks([1, -1], [1, 2]), InvalidInput, ("group=2", "row 2")),
        (lambda: METRICS["group"].masks([1, -1], [1]), InvalidInput, ("group", "(1,)", "(2,)")),
        (lambda: METRICS["group"].masks([[1, -1]], [[1, -1]]), InvalidInput, ("label", "(1, 2)", "(n,)")),
        (
            lambda: resolve_metric([lambda z, g: z * g] * 4).masks(LABEL, GROUP),
            InvalidInput,
            ("<lambda>", "int64", "boolean"),
        ),
        (lambda: true_gap([1.0, math.nan], [1, -1], [1, -1], "group"), InvalidInput, ("scores", "row 2")),
    ],
)
def test_bad_input_is_one_line(call: Any, error: type[Exception], words: tuple[str, ...]) -> None:
    with pytest.raises(error) as caught:
        call()
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_a_metric_of_ones_own_keeps_its_name() -> None:
    metric = FairnessMetric("mine", METRICS["group"].subsets)
    assert resolve_metric(metric) is metric
