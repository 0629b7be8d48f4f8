"""What the states of all solvers hold of R runs, and how it begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from minmaxcon.arrays import Array
from minmaxcon.core import MinMaxProblem, Start, Status
from minmaxcon.solvers.repair import first_values

__all__ = ["RunsState", "first_fields"]


@dataclass(frozen=True, eq=False, slots=True)
class RunsState:
    """What is known of R runs.

    Attributes
    ----------
    problem : MinMaxProblem
        The problem.
    x, objective, constraints : arrays (R, d), (R,), (R, m)
        A point of each run and its values.
    status : tuple of (Status or None)
        None while a run goes on.
    reason : tuple of str
        Evidence.
    next : Start
        Where the next query or step starts, for all R runs.
    trace : tuple of mapping
        Rows so far.
    steps, samples : int
        Cost so far, without what is under way.
    """

    problem: MinMaxProblem
    x: Array
    objective: Any
    constraints: Any
    status: tuple[Status | None, ...]
    reason: tuple[str, ...]
    next: Start
    trace: tuple[Mapping[str, Any], ...]
    steps: int
    samples: int


def first_fields(problem: MinMaxProblem, start: Start) -> dict[str, Any]:
    """Return the fields of :class:`RunsState` before the first step.

    Raises
    ------
    InvalidInput
        If an exact value at the start is not finite.
    """
    runs = int(start.x.shape[0])
    x, objective, constraints = first_values(problem, start.x)
    return {
        "problem": problem,
        "x": x,
        "objective": objective,
        "constraints": constraints,
        "status": (None,) * runs,
        "reason": ("the solve is going on.",) * runs,
        "next": replace(start, x=x),
        "trace": (),
        "steps": 0,
        "samples": 0,
    }
