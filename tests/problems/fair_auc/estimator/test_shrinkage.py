"""The ridge penalty: its strength by the estimated AUC of new rows, and what training rows say of others."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from minmaxcon.errors import InvalidInput
from minmaxcon.metrics import AUCStatistic
from minmaxcon_problems.fair_auc import FairAUCClassifier
from minmaxcon_problems.fair_auc.estimator import shrinkage
from minmaxcon_problems.fair_auc.estimator.shrinkage import chosen_shrinkage
from tests.problems.fair_auc.estimator.samples import Rows


def drawn(rows: int, features: int, seed: int, signal: int = 5) -> Rows:
    rng = np.random.default_rng(seed)
    X, group = rng.normal(size=(rows, features)), np.where(rng.random(rows) < 0.4, "b", "a")
    X[:, 0] += group == "a"
    y = (0.7 * X[:, :signal].sum(axis=1) + rng.logistic(size=rows) > 0).astype(int)
    return Rows(X, y, group)


def spectrum(rows: Rows, way: str = "of_features", shifts: int = 0, sparse: bool = False, weight: Any = None) -> Any:
    classes = [rows.X[rows.y == label] for label in (0, 1)]
    weights = [(np.ones(len(rows.y)) if weight is None else weight)[rows.y == label] for label in (0, 1)]
    sizes, parts = [float(len(part)) for part in classes], [csr_matrix(p) if sparse else p for p in classes]
    return getattr(shrinkage._Spectrum, way)(parts, weights, sizes, shifts)


def direction(rows: Rows, noise: float) -> Any:
    first, second = rows.X[rows.y == 1], rows.X[rows.y == 0]
    covariance = (np.cov(first.T) + np.cov(second.T)) / 2
    return np.linalg.solve(covariance + noise * np.eye(len(covariance)), first.mean(axis=0) - second.mean(axis=0))


@pytest.mark.parametrize("features, noise", [(5, 0.0), (60, 1.0), (120, 5.0), (250, 2.0)])
def test_the_estimate_is_the_auc_of_new_rows(features: int, noise: float) -> None:
    """On average of 20 draws of 300 rows of two normal classes; the AUC of the rows themselves is far off."""
    found, true, own = [], [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y, shift = (rng.random(300) < 0.4).astype(int), np.linspace(1.0, 0.0, features) / np.sqrt(features / 5)
        rows = Rows(rng.normal(size=(300, features)) + y[:, None] * shift, y, y)
        t, _ = spectrum(rows).estimated(np.array([noise]))
        w = direction(rows, noise)
        found.append(norm.cdf(t[0]))
        true.append(norm.cdf(w @ shift / np.sqrt(2.0 * w @ w)))
        own.append(roc_auc_score(y, rows.X @ w))
    assert np.mean(found) == pytest.approx(np.mean(true), abs=0.015)
    assert np.mean(own) > np.mean(true) + (0.0 if features == 5 else 0.05)


@pytest.mark.parametrize(
    "share, ratio",
    [(0.1, 2.0), (0.9, 1.0), (0.5, 3.0), *(pytest.param(0.1, ratio, marks=pytest.mark.rel) for ratio in (0.5, 1.0))],
)
def test_classes_may_differ_in_size_and_covariance(share: float, ratio: float) -> None:
    """On average of 16 draws of 600 rows of two normal classes, at five strengths."""
    noise, found, true = np.array([1e-6, 0.1, 0.3, 1.0, 10.0]), [], []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        y, shift = (np.arange(600) < 600 * share).astype(int), rng.normal(size=120) * 1.5 / np.sqrt(120)
        X = np.where(y == 1, ratio, 1.0)[:, None] * rng.normal(size=(600, 120)) + y[:, None] * shift
        found.append(norm.cdf(spectrum(Rows(X, y, y)).estimated(noise)[0]))
        w = np.array([direction(Rows(X, y, y), tau) for tau in noise])
        true.append(norm.cdf(w @ shift / np.sqrt((1.0 + ratio**2) * (w * w).sum(axis=1))))
    np.testing.assert_allclose(np.mean(found, axis=0), np.mean(true, axis=0), atol=0.03)


def test_errors_of_differences_are_those_of_paired_aucs() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(20_000) < 0.3).astype(int)
    rows = Rows((rng.normal(size=(20_000, 4)) + 0.2 * y[:, None]) * [1.0, 0.6, 0.3, 0.1], y, y)
    noise = np.array([0.001, 0.3])
    t, errors = spectrum(rows).estimated(noise)
    one, other = (AUCStatistic.of(rows.X @ direction(rows, tau), y == 1, y == 0) for tau in noise)
    assert errors[0, 1] * norm.pdf(t.mean()) == pytest.approx((one - other).estimate().standard_error, rel=0.1)
    assert errors[0, 0] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("shifts", [0, 1, 3])
def test_rows_and_features_give_one_estimate(shifts: int) -> None:
    """Products of features or of rows, dense or sparse, give what the formula gives; shifts have no penalty."""
    rows, noise = drawn(90, 20, 0), np.array([0.01, 1.0, 30.0])
    rows.X[:, 17:] += rows.X[:, :3] + rows.y[:, None]
    parts = [rows.X[rows.y == label] for label in (0, 1)]
    covariances, delta = [np.cov(part.T) for part in parts], parts[1].mean(axis=0) - parts[0].mean(axis=0)
    expected = []
    for tau in noise:
        inverse = np.linalg.inv(sum(covariances) / 2 + tau * np.diag(np.arange(20) < 20 - shifts))
        w, signal, variance = inverse @ delta, delta @ inverse @ delta, 0.0
        for part, covariance in zip(parts, covariances, strict=True):
            q, b = np.trace(inverse @ covariance), 1.0 / (2.0 * (len(part) - 1.0))
            signal -= q / (1.0 - b * q) / len(part)
            variance += w @ covariance @ w / (1.0 - b * q) ** 2
        expected.append(signal / np.sqrt(variance))
    assert min(expected) > 0.0
    ways = [spectrum(rows, way, shifts, sparse) for way in ("of_features", "of_rows") for sparse in (False, True)]
    for t, errors in (one.estimated(noise) for one in ways):
        np.testing.assert_allclose(t, expected, atol=1e-9)
        np.testing.assert_allclose(errors, ways[0].estimated(noise)[1], atol=1e-6)


@pytest.mark.parametrize("shifts", [0, 2])
def test_more_features_than_rows_give_one_estimate(shifts: int) -> None:
    """With weights, a feature that the shifts tell, and constant ones."""
    rows, noise = drawn(40, 60, 0), np.array([0.01, 1.0, 30.0])
    rows.X[:, 50] = rows.X[:, 58] - 3.0 * rows.X[:, 59]
    rows.X[:, 51:53] = 0.0
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 40)
    ways = [
        spectrum(rows, way, shifts, sparse, weight) for way in ("of_features", "of_rows") for sparse in (False, True)
    ]
    for one in ways[1:]:
        for mine, first in zip(one.estimated(noise), ways[0].estimated(noise), strict=True):
            np.testing.assert_allclose(mine, first, atol=1e-6)
        assert one.unit == pytest.approx(ways[0].unit, rel=1e-9)
        assert one.beyond == pytest.approx(ways[0].beyond, abs=1e-9)
    other = spectrum(rows._replace(X=np.delete(rows.X, [51, 52], axis=1)), "of_rows", shifts, True, weight)
    assert other.unit == pytest.approx(ways[0].unit, rel=1e-9)


@pytest.mark.parametrize("way", ["of_features", "of_rows"])
def test_features_that_the_shifts_tell_are_no_unit_of_the_penalty(way: str) -> None:
    """Beside shifts of groups the columns of the same groups vary by rounding alone."""
    rows, groups = drawn(300, 2, 0), np.arange(300) % 6
    shifts = (groups[:, None] == np.arange(5)).astype(float)
    columns = (groups[:, None] == np.arange(6)) * np.array([1.0, 2.0, 0.3, 1.0, 1.0, 7.0])
    alone, beside = (
        spectrum(rows._replace(X=np.hstack([rows.X, extra, shifts])), way, 5) for extra in (columns[:, :0], columns)
    )
    assert beside.unit == pytest.approx(alone.unit)
    noise = np.array([0.01, 1.0])
    np.testing.assert_allclose(beside.estimated(noise)[0], alone.estimated(noise)[0], rtol=1e-6)


def test_weights_and_order_choose_what_copies_choose() -> None:
    """Whole weights are copies; of others the scale alone makes no difference."""
    X, y, _ = drawn(60, 8, 1)
    weight = np.random.default_rng(0).integers(1, 4, 60)
    copies = np.random.default_rng(1).permutation(np.repeat(np.arange(60), weight))
    total = float(weight.sum())
    one = chosen_shrinkage(X, y > 0, weight, total, 0)
    two = chosen_shrinkage(csr_matrix(X[copies]), y[copies] > 0, None, total, 0)
    assert one is not None
    assert two is not None
    np.testing.assert_allclose(one.aucs, two.aucs, atol=1e-12)
    assert one.alpha == pytest.approx(two.alpha, rel=1e-9)
    found = [chosen_shrinkage(X, y > 0, factor * (weight + 0.5), total, 0) for factor in (1.0, 1e-3)]
    assert found[0] is not None
    assert found[1] is not None
    np.testing.assert_allclose(found[0].aucs, found[1].aucs, atol=1e-12)


def test_weights_of_a_survey_choose_alike_whole_or_not() -> None:
    """They are no copies; equal ones count once each, of whatever size."""
    X, y, _ = drawn(60, 30, 1)
    weight = np.random.default_rng(0).integers(1000, 3000, 60).astype(float)
    whole, half = (chosen_shrinkage(X, y > 0, one, one.sum(), 0) for one in (weight, weight + 0.5))
    assert whole is not None
    assert half is not None
    np.testing.assert_allclose(whole.aucs, half.aucs, atol=1e-3)
    assert whole.noise == pytest.approx(half.noise, rel=1e-2)
    equal, alone = (chosen_shrinkage(X, y > 0, one, 60.0, 0) for one in (np.full(60, 2000.0), None))
    assert equal is not None
    assert alone is not None
    assert equal.alpha == pytest.approx(alone.alpha)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_constant_features_and_offsets_change_nothing(sparse: bool, wide: bool) -> None:
    """Variances that are rounding are 0: the unit is the median of the others."""
    X, y, _ = drawn(60, 80 if wide else 8, 2)
    made: Any = csr_matrix if sparse else np.asarray
    one = chosen_shrinkage(X, y > 0, None, 60.0, 0)
    assert one is not None
    for other in (np.c_[X, np.full((60, 200 if wide else 30), 3.7)], X + 1e5, (X + 100.0).astype(np.float32)):
        found = chosen_shrinkage(made(other), y > 0, None, 60.0, 0)
        assert found is not None
        np.testing.assert_allclose(found.aucs[1:], one.aucs[1:], atol=1e-3)
        assert found.alpha == pytest.approx(one.alpha, rel=1e-3)
    for value in (3.7, 0.1, 1e8):
        found = chosen_shrinkage(made(np.full(X.shape, value)), y > 0, None, 60.0, 0)
        assert found is not None
        assert (found.alpha, found.auc) == (found.alphas[-1], 0.5)


@pytest.mark.parametrize("way", ["of_features", "of_rows"])
@pytest.mark.parametrize("offset", [2.0**17, 2.0**24, 2.0**30])
def test_means_of_many_deviations_lose_no_digits(way: str, offset: float) -> None:
    """Of sparse features beside others, in both classes or in one; the offsets are added without rounding."""
    rows, noise = drawn(40, 60, 0), np.array([0.01, 1.0, 30.0])
    X = np.rint(rows.X * 2**16) / 2**16
    X[:, 30:] *= np.random.default_rng(1).random((40, 30)) < 0.3
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 40)
    away = rows._replace(X=X + offset * (np.arange(60) < 20) * np.where(np.arange(60) % 2, 1.0, -1.0))
    near = spectrum(rows._replace(X=X), way, 0, False, weight)
    found = spectrum(away, way, 0, True, weight)
    for mine, first in zip(found.estimated(noise), near.estimated(noise), strict=True):
        np.testing.assert_allclose(mine, first, atol=1e-6)
    assert found.unit == pytest.approx(near.unit, rel=1e-9)
    far = X.copy()
    far[rows.y == 1, 3] += offset  # tells the classes apart
    ways = [spectrum(rows._replace(X=far), way, 0, sparse, weight).estimated(noise) for sparse in (False, True)]
    np.testing.assert_allclose(ways[1][0], ways[0][0], rtol=1e-6)


@pytest.mark.filterwarnings("ignore:The model gives all rows one score")
def test_fits_stand_offsets_and_constant_features() -> None:
    X, y, group = drawn(200, 4, 2)
    constant = csr_matrix(np.c_[X, np.full((200, 5), 3.7)])
    fits = [(csr_matrix(X), True), (constant, True), (csr_matrix(constant[:, 4:]), True), (X + 1e8, False)]
    found = [
        FairAUCClassifier("group", max_gap=0.1, standardize=scaled).fit(rows, y, sensitive_features=group)
        for rows, scaled in fits
    ]
    assert found[1].alpha_ == pytest.approx(found[0].alpha_)
    assert all(one.alpha_ > 1.0 for one in found)


@pytest.mark.parametrize("alpha", [None, 0.0])
def test_features_too_large_to_be_squared_are_refused_in_one_line(alpha: float | None) -> None:
    X, y, group = drawn(50, 3, 0)
    fair = FairAUCClassifier("group", max_gap=0.1, alpha=alpha, standardize=False)
    with pytest.raises(InvalidInput, match=r"^X=\S+e\+160: is too large to be squared: scale .*standardize=True\.$"):
        fair.fit(X * 1e160, y, sensitive_features=group)


def test_the_largest_strength_within_one_standard_error_is_chosen() -> None:
    """It falls with the number of rows; one row of a class tells nothing."""
    few, many = (drawn(rows, 8, 0) for rows in (200, 20_000))
    small, large = (chosen_shrinkage(one.X, one.y > 0, None, float(len(one.y)), 0) for one in (few, many))
    assert small is not None
    assert large is not None
    assert large.noise < 0.1 * small.noise
    assert large.auc == pytest.approx(large.aucs.max(), abs=1e-3)
    assert small.alpha in small.alphas
    assert chosen_shrinkage(few.X[:2], np.array([True, False]), None, 2.0, 0) is None
    fitted = FairAUCClassifier("group", max_gap=0.1).fit(few.X, few.y, sensitive_features=few.group)
    assert fitted.alpha_path_ is not None
    assert fitted.alpha_ == fitted.alpha_path_.alpha > 0


def test_of_many_wide_rows_a_sample_chooses_that_keeps_the_rarer_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strengths are said for all rows, and repeating a call repeats the choice."""
    monkeypatch.setattr(shrinkage, "_MOST", 200)
    rng = np.random.default_rng(0)
    features, positive = rng.normal(size=(600, 250)), np.arange(600) < 80
    features[:, 0] += 2.0 * positive
    kept = shrinkage._subsample(positive, np.random.default_rng(1))
    assert (len(kept), positive[kept].sum()) == (200, 80)
    found, again = (chosen_shrinkage(features, positive, None, 600.0, 1) for _ in range(2))
    part = chosen_shrinkage(features[kept], positive[kept], None, 200.0, 1)
    assert found is not None
    assert again is not None
    assert part is not None
    assert found.alpha == again.alpha == pytest.approx(part.alpha)
    assert found.noise == pytest.approx(part.noise / 3.0)
    assert np.isnan(found.aucs[0])  # more features than rows: without a penalty nothing is known


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
    with pytest.warns(ConvergenceWarning, match=r"The AUC is \S+ on the training rows, but an estimated 0\.5"):
        found = FairAUCClassifier("inter_group").fit(X, y, sensitive_features=group)
    assert "an estimated" in found.reason_
    with pytest.warns(ConvergenceWarning, match="1,000 features tell 200 rows apart"):
        FairAUCClassifier("inter_group", alpha=0.0).fit(X, y, sensitive_features=group)


def test_the_noise_falls_with_more_rows_where_it_changes_the_ranking() -> None:
    """Of uncorrelated features a penalty shrinks all coefficients alike."""
    rng = np.random.default_rng(0)
    slope = np.array([1.0, -0.8, 0.5, 0.3, 0.0])
    mixing = np.linalg.cholesky(0.7 ** np.abs(np.subtract.outer(np.arange(5), np.arange(5))))
    noise: dict[tuple[str, int], float] = {}
    for n in (500, 50_000):
        plain = rng.normal(size=(n, 5))
        for kind, features in (("apart", plain), ("correlated", plain @ mixing.T)):
            found = chosen_shrinkage(features, features @ slope + rng.logistic(size=n) > 0, None, float(n), 0)
            assert found is not None
            noise[kind, n] = found.noise
    assert noise["correlated", 50_000] < 0.5 * noise["correlated", 500]
    assert noise["apart", 50_000] > 1.0
