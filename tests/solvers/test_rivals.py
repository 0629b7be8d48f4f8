"""Rival solvers on one suite: they reach the optimum, say what is true, and prove only what their multipliers prove."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.arrays import to_numpy
from tests import cases
from tests.problem_library import HalfSquare, MeanGap
from tests.solvers.test_crossed import exact, solved
from tests.solvers.test_nonfinite import first_poisoned_step, poisoned
from tests.solvers.test_settings import NOT_COUNTS, NOT_POSITIVE, NOT_SHARES

Array = Any

RIVALS: dict[str, Callable[..., Any]] = {
    "conex": mm.ConEx,
    "switching": mm.SwitchingSubgradient,
    "primal_dual": mm.PrimalDual,
}
CONVEX = [name for name, case in cases.PROBLEMS.items() if case.convex]
each = pytest.mark.parametrize("rival", RIVALS)

WITHIN = {"conex": 0.15, "switching": 0.25, "primal_dual": 0.15}
"""In units of f_0(start) - f*, after 1,200 steps of 60 samples. The switching method's test is noisy, which acts like a
shift of the bounds."""


def small(rival: str, **settings: Any) -> Any:
    if rival == "switching":
        settings = {"test_size": 40, **settings}
    return RIVALS[rival](**{"steps": 120, "batch_size": 20, "checkpoints": 4, "block": 30, **settings})


# ------------------------------------------------------------------------------------------- what is reached and proved


@each
@pytest.mark.parametrize("name", CONVEX)
def test_the_answer_comes_near_the_optimum(name: str, rival: str) -> None:
    solution, best = solved(name, rival), float(cases.optimum(name).objective)
    start = exact(cases.problem(name), cases.problem(name).start_point()[0])[0]
    span = max(abs(start - best), 0.05 * (1.0 + abs(best)))
    last = solution.records()[-1]
    assert abs(last["objective"] - best) <= WITHIN[rival] * span
    assert last["violation"] <= 0.05 * max(1.0, span)
    if solution.feasible:
        assert solution.objective - best >= -1e-7


@each
@pytest.mark.parametrize("name", CONVEX)
def test_certificates_hold(name: str, rival: str) -> None:
    """Multipliers bound the optimal value from below, and a run is solved only where that proves its point."""
    solution, best = solved(name, rival), float(cases.optimum(name).objective)
    assert np.isfinite(solution.certificate.lower)
    assert solution.certificate.lower <= best + 1e-7 <= solution.certificate.upper + 2e-7
    assert (solution.trace["lower"] <= best + 1e-7).all()
    if solution.status is mm.Status.SOLVED:
        problem = cases.problem(name)
        begun = exact(problem, problem.start_point()[0])
        first = begun[0] if begun[1].max() <= 0 else solution.trace["best_objective"].max()
        floor = 0.01 * (1.0 + abs(solution.objective))
        assert solution.objective - best <= 0.005 * max(first - best + solution.certificate.gap, floor) + 1e-7


def test_some_are_solved_and_some_leave_the_feasible_set() -> None:
    """What the rivals are here for: with a certificate of their own, and with infeasible iterates in plain sight."""
    found = [solved(name, rival) for name in CONVEX for rival in RIVALS]
    assert sum(one.status is mm.Status.SOLVED for one in found) >= 5
    assert sum(bool((one.trace["violation"] > 0).any()) for one in found) >= 5


@each
def test_rows_and_the_best_point_are_true(rival: str) -> None:
    """Each row holds the exact values of that checkpoint's answer, of which the best is kept."""
    problem, solver = cases.problem("fair_auc_inter"), small(rival, steps=400, checkpoints=8)
    states = list(mm.iterate(problem, solver, seed=1))
    kept, known = states[0].x, exact(problem, states[0].x[0])
    for state in states[1:]:
        if len(state.trace) and (state.x != kept).any():
            row = state.trace[-1]
            objective, constraints = exact(problem, state.x[0])
            assert (row["objective"], row["violation"]) == pytest.approx((objective, constraints.max()), abs=1e-12)
            assert constraints.max() <= 0
            assert objective < known[0]
            kept, known = state.x, (objective, constraints)
    assert (kept != states[0].x).any()
    rows = states[-1].trace
    assert [row["level"] for row in rows] == list(range(len(rows)))
    assert [row["steps"] for row in rows] == [50 * (k + 1) for k in range(len(rows))]
    each_step = 20 + {"conex": 20, "switching": 40, "primal_dual": 0}[rival]
    assert [row["samples"] for row in rows] == [each_step * row["steps"] for row in rows]


@each
def test_an_infeasible_problem_is_proved_so(rival: str) -> None:
    problem = cases.quadratic(bound=-100.0)
    solution = mm.solve(problem, small(rival, steps=1000), seed=0)
    slope = cases.arrays()["costs"].mean(axis=0)
    least = 100.0 - 6.0 * np.linalg.norm(slope)  # at the ball's far end
    assert solution.status is mm.Status.INFEASIBLE  # proved by the multipliers of the constraints alone
    assert "very point violates some constraint by at least" in solution.reason
    assert float(solution.reason.split()[-1][:-1]) <= least + 1e-3
    begun = exact(problem, problem.start_point()[0])[1].max()
    assert least - 1e-9 <= solution.constraints.max() <= least + 0.5 * (begun - least)
    assert solution.certificate.upper == np.inf


# --------------------------------------------------------------------------------------------------- two steps by hand


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
    found = iterates(mm.PrimalDual(steps=4, batch_size=1, checkpoints=1, block=1))
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
    found = iterates(mm.ConEx(steps=4, batch_size=1, checkpoints=1, block=1, **settings))
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
    found = iterates(mm.SwitchingSubgradient(steps=12, batch_size=1, test_size=1, checkpoints=1, block=1, distance=1.0))
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


@pytest.mark.parametrize("rival", ["conex", "primal_dual"])
def test_multipliers_do_not_run_away(rival: str) -> None:
    """Large steps in both variables feed each other where nothing bounds them, as on this portfolio."""
    best = float(cases.optimum("cvar_portfolio").objective)
    solution = mm.solve(cases.problem("cvar_portfolio"), RIVALS[rival](steps=2500), seed=0)
    assert solution.feasible
    assert solution.objective - best <= 0.05 * cases.span("cvar_portfolio", best + 9.0)


def test_averages_are_weighted_by_the_steps_of_the_tail() -> None:
    """Of four stretches of two steps the last two are averaged; the answer is in the trace."""
    solver = mm.PrimalDual(steps=8, batch_size=1, checkpoints=4, tail=0.5, tolerance=1e-9, block=1)
    states = list(mm.iterate(tiny(), solver))
    before, after = [s.iterate for s in states[:-1]], [s.iterate for s in states[1:]]
    eta = np.array([np.sqrt(a.memory.reach / a.memory.slope).item() for a in after])
    mean = sum(eta[t] * before[t].x[0] for t in range(4, 8)) / eta[4:].sum()
    objective, constraints = exact(tiny(), mean)
    row = states[-1].trace[-1]
    assert (row["objective"], row["violation"]) == pytest.approx((objective, constraints.max()), rel=1e-12)


# ------------------------------------------------------------------------------- runs, engines, blocks, seeds, resuming


@each
def test_runs_of_many_equal_runs_alone(rival: str) -> None:
    kappas = [0.05, 0.1, 0.3]
    many = mm.solve(cases.fair_auc("inter_group", kappas), small(rival, steps=400), seed=1)
    assert many.runs == 3
    for j, kappa in enumerate(kappas):
        alone = mm.solve(cases.fair_auc("inter_group", kappa), small(rival, steps=400), seed=1)
        one = many[j]
        assert one.status is alone.status
        assert one.x == pytest.approx(alone.x, abs=1e-9)
        for name in ("objective", "violation", "lower", "steps", "samples"):
            assert one.trace[name] == pytest.approx(alone.trace[name], abs=1e-8), name


@each
def test_a_run_that_has_ended_is_frozen(rival: str) -> None:
    """One run is solved at once, as its bound is loose; the others go on, and it keeps every bit."""
    problem, solver = cases.fair_auc("inter_group", [0.05, 3.0]), small(rival, steps=600, checkpoints=12, tolerance=0.1)
    ended: Any = None
    for state in mm.iterate(problem, solver, seed=1):
        j = next((j for j in range(2) if state.status[j] is not None), None)
        if ended is not None:
            j, x, objective, lower = ended
            assert (state.x[j] == x).all()
            assert (state.objective[j], state.lower[j]) == (objective, lower)
        elif j is not None and None in state.status:
            ended = j, state.x[j].copy(), state.objective[j], state.lower[j]
    assert ended is not None


@each
def test_both_engines_agree(rival: str) -> None:
    found = [
        mm.solve(cases.fair_auc("inter_group", 0.1, engine=engine), small(rival), seed=0)
        for engine in ("numpy", "torch")
    ]
    assert found[0].x == pytest.approx(found[1].x, abs=1e-9)
    for name in ("objective", "violation", "lower"):
        assert found[0].trace[name] == pytest.approx(found[1].trace[name], abs=1e-8)


@each
@pytest.mark.parametrize("name", ["portfolio", "worst_group", "robust", "mixed_geometry"])
def test_every_kind_of_geometry_and_block_has_the_run_axis(name: str, rival: str) -> None:
    problem = cases.problem(name)
    starts = np.stack([to_numpy(problem.start_point()[0]), problem.primal.center])
    many = mm.solve(problem, small(rival), seed=0, x0=starts)
    for j in range(2):
        alone = mm.solve(problem, small(rival), seed=0, x0=starts[j])
        assert many[j].x == pytest.approx(alone.x, abs=1e-9)
        assert problem.primal.contains(many[j].x, 1e-9)


def bits(solution: mm.Solution) -> bytes:
    return b"".join(np.asarray(part).tobytes() for part in (solution.x, *solution.trace.values()))


@each
def test_the_seed_decides_every_bit_and_blocks_none(rival: str) -> None:
    problem = cases.problem("fair_auc_inter")
    found = [bits(mm.solve(problem, small(rival, block=block), seed=5)) for block in (1, 7, 30, 1000)]
    assert found[0] == found[1] == found[2] == found[3]
    assert found[0] != bits(mm.solve(problem, small(rival), seed=6))


@each
def test_a_solve_can_be_left_and_taken_up_again(rival: str) -> None:
    problem, solver = cases.problem("worst_group"), small(rival)
    states = list(mm.iterate(problem, solver, seed=0))
    for index in (0, 1, len(states) // 2):
        for again in (copy.deepcopy, lambda state: pickle.loads(pickle.dumps(state))):
            state = again(states[index])
            while not solver.finished(state):
                state = solver.step(state)
            assert to_numpy(state.x).tobytes() == to_numpy(states[-1].x).tobytes()
            assert state.trace == states[-1].trace
    assert solver.outcome(states[1]).steps == 30
    stopped = mm.solve(problem, solver, budget=60)
    assert (stopped.steps, stopped.reason[:29]) == (60, "The budget of 60 steps was us")


# ------------------------------------------------------------------------------------------------------------- streams


def stream(count: int | None = None) -> mm.MinMaxProblem:
    """The rows of the case ``quadratic``, drawn with replacement, without end or ``count`` of them."""
    drawn = cases.arrays()

    def read() -> Iterator[dict[str, Any]]:
        rng = np.random.default_rng(7)
        read = 0
        while count is None or read < count:
            i = int(rng.integers(len(drawn["points"])))
            yield {"points": drawn["points"][i], "costs": drawn["costs"][i]}
            read += 1

    return replace(cases.quadratic(), data=mm.Stream(read))


@each
def test_on_streams_nothing_is_claimed(rival: str) -> None:
    solution = mm.solve(stream(), small(rival, steps=600), seed=0)
    assert solution.status in {mm.Status.BUDGET, mm.Status.NOT_STRICTLY_FEASIBLE}
    assert solution.certificate.lower == -np.inf
    assert solution.certificate.kind in {"estimate", "none"}
    assert solution.certificate.confidence == 0.0
    # what is estimated of the last answer is near what the rows that the stream draws from say of the optimum
    best = float(cases.optimum("quadratic").objective)
    assert solution.records()[-1]["objective"] == pytest.approx(best, abs=0.1 * cases.span("quadratic", 11.0))


@each
def test_a_stream_that_ends_ends_the_solve(rival: str) -> None:
    solution = mm.solve(stream(1000), small(rival, steps=600), seed=0)
    assert solution.steps == 1000 // {"conex": 40, "switching": 60, "primal_dual": 20}[rival]
    assert "the stream has ended" in solution.reason.lower()
    assert len(solution.records()) >= 1


# ------------------------------------------------------------------------------------- weak convexity, values, settings


@pytest.mark.parametrize("rival", ["conex", "primal_dual"])
def test_weakly_convex_problems_are_refused_and_iqrc_helps(rival: str) -> None:
    problem = cases.problem("regression_weakly_convex")
    with pytest.raises(mm.Unsupported, match=rf"^{RIVALS[rival].__name__} needs convex functions.*Use IQRC\(oracle="):
        mm.solve(problem, small(rival))
    modulus = float(problem.objective.weak_convexity)
    solution = mm.solve(problem, mm.IQRC(oracle=small(rival, steps=300), weight=2.0 * modulus, iterations=4), seed=0)
    begun = exact(problem, problem.start_point()[0])
    assert solution.feasible
    assert solution.objective < begun[0] - 0.1


def test_the_switching_subgradient_takes_weakly_convex_problems() -> None:
    """Its answer is an iterate, no average; no bound is claimed."""
    problem, solver = cases.problem("regression_weakly_convex"), small("switching", steps=600)
    state = list(mm.iterate(problem, solver, seed=0))[-1]
    row = state.trace[-1]
    objective, constraints = exact(problem, to_numpy(state.iterate.kept)[0])
    assert (row["objective"], row["violation"]) == pytest.approx((objective, constraints.max()), abs=1e-12)
    solution = mm.solve(problem, solver, seed=0)
    assert solution.feasible
    assert solution.objective < exact(problem, problem.start_point()[0])[0] - 0.1
    assert solution.certificate.lower == -np.inf
    assert solution.status is mm.Status.BUDGET


@each
def test_the_proximal_term_is_part_of_every_function(rival: str) -> None:
    """A strong term around a feasible centre: the answer is near the reference's, in another place than without it."""
    from minmaxcon.reference import solve_exact

    problem = cases.quadratic(bound=0.5).with_proximal(np.array([-1.0, -1.0, -1.0]), 4.0)
    larger = {"test_size": 400} if rival == "switching" else {}
    best, solution = solve_exact(problem), mm.solve(problem, small(rival, steps=1500, **larger), seed=0)
    assert solution.objective == pytest.approx(float(best.objective), rel=0.05)
    assert solution.certificate.lower <= float(best.objective) + 1e-7
    assert solution.x == pytest.approx(best.x, abs=0.15)


@each
@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["F", "G"])
def test_step_and_term_that_are_not_finite_are_named(where: str, poison: float, rival: str) -> None:
    problem = poisoned(where, poison)
    solver = RIVALS[rival](steps=400, batch_size=2, **({"test_size": 2} if rival == "switching" else {}))
    step = first_poisoned_step(problem, 0, 2 if rival == "primal_dual" else 4)
    solution = mm.solve(problem, solver, seed=0)
    assert solution.status is mm.Status.DIVERGED
    assert solution.reason == f"{where} of 'spoiled' is not finite at step {step}."
    assert np.isfinite(solution.x).all()
    assert np.isfinite(solution.objective)
    assert solution.feasible


def test_a_gradient_that_is_not_finite_is_named() -> None:
    problem = poisoned("gradient", np.nan)
    solution = mm.solve(problem, mm.PrimalDual(steps=400, batch_size=2), seed=0)
    assert solution.reason == f"The gradient is not finite at step {first_poisoned_step(problem, 0, 2)}."


@each
def test_one_run_diverges_and_the_others_go_on(rival: str) -> None:
    problem = poisoned("F", np.nan, above=5.0)
    starts = np.array([np.zeros(3), [0.0, 5.9, 0.0]])
    both = mm.solve(problem, small(rival), seed=0, x0=starts)
    alone = mm.solve(problem, small(rival), seed=0, x0=starts[0])
    assert both.status[1] is mm.Status.DIVERGED
    assert both[0].x == pytest.approx(alone.x, abs=1e-9)
    assert both[0].status is alone.status


ALL: dict[str, list[Any]] = {
    "steps": NOT_COUNTS,
    "batch_size": [*NOT_COUNTS, 10**9],
    "checkpoints": [*NOT_COUNTS, 10_001],
    "block": NOT_COUNTS,
    "tail": [0.0, -0.1, 1.1, np.nan, "much", None],
    "tolerance": NOT_SHARES,
    "distance": NOT_POSITIVE,
}
OWN: dict[str, dict[str, list[Any]]] = {
    "conex": {
        "strong_convexity": [-1.0, np.nan, np.inf, "much"],
        "smoothness": [-1.0, np.nan, np.inf, "much"],
        "primal_step": NOT_POSITIVE,
        "dual_step": NOT_POSITIVE,
        "cap": NOT_POSITIVE,
        "dual_scale": NOT_POSITIVE,
    },
    "switching": {"test_size": NOT_COUNTS, "threshold": [-0.1, np.nan, np.inf, "much"]},
    "primal_dual": {"cap": NOT_POSITIVE, "dual_scale": NOT_POSITIVE},
}


@each
def test_settings_out_of_range_are_refused_by_name(rival: str) -> None:
    for name, values in {**ALL, **OWN[rival]}.items():
        for value in values:
            with pytest.raises(mm.InvalidInput, match=f"^{name}="):
                RIVALS[rival](**{name: value})


CHANGED: dict[str, dict[str, Any]] = {
    "conex": {"cap": 1e-3, "primal_step": 0.01, "dual_step": 0.3, "dual_scale": 0.1, "strong_convexity": 0.5},
    "switching": {"test_size": 50, "threshold": 0.05},
    "primal_dual": {"cap": 1e-3, "dual_scale": 0.1},
}


@each
def test_every_setting_matters(rival: str) -> None:
    problem = cases.problem("fair_auc_inter")
    base = {"steps": 130, "batch_size": 21, "checkpoints": 5, "tail": 1.0, "distance": 0.1, **CHANGED[rival]}
    found = [bits(mm.solve(problem, small(rival, **{name: value}), seed=0)) for name, value in base.items()]
    found.append(bits(mm.solve(problem, small(rival), seed=0)))
    if rival == "conex":
        found.append(bits(mm.solve(problem, small(rival, strong_convexity=0.5, smoothness=1.0), seed=0)))
    assert len(set(found)) == len(found)


@each
def test_steps_fixed_by_strong_convexity_reach_the_optimum(rival: str) -> None:
    """HalfSquare is strongly convex with modulus 1 and smooth with 1; other rivals adapt to it."""
    settings = {"strong_convexity": 1.0, "smoothness": 1.0} if rival == "conex" else {}
    solution = mm.solve(cases.problem("quadratic"), small(rival, steps=1500, **settings), seed=0)
    best = float(cases.optimum("quadratic").objective)
    assert abs(solution.records()[-1]["objective"] - best) <= 0.05 * cases.span("quadratic", 11.0)
