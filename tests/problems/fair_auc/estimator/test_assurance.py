"""What a fit assures it knows: statuses, limits, constants, missing values, and options that act or are refused."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning

import minmaxcon as mm
from minmaxcon.errors import DataError, InvalidInput
from minmaxcon_problems.fair_auc import FairAUCClassifier
from minmaxcon_problems.fair_auc.estimator.asked import asked_of
from minmaxcon_problems.fair_auc.estimator.inputs import sensitive_column
from minmaxcon_problems.fair_auc.target import fit as fit_module
from tests.problems.fair_auc.estimator.samples import Rows, biased_rows, gap_by_pairs


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


@pytest.mark.rel
def test_the_upper_end_of_a_separated_minority_promises_nothing() -> None:
    for seed in (0, 1):
        rows = tiny_minority(seed)
        with pytest.warns(ConvergenceWarning):
            found = fitted(rows, "intra_group", max_gap=0.05, demand="upper", validation_fraction=0.5)
        assert found.status_ is mm.Status.OUT_OF_REACH
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


def test_each_solve_may_take_all_the_time_that_is_left(few: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []
    solve = mm.solve
    monkeypatch.setattr(mm, "solve", lambda *a, **k: limits.append(k["time_limit"]) or solve(*a, **k))
    fitted(few, time_limit=600.0)
    assert 500.0 < limits[1] < limits[0] <= 600.0


def test_imports_are_not_on_the_clock(few: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def clock() -> float:
        order.append("clock")
        raise TimeoutError

    load = fit_module.importlib.import_module

    def noted(name: str, package: str | None = None) -> Any:
        if name == "torch":
            order.append(name)
        return load(name, package)

    monkeypatch.setattr(fit_module.importlib, "import_module", noted)
    monkeypatch.setattr(fit_module.time, "perf_counter", clock)
    with pytest.raises(TimeoutError):
        fitted(few, model=mm.TorchModule(torch.nn.Linear(few.X.shape[1], 1), 9.0))
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


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("standardize", [True, False])
def test_measures_are_those_of_the_decision_function(few: Rows, sparse: bool, standardize: bool) -> None:
    """Also where columns are constant up to rounding, such as shares and their sum."""
    shares = np.random.default_rng(0).dirichlet(np.ones(3), 120)
    scaled = (few.X - few.X.mean(axis=0)) / few.X.std(axis=0)
    X = np.c_[scaled, shares, shares.sum(axis=1)] + (0.0 if sparse else 1e3)
    X = csr_matrix(X) if sparse else X
    rows = Rows(X, few.y, few.group)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = fitted(rows, standardize=standardize)
    scores = found.decision_function(X)
    assert found.gap_.value == pytest.approx(gap_by_pairs("group", scores, rows), abs=1e-12)
    assert found.measure(X, rows.y, sensitive_features=rows.group).gap == found.gap_
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
    rows = biased_rows(200, 5)
    beside = {
        "calibration": {"use_group": True},
        "demand": {"validation_fraction": 0.3, "max_gap": 0.25},
        "solver": {"kappa": 0.1},
        "n_init": {"model": "mlp"},
        "early_stopping": {"model": "mlp", "validation_fraction": 0.3},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, value in OTHER.items():
            base = beside.get(name, {})
            if name == "score_bound":
                continue  # bounds a set of offsets that seldom matters; tests of models try it
            if name == "random_state":
                base = {"validation_fraction": 0.3}  # the split; a linear model itself has nothing random
            one, other = fitted(rows, **base), fitted(rows, **base, **{name: value})
            scores = [
                fit.predict_proba(rows.X, **({"sensitive_features": rows.group} if fit.use_group else {}))
                for fit in (one, other)
            ]
            assert scores[0].tolist() != scores[1].tolist(), name


def test_the_checks_of_options_are_made_once_more_for_streams() -> None:
    with pytest.raises(InvalidInput, match="demand='upper'"):
        asked_of(FairAUCClassifier(demand="upper"), 0)
