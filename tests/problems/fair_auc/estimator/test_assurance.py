"""What a fit assures it knows: statuses, limits, constants, missing values, and options that act or are refused."""

from __future__ import annotations

import importlib
import itertools
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import minmaxcon as mm
from minmaxcon.errors import DataError, InvalidInput
from minmaxcon_problems.fair_auc import FairAUCClassifier
from minmaxcon_problems.fair_auc.estimator import training
from minmaxcon_problems.fair_auc.estimator.asked import asked_of
from minmaxcon_problems.fair_auc.estimator.inputs import sensitive_column
from minmaxcon_problems.fair_auc.estimator.reasons import FitWarning
from tests.problems.fair_auc.estimator.samples import Rows, biased_rows, every_pair, gap_by_pairs


@pytest.fixture(scope="module")
def few() -> Rows:
    return biased_rows(120, 3)


def fitted(rows: Rows, metric: str = "group", **settings: Any) -> FairAUCClassifier:
    return FairAUCClassifier(metric, **{"random_state": 0, **settings}).fit(
        rows.X, rows.y, sensitive_features=rows.group
    )


def tiny_minority(seed: int) -> Rows:
    """A majority of AUC .98, and a minority of four and four rows and AUC .82."""
    rng = np.random.default_rng(seed)
    group, label = np.repeat(["many", "few"], [200, 8]), np.tile([0, 1], 104)
    first = rng.normal(size=208) + label * np.where(group == "many", 2.9, 1.3)
    return Rows(np.stack([first, rng.normal(size=208)], axis=1), label, group)


def minority_with(positives: int) -> Rows:
    """Rows of which the protected ones have so many positives."""
    rows = biased_rows(200, 6)
    return rows.take(np.r_[np.flatnonzero((rows.group == "a") | (rows.y == "no")), _positives(rows)[:positives]])


def _positives(rows: Rows) -> Any:
    return np.flatnonzero((rows.group == "b") & (rows.y == "yes"))


@pytest.mark.parametrize("positives", [1, 2])
def test_what_a_few_protected_positives_allow_to_be_known(positives: int) -> None:
    """In words of the counts: of one nothing, of two next to nothing, whatever gap the rows at hand have."""
    rows = minority_with(positives)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = fitted(rows, "inter_group", objective="quadratic_auc", alpha=0.0, max_iter=10)
    said = "The smallest set behind the gap, rows labelled 'yes' of 'b', has"
    if positives == 1:
        assert f"{said} 1 row: nothing can be known of the gap of new rows." in found.reason_
        assert np.isnan(found.gap_.upper)
    else:
        new = found.gap_.for_new_rows(1.0)
        assert f"{said} 2 rows: on as many new rows chance alone may make it anything" in found.reason_
        assert f"anything from {new.lower:.2g} to {new.upper:.2g}." in found.reason_
        assert new.upper > 0.4


def test_what_two_in_a_hundred_positives_allow_to_be_known() -> None:
    """The interval of new rows, and that labels are hardly ever predicted; with many rows nothing is said."""
    rng = np.random.default_rng(0)
    group, first = np.where(rng.random(5000) < 0.4, "b", "a"), rng.normal(size=5000)
    label = first + 1.5 * rng.normal(size=5000) > 3.7
    X = np.stack([first, rng.normal(size=5000)], axis=1)
    settings = {"objective": "quadratic_auc", "alpha": 0.0, "max_gap": 0.3}
    rare = fitted(Rows(X, label, group), "inter_group", **settings)
    assert label.mean() == pytest.approx(0.02, abs=0.005)
    count = int((label & (group == "b")).sum())
    assert f"rows labelled True of 'b', has {count} rows: on as many new rows chance alone may" in rare.reason_
    predicted = int(rare.predict(X).sum())
    assert predicted < 0.1 * label.sum()
    assert f"The label True is predicted for {predicted} of 5,000 rows, of which {label.sum()} have it" in rare.reason_
    common = fitted(Rows(X, first > 0, group), "inter_group", **settings)
    assert "smallest set" not in common.reason_
    assert "predicted for" not in common.reason_


@pytest.mark.rel
def test_the_upper_end_of_a_separated_minority_promises_nothing() -> None:
    for seed in range(10):
        rows, steps = tiny_minority(seed), None if seed < 1 else 8  # all steps in one draw; the interval is as wide
        settings = {"max_gap": 0.05, "demand": "upper", "validation_fraction": 0.5, "max_iter": steps}
        with pytest.warns(ConvergenceWarning):
            found = fitted(rows, "intra_group", **settings)
        assert found.status_ is mm.Status.OUT_OF_REACH or (steps and found.status_ is mm.Status.UNFINISHED)
        assert found.gap_.upper > 0.3


def test_one_held_out_row_of_a_subset_is_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mm, "solve", lambda *_, **__: pytest.fail("worked"))
    rows = tiny_minority(0).take(np.r_[:206])
    with pytest.raises(DataError, match=r"the held-out part: only one row is \w+ & protected, .*needs two"):
        fitted(rows, "intra_group", demand="upper", validation_fraction=0.2)
    with pytest.raises(DataError, match=r"the held-out part: no row is in the subset \w+ & protected"):
        fitted(tiny_minority(0).take(np.r_[:201, 201]), "intra_group", validation_fraction=0.2)


def test_a_limit_that_is_not_reached_changes_no_bit(few: Rows) -> None:
    free, limited = fitted(few), fitted(few, time_limit=600.0)
    assert free.coef_.tobytes() == limited.coef_.tobytes()
    assert (free.status_, free.reason_) == (limited.status_, limited.reason_)


@pytest.mark.rel
@pytest.mark.parametrize("settings", [{"max_gap": [0.2, 0.05]}, {"model": "mlp", "n_init": 2}])
def test_a_limit_that_is_not_reached_changes_no_bit_of_any_fit(few: Rows, settings: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        free, limited = fitted(few, **settings), fitted(few, time_limit=600.0, **settings)
    for one, other in zip(free.path_, limited.path_, strict=True):
        assert one.decision_function(few.X).tobytes() == other.decision_function(few.X).tobytes()
        assert (one.status_, one.reason_, one.gap_, one.price_) == (
            other.status_,
            other.reason_,
            other.gap_,
            other.price_,
        )


def test_a_search_that_ends_early_warns_and_names_the_remedy(few: Rows) -> None:
    """As scikit-learn's do: with few steps, and of little time, though the target is met."""
    with pytest.warns(ConvergenceWarning, match=r"outer steps the true measure meets its target\..* a larger max_iter"):
        found = fitted(few, max_gap=0.3, max_iter=2)
    assert found.status_ is mm.Status.BUDGET
    assert found.n_iter_ == 2
    assert found.gap_.value <= 0.3
    said = r"unfinished: The outer steps that were asked for were used up\. The least gap .* Give a larger max_iter\."
    with pytest.warns(ConvergenceWarning, match=said):
        assert fitted(few, max_gap=0.001, max_iter=1).status_ is mm.Status.UNFINISHED  # though it can be met
    assert fitted(few, max_gap=0.001).gap_.value <= 0.001
    with pytest.warns(ConvergenceWarning, match="Give a solver of more steps"):
        fitted(few, kappa=0.3, solver=mm.SFLS(oracle=mm.SMD(steps=5), levels=1))


@pytest.mark.filterwarnings("ignore:budget.*Give a larger alpha, or leave out features that depend on each other")
def test_features_that_depend_on_each_other_are_no_harm() -> None:
    """Copies up to rounding, nearly so, and sums: fits end as solved, or say so, with the AUC of the features alone."""
    rows, rng = biased_rows(200, 1), np.random.default_rng(0)
    noise = rng.normal(size=(200, 2)) * [1e-9, 1e-4]
    more = rows._replace(X=np.c_[rows.X, rows.X @ rng.normal(size=(4, 2)), rows.X[:, :2] * (1.0 + noise)])
    for alpha in (None, 0.0):
        for gap in (0.05, 1.0):
            own, found = (fitted(one, "inter_group", max_gap=gap, alpha=alpha) for one in (rows, more))
            assert found.status_ is mm.Status.SOLVED or alpha == 0.0
            assert found.gap_.value <= gap
            assert found.auc_.value >= own.auc_.value - (1e-3 if alpha == 0.0 else 5e-3)  # another penalty is chosen
    plain = LogisticRegression(C=1.0).fit((more.X - more.X.mean(axis=0)) / more.X.std(axis=0), more.y)
    ranked = plain.decision_function((more.X - more.X.mean(axis=0)) / more.X.std(axis=0))
    yes = rows.y == "yes"
    assert found.auc_.value >= every_pair(ranked[yes], ranked[~yes]) - 1e-3


def test_classes_that_are_separated_end_as_solved_and_say_what_they_know() -> None:
    rng = np.random.default_rng(0)
    group, X = np.where(rng.random(120) < 0.5, "b", "a"), rng.normal(size=(120, 5))
    rows = Rows(X, X[:, 0] - X[:, 1] > 0, group)
    assert fitted(rows, "inter_group", max_gap=0.05).auc_.value > 0.99
    found = fitted(rows, "inter_group", max_gap=0.05, alpha=0.0)
    assert found.auc_.value > 0.999
    assert found.gap_.value < 2e-3
    assert found.status_ is mm.Status.SOLVED
    assert found.auc_.lower < 1.0  # though all of these rows are told apart
    assert found.gap_.upper > 0.0
    assert np.isfinite(found.coef_).all()
    assert found.predict_proba(X).min() > 0.0


def test_a_label_that_is_the_group_leaves_nothing_to_rank_fairly() -> None:
    """Every AUC above one half is then as large a gap; where groups are compared within labels, a set is empty."""
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], 30)
    rows = Rows(rng.normal(size=(60, 3)) + (group == "b")[:, None], group, group)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = fitted(rows, "group", max_gap=0.05, objective="quadratic_auc", alpha=0.0, max_iter=20)
    assert found.auc_.value - 0.5 == pytest.approx(found.gap_.value, abs=1e-12)
    met = found.gap_.value <= 0.05
    assert met == (found.status_ is not mm.Status.OUT_OF_REACH)
    assert met or any(str(found.status_) in str(warning.message) for warning in told)
    assert found.price_ > 0.1
    with pytest.raises(DataError, match="no row is in the subset"):
        fitted(rows, "inter_group")


def test_each_solve_may_take_all_the_time_that_is_left(few: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []
    solve = mm.solve
    monkeypatch.setattr(mm, "solve", lambda *a, **k: limits.append(k["time_limit"]) or solve(*a, **k))
    fitted(few, time_limit=600.0)
    assert 500.0 < limits[1] < limits[0] <= 600.0


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], list[float]]:
    """Give a function after whose call each solve, and the choice of the penalty, takes so long by a false clock.

    It returns the list of what each solve may take.
    """

    def clock(seconds: float) -> list[float]:
        now, limits, solve, choose = [0.0], list[float](), mm.solve, training.chosen_shrinkage

        def slow_solve(*args: Any, **given: Any) -> Any:
            limits.append((given["time_limit"] or np.inf) - given.get("elapsed", 0.0))
            found = solve(*args, **given)
            now[0] += seconds
            return found

        def slow_choice(*args: Any) -> Any:
            now[0] += seconds
            return choose(*args)

        monkeypatch.setattr(time, "perf_counter", lambda: now[0])
        monkeypatch.setattr(mm, "solve", slow_solve)
        monkeypatch.setattr(training, "chosen_shrinkage", slow_choice)
        return limits

    return clock


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "settings",
    [
        {"max_gap": [0.02, 0.2]},
        {"max_gap": 0.05, "demand": "new_rows"},
        {"kappa": 0.1},
        {"max_gap": 0.05, "model": "mlp", "n_init": 5, "max_iter": 5},
    ],
    ids=lambda settings: next(reversed(settings)),
)
def test_all_solves_of_a_fit_share_one_limit(settings: dict[str, Any], slow: Callable[[float], list[float]]) -> None:
    """The choice of the penalty and each solve take a fifth of it, and then nothing is left."""
    limits = slow(200.0)
    fair = fitted(biased_rows(300, 1), time_limit=1000.0, **settings)
    linear = "model" not in settings
    first = 800.0 if linear and "max_gap" in settings else 1000.0  # the penalty is chosen, and has taken its time
    assert all(one <= first - 200.0 * taken + 1e-6 for taken, one in enumerate(limits[:4]))
    assert all(one < 1e-6 for one in limits[5:])
    assert len(limits) <= (9 if linear else 6)  # no start begins when nothing is left
    if not linear:
        assert limits[0] <= 200.0
        assert fair.status_ in {mm.Status.BUDGET, mm.Status.UNFINISHED}
        assert f"Starts begun before the time limit of 1000.0 s: {len(limits) // 2} of 5." in fair.reason_
    if "demand" in settings:
        assert fair.status_ is mm.Status.UNFINISHED
        assert "within the folds" in fair.reason_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_folds_leave_a_share_of_the_limit_to_the_model(
    slow: Callable[[float], list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit that is reached after the folds alone is not one that they have reached."""
    monkeypatch.setattr(training, "_FOLDS", 2)
    monkeypatch.setattr(training, "_ROUNDS", 1)
    rows = biased_rows(300, 1)
    settings: dict[str, Any] = {"max_gap": 0.05, "demand": "new_rows", "max_iter": 5}
    limits = slow(1.0)
    free = fitted(rows, **settings)
    taken = len(limits)
    reached = fitted(rows, time_limit=taken + 1.5, **settings)
    assert (reached.status_, reached.reason_) == (free.status_, free.reason_)
    limits = slow(1.0)
    cut = fitted(rows, time_limit=(taken + 1.0) / 2, **settings)
    assert "within the folds" in cut.reason_
    assert max(limits[-2:]) > 1e-6


@pytest.mark.parametrize("gap, status, made", [(0.9, mm.Status.BUDGET, 2), (0.0, mm.Status.UNFINISHED, 1)])
def test_starts_that_there_is_no_time_for_are_told(
    gap: float, status: mm.Status, made: int, few: Rows, slow: Callable[[float], list[float]]
) -> None:
    """Whether the best of the others meets its limit or not, for which each is trained again from another one."""
    limits = slow(400.0)
    with pytest.warns(
        FitWarning,
        match=rf"^{status}: Starts begun before the time limit of 1000.0 s: {made} of 3\. .* Give a longer time",
    ):
        found = fitted(few, model="mlp", n_init=3, max_gap=gap, max_iter=2, time_limit=1000.0)
    assert len(limits) >= 2 * made
    assert found.status_ is status


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_limit_that_there_is_no_time_to_begin_takes_the_model_of_another(
    slow: Callable[[float], list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No solve begins when nothing is left."""
    monkeypatch.setattr(training, "_FOLDS", 2)
    monkeypatch.setattr(training, "_ROUNDS", 1)
    limits = slow(400.0)
    settings: dict[str, Any] = {"demand": "new_rows", "max_iter": 5, "time_limit": 1000.0}
    path = fitted(biased_rows(300, 1), max_gap=[0.1, 0.3, 0.02], **settings).path_
    assert len(limits) == 4  # two of a fold, two of the model
    assert [one.max_gap for one in path] == [0.1, 0.3, 0.02]
    assert [one.status_ for one in path] == [mm.Status.UNFINISHED] * 3
    over = "The time limit of 1000.0 s was reached"
    assert path[0].reason_.startswith(f"{over} within the folds.")
    for one in path[1:]:
        said = f"{over} before this target was begun, and the model is that of the target 0.1. {over} within the folds."
        assert one.reason_.startswith(said)
        np.testing.assert_array_equal(one.coef_, path[0].coef_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("source", ["rows", "frames"])
def test_a_sample_that_had_no_time_to_meet_all_rows_is_unfinished(
    source: str, slow: Callable[[float], list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = biased_rows(3000, 1 if source == "frames" else 6)
    monkeypatch.setattr(training, "MANY", 1000)
    monkeypatch.setattr(training, "_CELL", 60)
    slow(1.0)
    found = {}
    for limit in (1000.0, 2.5):
        fair: Any = FairAUCClassifier(max_gap=0.02, max_rows_per_cell=100, random_state=0, time_limit=limit)
        if source == "rows":
            fair.fit(rows.X, rows.y, sensitive_features=rows.group)
        else:
            frame = pd.DataFrame(rows.X, columns=[f"x{k}" for k in range(rows.X.shape[1])])
            frame = frame.assign(y=rows.y, g=rows.group)
            halves = frame[:1500], frame[1500:]
            fair.fit(partial(iter, halves), "y", sensitive_features="g")
        found[limit] = fair
    assert found[1000.0].status_ is mm.Status.SOLVED
    assert found[2.5].gap_.value > 0.02
    assert found[2.5].status_ is mm.Status.UNFINISHED
    assert found[2.5].reason_.startswith("The time limit of 2.5 s was reached.")


def test_imports_are_not_on_the_clock(few: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def clock() -> float:
        order.append("clock")
        raise TimeoutError

    load = importlib.import_module

    def noted(name: str, package: str | None = None) -> Any:
        if name == "torch":
            order.append(name)
        return load(name, package)

    monkeypatch.setattr(importlib, "import_module", noted)
    monkeypatch.setattr(time, "perf_counter", clock)
    with pytest.raises(TimeoutError):
        fitted(few, model=mm.TorchModule(torch.nn.Linear(few.X.shape[1], 1), 9.0), time_limit=60.0)
    assert order == ["torch", "clock"]


def test_a_fit_that_was_cut_short_is_unfinished(few: Rows) -> None:
    with pytest.warns(ConvergenceWarning) as told:
        found = fitted(few, time_limit=1e-9)
    assert found.status_ is mm.Status.UNFINISHED
    assert "No model was found yet" in found.reason_
    assert any("all rows one score" in str(warning.message) for warning in told)


def test_a_model_that_has_no_time_to_become_fair_is_unfinished(few: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    solve, calls = mm.solve, []

    def second_without_time(*args: Any, **options: Any) -> Any:
        calls.append(0)
        return solve(*args, **{**options, "time_limit": 1e-9 if len(calls) == 2 else None})

    monkeypatch.setattr(mm, "solve", second_without_time)
    with pytest.warns(
        ConvergenceWarning, match=r"unfinished: The time limit of 60.0 s was reached. The least gap found"
    ):
        found = fitted(few, time_limit=60.0)
    assert found.status_ is mm.Status.UNFINISHED
    assert found.gap_.value > 0.1


@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
@pytest.mark.parametrize("standardize", [True, False])
def test_measures_are_those_of_the_decision_function(few: Rows, kind: str, standardize: bool) -> None:
    """Also where columns are constant up to rounding, such as shares and their sum."""
    shares = np.random.default_rng(0).dirichlet(np.ones(3), 120)
    scaled = (few.X - few.X.mean(axis=0)) / few.X.std(axis=0)
    X = np.c_[scaled, shares, shares.sum(axis=1)] + (1e3 if kind == "dense" else 0.0)
    X = csr_matrix(X) if kind == "sparse" else X.astype(np.float32 if kind == "float32" else np.float64)
    rows = Rows(X, few.y, few.group)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = fitted(rows, standardize=standardize)
    scores = found.decision_function(X)
    assert found.gap_.value == pytest.approx(gap_by_pairs("group", scores, rows), abs=1e-12)
    assert found.measure(X, rows.y, sensitive_features=rows.group).gap == found.gap_
    yes, fit = rows.y == "yes", found._fitted.fit
    assert found.auc_.value == pytest.approx(every_pair(scores[yes], scores[~yes]), abs=1e-12)
    best = replace(found._fitted, fit=replace(fit, parameters=fit.free_parameters)).decision(X.astype(np.float64))
    price = every_pair(best[yes], best[~yes]) - found.auc_.value
    assert found.price_ == pytest.approx(max(price, 0.0), abs=1e-12)
    assert found.price_ > 0
    assert np.abs(found.coef_[0, -1]) < 1e3


NAN = float("nan")


@pytest.mark.parametrize(
    "values",
    [
        ["a", NAN, "b", "a"],
        ("a", NAN, "b", "a"),
        [["a"], [NAN], ["b"], ["a"]],
        np.array(["a", NAN, "b", "a"]),
        np.array(["a", NAN, "b", "a"], dtype=object),
        ["a", None, "b", "a"],
        [True, NAN, False, True],
        np.array([0.0, NAN, 1.0, 1.0]),
        pd.Series([0, pd.NA, 1, 1], dtype="Int64"),
        pd.Series(["a", pd.NA, "b", "a"], dtype="string"),
        pd.Series(["a", None, "b", "a"], dtype="category"),
        pd.Series(pd.to_datetime(["2020", None, "2021", "2020"])),
        pd.DataFrame({"y": ["a", NAN, "b", "a"]}),
        lambda: pytest.importorskip("polars").Series([0, None, 1, 1]),
        lambda: pytest.importorskip("polars").DataFrame({"y": [0.0, NAN, 1.0, 1.0]}),
    ],
)
def test_a_missing_value_is_no_group_and_no_label_in_any_container(values: Any) -> None:
    values = values() if callable(values) else values
    with pytest.raises(DataError, match="missing in 1 of 4 rows, counted from 0: 1"):
        sensitive_column(values, 4)
    X = np.arange(8.0).reshape(4, 2)
    for call in (FairAUCClassifier(protected="b").fit, FairAUCClassifier(protected="b").partial_fit):
        with pytest.raises(DataError, match="missing in 1 of 4 rows, counted from 0: 1"):
            call(X, [0, 1, 0, 1], sensitive_features=values)
        with pytest.raises(DataError, match=r"^y: is missing in 1 of 4 rows, counted from 0: 1; remove"):
            call(X, values, sensitive_features=["a", "b", "a", "b"])


@pytest.mark.parametrize("odd", [["a", "b"], {"a"}])
def test_a_list_is_no_value(odd: Any) -> None:
    X, plain = np.arange(8.0).reshape(4, 2), ["a", "b", "a", "b"]
    with pytest.raises(DataError, match=r"sensitive_features: row 3 \(counted from 0\) holds a"):
        FairAUCClassifier(protected="b").fit(X, [0, 1, 0, 1], sensitive_features=["a", "b", "a", odd])
    with pytest.raises(DataError, match=r"y: row 3 \(counted from 0\) holds a"):
        FairAUCClassifier().fit(X, ["no", "yes", "no", odd], sensitive_features=plain)


OTHER = {
    "max_gap": 0.1,
    "kappa": 0.1,
    "model": "mlp",
    "objective": "logistic",
    "alpha": 100.0,
    "monotonic_cst": [-1, 0, 0, 0],
    "n_init": 2,
    "early_stopping": True,
    "method": "bounds",
    "demand": "upper",
    "validation_fraction": 0.3,
    "against": "each_other",
    "min_rows_per_cell": 3,
    "max_iter": 3,
    "use_group": True,
    "calibration": "by_group",
    "standardize": False,
    "radius": 0.2,
    "score_bound": 10.0,
    "solver": mm.SFLS(oracle=mm.SMD(steps=50), levels=2),
    "time_limit": 1e-6,
    "random_state": 1,
}
"""Another value than the default for each option that fit reads."""

REFUSED = {
    frozenset(pair)
    for pair in [
        ("max_gap", "kappa"),
        ("kappa", "objective"),
        ("kappa", "alpha"),
        ("kappa", "monotonic_cst"),
        ("model", "monotonic_cst"),
        ("method", "monotonic_cst"),
        ("alpha", "method"),
        ("kappa", "method"),
        ("kappa", "max_iter"),
        ("method", "max_iter"),
        ("use_group", "min_rows_per_cell"),
        ("calibration", "min_rows_per_cell"),
        ("kappa", "demand"),
        ("model", "method"),
        ("objective", "method"),
        ("model", "score_bound"),
    ]
}
NEEDS_ANOTHER = {
    "calibration": "use_group",
    "demand": "validation_fraction",
    "solver": "kappa",
    "n_init": "model",
    "early_stopping": "a network, and held-out rows",
    "score_bound": "a module as model",
}


def words_of(settings: dict[str, Any], rows: Rows, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the refusal, empty where work would begin."""

    class Begun(Exception):
        pass

    def begin(*_: Any, **__: Any) -> None:
        raise Begun

    monkeypatch.setattr("minmaxcon_problems.fair_auc.estimator.training.build_problem", begin)
    monkeypatch.setattr("minmaxcon_problems.fair_auc.target.fit._by_following", begin)
    monkeypatch.setattr("minmaxcon_problems.fair_auc.target.fit._by_bounds", begin)
    try:
        fitted(rows, **settings)
    except Begun:
        return ""
    except InvalidInput as refusal:
        return str(refusal)
    return pytest.fail("work did not begin")


@pytest.mark.parametrize("first, second", list(itertools.combinations(OTHER, 2)))
def test_options_that_cannot_act_together_are_refused(
    few: Rows, monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    settings = {first: OTHER[first], second: OTHER[second]}
    words = words_of(settings, few, monkeypatch)
    lacking = any(name in settings and other not in settings for name, other in NEEDS_ANOTHER.items())
    assert bool(words) == (lacking or frozenset(settings) in REFUSED), words
    if words:
        assert any(f"{name}=" in words for name in settings)


@pytest.mark.rel
def test_every_option_acts() -> None:
    """Each changes the fit, alone or beside the option that it needs."""
    rows, plain = biased_rows(200, 5), dict[str, FairAUCClassifier]()
    beside = {
        "calibration": {"use_group": True},
        "demand": {"validation_fraction": 0.3, "max_gap": 0.25},
        "solver": {"kappa": 0.1},
        "n_init": {"model": "mlp", "max_iter": 30},
        "early_stopping": {"model": "mlp", "max_iter": 30, "validation_fraction": 0.3},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, value in OTHER.items():
            base = beside.get(name, {})
            if name == "score_bound":
                continue  # bounds a set of offsets that seldom matters; tests of models try it
            if name in ("against", "min_rows_per_cell"):
                continue  # is about more than two groups; tests of groups try it
            if name == "random_state":
                base = {"validation_fraction": 0.3}  # the split; a linear model itself has nothing random
            if str(base) not in plain:
                plain[str(base)] = fitted(rows, **base)
            one, other = plain[str(base)], fitted(rows, **base, **{name: value})
            scores = [
                fit.predict_proba(rows.X, **({"sensitive_features": rows.group} if fit.use_group else {}))
                for fit in (one, other)
            ]
            assert scores[0].tolist() != scores[1].tolist(), name


def test_the_checks_of_options_are_made_once_more_for_streams() -> None:
    with pytest.raises(InvalidInput, match="demand='upper'"):
        asked_of(FairAUCClassifier(demand="upper"), 0)
