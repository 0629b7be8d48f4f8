"""Gradient descent-ascent on the Lagrangian."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from minmaxcon.arrays import Array, namespace
from minmaxcon.checks import number
from minmaxcon.core import Batch, Start
from minmaxcon.solvers.averaging.base import AveragingSolver
from minmaxcon.solvers.averaging.lagrangian import AdaptiveSteps, Game, Multipliers, multiplier_bound

__all__ = ["PrimalDual"]


@dataclass(frozen=True, eq=False, slots=True)
class _Iterate:
    x: Array
    duals: Multipliers
    cap: Array
    memory: AdaptiveSteps


class PrimalDual(AveragingSolver):
    r"""Stochastic primal-dual method: mirror descent in x and projected ascent in the multipliers of the Lagrangian.

    .. math::
        \min_{x\in X}\max_{0\le\lambda_i\le c,\,\alpha} E F_0 + \langle\alpha_0, E\,G_0\rangle - g_0(\alpha_0)
        + \sum_i\lambda_i\big(E F_i + \langle\alpha_i, E\,G_i\rangle - g_i(\alpha_i) - b_i\big)

    The inner variables are dual variables of their own and move by their blocks' prox, so that one batch gives unbiased
    gradients in x, :math:`\lambda` and :math:`a_i = \lambda_i\alpha_i`; no maximum is ever taken of a batch mean, which
    would be biased. The answer is the step-weighted average of the iterates. It need not be feasible: the method
    violates the constraints by about as much as it misses the optimal value.

    On finite data each evaluation tests the average exactly, and the averaged duals give the lower bound
    :math:`f^* \ge \min_X L(\cdot, \bar\lambda, \bar a)`, which is exact too: a run whose best feasible average comes
    within the tolerance is solved. Where no average is feasible, the multipliers of the constraints alone may prove
    that no point is.

    Parameters
    ----------
    steps : int
        Steps of a solve.
    batch_size : int
        Samples a step.
    cap : float
        c, the bound on each multiplier that the theory needs. From a strictly feasible start on finite data a smaller
        one is known and taken: no optimal multiplier exceeds :math:`(f_0(x_0) - \min_X f_0)/\min_i(b_i - f_i(x_0))`.
    distance : float
        :math:`d_0`, a first guess of the distance to travel in x; small is safe.
    dual_scale : float
        :math:`c_0`, a first guess of the multipliers' size.
    evaluations : int
        How often, at equal distances, the average is evaluated.
    tail : float
        Share of the latest stretches between evaluations that is averaged; 1 averages from the start.
    tolerance : float
        Relative optimality :math:`(f_0(x) - f^*)/(f_0(x_1) - f^*)` that is asked for, :math:`x_1` the first feasible
        point known.
    block : int
        Steps between two looks at the clock; results do not depend on it.

    Raises
    ------
    InvalidInput
        If a setting is out of range.

    Notes
    -----
    The steps need no tuning: distances over gradients in x and alike in :math:`\lambda`,

    .. math::
        \eta_t = \frac{\max(d_0, \max_{s\le t}|x_s - x_0|)}{\sqrt{\sum_{s\le t}|g_s|_*^2}}, \qquad
        \tau_t = \frac{\max(c_0, \max_{s\le t}|\lambda_s|_\infty)}{\sqrt{\sum_{s\le t}\max_iu_{s,i}^2}},

    with :math:`u_i` the batch's :math:`F_i - b_i` and :math:`c_0` the ``dual_scale``. The theory's steps fall like
    :math:`1/\sqrt t` with constants that are rarely known; its expectation bounds hold for steps fixed before the
    samples, which these are not.

    References
    ----------
    Nemirovski, Juditsky, Lan and Shapiro (2009), section 3; Ivgi, Hinder and Carmon (2023) for the steps.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> solution = mm.solve(mm.load_problem("toy"), mm.PrimalDual(steps=100, evaluations=2), seed=0)
    >>> bool(solution.certificate.lower <= 1.0)  # f* is 1
    True
    """

    def __init__(
        self,
        steps: int = 10_000,
        batch_size: int = 100,
        cap: float = 1e3,
        distance: float = 1e-2,
        dual_scale: float = 0.3,
        evaluations: int = 20,
        tail: float = 0.5,
        tolerance: float = 0.005,
        block: int = 100,
    ) -> None:
        super().__init__(steps, batch_size, evaluations, tail, tolerance, block)
        self.cap = number("cap", cap, "must be positive and finite.", above=0.0)
        self.distance = number("distance", distance, "must be positive and finite.", above=0.0)
        self.dual_scale = number("dual_scale", dual_scale, "must be positive and finite.", above=0.0)

    def _begin(self, game: Game, start: Start, objective: Any, violation: Any) -> _Iterate:
        memory = AdaptiveSteps.start(start.x, self.distance, self.dual_scale)
        cap = multiplier_bound(game, start.x, objective, violation, self.cap)
        return _Iterate(start.x, Multipliers.start(game.dual, start.x), cap, memory)

    def _move(self, game: Game, iterate: _Iterate, batches: Sequence[Batch]) -> tuple[_Iterate, Array]:
        x, duals = iterate.x, iterate.duals
        found, u, v = game.evaluate(x, batches[0])
        a = duals.scaled(game.dual)
        gradient = found.pullback(duals.weights, a)
        eta, memory = iterate.memory.primal(game.level.primal, x, gradient)
        tau, memory = memory.dual(duals.weights[..., 1:], u[..., 1:])
        inner, memory = memory.inner(v)
        row = game.row(eta, (x, u, v), (duals.weights, a), gradient, eta)
        moved = game.prox(x, gradient, eta, namespace(x).sum(duals.weights, keepdims=True))
        return _Iterate(moved, duals.prox(game.dual, u, v, tau, inner, iterate.cap), iterate.cap, memory), row
