"""Deterministic mirror-prox: exact bounds at any time, a gap that falls like 1/T, and an end when it is small."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.arrays import to_numpy
from minmaxcon.core.lower import lower_bound
from minmaxcon.oracles.exact import Incumbent
from tests import cases

Array = Any

CONVEX = [name for name, case in cases.PROBLEMS.items() if case.convex and case.reference]


@cache
def level_of(name: str) -> float:
    """A level somewhat above f*."""
    problem = cases.problem(name)
    first = float(problem.at_level(0.0).values(problem.start_point())[0, 0])
    best = float(cases.optimum(name).objective)
    return best + 0.3 * max(first - best, 0.3)


@cache
def exact_value(name: str) -> float:
    """H at that level."""
    from minmaxcon.reference import level_value

    return float(level_value(cases.problem(name), level_of(name)))


def start(problem: mm.MinMaxProblem, runs: int = 1, seed: int = 0) -> mm.Start:
    return mm.Start(problem.start_point(runs), None, mm.Position.start(np.random.default_rng(seed)))


@pytest.mark.parametrize("metric", ["inter_group", "intra_group"])
def test_no_minimiser_that_gave_a_bound_is_better_than_the_point(metric: str) -> None:
    problem = cases.fair_auc(metric, [1.0])
    level = problem.at_level(level_of(f"fair_auc_{metric.partition('_')[0]}"))
    state = mm.MirrorProx(steps=16, relative_accuracy=0.0).begin(level, start(problem))
    while not mm.MirrorProx().finished(state):
        state = mm.MirrorProx().advance(state)
    best = state.best
    x = level.family.lagrangian_minimizer(best.weights, best.scaled, level.data)
    x = level.family.refine(np.asarray(x), level.data)
    assert best.upper[0] <= (level.values(x) - level.bounds).max() + 1e-12


def test_a_window_begins_at_a_minimiser_that_is_the_best_point() -> None:
    problem = cases.fair_auc("inter_group", [0.05, 0.2, 1.0])
    level = problem.at_level(np.array([0.3, 0.4, 0.45]))
    oracle = mm.MirrorProx(steps=8, relative_accuracy=0.0)  # a window
    state = oracle.advance(oracle.begin(level, start(problem, 3)))
    best = state.best
    assert oracle.finished(state)
    assert best.minimiser.any()
    assert (state.x[best.minimiser] == best.x[best.minimiser]).all()
    assert (level.values(best.x) - level.bounds).max(axis=1) == pytest.approx(best.upper, abs=1e-14)
    other = cases.problem("worst_group")  # whose family knows no minimiser
    level = other.at_level(level_of("worst_group"))
    state = mm.MirrorProx(steps=16).begin(level, start(other))
    while not mm.MirrorProx().finished(state):
        state = mm.MirrorProx().advance(state)
    assert not state.best.minimiser.any()


@pytest.mark.parametrize("kappa", [0.05, 0.5])
def test_primal_steps_that_lag_behind_do_not_matter(kappa: float) -> None:
    """Where the family knows minimisers, few trials solve what took 332 and 795 by steps alone."""
    problem = mm.load_problem("fair_auc", data="loanapp", metric="inter_group", kappa=kappa)
    solution = mm.solve(problem, mm.SFLS(mm.MirrorProx()), seed=0)
    assert (solution.status, solution.steps <= 160) == (mm.Status.SOLVED, True)


@pytest.mark.parametrize(
    "name", cases.promises(CONVEX, ["fair_auc_inter", "quadratic_infeasible_start", "worst_group", "mixed_geometry"])
)
def test_bounds_hold_the_value_at_any_time(name: str) -> None:
    """D <= H <= U after every advance; both come near H, and U is the value at the point returned."""
    problem = cases.problem(name)
    level, value = problem.at_level(level_of(name)), exact_value(name)
    oracle = mm.MirrorProx(steps=100, relative_accuracy=0.0)
    state = oracle.begin(level, start(problem))
    opening = float(oracle.estimate(state).upper[0])
    while not oracle.finished(state):
        state = oracle.advance(state)
        found = oracle.estimate(state)
        exact = float((level.values(found.x) - level.bounds).max())
        assert found.upper[0] == pytest.approx(exact, abs=1e-9)
        assert value - 1e-6 * (1 + abs(value)) <= exact <= opening + 1e-9
    below = float(lower_bound(level, found.weights, found.scaled, found.x)[0])
    assert below <= value + 1e-6 * (1 + abs(value))
    assert exact - below <= 0.1 * max(opening - value, 0.05)


@pytest.mark.parametrize("name", ["fair_auc_inter", "portfolio", "worst_group"])
def test_a_proximal_term_is_part_of_the_problem(name: str) -> None:
    """With d_x: the bounds meet, so both are the value of the level with the term."""
    problem = cases.problem(name)
    problem = problem.with_proximal(problem.start_point()[0], 0.5)
    level = problem.at_level(level_of(name))
    found = mm.MirrorProx(steps=600, relative_accuracy=1e-3).query(level, start(problem))
    exact = float((level.values(found.x) - level.bounds).max())
    below = float(lower_bound(level, found.weights, found.scaled, found.x)[0])
    assert below - 1e-9 <= exact == pytest.approx(found.upper[0], abs=1e-12)
    assert exact - below <= 2e-3 * abs(exact) + 1e-6


def test_the_gap_falls_like_one_over_t() -> None:
    """A robust constraint, whose inner penalty is zero, and a mean gap: slope at most -0.9 in logarithms."""
    for name in ("robust", "mean_gap"):
        problem = cases.problem(name)
        level, value = problem.at_level(level_of(name)), exact_value(name)
        lengths, gaps = [8, 16, 32, 64], []
        for steps in lengths:
            found = mm.MirrorProx(steps=steps, relative_accuracy=0.0).query(level, start(problem))
            below = float(lower_bound(level, found.weights, found.scaled, found.x)[0])
            gaps.append(float(found.upper[0]) - below + 1e-9 * abs(value))
        slope = np.polyfit(np.log(lengths), np.log(gaps), 1)[0]
        assert slope <= -0.9, (name, gaps)


def test_a_step_costs_one_pass() -> None:
    """And one more where two trials in a row fail, as most of the first do where steps start too long."""
    problem = cases.problem("mean_gap")
    found = mm.MirrorProx(steps=64, relative_accuracy=0.0).query(problem.at_level(level_of("mean_gap")), start(problem))
    passes = found.samples / int(problem.data.size or 0)
    assert 65 <= passes <= 1.1 * 65


@pytest.mark.parametrize("name", ["robust", "fair_auc_inter"])
def test_the_ratio_of_steps_does_not_wander_off(name: str) -> None:
    """Over a sequence of queries at one level both parts of the point move, and the gap keeps falling."""
    problem, oracle = cases.problem(name), mm.MirrorProx(relative_accuracy=0.0)
    level, begun, gaps = problem.at_level(level_of(name)), start(problem), []
    for query in range(7):
        state = oracle.begin(level, begun, effort=1.2**query)
        while not oracle.finished(state):
            state = oracle.advance(state)
        assert 0.03 <= float(state.size.ratio[0, 0]) <= 30.0
        begun = oracle.estimate(state).next
        gaps.append(float(state.best.upper[0] - state.best.lower[0]))
    assert gaps[-1] <= 0.02 * gaps[0]


@pytest.mark.parametrize("accuracy", [1e-1, 1e-2, 1e-3])
def test_it_stops_when_the_gap_is_as_small_as_asked(accuracy: float) -> None:
    problem = cases.problem("fair_auc_inter")
    level = problem.at_level(level_of("fair_auc_inter"))
    oracle = mm.MirrorProx(steps=5000, relative_accuracy=0.0)
    found = oracle.query(level, start(problem), accuracy=accuracy)
    below = float(lower_bound(level, found.weights, found.scaled, found.x)[0])
    assert found.upper[0] - below <= accuracy
    assert found.steps < 5000
    relative = mm.MirrorProx(steps=5000, relative_accuracy=0.5).query(level, start(problem))
    below = float(lower_bound(level, relative.weights, relative.scaled, relative.x)[0])
    assert relative.upper[0] - below <= 0.5 * abs(relative.upper[0])


def parts(found: mm.Estimate) -> dict[str, Array]:
    dual = found.next.dual
    assert dual is not None
    kept = {name: getattr(found, name) for name in ("x", "weights", "scaled", "upper", "values")}
    kept |= {"last x": found.next.x, "y": dual.weights, "alpha": dual.inner}
    kept |= {f"steps {i}": part for i, part in enumerate(found.next.memory)}  # from which the next query starts
    return {name: np.asarray(to_numpy(value)) for name, value in kept.items()}


@pytest.mark.parametrize(
    "name",
    cases.promises(
        ["fair_auc_inter", "fair_auc_torch", "worst_group", "robust", "portfolio", "cvar"],
        ["fair_auc_inter", "robust", "portfolio", "cvar"],
    ),
)
def test_a_run_of_many_equals_the_run_alone(name: str) -> None:
    """Runs end at their own times, and what others do does not touch them."""
    problem = cases.problem(name)
    levels = level_of(name) + np.array([0.0, 0.05, 0.2])
    oracle = mm.MirrorProx(steps=40, relative_accuracy=0.3)
    many = parts(oracle.query(problem.at_level(levels), start(problem, 3)))
    for j in range(3):
        alone = parts(oracle.query(problem.at_level(levels[j : j + 1]), start(problem)))
        for part, value in alone.items():
            assert many[part][j] == pytest.approx(value[0], abs=1e-9), part


def test_runs_that_have_ended_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points are evaluated of runs that go on alone, in trials and at the ends of windows."""
    problem, sizes = cases.problem("worst_group"), []
    levels = level_of("worst_group") + np.array([0.0, 0.5, 1.0])  # above f*, where the sign is soon known
    oracle = mm.MirrorProx(steps=100, relative_accuracy=0.01)
    evaluate = type(problem.family).evaluate

    def seen(self: Any, x: Array, batch: mm.Batch) -> mm.Evaluation:
        sizes.append(len(x))
        return evaluate(self, x, batch)

    monkeypatch.setattr(type(problem.family), "evaluate", seen)
    monkeypatch.setattr("minmaxcon.oracles.mirror_prox._SAMPLES_AT_ONCE", 1)  # a trial between two looks at the clock
    state = oracle.begin(problem.at_level(levels), start(problem, 3))
    known = []
    while not oracle.finished(state):
        before, sizes = state.active.sum(), sizes[:0]
        state = oracle.advance(state)
        known.append((int(before), int(state.active.sum()), max(sizes)))
    alike = [(going, most) for going, after, most in known if going == after]
    assert {going for going, _ in alike} >= {2, 3}
    assert all(going == most for going, most in alike)


def test_engines_agree_and_nothing_is_random() -> None:
    problem, torch = cases.problem("fair_auc_inter"), cases.problem("fair_auc_torch")
    oracle = mm.MirrorProx(steps=40, relative_accuracy=0.0)
    one, again, other = (
        parts(oracle.query(p.at_level(0.35), start(p, seed=seed)))
        for p, seed in ((problem, 0), (problem, 1), (torch, 0))
    )
    for name, value in one.items():
        assert value.tobytes() == again[name].tobytes(), name
        assert value == pytest.approx(other[name], abs=1e-9), name


def test_effort_lengthens_a_query_of_a_stream() -> None:
    """In proportion, from a length that does not depend on rows that nobody has counted."""
    drawn = cases.finite("points", "costs").arrays
    problem = mm.MinMaxProblem(cases.HalfSquare(), [cases.Linear(0.5)], mm.Ball(3, 6.0), Endless(drawn))
    begun = mm.Start(np.zeros((1, 3)), None, start(cases.quadratic()).position)
    limits = [mm.SMD().begin(problem.at_level(5.0), begun, effort=effort).limit for effort in (1.0, 2.0, 3.5)]
    assert limits[1:] == [2 * limits[0], 3.5 * limits[0]]
    assert mm.SMD(steps=40).begin(problem.at_level(5.0), begun, effort=2.0).limit == 80


def test_effort_lengthens_a_query() -> None:
    problem = cases.problem("fair_auc_inter")
    oracle = mm.MirrorProx(steps=20, relative_accuracy=0.0)
    state = oracle.begin(problem.at_level(0.35), start(problem), effort=1.5)
    while not oracle.finished(state):
        state = oracle.advance(state)
    assert oracle.estimate(state).steps == 30


@pytest.mark.parametrize("name", ["fair_auc_inter", "robust"])
def test_sfls_with_it_is_accurate(name: str) -> None:
    """Half a thousandth of r_0 - f*, by its own certificate and against the reference."""
    solution = mm.solve(cases.problem(name), mm.SFLS(oracle=mm.MirrorProx(), tolerance=5e-4))
    best = float(cases.optimum(name).objective)
    first = float(solution.trace["r"][0])
    assert solution.status is mm.Status.SOLVED
    assert solution.feasible
    assert -1e-7 <= solution.objective - best <= 5e-4 * (first - best) + 1e-7


class Endless(mm.Finite):
    """The same samples as a stream: no pass over all of them."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        super().__init__(arrays)
        self.size = None


@pytest.mark.parametrize("oracle", [mm.MirrorProx(), mm.VarianceReduced()], ids=["mirror_prox", "variance_reduced"])
def test_streams_are_refused(oracle: mm.Oracle) -> None:
    drawn = cases.finite("points", "costs").arrays
    problem = mm.MinMaxProblem(cases.HalfSquare(), [cases.Linear(0.5)], mm.Ball(3, 6.0), Endless(drawn))
    with pytest.raises(mm.Unsupported, match=f"{type(oracle).__name__} .* needs finite data: on a stream use SMD"):
        oracle.query(problem.at_level(5.0), mm.Start(np.zeros((1, 3)), None, start(cases.quadratic()).position))


@pytest.mark.parametrize("oracle", [mm.SMD(), mm.ExtraGradient(), mm.MirrorProx(), mm.VarianceReduced()])
def test_a_start_of_other_runs_or_coordinates_is_refused(oracle: mm.Oracle) -> None:
    level = cases.quadratic([0.3, 0.5]).at_level(5.0)
    for shape in ((1, 3), (2, 4), (3,)):
        with pytest.raises(
            mm.InvalidInput, match=r"start=.*must fit \(runs, dimension, vector of step sizes\) = \(2, 3,"
        ):
            oracle.query(level, mm.Start(np.zeros(shape), None, start(cases.quadratic()).position))


@pytest.mark.parametrize("setting", [{"steps": 0}, {"relative_accuracy": -1.0}, {"mixing": 2.0}])
def test_settings_out_of_range_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(mm.InvalidInput, match=next(iter(setting))):
        mm.MirrorProx(**setting)


def test_a_value_that_is_not_finite_ends_the_run() -> None:
    """The logarithm of x_1 is no number left of zero: term and step are named, other runs go on."""

    class Fragile(cases.HalfSquare):
        def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
            found = super().evaluate(x, batch)
            lost = np.where(x[..., 0] > 0.5, np.nan, 0.0)
            return mm.Evaluation(found.F + lost, found.G, found.pullback)

    data = cases.finite("points", "costs")
    problem = mm.MinMaxProblem(Fragile(name="fragile"), [cases.Linear(0.5)], mm.Ball(3, 6.0), data)
    starts = np.array([[0.6, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    oracle = mm.MirrorProx(steps=3, relative_accuracy=0.0)
    position = mm.Position.start(np.random.default_rng(0))
    found = oracle.query(problem.at_level([5.0, 5.0]), mm.Start(starts, None, position))
    assert found.failure[0] == "F of 'fragile' is not finite at step 0"
    assert np.isfinite(found.x).all()
    assert np.isfinite(found.next.x).all()


def test_a_minimiser_without_values_hides_no_point_on_the_way_to_it() -> None:
    problem = cases.problem("fair_auc_inter")
    level, start = problem.at_level([0.3]), problem.start_point(1)
    dual = level.dual()
    known = Incumbent.of(level, start, dual, dual.sample(np.random.default_rng(0), 1))
    known = replace(known, upper=np.array([1e9]))
    x = start + 0.1
    values = level.values(x) - level.bounds
    assert known._towards(level, x, np.full_like(values, np.nan)).upper < 1e9
    assert known._towards(level, x, values).upper <= values.max()
