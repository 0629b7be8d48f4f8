"""Networks in the estimator: the paper's, any torch module, a model of the framework; and what importing loads."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

import minmaxcon as mm
from minmaxcon.errors import InvalidInput
from minmaxcon_problems.fair_auc import FairAUCClassifier
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.target import fit
from minmaxcon_problems.fair_auc.target.problem import Target
from tests.cases import promises
from tests.problems.fair_auc.estimator.samples import Rows, gap_by_pairs


def two_layers(features: int) -> Any:
    import torch

    return torch.nn.Sequential(torch.nn.Linear(features, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1))


MODELS = {
    "mlp": lambda: "mlp",
    "factory": lambda: two_layers,
    "module": lambda: two_layers(4),
    "model": lambda: mm.mlp(4, hidden=3),
}


@pytest.mark.parametrize("name", promises(MODELS, ["mlp", "module"]))
def test_networks_meet_the_gap(rows: Rows, name: str) -> None:
    if name in ("factory", "module"):  # whose Jacobian takes ten times as long
        rows = rows.take(slice(0, 150 if name == "module" else 200))
    found = FairAUCClassifier("group", max_gap=0.05, model=MODELS[name](), random_state=0)
    found.fit(rows.X, rows.y, sensitive_features=rows.group)
    scores = found.decision_function(rows.X)
    assert found.gap_.value == pytest.approx(gap_by_pairs("group", scores, rows), abs=1e-4)
    assert found.gap_.value <= 0.051
    assert found.auc_.value == pytest.approx(roc_auc_score(rows.y == "yes", scores), abs=1e-4)
    assert found.auc_.value > 0.7
    assert not hasattr(found, "coef_")
    np.testing.assert_allclose(found.decision_function(csr_matrix(rows.X)), scores)
    for other in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        np.testing.assert_array_equal(other.decision_function(rows.X), scores)
    again = clone(found)
    assert not hasattr(again, "gap_")
    if name == "factory":
        again.fit(rows.X, rows.y, sensitive_features=rows.group)
        np.testing.assert_array_equal(again.decision_function(rows.X), scores)


@pytest.mark.filterwarnings("ignore:.*target:sklearn.exceptions.ConvergenceWarning")  # stopped by the clock
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_factory_gets_the_number_of_features_and_leaves_torchs_seed_alone(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(fit, "_STEPS", 1)  # the start is all that is asked
    quick: dict[str, Any] = {"objective": "quadratic_auc"}  # by a fifth of the Jacobians
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    found = [
        FairAUCClassifier("group", max_gap=0.1, model=two_layers, random_state=seed, max_iter=2, **quick).fit(
            rows.X[:100], rows.y[:100], sensitive_features=rows.group[:100]
        )
        for seed in (0, 0, 1)
    ]
    assert torch.rand(1) == expected
    first, same, other = (one._fitted.fit.model.start(0) for one in found)
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


@pytest.mark.filterwarnings("ignore:budget")
def test_kappa_with_a_network(rows: Rows) -> None:
    solver = mm.IQRC(oracle=mm.SFLS(oracle=mm.SMD(steps=40), levels=2), iterations=2)
    found = FairAUCClassifier("group", kappa=0.5, model="mlp", solver=solver, random_state=0)
    found.fit(rows.X, rows.y, sensitive_features=rows.group)
    assert found.solution_.feasible
    assert found.gap_.value == pytest.approx(gap_by_pairs("group", found.decision_function(rows.X), rows), abs=1e-6)


def test_a_bound_that_is_none_is_refused(rows: Rows) -> None:
    with pytest.raises(InvalidInput, match="score_bound=-1"):
        FairAUCClassifier(model=two_layers, score_bound=-1).fit(rows.X, rows.y, sensitive_features=rows.group)


def test_importing_the_problem_loads_neither_scikit_learn_nor_torch() -> None:
    code = (
        "import sys, minmaxcon_problems.fair_auc as f\n"
        "heavy = ('torch', 'cvxpy', 'matplotlib', 'sklearn', 'scipy')\n"
        "print([name for name in heavy if name in sys.modules])\n"
        "f.FairAUCClassifier\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split("\n")[:2] == ["[]", "['sklearn', 'scipy']"]


def few(seed: int, n: int = 80) -> Rows:
    """Rows that a small network ranks well from some starts alone."""
    rng = np.random.default_rng(seed)
    X, group = rng.normal(size=(n, 3)), np.where(rng.random(n) < 0.4, "b", "a")
    y = X[:, 0] * X[:, 1] + 0.8 * np.sin(2 * X[:, 2]) + 0.5 * (group == "a") + 0.5 * rng.normal(size=n) > 0.2
    return Rows(X, np.where(y, "yes", "no"), group)


@pytest.mark.parametrize("seed", [7, pytest.param(9, marks=pytest.mark.rel), pytest.param(0, marks=pytest.mark.rel)])
@pytest.mark.filterwarnings("ignore:budget")
def test_no_better_known_model_contradicts_a_price(seed: int) -> None:
    """A model that is better under a stricter limit is taken under a looser one; one without a target that is worse
    than one with is trained again, which is said, and all prices are counted from it."""
    rows = few(seed)
    model = FairAUCClassifier("inter_group", max_gap=[0.3, 0.05], model=mm.mlp(3, 2), random_state=0)
    loose, strict = model.fit(rows.X, rows.y, sensitive_features=rows.group).path_
    assert loose.auc_.value >= strict.auc_.value - 1e-3
    best = {round(one.auc_.value + one.price_, 12) for one in (loose, strict)}
    assert len(best) == 1
    assert max(best) >= loose.auc_.value - 1e-12
    assert "it was trained again from there" in loose.reason_
    for limit, one in zip((0.3, 0.05), (loose, strict), strict=True):
        assert gap_by_pairs("inter_group", one.decision_function(rows.X), rows) <= limit + 1e-9


@pytest.mark.filterwarnings("ignore:budget")
def test_the_best_of_several_starts_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of fits with these seeds; and its price is counted from the best of them."""
    monkeypatch.setattr(fit, "_STEPS", 5)
    rows = few(6, 60)
    common: dict[str, Any] = {"max_gap": 0.2, "model": mm.mlp(3, 2), "objective": "quadratic_auc"}
    single = [
        FairAUCClassifier("group", random_state=seed, **common).fit(rows.X, rows.y, sensitive_features=rows.group)
        for seed in (0, 1, 2)
    ]
    found = FairAUCClassifier("group", n_init=3, random_state=0, **common)
    found.fit(rows.X, rows.y, sensitive_features=rows.group)
    assert found.auc_.value == max(one.auc_.value for one in single)
    assert found.auc_.value + found.price_ == pytest.approx(max(one.auc_.value + one.price_ for one in single))


def test_early_stopping_takes_what_ranks_held_out_rows_best() -> None:
    """Of all models that training passed, by their own scores of the held-out rows."""
    train, rest = labelled(few(3, 60)), labelled(few(4, 60))
    model, passed = mm.mlp(3, 4), list[Any]()
    common: dict[str, Any] = {"metric": "group", "max_gap": 1.0, "objective": "quadratic_auc", "iterations": 30}
    found = {
        early: fit.fit_target(
            train,
            Target(model=model, early_stopping=early, **common),
            validation=rest,
            callbacks=[lambda progress: passed.append(progress.outcome.x[0, : model.dimension].copy())],
        )
        for early in (False, True)
    }
    areas = [roc_auc_score(rest.label, model.predict(x, rest.features)) for x in passed if np.ptp(x[-4:])]
    assert found[True].auc.value == pytest.approx(max(areas))
    assert found[True].auc.value >= found[False].auc.value


def labelled(rows: Rows) -> LabelledData:
    label, group = (np.where(column == high, 1, -1) for column, high in ((rows.y, "yes"), (rows.group, "b")))
    return LabelledData(rows.X, label, group, ("a", "b", "c"))


@pytest.mark.parametrize("gap", [0.05, 0.3, 1.0])
def test_early_stopping_counts_prices_by_held_out_rows(gap: float) -> None:
    """From the best AUC there of the models that training without a target passes, or from a better one."""
    train, rest = labelled(few(3, 60)), labelled(few(4, 60))
    model, passed = mm.mlp(3, 4), list[Any]()
    common: dict[str, Any] = {"objective": "quadratic_auc", "iterations": 8}

    def look(progress: mm.Progress) -> None:
        x = np.asarray(progress.outcome.x)
        passed.extend([x[0, : model.dimension].copy()] if len(x) == 1 else [])

    target = Target(metric="inter_group", max_gap=gap, model=model, early_stopping=True, **common)
    found = fit.fit_target(train, target, validation=rest, callbacks=[look])

    def area(x: Any) -> float:
        return float(roc_auc_score(rest.label, model.predict(x, rest.features)))

    assert found.auc.value == pytest.approx(area(found.parameters))
    assert found.price == pytest.approx(area(found.free_parameters) - found.auc.value)
    assert found.auc.value + found.price >= max(area(x) for x in passed) - 1e-3
    if "trained again" in found.reason:
        assert "at a held-out AUC of" in found.reason
    if gap == 1.0:
        assert found.price <= 1e-3


def test_a_model_that_training_passed_is_not_called_stationary() -> None:
    solution, watch = mm.solve(mm.load_problem("toy"), seed=0), fit._Watch(None, [1.0])
    assert solution.status is mm.Status.SOLVED
    assert watch.best(solution, 0) is solution
    watch._seen = [(0.9, solution.x)]
    assert watch.best(solution, 0) is solution
    watch._seen = [(0.9, solution.x + 0.1)]
    assert watch.best(solution, 0).status is mm.Status.BUDGET


@pytest.mark.filterwarnings("ignore:budget")
@pytest.mark.parametrize("early", [False, True])
def test_prices_are_at_least_zero_and_reasons_speak_of_the_target_asked_for(
    early: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on held-out rows, of a path, and whichever solve the model comes from."""
    monkeypatch.setattr(fit, "_STEPS", 3)
    rows, rest = few(6, 60), few(8, 60)
    held_out: dict[str, Any] = {"X_val": rest.X, "y_val": rest.y, "sensitive_features_val": rest.group}
    common: dict[str, Any] = {"model": mm.mlp(3, 2), "objective": "quadratic_auc", "random_state": 0}
    seen = 0
    for given in [held_out] if early else [held_out, {}]:
        model = FairAUCClassifier("group", max_gap=[1.0, 0.3], early_stopping=early, **common)
        for one in model.fit(rows.X, rows.y, sensitive_features=rows.group, **given).path_:
            assert one.price_ >= 0.0
            if one.status_ in (mm.Status.SOLVED, mm.Status.BUDGET):
                assert "from its target" not in one.reason_
                seen += "the true measure meets its target" in one.reason_
    assert seen


def test_a_price_is_counted_from_the_model_itself_where_none_is_better() -> None:
    rows = labelled(few(3, 40))
    found = fit.fit_target(rows, Target(metric="group", max_gap=1.0, iterations=2))
    worse = replace(found.auc, value=found.auc.value - 0.1)
    again = replace(found, unconstrained_auc=worse, free_parameters=0 * found.parameters)
    assert again.price == 0.0
    np.testing.assert_array_equal(again.free_parameters, again.parameters)
    assert again.unconstrained_gap == again.gap


def test_a_remedy_for_early_stopping_can_be_followed(rows: Rows) -> None:
    """None that the next call refuses, and none that the method called has no argument for."""
    data: dict[str, Any] = {"sensitive_features": rows.group}
    for more in ({}, {"validation_fraction": 0.3}):
        model = FairAUCClassifier("group", model="mlp", early_stopping=True, demand="new_rows", **more)
        for method in (model.fit, model.partial_fit):
            with pytest.raises(InvalidInput, match='demand="new_rows" leaves rows out by itself') as refused:
                method(rows.X, rows.y, **data)
            assert "give" not in str(refused.value)
    model = FairAUCClassifier("group", model="mlp", early_stopping=True)
    with pytest.raises(InvalidInput, match="give validation_fraction, or X_val to fit"):
        model.fit(rows.X, rows.y, **data)
    with pytest.raises(InvalidInput, match=r"give validation_fraction\.$"):
        model.partial_fit(rows.X, rows.y, classes=["no", "yes"], **data)


def test_options_of_networks_act_or_are_refused(rows: Rows) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"alpha": "cv", "model": "mlp"}, "alpha='cv': must be a number of at least 0; None chooses it"),
        ({"early_stopping": True}, "is for networks"),
        ({"n_init": 2}, "is for networks"),
        ({"n_init": 0, "model": "mlp"}, "n_init=0"),
        ({"early_stopping": True, "model": "mlp"}, "give validation_fraction, or X_val"),
        ({"early_stopping": True, "model": "mlp", "demand": "new_rows"}, "leave one of the two out"),
        ({"early_stopping": "yes", "model": "mlp"}, "True or False"),
        ({"n_init": 2, "model": "mlp", "kappa": 0.1}, "acts with max_gap"),
        ({"n_init": 2, "model": "mlp", "demand": "new_rows"}, "leave one out"),
        ({"n_init": 2, "model": two_layers(4)}, "a function that makes a module"),
        ({"n_init": 2, "model": mm.Linear(4)}, "is for networks"),
        ({"early_stopping": True, "validation_fraction": 0.3, "model": mm.Linear(4)}, "is for networks"),
    ]
    for settings, says in wrong:
        with pytest.raises(InvalidInput, match=says):
            FairAUCClassifier("group", **settings).fit(rows.X, rows.y, sensitive_features=rows.group)
