"""Taking some of the runs out of a start, and putting them back."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from minmaxcon.arrays import Array, namespace
from minmaxcon.core import Start
from minmaxcon.geometry import DualPoint

__all__ = ["put_rows", "put_start", "take_start"]


def _map(dual: DualPoint, function: Any) -> DualPoint:
    return DualPoint(*(function(getattr(dual, field.name)) for field in fields(DualPoint)))


def take_start(start: Start, runs: Any) -> Start:
    """Return the start of the runs with these indices."""
    xp = namespace(start.x)
    dual = None if start.dual is None else _map(start.dual, lambda part: xp.rows(part, runs))
    return Start(xp.rows(start.x, runs), dual, start.position)


def put_rows(whole: Array, runs: Any, part: Array) -> Array:
    """Return ``whole`` with the rows ``runs`` replaced by ``part``."""
    if len(runs) == whole.shape[0]:
        return part
    changed = namespace(whole).copy(whole)
    changed[runs] = part
    return changed


def put_start(start: Start, runs: Any, part: Start) -> Start:
    """Return ``start`` with these runs replaced.

    Runs outside ``runs`` have ended, or wait for a phase whose duals are of another shape: where they have no duals of
    the present shape, any will do.
    """
    x = put_rows(start.x, runs, part.x)
    if part.dual is None:
        return Start(x, start.dual, part.position)
    whole = start.dual
    if whole is None or whole.weights.shape[1:] != part.dual.weights.shape[1:]:
        first = [0] * start.x.shape[0]
        whole = _map(part.dual, lambda values: namespace(values).rows(values, first))
    names = [field.name for field in fields(DualPoint)]
    dual = DualPoint(*(put_rows(getattr(whole, name), runs, getattr(part.dual, name)) for name in names))
    return Start(x, dual, part.position)
