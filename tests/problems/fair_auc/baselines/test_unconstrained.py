"""The unconstrained baseline reaches the exact minimiser of the quadratic loss."""

from __future__ import annotations

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon_problems.fair_auc import METRICS, Dataset
from minmaxcon_problems.fair_auc.baselines import Unconstrained
from minmaxcon_problems.fair_auc.baselines.base import Strata


def exact(dataset: Dataset) -> np.ndarray:
    above, below = (dataset.train.features[dataset.train.label == sign] for sign in (1, -1))
    delta = above.mean(axis=0) - below.mean(axis=0)
    spread = np.cov(above.T, bias=True) + np.cov(below.T, bias=True) + np.outer(delta, delta)
    return np.linalg.solve(spread, delta)


def test_a_step_descends_along_the_loss_of_every_pair(dataset: Dataset) -> None:
    method = Unconstrained(batch_size=12)
    strata = Strata.of(dataset.train, METRICS["group"], 12)
    scores = np.random.default_rng(0).normal(size=(2, 12))
    slope, state = method.rule(strata, np.zeros(2)).step(scores, None)
    assert state is None
    for run, h in enumerate(scores):
        expected = np.zeros(12)
        for i, u in enumerate(strata.slots[4]):
            for j, v in enumerate(strata.slots[5]):
                pull = u * v * 2 * 0.5 * (h[i] - h[j] - 1.0)
                expected[i] += pull
                expected[j] -= pull
        np.testing.assert_allclose(slope[run], expected, atol=1e-14)


def test_it_reaches_the_exact_minimiser(dataset: Dataset) -> None:
    track = Unconstrained().fit(dataset, METRICS["group"], [], model=mm.Linear(4), seed=0)
    assert track.strengths.tolist() == [0.0] * 3
    best, averaged = exact(dataset), track.parameters[-1]
    assert np.linalg.norm(averaged - best, axis=1).min() < 0.02 * np.linalg.norm(best)


@pytest.mark.parametrize("metric", METRICS)
def test_it_applies_to_every_metric_with_one_strength(dataset: Dataset, metric: str) -> None:
    assert Unconstrained().applies_to(METRICS[metric]) == ""
    method = Unconstrained(steps=50, moments=2)
    found = method.fit(dataset, METRICS[metric], [0.3, 0.4], model=mm.Linear(4), seed=0)
    assert found.shape == (4, 3)
