"""The true gap as a measure, against scikit-learn and sums over pairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.core.linearisation import exact_values
from minmaxcon_problems.fair_auc.target.followed import AUCGapMeasure, FollowingFamily
from tests.cases import labelled
from tests.problems.fair_auc.by_pairs import DEFINITIONS, masks_of, plain_auc, sklearn_gap, smooth_auc

Array = Any

ROWS = labelled(6, n=220)


class InPieces(mm.Finite):
    """The same rows, thirty at a time."""

    def chunks(self, rows: int | None = None) -> Iterator[tuple[float, mm.Batch]]:
        return super().chunks(30)


def measure(metric: str, weight: Array = 1.0, *, kind: type[mm.Finite] = mm.Finite, **options: Any) -> AUCGapMeasure:
    weighted = masks_of(ROWS, metric) * np.reshape(weight, (-1, 1))
    engine, dtype = options.pop("engine", "numpy"), options.pop("dtype", "float64")
    data = kind({"features": ROWS.features, "subsets": weighted / weighted.mean(axis=0)}, engine=engine, dtype=dtype)
    return AUCGapMeasure(mm.Linear(3), data, **options)


def points(runs: int = 3) -> Array:
    return np.random.default_rng(0).normal(size=(runs, 5))  # three parameters and two other variables


def gap_by_pairs(scores: Array, masks: Array, weight: Array) -> float:
    h, mass = [scores[masks[:, g]] for g in range(4)], [weight[masks[:, g]] for g in range(4)]
    return plain_auc(h[0], h[1], mass[0], mass[1]) - plain_auc(h[2], h[3], mass[2], mass[3])


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("ties", [False, True], ids=["no ties", "ties"])
@pytest.mark.parametrize("metric", DEFINITIONS)
def test_the_gap(metric: str, ties: bool, weighted: bool) -> None:
    weight = np.random.default_rng(1).uniform(0.2, 5.0, len(ROWS)) if weighted else np.ones(len(ROWS))
    scores = np.random.default_rng(2).normal(size=(3, len(ROWS))) + 0.5 * ROWS.label
    scores = np.round(scores, 1) if ties else scores
    masks = masks_of(ROWS, metric)
    found = measure(metric, weight).gap(scores)
    for r in range(3):
        assert found[r] == pytest.approx(sklearn_gap(scores[r], masks, weight), abs=1e-12)
        assert found[r] == pytest.approx(gap_by_pairs(scores[r], masks, weight), abs=1e-12)


def test_a_constant_model_has_no_gap() -> None:
    for metric in DEFINITIONS:
        assert measure(metric).observe(np.zeros((1, 3))).values.tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("metric", ["group", "intra_group"])
def test_what_is_observed(metric: str) -> None:
    x, masks = points(), masks_of(ROWS, metric)
    asked = measure(metric)
    observation = asked.observe(x)
    scores = x[:, :3] @ ROWS.features.T
    assert asked.scores(x) == pytest.approx(scores, abs=1e-12)
    for r in range(3):
        gap = sklearn_gap(scores[r], masks)
        assert observation.values[r] == pytest.approx([gap, -gap], abs=1e-12)
        h, beta = [scores[r][masks[:, g]] for g in range(4)], 0.1 * scores[r].std()
        smooth = smooth_auc(h[0], h[1], beta) - smooth_auc(h[2], h[3], beta)
        assert observation.smoothed[r] == pytest.approx([smooth, -smooth], abs=1e-6)
    sides = observation.surrogates()
    followed = exact_values(FollowingFamily(sides), x, asked.data)
    assert followed == pytest.approx(observation.smoothed, abs=1e-6)
    assert [side.name for side in sides] == ["AUC gap, upper side", "AUC gap, lower side"]


@pytest.mark.parametrize("bandwidth", [0.03, 0.3])
def test_the_bandwidth_is_in_standard_deviations(bandwidth: float) -> None:
    x, masks = points(1), masks_of(ROWS, "inter_group")
    scores = (x[:, :3] @ ROWS.features.T)[0]
    h, beta = [scores[masks[:, g]] for g in range(4)], bandwidth * scores.std()
    smooth = smooth_auc(h[0], h[1], beta) - smooth_auc(h[2], h[3], beta)
    observed = measure("inter_group", bandwidth=bandwidth, bins=2**15).observe(x)
    assert observed.smoothed[0, 0] == pytest.approx(smooth, abs=1e-6)


def test_pieces_engines_and_single_precision() -> None:
    whole = measure("bpsn_bnsp").observe(points())
    pieces = measure("bpsn_bnsp", kind=InPieces).observe(points())
    np.testing.assert_allclose(pieces.values, whole.values, atol=1e-13)
    np.testing.assert_allclose(pieces.smoothed, whole.smoothed, atol=1e-12)
    import torch

    torch_measure = measure("bpsn_bnsp", engine="torch").observe(torch.tensor(points()))
    np.testing.assert_allclose(torch_measure.values, whole.values, atol=1e-12)
    single = measure("bpsn_bnsp", engine="torch", dtype="float32").observe(torch.tensor(points()).float())
    np.testing.assert_allclose(single.values, whole.values, atol=1e-4)
    assert single.values.dtype == np.float64


def test_without_a_model_of_the_curvature_there_is_none() -> None:
    own = measure("group")
    assert own.curvature(points()) is None
    few = np.arange(150)
    arrays = {name: np.asarray(value)[few] for name, value in own.data.arrays.items()}
    data = mm.Finite({**arrays, "positive": 1.0 * (ROWS.label[few] > 0), "row_weight": np.ones(len(few))})
    other = own.on(data)
    assert other.curvature(points()) is None
    scores = points() @ np.eye(5, 3) @ ROWS.features[few].T
    masks = masks_of(ROWS, "group")[few]
    expected = [sklearn_gap(one, masks, np.ones(len(few))) for one in scores]
    np.testing.assert_allclose(other.observe(points()).values[:, 0], expected, atol=1e-12)


@pytest.mark.parametrize("bad", [0.0, -0.1, float("nan"), float("inf"), "wide", None])
def test_a_bandwidth_out_of_range(bad: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=r"bandwidth=.*positive"):
        measure("group", bandwidth=bad)


@pytest.mark.parametrize("bad", [0, 15, 100.5, float("nan"), "many", None])
def test_a_number_of_bins_out_of_range(bad: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=r"bins=.*whole number"):
        measure("group", bins=bad)
