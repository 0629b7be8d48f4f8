"""Stochastic mirror descent, the oracle for level problems."""

from __future__ import annotations

from minmaxcon.arrays import Array, namespace
from minmaxcon.core import Batch, LevelProblem
from minmaxcon.geometry import PerspectiveGenerator
from minmaxcon.oracles.mirror import proximal_parts
from minmaxcon.oracles.stochastic import Iterate, Step, Stepper, StochasticOracle

__all__ = ["SMD"]


class SMD(StochasticOracle):
    r"""Stochastic mirror descent on the saddle form of a level problem.

    Each step draws a batch and moves :math:`x` by a prox of the primal generator and :math:`(y, a)` by the closed-form
    prox of the KL-plus-perspective generator. The estimate is the step-weighted average, with the upper bound

    .. math::
        U = \max_i\{\bar u_i + (g_i + \iota_{A_i})^*(\bar v_i)\} + \overline{d_x},

    all averages with the same weights. U bounds the optimal value without noise, and in expectation for weights fixed
    before the sample; it is no certificate for :math:`\bar x`, which SFLS therefore evaluates exactly on finite data.

    Parameters
    ----------
    steps : int, optional
        Steps of a query; of the first, where they grow. By default 100 there, on large data as many as take the time of
        the exact passes that follow, at most those of one pass in samples (1,000 on a stream, where nothing is
        evaluated exactly), and 4,000 of a query that stands alone.
    batch_size : int
        Samples a step; 1 is allowed, as every sample's terms are unbiased.
    step_rule : {"adaptive", "inverse_sqrt", "theory"} or StepRule
        Step sizes; the default needs no tuning.
    entropy_weight : float or {"free", "theorem", "paper"}
        K of the dual generator, see :class:`~minmaxcon.geometry.PerspectiveGenerator`.
    mixing : float
        Warm duals are mixed with this share of the uniform weights.
    block : int, optional
        Steps between two looks at the clock, whose samples are drawn at once; results do not depend on it. By default
        100, and 400 short ones that are compiled.

    Raises
    ------
    InvalidInput
        If a setting is out of range.

    References
    ----------
    Yao, Lin and Yang (2023), algorithm 2, with the errata of the documentation.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> solver = mm.SFLS(oracle=mm.SMD(batch_size=50))
    >>> mm.solve(mm.load_problem("toy"), solver, seed=0).status.name
    'SOLVED'
    """

    def _stepper(self, problem: LevelProblem, dual: PerspectiveGenerator, like: Array) -> Stepper:
        family, rule, proximal, primal = problem.family, self.step_rule, problem.proximal, problem.primal
        xp = namespace(like)
        bounds = xp.asarray(problem.bounds, like)
        center, pull = proximal_parts(problem, like)
        nothing = xp.zeros((like.shape[0], 1), like)

        def step(iterate: Iterate, batch: Batch) -> Step:
            x, y, memory = iterate
            found = family.evaluate(x, batch)
            u, v = found.F - bounds, found.G
            scaled = dual.spread(y.weights) * y.inner
            gradient = found.pullback(y.weights, scaled)
            extra = nothing if proximal is None else proximal.value(primal, x)[..., None]
            eta, tau, weight, memory = rule.next(memory, problem, x, gradient, u, v)
            size = xp.dot(gradient, gradient)[..., None]
            visited = (x, y.weights, scaled, u, v, extra, size)
            x = primal.prox(x, gradient, eta, center=center, weight=pull)
            y = dual.prox(y, u, v, tau)
            return (x, y, memory), visited, weight

        return step
