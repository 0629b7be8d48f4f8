"""The bound of a fair AUC problem: kappa or max_gap, resolved in one place; what is no number is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon_problems.fair_auc import FairAUCClassifier, Subset, stream_problem, stream_target_problem
from minmaxcon_problems.fair_auc.bounds import checked_gap, checked_kappa, resolved_bound
from minmaxcon_problems.fair_auc.target.objectives import AUCObjective
from minmaxcon_problems.fair_auc.target.problem import Target

NO_NUMBERS = [True, np.True_, "0.1", 0.1j, np.ma.masked, np.datetime64("2020-01-01"), float("nan"), {}]


def stream() -> Any:
    rng = np.random.default_rng(0)
    return [
        {"features": rng.normal(size=2), "label": 2 * (i % 2) - 1, "group": 2 * (i // 2 % 2) - 1} for i in range(80)
    ]


def classifier(**settings: Any) -> Any:
    rows = np.random.default_rng(0).normal(size=(40, 2))
    return FairAUCClassifier(**settings).fit(rows, np.arange(40) % 2, sensitive_features=np.arange(40) // 2 % 2)


DOORS: dict[str, Callable[[Any], Any]] = {
    "kappa of a problem": lambda bad: mm.load_problem("fair_auc", kappa=bad),
    "max_gap of a problem": lambda bad: mm.load_problem("fair_auc", max_gap=bad),
    "kappa of a stream": lambda bad: stream_problem(stream(), kappa=bad),
    "max_gap of a stream": lambda bad: stream_target_problem(stream(), max_gap=bad),
    "kappa of the estimator": lambda bad: classifier(kappa=bad),
    "max_gap of the estimator": lambda bad: classifier(max_gap=bad),
    "c1 of a problem": lambda bad: mm.load_problem("fair_auc", c1=bad),
    "c2 of a problem": lambda bad: mm.load_problem("fair_auc", max_gap=0.1, c2=bad),
    "radius of a target": lambda bad: Target(metric="group", max_gap=0.1, radius=bad),
    "bandwidth of a target": lambda bad: Target(metric="group", max_gap=0.1, bandwidth=bad),
    "c1 of an objective": lambda bad: AUCObjective(c1=bad),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("bad", NO_NUMBERS, ids=repr)
def test_what_is_no_number_is_refused_by_name(door: str, bad: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=rf"^{door.split()[0]}="):
        DOORS[door](bad)


@pytest.mark.parametrize("objective", ["auc", "quadratic_auc", "logistic"])
def test_an_objective_is_refused_beside_kappa_even_where_it_is_the_default(objective: str) -> None:
    for load in (lambda **given: mm.load_problem("fair_auc", **given), classifier):
        with pytest.raises(mm.InvalidInput, match=rf"objective='{objective}': needs max_gap"):
            load(kappa=0.1, objective=objective)
    assert mm.load_problem("fair_auc", max_gap=0.05).details.objective == "auc"


@pytest.mark.parametrize("kappa", [0.1, 0.2])
def test_two_bounds_are_refused_even_where_one_is_the_default(kappa: float) -> None:
    for load in (lambda **given: mm.load_problem("fair_auc", **given), classifier):
        with pytest.raises(mm.InvalidInput, match=r"max_gap=0\.05: is another way to bound unfairness than kappa"):
            load(kappa=kappa, max_gap=0.05)


def test_defaults() -> None:
    assert resolved_bound(default="kappa") == (0.1, None)
    assert resolved_bound(default="max_gap") == (None, 0.02)
    assert resolved_bound(0.3, default="max_gap") == (0.3, None)
    assert mm.load_problem("fair_auc").details.kappa == 0.1
    assert stream_problem(stream()).details.kappa == 0.1
    assert stream_target_problem(stream()).details.max_gap == 0.02
    plugin = mm.plugin("fair_auc")
    plain, target = mm.load_problem("fair_auc"), mm.load_problem("fair_auc", max_gap=[0.1, 0.2])
    assert plugin.settings(plain) == {"kappa": 0.1, "max_gap": None, "objective": None}
    assert plugin.settings(target) == {"kappa": None, "max_gap": [0.1, 0.2], "objective": "auc"}


def test_numbers_of_any_kind() -> None:
    assert checked_kappa(Fraction(1, 2), 0.5, 1.0) == 0.5
    assert checked_kappa(np.float32(0.5), 0.5, 1.0) == 0.5
    assert checked_gap([0, 1]).tolist() == [0.0, 1.0]
    for several in ([], [[0.1]]):
        with pytest.raises(mm.InvalidInput, match="kappa="):
            checked_kappa(several, 0.5, 1.0)


def test_evaluating_solves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither does loading: the price is measured against a problem that the caller has solved."""
    monkeypatch.setattr(mm.SuccessiveApproximation, "step", None)
    plugin = mm.plugin("fair_auc")
    problem = mm.load_problem("fair_auc", max_gap=0.05)
    w = np.linspace(-0.1, 0.1, problem.primal.dimension)
    found = plugin.evaluate(problem, w)
    assert "without_target" not in found["train"]
    ((name, free),) = plugin.references(problem).items()
    assert (free.bounds() > 1.0).all()  # no gap reaches them
    other = plugin.evaluate(free, np.flip(w))
    assert found["train"]["auc"] != other["train"]["auc"]
    for one, free in ((found, other), (other, found)):  # a price is at least 0, whichever of the two is better
        without = plugin.compared(one, {name: free})["train"]["without_target"]
        assert without["auc"] == max(part["train"]["auc"] for part in (one, free))
        assert without["price"] == without["auc"] - one["train"]["auc"] >= 0.0
    assert plugin.references(mm.load_problem("fair_auc")) == {}


def test_the_scale_and_margin_of_a_target_are_those_of_its_loss() -> None:
    problem = mm.load_problem("fair_auc", max_gap=1.0, objective="quadratic_auc", c1=1.0, c2=0.5)
    solution = mm.solve(problem, mm.SuccessiveApproximation(iterations=5))
    assert mm.plugin("fair_auc").evaluate(problem, solution.x)["objective"] == pytest.approx(
        solution.objective, rel=1e-9
    )


def test_subsets_are_made_once() -> None:
    subsets = (Subset(1, 1), Subset(-1, 1), Subset(1, -1), Subset(-1, -1))
    assert Target(metric=subsets, max_gap=0.1).metric.subsets == subsets
