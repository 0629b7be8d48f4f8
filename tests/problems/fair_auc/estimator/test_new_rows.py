"""Targets for new rows: what rows left out say, what training is then held to, and where rows are too few."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.errors import DataError, InvalidInput
from minmaxcon_problems.fair_auc import FairAUCClassifier
from tests.problems.fair_auc.estimator.samples import Rows, biased_rows


def fitted(rows: Rows, **settings: Any) -> FairAUCClassifier:
    model = FairAUCClassifier(**{"metric": "inter_group", "max_gap": 0.05, "random_state": 0, **settings})
    return model.fit(rows.X, rows.y, sensitive_features=rows.group)


@pytest.mark.rel
def test_rows_left_out_meet_the_limit_on_average() -> None:
    rows = biased_rows(400, 2)
    found = fitted(rows, demand="new_rows")
    left = found.left_out_
    assert left is not None
    assert left.gap <= 0.05
    assert left.folds == 10
    assert found.target_ == left.goal
    assert found.gap_.value <= left.goal
    assert "On rows left out of training the gap is" in found.reason_
    assert "rows where the smallest cell has" in found.reason_
    assert found.auc_.value == pytest.approx(left.auc, abs=0.05)
    assert fitted(rows).left_out_ is None


@pytest.mark.parametrize("gap, reached, others", [(0.3, True, 0), (0.02, True, 0), (0.001, False, 0), (0.02, True, 6)])
def test_what_rows_left_out_say_is_told(
    gap: float, reached: bool, others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two folds: the gap of rows left out meets the limit, or the least one and the rows needed are told.

    A group of ``others`` rows, which the bound leaves out, is no cell that counts.
    """
    monkeypatch.setattr("minmaxcon_problems.fair_auc.estimator.training._FOLDS", 2)
    monkeypatch.setattr("minmaxcon_problems.fair_auc.estimator.training._ROUNDS", 1)
    monkeypatch.setattr("minmaxcon_problems.fair_auc.target.fit._IN_FOLDS", 4)
    monkeypatch.setattr("minmaxcon_problems.fair_auc.target.fit._STEPS", 60)
    rows = biased_rows(240, 2)
    rows = rows._replace(group=np.where(np.arange(240) < others, "c", rows.group))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        settings = {"objective": "quadratic_auc", "min_rows_per_cell": 10 if others else None}
        found = fitted(rows, demand="new_rows", max_gap=gap, **settings)
    left, half = found.left_out_, 1.96 * found.gap_.standard_error
    assert left is not None
    assert (left.folds, left.goal) == (2, found.target_)
    assert (left.gap <= gap) == reached == (found.status_ is not mm.Status.OUT_OF_REACH)
    said = f"On rows left out of training the gap is {left.gap:.3g} on average, known to within {half:.2g}"
    compared = rows.group != "c"
    fewest = min(np.unique(np.char.add(rows.y[compared], rows.group[compared]), return_counts=True)[1])
    assert said in found.reason_
    needed = np.ceil(fewest * (half / gap) ** 2)
    many = f"; within {gap:g} would take some {needed:,.0f} rows where the smallest cell has {fewest}."
    assert (many in found.reason_) == (half > gap) == (gap < 0.1)
    least = f"The least gap on rows left out is {left.gap:.4g}, above the target {gap:g}."
    assert (least in found.reason_) == (not reached)


def test_few_rows_are_refused_with_the_number_needed() -> None:
    rows = biased_rows(400, 2)
    few = np.flatnonzero(~((rows.group == "b") & (rows.y == "yes")))
    some = np.flatnonzero((rows.group == "b") & (rows.y == "yes"))[:7]
    with pytest.raises(DataError, match=r"needs 25 rows of each combination .* smallest one has 7"):
        fitted(rows.take(np.sort(np.r_[few, some])), demand="new_rows")


@pytest.mark.parametrize("other", [{"kappa": 0.1, "max_gap": None}, {"validation_fraction": 0.3}, {"method": "bounds"}])
def test_what_leaves_rows_out_in_another_way_is_refused(other: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="demand='new_rows'"):
        fitted(biased_rows(100, 0), demand="new_rows", **other)
