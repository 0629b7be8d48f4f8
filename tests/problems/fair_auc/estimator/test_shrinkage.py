"""The ridge penalty: its strength by cross-validation, and what training rows say of others."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from minmaxcon_problems.fair_auc import FairAUCClassifier
from minmaxcon_problems.fair_auc.estimator import shrinkage
from minmaxcon_problems.fair_auc.estimator.shrinkage import chosen_shrinkage
from tests.problems.fair_auc.estimator.samples import Rows, biased_rows


def drawn(rows: int, features: int, seed: int, signal: int = 5) -> Rows:
    rng = np.random.default_rng(seed)
    X, group = rng.normal(size=(rows, features)), np.where(rng.random(rows) < 0.4, "b", "a")
    X[:, 0] += group == "a"
    y = (0.7 * X[:, :signal].sum(axis=1) + rng.logistic(size=rows) > 0).astype(int)
    return Rows(X, y, group)


@pytest.mark.parametrize("rows, features", [(90, 4), (40, 60)])
def test_the_path_of_a_fold_is_that_of_shrunken_discriminants(rows: int, features: int) -> None:
    X, y, _ = drawn(rows, features, 0)
    train, rest, noise = np.arange(0, rows, 2), np.arange(1, rows, 2), np.array([0.01, 1.0, 30.0])
    found = shrinkage._left_out(X, y > 0, np.ones(rows), noise, train, rest)
    mine, side = X[train], y[train] > 0
    centred = np.concatenate([mine[side] - mine[side].mean(axis=0), mine[~side] - mine[~side].mean(axis=0)])
    delta = mine[side].mean(axis=0) - mine[~side].mean(axis=0)
    for value, tau in zip(found, noise, strict=True):
        w = np.linalg.solve(centred.T @ centred / len(train) + tau * np.eye(features), delta)
        assert value == pytest.approx(roc_auc_score(y[rest], X[rest] @ w), abs=1e-12)
    if rows > features:
        plain = LinearDiscriminantAnalysis(solver="lsqr").fit(mine, side).decision_function(X[rest])
        least = shrinkage._left_out(X, y > 0, np.ones(rows), np.array([1e-12]), train, rest)
        assert least[0] == pytest.approx(roc_auc_score(y[rest], plain), abs=1e-12)


def test_weights_and_order_choose_what_copies_choose() -> None:
    X, y, _ = drawn(60, 8, 1)
    group, weight = np.zeros(60, dtype=int), np.random.default_rng(0).integers(1, 4, 60)
    copies = np.random.default_rng(1).permutation(np.repeat(np.arange(60), weight))
    total = float(weight.sum())
    one = chosen_shrinkage(X, y > 0, group, weight, total, 0)
    two = chosen_shrinkage(csr_matrix(X[copies]), y[copies] > 0, group[copies], None, total, 0)
    assert one is not None
    assert two is not None
    assert one.aucs == pytest.approx(two.aucs, abs=1e-12)
    assert one.alpha == pytest.approx(two.alpha, rel=1e-9)


def test_few_rows_are_shrunk_and_many_are_not() -> None:
    few, many = biased_rows(80, 0), biased_rows(600, 0)
    for rows, shrunk in ((few, True), (many, False)):
        found = FairAUCClassifier("group", max_gap=0.1).fit(rows.X, rows.y, sensitive_features=rows.group)
        assert (found.alpha_ > 0) == shrunk == (found.alpha_path_ is not None)
    path = FairAUCClassifier("group", alpha="cv").fit(many.X, many.y, sensitive_features=many.group).alpha_path_
    assert path is not None
    assert path.auc == path.aucs.max()
    assert path.alpha in path.alphas


def test_of_many_rows_a_sample_chooses_that_keeps_the_rarer_class() -> None:
    """Strengths are said for all rows, and repeating a call repeats the choice."""
    rng = np.random.default_rng(0)
    features, positive = rng.normal(size=(5000, 2)), np.arange(5000) < 300
    features[:, 0] += positive
    found = chosen_shrinkage(features, positive, np.zeros(5000), None, 5000.0, 1)
    again = chosen_shrinkage(csr_matrix(features), positive, np.zeros(5000), None, 5000.0, 1)
    assert found is not None
    assert again is not None
    assert found.alpha == again.alpha
    score = np.linalg.lstsq(features, positive - 0.5, rcond=None)[0]
    area = roc_auc_score(positive, features @ score)
    assert found.auc == pytest.approx(area, abs=0.03)
    assert found.alphas[0] < found.alpha


def test_shrinking_helps_on_other_rows() -> None:
    other, areas = drawn(5000, 90, 9), []
    for seed, alpha in itertools.product((2, 3, 4), (0.0, None)):
        train = drawn(100, 90, seed)
        fair: Any = FairAUCClassifier("inter_group", max_gap=0.05, alpha=alpha)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fair.fit(train.X, train.y, sensitive_features=train.group)
        areas.append(fair.measure(other.X, other.y, sensitive_features=other.group).auc.value)
    assert np.mean(areas[1::2]) > np.mean(areas[::2]) + 0.02


def test_pure_noise_is_not_solved_in_silence() -> None:
    rng = np.random.default_rng(0)
    X, y, group = rng.normal(size=(200, 1000)), np.tile([0, 1], 100), np.repeat(["a", "b"], 100)
    with pytest.warns(ConvergenceWarning, match=r"The AUC is \S+ on the training rows, but 0\.[45]\d+ on rows left"):
        found = FairAUCClassifier("inter_group").fit(X, y, sensitive_features=group)
    assert "rows left out" in found.reason_
    with pytest.warns(ConvergenceWarning, match="1,000 features tell 200 rows apart"):
        FairAUCClassifier("inter_group", alpha=0.0).fit(X, y, sensitive_features=group)
