"""Targets that a search misses: other ways to them are tried, and the evidence is that of all models."""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon_problems.fair_auc import FairAUCClassifier
from minmaxcon_problems.fair_auc.target import fit
from tests.problems.fair_auc.estimator.samples import biased_rows


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


@pytest.mark.parametrize("held_out", [False, True])
def test_a_model_that_ranks_worse_than_chance_is_turned_round(monkeypatch: pytest.MonkeyPatch, held_out: bool) -> None:
    """The gap of its negative is the same, as both AUCs are counted from the other end."""
    rows, rest = biased_rows(250, 0), biased_rows(250, 1)
    own = {"X_val": rest.X, "y_val": rest.y, "sensitive_features_val": rest.group} if held_out else {}
    model = FairAUCClassifier("inter_group", max_gap=0.1, objective="quadratic_auc", alpha=0, random_state=0)
    straight = model.fit(rows.X, rows.y, sensitive_features=rows.group, **own).coef_
    follow = fit._by_following

    def turned(judge: Any, *given: Any) -> Any:
        found = follow(judge, *given)
        runs = [replace(one.run, x=-one.run.x) for one in found.goals]
        return replace(found, goals=[replace(found.goals[0], run=run, on_train=judge.on_train(run)) for run in runs])

    monkeypatch.setattr(fit, "_by_following", turned)
    model.fit(rows.X, rows.y, sensitive_features=rows.group, **own)
    if model.target_ >= 0:
        np.testing.assert_allclose(model.coef_, straight, rtol=1e-9)
        assert "turned round" in model.reason_
    assert model.auc_.value > 0.5
