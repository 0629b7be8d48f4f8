r"""Functions of a level problem divided by powers of two, so that units of the user's choice do not decide about steps.

:math:`f_i \le b_i` and :math:`f_i/s_i \le b_i/s_i` are the same constraint, :math:`\max_i(f_i - b_i)/s_i` has the same
root as :math:`\max_i(f_i - b_i)`, and multipliers of one are multiples of those of the other. A method sees the divided
functions; whatever is reported, claimed or compared is in the user's units. Dividing by a power of two rounds nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.core.compiled import kept_with
from minmaxcon.core.constraint import ConstraintFamily, Evaluation, StochasticMinMaxConstraint, WrappedFamily
from minmaxcon.core.level import LevelProblem
from minmaxcon.core.oracle import Estimate
from minmaxcon.core.problem import MinMaxProblem
from minmaxcon.core.source import Batch, Position, Source
from minmaxcon.geometry import InnerBlock

__all__ = ["divided", "in_units", "row_scales"]

_APART, _FAR, _AIM = 8, 20, 4
"""Powers of two: functions are left as they are where what they vary by over X differs by at most the first among them
and by at most the second from 1. Otherwise each is divided so that it varies by the third."""

_DRAWN, _ROWS = 3, 1000
"""Points of X, beside the start and the centre, and rows of the data at which gradients are looked at."""


def row_scales(problem: MinMaxProblem) -> Any:
    r"""Return :math:`s_i` (k,) of objective and constraints, powers of two in proportion to what they vary by over X.

    That is measured as the largest dual norm of their gradients at some points of X times the set's size, on some rows.
    All are 1 where the functions vary alike, on streams, and beside a proximal term, which has a unit; a function that
    does not vary keeps its own.
    """
    ones = np.ones(len(problem.family.constraints))
    if problem.data.size is None or problem.proximal is not None:
        return ones
    rng, runs = np.random.default_rng(0), problem.runs or 1
    like = problem.start_point(runs)
    xp, dual = namespace(like), problem.at_level(np.zeros(runs)).dual()
    batches, _ = problem.data.draw(Position.start(rng), 1, min(_ROWS, problem.data.size))
    batch, slopes = next(batches), []
    points = [like[0], problem.primal.center, *problem.primal.sample(rng, _DRAWN)]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for point in points:
            x = 0.0 * like + xp.asarray(np.array(to_numpy(point)), like)
            found = problem.family.evaluate(x, batch)
            alpha = dual.stack.maximize(found.G)[0]
            for i in range(dual.levels):
                y = xp.zeros((runs, dual.levels), like) + xp.asarray(np.eye(dual.levels)[i], like)
                slopes.append(problem.primal.dual_norm(found.pullback(y, dual.spread(y) * alpha)))
        sizes = np.stack([np.asarray(to_numpy(slope), dtype=np.float64).max() for slope in slopes])
        size = math.sqrt(2.0 * problem.primal.squared_diameter) * sizes.reshape(len(points), -1).max(axis=0)
        powers = np.round(np.log2(size))
    vary = np.isfinite(powers)
    if not vary.any() or (np.ptp(powers[vary]) <= _APART and np.abs(powers[vary]).max() <= _FAR):
        return ones
    return np.where(vary, 2.0 ** np.clip(np.where(vary, powers, 0.0) - _AIM, -100, 100), ones)


def divided(problem: LevelProblem, scales: Any) -> LevelProblem:
    """Return the level problem of the functions divided by their scales (k,): itself where all are 1."""
    if (scales == 1).all():
        return problem
    family = problem.family
    scaled = kept_with(family, ("scaled", tuple(scales.tolist())), lambda: _ScaledFamily(family, scales))
    return replace(problem, family=scaled, bounds=problem.bounds / scales)


def in_units(estimate: Estimate, problem: LevelProblem, scales: Any) -> Estimate:
    """Return an estimate of the divided question as one of the ``problem`` in the user's units.

    Weights and scaled inner variables are divided by the scales and by the sum of the weights that then is; the duals
    with which a following query starts stay those of the divided question.
    """
    if (scales == 1).all():
        return estimate
    xp, owner = namespace(estimate.weights), problem.dual().owner
    weights = estimate.weights / xp.asarray(scales, estimate.weights)
    total = xp.sum(weights, keepdims=True)
    a = estimate.scaled / xp.asarray(scales[owner], estimate.scaled) / total
    values = np.asarray(estimate.values) * scales
    return replace(estimate, weights=weights / total, scaled=a, values=values, upper=values.max(axis=1))


class _ScaledFamily(WrappedFamily):
    """The functions of a family, each divided by its scale."""

    def __init__(self, family: ConstraintFamily, scales: Any) -> None:
        declared = [_ScaledFunction.of(f, float(s)) for f, s in zip(family.constraints, scales, strict=True)]
        super().__init__(family, declared)
        blocks = [0 if f.dual is None else int(f.dual.dimension) for f in family.constraints]
        self.inverse = 1.0 / np.asarray(scales, dtype=np.float64)
        self.inner = np.repeat(self.inverse, blocks)

    def evaluate(self, x: Array, batch: Batch) -> Evaluation:
        """See :meth:`ConstraintFamily.evaluate`."""
        return self._divided(self.family.evaluate(x, batch), x)

    def _divided(self, found: Evaluation, x: Array) -> Evaluation:
        xp = namespace(x)
        inverse, inner = xp.asarray(self.inverse, x), xp.asarray(self.inner, x)
        return Evaluation(found.F * inverse, found.G * inner, lambda y, a: found.pullback(y * inverse, a * inner))

    def means(self, x: Array, data: Source) -> Evaluation:
        """See :meth:`ConstraintFamily.means`."""
        return self._divided(self.family.means(x, data), x)

    def lagrangian_minimizer(self, y: Any, a: Any, data: Source, center: Any = None, weight: Any = 0.0) -> Any | None:
        """See :meth:`ConstraintFamily.lagrangian_minimizer`."""
        return self.family.lagrangian_minimizer(y * self.inverse, a * self.inner, data, center, weight)


class _ScaledFunction(StochasticMinMaxConstraint):
    """What is declared of a function that is divided by its scale; its family evaluates it."""

    @classmethod
    def of(cls, function: StochasticMinMaxConstraint, scale: float) -> _ScaledFunction:
        """Return the declarations of a function divided by a scale."""
        made = cls()
        made.name, made.convex, made.weak_convexity = function.name, function.convex, function.weak_convexity / scale
        made.dual = None if function.dual is None else _ScaledBlock(function.dual, scale)
        return made


class _ScaledBlock(InnerBlock):
    r"""An inner block whose penalty is divided by s: :math:`\max_A\langle v,\alpha\rangle - g(\alpha)/s`."""

    def __init__(self, block: InnerBlock, scale: float) -> None:
        self.block, self.scale = block, scale
        self.dimension, self.modulus = block.dimension, block.modulus
        self.radius, self.reach = block.radius, block.reach

    @property
    def entropy_weight(self) -> float:
        """See :attr:`InnerBlock.entropy_weight`: a matter of the generator, which is not divided."""
        return self.block.entropy_weight

    @property
    def start(self) -> Any:
        """See :attr:`InnerBlock.start`."""
        return self.block.start

    @property
    def maximum(self) -> float:
        """See :attr:`InnerBlock.maximum`."""
        return self.block.maximum

    def value(self, alpha: Array) -> Array:
        """See :meth:`InnerBlock.value`."""
        return self.block.value(alpha)

    def penalty(self, alpha: Array) -> Array:
        """See :meth:`InnerBlock.penalty`."""
        return self.block.penalty(alpha) / self.scale

    def divergence(self, alpha: Array, anchor: Array) -> Array:
        """See :meth:`InnerBlock.divergence`."""
        return self.block.divergence(alpha, anchor)

    def prox(self, v: Array, anchor: Array, inverse_step: Array) -> tuple[Array, Array]:
        """See :meth:`InnerBlock.prox`: s times the question is one of the block's own, with step size over s."""
        alpha, value = self.block.prox(self.scale * v, anchor, self.scale * inverse_step)
        return alpha, value / self.scale

    def maximize(self, v: Array) -> tuple[Array, Array]:
        """See :meth:`InnerBlock.maximize`."""
        alpha, value = self.block.maximize(self.scale * v)
        return alpha, value / self.scale

    def sample(self, rng: Any, count: int) -> Any:
        """See :meth:`InnerBlock.sample`."""
        return self.block.sample(rng, count)

    def mirror(self, alpha: Array) -> tuple[Array, Array]:
        """See :meth:`InnerBlock.mirror`."""
        return self.block.mirror(alpha)

    def unmirror(self, m: Array) -> tuple[Array, Array]:
        """See :meth:`InnerBlock.unmirror`."""
        return self.block.unmirror(m)
