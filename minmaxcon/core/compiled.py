"""Compiled values and gradients of a family of functions, and the cache of what is compiled for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, compiled, compiles, namespace
from minmaxcon.core.constraint import ConstraintFamily, Evaluation, WrappedFamily, differentiated
from minmaxcon.core.source import Batch, Source

__all__ = ["CompiledFamily", "by_value", "engine_family", "kept_with", "padded"]

_MOST = 16
"""Entries kept with a family; the oldest is dropped."""


class _Kept(dict[Hashable, Any]):
    """A cache of an object: copies and pickles of the object begin with an empty one."""

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


def engine_family(family: ConstraintFamily, data: Source) -> ConstraintFamily:
    """Return the family as the data's engine evaluates it outside of compiled blocks.

    Functions that give their own gradients are evaluated by NumPy there, which needs nothing compiled; those without,
    and all on another device, by compiled functions.
    """
    if not compiles(data.engine) or (data.device == "cpu" and not differentiated(family.constraints)):
        return family
    return CompiledFamily(family, data.device)


class CompiledFamily(WrappedFamily):
    """A family whose values and gradients are compiled; arguments and results are NumPy arrays."""

    def __init__(self, family: ConstraintFamily, device: str) -> None:
        super().__init__(family)
        self.device = device

    def evaluate(self, x: Array, batch: Batch) -> Evaluation:
        """See :meth:`ConstraintFamily.evaluate`."""
        if namespace(x).traced:
            return self.family.evaluate(x, batch)
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
