"""KL-regularised group DRO: the reference, the solver, the measures, the refusals."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.reference import solve_exact
from minmaxcon_problems.group_dro import GROUPS, plugin
from tests.problems import plugin_laws as laws


@cache
def problem() -> mm.MinMaxProblem:
    return plugin.load()


@cache
def optimum() -> float:
    """From group moments, and with the softmax as an explicit sum of exponentials under one more variable."""
    cp = pytest.importorskip("cvxpy")
    rows = problem().details.train
    w, top = cp.Variable(rows.features.shape[1]), cp.Variable()
    risks = []
    for mine in rows.groups.T:
        table = np.column_stack([rows.features[mine], -rows.target[mine]])
        factor = np.linalg.cholesky(table.T @ table / mine.sum())
        risks.append(cp.sum_squares(factor.T @ cp.hstack([w, 1.0])))
    shares = rows.groups.mean(axis=0)
    weighted = sum(share * risk for share, risk in zip(shares, risks, strict=True))
    excess = sum(share * cp.exp((risk - top) / 0.05) for share, risk in zip(shares, risks, strict=True))
    least = np.linalg.lstsq(rows.features, rows.target, rcond=None)[1][0] / len(rows.target)
    program = cp.Problem(cp.Minimize(top), [excess <= 1.0, weighted <= 1.01 * least, cp.norm(w) <= 3.0])
    program.solve(solver=cp.CLARABEL)
    return float(program.value)


def test_the_reference_solves_the_same_problem() -> None:
    exact = solve_exact(problem())
    assert exact.objective == pytest.approx(optimum(), abs=1e-6)
    assert exact.constraints[0] == pytest.approx(0.0, abs=1e-6)  # it binds


def test_the_solver_reaches_it() -> None:
    laws.solver_reaches(problem(), optimum(), mm.SMD(steps=400, batch_size=60))  # short queries take longer


@pytest.mark.parametrize("slack", [0.001, 0.01, 0.5, [0.01, 0.4]])
def test_the_start_satisfies_every_bound_strictly(slack: Any) -> None:
    built = plugin.load(slack=slack)
    start = built.start_point()
    assert (built.feasibility().values(start) < built.bounds()).all()


def test_a_ball_without_the_start_is_refused() -> None:
    with pytest.raises(mm.InvalidInput, match=r"radius=0\.2"):
        plugin.load(radius=0.2)


def test_the_temperature_leads_from_the_mean_to_the_worst_group() -> None:
    x = laws.points(problem(), 1)[0]
    risks = plugin.evaluate(problem(), x)["train"]
    values = [plugin.evaluate(plugin.load(temperature=t), x)["objective"] for t in (1e-4, 0.05, 0.5, 1e4)]
    assert values[0] == pytest.approx(risks["worst_mse"], abs=1e-3)
    assert values[-1] == pytest.approx(risks["mse"], abs=1e-3)
    assert (np.diff(values) < 0).all()


def test_measures() -> None:
    x, measured = laws.evaluation_agrees(plugin, problem())
    for part, rows in problem().details.items():
        found = measured[part]
        cell = rows.groups.argmax(axis=1)
        total = np.bincount(cell, weights=(rows.features @ x - rows.target) ** 2)
        risks = total / np.bincount(cell)
        assert [found[f"mse_{group}"] for group in GROUPS] == pytest.approx(risks.tolist())
        assert found["worst_mse"] == pytest.approx(risks.max())
        assert found["mse"] == pytest.approx(total.sum() / len(cell))


@pytest.mark.parametrize(
    "option, value",
    [
        ("slack", 0.0),
        ("slack", "some"),
        ("slack", [0.1, -0.1]),
        ("temperature", 0.0),
        ("temperature", [0.1, 0.2]),
        ("radius", 0.0),
    ],
)
def test_refusals(option: str, value: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=option):
        plugin.load(**{option: value})
