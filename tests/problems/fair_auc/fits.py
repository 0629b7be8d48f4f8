"""Fits to a target on rows with a known bias, and their judgement by scikit-learn from the scores that they predict."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.target.fit import FairFit, fit_target
from minmaxcon_problems.fair_auc.target.problem import Target
from tests.problems.fair_auc.by_pairs import biased, sklearn_auc, sklearn_gap

Array = Any

LOWEST = 0.003  # an active target is missed by no more than this, and never exceeded


@cache
def rows(seed: int = 0, n: int = 1500) -> LabelledData:
    return biased(seed, n)


OF_A_FIT = ("validation", "row_weight", "start", "callbacks")


def fit(metric: Any = "inter_group", gap: Any = 0.02, data: LabelledData | None = None, **options: Any) -> FairFit:
    given = {name: options.pop(name) for name in OF_A_FIT if name in options}
    return fit_target(rows() if data is None else data, Target(metric=metric, max_gap=gap, **options), **given)


def judged(found: FairFit, data: LabelledData, masks: Array, weight: Array = None) -> tuple[float, float]:
    """Gap and AUC by scikit-learn; of linear models even the scores are computed here."""
    if isinstance(found.model, mm.Linear):
        scores = np.asarray(data.features @ found.parameters)
    else:
        scores = found.model.predict(found.parameters, data.features)
    positive = data.label > 0
    return abs(sklearn_gap(scores, masks, weight)), sklearn_auc(scores, positive, ~positive, weight)


def check(found: FairFit, data: LabelledData, masks: Array, gap: float, weight: Array = None) -> None:
    """The report is true, the target met, and met closely where a model without it would miss it."""
    true_gap, area = judged(found, data, masks, weight)
    assert found.train_gap.value == pytest.approx(true_gap, abs=1e-9)
    assert found.train_auc.value == pytest.approx(area, abs=1e-9)
    assert found.max_gap == gap
    assert true_gap <= gap
    if found.unconstrained_gap.value > gap:
        assert true_gap >= gap - LOWEST
    assert found.status in {mm.Status.SOLVED, mm.Status.BUDGET}
    assert found.price == pytest.approx(found.unconstrained_auc.value - area, abs=1e-9)
