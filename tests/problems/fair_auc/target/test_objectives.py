"""The objectives: the logistic loss against scikit-learn and autograd, the AUC loss against all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import log_loss

import minmaxcon as mm
from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.core.linearisation import exact_gradients, exact_values
from minmaxcon_problems.fair_auc.target.objectives import OBJECTIVES, AUCObjective, LogisticLoss, LogisticObjective
from tests.cases import labelled

Array = Any

ROWS = labelled(7, n=130)
POSITIVE = ROWS.label > 0
WEIGHT = np.random.default_rng(0).uniform(0.2, 4.0, len(ROWS))


def source(engine: str = "numpy", weight: Array = WEIGHT, dtype: str = "float64") -> mm.Finite:
    arrays = LogisticObjective().arrays(POSITIVE, weight)
    return mm.Finite({"features": ROWS.features, **arrays}, engine=engine, dtype=dtype)


def point(model: mm.Model, engine: str, runs: int = 3, seed: int = 0) -> Array:
    like = source(engine).like
    return namespace(like).asarray(np.random.default_rng(seed).normal(size=(runs, model.dimension + 1)), like)


@pytest.mark.parametrize("engine", ["numpy", "torch"])
@pytest.mark.parametrize("weight", [np.ones(len(ROWS)), WEIGHT], ids=["plain", "weighted"])
def test_the_logistic_loss_is_that_of_scikit_learn(weight: Array, engine: str) -> None:
    model = mm.Linear(3)
    x = point(model, engine)
    family = mm.core.constraint.family_of([LogisticLoss(model)])
    values = exact_values(family, x, source(engine, weight))
    for r, row in enumerate(np.asarray(to_numpy(x))):
        chance = 1.0 / (1.0 + np.exp(-(ROWS.features @ row[:3] + row[3])))
        assert values[r, 0] == pytest.approx(log_loss(POSITIVE, chance, sample_weight=weight), rel=1e-10)


@pytest.mark.parametrize("name, engine", [("linear", "numpy"), ("linear", "torch"), ("mlp", "torch")])
def test_its_gradient_is_that_of_autograd(name: str, engine: str) -> None:
    model: mm.Model = mm.Linear(3) if name == "linear" else mm.MLP(3, 2)
    x = point(model, engine)
    family = mm.core.constraint.family_of([LogisticLoss(model)])
    _, gradients = exact_gradients(family, x, source(engine))
    features, signs = torch.tensor(ROWS.features), torch.tensor(np.where(POSITIVE, 1.0, -1.0))
    for r in range(3):
        at = torch.tensor(np.asarray(to_numpy(x))[r], requires_grad=True)
        w = at[: model.dimension]
        scores = features @ w if name == "linear" else model.forward(w, features)
        margin = signs * (scores + at[-1])
        (torch.tensor(WEIGHT / WEIGHT.sum()) * torch.nn.functional.softplus(-margin)).sum().backward()
        assert at.grad is not None
        assert gradients[r, 0] == pytest.approx(at.grad.numpy(), abs=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("engine", ["numpy", "torch"])
@pytest.mark.parametrize("scale", [50.0, 1e4, 1e8])
def test_extreme_margins_do_not_overflow(scale: float, engine: str, dtype: str) -> None:
    data = source(engine, dtype=dtype)
    w = np.concatenate([scale * np.random.default_rng(1).normal(size=3), [-scale]])
    x = namespace(data.like).asarray(w[None], data.like)
    values, gradients = exact_gradients(mm.core.constraint.family_of([LogisticLoss(mm.Linear(3))]), x, data)
    margin = np.where(POSITIVE, 1.0, -1.0) * (ROWS.features @ w[:3] + w[3])
    share = WEIGHT / WEIGHT.sum()
    expected = share @ np.logaddexp(0.0, -margin)
    assert values[0, 0] == pytest.approx(expected, rel=1e-10 if dtype == "float64" else 1e-5)
    chance = np.exp(-np.logaddexp(0.0, margin))  # of the wrong label
    slope = -share * chance * np.where(POSITIVE, 1.0, -1.0)
    expected_gradient = np.append(slope @ ROWS.features, slope.sum())
    assert gradients[0, 0] == pytest.approx(expected_gradient, abs=1e-10 if dtype == "float64" else 1e-5)


def test_single_samples_are_unbiased() -> None:
    model, data = mm.Linear(3), source()
    loss, x = LogisticLoss(model), point(model, "numpy")
    full = loss.evaluate(x, dict(data.arrays))
    ones = np.ones(3)
    singles = [
        loss.evaluate(x, {name: part[i : i + 1] for name, part in data.arrays.items()}) for i in range(len(ROWS))
    ]
    assert np.mean([one.F for one in singles], axis=0) == pytest.approx(full.F, abs=1e-12)
    gradient = np.mean([one.pullback(ones, one.G) for one in singles], axis=0)
    assert gradient == pytest.approx(full.pullback(ones, full.G), abs=1e-12)


def test_terms_and_a_point_without_a_run_axis() -> None:
    model, data = mm.Linear(3), source()
    loss, x = LogisticLoss(model), point(model, "numpy", 1)
    value, moment = loss.terms(x, dict(data.arrays))
    assert moment is None
    flat = loss.evaluate(x[0], dict(data.arrays))
    assert flat.F.shape == ()
    assert float(flat.F) == pytest.approx(float(value[0]), rel=1e-14)
    assert flat.pullback(np.array(2.0), flat.G).shape == (4,)


def test_convexity_is_claimed_for_linear_scores_only() -> None:
    assert LogisticLoss(mm.Linear(3)).modulus == 0.0
    assert np.isinf(LogisticLoss(mm.MLP(3, 2)).modulus)


@pytest.mark.parametrize("weight", [np.ones(len(ROWS)), WEIGHT], ids=["plain", "weighted"])
def test_the_auc_loss_over_all_pairs(weight: Array) -> None:
    objective, model = AUCObjective(0.7, 0.9), mm.Linear(3)
    data = mm.Finite({"features": ROWS.features, **objective.arrays(POSITIVE, weight)})
    family = mm.core.constraint.family_of([objective.constraint(model, 10.0, 50.0)])
    x = family.refine(np.random.default_rng(0).normal(size=(2, 3 + objective.variables)), data)
    values = exact_values(family, x, data)
    for r in range(2):
        h = ROWS.features @ x[r, :3]
        share = (weight[POSITIVE] / weight[POSITIVE].sum())[:, None] * weight[~POSITIVE] / weight[~POSITIVE].sum()
        loss = 0.7 * (h[POSITIVE][:, None] - h[~POSITIVE][None, :] - 0.9) ** 2
        assert values[r, 0] == pytest.approx((share * loss).sum(), rel=1e-11)


def test_the_table_of_objectives() -> None:
    names = ("auc", "quadratic_auc", "logistic")
    assert tuple(OBJECTIVES) == names
    assert [OBJECTIVES[name]().variables for name in names] == [0, 2, 1]
    assert [OBJECTIVES[name]().quadratic for name in names] == [True, True, False]
    assert [OBJECTIVES[name]().followed for name in names] == [True, False, False]
