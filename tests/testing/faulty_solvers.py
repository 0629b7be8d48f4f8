"""Solvers with one planted fault each."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

import minmaxcon as mm


class QuickLevels(mm.SFLS):
    """The level-set method with few steps: the sound solver."""

    def __init__(self) -> None:
        super().__init__(oracle=mm.SMD(steps=40, batch_size=10), levels=4, tolerance=0.04)


class Lying(QuickLevels):
    """A level-set method whose outcome is changed on its way out."""

    @abstractmethod
    def change(self, found: mm.Outcome) -> mm.Outcome:
        """Return what it says instead."""

    def outcome(self, state: Any) -> mm.Outcome:
        found = super().outcome(state)
        return self.change(found) if self.finished(state) else found


class AlwaysFeasible(Lying):
    """Calls every point feasible and solved; that no multipliers prove the latter is seen by the loop."""

    def change(self, found: mm.Outcome) -> mm.Outcome:
        told = (mm.Status.SOLVED,) * len(found.status)
        return replace(found, constraints=-np.abs(found.constraints), status=told)


class SolvedTooEarly(Lying):
    """Says solved after a single level."""

    def __init__(self) -> None:
        mm.SFLS.__init__(self, oracle=mm.SMD(steps=1, batch_size=10), levels=1)

    def change(self, found: mm.Outcome) -> mm.Outcome:
        return replace(found, status=(mm.Status.SOLVED,) * len(found.status))


class StaleObjective(Lying):
    def change(self, found: mm.Outcome) -> mm.Outcome:
        return replace(found, objective=found.objective + 1e-3)


class WrongConstraints(Lying):
    def change(self, found: mm.Outcome) -> mm.Outcome:
        return replace(found, constraints=found.constraints - 1e-3)


class HighLower(Lying):
    def change(self, found: mm.Outcome) -> mm.Outcome:
        # What a run is solved by is compared with its multipliers; other bounds are the solver's own.
        return replace(found, lower=found.objective + 0.1, status=(mm.Status.BUDGET,) * len(found.status))


class CountsNoSteps(QuickLevels):
    def outcome(self, state: Any) -> mm.Outcome:
        return replace(super().outcome(state), steps=0)


class IgnoresStart(QuickLevels):
    def init(self, problem: mm.MinMaxProblem, start: mm.Start) -> Any:
        return super().init(problem, replace(start, x=0.0 * start.x))


class IgnoresBounds(QuickLevels):
    """Solves for looser bounds than it was given, and says so of the bounds that it solved for."""

    def init(self, problem: mm.MinMaxProblem, start: mm.Start) -> Any:
        return super().init(problem.with_bounds(*(np.asarray(c.bound) + 1.0 for c in problem.constraints)), start)


class FirstRunsBound(QuickLevels):
    def init(self, problem: mm.MinMaxProblem, start: mm.Start) -> Any:
        bounds = problem.bounds()
        first = [np.full(len(bounds), column[0]) for column in bounds.T] if problem.runs else list(bounds[0])
        return super().init(problem.with_bounds(*first), start)


class UnrepeatableSolver(QuickLevels):
    calls = 0

    def init(self, problem: mm.MinMaxProblem, start: mm.Start) -> Any:
        UnrepeatableSolver.calls += 1
        position = mm.Position.start(np.random.default_rng(UnrepeatableSolver.calls))
        return super().init(problem, replace(start, position=position))


class WritesData(QuickLevels):
    def step(self, state: Any) -> Any:
        rows = state.problem.data.arrays["points"]
        rows.setflags(write=True)
        rows[0] += 1e-9
        return super().step(state)


class TornTrace(QuickLevels):
    """Its trace has no column that tells runs apart."""

    def outcome(self, state: Any) -> mm.Outcome:
        found = super().outcome(state)
        rows = [{key: value for key, value in row.items() if key != "run"} for row in found.trace]
        return replace(found, trace=tuple(rows))


class Worse(Lying):
    """Returns a feasible point that is worse than the start."""

    def change(self, found: mm.Outcome) -> mm.Outcome:
        return replace(found, x=0.0 * found.x - 1.2)
