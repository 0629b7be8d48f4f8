"""Jacobians of scores against autograd and pullbacks."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

import minmaxcon as mm
from minmaxcon.arrays import compiled

Array = Any

FEATURES = np.random.default_rng(0).normal(size=(15, 4)) * (np.random.default_rng(1).random((15, 4)) < 0.7)


def deep() -> torch.nn.Module:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.5)]
    return torch.nn.Sequential(*layers, torch.nn.Linear(3, 1))


MODELS: dict[str, Any] = {
    "linear": lambda: mm.Linear(4),
    "mlp": lambda: mm.MLP(4, 3),
    "module": lambda: mm.TorchModule(deep(), bound=50.0),
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> mm.Model:
    made: mm.Model = MODELS[request.param]()
    return made


def parameters(model: mm.Model) -> Array:
    return np.random.default_rng(2).normal(size=model.dimension)


def dense(found: Any) -> Array:
    return np.asarray(found.toarray() if hasattr(found, "tocsr") else found)


def by_pullback(model: mm.Model, w: Array, rows: Array) -> Array:
    """One row of the Jacobian after the other, each the gradient of one score."""
    _, pullback = model.evaluate(torch.tensor(w), torch.tensor(rows))
    eye = torch.eye(len(rows), dtype=torch.float64)
    return np.stack([np.asarray(pullback(unit)) for unit in eye])


def test_rows_are_gradients_of_single_scores(model: mm.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    w = parameters(model)
    with monkeypatch.context() as patch:  # torch's compiler is not imported for it: that takes 2 s
        patch.delitem(vars(torch), "_dynamo", raising=False)  # to ask torch for it would import it
        patch.setitem(sys.modules, "torch._dynamo", None)
        found = model.jacobian(w, FEATURES)
    assert found.shape == (15, model.dimension)
    tolerance = 1e-12 if isinstance(model, mm.Linear) else 1e-5  # networks: in single precision
    assert np.asarray(found) == pytest.approx(by_pullback(model, w, FEATURES), abs=tolerance)


def test_against_autograd_of_the_network_by_hand() -> None:
    model = mm.MLP(4, 3)
    w = torch.tensor(parameters(model))

    def scores(flat: torch.Tensor) -> torch.Tensor:
        inner, offset, outer = flat[:12].reshape(3, 4), flat[12:15], flat[15:]
        return torch.sigmoid(torch.tensor(FEATURES) @ inner.T + offset) @ outer

    expected = torch.autograd.functional.jacobian(scores, w).numpy()
    assert model.jacobian(w.numpy(), FEATURES) == pytest.approx(expected, abs=1e-5)


def test_the_chain_rule_is_autograd_where_it_is_traced() -> None:
    pytest.importorskip("jax", reason="the extra jax is not installed")
    model, slope = mm.MLP(4, 3), np.linspace(-1.0, 2.0, len(FEATURES))
    w = parameters(model)

    def both(w: Array, rows: Array, slope: Array) -> Any:
        scores, pullback = model.evaluate(w, rows)
        return scores, pullback(slope)

    found = compiled(both)(w, FEATURES, slope)
    scores, pullback = model.evaluate(torch.tensor(w), torch.tensor(FEATURES))
    for one, other in zip(found, (scores, pullback(torch.tensor(slope))), strict=True):
        np.testing.assert_allclose(one, np.asarray(other), rtol=1e-12, atol=1e-14)


def test_sparse_rows(model: mm.Model) -> None:
    w = parameters(model)
    held = scipy.sparse.csr_array(FEATURES)
    found = model.jacobian(w, held)
    assert dense(found) == pytest.approx(dense(model.jacobian(w, FEATURES)), abs=1e-6)
    if isinstance(model, mm.Linear):
        assert found is held  # the features themselves, not made dense


def test_any_array_will_do(model: mm.Model) -> None:
    """Read-only, of negative strides, of single precision, torch: the same derivatives; nothing is changed."""
    w = parameters(model)
    expected = np.asarray(model.jacobian(w, FEATURES))
    locked = FEATURES.copy()
    locked.flags.writeable = False
    backwards = FEATURES[::-1].copy()[::-1]
    for rows in (locked, backwards, torch.tensor(FEATURES), FEATURES.astype(np.float32)):
        assert np.asarray(model.jacobian(w, rows)) == pytest.approx(expected, abs=1e-6)
    assert np.asarray(model.jacobian(torch.tensor(w), FEATURES)) == pytest.approx(expected, abs=1e-6)


def test_no_draw_of_chance_and_no_gradient_is_left(model: mm.Model) -> None:
    state = torch.get_rng_state()
    one, other = (np.asarray(model.jacobian(parameters(model), FEATURES)) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert torch.equal(torch.get_rng_state(), state)


def test_one_row(model: mm.Model) -> None:
    w = parameters(model)
    assert model.jacobian(w, FEATURES[:1]).shape == (1, model.dimension)
