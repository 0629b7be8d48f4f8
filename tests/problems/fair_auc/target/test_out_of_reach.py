"""Targets that a search misses: other ways to them are tried, and the evidence is that of all models."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon_problems.fair_auc import FairAUCClassifier
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.target import fit, side_bounds
from minmaxcon_problems.fair_auc.target.problem import Target
from tests.problems.fair_auc.estimator.samples import Rows, biased_rows


def labelled(rows: Rows) -> LabelledData:
    features = (rows.X - rows.X.mean(0)) / rows.X.std(0)
    return LabelledData(
        features=features,
        label=np.where(rows.y == "yes", 1, -1),
        group=np.where(rows.group == "b", 1, -1),
        feature_names=("p", "q", "r", "s"),
        label_values=("no", "yes"),
        group_values=("a", "b"),
        encoding=None,
        name="rows",
    )


def candidate(gap: float, status: mm.Status = mm.Status.OUT_OF_REACH) -> Any:
    return SimpleNamespace(run=SimpleNamespace(status=status, x=f"at {gap}"), gap=gap)


@pytest.mark.parametrize("interrupted", [None, 0, 1])
def test_goals_that_were_missed_by_far_are_tried_from_the_fairest_model(interrupted: int | None) -> None:
    """Goals between the gap without a target and the strictest one lead there; Ctrl-C ends it, and is told."""
    asked: list[tuple[Any, Any]] = []

    def solve(goals: Any, start: Any) -> list[Any]:
        asked.append((list(np.round(goals, 6)), start))
        status = mm.Status.INTERRUPTED if interrupted == len(asked) - 1 else mm.Status.OUT_OF_REACH
        return [candidate(gap, status) for gap in ((0.3, 0.09, 0.12) if len(asked) == 1 else (0.25, 0.06))]

    goals = [candidate(0.2, mm.Status.SOLVED), candidate(0.21), candidate(0.105), candidate(0.3)]
    before = fit._Candidates(goals, candidate(0.4))
    found = fit._closer(before, np.array([0.2, 0.1, 0.1, 0.025]), solve)
    assert asked[0] == ([0.05, 0.1, 0.2], "at 0.4")
    assert found.interrupted == (interrupted is not None)
    if interrupted == 0:
        assert len(asked) == 1
        return
    assert asked[1] == ([0.1, 0.025], "at 0.09")
    assert [one.gap for one in found.goals] == [0.2, 0.21, 0.105, 0.06]
    assert {one.gap for one in found.others} == {0.3, 0.09, 0.12}
    close = fit._Candidates([candidate(0.105)], candidate(0.4))
    assert fit._closer(close, np.array([0.1]), solve) is close


@pytest.mark.parametrize("interrupted", [False, True])
def test_goals_that_were_missed_with_shifts_are_tried_from_a_model_without(interrupted: bool) -> None:
    """The start lacks the last features' weights, nothing else; of both models of a goal the fairer one is kept."""
    asked: list[tuple[Any, Any]] = []

    def solve(goals: Any, start: Any) -> list[Any]:
        asked.append((list(goals), list(start)))
        ends = mm.Status.SOLVED, mm.Status.INTERRUPTED if interrupted else mm.Status.OUT_OF_REACH
        return [candidate(gap, status) for gap, status in zip((0.09, 0.04), ends, strict=True)]

    def judge(model: Any, shifts: int) -> Any:
        return SimpleNamespace(train=None, target=SimpleNamespace(model_for=lambda _: model, shifts=shifts))

    free = candidate(0.4)
    free.run.x = np.array([1.0, 2.0, 3.0, 4.0, 5.0])  # the last one is of the objective
    before = fit._Candidates([candidate(0.2, mm.Status.SOLVED), candidate(0.11), candidate(0.03)], free)
    goals = np.array([0.2, 0.1, 0.025])
    found = fit._without_shifts(before, judge(mm.Linear(4), 2), goals, solve)
    assert asked == [([0.1, 0.025], [1.0, 2.0, 0.0, 0.0, 5.0])]
    assert [one.gap for one in found.goals] == [0.2, 0.09, 0.03]
    assert found.interrupted == interrupted
    assert free.run.x[2] == 3.0
    met = fit._Candidates(before.goals[:1], free)
    for same, other in ((before, judge(mm.Linear(4), 0)), (before, judge(mm.MLP(4), 2)), (met, judge(mm.Linear(4), 2))):
        assert fit._without_shifts(same, other, goals, solve) is same
    if interrupted:  # nothing more is tried
        assert fit._closer(found, goals, solve) is found
    assert len(asked) == 1


@pytest.mark.rel
def test_a_limit_that_a_model_without_shifts_meets_is_met_with_them() -> None:
    """Groups whose features tell different things: the way from large shifts ended at a gap of 0.03."""
    rng = np.random.default_rng(23)
    names = np.array(["a", "b", "c"])
    group = rng.choice(3, p=[0.15, 0.15, 0.7], size=400)
    X = rng.normal(size=(400, 3))
    slopes = rng.normal(size=3) + 0.8 * rng.normal(size=(3, 3))
    scores = (X * slopes[group]).sum(axis=1) + np.array([-1.2, 0.75, 0.0])[group] + 2.0 * rng.normal(size=400)
    model = FairAUCClassifier("intra_group", max_gap=0.005, use_group=True, alpha=1e-3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X, scores > 0, sensitive_features=names[group])
    assert model.status_ in (mm.Status.SOLVED, mm.Status.BUDGET)
    assert model.gap_.value <= 0.005
    assert model.auc_.value > 0.6


def test_no_model_of_a_path_is_fairer_than_what_is_called_the_least_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "_STEPS", 4)
    rng = np.random.default_rng(1)
    group, X = rng.choice(4, 200, p=[0.4, 0.3, 0.2, 0.1]), rng.normal(size=(200, 2))
    y = X[:, 0] + 0.5 * (group == 1) - 0.5 * (group == 3) + rng.normal(size=200) > 0
    model = FairAUCClassifier(["inter_group", "intra_group"], max_gap=[0.1, 0.01, 0.005], alpha=0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X, y, sensitive_features=group)
    gaps = [one.gap_.value for one in model.path_]
    missed = [one for one in model.path_ if one.status_ is mm.Status.OUT_OF_REACH]
    assert missed
    for one in missed:
        assert one.gap_.value == min(gaps)
        assert f"The least gap found on the data is {min(gaps):.4g}" in one.reason_
    held_to = {one.coef_.tobytes(): one.target_ for one in model.path_}
    for one in model.path_:  # a model was held to one goal, whichever limit it serves
        assert one.target_ == held_to[one.coef_.tobytes()]
    assert {one.target_ for one in model.path_} != {one.max_gap_ for one in model.path_}


@pytest.mark.parametrize(
    "objective, method, held_out",
    [("quadratic_auc", "following", False), ("logistic", "following", True), ("auc", "bounds", False)],
)
def test_a_model_that_ranks_worse_than_chance_is_turned_round(
    monkeypatch: pytest.MonkeyPatch, objective: str, method: Any, held_out: bool
) -> None:
    """The gap of its negative is the same, as both AUCs are counted from the other end; and all is about that one."""
    rows, rest = labelled(biased_rows(250, 0)), labelled(biased_rows(250, 1))
    for name, value in {"_KAPPAS": (0.4,), "_SHIFTS": (-0.3, 0.3), "_STEPS": 100}.items():
        monkeypatch.setattr(side_bounds, name, value)
    steps = 5 if method == "following" else None
    target = Target(metric="inter_group", max_gap=0.1, objective=objective, method=method, iterations=steps)
    given = {"validation": rest} if held_out else {}
    name = f"_by_{method}"
    solve = getattr(fit, name)
    solved: list[Any] = []

    def turned(judge: Any, *given: Any) -> Any:
        if not solved:
            solved.append(solve(judge, *given))
            return solved[0]
        goals = []
        for one in solved[0].goals:
            values = one.run.constraints[::-1] if method == "following" else one.run.constraints
            run = replace(one.run, x=-one.run.x, objective=np.nan, constraints=values)
            goals.append(replace(one, run=run, on_train=judge.on_train(run)))
        return replace(solved[0], goals=goals)

    monkeypatch.setattr(fit, name, turned)
    straight, found = (fit.fit_target(rows, target, **given) for _ in range(2))
    assert straight.target is not None
    assert straight.target >= 0
    np.testing.assert_array_equal(found.parameters, straight.parameters)
    np.testing.assert_array_equal(found.solution.x, straight.solution.x)
    np.testing.assert_allclose(found.solution.constraints, straight.solution.constraints, atol=1e-12)
    assert found.surrogate == pytest.approx(straight.surrogate, rel=1e-6, nan_ok=True)
    assert found.solution.objective == found.surrogate["objective"]
    assert (found.gap, found.auc, found.train_auc) == (straight.gap, straight.auc, straight.train_auc)
    assert "turned round" in found.reason
    assert "turned round" in found.solution.reason
    assert found.solution.certificate.kind == "none"
    assert found.price >= 0.0


@pytest.mark.parametrize("held_out", [False, True])
def test_the_rows_that_the_target_is_about_decide_what_is_worse_than_chance(held_out: bool) -> None:
    rows = labelled(biased_rows(250, 0))
    other = replace(rows, label=-rows.label)  # what ranks one well ranks the other badly
    found = fit.fit_target(
        rows, Target(metric="group", max_gap=0.5, iterations=5), validation=other if held_out else None
    )
    assert found.auc.value > 0.5
    assert ("turned round" in found.reason) == held_out
    assert (found.train_auc.value < 0.5) == held_out


@dataclass(frozen=True)
class Made:
    """What is known of a fit."""

    made_for: float
    max_gap: float
    status: mm.Status = mm.Status.SOLVED
    reason: str = "It is so."


@pytest.mark.parametrize("limit", [None, 2.5])
def test_targets_that_there_is_no_time_to_begin_take_the_nearest_model(
    limit: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of the loosest target that is as tight, else of the tightest: three of a second each are begun."""
    now, until = [100.0], list[float | None]()

    def one_second(_: Any, target: Target, folds: Any, *, row_weight: Any) -> Any:
        assert (folds, row_weight) == ("folds", "weights")
        until.append(target.until)
        now[0] += 1.0
        return Made(target.max_gap, target.max_gap), f"left out of {target.max_gap:g}"

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(fit, "fit_new_rows", one_second)
    gaps = [0.3, 0.02, 0.1, 0.2, 0.4, 0.01]
    target = Target(metric="group", max_gap=1.0, time_limit=limit)
    found = fit.fit_new_rows_path(labelled(biased_rows(60, 0)), target, gaps, "folds", row_weight="weights")  # type: ignore[arg-type]
    assert [one.max_gap for one, _ in found] == gaps
    taken = [0.3, 0.02, 0.1] + ([0.1, 0.3, 0.02] if limit else gaps[3:])
    assert [(one.made_for, left) for one, left in found] == [(gap, f"left out of {gap:g}") for gap in taken]
    assert until == ([102.5] * 3 if limit else [None] * 6)
    for k, (one, _) in enumerate(found):
        if limit is None or k < 3:
            assert (one.status, one.reason) == (mm.Status.SOLVED, "It is so.")
        else:
            said = (
                "The time limit of 2.5 s was reached before this target was begun, and the model is that of the target"
            )
            assert (one.status, one.reason) == (mm.Status.UNFINISHED, f"{said} {taken[k]:g}. It is so.")
