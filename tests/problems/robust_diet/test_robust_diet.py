"""The robust diet: the reference, the solver, the measures, the refusals."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.reference import solve_exact
from minmaxcon_problems.robust_diet import FOODS, NUTRIENTS, TABLE, plugin
from tests.problems import plugin_laws as laws

SMALL: dict[str, Any] = {"nutrients": ("energy", "protein", "calcium", "vitamin_c"), "samples": 200}
ROWS = [NUTRIENTS.index(name) for name in SMALL["nutrients"]]


@cache
def problem() -> mm.MinMaxProblem:
    return plugin.load(**SMALL)


@cache
def optimum() -> float:
    """One second-order cone for the size of the diet, shared by all nutrients, in place of the maxima."""
    cp = pytest.importorskip("cvxpy")
    price, contents = problem().details.price, problem().details.contents
    x, size = cp.Variable(len(FOODS), nonneg=True), cp.Variable()
    table = contents.mean(0)[ROWS]
    cone = [cp.SOC(size, x), table @ x >= 1.0 + 0.1 * size, x <= 0.6]
    program = cp.Problem(cp.Minimize(price.mean(0) @ x), cone)
    program.solve(solver=cp.CLARABEL)
    return float(program.value)


def test_the_reference_solves_the_same_problem() -> None:
    exact = solve_exact(problem())
    assert exact.objective == pytest.approx(optimum(), abs=1e-6)
    assert exact.constraints.max() == pytest.approx(0.0, abs=1e-6)


def test_the_solver_reaches_it() -> None:
    laws.solver_reaches(problem(), optimum(), mm.SMD(steps=400, batch_size=60))  # short queries take longer


def test_no_error_of_the_table_within_the_ball_makes_the_diet_insufficient() -> None:
    x, contents = solve_exact(problem()).x, problem().details.contents
    errors = np.random.default_rng(0).normal(size=(2000, len(FOODS)))
    errors = (
        0.1 * np.concatenate([errors, -x[None]]) / np.linalg.norm(np.concatenate([errors, -x[None]]), axis=1)[:, None]
    )
    met = np.stack([(row + errors) @ x for row in contents.mean(0)[ROWS]])
    assert met.min() == pytest.approx(1.0, abs=1e-6)  # the worst error is along the diet itself
    assert met[:, -1] == pytest.approx(met.min(axis=1))


def test_without_uncertainty_it_is_stiglers_linear_program() -> None:
    """Nearly no variation and no ball: the cost of the plain linear program over the table."""
    from scipy.optimize import linprog

    built = plugin.load(size=1e-9, variation=1e-9, samples=2, most=2.0)
    plain = linprog(np.ones(len(FOODS)), A_ub=-TABLE.T, b_ub=-np.ones(len(NUTRIENTS)), bounds=(0.0, 2.0))
    assert solve_exact(built).objective == pytest.approx(plain.fun, abs=1e-6)
    # Stigler's own minimum over all 77 foods is 39.69 dollars a year (Dantzig's solution); ours has 18 of them.
    assert 365.0 * plain.fun / 10.0 == pytest.approx(39.7, abs=1.0)


def test_nutrients_together_are_each_alone() -> None:
    x, batch = laws.points(problem()), laws.whole(problem())
    together = problem().constraint_family.evaluate(x, batch)
    y = np.random.default_rng(0).uniform(size=(3, 4))
    a = np.random.default_rng(1).normal(size=(3, 4, len(FOODS)))
    alone = [c.evaluate(x, batch) for c in problem().constraints]
    np.testing.assert_allclose(together.F, np.stack([each.F for each in alone], axis=-1), rtol=1e-12)
    np.testing.assert_allclose(together.G, np.concatenate([each.G for each in alone], axis=-1))
    pulled = sum(each.pullback(y[:, i], a[:, i]) for i, each in enumerate(alone))
    assert together.pullback(y, a.reshape(3, -1)) == pytest.approx(pulled)


def test_measures_and_start() -> None:
    x, measured = laws.evaluation_agrees(plugin, problem())
    met = [(problem().details.contents[:, row] @ x).mean() - 0.1 * np.linalg.norm(x) for row in ROWS]
    assert measured["values"] == pytest.approx([-share for share in met])
    assert measured["train"]["least_share_met"] == pytest.approx(min(met))
    laws.starts_strictly_feasible(problem())
    laws.starts_strictly_feasible(plugin.load([0.5, 1.5]))


@pytest.mark.parametrize(
    "option, value",
    [
        *[("need", bad) for bad in (0.0, "some", [1.0, -1.0], [], float("nan"), 50.0)],
        *[("nutrients", bad) for bad in ((), "energy", ("salt",))],
        *[("size", -0.1), ("most", 0.0), ("variation", [0.1]), ("samples", 1)],
    ],
)
def test_refusals(option: str, value: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=option):
        plugin.load(**{option: value})
