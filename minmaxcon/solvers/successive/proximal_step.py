"""The step of successive approximation by another solver, which gets the proximal problem with the surrogates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.core import Batch, Evaluation, MinMaxProblem, Outcome, Solver, Start, StochasticMinMaxConstraint
from minmaxcon.core.constraint import ConstraintFamily, family_of
from minmaxcon.core.linearisation import exact_values
from minmaxcon.core.source import Source
from minmaxcon.solvers.successive.linearised_step import LinearisedStep
from minmaxcon.solvers.successive.observed import refined
from minmaxcon.solvers.successive.state import SuccessiveState

__all__ = ["Tilted", "proximal_step"]


def proximal_step(
    solver: Solver, state: SuccessiveState, runs: Any, points: Array, step: LinearisedStep
) -> tuple[Array, LinearisedStep, int]:
    r"""Let a solver find the next point of each run.

    .. math::
        \min_x f_s(x) + \hat\rho V(x, \tilde x_s)\quad\text{s.t.}\quad
        M_{s,i}(x) + \hat\rho V(x, \tilde x_s) \le b_i - \epsilon - (t_i - M_{s,i})(\tilde x_s)

    with the run's own :math:`\hat\rho` and margin :math:`\epsilon`. A run that has not left its start keeps the
    linearised step, whose length is limited: a constant model often starts a run, and gives surrogates nothing to
    follow.

    Parameters
    ----------
    solver : Solver
        Solves it, one run after the other, since each has its own :math:`\hat\rho`.
    state : SuccessiveState
        Where the solve stands.
    runs : ndarray of int
        The R runs that go on.
    points : array (R, d)
        Where the linearised steps lead.
    step : LinearisedStep
        These steps, whose multipliers and residual are kept.

    Returns
    -------
    x : array (R, d)
        The points found.
    step : LinearisedStep
        With the changes that the surrogates promise there.
    samples : int
        Samples drawn.
    """
    points, samples = namespace(points).copy(points), 0
    objective, constraints = step.objective.copy(), step.constraints.copy()
    for i in np.flatnonzero(state.moved[runs]):
        near, smooth = _proximal_problem(state, runs[i])
        start = Start(near.start_point(1), None, state.position.jumped(2 * state.outer + 1))
        found = _outcome(solver, near, start)
        new = refined(state.block, found.x)
        points[i] = new[0]
        values = exact_values(near.family, new, near.data)[0]
        objective[i] = values[0] - smooth
        constraints[i] = 0.0  # of the set X, which holds
        constraints[i, : values.size - 1] = values[1:] - near.bounds()[0]
        samples += found.samples
    return points, replace(step, objective=objective, constraints=constraints), samples


def _proximal_problem(state: SuccessiveState, run: Any) -> tuple[MinMaxProblem, float]:
    """Return the proximal problem of a run, which starts at its centre, and the objective's value there."""
    x = namespace(state.x).rows(state.x, [run])
    center = np.asarray(to_numpy(x), dtype=np.float64)[0]
    block = state.block.take([run])
    problem = replace(block.refreshed(block.measure.observe(x)), start=center)
    if state.anchor is not None:
        functions, slopes = [problem.objective, *problem.constraints], state.anchor.slopes[run]
        tilted = [Tilted(f, slope, center) for f, slope in zip(functions, slopes, strict=True)]
        problem = replace(problem, objective=tilted[0], constraints=tilted[1:])
    smooth = exact_values(problem.family, x, problem.data)[0]
    bounds = smooth[1:] - state.constraints[run] - state.margin[run]
    problem = problem.with_bounds(*(float(bound) for bound in bounds))
    return problem.with_proximal(center, float(state.weight[run])), float(smooth[0])


def _outcome(solver: Solver, problem: MinMaxProblem, start: Start) -> Outcome:
    solver.needs.check(solver.title, problem)
    state = solver.init(problem, start)
    while not solver.finished(state):
        state = solver.step(state)
    return solver.outcome(state)


class Tilted(StochasticMinMaxConstraint):
    r"""A function and a linear one, :math:`f(x) + \langle C, x - \tilde x\rangle`.

    Parameters
    ----------
    base : StochasticMinMaxConstraint
        f, whose inner set, bound and modulus it takes.
    slope, center : ndarray (d,)
        C and :math:`\tilde x`.
    """

    def __init__(self, base: StochasticMinMaxConstraint, slope: Any, center: Any) -> None:
        self.base, self.slope, self.center = base, slope, center
        self.bound, self.dual, self.name = base.bound, base.dual, base.name
        self.convex, self.weak_convexity = base.convex, base.weak_convexity

    def evaluate(self, x: Array, batch: Batch) -> Evaluation:
        """See :meth:`StochasticMinMaxConstraint.evaluate`."""
        found = self.base.evaluate(x, batch)
        slope = namespace(x).asarray(self.slope, x)
        return Evaluation(found.F + self.added(x), found.G, lambda y, a: found.pullback(y, a) + y[..., None] * slope)

    def added(self, x: Array) -> Array:
        """Return the linear function at x (..., d)."""
        xp = namespace(x)
        return xp.dot(x - xp.asarray(self.center, x), xp.asarray(self.slope, x))

    @classmethod
    def fuse(cls, constraints: Sequence[Tilted]) -> ConstraintFamily:
        """Evaluate the functions together, and add the linear ones."""
        return _TiltedFamily(constraints)


class _TiltedFamily(ConstraintFamily):
    def __init__(self, constraints: Sequence[Tilted]) -> None:
        super().__init__(constraints)
        self._base = family_of([constraint.base for constraint in constraints])
        self._slopes = np.stack([constraint.slope for constraint in constraints], axis=1)  # (d, k)
        self._center = constraints[0].center

    def evaluate(self, x: Array, batch: Batch) -> Evaluation:
        """See :meth:`ConstraintFamily.evaluate`."""
        xp = namespace(x)
        found, slopes = self._base.evaluate(x, batch), xp.asarray(self._slopes, x)
        added = (x - xp.asarray(self._center, x)) @ slopes
        return Evaluation(found.F + added, found.G, lambda y, a: found.pullback(y, a) + y @ slopes.T)

    def refine(self, x: Array, data: Source) -> Array:
        """See :meth:`ConstraintFamily.refine`: variables with a known minimiser have no slope."""
        return self._base.refine(x, data)
