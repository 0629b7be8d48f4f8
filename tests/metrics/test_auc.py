"""AUC and gaps against every pair, scikit-learn and the bootstrap; intervals against their definition."""

from __future__ import annotations

import copy
import json
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import beta, norm
from sklearn.metrics import roc_auc_score

from minmaxcon.errors import InvalidInput
from minmaxcon.metrics import AUCEstimate, AUCStatistic, auc, auc_gap, auc_gap_with_interval, auc_with_interval

# Few different values, so that ties abound.
tied_scores = arrays(np.float64, st.integers(1, 12), elements=st.sampled_from([-1.5, -0.0, 0.0, 0.25, 3.0]))
free_scores = arrays(np.float64, st.integers(1, 12), elements=st.floats(-1e300, 1e300))
seeds = st.integers(0, 2**32 - 1)


def every_pair(a: Any, b: Any, tie: float = 0.5) -> float:
    """Count wins and ties one pair at a time."""
    return sum((x > y) + tie * (x == y) for x in a for y in b) / (len(a) * len(b))


@given(st.one_of(tied_scores, free_scores), st.one_of(tied_scores, free_scores))
def test_auc_counts_every_pair(a: Any, b: Any) -> None:
    assert auc(a, b) == pytest.approx(every_pair(a, b), abs=1e-15)
    assert auc(a, b, ties="strict") == pytest.approx(every_pair(a, b, tie=0.0), abs=1e-15)


@given(st.one_of(tied_scores, free_scores), st.one_of(tied_scores, free_scores))
def test_auc_laws(a: Any, b: Any) -> None:
    assert auc(a, b) + auc(b, a) == pytest.approx(1.0, abs=1e-15)
    assert auc(a, a) == 0.5
    # Ranks are all that counts.
    ranks = np.unique(np.concatenate([a, b]), return_inverse=True)[1]
    assert auc(ranks[: a.size], ranks[a.size :]) == auc(a, b)


@pytest.mark.parametrize("levels", [2, 7, 1000])
def test_auc_equals_scikit_learn_under_ties(levels: int) -> None:
    rng = np.random.default_rng(levels)
    scores, label = rng.integers(0, levels, 3000).astype(float), rng.random(3000) < 0.3
    assert auc(scores[label], scores[~label]) == pytest.approx(roc_auc_score(label, scores), abs=1e-12)


def test_saturated_scores_are_one_half() -> None:
    assert auc(np.zeros(5), np.zeros(7)) == 0.5
    assert auc(np.zeros(5), np.zeros(7), ties="strict") == 0.0


def test_auc_of_an_empty_set_is_nan() -> None:
    assert math.isnan(auc([], [1.0]))
    assert math.isnan(auc([1.0], []))


def test_a_million_scores_are_exact_integers() -> None:
    n = 10**6
    # Each of the first set loses to as many of the second as stand above it: (n - 1) / 2n in all, ties one half.
    assert auc(np.arange(n), np.arange(n)) == 0.5
    assert auc(np.arange(n) + 0.5, np.arange(n)) == (n * (n + 1) // 2) / n**2


def test_run_axis_equals_one_run_at_a_time() -> None:
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 9, (4, 60)).astype(np.float32)
    masks = rng.random((4, 60)) < 0.5
    areas = auc(scores[:, masks[0]], scores[:, masks[1]])
    gaps = auc_gap(scores, (masks[0], masks[1]), (masks[2], masks[3]))
    assert areas.shape == gaps.shape == (4,)
    for run in range(4):
        assert areas[run] == auc(scores[run, masks[0]], scores[run, masks[1]])
        assert gaps[run] == auc_gap(scores[run], (masks[0], masks[1]), (masks[2], masks[3]))


def test_torch_scores_need_no_conversion() -> None:
    torch = pytest.importorskip("torch")
    a, b = torch.tensor([2.0, 3.0], requires_grad=True), torch.tensor([1.0, 2.0])
    assert auc(a, b) == 0.875


@given(tied_scores.filter(lambda s: s.size >= 4), seeds)
def test_gap_equals_pairs_for_overlapping_sets(scores: Any, seed: int) -> None:
    masks = np.random.default_rng(seed).random((4, scores.size)) < 0.7
    masks[:, 0] = True
    expected = abs(every_pair(scores[masks[0]], scores[masks[1]]) - every_pair(scores[masks[2]], scores[masks[3]]))
    estimate = auc_gap_with_interval(scores, (masks[0], masks[1]), (masks[2], masks[3]))
    assert auc_gap(scores, (masks[0], masks[1]), (masks[2], masks[3])) == pytest.approx(expected, abs=1e-15)
    assert estimate.value == pytest.approx(expected, abs=1e-15)
    assert estimate.counts == tuple(masks.sum(axis=1))
    if not estimate.reason:
        assert 0.0 <= estimate.lower <= estimate.value + 1e-15
        assert estimate.value <= estimate.upper + 1e-15 <= 1.0 + 1e-15


def delong_by_definition(a: Any, b: Any) -> float:
    """Return the standard error with the structural components written out."""
    kernel = (a[:, None] > b[None, :]) + 0.5 * (a[:, None] == b[None, :])
    return float(np.sqrt(kernel.mean(axis=1).var(ddof=1) / len(a) + kernel.mean(axis=0).var(ddof=1) / len(b)))


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_interval_follows_its_definition(confidence: float) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.7, 1, 40).round(1), rng.normal(0, 1, 55).round(1)
    estimate = auc_with_interval(a, b, confidence)
    assert estimate.standard_error == pytest.approx(delong_by_definition(a, b), rel=1e-12)
    quantile = {0.5: 0.6744897501960817, 0.9: 1.6448536269514722, 0.99: 2.5758293035489004}[confidence]
    value, variance = estimate.value, shrunk_variance(a, b)
    for end in (estimate.lower, estimate.upper):
        scaled = variance * end * (1.0 - end) / (value * (1.0 - value))
        assert abs(value - end) == pytest.approx(quantile * math.sqrt(scaled), rel=1e-9)
    assert "Wilson" in estimate.method


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("shift", [0.7, 1.5, 2.5])
def test_the_end_near_an_edge_is_that_of_few_errors(shift: float, confidence: float) -> None:
    """Clopper and Pearson's at twice the tail where it is further than Wilson's, near 0 as near 1."""
    rng = np.random.default_rng(2)
    a, b = rng.normal(shift, 1, 8), rng.normal(0, 1, 9)
    found, turned = auc_with_interval(a, b, confidence), auc_with_interval(b, a, confidence)
    assert (turned.lower, turned.upper) == pytest.approx((1.0 - found.upper, 1.0 - found.lower), abs=1e-12)
    value = found.value
    assert 0.5 < value < 1.0
    observations = value * (1.0 - value) / shrunk_variance(a, b)
    few = beta.isf(1.0 - confidence, value * observations + 1.0, (1.0 - value) * observations)
    w = norm.isf(0.5 - 0.5 * confidence) ** 2 / observations
    half = math.sqrt(w * value * (1.0 - value) + 0.25 * w * w)
    wilson = (value + 0.5 * w + half) / (1.0 + w)
    assert (1.0 - value) * observations < 10.0
    assert found.upper == pytest.approx(max(wilson, few), rel=1e-9)
    assert few > wilson or confidence < 0.95 or shift < 1.0


def shrunk_variance(a: Any, b: Any) -> float:
    """Return DeLong's variance, each part of it shrunk to three quarters of the largest, which counts for two."""
    kernel = (a[:, None] > b[None, :]) + 0.5 * (a[:, None] == b[None, :])
    total, value = 0.0, float(kernel.mean())
    for axis, n in ((1, len(a)), (0, len(b))):
        apart = kernel.mean(axis=axis) - value
        known = (apart @ apart) ** 2 / np.sum(apart**4) * (n - 1) / n
        total += (known * apart.var(ddof=1) + 2 * 0.75 * value * (1 - value)) / (known + 2) / n
    return total


def test_large_sets_have_delongs_interval() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.7, 1, 40_000), rng.normal(0, 1, 50_000)
    estimate = auc_with_interval(a, b)
    assert estimate.upper - estimate.lower == pytest.approx(2 * 1.96 * estimate.standard_error, rel=1e-3)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_separated_sets_are_not_certain(value: float) -> None:
    a, b = np.arange(3.0), np.arange(3.0) + 10
    estimate = auc_with_interval(b, a) if value else auc_with_interval(a, b)
    assert estimate.value == value
    assert estimate.standard_error == 0.0
    assert estimate.upper - estimate.lower > 0.5
    apart = auc_gap_with_interval(np.r_[a, b, a, b], *separated_pairs())
    assert apart.value == 0.0
    assert apart.upper > 0.5


def separated_pairs() -> tuple[Any, Any]:
    cell = np.repeat(np.arange(4), 3)
    return (cell == 1, cell == 0), (cell == 3, cell == 2)


def test_a_set_within_another_has_the_interval_of_its_own_rows_against_the_rest() -> None:
    rng = np.random.default_rng(3)
    scores, inside = rng.normal(size=60), np.arange(60) < 15
    everyone = np.ones(60, dtype=bool)
    whole, part = (AUCStatistic.of(scores, inside, other).estimate() for other in (everyone, ~inside))
    for name in ("value", "lower", "upper"):
        # how many rows are inside is a matter of chance too, which adds a little
        assert getattr(whole, name) == pytest.approx(0.5 * 0.25 + 0.75 * getattr(part, name), abs=5e-3)
    against_itself = AUCStatistic.of(scores, inside, inside).estimate()
    assert (against_itself.value, against_itself.lower, against_itself.upper) == (0.5, 0.5, 0.5)


def test_weights_add_no_chance_of_their_own() -> None:
    """Of scores that are all alike, or apart, the components are alike up to rounding, which is no spread."""
    rng = np.random.default_rng(1)
    label = np.arange(40) < 15
    for _ in range(20):
        weight = rng.uniform(0.5, 2.0, 40)
        weight[label] *= 15 / weight[label].sum()
        weight[~label] *= 25 / weight[~label].sum()
        for scores in (np.zeros(40), label.astype(float)):
            found = AUCStatistic.of(scores, label, ~label, weight)
            assert not found.share.any()
            assert found.value == pytest.approx(auc(scores[label], scores[~label]), abs=1e-14)


def test_a_p_value_is_where_the_interval_ends_at_0() -> None:
    rng = np.random.default_rng(11)
    label = rng.random(80) < 0.5
    one, other = (AUCStatistic.of(rng.normal(size=80) + s * label, label, ~label) for s in (1.5, 0.5))
    found = (one - other).estimate()
    assert 0.0 < found.p_value < 0.05
    assert found.lower > 0.0
    edge = (one - other).estimate(1.0 - found.p_value)
    assert edge.lower == pytest.approx(0.0, abs=1e-9)
    assert (other - one).estimate().p_value == pytest.approx(found.p_value, rel=1e-9)
    assert (one - one).estimate().p_value == 1.0


def test_interval_of_a_gap_against_one_half_is_that_of_the_auc() -> None:
    rng = np.random.default_rng(2)
    group, scores = rng.random(300) < 0.4, rng.normal(size=300)
    everyone = np.ones(300, dtype=bool)
    gap = auc_gap_with_interval(scores + group, (group, ~group), (everyone, everyone))
    area = auc_with_interval((scores + group)[group], (scores + group)[~group])
    assert gap.standard_error == pytest.approx(area.standard_error, rel=1e-12)
    assert gap.lower == pytest.approx(area.lower - 0.5, rel=1e-12)
    # Everyone against everyone is one half, without error.
    constant = auc_gap_with_interval(scores, (everyone, everyone), (everyone, everyone))
    assert constant.standard_error == pytest.approx(0.0, abs=1e-15)


def test_gap_of_disjoint_pairs_adds_variances() -> None:
    rng = np.random.default_rng(4)
    scores, cell = rng.normal(size=400), rng.integers(0, 4, 400)
    first, second = ((cell == 0, cell == 1), (cell == 2, cell == 3))
    gap = auc_gap_with_interval(scores, first, second)
    errors = [delong_by_definition(scores[a], scores[b]) for a, b in (first, second)]
    assert gap.standard_error == pytest.approx(math.hypot(*errors), rel=1e-12)


def cells(seed: int, n: int) -> tuple[Any, Any, Any]:
    """Return scores that depend on both label and group, and these."""
    rng = np.random.default_rng(seed)
    label, group = rng.random(n) < 0.4, rng.random(n) < 0.35
    return (rng.normal(size=n) + label + 0.4 * group * label).round(2), label, group


def pairs_of(kind: str, label: Any, group: Any) -> tuple[Any, Any]:
    everyone = np.ones(label.size, dtype=bool)
    return {
        "disjoint": ((label & group, ~label & ~group), (label & ~group, ~label & group)),
        "shared members": ((label, ~label & group), (label & group, ~label)),
        "within one pair": ((label & group, label), (everyone, everyone)),
    }[kind]


@pytest.mark.parametrize("kind", ["disjoint", "shared members", "within one pair"])
def test_standard_error_of_a_gap_equals_the_bootstrap(kind: str) -> None:
    scores, label, group = cells(5, 600)
    estimate = auc_gap_with_interval(scores, *pairs_of(kind, label, group))
    rng = np.random.default_rng(6)
    signed = []
    for _ in range(600):
        rows = rng.integers(0, 600, 600)
        first, second = pairs_of(kind, label[rows], group[rows])
        again = scores[rows]
        signed.append(auc(again[first[0]], again[first[1]]) - auc(again[second[0]], again[second[1]]))
    # 600 resamples give the standard deviation within about 3 percent; 12 is four of these.
    assert estimate.standard_error == pytest.approx(np.std(signed), rel=0.12)


@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_that_are_sorted_together_are_those_alone(weighted: bool) -> None:
    scores, label, group = cells(12, 90)
    weight = np.random.default_rng(13).uniform(0.5, 2.0, 90) if weighted else None
    pairs = [
        pair for kind in ("disjoint", "shared members", "within one pair") for pair in pairs_of(kind, label, group)
    ]
    for found, (own, other) in zip(AUCStatistic.of_pairs(scores, pairs, weight), pairs, strict=True):
        alone = AUCStatistic.of(scores, own, other, weight)
        assert found.estimate() == alone.estimate()
        np.testing.assert_array_equal(found.share, alone.share)
        mass = np.ones(90) if weight is None else weight
        wins = np.greater.outer(scores, scores) + 0.5 * np.equal.outer(scores, scores)
        own_mass, other_mass = mass * own, mass * other
        assert found.value == pytest.approx(
            own_mass @ wins @ other_mass / (own_mass.sum() * other_mass.sum()), abs=1e-14
        )
        part = own_mass * (wins @ other_mass / other_mass.sum() - found.value) / own_mass.sum()
        size = own_mass.sum() ** 2 / (own_mass @ own_mass)
        alone_in = own & ~other
        expected = part * math.sqrt(size / (size - 1.0))
        assert found.share[alone_in] == pytest.approx(expected[alone_in], abs=1e-15)


def test_covariance_matters_where_sets_overlap() -> None:
    scores, label, group = cells(7, 600)
    first, second = pairs_of("shared members", label, group)
    apart = math.hypot(*(delong_by_definition(scores[a], scores[b]) for a, b in (first, second)))
    assert auc_gap_with_interval(scores, first, second).standard_error < 0.9 * apart


def test_intervals_of_gaps_cover() -> None:
    large, label, group = cells(8, 200_000)
    first, second = pairs_of("shared members", label, group)
    truth = auc_gap(large, first, second)
    rng = np.random.default_rng(9)
    covered = 0
    for _ in range(200):
        rows = rng.choice(large.size, 400, replace=False)
        pairs = pairs_of("shared members", label[rows], group[rows])
        estimate = auc_gap_with_interval(large[rows], *pairs, 0.9)
        covered += estimate.lower <= truth <= estimate.upper
    # Binomial(200, .9) is at least 167 with probability .9995.
    assert covered >= 167


def test_interval_is_folded_at_zero() -> None:
    rng = np.random.default_rng(10)
    scores, cell = rng.normal(size=80), np.arange(80) % 4
    first, second = ((cell == 0, cell == 1), (cell == 2, cell == 3))
    one, other = auc_gap_with_interval(scores, first, second), auc_gap_with_interval(scores, second, first)
    assert one == other
    signed = auc(scores[cell == 0], scores[cell == 1]) - auc(scores[cell == 2], scores[cell == 3])
    reach = 1.959963984540054 * one.standard_error
    assert abs(signed) < reach, "the case must straddle 0"
    assert one.lower == 0.0
    areas = [auc_with_interval(scores[cell == k], scores[cell == k + 1]) for k in (0, 2)]
    if signed < 0:
        areas.reverse()
    reach = math.hypot(areas[0].upper - areas[0].value, areas[1].value - areas[1].lower)
    back = math.hypot(areas[0].value - areas[0].lower, areas[1].upper - areas[1].value)
    assert one.upper == pytest.approx(max(abs(signed) + reach, back - abs(signed)), rel=1e-9)


def test_undefined_estimates_say_why() -> None:
    nothing = auc_with_interval([], [1.0, 2.0])
    assert not nothing.defined
    assert nothing.counts == (0, 2)
    assert nothing.reason == "scores_a is empty"
    assert "undefined" in str(nothing)
    single = auc_with_interval([1.0], [0.0, 2.0])
    assert single.value == 0.5
    assert math.isnan(single.lower)
    assert math.isnan(single.standard_error)
    assert single.reason == "scores_a has one member only"
    assert str(single) == "0.5000 (no interval: scores_a has one member only)"
    row = np.array([True, False, False])
    gap = auc_gap_with_interval(np.arange(3.0), (row, ~row), (row & ~row, ~row))
    assert math.isnan(gap.value)
    assert gap.counts == (1, 2, 0, 2)
    assert gap.reason == "G2 is empty"
    assert math.isnan(auc_gap(np.arange(3.0), (row, ~row), (row & ~row, ~row)))


def test_estimates_travel() -> None:
    estimate = auc_with_interval([1.0], [0.0, 2.0])
    assert json.loads(json.dumps(estimate.as_dict(), allow_nan=False))["lower"] is None
    other = AUCEstimate(0.5, 0.25, 0.75, 0.1, (3, 4))
    assert pickle.loads(pickle.dumps(other)) == copy.deepcopy(other) == other
    assert str(other) == "0.5000 [0.2500, 0.7500]"


MASK = np.array([True, False])


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: auc([1.0, math.nan], [0.0]), ("scores_a", "nan", "row 2")),
        (lambda: auc([1.0], [0.0, 0.0, math.inf]), ("scores_b", "inf", "row 3")),
        (lambda: auc([[1.0], [math.inf]], [[0.0], [0.0]]), ("scores_a", "row 1 of run 2")),
        (lambda: auc(["high"], [0.0]), ("scores_a", "real numbers")),
        (lambda: auc([1.0 + 2j], [0.0]), ("scores_a", "real numbers")),
        (lambda: auc(1.0, [0.0]), ("scores_a", "shape ()", "(n,)")),
        (lambda: auc([[1.0]], [0.0]), ("scores_b", "run axis")),
        (lambda: auc([[1.0], [2.0]], [[0.0]]), ("scores_b", "run axis")),
        (lambda: auc([1.0], [0.0], ties="most"), ("ties", "most", "half")),
        (lambda: auc_with_interval([[1.0]], [[0.0]]), ("scores_a", "(n,)")),
        (lambda: auc_with_interval([1.0], [0.0], 1.0), ("confidence", "1.0")),
        (lambda: auc_with_interval([1.0], [0.0], math.nan), ("confidence", "nan")),
        (lambda: auc_with_interval([1.0], [0.0], "0.9"), ("confidence", "'0.9'")),
        (lambda: auc_gap([1.0, math.nan], (MASK, ~MASK), (MASK, ~MASK)), ("scores", "row 2")),
        (lambda: auc_gap([1.0, 2.0], (MASK, [1, 0]), (MASK, MASK)), ("pair_1[1]", "boolean")),
        (lambda: auc_gap([1.0, 2.0], (MASK, MASK), (MASK[:1], MASK)), ("pair_2[0]", "(1,)", "(2,)")),
        (lambda: auc_gap_with_interval([1.0, 2.0], (MASK, MASK), (MASK, MASK), 0.0), ("confidence", "0.0")),
        (lambda: AUCStatistic.of_pairs([1.0, 2.0], [(MASK, MASK)] * 2 + [(MASK, [1, 0])]), ("pair_3[1]", "boolean")),
        (lambda: AUCStatistic.of_pairs([1.0, 2.0], (MASK, ~MASK)), ("pair_1[0]", "shape ()")),
        (lambda: AUCStatistic.of_pairs([1.0, 2.0], [(MASK, MASK)], names=()), ("names", "each of the 1 pairs")),
        (lambda: AUCStatistic.of([1.0, 2.0], MASK, [1, 0]), ("other", "boolean")),
        (lambda: auc_gap([1.0, 2.0], (MASK, MASK), None), ("pair_2", "None", "pair of boolean masks")),
        (lambda: auc_gap([1.0, 2.0], (MASK, MASK, MASK), (MASK, MASK)), ("pair_1", "pair of boolean masks")),
    ],
)
def test_bad_input_is_one_line(call: Any, words: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message
