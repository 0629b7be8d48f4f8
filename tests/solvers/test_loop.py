"""The one loop: limits, callbacks, Ctrl-C; infeasible problems, starts, and values that are not finite."""

from __future__ import annotations

import io
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from tests.cases import fair_auc, optimum, problem, quadratic
from tests.problem_library import HalfSquare, Linear

ENDLESS = mm.SFLS(oracle=mm.SMD(steps=10**6, batch_size=10), tolerance=1e-9)


def test_time_limit() -> None:
    began = time.perf_counter()
    solution = mm.solve(problem("fair_auc_inter"), ENDLESS, time_limit=0.3)
    assert time.perf_counter() - began < 2.0
    assert solution.status is mm.Status.BUDGET
    assert "time limit" in solution.reason
    assert solution.feasible


def test_budget_of_steps() -> None:
    solution = mm.solve(problem("fair_auc_inter"), ENDLESS, budget=500)
    assert 500 <= solution.steps <= 600
    assert "budget" in solution.reason


def test_a_callback_sees_progress_and_may_stop() -> None:
    seen: list[mm.Progress] = []

    def watch(progress: mm.Progress) -> bool:
        seen.append(progress)
        return progress.outcome.steps >= 300

    solution = mm.solve(problem("fair_auc_inter"), ENDLESS, callbacks=[watch])
    assert solution.steps == 300
    assert "callback" in solution.reason
    assert [p.seconds for p in seen] == sorted(p.seconds for p in seen)


def test_the_progress_bar_writes_where_it_is_told() -> None:
    text = io.StringIO()
    solver = mm.SFLS(oracle=mm.SMD(steps=100, batch_size=10), levels=2)
    mm.solve(problem("fair_auc_inter"), solver, callbacks=[mm.progress_bar(file=text)])
    assert "steps" in text.getvalue()


def test_ctrl_c_returns_the_best_point() -> None:
    before = signal.getsignal(signal.SIGINT)

    def press(progress: mm.Progress) -> None:
        if progress.outcome.steps >= 200:
            signal.raise_signal(signal.SIGINT)

    solution = mm.solve(problem("fair_auc_inter"), ENDLESS, callbacks=[press])
    assert solution.status is mm.Status.INTERRUPTED
    assert solution.feasible
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_raises() -> None:
    before = signal.getsignal(signal.SIGINT)

    def press_twice(_progress: mm.Progress) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        mm.solve(problem("fair_auc_inter"), ENDLESS, callbacks=[press_twice])
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_may_solve() -> None:
    found: list[mm.Solution] = []
    solver = mm.SFLS(oracle=mm.SMD(steps=100, batch_size=10), levels=2)
    thread = threading.Thread(target=lambda: found.append(mm.solve(problem("fair_auc_inter"), solver)))
    thread.start()
    thread.join()
    assert found[0].feasible


@pytest.mark.parametrize("seed", range(8))
def test_infeasible_problems_are_told_with_evidence(seed: int) -> None:
    """Two half-spaces that do not meet, at least .05 apart in the sum of their bounds."""
    shift = float(np.random.default_rng(seed).uniform(0.1, 1.0))
    base = quadratic()
    constraints = [Linear(-shift), Linear(-shift, sign=-1.0)]  # <c, x> <= -s and >= s
    question = mm.MinMaxProblem(HalfSquare(), constraints, base.primal, base.data)
    solution = mm.solve(question, mm.SFLS(oracle=mm.SMD(steps=300, batch_size=20)), seed=seed)
    assert solution.status is mm.Status.INFEASIBLE
    assert not solution.feasible
    assert solution.certificate.upper == np.inf
    assert float(solution.trace["D"][-1]) <= shift + 1e-9  # the least violation is exactly the shift
    assert float(solution.trace["D"][-1]) > 0


def test_a_strictly_feasible_start_is_found() -> None:
    solution = mm.solve(problem("quadratic_infeasible_start"), mm.SFLS(oracle=mm.SMD(steps=400, batch_size=30)), seed=0)
    assert solution.trace["phase"][0] == "search"
    assert solution.feasible
    assert solution.objective == pytest.approx(float(optimum("quadratic_infeasible_start").objective), rel=0.02)


def test_another_start_may_be_given() -> None:
    base = fair_auc(kappa=0.2)
    x0 = np.zeros(base.primal.dimension)
    x0[:3] = 0.01
    kept = x0.copy()
    solution = mm.solve(base, mm.SFLS(oracle=mm.SMD(steps=200, batch_size=20), levels=3), x0=x0)
    assert solution.trace["r"][0] != 0.5
    assert solution.trace["phase"][0] == "level"
    np.testing.assert_array_equal(x0, kept)
    for bad in (np.zeros(2), np.full(base.primal.dimension, 1e3), np.full(base.primal.dimension, np.nan)):
        with pytest.raises(mm.InvalidInput, match="x0"):
            mm.solve(base, x0=bad)


class Poisoned(HalfSquare):
    """A half square whose value stops being finite after some evaluations of batches."""

    def __init__(self, after: int, poison: float) -> None:
        super().__init__()
        self.after, self.poison, self.calls = after, poison, 0

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        if len(batch["points"]) != 7:  # exact passes see all the rows
            return found
        self.calls += 1
        if self.calls <= self.after:
            return found
        return mm.Evaluation(found.F * self.poison, found.G, found.pullback)


@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_values_that_are_not_finite_stop_a_run(poison: float) -> None:
    base = quadratic()
    question = mm.MinMaxProblem(Poisoned(150, poison), base.constraints, base.primal, base.data, base.start)
    solution = mm.solve(question, mm.SFLS(oracle=mm.SMD(steps=400, batch_size=7)), seed=0)
    assert solution.status is mm.Status.DIVERGED
    assert "not finite" in solution.reason
    assert np.isfinite(solution.x).all()


@pytest.mark.parametrize(
    "arguments",
    [{"seed": -1}, {"seed": 1.5}, {"time_limit": 0.0}, {"time_limit": np.inf}, {"budget": 0}, {"solver": 3}],
)
def test_arguments_out_of_range_are_named(arguments: dict[str, Any]) -> None:
    with pytest.raises(mm.InvalidInput, match=next(iter(arguments))):
        mm.solve(problem("fair_auc_inter"), **arguments)
