"""One linearised proximal step against a conic solver, on random instances of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minmaxcon.solvers.successive.linearised_step import LinearisedStep, linearised_step

Array = Any

FREE = 1e9  # a trust region that is never felt


class Instance:
    """Gradients, values and a positive definite matrix B of one run."""

    def __init__(self, seed: int, constraints: int, *, opposite: bool = False, d: int = 6) -> None:
        rng = np.random.default_rng(seed)
        root = rng.normal(size=(d, d))
        self.matrix = root @ root.T / d + 0.3 * np.eye(d)
        self.gradients = rng.normal(size=(1 + constraints, d))
        self.values = 0.7 * rng.normal(size=constraints)
        if opposite:
            self.gradients[2] = -self.gradients[1]
            self.values[1] = -self.values[0] - 0.1 - rng.random()  # the band |t + <g, d>| <= b is not empty
        self.weight = float(rng.uniform(0.0, 3.0))
        self.reach = FREE

    def step(self, hard: int = 0) -> LinearisedStep:
        return stepped([self], hard)

    def objective(self, d: Array, weight: float | None = None) -> float:
        size = 1.0 + (self.weight if weight is None else weight)
        return float(self.gradients[0] @ d + 0.5 * size * d @ self.matrix @ d)

    def exact(self, caps: Array | None = None) -> tuple[float, Array]:
        """The least value and its d; with caps the constraints are relaxed by an exact penalty of these weights."""
        import cvxpy as cp

        root = np.linalg.cholesky(self.matrix)
        d, slack = cp.Variable(self.matrix.shape[0]), cp.Variable(len(self.values), nonneg=True)
        model = self.gradients[0] @ d + 0.5 * (1.0 + self.weight) * cp.sum_squares(root.T @ d)
        hard = [j for j in range(len(self.values)) if caps is None or np.isinf(caps[j])]
        below = [self.values[j] + self.gradients[1 + j] @ d <= slack[j] for j in range(len(self.values))]
        below += [slack[j] == 0 for j in hard]
        soft = [j for j in range(len(self.values)) if j not in hard]
        cost = sum((caps[j] * slack[j] for j in soft), start=cp.Constant(0.0)) if caps is not None else 0.0
        problem = cp.Problem(cp.Minimize(model + cost), below)
        problem.solve(solver=cp.CLARABEL)
        assert problem.status == cp.OPTIMAL
        return float(problem.value), np.asarray(d.value)


def stepped(instances: list[Instance], hard: int = 0) -> LinearisedStep:
    gradients = np.stack([one.gradients for one in instances])
    pulled = np.stack([np.linalg.solve(one.matrix, one.gradients.T).T for one in instances])
    values = np.stack([one.values for one in instances])
    weight, reach = np.array([one.weight for one in instances]), np.array([one.reach for one in instances])
    return linearised_step(gradients, pulled, values, weight, reach, hard)


def caps_of(one: Instance, hard: int = 0) -> Array:
    """The multiplier at which the part of the step that serves a constraint has length reach in the norm of B."""
    sizes = np.sqrt([g @ np.linalg.solve(one.matrix, g) for g in one.gradients[1:]])
    caps = one.reach * (1.0 + one.weight) / sizes
    caps[len(caps) - hard :] = np.inf
    return caps


@pytest.mark.parametrize("kind", ["one", "two", "three", "opposite", "opposite and one more"])
def test_steps_are_those_of_a_conic_solver(kind: str) -> None:
    count = {"one": 1, "two": 2, "three": 3, "opposite": 2, "opposite and one more": 3}[kind]
    for seed in range(12):
        one = Instance(seed, count, opposite="opposite" in kind)
        step = one.step()
        value, d = one.exact()
        assert step.direction[0] == pytest.approx(d, abs=2e-5)
        assert one.objective(step.direction[0]) == pytest.approx(value, abs=1e-6 * (1 + abs(value)))
        assert (step.constraints[0] <= 1e-7).all()


@pytest.mark.parametrize("count", [4, 7])
def test_nearly_dependent_gradients_have_exact_multipliers(count: int) -> None:
    """As gaps of several groups have: one multiplier after the other would take thousands of sweeps."""
    for seed in range(12):
        one = Instance(seed, count, d=9)
        one.gradients[1:] = one.gradients[1] + 0.03 * one.gradients[1:]
        known = np.random.default_rng(seed).uniform(0.5, 2.0, count)
        meeting = -np.linalg.solve(one.matrix, one.gradients[0] + known @ one.gradients[1:]) / (1.0 + one.weight)
        one.values = -one.gradients[1:] @ meeting  # all are met with equality there
        step = one.step()
        assert np.abs(step.constraints[0]).max() <= 1e-9 * np.abs(one.values).max()
        assert step.multipliers[0] == pytest.approx(known, rel=1e-6)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_short_reach_is_an_exact_penalty(count: int) -> None:
    """Multipliers that end at their caps make the step that minimises the model plus caps times violations."""
    capped = 0
    for seed in range(12):
        one = Instance(seed, count)
        one.reach = 0.15
        step, caps = one.step(), caps_of(one)
        value, d = one.exact(caps)
        violation = np.maximum(step.constraints[0], 0.0)
        assert one.objective(step.direction[0]) + caps @ violation == pytest.approx(value, abs=1e-6)
        assert step.direction[0] == pytest.approx(d, abs=2e-5)
        assert (step.multipliers[0] <= caps * (1 + 1e-12)).all()
        assert step.length[0] <= one.reach * (1 + 1e-9)
        capped += int((step.multipliers[0] >= caps * (1 - 1e-12)).any())
    assert capped >= 3


def test_constraints_of_the_set_may_take_a_part_of_any_length() -> None:
    longer = 0
    for seed in range(12):
        one = Instance(seed, 3)
        one.reach, one.values[2] = 0.1, abs(one.values[2])
        step, caps = one.step(hard=1), caps_of(one, hard=1)
        value, _ = one.exact(caps)
        assert step.constraints[0, 2] <= 1e-7
        soft = caps[:2] @ np.maximum(step.constraints[0, :2], 0.0)
        assert one.objective(step.direction[0]) + soft == pytest.approx(value, abs=1e-6)
        longer += int(step.multipliers[0, 2] > caps_of(one)[2])
    assert longer >= 3


def test_reported_changes_are_those_of_the_step() -> None:
    for seed in range(10):
        one = Instance(seed, 2)
        one.reach = 0.4
        step = one.step()
        d, multipliers = step.direction[0], step.multipliers[0]
        assert step.objective[0] == pytest.approx(one.objective(d, weight=0.0), abs=1e-12)
        assert step.constraints[0] == pytest.approx(one.values + one.gradients[1:] @ d, abs=1e-12)
        pulled = one.gradients[0] + multipliers @ one.gradients[1:]
        assert step.residual[0] == pytest.approx(0.5 * pulled @ np.linalg.solve(one.matrix, pulled), abs=1e-12)
        assert d == pytest.approx(-np.linalg.solve(one.matrix, pulled) / (1.0 + one.weight), abs=1e-12)
        parts = np.sqrt([g @ np.linalg.solve(one.matrix, g) for g in one.gradients[1:]])
        assert step.length[0] == pytest.approx((multipliers * parts).max() / (1.0 + one.weight), abs=1e-12)


@pytest.mark.parametrize("hard", [0, 1])
def test_a_run_of_many_is_the_run_alone(hard: int) -> None:
    instances = [Instance(seed, 3) for seed in range(8)]
    for j, one in enumerate(instances):
        one.reach = [0.1, 0.5, FREE][j % 3]
        one.values[2] = -abs(one.values[2])
    together = stepped(instances, hard)
    for j, one in enumerate(instances):
        alone = one.step(hard)
        for name in ("direction", "multipliers", "objective", "constraints", "residual", "length"):
            mine = getattr(together, name)[j]
            assert mine == pytest.approx(getattr(alone, name)[0], rel=1e-9, abs=1e-12), name


def test_no_constraint_that_binds_gives_the_newton_step() -> None:
    one = Instance(0, 2)
    one.values[:] = -1e6
    step = one.step()
    assert (step.multipliers == 0).all()
    assert step.length[0] == 0.0
    newton = -np.linalg.solve(one.matrix, one.gradients[0]) / (1.0 + one.weight)
    assert step.direction[0] == pytest.approx(newton, abs=1e-12)


@pytest.mark.parametrize("reach", [0.5, 1e12])
def test_a_constraint_that_does_not_change_moves_nothing(reach: float) -> None:
    """A vanishing gradient, as a gap has at a constant model: no division by zero, and no step for its sake."""
    one = Instance(1, 2)
    one.gradients[2], one.reach = 0.0, reach
    one.values[:] = [-1e6, 0.3]
    step = one.step()
    assert np.isfinite(step.direction).all()
    newton = -np.linalg.solve(one.matrix, one.gradients[0]) / (1.0 + one.weight)
    assert step.direction[0] == pytest.approx(newton, abs=1e-12)
    assert step.constraints[0, 1] == 0.3
    assert (step.multipliers == 0).all()  # a penalty that followed it would know no other aim
    assert step.length[0] == 0.0
