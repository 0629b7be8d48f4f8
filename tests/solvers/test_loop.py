"""The one loop: limits, callbacks, progress, Ctrl-C, starts and the public iterator."""

from __future__ import annotations

import io
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.core import Proved
from minmaxcon.solvers import loop, progress_lines
from tests.cases import PROBLEMS, TYPICAL, fair_auc, labelled, problem, quadratic
from tests.figures import Figure
from tests.problem_library import HalfSquare

ENDLESS = mm.SFLS(oracle=mm.SMD(steps=10**6, batch_size=10), tolerance=1e-9)


@pytest.mark.parametrize(
    "name, limit", [("fair_auc_inter", 0.02), *(pytest.param(name, 0.1, marks=pytest.mark.rel) for name in PROBLEMS)]
)
def test_time_limit(name: str, limit: float, figure: Figure) -> None:
    """The overshoot is at most 50 ms and one piece of work; of three tries, as others may hold up this process."""
    solver = ENDLESS if PROBLEMS[name].convex else mm.IQRC(ENDLESS, tolerance=1e-9)
    overshoot, late = list[float](), list[float]()
    for _ in range(3):
        clock: list[float] = []

        def watch(progress: mm.Progress, clock: list[float] = clock) -> None:
            clock.append(progress.seconds)

        solution = mm.solve(problem(name), solver, time_limit=limit, callbacks=[watch])
        assert solution.status is mm.Status.BUDGET
        assert f"time limit of {limit:g} s" in solution.reason
        assert solution.seconds >= limit
        late.append(solution.seconds - limit)
        overshoot.append(late[-1] - max(np.diff(clock), default=clock[0]))
        if overshoot[-1] <= 0.05:
            break
    figure.largest("overshoot", 1000 * min(late), "ms")
    figure.largest("beside the longest piece of work", 1000 * min(overshoot), "ms")
    assert min(overshoot) <= 0.05


def test_the_limit_covers_the_check_of_a_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that ends with the solver's work: the claim is checked in short, and is none if that confirms nothing."""
    late, asked = 0.0, list[bool]()
    monkeypatch.setattr(loop, "time", SimpleNamespace(perf_counter=lambda: late))

    def work(progress: mm.Progress) -> None:
        nonlocal late
        late = 6.0 if progress.solver.finished(progress.state) else 0.0

    def check(*given: Any, over: Callable[[], bool], **more: Any) -> Any:
        asked.append(over())
        return mm.core.proved_of_runs(*given, over=over, **more)

    monkeypatch.setattr(loop, "proved_of_runs", check)
    for bound, status in ((0.5, mm.Status.BUDGET), (-20.0, mm.Status.INFEASIBLE)):
        late = 0.0
        solution = mm.solve(quadratic(bound=bound), mm.SFLS(mm.MirrorProx()), time_limit=5.0, callbacks=[work])
        assert (solution.status, solution.seconds) == (status, 6.0)
        free = mm.solve(quadratic(bound=bound), mm.SFLS(mm.MirrorProx()))
        assert free.status is (mm.Status.SOLVED if bound > 0 else status)
        assert solution.certificate.lower <= free.certificate.lower + 1e-9
    assert asked == [True, False, True, False]
    cut = Proved(-np.inf, 0.0, "the bound on violations is not positive.", cut=True)
    monkeypatch.setattr(loop, "proved_of_runs", lambda *_, **__: [cut])
    solution = mm.solve(quadratic(bound=-20.0), mm.SFLS(mm.MirrorProx()), time_limit=5.0, callbacks=[work])
    assert solution.status is mm.Status.BUDGET
    assert solution.reason.startswith("The time ended before this was confirmed: every point violates")


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    solver = mm.SFLS(oracle=mm.SMD(steps=300, batch_size=40), tolerance=0.05)
    free, bounded = (
        mm.solve(problem("fair_auc_group"), solver, **limits) for limits in ({}, {"time_limit": 600, "budget": 10**9})
    )
    assert bounded.status is free.status is mm.Status.SOLVED
    assert bounded.x.tobytes() == free.x.tobytes()


def test_a_limit_during_the_search() -> None:
    """No feasible point yet: the least infeasible one, and a status that does not claim more."""
    solver = mm.SFLS(oracle=mm.SMD(steps=10**6, batch_size=10))
    solution = mm.solve(problem("quadratic_infeasible_start"), solver, budget=200)
    assert solution.status is mm.Status.BUDGET
    assert "no feasible point was found yet" in solution.reason
    assert not solution.feasible
    assert solution.certificate.upper == np.inf
    assert len(solution.trace) == 0
    assert str(solution).startswith("budget")


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


def test_a_callback_may_return_a_bool_of_numpy_and_other_values_mean_nothing() -> None:
    solution = mm.solve(problem("fair_auc_inter"), ENDLESS, callbacks=[lambda p: p.outcome.objective[0] < 1.0])
    assert solution.steps == 0
    solver = mm.SFLS(oracle=mm.SMD(steps=100, batch_size=10), levels=2)
    assert mm.solve(problem("fair_auc_inter"), solver, callbacks=[lambda _: 1, lambda _: "stop"]).steps > 100


class Terminal(io.StringIO):
    """A text stream that someone sees."""

    def isatty(self) -> bool:
        return True


def test_the_progress_bar_writes_where_it_is_told() -> None:
    text = Terminal()
    solver = mm.SFLS(oracle=mm.SMD(steps=100, batch_size=10), levels=2)
    mm.solve(problem("fair_auc_inter"), solver, callbacks=[mm.progress_bar(file=text)])
    assert "steps" in text.getvalue()


def test_where_there_is_no_terminal_progress_is_written_in_lines() -> None:
    text, solver = io.StringIO(), mm.SFLS(oracle=mm.SMD(steps=100, batch_size=10), levels=2)
    lines, bar = progress_lines(file=text, first=5.0, every=10.0), mm.progress_bar(file=text)
    states = list(mm.iterate(problem("fair_auc_inter"), solver))
    for seconds in (1.0, 6.0, 15.0, 16.5):
        lines(mm.Progress(solver, states[-1], seconds))
    bar(mm.Progress(solver, states[0], 1.9))
    first, second = text.getvalue().splitlines()
    assert first.startswith("6 s, ")
    assert second.startswith("16 s, ")
    assert " steps, objective 0." in first
    assert ", worst f_i - b_i -0." in first
    bar(mm.Progress(solver, states[0], 2.5))
    assert text.getvalue().splitlines()[2] == "2 s, 0 steps"
    progress_lines(file=text, prefix="here: ")(mm.Progress(solver, states[0], 2.5))
    assert text.getvalue().splitlines()[3] == "here: 2 s, 0 steps"


@pytest.mark.parametrize("end", ["finished", "limit", "error"])
def test_callbacks_are_closed_however_the_solve_ends(end: str) -> None:
    class Watch:
        closed = 0

        def __call__(self, progress: mm.Progress) -> None:
            if end == "error" and progress.outcome.steps > 100:
                raise RuntimeError("mine")

        def close(self) -> None:
            self.closed += 1

    watch, before = Watch(), signal.getsignal(signal.SIGINT)
    solver = mm.SFLS(oracle=mm.SMD(steps=300, batch_size=10), levels=1)
    if end == "error":
        with pytest.raises(RuntimeError, match="mine"):
            mm.solve(problem("fair_auc_inter"), ENDLESS, callbacks=[watch])
    else:
        mm.solve(problem("fair_auc_inter"), solver, callbacks=[watch], budget=100 if end == "limit" else None)
    assert watch.closed == 1
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_returns_the_best_point() -> None:
    before = signal.getsignal(signal.SIGINT)

    def press(progress: mm.Progress) -> None:
        if progress.outcome.steps >= 200:
            signal.raise_signal(signal.SIGINT)

    solution = mm.solve(problem("fair_auc_inter"), ENDLESS, callbacks=[press])
    assert solution.status is mm.Status.INTERRUPTED
    assert solution.reason.startswith("Stopped by Ctrl-C")
    assert "going on" not in solution.reason  # it has ended
    assert solution.steps == 200
    assert solution.feasible
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("instants", [4, pytest.param(100, marks=pytest.mark.rel)])
def test_ctrl_c_at_random_instants(instants: int, figure: Figure) -> None:
    """From another thread, at any place in the work: half a second later the best point so far is there."""
    rng, before = np.random.default_rng(0), signal.getsignal(signal.SIGINT)
    sent, took = list[float](), list[float]()

    def send() -> None:
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    for k in range(instants):
        seen: list[mm.Outcome] = []
        timer = threading.Timer(float(rng.uniform(0.0, 0.06)), send)

        def watch(progress: mm.Progress, seen: list[mm.Outcome] = seen, timer: threading.Timer = timer) -> None:
            seen.append(progress.outcome)
            if len(seen) == 1:
                timer.start()

        name = TYPICAL[k % len(TYPICAL)]
        solver = mm.IQRC(ENDLESS, tolerance=1e-9) if name == "regression_weakly_convex" else ENDLESS
        found = mm.solve(problem(name), solver, seed=k, callbacks=[watch])
        took.append(time.perf_counter() - sent[k])
        assert took[k] <= 0.5
        assert found.status is mm.Status.INTERRUPTED
        assert found.reason.startswith("Stopped by Ctrl-C")
        assert found.x.tobytes() == np.asarray(seen[-1].x[0]).tobytes()
        assert found.objective == seen[-1].objective[0]
        assert found.feasible is any(one.points.feasible[0] for one in seen)
        feasible = [one.objective[0] for one in seen if one.points.feasible[0]]
        assert not feasible or found.objective == min(feasible)
        assert signal.getsignal(signal.SIGINT) is before
    assert len(sent) == instants
    figure.total(instants, "instants")
    figure.largest("time until the best point was there", 1000 * max(took), "ms")


def test_ctrl_c_keeps_what_the_levels_have_found() -> None:
    """After two levels: their trace, bounds and best point are returned."""
    solver = mm.SFLS(oracle=mm.SMD(steps=300, batch_size=40), growth=1.0)

    def press(progress: mm.Progress) -> None:
        if progress.outcome.steps == 700:
            signal.raise_signal(signal.SIGINT)

    solution = mm.solve(problem("fair_auc_inter"), solver, callbacks=[press], seed=1)
    two = mm.SFLS(oracle=solver.oracle, growth=1.0, levels=2)
    whole = mm.solve(problem("fair_auc_inter"), two, seed=1)
    assert solution.status is mm.Status.INTERRUPTED
    assert len(solution.trace["r"]) == 2
    assert solution.objective == whole.trace["objective"][1] < 0.5
    assert solution.certificate.lower == whole.trace["lower"][1] > -np.inf


def test_runs_that_had_ended_keep_their_status() -> None:
    solver = mm.SFLS(oracle=mm.SMD(steps=300, batch_size=40), tolerance=0.05)
    ended: list[int] = []

    def press(progress: mm.Progress) -> None:
        ended[:] = [j for j, status in enumerate(progress.state.status) if status is not None]
        if ended:
            signal.raise_signal(signal.SIGINT)

    solution = mm.solve(fair_auc(kappa=[0.05, 0.1, 0.5]), solver, callbacks=[press])
    assert 0 < len(ended) < 3
    for j in range(3):
        assert solution.status[j] is (mm.Status.SOLVED if j in ended else mm.Status.INTERRUPTED)


def test_a_second_ctrl_c_raises(figure: Figure) -> None:
    before = signal.getsignal(signal.SIGINT)

    def press_twice(_progress: mm.Progress) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        mm.solve(problem("fair_auc_inter"), ENDLESS, callbacks=[press_twice])
    assert signal.getsignal(signal.SIGINT) is before
    figure.total(1, "second Ctrl-C, which raises")


def test_other_threads_may_solve() -> None:
    found: list[mm.Solution] = []
    solver = mm.SFLS(oracle=mm.SMD(steps=100, batch_size=10), levels=2)
    thread = threading.Thread(target=lambda: found.append(mm.solve(problem("fair_auc_inter"), solver)))
    thread.start()
    thread.join()
    assert found[0].feasible


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


def test_points_of_a_solve_in_single_precision_may_be_given() -> None:
    """They lie outside of a large ball by what rounding moves them."""
    base = mm.load_problem("fair_auc", data=labelled(0, n=60, d=20), kappa=0.2, radius=300.0, dtype="float32")
    far = 2e3 * np.random.default_rng(0).normal(size=(1, base.primal.dimension)).astype(np.float32)
    x = np.asarray(base.primal.project(far), dtype=np.float64)[0]
    assert not base.primal.contains(x, 1e-6)
    found = mm.solve(base, mm.SFLS(oracle=mm.SMD(steps=5, batch_size=10), levels=1), x0=x)
    assert np.isfinite(found.objective)


@pytest.mark.parametrize(
    "arguments",
    [{"seed": -1}, {"seed": 1.5}, {"time_limit": 0.0}, {"time_limit": np.inf}, {"budget": 0}, {"solver": 3}],
)
def test_arguments_out_of_range_are_named(arguments: dict[str, Any]) -> None:
    with pytest.raises(mm.InvalidInput, match=next(iter(arguments))):
        mm.solve(problem("fair_auc_inter"), **arguments)


def test_the_public_iterator_visits_what_solve_visits() -> None:
    solver = mm.SFLS(oracle=mm.SMD(steps=250, batch_size=40), levels=2)
    states = list(mm.iterate(problem("fair_auc_inter"), solver, seed=3))
    steps = [solver.outcome(state).steps for state in states]
    assert steps == [0, 100, 200, 250, 350, 450, 550]
    assert [solver.finished(state) for state in states] == [False] * 6 + [True]
    assert mm.solve(problem("fair_auc_inter"), solver, seed=3).x.tobytes() == solver.outcome(states[-1]).x[0].tobytes()
    # states are values: the first one can be gone on from again
    again = states[2]
    while not solver.finished(again):
        again = solver.step(again)
    assert solver.outcome(again).x.tobytes() == solver.outcome(states[-1]).x.tobytes()


@pytest.mark.parametrize("exact", [False, True])
def test_of_two_bounds_with_confidence_that_cross_the_lower_one_is_dropped(exact: bool) -> None:
    """One of them has failed, as they may; exact ones that cross are a fault, and are shown as they are."""

    class Crossed(mm.SFLS):
        def outcome(self, state: Any) -> mm.Outcome:
            found = super().outcome(state)
            return replace(found, exact=exact, confidence=0.9, lower=found.objective + 1.0, evidence=None)

    solution = mm.solve(problem("quadratic"), Crossed(oracle=mm.SMD(steps=50), levels=1), budget=100)
    certificate = solution.certificate
    assert certificate.kind == ("exact on the data" if exact else "with confidence")
    assert certificate.upper == solution.objective
    assert certificate.lower == (solution.objective + 1.0 if exact else -np.inf)


def test_settings_are_reported_as_plain_values() -> None:
    import json

    class Named(mm.SMD):
        def __init__(self) -> None:
            super().__init__(steps=np.int64(50), step_rule=mm.InverseSqrt([0.1, 0.2]))
            self.scale, self.table, self.rule = np.float32(0.5), {"a": 1}, len

    solution = mm.solve(problem("fair_auc_inter"), mm.SFLS(oracle=Named(), levels=1), seed=np.int64(3))
    oracle = json.loads(json.dumps(solution.settings))["solver"]["oracle"]
    assert (oracle["name"], oracle["steps"], oracle["scale"]) == ("Named", 50, 0.5)
    assert oracle["step_rule"]["scale"] == [0.1, 0.2]


@pytest.mark.parametrize("solver", [None, mm.SFLS(oracle=mm.SMD(steps=50), levels=2)], ids=["chosen", "sfls"])
def test_a_function_that_declares_nothing_is_named_where_nothing_is_proved(solver: mm.Solver | None) -> None:
    class Silent(HalfSquare):
        name, convex = "silent", False

    declared = problem("quadratic")
    silent = mm.MinMaxProblem(Silent(name="silent"), declared.constraints, declared.primal, declared.data)
    solution = mm.solve(silent, solver, budget=60)
    assert solution.status is mm.Status.BUDGET
    assert "as 'silent' declares neither convex = True nor weak_convexity." in solution.reason
    assert "declares neither" not in mm.solve(declared, solver, budget=60).reason
