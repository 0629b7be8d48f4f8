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
from minmaxcon.core.scaling import divided, in_units, row_scales
from minmaxcon.reference import solve_exact
from tests import cases
from tests.problem_library import HalfSquare, Linear, Robust

Array = Any

UNITS = {
    "1e-6": (1e-6, 0.0),
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


@pytest.mark.parametrize("units", [pytest.param("1e-6", marks=pytest.mark.rel), "tiny, shifted"])
@pytest.mark.parametrize("name", SOLVERS)
def test_solved_means_the_same_in_all_units(name: str, units: str) -> None:
    scale, shift = UNITS[units]
    solution = mm.solve(measured(scale, shift), SOLVERS[name]())
    assert solution.status is not mm.Status.SOLVED or left(solution, 0, scale, shift) <= 0.0051
    certificate = solution.certificate
    assert (certificate.lower - shift) / scale <= known(0)[1] * (1 + 1e-9) + 1e-9 / scale * shift


@pytest.mark.rel
@pytest.mark.parametrize("units", ["1e-6", "1e4", "tiny, shifted"])
@pytest.mark.parametrize("name", SOLVERS)
def test_solved_means_the_same_in_all_units_of_three_problems(name: str, units: str) -> None:
    scale, shift = UNITS[units]
    for seed in range(3):
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


@pytest.mark.parametrize(
    "solver, engine",
    [
        pytest.param(solver, engine, marks=pytest.mark.rel if (name, engine) == ("primal_dual", "torch") else ())
        for name, solver in {
            "sfls": mm.SFLS(oracle=mm.SMD(steps=100, batch_size=20), levels=3),
            "primal_dual": mm.PrimalDual(steps=100, evaluations=2),
        }.items()
        for engine in ("numpy", "torch")
    ],
    ids=["sfls-numpy", "sfls-torch", "primal_dual-numpy", "primal_dual-torch"],
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


QUICK = {
    "sfls": mm.SFLS(oracle=mm.SMD(steps=150, batch_size=30), levels=4),
    "mirror_prox": mm.SFLS(oracle=mm.MirrorProx(steps=40), levels=5),
    "conex": mm.ConEx(steps=600, batch_size=30, evaluations=3),
    "switching": mm.SwitchingSubgradient(steps=600, batch_size=30, test_size=100, evaluations=3),
    "primal_dual": mm.PrimalDual(steps=600, batch_size=30, evaluations=3),
}


class Multiple(Linear):
    """A linear function and its bound, both multiplied by one number."""

    def __init__(self, bound: float, factor: float) -> None:
        super().__init__(bound * factor)
        self.factor = factor

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        return mm.Evaluation(self.factor * found.F, found.G, lambda y, a: self.factor * found.pullback(y, a))


def constrained(factor: float, bound: float = 0.5) -> mm.MinMaxProblem:
    plain = cases.problem("quadratic")
    start = np.full(3, 3.0) if bound < 0 else plain.start
    return mm.MinMaxProblem(HalfSquare(), [Multiple(bound, factor)], plain.primal, plain.data, start=start)


@pytest.mark.parametrize(
    "name, factor",
    [
        *(("primal_dual", factor) for factor in (1e-10, 1e10)),
        ("sfls", 1e10),
        *(pytest.param(name, factor, marks=pytest.mark.rel) for name in QUICK for factor in (1e-9, 1e-5, 1e5, 1e9)),
    ],
)
def test_the_unit_of_a_constraint_does_not_matter(name: str, factor: float) -> None:
    """Functions that vary by very different amounts are divided by powers of two; results are in their own units."""
    best = float(cases.optimum("quadratic").objective)
    solution, plain = (mm.solve(constrained(unit), QUICK[name]) for unit in (factor, 1.0))
    first = float(Points.measured(constrained(1.0), constrained(1.0).start_point()).objective[0])
    span = first - best
    assert solution.feasible
    assert solution.certificate.lower <= best * (1 + 1e-9)
    assert solution.objective - best <= 0.1 * span + 2.0 * (plain.objective - best)
    assert best - solution.certificate.lower <= 0.1 * span + 2.0 * (best - plain.certificate.lower)
    slope = cases.arrays()["costs"].mean(axis=0)
    assert solution.constraints == pytest.approx([factor * (slope @ solution.x - 0.5)], rel=1e-9, abs=1e-12 * factor)


@pytest.mark.parametrize("factor", [1e-10, 1e10])
def test_a_search_and_a_proof_of_infeasibility_in_any_unit(factor: float) -> None:
    solver = mm.SFLS(oracle=mm.SMD(steps=200, batch_size=30), levels=2)
    assert mm.solve(constrained(factor, -2.5), solver).feasible
    assert mm.solve(constrained(factor, -50.0), solver).status is mm.Status.INFEASIBLE


def test_a_divided_question_is_the_same_question() -> None:
    """Values, gradients, proxes and maxima of inner blocks, and estimates put back into units, against the original."""
    rng = np.random.default_rng(0)
    for name in ("fair_auc_inter", "worst_group_regularised", "robust", "mean_gap"):
        problem = cases.problem(name)
        level = problem.at_level(0.3)
        k = level.bounds.shape[1]
        scales = 2.0 ** rng.integers(-30, 30, size=k)
        part, x = divided(level, scales), problem.primal.sample(rng, 1)
        assert part.values(x) * scales == pytest.approx(level.values(x), rel=1e-12)
        point = part.dual().sample(rng, 1)
        y, a = point.weights, part.dual().scaled(point)
        value, gradient = part.lagrangian(x, y, a)
        plain = level.lagrangian(x, y / scales, a / scales[level.dual().owner])
        assert value == pytest.approx(plain[0], rel=1e-9)
        assert gradient == pytest.approx(plain[1], rel=1e-9)
        # the prox minimises: no drawn point has a smaller value
        u, v = rng.normal(size=(1, k)), rng.normal(size=(1, a.shape[1]))
        moved, dual = part.dual().prox(point, u, v, 0.7), part.dual()

        costs = [
            dual.divergence(z, point) / 0.7 + dual.penalty(z) - np.vecdot(u, z.weights) - np.vecdot(v, dual.scaled(z))
            for z in (moved, dual.sample(rng, 200))
        ]
        assert (costs[0] <= costs[1] + 1e-9).all()
        estimate = mm.SMD(steps=3, batch_size=5).query(part, mm.Start(x, None, mm.Position.start(rng)))
        back = in_units(estimate, level, scales)
        assert back.weights.sum() == pytest.approx(1.0)
        assert back.values == pytest.approx(estimate.values * scales)
        assert back.weights * scales / (back.weights * scales).sum() == pytest.approx(estimate.weights)
    assert (row_scales(cases.problem("fair_auc_inter")) == 1).all()
    assert (row_scales(constrained(1e10))[1] / row_scales(constrained(1.0))[1]) == pytest.approx(1e10, rel=5.0)
