"""The portfolio: the reference, the solver, the measures, the refusals."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.reference import solve_exact
from minmaxcon_problems.cvar_portfolio import plugin, tail_mean
from tests.problems import plugin_laws as laws

SMALL: dict[str, Any] = {"assets": 6, "scenarios": 400}


@cache
def problem() -> mm.MinMaxProblem:
    return plugin.load(**SMALL)


@cache
def optimum() -> float:
    """Without t and without smoothing: the sum of the largest losses, 40 of 400."""
    cp = pytest.importorskip("cvxpy")
    returns = problem().details.train
    w = cp.Variable(returns.shape[1], nonneg=True)
    tail = cp.sum_largest(-(returns @ w), 40) / 40.0
    program = cp.Problem(cp.Minimize(-12.0 * (returns.mean(0) @ w)), [cp.sum(w) == 1.0, tail <= 5.0])
    program.solve(solver=cp.CLARABEL)
    return float(program.value)


def test_the_exact_form_is_the_mean_of_the_largest_losses() -> None:
    exact = solve_exact(plugin.load(**SMALL, smoothing=0.0))
    assert exact.objective == pytest.approx(optimum(), abs=1e-5)
    assert exact.constraints[0] == pytest.approx(0.0, abs=1e-6)  # it binds


def test_the_smooth_form_is_cautious_and_near() -> None:
    exact = solve_exact(problem())
    assert optimum() - 1e-6 <= exact.objective <= optimum() + 1e-3 * abs(optimum())
    assert tail_mean(-problem().details.train @ exact.x[:-1], 0.9) <= 5.0 + 1e-6


def test_the_solver_reaches_it() -> None:
    """With full passes: batches are noisy here, a tenth of the rows being what the constraint is about."""
    laws.solver_reaches(problem(), solve_exact(problem()).objective, mm.MirrorProx())


def test_the_value_at_risk_of_any_mixture_lies_in_the_box() -> None:
    built = plugin.load(**SMALL, beta=0.5)
    train, unit = built.details.train, built.details.unit
    for w in built.primal.parts[0].sample(np.random.default_rng(0), 500):
        assert abs(np.quantile(-train @ w, 0.5, method="inverted_cdf")) <= unit


@pytest.mark.parametrize("beta", [0.5, 0.9, 0.973])
def test_tail_mean_is_the_least_over_t(beta: float) -> None:
    losses = np.random.default_rng(0).normal(size=97)
    least = min(t + np.maximum(losses - t, 0.0).mean() / (1.0 - beta) for t in losses)
    assert tail_mean(losses, beta) == pytest.approx(least)


def test_measures_and_start() -> None:
    x, measured = laws.evaluation_agrees(plugin, problem())
    details = problem().details
    for part, returns in (("train", details.train), ("test", details.test)):
        losses = -returns @ x[:-1]
        assert measured[part]["expected_return"] == pytest.approx(-12.0 * losses.mean())
        assert measured[part]["cvar"] == pytest.approx(np.sort(losses)[-40:].mean())
    assert measured["train"]["cvar"] <= measured["values"][0]
    laws.starts_strictly_feasible(problem())
    laws.starts_strictly_feasible(plugin.load([0.5, 20.0], beta=0.99))


@pytest.mark.parametrize(
    "option, value",
    [
        *[("bound", bad) for bad in (0.0, "some", [1.0, -1.0], [], float("nan"))],
        *[("beta", bad) for bad in (0.4, 1.0, "high", float("nan"))],
        *[
            ("smoothing", -1.0),
            ("smoothing", "some"),
            ("assets", 3),
            ("assets", 5.5),
            ("scenarios", 10),
        ],
    ],
)
def test_refusals(option: str, value: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=option):
        plugin.load(**{option: value})
