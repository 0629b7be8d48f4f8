"""Lower bounds: by a family's closed form, by a general method, and none where convexity is not declared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.arrays import namespace
from minmaxcon.core.lower import bound_at, lower_bound, minimize_lagrangian
from tests import cases
from tests.problem_library import HalfSquare, Linear

Array = Any


def duals(level: mm.LevelProblem, seed: int, count: int = 1) -> tuple[Array, Array]:
    dual = level.dual()
    point = dual.sample(np.random.default_rng(seed), count)
    return point.weights, dual.scaled(point)


KINDS = ("fair_auc_inter", "quadratic", "portfolio", "worst_group", "robust", "mixed_geometry")
ONCE = {("fair_auc_inter", False), ("worst_group", True), ("portfolio", False), ("mixed_geometry", True)}
"""What is tried every time; the rest of the crossing is a promise."""


@pytest.mark.parametrize(
    "name, proximal, seeds",
    [
        pytest.param(name, proximal, seeds, marks=() if seeds == 1 and (name, proximal) in ONCE else pytest.mark.rel)
        for name in KINDS
        for proximal in (False, True)
        for seeds in (1, 3)
    ],
)
def test_a_general_method_comes_near_the_minimum(name: str, proximal: bool, seeds: int) -> None:
    """The Frank-Wolfe bound is below every value of the Lagrangian, and near the least one found."""
    problem = cases.problem(name)
    if proximal:
        problem = problem.with_proximal(problem.start_point()[0], 0.5)
    level = problem.at_level(0.3)
    for seed in range(seeds):
        y, a = duals(level, seed)
        x, bound = minimize_lagrangian(level, y, a, problem.start_point(), iterations=800)
        value = float(level.lagrangian(x, y, a)[0][0])
        points = problem.primal.sample(np.random.default_rng(seed), 300)
        many = (np.tile(part, (300, 1)) for part in (y, a))
        assert bound[0] <= level.lagrangian(points, *many)[0].min() + 1e-9
        assert bound[0] <= value + 1e-12
        assert value - bound[0] <= 1e-2 * (1 + abs(value))
        assert bool(problem.primal.contains(x, 1e-9).all())


@pytest.mark.parametrize("name", ["quadratic", "robust", "worst_group", "mean_gap", "portfolio"])
@pytest.mark.parametrize("unit", [1e-12, 1.0])
def test_a_smooth_lagrangian_is_minimised_to_rounding_in_few_steps(name: str, unit: float) -> None:
    """Where values no longer tell a step that is too long, so that it would overshoot for ever, gradients do."""
    problem = cases.problem(name)
    level = problem.at_level(0.3)
    for seed in range(3):
        y, a = (unit * part for part in duals(level, seed))
        x, bound = minimize_lagrangian(level, y, a, problem.start_point(), iterations=80)
        value, _, size = level.lagrangian_terms(x, y, a)
        assert value[0] - bound[0] <= 5e-10 * size[0]


def test_a_kink_is_passed_though_the_bound_rises_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a run that rounding has stopped ends before its tolerance or its last step."""
    problem = cases.problem("cvar")
    level = problem.at_level(0.3)
    for seed in range(1, 3):
        y, a = duals(level, seed)
        found = minimize_lagrangian(level, y, a, problem.start_point())[1]
        with monkeypatch.context() as patch:
            patch.setattr("minmaxcon.core.lower._PATIENCE", 10**9)
            assert minimize_lagrangian(level, y, a, problem.start_point())[1] == found


def test_closed_form_and_general_method_agree() -> None:
    """Fair AUC's linear system against accelerated prox steps, for several runs at once."""
    problem = cases.fair_auc("inter_group", [0.1, 0.2, 0.3], radius=1.0)
    level = problem.at_level([0.3, 0.35, 0.4])
    y, a = duals(level, 0, 3)
    closed = lower_bound(level, y, a, problem.start_point(3))
    _, general = minimize_lagrangian(level, y, a, problem.start_point(3), iterations=1000)
    assert (general <= closed + 1e-9).all()
    assert general == pytest.approx(closed, abs=1e-4)


class Counted(HalfSquare):
    """A function without a closed form that counts its evaluations."""

    seen = 0

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        Counted.seen += 1
        return super().evaluate(x, batch)


@pytest.mark.parametrize("primal", [mm.Ball(3, 6.0), mm.Simplex(3)], ids=repr)
def test_a_minimisation_ends_when_its_bound_is_good_enough_for_what_it_serves(primal: mm.DistanceGenerator) -> None:
    """Within a tenth of the gap to upper, at once below a known bound, and to the end where there is neither."""
    problem = mm.MinMaxProblem(Counted(), [Linear(0.4)], primal, cases.finite("points", "costs"))
    level, start = problem.at_level(0.3), problem.start_point()
    y, a = np.array([[0.8, 0.2]]), np.zeros((1, 0))

    def bound(**options: Any) -> tuple[float, int]:
        Counted.seen = 0
        return float(lower_bound(level, y, a, start, **options)[0]), Counted.seen

    best, most = bound()
    for gap in (1.0, 0.1, 0.01):
        found, passes = bound(upper=np.array([best + gap]))
        assert passes < most
        assert found <= best + 1e-7
        assert best - found <= 0.1 * (best + gap - found) + 1e-7
    assert bound(known=np.array([best + 100.0]))[1] <= 2
    assert bound(upper=np.array([np.inf]), known=np.array([-np.inf])) == (best, most)


def test_runs_that_end_at_different_times_have_the_bounds_of_the_runs_alone() -> None:
    problem = cases.problem("cvar")
    y, a = duals(problem.at_level([0.3, 0.3, 0.3]), 1, 3)
    upper, known = np.array([20.0, 8.0, np.inf]), np.array([-np.inf, -np.inf, 0.5])
    together = lower_bound(problem.at_level([0.3] * 3), y, a, problem.start_point(3), upper=upper, known=known)
    for j in range(3):
        part = slice(j, j + 1)
        alone = lower_bound(
            problem.at_level(0.3), y[part], a[part], problem.start_point(), upper=upper[part], known=known[part]
        )
        assert together[j] == pytest.approx(alone[0], abs=1e-12)


def test_the_gradient_of_the_lagrangian_is_its_slope() -> None:
    for name in ("fair_auc_intra", "worst_group_regularised", "cvar", "portfolio"):
        problem = cases.problem(name).with_proximal(cases.problem(name).start_point()[0], 0.7)
        level = problem.at_level(0.3)
        y, a = duals(level, 1)
        x = 0.5 * problem.primal.sample(np.random.default_rng(0), 1) + 0.5 * problem.primal.center
        gradient = level.lagrangian(x, y, a)[1][0]
        for j in range(x.size):
            step = 1e-6 * np.eye(x.size)[j]
            ahead, behind = (level.lagrangian(x + s, y, a)[0][0] for s in (step, -step))
            assert gradient[j] == pytest.approx((ahead - behind) / 2e-6, abs=1e-5)


def test_no_bound_is_claimed_without_convexity() -> None:
    """A weakly convex function has none, until the proximal term outweighs its modulus."""
    problem = cases.problem("regression_weakly_convex")
    modulus = problem.objective.weak_convexity
    start = problem.start_point()

    def bound(question: mm.MinMaxProblem) -> float:
        level = question.at_level(0.3)
        return float(lower_bound(level, np.array([[0.5, 0.5]]), np.zeros((1, 0)), start)[0])

    assert bound(problem) == -np.inf
    assert bound(problem.with_proximal(start[0], 0.9 * modulus)) == -np.inf
    assert np.isfinite(bound(problem.with_proximal(start[0], 1.1 * modulus)))
    assert problem.at_level(0.3).modulus == pytest.approx(modulus)
    level, half, twice = problem.at_level(0.3), np.array([[0.5, 0.5]]), problem.with_proximal(start[0], 1.1 * modulus)
    assert bound_at(level, start, half, np.zeros((1, 0))) == -np.inf
    assert bound_at(twice.at_level(0.3), start, half, np.zeros((1, 0))) <= bound(twice) + 1e-9
    both = problem.with_proximal(np.tile(start, (3, 1)), modulus * np.array([0.9, 1.1, 0.5]))
    found = lower_bound(both.at_level(0.3), np.tile(half, (3, 1)), np.zeros((3, 0)), np.tile(start, (3, 1)))
    assert found[1] == pytest.approx(bound(twice), rel=1e-9)
    assert (found[[0, 2]] == -np.inf).all()
    assert problem.with_proximal(start[0], modulus + 1.0).at_level(0.3).modulus == pytest.approx(-1.0)


def test_duals_whose_weight_has_vanished() -> None:
    """Weights that have underflowed to 0 divide nothing."""
    problem = cases.problem("fair_auc_inter")
    level = problem.at_level(0.3)
    y = np.array([[1.0, 0.0, 0.0]])
    value, gradient = level.lagrangian(problem.start_point(), y, np.zeros((1, 5)))
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()
    assert np.isfinite(lower_bound(level, y, np.zeros((1, 5)), problem.start_point())).all()


@pytest.mark.parametrize("engine", ["numpy", "torch"])
def test_bounds_in_single_precision_do_not_profit_from_rounding(engine: str) -> None:
    """On the same numbers, held in float64, the bounds are nearly the same and no higher than the least value."""
    rows = cases.labelled(5, n=400, d=8)
    single = cases.fair_auc("inter_group", 0.1, rows=rows, engine=engine, dtype="float32")
    assert isinstance(single.data, mm.Finite)
    double = replace(single, data=mm.Finite(single.data.arrays, engine=engine))
    start = single.start_point()
    for seed in range(20):
        y, a = duals(cases.fair_auc("inter_group", 0.1, rows=rows).at_level(0.3), seed)
        y, a, x = (namespace(start).asarray(part, start) for part in (y, a, start))
        yd, ad, xd = map(namespace(start).double, (y, a, x))
        level = double.at_level(0.3)
        exact, bound = lower_bound(level, yd, ad, xd)[0], lower_bound(single.at_level(0.3), y, a, x)[0]
        best = double.family.lagrangian_minimizer(np.asarray(yd), np.asarray(ad), double.data)[0]
        value = float(level.lagrangian(namespace(start).asarray(best[None], xd), yd, ad)[0][0])
        assert exact - 1e-6 * abs(exact) <= bound <= value
