"""The base of oracles for finite data: exactly evaluated answers, and an end when U - D is small enough."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from minmaxcon.arrays import Array, namespace
from minmaxcon.checks import number
from minmaxcon.core import Estimate, LevelProblem, Needs, Oracle, Position, Start
from minmaxcon.core.level import expectations
from minmaxcon.core.lower import bound_and_values, closed_form, lower_bound
from minmaxcon.core.runs import Layout, finite_runs, put_runs, take_runs, where_runs
from minmaxcon.geometry import DualPoint, PerspectiveGenerator
from minmaxcon.geometry.perspective import EntropyWeight
from minmaxcon.oracles.mirror import Steps, check_mixing, first_dual
from minmaxcon.oracles.nonfinite import nonfinite_term

__all__ = ["ExactOracle", "Field", "Incumbent", "SaddleState", "fail", "layout"]

_PASSES = 30
"""Most steps spent on a lower bound where the family knows no minimiser; any number gives a valid bound. A
window spends at most as many as it had."""

_WAYS = (0.5, 0.25)
"""Shares of the way from the best point to a minimiser of the Lagrangian at which points are evaluated beside it."""

_SLACK = 0.1
"""The share of the gap by which the inequality of a step may fail."""

_ROUNDING = {4: 1e-11, 8: 1e-20}
"""The least slack, by the bytes of a number: at the end both sides of the inequality are rounding errors."""


@dataclass(frozen=True, eq=False, slots=True)
class Incumbent:
    """The best that is known of each run, by exact evaluation.

    Attributes
    ----------
    x : array (R, d)
        The point whose largest value is least.
    values : ndarray (R, k)
        Its exact :math:`f_i + d_x - b_i`.
    upper : ndarray (R,)
        Their maximum, which bounds the value of the level from above.
    weights, scaled : array (R, k), (R, p)
        The duals with the best lower bound.
    lower : ndarray (R,)
        That bound; minus infinity where nothing is proved.
    minimiser : ndarray (R,) of bool
        Whether x lies on the way to a minimiser of the Lagrangian that the family knows.
    """

    x: Array
    values: Any
    upper: Any
    weights: Array
    scaled: Array
    lower: Any
    minimiser: Any

    @classmethod
    def of(cls, problem: LevelProblem, x: Array, dual: PerspectiveGenerator, y: DualPoint) -> Incumbent:
        """Return the incumbent at a start: its exact values, and duals of which no bound is known."""
        values = problem.values(x) - problem.bounds
        nothing = np.full(problem.runs, -np.inf)
        return cls(x, values, values.max(axis=1), y.weights, dual.scaled(y), nothing, nothing > 0)

    def better(
        self,
        problem: LevelProblem,
        points: Sequence[Array],
        duals: Sequence[tuple[Array, Array]],
        iterations: int = _PASSES,
    ) -> Incumbent:
        """Return the incumbent after exact evaluation of more points and duals.

        Where the family knows the minimiser of the Lagrangian, which gives the bound of a dual, it is a point as well,
        and so are points on the way to it from the best one: near the saddle point they are nearly optimal long before
        the iterates are, whose steps are as long as the largest curvature allows.
        """
        found = self
        for x in points:
            found = found._at(problem, x)
        for weights, scaled in duals:
            x = closed_form(problem, weights, scaled, found.x)
            if x is None:
                bound = lower_bound(
                    problem, weights, scaled, found.x, upper=found.upper, known=found.lower, iterations=iterations
                )
            else:
                bound, values = bound_and_values(problem, x, weights, scaled)
                found = found._towards(problem, x, values - problem.bounds)
            known = (found.weights, found.scaled, found.lower)
            weights, scaled, bound = where_runs(bound >= found.lower, (weights, scaled, bound), known)
            found = replace(found, weights=weights, scaled=scaled, lower=bound)
        return found

    def _at(self, problem: LevelProblem, x: Array) -> Incumbent:
        """Return the incumbent after exact evaluation of one more point (R, d)."""
        x = x if problem.proximal is not None else problem.family.refine(x, problem.data)
        return self._or(x, problem.values(x) - problem.bounds, minimiser=False)

    def _towards(self, problem: LevelProblem, x: Array, values: Any) -> Incumbent:
        """Return the incumbent, or a better one of minimisers x (R, d) with these values and points on the way."""
        xp, shares, count = namespace(x), np.array(_WAYS)[:, None, None], problem.runs
        points = (self.x + xp.asarray(shares, x) * (x - self.x)).reshape((-1, x.shape[-1]))
        points = points if problem.proximal is not None else problem.family.refine(points, problem.data)
        asked = problem.take(np.tile(np.arange(count), len(_WAYS)))
        between = asked.values(points) - asked.bounds
        best = _worst(between).reshape(-1, count).argmin(axis=0) * count + np.arange(count)
        way = take_runs((points, between), best)
        x, values = where_runs(_worst(way[1]) < _worst(values), way, (x, values))
        return self._or(x, values, minimiser=True)

    def _or(self, x: Array, values: Any, *, minimiser: bool) -> Incumbent:
        """Return the incumbent, or points (R, d) with these values where they are better."""
        new = replace(self, x=x, values=values, upper=values.max(axis=1), minimiser=np.full(len(values), minimiser))
        better: Incumbent = where_runs(new.upper < self.upper, new, self)
        return better


def _worst(values: Any) -> Any:
    """Return the largest of values (R, k), infinity where one is no number."""
    worst = values.max(axis=1)
    return np.where(np.isnan(worst), np.inf, worst)


@dataclass(frozen=True, eq=False, slots=True)
class Field:
    """The operator at a point: u = F - b (R, k), v = G (R, p), and the gradient in x (R, d)."""

    u: Array
    v: Array
    gradient: Array

    @classmethod
    def at(cls, problem: LevelProblem, dual: PerspectiveGenerator, x: Array, y: DualPoint) -> Field:
        """Return the operator on the full data."""
        found = expectations(problem.family, x, problem.data)
        gradient = found.pullback(y.weights, dual.scaled(y))
        return cls(found.F - namespace(x).asarray(problem.bounds, x), found.G, gradient)

    def finite(self) -> Any:
        """Tell for each run whether all is finite, an ndarray (R,)."""
        return finite_runs(self.u, self.v, self.gradient)


@dataclass(frozen=True, eq=False, slots=True)
class SaddleState:
    """State of a query.

    Attributes
    ----------
    problem : LevelProblem
        What is being solved.
    dual : PerspectiveGenerator
        The dual generator.
    begun : Start
        Where the query began.
    target : float
        The gap that is asked for.
    x, y : array (R, d), DualPoint
        The iterate.
    size : Steps
        Step sizes.
    slack : array (R, 1)
        By how much the inequality of a step may fail: a share of the gap that is known, so that terms with kinks, for
        which it fails at any step size, allow steps too.
    sums, weight : array (R, d + k + p), (R, 1)
        Weighted sums, in float64, of x, y and a over the window, and the sum of the weights.
    best : Incumbent
        The best that is known.
    active : ndarray (R,) of bool
        Runs that have neither ended nor failed; the others are frozen.
    steps, limit, check : int
        Steps taken, steps to take, and the step at which the window ends.
    samples : int
        Samples at which the operator was evaluated.
    failure : tuple of (str or None)
        What stopped being finite, per run.
    """

    problem: LevelProblem
    dual: PerspectiveGenerator
    begun: Start
    target: float
    x: Array
    y: DualPoint
    size: Steps
    slack: Array
    sums: Array
    weight: Array
    best: Incumbent
    active: Any
    steps: int
    limit: int
    check: int
    samples: int
    failure: tuple[str | None, ...]

    by_run: ClassVar[tuple[str, ...]] = ("x", "y", "size", "slack", "sums", "weight", "best", "active")
    """The fields that hold a row of each run, but for the problem and the failures."""

    def only(self, runs: Any) -> Self:
        """Return the state of some of the runs (indices), so that the others cost nothing."""
        parts = {name: take_runs(getattr(self, name), runs) for name in self.by_run}
        failure = tuple(self.failure[j] for j in runs)
        return replace(self, problem=self.problem.take(runs), failure=failure, **parts)

    def joined(self, runs: Any, part: Self) -> Self:
        """Return the state of all runs, of which ``part`` has what became of some (indices)."""
        whole = {name: put_runs(getattr(self, name), runs, getattr(part, name)) for name in self.by_run}
        failure = list(self.failure)
        for j, one in zip(runs, part.failure, strict=True):
            failure[j] = one
        return replace(part, problem=self.problem, failure=tuple(failure), **whole)


class ExactOracle(Oracle):
    """Base of oracles that know all the data: the answer is the best point and the best duals met, exactly evaluated.

    Averages are taken over windows, each as long as all before it together. At the end of a window its averages and
    the iterate are evaluated, and a run ends when upper and lower bound are close.

    Parameters
    ----------
    relative_accuracy : float
        A run ends when U - D is at most this share of abs(U), or the accuracy that the query asks for.
    entropy_weight : float or {"free", "theorem", "paper"}
        K of the dual generator.
    mixing : float
        Warm duals are mixed with this share of the uniform weights.
    """

    _lengthening = 2.0

    def __init__(self, relative_accuracy: float, entropy_weight: EntropyWeight, mixing: float) -> None:
        remedy = "must be finite and at least 0."
        self.relative_accuracy = number("relative_accuracy", relative_accuracy, remedy, least=0.0)
        self.mixing = check_mixing(mixing)
        PerspectiveGenerator([None], entropy_weight)  # refuses a bad value now rather than in the solve
        self.entropy_weight = entropy_weight

    @property
    def needs(self) -> Needs:
        """Finite data."""
        return Needs(finite=True)

    @abstractmethod
    def _position(self, state: Any) -> Position:
        """Return where a following query reads the data from."""

    def _first(
        self, problem: LevelProblem, start: Start, accuracy: float, limit: float, check: int
    ) -> tuple[SaddleState, Field]:
        """Return what every state has at the start of a query, and the operator there."""
        dual, y = first_dual(problem, start, self.entropy_weight, self.mixing)
        x = start.x
        xp = namespace(x)
        sums = xp.double(xp.zeros((x.shape[0], layout(x, dual).width), x))
        with np.errstate(over="ignore", invalid="ignore"):
            best = Incumbent.of(problem, x, dual, y)
            field = Field.at(problem, dual, x, y)
        state = SaddleState(
            problem=problem,
            dual=dual,
            begun=start,
            target=float(accuracy),
            x=x,
            y=y,
            size=Steps.first(x, 2.0, start.memory),
            slack=xp.zeros((x.shape[0], 1), x) + _ROUNDING[x.dtype.itemsize],
            sums=sums,
            weight=sums[:, :1] + 0.0,
            best=best,
            active=np.ones(problem.runs, dtype=bool),
            steps=0,
            limit=math.ceil(limit - 1e-6),
            check=check,
            samples=int(problem.data.size or 0),
            failure=(None,) * problem.runs,
        )
        return fail(state, field, field.finite(), 0), field

    def finished(self, state: SaddleState) -> bool:
        """See :meth:`Oracle.finished`."""
        return state.steps >= state.limit or not state.active.any()

    def estimate(self, state: SaddleState) -> Estimate:
        """See :meth:`Oracle.estimate`; ``upper`` is exact, and no worse than at the start."""
        best = state.best
        return Estimate(
            x=best.x,
            weights=best.weights,
            scaled=best.scaled,
            upper=best.upper,
            values=best.values,
            samples=state.samples,
            steps=state.steps,
            next=Start(state.x, state.y, self._position(state), state.size.kept),
            failure=state.failure,
        )

    def _window(self, state: Any, points: Sequence[Array], most: float) -> Any:
        """End a window: evaluate its averages and the ``points``, and end the runs whose gap is small enough."""
        x, runs = state.x, np.flatnonzero(state.active)
        xp = namespace(x)
        with np.errstate(over="ignore", invalid="ignore"):
            best = put_runs(state.best, runs, _evaluated(state, points, runs)) if runs.size else state.best
            gap, wanted = best.upper - best.lower, self.relative_accuracy * np.abs(best.upper)
            done = gap <= np.maximum(wanted, state.target)
            slack = _SLACK * np.where(np.isfinite(gap), gap, np.abs(best.upper))
        return replace(
            state,
            best=best,
            active=state.active & ~done,
            size=where_runs(state.active, state.size.balanced(most), state.size),
            slack=xp.maximum(xp.asarray(slack[:, None], x), state.slack * 0.0 + _ROUNDING[x.dtype.itemsize]),
            sums=0.0 * state.sums,
            weight=0.0 * state.weight,
            check=max(state.steps + 1, int(self._lengthening * state.steps)),
        )


def _evaluated(state: SaddleState, points: Sequence[Array], runs: Any) -> Incumbent:
    """Return the incumbents of some runs (indices) after exact evaluation of what a window of theirs has led to."""
    dual = state.dual
    kept = (state.x, state.y, state.sums, state.weight, state.best, tuple(points))
    x, y, sums, weight, best, points = take_runs(kept, runs)
    xp = namespace(x)
    some, last = weight > 0, (y.weights, dual.scaled(y))
    mean = layout(x, dual).split(xp.asarray(sums / xp.where(some, weight, weight + 1.0), x))
    average, duals = where_runs(some, (mean.x, (mean.y, mean.a)), (x, last))
    few = max(2, min(_PASSES, state.steps // 2))
    found: Incumbent = best.better(state.problem.take(runs), [average, *points], [last, duals], few)
    return found


def layout(x: Array, dual: PerspectiveGenerator, **more: int) -> Layout:
    """Return the layout of sums of x, y, a and more."""
    return Layout(x=x.shape[-1], y=dual.levels, a=dual.inner_dimension, **more)


def fail(state: Any, field: Field, fine: Any, step: int) -> Any:
    """Freeze the active runs that are not ``fine`` (R,) and name what is not finite at ``step``."""
    failure = list(state.failure)
    for j in np.flatnonzero(state.active & ~fine):
        named = nonfinite_term(state.problem, state.dual, field.u, field.v, int(j)) or "the gradient"
        failure[j] = f"{named} is not finite at step {step}"
    return replace(state, failure=tuple(failure), active=state.active & fine)
