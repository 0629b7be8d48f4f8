"""Problems with a true measure that has steps, as a rate on samples has, and a known optimum.

The measure is t(x) = h round(s(x) / h) with a smooth s, so that t(x) <= b for a multiple b of h says s(x) < b + h/2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import namespace, to_numpy
from tests.problem_library import HalfSquare

Array = Any
Smooth = Callable[[Array], tuple[Array, Array]]
"""Gives values (R,) and gradients (R, d) at x (R, d)."""

POINTS = np.random.default_rng(0).normal(size=(40, 2)) + np.array([1.0, 0.5])


def spread() -> float:
    """What the objective is at least, at the mean of the points."""
    return float(0.5 * ((POINTS - POINTS.mean(axis=0)) ** 2).sum(axis=1).mean())


def bowl(x: Array) -> tuple[Array, Array]:
    """s(x) = x_1^2 + x_2^2 / 4."""
    curvature = np.array([2.0, 0.5])
    return 0.5 * (x * x) @ curvature, x * curvature


def wave(x: Array) -> tuple[Array, Array]:
    """s(x) = tanh(2 x_1) + x_2 / 2, which is neither convex nor concave."""
    height = np.tanh(2.0 * x[:, 0])
    return height + 0.5 * x[:, 1], np.stack([2.0 * (1.0 - height**2), np.full(len(x), 0.5)], axis=1)


def lifted(x: Array) -> tuple[Array, Array]:
    """s(x) = 1/2 + |x|^2 / 10, which nobody can bring below one half."""
    return 0.5 + 0.1 * (x * x).sum(axis=1), 0.2 * x


class Tangent(mm.StochasticMinMaxConstraint):
    """The tangent of a smooth function at the point of each run."""

    convex = True

    def __init__(self, value: Array, slope: Array, origin: Array) -> None:
        self.value, self.slope, self.origin = value, slope, origin

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        value, slope, origin = (namespace(x).asarray(part, x) for part in (self.value, self.slope, self.origin))
        return mm.Evaluation(value + (slope * (x - origin)).sum(-1), x[..., :0], lambda y, _: y[..., None] * slope)


class Steps(mm.Observation):
    """The staircase over smooth functions, seen from x."""

    def __init__(self, functions: Sequence[Smooth], height: float, x: Array) -> None:
        self._x = np.asarray(to_numpy(x), dtype=np.float64)
        self._found = [function(self._x) for function in functions]
        self.smoothed = np.stack([value for value, _ in self._found], axis=1)
        self.values = height * np.round(self.smoothed / height) if height else self.smoothed

    def surrogates(self) -> list[Tangent]:
        return [Tangent(value, slope, self._x) for value, slope in self._found]


class Staircase(mm.TrueMeasure):
    """The measure; it counts how often it was asked."""

    def __init__(self, functions: Sequence[Smooth], height: float) -> None:
        self.functions, self.height, self.asked = functions, height, 0

    def observe(self, x: Array) -> Steps:
        self.asked += 1
        return Steps(self.functions, self.height, x)


class Scaled(Staircase):
    """With a curvature model that is the objective's own, times a factor."""

    factor = 3.0

    def curvature(self, x: Array) -> Callable[[Any], Any]:
        return lambda g: g / self.factor


class Overstepping(Scaled):
    """With a model that is a tenth of the curvature: steps are ten times too long, and must be refused."""

    factor = 0.1


class Varying(Staircase):
    """With a curvature model of each run's own, which changes from point to point."""

    def curvature(self, x: Array) -> Callable[[Any], Any]:
        scale = 1.0 + (np.asarray(to_numpy(x)) ** 2).sum(axis=1)[:, None, None]
        return lambda g: g / scale


def staircase(
    function: Smooth = bowl,
    bound: Any = 0.2,
    height: float = 1e-3,
    *,
    engine: str = "numpy",
    start: Any = (0.0, 0.0),
    kind: type[Staircase] = Staircase,
    primal: mm.DistanceGenerator | None = None,
    data: mm.Source | None = None,
) -> mm.RefreshedProblem:
    """Return: the nearest point to the mean of the points whose staircase is at most the bound."""
    measure = kind([function], height)
    data = mm.Finite({"points": POINTS}, engine=engine) if data is None else data
    first = measure.observe(np.asarray(start, dtype=float)[None]).surrogates()
    return mm.RefreshedProblem(
        HalfSquare(),
        [side.with_bound(bound) for side in first],
        mm.Ball(2, 4.0) if primal is None else primal,
        data,
        start=np.asarray(start, dtype=float),
        measure=measure,
    )


def best_on_a_grid(function: Smooth, bound: float, radius: float = 4.0) -> float:
    """The least objective over grid points with s(x) <= bound, refined around the best one."""
    center, width, least = np.zeros(2), radius, np.inf
    for _ in range(12):
        axes = [np.linspace(c - width, c + width, 161) for c in center]
        grid = np.stack([axis.ravel() for axis in np.meshgrid(*axes)], axis=1)
        inside = (function(grid)[0] <= bound) & ((grid**2).sum(axis=1) <= radius**2)
        objective = 0.5 * ((grid - POINTS.mean(axis=0)) ** 2).sum(axis=1) + spread()
        best = int(np.argmin(np.where(inside, objective, np.inf)))
        center, width, least = grid[best], width / 4.0, float(objective[best])
    return least


def nearest_in_the_bowl(bound: float) -> float:
    """The least objective where x_1^2 + x_2^2 / 4 <= bound, by a conic solver."""
    import cvxpy as cp

    x = cp.Variable(2)
    objective = 0.5 * cp.sum_squares(x - POINTS.mean(axis=0)) + spread()
    problem = cp.Problem(cp.Minimize(objective), [cp.square(x[0]) + 0.25 * cp.square(x[1]) <= bound])
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)
