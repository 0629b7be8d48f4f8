"""The correlation penalty against NumPy's correlation and autograd."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import minmaxcon as mm
from minmaxcon_problems.fair_auc import METRICS, Dataset, resolve_metric
from minmaxcon_problems.fair_auc.baselines import CorrelationPenalty
from minmaxcon_problems.fair_auc.baselines.base import Strata
from minmaxcon_problems.fair_auc.baselines.correlation import correlation


@pytest.fixture(scope="module")
def strata(dataset: Dataset) -> Strata:
    return Strata.of(dataset.train, METRICS["group"], 16)


def test_correlation_is_the_weighted_one_and_its_slope_that_of_autograd(strata: Strata) -> None:
    scores = torch.tensor(np.random.default_rng(0).normal(size=(4, 16)), requires_grad=True)
    found, slope = correlation(scores.detach().numpy(), strata)
    for run, h in enumerate(scores.detach().numpy()):
        moments = np.cov(h, strata.group, aweights=strata.weight, bias=True)
        assert found[run] == pytest.approx(moments[0, 1] / np.sqrt(moments[0, 0] * moments[1, 1]), abs=1e-12)
    weight, side = torch.tensor(strata.weight), torch.tensor(strata.group - strata.weight @ strata.group)
    offset = scores - (scores @ weight)[:, None]
    rho = (offset * weight * side).sum(1) / ((offset**2 @ weight) * (side**2 @ weight)).sqrt()
    rho.sum().backward()
    assert scores.grad is not None
    np.testing.assert_allclose(slope, scores.grad, atol=1e-13)


def test_constant_scores_have_no_correlation_and_no_slope(strata: Strata) -> None:
    for number in (np.zeros((1, 16)), np.zeros((1, 16), dtype=np.float32)):
        rho, slope = correlation(number, strata)
        assert rho.tolist() == [0.0]
        assert not slope.any()
        assert slope.dtype == number.dtype


def test_a_step_adds_the_weight_times_the_slope_of_the_absolute_correlation(strata: Strata) -> None:
    scores = np.random.default_rng(1).normal(size=(3, 16))
    scores[1] = -scores[0]
    rule = CorrelationPenalty().rule(strata, np.array([0.0, 2.0, 0.7]))
    plain = CorrelationPenalty().rule(strata, np.zeros(3))
    rho, slope = correlation(scores, strata)
    added = rule.step(scores, None)[0] - plain.step(scores, None)[0]
    np.testing.assert_allclose(added, (np.array([0.0, 2.0, 0.7]) * np.sign(rho))[:, None] * slope, atol=1e-14)
    # Descent: a small step against what was added lowers the absolute correlation.
    lower, _ = correlation(scores - 1e-4 * added, strata)
    assert (abs(lower) < abs(rho)).tolist() == [False, True, True]


def test_a_heavier_penalty_narrows_the_gap(dataset: Dataset) -> None:
    metric, method = METRICS["group"], CorrelationPenalty(rates=(0.01,), steps=2000)
    track = method.fit(dataset, metric, [0.0, 0.2, 2.0], model=mm.Linear(4), seed=0)
    auc, gap = track.evaluate(dataset.train, metric)
    assert gap[-1, 0] > gap[-1, 1] > gap[-1, 2]
    assert auc[-1, 0] > auc[-1, 1] > auc[-1, 2]
    assert gap[-1, 2] < 0.02


def test_only_the_group_metric_is_served(dataset: Dataset) -> None:
    method = CorrelationPenalty()
    assert method.applies_to(METRICS["group"]) == ""
    assert method.applies_to(resolve_metric([(None, 1), (None, -1), (None, None), (None, None)])) == ""
    for name in set(METRICS) - {"group"}:
        assert "group alone" in method.applies_to(METRICS[name])
    with pytest.raises(mm.InvalidInput, match="metric='intra_group': correlation does not apply"):
        method.fit(dataset, METRICS["intra_group"], [0.1], model=mm.Linear(4), seed=0)
