"""Sample weights: a row of weight 2 is two copies, one of weight 0 is none, in fit, streams and searches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from minmaxcon.errors import InvalidInput
from minmaxcon_problems.fair_auc import FairAUCClassifier
from tests.cases import promises
from tests.problems.fair_auc.estimator.samples import Rows, biased_rows


@pytest.fixture(scope="module")
def few() -> Rows:
    return biased_rows(150, 3)


@pytest.fixture(scope="module")
def weight() -> Any:
    return np.random.default_rng(0).integers(0, 4, 150)


def fitted(rows: Rows, weight: Any = None, **settings: Any) -> FairAUCClassifier:
    model = FairAUCClassifier(**{"metric": "inter_group", "max_gap": 0.05, "random_state": 0, **settings})
    return model.fit(rows.X, rows.y, sensitive_features=rows.group, sample_weight=weight)


@pytest.mark.parametrize("objective", promises(["auc", "quadratic_auc", "logistic"], ["auc"]))
@pytest.mark.filterwarnings("ignore:budget")
def test_weights_are_copies(few: Rows, weight: Any, objective: str) -> None:
    one, other = (
        fitted(few, weight, objective=objective),
        fitted(few.take(np.repeat(np.arange(150), weight)), objective=objective),
    )
    np.testing.assert_allclose(one.decision_function(few.X), other.decision_function(few.X), rtol=1e-6, atol=1e-9)
    assert one.gap_.value == pytest.approx(other.gap_.value, abs=1e-9)
    assert one.auc_.value == pytest.approx(other.auc_.value, abs=1e-9)
    assert one.price_ == pytest.approx(other.price_, abs=1e-9)
    # copies are no new observations
    assert one.auc_.standard_error > other.auc_.standard_error
    measured = one.measure(few.X, few.y, sensitive_features=few.group, sample_weight=weight)
    assert measured.gap is not None
    assert measured.gap.value == pytest.approx(one.gap_.value, abs=1e-12)


def test_weights_that_are_all_alike_change_no_bit(few: Rows) -> None:
    assert fitted(few, np.full(150, 3.0)).coef_.tobytes() == fitted(few).coef_.tobytes()


def test_rows_of_weight_0_may_have_anything(few: Rows) -> None:
    weight = (np.arange(150) < 140).astype(float)
    group = np.where(weight > 0, few.group, "other")
    expected = fitted(few.take(np.r_[:140]))
    found = fitted(few._replace(group=group), weight)
    assert found.coef_.tobytes() == expected.coef_.tobytes()
    assert found.groups_ == expected.groups_


@pytest.mark.parametrize("blocks", [1, 7])
def test_streams_keep_the_weights_of_their_rows(few: Rows, weight: Any, blocks: int) -> None:
    stream = FairAUCClassifier("inter_group", max_gap=0.05, random_state=0)
    for part in np.array_split(np.arange(150), blocks):
        given = few.take(part)
        stream.partial_fit(given.X, given.y, sensitive_features=given.group, sample_weight=weight[part])
    expected = fitted(few, weight)
    np.testing.assert_allclose(stream.decision_function(few.X), expected.decision_function(few.X), rtol=1e-4, atol=1e-6)


def test_a_bounded_sample_of_weighted_rows_is_unbiased() -> None:
    from minmaxcon_problems.fair_auc.estimator.incremental import Reservoir

    values, weight = np.arange(60.0)[:, None], np.linspace(0.1, 5.0, 60)
    totals = []
    for seed in range(300):
        reservoir = Reservoir(20, seed)
        for part in np.array_split(np.arange(60), 3):
            reservoir.add(values[part], np.zeros(len(part), dtype=int), weight[part])
        rows, _, stands_for = reservoir.kept([0])
        assert rows.shape == (20, 1)
        np.testing.assert_allclose(stands_for, 3.0 * weight[rows[:, 0].astype(int)])
        totals.append(stands_for @ rows[:, 0])
    assert np.mean(totals) == pytest.approx(weight @ values[:, 0], rel=0.05)


def test_held_out_rows_are_weighted(few: Rows, weight: Any) -> None:
    found = fitted(few, weight + 1.0, max_gap=1.0, validation_fraction=0.4)
    plain = fitted(few, max_gap=1.0, validation_fraction=0.4)
    assert found.gap_.counts == plain.gap_.counts
    assert found.gap_.value != plain.gap_.value


def test_weights_are_passed_on_without_being_asked_for(few: Rows, weight: Any) -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        piped = make_pipeline(scaler, FairAUCClassifier("inter_group", max_gap=0.05, random_state=0))
        piped.fit(few.X, few.y, sensitive_features=few.group, sample_weight=weight)
    expected = fitted(few, weight)
    np.testing.assert_allclose(piped.decision_function(few.X), expected.decision_function(few.X), rtol=1e-6)


_EXTREME = [np.full(150, 1e-200), np.full(150, 1e200)]


@pytest.mark.parametrize(
    "bad",
    [np.full(150, -1.0), np.zeros(150), np.ones(3), [1.0] * 149 + [float("nan")], "heavy", *_EXTREME],
)
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_what_is_no_weight_is_refused(few: Rows, bad: Any, call: str) -> None:
    with pytest.raises(InvalidInput, match=r"sample_weight=.*must be finite and at least 0, one for each of 150 rows"):
        getattr(FairAUCClassifier(), call)(few.X, few.y, sensitive_features=few.group, sample_weight=bad)
