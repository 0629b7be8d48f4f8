"""Constraints with one planted fault each, and the sound ones that they are made from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import namespace
from minmaxcon.core.constraint import SeparateFamily
from tests.cases import fair_auc, finite
from tests.problem_library import CVaR, HalfSquare, Linear, Robust, WorstGroup

Array = Any

BALL = mm.Ball(3, 2.0)


def data() -> mm.Finite:
    return finite("points", "costs", "shares", "contrast")


class Bent(mm.StochasticMinMaxConstraint):
    """f(x) = E <c, x> - curvature/2 |x|^2, weakly convex with exactly this modulus."""

    def __init__(self, curvature: float, declared: float) -> None:
        self.curvature, self.weak_convexity = curvature, declared

    def terms(self, x: Array, batch: mm.Batch) -> tuple[Array, None]:
        return x @ batch["costs"].mean(0) - 0.5 * self.curvature * (x * x).sum(-1), None

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        slope = batch["costs"].mean(0)
        return mm.Evaluation(
            self.terms(x, batch)[0], x[..., :0], lambda y, _: y[..., None] * (slope - self.curvature * x)
        )


class ConcaveKink(mm.StochasticMinMaxConstraint):
    """f(x) = -|x_1 - 0.3|: declared convex, with no curvature where it is smooth."""

    convex = True

    def terms(self, x: Array, batch: mm.Batch) -> tuple[Array, None]:
        return -abs(x[..., 0] - 0.3) + 0.0 * batch["costs"].sum(), None

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        def pullback(y: Array, _: Array) -> Array:
            slope = np.zeros_like(x)
            slope[..., 0] = -y * np.sign(x[..., 0] - 0.3)
            return slope

        return mm.Evaluation(self.terms(x, batch)[0], x[..., :0], pullback)


class WrongSign(HalfSquare):
    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        return mm.Evaluation(found.F, found.G, lambda y, a: -found.pullback(y, a))


class DoubleGradient(HalfSquare):
    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        return mm.Evaluation(found.F, found.G, lambda y, a: 2.0 * found.pullback(y, a))


class MissingTerm(Robust):
    """The gradient forgets what the inner variables add."""

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        slope = batch["costs"].mean(0)
        return mm.Evaluation(x @ slope, x, lambda y, _: y[..., None] * slope)


class BatchShare(WorstGroup):
    """Weights of the batch's own shares instead of the population's."""

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        shares = batch["shares"] > 0
        own = shares / np.maximum(shares.mean(0), 1e-9)
        return super().evaluate(x, {**batch, "shares": own})


class SumNotMean(Linear):
    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        return super().evaluate(x, {"costs": batch["costs"] * len(batch["costs"])})


class FirstSampleOnly(Linear):
    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        return super().evaluate(x, {"costs": batch["costs"][:1]})


class OtherTerms(Linear):
    evaluate = Linear.evaluate

    def terms(self, x: Array, batch: mm.Batch) -> tuple[Array, None]:
        return 1.01 * super().terms(x, batch)[0], None


class Buffer(Linear):
    """The result lies in a buffer that the next call overwrites."""

    kept: Any = None

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        if self.kept is None or self.kept.shape != found.F.shape:
            self.kept = np.empty_like(found.F)
        self.kept[...] = found.F
        return replace(found, F=self.kept)


class ViewOfBatch(mm.StochasticMinMaxConstraint):
    """G is the batch's own memory."""

    convex = True
    dual = mm.BallBlock(3, 1.0)

    def terms(self, x: Array, batch: mm.Batch) -> tuple[Array, Array]:
        return 0.0 * x.sum(-1), np.broadcast_to(batch["costs"][0], x.shape)

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        return mm.Evaluation(*self.terms(x, batch), lambda *_: 0.0 * x)


class WritesX(Linear):
    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        x *= 1.0 + 1e-9
        return super().evaluate(x, batch)


class WritesBatch(Linear):
    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        batch["costs"][0] += 1e-9
        return super().evaluate(x, batch)


class GlobalRandom(Linear):
    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        return super().evaluate(x + 0.0 * np.random.normal(), batch)


class TorchGlobalRandom(Linear):
    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        import torch

        torch.rand(1)
        return super().evaluate(x, batch)


class OwnRandom(Linear):
    """Draws from a generator that it keeps: the second call gives something else."""

    def __init__(self) -> None:
        super().__init__()
        self.rng = np.random.default_rng(0)

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        return replace(found, F=found.F + 1e-12 * self.rng.standard_normal())


class Promotes(Linear):
    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        return replace(found, F=found.F * np.ones((), dtype=np.float64)[None][0] + np.zeros(found.F.shape))


class NeedsTwo(Linear):
    """Divides by B - 1."""

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        count = len(batch["costs"])
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.float64(count - 1) / np.float64(count - 1)
        found = super().evaluate(x, batch)
        return replace(found, F=found.F * factor)


class FirstRunOnly(HalfSquare):
    """Every run is given the gradient of run 0."""

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)

        def pullback(y: Array, a: Array) -> Array:
            slope = found.pullback(y, a)
            return slope if x.ndim == 1 else np.broadcast_to(slope[:1], slope.shape)

        return replace(found, pullback=pullback)


class OneRunShape(Linear):
    """F keeps an axis that it must not have."""

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        return replace(found, F=found.F[..., None])


class NotFinite(Linear):
    """A logarithm that is not defined where solvers start."""

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        with np.errstate(divide="ignore"):
            return replace(found, F=found.F + 0.0 * x[..., 0] + np.where(abs(x[..., 0]) < 1e-12, np.inf, 0.0))


class OtherForm(Linear):
    """The cvxpy form of another function."""

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        return super().cvxpy_value(cp, x, data) + 0.01 * cp.sum(x)


class EngineDependent(Linear):
    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        return replace(found, F=found.F if namespace(x).name == "numpy" else 1.001 * found.F)


class WrongMaximum(Robust):
    """Only half of the inner set is searched for the maximum."""

    def __init__(self) -> None:
        super().__init__(3, 0.3)

        class HalfBall(mm.BallBlock):
            def maximize(self, v: Array) -> tuple[Array, Array]:
                alpha, value = super().maximize(v)
                return 0.5 * alpha, 0.5 * value

        self.dual = HalfBall(3, 0.3)


def auc_problem() -> mm.MinMaxProblem:
    return fair_auc("inter_group", 0.1)


def without_c1() -> tuple[Any, mm.DistanceGenerator, mm.Source]:
    r"""The penalty :math:`\alpha^2` of the paper's print, where it is :math:`c_1\alpha^2`."""
    problem = auc_problem()
    constraint = problem.constraints[0].with_bound(0.0)
    reach = constraint.dual.reach
    constraint.dual = mm.BoxBlock([-reach] * 2, [reach] * 2, 1.0)
    return constraint, problem.primal, problem.data


def wrong_shares() -> tuple[Any, mm.DistanceGenerator, mm.Source]:
    """Weights of wrong population shares, which no batch can tell, but the exact form can."""

    class Wrong(WorstGroup):
        def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
            return super().evaluate(x, {**batch, "shares": 1.1 * batch["shares"]})

    return Wrong(3), BALL, data()


def cvar_promoting() -> tuple[Any, mm.DistanceGenerator, mm.Source]:
    class Wrong(CVaR):
        def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
            found = super().evaluate(x, batch)
            return replace(found, pullback=lambda y, a: found.pullback(y, a) * np.float64(1.0) + np.zeros(x.shape))

    return Wrong(0.8), mm.product([mm.Ball(3, 2.0), mm.Box([-3.0], [3.0])]), data()


class _Buffered(mm.ConstraintFamily):
    """Keeps one buffer for the functions' values."""

    kept: Any = None

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = SeparateFamily(self.constraints).evaluate(x, batch)
        if self.kept is None or self.kept.shape != found.F.shape:
            self.kept = np.empty_like(found.F)
        self.kept[...] = found.F
        return replace(found, F=self.kept)


class BufferedFamily(HalfSquare):
    @classmethod
    def fuse(cls, constraints: Any) -> mm.ConstraintFamily:
        return _Buffered(constraints)


class _Promoting(mm.ConstraintFamily):
    """Turns the functions' values into float64."""

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = SeparateFamily(self.constraints).evaluate(x, batch)
        return replace(found, F=found.F + np.zeros(found.F.shape))


class PromotingFamily(HalfSquare):
    @classmethod
    def fuse(cls, constraints: Any) -> mm.ConstraintFamily:
        return _Promoting(constraints)


class OtherMeans(Linear):
    """A linear function whose family knows its mean, but for a hundredth."""

    @classmethod
    def fuse(cls, constraints: Any) -> mm.ConstraintFamily:
        return _OtherMeans(constraints)


class _OtherMeans(SeparateFamily):
    def knows_means(self, data: mm.Source) -> bool:
        return True

    def means(self, x: Array, data: mm.Source) -> mm.Evaluation:
        _, batch = next(iter(data.chunks()))
        found = super().evaluate(x, batch)
        return mm.Evaluation(1.01 * found.F, found.G, found.pullback)
