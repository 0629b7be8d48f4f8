"""Taking some of the runs out of a start and putting them back, and choosing between values run by run."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.core import LevelProblem, Start
from minmaxcon.geometry import DualPoint

__all__ = ["choose", "finite_runs", "mask_of", "put_dual", "put_rows", "take_start"]


def _map(dual: DualPoint, function: Any) -> DualPoint:
    return DualPoint(*(function(getattr(dual, field.name)) for field in fields(DualPoint)))


def take_start(start: Start, runs: Any) -> Start:
    """Return the start of the runs with these indices."""
    xp = namespace(start.x)
    dual = None if start.dual is None else _map(start.dual, lambda part: xp.rows(part, runs))
    return Start(xp.rows(start.x, runs), dual, start.position)


def mask_of(flags: Any, like: Array) -> Array:
    """Return booleans (R,) as a mask (R, 1) of the engine of ``like``."""
    return namespace(like).asarray(np.asarray(flags, dtype=float)[:, None], like) > 0


def choose(flags: Any, new: Array, old: Array) -> Array:
    """Return the rows of ``new`` (R, n) where ``flags``, booleans (R,), hold, else of ``old``."""
    return namespace(old).where(mask_of(flags, old), new, old)


def finite_runs(values: Array) -> Any:
    """Tell for each run whether all of its values (R, n) are finite, an ndarray (R,)."""
    return np.isfinite(np.asarray(to_numpy(values))).all(axis=1)


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
