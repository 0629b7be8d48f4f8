"""Successive approximation: limits, the best point, the run axis and refusals."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from tests import cases
from tests.cases import fair_auc
from tests.staircases import (
    POINTS,
    Scaled,
    Smooth,
    Staircase,
    Varying,
    bowl,
    lifted,
    nearest_in_the_bowl,
    staircase,
    wave,
)

Array = Any

TIGHT = mm.SuccessiveApproximation(tolerance=1e-7)
SLOW = mm.SuccessiveApproximation(weight=1e6, tolerance=1e-12)


def test_a_time_limit() -> None:
    solution = mm.solve(staircase(), SLOW, time_limit=0.05, callbacks=[lambda _: time.sleep(0.02)])
    assert solution.status is mm.Status.BUDGET
    assert "time limit" in solution.reason
    assert solution.feasible
    assert 0.05 <= solution.seconds <= 0.5


@pytest.mark.parametrize("start", [(0.0, 0.0), (3.0, -2.0)])
def test_ctrl_c_returns_the_best_point(start: tuple[float, float]) -> None:
    """At once, whether or not the target has been met: an interrupted run is not said to be out of reach."""
    before = signal.getsignal(signal.SIGINT)

    def press(progress: mm.Progress) -> None:
        if progress.outcome.steps >= 1:
            signal.raise_signal(signal.SIGINT)

    solution = mm.solve(staircase(start=start), SLOW, callbacks=[press])
    assert solution.status is mm.Status.INTERRUPTED
    assert solution.reason.startswith("Stopped by Ctrl-C")
    assert solution.steps == 1
    assert solution.feasible == (start == (0.0, 0.0))
    assert signal.getsignal(signal.SIGINT) is before


def replaced(**settings: Any) -> mm.SuccessiveApproximation:
    return mm.SuccessiveApproximation(tolerance=1e-7, **settings)


@pytest.mark.parametrize("function, bound", [(bowl, 0.2), (wave, 0.3), (wave, -0.5), (lifted, 0.52)])
def test_once_a_target_was_met_it_is_met_by_what_is_returned(function: Smooth, bound: float) -> None:
    """After every step: the best of the points visited since the start, by their true values."""
    solver, problem = replaced(reach=1.0), staircase(function, bound, 5e-3, start=(2.0, 1.0))
    visited: list[tuple[float, float]] = []
    last: Array = None
    for state in mm.iterate(problem, solver):
        if last is not None and not np.array_equal(state.x, last):
            visited.append((float(state.objective[0]), float(state.constraints[0].max())))
        last = state.x
        if not visited:
            continue
        outcome = solver.outcome(state)
        met = [objective for objective, miss in visited if miss <= 0]
        if met:
            assert outcome.constraints[0].max() <= 0
            assert outcome.objective[0] == min(met)
        else:
            assert outcome.constraints[0].max() == min(miss for _, miss in visited)
    assert visited


def test_the_start_gives_way_to_the_first_step_that_is_accepted() -> None:
    """A constant model meets every target: a fit that fails must not return it."""
    problem, solver = staircase(bowl, 0.0005, 1e-4), replaced(margin=0.0)
    for state in mm.iterate(problem, solver):
        if state.moved[0]:
            assert not np.array_equal(solver.outcome(state).x, problem.start_point())
            return
        np.testing.assert_array_equal(solver.outcome(state).x, problem.start_point())
    pytest.fail("no step was accepted")


def test_the_margin_is_where_the_steps_aim() -> None:
    """The last point lies that far below the target; the one returned is the best that meets it."""
    for margin in (0.0, 0.05):
        solver = replaced(margin=margin)
        *_, last = mm.iterate(staircase(height=0.0), solver)
        assert last.constraints[0, 0] == pytest.approx(-margin, abs=1e-4)
        assert -margin - 1e-4 <= solver.outcome(last).constraints[0, 0] <= 0


def test_each_outer_step_observes_once() -> None:
    problem = staircase()
    before = problem.measure.asked
    solution = mm.solve(problem, TIGHT)
    assert problem.measure.asked - before in (solution.steps + 2, solution.steps + 3)  # the start, and what is claimed
    assert solution.samples == (solution.steps + 1) * len(POINTS)
    assert len(solution.trace["objective"]) == solution.steps
    assert solution.trace["accepted"].any()


# ----------------------------------------------------------------------------------------------------------- many runs


def test_the_same_seed_gives_the_same_bits() -> None:
    one, other = (mm.solve(staircase(wave, 0.3), TIGHT, seed=3) for _ in range(2))
    assert one.x.tobytes() == other.x.tobytes()
    assert one.trace["weight"].tobytes() == other.trace["weight"].tobytes()


@pytest.mark.parametrize("kind, refresh", [(Staircase, 1), (Scaled, 1), (Scaled, 3), (Varying, 1)])
@pytest.mark.parametrize("engine", cases.promises(["numpy", "torch"], ["torch"]))
def test_a_run_of_many_is_the_run_alone(engine: str, kind: type[Staircase], refresh: int) -> None:
    bounds, starts = [0.05, 0.3, -0.5, 2.0], [[0.0, 0.0], [1.0, 1.0], [-1.0, 0.5], [3.0, -2.0]]
    options: dict[str, Any] = {"engine": engine, "kind": kind}
    solver = replaced(refresh=refresh)
    many = mm.solve(staircase(wave, bounds, **options), solver, x0=starts)
    assert many.runs == 4
    for j, bound in enumerate(bounds):
        alone, one = mm.solve(staircase(wave, bound, **options), solver, x0=starts[j]), many[j]
        assert one.x == pytest.approx(alone.x, abs=1e-9)
        assert one.objective == pytest.approx(alone.objective, abs=1e-9)
        assert one.status is alone.status
        assert one.trace["objective"] == pytest.approx(alone.trace["objective"], abs=1e-9)


def test_single_precision() -> None:
    data = mm.Finite({"points": POINTS}, engine="torch", dtype="float32")
    solution = mm.solve(staircase(data=data), mm.SuccessiveApproximation())
    assert solution.status is mm.Status.SOLVED
    assert solution.objective == pytest.approx(nearest_in_the_bowl(0.2), abs=2e-3)


# ----------------------------------------------------------------------------------------------------------- refusals


def test_an_ordinary_problem_has_no_measure() -> None:
    with pytest.raises(mm.Unsupported, match="RefreshedProblem"):
        mm.solve(fair_auc(), TIGHT)


def test_a_stream_cannot_be_measured_exactly() -> None:
    def rows() -> Iterator[dict[str, Any]]:
        yield {"points": np.zeros(2)}

    with pytest.raises(mm.Unsupported, match="finite data"):
        mm.solve(staircase(data=mm.Stream(rows)), TIGHT)


def test_only_euclidean_sets_can_be_projected_on() -> None:
    with pytest.raises(mm.Unsupported, match=r"Euclidean set, which Simplex"):
        mm.solve(staircase(primal=mm.Simplex(2), start=(0.5, 0.5)), TIGHT)


@pytest.mark.parametrize("name", ["iterations", "refresh", "patience", "tolerance", "margin", "weight", "reach"])
@pytest.mark.parametrize("bad", [-1, float("nan"), "many", None])
def test_settings_out_of_range_are_named(name: str, bad: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=f"{name}="):
        mm.SuccessiveApproximation(**{name: bad})
