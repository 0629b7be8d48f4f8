"""The run axis: run j of R is the same run alone, and nothing but the seed decides what is drawn."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.arrays import to_numpy
from tests import cases
from tests.figures import Figure

Array = Any

LEVELS = np.array([0.32, 0.36, 0.42])
KAPPAS = [0.02, 0.2, 1.0]
RULES: dict[str, tuple[Any, Any]] = {  # the rule of three runs, and that of run j
    "adaptive": (mm.Adaptive(), lambda _: mm.Adaptive()),
    "adaptive_vector": (mm.Adaptive([1e-2, 1e-3, 0.1]), lambda j: mm.Adaptive([1e-2, 1e-3, 0.1][j])),
    "dual_vector": (mm.Adaptive(dual_scale=[0.1, 0.3, 1.0]), lambda j: mm.Adaptive(dual_scale=[0.1, 0.3, 1.0][j])),
    "inverse_sqrt_vector": (mm.InverseSqrt([0.01, 0.1, 0.5]), lambda j: mm.InverseSqrt([0.01, 0.1, 0.5][j])),
    "inverse_sqrt_dual": (
        mm.InverseSqrt(0.1, [0.01, 0.1, 0.5]),
        lambda j: mm.InverseSqrt(0.1, [0.01, 0.1, 0.5][j]),
    ),
    "theory": (mm.Theory(), lambda _: mm.Theory()),
    # At 900 the third run enlarges rounding a hundred thousand times, alone as beside others.
    "theory_vector": (mm.Theory([100.0, 200.0, 300.0]), lambda j: mm.Theory([100.0, 200.0, 300.0][j])),
}


def start(problem: mm.MinMaxProblem, runs: int, seed: int = 3) -> mm.Start:
    return mm.Start(problem.start_point(runs), None, mm.Position.start(np.random.default_rng(seed)))


def query(problem: mm.MinMaxProblem, levels: Array, seed: int = 3, **settings: Any) -> mm.Estimate:
    return mm.SMD(batch_size=20, **settings).query(problem.at_level(levels), start(problem, len(levels), seed))


def parts(found: mm.Estimate) -> dict[str, Array]:
    dual = found.next.dual
    assert dual is not None
    kept = {name: getattr(found, name) for name in ("x", "weights", "scaled", "upper", "values")}
    kept |= {"last x": found.next.x, "log y": dual.log_weights, "y": dual.weights, "alpha": dual.inner}
    return {name: np.asarray(to_numpy(value)) for name, value in kept.items()}


def far(one: Array, other: Array) -> float:
    return float(np.max(np.abs(one - other) / (1 + np.abs(other)), initial=0.0))


def test_a_run_without_a_strictly_feasible_point_does_not_hold_up_the_others() -> None:
    solver = mm.SFLS(oracle=mm.SMD(steps=200, batch_size=20), tolerance=0.1)
    alone = mm.solve(cases.fair_auc(kappa=0.3), solver, seed=0)
    together = mm.solve(cases.fair_auc(kappa=[0.3, 0.0]), solver, seed=0)
    assert together[1].status is mm.Status.NOT_STRICTLY_FEASIBLE
    assert alone.status is together[0].status is mm.Status.SOLVED
    assert len(together[0].records()) <= 2 * len(alone.records())  # it keeps its warm duals


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("proximal", [False, True], ids=["plain", "proximal"])
@pytest.mark.parametrize("steps", [60, pytest.param(2000, marks=pytest.mark.rel)])
def test_a_run_of_many_equals_the_run_alone(steps: int, rule: str, proximal: bool, figure: Figure) -> None:
    """At fixed levels in float64: to 1e-12, with bounds, levels and step sizes of each run's own."""
    problem = cases.fair_auc("inter_group", KAPPAS)
    if proximal:
        centers = 0.1 * problem.primal.sample(np.random.default_rng(0), 3)
        problem = problem.with_proximal(centers, 0.3)
    together, alone = RULES[rule]
    many, found = parts(query(problem, LEVELS, steps=steps, step_rule=together)), dict[str, float]()
    for j in range(3):
        single = parts(query(problem.take([j]), LEVELS[j : j + 1], steps=steps, step_rule=alone(j)))
        for name, value in single.items():
            found[f"{name} of run {j}"] = far(many[name][j], value[0])
    figure.largest("of runs alone and together", max(found.values()))
    assert {name: apart for name, apart in found.items() if not apart <= 1e-12} == {}


@pytest.mark.parametrize("name", ["torch", "worst_group", "robust", "cvar", "portfolio", "mixed_geometry"])
def test_every_kind_of_problem_has_the_run_axis(name: str) -> None:
    problem = cases.quadratic(engine="torch") if name == "torch" else cases.problem(name)
    first = float(problem.at_level(0.0).values(problem.start_point())[0, 0])
    levels = first - np.array([0.1, 0.3, 0.5, 0.7])
    many = parts(query(problem, levels, steps=80))
    for j in (0, 3):
        for part, value in parts(query(problem, levels[j : j + 1], steps=80)).items():
            assert far(many[part][j], value[0]) <= 1e-12, part


def solver(**options: Any) -> mm.SFLS:
    return mm.SFLS(oracle=mm.SMD(steps=100, batch_size=40), tolerance=0.06, **options)


@cache
def solved() -> mm.Solution:
    return mm.solve(cases.fair_auc("inter_group", KAPPAS), solver(), seed=1)


def test_solves_of_many_runs_equal_solves_of_one() -> None:
    """After data-dependent stops: objectives to 1e-6, the same statuses, levels and certificates."""
    many = solved()
    assert many.runs == 3
    assert len(set(np.bincount(many.trace["run"]))) > 1  # runs halt at different levels
    for j, kappa in enumerate(KAPPAS):
        alone, one = mm.solve(cases.fair_auc("inter_group", kappa), solver(), seed=1), many[j]
        assert one.objective == pytest.approx(alone.objective, abs=1e-6)
        assert one.constraints == pytest.approx(alone.constraints, abs=1e-6)
        assert one.certificate.lower == pytest.approx(alone.certificate.lower, abs=1e-6)
        assert one.status is alone.status
        assert len(one.trace["r"]) == len(alone.trace["r"])
        assert one.trace["r"] == pytest.approx(alone.trace["r"], abs=1e-6)
        assert one.x == pytest.approx(alone.x, abs=1e-5)


def test_runs_that_have_halted_are_frozen() -> None:
    """Once a run has ended, nothing of it changes, bit for bit."""
    problem, sfls = cases.fair_auc("inter_group", KAPPAS), solver()
    ended: dict[int, Any] = {}
    for state in mm.iterate(problem, sfls, seed=1):
        outcome = sfls.outcome(state)
        for j in range(3):
            kept = (outcome.x[j].copy(), outcome.objective[j], outcome.lower[j], outcome.reason[j])
            if j in ended:
                assert (kept[0] == ended[j][0]).all()
                assert kept[1:] == ended[j][1:]
            elif state.status[j] is not None:
                ended[j] = kept
    assert len(ended) == 3


def test_iqrc_of_many_runs_equals_iqrc_of_one() -> None:
    def iqrc() -> mm.IQRC:
        oracle = mm.SFLS(oracle=mm.SMD(steps=80, batch_size=40), levels=2, tolerance=0.2)
        return mm.IQRC(oracle=oracle, iterations=3, output="random")

    many = mm.solve(cases.fair_auc("inter_group", KAPPAS), iqrc(), seed=1)
    for j, kappa in enumerate(KAPPAS):
        alone, one = mm.solve(cases.fair_auc("inter_group", kappa), iqrc(), seed=1), many[j]
        assert one.objective == pytest.approx(alone.objective, abs=1e-6)
        assert one.trace["movement"] == pytest.approx(alone.trace["movement"], abs=1e-6)
        assert one.x == pytest.approx(alone.x, abs=1e-5)


def test_a_vector_of_step_sizes_makes_runs() -> None:
    """A grid of step sizes is one solve, although the problem itself has a single bound."""
    oracle = mm.SMD(steps=100, batch_size=40, step_rule=mm.InverseSqrt([0.02, 0.2]))
    grid = mm.solve(cases.fair_auc("inter_group", 0.3), mm.SFLS(oracle=oracle, levels=2), seed=0)
    assert grid.runs == 2
    assert grid.x.shape == (2, 13)
    for j, scale in enumerate([0.02, 0.2]):
        single = mm.SMD(steps=100, batch_size=40, step_rule=mm.InverseSqrt(scale))
        alone = mm.solve(cases.fair_auc("inter_group", 0.3), mm.SFLS(oracle=single, levels=2), seed=0)
        assert grid[j].objective == pytest.approx(alone.objective, abs=1e-6)


def test_vectors_of_step_sizes_follow_the_runs_that_go_on() -> None:
    """When runs halt, those that remain keep their own step sizes: in SFLS, and in IQRC over it."""
    distances = [1e-2, 0.3, 1e-3]
    problem = cases.fair_auc("inter_group", KAPPAS)

    def sfls(rule: mm.StepRule) -> mm.SFLS:
        return mm.SFLS(oracle=mm.SMD(steps=100, batch_size=40, step_rule=rule), tolerance=0.1)

    def iqrc(rule: mm.StepRule) -> mm.IQRC:
        oracle = mm.SFLS(oracle=mm.SMD(steps=60, batch_size=40, step_rule=rule), levels=2, tolerance=0.1)
        return mm.IQRC(oracle=oracle, iterations=3, tolerance=9.0)

    for method in (sfls, iqrc):
        many = mm.solve(problem, method(mm.Adaptive(distances)), seed=1)
        assert len(set(np.bincount(many.trace["run"]))) > 1  # they halt at different times
        for j, kappa in enumerate(KAPPAS):
            alone = mm.solve(cases.fair_auc("inter_group", kappa), method(mm.Adaptive(distances[j])), seed=1)
            assert many[j].objective == pytest.approx(alone.objective, abs=1e-6)
            assert many[j].status is alone.status


def test_levels_for_all_runs_or_one_for_each() -> None:
    problem = cases.fair_auc("inter_group", KAPPAS)
    assert problem.at_level(0.4).bounds[:, 0].tolist() == [0.4] * 3
    assert problem.feasibility().runs == 3
    with pytest.raises(mm.InvalidInput, match="one level for each of the 3 runs"):
        problem.at_level([0.1, 0.2])


def test_the_solution_of_one_run_of_several() -> None:
    many = solved()
    assert [one.objective for one in many] == list(many.objective)
    last = many[-1]
    assert (last.runs, last.x.shape, last.constraints.shape) == (None, (13,), (2,))
    assert isinstance(last.feasible, bool)
    assert set(last.trace["run"]) == {2}
    assert len(last.records()) == len(last.trace["run"])
    assert str(many).count("\n") == 2
    with pytest.raises(IndexError):
        many[3]
    with pytest.raises(TypeError, match="single run"):
        last[0]
    single = mm.solve(cases.fair_auc("inter_group", [0.3]), solver(levels=1), seed=1)
    assert single.runs == 1  # a vector of one bound is a vector


def test_numbers_of_runs_must_agree() -> None:
    problem = cases.fair_auc("inter_group", KAPPAS)
    two = mm.SFLS(oracle=mm.SMD(step_rule=mm.InverseSqrt([0.1, 0.2])))
    with pytest.raises(mm.InvalidInput, match=r"runs=\[2, 3\]"):
        mm.solve(problem, two)
    with pytest.raises(mm.InvalidInput, match=r"runs=\[3, 4\]"):
        mm.solve(problem, x0=np.zeros((4, 13)))
    with pytest.raises(mm.InvalidInput, match=r"bounds=\[2, 3\]"):
        problem.with_bounds([1.1, 1.2], [1.1, 1.2, 1.3])
    with pytest.raises(mm.InvalidInput, match="one for each of the 2 constraints"):
        problem.with_bounds(1.0)


def bits(found: mm.Estimate) -> bytes:
    return b"".join(value.tobytes() for value in parts(found).values())


@pytest.mark.parametrize("name", ["fair_auc_inter", "fair_auc_sparse", "fair_auc_torch", "worst_group"])
def test_the_block_size_changes_no_bit(name: str) -> None:
    problem = cases.problem(name)
    found = [bits(query(problem, [0.3, 0.5], steps=60, block=block)) for block in (1, 7, 1000)]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("rule", ["adaptive", "inverse_sqrt", "theory"])
def test_the_seed_decides_every_bit(rule: str) -> None:
    problem = cases.problem("fair_auc_inter")
    same = [bits(query(problem, [0.3], seed=7, steps=50, step_rule=rule)) for _ in range(2)]
    other = bits(query(problem, [0.3], seed=8, steps=50, step_rule=rule))
    assert same[0] == same[1] != other


def test_the_seed_decides_every_bit_of_a_solve() -> None:
    solutions = [mm.solve(cases.problem("fair_auc_inter"), solver(levels=3), seed=seed) for seed in (4, 4, 5)]
    assert solutions[0].x.tobytes() == solutions[1].x.tobytes() != solutions[2].x.tobytes()
    for name, column in solutions[0].trace.items():
        assert (column == solutions[1].trace[name]).all() or np.isnan(
            column[~(column == solutions[1].trace[name])]
        ).all()


@pytest.mark.parametrize("name", ["fair_auc_torch", "quadratic_infeasible_start"])
def test_nothing_of_the_callers_is_touched(name: str) -> None:
    """Global random states, the data's arrays, bounds and x0 are as before; a solve depends on none of those states."""
    import torch

    problem = cases.problem(name)
    assert isinstance(problem.data, mm.Finite)
    before = {key: np.array(to_numpy(value), copy=True) for key, value in problem.data.arrays.items()}
    x0 = 0.1 * problem.primal.sample(np.random.default_rng(0), 1)[0]
    given, bounds = x0.copy(), problem.bounds().copy()
    state, torch_state = np.random.get_state(), torch.get_rng_state()  # the state that must not move
    few = mm.SFLS(oracle=mm.SMD(steps=20, batch_size=40), tolerance=0.02, levels=2)
    first = mm.solve(problem, few, seed=2, x0=x0)
    assert np.array_equal(state[1], np.random.get_state()[1])
    assert state[2] == np.random.get_state()[2]
    assert (torch_state == torch.get_rng_state()).all()
    np.random.seed(99)
    torch.manual_seed(99)
    assert mm.solve(problem, few, seed=2, x0=x0).x.tobytes() == first.x.tobytes()
    np.random.set_state(state)
    assert x0.tobytes() == given.tobytes()
    assert problem.bounds().tobytes() == bounds.tobytes()
    for key, value in before.items():
        assert (np.asarray(to_numpy(problem.data.arrays[key])) == value).all()
    first.x[:] = 7.0  # what is returned is the caller's: writing to it reaches no state
    assert mm.solve(problem, few, seed=2, x0=x0).x.tobytes() != first.x.tobytes()
    assert problem.start_point()[0, 0] != 7.0


def test_lists_of_bounds_are_as_good_as_arrays() -> None:
    problem = cases.quadratic()
    listed = replace(problem, constraints=[problem.constraints[0].with_bound([0.3, 0.5])])
    assert listed.runs == 2
    solution = mm.solve(listed, mm.SFLS(oracle=mm.SMD(steps=100), levels=2))
    assert solution.runs == 2
    assert listed.take([1]).bounds().tolist() == [[0.5]]


def test_runs_that_search_do_not_disturb_runs_that_need_not() -> None:
    """One run starts feasible, the other has to look for a feasible point first: each as if it were alone."""
    problem, few = cases.quadratic(bound=0.5), solver(levels=2)
    starts = np.array([[-1.0, -1.0, -1.0], [2.0, 2.0, 2.0]])
    many = mm.solve(problem, few, seed=0, x0=starts)
    for j in range(2):
        alone = mm.solve(problem, few, seed=0, x0=starts[j])
        assert many[j].status is alone.status
        assert many[j].objective == pytest.approx(alone.objective, abs=1e-6)
        assert many[j].trace["r"] == pytest.approx(alone.trace["r"], abs=1e-6)
