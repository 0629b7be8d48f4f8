"""The level-set method: infeasibility with evidence, its own first level, and what every setting does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.core.confidence import look
from minmaxcon.reference import level_value
from minmaxcon.solvers import sfls
from tests import cases
from tests.figures import Figure
from tests.normal_stream import half_space
from tests.problem_library import HalfSquare, Linear, MeanGap, Robust, WorstGroup

Array = Any

FAST = mm.SMD(steps=300, batch_size=40)


def random_problem(seed: int) -> mm.MinMaxProblem:
    """Draw constraints of any kind around a point that nearly meets them all."""
    rng = np.random.default_rng(seed)
    data = cases.finite("points", "costs", "shares", "contrast", seed=int(rng.integers(1000)))
    makers: list[Callable[[], Any]] = [
        lambda: Linear(rng.normal()),
        lambda: Linear(rng.normal(), sign=-1.0),
        lambda: HalfSquare(2.0 * rng.random()),
        lambda: Robust(3, 0.1 + rng.random(), rng.normal()),
        lambda: WorstGroup(3, 3.0 * rng.random()),
        lambda: MeanGap(rng.random()),
    ]
    chosen = rng.choice(len(makers), size=int(rng.integers(1, 4)), replace=True)
    constraints = [makers[i]() for i in chosen]
    objective = HalfSquare() if rng.random() < 0.5 else Linear(sign=rng.choice([-1.0, 1.0]))
    return mm.MinMaxProblem(objective, constraints, mm.Ball(3, 2.0 + 3.0 * rng.random()), data)


def shifted(seed: int, margin: float) -> mm.MinMaxProblem:
    """Shift all bounds so that the least violation is -margin: infeasible for a negative margin."""
    problem = random_problem(seed)
    least = float(level_value(problem, 1e4))  # the objective plays no part at such a level
    return problem.with_bounds(*(float(c.bound) + least + margin for c in problem.constraints))


def solve_shifted(seed: int, margin: float) -> mm.Solution:
    solver = mm.SFLS(oracle=mm.SMD(steps=400, batch_size=60), tolerance=0.1, levels=1, growth=1.5)
    return mm.solve(shifted(seed, margin), solver, seed=seed)


def count_infeasible(seeds: range) -> int:
    """Count the infeasible problems that are flagged; none may be called anything better."""
    flagged = 0
    for seed in seeds:
        solution = solve_shifted(seed, -0.05)
        assert not solution.feasible
        assert solution.status in {mm.Status.INFEASIBLE, mm.Status.BUDGET}
        assert solution.certificate.upper == np.inf
        if solution.status is mm.Status.INFEASIBLE:
            flagged += 1
            # the evidence, against the exact least violation, which is 0.05
            assert 0 < solution.trace["D"][-1] <= 0.05 + 1e-6
            assert f"{solution.trace['D'][-1]:.6g}" in solution.reason
    return flagged


def count_feasible(seeds: range) -> int:
    """Count the feasible problems for which a feasible point is found; none may be called infeasible."""
    found = 0
    for seed in seeds:
        solution = solve_shifted(seed, 0.05)
        assert solution.status is not mm.Status.INFEASIBLE
        found += bool(solution.feasible)
    return found


def test_infeasible_problems_are_told_from_feasible_ones() -> None:
    assert count_infeasible(range(1)) == 1
    assert count_feasible(range(1)) == 1


@pytest.mark.rel
@pytest.mark.slow
def test_infeasible_40_and_feasible_40(figure: Figure) -> None:
    seeds = range(40)
    flagged, found = count_infeasible(seeds), count_feasible(seeds)
    figure.count(flagged, len(seeds), "infeasible problems flagged")
    figure.count(found, len(seeds), "feasible ones with a feasible point")
    assert flagged >= 38
    assert found == len(seeds)


def test_the_search_finds_the_first_level_by_itself() -> None:
    problem = cases.problem("quadratic_infeasible_start")
    solution = mm.solve(problem, mm.SFLS(oracle=FAST, levels=3, tolerance=1e-6))
    phases = solution.trace["phase"].tolist()
    searches = phases.count("search")
    assert searches >= 1
    assert phases == ["search"] * searches + ["level"] * (len(phases) - searches)
    assert (solution.trace["violation"][searches - 1 :] < 0).all()
    assert phases.count("level") == 3  # searches are not counted as levels
    # the first level is the objective at the point that was found
    assert solution.trace["r"][searches] == pytest.approx(solution.trace["objective"][searches - 1])


def test_what_a_setting_switches_off_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """No look at what the objective varies by, and no exact passes of a search over data that are large."""

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("was done")

    short = mm.SMD(steps=20, batch_size=20)
    with monkeypatch.context() as patch:
        patch.setattr(sfls, "nearby_variation", never)
        mm.solve(cases.problem("fair_auc_inter"), mm.SFLS(oracle=short, levels=3, tolerance=1e-6, least_span=0.0))
    problem, searching = cases.problem("quadratic_infeasible_start"), mm.SFLS(oracle=mm.SMD(steps=1), levels=1)
    monkeypatch.setattr(sfls, "MirrorProx", never)
    with pytest.raises(AssertionError, match="was done"):
        mm.solve(problem, searching)
    monkeypatch.setattr(sfls, "_SMALL", 10.0)
    assert mm.solve(problem, searching).trace["phase"][0] == "search"


def test_levels_follow_the_rule() -> None:
    r"""r is the middle of the bracket of f*; without a lower bound it moves by (f_0(best) - r) / (2 theta)."""
    trace = mm.solve(
        cases.problem("fair_auc_inter"), mm.SFLS(oracle=mm.SMD(steps=100, batch_size=40), levels=5, tolerance=1e-6)
    ).trace
    assert trace["r"][0] == pytest.approx(0.5)  # c1 c2^2, at the constant model
    assert trace["r"][1:] == pytest.approx((trace["lower"] + trace["objective"])[:-1] / 2, abs=1e-12)
    for theta in (0.6, 3.0):
        solver = mm.SFLS(oracle=mm.SMD(steps=50, batch_size=20), theta=theta, levels=4, tolerance=1e-6)
        trace = mm.solve(cases.problem("regression_weakly_convex"), solver).trace
        assert np.isneginf(trace["lower"]).all()
        for before, after, best in zip(trace["r"][:-1], trace["r"][1:], trace["objective"][:-1], strict=True):
            assert after == pytest.approx(before + min(best - before, 0.0) / (2 * theta), abs=1e-12)


@pytest.mark.parametrize("kappa", [0.02, pytest.param(0.1, marks=pytest.mark.rel)])
def test_the_bracket_halves_however_small_the_weight_of_the_objective(kappa: float) -> None:
    """A query that finds the sign of H(r) halves the bracket; by the paper's rule tight constraints slow the levels."""
    problem = cases.fair_auc("inter_group", kappa)
    solver = mm.SFLS(oracle=mm.MirrorProx(steps=500, relative_accuracy=0.05), levels=4, tolerance=1e-9)
    trace = mm.solve(problem, solver).trace
    bracket = trace["objective"] - trace["lower"]
    signed = (trace["P"] <= 0) | (trace["D"] >= 0)
    assert signed[1]
    assert bracket[3] <= 1e-4 * bracket[0]  # after a few such levels it is as small as rounding errors
    assert (bracket[1:] <= (0.5 + 1e-9) * bracket[:-1])[signed[1:]].all()


class Spy(mm.Oracle):
    """Mirror descent that notes what it is asked for."""

    def __init__(self, steps: int = 100) -> None:
        self.inner, self.asked = mm.SMD(steps=steps, batch_size=40), []

    def begin(
        self, problem: Any, start: Any, *, accuracy: float = 0.0, confidence: float = 0.9, effort: float | None = None
    ) -> Any:
        state = self.inner.begin(problem, start, accuracy=accuracy, confidence=confidence, effort=effort)
        self.asked.append((accuracy, confidence, effort, state.limit, problem.has_objective))
        return state

    def advance(self, state: Any) -> Any:
        return self.inner.advance(state)

    def finished(self, state: Any) -> bool:
        return self.inner.finished(state)

    def estimate(self, state: Any) -> mm.Estimate:
        return self.inner.estimate(state)


def test_what_the_oracle_is_asked_for() -> None:
    r"""Accuracy as given, confidence 1 - delta / 2^(k+1), and growing effort; the confidences sum to delta at most."""
    spy = Spy()
    solver = mm.SFLS(oracle=spy, delta=0.2, oracle_error=0.003, growth=1.5, levels=4, tolerance=1e-9)
    mm.solve(cases.problem("fair_auc_inter"), solver)
    assert [entry[0] for entry in spy.asked] == [0.003] * 4
    assert [entry[1] for entry in spy.asked] == pytest.approx([1 - 0.2 / 2 ** (k + 1) for k in range(4)])
    assert [entry[2] for entry in spy.asked] == pytest.approx([1.5**k for k in range(4)])
    assert [entry[3] for entry in spy.asked] == [100, 150, 225, 338]
    assert all(entry[4] for entry in spy.asked)
    searching = Spy()
    mm.solve(cases.problem("quadratic_infeasible_start"), mm.SFLS(oracle=searching, levels=1))
    assert not searching.asked[0][4]  # the first question leaves the objective out


def test_tolerance_levels_searches_and_slack() -> None:
    problem = cases.problem("fair_auc_inter")
    gaps, counts = [], []
    for tolerance in (0.3, 0.02):
        solution = mm.solve(problem, mm.SFLS(oracle=FAST, tolerance=tolerance))
        assert solution.status is mm.Status.SOLVED
        span = 0.5 - solution.certificate.lower
        gaps.append(solution.certificate.gap / span)
        counts.append(len(solution.trace["r"]))
        assert gaps[-1] <= tolerance
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    assert len(mm.solve(problem, mm.SFLS(oracle=FAST, levels=2, tolerance=1e-9)).trace["r"]) == 2
    padded = mm.solve(problem, mm.SFLS(oracle=FAST, levels=1, slack=0.25))
    assert padded.trace["r"][0] == pytest.approx(0.75)
    undeclared = Linear(-2.5)
    undeclared.convex = False  # where it is declared, exact passes find a point at once
    hard = replace(cases.quadratic(), start=np.array([3.0, 3.0, 3.0]), constraints=[undeclared])
    tired = mm.solve(hard, mm.SFLS(oracle=mm.SMD(steps=3, batch_size=5), searches=2))
    assert tired.status is mm.Status.BUDGET
    assert tired.trace["phase"].tolist() == ["search"] * 2
    assert "2 searches" in tired.reason
    worst = float(np.max(tired.constraints))
    assert f"no feasible point was found yet, the least violation is {worst:.6g}" in tired.reason


def test_oracle_error_loosens_the_stopping_rule() -> None:
    """Without a certificate the level-set rule stops; the oracle's error is taken off |H(r_0)|."""
    problem = cases.problem("regression_weakly_convex")
    oracle = mm.SMD(steps=150, batch_size=40)
    solution = mm.solve(problem, mm.SFLS(oracle=oracle, tolerance=0.05, levels=20))
    assert solution.status is mm.Status.BUDGET
    assert "no lower bound is known" in solution.reason
    opening, last = solution.trace["P"][0], solution.trace["P"][-1]
    assert 0 >= last >= -4 * 0.6 / (6 * 0.6 - 1) * 0.05 * -opening
    assert solution.certificate.lower == -np.inf
    strict = mm.solve(problem, mm.SFLS(oracle=oracle, tolerance=0.05, levels=20, oracle_error=-0.9 * opening))
    assert len(strict.trace["r"]) > len(solution.trace["r"])


def test_the_columns_of_the_trace() -> None:
    solution = mm.solve(cases.problem("fair_auc_inter"), mm.SFLS(oracle=FAST, levels=4, tolerance=1e-6))
    trace = solution.trace
    for row in solution.records():
        assert row["D"] <= row["P"] + 1e-9  # both bound H(r)
        assert row["lower"] <= row["objective"] + 1e-12
    assert (np.diff(trace["objective"]) <= 0).all()
    assert (np.diff(trace["lower"]) >= 0).all()
    assert trace["level"].tolist() == [0, 1, 2, 3]
    assert trace["steps"].tolist() == np.cumsum([300, 360, 432, 519]).tolist()
    assert solution.steps == trace["steps"][-1]
    assert solution.samples == 40 * solution.steps
    assert solution.settings["solver"]["oracle"]["steps"] == 300


def test_single_precision_certificates_keep_their_word() -> None:
    """In float32 the bounds carry rounding of 1e-6, and the verdicts stay those of float64."""
    double, single = (cases.fair_auc("inter_group", 0.1, dtype=dtype) for dtype in ("float64", "float32"))
    solver = mm.SFLS(oracle=mm.SMD(steps=300), tolerance=0.05)
    solution = mm.solve(single, solver)
    values = double.at_level(0.0).values(solution.x[None])[0]
    assert solution.objective == pytest.approx(values[0], abs=1e-5)
    assert (values[1:] - 1.1).max() <= 1e-5
    best = float(cases.optimum("fair_auc_inter").objective)
    assert solution.status is mm.Status.SOLVED
    assert solution.certificate.lower <= best + 1e-5


def test_what_a_query_under_way_has_cost_is_counted_once() -> None:
    problem, solver = cases.problem("fair_auc_inter"), mm.SFLS(oracle=mm.SMD(steps=5000, batch_size=20), levels=3)
    start = mm.Start(problem.start_point(1), None, mm.Position.start(np.random.default_rng(0)))
    begun = solver.init(problem, start)
    assert (solver.outcome(begun).steps, solver.outcome(begun).samples) == (0, 0)
    state = solver.step(begun)
    running = solver.oracle.estimate(state.query)
    assert running.steps > 0
    assert running.samples == 20 * running.steps
    found = solver.outcome(replace(state, steps=7, samples=11))
    assert (found.steps, found.samples) == (7 + running.steps, 11 + running.samples)


def test_a_look_divides_its_share_of_the_confidence_among_its_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two bounds for each function, one of the optimum and one of the first point: 6 delta / (pi k)^2 together."""
    asked = list[float]()

    def spy(*arguments: Any, beta: float, **options: Any) -> Any:
        asked.append(beta)
        return look(*arguments, beta=beta, **options)

    monkeypatch.setattr("minmaxcon.solvers.sfls.look", spy)
    problem, _ = half_space()
    mm.solve(problem, mm.SFLS(oracle=mm.SMD(steps=60, batch_size=20), levels=3, delta=0.2, tolerance=1e-6), seed=0)
    assert len(asked) == 4  # a search and three levels
    for k, beta in enumerate(asked, start=1):
        assert beta * (2 * 2 + 2) == pytest.approx(6 * 0.2 / (np.pi * k) ** 2, rel=1e-12)


def test_a_query_begins_where_the_one_before_it_ended() -> None:
    class Noted(mm.MirrorProx):
        def begin(self, problem: Any, start: mm.Start, **options: Any) -> Any:
            begun.append(start)
            return super().begin(problem, start, **options)

    begun, ended = list[mm.Start](), list[mm.Start]()
    problem, solver = cases.problem("fair_auc_inter"), mm.SFLS(oracle=Noted(), tolerance=0.002)
    state = solver.init(problem, mm.Start(problem.start_point(1), None, mm.Position.start(np.random.default_rng(0))))
    while state.going.size and len(ended) < 6:
        before = len(begun)
        query = state.query
        state = solver.step(state)
        if state.query is None:
            assert len(begun) == before + (query is None)
            ended.append(state.next)
    levels = [k for k, start in enumerate(begun) if k and start.memory is not None]
    assert len(levels) >= 3
    for k in levels:
        for one, other in (
            (begun[k].x, ended[k - 1].x),
            (begun[k].dual.log_weights, ended[k - 1].dual.log_weights),
            *zip(begun[k].memory, ended[k - 1].memory, strict=True),
        ):
            np.testing.assert_array_equal(one, other)
        assert not np.array_equal(begun[k].x, begun[0].x)
