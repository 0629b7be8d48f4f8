"""The toy: its formulas against brute force, the reference and the solver."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.reference import level_value, solve_exact
from minmaxcon_problems.toy import level_function, optimum, plugin
from tests.problems import plugin_laws as laws

SETTINGS = [(2.0, 1.0, 1.0), (2.0, 0.3, 0.5), (1.0, 1.0, 0.1), (1.0, 1.6, 0.7)]  # the last bound does not bind


@cache
def problem() -> mm.MinMaxProblem:
    return plugin.load(samples=200)


@pytest.mark.parametrize("center, bound, noise", SETTINGS)
def test_the_optimum_is_the_formula(center: float, bound: float, noise: float) -> None:
    exact = solve_exact(plugin.load(bound, center=center, noise=noise, samples=50))
    x, objective, multiplier = optimum(center, bound, noise)
    assert exact.x[0] == pytest.approx(x, abs=1e-5)
    assert exact.objective == pytest.approx(objective, abs=1e-8)
    assert exact.multipliers[0] == pytest.approx(multiplier, abs=1e-5)


@pytest.mark.parametrize("center, bound, noise", SETTINGS)
def test_the_level_set_function_is_the_formula(center: float, bound: float, noise: float) -> None:
    """At levels in all three pieces, by a fine grid over x and by the conic solver on the samples."""
    built = plugin.load(bound, center=center, noise=noise, samples=50)
    best = optimum(center, bound, noise)[1]
    levels = np.concatenate([np.linspace(best - 2.0, best + 3.0 * center**2 + bound, 12), [best]])
    grid = np.linspace(-2.0 * center, 2.0 * center, 400_001)
    objective = 0.5 * (grid - center) ** 2 + 0.5 * noise**2
    found = [level_function(center, bound, noise, r) for r in levels]
    brute = [np.maximum(objective - r, np.abs(grid) - bound).min() for r in levels]
    assert found == pytest.approx(brute, abs=1e-4)
    assert found == pytest.approx([level_value(built, float(r)) for r in levels], abs=1e-6)
    assert found[-1] == pytest.approx(0.0, abs=1e-12)


def test_the_slope_at_the_root_is_minus_the_weight_of_the_objective() -> None:
    _, best, multiplier = optimum(2.0, 1.0, 1.0)
    slope = (level_function(2.0, 1.0, 1.0, best + 1e-6) - level_function(2.0, 1.0, 1.0, best - 1e-6)) / 2e-6
    assert slope == pytest.approx(-1.0 / (1.0 + multiplier), rel=1e-6)


def test_the_solver_reaches_it() -> None:
    laws.solver_reaches(problem(), optimum(2.0, 1.0, 1.0)[1])


def test_several_bounds() -> None:
    built = plugin.load([0.5, 1.0, 1.5], samples=200)
    laws.several_bounds_in_one_solve(built)
    assert solve_exact(built).objective == pytest.approx([optimum(2.0, b, 1.0)[1] for b in (0.5, 1.0, 1.5)])


def test_measures_and_start() -> None:
    x, measured = laws.evaluation_agrees(plugin, problem())
    assert measured["train"]["distance_to_target"] == pytest.approx(abs(x[0] - problem().data.arrays["target"].mean()))
    laws.starts_strictly_feasible(problem())


@pytest.mark.parametrize(
    "option, value",
    [
        *[("bound", bad) for bad in (0.0, "one", [1.0, -1.0], [], float("nan"))],
        *[
            ("center", -1.0),
            ("noise", 0.0),
            ("noise", [1.0, 2.0]),
            ("samples", 1),
            ("samples", 2.5),
        ],
    ],
)
def test_refusals(option: str, value: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=option):
        plugin.load(**{option: value})
