"""The grid of transforms against a loop over it, every pair counted."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minmaxcon as mm
from minmaxcon.metrics import auc
from minmaxcon_problems.fair_auc import METRICS, Dataset, resolve_metric, true_gap
from minmaxcon_problems.fair_auc.baselines import PostProcessing, TransformedTrack, Unconstrained
from minmaxcon_problems.fair_auc.baselines.cells import Cells
from minmaxcon_problems.fair_auc.baselines.post_processing import transformed_wins
from minmaxcon_problems.fair_auc.labelled import LabelledData

SMALL = Unconstrained(steps=200, moments=2)


@pytest.mark.parametrize("metric", sorted(set(METRICS) - {"intra_group"}))
@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1))
def test_the_grid_is_that_of_a_loop(metric: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    label = np.concatenate([[1, 1, -1, -1], rng.choice([-1, 1], 25)]).astype(np.int8)
    group = np.concatenate([[1, -1, 1, -1], rng.choice([-1, 1], 25)]).astype(np.int8)
    base = rng.integers(-6, 6, 29) / 4.0  # exact in binary, with ties within and across groups
    omega_1, omega_2 = np.array([0.0, 0.5, 1.0, 2.0]), np.array([-1.0, -0.25, 0.0, 0.5])
    cells = Cells.of(LabelledData(np.zeros((29, 1)), label, group, ("a",)), METRICS[metric])
    found_auc, found_gap = cells.auc_and_gap(transformed_wins(base, cells, omega_1, omega_2))
    for a, factor in enumerate(omega_1):
        for d, shift in enumerate(omega_2):
            scores = np.where(group > 0, factor * base + shift, base)
            assert found_auc[a, d] == pytest.approx(auc(scores[label > 0], scores[label < 0]), abs=1e-14)
            assert found_gap[a, d] == pytest.approx(true_gap(scores, label, group, metric), abs=1e-14)


@pytest.fixture(scope="module")
def track(dataset: Dataset) -> TransformedTrack:
    method = PostProcessing(base=SMALL, factor_step=0.5, shift_step=0.5)
    return method.fit(dataset, METRICS["group"], [0.1], model=mm.Linear(4), seed=0)


def test_the_default_grid_is_that_of_the_paper(dataset: Dataset) -> None:
    found = PostProcessing(base=SMALL).fit(dataset, METRICS["group"], [], model=mm.Linear(4), seed=0)
    assert found.shape == (101 * 61, 1)
    np.testing.assert_allclose(found.omega_1, np.linspace(0, 5, 101), atol=1e-12)
    np.testing.assert_allclose(found.omega_2, np.linspace(-3, 3, 61), atol=1e-12)
    assert found.transform(0) == (0.0, pytest.approx(-3.0))
    assert found.transform(61 * 20 + 30) == (pytest.approx(1.0), 0.0)


def test_only_protected_scores_are_transformed(dataset: Dataset, track: TransformedTrack) -> None:
    rows = dataset.test
    plain = (rows.features @ track.parameters[0, 0].astype(np.float64) - track.center) / track.scale
    factor, shift = track.transform(17)
    assert (factor, shift) == (0.5, -1.0)
    np.testing.assert_allclose(track.scores(rows, 17), np.where(rows.group > 0, 0.5 * plain - 1.0, plain))
    on_train = (dataset.train.features @ track.parameters[0, 0] - track.center) / track.scale
    assert on_train.mean() == pytest.approx(0.0, abs=1e-6)
    assert on_train.std() == pytest.approx(1.0, abs=1e-6)
    flipped = replace(rows, label=-rows.label)
    np.testing.assert_array_equal(track.scores(flipped, 17), track.scores(rows, 17))


@pytest.mark.parametrize("metric", ["group", "inter_group", "bpsn_bnsp"])
def test_evaluate_agrees_with_the_scores_of_each_candidate(
    dataset: Dataset, track: TransformedTrack, metric: str
) -> None:
    rows = dataset.test
    found_auc, found_gap = track.evaluate(rows, METRICS[metric])
    assert found_auc.shape == track.shape == (11 * 13, 1)
    for t in range(0, 143, 7):
        scores = track.scores(rows, t, 0)
        assert found_auc[t, 0] == pytest.approx(auc(scores[rows.label > 0], scores[rows.label < 0]), abs=1e-4)
        assert found_gap[t, 0] == pytest.approx(true_gap(scores, rows.label, rows.group, metric), abs=1e-3)


def test_a_feasible_transform_is_selected_and_travels(dataset: Dataset, track: TransformedTrack) -> None:
    assert dataset.validation is not None
    auc_found, gap = track.evaluate(dataset.validation, METRICS["group"])
    assert gap[track.omega_1.tolist().index(1.0) * 13 + 6, 0] > 0.1  # the model as it is
    t, r = track.select(dataset.validation, METRICS["group"], 0.05)
    assert gap[t, r] <= 0.05
    assert auc_found[t, r] == auc_found[gap <= 0.05].max()
    packed = pickle.dumps(track)
    assert len(packed) < 10_000  # the model once, not once a transform
    copied = pickle.loads(packed)
    np.testing.assert_array_equal(copied.scores(dataset.test, t, r), track.scores(dataset.test, t, r))


def test_the_base_is_the_candidate_with_the_best_validation_auc(dataset: Dataset, track: TransformedTrack) -> None:
    plain = SMALL.fit(dataset, METRICS["group"], [], model=mm.Linear(4), seed=0)
    assert dataset.validation is not None
    found, _ = plain.evaluate(dataset.validation, METRICS["group"])
    best = np.unravel_index(np.argmax(found), found.shape)
    np.testing.assert_array_equal(track.parameters[0, 0], plain.parameters[best])


def test_intra_group_is_refused(dataset: Dataset) -> None:
    method = PostProcessing(base=SMALL)
    assert [name for name in METRICS if method.applies_to(METRICS[name])] == ["intra_group"]
    assert method.applies_to(resolve_metric([(1, -1), (-1, -1), (1, 1), (-1, 1)]))  # the two groups exchanged
    with pytest.raises(mm.InvalidInput, match=r"metric='intra_group': post_processing does not apply.*labels"):
        method.fit(dataset, METRICS["intra_group"], [], model=mm.Linear(4), seed=0)


@pytest.mark.parametrize(
    "setting, value", [("factor_step", 0.0), ("largest_shift", -1.0), ("shift_step", 4.0), ("largest_factor", "a")]
)
def test_a_grid_out_of_range_is_refused(setting: str, value: object) -> None:
    with pytest.raises(mm.InvalidInput, match=f"^{setting}="):
        PostProcessing(**{setting: value})


def test_one_model_is_transformed(track: TransformedTrack) -> None:
    np.testing.assert_array_equal(track.weight(5), track.parameters[0, 0])
    with pytest.raises(mm.InvalidInput, match=r"parameters=.*\(1, 1, 4\)"):
        TransformedTrack(mm.Linear(4), np.zeros((2, 1, 4)), np.zeros(1), np.zeros(2))
