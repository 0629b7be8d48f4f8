"""Taking some of the runs out of a start, and putting them back."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from minmaxcon.arrays import Array, namespace
from minmaxcon.core import LevelProblem, Start
from minmaxcon.geometry import DualPoint

__all__ = ["put_dual", "put_rows", "take_start"]


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


def put_dual(
    whole: DualPoint | None, runs: Any, part: DualPoint | None, problem: LevelProblem, x: Array
) -> DualPoint | None:
    """Return the duals of all runs, those of ``runs`` replaced.

    Parameters
    ----------
    whole : DualPoint or None
        Those of R runs so far; None where there are none, and every other run starts at the centre.
    runs : array of int
        Which runs ``part`` is about.
    part : DualPoint or None
        Their duals; None where the oracle gives none.
    problem : LevelProblem
        What was asked about, which knows the centre.
    x : array (R, d)
        Points of all runs: shape and engine.
    """
    if part is None or len(runs) == x.shape[0]:
        return part
    whole = problem.dual().center(x) if whole is None else whole
    names = [field.name for field in fields(DualPoint)]
    return DualPoint(*(put_rows(getattr(whole, name), runs, getattr(part, name)) for name in names))
