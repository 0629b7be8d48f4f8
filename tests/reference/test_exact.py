"""Exact solutions of whole problems: by hand, by duality, by perturbation, and against everything that is sampled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.arrays import to_numpy
from minmaxcon.reference import level_value, proximal_point, solve_exact
from minmaxcon.reference.solver import load_cvxpy, minimize
from tests.cases import PROBLEMS, TYPICAL, finite, optimum, problem, promises, quadratic
from tests.problem_library import HalfSquare, Linear

CONVEX = [name for name, case in PROBLEMS.items() if case.reference]
each_problem = pytest.mark.parametrize("name", CONVEX)


def values(given: mm.MinMaxProblem, x: Any) -> Any:
    """Return f_0, f_1, ... at points (N, d), by the problem's own exact evaluation."""
    like = given.data.like
    level = given.at_level(np.zeros(len(x)))
    return level.values(mm.arrays.namespace(like).asarray(np.asarray(x), like))


@each_problem
def test_the_cvxpy_form_is_the_maximum_that_solvers_see(name: str) -> None:
    given, rng = problem(name), np.random.default_rng(60)
    cp = load_cvxpy("a test")
    x = cp.Variable(given.primal.dimension)
    forms = [c.cvxpy_value(cp, x, given.data) for c in (given.objective, *given.constraints)]
    points = given.primal.sample(rng, 4)
    for point, seen in zip(points, values(given, points), strict=True):
        x.value = point
        np.testing.assert_allclose([float(form.value) for form in forms], seen, rtol=1e-9, atol=1e-9)


@each_problem
def test_the_optimum_is_feasible_and_as_the_problem_values_it(name: str) -> None:
    given, found = problem(name), optimum(name)
    assert found.status is mm.Status.SOLVED
    assert given.primal.contains(found.x, 1e-12 * (1.0 + np.abs(found.x).max()))
    assert found.constraints.max() <= 1e-7
    objective, *others = values(given, found.x[None])[0]
    assert objective == pytest.approx(found.objective, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(others - given.bounds()[0], found.constraints, rtol=1e-8, atol=1e-8)
    assert found.seconds > 0


@each_problem
def test_no_sampled_feasible_point_is_better(name: str) -> None:
    given, found = problem(name), optimum(name)
    rng = np.random.default_rng(61)
    points = found.x + 10.0 ** rng.uniform(-3.0, 0.0, (400, 1)) * (given.primal.sample(rng, 400) - found.x)
    objective, *others = values(given, points).T
    feasible = (given.bounds()[0] >= np.array(others).T).all(1)
    assert (objective[feasible] >= found.objective - 1e-6 * (1.0 + abs(found.objective))).all()


@each_problem
def test_multipliers_prove_the_optimum(name: str) -> None:
    """With the multipliers the Lagrangian's minimum over X is f*: a lower bound that meets the value."""
    given, found = problem(name), optimum(name)
    assert found.multipliers.min() >= -1e-9
    np.testing.assert_allclose(found.multipliers * found.constraints, 0.0, atol=1e-5)
    cp = load_cvxpy("a test")
    x = cp.Variable(given.primal.dimension)
    total = given.objective.cvxpy_value(cp, x, given.data)
    for multiplier, bound, constraint in zip(found.multipliers, given.bounds()[0], given.constraints, strict=True):
        total = total + max(multiplier, 0.0) * (constraint.cvxpy_value(cp, x, given.data) - bound)
    lower = minimize(cp, total, given.primal.cvxpy_constraints(cp, x)).value
    assert lower == pytest.approx(found.objective, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", promises(CONVEX, [*TYPICAL, "robust", "worst_group", "cvar", "mixed_geometry"]))
def test_the_level_function_vanishes_at_the_optimum_and_falls(name: str) -> None:
    given, best = problem(name), optimum(name).objective
    span = 0.1 * (1.0 + abs(best))
    below, at, above = level_value(given, [best - span, best, best + span])
    assert at == pytest.approx(0.0, abs=1e-6 * (1.0 + abs(best)))
    assert below > 0.0
    assert below <= span * (1.0 + 1e-6)
    assert above < 0.0
    assert above >= -span * (1.0 + 1e-6)
    points = given.primal.sample(np.random.default_rng(62), 200)
    level = values(given, points) - np.concatenate([[best + span], given.bounds()[0]])
    assert level.max(1).min() >= above - 1e-9


def test_the_nearest_point_of_a_half_space() -> None:
    given = quadratic(0.5)
    ((_, batch),) = given.data.chunks()
    mean, slope = batch["points"].mean(0), batch["costs"].mean(0)
    found = solve_exact(given)
    multiplier = max(0.0, (slope @ mean - 0.5) / (slope @ slope))
    assert multiplier > 0
    np.testing.assert_allclose(found.x, mean - multiplier * slope, atol=1e-6)
    assert found.multipliers[0] == pytest.approx(multiplier, abs=1e-6)
    spread = 0.5 * ((batch["points"] - mean) ** 2).sum(-1).mean()
    assert found.objective == pytest.approx(spread + 0.5 * multiplier**2 * (slope @ slope), rel=1e-8)


def test_multipliers_are_derivatives_in_the_bound() -> None:
    left, right = (solve_exact(quadratic(0.5 + shift)).objective for shift in (-1e-3, 1e-3))
    assert (left - right) / 2e-3 == pytest.approx(solve_exact(quadratic(0.5)).multipliers[0], rel=1e-4)


def test_infeasible_is_a_status_and_the_level_function_says_by_how_much() -> None:
    given = quadratic(-1e3)
    found = solve_exact(given)
    assert found.status is mm.Status.INFEASIBLE
    assert found.objective == np.inf
    assert np.isnan(found.x).all()
    ((_, batch),) = given.data.chunks()
    least = -6.0 * np.linalg.norm(batch["costs"].mean(0)) + 1e3
    assert level_value(given, 1e6) == pytest.approx(least, rel=1e-8)


def test_runs_are_solved_one_by_one() -> None:
    bounds = np.array([-1e3, 0.2, 0.5])
    found = solve_exact(quadratic(bounds))
    assert found.status == (mm.Status.INFEASIBLE, mm.Status.SOLVED, mm.Status.SOLVED)
    assert found.x.shape == (3, 3)
    assert found.constraints.shape == found.multipliers.shape == (3, 1)
    for j in (1, 2):
        alone = solve_exact(quadratic(bounds[j]))
        assert found.objective[j] == pytest.approx(alone.objective, rel=1e-9)
        np.testing.assert_allclose(found.x[j], alone.x, atol=1e-6)
    levels = level_value(quadratic(bounds), 5.0)
    assert levels.shape == (3,)
    assert levels[2] == pytest.approx(level_value(quadratic(0.5), 5.0), abs=1e-9)
    np.testing.assert_allclose(
        level_value(quadratic(bounds), [5.0, 5.0, 4.0])[2], level_value(quadratic(0.5), 4.0), atol=1e-9
    )


@pytest.mark.parametrize("primal", [mm.Ball(3, 6.0), mm.Simplex(3)], ids=["euclidean", "entropy"])
def test_a_proximal_term_is_part_of_every_function(primal: mm.DistanceGenerator) -> None:
    given = mm.MinMaxProblem(HalfSquare(), [Linear(2.0)], primal, finite("points", "costs"))
    center = np.array([0.2, 0.3, 0.5])
    near = given.with_proximal(center, 50.0)
    found = solve_exact(near)
    assert np.abs(found.x - center).max() < np.abs(solve_exact(given).x - center).max()
    pulled = 50.0 * primal.divergence(found.x, center)
    objective, constraint = values(given, found.x[None])[0] + pulled
    assert found.objective == pytest.approx(objective, rel=1e-8)
    assert found.constraints[0] == pytest.approx(constraint - 2.0, rel=1e-6, abs=1e-8)
    seen = to_numpy(near.at_level([0.0]).values(found.x[None]))[0]
    np.testing.assert_allclose(seen, [objective, constraint], rtol=1e-9)
    assert level_value(near, found.objective) == pytest.approx(0.0, abs=1e-6)


def test_proximal_centers_may_differ_between_runs() -> None:
    centers = np.array([[0.0, 0.0, 0.0], [1.0, -1.0, 0.5]])
    found = solve_exact(quadratic(0.5).with_proximal(centers, 3.0))
    for center, x in zip(centers, found.x, strict=True):
        np.testing.assert_allclose(x, solve_exact(quadratic(0.5).with_proximal(center, 3.0)).x, atol=1e-6)


def test_a_constraint_without_a_cvxpy_form_is_named() -> None:
    with pytest.raises(mm.Unsupported, match="RobustRegression has no cvxpy form"):
        solve_exact(problem("regression_weakly_convex"))


@pytest.mark.parametrize("call", [solve_exact, lambda x: proximal_point(x, [0.0], 1.0), lambda x: level_value(x, 0.0)])
def test_what_is_no_problem_is_refused(call: Any) -> None:
    with pytest.raises(mm.InvalidInput, match="problem='x': must be a MinMaxProblem"):
        call("x")
