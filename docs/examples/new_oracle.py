"""An oracle of one's own: mirror descent that takes all data in every step, so that its bound is no estimate."""

# start
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import namespace
from minmaxcon.testing import check_oracle


@dataclass(frozen=True, slots=True)
class State:
    """Where a query stands: everything that the next step needs."""

    problem: mm.LevelProblem
    dual: mm.PerspectiveGenerator
    position: mm.Position
    x: Any  # (R, d)
    y: mm.DualPoint
    memory: Any  # of the step rule
    sums: tuple[Any, ...] = (0.0, 0.0, 0.0, 0.0)  # of x, y, a and 1, each times its weight
    steps: int = 0


class FullDescent(mm.Oracle):
    """Mirror descent on the saddle form of a level problem, with exact gradients."""

    def __init__(self, steps=1000):
        self.steps, self.rule = steps, mm.Adaptive()

    def begin(self, problem, start, *, accuracy=0.0, confidence=0.9, effort=None):
        dual = problem.dual()
        y = dual.center(start.x) if start.dual is None else dual.warm(start.dual, 0.05)
        return State(
            problem, dual, start.position, start.x, y, self.rule.start(problem, dual, start.x, None, start.memory)
        )

    def advance(self, state):
        problem, dual, x, y, memory, sums = state.problem, state.dual, state.x, state.y, state.memory, state.sums
        _, batch = next(problem.data.chunks(problem.data.size))
        bounds = namespace(x).asarray(problem.bounds, x)  # (R, k), the level first
        for _ in range(50):
            found, a = problem.family.evaluate(x, batch), dual.scaled(y)
            u, v = found.F - bounds, found.G
            gradient = found.pullback(y.weights, a)
            if problem.proximal is not None:
                gradient = gradient + problem.proximal.gradient(problem.primal, x)
            eta, tau, weight, memory = self.rule.next(memory, problem, x, gradient, u, v)
            sums = tuple(s + weight * part for s, part in zip(sums, (x, y.weights, a, 1.0), strict=True))
            x, y = problem.primal.prox(x, gradient, eta), dual.prox(y, u, v, tau)
        return replace(state, x=x, y=y, memory=memory, sums=sums, steps=state.steps + 50)

    def finished(self, state):
        return state.steps >= self.steps

    def estimate(self, state):
        x, weights, scaled = (s / state.sums[3] for s in state.sums[:3])
        values = state.problem.values(x) - state.problem.bounds  # exact: one pass over the data
        return mm.Estimate(
            x=x,
            weights=weights,
            scaled=scaled,  # the average of a = y alpha, never of alpha
            upper=np.max(values, axis=1),
            values=values,
            samples=0,  # drawn
            steps=state.steps,
            next=mm.Start(state.x, state.y, state.position, self.rule.kept(state.memory)),
            failure=tuple(None if ok else "a value is not finite" for ok in np.isfinite(values).all(axis=1)),
        )


# end of the oracle

# check
report = check_oracle(FullDescent(steps=300))
report.raise_if_failed()
print(report.summary)

problem = mm.load_problem("fair_auc", data="loanapp", metric="inter_group", kappa=0.1)
print(mm.solve(problem, mm.SFLS(oracle=FullDescent()), seed=0))


class Careless(FullDescent):
    """The same with a mistake that is easily made: alpha where a = y alpha belongs."""

    def estimate(self, state):
        return replace(super().estimate(state), scaled=state.y.inner)


for failure in check_oracle(Careless(steps=300)).failures:
    print(failure)
# end
