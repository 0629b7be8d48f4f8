"""An oracle that shares nothing with mirror descent: what a researcher writes to try a method of his own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.core.level import expectations


@dataclass(frozen=True, eq=False)
class _State:
    level: mm.LevelProblem
    x: Any
    begun: mm.Start
    best: Any
    least: Any
    weights: Any
    scaled: Any
    steps: int = 0


class SwitchingSubgradient(mm.Oracle):
    """Steepest descent on the largest function, by exact passes over finite data; the best point visited is kept."""

    def __init__(self, steps: int = 120, size: float = 0.5) -> None:
        self.steps, self.size = steps, size

    def begin(
        self,
        problem: mm.LevelProblem,
        start: mm.Start,
        *,
        accuracy: float = 0.0,
        confidence: float = 0.9,
        effort: float = 1.0,
    ) -> _State:
        k, p = problem.bounds.shape[1], problem.dual().inner_dimension
        zero = np.zeros((problem.runs, k))
        return _State(
            problem, start.x, start, start.x, np.full(problem.runs, np.inf), zero, np.zeros((problem.runs, p))
        )

    def advance(self, state: _State) -> _State:
        level, x, xp = state.level, state.x, namespace(state.x)
        found, dual = expectations(level.family, x, level.data), level.dual()
        worst = level.values(x) - level.bounds
        y = np.eye(worst.shape[1])[worst.argmax(axis=1)]
        alpha = np.asarray(to_numpy(dual.stack.maximize(found.G)[0]))
        a = y[:, dual.owner] * alpha
        gradient = found.pullback(xp.asarray(y, x), xp.asarray(a, x))
        if level.proximal is not None:
            gradient = gradient + level.proximal.gradient(level.primal, x)
        size = level.primal.dual_norm(gradient)[..., None] + 1e-12
        better = worst.max(axis=1) < state.least
        return replace(
            state,
            x=level.primal.prox(x, gradient / size, float(self.size / np.sqrt(state.steps + 1.0))),
            best=xp.where(xp.asarray(better[:, None].astype(float), x) > 0, x, state.best),
            least=np.minimum(state.least, worst.max(axis=1)),
            weights=state.weights + y,
            scaled=state.scaled + a,
            steps=state.steps + 1,
        )

    def finished(self, state: _State) -> bool:
        return state.steps >= self.steps

    def estimate(self, state: _State) -> mm.Estimate:
        xp, count = namespace(state.x), max(state.steps, 1)
        return mm.Estimate(
            x=state.best,
            weights=xp.asarray(state.weights / count, state.x),
            scaled=xp.asarray(state.scaled / count, state.x),
            upper=state.least,
            values=state.level.values(state.best) - state.level.bounds,
            samples=0,
            steps=state.steps,
            next=replace(state.begun, x=state.best, dual=None),
            failure=(None,) * state.level.runs,
        )
