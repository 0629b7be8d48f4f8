"""Several limits in one fit, and rows of the user's own to judge by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minmaxcon.errors import DataError, InvalidInput
from minmaxcon_problems.fair_auc import FairAUCClassifier
from tests.problems.fair_auc.estimator.samples import Rows, biased_rows, every_pair

GAPS = [0.2, 0.05, 0.02]


@pytest.fixture(scope="module")
def few() -> Rows:
    return biased_rows(250, 0)


def fitted(rows: Rows, max_gap: Any, **settings: Any) -> FairAUCClassifier:
    model = FairAUCClassifier("inter_group", max_gap=max_gap, random_state=0, **settings)
    return model.fit(rows.X, rows.y, sensitive_features=rows.group)


def test_a_path_has_the_fits_of_its_limits(few: Rows) -> None:
    found = fitted(few, GAPS)
    assert [one.max_gap for one in found.path_] == [one.max_gap_ for one in found.path_] == GAPS
    for gap, one in zip(GAPS, found.path_, strict=True):
        alone = fitted(few, gap)
        assert one.gap_.value <= gap
        assert one.auc_.value == pytest.approx(alone.auc_.value, abs=5e-4)
        assert one.measure(few.X, few.y, sensitive_features=few.group).gap == one.gap_
        assert alone.path_ == (alone,)
    best = max(one.auc_.value for one in found.path_)
    near = [one for one in found.path_ if one.auc_.value >= best - found.auc_.standard_error]
    assert found.max_gap_ == min(one.max_gap for one in near)
    assert found.max_gap == GAPS


@pytest.mark.parametrize("given", [[], [[0.1]], [0.1, -1.0], ["a"], [0.1, None]])
def test_limits_that_are_none_are_refused(rows: Rows, given: Any) -> None:
    with pytest.raises(InvalidInput, match="max_gap"):
        fitted(rows, given)
    with pytest.raises(InvalidInput, match="max_gap"):
        fitted(rows, [0.1, 0.2], kappa=0.1)


def test_rows_of_ones_own_are_to_meet_the_limit(few: Rows, fresh_rows: Rows) -> None:
    own = {"X_val": fresh_rows.X, "y_val": fresh_rows.y, "sensitive_features_val": fresh_rows.group}
    model = FairAUCClassifier("inter_group", max_gap=[0.15, 0.1], random_state=0)
    found = model.fit(few.X, few.y, sensitive_features=few.group, **own)
    assert found.gap_ == found.measure(fresh_rows.X, fresh_rows.y, sensitive_features=fresh_rows.group).gap
    assert [one.gap_.value <= one.max_gap for one in found.path_] == [True, True]


def test_rows_of_ones_own_without_groups(few: Rows, fresh_rows: Rows) -> None:
    with pytest.warns(UserWarning, match="sensitive"):
        found = FairAUCClassifier(objective="quadratic_auc", alpha=0.0).fit(
            few.X, few.y, X_val=fresh_rows.X, y_val=fresh_rows.y
        )
    scores = found.decision_function(fresh_rows.X)
    yes = fresh_rows.y == "yes"
    assert found.auc_.value == pytest.approx(every_pair(scores[yes], scores[~yes]), abs=1e-12)
    with pytest.raises(InvalidInput, match="X_val='given': is for rows at hand; leave it out for a data set"):
        found.fit("rows.parquet", "label", sensitive_features="group", X_val=fresh_rows.X)


def test_probabilities_are_judged_in_the_groups_that_rows_of_ones_own_have(few: Rows, fresh_rows: Rows) -> None:
    """A metric that asks for no group leaves room for rows of one group alone."""
    a = fresh_rows.take(np.flatnonzero(fresh_rows.group == "a"))
    everyone = [(1, None), (-1, None), (1, None), (-1, None)]
    model = FairAUCClassifier(everyone, max_gap=1.0, objective="quadratic_auc", alpha=0.0, random_state=0)
    found = model.fit(few.X, few.y, sensitive_features=few.group, X_val=a.X, y_val=a.y, sensitive_features_val=a.group)
    (told,) = found.calibration_
    assert (told.value, told.rows) == ("a", len(a.y))
    assert told.observed == pytest.approx(np.mean(a.y == "yes"), abs=1e-12)
    assert told.predicted == pytest.approx(found.predict_proba(a.X)[:, 1].mean(), abs=1e-9)


def test_rows_of_ones_own_are_read_as_the_training_rows(rows: Rows) -> None:
    model = FairAUCClassifier("inter_group")
    groups = {"sensitive_features": rows.group}
    with pytest.raises(InvalidInput, match="y_val"):
        model.fit(rows.X, rows.y, **groups, X_val=rows.X)
    with pytest.raises(InvalidInput, match="X_val"):
        model.fit(rows.X, rows.y, **groups, y_val=rows.y)
    with pytest.raises(InvalidInput, match="of training and validation rows, or of neither"):
        model.fit(rows.X, rows.y, **groups, X_val=rows.X, y_val=rows.y)
    with pytest.raises(DataError, match=r"y_val: row 0 .* has the label 'maybe'"):
        model.fit(
            rows.X,
            rows.y,
            **groups,
            X_val=rows.X,
            y_val=np.where(rows.y == "yes", "maybe", "no")[np.argsort(rows.y)[::-1]],
            sensitive_features_val=rows.group,
        )
    with pytest.raises(InvalidInput, match=r"validation_fraction=0\.3"):
        FairAUCClassifier(validation_fraction=0.3).fit(
            rows.X, rows.y, **groups, X_val=rows.X, y_val=rows.y, sensitive_features_val=rows.group
        )
