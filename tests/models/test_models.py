"""Models against plain torch modules, finite differences and their declared bounds."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch

import minmaxcon as mm

FEATURES = np.random.default_rng(0).normal(size=(12, 4))


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1)).double()


MODELS: dict[str, Any] = {
    "linear": lambda: mm.Linear(4),
    "mlp": lambda: mm.MLP(4, 3),
    "module": lambda: mm.TorchModule(network(), bound=50.0),
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> mm.Model:
    made: mm.Model = MODELS[request.param]()
    return made


def parameters(model: mm.Model, runs: int | None = None, seed: int = 1) -> torch.Tensor:
    shape = (model.dimension,) if runs is None else (runs, model.dimension)
    return torch.tensor(np.random.default_rng(seed).normal(size=shape))


def test_pullback_is_the_gradient(model: mm.Model) -> None:
    w, features = parameters(model), torch.tensor(FEATURES)
    slope = torch.tensor(np.random.default_rng(2).normal(size=12))
    gradient = np.asarray(model.evaluate(w, features)[1](slope))
    step = 1e-6
    for j in range(model.dimension):
        forward, backward = w.clone(), w.clone()
        forward[j] += step
        backward[j] -= step
        difference = (model.evaluate(forward, features)[0] - model.evaluate(backward, features)[0]) @ slope
        assert gradient[j] == pytest.approx(float(difference) / (2 * step), abs=1e-6)


def test_runs_at_once_equal_one_by_one(model: mm.Model) -> None:
    w, features = parameters(model, 3), torch.tensor(FEATURES)
    slope = torch.tensor(np.random.default_rng(2).normal(size=(3, 12)))
    scores, pullback = model.evaluate(w, features)
    gradient = pullback(slope)
    for j in range(3):
        alone, pull = model.evaluate(w[j], features)
        np.testing.assert_allclose(scores[j], alone, atol=1e-13)
        np.testing.assert_allclose(gradient[j], pull(slope[j]), atol=1e-12)


def test_predict_gives_the_scores(model: mm.Model) -> None:
    w = parameters(model)
    np.testing.assert_allclose(model.predict(w.numpy(), FEATURES), model.evaluate(w, torch.tensor(FEATURES))[0])


def test_scores_stay_within_the_bound() -> None:
    for model in (mm.Linear(4), mm.MLP(4, 3)):
        rng = np.random.default_rng(0)
        for _ in range(200):
            w = rng.normal(size=model.dimension)
            w *= 2.0 / np.linalg.norm(w)
            mean = FEATURES.mean(axis=0, keepdims=True)
            assert abs(model.predict(w, FEATURES).mean()) <= model.score_bound(2.0, mean)[0] + 1e-12


def test_networks_start_constant() -> None:
    model = mm.mlp(4)
    start = model.start(0)
    assert np.ptp(model.predict(start, FEATURES)) == 0
    assert np.ptp(start[:40]) > 0  # hidden units differ, so that they can learn different things
    assert not np.array_equal(start, model.start(1))


def test_mlp_is_the_network_of_the_paper() -> None:
    model = mm.MLP(4, 3)
    w = parameters(model)
    inner, outer = torch.nn.Linear(4, 3).double(), torch.nn.Linear(3, 1, bias=False).double()
    with torch.no_grad():
        inner.weight.copy_(w[:12].reshape(3, 4))
        inner.bias.copy_(w[12:15])
        outer.weight.copy_(w[15:].reshape(1, 3))
        expected = outer(torch.sigmoid(inner(torch.tensor(FEATURES))))[:, 0]
    np.testing.assert_allclose(model.evaluate(w, torch.tensor(FEATURES))[0], expected, atol=1e-14)


def test_module_is_left_alone() -> None:
    module = network()
    before = copy.deepcopy(module.state_dict())
    model = mm.TorchModule(module, bound=50.0)
    np.testing.assert_allclose(
        model.predict(model.start(0), FEATURES), module(torch.tensor(FEATURES))[:, 0].detach(), atol=1e-14
    )
    model.evaluate(parameters(model), torch.tensor(FEATURES))[1](torch.ones(12, dtype=torch.float64))
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])


def test_pickle(model: mm.Model) -> None:
    copied = pickle.loads(pickle.dumps(model))  # noqa: S301
    w = parameters(model).numpy()
    np.testing.assert_array_equal(copied.predict(w, FEATURES), model.predict(w, FEATURES))


@pytest.mark.parametrize(
    "make",
    [
        lambda: mm.MLP(0),
        lambda: mm.MLP(3, 0),
        lambda: mm.TorchModule(network(), 0.0),
        lambda: mm.TorchModule(torch.nn.Tanh(), 1.0),
    ],
)
def test_what_cannot_be_used_is_named(make: Any) -> None:
    with pytest.raises(mm.InvalidInput):
        make()


def test_network_through_iqrc_moves_less_and_less() -> None:
    """The paper's network on mortgage applications: feasible, and the proximal steps shorten."""
    problem = mm.load_problem("fair_auc", data="loanapp", metric="inter_group", kappa=0.1, model="mlp")
    solver = mm.IQRC(oracle=mm.SFLS(oracle=mm.SMD(steps=400), levels=4), iterations=12)
    solution = mm.solve(problem, solver, seed=0)
    assert solution.feasible
    assert solution.objective < 0.4
    movement = solution.trace["movement"]
    third = len(movement) // 3
    assert movement[-third:].mean() < 0.5 * movement[:third].mean()
    with pytest.raises(mm.Unsupported, match="linear"):
        mm.plugin("fair_auc").export(problem, solution.x)
