"""Targets on held-out rows: met by their value or by the upper end of its interval, or said to be out of reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from tests.problems.fair_auc.by_pairs import masks_of, sklearn_gap
from tests.problems.fair_auc.fits import fit, judged, rows

Array = Any


@pytest.mark.parametrize("metric", ["group", "intra_group"])
def test_held_out_rows_meet_the_value(metric: str) -> None:
    held_out = rows(1, 900)
    found = fit(metric, 0.03, validation=held_out)
    gap, area = judged(found, held_out, masks_of(held_out, metric))
    assert found.validation_gap is not None
    assert found.validation_auc is not None
    assert found.validation_gap.value == pytest.approx(gap, abs=1e-9)
    assert found.validation_auc.value == pytest.approx(area, abs=1e-9)
    assert gap <= 0.03
    assert found.target <= 0.03
    train_gap, _ = judged(found, rows(), masks_of(rows(), metric))
    assert found.train_gap.value == pytest.approx(train_gap, abs=1e-9)
    if found.target >= 0:
        assert train_gap <= found.target
    else:  # a gap in the other direction than that of a model without a target
        masks, free = masks_of(rows(), metric), fit(metric, 1.0)
        signed = [sklearn_gap(rows().features @ w, masks) for w in (free.parameters, found.parameters)]
        assert signed[1] * np.sign(signed[0]) <= found.target
    assert found.price == pytest.approx(found.unconstrained_auc.value - area, abs=1e-9)


def test_the_loosest_training_target_that_will_do_is_taken() -> None:
    """The next looser one of the table, fitted alone, would miss the target on the held-out rows."""
    from minmaxcon_problems.fair_auc.target.fit import _TIGHTER

    held_out, metric, gap = rows(3, 500), "intra_group", 0.02
    found = fit(metric, gap, validation=held_out)
    shares = [share for share in _TIGHTER if share * gap > found.target + 1e-12]
    assert found.target < gap
    looser = fit(metric, shares[-1] * gap)
    assert judged(looser, held_out, masks_of(held_out, metric))[0] > gap


def test_the_upper_end_of_the_interval_may_be_what_counts() -> None:
    held_out = rows(1, 900)
    found = fit("group", 0.09, validation=held_out, demand="upper")
    assert found.validation_gap is not None
    assert found.validation_gap.upper <= 0.09
    assert found.status is not mm.Status.OUT_OF_REACH
    assert found.train_auc.value <= fit("group", 0.09, validation=held_out).train_auc.value


def test_an_upper_end_out_of_reach_gives_the_fairest_model_and_says_so() -> None:
    held_out = rows(1, 300)
    found = fit("intra_group", 0.01, validation=held_out, demand="upper")
    assert found.status is mm.Status.OUT_OF_REACH
    assert found.validation_gap is not None
    assert found.validation_gap.upper > 0.01
    assert "upper end" in found.reason
    assert f"{found.validation_gap.upper:.4g}" in found.reason
    assert "held-out data" in found.reason
    gap, _ = judged(found, held_out, masks_of(held_out, "intra_group"))
    assert found.validation_gap.value == pytest.approx(gap, abs=1e-9)
