"""Steps of the rival solvers against the same steps written out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from tests import cases
from tests.problem_library import HalfSquare, MeanGap
from tests.solvers.averaging.rivals import RIVALS, small
from tests.solvers.test_crossed import exact

Array = Any


def tiny() -> mm.MinMaxProblem:
    """One row of data, so no noise: f_0 = |x - p|^2 / 2 and f_1 = |<x, p>| <= 1/2 with p = (2, 1)."""
    data = mm.Finite({"points": np.array([[2.0, 1.0]]), "contrast": np.array([1.0])})
    return mm.MinMaxProblem(HalfSquare(), [MeanGap(0.5)], mm.Ball(2, 100.0), data, start=np.array([0.5, 1.0]))


POINT = np.array([2.0, 1.0])


def iterates(solver: Any) -> list[Any]:
    return [state.iterate for state in mm.iterate(tiny(), solver)]


class Dog:
    """Distance over gradients, written for one run of the tiny problem."""

    def __init__(self, x: Array) -> None:
        self.origin, self.reach, self.slope, self.top, self.rise, self.spread = x, 0.01, 1e-8, 0.3, 1e-8, 1.0

    def primal(self, x: Array, g: Array) -> float:
        self.reach = max(self.reach, float(np.linalg.norm(x - self.origin)))
        self.slope += float(g @ g)
        return self.reach / np.sqrt(self.slope)

    def dual(self, multiplier: float, u: float) -> float:
        self.top, self.rise = max(self.top, multiplier), self.rise + u * u
        return self.top / np.sqrt(self.rise)

    def inner(self, v: float) -> float:
        self.spread += v * v
        return 0.6 / np.sqrt(self.spread)


def ascend(multiplier: float, alpha: float, u: float, v: float, tau: float, inner: float) -> tuple[float, float]:
    """Move alpha by its prox, of value nu, and the multiplier along u - nu."""
    new = float(np.clip(alpha + inner * v, -1.0, 1.0))
    nu = -v * new + (new - alpha) ** 2 / (2.0 * inner)
    return max(multiplier + tau * (u - nu), 0.0), new


def test_two_steps_of_primal_dual() -> None:
    found = iterates(mm.PrimalDual(steps=4, batch_size=1, evaluations=1, block=1))
    x, multiplier, alpha = np.array([0.5, 1.0]), 0.0, 0.0
    steps = Dog(x)
    for t in range(4):
        u, v = -0.5, float(x @ POINT)
        g = (x - POINT) + multiplier * alpha * POINT
        eta, tau, inner = steps.primal(x, g), steps.dual(multiplier, u), steps.inner(v)
        x = x - eta * g
        multiplier, alpha = ascend(multiplier, alpha, u, v, tau, inner)
        now = found[t + 1]
        assert now.x[0] == pytest.approx(x, rel=1e-12)
        assert now.duals.weights[0] == pytest.approx([1.0, multiplier], rel=1e-12)
        assert now.duals.inner[0] == pytest.approx([alpha], rel=1e-12)
    assert multiplier > 0


@pytest.mark.parametrize("schedule", ["adaptive", "convex", "strongly_convex"])
def test_two_steps_of_conex(schedule: str) -> None:
    """With one row the linear model of G is exact: l(x_t) = (F - b, G)(x_t)."""
    settings: dict[str, Any] = {
        "adaptive": {},
        "convex": {"primal_step": 0.1, "dual_step": 0.3},
        "strongly_convex": {"strong_convexity": 1.0, "smoothness": 2.0, "dual_step": 0.2},
    }[schedule]
    found = iterates(mm.ConEx(steps=4, batch_size=1, evaluations=1, block=1, **settings))
    x, multiplier, alpha = np.array([0.5, 1.0]), 0.0, 0.0
    steps, v_before, weights = Dog(x), 0.0, []
    for t in range(4):
        u, v = -0.5, float(x @ POINT)
        if schedule == "strongly_convex":  # t_0 = 4 * 2 / 1 + 2 = 10
            theta = (t + 11.0) / (t + 12.0)
        else:
            theta = 1.0 if schedule == "convex" or t < 2 else weights[t - 2] / weights[t - 1]
        s = v if t == 0 else (1.0 + theta) * v - theta * v_before
        tau, inner = steps.dual(multiplier, u), steps.inner(s)
        if schedule != "adaptive":
            tau = 0.3 if schedule == "convex" else 0.2 * (t + 1)
        multiplier, alpha = ascend(multiplier, alpha, u, s, tau, inner)
        g = (x - POINT) + multiplier * alpha * POINT
        eta = steps.primal(x, g)
        weights.append(eta)
        if schedule != "adaptive":
            eta = 0.1 if schedule == "convex" else 2.0 / (t + 11.0)
        x, v_before = x - eta * g, v
        now = found[t + 1]
        assert now.x[0] == pytest.approx(x, rel=1e-12)
        assert now.duals.weights[0] == pytest.approx([1.0, multiplier], rel=1e-12)
        assert now.duals.inner[0] == pytest.approx([alpha], rel=1e-12)
    assert multiplier > 0


def test_steps_of_the_switching_subgradient() -> None:
    """The test sees alpha x'p, which starts at 0: a step on the objective, and then steps on the constraint too."""
    found = iterates(mm.SwitchingSubgradient(steps=12, batch_size=1, test_size=1, evaluations=1, block=1, distance=1.0))
    x, alpha = np.array([0.5, 1.0]), 0.0
    steps, violated, kept = Dog(x), [], x
    steps.reach = 1.0
    for t in range(12):
        v = float(x @ POINT)
        violated.append(alpha * v - 0.5 > 0)
        g = alpha * POINT if violated[-1] else x - POINT
        eta, inner = steps.primal(x, g), steps.inner(v)
        if not violated[-1]:
            kept, alpha = x, float(np.clip(alpha + inner * v, -1.0, 1.0))
        x = x - eta * g
        assert found[t + 1].x[0] == pytest.approx(x, rel=1e-12)
        assert found[t + 1].inner[0] == pytest.approx([alpha], rel=1e-12)
        assert found[t + 1].kept[0] == pytest.approx(kept, rel=1e-12)
    assert any(violated)
    assert not all(violated)


@pytest.mark.parametrize("rival", ["conex", "primal_dual"])
def test_multipliers_are_capped_by_what_the_start_tells(rival: str) -> None:
    """(f_0(x_0) - min f_0) / slack: in closed form for the nearest point to the mean; above the optimal multiplier."""
    problem, points = cases.problem("quadratic"), cases.arrays()["points"]
    objective, constraints = exact(problem, problem.start_point()[0])
    least = 0.5 * ((points - points.mean(axis=0)) ** 2).sum(axis=1).mean()
    state = next(mm.iterate(problem, small(rival)))
    assert state.iterate.cap.item() == pytest.approx((objective - least) / -constraints[0], rel=1e-6)
    cost = cases.arrays()["costs"].mean(axis=0)
    assert state.iterate.cap.item() >= (cost @ points.mean(axis=0) - 0.5) / (cost @ cost)
    assert next(mm.iterate(tiny(), small(rival, cap=7.0))).iterate.cap.item() == 7.0  # that start is not feasible


@pytest.mark.rel
@pytest.mark.parametrize("rival", ["conex", "primal_dual"])
def test_multipliers_do_not_run_away(rival: str) -> None:
    """Large steps in both variables feed each other where nothing bounds them, as on this portfolio."""
    best = float(cases.optimum("cvar_portfolio").objective)
    solution = mm.solve(cases.problem("cvar_portfolio"), RIVALS[rival](steps=2500), seed=0)
    assert solution.feasible
    assert solution.objective - best <= 0.05 * cases.span("cvar_portfolio", best + 9.0)


def test_averages_are_weighted_by_the_steps_of_the_tail() -> None:
    """Of four stretches of two steps the last two are averaged; the answer is in the trace."""
    solver = mm.PrimalDual(steps=8, batch_size=1, evaluations=4, tail=0.5, tolerance=1e-9, block=1)
    states = list(mm.iterate(tiny(), solver))
    before, after = [s.iterate for s in states[:-1]], [s.iterate for s in states[1:]]
    eta = np.array([np.sqrt(a.memory.reach / a.memory.slope).item() for a in after])
    mean = sum(eta[t] * before[t].x[0] for t in range(4, 8)) / eta[4:].sum()
    objective, constraints = exact(tiny(), mean)
    row = states[-1].trace[-1]
    assert (row["objective"], row["violation"]) == pytest.approx((objective, constraints.max()), rel=1e-12)
