"""Constraint extrapolation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from minmaxcon.arrays import Array, namespace
from minmaxcon.checks import number
from minmaxcon.core import Batch, Start
from minmaxcon.solvers.averaging.base import AveragingSolver
from minmaxcon.solvers.averaging.lagrangian import AdaptiveSteps, Game, Multipliers, multiplier_bound

__all__ = ["ConEx"]


@dataclass(frozen=True, eq=False, slots=True)
class _Iterate:
    r"""Iterates :math:`x_t, x_{t-1}`, duals, :math:`\ell(x_{t-1})` and the weights :math:`\gamma_{t-1}, \gamma_t`."""

    x: Array
    before: Array
    duals: Multipliers
    u: Array
    v: Array
    cap: Array
    older: Array
    newer: Array
    memory: AdaptiveSteps
    t: int


class ConEx(AveragingSolver):
    r"""Constraint extrapolation (ConEx): multipliers move by what linear models predict of the constraints.

    .. math::
        s_t &= (1 + \theta_t)\,\ell(x_t) - \theta_t\,\ell(x_{t-1}), \qquad
        \ell(x_t) = h(x_{t-1}; \bar z) + \nabla h(x_{t-1}; \bar z)^\top(x_t - x_{t-1}), \\
        (\lambda, a)_{t+1} &= \text{prox of }(\lambda, a)_t\text{ along }s_t\text{ with step }1/\tau_t, \qquad
        x_{t+1} = \text{prox of }x_t\text{ along }\nabla_xL(x_t, \lambda_{t+1}, a_{t+1}; z)\text{ with step }1/\eta_t,

    and the answer is the average of :math:`x_{t+1}` with weights :math:`\gamma_t`. Here h joins the :math:`F_i - b_i`
    and all G: the inner variables are dual variables too, in which the Lagrangian is linear but for their penalties.
    So one sample gives unbiased values and gradients, and no maximum is ever taken of a batch mean. :math:`z, \bar z`
    are independent batches. A step costs two evaluations and one more pullback for each constraint and inner variable.

    The answer need not be feasible. Certificates and statuses are those of :class:`~minmaxcon.PrimalDual`.

    Parameters
    ----------
    steps : int
        Steps of a solve.
    batch_size : int
        Samples of z and of :math:`\bar z`, so a step draws twice as many.
    strong_convexity : float
        A modulus :math:`\mu` of the objective relative to the geometry's divergence. Where positive, the paper's steps
        :math:`\eta_t = \mu(t + t_0 + 1)/2`, :math:`\gamma_t = t + t_0 + 2`, :math:`\theta_t = \gamma_{t-1}/\gamma_t`
        are used.
    smoothness : float
        L, the smoothness of objective and constraints weighted by the multipliers: :math:`t_0 = 4L/\mu + 2`.
    primal_step, dual_step : float, optional
        Fixed :math:`1/\eta` and :math:`1/\tau`, for plain constraints the paper's in the convex case
        (:math:`\gamma_t = \theta_t = 1`); inner variables, which the paper has not, move by falling steps always. They
        shrink with the square root of ``steps``. With strong convexity :math:`1/\tau_t` is ``dual_step`` times t + 1.
        None adapts: distances over gradients, with :math:`\gamma_t` the primal step before and
        :math:`\theta_t = \gamma_{t-1}/\gamma_t`.
    cap : float
        A bound on each multiplier, as in :class:`~minmaxcon.PrimalDual`, whatever the steps: the paper has none, but
        with adaptive steps the multipliers may run away before x has learnt its own. Fixed steps are the paper's as
        long as it does not bind.
    distance : float
        :math:`d_0`, a first guess of the distance to travel in x; small is safe.
    dual_scale : float
        A first guess of the multipliers' size.
    evaluations : int
        How often, at equal distances, the average is evaluated.
    tail : float
        Share of the latest stretches between evaluations that is averaged; 1 averages from the start, as the paper.
    tolerance : float
        Relative optimality that is asked for, as in :class:`~minmaxcon.PrimalDual`.
    block : int
        Steps between two looks at the clock; results do not depend on it.

    Raises
    ------
    InvalidInput
        If a setting is out of range.

    Notes
    -----
    The paper's theorems are about plain constraints where multipliers exist with which the solution is a saddle point.
    They hold for fixed steps whose constants need Lipschitz moduli, the noise and the size of those multipliers, and
    have to be given as ``primal_step``, ``dual_step``, ``smoothness`` and ``strong_convexity``. The adaptive steps, the
    cap and the steps of inner variables are no part of the paper.

    References
    ----------
    Boob, Deng and Lan (2022), algorithm 1.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> solution = mm.solve(mm.load_problem("toy"), mm.ConEx(steps=100, evaluations=2), seed=0)
    >>> bool(solution.certificate.lower <= 1.0)  # f* is 1
    True
    """

    def __init__(
        self,
        steps: int = 10_000,
        batch_size: int = 100,
        strong_convexity: float = 0.0,
        smoothness: float = 0.0,
        primal_step: float | None = None,
        dual_step: float | None = None,
        cap: float = 1e3,
        distance: float = 1e-2,
        dual_scale: float = 0.3,
        evaluations: int = 20,
        tail: float = 0.5,
        tolerance: float = 0.005,
        block: int = 100,
    ) -> None:
        super().__init__(steps, batch_size, evaluations, tail, tolerance, block)
        remedy = "must be finite and at least 0."
        self.strong_convexity = number("strong_convexity", strong_convexity, remedy, least=0.0)
        self.smoothness = number("smoothness", smoothness, remedy, least=0.0)
        remedy = "must be positive and finite, or None for adaptive steps."
        self.primal_step = None if primal_step is None else number("primal_step", primal_step, remedy, above=0.0)
        self.dual_step = None if dual_step is None else number("dual_step", dual_step, remedy, above=0.0)
        self.cap = number("cap", cap, "must be positive and finite.", above=0.0)
        self.distance = number("distance", distance, "must be positive and finite.", above=0.0)
        self.dual_scale = number("dual_scale", dual_scale, "must be positive and finite.", above=0.0)

    def _begin(self, game: Game, start: Start, objective: Any, violation: Any) -> _Iterate:
        xp, x = namespace(start.x), start.x
        zero = xp.zeros((int(x.shape[0]), 1), x)
        u = zero + xp.zeros((game.dual.levels,), x)
        v = zero + xp.zeros((game.dual.inner_dimension,), x)
        memory = AdaptiveSteps.start(x, self.distance, self.dual_scale)
        cap = multiplier_bound(game, x, objective, violation, self.cap)
        return _Iterate(x, x, Multipliers.start(game.dual, x), u, v, cap, zero, zero, memory, 0)

    @property
    def _sizes(self) -> tuple[int, ...]:
        return self.batch_size, self.batch_size

    def _looks(self, iterate: _Iterate) -> Sequence[Array]:
        return [iterate.x, iterate.before]

    def _move(self, game: Game, iterate: _Iterate, batches: Sequence[Batch]) -> tuple[_Iterate, Array]:
        xp, x, t = namespace(iterate.x), iterate.x, iterate.t
        # l(x_t): the constraints' linear approximation at x_{t-1}, from samples that the gradient does not use.
        found, u, v = game.evaluate(iterate.before, batches[1])
        if t > 0:
            along = game.slopes(x - iterate.before, found)
            u, v = found.F - game.bounds + along[0] + game.proximal(x), v + along[1]
            theta = iterate.older / iterate.newer
            s_u, s_v = u + theta * (u - iterate.u), v + theta * (v - iterate.v)
        else:
            s_u, s_v = u, v
        tau, memory = iterate.memory.dual(iterate.duals.weights[..., 1:], s_u[..., 1:])
        inner, memory = memory.inner(s_v)
        if self.dual_step is not None:
            tau = 0.0 * tau + self.dual_step * ((t + 1) if self.strong_convexity else 1.0)
        duals = iterate.duals.prox(game.dual, s_u, s_v, tau, inner, iterate.cap)

        found, value, moment = game.evaluate(x, batches[0])
        gradient = found.pullback(duals.weights, duals.scaled(game.dual))
        eta, memory = memory.primal(game.level.primal, x, gradient)
        begun = weight = eta  # gamma_0 and gamma_{t+1}
        if self.strong_convexity:
            late = t + 4.0 * self.smoothness / self.strong_convexity + 3.0
            eta = 0.0 * eta + 2.0 / (self.strong_convexity * late)
            begun, weight = 0.0 * eta + late + 1.0, 0.0 * eta + late + 2.0
        elif self.primal_step is not None:
            eta = 0.0 * eta + self.primal_step
            begun = weight = 0.0 * eta + 1.0
        # What is summed is x_t with its own multipliers and weight; x_0 has none.
        scaled = iterate.duals.scaled(game.dual)
        seen = xp.concat((gradient, s_u, s_v))
        row = game.row(iterate.older, (x, value, moment), (iterate.duals.weights, scaled), seen, iterate.older)
        moved = game.prox(x, gradient, eta, xp.sum(duals.weights, keepdims=True))
        older = begun if t == 0 else iterate.newer
        return _Iterate(moved, x, duals, u, v, iterate.cap, older, weight, memory, t + 1), row
