"""partial_fit: rows in any order and division, without bias, in bounded memory, solved when asked for."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import roc_auc_score

import minmaxcon as mm
from minmaxcon.data import Standardizer
from minmaxcon.errors import DataError, InvalidInput
from minmaxcon_problems.fair_auc.estimator.incremental import representative_part
from minmaxcon_problems.fair_auc.estimator.training import weighted_standardizer
from tests.problems.fair_auc.estimator.samples import Rows, biased_rows, feed, gap_by_pairs, model


def test_rows_that_are_all_kept_give_the_batch_model(rows: Rows) -> None:
    batch = model().fit(rows.X, rows.y, sensitive_features=rows.group)
    order = np.argsort(rows.y + rows.group, kind="stable")  # the labels and groups one after the other
    for given in (rows, rows.take(order), rows.take(order[::-1])):
        found = feed(model(), given, 50)
        np.testing.assert_allclose(found.decision_function(rows.X), batch.decision_function(rows.X), atol=1e-3)
        assert found.gap_.value == pytest.approx(batch.gap_.value, abs=1e-3)
        assert found.classes_.tolist() == ["no", "yes"]


@pytest.mark.parametrize("capacity", [pytest.param(20, marks=pytest.mark.rel), 4096])
@pytest.mark.filterwarnings("ignore:budget")
def test_the_division_into_calls_makes_no_difference(rows: Rows, capacity: int) -> None:
    # solved in no time
    settings = {"max_rows_per_cell": capacity, "objective": "quadratic_auc", "max_gap": 0.2}
    expected = feed(model(**settings), rows, 600).coef_
    for size in (1, 7, 250) if capacity > 100 else (7,):
        np.testing.assert_array_equal(feed(model(**settings), rows, size).coef_, expected)


@pytest.mark.parametrize("metric", ["group", pytest.param("inter_group", marks=pytest.mark.rel)])
def test_a_sample_stands_for_all_rows(metric: str) -> None:
    rows = biased_rows(6000, 2)
    batch = model(metric=metric).fit(rows.X, rows.y, sensitive_features=rows.group)
    small = feed(model(metric=metric, max_rows_per_cell=800), rows, 1000)
    scores = small.decision_function(rows.X)
    assert roc_auc_score(rows.y == "yes", scores) == pytest.approx(batch.auc_.value, abs=0.015)
    # Sampling 800 a cell moves a gap by about 0.015.
    assert abs(gap_by_pairs(metric, scores, rows) - 0.03) < 0.06
    assert small.gap_.value <= 0.031
    # Cells are kept alike, and yet shares are those of all rows: so is the mean probability.
    assert small.predict_proba(rows.X)[:, 1].mean() == pytest.approx(np.mean(rows.y == "yes"), abs=0.03)


@pytest.mark.filterwarnings("ignore:budget")
def test_counts_that_are_told_are_those_of_all_rows_seen() -> None:
    settings = {"objective": "quadratic_auc", "max_gap": 0.2, "alpha": 0.0, "max_rows_per_cell": 50}
    for seen in (600, 2400):
        rows = biased_rows(seen, 2)
        told = feed(model(**settings), rows, seen).reason_
        few = int((rows.group == "b").sum())
        assert (f"The smallest set behind the gap, rows of 'b', has {few} rows: " in told) == (few < 500)
        assert ("smallest set" in told) == (seen == 600)


def test_more_rows_are_heard(rows: Rows) -> None:
    found = feed(model(), rows, 100)
    before = found.coef_
    turned = rows._replace(X=rows.X * [-1, 1, 1, 1])
    for _ in range(3):
        feed(found, turned, 600)
    assert before[0, 0] > 0 > found.coef_[0, 0]
    assert found.gap_.value <= 0.031


def test_asking_in_between_changes_nothing(rows: Rows) -> None:
    found = model()
    for part in (slice(0, 200), slice(200, 300), slice(300, 600)):
        feed(found, rows.take(part), 40)
        assert found.gap_.value <= 0.031
    expected = feed(model(), rows, 600)
    np.testing.assert_array_equal(found.decision_function(rows.X), expected.decision_function(rows.X))


def test_rows_that_tell_nothing_do_no_harm_later(rows: Rows) -> None:
    found = feed(model(), rows._replace(X=np.zeros_like(rows.X)).take(slice(0, 40)), 40)
    with pytest.warns(ConvergenceWarning, match="all rows one score"):
        assert found.auc_.value == 0.5
    feed(found, rows, 600)
    assert found.auc_.value > 0.6


def test_a_refused_call_leaves_everything_as_it_was(rows: Rows) -> None:
    """Neither fit nor partial_fit of another width may touch the rows and the model that there are."""
    one_class = np.full(4, rows.y[0])
    other = np.ones((4, 3))
    running = feed(model(), rows, 600)
    before = pickle.dumps(running)
    with pytest.raises(DataError, match="one class only"):
        running.fit(other, one_class, sensitive_features=rows.group[:4])
    assert pickle.dumps(running) == before
    for X in (other[:1], [[1.0, 2.0, 3.0]], other):
        with pytest.raises(ValueError, match="X has 3 features"):
            running.partial_fit(X, rows.y[: len(X)], sensitive_features=rows.group[: len(X)])
    assert pickle.dumps(running) == before
    fitted = model().fit(rows.X, rows.y, sensitive_features=rows.group)
    expected = fitted.decision_function(rows.X)
    with pytest.raises(DataError, match="one class only"):
        fitted.fit(other, one_class, sensitive_features=rows.group[:4])
    with pytest.raises(ValueError, match="NaN"):
        fitted.partial_fit(np.full((2, 3), np.nan), rows.y[:2], sensitive_features=rows.group[:2])
    np.testing.assert_array_equal(fitted.decision_function(rows.X), expected)


def test_what_has_not_been_seen_is_named(rows: Rows) -> None:
    found = model(metric="intra_group")
    assert not hasattr(found, "coef_")
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        found.predict(rows.X)
    yes, b = rows.y == "yes", rows.group == "b"
    feed(found, rows.take(yes & b), 1)
    with pytest.raises(NotFittedError, match=r"rows of one class only have been seen, \['yes'\]"):
        found.decision_function(rows.X)
    feed(found, rows.take(~yes & b), 1)
    with pytest.raises(NotFittedError, match="is 'b' in every row; two groups are needed"):
        found.predict(rows.X)
    feed(found, rows.take(yes & ~b), 1)
    with pytest.raises(NotFittedError, match=r"no row of negative & unprotected has been seen.*negative & \w+: 0"):
        _ = found.gap_
    assert not hasattr(found, "gap_")
    feed(found, rows.take(~yes & ~b), 1)
    assert found.gap_.value <= 0.031


def test_a_third_label_or_group_is_refused_and_forgotten(rows: Rows) -> None:
    for size in (1, 30):
        found = model().partial_fit(rows.X[:1], rows.y[:1], sensitive_features=rows.group[:1])
        other = "yes" if rows.y[0] == "no" else "no"
        with pytest.raises(DataError, match="y: has more than 2 values"):
            feed(found, Rows(rows.X[:30], np.array([other, "maybe"] * 15), rows.group[:30]), size)
        feed(found, rows, size)
        with pytest.raises(DataError, match=r"sensitive_features: has more than 2 values.*say with protected="):
            found.partial_fit(rows.X[:1], rows.y[:1], sensitive_features=["c"])
        feed(found, rows, 300)
        assert found.classes_.tolist() == ["no", "yes"]


def test_classes_given_beforehand_are_kept_to(rows: Rows) -> None:
    found = model().partial_fit(rows.X[:1], rows.y[:1], ["no", "yes"], sensitive_features=rows.group[:1])
    with pytest.raises(DataError, match="y: has more than 2 values"):
        found.partial_fit(rows.X[:1], ["maybe"], sensitive_features=rows.group[:1])
    for classes in (["no"], ["no", "maybe"], ["no", "yes", "maybe"]):
        with pytest.raises(InvalidInput, match=r"classes=.*must be the two labels"):
            found.partial_fit(rows.X[:1], rows.y[:1], classes, sensitive_features=rows.group[:1])


@pytest.fixture(scope="module")
def fed(rows: Rows) -> bytes:
    """Give a pickled estimator that has taken in rows."""
    return pickle.dumps(feed(model(), rows, 600))


@pytest.mark.parametrize(
    "X, y, group, error",
    [
        ([[0.0, 1.0, np.nan, 1.0]], ["yes"], ["a"], "Input X contains NaN"),
        ([[0.0, 1.0, 2.0]], ["yes"], ["a"], "X has 3 features"),
        ([[0.0, 1.0, 2.0, 1.0]], [None], ["a"], "y|Unknown label"),
        ([[0.0, 1.0, 2.0, 1.0]], [0.5], ["a"], "Unknown label type|more than 2"),
        ([[0.0, 1.0, 2.0, 1.0]], ["yes"], [None], "missing in 1 of 1 rows"),
        ([[0.0, 1.0, 2.0, 1.0]], ["yes"], [np.nan], "missing in 1 of 1 rows"),
        ([[0.0, 1.0, 2.0, 1.0]], ["yes"], ["a", "b"], "has 2 values for the 1 rows"),
        ([[0.0, 1.0, 2.0, 1.0]], ["yes"], None, "in every call or in none"),
    ],
)
@pytest.mark.parametrize(
    "form",
    [np.array, list, lambda X: [np.array(X[0])], tuple],
    ids=["array", "list", "list of an array", "tuple"],
)
def test_a_bad_row_is_refused_and_not_taken_in(fed: bytes, form: Any, X: Any, y: Any, group: Any, error: str) -> None:
    found = pickle.loads(fed)
    before = pickle.dumps(found._stream)
    with pytest.raises(ValueError, match=error):
        found.partial_fit(form(X), y, sensitive_features=group)
    assert pickle.dumps(found._stream) == before


def test_fit_starts_afresh_and_partial_fit_after_it_says_what_it_has_not(rows: Rows) -> None:
    found = feed(model(), rows.take(slice(0, 300)), 300)
    found.fit(rows.X, rows.y, sensitive_features=rows.group)
    np.testing.assert_array_equal(found.coef_, model().fit(rows.X, rows.y, sensitive_features=rows.group).coef_)
    with pytest.warns(UserWarning, match="rows of fit were not remembered"):
        feed(found, rows, 300)
    assert found.gap_.value <= 0.031


def test_it_goes_on_from_a_copy(rows: Rows) -> None:
    first, second = rows.take(slice(0, 300)), rows.take(slice(300, 600))
    straight = feed(feed(model(max_rows_per_cell=30), first, 1), second, 1)
    for copied in (copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))):
        halted = copied(feed(model(max_rows_per_cell=30), first, 1))
        np.testing.assert_array_equal(feed(halted, second, 1).coef_, straight.coef_)


def test_memory_is_bounded(rows: Rows) -> None:
    found = model(max_rows_per_cell=25)
    sizes = []
    for _ in range(5):
        feed(found, rows, 600)
        sizes.append(len(pickle.dumps(found)))
    assert max(sizes) < 1.05 * sizes[0]


def test_held_out_rows_have_the_shares_of_all_rows_seen() -> None:
    counts, kept = np.array([1000, 300, 90, 40]), np.array([100, 100, 90, 40])
    part = representative_part(counts, kept, 0.5)
    np.testing.assert_allclose(part / part.sum(), counts / counts.sum(), atol=0.01)
    assert (part <= 0.5 * kept + 0.5).all()
    for scale in (1.0, 0.01, 100.0):  # counts of weights, which are no rows
        with pytest.raises(InvalidInput, match=r"validation_fraction=0\.1: the 2 rows kept of a combination"):
            representative_part(scale * np.array([1000, 300, 90, 2]), np.array([100, 100, 90, 2]), 0.1)


def test_a_held_out_part_of_the_sample() -> None:
    rows = biased_rows(4000, 3)
    found = feed(model(validation_fraction=0.4, max_gap=0.1, max_rows_per_cell=400), rows, 4000)
    group = np.mean(rows.group == "b")
    protected, others = found.gap_.counts[:2]
    assert protected / (protected + others) == pytest.approx(group, abs=0.03)
    assert found.gap_.value <= 0.1


@pytest.mark.filterwarnings("ignore:budget")
def test_kappa_and_networks_take_rows_too(rows: Rows) -> None:
    settings = {
        "max_gap": None,
        "kappa": 0.4,
        "max_rows_per_cell": 100,
        "solver": mm.SFLS(oracle=mm.SMD(steps=150), levels=2),
    }
    bounded = feed(model(**settings), rows, 600)
    assert bounded.solution_.feasible
    assert bounded.certificate_.lower <= bounded.certificate_.upper < 0.5
    sparse = model(**settings).partial_fit(csr_matrix(rows.X), rows.y, sensitive_features=rows.group)
    assert sparse.solution_.feasible
    network = feed(model(model="mlp", max_rows_per_cell=30), rows, 600)
    assert network.gap_.value <= 0.031
    assert network.auc_.value > 0.7


@pytest.mark.parametrize("sparse", [False, True])
def test_weighted_standardisation_is_that_of_repeated_rows(sparse: bool) -> None:
    rng = np.random.default_rng(0)
    features, weight = rng.normal(size=(30, 4)) * (rng.random((30, 4)) < 0.7), rng.integers(1, 6, 30)
    features[:, 3] = 2.0
    kind = csr_matrix if sparse else np.asarray
    found = weighted_standardizer(kind(features), weight.astype(float))
    expected = Standardizer.fit(kind(np.repeat(features, weight, axis=0)))
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-12)
    np.testing.assert_allclose(found.scale, expected.scale, rtol=1e-9)
