"""AUC and gap of all candidates against the metrics of the package and scikit-learn; the selection."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

import minmaxcon as mm
from minmaxcon_problems.fair_auc import METRICS, Dataset, resolve_metric, true_gap
from minmaxcon_problems.fair_auc.baselines import Track, best_feasible
from minmaxcon_problems.fair_auc.baselines.cells import NEGATIVE, POSITIVE, Cells
from minmaxcon_problems.fair_auc.baselines.track import engine_of
from minmaxcon_problems.fair_auc.labelled import LabelledData

OVERLAPPING = resolve_metric([(1, None), (None, 1), lambda label, group: label * group > 0, (-1, None)])


def track_of(model: mm.Model, seed: int = 0, runs: int = 2, moments: int = 3) -> Track:
    parameters = np.random.default_rng(seed).normal(size=(moments, runs, model.dimension))
    return Track(model, parameters, np.arange(runs) / 10, np.arange(moments))


@pytest.mark.parametrize("metric", [*METRICS.values(), OVERLAPPING], ids=lambda metric: metric.name)
@settings(max_examples=12)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 7, 1000]))
def test_auc_between_subsets_counts_every_pair(metric: Any, seed: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    label = np.concatenate([[1, 1, -1, -1], rng.choice([-1, 1], 30)]).astype(np.int8)
    group = np.concatenate([[1, -1, 1, -1], rng.choice([-1, 1], 30)]).astype(np.int8)
    rows = LabelledData(np.zeros((34, 1)), label, group, ("a",))
    scores = (rng.integers(-levels, levels, (3, 34)) / 8).astype(np.float32)
    cells = Cells.of(rows, metric)
    wins = cells.wins(scores)
    auc, gap = cells.auc_and_gap(wins)
    np.testing.assert_allclose(auc, [roc_auc_score(label, row) for row in scores], atol=1e-14)
    np.testing.assert_allclose(gap, true_gap(scores, label, group, metric), atol=1e-14)
    # Both orders of a pair add up to all pairs, and no cell beats itself.
    np.testing.assert_array_equal(
        wins + wins.swapaxes(1, 2), np.broadcast_to(np.outer(cells.sizes, cells.sizes), wins.shape)
    )


@pytest.mark.parametrize("most, kept", [(2, [9]), (4, [0, 9]), (7, [0, 4, 9]), (20, list(range(10))), (1, [9])])
def test_a_track_is_thinned_evenly_and_keeps_its_last_moment(most: int, kept: list[int]) -> None:
    track = track_of(mm.Linear(4), moments=10)
    thin = track.thinned(most)
    assert thin.steps.tolist() == kept
    assert thin.candidates == 2 * len(kept) <= max(most, 2)
    np.testing.assert_array_equal(thin.parameters, track.parameters[kept])


def test_signed_zeros_tie_and_an_empty_class_has_no_auc() -> None:
    rows = LabelledData(np.zeros((2, 1)), np.array([1, -1]), np.array([1, -1]), ("a",))
    cells = Cells.of(rows, METRICS["group"])
    wins = cells.wins(np.array([[0.0, -0.0], [-1e-30, 0.0], [np.nan, 0.0], [np.inf, 0.0]], dtype=np.float32))
    np.testing.assert_array_equal(cells.auc(wins, POSITIVE, NEGATIVE), [0.5, 0.0, np.nan, np.nan])
    alone = Cells.of(LabelledData(np.zeros((2, 1)), np.array([1, 1]), np.array([1, -1]), ("a",)), METRICS["group"])
    assert np.isnan(alone.auc(alone.wins(np.zeros((1, 2), dtype=np.float32)), POSITIVE, NEGATIVE)).all()


@pytest.mark.parametrize("model", [mm.Linear(4), mm.MLP(4, 3)], ids=["linear", "mlp"])
@pytest.mark.parametrize("metric", ["group", "intra_group", "bpsn_bnsp"])
def test_evaluate_agrees_with_the_scores_of_each_candidate(dataset: Dataset, model: mm.Model, metric: str) -> None:
    track, rows = track_of(model), dataset.test
    auc, gap = track.evaluate(rows, METRICS[metric])
    assert auc.shape == gap.shape == track.shape == (3, 2)
    for t, r in np.ndindex(3, 2):
        scores = track.scores(rows, t, r)
        np.testing.assert_allclose(scores, model.predict(track.parameters[t, r], rows.features))
        # Float32 may order two of the 400 scores otherwise.
        assert auc[t, r] == pytest.approx(roc_auc_score(rows.label, scores), abs=1e-4)
        assert gap[t, r] == pytest.approx(true_gap(scores, rows.label, rows.group, metric), abs=1e-3)


def test_sparse_rows_are_judged_alike(dataset: Dataset) -> None:
    rows, track = dataset.test, track_of(mm.Linear(4))
    sparse = replace(rows, features=scipy.sparse.csr_array(rows.features))
    for ours, theirs in zip(
        track.evaluate(sparse, METRICS["group"]), track.evaluate(rows, METRICS["group"]), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_the_best_feasible_candidate_is_chosen() -> None:
    auc = np.array([[0.9, 0.8], [0.85, np.nan], [0.85, 0.7]])
    gap = np.array([[0.30, 0.02], [0.05, 0.00], [0.05, 0.01]])
    assert best_feasible(auc, gap, 1.0) == (0, 0)
    assert best_feasible(auc, gap, 0.05) == (1, 0)
    assert best_feasible(auc, gap, 0.02) == (0, 1)
    assert best_feasible(auc, gap, 0.001) == (2, 1)  # none is feasible: the least gap
    with pytest.raises(mm.InvalidInput, match="target=-1"):
        best_feasible(auc, gap, -1)
    with pytest.raises(mm.InvalidInput, match="smaller rates"):
        best_feasible(auc * np.nan, gap, 1.0)


def test_select_is_the_best_feasible_one_of_the_runs_asked_for(dataset: Dataset) -> None:
    metric, track = METRICS["inter_group"], track_of(mm.Linear(4), moments=40)
    auc, gap = track.evaluate(dataset.test, metric)
    for runs, allowed in ((None, [0, 1]), ([1], [1])):
        t, r = track.select(dataset.test, metric, 0.2, runs)
        assert r in allowed
        assert gap[t, r] <= 0.2
        assert auc[t, r] == auc[:, allowed][gap[:, allowed] <= 0.2].max()


def test_a_diverged_candidate_is_never_chosen(dataset: Dataset) -> None:
    track = track_of(mm.Linear(4))
    track.parameters[:2] = np.inf
    with np.errstate(invalid="ignore"):
        assert track.select(dataset.test, METRICS["group"], 1.0)[0] == 2


def test_select_needs_members_of_each_subset(dataset: Dataset) -> None:
    rows = dataset.test.select((dataset.test.label < 0) | (dataset.test.group < 0))
    with pytest.raises(mm.DataError, match="positive & protected"):
        track_of(mm.Linear(4)).select(rows, METRICS["intra_group"], 0.1)


def test_shapes_must_fit() -> None:
    with pytest.raises(mm.InvalidInput, match=r"shape \(3, 2, 4\).*\(3, 1, 4\)"):
        Track(mm.Linear(4), np.zeros((3, 2, 4)), np.zeros(1), np.zeros(3))


def test_copies_judge_alike(dataset: Dataset) -> None:
    track = track_of(mm.Linear(4))
    expected = track.evaluate(dataset.test, METRICS["group"])
    for other in (copy.deepcopy(track), pickle.loads(pickle.dumps(track))):
        np.testing.assert_array_equal(other.evaluate(dataset.test, METRICS["group"]), expected)


def test_the_engine_is_the_one_that_the_model_works_on() -> None:
    rows = np.zeros((2, 4), dtype=np.float32)
    assert engine_of(mm.Linear(4), rows) == "numpy"
    assert engine_of(mm.MLP(4), rows) == "numpy"
    assert engine_of(mm.TorchModule(torch.nn.Linear(4, 1), bound=1.0), rows) == "torch"
