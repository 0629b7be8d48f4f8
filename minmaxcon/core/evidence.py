r"""Multipliers that prove a bound, and their check, which shares no code with solvers and lower bounds.

Multipliers :math:`y \ge 0` and :math:`a_i \in y_iA_i` of objective and constraints make the function

.. math:: L(x) = y_0 E F_0 + \sum_{i\ge1} y_i (E F_i - b_i) + \langle a, E\,G\rangle - \sum_i y_i g_i(a_i/y_i)

which no value of the inner variables exceeds: :math:`L(x) \le y_0f_0(x) + \sum_i y_i(f_i(x) - b_i)`. So with
:math:`D \le \min_X L` the optimal value is at least :math:`D/y_0`, and where :math:`y_0 = 0` and :math:`D > 0` no point
is feasible.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.checks import instances
from minmaxcon.core.lower import minimize_lagrangian
from minmaxcon.core.problem import MinMaxProblem, require_problem
from minmaxcon.core.source import in_double
from minmaxcon.errors import InvalidInput

__all__ = ["AGREES", "Evidence", "Proved", "proved", "proved_of_runs"]

_ROUNDING = 1e-12
"""Allowance for rounding, relative to the sizes of the terms of a bound; more where the terms are very many."""

_UNIT = 2.0**-52
"""Twice the largest relative error of an operation: n terms are summed up to n - 1 of these, times their sizes."""

_MEASURED = 4.0
"""How many times the difference of two ways of summing the data a mean may be off: measured, and not proved."""

_SLACK = 1e-7
"""By how much a convex function may lie below its tangent by rounding, relative to the sizes of its terms."""

_DRAWN = 12
"""Points of X at which tangents are tried."""

_RAYS = (1.0, 0.3, 0.1, 1e-3)
"""Shares of the way from u to each of these points at which tangents are tried."""

_ROWS, _LEAST_ROWS, _AT_ONCE = 4096, 256, 64 * 4096
"""Rows that are evaluated together: many, but fewer the more points there are, so that memory does not grow."""

_OTHER_ROWS = 509
"""Rows of a piece where the data are summed in another way, at most."""

AGREES = 1e-6
"""Relative difference up to which two numbers are the same: other machines add in another order."""

_OF_THE_GAP = 0.05
"""A lower bound that is found again may be weaker by this share of the gap: its minimiser is found anew."""

_TOGETHER = 16
"""Runs whose points are evaluated together, so that memory does not grow with their number."""

_SHARES = (1e-3, 1e-2, 1e-4)
"""Shares of the way from u to the vertex that attains the bound at which another tangent is tried."""

_quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")
"""Lets values overflow without a warning: what is not finite proves nothing."""

_ROUNDS = 8
_MIXTURES = (0.0, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0)


@dataclass(frozen=True, eq=False, slots=True)
class Evidence:
    """Multipliers of R runs, the best that each has; NaN in the rows of runs that have none.

    Attributes
    ----------
    weights : ndarray (R, 1 + m)
        y, that of the objective first. It is 0 where the multipliers prove that no point is feasible.
    scaled : ndarray (R, p)
        a, the scaled inner variables of objective and constraints joined.
    near : ndarray (R, d)
        Where the search for the minimiser of the Lagrangian started that gave the bound. At a kink a bound depends on
        it, and is found again from there.
    first : ndarray (R, d), optional
        Feasible points, NaN where none is known, by whose objectives a solver measured the gap that counted as solved.
    neighbour : Neighbour, optional
        Of runs that claim near stationarity; their multipliers are then those of the proximal problem. See
        :mod:`minmaxcon.core.first_order`.
    linear : Linearised, optional
        Of runs that claim first-order optimality of a true measure.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> solution = mm.solve(mm.load_problem("toy"), seed=0)
    >>> solution.evidence.weights.shape, solution.evidence.scaled.shape
    ((1, 2), (1, 1))
    """

    weights: Any
    scaled: Any
    near: Any
    first: Any = None
    neighbour: Any = None
    linear: Any = None

    @classmethod
    def none(cls, problem: MinMaxProblem, runs: int) -> Evidence:
        """Return that of runs that have none yet."""
        inner = sum(0 if one.dual is None else one.dual.dimension for one in problem.family.constraints)
        sizes = 1 + len(problem.constraints), inner, problem.primal.dimension
        return cls(*(np.full((runs, size), np.nan) for size in sizes))

    @classmethod
    def of(cls, weights: Any, scaled: Any, near: Any) -> Evidence:
        """Return multipliers of objective and constraints, and points, (R, 1 + m), (R, p) and (R, d) of any engine."""
        return cls(*(np.asarray(to_numpy(part), dtype=np.float64) for part in (weights, scaled, near)))

    @classmethod
    def of_constraints(cls, weights: Any, scaled: Any, near: Any, whole: Evidence) -> Evidence:
        """Return multipliers of the constraints alone, (R, m) and (R, p'), filled up with zeros to be as ``whole``."""
        found = cls.of(weights, scaled, near)
        before = whole.scaled.shape[1] - found.scaled.shape[1]
        return cls(np.pad(found.weights, ((0, 0), (1, 0))), np.pad(found.scaled, ((0, 0), (before, 0))), found.near)


@dataclass(frozen=True, slots=True)
class Proved:
    """What multipliers prove.

    Attributes
    ----------
    lower : float
        A lower bound on the optimal value; minus infinity where there is none, infinite where no point is feasible.
    excess : float
        A lower bound on the weighted mean violation of every point, where the objective has no weight; else 0.
    fault : str
        Why nothing is proved; empty where something is.
    cut : bool
        Whether the search ended as no time was left: a longer one may prove more.
    unit : float
        The size of the terms that the lower bound is a sum of, by which rounding is measured.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> problem = mm.load_problem("toy")
    >>> evidence = mm.solve(problem, seed=0).evidence
    >>> found = mm.core.proved(problem, evidence.weights[0], evidence.scaled[0])
    >>> bool(found.lower <= 1.0), found.fault  # f* is 1
    (True, '')
    """

    lower: float
    excess: float
    fault: str
    cut: bool = False
    unit: float = 0.0

    def confirms(self, lower: float, objective: float) -> bool:
        """Whether this proves the ``lower`` bound that is claimed beside an objective, up to a share of their gap."""
        allowed = AGREES * self.unit + _OF_THE_GAP * max(objective - lower, 0.0)
        return not self.fault and self.lower >= lower - allowed


def proved(
    problem: MinMaxProblem, weights: Any, scaled: Any, *, near: Any = None, over: Callable[[], bool] = lambda: False
) -> Proved:
    r"""Return what multipliers of one run prove, exactly on finite data.

    The bound is :math:`L(u) + \min_{v\in X}\langle\nabla L(u), v - u\rangle` less an allowance for rounding, at a
    point u that makes it large. At a kink no single tangent is flat, so tangents near u, in the directions in which the
    bound is attained, are mixed with it as long as that helps. The bound holds where L is convex and its gradient is
    one, so both are tried: at points near u and far from it L must not lie below the tangents.

    Parameters
    ----------
    problem : MinMaxProblem
        A problem of one run on finite data.
    weights : array_like (1 + m,)
        y.
    scaled : array_like (p,)
        a.
    near : array_like (d,), optional
        A point that is likely to be near u, where its search starts; one that is not of X gives way to the problem's
        own start.
    over : callable
        Tells whether no time is left. Then the search for u ends where it is and no tangents are mixed: the bound is
        lower, and holds as any does. L is tried at as many points as ever.

    Raises
    ------
    InvalidInput
        If the problem is none or has several runs, whose bounds were meant?, or multipliers are no vectors of numbers.
    """
    begin = None if near is None else [real_vector("near", near)]
    return proved_of_runs(
        problem, [real_vector("weights", weights)], [real_vector("scaled", scaled)], near=begin, over=over
    )[0]


def _rows(name: str, value: Any) -> list[Any]:
    """Return vectors of real numbers, one for each run."""
    return [real_vector(name, row) for row in instances(name, value, object, "must have a vector for each run.")]


def real_vector(name: str, value: Any) -> Any:
    """Return a vector of real numbers, not all of them finite where a solver has none."""
    found = np.asarray(to_numpy(value))
    if found.dtype.kind not in "iuf" or found.ndim != 1:
        raise InvalidInput(name, value, "must be a vector of numbers.")
    return found


@_quiet
def no_multipliers(problem: MinMaxProblem, weights: Any, scaled: Any) -> str:
    """Return why weights (1 + m,) and scaled inner variables (p,) bound nothing; an empty text where they may."""
    found = _Lagrangian.of(problem, weights, scaled)
    return found.fault if isinstance(found, Proved) else ""


@_quiet
def proved_of_runs(
    problem: MinMaxProblem, weights: Any, scaled: Any, *, near: Any = None, over: Callable[[], bool] = lambda: False
) -> list[Proved]:
    """Return what :func:`proved` does of each of several runs, whose points are evaluated together.

    Arguments and errors are those of :func:`proved`, one row a run: weights (R, 1 + m), scaled (R, p), near (R, d). A
    problem of several runs has R.
    """
    require_problem(problem)
    weights, scaled = _rows("weights", weights), _rows("scaled", scaled)
    if len(weights) != len(scaled):
        raise InvalidInput("scaled", scaled, f"must have a row for each of the {len(weights)} runs of weights.")
    starts = to_numpy(problem.start_point(len(weights)))
    if near is not None:
        rows = _rows("near", near)
        if [row.shape for row in rows] != [starts.shape[1:]] * len(starts):
            raise InvalidInput("near", near, f"must have shape {starts.shape}, one point of the set's space a run.")
        near = np.array(rows, dtype=np.float64)
        inside = np.isfinite(near).all(axis=1) & problem.primal.holds(near)
        starts = np.where(inside[:, None], near, starts)
    if problem.runs not in (None, len(weights)):
        need = f"has {problem.runs} runs, and there are multipliers of {len(weights)}; give problem.take([run]) of one."
        raise InvalidInput("problem", problem.name, need)
    found, saddles = dict[int, Proved](), dict[int, _Lagrangian]()
    for j, (y, a) in enumerate(zip(weights, scaled, strict=True)):
        one = _Lagrangian.of(problem.take([j]), y, a)
        if isinstance(one, Proved):
            found[j] = one
        else:
            saddles[j] = one
    for begin in range(0, len(saddles), _TOGETHER):
        part = list(saddles)[begin : begin + _TOGETHER]
        shown = _shown(problem.take(part), [saddles[j] for j in part], starts[part], over)
        found |= dict(zip(part, shown, strict=True))
    return [found[j] for j in range(len(weights))]


def _shown(problem: MinMaxProblem, saddles: list[_Lagrangian], starts: Any, over: Callable[[], bool]) -> list[Proved]:
    """Return what the multipliers of each Lagrangian prove, from tangents near its minimisers."""
    places, closed = _minimisers(problem, saddles, starts, over)
    lines = _tangents(saddles, places)
    _measure(saddles, places, lines)
    ends = [saddle.least(line) for saddle, line in zip(saddles, lines, strict=True)]
    tried = _around(saddles, places, [vertex for _, vertex in ends])
    faults = [one.below(one.lines) or one.below(line[None]) for one, line in zip(tried, lines, strict=True)]
    mixed = [] if closed else [j for j, fault in enumerate(faults) if not fault]
    for share in _SHARES * (_ROUNDS if mixed else 0):
        if over():
            break
        points = [places[j] + share * (ends[j][1] - places[j]) for j in mixed]
        for j, other in zip(mixed, _tangents([saddles[j] for j in mixed], points), strict=True):
            bound, vertex, lines[j] = max(
                ((*saddles[j].least(line), line) for line in ((1 - g) * lines[j] + g * other for g in _MIXTURES)),
                key=lambda one: one[0],
            )
            ends[j] = bound, vertex
    found = []
    for saddle, (bound, _), line, one, fault in zip(saddles, ends, lines, tried, faults, strict=True):
        fault = fault or one.below(line[None])
        found.append(saddle.proves(bound, fault, float(line[1]), cut=not closed and over()))
    return found


class _Lagrangian:
    """L of one run on the full data, in float64; ``fault`` where a term is none."""

    @classmethod
    def of(cls, problem: MinMaxProblem, weights: Any, scaled: Any) -> _Lagrangian | Proved:
        """Return the Lagrangian of multipliers that sum to 1, or that they prove nothing, where they are none."""
        y, a = np.asarray(weights, dtype=np.float64), np.asarray(scaled, dtype=np.float64)
        wanted = Evidence.none(problem, 1)
        if (y.shape, a.shape) != (wanted.weights.shape[1:], wanted.scaled.shape[1:]):
            return Proved(-math.inf, 0.0, "the multipliers are not as many as the functions have.")
        if not (np.isfinite(y).all() and np.isfinite(a).all() and (y >= 0).all() and y.sum() > 0):
            return Proved(-math.inf, 0.0, "the multipliers are not finite, at least 0 and somewhere positive.")
        found = cls(problem, y / y.sum(), a / y.sum())
        return Proved(-math.inf, 0.0, found.fault) if found.fault else found

    def __init__(self, problem: MinMaxProblem, y: Any, a: Any) -> None:
        self.problem, self.primal, self.y, self.a = problem, problem.primal, y, a
        self.data = in_double(problem.data)
        self.like = namespace(problem.data.like).double(problem.data.like)
        functions = (problem.objective, *problem.constraints)
        self.bounds = np.concatenate([[0.0], problem.bounds()[0]])
        self.penalty, self.fault, begin = 0.0, "", 0
        self.rounding = max(_ROUNDING, _UNIT * (self.primal.dimension + self.y.size + self.a.size + 16))
        self.measured = 0.0  # what summing the data in another way changes
        for i, function in enumerate(functions):
            weight = self.problem.proximal.weight if self.problem.proximal is not None else 0.0
            if y[i] > 0 and function.modulus > weight:
                self.fault = f"{function.name!r} has a multiplier and is not declared convex."
            if function.dual is None:
                continue
            part = a[begin : begin + function.dual.dimension]
            begin += function.dual.dimension
            if y[i] > 0:
                inner = part / y[i]
                # A prox with hardly any step stays at a point of the set; from elsewhere it goes back to the set.
                kept = function.dual.prox(0.0 * inner[None], inner[None], np.full((1, 1), 1e12))[0][0]
                if not np.abs(kept - inner).max() <= 1e-6 * (1.0 + np.abs(inner).max()):
                    self.fault = f"the inner variables of {function.name!r} lie outside their set."
                self.penalty += y[i] * float(function.dual.penalty(inner[None])[0])
            elif part.any():
                self.fault = f"{function.name!r} has inner variables without a multiplier."

    def proves(self, bound: float, fault: str, size: float, *, cut: bool) -> Proved:
        """Return what a bound on L from below proves, or the fault; the search for it was perhaps ``cut`` short.

        ``size`` is that of its terms.
        """
        if fault or not math.isfinite(bound):
            return Proved(-math.inf, 0.0, fault or "the bound is not finite.")
        if self.y[0] > 0:
            return Proved(bound / self.y[0], 0.0, "", cut, size / self.y[0])
        if bound > 0:
            return Proved(math.inf, bound, "")
        return Proved(-math.inf, bound, "the bound on violations is not positive.", cut)

    def complete(self, x: Any, mean: Any, moment: Any, gradient: Any) -> tuple[Any, Any, Any]:
        """Return value, size of the terms and gradient of L at points (P, d), from means at these points."""
        moved = mean - self.bounds
        value = moved @ self.y + moment @ self.a - self.penalty
        size = np.abs(moved) @ self.y + np.abs(moment) @ np.abs(self.a) + abs(self.penalty)
        if self.problem.proximal is not None:
            term = to_numpy(self.problem.proximal.value(self.primal, x))
            value, size = value + term, size + np.abs(term)
            gradient = gradient + to_numpy(self.problem.proximal.gradient(self.primal, x))
        return value, size, gradient

    def least(self, line: Any) -> tuple[float, Any]:
        """Return the minimum over X of a mixture of tangents, less an allowance for rounding, and a minimiser."""
        gradient = namespace(self.like).asarray(line[None, 2:], self.like)
        least, vertex = (to_numpy(part)[0] for part in self.primal.linear_minimum(gradient))
        terms = line[1] + np.abs(line[2:]) @ (np.abs(vertex) + np.abs(self.primal.center))
        return float(line[0] + least - self.rounding * (1e-300 + terms) - self.measured), vertex


def _minimisers(
    problem: MinMaxProblem, saddles: list[_Lagrangian], near: Any, over: Callable[[], bool]
) -> tuple[Any, bool]:
    """Return points (R, d) of X with small L, found in the time that is left, and whether the family knows the least.

    Any points of X give valid bounds.
    """
    like, data, proximal = saddles[0].like, saddles[0].data, problem.proximal
    y, a = (np.stack([getattr(saddle, name) for saddle in saddles]) for name in "ya")
    center = None if proximal is None else np.broadcast_to(proximal.center, (len(y), problem.primal.dimension))
    found = problem.family.lagrangian_minimizer(y, a, data, center, 0.0 if proximal is None else proximal.weight)
    closed = found is not None
    if not closed:
        level = replace(problem.at_level(np.zeros(len(y))), data=data)
        start, weights, scaled = (namespace(like).asarray(to_numpy(part), like) for part in (near, y, a))
        found = minimize_lagrangian(level, weights, scaled, start, iterations=300, over=over)[0]
    return to_numpy(found), closed


def _pass(
    saddles: list[_Lagrangian], points: list[Any], *, summed: bool = False, rows: int = _ROWS
) -> list[tuple[Any, Any, Any]]:
    """Return value, size of the terms and gradient of each L at its points (P, d), by all rows or by ``summed`` ones.

    No piece is kept, so that memory does not grow with the data; each has at most ``rows`` rows.
    """
    like, data, family = saddles[0].like, saddles[0].data, saddles[0].problem.family
    xp, counts = namespace(like), [len(part) for part in points]
    x = xp.asarray(np.concatenate(points), like)
    weights, scaled = (
        xp.asarray(np.repeat([getattr(saddle, name) for saddle in saddles], counts, axis=0), like) for name in "ya"
    )

    def terms(found: Any) -> tuple[Any, ...]:
        return found.F, found.G, found.pullback(weights, scaled)

    if summed:
        found = terms(family.means(x, data))
    else:
        rows = min(rows, max(_LEAST_ROWS, _AT_ONCE // len(x)))
        found = data.summed(lambda batch: terms(family.evaluate(x, batch)), rows)
    cuts = np.cumsum(counts)[:-1]
    parts = [np.split(to_numpy(part), cuts) for part in found]
    own = (xp.asarray(part, like) for part in points)
    return [saddle.complete(*given) for saddle, *given in zip(saddles, own, *parts, strict=True)]


def _tangents(saddles: list[_Lagrangian], places: list[Any]) -> list[Any]:
    """Return the tangents at a point (d,) each: vectors of the constant, the size of its terms, and the gradient."""
    found = []
    for u, (value, size, slope) in zip(places, _pass(saddles, [u[None] for u in places]), strict=True):
        g = slope[0]
        found.append(np.concatenate([[value[0] - g @ u, size[0] + np.abs(g) @ np.abs(u)], g]))
    return found


def _measure(saddles: list[_Lagrangian], places: list[Any], lines: list[Any]) -> None:
    """Note of each Lagrangian by how much bounds from its tangents may be off as the functions' own sums are rounded.

    What a family computes of a batch is its own, in float64. So the rows are cut in other pieces, summed again, and
    the differences of value and gradient, times a factor, are what a bound allows for.
    """
    rows = int(saddles[0].data.size or 1)
    again = _pass(saddles, [u[None] for u in places], rows=max(1, min(_OTHER_ROWS, rows // 3)))
    for saddle, u, line, (value, _, slope) in zip(saddles, places, lines, again, strict=True):
        turned = slope[0] - line[2:]
        lost = abs(float(value[0]) - float(line[0] + line[2:] @ u))
        reach = 2.0 * math.sqrt(2.0 * saddle.primal.squared_diameter)  # no two points of X lie farther apart
        lost += reach * float(saddle.primal.dual_norm(turned))
        saddle.measured = _MEASURED * lost if math.isfinite(lost) else math.inf


def _everywhere(saddles: list[_Lagrangian], points: list[Any]) -> list[tuple[Any, Any, Any]]:
    """Return value, size and gradient at many points (P, d) each.

    The means that a family knows are believed where they agree with the rows at one of the points.
    """
    if not saddles[0].problem.family.knows_means(saddles[0].data):
        return _pass(saddles, points)
    known, once = _pass(saddles, points, summed=True), _pass(saddles, [part[:1] for part in points])
    for seen, (value, size, slope) in zip(known, once, strict=True):
        near = np.abs(seen[0][:1] - value) <= _SLACK * size
        near &= (np.abs(seen[2][:1] - slope) <= _SLACK * np.abs(slope).max()).all()
        if not near.all():
            return _pass(saddles, points)
    return known


def _around(saddles: list[_Lagrangian], places: list[Any], vertices: list[Any]) -> list[_Tried]:
    """Return points on rays from each u to others of X, with the values and the tangents there."""
    problem, points = saddles[0].problem, []
    drawn, begin = problem.primal.sample(np.random.default_rng(0), _DRAWN), to_numpy(problem.start_point(1))
    for u, vertex in zip(places, vertices, strict=True):
        far = np.concatenate([drawn, vertex[None], begin])
        points.append(np.concatenate([u + share * (far - u) for share in _RAYS]))
    found = []
    for x, (values, sizes, slopes) in zip(points, _everywhere(saddles, points), strict=True):
        constants = values - (slopes * x).sum(axis=1)
        terms = sizes + (np.abs(slopes) * np.abs(x)).sum(axis=1)
        found.append(_Tried(x, values, sizes, np.column_stack([constants, terms, slopes])))
    return found


@dataclass(frozen=True, eq=False, slots=True)
class _Tried:
    """Points (P, d), the values of L there and the sizes of their terms (P,), and its tangents (P, 2 + d)."""

    points: Any
    values: Any
    sizes: Any
    lines: Any

    def below(self, lines: Any) -> str:
        """Say where L lies below one of the tangents (T, 2 + d), so that it is not convex or the gradient is none.

        Along a ray that leaves convex ground one of two neighbours lies below the tangent at the other, although both
        may lie above the tangent that proves the bound.
        """
        below = lines[:, 0] + self.points @ lines[:, 2:].T - self.values[:, None]
        below -= _SLACK * (self.sizes[:, None] + lines[:, 1] + np.abs(self.points) @ np.abs(lines[:, 2:]).T)
        worst = float(np.max(below, initial=0.0, where=np.isfinite(below)))
        fault = "a gradient or the declared convexity is wrong; run `minmaxcon check`."
        return f"the Lagrangian lies {worst:.3g} below its tangent, so {fault}" if worst > 0 else ""
