"""Neural networks: the paper's two-layer sigmoid network, and any torch module, as flat parameter vectors."""

from __future__ import annotations

import importlib
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from minmaxcon.arrays import Array
from minmaxcon.errors import InvalidInput
from minmaxcon.models.base import Model

__all__ = ["MLP", "TorchModule", "mlp"]


class _Autograd(Model):
    """Base of models whose pullback comes from torch's autograd."""

    weak_convexity = float("inf")

    @abstractmethod
    def forward(self, w: Array, features: Array) -> Array:
        """Scores (..., B) of parameters (..., d) and features (B, p), by differentiable torch operations."""

    def evaluate(self, w: Array, features: Array) -> tuple[Array, Callable[[Array], Array]]:
        """See :meth:`Model.evaluate`."""
        torch: Any = importlib.import_module("torch")
        with torch.enable_grad():
            point = w.detach().requires_grad_(True)
            scores = self.forward(point, features)

        def pullback(slope: Array) -> Array:
            (gradient,) = torch.autograd.grad(scores, point, slope, retain_graph=True)
            return gradient

        return scores.detach(), pullback

    def predict(self, w: Any, features: Any) -> Any:
        """See :meth:`Model.predict`."""
        torch: Any = importlib.import_module("torch")
        dense = features.toarray() if hasattr(features, "tocsr") else features
        with torch.no_grad():
            found = self.forward(torch.as_tensor(np.asarray(w)), torch.as_tensor(np.asarray(dense, dtype=np.float64)))
        return np.asarray(found, dtype=np.float64)


class MLP(_Autograd):
    r"""The paper's network: :math:`h_w(\xi) = \langle v, \sigma(U\xi + b)\rangle` with a layer of sigmoid units.

    There is no output intercept, since AUC does not see one. Runs are batched in the matrix products.

    Parameters
    ----------
    features : int
        Number p of features.
    hidden : int
        Number of units.

    Raises
    ------
    InvalidInput
        If a size is not a whole number of at least 1.
    """

    def __init__(self, features: int, hidden: int = 10) -> None:
        for name, value in (("features", features), ("hidden", hidden)):
            if int(value) != value or value < 1:
                raise InvalidInput(name, value, "must be a whole number of at least 1.")
        self.features, self.hidden = int(features), int(hidden)
        self.dimension = self.hidden * (self.features + 2)

    def forward(self, w: Array, features: Array) -> Array:
        """See the class."""
        size = self.hidden * self.features
        inner = w[..., :size].reshape(*w.shape[:-1], self.hidden, self.features)
        offset, outer = w[..., size : size + self.hidden], w[..., size + self.hidden :]
        units = (features @ inner.transpose(-1, -2) + offset[..., None, :]).sigmoid()
        return (units @ outer[..., None])[..., 0]

    def start(self, seed: int) -> Any:
        """Random hidden weights, uniform and scaled by the number of features; zero output weights."""
        rng = np.random.default_rng(seed)
        w = np.zeros(self.dimension)
        reach = 1.0 / np.sqrt(self.features)
        size = self.hidden * (self.features + 1)
        w[:size] = rng.uniform(-reach, reach, size)
        return w

    def score_bound(self, radius: float, means: Any) -> Any:
        r""":math:`\text{radius}\cdot\sqrt{\text{hidden}}`, since the units lie in (0, 1)."""
        return np.full(len(means), radius * np.sqrt(self.hidden))


def mlp(features: int, hidden: int = 10) -> MLP:
    """Return the paper's network, see :class:`MLP`."""
    return MLP(features, hidden)


class TorchModule(_Autograd):
    """Any :class:`torch.nn.Module` that maps (B, p) to (B,) or (B, 1), as one flat parameter vector.

    Several runs are mapped with :func:`torch.func.vmap`, so the module must not keep state between calls (no batch
    normalisation with running statistics).

    Parameters
    ----------
    module : torch.nn.Module
        The network; its present parameters are the starting point, and it is not modified.
    bound : float
        An upper bound on the absolute score for parameters in the primal set.

    Raises
    ------
    InvalidInput
        If the module has no parameters, or the bound is not positive.
    """

    def __init__(self, module: Any, bound: float) -> None:
        if not (np.isfinite(bound) and bound > 0):
            raise InvalidInput("bound", bound, "must be positive and finite: inner variables need a compact set.")
        self.module, self.bound = module, float(bound)
        self._shapes = [(name, tuple(value.shape), value.numel()) for name, value in module.named_parameters()]
        self.dimension = sum(size for _, _, size in self._shapes)
        if self.dimension == 0:
            raise InvalidInput("module", module, "has no parameters to train.")
        self._start = np.concatenate([v.detach().double().cpu().numpy().ravel() for v in module.parameters()])

    def forward(self, w: Array, features: Array) -> Array:
        """See the class."""
        torch: Any = importlib.import_module("torch")

        def single(flat: Array) -> Array:
            named, begin = {}, 0
            for name, shape, size in self._shapes:
                named[name] = flat[begin : begin + size].reshape(shape)
                begin += size
            return torch.func.functional_call(self.module, named, (features,)).reshape(features.shape[0])

        if w.ndim == 1:
            return single(w)
        return torch.stack([single(w[0])]) if w.shape[0] == 1 else torch.func.vmap(single)(w)

    def start(self, seed: int) -> Any:
        """Return the module's own parameters; solvers may first have to find a feasible point from there."""
        return self._start.copy()

    def score_bound(self, radius: float, means: Any) -> Any:
        """Return the bound given by the caller."""
        return np.full(len(means), self.bound)
