"""Multipliers that prove a claim, and their check: what is true passes, what is wrong never does."""

from __future__ import annotations

import math
import re
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import minmaxcon as mm
from minmaxcon.core import Evidence, evidence, proved, proved_of_runs
from minmaxcon.core.constraint import SeparateFamily
from minmaxcon.core.evidence import no_multipliers
from minmaxcon.reference import solve_exact
from tests import cases
from tests.figures import Figure
from tests.problem_library import HalfSquare, Linear, WorstGroup
from tests.solvers.averaging.rivals import each, small
from tests.solvers.test_crossed import solved

EXACT = mm.SFLS(oracle=mm.MirrorProx(steps=150), tolerance=0.1)
CLAIMS = (mm.Status.SOLVED, mm.Status.INFEASIBLE)


def shown(problem: mm.MinMaxProblem, solution: mm.Solution) -> Any:
    assert solution.evidence is not None
    y, a, near = (getattr(solution.evidence, name)[0] for name in ("weights", "scaled", "near"))
    return proved(problem, y, a, near=near)


@pytest.mark.parametrize("name", cases.promises(cases.PROBLEMS, ("fair_auc_torch", "worst_group", "portfolio")))
def test_the_bound_is_found_again_and_bounds_the_optimum(name: str) -> None:
    case = cases.PROBLEMS[name]
    if not case.convex:
        pytest.skip("no bound is to be expected")
    problem = cases.problem(name)
    solution = mm.solve(problem, EXACT)
    found = shown(problem, solution)
    assert found.fault == ""
    gap = solution.certificate.gap
    assert found.lower >= solution.certificate.lower - 0.02 * gap - 1e-6
    if case.reference:
        assert found.lower <= cases.optimum(name).objective + 1e-7


@each
def test_rivals_bring_their_multipliers(rival: str) -> None:
    problem = cases.fair_auc("inter_group", [0.1, 0.5])
    solution = mm.solve(problem, small(rival, steps=300))
    for run in range(2):
        own, mine = problem.take([run]), solution[run]
        assert mine.evidence.weights.shape == (1, 3)
        assert shown(own, mine).lower == pytest.approx(mine.certificate.lower, abs=1e-9)


def test_the_bound_that_is_told_is_the_one_that_is_found_again() -> None:
    """At a kink another search ends at a bound that is slightly weaker: enough for the claim, and what is told."""
    problem = cases.problem("cvar")
    solution = mm.solve(problem, mm.SFLS(oracle=mm.SMD(steps=200, batch_size=60), tolerance=0.05), seed=0)
    assert solution.status is mm.Status.SOLVED
    assert shown(problem, solution).lower == solution.certificate.lower < solution.trace["lower"][-1]
    told = f"; found again, the multipliers prove f* >= {solution.certificate.lower:.6g}."
    assert solution.reason.endswith(told)


def test_a_bound_that_is_no_number_proves_nothing() -> None:
    """Values that overflow have none, whether the objective has a multiplier or not."""
    rows = cases.arrays()
    data = mm.Finite({name: 1e200 * rows[name] for name in ("points", "costs")})
    problem = mm.MinMaxProblem(HalfSquare(), [Linear(0.5), HalfSquare()], mm.Ball(3, 6.0), data)
    for weights in ([1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]):
        found = proved(problem, weights, [])
        assert (found.lower, found.excess) == (-math.inf, 0.0)
        assert found.fault


def test_infeasibility_is_proved_by_multipliers_of_the_constraints_alone() -> None:
    problem = quadratic(0, bound=-20.0)
    for solver in (EXACT, mm.IQRC(oracle=EXACT), cases.SOLVERS["primal_dual"]()):
        solution = mm.solve(problem, solver)
        assert solution.status is mm.Status.INFEASIBLE
        assert solution.evidence.weights[0, 0] == 0
        found = shown(problem, solution)
        assert (found.lower, found.fault) == (math.inf, "")
        assert found.excess > 0.05


@pytest.mark.parametrize(
    "weights, scaled, fault",
    [
        ([1.0, 0.0], [], "not as many"),
        ([1.0], [0.0] * 3, "not as many"),
        ([-0.1, 1.1], [0.0] * 3, "at least 0"),
        ([np.nan, 1.0], [0.0] * 3, "finite"),
        ([0.0, 0.0], [0.0] * 3, "somewhere positive"),
        ([0.5, 0.5], [0.25, 0.25, 0.5], "lie outside their set"),
        ([0.5, 0.5], [-0.1, 0.3, 0.3], "lie outside their set"),
        ([1.0, 0.0], [0.0, 0.1, 0.0], "without a multiplier"),
        ([0.0, 1.0], [0.0, 0.0, 1.0], "not positive"),
    ],
)
def test_what_are_no_multipliers_prove_nothing(weights: Any, scaled: Any, fault: str) -> None:
    """The constraint's inner variables lie in the simplex, so those scaled by its multiplier sum to it."""
    data = cases.finite("points", "costs", "shares")
    problem = mm.MinMaxProblem(HalfSquare(), [WorstGroup(3, 9.0)], mm.Ball(3, 6.0), data)
    found = proved(problem, weights, scaled)
    assert fault in found.fault
    # Whether a bound is positive is known after it was computed.
    assert no_multipliers(problem, weights, scaled) == ("" if fault == "not positive" else found.fault)
    assert no_multipliers(problem, [0.5, 0.5], [0.25, 0.25, 0.0]) == ""
    assert found.lower == -math.inf
    assert not found.excess > 0


def test_multipliers_and_points_that_are_no_numbers_are_named() -> None:
    problem = cases.problem("quadratic")
    good: dict[str, Any] = {"weights": [[0.5, 0.5]], "scaled": [[]], "near": [np.zeros(3)]}
    for name in good:
        with pytest.raises(mm.InvalidInput, match=rf"^{name}=.*must be a vector of numbers"):
            proved_of_runs(problem, **{**good, name: [["text"]]})
        with pytest.raises(mm.InvalidInput, match=rf"^{name}=.*must have a vector for each run"):
            proved_of_runs(problem, **{**good, name: 3})
    for other in (None, problem.objective):
        with pytest.raises(mm.InvalidInput, match=r"^problem="):
            proved_of_runs(other, **good)  # type: ignore[arg-type]
    with pytest.raises(mm.InvalidInput, match=r"^scaled=.*must have a row for each of the 1 runs of weights"):
        proved_of_runs(problem, **{**good, "scaled": [[], []]})
    for near in ([np.zeros(3)] * 2, [np.zeros(2)]):
        with pytest.raises(
            mm.InvalidInput, match=r"^near=.*must have shape \(1, 3\), one point of the set's space a run"
        ):
            proved_of_runs(problem, **{**good, "near": near})


def test_means_that_are_known_to_be_nothing_are_believed() -> None:
    """Where all is 0 nothing differs, and there is no size of which a difference could be a share."""
    asked = list[int]()

    class Zero(Nothing):
        @classmethod
        def fuse(cls, constraints: Any) -> mm.ConstraintFamily:
            return Empty(constraints)

    class Empty(Known):
        def means(self, x: Any, data: mm.Source) -> mm.Evaluation:
            return SeparateFamily(self.constraints).evaluate(x, next(data.chunks())[1])

        def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
            asked.append(len(x))
            return super().evaluate(x, batch)

    problem = mm.MinMaxProblem(Zero(0), [Zero(0)], mm.Ball(3, 1.0), cases.finite("costs"))
    assert proved(problem, [1.0, 1.0], [], over=lambda: True).lower == pytest.approx(0.0, abs=1e-300)
    assert max(asked) == 1


@pytest.mark.parametrize("kappa", [0.5, 1e3])
def test_means_that_are_known_spare_passes_over_the_rows(kappa: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """At many points they are taken, and the rows are read at one alone; values of either sign."""
    problem, points, read = cases.fair_auc("inter_group", np.array([kappa])).take([0]), list[int](), evidence._pass

    def passes(saddles: Any, at: Any, **options: Any) -> Any:
        if not options.get("summed"):
            points.append(max(len(x) for x in at))
        return read(saddles, at, **options)

    monkeypatch.setattr(evidence, "_pass", passes)
    none = Evidence.none(problem, 1)
    weights = np.full(none.weights.shape[1], 1.0)
    assert problem.family.knows_means(problem.data)
    assert proved(problem, weights, np.zeros(none.scaled.shape[1])).fault == ""
    assert max(points) == 1


def test_a_check_without_time_is_short_and_proves_what_it_says() -> None:
    """Few evaluations, a bound that holds, and no fault but that of the time; with time left the same bits as ever."""
    passes = 0

    class Counting(HalfSquare):
        def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
            nonlocal passes
            passes += math.prod(x.shape[:-1])
            return super().evaluate(x, batch)

    problem = quadratic(0, 0.5, Counting())
    solution = mm.solve(problem, EXACT)
    y, a = solution.evidence.weights[0], solution.evidence.scaled[0]
    passes = 0
    short = proved(problem, y, a, near=solution.x, over=lambda: True)
    assert (short.fault, passes <= 65) == ("", True)  # 56 points around u, and some steps
    assert short.lower <= solution.objective
    passes = 0
    whole = proved(problem, y, a, near=solution.x)
    assert passes > 80
    timed = proved(problem, y, a, near=solution.x, over=lambda: False)
    assert short.lower <= whole.lower == timed.lower
    far = np.array([6.0, 0.0, 0.0])
    only, away = [0.0, 1.0], quadratic(0, bound=0.1, constraint=HalfSquare)  # no point is near enough to all points
    assert proved(away, only, [], near=far).excess > 0
    short = proved(away, only, [], near=far, over=lambda: True)
    assert (short.lower, short.cut) == (-math.inf, True)
    wrong = quadratic(0, 0.5, Wave(2.0))  # what is seen to be wrong is wrong, whatever the time
    assert "below its tangent" in proved(wrong, [0.5, 0.5], [], over=lambda: True).fault


def test_what_is_proved_of_many_runs_is_what_is_of_each() -> None:
    """Rows with faults among them; more runs than are evaluated at once; known means and passes; a term each."""
    for make in (lambda: cases.fair_auc("inter_group", np.linspace(0.05, 1.0, 18)), lambda: quadratic(0, 0.5)):
        problem = make()
        runs = problem.runs or 3
        inner = Evidence.none(problem, 1).scaled.shape[1]
        rng = np.random.default_rng(0)
        y, a = rng.dirichlet(np.ones(1 + len(problem.constraints)), runs), 0.01 * rng.uniform(-1, 1, (runs, inner))
        y[1] = np.nan
        y[2] = 0.0, *y[2, 1:]
        a[2] = 0.0
        centers = problem.primal.sample(rng, runs)
        for term in (problem, problem.with_proximal(centers, np.linspace(0.1, 2.0, runs))):
            near = np.where(np.arange(runs)[:, None] == 1, np.nan, centers)
            found = proved_of_runs(term, y, a, near=near)
            alone = [proved(term.take([j]), y[j], a[j], near=near[j]) for j in range(runs)]
            assert [one.fault for one in found] == [one.fault for one in alone]
            assert [one.lower for one in found] == pytest.approx([one.lower for one in alone], rel=1e-7)
            assert "finite" in found[1].fault


def test_multipliers_count_up_to_a_factor() -> None:
    problem = cases.problem("quadratic")
    one, other = (proved(problem, np.array([0.6, 0.4]) * factor, []) for factor in (1.0, 1e6))
    assert one.lower == pytest.approx(other.lower, rel=1e-12)


def test_multipliers_of_another_type_count_as_the_numbers_that_they_are() -> None:
    """Whole, or of single precision, from which nothing is lost on the way."""
    problem, third = cases.quadratic(), np.array([1.0, 1.0 / 3.0], dtype=np.float32)
    for given in (third, np.array([2, 1]), [1, 3], np.array([1, 0], dtype=np.uint8)):
        for near in (np.zeros(3), np.zeros(3, dtype=int), np.zeros(3, dtype=np.float32)):
            found = [
                proved(problem, y, [], near=near, over=lambda: True) for y in (given, np.array(given, dtype=float))
            ]
            assert found[0] == found[1]


def test_functions_that_declare_nothing_have_no_multiplier() -> None:
    class Silent(HalfSquare):
        convex = False

    data = cases.finite("points", "costs")
    problem = mm.MinMaxProblem(Silent(), [Linear(0.5)], mm.Ball(3, 6.0), data)
    assert "is not declared convex" in proved(problem, [1.0, 0.0], []).fault
    assert proved(problem, [0.0, 1.0], []).fault == "the bound on violations is not positive."


class Wrong(Linear):
    """A gradient that is wrong by a factor."""

    factor = 2.0

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        return mm.Evaluation(found.F, found.G, lambda y, a: self.factor * found.pullback(y, a))


@pytest.mark.parametrize("factor", cases.promises([2.0, 0.5, 0.0, -1.0, 1.01], [2.0, -1.0, 1.01]))
def test_a_wrong_gradient_proves_nothing(factor: float) -> None:
    class Scaled(Wrong):
        pass

    Scaled.factor = factor
    data = cases.finite("points", "costs")
    problem = mm.MinMaxProblem(HalfSquare(), [Scaled(0.5)], mm.Ball(3, 6.0), data)
    assert "below its tangent" in proved(problem, [0.5, 0.5], []).fault


class Summed(Linear):
    """A wave that declares itself convex, whose family says that it knows the means."""

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        wave = 3.0 * np.sin(4.0 * x[..., 0])
        slope = np.zeros(x.shape[-1])
        slope[0] = 12.0

        def pullback(y: Any, a: Any) -> Any:
            return found.pullback(y, a) + (y * np.cos(4.0 * x[..., 0]))[..., None] * slope

        return mm.Evaluation(found.F + wave, found.G, pullback)

    @classmethod
    def fuse(cls, constraints: Any) -> mm.ConstraintFamily:
        return Known(constraints)


class Known(SeparateFamily):
    def knows_means(self, data: mm.Source) -> bool:
        return True

    def means(self, x: Any, data: mm.Source) -> mm.Evaluation:
        _, batch = next(data.chunks())
        return SeparateFamily([Linear(0.5) for _ in self.constraints]).evaluate(x, batch)


def test_means_that_are_not_those_of_the_rows_prove_nothing() -> None:
    problem = mm.MinMaxProblem(Summed(), [Summed(0.5)], mm.Ball(3, 6.0), cases.finite("points", "costs"))
    assert problem.family.knows_means(problem.data)
    assert "below its tangent" in proved(problem, [0.5, 0.5], []).fault


class Sunk(Linear):
    """Linear in any unit."""

    def __init__(self, unit: float, bound: float = 0.0) -> None:
        super().__init__(bound)
        self.unit = unit

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        return mm.Evaluation(self.unit * found.F, found.G, lambda y, a: self.unit * found.pullback(y, a))


class Lowered(Known):
    """Believes that the mean is lower by half a unit."""

    def means(self, x: Any, data: mm.Source) -> mm.Evaluation:
        _, batch = next(data.chunks())
        found = SeparateFamily(self.constraints).evaluate(x, batch)
        return mm.Evaluation(found.F - 0.5 * self.constraints[0].unit, found.G, found.pullback)


class Turned(Lowered):
    """Its means are those of the rows, and it believes that their gradients are twice as long."""

    def means(self, x: Any, data: mm.Source) -> mm.Evaluation:
        found = SeparateFamily(self.constraints).evaluate(x, next(data.chunks())[1])
        return mm.Evaluation(found.F, found.G, lambda y, a: 2.0 * found.pullback(y, a))


@pytest.mark.parametrize("family", [Lowered, Turned])
@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_means_that_are_not_those_of_the_rows_are_not_believed_in_any_unit(unit: float, family: Any) -> None:
    class Believed(Sunk):
        @classmethod
        def fuse(cls, constraints: Any) -> mm.ConstraintFamily:
            found: mm.ConstraintFamily = family(constraints)
            return found

    functions = [Believed(unit), Believed(unit, 0.5 * unit)]
    problem = mm.MinMaxProblem(functions[0], functions[1:], mm.Ball(3, 6.0), cases.finite("points", "costs"))
    found = proved(problem, [1.0, 0.0], [])
    assert found.fault == ""
    least = -6.0 * float(np.linalg.norm(cases.arrays()["costs"].mean(axis=0)))
    assert found.lower == pytest.approx(unit * least, rel=1e-6)


def test_a_steep_function_on_a_small_set_is_above_its_tangents() -> None:
    """The allowance for rounding is positive, although values are small beside the slope."""
    data = mm.Finite({"costs": np.array([[-1000.0, 1.0, 2.0], [-1002.0, 3.0, 0.0]])})
    problem = mm.MinMaxProblem(Linear(), [Linear(0.0)], mm.Ball(3, 0.1), data)
    found = proved(problem, [1.0, 0.0], [])
    assert found.fault == ""
    assert found.lower == pytest.approx(-0.1 * math.sqrt(1001.0**2 + 2.0**2 + 1.0), rel=1e-9)


@pytest.mark.parametrize("seed", [0, 2])
def test_a_wrong_gradient_makes_no_false_claim(seed: int) -> None:
    wrong_gradients([seed])


@pytest.mark.rel
def test_wrong_gradients(figure: Figure) -> None:
    figure.total(wrong_gradients(range(20)), "solves with a wrong gradient, without a false claim")


def wrong_gradients(seeds: Any) -> int:
    """The toy problem with the constraint's gradient doubled, and others; return how many were solved."""
    solves = 0
    for seed in seeds:
        solves += 2
        problem = mm.load_problem("toy", seed=seed)
        bad = doubled(problem.constraints[0])
        faulty = mm.MinMaxProblem(problem.objective, [bad], problem.primal, problem.data, start=problem.start)
        found = mm.solve(faulty, mm.SFLS(oracle=mm.MirrorProx(steps=40), levels=3), seed=seed)
        assert found.status not in CLAIMS, found.reason
        data = cases.finite("points", "costs", seed=seed)
        faulty = mm.MinMaxProblem(HalfSquare(), [Wrong(0.5)], mm.Ball(3, 6.0), data)
        found = mm.solve(faulty, EXACT, seed=seed)
        if found.status in CLAIMS:  # where the constraint binds nowhere near, the claim does not rest on its gradient
            exact = solve_exact(quadratic(seed, 0.5)).objective
            assert found.status is mm.Status.SOLVED
            assert found.constraints.max() < -0.1
            assert found.certificate.lower <= exact <= found.certificate.upper
    return solves


def doubled(function: mm.StochasticMinMaxConstraint) -> mm.StochasticMinMaxConstraint:
    """Return a function with the values of another and twice its gradient."""

    class Doubled(type(function)):  # type: ignore[misc]  # the base is known when it runs
        def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
            found = super().evaluate(x, batch)
            return mm.Evaluation(found.F, found.G, lambda y, a: 2.0 * found.pullback(y, a))

    found: mm.StochasticMinMaxConstraint = Doubled.__new__(Doubled)
    found.__dict__.update(function.__dict__)
    return found


def quadratic(
    seed: int, bound: float, objective: mm.StochasticMinMaxConstraint | None = None, constraint: Any = Linear
) -> mm.MinMaxProblem:
    data = cases.finite("points", "costs", seed=seed)
    return mm.MinMaxProblem(objective or HalfSquare(), [constraint(bound)], mm.Ball(3, 6.0), data)


class Wave(HalfSquare):
    """Not convex, and says that it is."""

    def __init__(self, height: float) -> None:
        super().__init__()
        self.height = height

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        slope = 2.0 * self.height * np.cos(2.0 * x)
        value = found.F + self.height * np.sin(2.0 * x).sum(-1)
        return mm.Evaluation(value, found.G, lambda y, a: found.pullback(y, a) + y[..., None] * slope)


def test_evidence_is_a_value_of_runs() -> None:
    problem = cases.fair_auc("inter_group", [0.1, 0.2])
    nothing = Evidence.none(problem, 2)
    assert nothing.weights.shape == (2, 3)
    assert np.isnan(nothing.weights).all()
    constraints = Evidence.of_constraints(np.ones((2, 2)), np.ones((2, 2)), np.ones((2, 3)), nothing)
    assert constraints.weights.tolist() == [[0.0, 1.0, 1.0]] * 2
    assert constraints.scaled[:, -2:].tolist() == [[1.0, 1.0]] * 2
    assert (constraints.scaled[:, :-2] == 0).all()
    single = Evidence.of(*(np.ones((2, 1), dtype=np.float32) for _ in range(3)))  # as an engine may give it
    assert [part.dtype for part in (single.weights, single.scaled, single.near)] == [np.float64] * 3


@pytest.mark.parametrize("weight", [0.5, 20.0])
def test_what_is_proved_of_a_problem_with_a_proximal_term_is_near_its_minimum(weight: float) -> None:
    """Its minimum is in closed form; divided by the objective's weight it bounds f_0 with the proximal term."""
    problem, center = cases.quadratic(), np.array([0.5, -1.0, 0.25])
    y, points, slope = np.array([0.75, 0.25]), cases.arrays()["points"], cases.arrays()["costs"].mean(axis=0)
    best = (0.75 * points.mean(axis=0) - 0.25 * slope + weight * center) / (0.75 + weight)
    square, linear = 0.75 * 0.5 * ((best - points) ** 2).sum(-1).mean(), 0.25 * (slope @ best - 0.5)
    near = 0.5 * weight * ((best - center) ** 2).sum()
    value = (square + linear + near) / 0.75
    found = proved(problem.with_proximal(center, weight), y, np.zeros(0))
    assert found.fault == ""
    assert value - 1e-4 * (1 + abs(value)) <= found.lower <= value + 1e-9
    assert found.unit == pytest.approx((square + abs(linear) + near) / 0.75, rel=1e-3)  # there the gradient is 0
    assert found.excess == 0.0


def test_what_is_proved_in_closed_form_with_a_proximal_term_is_its_minimum() -> None:
    """Against a minimisation by SciPy, which meets the boundary of the set nowhere."""
    problem = cases.fair_auc("group")
    center = 0.1 * np.random.default_rng(0).normal(size=problem.primal.dimension)
    proximal = problem.with_proximal(center, 5.0)
    y, a = np.array([0.6, 0.3, 0.1]), np.zeros(proximal.at_level(np.zeros(1)).dual().inner_dimension)
    at = proximal.at_level(np.zeros(1)).lagrangian_of(y[None], a[None], center[None])

    def value(x: Any) -> float:
        return float(at(x[None])[0][0])

    best = minimize(value, center, options={"gtol": 1e-9})
    assert np.linalg.norm(best.x - center) < 0.5
    assert np.linalg.norm(best.x - center) > 1e-3
    found = proved(proximal, y, a)
    assert found.fault == ""
    assert found.lower == pytest.approx(best.fun / y[0], abs=1e-7)


@pytest.mark.parametrize("margin", [0.5, -0.5])
def test_that_no_point_is_feasible_is_proved_by_a_positive_bound_alone(margin: float) -> None:
    slope = cases.arrays()["costs"].mean(axis=0)
    problem = cases.quadratic(bound=-6.0 * float(np.linalg.norm(slope)) - margin)
    found = proved(problem, np.array([0.0, 1.0]), np.zeros(0))
    assert found.excess == pytest.approx(margin, abs=1e-6)
    assert found.lower == (math.inf if margin > 0 else -math.inf)
    assert (found.fault == "") == (margin > 0)


class Boastful(mm.SFLS):
    """Says that its bound is as good as its objective, whatever its multipliers prove."""

    def outcome(self, state: Any) -> Any:
        found = super().outcome(state)
        return replace(found, lower=found.objective - 1e-9)


def test_a_bound_that_the_multipliers_do_not_prove_is_not_claimed() -> None:
    problem = cases.fair_auc("inter_group", [0.1, 0.5])
    solution = mm.solve(problem, Boastful(oracle=mm.MirrorProx(steps=150), tolerance=0.1))
    assert solution.status == (mm.Status.BUDGET,) * 2
    assert all(re.match(r"The multipliers prove f\* >= 0\.\d+ and not 0\.\d+", reason) for reason in solution.reason)
    for run in range(2):
        own = shown(problem.take([run]), solution[run])
        assert solution.certificate[run].lower == pytest.approx(own.lower, rel=1e-9)


def test_a_bound_at_a_kink_is_found_again_from_where_it_was_found() -> None:
    """From the point that is returned a worse one is found."""
    problem = cases.problem("cvar")
    solution = solved("cvar", "sfls")
    assert solution.status is mm.Status.SOLVED
    assert shown(problem, solution).lower >= solution.certificate.lower - 1e-9
    evidence = solution.evidence
    other = proved(problem, evidence.weights[0], evidence.scaled[0], near=solution.x).lower
    assert other < solution.certificate.lower - 1e-4


@pytest.mark.parametrize("near", [np.full(3, np.nan), np.full(3, 1e9)])
def test_a_search_starts_in_the_set_wherever_it_is_told_to(near: Any) -> None:
    problem = cases.problem("worst_group")
    evidence = mm.solve(problem, EXACT).evidence
    y, a = evidence.weights[0], evidence.scaled[0]
    assert proved(problem, y, a, near=near) == proved(problem, y, a)


def test_multipliers_of_one_run_are_not_those_of_several() -> None:
    """The bounds of the first run would be taken for those of another."""
    problem = cases.fair_auc("inter_group", [0.1, 0.5])
    evidence = mm.solve(problem, EXACT).evidence
    with pytest.raises(mm.InvalidInput, match=r"has 2 runs, and there are multipliers of 1; give problem\.take"):
        proved(problem, evidence.weights[1], evidence.scaled[1])
    own = proved(problem.take([1]), evidence.weights[1], evidence.scaled[1])
    both = proved_of_runs(problem, evidence.weights, evidence.scaled)
    assert both[1].lower == pytest.approx(own.lower, rel=1e-9)


def test_memory_does_not_grow_with_runs_and_functions() -> None:
    data = mm.Finite({"costs": np.random.default_rng(0).normal(size=(5_000, 3))})
    problem = mm.MinMaxProblem(Linear(), [Linear(1.0) for _ in range(8)], mm.Ball(3, 1.0), data)
    weights = np.full((16, 9), 1 / 9)
    peaks = []
    for runs in (1, 16):
        tracemalloc.start()
        proved_of_runs(problem, weights[:runs], np.zeros((runs, 0)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] <= 3 * peaks[0] + 2**20


class Kink(mm.StochasticMinMaxConstraint):
    """The distance of x_0 from 0.3."""

    convex, bound, name = True, 0.0, "kink"

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        slope = np.where(x[..., 0] >= 0.3, 1.0, -1.0)[..., None] * np.eye(x.shape[-1])[0]  # never flat
        return mm.Evaluation(np.abs(x[..., 0] - 0.3), x[..., :0], lambda y, _: y[..., None] * slope)


def test_tangents_on_both_sides_of_a_kink_are_mixed() -> None:
    """No single one is flat: it would prove no more than -1.3 or -0.7."""
    box = mm.Box([-1.0] * 3, [1.0] * 3)
    problem = mm.MinMaxProblem(Kink(), [Linear(1.0)], box, cases.finite("costs"))
    found = proved(problem, [1.0, 0.0], [], near=np.array([0.31, 0.0, 0.0]))
    assert found.fault == ""
    assert -1e-3 <= found.lower <= 0.0


class Dent(Linear):
    """Linear, and lower by some height beyond a plane: it has no gradient there, and is not convex.

    It may bend upwards before, so that no value is below a tangent from farther away.
    """

    def __init__(self, height: float, reach: float, rise: float) -> None:
        super().__init__()
        self.height, self.reach, self.rise = height, reach, rise

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        found, share = super().evaluate(x, batch), x[..., 0] / self.reach
        value = found.F + self.rise * np.maximum(share + 0.6, 0.0) - self.height * (share > 0.2)
        slope = (self.rise / self.reach * (share > -0.6))[..., None] * np.eye(x.shape[-1])[0]
        return mm.Evaluation(value, found.G, lambda y, a: found.pullback(y, a) + y[..., None] * slope)


@pytest.mark.parametrize("reach", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("steep", [1e-6, 1.0, 1e6])
def test_a_dent_is_seen_from_a_ten_millionth_of_the_terms_on(steep: float, reach: float) -> None:
    """A value and two products of a gradient with points are compared, each of which is at most two such sizes."""
    data = mm.Finite({"costs": steep * cases.arrays()["costs"]})
    terms = reach * float(np.abs(data.arrays["costs"].mean(axis=0)).sum())
    for height, rise, seen in ((8e-7, 0.0, True), (1.2e-6, 1.0, True), (1e-9, 1.0, False), (1e-9, 0.0, False)):
        objective = Dent(height * terms, reach, rise * terms)
        problem = mm.MinMaxProblem(objective, [Linear(0.0)], mm.Box([-reach] * 3, [reach] * 3), data)
        found = proved(problem, [1.0, 0.0], [], near=np.full(3, -reach))
        assert ("below its tangent" in found.fault) is seen, (height, rise, found)
        if not seen:
            assert found.lower == pytest.approx(-terms, rel=1e-8)
            # the value at the vertex where it is least, and the products of the gradient with it
            assert found.unit == pytest.approx(2.0 * terms, rel=1e-8)


class Wall(HalfSquare):
    """No value beyond a plane, with a gradient of which ``factor`` is 1 where it is one."""

    def __init__(self, value: float, factor: float = 1.0) -> None:
        super().__init__()
        self.value, self.factor = value, factor

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        value = np.where(x[..., 0] > 3.0, self.value, found.F)
        return mm.Evaluation(value, found.G, lambda y, a: self.factor * found.pullback(y, a))


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_points_without_a_value_neither_hide_a_fault_nor_make_one(value: float) -> None:
    rows = cases.arrays()["points"]
    least = 0.5 * float(((rows - rows.mean(axis=0)) ** 2).sum(-1).mean())
    for factor in (1.0, 1.5):
        data = cases.finite("points", "costs")
        problem = mm.MinMaxProblem(Wall(value, factor), [Linear(0.5)], mm.Ball(3, 6.0), data)
        found = proved(problem, [1.0, 0.0], [], near=np.zeros(3))
        assert ("below its tangent" in found.fault) is (factor > 1), found
        assert factor > 1 or least - 1e-6 <= found.lower <= least


class Uneven(Linear):
    """Linear, with sums over few rows that differ from those over many by a constant and a slope."""

    def __init__(self, constant: float, slope: float, few: int = 100) -> None:
        super().__init__()
        self.constant, self.slope, self.few = constant, np.array([0.0, slope, 0.0]), few

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        if len(batch["costs"]) > self.few:
            return found
        value = found.F + self.constant + x @ self.slope
        return mm.Evaluation(value, found.G, lambda y, a: found.pullback(y, a) + y[..., None] * self.slope)


@pytest.mark.parametrize("rows", [120, 2])
@pytest.mark.parametrize("constant, slope", [(1e-3, 0.0), (0.0, 1e-3), (-1e-3, 2e-3)])
def test_sums_that_depend_on_how_rows_are_cut_cost_four_times_the_difference(
    constant: float, slope: float, rows: int
) -> None:
    """That of the values, and that of the gradients times the diameter; two rows are cut, too."""
    data = mm.Finite({"costs": cases.arrays()["costs"][:rows]})
    problem = mm.MinMaxProblem(Uneven(constant, slope, 100 if rows > 2 else 1), [Linear(0.0)], mm.Ball(3, 2.0), data)
    costs = data.arrays["costs"].mean(axis=0)
    u = -2.0 * costs / np.linalg.norm(costs)  # where the linear function is least
    lost = 4.0 * (abs(constant + slope * u[1]) + 4.0 * slope)
    found = proved(problem, [1.0, 0.0], [], near=u)
    assert found.fault == ""
    assert found.lower == pytest.approx(costs @ u - lost, rel=1e-9)


def test_the_allowance_for_rounding_covers_the_sums_of_many_terms_and_is_small() -> None:
    """A sum of n products is off by up to n units of the last place, relative to the sizes of its terms."""
    each, data = 3_200, mm.Finite({"costs": np.ones((1, 1))})
    functions = [Nothing(each), *(Nothing(0) for _ in range(each - 1))]
    problem = mm.MinMaxProblem(functions[0], functions[1:], mm.Ball(each, 1.0), data)
    saddle = evidence._Lagrangian.of(problem, np.ones(each), np.zeros(each))
    assert isinstance(saddle, evidence._Lagrangian)
    most = 3 * each * 2.0**-53
    assert most <= saddle.rounding <= 4.0 * most


class Nothing(mm.StochasticMinMaxConstraint):
    """The function 0, with inner variables that play no part."""

    convex, bound, name = True, 0.0, "nothing"

    def __init__(self, inner: int) -> None:
        if inner:
            self.dual = mm.BoxBlock([-1.0] * inner, [1.0] * inner)

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        inner = 0 if self.dual is None else self.dual.dimension
        zero = np.zeros((*x.shape[:-1], inner))
        return mm.Evaluation(0.0 * x[..., 0], zero, lambda y, _: 0.0 * (y[..., None] * x))


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_inner_variables_may_leave_their_set_by_a_millionth(size: float) -> None:
    """Of 1 where they are small, of their own size where they are large."""
    problem = mm.MinMaxProblem(HalfSquare(), [Boxed(size)], mm.Ball(3, 1.0), cases.finite("points", "costs"))
    for off, outside in ((0.8e-6, False), (1.25e-6, True)):
        inner = np.array([0.0, size + off * (1.0 + size), -size])
        assert ("lie outside their set" in no_multipliers(problem, [0.5, 0.5], 0.5 * inner)) is outside, off


class Boxed(Linear):
    """max over alpha in a box of E <c + alpha, x>."""

    def __init__(self, size: float) -> None:
        super().__init__()
        self.dual = mm.BoxBlock([-size] * 3, [size] * 3)

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        return mm.Evaluation(found.F, x, lambda y, a: found.pullback(y, a) + a)


def test_a_start_that_is_none_costs_no_other_run_its_own() -> None:
    """Without time to search, the bound is that of the tangent where the search starts."""
    start, good = np.array([-0.9, 0.0, 0.0]), np.array([0.31, 0.0, 0.0])
    box = mm.Box([-1.0] * 3, [1.0] * 3)
    problem = mm.MinMaxProblem(Kink(), [Linear(1.0)], box, cases.finite("costs"), start=start)
    near = [np.full(3, np.nan), good, np.full(3, 7.0), np.full(3, 1.0 + 1e-5)]
    found = proved_of_runs(problem, [[1.0, 0.0]] * 4, [[]] * 4, near=near, over=lambda: True)
    assert [one.lower for one in found] == pytest.approx([-0.7, -1.3, -0.7, -0.7], abs=1e-9)
