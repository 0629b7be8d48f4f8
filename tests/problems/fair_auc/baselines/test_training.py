"""The layout of the batches, the loss against every pair, and the loop against steps by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.optim.adam import adam

import minmaxcon as mm
from minmaxcon_problems.fair_auc import METRICS, Dataset
from minmaxcon_problems.fair_auc.baselines.base import Rule, Strata, descend, quadratic_loss

PLAIN: dict[str, Any] = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0, "amsgrad": False}
PLAIN |= {"maximize": False, "foreach": False}


@pytest.fixture(scope="module")
def strata(dataset: Dataset) -> Strata:
    return Strata.of(dataset.train, METRICS["intra_group"], 20)


def test_every_cell_has_its_places_and_the_weights_restore_the_population(dataset: Dataset, strata: Strata) -> None:
    train = dataset.train
    rows = strata.draw(np.random.default_rng(0), 4000)
    assert rows.shape == (4000, 20)
    assert strata.counts.min() >= 2
    cells = 2 * train.label[rows] + train.group[rows]
    assert (cells == cells[:1]).all()
    assert len(np.unique(cells)) == 4
    np.testing.assert_array_equal(np.broadcast_to(strata.group, rows.shape), train.group[rows])
    feature = train.features[:, 0]
    assert (feature[rows] @ strata.weight).mean() == pytest.approx(feature.mean(), abs=0.02)
    masks = [*METRICS["intra_group"].masks(train.label, train.group).T, train.label > 0, train.label < 0]
    for slot, mask in zip(strata.slots, masks, strict=True):
        assert slot.sum() == pytest.approx(1.0)
        np.testing.assert_array_equal(slot > 0, mask[rows[0]])
        assert (feature[rows] @ slot).mean() == pytest.approx(feature[mask].mean(), abs=0.02)


def test_the_loss_of_batches_is_unbiased_for_the_loss_of_all_pairs(dataset: Dataset, strata: Strata) -> None:
    train = dataset.train
    scores = train.features @ [0.3, 0.2, 0.1, 0.0]
    difference = scores[train.label > 0][:, None] - scores[train.label < 0]
    rows = strata.draw(np.random.default_rng(1), 20000)
    losses, _ = quadratic_loss(scores[rows], strata, 0.5, 1.0)
    error = losses.std() / np.sqrt(len(losses))
    assert losses.mean() == pytest.approx(0.5 * np.mean((difference - 1.0) ** 2), abs=4 * error)
    assert error < 0.002


def test_the_loss_and_its_slope_are_those_of_every_pair(strata: Strata) -> None:
    scores = torch.tensor(np.random.default_rng(0).normal(size=(3, 20)), requires_grad=True)
    u, v = torch.tensor(strata.slots[4]), torch.tensor(strata.slots[5])
    pairs = 0.7 * (scores[:, :, None] - scores[:, None, :] - 1.3) ** 2
    expected = torch.einsum("rij,i,j->r", pairs, u, v)
    expected.sum().backward()
    loss, slope = quadratic_loss(scores.detach().numpy(), strata, 0.7, 1.3)
    np.testing.assert_allclose(loss, expected.detach(), rtol=1e-12)
    assert scores.grad is not None
    np.testing.assert_allclose(slope, scores.grad, rtol=1e-10, atol=1e-14)


class Constant(Rule):
    """The gradient in the scores is the number of steps taken."""

    def start(self, runs: int) -> Any:
        return 1.0

    def step(self, scores: Any, state: Any) -> tuple[Any, Any]:
        return np.full_like(scores, state), state + 1.0


def test_the_loop_takes_the_steps_of_adam(dataset: Dataset, strata: Strata) -> None:
    steps, rates = 10, np.array([0.1, 0.01])
    found, taken = descend(
        mm.Linear(4), dataset.train, strata, Constant(), rates=rates, steps=steps, moments=2, seed=3, dtype="float64"
    )
    np.testing.assert_array_equal(taken, [5, 5, 10, 10])
    batches = strata.draw(np.random.default_rng(3), steps)
    for run, rate in enumerate(rates):
        weight, first, second = torch.zeros(3, 4, dtype=torch.float64)
        count, path = torch.tensor(0.0), []
        for t in range(steps):
            gradient = torch.tensor((t + 1.0) * dataset.train.features[batches[t]].sum(axis=0))
            # Its function: the class would import torch's compiler, which takes longer than all the rest.
            adam([weight], [gradient], [first], [second], [], [count], lr=rate * (1 - t / steps), **PLAIN)
            path.append(weight.clone().numpy())
        # PyTorch adds epsilon to another side of the bias correction: 1e-8 beside gradients of about 10.
        expected = [path[4], np.mean(path[:5], axis=0), path[9], np.mean(path[5:], axis=0)]
        np.testing.assert_allclose(found[:, run], expected, rtol=1e-6)


def test_a_run_that_diverges_leaves_the_others_alone(dataset: Dataset, strata: Strata) -> None:
    class Loss(Rule):
        def step(self, scores: Any, state: Any) -> tuple[Any, Any]:
            return quadratic_loss(scores, strata, 0.5, 1.0)[1], state

    options: dict[str, Any] = {"steps": 50, "moments": 2, "seed": 0}
    both, _ = descend(mm.Linear(4), dataset.train, strata, Loss(), rates=np.array([0.01, 1e38]), **options)
    alone, _ = descend(mm.Linear(4), dataset.train, strata, Loss(), rates=np.array([0.01]), **options)
    assert not np.isfinite(both[-1, 1]).all()
    np.testing.assert_allclose(both[:, 0], alone[:, 0], rtol=1e-4, atol=1e-6)


def test_a_batch_must_hold_two_rows_of_each_cell(dataset: Dataset) -> None:
    with pytest.raises(mm.InvalidInput, match=r"batch_size=7: must be at least 8"):
        Strata.of(dataset.train, METRICS["intra_group"], 7)
    assert Strata.of(dataset.train, METRICS["intra_group"], 8).counts.tolist() == [2, 2, 2, 2]


def test_empty_cells_and_classes_are_named(dataset: Dataset) -> None:
    train = dataset.train
    with pytest.raises(mm.DataError, match="positive & protected"):
        Strata.of(train.select((train.label < 0) | (train.group < 0)), METRICS["intra_group"], 20)
    with pytest.raises(mm.DataError, match="labels of one class only"):
        Strata.of(train.select(train.label < 0), METRICS["group"], 20)
