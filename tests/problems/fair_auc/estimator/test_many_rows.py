"""Fits of many rows: a bounded sample trains, and all rows are what the target is about."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon_problems.fair_auc import FairAUCClassifier
from minmaxcon_problems.fair_auc.estimator import training
from minmaxcon_problems.fair_auc.labelled import LabelledData
from tests.problems.fair_auc.estimator.samples import Rows, biased_rows, gap_by_pairs


@pytest.fixture(scope="module")
def many() -> Rows:
    return biased_rows(3000, 1)


def test_the_target_is_met_on_all_rows(many: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which a model of the sample alone does not."""

    def fitted(**settings: Any) -> FairAUCClassifier:
        model = FairAUCClassifier("inter_group", max_gap=[0.1, 0.02], random_state=0, **settings)
        return model.fit(many.X, many.y, sensitive_features=many.group)

    plain = fitted()
    monkeypatch.setattr(training, "MANY", 1000)
    monkeypatch.setattr(training, "_CELL", 150)
    found, again = fitted(), fitted()
    assert found.coef_.tobytes() == again.coef_.tobytes()
    for limit, one, full in zip((0.1, 0.02), found.path_, plain.path_, strict=True):
        scores = one.decision_function(many.X)
        assert one.gap_.value == pytest.approx(gap_by_pairs("inter_group", scores, many), abs=1e-12)
        assert limit - 0.005 < one.gap_.value <= limit
        assert one.status_ is mm.Status.SOLVED
        assert one.auc_.value == pytest.approx(full.auc_.value, abs=0.02)
        assert one.max_gap_ == limit


@pytest.mark.parametrize("weighted", [False, True])
def test_a_sample_stands_for_its_cells(many: Rows, weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "_CELL", 100)
    label, group = np.where(many.y == "yes", 1, -1), np.where(many.group == "b", 1, -1)
    rows = LabelledData(many.X, label, group, ("a", "b", "c", "d"))
    weight = np.random.default_rng(0).uniform(1, 3, 3000) if weighted else None
    part, stands = training._sample(rows, weight, 0)
    own = np.ones(3000) if weight is None else weight
    for y in (-1, 1):
        for g in (-1, 1):
            cell = (label == y) & (group == g)
            assert stands[cell[part]].sum() == pytest.approx(own[cell].sum())
            assert cell[part].sum() == 100
    assert np.unique(part).size == part.size


def test_a_sample_that_never_meets_the_limits_of_all_rows_gives_the_best_of_its_models() -> None:
    """Held to ever smaller gaps; of a model that meets the limit the AUC counts, of others the gap."""

    def one(gap: float, area: float) -> Any:
        fit = SimpleNamespace(
            gap=SimpleNamespace(value=gap), auc=SimpleNamespace(value=area), max_gap=0.05, price=1.0, seen=len(asked)
        )
        return SimpleNamespace(fit=fit)

    asked: list[float] = []

    def trained(goals: tuple[float, ...]) -> Any:
        asked.extend(goals)
        return [one(0.2 - 0.01 * len(asked), 0.8)]

    (found,) = training.held_on_all(trained, [one(0.2, 0.9)], lambda: "")
    assert len(asked) > 1
    assert (np.diff([0.05, *asked]) <= 0).all()
    assert min(asked) == 0.0
    assert found.fit.seen == len(asked)  # the last, whose gap is the least
