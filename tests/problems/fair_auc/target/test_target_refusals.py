"""What a fit to a target refuses: argument, value and remedy are named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon_problems.fair_auc.labelled import LabelledData
from tests.problems.fair_auc.fits import fit, rows


@pytest.mark.parametrize("bad", [-0.01, float("nan"), float("inf"), "small", None])
def test_a_target_that_is_no_gap(bad: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=r"max_gap=.*number of at least 0, such as 0.02"):
        fit(gap=bad)


@pytest.mark.parametrize("bad", [[0.01, 0.02], (0.02,), np.array([0.02])])
def test_one_target_a_fit(bad: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=r"max_gap=.*one fit for each target"):
        fit(gap=bad)


@pytest.mark.parametrize("method", ["following", "bounds"])
def test_rows_of_one_class(method: Any) -> None:
    one = replace(rows(), label=np.ones(len(rows()), int))
    with pytest.raises(mm.DataError, match=r"biased.*one class only; both are needed"):
        fit("group", data=one, method=method)
    with pytest.raises(mm.DataError, match="one class only"):
        fit("group", validation=one, method=method)


@pytest.mark.parametrize("method", ["following", "bounds"])
def test_an_empty_cell(method: Any) -> None:
    """Named with the sizes of all four, in the training rows and in the held-out ones."""
    lacking = rows().select(np.flatnonzero((rows().label < 0) | (rows().group < 0)))
    with pytest.raises(mm.DataError, match=r"positive & protected.*intra_group.*: 0.*add such rows"):
        fit("intra_group", data=lacking, method=method)
    with pytest.raises(mm.DataError, match=r"positive & protected.*: 0"):
        fit("intra_group", validation=lacking, method=method)


def test_held_out_rows_of_other_features() -> None:
    narrow = LabelledData(rows().features[:, :4], rows().label, rows().group, ("a", "b", "c", "d"))
    with pytest.raises(mm.InvalidInput, match=r"validation=.*4 features.*6 of train"):
        fit(validation=narrow)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"objective": "accuracy"}, r"(?i)objective.*accuracy.*auc.*logistic"),
        ({"method": "magic"}, r"method='magic': unknown name"),
        ({"demand": "lower"}, r"demand='lower': unknown name"),
        ({"radius": 0.0}, r"radius=.*positive"),
        ({"radius": "wide"}, r"radius=.*positive"),
        ({"iterations": 0}, r"iterations="),
        ({"time_limit": -1.0}, r"time_limit="),
        ({"seed": -1}, r"seed="),
        ({"row_weight": np.zeros(1500)}, r"row_weight=.*positive.*1500 rows"),
        ({"row_weight": np.ones(3)}, r"row_weight=.*1500 rows"),
        ({"row_weight": "heavy"}, r"row_weight=.*1500 rows"),
        ({"start": np.ones(99)}, r"start=.*at most 6"),
        ({"start": [np.nan] * 6}, r"start=.*finite"),
        ({"start": "near"}, r"start=.*numbers"),
        ({"start": np.zeros(6)}, r"start=.*gives all rows one score"),
        ({"time_limit": -1.0}, r"time_limit=-1.0: must be a positive number of seconds"),
        ({"ridge": 0.1, "model": mm.MLP(6, 2)}, r"ridge=0.1: is for linear models; leave it out for networks"),
        ({"signs": [1] * 6, "model": mm.MLP(6, 2)}, r"signs=.*are for linear models; leave them out for networks"),
        ({"signs": [1] * 6, "method": "bounds"}, r"signs=.*act with method \"following\" only; leave them out"),
        ({"ridge": 0.1, "method": "bounds"}, r"ridge=0.1: acts with method \"following\" only; leave it out"),
        ({"time_limit": -1.0, "method": "bounds"}, r"time_limit=-1.0: must be a positive number of seconds"),
    ],
)
def test_refusals_name_argument_value_and_remedy(options: dict[str, Any], message: str) -> None:
    with pytest.raises(mm.MinMaxConError, match=message):
        fit(**options)
