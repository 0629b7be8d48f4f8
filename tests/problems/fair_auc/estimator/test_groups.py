"""Several groups, intersections, missing groups and several metrics, against the gap of every pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.errors import DataError, InvalidInput, UnknownName
from minmaxcon_problems.fair_auc import FairAUCClassifier, measure_scores
from tests.cases import promises
from tests.problems.fair_auc.estimator.samples import Rows, every_pair

SHIFTS = {"a": 0.0, "b": -0.9, "c": 0.8}


@pytest.fixture(scope="module")
def three() -> Rows:
    rng = np.random.default_rng(0)
    group = rng.choice(list("abc"), 400, p=[0.5, 0.3, 0.2])
    shift = np.array([SHIFTS[g] for g in group])
    features = rng.normal(size=(400, 3)) + shift[:, None] * [1.0, 1.5, 0.0]
    label = np.where(features[:, 0] + 0.5 * features[:, 2] + 0.5 * shift + rng.normal(size=400) > 0, "yes", "no")
    return Rows(features, label, group)


def fitted(rows: Rows, metric: Any = "group", **settings: Any) -> FairAUCClassifier:
    model = FairAUCClassifier(metric, **{"max_gap": 0.05, "random_state": 0, **settings})
    return model.fit(rows.X, rows.y, sensitive_features=rows.group)


def gap_against_the_rest(metric: str, scores: Any, rows: Rows, group: Any) -> float:
    yes, mine = rows.y == "yes", np.array([g == group for g in rows.group])
    first, second = {
        "group": ((mine, ~mine), None),
        "inter_group": ((yes & mine, ~yes & ~mine), (yes & ~mine, ~yes & mine)),
        "intra_group": ((yes & mine, ~yes & mine), (yes & ~mine, ~yes & ~mine)),
    }[metric]
    other = 0.5 if second is None else every_pair(scores[second[0]], scores[second[1]])
    return abs(every_pair(scores[first[0]], scores[first[1]]) - other)


@pytest.mark.parametrize("objective", ["auc", "logistic"])
@pytest.mark.parametrize("metric", promises(["group", "inter_group"], ["group"]))
def test_the_largest_gap_of_three_groups_is_bound(three: Rows, metric: str, objective: str) -> None:
    free, found = (fitted(three, metric, max_gap=gap, objective=objective) for gap in (1.0, 0.05))
    gaps = {g: gap_against_the_rest(metric, found.decision_function(three.X), three, g) for g in "abc"}
    assert max(gap_against_the_rest(metric, free.decision_function(three.X), three, g) for g in "abc") > 0.15
    assert 0.045 <= max(gaps.values()) <= 0.05
    assert found.gap_.value == pytest.approx(max(gaps.values()), abs=1e-12)
    assert found.groups_ == ("a", "b", "c")
    assert found.protected_ is None
    assert found.status_ in (mm.Status.SOLVED, mm.Status.BUDGET)
    told = found.measure(three.X, three.y, sensitive_features=three.group)
    assert {part.group: part.gap.value for part in told.groups} == pytest.approx(gaps, abs=1e-12)
    assert told.gap == found.gap_
    # one interval of three allows for the choice of the largest
    assert told.gap.upper > max(part.gap.upper for part in told.groups)
    apart = found.compare(free, three.X, three.y, sensitive_features=three.group)
    assert set(apart.signed_gaps) == {"a", "b", "c"}
    assert apart.gap is not None
    assert apart.gap.upper < 0.0


def test_one_against_the_rest_leaves_others_where_they_are(three: Rows) -> None:
    found = fitted(three, protected="a")
    scores = found.decision_function(three.X)
    assert gap_against_the_rest("group", scores, three, "a") <= 0.05
    assert gap_against_the_rest("group", scores, three, "b") > 0.1
    assert (found.protected_, found.reference_) == ("a", "not a")


def test_several_metrics_are_bound_at_once(three: Rows) -> None:
    group = np.where(three.group == "b", "b", "a")
    rows = three._replace(group=group)
    both = fitted(rows, ["group", "intra_group"], max_gap=0.04)
    scores = both.decision_function(rows.X)
    gaps = [gap_against_the_rest(metric, scores, rows, "b") for metric in ("group", "intra_group")]
    assert both.gap_.value == pytest.approx(max(gaps), abs=1e-12)
    assert max(gaps) <= 0.04
    told = both.measure(rows.X, rows.y, sensitive_features=group)
    assert [part.metric for part in told.groups] == ["group", "intra_group"]


def test_columns_give_intersections(three: Rows) -> None:
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    age = np.where(np.arange(400) % 2 > 0, "old", "young")
    two = np.where(three.group == "b", "b", "a")
    joined = np.array([f"{g} & {a}" for g, a in zip(two, age, strict=True)])
    expected = fitted(three._replace(group=joined))
    assert expected.groups_ == ("a & old", "a & young", "b & old", "b & young")
    table = pa.table({"group": two.tolist(), "age": age.tolist()})
    for columns in (pd.DataFrame({"group": two, "age": age}), np.stack([two, age], axis=1), table):
        found = fitted(three._replace(group=columns))
        assert found.groups_ == expected.groups_
        assert found.coef_.tobytes() == expected.coef_.tobytes()
        measured = found.measure(three.X, three.y, sensitive_features=columns)
        assert measured.gap == found.gap_


@pytest.mark.parametrize("absent", [None, pytest.param(float("nan"), marks=pytest.mark.rel)])
def test_missing_groups_are_what_the_user_says(three: Rows, absent: Any) -> None:
    group = three.group.astype(object)
    group[:60] = absent
    with pytest.raises(DataError, match="missing in 60 of 400 rows"):
        fitted(three._replace(group=group))
    own = fitted(three._replace(group=group), unknown="own_group")
    named = np.where(np.arange(400) < 60, "unknown", three.group)
    assert own.coef_.tobytes() == fitted(three._replace(group=named)).coef_.tobytes()
    assert own.groups_ == ("a", "b", "c", "unknown")
    left = fitted(three._replace(group=group), unknown="drop")
    assert left.coef_.tobytes() == fitted(three.take(np.r_[60:400])).coef_.tobytes()
    assert left.measure(three.X, three.y, sensitive_features=group).gap == left.gap_
    for unknown in ("own_group", "drop"):
        stream = FairAUCClassifier("group", max_gap=0.05, random_state=0, protected="b", unknown=unknown)
        stream.partial_fit(three.X, three.y, sensitive_features=group)
        assert sum(stream.gap_.counts[:2]) == (400 if unknown == "own_group" else 340)


def test_measures_of_any_scores_compare_each_group(three: Rows) -> None:
    scores = three.X[:, 0]
    found = measure_scores(scores, three.y, sensitive_features=three.group, metric="group")
    assert {part.group: part.gap.value for part in found.groups} == pytest.approx(
        {g: gap_against_the_rest("group", scores, three, g) for g in "abc"}, abs=1e-12
    )
    assert found.worst is not None
    assert found.worst.gap.value == max(part.gap.value for part in found.groups)


@pytest.mark.parametrize(
    "settings, error, words",
    [
        ({"kappa": 0.1, "max_gap": None}, InvalidInput, "kappa=0.1: bounds one gap of two groups"),
        ({"method": "bounds"}, InvalidInput, "method='bounds': bounds one gap of two groups"),
        ({"metric": ["group", "intra_group"], "kappa": 0.1, "max_gap": None}, InvalidInput, "metric=.*several metrics"),
        ({"metric": ["group", "intra"]}, UnknownName, "did you mean 'intra_group'"),
        ({"unknown": "fill"}, UnknownName, "unknown='fill'"),
    ],
)
def test_what_knows_two_groups_only_says_so(
    three: Rows, settings: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        fitted(three, **settings)


def test_a_group_without_rows_of_a_subset_is_named(three: Rows) -> None:
    group = np.where((three.group == "c") & (three.y == "no"), "a", three.group)
    with pytest.raises(DataError, match=r"group 'c' against the rest: no row is in the subset negative & protected"):
        fitted(three._replace(group=group), "inter_group")
