r"""Stochastic extragradient: mirror-prox with samples, :math:`z_{t+1} = \mathrm{prox}_{z_t}(\gamma_t\Phi(w_t))`."""

from __future__ import annotations

from minmaxcon.arrays import Array, namespace
from minmaxcon.core import Batch, LevelProblem
from minmaxcon.geometry import PerspectiveGenerator
from minmaxcon.oracles.mirror import proximal_parts
from minmaxcon.oracles.stochastic import Iterate, Step, Stepper, StochasticOracle, StochasticState

__all__ = ["ExtraGradient"]


class ExtraGradient(StochasticOracle):
    r"""Stochastic mirror-prox on the saddle form of a level problem, two batches a step.

    With z = (x, y, a), :math:`\Phi_\xi` the batch's operator and the prox of both geometries,

    .. math::
        w_t = \mathrm{prox}_{z_t}(\gamma_t\Phi_{\xi_t}(z_t)), \qquad
        z_{t+1} = \mathrm{prox}_{z_t}(\gamma_t\Phi_{\xi'_t}(w_t)).

    The estimate is the step-weighted average of the :math:`w_t`, and U is that of :class:`~minmaxcon.SMD`, from the
    second batches: the weights are fixed before these are drawn. Where noise dominates it gains nothing over SMD at the
    same number of samples; where the operator is smooth and the noise small (large batches) it does not circle around
    the saddle point.

    Parameters
    ----------
    steps : int
        Steps a query.
    batch_size : int
        Samples in each of the two batches of a step.
    step_rule : {"adaptive", "inverse_sqrt", "theory"} or StepRule
        Step sizes, from the first batch of each step.
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
    Juditsky, Nemirovski and Tauvel (2011), "Solving variational inequalities with stochastic mirror-prox algorithm".

    Examples
    --------
    >>> import minmaxcon as mm
    >>> mm.solve(mm.load_problem("toy"), mm.SFLS(oracle=mm.ExtraGradient()), seed=0).status.name
    'SOLVED'
    """

    _batches_a_step = 2
    _keeps = False  # steps know the first gradient only: longer ones at once may lead far from where it holds

    def _stepper(self, problem: LevelProblem, dual: PerspectiveGenerator, like: Array) -> Stepper:
        rule, proximal, primal = self.step_rule, problem.proximal, problem.primal
        xp = namespace(like)
        bounds = xp.asarray(problem.bounds, like)
        center, pull = proximal_parts(problem, like)
        nothing = xp.zeros((like.shape[0], 1), like)

        def step(iterate: Iterate, first: Batch, second: Batch) -> Step:
            x, y, memory = iterate
            ahead = problem.family.evaluate(x, first)
            u, v = ahead.F - bounds, ahead.G
            gradient = ahead.pullback(y.weights, dual.scaled(y))
            size = xp.dot(gradient, gradient)[..., None]
            eta, tau, weight, memory = rule.next(memory, problem, x, gradient, u, v)
            x_ahead = primal.prox(x, gradient, eta, center=center, weight=pull)
            y_ahead = dual.prox(y, u, v, tau)
            found = problem.family.evaluate(x_ahead, second)
            u, v = found.F - bounds, found.G
            scaled = dual.scaled(y_ahead)
            gradient = found.pullback(y_ahead.weights, scaled)
            size = size + xp.dot(gradient, gradient)[..., None]
            extra = nothing if proximal is None else proximal.value(primal, x_ahead)[..., None]
            visited = (x_ahead, y_ahead.weights, scaled, u, v, extra, size)
            x = primal.prox(x, gradient, eta, center=center, weight=pull)
            y = dual.prox(y, u, v, tau)
            return (x, y, memory), visited, weight

        return step

    def _visited(self, state: StochasticState, batches: tuple[Batch, ...]) -> list[tuple[Array, Batch]]:
        problem, x = state.problem, state.x
        found = problem.family.evaluate(x, batches[0])
        gradient = found.pullback(state.y.weights, state.dual.scaled(state.y))
        u = found.F - namespace(x).asarray(problem.bounds, x)
        eta = self.step_rule.next(state.memory, problem, x, gradient, u, found.G)[0]
        center, pull = proximal_parts(problem, x)
        ahead = problem.primal.prox(x, gradient, eta, center=center, weight=pull)
        return [(x, batches[0]), (ahead, batches[1])]
