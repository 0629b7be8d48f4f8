"""Models against plain torch modules, finite differences and their declared bounds."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

import minmaxcon as mm
from minmaxcon.arrays import engine as engine_named
from tests.cases import fair_auc, labelled

_rng = np.random.default_rng(0)
FEATURES = _rng.normal(size=(12, 4)) * (_rng.random((12, 4)) < 0.7)


def network(seed: int = 0) -> torch.nn.Module:
    """Three sigmoid units and no output intercept: what MLP(4, 3) is, parameters in the same order."""
    torch.manual_seed(seed)
    first, last = torch.nn.Linear(4, 3), torch.nn.Linear(3, 1, bias=False)
    return torch.nn.Sequential(first, torch.nn.Sigmoid(), last).double()


def deep() -> torch.nn.Module:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 3), torch.nn.Softplus(), torch.nn.Linear(3, 1)]
    return torch.nn.Sequential(*layers).double()


class Flat(torch.nn.Module):
    """A module that returns (B,), not (B, 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = deep()

    def forward(self, features: Any) -> Any:
        return self.inner(features)[:, 0]


MODELS: dict[str, Any] = {
    "linear": lambda: mm.Linear(4),
    "mlp": lambda: mm.MLP(4, 3),
    "module": lambda: mm.TorchModule(deep(), bound=50.0),
    "flat module": lambda: mm.TorchModule(Flat(), bound=50.0),
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> mm.Model:
    made: mm.Model = MODELS[request.param]()
    return made


def tensor(shape: Any, seed: int) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).normal(size=shape))


def parameters(model: mm.Model, runs: int | None = None, seed: int = 1) -> torch.Tensor:
    return tensor((model.dimension,) if runs is None else (runs, model.dimension), seed)


# --------------------------------------------------------------------------------------------------- scores, gradients


def plain_module(model: mm.Model, w: torch.Tensor) -> torch.nn.Module:
    """Return a plain module with the model's parameters, filled one after the other."""
    if isinstance(model, mm.Linear):
        module: torch.nn.Module = torch.nn.Linear(4, 1, bias=False).double()
    else:
        module = network() if isinstance(model, mm.MLP) else deep()
    torch.nn.utils.vector_to_parameters(w, module.parameters())
    return module


def test_scores_and_gradients_are_those_of_a_plain_module(model: mm.Model) -> None:
    w, slope = parameters(model), tensor(12, 2)
    module = plain_module(model, w)
    expected = module(torch.tensor(FEATURES))[:, 0]
    scores, pullback = model.evaluate(w, torch.tensor(FEATURES))
    assert scores.shape == (12,)
    assert not scores.requires_grad
    np.testing.assert_allclose(scores, expected.detach(), atol=1e-14)
    (expected @ slope).backward()
    gradient = torch.cat([p.grad.ravel() for p in module.parameters() if p.grad is not None])
    np.testing.assert_allclose(pullback(slope), gradient, atol=1e-13)
    np.testing.assert_allclose(pullback(2.0 * slope), 2.0 * gradient, atol=1e-13)  # it may be asked again


def test_the_network_is_the_same_with_numpy() -> None:
    """The chain rule by hand against autograd, for one point and for runs."""
    model = mm.MLP(4, 3)
    for runs in (None, 5):
        w, slope = parameters(model, runs), tensor(12 if runs is None else (5, 12), 2)
        scores, pullback = model.evaluate(w, torch.tensor(FEATURES))
        by_hand, pulled = model.evaluate(w.numpy(), FEATURES)
        np.testing.assert_allclose(by_hand, scores, atol=1e-14)
        np.testing.assert_allclose(pulled(slope.numpy()), pullback(slope), atol=1e-13)


def test_pullback_is_the_derivative(model: mm.Model) -> None:
    w, features, slope = parameters(model), torch.tensor(FEATURES), tensor(12, 2)
    gradient = np.asarray(model.evaluate(w, features)[1](slope))
    step = 1e-6
    for j in range(model.dimension):
        forward, backward = w.clone(), w.clone()
        forward[j] += step
        backward[j] -= step
        difference = (model.evaluate(forward, features)[0] - model.evaluate(backward, features)[0]) @ slope
        assert gradient[j] == pytest.approx(float(difference) / (2 * step), abs=1e-7)


@pytest.mark.parametrize("runs", [1, 3])
def test_runs_at_once_equal_one_by_one(model: mm.Model, runs: int) -> None:
    w, slope = parameters(model, runs), tensor((runs, 12), 2)
    scores, pullback = model.evaluate(w, torch.tensor(FEATURES))
    gradient = pullback(slope)
    assert scores.shape == (runs, 12)
    assert gradient.shape == (runs, model.dimension)
    for j in range(runs):
        alone, pull = model.evaluate(w[j], torch.tensor(FEATURES))
        np.testing.assert_allclose(scores[j], alone, atol=1e-13)
        np.testing.assert_allclose(gradient[j], pull(slope[j]), atol=1e-12)


def test_evaluation_changes_nothing(model: mm.Model) -> None:
    w, features = parameters(model, 2), torch.tensor(FEATURES)
    before = w.clone(), features.clone()
    state = torch.get_rng_state()
    model.evaluate(w, features)[1](tensor((2, 12), 2))
    model.start(0)
    assert torch.equal(w, before[0])
    assert torch.equal(features, before[1])
    assert not w.requires_grad
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_precision_is_kept(model: mm.Model, dtype: str) -> None:
    xp = engine_named("torch")
    w, features = xp.create(parameters(model, 2), dtype), xp.create(FEATURES, dtype)
    scores, pullback = model.evaluate(w, features)
    assert str(scores.dtype) == str(pullback(scores).dtype) == f"torch.{dtype}"


def test_a_linear_model_needs_no_torch() -> None:
    w, slope = np.asarray(parameters(mm.Linear(4), 3)), np.asarray(tensor((3, 12), 2))
    for features in (FEATURES, scipy.sparse.csr_array(FEATURES), scipy.sparse.csr_matrix(FEATURES)):
        scores, pullback = mm.Linear(4).evaluate(w, features)
        np.testing.assert_allclose(scores, w @ FEATURES.T, atol=1e-14)
        np.testing.assert_allclose(pullback(slope), slope @ FEATURES, atol=1e-14)
        assert type(scores) is type(pullback(slope)) is np.ndarray


@pytest.mark.parametrize("make", [lambda: mm.TorchModule(deep(), 1.0)])
def test_networks_say_that_they_need_torch(make: Any) -> None:
    model = make()
    with pytest.raises(mm.Unsupported, match="engine='torch'"):
        model.evaluate(np.zeros(model.dimension), FEATURES)
    assert not model.linear
    assert mm.Linear(4).linear


@pytest.mark.parametrize("runs", [None, 1, 3])
def test_fair_auc_is_the_same_with_either_form_of_the_network(runs: int | None) -> None:
    """Values and gradients of the whole problem; the network as MLP and as a plain module."""
    rows = labelled(1, n=60, d=4)
    models = (mm.MLP(4, 3), mm.TorchModule(network(), bound=10.0 * np.sqrt(3.0)))
    problems = [fair_auc(rows=rows, engine="torch", model=made) for made in models]
    lead = () if runs is None else (runs,)
    x = tensor((*lead, problems[0].primal.dimension), 3)
    y, a = tensor((*lead, 3), 4).abs(), tensor((*lead, 5), 5)
    ((_, batch),) = problems[0].data.chunks()
    found = []
    for problem in problems:
        evaluation = problem.family.evaluate(x, batch)
        found.append([evaluation.F, evaluation.G, evaluation.pullback(y, a), problem.family.refine(x, problem.data)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)
    assert problems[0].primal.squared_diameter == problems[1].primal.squared_diameter  # the same bounds on scores

    def lagrangian(point: Any) -> Any:
        at = problems[0].family.evaluate(point, batch)
        return (at.F * y).sum(-1) + (at.G * a).sum(-1)

    step = 1e-6
    for j in range(0, x.shape[-1], 3):
        shift = torch.zeros_like(x)
        shift[..., j] = step
        difference = (lagrangian(x + shift) - lagrangian(x - shift)) / (2 * step)
        np.testing.assert_allclose(found[0][2][..., j], difference, rtol=1e-6, atol=1e-6)


# -------------------------------------------------------------------------------------------------------- predictions


def test_predict_gives_the_scores_of_any_rows(model: mm.Model) -> None:
    w = parameters(model)
    expected = model.evaluate(w, torch.tensor(FEATURES))[0]
    read_only = FEATURES.copy()
    read_only.setflags(write=False)
    forms = (
        FEATURES,
        FEATURES.tolist(),
        np.asfortranarray(FEATURES),
        read_only,
        torch.tensor(FEATURES, requires_grad=True),
        *(getattr(scipy.sparse, form)(FEATURES) for form in ("csr_array", "csr_matrix", "csc_array")),
    )
    for rows in forms:
        found = model.predict(w.numpy(), rows)
        assert (type(found), found.dtype, found.shape) == (np.ndarray, np.float64, (12,))
        np.testing.assert_allclose(found, expected, atol=1e-13)
    np.testing.assert_allclose(model.predict(w.numpy(), FEATURES[::-1]), expected.flip(0), atol=1e-13)


def test_predict_takes_any_parameters(model: mm.Model) -> None:
    w = np.round(parameters(model).numpy() * 64) / 64  # exact in float32
    expected = model.predict(w, FEATURES)
    read_only = w.copy()
    read_only.setflags(write=False)
    single = w.astype(np.float32)
    for form in (w.tolist(), single, read_only, torch.tensor(w, requires_grad=True), torch.tensor(single)):
        np.testing.assert_allclose(model.predict(form, FEATURES), expected, rtol=1e-12, atol=1e-13)


def test_predict_takes_frames() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(FEATURES, index=np.arange(12)[::-1])
    for made in (mm.Linear(4), mm.MLP(4, 3)):
        w = parameters(made).numpy()
        np.testing.assert_allclose(made.predict(w, frame), made.predict(w, FEATURES), atol=1e-14)


# ----------------------------------------------------------------------------------------------------- starts, bounds


@pytest.mark.parametrize("made", [mm.Linear(4), mm.MLP(4, 3), mm.mlp(4), mm.mlp(features=4, hidden=2)])
def test_scores_are_constant_at_the_start(made: mm.Model) -> None:
    for seed in (0, 1):
        start = made.start(seed)
        assert start.shape == (made.dimension,)
        assert np.ptp(made.predict(start, FEATURES)) == 0.0


def test_a_network_can_leave_its_start() -> None:
    model = mm.mlp(4)
    start = model.start(0)
    inner = start[:40].reshape(10, 4)
    assert np.linalg.matrix_rank(inner) == 4, "units differ, so that they can learn different things"
    assert np.abs(inner).max() <= 0.5
    np.testing.assert_array_equal(start, model.start(0))
    assert not np.array_equal(start, model.start(1))
    gradient = model.evaluate(torch.tensor(start), torch.tensor(FEATURES))[1](tensor(12, 1))
    assert float(gradient.abs().max()) > 0.1


@pytest.mark.parametrize("made", [mm.Linear(4), mm.MLP(4, 1), mm.MLP(4, 3)])
def test_scores_stay_within_the_bound(made: mm.Model) -> None:
    """For random parameters in the ball and on it: mean scores, and differences of them."""
    rng = np.random.default_rng(0)
    for radius in (0.5, 3.0, 40.0):
        for trial in range(200):
            w = rng.normal(size=made.dimension)
            w[: rng.integers(made.dimension)] = 0.0
            w *= radius * (1.0 if trial % 2 else rng.random()) / np.linalg.norm(w)
            half = made.predict(w, FEATURES[:6]).mean(), made.predict(w, FEATURES[6:]).mean()
            means = np.stack([FEATURES[:6].mean(axis=0), FEATURES[6:].mean(axis=0)])
            bounds = made.score_bound(radius, np.stack([*means, means[0] - means[1]]))
            assert bounds.shape == (3,)
            assert (np.abs([*half, half[0] - half[1]]) <= bounds * (1 + 1e-12)).all()


def test_bounds_are_not_loose() -> None:
    """The linear bound is attained; a network of saturated units comes near its own."""
    mean = FEATURES.mean(axis=0)
    best = 3.0 * mean / np.linalg.norm(mean)
    assert mm.Linear(4).predict(best, FEATURES).mean() == pytest.approx(mm.Linear(4).score_bound(3.0, mean[None])[0])
    model, w = mm.MLP(4, 3), np.zeros(18)
    w[12:15], w[15:] = 8.0, 40.0
    bound = model.score_bound(float(np.linalg.norm(w)), mean[None])[0]
    assert 0.95 * bound < model.predict(w, FEATURES).mean() <= bound
    np.testing.assert_array_equal(mm.TorchModule(deep(), 7.0).score_bound(3.0, np.zeros((2, 4))), [7.0, 7.0])


# ------------------------------------------------------------------------------------------------------- torch modules


def test_a_module_is_left_alone() -> None:
    module = deep()
    weight: Any = module.get_parameter("2.weight")
    weight.grad = torch.ones(3, 3, dtype=torch.float64)
    before = copy.deepcopy(module.state_dict())
    model = mm.TorchModule(module, bound=50.0)
    expected = module(torch.tensor(FEATURES))[:, 0].detach()
    np.testing.assert_allclose(model.predict(model.start(0), FEATURES), expected, atol=1e-14)
    model.evaluate(parameters(model, 2), torch.tensor(FEATURES))[1](tensor((2, 12), 1))
    model.start(0)[:] = 5.0
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])
    assert all(p.requires_grad for p in module.parameters())
    assert module.training
    assert torch.equal(weight.grad, torch.ones(3, 3, dtype=torch.float64))
    with torch.no_grad():  # nor does the model follow what becomes of the module
        for parameter in module.parameters():
            parameter.zero_()
    np.testing.assert_allclose(model.predict(model.start(0), FEATURES), expected, atol=1e-14)


def test_layers_with_a_state_are_evaluated_without_changing_it() -> None:
    torch.manual_seed(0)
    norm: Any = torch.nn.BatchNorm1d(3)
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), norm, torch.nn.Dropout(0.5), torch.nn.Linear(3, 1))
    norm.running_mean.copy_(torch.tensor([1.0, -1.0, 0.5]))
    model = mm.TorchModule(module, bound=50.0)
    w = model.start(0)
    once = model.predict(w, FEATURES)
    np.testing.assert_array_equal(model.predict(w, FEATURES), once)  # no dropout
    np.testing.assert_allclose(model.predict(w, FEATURES[:5]), once[:5], atol=1e-12)  # no statistics of the batch
    both, pullback = model.evaluate(torch.tensor(np.stack([w, w])), torch.tensor(FEATURES))
    np.testing.assert_allclose(both, [once, once], atol=1e-12)
    assert pullback(both).shape == (2, model.dimension)
    np.testing.assert_array_equal(norm.running_mean, [1.0, -1.0, 0.5])
    assert int(norm.num_batches_tracked) == 0
    assert module.training
    module.eval()
    np.testing.assert_allclose(once, module(torch.tensor(FEATURES).float())[:, 0].detach(), atol=1e-6)


def test_frozen_parameters_stay_as_they_are() -> None:
    module = deep().float()
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(not name.startswith("0."))
    model = mm.TorchModule(module, bound=50.0)
    assert model.dimension == 3 * 3 + 3 + 3 + 1
    expected = module(torch.tensor(FEATURES).float())[:, 0].detach()
    np.testing.assert_allclose(model.predict(model.start(0), FEATURES), expected, atol=1e-6)
    np.testing.assert_array_equal(model.predict(np.zeros(16), FEATURES), np.zeros(12))


def test_a_module_is_trained_like_any_model() -> None:
    module = network()
    with torch.no_grad():
        module.get_parameter("2.weight").zero_()
    model = mm.TorchModule(module, bound=20.0)
    problem = fair_auc(rows=labelled(1, n=60, d=4), engine="torch", model=model)
    np.testing.assert_array_equal(problem.start[: model.dimension], model.start(0))
    oracle = mm.SMD(steps=100, batch_size=20)
    with pytest.warns(mm.WeakConvexityWarning, match="weight=1 is not above"):
        solution = mm.solve(problem, mm.IQRC(mm.SFLS(oracle, levels=2), weight=1.0, iterations=2), seed=0)
    assert solution.feasible
    assert solution.objective < 0.5 - 1e-3


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_score_the_same(model: mm.Model, clone: Any) -> None:
    copied = clone(model)
    w = parameters(model).numpy()
    np.testing.assert_array_equal(copied.predict(w, FEATURES), model.predict(w, FEATURES))
    np.testing.assert_array_equal(copied.start(3), model.start(3))
    assert copied.dimension == model.dimension


# ----------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("bad", [0, -1, 2.5, "3", None, True, float("nan"), float("inf")])
def test_sizes_are_checked(bad: Any) -> None:
    for make in (lambda: mm.Linear(bad), lambda: mm.MLP(bad), lambda: mm.mlp(bad)):
        with pytest.raises(mm.InvalidInput, match=r"features=.*whole number"):
            make()
    with pytest.raises(mm.InvalidInput, match=r"hidden=.*whole number"):
        mm.MLP(3, bad)
    assert mm.Linear(np.int64(3)).dimension == mm.Linear(3.0).dimension == 3


@pytest.mark.parametrize("bound", [0.0, -1.0, float("nan"), float("inf"), "a", None, True])
def test_bounds_are_checked(bound: Any) -> None:
    with pytest.raises(mm.InvalidInput, match="bound"):
        mm.TorchModule(deep(), bound)


def test_modules_are_checked() -> None:
    with pytest.raises(mm.InvalidInput, match="no parameters"):
        mm.TorchModule(torch.nn.Tanh(), 1.0)
    with pytest.raises(mm.InvalidInput, match="no parameters"):
        mm.TorchModule(deep().requires_grad_(False), 1.0)
    for module in (None, 3, "ab", FEATURES):
        with pytest.raises(mm.InvalidInput, match=r"module=.*must be a torch\.nn\.Module"):
            mm.TorchModule(module, 1.0)
    two = mm.TorchModule(torch.nn.Linear(4, 2), 1.0)
    for w in (torch.zeros(10), torch.zeros(1, 10), torch.zeros(3, 10)):
        with pytest.raises(mm.InvalidInput, match="one score for each of 12 rows"):
            two.evaluate(w, torch.tensor(FEATURES).float())
