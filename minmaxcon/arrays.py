"""The one place that tells array engines apart: NumPy arrays, torch tensors, and arrays that JAX traces.

Solvers, geometries and built-in problems are written once against :class:`Namespace`: about two dozen functions with
one signature for all engines. A namespace is looked up by array type and cached, because a step of a small problem
makes about sixty array calls and the generic look-ups of a compatibility layer would double its time.

JAX only compiles: :func:`compiled` makes one function of many array calls, which takes NumPy arrays and gives NumPy
arrays. Inside it the same code meets traced arrays, whose values are not known yet; outside all arrays are NumPy's.

Conventions: the last axis holds coordinates, every axis before it counts runs. ``(d,)`` is one point and ``(R, d)``
holds R of them, so code written with ``...`` and reductions over the last axis serves both.
"""

from __future__ import annotations

import importlib
import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any, Literal

import numpy as np

from minmaxcon.errors import InvalidInput, MinMaxConError, MissingDependency, Unsupported

__all__ = [
    "Array",
    "Constant",
    "Engine",
    "Namespace",
    "compiled",
    "compiles",
    "created",
    "engine",
    "namespace",
    "on_device",
    "to_numpy",
]

Array = Any
"""A NumPy array, a torch tensor or an array that JAX traces (or whatever a new engine brings)."""

Engine = Literal["numpy", "torch", "jax"]


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
    matmul : callable
        ``matmul(x, matrix)``: rows times a matrix, dense or sparse, as ``x @ matrix`` is; for two axes NumPy has a way
        that takes half as long.
    take : callable
        ``take(x, indices)``: entries of the last axis.
    rows : callable
        ``rows(x, indices)``: entries of the first axis.
    loop : callable
        ``loop(count, body, state)``: the state after ``state = body(t, state)`` for t = 0, ..., count - 1.
    row_max, row_sum, row_dot : callable
        As ``max``, ``sum`` and ``dot`` (of arrays of one shape), with an axis of length 1 at the end: what broadcasts
        against x. Of one row those of NumPy are numbers, found in half the time.
    number : callable
        ``number(x)``: the one number of an array that holds one, which broadcasts in half the time with NumPy; other
        arrays as they are.
    shown : callable
        ``shown(x)``: the array for the code of others, who cannot change x through it: a write is refused with NumPy,
        and goes into a copy with torch.
    differentiate : callable or None
        ``differentiate(function, x)``: the values, a tuple of arrays, that a function gives at x, and a pullback, which
        gives from a tuple of weights the gradient of the weighted sum; None where the values do not depend on x. None
        where the engine has no automatic derivatives.
    traced : bool
        Whether values are unknown, because a function is being compiled: no shortcut may look at them, and nothing can
        be written into an array.

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.arrays import namespace
    >>> xp = namespace(np.zeros(2))
    >>> xp.name, xp.sum(np.ones((3, 2))).tolist()  # over the last axis
    ('numpy', [2.0, 2.0, 2.0])
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
    tanh: Callable[[Array], Array]
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
    matmul: Callable[[Array, Any], Array]
    take: Callable[[Array, Any], Array]
    rows: Callable[[Array, Any], Array]
    concat: Callable[[Sequence[Array]], Array]
    stack: Callable[[Sequence[Array]], Array]
    broadcast_to: Callable[[Array, tuple[int, ...]], Array]
    loop: Callable[[Any, Callable[[Any, Any], Any], Any], Any]
    row_max: Callable[[Array], Array]
    row_sum: Callable[[Array], Array]
    row_dot: Callable[[Array, Array], Array]
    number: Callable[[Array], Array]
    shown: Callable[[Array], Array]
    differentiate: Callable[..., Any] | None = None
    traced: bool = False


def _loop(count: int, body: Callable[[int, Any], Any], state: Any) -> Any:
    for t in range(count):
        state = body(t, state)
    return state


_FIRST = ((), (0,), (0, 0))
"""The index of the first entry, by number of axes."""

_SHORT_ROW = 16
"""Numbers that Python adds faster than a call of NumPy begins."""


def _numpy() -> Namespace:
    # The ufuncs' own reductions skip the Python layers of np.sum and np.max (2 us each).
    add: Any = np.add.reduce
    largest: Any = np.maximum.reduce
    dense = np.ndarray  # found faster under a name of this function, in the smallest products

    def total(x: Array, keepdims: bool = False) -> Array:
        return add(x, axis=-1, keepdims=keepdims)

    def top(x: Array, keepdims: bool = False) -> Array:
        return largest(x, axis=-1, keepdims=keepdims)

    def row_max(x: Array) -> Array:
        return x[0, x.argmax()] if x.ndim == 2 and len(x) == 1 else largest(x, axis=-1, keepdims=True)

    def row_sum(x: Array) -> Array:
        if x.ndim == 2 and len(x) == 1 and x.size <= _SHORT_ROW and x.dtype.kind == "f":
            return x.dtype.type(sum(x.tolist()[0]))
        return add(x, axis=-1, keepdims=True)

    def row_dot(x: Array, y: Array) -> Array:
        return np.vdot(x, y) if x.ndim == 2 and len(x) == 1 else np.vecdot(x, y)[..., None]

    def matmul(x: Array, matrix: Any) -> Array:
        return x.dot(matrix) if x.ndim == 2 and type(matrix) is dense else x @ matrix

    def shown(x: Array) -> Array:
        view = x.view()
        view.flags.writeable = False
        return view

    return Namespace(
        name="numpy",
        asarray=lambda value, like: np.asarray(to_numpy(value), dtype=like.dtype),
        create=lambda value, dtype="float64": np.array(to_numpy(value), dtype=dtype, order="C"),
        double=lambda x: np.asarray(x, dtype=np.float64),
        to_numpy=np.asarray,
        copy=np.copy,
        zeros=lambda shape, like: np.zeros(shape, dtype=like.dtype),
        exp=np.exp,
        log=np.log,
        tanh=np.tanh,
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
        matmul=matmul,
        take=lambda x, indices: x.take(indices, axis=-1),
        rows=lambda x, indices: x.take(indices, axis=0),
        concat=lambda parts: np.concatenate(parts, axis=-1),
        stack=lambda parts: np.stack(parts, axis=-1),
        broadcast_to=np.broadcast_to,
        loop=_loop,
        row_max=row_max,
        row_sum=row_sum,
        row_dot=row_dot,
        number=lambda x: x[_FIRST[x.ndim]] if x.size == 1 and x.ndim < 3 else x,
        shown=shown,
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


def _derivatives(torch: Any) -> Callable[..., Any]:
    def differentiate(function: Callable[[Array], tuple[Array, ...]], x: Array) -> Any:
        with torch.enable_grad():
            point = x.detach().requires_grad_(True)
            values = function(point)
        found = tuple(value.detach() for value in values)
        if not any(value.requires_grad for value in values):
            return found, None

        def pullback(weights: Sequence[Array]) -> Array:
            total = sum((weight * value).sum() for weight, value in zip(weights, values, strict=True))
            (gradient,) = torch.autograd.grad(
                total, point, retain_graph=True, allow_unused=True, materialize_grads=True
            )
            return gradient

        return found, pullback

    return differentiate


def _torch() -> Namespace:
    torch: Any = importlib.import_module("torch")

    def asarray(value: Any, like: Array) -> Array:
        if isinstance(value, np.ndarray) and not (value.flags.writeable and value.flags.c_contiguous):
            value = np.array(value, order="C")  # torch has neither read-only tensors nor negative strides
        return torch.as_tensor(value, dtype=like.dtype, device=like.device)

    def create(value: Any, dtype: str = "float64") -> Array:
        if isinstance(value, torch.Tensor):
            return value.detach().to(getattr(torch, dtype), copy=True)
        return torch.tensor(np.asarray(value, order="C"), dtype=getattr(torch, dtype))

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
        tanh=torch.tanh,
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
        matmul=operator.matmul,
        take=lambda x, indices: x.index_select(-1, index(x, indices)),
        rows=lambda x, indices: x.index_select(0, index(x, indices)),
        concat=lambda parts: torch.cat(tuple(parts), dim=-1),
        stack=lambda parts: torch.stack(tuple(parts), dim=-1),
        broadcast_to=torch.broadcast_to,
        loop=_loop,
        row_max=lambda x: top(x, keepdims=True),
        row_sum=lambda x: total(x, keepdims=True),
        row_dot=lambda x, y: torch.linalg.vecdot(x, y)[..., None],
        number=lambda x: x,
        shown=lambda x: x.detach().clone(),
        differentiate=_derivatives(torch),
    )


def _jax() -> Namespace:
    """Return functions of traced arrays; what JAX computes on outside of a trace is NumPy arrays."""
    jax = _module_of_jax()
    jnp: Any = importlib.import_module("jax.numpy")

    def asarray(value: Any, like: Array) -> Array:
        # A constant stays a NumPy array: one that is made inside a trace must not be kept for the next.
        return value.astype(like.dtype) if isinstance(value, jax.core.Tracer) else np.asarray(value, dtype=like.dtype)

    def differentiate(function: Callable[[Array], tuple[Array, ...]], x: Array) -> Any:
        values, pull = jax.vjp(function, x)

        def pullback(weights: Sequence[Array]) -> Array:
            given = (jnp.broadcast_to(w, v.shape).astype(v.dtype) for w, v in zip(weights, values, strict=True))
            return pull(tuple(given))[0]

        return values, pullback

    def loop(count: Any, body: Callable[[Any, Any], Any], state: Any) -> Any:
        _register_tree(jax, state)
        return jax.lax.fori_loop(0, count, body, state)

    return Namespace(
        name="jax",
        asarray=asarray,
        create=lambda value, dtype="float64": np.array(value, dtype=dtype, order="C"),
        double=lambda x: x.astype(np.float64),
        to_numpy=np.asarray,
        copy=lambda x: x,
        zeros=lambda shape, like: jnp.zeros(shape, dtype=like.dtype),
        exp=jnp.exp,
        log=jnp.log,
        tanh=jnp.tanh,
        sqrt=jnp.sqrt,
        abs=jnp.abs,
        sign=jnp.sign,
        isfinite=jnp.isfinite,
        maximum=jnp.maximum,
        minimum=jnp.minimum,
        clip=lambda x, lower, upper: jnp.minimum(jnp.maximum(x, lower), upper),
        where=jnp.where,
        sum=lambda x, keepdims=False: jnp.sum(x, axis=-1, keepdims=keepdims),
        max=lambda x, keepdims=False: jnp.max(x, axis=-1, keepdims=keepdims),
        argmin=lambda x: jnp.argmin(x, axis=-1),
        dot=lambda x, y: jnp.sum(x * y, axis=-1),  # fuses with what is around it, as vecdot does not
        matmul=operator.matmul,
        take=lambda x, indices: jnp.take(x, _whole(indices), axis=-1, mode="clip"),
        rows=lambda x, indices: jnp.take(x, _whole(indices), axis=0, mode="clip"),
        concat=lambda parts: jnp.concatenate(tuple(parts), axis=-1),
        stack=lambda parts: jnp.stack(tuple(parts), axis=-1),
        broadcast_to=jnp.broadcast_to,
        loop=loop,
        row_max=lambda x: jnp.max(x, axis=-1, keepdims=True),
        row_sum=lambda x: jnp.sum(x, axis=-1, keepdims=True),
        row_dot=lambda x, y: jnp.sum(x * y, axis=-1, keepdims=True),
        number=lambda x: x,
        shown=lambda x: x,
        differentiate=differentiate,
        traced=True,
    )


def _whole(indices: Any) -> Any:
    return indices if hasattr(indices, "dtype") else np.asarray(indices, dtype=np.int64)  # an empty list has no type


_BUILDERS: dict[str, Callable[[], Namespace]] = {"numpy": _numpy, "torch": _torch, "jax": _jax}
_BY_ENGINE: dict[str, Namespace] = {}
_BY_TYPE: dict[type, Namespace] = {}


def engine(name: str) -> Namespace:
    """Return the functions of one engine by name, importing it when it is first used.

    Parameters
    ----------
    name : {"numpy", "torch", "jax"}
        The engine.

    Returns
    -------
    Namespace
        Its functions.

    Raises
    ------
    InvalidInput
        If there is no such engine.
    MissingDependency
        If its package is not installed.
    """
    asked: object = name  # whatever a caller gives, also what no dictionary can look up
    found = _BY_ENGINE.get(name) if isinstance(asked, str) else None
    if found is None:
        if not isinstance(asked, str) or name not in _BUILDERS:
            raise InvalidInput("engine", name, f"unknown array engine; use one of {', '.join(_BUILDERS)}.")
        found = _BY_ENGINE[name] = _BUILDERS[name]()
    return found


def namespace(x: Array) -> Namespace:
    """Return the functions that work on ``x``.

    Parameters
    ----------
    x : array
        A NumPy array, a NumPy scalar, a torch tensor or an array that JAX traces.

    Returns
    -------
    Namespace
        Looked up by ``type(x)`` and cached.
    """
    found = _BY_TYPE.get(type(x))
    return found if found is not None else _register(x)


def _register(x: Array) -> Namespace:
    # The base classes too: a subclass of Tensor lives in a module of its own. An array of JAX that holds numbers is, to
    # the code outside of compiled functions, one that NumPy reads.
    kinds = {(base.__module__.partition(".")[0], base.__name__) for base in type(x).__mro__}
    torch = any(package == "torch" for package, _ in kinds)
    name = "torch" if torch else "jax" if ("jax", "Tracer") in kinds else "numpy"
    found = _BY_TYPE[type(x)] = engine(name)
    return found


def to_numpy(x: Any) -> Any:
    """Return ``x`` as a NumPy array (detached from any graph and copied to the host where need be)."""
    return namespace(x).to_numpy(x)


def _numbers(value: Any, make: Callable[[], Any]) -> Any:
    """Return what is made of numbers, and name the value that is no array of real ones."""
    remedy = "must be an array of real numbers."
    try:
        if not is_complex(value):
            return make()
    except (TypeError, ValueError, RuntimeError):
        pass
    raise InvalidInput("value", value, remedy)


def is_complex(value: Any) -> bool:
    """Tell whether an array of any engine, or a list, holds complex numbers, which NumPy casts with a mere warning."""
    if hasattr(value, "dtype"):
        kind = getattr(value.dtype, "kind", None)  # NumPy's; its name takes ten times as long
        return bool(kind == "c") if kind is not None else "complex" in str(value.dtype)
    return isinstance(value, complex | list | tuple) and np.iscomplexobj(value)


class Constant:
    """A fixed float64 NumPy array that is handed out with the precision and device of another array.

    One array of the wrong precision promotes a whole float32 step to float64; converting anew at each step would cost
    more than the step's arithmetic, so each conversion is kept.

    Parameters
    ----------
    value : array_like
        The numbers.

    Raises
    ------
    InvalidInput
        If it is no array of real numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.arrays import Constant
    >>> Constant([0.5, 0.25]).like(np.zeros(1, dtype="float32")).dtype
    dtype('float32')
    """

    __slots__ = ("_kept", "_latest", "_row", "value")

    def __init__(self, value: Any) -> None:
        self.value = _numbers(value, lambda: np.array(to_numpy(value), dtype=np.float64))
        self.value.setflags(write=False)
        self._kept: dict[Any, Array] = {}
        self._latest: tuple[Any, Any, Array] = (None, None, self.value)
        self._row: tuple[int, Any, Any, Array] = (-1, None, None, self.value)

    def like(self, x: Array) -> Array:
        """Return the constant with the precision and device of ``x``."""
        dtype, device = x.dtype, getattr(x, "device", None)  # a traced array is on no device yet
        latest = self._latest  # one tuple, so that no thread sees the parts of another's
        if dtype is latest[0] and device == latest[1]:
            return latest[2]
        kept = self._kept.get((dtype, device))
        if kept is None:
            kept = self._kept[dtype, device] = namespace(x).asarray(self.value.copy(), x)
        self._latest = dtype, device, kept
        return kept

    def row(self, x: Array) -> Array:
        """Return the constant as :meth:`like` does, with leading axes of length 1: as many axes as ``x``.

        With one run NumPy takes half as long for arrays of one shape as for shapes that it has to broadcast.
        """
        axes, dtype, device = x.ndim, x.dtype, getattr(x, "device", None)
        kept = self._row
        if axes == kept[0] and dtype is kept[1] and device == kept[2]:
            return kept[3]
        found = self.like(x)
        row = found.reshape((1,) * (axes - found.ndim) + tuple(found.shape))
        self._row = axes, dtype, device, row
        return row

    def __reduce__(self) -> tuple[type[Constant], tuple[Any]]:
        return type(self), (self.value,)  # the kept conversions are a cache, not state


def compiles(name: str) -> bool:
    """Tell whether an engine computes by functions that are compiled, see :func:`compiled`."""
    return name == "jax"


def compiled(function: Callable[..., Any], device: str = "cpu") -> Callable[..., Any]:
    """Return a function compiled by JAX for each set of shapes that it meets.

    Arguments and results are trees of tuples, dictionaries and dataclasses with arrays and numbers as leaves. Arrays
    are NumPy's, or were put on the device before (:func:`on_device`); results are NumPy arrays and Python numbers. All
    is computed in the precision of the arguments: JAX's 64-bit numbers are on inside, whatever they are outside.

    Parameters
    ----------
    function : callable
        A pure function: it is called once with traced arrays, and what it reads from elsewhere is kept as it was then.
    device : str
        See :func:`on_device`.

    Returns
    -------
    callable
        The compiled function.

    Raises
    ------
    InvalidInput
        If it is no function, or there is no such device.
    MissingDependency
        If JAX is not installed.
    Unsupported
        When it is called, if something in the function cannot be traced; its name, place and the remedy are given.
    """
    if not callable(function):
        raise InvalidInput("function", function, "must be a function of arrays.")
    jax = _module_of_jax()
    call, where = jax.jit(function), _device_of_jax(device)

    def apply(*arguments: Any) -> Any:
        _register_tree(jax, arguments)
        with jax.enable_x64(True), jax.default_device(where):
            try:
                found = call(*arguments)
            # Errors of JAX where a function asks a traced array for a value, an index, a method, or to be written into.
            except (TypeError, IndexError, NotImplementedError, AttributeError, ValueError) as error:
                if isinstance(error, MinMaxConError):
                    raise
                raise _untraceable(error) from error
            return jax.tree.map(_on_host, found)

    return apply


def on_device(array: Any, name: str, device: str) -> Any:
    """Return an array as an engine keeps it: a copy on the device, seen by NumPy where that is this machine's memory.

    Parameters
    ----------
    array : array
        Of the engine's own kind.
    name : {"numpy", "torch", "jax"}
        The engine.
    device : str
        ``"cpu"``, or what the engine calls another device: ``"cuda"``, ``"cuda:1"``, ``"gpu"``, ``"mps"``.

    Raises
    ------
    InvalidInput
        If the engine knows no such device, or there is none.
    """
    _check_device(device)
    engine(name)
    if device == "cpu" and name != "jax":
        return array
    if name == "torch":
        torch: Any = importlib.import_module("torch")
        try:
            return array.to(torch.device(device))
        except (RuntimeError, AssertionError) as error:
            first = shorten(str(error).splitlines()[0].rstrip("."), 100, placeholder=" ...")
            if first.startswith("Expected one of"):  # a list of kinds, most of which no machine has
                first = "it knows no such kind of device"
            known = " or ".join(f'"{one}"' for one in _devices_of_torch(torch))
            raise InvalidInput("device", device, f"torch cannot use it ({first}); use {known}.") from error
    if name == "jax":
        jax = _module_of_jax()
        with jax.enable_x64(True):
            return jax.device_put(array, _device_of_jax(device))
    others = 'other devices, such as "cuda:1", need engine="torch" or engine="jax"'
    raise InvalidInput("device", device, f'NumPy computes on "cpu" alone; {others}.')


def created(value: Any, dtype: str, name: str, device: str) -> Any:
    """Return a new array of an engine on a device; where the engine compiles, a NumPy array for compiled functions.

    Parameters
    ----------
    value : array_like
        The numbers.
    dtype : {"float64", "float32"}
        Precision.
    name, device : str
        Engine and device, see :func:`on_device`, which refuses one that is not there.

    Raises
    ------
    InvalidInput
        If the value is no array of real numbers, there is no such precision or engine, or the engine has no such
        device.
    """
    asked: object = dtype
    if not isinstance(asked, str) or dtype not in ("float64", "float32"):
        raise InvalidInput("dtype", dtype, 'use "float64" or "float32".')
    create = engine(name).create
    found = _numbers(value, lambda: create(value, dtype))
    _check_device(device)
    placed = found if device == "cpu" else on_device(found, name, device)
    return found if compiles(name) else placed


def _module_of_jax() -> Any:
    try:
        return importlib.import_module("jax")
    except ImportError as error:
        raise MissingDependency("jax", "jax", 'engine="jax"') from error


def _check_device(device: object) -> None:
    if not isinstance(device, str) or device == "meta":  # torch's "meta" has shapes and no numbers
        raise InvalidInput("device", device, 'must be a name such as "cpu" or "cuda:1".')


def _devices_of_torch(torch: Any) -> list[str]:
    found = ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
    return [*found, "mps"] if torch.backends.mps.is_available() else found


def _device_of_jax(device: str) -> Any:
    _check_device(device)
    jax = _module_of_jax()
    kind, _, number = device.partition(":")
    try:
        return jax.devices(kind)[int(number or 0)]
    except (RuntimeError, IndexError, ValueError) as error:
        known = " or ".join(sorted({f'"{one.platform}"' for one in (*jax.devices("cpu"), *jax.devices())}))
        raise InvalidInput("device", device, f"JAX finds no such device on this machine; use {known}.") from error


_TREES: set[type] = set()
"""Dataclasses whose fields JAX knows as the branches of a tree."""


def _register_tree(jax: Any, value: Any) -> None:
    kind = type(value)
    if is_dataclass(kind):
        names = [field.name for field in fields(kind)]
        if kind not in _TREES:
            jax.tree_util.register_pytree_node(
                kind, lambda one: ([getattr(one, name) for name in names], None), lambda _, parts: kind(*parts)
            )
            _TREES.add(kind)
        for name in names:
            _register_tree(jax, getattr(value, name))
    elif isinstance(value, (tuple, list)):
        for part in value:
            _register_tree(jax, part)


def _on_host(leaf: Any) -> Any:
    """Return a result of a compiled function as a NumPy array, a number as Python's."""
    found = np.asarray(leaf)
    return found if found.ndim else found.item()


def _untraceable(error: Exception) -> Unsupported:
    """Name the function in which tracing failed, the line, the cause and the remedy."""
    apart = tuple(
        str(Path(module.__file__ or "").parent)
        for name in ("jax", "jaxlib", "numpy")
        if (module := sys.modules.get(name))
    )
    place, trace = "a function", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith((*apart, "<")) and code.co_filename != __file__:
            place = f"{code.co_qualname} ({Path(code.co_filename).name}:{trace.tb_lineno})"
        trace = trace.tb_next
    cause = str(error).strip().partition("\n")[0].partition(" See http")[0][:160].rstrip(".")
    return Unsupported(
        f"{place} cannot be compiled: {cause}. Compute from the arguments by their operators and the functions of "
        "minmaxcon.arrays.namespace(x), without writing into arrays, without NumPy functions of them and without "
        'branches on their values; or use engine="numpy", or "torch" where terms() alone is given.'
    )
