"""Rows of some runs, in arrays (R, ...) and in frozen values whose arrays all hold one row per run.

In a value, a tuple or a dataclass, what is no array (a number, None, a data position) is the same for every run and
stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy

__all__ = ["Layout", "finite_runs", "mask_of", "put_runs", "take_runs", "where_runs", "zero_rows"]


def _each(function: Callable[..., Array], *values: Any) -> Any:
    """Apply a function to the arrays of values of one structure."""
    first = values[0]
    if is_dataclass(first) and not isinstance(first, type):
        names = [field.name for field in fields(first)]
        return replace(first, **{name: _each(function, *(getattr(value, name) for value in values)) for name in names})
    if isinstance(first, tuple):
        return tuple(_each(function, *parts) for parts in zip(*values, strict=True))
    return function(*values) if hasattr(first, "shape") else first


def take_runs(value: Any, runs: Any) -> Any:
    """Return the rows of the runs with these indices."""
    return _each(lambda whole: namespace(whole).rows(whole, runs), value)


def put_runs(whole: Any, runs: Any, part: Any) -> Any:
    """Return ``whole`` with the rows ``runs`` (indices) replaced by those of ``part``."""

    def put(whole: Array, part: Array) -> Array:
        if len(runs) == whole.shape[0]:
            return part
        changed = namespace(whole).copy(whole)
        changed[runs] = part
        return changed

    return _each(put, whole, part)


def where_runs(flags: Any, new: Any, old: Any) -> Any:
    """Return the rows of ``new`` where ``flags`` hold, booleans (R,) or (R, 1) of any engine, else those of ``old``.

    What is no array, such as a number of steps, is that of ``new``. Where all flags hold, ``new`` itself is returned.
    """
    if type(flags) is np.ndarray and flags.all():  # most often: it takes a tenth of the time of a copy
        return new
    return _each(lambda new, old: namespace(old).where(mask_of(flags, old), new, old), new, old)


def zero_rows(value: Any, runs: int) -> Any:
    """Return a value of the same structure for ``runs`` runs, all of whose rows are zero."""
    return _each(lambda part: namespace(part).zeros((runs, *part.shape[1:]), part), value)


def mask_of(flags: Any, like: Array) -> Array:
    """Return booleans (R,) or (R, 1) as a mask of the engine of ``like``, with as many axes."""
    xp = namespace(like)
    if namespace(flags) is not xp:
        flags = xp.asarray(np.asarray(to_numpy(flags), dtype=float), like) > 0
    return flags.reshape((-1,) + (1,) * (like.ndim - 1))


def finite_runs(*values: Array) -> Any:
    """Tell for each run whether all of its values, each (R, n), are finite, an ndarray (R,)."""
    found = [np.isfinite(np.asarray(to_numpy(value))).all(axis=1) for value in values]
    return np.logical_and.reduce(found)


class Layout:
    """Parts of packed rows, by name and size in their order: ``Layout(x=3, y=2)`` splits rows of five numbers.

    Sums over many steps are kept in one array, so that a step adds one row.

    Attributes
    ----------
    width : int
        Numbers of a row.
    """

    def __init__(self, **sizes: int) -> None:
        ends = np.cumsum([0, *sizes.values()]).tolist()
        self.width: int = ends[-1]
        self._cuts = {name: slice(*cut) for name, cut in zip(sizes, pairwise(ends), strict=True)}

    def split(self, rows: Array) -> Any:
        """Return the parts of rows (..., n) as attributes."""
        return SimpleNamespace(**{name: rows[..., cut] for name, cut in self._cuts.items()})
