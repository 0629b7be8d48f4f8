"""What is claimed does not depend on units: objectives scaled by powers of ten and shifted, in single precision too."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.core import Points
from minmaxcon.core.certificate import nearby_variation, optimality
from minmaxcon.reference import solve_exact
from tests import cases
from tests.problem_library import HalfSquare, Linear, Robust

Array = Any

UNITS = {
    "1e-6": (1e-6, 0.0),
    "1e-4": (1e-4, 0.0),
    "1e4": (1e4, 0.0),
    "shifted": (1.0, 1e3),
    "tiny, shifted": (1e-5, 1.0),
}
SOLVERS = {
    "sfls": lambda: mm.SFLS(oracle=mm.SMD(steps=300, batch_size=60), levels=6),
    "mirror_prox": lambda: mm.SFLS(oracle=mm.MirrorProx(steps=40), levels=8),
    "conex": cases.SOLVERS["conex"],
    "switching": cases.SOLVERS["switching"],
    "primal_dual": cases.SOLVERS["primal_dual"],
}


class InUnits(HalfSquare):
    """The half square in another unit, and with another origin."""

    def __init__(self, scale: float, shift: float) -> None:
        super().__init__(scale=scale)
        self.shift = shift

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        return replace(found, F=found.F + self.shift)


def measured(scale: float = 1.0, shift: float = 0.0, seed: int = 0) -> mm.MinMaxProblem:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(100, 5)) + rng.normal(size=5)
    data = mm.Finite({"points": points, "costs": 0.3 * rng.normal(size=(100, 5)) + rng.normal(size=5)})
    start = -0.4 * points.mean(axis=0)
    room = float(data.arrays["costs"].mean(0) @ (0.5 * points.mean(axis=0) - 0.5 * start))
    bounds = [float(data.arrays["costs"].mean(0) @ start) + 0.5 * abs(room) + 0.05, 1.5]
    constraints = [Linear(bounds[0]), Robust(5, 0.2, bounds[1] + float(data.arrays["costs"].mean(0) @ start))]
    return mm.MinMaxProblem(InUnits(scale, shift), constraints, mm.Ball(5, 3.0), data, start=start)


@cache
def known(seed: int) -> tuple[float, float]:
    """Return the objective at the start and its optimal value, in the ordinary unit."""
    problem = measured(seed=seed)
    assert (Points.first(problem, problem.start_point()).violation < 0).all()
    first = float(Points.measured(problem, problem.start_point()).objective[0])
    return first, float(solve_exact(problem).objective)


def left(solution: mm.Solution, seed: int, scale: float, shift: float) -> float:
    """Return the share of the range from the start to the optimum that is left."""
    first, best = known(seed)
    return ((float(solution.objective) - shift) / scale - best) / (first - best)


@pytest.mark.parametrize("units", ["1e-6", "tiny, shifted"])
@pytest.mark.parametrize("name", SOLVERS)
def test_solved_means_the_same_in_all_units(name: str, units: str) -> None:
    scale, shift = UNITS[units]
    solution = mm.solve(measured(scale, shift), SOLVERS[name]())
    assert solution.status is not mm.Status.SOLVED or left(solution, 0, scale, shift) <= 0.0051
    certificate = solution.certificate
    assert (certificate.lower - shift) / scale <= known(0)[1] * (1 + 1e-9) + 1e-9 / scale * shift


@pytest.mark.rel
@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("name", SOLVERS)
def test_solved_means_the_same_in_all_units_of_ten_problems(name: str, units: str) -> None:
    scale, shift = UNITS[units]
    for seed in range(10):
        solution = mm.solve(measured(scale, shift, seed), SOLVERS[name](), seed=seed)
        assert solution.status is not mm.Status.SOLVED or left(solution, seed, scale, shift) <= 0.0051


@pytest.mark.parametrize("units", ["1e-6", "shifted"])
def test_exact_passes_solve_in_all_units(units: str) -> None:
    """A method whose duals are exact is not only honest: it ends as solved."""
    scale, shift = UNITS[units]
    solution = mm.solve(measured(scale, shift), mm.SFLS(oracle=mm.MirrorProx(steps=100), levels=25))
    assert solution.status is mm.Status.SOLVED
    assert left(solution, 0, scale, shift) <= 0.0051


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_a_start_at_the_optimum_is_solved_in_all_units(scale: float) -> None:
    problem = measured(scale)
    assert isinstance(problem.data, mm.Finite)
    mean = problem.data.arrays["points"].mean(axis=0)
    bounds = Points.measured(problem, mean[None]).constraints[0] + problem.bounds()[0] + 0.5
    problem = replace(problem, start=mean).with_bounds(*map(float, bounds))
    for solver in (mm.SFLS(oracle=mm.SMD(steps=100)), mm.PrimalDual(steps=200, evaluations=2)):
        solution = mm.solve(problem, solver)
        assert solution.status is mm.Status.SOLVED
        assert solution.certificate.gap <= 1e-6 * scale


def test_the_yardstick_has_the_unit_of_the_objective() -> None:
    position = mm.Position.start(np.random.default_rng(0))
    plain, other = (
        nearby_variation(problem, problem.start_point(), 1e-3, position)
        for problem in (measured(), measured(1e-4, 7.0))
    )
    assert plain > 0
    assert other == pytest.approx(1e-4 * plain, rel=1e-6)
    # what is claimed is the worst case over all optimal values between the bounds
    for best in np.linspace(0.3, 0.5, 5):
        gap, span = optimality(0.5, 0.3, 1.1, 0.0)
        assert (0.5 - best) / (1.1 - best) <= gap / span + 1e-15


@pytest.mark.parametrize("engine", ["numpy", "torch"])
@pytest.mark.parametrize(
    "solver",
    [mm.SFLS(oracle=mm.SMD(steps=100, batch_size=20), levels=3), mm.PrimalDual(steps=100, evaluations=2)],
    ids=["sfls", "primal_dual"],
)
def test_points_called_feasible_in_single_precision_are_feasible_in_double(solver: mm.Solver, engine: str) -> None:
    """On the numbers that the data hold, whatever is lost by sums of large terms in single precision."""
    offset = 1000.0
    rng = np.random.default_rng(1)
    points, costs = rng.normal(size=(300, 3)) + offset, rng.normal(size=(300, 3)) + np.array([offset, 1.0, 0.5])
    start = np.array([-0.5, 0.0, 0.0])
    room = float(costs.mean(axis=0) @ start) + 0.3
    single = mm.Finite({"points": points, "costs": costs}, engine=engine, dtype="float32")
    problem = mm.MinMaxProblem(HalfSquare(), [Linear(room)], mm.Ball(3, 2.0), single, start=start)
    solution = mm.solve(problem, solver)
    double = replace(problem, data=mm.Finite({name: np.asarray(rows) for name, rows in single.arrays.items()}))
    true = Points.measured(double, np.asarray(solution.x)[None])
    assert solution.objective == pytest.approx(float(true.objective[0]), rel=1e-12)
    assert np.asarray(solution.constraints) == pytest.approx(true.constraints[0], abs=1e-9 * (1 + offset))
    assert solution.feasible == bool(true.feasible[0])
    assert solution.feasible
