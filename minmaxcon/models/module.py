"""Neural networks: the paper's two-layer sigmoid network, and any torch module, as flat parameter vectors."""

from __future__ import annotations

import copy
import importlib
import sys
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.checks import number, whole
from minmaxcon.errors import InvalidInput, Unsupported
from minmaxcon.models.base import Model

__all__ = ["MLP", "TorchModule", "mlp"]


class _Autograd(Model):
    """Base of models whose pullback comes from torch's autograd."""

    @abstractmethod
    def forward(self, w: Array, features: Array) -> Array:
        """Scores (..., B) of parameters (..., d) and features (B, p), by differentiable torch operations."""

    def evaluate(self, w: Array, features: Array) -> tuple[Array, Callable[[Array], Array]]:
        """See :meth:`Model.evaluate`; arrays other than torch tensors are refused as :class:`Unsupported`."""
        if namespace(w).name != "torch":
            raise Unsupported(f"{type(self).__name__} needs torch tensors: load the problem with engine='torch'.")
        torch: Any = importlib.import_module("torch")
        with torch.enable_grad():
            point = w.detach().requires_grad_(True)
            scores = self.forward(point, features)

        def pullback(slope: Array) -> Array:
            (gradient,) = torch.autograd.grad(scores, point, slope, retain_graph=True)
            return gradient

        return scores.detach(), pullback

    def jacobian(self, w: Any, features: Any) -> Any:
        """See :meth:`Model.jacobian`; by one backward pass through a copy of the parameters for each row."""
        torch: Any = importlib.import_module("torch")
        dense = features.toarray() if hasattr(features, "tocsr") else to_numpy(features)
        point, rows = (np.require(values, np.float32, ["C", "W"]) for values in (to_numpy(w), dense))

        def score(flat: Array, row: Array) -> Array:
            return self.forward(flat, row[None])[0]

        # As fast as torch.func.grad, whose first call in a process imports torch's compiler (2 s).
        with torch.enable_grad():
            each = torch.from_numpy(point).expand(len(rows), -1).clone().requires_grad_(True)
            scores = torch.func.vmap(score)(each, torch.from_numpy(rows))
            (gradients,) = torch.autograd.grad(scores, each, torch.ones_like(scores))
        return to_numpy(gradients)

    def predict(self, w: Any, features: Any) -> Any:
        """See :meth:`Model.predict`."""
        torch: Any = importlib.import_module("torch")
        given, rows = self.checked(w, features)
        dense = rows.toarray() if hasattr(rows, "tocsr") else rows
        # Torch takes neither read-only arrays nor negative strides, and all must have one precision.
        point, rows = (np.require(values, np.float64, ["C", "W"]) for values in (given, dense))
        with torch.no_grad():
            found = self.forward(torch.from_numpy(point), torch.from_numpy(rows))
        return np.asarray(found, dtype=np.float64)


class MLP(_Autograd):
    r"""The paper's network: :math:`h_w(\xi) = \langle v, \sigma(U\xi + b)\rangle` with a layer of sigmoid units.

    No output intercept: no difference of scores sees one. The units of all runs are computed as one wide layer,
    which reads a batch once and not once a run.

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

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.models import MLP
    >>> model = MLP(features=3, hidden=2)
    >>> model.dimension, model.predict(np.zeros(model.dimension), np.ones((4, 3))).shape
    (10, (4,))
    """

    engine = "numpy"

    def __init__(self, features: int, hidden: int = 10) -> None:
        self.features, self.hidden = whole("features", features), whole("hidden", hidden)
        self.dimension = self.hidden * (self.features + 2)

    def forward(self, w: Array, features: Array) -> Array:
        """See the class."""
        inner, offset, outer = self.layers(w)
        wide = inner.reshape(-1, self.features) @ features.transpose(-1, -2) + offset.reshape(-1, 1)
        units = wide.sigmoid().reshape(*offset.shape, features.shape[0])
        return (outer[..., None, :] @ units)[..., 0, :]

    def evaluate(self, w: Array, features: Array) -> tuple[Array, Callable[[Array], Array]]:
        """See :meth:`Model.evaluate`: autograd with torch, by the chain rule with other engines."""
        xp = namespace(w)
        if xp.name == "torch":
            return super().evaluate(w, features)
        inner, offset, outer = self.layers(w)
        lead, rows = tuple(w.shape[:-1]), int(features.shape[0])
        units = _sigmoid(inner.reshape(-1, self.features) @ features.T, offset.reshape(-1, 1))
        units = units.reshape(*lead, self.hidden, rows)

        def pullback(slope: Array) -> Array:
            pushed = _derivative(units, slope[..., None, :])
            in_inner = (pushed.reshape(-1, rows) @ features).reshape(*lead, self.hidden, self.features)
            in_inner = (outer[..., None] * in_inner).reshape(*lead, self.hidden * self.features)
            return xp.concat([in_inner, outer * pushed.sum(-1), (units @ slope[..., None])[..., 0]])

        return (outer[..., None, :] @ units)[..., 0, :], pullback

    def jacobian(self, w: Any, features: Any) -> Any:
        """See :meth:`Model.jacobian`; by the chain rule, in single precision."""
        dense = features.toarray() if hasattr(features, "tocsr") else to_numpy(features)
        inner, offset, outer = self.layers(np.asarray(to_numpy(w), dtype=np.float32))
        rows = np.asarray(dense, dtype=np.float32)
        units = _sigmoid(rows @ inner.T, offset)
        pushed = _derivative(units, outer)
        in_inner = (pushed[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
        return np.concatenate([in_inner, pushed, units], axis=1)

    def predict(self, w: Any, features: Any) -> Any:
        """See :meth:`Model.predict`; without torch."""
        point, rows = self.checked(w, features)
        if rows.shape[1] != self.features:
            raise InvalidInput("features", f"shape {rows.shape}", f"must have {self.features} columns.")
        dense = rows.toarray() if hasattr(rows, "tocsr") else rows
        return self.evaluate(point, np.asarray(dense, dtype=np.float64))[0]

    def layers(self, w: Array) -> tuple[Array, Array, Array]:
        """Return the parts of w (..., d): U (..., hidden, p), b (..., hidden) and v (..., hidden), in this order."""
        end = self.hidden * self.features
        inner = w[..., :end].reshape(*w.shape[:-1], self.hidden, self.features)
        return inner, w[..., end : end + self.hidden], w[..., end + self.hidden :]

    def start(self, seed: int) -> Any:
        """Random hidden weights, uniform and scaled by the number of features; zero output weights."""
        rng = np.random.default_rng(seed)
        w = np.zeros(self.dimension)
        reach = 1.0 / np.sqrt(self.features)
        end = self.hidden * (self.features + 1)
        w[:end] = rng.uniform(-reach, reach, end)
        return w

    def score_bound(self, radius: float, means: Any) -> Any:
        r""":math:`\text{radius}\cdot\sqrt{\text{hidden}}`, since the units lie in (0, 1)."""
        return np.full(len(means), radius * np.sqrt(self.hidden))


def _sigmoid(product: Array, offset: Array) -> Array:
    """Return the sigmoid of a product and an offset, in the product's own memory where NumPy holds it."""
    xp = namespace(product)
    if xp.name != "numpy":
        return 0.5 + 0.5 * xp.tanh(0.5 * (product + offset))
    product += offset
    product *= 0.5
    np.tanh(product, out=product)
    product *= 0.5
    product += 0.5
    return product


def _derivative(units: Array, factor: Array) -> Array:
    """Return the derivative of the sigmoid at its values, times a factor."""
    if namespace(units).name != "numpy":
        return factor * (units - units * units)
    found = units * units
    np.subtract(units, found, out=found)
    found *= factor
    return found


def mlp(features: int, hidden: int = 10) -> MLP:
    """Return the paper's network, see :class:`MLP`."""
    return MLP(features, hidden)


class TorchModule(_Autograd):
    """Any :class:`torch.nn.Module` that maps (B, p) to (B,) or (B, 1), as one flat parameter vector.

    Several runs are mapped with :func:`torch.func.vmap`, so the module must not keep state between calls. Scores come
    from a copy in evaluation mode: dropout is off, and batch normalisation uses the running statistics that it has.

    Parameters
    ----------
    module : torch.nn.Module
        The network. Its present parameters are the starting point; those that need no gradient stay as they are. It is
        copied, and not modified.
    bound : float
        An upper bound on the absolute score for parameters in the primal set.

    Raises
    ------
    InvalidInput
        If the module has no parameters to train, or the bound is not positive; and at the first batch, if it does not
        give one score a row.

    Examples
    --------
    >>> import torch
    >>> from minmaxcon.models import TorchModule
    >>> model = TorchModule(torch.nn.Linear(3, 1), bound=10.0)
    >>> model.dimension
    4
    """

    def __init__(self, module: Any, bound: float) -> None:
        need = "must be positive and finite: inner variables need a compact set."
        self.bound = number("bound", bound, need, above=0.0)
        torch = sys.modules.get("torch")  # which who has a module has imported
        if torch is None or not isinstance(module, torch.nn.Module):
            raise InvalidInput("module", module, "must be a torch.nn.Module.")
        self.module = copy.deepcopy(module).eval()
        trained = [(name, value) for name, value in self.module.named_parameters() if value.requires_grad]
        self._shapes = [(name, tuple(value.shape), value.numel()) for name, value in trained]
        self.dimension = sum(count for _, _, count in self._shapes)
        if self.dimension == 0:
            raise InvalidInput("module", module, "has no parameters to train.")
        self._start = np.concatenate([value.detach().double().cpu().numpy().ravel() for _, value in trained])
        frozen = [(name, value.detach()) for name, value in self.module.named_parameters() if not value.requires_grad]
        self._fixed = {**dict(frozen), **dict(self.module.named_buffers())}

    def forward(self, w: Array, features: Array) -> Array:
        """See the class."""
        torch: Any = importlib.import_module("torch")

        def single(flat: Array) -> Array:
            named = {
                name: value.to(flat) if value.is_floating_point() else value for name, value in self._fixed.items()
            }
            begin = 0
            for name, shape, count in self._shapes:
                named[name] = flat[begin : begin + count].reshape(shape)
                begin += count
            scores = torch.func.functional_call(self.module, named, (features,))
            if scores.numel() != features.shape[0]:
                shape = tuple(scores.shape)
                raise InvalidInput("module", shape, f"must give one score for each of {features.shape[0]} rows.")
            return scores.reshape(features.shape[0])

        if w.ndim == 1:
            return single(w)
        return torch.stack([single(w[0])]) if w.shape[0] == 1 else torch.func.vmap(single)(w)

    def start(self, seed: int) -> Any:
        """Return the module's own parameters; solvers may first have to find a feasible point from there."""
        return self._start.copy()

    def score_bound(self, radius: float, means: Any) -> Any:
        """Return the bound given by the caller."""
        return np.full(len(means), self.bound)
