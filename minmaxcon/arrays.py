"""The one place that tells NumPy arrays from torch tensors, and the helpers for the run axis.

Solvers, geometries and built-in problems are written once against :class:`Namespace`: about two dozen functions with
one signature for both engines. A namespace is looked up by array type and cached, because a step of a small problem
makes about sixty array calls and the generic look-ups of a compatibility layer would double its time.

Conventions: the last axis holds coordinates, every axis before it counts runs. ``(d,)`` is one point and ``(R, d)``
holds R of them, so code written with ``...`` and reductions over the last axis serves both.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from minmaxcon.errors import InvalidInput

__all__ = ["Array", "Constant", "Engine", "Namespace", "engine", "namespace", "to_numpy"]

Array = Any
"""A NumPy array or a torch tensor (or whatever a new engine brings)."""

Engine = Literal["numpy", "torch"]


@dataclass(frozen=True, eq=False, slots=True)
class Namespace:
    """The functions that the package needs of an array library, with one signature for all.

    Attributes
    ----------
    name : str
        Name of the engine.
    asarray : callable
        ``asarray(value, like)``: value with the type, precision and device of ``like``.
    create : callable
        ``create(value, dtype)``: a new array from anything; ``dtype`` is ``"float32"`` or ``"float64"``.
    double : callable
        ``double(x)``: the same numbers in float64.
    sum, max : callable
        Reductions over the last axis; ``sum(x, keepdims=False)``.
    dot : callable
        ``dot(x, y)``: inner products over the last axis.
    take : callable
        ``take(x, indices)``: entries of the last axis.
    rows : callable
        ``rows(x, indices)``: entries of the first axis.
    """

    name: str
    asarray: Callable[..., Array]
    create: Callable[..., Array]
    double: Callable[[Array], Array]
    to_numpy: Callable[[Array], Any]
    copy: Callable[[Array], Array]
    zeros: Callable[..., Array]
    exp: Callable[[Array], Array]
    log: Callable[[Array], Array]
    sqrt: Callable[[Array], Array]
    abs: Callable[[Array], Array]
    sign: Callable[[Array], Array]
    isfinite: Callable[[Array], Array]
    maximum: Callable[[Array, Array], Array]
    minimum: Callable[[Array, Array], Array]
    clip: Callable[[Array, Array, Array], Array]
    where: Callable[[Array, Array, Array], Array]
    sum: Callable[..., Array]
    max: Callable[..., Array]
    argmin: Callable[[Array], Array]
    dot: Callable[[Array, Array], Array]
    take: Callable[[Array, Any], Array]
    rows: Callable[[Array, Any], Array]
    concat: Callable[[Sequence[Array]], Array]
    stack: Callable[[Sequence[Array]], Array]
    broadcast_to: Callable[[Array, tuple[int, ...]], Array]


def _numpy() -> Namespace:
    # The ufuncs' own reductions skip the Python layers of np.sum and np.max (2 us each).
    add: Any = np.add.reduce
    largest: Any = np.maximum.reduce

    def total(x: Array, keepdims: bool = False) -> Array:
        return add(x, axis=-1, keepdims=keepdims)

    def top(x: Array, keepdims: bool = False) -> Array:
        return largest(x, axis=-1, keepdims=keepdims)

    return Namespace(
        name="numpy",
        asarray=lambda value, like: np.asarray(to_numpy(value), dtype=like.dtype),
        create=lambda value, dtype="float64": np.array(to_numpy(value), dtype=dtype),
        double=lambda x: np.asarray(x, dtype=np.float64),
        to_numpy=np.asarray,
        copy=np.copy,
        zeros=lambda shape, like: np.zeros(shape, dtype=like.dtype),
        exp=np.exp,
        log=np.log,
        sqrt=np.sqrt,
        abs=np.absolute,
        sign=np.sign,
        isfinite=np.isfinite,
        maximum=np.maximum,
        minimum=np.minimum,
        clip=lambda x, lower, upper: np.minimum(np.maximum(x, lower), upper),
        where=np.where,
        sum=total,
        max=top,
        argmin=lambda x: np.argmin(x, axis=-1),
        dot=np.vecdot,
        take=lambda x, indices: x.take(indices, axis=-1),
        rows=lambda x, indices: x.take(indices, axis=0),
        concat=lambda parts: np.concatenate(parts, axis=-1),
        stack=lambda parts: np.stack(parts, axis=-1),
        broadcast_to=np.broadcast_to,
    )


def _with_numbers(torch: Any, function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """Let one of two arguments be a number, which torch's own function refuses."""

    def apply(x: Array, y: Array) -> Array:
        if type(x) is not torch.Tensor:
            x = torch.as_tensor(x, dtype=y.dtype, device=y.device)
        elif type(y) is not torch.Tensor:
            y = torch.as_tensor(y, dtype=x.dtype, device=x.device)
        return function(x, y)

    return apply


def _torch() -> Namespace:
    torch: Any = importlib.import_module("torch")

    def asarray(value: Any, like: Array) -> Array:
        if isinstance(value, np.ndarray) and not (value.flags.writeable and value.flags.c_contiguous):
            value = np.array(value, order="C")  # torch has neither read-only tensors nor negative strides
        return torch.as_tensor(value, dtype=like.dtype, device=like.device)

    def create(value: Any, dtype: str = "float64") -> Array:
        if isinstance(value, torch.Tensor):
            return value.detach().to(getattr(torch, dtype), copy=True)
        return torch.tensor(np.asarray(value), dtype=getattr(torch, dtype))

    def total(x: Array, keepdims: bool = False) -> Array:
        return torch.sum(x, dim=-1, keepdim=keepdims)

    def top(x: Array, keepdims: bool = False) -> Array:
        return torch.amax(x, dim=-1, keepdim=keepdims)

    def index(x: Array, indices: Any) -> Array:
        return torch.as_tensor(indices, dtype=torch.int64, device=x.device)  # an empty list would be float

    maximum, minimum = _with_numbers(torch, torch.maximum), _with_numbers(torch, torch.minimum)

    def clip(x: Array, lower: Array, upper: Array) -> Array:
        if type(lower) is not type(upper):  # torch.clamp takes two tensors or two numbers
            return minimum(maximum(x, lower), upper)
        return torch.clamp(x, min=lower, max=upper)

    return Namespace(
        name="torch",
        asarray=asarray,
        create=create,
        double=lambda x: x.to(torch.float64),
        to_numpy=lambda x: x.detach().cpu().numpy(),
        copy=lambda x: x.detach().clone(),
        zeros=lambda shape, like: torch.zeros(shape, dtype=like.dtype, device=like.device),
        exp=torch.exp,
        log=torch.log,
        sqrt=torch.sqrt,
        abs=torch.abs,
        sign=torch.sign,
        isfinite=torch.isfinite,
        maximum=maximum,
        minimum=minimum,
        clip=clip,
        where=torch.where,
        sum=total,
        max=top,
        argmin=lambda x: torch.argmin(x, dim=-1),
        dot=torch.linalg.vecdot,
        take=lambda x, indices: x.index_select(-1, index(x, indices)),
        rows=lambda x, indices: x.index_select(0, index(x, indices)),
        concat=lambda parts: torch.cat(tuple(parts), dim=-1),
        stack=lambda parts: torch.stack(tuple(parts), dim=-1),
        broadcast_to=torch.broadcast_to,
    )


_BUILDERS: dict[str, Callable[[], Namespace]] = {"numpy": _numpy, "torch": _torch}
_BY_ENGINE: dict[str, Namespace] = {}
_BY_TYPE: dict[type, Namespace] = {}


def engine(name: str) -> Namespace:
    """Return the functions of one engine by name, importing it when it is first used.

    Parameters
    ----------
    name : {"numpy", "torch"}
        The engine.

    Returns
    -------
    Namespace
        Its functions.

    Raises
    ------
    InvalidInput
        If there is no such engine.
    """
    found = _BY_ENGINE.get(name)
    if found is None:
        if name not in _BUILDERS:
            raise InvalidInput("engine", name, f"unknown array engine; use one of {', '.join(_BUILDERS)}.")
        found = _BY_ENGINE[name] = _BUILDERS[name]()
    return found


def namespace(x: Array) -> Namespace:
    """Return the functions that work on ``x``.

    Parameters
    ----------
    x : array
        A NumPy array, a NumPy scalar or a torch tensor.

    Returns
    -------
    Namespace
        Looked up by ``type(x)`` and cached.
    """
    found = _BY_TYPE.get(type(x))
    return found if found is not None else _register(x)


def _register(x: Array) -> Namespace:
    # The base classes too: a subclass of Tensor lives in a module of its own.
    name = "torch" if any(base.__module__.partition(".")[0] == "torch" for base in type(x).__mro__) else "numpy"
    found = _BY_TYPE[type(x)] = engine(name)
    return found


def to_numpy(x: Any) -> Any:
    """Return ``x`` as a NumPy array (detached from any graph and copied to the host where need be)."""
    return namespace(x).to_numpy(x)


class Constant:
    """A fixed float64 NumPy array that is handed out with the precision and device of another array.

    One array of the wrong precision promotes a whole float32 step to float64; converting anew at each step would cost
    more than the step's arithmetic, so each conversion is kept.

    Parameters
    ----------
    value : array_like
        The numbers.
    """

    __slots__ = ("_kept", "value")

    def __init__(self, value: Any) -> None:
        self.value = np.array(to_numpy(value), dtype=np.float64)
        self.value.setflags(write=False)
        self._kept: dict[Any, Array] = {}

    def like(self, x: Array) -> Array:
        """Return the constant with the precision and device of ``x``."""
        key = (x.dtype, x.device)
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = namespace(x).asarray(self.value.copy(), x)
        return kept

    def __reduce__(self) -> tuple[type[Constant], tuple[Any]]:
        return type(self), (self.value,)  # the kept conversions are a cache, not state
