"""Rival solvers over many runs, engines, blocks and seeds, and taken up again."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.arrays import to_numpy
from tests import cases
from tests.solvers.averaging.rivals import bits, each, one_of_them, small


@one_of_them
def test_runs_of_many_equal_runs_alone(rival: str) -> None:
    kappas = [0.05, 0.1, 0.3]
    many = mm.solve(cases.fair_auc("inter_group", kappas), small(rival), seed=1)
    assert many.runs == 3
    for j, kappa in enumerate(kappas):
        alone = mm.solve(cases.fair_auc("inter_group", kappa), small(rival), seed=1)
        one = many[j]
        assert one.status is alone.status
        assert one.x == pytest.approx(alone.x, abs=1e-9)
        for name in ("objective", "violation", "lower", "steps", "samples"):
            assert one.trace[name] == pytest.approx(alone.trace[name], abs=1e-8), name


@each
def test_a_run_that_has_ended_is_frozen(rival: str) -> None:
    """One run is solved at once, as its bound is loose; the others go on, and it keeps every bit."""
    problem, solver = cases.fair_auc("inter_group", [0.05, 3.0]), small(rival, steps=600, evaluations=12, tolerance=0.1)
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


@one_of_them
@pytest.mark.parametrize(
    "name", cases.promises(["portfolio", "worst_group", "robust", "mixed_geometry"], ["mixed_geometry"])
)
def test_every_kind_of_geometry_and_block_has_the_run_axis(name: str, rival: str) -> None:
    problem = cases.problem(name)
    starts = np.stack([to_numpy(problem.start_point()[0]), problem.primal.center])
    few = small(rival, steps=40, evaluations=1)
    many = mm.solve(problem, few, seed=0, x0=starts)
    for j in range(2):
        alone = mm.solve(problem, few, seed=0, x0=starts[j])
        assert many[j].x == pytest.approx(alone.x, abs=1e-9)
        assert problem.primal.contains(many[j].x, 1e-9)


@one_of_them
def test_the_seed_decides_every_bit_and_blocks_none(rival: str) -> None:
    problem = cases.problem("fair_auc_inter")
    found = [bits(mm.solve(problem, small(rival, block=block), seed=5)) for block in (1, 7, 1000)]
    assert found[0] == found[1] == found[2]
    assert found[0] != bits(mm.solve(problem, small(rival), seed=6))


@one_of_them
def test_a_solve_can_be_left_and_taken_up_again(rival: str) -> None:
    problem, solver = cases.problem("fair_auc_inter"), small(rival)
    states = list(mm.iterate(problem, solver, seed=0))
    pickled = pickle.loads(pickle.dumps(states[len(states) // 2]))
    for state in (copy.deepcopy(states[0]), copy.deepcopy(states[1]), pickled):
        while not solver.finished(state):
            state = solver.step(state)
        assert to_numpy(state.x).tobytes() == to_numpy(states[-1].x).tobytes()
        assert state.trace == states[-1].trace
    assert solver.outcome(states[1]).steps == 30
    stopped = mm.solve(problem, solver, budget=60)
    assert (stopped.steps, stopped.reason[:29]) == (60, "The budget of 60 steps was us")
