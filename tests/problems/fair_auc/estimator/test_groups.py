"""Several groups, intersections, missing groups and several metrics, against the gap of every pair."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import ConvergenceWarning

import minmaxcon as mm
from minmaxcon.errors import DataError, InvalidInput, UnknownName
from minmaxcon_problems.fair_auc import (
    METRICS,
    FairAUCClassifier,
    auc_gap_scorer,
    fair_auc_scorer,
    measure_scores,
    resolve_metric,
)
from tests.cases import promises
from tests.problems.fair_auc.estimator.samples import Rows, every_pair

SHIFTS = {"a": 0.0, "b": -0.9, "c": 0.8}


@pytest.fixture(scope="module")
def three() -> Rows:
    return drawn(0)


def drawn(seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    group = rng.choice(list("abc"), 400, p=[0.5, 0.3, 0.2])
    shift = np.array([SHIFTS[g] for g in group])
    features = rng.normal(size=(400, 3)) + shift[:, None] * [1.0, 1.5, 0.0]
    label = np.where(features[:, 0] + 0.5 * features[:, 2] + 0.5 * shift + rng.normal(size=400) > 0, "yes", "no")
    return Rows(features, label, group)


def fitted(rows: Rows, metric: Any = "group", **settings: Any) -> FairAUCClassifier:
    model = FairAUCClassifier(metric, **{"max_gap": 0.05, "random_state": 0, **settings})
    return model.fit(rows.X, rows.y, sensitive_features=rows.group)


FEW_STEPS = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
"""For fits that are compared bit by bit: as many steps as differ with the groups are enough."""


def gap_against_the_rest(metric: str, scores: Any, rows: Rows, group: Any) -> float:
    yes, mine = rows.y == "yes", np.array([g == group for g in rows.group])
    first, second = {
        "group": ((mine, ~mine), None),
        "inter_group": ((yes & mine, ~yes & ~mine), (yes & ~mine, ~yes & mine)),
        "intra_group": ((yes & mine, ~yes & mine), (yes & ~mine, ~yes & ~mine)),
    }[metric]
    other = 0.5 if second is None else every_pair(scores[second[0]], scores[second[1]])
    return abs(every_pair(scores[first[0]], scores[first[1]]) - other)


@pytest.mark.filterwarnings("ignore:budget")
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
    # two groups alone differ by more than each from the rest, and the fit says so
    pair = told.worst_pair
    assert pair is not None
    assert pair.gap.value >= max(gaps.values())
    said = f"between {pair.group!r} and {pair.rest!r} alone the {metric} gap is {pair.gap.value:.3g}."
    assert (said in found.reason_) == (pair.gap.value > 0.05)
    assert pair.gap.value > 0.05 or metric != "group"
    apart = found.compare(free, three.X, three.y, sensitive_features=three.group)
    assert set(apart.signed_gaps) == {"a", "b", "c"}
    assert apart.gap is not None
    assert apart.gap.upper < 0.0
    assert apart.first.as_dict() == told.as_dict()


@pytest.mark.parametrize("metric, seed", [("group", 0), pytest.param("inter_group", 1, marks=pytest.mark.rel)])
def test_every_two_groups_are_bound_where_each_is_compared_with_each_other(metric: str, seed: int) -> None:
    three = drawn(seed)
    rest, found = (fitted(three, metric, against=against) for against in ("rest", "each_other"))
    pairs = list(itertools.combinations("abc", 2))
    before, gaps = (
        {two: gap_of_pair(metric, one.decision_function(three.X), three, *two) for two in pairs}
        for one in (rest, found)
    )
    assert max(before.values()) > 0.05
    assert 0.045 <= max(gaps.values()) <= 0.05
    assert found.gap_.value == pytest.approx(max(gaps.values()), abs=1e-12)
    assert found.auc_.value > 0.6
    assert "alone the" not in found.reason_
    told = found.measure(three.X, three.y, sensitive_features=three.group)
    assert {(part.group, part.rest): part.gap.value for part in told.groups} == pytest.approx(gaps, abs=1e-12)
    assert told.gap == found.gap_
    assert told.worst_pair is not None
    assert told.worst_pair.gap.value == pytest.approx(told.gap.value, abs=1e-12)
    assert sum(cell.rows for cell in told.cells) == 400  # once, though each group is in two pairs
    apart = found.compare(rest, three.X, three.y, sensitive_features=three.group)
    assert set(apart.signed_gaps) == set(pairs)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = auc_gap_scorer(metric, against="each_other")
        assert -scorer(found, three.X, three.y, sensitive_features=three.group) == pytest.approx(max(gaps.values()))
        scorer = fair_auc_scorer(metric, 0.01, against="each_other")
        assert scorer(found, three.X, three.y, sensitive_features=three.group) == pytest.approx(
            0.01 - max(gaps.values())
        )


def test_small_groups_are_in_no_pair_that_is_bound(three: Rows) -> None:
    rows, settings = with_a_few(three, 4, 3), {"objective": "quadratic_auc", "alpha": 0.0, "against": "each_other"}
    with pytest.warns(UserWarning, match=r"left out of the bound: 'd'\.$"):
        found = fitted(rows, min_rows_per_cell=4, **settings)
    scores, pairs = found.decision_function(rows.X), list(itertools.combinations("abc", 2))
    gaps = [gap_of_pair("group", scores, rows, *two) for two in pairs]
    assert found.gap_.value == pytest.approx(max(gaps), abs=1e-12)
    assert max(gaps) <= 0.05
    told = found.measure(rows.X, rows.y, sensitive_features=rows.group)
    assert told.gap == found.gap_
    assert told.left_out == ("d",)
    assert len(told.groups) == 6
    assert told.worst is not None
    assert "d" not in (told.worst.group, told.worst.rest)


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


@FEW_STEPS
def test_columns_give_intersections(three: Rows) -> None:
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    age = np.where(np.arange(400) % 2 > 0, "old", "young")
    two = np.where(three.group == "b", "b", "a")
    joined = np.array([f"{g} & {a}" for g, a in zip(two, age, strict=True)])
    expected = fitted(three._replace(group=joined), max_iter=3)
    assert expected.groups_ == ("a & old", "a & young", "b & old", "b & young")
    table = pa.table({"group": two.tolist(), "age": age.tolist()})
    for columns in (pd.DataFrame({"group": two, "age": age}), np.stack([two, age], axis=1), table):
        found = fitted(three._replace(group=columns), max_iter=3)
        assert found.groups_ == expected.groups_
        assert found.coef_.tobytes() == expected.coef_.tobytes()
        measured = found.measure(three.X, three.y, sensitive_features=columns)
        assert measured.gap == found.gap_


@FEW_STEPS
@pytest.mark.parametrize("absent", [None, pytest.param(float("nan"), marks=pytest.mark.rel)])
def test_missing_groups_are_what_the_user_says(three: Rows, absent: Any) -> None:
    group = three.group.astype(object)
    group[:60] = absent
    with pytest.raises(DataError, match="missing in 60 of 400 rows"):
        fitted(three._replace(group=group))
    own = fitted(three._replace(group=group), unknown="own_group", max_iter=3)
    named = np.where(np.arange(400) < 60, "unknown", three.group)
    assert own.coef_.tobytes() == fitted(three._replace(group=named), max_iter=3).coef_.tobytes()
    assert own.groups_ == ("a", "b", "c", "unknown")
    left = fitted(three._replace(group=group), unknown="drop", max_iter=3)
    assert left.coef_.tobytes() == fitted(three.take(np.r_[60:400]), max_iter=3).coef_.tobytes()
    assert left.measure(three.X, three.y, sensitive_features=group).gap == left.gap_
    for unknown in ("own_group", "drop"):
        stream = FairAUCClassifier("group", max_gap=0.05, random_state=0, protected="b", unknown=unknown)
        stream.partial_fit(three.X, three.y, sensitive_features=group)
        assert sum(stream.gap_.counts[:2]) == (400 if unknown == "own_group" else 340)


@pytest.mark.parametrize("absent", [None, float("nan"), ""])
def test_missing_groups_are_met_alike_wherever_rows_are_given(three: Rows, absent: Any) -> None:
    """Refused, left out or a group of their own, in measures, comparisons and rows to judge by, as in training."""
    settings = {"objective": "quadratic_auc", "alpha": 0.0, "max_gap": 1.0}
    group = three.group.astype(object)
    group[:60] = absent
    kept = three.take(np.r_[60:400])
    refused, dropped = fitted(three, **settings), fitted(three, unknown="drop", **settings)
    given = {"X": three.X, "y": three.y, "sensitive_features": group}
    with pytest.raises(DataError, match="sensitive_features: is missing in 60 of 400 rows"):
        refused.measure(**given)
    with pytest.raises(DataError, match="sensitive_features: is missing in 60 of 400 rows"):
        refused.compare(three.X[:, 0], **given)
    found = dropped.measure(**given)
    assert found.gap == dropped.measure(kept.X, kept.y, sensitive_features=kept.group).gap
    assert sum(cell.rows for cell in found.cells) == 340
    assert dropped.compare(three.X[:, 0], **given).first.gap == found.gap
    own = {"X_val": three.X, "y_val": three.y, "sensitive_features_val": group}
    with pytest.raises(DataError, match="is missing in 60 of 400 rows"):
        FairAUCClassifier("group", **settings).fit(three.X, three.y, sensitive_features=three.group, **own)
    judged = FairAUCClassifier("group", unknown="drop", **settings)
    judged.fit(three.X, three.y, sensitive_features=three.group, **own)
    assert judged.gap_ == judged.measure(kept.X, kept.y, sensitive_features=kept.group).gap
    named = FairAUCClassifier("group", unknown="own_group", **settings)
    named.fit(three.X, three.y, sensitive_features=group, **own)
    assert named.groups_ == ("a", "b", "c", "unknown")
    assert named.gap_ == named.measure(**given).gap


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
        ({"against": "pairs"}, UnknownName, "against='pairs'"),
        (
            {"against": "each_other", "protected": "a"},
            InvalidInput,
            "against='each_other': .* leave one of the two out",
        ),
        (
            {"against": "each_other", "kappa": 0.1, "max_gap": None},
            InvalidInput,
            r"kappa=0.1: bounds one gap of two groups.* say with protected= and against=\"rest\" which",
        ),
        (
            {"against": "each_other", "method": "bounds"},
            InvalidInput,
            r"method='bounds': .* say with protected= and against=\"rest\" which",
        ),
    ],
)
def test_what_knows_two_groups_only_says_so(
    three: Rows, settings: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        fitted(three, **settings)


def test_a_remedy_that_names_a_protected_group_can_be_followed(three: Rows) -> None:
    """Groups that are compared with each other bar ``protected``: where they are too many, a remedy undoes that too."""
    many = three._replace(group=np.arange(len(three.y)) % 51)
    stream = FairAUCClassifier("group", max_gap=0.1, random_state=0, against="each_other")
    for refused in (
        lambda: fitted(many, against="each_other"),
        lambda: measure_scores(many.X[:, 0], many.y, sensitive_features=many.group, against="each_other"),
        lambda: stream.partial_fit(three.X, three.y, sensitive_features=three.group),
    ):
        with pytest.raises(DataError, match=r"say with protected= and against=\"rest\" which one is protected"):
            refused()
    stream.set_params(against="rest", protected="a").partial_fit(three.X, three.y, sensitive_features=three.group)


def test_a_group_without_rows_of_a_subset_is_named(three: Rows) -> None:
    group = np.where((three.group == "c") & (three.y == "no"), "a", three.group)
    with pytest.raises(DataError, match=r"group 'c' against the rest: no row is in the subset negative & protected"):
        fitted(three._replace(group=group), "inter_group")
    with pytest.raises(
        DataError,
        match=r"groups 'a' \(protected\) and 'c' \(unprotected\) alone: no row is in the subset negative & unprotected",
    ):
        fitted(three._replace(group=group), "inter_group", against="each_other")


def test_too_many_groups_to_compare_every_two_are_refused(three: Rows) -> None:
    group = np.arange(400) % 17
    with pytest.raises(InvalidInput, match=r"against='each_other': compares every two of at most 16 .* there are 17:"):
        fitted(three._replace(group=group), against="each_other")
    with pytest.raises(InvalidInput, match="at most 16 groups"):
        measure_scores(three.X[:, 0], three.y, sensitive_features=group, against="each_other")


def gap_of_pair(metric: str, scores: Any, rows: Rows, one: str, other: str) -> float:
    """The gap on the rows of two groups alone, the first one protected."""
    inside = np.isin(rows.group, (one, other))
    part, own = rows.take(inside), scores[inside]
    masks = resolve_metric(metric).masks(np.where(part.y == "yes", 1, -1), np.where(part.group == one, 1, -1)).T
    return abs(every_pair(own[masks[0]], own[masks[1]]) - every_pair(own[masks[2]], own[masks[3]]))


@pytest.mark.parametrize("metric", METRICS)
def test_the_two_groups_that_differ_most_are_told(three: Rows, metric: str) -> None:
    scores = three.X[:, 0]
    found = measure_scores(scores, three.y, sensitive_features=three.group, metric=metric)
    pair = found.worst_pair
    assert pair is not None
    gaps = {two: gap_of_pair(metric, scores, three, *two) for two in itertools.permutations("abc", 2)}
    every = measure_scores(scores, three.y, sensitive_features=three.group, metric=metric, against="each_other")
    for part in every.groups:
        assert part.gap.value == pytest.approx(gaps[part.group, part.rest], abs=1e-12)
    assert every.gap is not None
    assert every.gap.value == pytest.approx(pair.gap.value, abs=1e-12)
    assert every.gap.upper == pytest.approx(pair.gap.upper, abs=1e-12)
    assert pair.gap.value == pytest.approx(max(gaps.values()), abs=1e-12)
    assert gaps[pair.group, pair.rest] == pytest.approx(pair.gap.value, abs=1e-12)
    assert abs(pair.signed.value) == pair.gap.value
    # intervals of one pair of several are wider than that of the pair alone
    two = three.take(np.isin(three.group, (pair.group, pair.rest)))
    alone = measure_scores(two.X[:, 0], two.y, sensitive_features=two.group, metric=metric, protected=pair.group)
    assert alone.worst_pair is None
    assert alone.gap is not None
    assert alone.gap.value == pytest.approx(pair.gap.value, abs=1e-12)
    assert pair.gap.lower <= pair.gap.value
    assert pair.gap.upper > alone.gap.upper
    pairs = (
        3 if metric in ("group", "inter_group", "intra_group") else 6
    )  # the gap of others depends on who is protected
    assert alone.signed_gap is not None
    assert pair.signed.p_value == pytest.approx(min(1.0, pairs * alone.signed_gap.p_value), rel=1e-6)
    for text in (str(found), str(found.as_dict()["worst_pair"])):
        assert repr(pair.group) in text
        assert repr(pair.rest) in text


def test_a_pair_whose_gap_is_undefined_is_not_said_to_differ(three: Rows) -> None:
    label = np.where(three.group == "a", "yes", "no")  # one label in each group
    found = measure_scores(three.X[:, 0], label, sensitive_features=three.group, metric="intra_group")
    assert found.worst_pair is not None
    assert not found.worst_pair.gap.defined
    assert "differ most" not in str(found)
    assert not any(line.endswith(" ") for line in str(found).splitlines())
    with_gap = measure_scores(three.X[:, 0], label, sensitive_features=three.group, metric="group")
    assert "differ most" in str(with_gap)


def test_the_interval_of_the_worst_pair_covers_whichever_it_is() -> None:
    """Three groups of one distribution: no two differ, though the largest of three differences is never 0."""
    rng, covered = np.random.default_rng(0), 0
    label, group = np.tile([0, 1], 45), np.repeat(list("abc"), 30)
    for _ in range(60):
        pair = measure_scores(rng.normal(size=90) + label, label, sensitive_features=group).worst_pair
        assert pair is not None
        covered += pair.gap.lower == 0.0
    assert covered >= 54  # binomial(60, .95) with probability .996


def with_a_few(rows: Rows, yes: int, no: int) -> Rows:
    """Give so many rows of either label to a group of their own."""
    group = rows.group.copy()
    for label, count in (("yes", yes), ("no", no)):
        group[np.flatnonzero(rows.y == label)[:count]] = "d"
    return rows._replace(group=group)


def test_small_groups_are_left_out_by_the_users_word_alone(three: Rows) -> None:
    rows, settings = with_a_few(three, 4, 3), {"objective": "quadratic_auc", "alpha": 0.0}
    all_bound = fitted(rows, max_gap=1.0, **settings)
    assert "The smallest set behind the gap, rows of 'd', has 7 rows" in all_bound.reason_
    assert fitted(rows, max_gap=1.0, min_rows_per_cell=3, **settings).coef_.tobytes() == all_bound.coef_.tobytes()
    with pytest.warns(UserWarning, match=r"fewer than min_rows_per_cell rows are left out of the bound: 'd'\.$"):
        found = fitted(rows, min_rows_per_cell=4, **settings)
    assert "Left out of the bound for their few rows: 'd'." in found.reason_
    scores = found.decision_function(rows.X)
    gaps = {g: gap_against_the_rest("group", scores, rows, g) for g in "abcd"}
    assert found.gap_.value == pytest.approx(max(gaps[g] for g in "abc"), abs=1e-12)
    assert found.gap_.value <= 0.05 < gaps["d"]
    told = found.measure(rows.X, rows.y, sensitive_features=rows.group)
    assert told.gap == found.gap_
    assert told.worst is not None
    assert told.worst.group != "d"
    assert told.left_out == ("d",)
    assert {part.group: part.gap.value for part in told.groups} == pytest.approx(gaps, abs=1e-12)
    assert any("left out for their few rows: 'd'" in reason for reason in told.reasons)
    own = {"X_val": rows.X, "y_val": rows.y, "sensitive_features_val": rows.group}
    model = FairAUCClassifier("group", max_gap=1.0, min_rows_per_cell=4, **settings)
    with pytest.warns(UserWarning, match="left out of the bound"):
        model.fit(rows.X, rows.y, sensitive_features=rows.group, **own)
    assert len(model.gap_.counts) == 4
    assert model.groups_ == ("a", "b", "c", "d")


def test_the_pair_of_the_two_groups_that_are_left_is_told(three: Rows) -> None:
    """Either is bound against a rest that has the small group, too: the two alone may differ by more."""
    two = three.take(np.flatnonzero(three.group != "c"))
    own = np.flatnonzero((two.group == "a") & (two.y == "no"))
    group = two.group.copy()
    group[own[np.argsort(two.X[own, 0])[-30:]]] = "d"
    rows = two._replace(group=group)
    settings = {"objective": "quadratic_auc", "alpha": 0.0, "min_rows_per_cell": 1}
    with pytest.warns(UserWarning, match="left out of the bound: 'd'"):
        found = fitted(rows, max_gap=0.05, **settings)
    pair = found.measure(rows.X, rows.y, sensitive_features=rows.group).worst_pair
    assert pair is not None
    assert {pair.group, pair.rest} == {"a", "b"}
    scores = found.decision_function(rows.X)
    assert pair.gap.value == pytest.approx(gap_of_pair("group", scores, rows, pair.group, pair.rest), abs=1e-12)
    assert pair.gap.value > 0.05
    assert f"between {pair.group!r} and {pair.rest!r} alone the group gap is {pair.gap.value:.3g}." in found.reason_


def test_a_group_without_rows_of_a_label_can_be_left_out(three: Rows) -> None:
    rows, settings = with_a_few(three, 4, 0), {"objective": "quadratic_auc", "alpha": 0.0, "max_gap": 0.3}
    with pytest.raises(DataError, match="group 'd' against the rest: no row is in the subset"):
        fitted(rows, "intra_group", **settings)
    with pytest.warns(UserWarning, match="left out of the bound: 'd'"):
        found = fitted(rows, "intra_group", min_rows_per_cell=1, **settings)
    assert found.gap_.value <= 0.3


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"min_rows_per_cell": 0}, "min_rows_per_cell=0: must be a whole number"),
        (
            {"min_rows_per_cell": 10**6},
            r"min_rows_per_cell=1000000: leaves fewer than two groups .*'a' has \d+ and \d+",
        ),
        (
            {"min_rows_per_cell": 150, "protected": "c"},
            r"min_rows_per_cell=150: leaves fewer than two .*'c' has \d+ and",
        ),
        ({"min_rows_per_cell": 9, "use_group": True}, "min_rows_per_cell=9: leaves groups out, and use_group"),
    ],
)
def test_least_sizes_that_cannot_be_kept_are_refused(three: Rows, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        fitted(three, **settings)
    model = FairAUCClassifier(min_rows_per_cell=settings["min_rows_per_cell"])
    with pytest.raises(InvalidInput, match=r"min_rows_per_cell=\d+: (is for rows at hand|must be a whole number)"):
        model.partial_fit(three.X, three.y, sensitive_features=three.group)


def test_groups_that_are_written_in_two_ways_are_told(three: Rows) -> None:
    """Values of a text column that differ in case or spaces; one protected value is told what it is compared with."""
    group = three.group.astype(object)
    group[three.group == "b"] = np.where(np.arange((three.group == "b").sum()) % 2 > 0, "A ", "b")
    rows = three._replace(group=group)
    said = r"sensitive_features has 'a' and 'A ', which differ in case|'A ' and 'a'"
    with pytest.warns(UserWarning, match=said) as warned:
        found = fitted(rows, protected="a", objective="quadratic_auc", alpha=0.0)
    assert {warning.filename for warning in warned} == {__file__}  # the caller of fit, in which the groups are mended
    assert "'a' is compared with all others together: " in found.reason_
    assert all(repr(value) in found.reason_ for value in ("A ", "b", "c"))


def test_constraints_grow_with_the_number_of_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two for each group and metric, the sides of its gap; two for each pair only where every two are compared."""
    rng, seen = np.random.default_rng(0), []
    solve = mm.solve
    monkeypatch.setattr(mm, "solve", lambda p, *a, **k: seen.append(len(p.constraints)) or solve(p, *a, **k))
    for count in (3, 12):
        label, group = np.tile([0, 1], 10 * count), np.repeat(np.arange(count), 20)
        for metric in ("group", ["group", "inter_group"]):
            model = FairAUCClassifier(metric, max_gap=1.0, objective="quadratic_auc", alpha=0.0, max_iter=1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(rng.normal(size=(len(label), 2)), label, sensitive_features=group)
            assert max(seen) == 2 * count * (1 if metric == "group" else 2)
            seen.clear()
    model = FairAUCClassifier("group", against="each_other", max_gap=1.0, objective="quadratic_auc", max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rng.normal(size=(len(label), 2)), label, sensitive_features=group % 5)
    assert max(seen) == 5 * 4
