"""Measures and comparisons of models against pairs, scikit-learn and the bootstrap; scorers in scikit-learn."""

from __future__ import annotations

import json
import pickle
import re
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from minmaxcon.errors import DataError, InvalidInput
from minmaxcon.metrics import auc
from minmaxcon_problems.fair_auc import (
    METRICS,
    FairAUCClassifier,
    auc_gap_scorer,
    best_within,
    fair_auc_scorer,
    measure_scores,
    true_gap,
)
from tests.problems.fair_auc.estimator.samples import Rows, gap_by_pairs


@pytest.fixture(scope="module")
def fair(rows: Rows) -> FairAUCClassifier:
    return FairAUCClassifier("inter_group", max_gap=0.03, random_state=0).fit(
        rows.X, rows.y, sensitive_features=rows.group
    )


@pytest.fixture(scope="module")
def plain(rows: Rows) -> LogisticRegression:
    return LogisticRegression(max_iter=1000).fit(rows.X, rows.y)


def test_a_fit_says_what_it_meant(fair: FairAUCClassifier) -> None:
    assert (fair.positive_, fair.negative_, fair.protected_, fair.reference_) == ("yes", "no", "b", "a")
    assert set(fair.groups_) == {"a", "b"}


def test_rows_are_measured_with_the_meaning_of_the_fit(fair: FairAUCClassifier, rows: Rows, fresh_rows: Rows) -> None:
    again = fair.measure(rows.X, rows.y, sensitive_features=rows.group)
    assert (again.auc, again.gap) == (fair.auc_, fair.gap_)
    few = fresh_rows.take(np.r_[np.flatnonzero(fresh_rows.group == "b"), np.flatnonzero(fresh_rows.group == "a")[:60]])
    found = fair.measure(few.X, few.y, sensitive_features=few.group)
    scores = fair.decision_function(few.X)
    assert found.gap is not None
    assert found.signed_gap is not None
    # here b, the protected group of the fit, has more rows than a
    assert found.groups[0].group == "b"
    assert found.gap.value == pytest.approx(gap_by_pairs("inter_group", scores, few), abs=1e-12)
    assert abs(found.signed_gap.value) == found.gap.value
    assert found.auc.value == pytest.approx(roc_auc_score(few.y == "yes", scores), abs=1e-12)
    cells = {(cell.label, cell.group): cell.rows for cell in found.cells}
    assert cells == {(y, g): int(((few.y == y) & (few.group == g)).sum()) for y in ("yes", "no") for g in "ab"}
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["auc"]["value"] == found.auc.value
    assert found.auc.method.startswith("Wilson")


@pytest.mark.parametrize("metric", METRICS)
def test_the_favoured_side_is_the_one_that_was_helped(metric: str) -> None:
    rng = np.random.default_rng(0)
    label, group = rng.integers(0, 2, 400), np.where(rng.random(400) < 0.4, "b", "a")
    noise = rng.normal(size=400) + label
    for helped in "ab":
        # a group is ranked higher, or, for the metric of accuracy within groups, more accurately
        scores = noise + (group == helped) * (label * 3.0 if metric == "intra_group" else 1.5)
        found = measure_scores(scores, label, sensitive_features=group, metric=metric)
        assert found.favours.startswith(f"{helped!r} is "), found.favours
        assert found.signed_gap is not None
        assert (found.signed_gap.value > 0) == (found.groups[0].first.value > found.groups[0].second.value)


def test_words_for_any_four_subsets_and_for_no_gap() -> None:
    label, group = np.array([0, 1, 0, 1]), np.array(["a", "a", "b", "b"])
    own = [(1, 1), (-1, -1), lambda y, _: y == 1, (-1, None)]
    told = measure_scores(np.arange(4.0), label, sensitive_features=group, metric=own).favours
    assert "Rows labelled 1 of 'b' rank above rows labelled 0 of 'a' in 100.0% of pairs" in told
    constant = measure_scores(np.zeros(4), label, sensitive_features=group)
    assert constant.favours.startswith("Neither side is favoured")
    assert any("same in every row" in reason for reason in constant.reasons)
    assert any("Only 1 row has the label" in reason for reason in constant.reasons)
    one = measure_scores(np.arange(3.0), [0, 1, 1], sensitive_features=["a", "a", "b"])
    assert one.gap is not None
    assert not one.gap.defined
    assert "G2' (negative & protected) is empty" in " ".join(one.reasons)


def test_rows_of_one_label_have_no_auc_and_say_so(fair: FairAUCClassifier, fresh_rows: Rows) -> None:
    for rows in (fresh_rows.take([0]), fresh_rows.take(np.flatnonzero(fresh_rows.y == "yes"))):
        found = fair.measure(rows.X, rows.y, sensitive_features=rows.group)
        lacking = "negatives" if rows.y[0] == "yes" else "positives"
        assert str(found).startswith(f"AUC undefined (the set of {lacking} is empty)\n")
        said = " ".join(found.reasons)
        assert "G1' (negative & unprotected) and G2' (negative & protected)" not in said
        assert "are empty" in said or "is empty" in said
        assert "same in every row" not in said  # of what is undefined it would not be true
        assert "No row has the label" in said


def test_weights_count_as_copies(fair: FairAUCClassifier, fresh_rows: Rows) -> None:
    weight = np.random.default_rng(0).integers(0, 4, len(fresh_rows.y))
    copies = fresh_rows.take(np.repeat(np.arange(len(weight)), weight))
    found = fair.measure(fresh_rows.X, fresh_rows.y, sensitive_features=fresh_rows.group, sample_weight=weight)
    copied = fair.measure(copies.X, copies.y, sensitive_features=copies.group)
    assert found.gap is not None
    assert copied.gap is not None
    assert found.auc.value == pytest.approx(copied.auc.value, abs=1e-12)
    assert found.gap.value == pytest.approx(copied.gap.value, abs=1e-12)
    with sklearn.config_context(enable_metadata_routing=True):
        for scorer in (
            auc_gap_scorer("inter_group", protected="b"),
            fair_auc_scorer("inter_group", 0.9, protected="b"),
        ):
            weighted = scorer.set_score_request(sample_weight=True, sensitive_features=True)
            scored = weighted(
                fair, fresh_rows.X, fresh_rows.y, sensitive_features=fresh_rows.group, sample_weight=weight
            )
            assert scored == pytest.approx(scorer(fair, copies.X, copies.y, sensitive_features=copies.group), abs=1e-12)
    other = fresh_rows.X[:, 0]
    apart = fair.compare(other, fresh_rows.X, fresh_rows.y, sensitive_features=fresh_rows.group, sample_weight=weight)
    same = fair.compare(np.repeat(other, weight), copies.X, copies.y, sensitive_features=copies.group)
    assert apart.gap is not None
    assert same.gap is not None
    assert apart.auc.value == pytest.approx(same.auc.value, abs=1e-12)
    assert apart.gap.value == pytest.approx(same.gap.value, abs=1e-12)
    assert apart.first.gap == found.gap
    assert apart.auc.standard_error > 1.1 * same.auc.standard_error
    # a row of weight 3 is one observation all the same
    assert found.auc.standard_error > 1.1 * copied.auc.standard_error
    assert [cell.weight for cell in found.cells] == [cell.rows for cell in copied.cells]


def test_a_comparison_is_paired(fair: FairAUCClassifier, plain: LogisticRegression, fresh_rows: Rows) -> None:
    found = fair.compare(plain, fresh_rows.X, fresh_rows.y, sensitive_features=fresh_rows.group)
    own, other = fair.decision_function(fresh_rows.X), plain.decision_function(fresh_rows.X)
    positive, sign = fresh_rows.y == "yes", np.where(fresh_rows.group == "b", 1, -1)
    rng, label = np.random.default_rng(1), np.where(fresh_rows.y == "yes", 1, -1)
    areas, gaps = [], []
    for _ in range(200):
        rows = rng.integers(0, len(label), len(label))
        drawn = positive[rows]
        areas.append(auc(own[rows][drawn], own[rows][~drawn]) - auc(other[rows][drawn], other[rows][~drawn]))
        both = (true_gap(scores[rows], label[rows], sign[rows], "inter_group") for scores in (own, other))
        gaps.append(next(both) - next(both))
    assert found.gap is not None
    # 200 resamples give a standard deviation within about 5 percent
    assert found.auc.standard_error == pytest.approx(np.std(areas), rel=0.15)
    assert found.gap.lower < np.quantile(gaps, 0.1) < np.quantile(gaps, 0.9) < found.gap.upper
    assert found.gap.value < -0.2
    assert found.gap.p_value < 0.01
    assert found.first.auc.value - found.second.auc.value == pytest.approx(found.auc.value, abs=1e-12)
    turned = measure_scores(other, fresh_rows.y, sensitive_features=fresh_rows.group, protected="b")
    assert found.second.gap == turned.gap


def test_one_model_compared_with_itself_is_no_different(fair: FairAUCClassifier, fresh_rows: Rows) -> None:
    same = fair.decision_function(fresh_rows.X) * 2 + 1
    found = fair.compare(same, fresh_rows.X, fresh_rows.y, sensitive_features=fresh_rows.group)
    for difference in (found.auc, found.gap):
        assert difference is not None
        assert (difference.value, difference.lower, difference.upper, difference.p_value) == (0.0, 0.0, 0.0, 1.0)


def test_scores_that_rounding_alone_tells_apart_are_one_score(fair: FairAUCClassifier, fresh_rows: Rows) -> None:
    noise = np.random.default_rng(0).integers(-3, 4, size=(2, len(fresh_rows.y))) * 2.0**-50
    rows, group = (fresh_rows.X, fresh_rows.y), {"sensitive_features": fresh_rows.group}
    found = measure_scores(7.0 + noise[0], fresh_rows.y, **group)
    assert (found.auc.value, found.gap.value) == (0.5, 0.0)
    assert any("the same in every row" in reason for reason in found.reasons)
    apart = fair.compare(7.0 + noise[1], *rows, **group)
    assert apart.second.auc.value == 0.5


def test_a_model_with_probabilities_alone_and_another_positive_label(rows: Rows, plain: LogisticRegression) -> None:
    class Probabilities:
        classes_ = plain.classes_

        def predict_proba(self, X: Any) -> Any:
            return plain.predict_proba(X)

    turned = FairAUCClassifier("inter_group", max_gap=1.0, positive="no", random_state=0)
    turned.fit(rows.X, rows.y, sensitive_features=rows.group)
    for other in (plain, Probabilities()):
        found = turned.compare(other, rows.X, rows.y, sensitive_features=rows.group)
        assert found.second.positive == "no"
        assert found.second.auc.value == pytest.approx(
            roc_auc_score(rows.y == "yes", plain.decision_function(rows.X)), abs=1e-9
        )


def test_a_shorter_text_is_not_the_label_that_it_begins(fair: FairAUCClassifier, rows: Rows) -> None:
    with pytest.raises(DataError, match="has the label 'y'"):
        fair.measure(rows.X, np.where(rows.y == "yes", "y", "n"), sensitive_features=rows.group)


def test_none_as_a_text_is_a_group_like_any_other(rows: Rows) -> None:
    group = np.where(rows.group == "a", "None", rows.group)
    found = measure_scores(rows.X[:, 0], rows.y, sensitive_features=group)
    assert {found.groups[0].group, found.groups[0].rest} == {"None", "b"}


@pytest.mark.parametrize(
    "change, error, words",
    [
        (lambda r: {"y": np.where(r.y == "yes", "perhaps", r.y)}, DataError, ("'perhaps'", "'no'")),
        (lambda r: {"sensitive_features": np.where(r.group == "a", "c", r.group)}, DataError, ("'c'", "not seen")),
        (lambda r: {"sensitive_features": r.group[:5]}, DataError, ("5 values", "600")),
        (lambda r: {"y": np.stack([r.y, r.y], axis=1)}, DataError, ("y: has shape (600, 2)", "one label for each row")),
        (lambda _: {"sample_weight": np.full(600, -1.0)}, InvalidInput, ("sample_weight", "at least 0")),
        (lambda _: {"sample_weight": np.zeros(600)}, InvalidInput, ("sample_weight", "not all zero")),
        (lambda _: {"confidence": 1.0}, InvalidInput, ("confidence", "1.0")),
        (lambda _: {"metric": "intra"}, InvalidInput, ("intra_group",)),
    ],
)
def test_rows_that_cannot_be_measured(
    fair: FairAUCClassifier, rows: Rows, change: Any, error: type[Exception], words: tuple[str, ...]
) -> None:
    given = {"X": rows.X, "y": rows.y, "sensitive_features": rows.group, **change(rows)}
    with pytest.raises(error) as caught:
        fair.measure(**given)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("labels, said", [([0, 1, 2, 0], "3 labels (0, 1, 2)"), ([1, 1, 1, 1], "1 labels (1)")])
def test_scores_are_measured_on_rows_of_two_labels(labels: Any, said: str) -> None:
    with pytest.raises(DataError, match=re.escape(f"y: has {said}; rows of two labels can be measured.")):
        measure_scores(np.arange(4.0), labels, sensitive_features=list("abab"))


@pytest.mark.parametrize(
    "other", [object(), LogisticRegression, np.zeros(3), LogisticRegression().fit([[0], [1]], [0, 1])]
)
def test_what_cannot_be_compared(fair: FairAUCClassifier, rows: Rows, other: Any) -> None:
    with pytest.raises(InvalidInput, match=r"other=|scores="):
        fair.compare(other, rows.X, rows.y, sensitive_features=rows.group)


def test_scorers_in_cross_validation_and_searches(rows: Rows) -> None:
    model, params = LogisticRegression(max_iter=1000), {"sensitive_features": rows.group}
    scoring = {"auc": "roc_auc", "gap": auc_gap_scorer("inter_group", protected="b")}
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(
            model, rows.X, rows.y, scoring=scoring, params=params, return_estimator=True, return_indices=True
        )
        for fold, (fitted, test) in enumerate(zip(found["estimator"], found["indices"]["test"], strict=True)):
            part = rows.take(test)
            gap = gap_by_pairs("inter_group", fitted.decision_function(part.X), part)
            assert found["test_gap"][fold] == pytest.approx(-gap, abs=1e-12)
        search = GridSearchCV(model, {"C": [1e-4, 1.0]}, scoring=scoring, refit=best_within(0.55), cv=3)
        assert search.fit(rows.X, rows.y, **params).best_params_ == {"C": 1.0}
        fair = GridSearchCV(model, {"C": [1e-4, 1.0]}, scoring=fair_auc_scorer("inter_group", 0.9), cv=3)
        assert 0.5 < fair.fit(rows.X, rows.y, **params).best_score_ < 1.0
        strict = fair_auc_scorer("inter_group", 0.0)
        assert strict(search, rows.X, rows.y, **params) == -gap_by_pairs(
            "inter_group", search.decision_function(rows.X), rows
        )
        tuned = TunedThresholdClassifierCV(model, scoring=fair_auc_scorer("inter_group", 0.3), thresholds=10, cv=2)
        assert tuned.fit(rows.X, rows.y, **params).best_score_ > 0.5
        # the gap alone is least where all rows get one label
        fairest = TunedThresholdClassifierCV(model, scoring=auc_gap_scorer("inter_group"), thresholds=10, cv=2)
        fairest.fit(rows.X, rows.y, **params)
        assert fairest.best_score_ == pytest.approx(0.0, abs=0.05)
        assert fairest.best_threshold_ != pytest.approx(tuned.best_threshold_)


@pytest.mark.parametrize(
    "piped, positive",
    [
        (False, None),
        (True, "no"),
        pytest.param(False, "no", marks=pytest.mark.rel),
        pytest.param(True, None, marks=pytest.mark.rel),
    ],
)
def test_scorers_pass_the_group_on_to_models_that_read_it(rows: Rows, piped: bool, positive: Any) -> None:
    """By pairs of each fold's own scores, alone and as the last step of a pipeline."""
    model: Any = FairAUCClassifier("inter_group", max_gap=0.1, use_group=True, alpha=0.0, positive=positive)
    scoring = {
        "auc": fair_auc_scorer("inter_group", 1.0, positive=positive),
        "gap": auc_gap_scorer("inter_group", positive=positive),
    }
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), model) if piped else model
        found = cross_validate(
            model,
            rows.X,
            rows.y,
            scoring=scoring,
            cv=2,
            params={"sensitive_features": rows.group},
            return_estimator=True,
            return_indices=True,
            error_score="raise",
        )
        for k, part in enumerate(found["indices"]["test"]):
            few = rows.take(part)
            scores = found["estimator"][k].decision_function(few.X, sensitive_features=few.group)
            assert -found["test_gap"][k] == pytest.approx(gap_by_pairs("inter_group", scores, few), abs=1e-12)
            assert found["test_auc"][k] == pytest.approx(roc_auc_score(few.y, scores), abs=1e-12)


def test_searches_choose_among_models_that_read_the_group(rows: Rows) -> None:
    model = FairAUCClassifier("inter_group", use_group=True, alpha=0.0, random_state=0)
    scoring = {"auc": fair_auc_scorer("inter_group", 1.0), "gap": auc_gap_scorer("inter_group")}
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            model, {"max_gap": [0.02, 0.3]}, scoring=scoring, refit=best_within(0.1), cv=2, error_score="raise"
        ).fit(rows.X, rows.y, sensitive_features=rows.group)
        assert search.best_params_ == {"max_gap": 0.02}
        scorer = pickle.loads(pickle.dumps(scoring["gap"]))
        gap = scorer(search, rows.X, rows.y, sensitive_features=rows.group)
        assert -gap == search.best_estimator_.gap_.value
        with pytest.raises(InvalidInput, match="the scorer needs them"):
            scorer(search, rows.X, rows.y)


def test_a_scorer_needs_groups(rows: Rows, plain: LogisticRegression) -> None:
    with pytest.raises(InvalidInput, match="enable_metadata_routing"):
        auc_gap_scorer()(plain, rows.X, rows.y)
    two = {"sensitive_features": np.array(["a", "b"])}
    with sklearn.config_context(enable_metadata_routing=True), pytest.raises(DataError, match="undefined"):
        auc_gap_scorer()(plain, rows.X[:2], np.array(["no", "yes"]), **two)
    with pytest.raises(InvalidInput, match="max_gap"):
        fair_auc_scorer(max_gap=2.0)
    with pytest.raises(InvalidInput, match="max_gap"):
        best_within(-1.0)


def test_where_no_candidate_is_fair_the_fairest_is_chosen() -> None:
    results = {"mean_test_auc": [0.8, 0.9], "mean_test_gap": [-0.1, -0.2]}
    assert best_within(0.05)(results) == 0
    assert best_within(0.3)(results) == 1
