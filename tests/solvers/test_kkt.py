"""Certificates of near stationarity: proximal points and first-order residuals against cvxpy and closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.reference import proximal_point
from tests import cases
from tests.problem_library import HalfSquare, Linear

Array = Any


def points(name: str) -> dict[str, Array]:
    """The optimum, and a point nearby at which the proximal problem is feasible."""
    best, start = np.asarray(cases.optimum(name).x), cases.problem(name).start_point()[0]
    return {"optimal": best, "between": 0.8 * best + 0.2 * start}


@pytest.mark.parametrize(
    "name, which",
    [
        *(("fair_auc_active_ball", "between"), ("fair_auc_inter", "optimal")),
        *(
            pytest.param(name, which, marks=pytest.mark.rel)
            for name in ("quadratic", "fair_auc_inter", "fair_auc_active_ball", "robust")
            for which in ("optimal", "between")
        ),
    ],
)
def test_agrees_with_the_conic_solver(name: str, which: str) -> None:
    problem, x = cases.problem(name), points(name)[which]
    exact, found = proximal_point(problem, x, 1.0), mm.stationarity(problem, x, 1.0)
    distance = float(np.linalg.norm(exact.x - x))
    assert found.status is mm.Status.SOLVED
    assert found.distance == pytest.approx(distance, abs=2e-4)
    assert distance - 1e-5 <= found.bound <= distance + 2e-3
    assert np.linalg.norm(found.point - exact.x) <= found.bound - found.distance + 1e-5
    assert found.multipliers == pytest.approx(exact.multipliers, rel=1e-3, abs=1e-6)
    assert found.kkt.violation == 0.0
    # the paper's remark: the gradient's residual is at most rho_hat (1 + sum lambda) |x_hat - x|
    assert found.kkt.gradient <= (1.0 + exact.multipliers.sum()) * distance + 1e-3
    if which == "optimal":
        assert found.kkt.epsilon <= 2e-3


@pytest.mark.parametrize("name", ["quadratic", "fair_auc_inter", "fair_auc_active_ball", "robust", "mean_gap"])
def test_residuals_vanish_at_exact_solutions(name: str) -> None:
    """With the conic solver's multipliers, for the problem at its optimum and for a proximal problem at its own."""
    problem, best = cases.problem(name), cases.optimum(name)
    multipliers = np.maximum(best.multipliers, 0.0)
    at_best = mm.kkt_residual(problem, best.x, multipliers)
    assert at_best.gradient <= 1e-4
    assert at_best.complementarity <= 1e-6
    assert at_best.violation <= 1e-6
    x = points(name)["between"]
    exact = proximal_point(problem, x, 2.0)
    proximal = mm.kkt_residual(problem.with_proximal(x, 2.0), exact.x, np.maximum(exact.multipliers, 0.0))
    assert proximal.gradient <= 1e-4
    assert proximal.epsilon <= 2e-3
    assert mm.kkt_residual(problem, x, multipliers).gradient > 1e-2  # and elsewhere they do not


def test_residuals_of_a_closed_form() -> None:
    """1/2 |x - m|^2 with <c, x> <= b: the gradient is x - m + lambda c, and a face of the ball takes what is normal."""
    problem = cases.quadratic()
    arrays = cases.arrays()
    mean, cost = arrays["points"].mean(axis=0), arrays["costs"].mean(axis=0)
    x = np.array([[0.5, -0.5, 0.25], [-2.0, -4.0, -4.0]])  # inside the ball of radius 6, and on its sphere
    multipliers = np.array([[0.7], [0.3]])
    found = mm.kkt_residual(problem, x, multipliers)
    slope = x - mean + multipliers * cost
    assert found.gradient[0] == pytest.approx(np.linalg.norm(slope[0]), rel=1e-6)
    radial = x[1] / 6.0
    outward = max(-slope[1] @ radial, 0.0)  # the part of -gradient within the normal cone
    assert found.gradient[1] == pytest.approx(np.linalg.norm(-slope[1] - outward * radial), rel=1e-5)
    excess = x @ cost - 0.5
    assert found.complementarity == pytest.approx(np.abs(multipliers[:, 0] * excess))
    assert found.violation == pytest.approx(np.maximum(excess, 0.0))
    assert found.epsilon == pytest.approx(
        np.max([found.gradient, np.sqrt(found.complementarity), found.violation], axis=0)
    )


class Hill(mm.StochasticMinMaxConstraint):
    r"""f(x) = -rho/2 |x|^2 + E <c, x>, of modulus rho."""

    def __init__(self, modulus: float, declared: float) -> None:
        self.rho, self.weak_convexity, self.name = modulus, declared, "hill"

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        slope, rho = batch["costs"].mean(0), self.rho
        value = -0.5 * rho * (x * x).sum(-1) + x @ slope
        return mm.Evaluation(value, x[..., :0], lambda y, _: y[..., None] * (slope - rho * x))


def hill(declared: float = 1.5) -> mm.MinMaxProblem:
    return mm.MinMaxProblem(Hill(1.5, declared), [Linear(50.0)], mm.Ball(3, 2.0), cases.finite("costs"))


def test_a_nonconvex_toy_in_closed_form() -> None:
    r"""Inside, x_hat = (rho_hat x - c) / (rho_hat - rho); beyond the ball its projection, the term being a sphere."""
    cost = cases.arrays()["costs"].mean(axis=0)
    for x in (cost / 1.5 + np.array([0.02, -0.01, 0.0]), np.array([0.3, -0.4, 0.1])):
        exact = mm.Ball(3, 2.0).project((4.0 * x - cost) / 2.5)
        found = mm.stationarity(hill(), x, 4.0)
        distance = float(np.linalg.norm(exact - x))
        assert found.distance == pytest.approx(distance, abs=2e-4)
        assert distance - 1e-6 <= found.bound <= distance + 2e-3
        assert found.multipliers == pytest.approx([0.0], abs=1e-6)
        slope = cost - 1.5 * found.point  # the constraint is not active
        assert found.kkt.gradient == pytest.approx(np.linalg.norm(slope), abs=1e-6)
    own = mm.stationarity(hill(), x, 4.0, solver=mm.SFLS(oracle=mm.VarianceReduced(epochs=8), tolerance=0.01))
    assert own.distance == pytest.approx(distance, abs=2e-4)
    assert distance - 1e-6 <= own.bound <= distance + 2e-3
    assert mm.stationarity(hill(), cost / 1.5, 4.0).bound <= 2e-3  # a stationary point, though a maximum


def test_nothing_is_proved_without_a_modulus() -> None:
    x = np.array([0.3, -0.4, 0.1])
    quick = mm.SFLS(oracle=mm.MirrorProx(steps=40), levels=3)
    found = mm.stationarity(hill(np.inf), x, 4.0, solver=quick)
    assert found.bound == np.inf
    assert found.status is not mm.Status.SOLVED
    cost = cases.arrays()["costs"].mean(axis=0)
    exact = mm.Ball(3, 2.0).project((4.0 * x - cost) / 2.5)
    assert found.distance == pytest.approx(float(np.linalg.norm(exact - x)), abs=0.02)  # found all the same
    with pytest.warns(mm.WeakConvexityWarning, match="hill"):
        assert mm.stationarity(hill(), x, 1.5, solver=quick).bound == np.inf


def test_runs() -> None:
    """Several points, or bounds, at once: each row is what it would be alone."""
    kappas, best = [1.0, 0.5], np.asarray(cases.optimum("fair_auc_active_ball").x)
    x = np.stack([0.5 * best, 0.0 * best])
    solver = mm.SFLS(oracle=mm.MirrorProx(steps=150), tolerance=0.01, levels=3)
    together = mm.stationarity(cases.fair_auc("inter_group", kappas, radius=0.25), x, solver=solver)
    assert together.point.shape == x.shape
    assert together.multipliers.shape == (2, 2)
    assert len(together.status) == 2
    for j, kappa in enumerate(kappas[:1]):
        alone = mm.stationarity(cases.fair_auc("inter_group", kappa, radius=0.25), x[j], solver=solver)
        assert together.distance[j] == pytest.approx(alone.distance, abs=2e-4)
        assert together.kkt.gradient[j] == pytest.approx(alone.kkt.gradient, abs=2e-3)


def test_residuals_of_torch_arrays() -> None:
    x, multipliers = np.array([[-1.0, -1.0, -1.0], [0.1, -0.3, 0.2]]), np.array([[0.3], [2.0]])
    rows = mm.kkt_residual(cases.quadratic(), x, multipliers)
    torch = mm.kkt_residual(cases.quadratic(engine="torch"), x, multipliers)
    assert torch.gradient == pytest.approx(rows.gradient, rel=1e-9)
    assert torch.complementarity == pytest.approx(rows.complementarity, rel=1e-9)


def test_an_infeasible_proximal_problem() -> None:
    found = mm.stationarity(cases.problem("quadratic"), np.array([2.0, 4.0, 3.0]), 50.0)
    assert found.status is mm.Status.INFEASIBLE
    assert found.bound == np.inf


def test_what_is_refused() -> None:
    problem, x = cases.problem("quadratic"), np.zeros(3)
    with pytest.raises(mm.InvalidInput, match="weight"):
        mm.stationarity(problem, x, 0.0)
    with pytest.raises(mm.InvalidInput, match="x="):
        mm.stationarity(problem, np.zeros(4))
    with pytest.raises(mm.InvalidInput, match="x="):
        mm.kkt_residual(problem, np.full(3, 9.0), [0.0])
    with pytest.raises(mm.InvalidInput, match="one row for each"):
        mm.kkt_residual(cases.quadratic([0.5, 0.2]), np.zeros((3, 3)), np.zeros((3, 1)))
    for multipliers in ([-1.0], [np.nan], [1.0, 2.0]):
        with pytest.raises(mm.InvalidInput, match="multipliers"):
            mm.kkt_residual(problem, x, multipliers)
    with pytest.raises(mm.Unsupported, match="proximal"):
        mm.stationarity(problem.with_proximal(x, 1.0), x)
    with pytest.raises(mm.Unsupported, match="Euclidean"):
        mm.stationarity(cases.problem("portfolio"), np.full(3, 1 / 3))
    stream = mm.Stream(lambda: iter([{"points": x, "costs": x}]))
    with pytest.raises(mm.Unsupported, match="finite data"):
        mm.stationarity(mm.MinMaxProblem(HalfSquare(), [Linear(1.0)], mm.Ball(3, 2.0), stream), x)
