r"""The Lagrangian of a problem: its functions on a batch, its multipliers, and steps that adapt to both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.core import Batch, Evaluation, LevelProblem
from minmaxcon.core.level import expectations
from minmaxcon.core.lower import lower_bound
from minmaxcon.core.runs import Layout
from minmaxcon.geometry import DistanceGenerator, PerspectiveGenerator
from minmaxcon.oracles.mirror import proximal_parts

__all__ = ["AdaptiveSteps", "Game", "Multipliers", "multiplier_bound"]

_INNER = 0.6
"""The numerator of inner steps: what mirror descent's adaptive rule has there by default, 0.3 K with K = 2."""


@dataclass(frozen=True, eq=False, slots=True)
class Game:
    r"""The functions of a problem as a step sees them: :math:`\phi_i = F_i + \langle\alpha_i, G_i\rangle - g_i + d_x`.

    Attributes
    ----------
    level : LevelProblem
        The problem at level 0: its functions, bounds (0 for the objective) and geometry.
    dual : PerspectiveGenerator
        The inner blocks.
    bounds : array (R, k)
        :math:`b_i`.
    center, pull : array or None, float or array (R, 1)
        Centre and weight of the proximal term.
    """

    level: LevelProblem
    dual: PerspectiveGenerator
    bounds: Array
    center: Array | None
    pull: Any

    @classmethod
    def of(cls, level: LevelProblem, like: Array) -> Game:
        """Return the game of a level problem, in the precision of ``like``."""
        bounds = namespace(like).asarray(level.bounds, like)
        return cls(level, level.dual(), bounds, *proximal_parts(level, like))

    def proximal(self, x: Array) -> Array:
        """Return the proximal term at x as a column (R, 1)."""
        proximal = self.level.proximal
        if proximal is None:
            return namespace(x).zeros((int(x.shape[0]), 1), x)
        return proximal.value(self.level.primal, x)[..., None]

    def evaluate(self, x: Array, batch: Batch) -> tuple[Evaluation, Array, Array]:
        """Return batch means at x, with :math:`u = F + d_x - b` and :math:`v = G`."""
        found = self.level.family.evaluate(x, batch)
        u = found.F - self.bounds
        return found, (u if self.center is None else u + self.proximal(x)), found.G

    def values(self, alpha: Array, u: Array, v: Array) -> Array:
        r"""Return :math:`u_i + \langle\alpha_i, v_i\rangle - g_i(\alpha_i)`, shape (R, k)."""
        owner = namespace(u).asarray(np.eye(self.dual.levels)[self.dual.owner], u)
        return u + (alpha * v) @ owner - self.dual.stack.penalty(alpha)

    def prox(self, x: Array, gradient: Array, step: Array, total: Array) -> Array:
        """Step from x; ``total`` (R, 1) is the sum of the weights of the functions, each with its proximal term."""
        weight = 0.0 if self.center is None else self.pull * total
        return self.level.primal.prox(x, gradient, step, center=self.center, weight=weight)

    def row(
        self, weight: Array, primal: tuple[Array, ...], dual: tuple[Array, ...], seen: Array, share: Array
    ) -> Array:
        """Return what is summed of a step.

        Parameters
        ----------
        weight, share : array (R, 1)
            The weights of the primal and of the dual part.
        primal : tuple of array
            x (R, d), u (R, k) and v (R, p).
        dual : tuple of array
            y (R, k) and a (R, p).
        seen : array (R, n)
            Whatever else the step depends on, whose squared sum shows that it has stopped being finite.
        """
        xp = namespace(seen)
        x, u, v = primal
        y, a = dual
        size = xp.dot(seen, seen)[..., None]
        return xp.concat((weight * x, share * y, share * a, weight * u, weight * v, size, weight))

    def slopes(self, direction: Array, found: Evaluation) -> tuple[Array, Array]:
        r"""Return the derivatives of the constraints' F (R, k) and of all G (R, p) along a direction (R, d).

        The objective's own F, which no multiplier needs, is left at 0.
        """
        xp = namespace(direction)
        k, p = self.dual.levels, self.dual.inner_dimension
        unit = xp.zeros((k + p, int(direction.shape[0]), k + p), direction)
        for i in range(k + p):
            unit[i, :, i] = 1.0
        along = [xp.dot(found.pullback(e[:, :k], e[:, k:]), direction) for e in unit[1:]]
        joined = xp.stack([0.0 * along[0], *along])
        return joined[:, :k], joined[:, k:]

    @property
    def layout(self) -> Layout:
        """The layout of a row."""
        k, p = self.dual.levels, self.dual.inner_dimension
        return Layout(x=self.level.primal.dimension, y=k, a=p, u=k, v=p, seen=1, weight=1)


@dataclass(frozen=True, eq=False, slots=True)
class Multipliers:
    r"""A dual point :math:`(\lambda, \alpha)` of the Lagrangian.

    .. math:: E F_0 + \langle\alpha_0, E\,G_0\rangle - g_0(\alpha_0)
        + \sum_i\lambda_i(E F_i + \langle\alpha_i, E\,G_i\rangle - g_i(\alpha_i) - b_i)

    It is concave in :math:`(\lambda, a)` with :math:`a_i = \lambda_i\alpha_i`, so that inner maxima need no
    evaluation: one sample gives unbiased gradients in x, :math:`\lambda` and a.

    Attributes
    ----------
    weights : array (R, k)
        :math:`(1, \lambda_1, \dots, \lambda_m)`.
    inner : array (R, p)
        :math:`\alpha`, the inner variables of objective and constraints joined.
    """

    weights: Array
    inner: Array

    @classmethod
    def start(cls, dual: PerspectiveGenerator, like: Array) -> Multipliers:
        r"""Return :math:`\lambda = 0` and the blocks' starting points."""
        xp = namespace(like)
        weights = xp.zeros((int(like.shape[0]), dual.levels), like)
        weights[..., 0] = 1.0
        return cls(weights, dual.center(like).inner)

    def scaled(self, dual: PerspectiveGenerator) -> Array:
        r"""Return :math:`a`, shape (R, p)."""
        return dual.spread(self.weights) * self.inner

    def prox(self, dual: PerspectiveGenerator, u: Array, v: Array, step: Array, inner: Array, cap: Any) -> Multipliers:
        r"""Ascend along :math:`(u, v)`: the prox of :math:`\frac12\sum\lambda_i^2/\tau + \sum\lambda_iB_i/\tau_\alpha`.

        .. math:: \lambda_i^\# = \Pi_{[0,c]}(\lambda_i + \tau(u_i - \nu_i))

        with the blocks' prox :math:`\alpha_i^\#` of value :math:`\nu_i`, as in the KL-plus-perspective generator.

        Parameters
        ----------
        dual : PerspectiveGenerator
            The inner blocks.
        u, v : array (R, k), (R, p)
            Coefficients of the weights, bounds subtracted, and of the scaled inner variables.
        step, inner : array (R, 1)
            :math:`\tau` and :math:`\tau_\alpha`.
        cap : float or array (R, 1)
            c.
        """
        xp = namespace(u)
        alpha, cost = dual.stack.prox(v, self.inner, 1.0 / inner)
        moved = xp.maximum(self.weights + step * (u - cost), 0.0)
        moved = xp.minimum(moved, cap)
        moved[..., 0] = 1.0
        return Multipliers(moved, alpha)


def multiplier_bound(game: Game, x: Array, objective: Any, violation: Any, otherwise: float) -> Array:
    r"""Return an upper bound on the sum of the optimal multipliers, as a column (R, 1).

    .. math:: \sum_i\lambda_i^* \le \frac{f_0(x) - \min_X f_0}{\min_i b_i - f_i(x)}

    at a strictly feasible x; ``otherwise`` where x is not, or the data are no finite convex functions.

    Parameters
    ----------
    game : Game
        The problem.
    x : array (R, d)
        Points.
    objective, violation : ndarray (R,)
        Their objectives and largest :math:`f_i - b_i`, exact on finite data.
    otherwise : float
        The bound where there is none.
    """
    xp, level = namespace(x), game.level
    bound = np.full(level.runs, np.inf)
    if level.data.size is not None and (violation < 0).any():
        alpha = np.asarray(to_numpy(game.dual.stack.maximize(expectations(level.family, x, level.data).G)[0]))
        weights = np.tile(np.eye(game.dual.levels)[0], (level.runs, 1))
        scaled = np.where(game.dual.owner == 0, alpha, 0.0)
        least = lower_bound(level, xp.asarray(weights, x), xp.asarray(scaled, x), x)
        slack = np.where(violation < 0, -violation, np.nan)
        bound = np.maximum(objective - least, 0.0) / slack
    bound = np.where(np.isfinite(bound), bound, otherwise)
    return xp.asarray(np.minimum(bound, otherwise)[:, None], x)


@dataclass(frozen=True, eq=False, slots=True)
class AdaptiveSteps:
    r"""Distance over gradients for x, its like for the multipliers, and falling steps for the inner variables.

    .. math::
        \eta_t = \frac{\max(d_0, \max_{s\le t}|x_s - x_0|)}{\sqrt{\sum_{s\le t}|g_s|_*^2}}, \qquad
        \tau_t = \frac{\max(c, \max_{s\le t}|\lambda_s|_\infty)}{\sqrt{\sum_{s\le t}\max_iu_{s,i}^2}}, \qquad
        \tau_{\alpha,t} = \frac{0.6}{\sqrt{1 + \sum_{s\le t}|v_s|^2}}

    Attributes
    ----------
    origin : array (R, d)
        :math:`x_0`.
    reach, slope : array (R, 1)
        The largest squared distance from it, at least :math:`d_0^2`, and the sum of squared gradients.
    top, rise : array (R, 1)
        The largest multiplier, at least c, and the sum of the squared largest :math:`|u_i|`.
    spread : array (R, 1)
        1 and the sum of :math:`|v|^2`.
    """

    origin: Array
    reach: Array
    slope: Array
    top: Array
    rise: Array
    spread: Array

    @classmethod
    def start(cls, x: Array, distance: float, dual_scale: float) -> AdaptiveSteps:
        """Return the memory before the first step from x, with :math:`d_0` and c."""
        zero = namespace(x).zeros((int(x.shape[0]), 1), x)
        # the floors under the sums of squares only matter where these vanish, and bound the steps there
        return cls(x, zero + distance**2, zero + 1e-8, zero + dual_scale, zero + 1e-8, zero + 1.0)

    def primal(self, geometry: DistanceGenerator, x: Array, gradient: Array) -> tuple[Array, AdaptiveSteps]:
        r"""Return :math:`\eta_t` and the memory after it; distance and gradient in the geometry's norms."""
        xp = namespace(x)
        reach = xp.maximum(self.reach, (geometry.norm(x - self.origin) ** 2)[..., None])
        slope = self.slope + (geometry.dual_norm(gradient) ** 2)[..., None]
        return xp.sqrt(reach / slope), replace(self, reach=reach, slope=slope)

    def dual(self, multipliers: Array, u: Array) -> tuple[Array, AdaptiveSteps]:
        r"""Return :math:`\tau_t` and the memory after it; :math:`\lambda` and u (R, m) are of the constraints alone."""
        xp = namespace(u)
        top = xp.maximum(self.top, xp.max(multipliers, keepdims=True))
        rise = self.rise + xp.max(u * u, keepdims=True)
        return top / xp.sqrt(rise), replace(self, top=top, rise=rise)

    def inner(self, v: Array) -> tuple[Array, AdaptiveSteps]:
        r"""Return :math:`\tau_{\alpha,t}` and the memory after it."""
        spread = self.spread + namespace(v).dot(v, v)[..., None]
        return _INNER / namespace(v).sqrt(spread), replace(self, spread=spread)
