"""The proxy-Lagrangian game against pairwise loops, eigenvectors and a step by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import minmaxcon as mm
from minmaxcon.metrics import auc
from minmaxcon_problems.fair_auc import METRICS, Dataset
from minmaxcon_problems.fair_auc.baselines import ProxyLagrangian
from minmaxcon_problems.fair_auc.baselines.base import Strata, quadratic_loss
from minmaxcon_problems.fair_auc.baselines.proxy_lagrangian import fixed_point, pairwise_rates


def test_rates_are_those_of_every_pair_and_the_slope_that_of_autograd(dataset: Dataset) -> None:
    strata = Strata.of(dataset.train, METRICS["bpsn_bnsp"], 16)  # subsets that overlap
    scores = torch.tensor(np.random.default_rng(0).integers(-3, 4, (3, 16)) / 2.0, requires_grad=True)
    h = scores.detach().numpy()
    for above, below in (strata.slots[0:2], strata.slots[2:4], strata.slots[[0, 2]]):
        rate, proxy, slope = pairwise_rates(h, above, below, 0.3)
        pairs = np.where(h[:, :, None] > h[:, None, :], 1.0, np.where(h[:, :, None] == h[:, None, :], 0.5, 0.0))
        np.testing.assert_allclose(rate, np.einsum("rij,i,j->r", pairs, above, below), atol=1e-14)
        smooth = torch.einsum(
            "rij,i,j->r",
            torch.sigmoid((scores[:, :, None] - scores[:, None, :]) / 0.3),
            torch.tensor(above),
            torch.tensor(below),
        )
        (expected,) = torch.autograd.grad(smooth.sum(), scores)
        np.testing.assert_allclose(proxy, smooth.detach(), atol=1e-13)
        np.testing.assert_allclose(slope, expected, atol=1e-13)


def test_rates_of_batches_are_unbiased_for_the_auc_of_the_data(dataset: Dataset) -> None:
    train, metric = dataset.train, METRICS["group"]
    strata = Strata.of(train, metric, 20)
    scores = train.features[:, 0] + train.features[:, 1]
    rows = strata.draw(np.random.default_rng(0), 5000)
    rate, _, _ = pairwise_rates(scores[rows], *strata.slots[0:2], 1.0)
    expected = auc(scores[train.group > 0], scores[train.group < 0])
    assert rate.mean() == pytest.approx(expected, abs=4 * rate.std() / np.sqrt(5000))


@given(st.integers(0, 2**32 - 1))
def test_the_fixed_point_is_the_leading_eigenvector(seed: int) -> None:
    matrix = np.exp(np.random.default_rng(seed).normal(scale=3.0, size=(4, 3, 3)))
    matrix /= matrix.sum(axis=1, keepdims=True)
    found = fixed_point(matrix)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.einsum("rij,rj->ri", matrix, found), found, atol=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_a_step_is_that_of_algorithm_2(dataset: Dataset, metric: str) -> None:
    strata = Strata.of(dataset.train, METRICS[metric], 16)
    rng = np.random.default_rng(0)
    scores, kappa = rng.normal(size=(2, 16)), np.array([0.0, 0.2])
    matrix = rng.dirichlet(np.ones(3), size=(2, 3)).swapaxes(1, 2)  # columns sum to 1
    slope, state = ProxyLagrangian(temperature=0.4, dual_rate=0.7).rule(strata, kappa).step(scores, np.log(matrix))
    _, plain = quadratic_loss(scores, strata, 0.5, 1.0)
    for r in range(2):
        values, vectors = np.linalg.eig(matrix[r])
        share = np.real(vectors[:, np.argmax(np.real(values))])
        share /= share.sum()
        (first, _, up), (second, _, down) = (
            pairwise_rates(scores[r : r + 1], *strata.slots[pair], 0.4) for pair in ([0, 1], [2, 3])
        )
        gap = first[0] - second[0]
        np.testing.assert_allclose(slope[r], share[0] * plain[r] + (share[1] - share[2]) * (up - down)[0], atol=1e-12)
        grown = matrix[r] * np.exp(0.7 * np.outer([0.0, gap - kappa[r], -gap - kappa[r]], share))
        np.testing.assert_allclose(np.exp(state[r]), grown / grown.sum(axis=0), atol=1e-12)


def test_the_multipliers_start_even_and_never_vanish(dataset: Dataset) -> None:
    strata = Strata.of(dataset.train, METRICS["group"], 16)
    rule = ProxyLagrangian(dual_rate=50.0).rule(strata, np.array([0.0]))
    state = rule.start(1)
    np.testing.assert_allclose(fixed_point(np.exp(state)), 1 / 3)
    scores = np.where(strata.group > 0, 1.0, -1.0)[None]  # gap one half
    for _ in range(200):
        _, state = rule.step(scores, state)
    np.testing.assert_allclose(np.exp(state).sum(axis=1), 1.0)
    assert state.min() > -31.0
    assert fixed_point(np.exp(state))[0, 1] > 0.99
    for _ in range(200):
        _, state = rule.step(-scores, state)
    assert fixed_point(np.exp(state))[0, 2] > 0.99


@pytest.mark.parametrize(
    "metric, model",
    [
        ("group", mm.Linear(4)),
        pytest.param("inter_group", mm.Linear(4), marks=pytest.mark.rel),
        ("intra_group", mm.Linear(4)),
        ("group", mm.MLP(4, 3)),
        pytest.param("inter_group", mm.MLP(4, 3), marks=pytest.mark.slow),
        pytest.param("intra_group", mm.MLP(4, 3), marks=pytest.mark.slow),
    ],
)
def test_a_target_is_met_where_the_plain_model_misses_it(dataset: Dataset, metric: str, model: mm.Model) -> None:
    method = ProxyLagrangian(rates=(0.01, 0.03), steps=600)
    assert method.applies_to(METRICS[metric]) == ""
    track = method.fit(dataset, METRICS[metric], [0.02, 1.0], model=model, seed=0)
    auc_train, gap = track.evaluate(dataset.train, METRICS[metric])
    free = track.select(dataset.train, METRICS[metric], 1.0, runs=[2, 3])
    fair = track.select(dataset.train, METRICS[metric], 0.02, runs=[0, 1])
    assert gap[fair] <= 0.02
    assert 0.7 < auc_train[fair] <= auc_train[free] + 0.005


@pytest.mark.parametrize("setting", ["temperature", "dual_rate"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, "a", True])
def test_settings_out_of_range_are_refused(setting: str, value: object) -> None:
    with pytest.raises(mm.InvalidInput, match=f"^{setting}="):
        ProxyLagrangian(**{setting: value})
