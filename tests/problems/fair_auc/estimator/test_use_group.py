"""Models that may read the group: shifts and coefficients of their own, calibration by group, and who gives groups."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from minmaxcon.errors import DataError, InvalidInput
from minmaxcon_problems.fair_auc import FairAUCClassifier
from tests.problems.fair_auc.estimator.samples import Rows, gap_by_pairs


def fitted(rows: Rows, **settings: Any) -> FairAUCClassifier:
    model = FairAUCClassifier(**{"metric": "inter_group", "max_gap": 0.03, "random_state": 0, **settings})
    return model.fit(rows.X, rows.y, sensitive_features=rows.group)


@pytest.mark.parametrize("way, sparse", [("shift", False), ("coefficients", False), ("coefficients", True)])
def test_scores_are_those_of_the_features_and_the_group(rows: Rows, way: str, sparse: bool) -> None:
    given = rows._replace(X=csr_matrix(rows.X) if sparse else rows.X)
    fair = fitted(given, use_group=way)
    scores = fair.decision_function(given.X, sensitive_features=rows.group)
    b = (rows.group == "b").astype(float)[:, None]
    own = [rows.X * b] if way == "coefficients" else []
    assert scores == pytest.approx(np.concatenate([rows.X, *own, b], axis=1) @ fair.coef_[0] + fair.intercept_[0])
    assert fair.feature_names_[-1] == "group b"
    assert fair.n_features_in_ == 4
    assert gap_by_pairs("inter_group", scores, rows) == pytest.approx(fair.gap_.value, abs=1e-12)
    assert fair.gap_.value <= 0.03
    measured = fair.measure(given.X, rows.y, sensitive_features=rows.group)
    assert measured.gap == fair.gap_


def test_a_shift_in_training_is_worth_any_shift_afterwards(rows: Rows) -> None:
    """Every shift of one group's scores, by a fine grid, after a fit without a target."""
    free, fair, blind = (
        fitted(rows, alpha=0.0, **settings) for settings in ({"max_gap": 1.0}, {"use_group": True}, {})
    )
    scores, b = free.decision_function(rows.X), rows.group == "b"
    best = 0.0
    for shift in np.linspace(-3, 3, 121) * scores.std():
        moved = scores + shift * b
        if gap_by_pairs("inter_group", moved, rows) <= 0.03:
            yes = rows.y == "yes"
            best = max(best, float(np.mean(moved[yes][:, None] > moved[~yes][None])))
    assert fair.auc_.value >= best - 1e-3
    assert fair.auc_.value > blind.auc_.value


def test_without_a_limit_the_groups_may_be_separated(rows: Rows) -> None:
    """Beside shrunken features the best shift has a gap of almost 1, which is no bound that steps come near."""
    free = fitted(rows, use_group=True, max_gap=1.0, alpha=3e4)
    assert free.status_.name == "SOLVED"
    assert free.gap_.value > 0.99


def test_several_groups_and_streams(rows: Rows) -> None:
    three = np.where(np.arange(600) % 3 == 0, "c", rows.group)
    model = FairAUCClassifier("inter_group", max_gap=0.05, use_group=True).fit(rows.X, rows.y, sensitive_features=three)
    assert model.feature_names_[-2:] == ("group a", "group b")
    assert model.predict(rows.X, sensitive_features=three).shape == (600,)
    stream = FairAUCClassifier("inter_group", max_gap=0.03, use_group=True)
    stream.partial_fit(rows.X, rows.y, sensitive_features=rows.group)
    other = fitted(rows, use_group=True, random_state=None)
    assert stream.auc_.value == pytest.approx(other.auc_.value, abs=2e-3)
    again = pickle.loads(pickle.dumps(stream))
    groups = {"sensitive_features": rows.group}
    assert again.predict_proba(rows.X, **groups).tolist() == stream.predict_proba(rows.X, **groups).tolist()


def test_groups_are_given_where_they_are_read_and_nowhere_else(rows: Rows) -> None:
    reads, blind = fitted(rows, use_group=True), fitted(rows)
    for call in (reads.predict, reads.decision_function, reads.predict_proba):
        with pytest.raises(InvalidInput, match="the model reads the group: give the group of each row"):
            call(rows.X)
        with pytest.raises(DataError, match=r"row 1 \(counted from 0\) has the group 'z', which fit has not seen"):
            call(rows.X[:2], sensitive_features=["a", "z"])
    with pytest.raises(InvalidInput, match="does not read the group"):
        blind.predict(rows.X, sensitive_features=rows.group)
    unconstrained = pytest.warns(UserWarning, match="No sensitive_features")
    with unconstrained, pytest.raises(InvalidInput, match="use_group=True: needs sensitive_features"):
        FairAUCClassifier(use_group=True).fit(rows.X, rows.y)
    with pytest.raises(ValueError, match="use_group"):
        fitted(rows, use_group="both")
    apart = reads.compare(blind, rows.X, rows.y, sensitive_features=rows.group)
    assert apart.first.auc.value == reads.auc_.value


def test_rows_predicted_to_be_positive_are_counted_by_the_line_of_their_group() -> None:
    """One line for all predicts hardly any where positives are rare but in one group, whose own line predicts many."""
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], [540, 60])
    y = rng.random(600) < np.where(group == "b", 0.7, 0.02)
    X = rng.normal(size=(600, 2)) + 0.2 * y[:, None]
    said = "is predicted for"
    for calibration in ("all", "by_group"):
        model = FairAUCClassifier(
            "group", max_gap=0.02, use_group=True, calibration=calibration, objective="quadratic_auc", alpha=0.0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model.fit(X, y, sensitive_features=group)
        predicted = int(model.predict(X, sensitive_features=group).sum())
        assert (predicted > 20) == (calibration == "by_group")
        assert (f"{said} {predicted} of 600 rows" in model.reason_) == (calibration == "all")
        assert (said in model.reason_) == (calibration == "all")


def test_probabilities_by_group_are_right_in_each(rows: Rows) -> None:
    groups = {"sensitive_features": rows.group}
    with pytest.warns(UserWarning, match=r'Probabilities are off by [+-]0\.\d\d in the group [ab]: calibration="by_g'):
        one = fitted(rows, use_group=True)
    remedy = 'use_group=True with calibration="by_group" mends it, if the group may be read\\.$'
    with pytest.warns(UserWarning, match=rf"Probabilities are off by [+-]0\.\d\d in the group [ab]: {remedy}"):
        fitted(rows)
    mended = fitted(rows, use_group=True, calibration="by_group")
    assert one.decision_function(rows.X, **groups).tolist() == mended.decision_function(rows.X, **groups).tolist()
    for model in (one, mended):
        chance = model.predict_proba(rows.X, **groups)[:, 1]
        assert (model.predict(rows.X, **groups) == model.classes_[(chance > 0.5).astype(int)]).all()
        for found in model.calibration_:
            mine = rows.group == found.value
            assert found.rows == mine.sum()
            assert found.predicted == pytest.approx(chance[mine].mean())
            assert found.observed == pytest.approx((rows.y[mine] == "yes").mean())
    assert max(abs(found.error) for found in one.calibration_) > 0.05
    assert max(abs(found.error) for found in mended.calibration_) < 0.02
