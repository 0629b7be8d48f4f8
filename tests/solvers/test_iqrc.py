"""The proximal method: nearly stationary points with a proof of it, its outputs, and starts that are not feasible."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.solvers.weak_convexity import WeightRule
from tests import cases
from tests.problem_library import Linear

Array = Any


def iqrc(steps: int = 400, levels: int = 5, **settings: Any) -> mm.IQRC:
    return mm.IQRC(oracle=mm.SFLS(oracle=mm.SMD(steps=steps, batch_size=100), levels=levels), **settings)


@pytest.mark.rel
def test_default_settings_approach_the_optimum_of_a_convex_problem() -> None:
    problem, best = cases.problem("fair_auc_inter"), float(cases.optimum("fair_auc_inter").objective)
    solution = mm.solve(problem, mm.IQRC(iterations=2), seed=0)
    assert solution.feasible
    assert -1e-7 <= solution.objective - best <= 0.02 * (0.5 - best)


def exact_proximal_point(x: Array, weight: float) -> Array:
    """The minimiser of 1/2 |u - mean|^2 + weight/2 |u - x|^2 with <c, u> + weight/2 |u - x|^2 <= 1/2."""
    import cvxpy as cp

    data = cases.arrays()
    mean, cost, u = data["points"].mean(axis=0), data["costs"].mean(axis=0), cp.Variable(3)
    near = 0.5 * weight * cp.sum_squares(u - x)
    cp.Problem(cp.Minimize(0.5 * cp.sum_squares(u - mean) + near), [cost @ u + near <= 0.5]).solve(solver=cp.CLARABEL)
    return np.asarray(u.value)


def test_stationarity_bounds_the_distance_from_the_proximal_point() -> None:
    r"""Each outer step's number is at least |x_hat - x|, x_hat computed by a conic solver; and it falls."""
    problem, solver = cases.problem("quadratic"), iqrc(steps=120, levels=3, iterations=3)
    centers = [problem.start_point()[0]]

    def watch(progress: mm.Progress) -> None:
        if progress.state.outer == len(centers):
            centers.append(progress.state.x[0])

    solution = mm.solve(problem, solver, seed=0, callbacks=[watch])
    bounds, weights = solution.trace["stationarity"], solution.trace["weight"]
    assert len(bounds) == len(centers) - 1
    for center, bound, weight in zip(centers[:-1], bounds, weights, strict=True):
        assert np.linalg.norm(exact_proximal_point(center, float(weight)) - center) <= bound + 1e-6
    assert bounds[-1] <= 0.5 * bounds[0]


def test_solved_is_said_only_with_a_proof() -> None:
    """A step that is short because the oracle failed is no sign of stationarity."""
    problem = cases.problem("worst_group_regularised")
    weak = mm.solve(problem, iqrc(steps=10, levels=1, iterations=5, tolerance=1e-2), seed=0)
    assert weak.status is not mm.Status.SOLVED
    strong = mm.solve(cases.problem("fair_auc_group"), iqrc(steps=200, levels=4, tolerance=0.1), seed=0)
    assert strong.status is mm.Status.SOLVED
    assert strong.trace["stationarity"][-1] <= 0.1
    assert "proved" in strong.reason


def test_weakly_convex_problems() -> None:
    """Above the modulus distances are proved; the paper's weight is far below it, and nothing is."""
    problem = cases.problem("regression_weakly_convex")
    modulus = float(problem.objective.weak_convexity)
    start = float(problem.at_level(0.0).values(problem.start_point())[0, 0])
    proved = mm.solve(problem, iqrc(steps=100, levels=2, weight=1.2 * modulus, iterations=5), seed=0)
    assert np.isfinite(proved.trace["stationarity"]).all()
    assert proved.objective < 0.8 * start
    with pytest.warns(mm.WeakConvexityWarning, match="weight=1e-05"):
        paper = mm.solve(problem, iqrc(steps=40, levels=1, weight=1e-5, iterations=2), seed=0)
    assert np.isinf(paper.trace["stationarity"]).all()
    assert paper.status is not mm.Status.SOLVED
    assert paper.feasible
    assert proved.certificate.lower == paper.certificate.lower == -np.inf


def test_the_weight_holds_steps_back() -> None:
    lengths = [
        mm.solve(cases.problem("quadratic"), iqrc(steps=80, levels=2, weight=weight, iterations=1), seed=0).trace[
            "movement"
        ][0]
        for weight in (0.3, 3.0, 30.0)
    ]
    assert lengths[0] > 1.5 * lengths[1] > 2.0 * lengths[2]


def test_adapted_weights_lower_the_objective_and_prove_above_the_modulus() -> None:
    """Every step lowers the objective by its proximal term; what is solved was proved above the modulus."""
    problem = cases.problem("regression_weakly_convex")
    modulus = problem.modulus
    centers = [problem.start_point()[0]]
    solver = iqrc(steps=120, levels=2, iterations=8)

    def watch(progress: mm.Progress) -> None:
        if progress.state.outer == len(centers):
            centers.append(progress.state.x[0])

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a weight that adapts is nobody's mistake
        solution = mm.solve(problem, solver, seed=0, callbacks=[watch])
    fixed = mm.solve(problem, iqrc(steps=120, levels=2, iterations=8, weight=2.0 * modulus), seed=0)
    assert solution.objective < fixed.objective
    weights, values = solution.trace["weight"], [problem.at_level(0.0).values(x[None])[0] for x in centers]
    assert weights.min() < modulus < weights.max() <= max(1.0, 2.0 * modulus)
    for before, after, x, new, weight in zip(values, values[1:], centers, centers[1:], weights, strict=False):
        assert after[0] + 0.5 * weight * ((new - x) ** 2).sum() <= before[0] + 1e-9
        assert (after[1:] <= problem.bounds()[0]).all()
    assert solution.status is mm.Status.SOLVED
    assert weights[-1] > modulus
    assert np.isinf(solution.trace["stationarity"][weights <= modulus]).all()


class Quadratic(mm.StochasticMinMaxConstraint):
    """f(x) = 1/2 x'Ax + <b, x> with an indefinite matrix, whose least eigenvalue is minus the modulus."""

    def __init__(self, rng: np.random.Generator, size: int, bound: float, name: str) -> None:
        square = rng.normal(size=(size, size))
        self.matrix, self.slope = (square + square.T) / 2.0, rng.normal(size=size)
        self.weak_convexity = max(1e-3, -float(np.linalg.eigvalsh(self.matrix)[0]))
        self.bound, self.name = bound, name

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        along = x @ self.matrix
        value = 0.5 * (along * x).sum(-1) + x @ self.slope
        return mm.Evaluation(value, x[..., :0], lambda y, _: y[..., None] * (along + self.slope))

    def near(self, cp: Any, u: Any, x: Array, weight: float) -> Any:
        """f(u) + weight/2 |u - x|^2 as a convex expression."""
        matrix = cp.psd_wrap(self.matrix + weight * np.eye(len(x)))
        return 0.5 * cp.quad_form(u, matrix) + (self.slope - weight * x) @ u + 0.5 * weight * float(x @ x)


@pytest.mark.parametrize(
    "seed, factor",
    [(1, None), *(pytest.param(s, f, marks=pytest.mark.rel) for s in range(2, 6) for f in (None, 1.05, 3.0))],
)
def test_what_is_solved_lies_near_the_proximal_point_of_a_conic_solver(seed: int, factor: float | None) -> None:
    """Random quadratics of known modulus, below, just above and far above which weights are tried."""
    import cvxpy as cp

    from minmaxcon.reference.solver import minimize

    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    objective = Quadratic(rng, size, 0.0, "objective")
    constraint = Quadratic(rng, size, float(rng.uniform(0.1, 1.0)), "constraint")
    data = mm.Finite({"points": rng.normal(size=(20, size))})
    problem = mm.MinMaxProblem(objective, [constraint], mm.Ball(size, 2.0), data)
    oracle = mm.SFLS(oracle=mm.MirrorProx(steps=30), levels=4, least_span=0.0)
    weight = None if factor is None else factor * problem.modulus
    solution = mm.solve(problem, mm.IQRC(oracle=oracle, weight=weight, iterations=12), seed=0)
    assert solution.feasible
    if factor is None:
        assert solution.status is mm.Status.SOLVED
    if solution.status is mm.Status.SOLVED:
        last, claimed = float(solution.trace["weight"][-1]), float(solution.trace["stationarity"][-1])
        assert last > problem.modulus
        u = cp.Variable(size)
        f, g = (function.near(cp, u, solution.x, last) for function in (objective, constraint))
        below = [g <= constraint.bound, cp.norm(u) <= 2.0]
        minimize(cp, f, below)
        assert np.linalg.norm(u.value - solution.x) <= claimed + 1e-6


def test_the_rule_of_weights() -> None:
    """A weight that held a step back falls, one that failed rises; a declared modulus bounds it."""
    rule, yes = WeightRule(np.inf), np.array([True])

    def after(
        rule: WeightRule, weight: float, fall: float, term: float, balance: float = 0.0, inside: Any = yes
    ) -> Any:
        numbers = (np.array([value]) for value in (weight, fall, term, 10.0))
        return float(rule.next(*numbers, inside, np.array([balance]))[0][0])

    assert after(rule, 1.0, 0.5, 0.25) == 0.1  # half of the fall was the term's
    assert after(rule, 1.0, 0.5, 0.001) == 1.0  # it was not felt
    assert after(rule, 1.0, 0.0, 0.0) == 10.0  # nothing fell
    assert after(rule, 1e-5, 0.0, 0.0, balance=2.0) == pytest.approx(0.2)
    assert after(rule, 1.0, 0.0, 0.0, inside=~yes) == 0.1  # there the term itself may leave no feasible point
    declared = WeightRule(3.0)
    assert after(declared, 1e-3, 0.01, 0.0) == 6.0  # a fall of .1% of all
    assert after(declared, 6.0, 0.0, 0.0) == 6.0
    assert after(WeightRule(3.0, least=3.3), 6.0, 1.0, 1.0) == 3.3


def test_an_oracle_that_needs_convexity_gets_weights_above_the_modulus() -> None:
    problem = cases.problem("regression_weakly_convex")
    solution = mm.solve(problem, mm.IQRC(oracle=mm.ConEx(steps=60, evaluations=2), iterations=2), seed=0)
    assert (solution.trace["weight"] > problem.modulus).all()
    undeclared = replace(problem, constraints=[Undeclared(0.4)])
    with pytest.raises(mm.Unsupported, match="declare a weak_convexity"):
        mm.solve(undeclared, mm.IQRC(oracle=mm.ConEx(steps=60, evaluations=2), iterations=2), seed=0)


@pytest.mark.parametrize("oracle", [mm.VarianceReduced(epochs=2, batch_size=50), mm.MirrorProx(steps=8)])
def test_oracles_of_finite_data_take_a_weight_for_each_run(oracle: mm.Oracle) -> None:
    bounds = np.array([0.3, 0.6])
    many = mm.solve(cases.quadratic(bounds), mm.IQRC(oracle=mm.SFLS(oracle=oracle, levels=2), iterations=2), seed=0)
    for j, bound in enumerate(bounds):
        alone = mm.IQRC(oracle=mm.SFLS(oracle=oracle, levels=2), iterations=2)
        one = mm.solve(cases.quadratic(float(bound)), alone, seed=0)
        assert many[j].objective == pytest.approx(one.objective, abs=1e-6)
        assert many[j].trace["weight"].tolist() == pytest.approx(one.trace["weight"].tolist())
        assert many[j].status is one.status
    assert many.feasible.all()


def test_variance_reduction_proves_a_distance_below_the_noise_of_batches() -> None:
    """On finite data, within samples that leave mirror descent three times as far away."""
    oracle = mm.SFLS(oracle=mm.VarianceReduced(epochs=4), levels=3, least_span=0.0)
    problem = cases.problem("regression_weakly_convex")
    solution = mm.solve(problem, mm.IQRC(oracle=oracle, iterations=4, tolerance=1e-3), seed=0)
    assert solution.status is mm.Status.SOLVED
    assert solution.trace["stationarity"][-1] <= 1e-3
    assert solution.trace["weight"][-1] > problem.modulus
    assert solution.samples <= 200_000


class Undeclared(Linear):
    """A linear constraint that declares no convexity."""

    convex = False


def test_a_start_that_is_far_from_feasible() -> None:
    """The first proximal problems have no feasible point; the problem itself has, which the search finds."""
    problem = cases.problem("quadratic_infeasible_start")
    far = replace(problem, start=np.array([2.0, 3.0, 3.0]))
    solution = mm.solve(far, iqrc(steps=60, levels=2, iterations=3), seed=0)
    assert solution.status in {mm.Status.SOLVED, mm.Status.BUDGET}
    assert solution.feasible
    assert (solution.trace["violation"] <= 0).all()
    # where convexity is not declared no search is made: steps come nearer, and nothing is called infeasible
    solver = iqrc(steps=60, levels=2, iterations=3, weight=1.0)
    solver.oracle.searches = 2
    wary = mm.solve(replace(far, constraints=[Undeclared(-2.5)]), solver, seed=0)
    assert wary.trace["violation"][0] > 0
    assert wary.status is mm.Status.BUDGET
    # a small first weight leaves the first proximal problem a feasible point
    free = mm.solve(replace(far, constraints=[Undeclared(-2.5)]), iqrc(steps=200, levels=1, iterations=1), seed=0)
    assert free.trace["violation"][0] <= 0


def test_an_infeasible_problem_is_proved_so_where_convexity_is_declared() -> None:
    problem = cases.quadratic().with_bounds(-50.0)
    least = 50.0 - 6.0 * float(np.linalg.norm(cases.arrays()["costs"].mean(axis=0)))
    solution = mm.solve(problem, iqrc(steps=100, iterations=2), seed=0)
    assert solution.status is mm.Status.INFEASIBLE
    assert f"at least {least:.4g}"[:-1] in solution.reason
    assert solution.certificate.kind == "none"
    assert len(solution.trace) == 0  # no proximal problem was asked
    both = mm.solve(cases.quadratic().with_bounds([-50.0, 0.5]), iqrc(steps=50, levels=2, iterations=2), seed=0)
    assert both.status[0] is mm.Status.INFEASIBLE
    assert both.feasible.tolist() == [False, True]
    solver = iqrc(steps=50, iterations=2)
    solver.oracle.searches = 4
    wary = mm.solve(replace(problem, constraints=[Undeclared(-50.0)]), solver, seed=0)
    assert wary.status is mm.Status.BUDGET
    assert "its oracle said: " in wary.reason


@dataclass(frozen=True)
class Begun:
    problem: mm.MinMaxProblem
    start: mm.Start


class Still(mm.Solver):
    """Has ended where it begins, with the point that it was given, and proves nothing."""

    def init(self, problem: mm.MinMaxProblem, start: mm.Start) -> Begun:
        return Begun(problem, start)

    def step(self, state: Begun) -> Begun:
        return state

    def finished(self, state: Begun) -> bool:
        return True

    def outcome(self, state: Begun) -> mm.Outcome:
        values = state.problem.at_level(np.zeros(len(state.start.x))).values(state.start.x)
        runs = len(values)
        return mm.Outcome(
            x=state.start.x,
            objective=values[:, 0],
            constraints=values[:, 1:] - state.problem.bounds(),
            lower=np.full(runs, -np.inf),
            exact=True,
            confidence=0.0,
            status=(mm.Status.BUDGET,) * runs,
            reason=("It stands still.",) * runs,
            trace=(),
            steps=0,
            samples=0,
            next=state.start,
        )


@pytest.mark.parametrize("name", ["quadratic", "quadratic_infeasible_start"])
def test_an_oracle_that_stands_still_moves_and_proves_nothing(name: str) -> None:
    problem = cases.problem(name)
    solution = mm.solve(problem, mm.IQRC(oracle=Still(), iterations=2), seed=0)
    assert solution.status is not mm.Status.SOLVED
    assert solution.x == pytest.approx(problem.start_point()[0])
    assert solution.feasible == (name == "quadratic")
    assert solution.certificate.lower == -np.inf


class Watched(mm.SFLS):
    """SFLS that notes where it starts."""

    starts: list[Any]

    def init(self, problem: mm.MinMaxProblem, start: Any) -> Any:
        self.starts.append((start.dual, start.memory))
        return super().init(problem, start)


def test_a_proximal_problem_starts_with_the_duals_and_step_sizes_of_the_one_before() -> None:
    oracle: Any = Watched(oracle=mm.SMD(steps=50), levels=2)
    oracle.starts = []
    mm.solve(cases.quadratic(np.array([0.3, 0.6])), mm.IQRC(oracle=oracle, iterations=3, tolerance=1e-9), seed=0)
    assert oracle.starts[0] == (None, None)
    assert len(oracle.starts) == 3
    for dual, memory in oracle.starts[1:]:
        assert dual.weights.shape == (2, 2)
        assert not np.allclose(dual.weights, 0.5)
        assert (memory[0] > 0).all()


def certified(solution: mm.Solution, problem: mm.MinMaxProblem, tolerance: float) -> bool:
    """Whether the exact proximal point of the point returned lies within the tolerance, which must be feasible."""
    weight = float(solution.trace["weight"][-1])
    values = problem.at_level(0.0).values(solution.x[None])[0, 1:] - problem.bounds()[0]
    return (
        bool((values <= 0).all()) and np.linalg.norm(exact_proximal_point(solution.x, weight) - solution.x) <= tolerance
    )


@pytest.mark.parametrize(
    "output, seeds",
    [("best", 1), *(pytest.param(each, 4, marks=pytest.mark.rel) for each in ("best", "random"))],
)
def test_what_is_returned_as_solved_is_what_is_proved(output: Any, seeds: int) -> None:
    """The proof is about the centre of the last step: that point comes back, or nothing is claimed of another."""
    problem, solved = cases.problem("quadratic"), 0
    for seed in range(seeds):
        for tolerance in (0.3,) if seeds == 1 else (0.3, 0.1):
            solver = iqrc(steps=200, levels=3, tolerance=tolerance, output=output)
            states: list[Any] = []
            solution = mm.solve(
                problem, solver, seed=seed, callbacks=[lambda seen, kept=states: kept.append(seen.state)]
            )
            assert len(solution.trace["stationarity"]) < solver.iterations  # the proof ends the run
            if solution.status is mm.Status.SOLVED:
                solved += 1
                assert certified(solution, problem, solution.trace["stationarity"][-1])
                assert (solution.x == states[-1].x[0]).all()
            else:
                assert output == "random"
                assert solution.status is mm.Status.BUDGET
                assert "another iterate than the one drawn" in solution.reason
                assert (solution.x != states[-1].x[0]).any()
    assert solved == (1 if seeds == 1 else 2 * seeds) or output == "random"


def test_a_proof_about_an_infeasible_centre_claims_nothing() -> None:
    """One step proves how near the proximal point is, but the centre violates a constraint: the run goes on."""
    start = np.array([[-1.0, -1.0, -1.0]])
    cost = cases.arrays()["costs"].mean(axis=0)
    problem = cases.quadratic(bound=float(cost @ start[0]) - 1e-6)
    wary = replace(problem, constraints=[Undeclared(problem.constraints[0].bound)], start=start[0])
    for one in (problem, wary):
        solution = mm.solve(one, iqrc(steps=100, levels=2, tolerance=50.0, iterations=2), seed=0)
        if solution.status is mm.Status.SOLVED:
            assert solution.feasible
            assert solution.x.tolist() != start[0].tolist()


@pytest.mark.slow
def test_the_default_tolerance_can_be_proved() -> None:
    solved = []
    for name in ("fair_auc_group", "fair_auc_inter", "fair_auc_intra", "quadratic", "cvar", "robust", "portfolio"):
        solution = mm.solve(cases.problem(name), mm.IQRC(), seed=0)
        solved.append(solution.status is mm.Status.SOLVED)
        best = float(cases.optimum(name).objective)
        assert solution.objective - best <= 0.02 * (1 + abs(best))
    assert all(solved)


@dataclass(frozen=True)
class _Walk:
    start: mm.Start
    done: bool = False


class Walk(mm.Solver):
    """A solver that takes one step to the right and reads ten samples: iterates that can be told apart."""

    def init(self, problem: mm.MinMaxProblem, start: mm.Start) -> _Walk:
        self._problem = problem  # public attributes are settings, which a solution writes out
        return _Walk(start)

    def step(self, state: _Walk) -> _Walk:
        _, position = self._problem.data.draw(state.start.position, 1, 10)
        return _Walk(replace(state.start, x=state.start.x + 0.01, position=position), True)

    def finished(self, state: _Walk) -> bool:
        return state.done

    def outcome(self, state: _Walk) -> mm.Outcome:
        x = state.start.x
        values = self._problem.at_level(np.zeros(len(x))).values(x)
        return mm.Outcome(
            x=x,
            objective=values[:, 0],
            constraints=values[:, 1:] - self._problem.bounds(len(x)),
            lower=np.full(len(x), -np.inf),
            exact=True,
            confidence=1.0,
            status=(mm.Status.BUDGET,) * len(x),
            reason=("walked.",) * len(x),
            trace=(),
            steps=1,
            samples=10,
            next=state.start,
        )


def walk(output: Any, seed: int = 0) -> mm.Solution:
    return mm.solve(cases.quadratic(), mm.IQRC(oracle=Walk(), iterations=5, output=output, tolerance=1e-6), seed=seed)


def test_which_iterate_is_returned() -> None:
    start = -1.0
    assert walk("last").x[0] == pytest.approx(start + 0.05)
    best = walk("best")  # the objective falls along the walk, so the last feasible iterate is the best
    assert best.x[0] == pytest.approx(start + 0.05)
    assert best.objective == min(best.trace["objective"])
    picked = Counter(round((walk("random", seed).x[0] - start) / 0.01) for seed in range(80))
    assert sorted(picked) == [1, 2, 3, 4, 5]
    # uniform over the five: 16 each, and 80 draws stray from it by less than four standard deviations
    assert all(abs(count - 16) <= 4 * np.sqrt(80 * 0.2 * 0.8) for count in picked.values())
    assert walk("random", 3).x[0] == walk("random", 3).x[0]


@pytest.mark.parametrize("output", ["best", "last", "random"])
def test_outputs_of_the_real_method(output: Any) -> None:
    solution = mm.solve(cases.problem("quadratic"), iqrc(steps=60, levels=2, iterations=3, output=output), seed=0)
    rows = solution.trace["objective"]
    assert solution.feasible
    if output == "best":
        assert solution.objective <= rows[solution.trace["violation"] <= 0].min() + 1e-12
    elif output == "last":
        assert solution.objective == rows[-1]
    else:
        assert np.min(np.abs(rows - solution.objective)) <= 1e-12


def test_iterations_limit_the_outer_steps() -> None:
    solution = mm.solve(cases.problem("quadratic"), iqrc(steps=50, levels=1, iterations=3), seed=0)
    assert len(solution.trace["movement"]) == 3
    assert solution.steps == solution.trace["steps"][-1]


@pytest.mark.parametrize("name", ["quadratic"])
def test_a_random_iterate_that_is_solved_is_feasible(name: str) -> None:
    for seed in range(2):
        solution = mm.solve(
            cases.problem(name), iqrc(steps=60, levels=2, iterations=3, tolerance=0.5, output="random"), seed=seed
        )
        if solution.status is mm.Status.SOLVED:
            assert solution.feasible
