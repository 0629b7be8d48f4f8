"""Generators and inner blocks with one planted fault each."""

from __future__ import annotations

from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import namespace, to_numpy

Array = Any


class LowDiameter(mm.Ball):
    @property
    def squared_diameter(self) -> float:
        return 0.9 * super().squared_diameter


class HighDiameter(mm.Simplex):
    @property
    def squared_diameter(self) -> float:
        return 1.01 * float(np.log(self.dimension))

    def value(self, u: Array) -> Array:
        return super().value(u) - 0.01 * float(np.log(self.dimension))


class SlightlyHighDiameter(mm.Simplex):
    @property
    def squared_diameter(self) -> float:
        return 1.0005 * super().squared_diameter


class NoProjection(mm.Ball):
    def project(self, u: Array) -> Array:
        return u


class ForgetsPenalty(mm.Ball):
    def prox(self, anchor: Array, gradient: Array, step: Array, *, center: Any = None, weight: Any = 0.0) -> Array:
        return super().prox(anchor, gradient, step)


class WrongStep(mm.Simplex):
    def prox(self, anchor: Array, gradient: Array, step: Array, *, center: Any = None, weight: Any = 0.0) -> Array:
        return super().prox(anchor, gradient, 2.0 * step, center=center, weight=weight)


class InPlace(mm.Ball):
    """The step is taken in the anchor's memory."""

    def prox(self, anchor: Array, gradient: Array, step: Array, *, center: Any = None, weight: Any = 0.0) -> Array:
        found = super().prox(anchor, gradient, step, center=center, weight=weight)
        anchor[...] = found
        return found


class ReturnsArgument(mm.Box):
    """A box too large to be left: the projection returns its argument, and the step is forgotten for a copy."""

    def prox(self, anchor: Array, gradient: Array, step: Array, *, center: Any = None, weight: Any = 0.0) -> Array:
        return gradient.view() if namespace(gradient).name == "numpy" else gradient


class Maximum(mm.Ball):
    """The largest value instead of the least."""

    def linear_minimum(self, g: Array) -> tuple[Array, Array]:
        value, point = super().linear_minimum(-g)
        return -value, point


class LongNorm(mm.Ball):
    """Declares strong convexity in a norm that is too long."""

    def norm(self, u: Array) -> Array:
        return 1.5 * super().norm(u)

    def dual_norm(self, g: Array) -> Array:
        return super().dual_norm(g) / 1.5


class WrongDualNorm(mm.Simplex):
    def dual_norm(self, g: Array) -> Array:
        return 0.5 * super().dual_norm(g)


class Everywhere(mm.Ball):
    def contains(self, u: Array, tolerance: float = 1e-9) -> Array:
        return super().contains(0.0 * u + self._like(u), tolerance)

    def _like(self, u: Array) -> Array:
        return namespace(u).asarray(np.array(self.center), u)


class WrongGradient(mm.Ball):
    def gradient(self, u: Array) -> Array:
        return 1.1 * super().gradient(u)


class WrongCenter(mm.Ball):
    @property
    def center(self) -> Any:
        return super().center + np.eye(self.dimension)[0] * 0.2

    def value(self, u: Array) -> Array:
        offset = u - 0.0
        return 0.5 * namespace(u).dot(offset, offset)

    def gradient(self, u: Array) -> Array:
        return u + 0.0


class SwappedDivergence(mm.Simplex):
    def divergence(self, u: Array, v: Array) -> Array:
        return super().divergence(v, u)


class SmallForm(mm.Ball):
    """The cvxpy form describes a smaller ball."""

    def cvxpy_constraints(self, cp: Any, u: Any) -> list[Any]:
        return [cp.norm(u, 2) <= 0.9 * self.radius]


class GlobalRandomProx(mm.Ball):
    def prox(self, anchor: Array, gradient: Array, step: Array, *, center: Any = None, weight: Any = 0.0) -> Array:
        np.random.random()
        return super().prox(anchor, gradient, step, center=center, weight=weight)


class PromotingProx(mm.Ball):
    def prox(self, anchor: Array, gradient: Array, step: Array, *, center: Any = None, weight: Any = 0.0) -> Array:
        found = super().prox(anchor, gradient, step, center=center, weight=weight)
        return found + np.zeros(found.shape) if namespace(found).name == "numpy" else found


class NumpyProx(mm.Ball):
    """Gives NumPy arrays whatever it is given."""

    def prox(self, anchor: Array, gradient: Array, step: Array, *, center: Any = None, weight: Any = 0.0) -> Array:
        return to_numpy(super().prox(anchor, gradient, step, center=center, weight=weight))


class FirstRunsStep(mm.Ball):
    """Every run takes the step size of run 0."""

    def prox(self, anchor: Array, gradient: Array, step: Array, *, center: Any = None, weight: Any = 0.0) -> Array:
        first = step[:1] if getattr(step, "ndim", 0) == 2 else step
        return super().prox(anchor, gradient, first, center=center, weight=weight)


class ConcavePenalty(mm.BallBlock):
    def penalty(self, alpha: Array) -> Array:
        return -super().penalty(alpha)


class WrongSupport(mm.BallBlock):
    """The maximum without the penalty."""

    def maximize(self, v: Array) -> tuple[Array, Array]:
        alpha, _ = super().maximize(v)
        return alpha, namespace(v).dot(v, alpha)


class UnprojectedBlock(mm.BallBlock):
    def prox(self, v: Array, anchor: Array, inverse_step: Array) -> tuple[Array, Array]:
        xp = namespace(v)
        alpha = (v + inverse_step * anchor) / (2.0 * self._curvature.like(v) + inverse_step)
        moved = alpha - anchor
        cost = alpha * (self._curvature.like(v) * alpha - v) + (0.5 * inverse_step) * (moved * moved)
        return alpha, xp.sum(cost)


class WrongValue(mm.BallBlock):
    """The prox's value forgets the divergence."""

    def prox(self, v: Array, anchor: Array, inverse_step: Array) -> tuple[Array, Array]:
        alpha, _ = super().prox(v, anchor, inverse_step)
        return alpha, self.penalty(alpha) - namespace(v).dot(v, alpha)


class MissingFactor(mm.BallBlock):
    """The prox minimises with half of the penalty."""

    def prox(self, v: Array, anchor: Array, inverse_step: Array) -> tuple[Array, Array]:
        half = mm.BallBlock(self.dimension, self.radius, 0.5 * float(self.curvature))
        alpha, _ = half.prox(v, anchor, inverse_step)
        cost = self.penalty(alpha) - namespace(v).dot(v, alpha)
        rate = inverse_step[..., 0] if getattr(inverse_step, "ndim", 0) else inverse_step
        return alpha, cost + rate * self.divergence(alpha, anchor)


class Overclaimed(mm.BallBlock):
    modulus = 2.0


class SmallRadius(mm.BallBlock):
    """Understates its radius, so that the theorem's K is too small."""

    def __init__(self, dimension: int, radius: float) -> None:
        super().__init__(dimension, radius)
        self.radius = self.reach = 0.3 * radius

    @property
    def maximum(self) -> float:
        return 0.5 * (self.radius / 0.3) ** 2


class LowMaximum(mm.BoxBlock):
    @property
    def maximum(self) -> float:
        return 0.5 * super().maximum


class ShiftedBlock(mm.BallBlock):
    """The generator is not 0 at its start."""

    def value(self, alpha: Array) -> Array:
        return super().value(alpha) + 0.1


class OtherPenaltyForm(mm.BallBlock):
    def cvxpy_penalty(self, cp: Any, a: Any, y: Any) -> Any:
        return 2.0 * super().cvxpy_penalty(cp, a, y)


class SmallConstant(mm.PerspectiveGenerator):
    """Divides the entropy by more than it says: K is claimed and not kept."""

    def divergence(self, point: Any, anchor: Any) -> Any:
        xp = namespace(point.weights)
        relative = xp.dot(point.weights, point.log_weights - anchor.log_weights)
        return super().divergence(point, anchor) - 0.5 * self.entropy_weight * relative


class WrongInequality(mm.Ball):
    """The inequality of a smaller ball."""

    def inequalities(self, u: Array) -> tuple[Array, Array]:
        value, slope = super().inequalities(u)
        return value + 0.1, slope


class DoubleDivergence(mm.BallBlock):
    def divergence(self, alpha: Array, anchor: Array) -> Array:
        return 2.0 * super().divergence(alpha, anchor)

    def value(self, alpha: Array) -> Array:
        return mm.BallBlock(self.dimension, self.radius).value(alpha)


class WrongSupports(mm.PerspectiveGenerator):
    def support(self, u: Array, v: Array) -> Array:
        return 0.0 * u + super().support(0.0 * u, v)


class NoEntropy(mm.PerspectiveGenerator):
    @property
    def squared_diameter(self) -> float:
        return float(super().squared_diameter - self.entropy_weight * np.log(self.levels))
