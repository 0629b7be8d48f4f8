"""Partial-information fair regression: the reference, the solver, the measures, the refusals."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import r2_score

import minmaxcon as mm
from minmaxcon.reference import solve_exact
from minmaxcon_problems.fair_regression import plugin
from tests.problems import plugin_laws as laws


@cache
def problem() -> mm.MinMaxProblem:
    return plugin.load()


@cache
def optimum() -> float:
    """Two linear constraints, from the means of the rows whose group is known."""
    cp = pytest.importorskip("cvxpy")
    rows = problem().details.train
    women, men = rows.female & rows.known, ~rows.female & rows.known
    apart = rows.features[women].mean(axis=0) - rows.features[men].mean(axis=0)
    w = cp.Variable(len(apart))
    error = cp.sum_squares(rows.features @ w - rows.target) / len(rows.target)
    program = cp.Problem(cp.Minimize(error), [apart @ w <= 0.2, apart @ w >= -0.2, cp.norm(w) <= 3.0])
    program.solve(solver=cp.CLARABEL)
    return float(program.value)


def test_the_reference_solves_the_same_problem() -> None:
    exact = solve_exact(problem())
    assert exact.objective == pytest.approx(optimum(), abs=1e-7)
    assert exact.constraints[0] == pytest.approx(0.0, abs=1e-6)  # it binds


def test_the_solver_reaches_it() -> None:
    laws.solver_reaches(problem(), optimum())


def test_the_interval_is_just_long_enough() -> None:
    """The maximum over alpha is the square wherever the mean lies in reach; on a shorter interval it is less."""
    built = problem()
    contrast = built.data.arrays["contrast"] @ built.data.arrays["features"] / built.data.size
    farthest = 3.0 * contrast / np.linalg.norm(contrast)
    exact = built.at_level(0.0).values(farthest[None])[0, 1]
    assert exact == pytest.approx(9.0 * contrast @ contrast)
    block = mm.interval(0.9 * built.constraints[0].dual.radius, curvature=0.25)
    assert float(block.maximize(np.array([contrast @ farthest]))[1]) < exact


def test_rows_of_unknown_group_enter_the_loss_and_not_the_gap() -> None:
    built = problem()
    rows, arrays = built.details.train, dict(built.data.arrays)
    hidden = ~rows.known
    assert 0.4 < hidden.mean() < 0.6
    x = laws.points(built, 1)
    before = evaluate(built, x, arrays)
    arrays["features"] = np.where(hidden[:, None], arrays["features"] + 1.0, arrays["features"])
    after = evaluate(built, x, arrays)
    assert after[1] == pytest.approx(before[1])
    assert abs(after[0] - before[0]) > 0.01


def evaluate(built: mm.MinMaxProblem, x: Any, arrays: Any) -> tuple[float, float]:
    found = built.family.evaluate(x, arrays)
    return float(found.F[0, 0]), float(found.G[0, 0])


def test_known_rows_estimate_the_gap_of_all() -> None:
    """Over many draws of which rows are known, the mean of G is centred at the gap of all rows."""
    x, apart = laws.points(problem(), 1)[0], []
    for seed in range(50):
        built = plugin.load(seed=seed)
        rows = built.details.train
        scores = rows.features @ x
        told = float(built.family.evaluate(x[None], built.data.arrays).G[0, 0])
        apart.append(told - (scores[rows.female].mean() - scores[~rows.female].mean()))
    assert np.std(apart) > 0.001  # rows that are told differ from draw to draw
    assert np.mean(apart) == pytest.approx(0.0, abs=4 * np.std(apart) / np.sqrt(50))


def test_measures() -> None:
    x, measured = laws.evaluation_agrees(plugin, problem())
    for part, rows in problem().details.items():
        found = measured[part]
        scores = rows.features @ x
        table = np.column_stack([np.ones(len(scores)), rows.female])
        slope = np.linalg.lstsq(table, scores, rcond=None)[0][1]  # of women against men
        assert found["gap"] == pytest.approx(-slope)
        assert found["mse"] == pytest.approx(np.var(scores - rows.target) + np.mean(scores - rows.target) ** 2)
        assert found["r2"] == pytest.approx(r2_score(rows.target, scores))


@pytest.mark.parametrize(
    "option, value",
    [
        ("bound", "low"),
        ("bound", float("inf")),
        ("bound", -0.01),
        ("known", True),
        ("known", 0.0),
        ("known", 1.5),
        ("known", "half"),
        ("known", None),
        ("radius", 0.0),
    ],
)
def test_refusals(option: str, value: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=option):
        plugin.load(**{option: value})
