"""Problems, solvers, states and results are values: they pickle and copy, and a solve resumes from any state."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.arrays import to_numpy
from tests import cases

Array = Any

CACHES = {"_kept", "_latest", "_row"}
"""Attributes that hold what can be made anew."""

COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "deepcopy": copy.deepcopy,
}

SOLVERS: dict[str, Callable[[], mm.Solver]] = {
    "sfls": lambda: mm.SFLS(oracle=mm.SMD(steps=250, batch_size=20), levels=2, tolerance=1e-6),
    "sfls_theory": lambda: mm.SFLS(oracle=mm.SMD(steps=250, batch_size=20, step_rule="theory"), levels=3),
    "sfls_single_samples": lambda: mm.SFLS(oracle=mm.SMD(steps=250, batch_size=1), levels=3, tolerance=1e-6),
    "iqrc": lambda: mm.IQRC(oracle=mm.SFLS(oracle=mm.SMD(steps=120, batch_size=20), levels=2), iterations=3),
    "iqrc_random": lambda: mm.IQRC(
        oracle=mm.SFLS(oracle=mm.SMD(steps=120, batch_size=20), levels=2), iterations=3, output="random"
    ),
}

PROBLEMS = [
    "fair_auc_inter",
    "fair_auc_torch",
    "fair_auc_sparse",
    "quadratic_infeasible_start",
    "worst_group",
    "portfolio",
]


def objects() -> dict[str, Any]:
    """An instance of every public class that can be made without a file."""
    problem = cases.fair_auc("inter_group", [0.1, 0.3])
    solver = mm.SFLS(oracle=mm.SMD(steps=60, batch_size=10), levels=1)
    state = list(mm.iterate(problem, solver))[1]
    start = mm.Start(problem.start_point(), None, mm.Position.start(np.random.default_rng(0)))
    solution = mm.solve(problem, solver)
    estimate = solver.oracle.query(problem.at_level(0.4), start)
    batch, _ = next(iter(problem.data.chunks()))
    proximal = problem.with_proximal(np.zeros(13), 0.5)
    found: list[Any] = [
        *(mm.Adaptive([0.1, 0.2]), mm.InverseSqrt(0.1), mm.Theory(), mm.SMD(), mm.SFLS(), mm.IQRC()),
        *(mm.Ball(2, 1.0), mm.Box([0.0], [1.0]), mm.Simplex(3), mm.product([mm.Ball(2, 1.0), mm.Simplex(2)])),
        *(mm.BallBlock(2, 1.0), mm.interval(1.0, 0.5), mm.SimplexBlock(3)),
        *(problem, problem.data, problem.objective, problem.family, problem.at_level(0.3), proximal.proximal),
        *(problem.at_level(0.3).dual(), start, estimate, estimate.next.dual, start.position),
        *(solution, solution[0], solution.certificate[0], solution.status[0], solver.outcome(state), state),
        *(mm.Linear(3), mm.Progress(solver, state, 0.1), mm.plugin("fair_auc"), batch),
        *(mm.InvalidInput("a", 1, "b."), mm.UnknownName("a", "b", ["c"]), mm.DataError("a", "b")),
    ]
    return {f"{i}-{type(value).__name__}": value for i, value in enumerate(found)}


def same(one: Any, other: Any) -> bool:
    """Compare two values by what they hold, arrays bit by bit."""
    if hasattr(one, "tocsr"):
        return bool((one != other).nnz == 0)
    if isinstance(one, np.ndarray) or type(one).__module__ == "torch":
        return type(one) is type(other) and np.asarray(to_numpy(one)).tobytes() == np.asarray(to_numpy(other)).tobytes()
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if callable(one) and not hasattr(one, "__dict__"):
        return True
    if isinstance(one, (float, mm.Status)) or not (hasattr(one, "__dict__") or hasattr(one, "__slots__")):
        return bool(one == other) or (one != one and other != other)  # NaN is NaN
    names = getattr(one, "__slots__", None) or [
        name for name in vars(one) if name not in {"family", "constraint_family"}
    ]
    return type(one) is type(other) and all(same(getattr(one, n), getattr(other, n)) for n in names if n not in CACHES)


@pytest.mark.parametrize("how", COPIES)
def test_every_public_class_survives(how: str) -> None:
    for name, value in objects().items():
        found = COPIES[how](value)
        assert type(found) is type(value), name
        assert found is not value or isinstance(value, (mm.Status, float)), name
        if not callable(value):
            assert same(value, found) or isinstance(value, (Exception, mm.Progress, mm.ProblemPlugin)), name
        if isinstance(value, Exception):
            assert str(found) == str(value)


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", cases.promises(PROBLEMS, ["fair_auc_inter", "portfolio"]))
def test_copies_of_problem_and_solver_solve_alike(name: str, how: str) -> None:
    problem, solver = cases.problem(name), SOLVERS["sfls"]()
    expected = mm.solve(problem, solver, seed=1)
    found = mm.solve(COPIES[how](problem), COPIES[how](solver), seed=1)
    assert found.x.tobytes() == expected.x.tobytes()
    assert same(dict(found.trace), dict(expected.trace))


@pytest.mark.parametrize(
    "name, solver",
    [
        *(
            pytest.param("fair_auc_inter", solver, marks=() if "_" not in solver else pytest.mark.rel)
            for solver in SOLVERS
        ),
        pytest.param("fair_auc_torch", "sfls", marks=pytest.mark.rel),
        ("quadratic_infeasible_start", "iqrc_random"),
    ],
)
def test_a_solve_goes_on_from_any_state(name: str, solver: str) -> None:
    """From a state in the middle of a query, or between two, saved and read again: the same bits at the end."""
    problem, method = cases.problem(name), SOLVERS[solver]()
    states = list(mm.iterate(problem, method, seed=2))
    end = method.outcome(states[-1])
    chosen = np.random.default_rng(0).choice(len(states) - 1, size=min(3, len(states) - 1), replace=False)
    for index in chosen:
        state, fresh = COPIES["pickle"](states[index]), SOLVERS[solver]()
        while not fresh.finished(state):
            state = fresh.step(state)
        outcome = fresh.outcome(state)
        for part in ("x", "objective", "constraints", "lower"):
            assert same(getattr(outcome, part), getattr(end, part)), part
        assert (outcome.steps, outcome.samples, outcome.reason) == (end.steps, end.samples, end.reason)
        assert same(outcome.trace, end.trace)
        assert same(outcome.next, end.next)


def test_states_do_not_change_once_they_are_made() -> None:
    """What a later step does is not seen in an earlier state."""

    def bits(state: Any) -> bytes:
        query = state.query
        return pickle.dumps((state.x, state.next, state.level, query and (query.x, query.sums, query.weight, query.y)))

    solver = mm.SFLS(oracle=mm.SMD(steps=150, batch_size=40), tolerance=0.03)
    problem = cases.fair_auc("inter_group", [0.02, 0.2, 1.0])
    kept = [(state, bits(state)) for state in mm.iterate(problem, solver, seed=2)]
    assert len({len(state.active) for state, _ in kept[1:]}) > 1  # runs end at different levels
    assert all(bits(state) == before for state, before in kept)


def test_positions_and_seeds() -> None:
    """A position is a value: drawing from it twice gives the same samples, and it does not move the generator."""
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    position = mm.Position.start(rng)
    data = cases.finite("points")
    once, after = data.draw(position, 3, 5)
    again, _ = data.draw(position, 3, 5)
    assert same([batch["points"] for batch in once], [batch["points"] for batch in again])
    assert rng.bit_generator.state == before
    whole, end = data.draw(position, 5, 5)
    rest, finish = data.draw(after, 2, 5)
    assert same([batch["points"] for batch in whole][3:], [batch["points"] for batch in rest])
    assert (end.generator, end.samples) == (finish.generator, finish.samples) == (finish.generator, 25)
