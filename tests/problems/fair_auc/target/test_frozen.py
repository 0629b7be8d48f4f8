"""Frozen distributions against sums over all pairs and differences of exact forms; errors that would be seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minmaxcon_problems.fair_auc.target.followed import FrozenDistributions
from tests.cases import labelled
from tests.problems.fair_auc.by_pairs import DEFINITIONS, masks_of, plain_auc, sigmoid, smooth_auc

Array = Any

BANDWIDTH = 0.1


def drawn(metric: str = "inter_group", seed: int = 0, n: int = 300) -> tuple[Array, Array]:
    """Scores (2, n) of two runs, of different units, and masks (n, 4)."""
    rows = labelled(seed, n=n)
    w = np.random.default_rng(seed).normal(size=(2, 3)) * [[1.0], [40.0]]
    return w @ rows.features.T, masks_of(rows, metric)


def shares(masks: Array, weight: Array = 1.0) -> Array:
    """1_G / Pr(G)."""
    weighted = masks * np.reshape(weight, (-1, 1))
    return weighted / weighted.mean(axis=0)


def freeze(scores: Array, weights: Array, bins: int = 4096) -> FrozenDistributions:
    return FrozenDistributions.of(scores, weights, bandwidth=BANDWIDTH, bins=bins)


def exact_gap(scores: Array, masks: Array, beta: float) -> float:
    h = [scores[masks[:, g]] for g in range(4)]
    return smooth_auc(h[0], h[1], beta) - smooth_auc(h[2], h[3], beta)


def exact_slopes(scores: Array, masks: Array, beta: float) -> Array:
    """The derivative of the smoothed gap in every score, by hand."""
    slopes = np.zeros(scores.size)
    for (g, other), sign in (((0, 1), 1.0), ((2, 3), -1.0)):
        first, second = np.flatnonzero(masks[:, g]), np.flatnonzero(masks[:, other])
        won = sigmoid((scores[first][:, None] - scores[second][None, :]) / beta)
        density = won * (1.0 - won) / beta
        np.add.at(slopes, first, sign * density.mean(axis=1) / first.size)
        np.add.at(slopes, second, -sign * density.mean(axis=0) / second.size)
    return slopes


@pytest.mark.parametrize("metric", DEFINITIONS)
def test_value_and_slopes_at_the_proximal_point(metric: str) -> None:
    """Equal to the smoothed AUC gap over all pairs, to the accuracy of the grid; overlapping subsets too."""
    scores, masks = drawn(metric)
    frozen = freeze(scores, shares(masks))
    values, slopes = frozen.follow(scores, shares(masks))
    for r in range(2):
        beta = BANDWIDTH * scores[r].std()
        assert frozen.bandwidth[r] == pytest.approx(beta, rel=1e-12)
        assert values[r] == pytest.approx(exact_gap(scores[r], masks, beta), abs=1e-6)
        expected = exact_slopes(scores[r], masks, beta)
        assert slopes[r] == pytest.approx(expected, abs=1e-5 * np.abs(expected).max() + 1e-9)
        h = [scores[r][masks[:, g]] for g in range(4)]
        both = [smooth_auc(h[0], h[1], beta), smooth_auc(h[2], h[3], beta)]
        assert frozen.aucs[r] == pytest.approx(both, abs=1e-6)


def test_the_gradient_in_parameters() -> None:
    rows, metric = labelled(3, n=300), "intra_group"
    masks, w = masks_of(rows, metric), np.array([0.5, -0.3, 0.8])
    scores = rows.features @ w
    frozen = freeze(scores[None], shares(masks))
    beta = BANDWIDTH * scores.std()
    found = frozen.follow(scores[None], shares(masks))[1][0] @ rows.features
    step = 1e-5
    for j in range(3):
        ahead, behind = (rows.features @ (w + s * np.eye(3)[j]) for s in (step, -step))
        slope = (exact_gap(ahead, masks, beta) - exact_gap(behind, masks, beta)) / (2 * step)
        assert found[j] == pytest.approx(slope, abs=1e-5)


def exact_followed(start: Array, masks: Array, beta: float) -> Callable[[Array], float]:
    """M_s(1) - M_s(2) from its formula, over all pairs."""
    h = [start[masks[:, g]] for g in range(4)]

    def pair(now: list[Array], g: int, other: int) -> float:
        own = sigmoid((now[g][:, None] - h[other][None, :]) / beta).mean()
        theirs = sigmoid((now[other][:, None] - h[g][None, :]) / beta).mean()
        return float(1.0 - smooth_auc(h[g], h[other], beta) + own - theirs)

    def followed(scores: Array) -> float:
        now = [scores[masks[:, g]] for g in range(4)]
        return pair(now, 0, 1) - pair(now, 2, 3)

    return followed


@pytest.mark.parametrize("metric", ["inter_group", "bpsn_bnsp"])
@pytest.mark.parametrize("away", [0.01, 0.3, 2.0])
def test_away_from_the_proximal_point(away: float, metric: str) -> None:
    """Its formula, exactly evaluated, in value; and central differences of it in slope."""
    scores, masks = drawn(metric)
    weights, start = shares(masks), scores[:1]
    frozen, beta = freeze(start, weights, bins=2**15), BANDWIDTH * start[0].std()
    followed = exact_followed(start[0], masks, beta)
    moved = start + away * start.std() * np.random.default_rng(1).normal(size=start.shape)
    inside = np.clip(moved, start.min(), start.max())
    values, slopes = frozen.follow(inside, weights)
    assert values[0] == pytest.approx(followed(inside[0]), abs=1e-6)
    direction, step = np.random.default_rng(2).normal(size=start.shape[1]), 1e-4 * beta
    inner = np.abs(inside[0] - moved[0]) == 0  # at the ends of the range a step would leave it
    direction[~inner] = 0.0
    slope = (followed(inside[0] + step * direction) - followed(inside[0] - step * direction)) / (2 * step)
    assert slopes[0] @ direction == pytest.approx(slope, abs=1e-5 / beta)


def test_beyond_the_grid_distributions_are_constant() -> None:
    scores, masks = drawn()
    weights, start = shares(masks), scores[:1]
    frozen = freeze(start, weights)
    far = np.full_like(start, start.max() + 100.0 * start.std())
    values, slopes = frozen.follow(far, weights)
    assert (slopes == 0).all()
    # everyone beats everyone who was frozen: own and other terms cancel in either pair
    followed = exact_followed(start[0], masks, float(frozen.bandwidth[0]))
    assert values[0] == pytest.approx(followed(far[0]), abs=1e-4)
    assert frozen.follow(-far, weights)[0][0] == pytest.approx(followed(-far[0]), abs=1e-4)


def test_finer_grids_are_nearer() -> None:
    scores, masks = drawn(n=800)
    exact = exact_gap(scores[0], masks, BANDWIDTH * scores[0].std())
    errors = [abs(float(np.subtract(*freeze(scores, shares(masks), bins).aucs[0])) - exact) for bins in (64, 512, 4096)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] <= 1e-6


# ------------------------------------------------------------------------------------------------------ planted errors


def with_one_bandwidth(h: list[Array], beta: float) -> tuple[float, float]:
    return _planted(h, beta, beta, smooth_auc(h[0], h[1], beta))


def with_two_bandwidths(h: list[Array], beta: float) -> tuple[float, float]:
    return _planted(h, beta, 3.0 * beta, smooth_auc(h[0], h[1], beta))


def with_one_unsmoothed(h: list[Array], beta: float) -> tuple[float, float]:
    return _planted(h, beta, 1e-9, smooth_auc(h[0], h[1], beta))


def with_the_true_auc(h: list[Array], beta: float) -> tuple[float, float]:
    return _planted(h, beta, beta, plain_auc(h[0], h[1]))


def _planted(h: list[Array], beta: float, other_beta: float, constant: float) -> tuple[float, float]:
    """M_s at h and its slope as all scores of G rise alike and those of G' stay."""

    def value(shift: float) -> float:
        own = sigmoid((h[0][:, None] + shift - h[1][None, :]) / beta).mean()
        theirs = sigmoid((h[1][:, None] - h[0][None, :]) / other_beta).mean()
        return float(1.0 - constant + own - theirs)

    def other(shift: float) -> float:  # the same slope through the other term: all scores of G' fall
        own = sigmoid((h[0][:, None] - h[1][None, :]) / beta).mean()
        theirs = sigmoid((h[1][:, None] - shift - h[0][None, :]) / other_beta).mean()
        return float(1.0 - constant + own - theirs)

    step = 1e-4 * beta
    return value(0.0), (other(step) - other(-step)) / (2 * step)


@pytest.mark.parametrize("wrong", [with_two_bandwidths, with_one_unsmoothed, with_the_true_auc])
def test_planted_errors_would_be_seen(wrong: Callable[[list[Array], float], tuple[float, float]]) -> None:
    """What the checks above hold to 1e-6 and 1e-5, these forms miss by a hundred times that or more."""
    scores, masks = drawn()
    beta = BANDWIDTH * scores[0].std()
    h = [scores[0][masks[:, g]] for g in range(2)]
    step = 1e-4 * beta
    value = smooth_auc(h[0], h[1], beta)
    slope = (smooth_auc(h[0] + step, h[1], beta) - smooth_auc(h[0] - step, h[1], beta)) / (2 * step)
    right = with_one_bandwidth(h, beta)
    assert right == pytest.approx((value, slope), abs=1e-7)
    found = wrong(h, beta)
    assert abs(found[0] - value) > 1e-4 or abs(found[1] - slope) > 1e-3


# ---------------------------------------------------------------------------------------------------- special subsets


def test_everyone_against_everyone_is_one_half() -> None:
    scores, _ = drawn()
    everyone = np.ones((scores.shape[1], 4), dtype=bool)
    frozen = freeze(scores, shares(everyone))
    assert frozen.aucs == pytest.approx(np.full((2, 2), 0.5), abs=1e-12)
    values, slopes = frozen.follow(scores, shares(everyone))
    assert values == pytest.approx(np.zeros(2), abs=1e-12)
    assert slopes == pytest.approx(np.zeros_like(slopes), abs=1e-12)


@pytest.mark.parametrize("constant", [0.0, 1.0, -3e5, 1e-9])
def test_constant_scores(constant: float) -> None:
    """No spread to measure a bandwidth by: all AUCs are one half, nothing divides by zero."""
    _, masks = drawn()
    scores = np.full((2, len(masks)), constant)
    frozen = freeze(scores, shares(masks))
    values, slopes = frozen.follow(scores, shares(masks))
    assert frozen.aucs == pytest.approx(np.full((2, 2), 0.5), abs=1e-6)
    assert values == pytest.approx(np.zeros(2), abs=1e-6)
    assert np.isfinite(slopes).all()


def test_weights_stand_for_copies() -> None:
    scores, masks = drawn(n=120)
    copies = np.random.default_rng(0).integers(1, 4, size=120)
    again = np.repeat(np.arange(120), copies)
    options: dict[str, Any] = {"bandwidth": BANDWIDTH, "bins": 4096}
    weighted = FrozenDistributions.of(scores[:1], shares(masks, copies), row_weight=copies, **options)
    copied = FrozenDistributions.of(scores[:1, again], shares(masks[again]), **options)
    assert weighted.bandwidth == pytest.approx(copied.bandwidth, rel=1e-12)
    assert weighted.aucs == pytest.approx(copied.aucs, abs=1e-12)
    np.testing.assert_allclose(weighted.cdf, copied.cdf, rtol=0, atol=1e-10)


def test_a_run_of_many_is_the_run_alone() -> None:
    scores, masks = drawn()
    weights = shares(masks)
    many, moved = freeze(scores, weights), 0.7 * scores
    for j in range(2):
        alone = freeze(scores[j : j + 1], weights)
        for name in ("low", "width", "bandwidth", "cdf", "density", "aucs"):
            np.testing.assert_allclose(
                getattr(many, name)[j], getattr(alone, name)[0], rtol=0, atol=1e-12, err_msg=name
            )
        for one, other in zip(alone.follow(moved[j : j + 1], weights), many.follow(moved, weights), strict=True):
            np.testing.assert_allclose(one[0], other[j], rtol=0, atol=1e-12)


def test_single_samples_are_unbiased() -> None:
    scores, masks = drawn()
    weights = shares(masks)
    frozen, moved = freeze(scores, weights), 0.8 * scores
    values, slopes = frozen.follow(moved, weights)
    singles = [frozen.follow(moved[:, i : i + 1], weights[i : i + 1]) for i in range(len(weights))]
    assert np.mean([value for value, _ in singles], axis=0) == pytest.approx(values, abs=1e-12)
    together = np.concatenate([slope for _, slope in singles], axis=1) / len(weights)
    assert together == pytest.approx(slopes, abs=1e-12)


def test_the_tables_of_one_point_serve_any_number_of_runs() -> None:
    """Solvers that probe several points at once, and checks of plug-ins, follow one proximal point."""
    scores, masks = drawn()
    frozen = freeze(scores[:1], shares(masks))
    others = np.stack([scores[0], 0.5 * scores[0], scores[0] + 1.0, -scores[0]])
    values, slopes = frozen.follow(others, shares(masks))
    for r, one in enumerate(others):
        alone = frozen.follow(one[None], shares(masks))
        assert values[r] == pytest.approx(alone[0][0], abs=1e-14)
        np.testing.assert_allclose(slopes[r], alone[1][0], rtol=0, atol=1e-14)
