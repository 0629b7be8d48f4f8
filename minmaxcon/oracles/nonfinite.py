"""Values that stop being finite: the run, the function and the step at which they first do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, to_numpy
from minmaxcon.core import Batch, LevelProblem
from minmaxcon.geometry import PerspectiveGenerator

__all__ = ["first_failures", "nonfinite_cause", "nonfinite_term"]


def nonfinite_term(problem: LevelProblem, dual: PerspectiveGenerator, F: Array, G: Array, run: int) -> str | None:
    """Name the first of F and G that is not finite for one run; None where all are."""
    constraints = problem.family.constraints
    mean, moment = (np.isfinite(np.asarray(to_numpy(part))[run]) for part in (F, G))
    if not mean.all():
        return f"F of {constraints[int(np.argmin(mean))].name!r}"
    if not moment.all():
        return f"G of {constraints[int(dual.owner[np.argmin(moment)])].name!r}"
    return None


def nonfinite_cause(
    problem: LevelProblem, dual: PerspectiveGenerator, looks: Iterable[tuple[Array, Batch]], run: int
) -> str:
    """Name what is not finite for one run in a step that evaluates batches at points, causes before effects."""
    for x, batch in looks:
        found = problem.family.evaluate(x, batch)
        named = nonfinite_term(problem, dual, found.F, found.G, run)
        if named is not None:
            return named
    return "the gradient"  # or, in float32, its square


def first_failures(
    state: Any,
    begun: int,
    steps: Iterable[Any],
    move: Callable[[Any, Any], Any],
    finite: Callable[[Any], Any],
    cause: Callable[[Any, Any, Any, int], str | None],
) -> dict[int, str]:
    """Make the steps of a piece of work again, one at a time, and say where runs first stop being finite.

    Parameters
    ----------
    state : object
        Where the piece begins.
    begun : int
        The number of its first step.
    steps : iterable
        What each step of it reads.
    move : callable
        Makes a step.
    finite : callable
        Tells for each run (R,) whether all is finite after a step.
    cause : callable
        Names what is not for one run, from the state before, what the step read and the state after; None where it is
        nothing but the step.

    Returns
    -------
    dict
        For each of these runs the sentence "... is not finite at step t".
    """
    failures: dict[int, str] = {}
    for step, batches in enumerate(steps, start=begun):
        before, state = state, move(state, batches)
        for run in map(int, np.flatnonzero(~finite(state))):
            named = None if run in failures else cause(before, batches, state, run)
            if named is not None:
                failures[run] = f"{named} is not finite at step {step}"
    return failures
