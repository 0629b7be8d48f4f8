"""The switching subgradient method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace
from minmaxcon.checks import number, whole
from minmaxcon.core import Batch, Needs, Start
from minmaxcon.solvers.averaging.base import AveragingSolver, AveragingState
from minmaxcon.solvers.averaging.lagrangian import AdaptiveSteps, Game

__all__ = ["SwitchingSubgradient"]


@dataclass(frozen=True, eq=False, slots=True)
class _Iterate:
    r"""x and :math:`\alpha`; ``kept`` is the latest x that looked feasible."""

    x: Array
    inner: Array
    kept: Array
    memory: AdaptiveSteps


class SwitchingSubgradient(AveragingSolver):
    r"""Switching subgradient method: steps on the objective where constraints look satisfied, else on the worst one.

    .. math::
        x_{t+1} = \text{prox of }x_t\text{ along }\nabla_x\phi_i(x_t, \alpha_{i,t}; z), \qquad
        \phi_i = E F_i + \langle\alpha_i, E\,G_i\rangle - g_i(\alpha_i) - b_i,

    with i = 0 where :math:`\max_{i\ge1}\phi_i(x_t, \alpha_{i,t}; \bar z)` is at most the threshold, else that maximum's
    index; :math:`z, \bar z` are independent batches. The answer is the step-weighted average of the iterates of
    objective steps. The inner variables are carried along and move by their blocks' prox in objective steps only. This
    keeps every estimate unbiased, and is enough: a step on a constraint makes progress towards the feasible set
    whatever :math:`\alpha_i` is, as :math:`\phi_i(x, \alpha_i) \le f_i(x) - b_i`, and on the objective steps
    :math:`\alpha` has small regret against the best fixed one, which is the maximum at the average.

    The answer need not be feasible. Noise in the test acts like a shift of the bounds, towards the inside where the
    optimal multipliers are below 1 and towards the outside where they are above; only larger tests reduce it, and the
    theory asks for as many samples a test as there are steps. The shares of the steps that each function gets are
    multipliers: on finite data they give a lower bound on the optimal value, as in :class:`~minmaxcon.PrimalDual`.

    Where functions are only weakly convex, averages mean nothing, and the answer is the latest iterate that looked
    feasible; the theory is about one of those drawn at random, and promises near stationarity.

    Parameters
    ----------
    steps : int
        Steps of a solve.
    batch_size : int
        Samples of z.
    test_size : int
        Samples of :math:`\bar z`; a step draws both.
    threshold : float
        The violation up to which a point counts as feasible, in units of the constraints. The theory lets it fall with
        the steps, and allows as much error; 0 suits problems with a strictly feasible point.
    distance : float
        :math:`d_0`, a first guess of the distance to travel in x; small is safe. Steps are distances over gradients.
    evaluations : int
        How often, at equal distances, the answer is evaluated.
    tail : float
        Share of the latest stretches between evaluations that is averaged; 1 averages from the start.
    tolerance : float
        Relative optimality that is asked for, as in :class:`~minmaxcon.PrimalDual`.
    block : int
        Steps between two looks at the clock; results do not depend on it.

    Raises
    ------
    InvalidInput
        If a setting is out of range.

    References
    ----------
    Polyak (1967); Lan and Zhou (2020), algorithm 1, for expectations; Huang and Lin (2023) for weak convexity.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> solution = mm.solve(mm.load_problem("toy"), mm.SwitchingSubgradient(steps=100, evaluations=2), seed=0)
    >>> bool(solution.certificate.lower <= 1.0)  # f* is 1
    True
    """

    def __init__(
        self,
        steps: int = 10_000,
        batch_size: int = 100,
        test_size: int = 1000,
        threshold: float = 0.0,
        distance: float = 1e-2,
        evaluations: int = 20,
        tail: float = 0.5,
        tolerance: float = 0.005,
        block: int = 100,
    ) -> None:
        self.test_size = whole("test_size", test_size)
        super().__init__(steps, batch_size, evaluations, tail, tolerance, block)
        self.threshold = number("threshold", threshold, "must be finite and at least 0.", least=0.0)
        self.distance = number("distance", distance, "must be positive and finite.", above=0.0)

    @property
    def needs(self) -> Needs:
        """None: where functions are not convex the answer is no average."""
        return Needs()

    @property
    def _sizes(self) -> tuple[int, ...]:
        return self.batch_size, self.test_size

    def _begin(self, game: Game, start: Start, objective: Any, violation: Any) -> _Iterate:
        inner = game.dual.center(start.x).inner
        return _Iterate(start.x, inner, start.x, AdaptiveSteps.start(start.x, self.distance, 1.0))

    def _answer(self, state: AveragingState, mean: Array) -> Array:
        convex = state.problem.at_level(np.zeros(len(state.status))).modulus <= 0
        return mean if convex else state.iterate.kept

    def _move(self, game: Game, iterate: _Iterate, batches: Sequence[Batch]) -> tuple[_Iterate, Array]:
        xp, x, alpha = namespace(iterate.x), iterate.x, iterate.inner
        _, u, v = game.evaluate(x, batches[1])
        violations = game.values(alpha, u, v)[..., 1:]
        k = game.dual.levels
        unit = xp.asarray(np.eye(k), x)
        worst = xp.rows(unit, xp.argmin(-violations) + 1)
        violated = xp.max(violations, keepdims=True) > self.threshold
        y = xp.where(violated, worst, unit[0])
        found, u, v = game.evaluate(x, batches[0])
        a = game.dual.spread(y) * alpha
        gradient = found.pullback(y, a)
        eta, memory = iterate.memory.primal(game.level.primal, x, gradient)
        inner, memory = memory.inner(v)
        ascended = game.dual.stack.prox(v, alpha, 1.0 / inner)[0]
        weight = xp.where(violated, 0.0 * eta, eta)
        row = game.row(weight, (x, u, v), (y, a), xp.concat((gradient, violations)), eta)
        moved = game.prox(x, gradient, eta, 0.0 * eta + 1.0)
        after = _Iterate(moved, xp.where(violated, alpha, ascended), xp.where(violated, iterate.kept, x), memory)
        return after, row
