"""Compiled values and gradients of a family of functions, and the cache of what is compiled for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from hashlib import blake2b
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, compiled, compiles, namespace
from minmaxcon.core.constraint import ConstraintFamily, Evaluation, WrappedFamily, differentiated
from minmaxcon.core.runs import take_runs
from minmaxcon.core.source import Batch, Source

__all__ = [
    "CompiledFamily",
    "by_value",
    "engine_family",
    "forget_changed",
    "kept_with",
    "padded",
    "uncompiled",
    "with_padding",
]

_MOST = 16
"""Entries kept with a family; the oldest is dropped."""

_DEEPEST = 20
"""Levels of objects in objects whose content is looked at; what lies deeper counts by identity."""


class _Kept(dict[Hashable, Any]):
    """A cache of an object, and the contents with which it was made; copies of the object begin with an empty one."""

    def __init__(self) -> None:
        super().__init__()
        self.contents: dict[Hashable, Hashable] = {}

    def __reduce__(self) -> tuple[type[_Kept], tuple[()]]:
        return type(self), ()

    def __deepcopy__(self, memo: Any) -> _Kept:
        return type(self)()


def kept_with(family: ConstraintFamily, key: Hashable, make: Callable[[], Any]) -> Any:
    """Return what was made for a family under this key, made now where there is none; the family owns it."""
    kept = vars(family).setdefault("_kept", _Kept())
    if key not in kept:
        if len(kept) >= _MOST:
            kept.pop(next(iter(kept)))
        kept[key] = make()
    return kept[key]


def forget_changed(family: ConstraintFamily, *others: Any) -> None:
    """Forget what was compiled for a family, if the family or one of ``others`` has changed since, also in place.

    A compiled function holds what it has read as it was then, and would go on solving the problem of that time.
    """
    kept, found = vars(family).setdefault("_kept", _Kept()), _content((family, *others))
    which = tuple(map(id, others))
    if kept.contents.setdefault(which, found) != found:
        kept.clear()
        kept.contents = {which: found}


def _content(value: Any, depth: int = 0) -> Hashable:
    """Return a key that is equal for equal content: arrays by their bytes, objects by what a copy is made from."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return type(value), repr(value)
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.shape, value.dtype.str, blake2b(value.tobytes(), digest_size=16).digest()
    if isinstance(value, list | tuple):
        return type(value), tuple(_content(part, depth + 1) for part in value)
    if type(value) is dict:
        return tuple((_content(name), _content(part, depth + 1)) for name, part in value.items())
    if isinstance(value, type) or depth > _DEEPEST:
        return id(value)
    try:
        reduced = value.__reduce_ex__(4)
    except TypeError:  # a function of no module, an open file: nothing is known but which it is
        return id(value)
    return id(type(value)), reduced if isinstance(reduced, str) else _content(reduced[1:3], depth + 1)


def by_value(value: Any) -> Hashable:
    """Return a key that is equal for equal settings: numbers, texts, arrays, tuples of them, objects by identity."""
    if isinstance(value, np.ndarray):
        return value.shape, str(value.dtype), value.tobytes()
    if isinstance(value, tuple):
        return tuple(by_value(part) for part in value)
    return value if isinstance(value, Hashable) else id(value)


def padded(runs: int) -> int:
    """Return the number of runs that a compiled block has for these many: a power of two, or one and a half of one.

    Runs that end one after the other would each have a block compiled for those that are left.
    """
    power = 1 << max(0, runs - 1).bit_length()
    return power * 3 // 4 if power >= 4 and runs <= power * 3 // 4 else power


def with_padding(problem: Any, iterate: Any, call: Callable[[Any, Any], Any]) -> Any:
    """Return ``call(problem, iterate)`` of R runs, called with copies of some so that there are :func:`padded` runs.

    Parameters
    ----------
    problem : LevelProblem
        The problem of the runs.
    iterate : object
        A tree of arrays of one row a run.
    call : callable
        Returns such a tree.
    """
    runs = int(problem.runs)
    several = padded(runs)
    if several == runs:
        return call(problem, iterate)
    copies = np.arange(several) % runs
    return take_runs(call(problem.take(copies), take_runs(iterate, copies)), np.arange(runs))


def engine_family(family: ConstraintFamily, data: Source) -> ConstraintFamily:
    """Return the family as the data's engine evaluates it outside of compiled blocks.

    Functions that give their own gradients are evaluated by NumPy there, which needs nothing compiled; those without,
    and all on another device, by compiled functions.
    """
    if not compiles(data.engine) or (data.device == "cpu" and not differentiated(family.constraints)):
        return family
    return CompiledFamily(family, data.device)


def uncompiled(problem: Any) -> bool:
    """Tell whether a problem's engine compiles, and yet its functions are evaluated by NumPy outside compiled steps."""
    return compiles(problem.data.engine) and not isinstance(problem.family, CompiledFamily)


class CompiledFamily(WrappedFamily):
    """A family whose values and gradients are compiled; arguments and results are NumPy arrays."""

    def __init__(self, family: ConstraintFamily, device: str) -> None:
        super().__init__(family)
        self.device = device

    def evaluate(self, x: Array, batch: Batch) -> Evaluation:
        """See :meth:`ConstraintFamily.evaluate`."""
        if namespace(x).traced:
            return self.family.evaluate(x, batch)
        forget_changed(self)
        values = kept_with(self, "values", lambda: compiled(self._values, self.device))
        gradient = kept_with(self, "gradient", lambda: compiled(self._gradient, self.device))
        rows = dict(batch)
        F, G = values(x, rows)
        return Evaluation(np.asarray(F, dtype=G.dtype), G, lambda y, a: gradient(x, rows, y, a))

    def _values(self, x: Array, batch: Batch) -> tuple[Array, Array]:
        found = self.family.evaluate(x, batch)
        return found.F, found.G

    def _gradient(self, x: Array, batch: Batch, y: Array, a: Array) -> Array:
        return self.family.evaluate(x, batch).pullback(y, a)
