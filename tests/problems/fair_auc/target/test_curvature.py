"""Gauss-Newton matrices against Hessians by autograd, and what a network's must be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

import minmaxcon as mm
from minmaxcon_problems.fair_auc.target import objectives
from minmaxcon_problems.fair_auc.target.objectives import GaussNewton, auc_curvature, logistic_curvature
from tests.cases import labelled

Array = Any

C1 = 0.5


def drawn(seed: int = 0, *, sparse: bool = False) -> tuple[Array, Array, Array]:
    """Features, positives, and weights of the rows."""
    rows = labelled(seed, n=90, d=4, sparse=sparse)
    return rows.features, rows.label > 0, np.random.default_rng(seed).uniform(0.3, 3.0, 90)


def gauss_newton(
    kind: str, features: Array, positive: Array, weight: Array, model: mm.Model | None = None
) -> GaussNewton:
    classes = [np.flatnonzero(~positive), np.flatnonzero(positive)]
    matrix = auc_curvature(C1) if kind == "auc" else logistic_curvature
    model = mm.Linear(features.shape[1]) if model is None else model
    return GaussNewton(model, features, classes, weight, matrix, constant=kind == "auc")


@pytest.fixture
def small_ridge(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ridge that leaves a network's matrix to be seen; how large it is by default is a matter of step lengths."""
    monkeypatch.setattr(objectives, "_RIDGE_NETWORK", 1e-3)


def matrix_of(found: Any, dimension: int) -> Array:
    """Return the matrix whose inverse the map applies."""
    return np.linalg.inv(found(np.eye(dimension)[None])[0])


def auc_loss(w: torch.Tensor, features: Array, positive: Array, weight: Array) -> torch.Tensor:
    h = torch.tensor(features) @ w
    above, below = torch.tensor(positive), torch.tensor(~positive)
    mass = torch.tensor(weight)
    share = (mass[above] / mass[above].sum())[:, None] * (mass[below] / mass[below].sum())[None, :]
    return (share * C1 * (h[above][:, None] - h[below][None, :] - 1.0) ** 2).sum()


def logistic_loss(x: torch.Tensor, features: Array, positive: Array, weight: Array) -> torch.Tensor:
    signs = torch.tensor(np.where(positive, 1.0, -1.0))
    margin = signs * (torch.tensor(features) @ x[:-1] + x[-1])
    mass = torch.tensor(weight / weight.sum())
    return (mass * torch.nn.functional.softplus(-margin)).sum()


def hessian(kind: str, x: Array, data: tuple[Array, Array, Array]) -> Array:
    loss = auc_loss if kind == "auc" else logistic_loss
    found = torch.autograd.functional.hessian(lambda at: loss(at, *data), torch.tensor(x))
    return found.numpy()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["auc", "logistic"])
def test_a_linear_models_matrix_is_the_hessian(kind: str, seed: int) -> None:
    """Up to the ridge of 1e-7; at two points at once, further variables left alone."""
    data = drawn(seed)
    size = 4 if kind == "auc" else 5
    x = np.random.default_rng(seed).normal(size=(2, size))
    inverse = gauss_newton(kind, *data).at(x)
    for r in range(2):
        expected = hessian(kind, x[r], data)
        ridge = 1e-7 * np.trace(expected) / size * np.eye(size)
        mine = gauss_newton(kind, *data).at(x[r : r + 1])
        assert matrix_of(mine, size) == pytest.approx(expected + ridge, rel=1e-7, abs=1e-9)
        gradients = np.random.default_rng(9).normal(size=(2, 3, size))
        solved = inverse(gradients)[r]
        assert solved == pytest.approx(np.linalg.solve(expected + ridge, gradients[r].T).T, rel=1e-6, abs=1e-9)


def test_further_variables_get_no_step() -> None:
    inverse = gauss_newton("auc", *drawn()).at(np.zeros((1, 6)))
    found = inverse(np.ones((1, 2, 6)))
    assert (found[..., 4:] == 0).all()
    assert (found[..., :4] != 0).all()


@pytest.mark.parametrize("kind", ["auc", "logistic"])
def test_sparse_rows_give_the_matrix_of_dense_ones(kind: str) -> None:
    features, positive, weight = drawn(1, sparse=True)
    x = 0.3 * np.ones((1, 5))
    gradients = np.random.default_rng(0).normal(size=(1, 2, 4 if kind == "auc" else 5))
    dense = gauss_newton(kind, features.toarray(), positive, weight).at(x)(gradients)
    for held in (features, scipy.sparse.csr_matrix(features)):
        assert gauss_newton(kind, held, positive, weight).at(x)(gradients) == pytest.approx(dense, rel=1e-9)


@pytest.mark.usefixtures("small_ridge")
@pytest.mark.parametrize("kind", ["auc", "logistic"])
def test_a_networks_matrix(kind: str) -> None:
    """Symmetric, positive definite, and E[J' H J] with the Jacobian by autograd, up to the ridge of 1e-3."""
    features, positive, weight = drawn(2)
    model = mm.MLP(4, 3)
    extra = 0 if kind == "auc" else 1
    x = 0.8 * np.random.default_rng(0).normal(size=(1, model.dimension + extra))
    matrix = matrix_of(gauss_newton(kind, features, positive, weight, model).at(x), model.dimension + extra)
    assert matrix == pytest.approx(matrix.T, abs=2e-3 * np.abs(matrix).max())
    assert np.linalg.eigvalsh(0.5 * (matrix + matrix.T)).min() > 0

    rows = torch.tensor(features)
    jacobian = torch.autograd.functional.jacobian(
        lambda w: model.forward(w, rows), torch.tensor(x[0, : model.dimension])
    ).numpy()
    if kind == "auc":
        share = [np.where(mask, weight, 0.0) / weight[mask].sum() for mask in (~positive, positive)]
        means = [mass @ jacobian for mass in share]
        centred = [
            (jacobian - mean).T @ ((jacobian - mean) * mass[:, None]) for mass, mean in zip(share, means, strict=True)
        ]
        difference = means[1] - means[0]
        expected = 2 * C1 * (sum(centred) + np.outer(difference, difference))
    else:
        scores = model.predict(x[0, : model.dimension], features) + x[0, -1]
        chance = 1.0 / (1.0 + np.exp(-scores))
        wide = np.concatenate([jacobian, np.ones((90, 1))], axis=1)
        expected = wide.T @ (wide * (weight / weight.sum() * chance * (1 - chance))[:, None])
    ridge = 1e-3 * np.trace(expected) / len(expected) * np.eye(len(expected))
    assert matrix == pytest.approx(expected + ridge, abs=5e-3 * np.abs(expected).max())


@pytest.mark.usefixtures("small_ridge")
def test_a_networks_matrix_is_estimated_from_a_part_of_many_rows() -> None:
    """From 500 rows of a class, the same ones each time; near the matrix of all."""
    rows = labelled(5, n=9000, d=3)
    positive, weight, model = rows.label > 0, np.ones(9000), mm.MLP(3, 2)
    x = 0.8 * np.random.default_rng(0).normal(size=(1, model.dimension))
    sampled = gauss_newton("auc", rows.features, positive, weight, model)
    assert [len(part) for part in sampled.parts] == [500, 500]
    assert [part.sum() for part in sampled.weights] == pytest.approx([(~positive).mean(), positive.mean()])
    again = gauss_newton("auc", rows.features, positive, weight, model)
    eye = np.eye(model.dimension)[None]
    np.testing.assert_array_equal(sampled.at(x)(eye), again.at(x)(eye))
    found, step = matrix_of(sampled.at(x), model.dimension), max(1, len(rows) // 4000)
    few = rows.select(np.arange(0, 9000, step))
    other = gauss_newton("auc", few.features, few.label > 0, np.ones(len(few)), model)
    assert found == pytest.approx(matrix_of(other.at(x), model.dimension), abs=0.1 * np.abs(found).max())


@pytest.mark.parametrize("kind", ["auc", "logistic"])
def test_a_networks_ridge_keeps_it_positive_definite(kind: str) -> None:
    """With the ridge that it has; by itself it has the rank of the rows, and zero output weights hide the rest."""
    features, positive, weight = drawn(2)
    model = mm.MLP(4, 30)
    extra = 0 if kind == "auc" else 1
    x = np.concatenate([model.start(0), np.zeros(extra)])[None]
    matrix = matrix_of(gauss_newton(kind, features, positive, weight, model).at(x), model.dimension + extra)
    assert np.linalg.eigvalsh(0.5 * (matrix + matrix.T)).min() > 0


@pytest.mark.parametrize("kind", ["auc", "logistic"])
def test_saturated_and_constant_models_keep_a_positive_definite_matrix(kind: str) -> None:
    features, positive, weight = drawn()
    size = 4 if kind == "auc" else 5
    for scale in (0.0, 1e6):
        found = gauss_newton(kind, features, positive, weight).at(np.full((1, size), scale))(np.ones((1, 1, size)))
        assert np.isfinite(found).all()
    flat = gauss_newton(kind, np.zeros((90, 4)), positive, weight).at(np.zeros((1, size)))
    assert np.isfinite(flat(np.ones((1, 1, size)))).all()
