"""Parts that the oracles share: their opening, step sizes that adapt, and mirror coordinates of dual points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace
from minmaxcon.checks import number
from minmaxcon.core import LevelProblem, Start
from minmaxcon.errors import InvalidInput
from minmaxcon.geometry import DualPoint, PerspectiveGenerator
from minmaxcon.geometry.perspective import EntropyWeight

__all__ = ["DualMirror", "Steps", "check_mixing", "first_dual", "proximal_parts"]

_LARGEST_STEP = 1e6
"""Where nothing curves, steps grow without end; beyond this a step already reaches the boundary of the sets."""

_FIRST_STEP = 0.1
_RATIOS = (1e-3, 1e3)
_PULL = 0.9
"""The power of the ratio that a window keeps."""


def check_mixing(mixing: float) -> float:
    """Return the share of uniform weights that warm duals are mixed with, or refuse it."""
    return number("mixing", mixing, "must lie between 0 and 1.", least=0.0, most=1.0)


def first_dual(
    problem: LevelProblem, start: Start, entropy_weight: EntropyWeight, mixing: float, runs: int | None = None
) -> tuple[PerspectiveGenerator, DualPoint]:
    """Return the dual generator of a query and the dual point at which it starts.

    Raises
    ------
    InvalidInput
        If the start does not fit the problem, or the ``runs`` for which the oracle has settings.
    """
    x = start.x
    if tuple(x.shape) != (problem.runs, problem.primal.dimension) or runs not in (None, problem.runs):
        shapes = (problem.runs, problem.primal.dimension, runs)
        raise InvalidInput("start", tuple(x.shape), f"must fit (runs, dimension, vector of step sizes) = {shapes}.")
    dual = problem.dual(entropy_weight)
    return dual, dual.center(x) if start.dual is None else dual.warm(start.dual, mixing)


def proximal_parts(problem: LevelProblem, like: Array) -> tuple[Array | None, Any]:
    """Return centre and weight of the proximal term, as a prox takes them; None and 0 where there is none."""
    return (None, 0.0) if problem.proximal is None else problem.proximal.parts(like)


@dataclass(frozen=True, eq=False, slots=True)
class Steps:
    r"""Step sizes :math:`\eta = \gamma\sigma` and :math:`\tau = \gamma/\sigma` of each run, found by trial.

    A trial that fails the method's inequality shrinks :math:`\gamma`, one that holds lets it grow a little. The ratio
    :math:`\sigma^2 = \eta/\tau` is the geometry; it is changed only between windows, and then so that the primal and
    the dual part of the inequality's left side become alike. A problem whose curvature in x is large gets dual steps
    longer than primal ones. Where nothing curves both parts are alike at any :math:`\sigma`, and only noise would move
    it: so each window pulls it a little towards 1.

    Attributes
    ----------
    gamma, ratio, growth : array (R, 1)
        :math:`\gamma`, :math:`\sigma`, and the factor by which a step grows: large until the first trial that fails.
    primal, dual : array (R, 1)
        Sizes of both parts, summed over the window.
    """

    gamma: Array
    ratio: Array
    growth: Array
    primal: Array
    dual: Array

    @classmethod
    def first(cls, x: Array, growth: float, kept: tuple[Array, ...] | None = None) -> Steps:
        """Return the steps at the start of a query of the runs of x (R, d).

        Runs for which ``kept`` has steps of the query before start from those, without the first growth.
        """
        xp = namespace(x)
        zero = xp.zeros((x.shape[0], 1), x)
        first = (zero + _FIRST_STEP, zero + 1.0, zero + growth)
        if kept is not None:
            some = kept[0] > 0
            first = tuple(xp.where(some, old, new) for old, new in zip(kept, first, strict=True))
        return cls(*first, zero, zero)

    @property
    def kept(self) -> tuple[Array, ...]:
        r""":math:`\gamma, \sigma` and the growth, from which a following query starts."""
        return self.gamma, self.ratio, self.growth

    @property
    def eta(self) -> Array:
        """The primal step sizes, shape (R, 1)."""
        return self.gamma * self.ratio

    @property
    def tau(self) -> Array:
        """The dual step sizes, shape (R, 1)."""
        return self.gamma / self.ratio

    def tried(self, passed: Array, primal: Array, dual: Array, *, growth: float, shrink: float) -> Steps:
        """Return the steps after a trial: ``passed`` (R, 1) tells where it held; the parts are shaped alike."""
        xp = namespace(self.gamma)
        larger = xp.minimum(self.gamma * self.growth, 0.0 * self.gamma + _LARGEST_STEP)
        return replace(
            self,
            gamma=xp.where(passed, larger, shrink * self.gamma),
            growth=xp.where(passed, self.growth, 0.0 * self.growth + growth),
            primal=self.primal + xp.where(passed, xp.abs(primal), 0.0 * primal),
            dual=self.dual + xp.where(passed, xp.abs(dual), 0.0 * dual),
        )

    def balanced(self, most: float) -> Steps:
        """Return the steps of the next window, the ratio changed by at most the factor ``most``."""
        xp = namespace(self.gamma)
        tiny = 1e-30
        change = xp.sqrt(xp.sqrt((self.dual + tiny) / (self.primal + tiny)))
        ratio = self.ratio**_PULL * xp.clip(change, 1.0 / most, most)
        zero = 0.0 * self.gamma
        return replace(self, ratio=xp.clip(ratio, *_RATIOS), primal=zero, dual=zero)


class DualMirror:
    r"""Mirror coordinates of dual points, in which mixtures of divergences are linear.

    With :math:`V_y` the divergence of the KL-plus-perspective generator, :math:`\sum_j c_jV_y(\cdot, z_j)` depends on
    the anchors only through :math:`\sum_j c_j` times their coordinates: :math:`\ln y`, and of each block the mirror
    coordinates :meth:`~minmaxcon.InnerBlock.mirror`. It equals the divergence from one anchor plus
    :math:`\sum_i y_ie_i`.

    Parameters
    ----------
    dual : PerspectiveGenerator
        The generator.

    Raises
    ------
    Unsupported
        If a block gives no mirror coordinates; it is named.
    """

    rebuilt_from = ("dual",)

    def __init__(self, dual: PerspectiveGenerator) -> None:
        self.dual, self.levels, self._stack = dual, dual.levels, dual.stack
        self._stack.mirror(dual.center(np.zeros((1, 1))).inner)  # a block that has none is refused before any work

    def coordinates(self, point: DualPoint) -> Array:
        """Return the coordinates of a point, shape (R, 2k + p)."""
        inner, shift = self._stack.mirror(point.inner)
        return namespace(inner).concat((point.log_weights, shift, inner))

    def anchor(self, coordinates: Array) -> tuple[DualPoint, Array]:
        """Return the anchor of a mixture, whose weights need not sum to one, and e of shape (R, k)."""
        k = self.levels
        log_weights, shift = coordinates[:, :k], coordinates[:, k : 2 * k]
        inner, own = self._stack.unmirror(coordinates[:, 2 * k :])
        return DualPoint(log_weights, log_weights, inner), shift - own
