"""Oracles with one planted fault each, and functions whose inner set lies to one side of 0."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import namespace, to_numpy
from tests.problem_library import Linear

Array = Any


class Quick(mm.SMD):
    """Mirror descent with few steps: the sound oracle."""

    def __init__(self) -> None:
        super().__init__(steps=80, batch_size=10, block=20)


class LowBound(Quick):
    def estimate(self, state: Any) -> mm.Estimate:
        found = super().estimate(state)
        return replace(found, upper=found.upper - 0.5, values=found.values - 0.5)


class LowBoundInNoise(Quick):
    """A bound that is right only where there is no noise."""

    def estimate(self, state: Any) -> mm.Estimate:
        found = super().estimate(state)
        noise = 2.0 if (state.problem.data.size or 0) > 1 else 0.0
        return replace(found, upper=found.upper - noise, values=found.values - noise)


class UnrelatedBound(Quick):
    def estimate(self, state: Any) -> mm.Estimate:
        found = super().estimate(state)
        return replace(found, upper=found.upper + 1.0)


@dataclass(frozen=True)
class _Uniform:
    inner: Any
    mean: Any
    moment: Any
    count: int


class MixedWeights(mm.Oracle):
    """The point is averaged by the steps' weights, the terms of the bound uniformly."""

    def __init__(self) -> None:
        self.oracle = mm.SMD(steps=60, batch_size=1, step_rule=mm.InverseSqrt(1.0), block=1)

    def begin(self, problem: Any, start: mm.Start, **asked: Any) -> _Uniform:
        return _Uniform(self.oracle.begin(problem, start, **asked), 0.0, 0.0, 0)

    def advance(self, state: _Uniform) -> _Uniform:
        inner = self.oracle.advance(state.inner)
        problem = inner.problem
        found = problem.family.evaluate(inner.x, next(iter(problem.data.chunks()))[1])
        terms = to_numpy(found.F) - problem.bounds
        return _Uniform(inner, state.mean + terms, state.moment + found.G, state.count + 1)

    def finished(self, state: _Uniform) -> bool:
        return self.oracle.finished(state.inner)

    def estimate(self, state: _Uniform) -> mm.Estimate:
        found = self.oracle.estimate(state.inner)
        dual = state.inner.problem.dual()
        moment = namespace(found.x).asarray(state.moment / state.count, found.x)
        values = to_numpy(dual.support(state.mean / state.count, to_numpy(moment)))
        return replace(found, values=values, upper=values.max(1))


class KeepsStart(Quick):
    """A state is that of mirror descent beside the start of the query."""

    def begin(self, problem: Any, start: mm.Start, **asked: Any) -> Any:
        return (super().begin(problem, start, **asked), start)

    def advance(self, state: Any) -> Any:
        return (super().advance(state[0]), state[1])

    def finished(self, state: Any) -> bool:
        return super().finished(state[0])

    def estimate(self, state: Any) -> mm.Estimate:
        return super().estimate(state[0])


class LastStart(KeepsStart):
    """Returns where it started."""

    def estimate(self, state: Any) -> mm.Estimate:
        return replace(super().estimate(state), x=state[1].x)


class Unrepeatable(Quick):
    """Ignores the seed that it is given."""

    calls = 0

    def begin(self, problem: Any, start: mm.Start, **asked: Any) -> Any:
        self.calls += 1
        position = mm.Position.start(np.random.default_rng(self.calls))
        return super().begin(problem, replace(start, position=position), **asked)


class RunLeak(Quick):
    """Every run is solved for the bounds of run 0."""

    def begin(self, problem: Any, start: mm.Start, **asked: Any) -> Any:
        leaked = replace(problem, bounds=np.repeat(problem.bounds[:1], problem.runs, axis=0))
        return super().begin(leaked, start, **asked)


class OutsideX(Quick):
    def estimate(self, state: Any) -> mm.Estimate:
        found = super().estimate(state)
        return replace(found, x=found.x + 5.0)


class AlphaForA(Quick):
    """Gives the inner variables where they are to be multiplied by their weight."""

    def estimate(self, state: Any) -> mm.Estimate:
        found = super().estimate(state)
        spread = state.dual.spread(found.weights)
        return replace(found, scaled=0.25 * found.scaled / spread / np.linalg.norm(found.scaled / spread) * 3.0)


class UnnormalisedWeights(Quick):
    def estimate(self, state: Any) -> mm.Estimate:
        found = super().estimate(state)
        return replace(found, weights=2.0 * found.weights)


class WritesState(Quick):
    """Takes its steps in the memory of the state that it was given."""

    def advance(self, state: Any) -> Any:
        moved = super().advance(state)
        if moved.sums.shape == state.sums.shape and state.steps:
            state.sums[...] = moved.sums
            state.weight[...] = moved.weight
        return moved


class ForgetsProximal(Quick):
    def begin(self, problem: Any, start: mm.Start, **asked: Any) -> Any:
        return super().begin(replace(problem, proximal=None), start, **asked)


class StaysAtPosition(KeepsStart):
    """The following query draws the same samples again."""

    def estimate(self, state: Any) -> mm.Estimate:
        found = super().estimate(state)
        return replace(found, next=replace(found.next, position=state[1].position))


class HalfDuals(Quick):
    """Scaled inner variables half as long, which leave a set that does not hold 0."""

    def estimate(self, state: Any) -> mm.Estimate:
        found = super().estimate(state)
        return replace(found, scaled=0.5 * found.scaled)


class NegativeDuals(Quick):
    """The sign of the scaled inner variables is lost."""

    def estimate(self, state: Any) -> mm.Estimate:
        found = super().estimate(state)
        return replace(found, scaled=-found.scaled)


class NoDuals(Quick):
    """All weight on the objective: duals that are valid, and prove next to nothing."""

    def estimate(self, state: Any) -> mm.Estimate:
        found = super().estimate(state)
        weights = 0.0 * found.weights
        weights[:, 0] = 1.0
        return replace(found, weights=weights, scaled=0.0 * found.scaled, upper=found.upper)


class LowOnSimplex(Quick):
    """A bound that fails on inner simplices alone, so that only a problem that has one shows it."""

    def estimate(self, state: Any) -> mm.Estimate:
        found = super().estimate(state)
        simplex = any(isinstance(block, mm.SimplexBlock) for block in state.dual.blocks)
        off = 2.0 if simplex else 0.0
        return replace(found, upper=found.upper - off, values=found.values - off)


class LowOnMany(Quick):
    """A bound that fails with more than one row only, where there is no noise."""

    def estimate(self, state: Any) -> mm.Estimate:
        found = super().estimate(state)
        off = 20.0 if type(state.problem.data).__name__ == "Whole" else 0.0
        return replace(found, upper=found.upper - off, values=found.values - off)


class WrongDuals(Quick):
    """Weights and scaled inner variables too large: the bound drawn from them is not valid."""

    def estimate(self, state: Any) -> mm.Estimate:
        found = super().estimate(state)
        return replace(found, scaled=5.0 * found.scaled)


class OneSided(mm.StochasticMinMaxConstraint):
    """f(x) = E <c, x> + max of -alpha over alpha in [0, 1], which is E <c, x>."""

    convex = True
    dual = mm.BoxBlock([0.0], [1.0])

    def __init__(self, bound: Any) -> None:
        self.bound = bound

    def terms(self, x: Array, batch: mm.Batch) -> tuple[Array, Array]:
        return x @ batch["costs"].mean(0), 0.0 * x[..., :1] - 1.0

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        slope = batch["costs"].mean(0)
        return mm.Evaluation(*self.terms(x, batch), lambda y, _: y[..., None] * slope)

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        return Linear().cvxpy_value(cp, x, data)


class Surcharge(OneSided):
    """f(x) = E <c, x> + max of alpha <c, x> over alpha in [0.5, 1]."""

    dual = mm.BoxBlock([0.5], [1.0])

    def terms(self, x: Array, batch: mm.Batch) -> tuple[Array, Array]:
        cost = x @ batch["costs"].mean(0)
        return cost, cost[..., None]

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        slope = batch["costs"].mean(0)
        return mm.Evaluation(*self.terms(x, batch), lambda y, a: y[..., None] * slope + a * slope)

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        cost = Linear().cvxpy_value(cp, x, data)
        return cost + cp.maximum(0.5 * cost, cost)


class OtherSide(Quick):
    """Inner variables outside of their set, though within its radius."""

    def estimate(self, state: Any) -> mm.Estimate:
        found = super().estimate(state)
        spread = state.dual.spread(found.weights)
        return replace(found, scaled=-spread)


class NumpyOnly(Quick):
    def estimate(self, state: Any) -> mm.Estimate:
        found = super().estimate(state)
        return replace(found, x=np.asarray(to_numpy(found.x), dtype=np.float64))


class Tires(Quick):
    """A query that follows begins at the other end of the set, and takes one step."""

    def begin(self, problem: mm.LevelProblem, start: mm.Start, **options: Any) -> Any:
        if start.dual is None:
            return super().begin(problem, start, **options)
        far = problem.primal.linear_minimum(start.x)[1]
        return mm.SMD(steps=1, batch_size=10, block=1).begin(problem, replace(start, x=far), **options)
