"""The bounds of the theory, counted over seeds, on problems whose H and f* are known exactly."""

from __future__ import annotations

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.core.lower import lower_bound, minimize_lagrangian
from minmaxcon.reference import level_value
from tests.cases import optimum, problem

SEEDS = [40, pytest.param(200, marks=pytest.mark.rel)]
LEVELS = {"fair_auc_inter": (0.5, 0.35), "quadratic": (3.0, 2.0), "worst_group": (0.0,)}


def query(name: str, level: float, seed: int, oracle: mm.SMD) -> tuple[mm.Estimate, mm.LevelProblem]:
    question = problem(name).at_level(level)
    start = mm.Start(problem(name).start_point(1), None, mm.Position.start(np.random.default_rng(seed)))
    return oracle.query(question, start), question


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("name", LEVELS)
def test_bounds_of_a_level(name: str, seeds: int) -> None:
    """D <= H always; H <= U within the tolerance at confidence .9, asked for in 85 of 100 seeds."""
    oracle = mm.SMD(steps=300, batch_size=20)
    for level in LEVELS[name]:
        exact = float(level_value(problem(name), level))
        tolerance = 0.02 * (1 + abs(exact))
        above = 0
        for seed in range(seeds):
            found, question = query(name, level, seed, oracle)
            below = float(lower_bound(question, found.weights, found.scaled, found.x)[0])
            assert below <= exact + 1e-7
            assert float((question.values(found.x) - question.bounds).max()) >= exact - 1e-7
            above += exact <= float(found.upper[0]) + tolerance
        assert above >= 0.85 * seeds


@pytest.mark.parametrize("seeds", SEEDS)
def test_certificates_and_feasible_iterates(seeds: int) -> None:
    """f* lies in every certificate; all outer iterates are feasible in at least 85 of 100 runs."""
    name = "fair_auc_inter"
    best = float(optimum(name).objective)
    feasible = 0
    for seed in range(seeds):
        solution = mm.solve(problem(name), mm.SFLS(oracle=mm.SMD(steps=600, batch_size=50), tolerance=0.05), seed=seed)
        assert solution.certificate.lower - 1e-7 <= best <= solution.certificate.upper + 1e-7
        assert solution.feasible
        feasible += bool((solution.trace["violation"] <= 0).all())
    assert feasible >= 0.85 * seeds


@pytest.mark.parametrize("rule", ["adaptive", "inverse_sqrt", "theory"])
def test_without_noise_u_bounds_the_value_at_the_average(rule: str) -> None:
    """P(r, x_bar) <= U when u, v and x_bar share their weights: one distinct sample, so that nothing is random."""
    base = problem("fair_auc_inter")
    full = base.data.arrays
    one = mm.Finite({"features": full["features"][None].repeat(1, 0)[0], "weights": full["weights"]})

    class Whole(mm.Finite):
        """Every batch is the whole data set."""

        def draw(self, position, steps, batch_size):  # type: ignore[no-untyped-def]
            return iter([self.arrays] * steps), position

    data = Whole(one.arrays)
    for level in (0.5, 0.3):
        question = mm.MinMaxProblem(base.objective, base.constraints, base.primal, data, base.start).at_level(level)
        start = mm.Start(base.start_point(1), None, mm.Position.start(np.random.default_rng(0)))
        found = mm.SMD(steps=200, step_rule=rule).query(question, start)
        value = float((question.values(found.x) - question.bounds).max())
        assert value <= float(found.upper[0]) + 1e-10
        assert float(lower_bound(question, found.weights, found.scaled, found.x)[0]) <= value + 1e-10


def test_averaged_duals_average_the_scaled_variables() -> None:
    """The average of a = y alpha, not of alpha: it must lie in y_bar times the inner set, and bound H when used."""
    found, question = query("fair_auc_inter", 0.4, 0, mm.SMD(steps=300, batch_size=20))
    dual = question.dual()
    reach = np.array([block.reach for block in dual.blocks])[dual.owner]
    assert np.all(np.abs(found.scaled[0]) <= found.weights[0][dual.owner] * reach + 1e-12)
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("name", ["fair_auc_inter", "quadratic", "portfolio", "worst_group", "robust"])
def test_general_minimisation_of_the_lagrangian(name: str) -> None:
    """The Frank-Wolfe bound is below the value and tight after enough steps."""
    question = problem(name).at_level(0.3)
    dual = question.dual()
    point = dual.sample(np.random.default_rng(0), 1)
    x, bound = minimize_lagrangian(
        question, point.weights, dual.scaled(point), problem(name).start_point(1), iterations=800
    )
    value = float(question.lagrangian(x, point.weights, dual.scaled(point))[0][0])
    assert bound[0] <= value + 1e-12
    assert value - bound[0] <= 1e-2 * (1 + abs(value))
