"""Platt's line against scikit-learn's logistic regression on the same targets."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from minmaxcon_problems.fair_auc.calibration import LogOdds


@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_line_is_that_of_a_logistic_regression_on_platts_targets(shift: float) -> None:
    rng = np.random.default_rng(0)
    positive = rng.random(300) < 0.3
    scores = 5.0 * (positive + rng.normal(size=300)) + shift
    target = np.where(positive, (positive.sum() + 1) / (positive.sum() + 2), 1 / ((~positive).sum() + 2))
    # A soft target is two rows, one of each label, with the target as weight.
    reference = LogisticRegression(C=1e10, tol=1e-10, max_iter=10_000)
    unit = np.tile((scores - shift)[:, None], (2, 1))
    reference.fit(unit, np.repeat([1, 0], 300), sample_weight=np.concatenate([target, 1 - target]))
    found = LogOdds.fit(scores, positive)
    np.testing.assert_allclose(found(scores), reference.decision_function((scores - shift)[:, None]), atol=2e-4)


def test_a_weight_stands_for_rows() -> None:
    rng = np.random.default_rng(1)
    positive, weight = rng.random(60) < 0.5, rng.integers(1, 5, 60)
    scores = positive + rng.normal(size=60)
    weighted = LogOdds.fit(scores, positive, weight)
    repeated = LogOdds.fit(np.repeat(scores, weight), np.repeat(positive, weight))
    assert weighted.slope == pytest.approx(repeated.slope, rel=1e-4)
    assert weighted.intercept == pytest.approx(repeated.intercept, rel=1e-4)


def test_separated_classes_have_finite_log_odds() -> None:
    found = LogOdds.fit(np.array([0.0, 0.1, 1.0, 1.1]), np.array([False, False, True, True]))
    assert 0 < found.slope < np.inf
    assert found(np.array([0.0]))[0] < 0 < found(np.array([1.1]))[0]


def test_a_constant_score_gives_the_share_of_the_positives() -> None:
    positive = np.arange(10) < 3
    found = LogOdds.fit(np.full(10, 7.0), positive)
    # (3 + 1) / (8 + 1) and so on: Platt's targets, averaged
    share = (3 * 4 / 5 + 7 / 9) / 10
    assert 1 / (1 + np.exp(-found(7.0))) == pytest.approx(share, abs=1e-4)


def test_scores_worse_than_chance_keep_their_order() -> None:
    scores = np.arange(20.0)
    found = LogOdds.fit(scores, scores < 10)
    assert found.slope > 0
    assert (np.diff(found(scores)) > 0).all()
