"""A signal that ends one solve of a job ends the job: what was cut short is never taken for a result."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.solvers import ends_together
from minmaxcon_problems.fair_auc import FairAUCClassifier
from minmaxcon_problems.fair_auc.estimator import training
from minmaxcon_problems.fair_auc.labelled import FileColumns
from minmaxcon_problems.fair_auc.study import scale, to_target
from minmaxcon_problems.fair_auc.study.own_rows import own_rows
from minmaxcon_problems.fair_auc.study.study import FairAUCStudy, Panel
from minmaxcon_problems.fair_auc.study.sweep import Configuration, run_sweep
from minmaxcon_problems.fair_auc.target import fit as fit_module
from tests.cli.conftest import table
from tests.problems.fair_auc.estimator.samples import biased_rows

__all__ = ["table"]

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
Comes = Callable[[int], list[int]]


@pytest.fixture(params=SIGNALS, ids=lambda which: which.name)
def comes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Comes:
    """Let a signal come within a solve, in an outer step that is named by its number; the list counts the steps."""
    steps, original = list[int](), mm.SuccessiveApproximation.step

    def at(number: int) -> list[int]:
        def step(self: Any, state: Any) -> Any:
            steps.append(len(steps))
            if len(steps) == number:
                signal.raise_signal(request.param)
            return original(self, state)

        monkeypatch.setattr(mm.SuccessiveApproximation, "step", step)
        return steps

    return at


@pytest.mark.parametrize("model", ["linear", "mlp"])
@pytest.mark.parametrize("number", [2, 40])
def test_a_configuration_of_a_study_has_no_file(
    model: str, number: int, table: Path, tmp_path: Path, comes: Comes
) -> None:
    """Neither have those that would follow; run again it has the file of a run that nothing has cut short."""
    rows = own_rows(str(table), FileColumns.of(label="label", sensitive="group"), {})
    assert rows is not None
    study, panel = FairAUCStudy(rows), Panel(rows.name, "group", model)
    asked = [Configuration("fair_auc", panel, "max_gap", seed, True) for seed in (0, 1)]
    steps = comes(number)
    found = run_sweep(study, asked, tmp_path / "runs")
    assert len(steps) == number
    assert found.interrupted
    assert not found.records
    assert not list((tmp_path / "runs").iterdir())


@pytest.mark.parametrize("which", SIGNALS)
def test_a_benchmark_ends(which: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    original = mm.solve

    def solve(*args: Any, **settings: Any) -> mm.Solution:
        return original(*args, **{**settings, "callbacks": [lambda _: signal.raise_signal(which)]})

    monkeypatch.setattr(mm, "solve", solve)
    with pytest.raises(KeyboardInterrupt):
        scale._measured("rows", 1000, 5.0, 0)
    instance = to_target._synthetic(1000, 5, 0.2, 0)
    with pytest.raises(KeyboardInterrupt):
        to_target._ours(instance, mm.load_problem("toy"), 0.01, 5.0, 0)


@pytest.mark.parametrize("bad", ["yes", 1, None])
def test_what_a_job_is_worth_is_true_or_false(bad: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=f"all_or_nothing={bad!r}"), ends_together(all_or_nothing=bad):
        pass


def test_jobs_within_a_job_share_its_end() -> None:
    """And a solve after it knows nothing of it, nor does one in another thread."""
    problem = mm.load_problem("toy")
    with ends_together() as signals, ends_together() as inner:
        mm.solve(problem, callbacks=[lambda _: signal.raise_signal(SIGNALS[0])])
        assert signals is inner
        passed: list[mm.Progress] = []
        assert mm.solve(problem, callbacks=[passed.append]).status is mm.Status.INTERRUPTED
        assert not passed
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(mm.solve, problem, seed=0).result().status is mm.Status.SOLVED
    assert mm.solve(problem, seed=0).status is mm.Status.SOLVED


@pytest.mark.parametrize("number, made", [(3, 1), (11, 2)])
@pytest.mark.filterwarnings("ignore")
def test_of_several_starts_none_follows(number: int, made: int, comes: Comes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_module, "_STEPS", 3)
    rows, steps = biased_rows(120, 2), comes(number)
    found = FairAUCClassifier("group", max_gap=0.2, model=mm.mlp(4, 2), objective="quadratic_auc", n_init=3)
    found.fit(rows.X, rows.y, sensitive_features=rows.group)
    assert len(steps) == number
    assert f"{made} of 3" in found.reason_
    assert found.status_ is mm.Status.INTERRUPTED
    assert np.isfinite(found.decision_function(rows.X)).all()


def test_the_last_start_and_rows_beyond_the_sample_say_that_they_were_cut_short(
    comes: Comes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each step of a fit, whatever else its solves have come to."""
    monkeypatch.setattr(fit_module, "_STEPS", 4)
    rows, common = biased_rows(120, 2), {"max_gap": 0.2, "objective": "quadratic_auc", "random_state": 0}
    for settings in ({"model": mm.mlp(4, 2), "n_init": 2}, {}):
        if not settings:
            monkeypatch.setattr(training, "MANY", 60)
            monkeypatch.setattr(training, "_CELL", 20)
        for number in (2, 5, 9, 13, 17, 21):
            steps = comes(number)
            steps.clear()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = FairAUCClassifier("group", **common, **settings)
                found.fit(rows.X, rows.y, sensitive_features=rows.group)
            if len(steps) < number:
                assert number > 9  # a whole fit has at least so many steps
                break
            assert len(steps) == number
            assert found.status_ is mm.Status.INTERRUPTED
            assert any(name in found.reason_ for name in ("Ctrl-C", "SIGTERM", "SIGHUP"))
            assert settings or "trained again" not in found.reason_


def test_other_processes_of_a_solve_end_the_job_too() -> None:
    """Those of a distributed solve agree on its end, and a signal comes to one of them."""

    class Elsewhere(mm.Finite):
        def agreed(self, found: Any) -> Any:
            return found if found is None or isinstance(found, bool) else (mm.Status.INTERRUPTED, "stopped by SIGTERM.")

    base = mm.load_problem("toy")
    data = Elsewhere({name: np.asarray(values) for name, values in base.data.arrays.items()})
    problem = mm.MinMaxProblem(base.objective, base.constraints, base.primal, data, start=base.start)
    with ends_together() as signals:
        assert mm.solve(problem, budget=1).status is mm.Status.INTERRUPTED
        assert signals == ["a signal to another process"]
        assert mm.solve(base).status is mm.Status.INTERRUPTED


@pytest.mark.parametrize("number", [2, 14])
@pytest.mark.filterwarnings("ignore")
def test_folds_and_targets_end(number: int, comes: Comes, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the first of three folds, or a later one; two targets, of which the second is not begun."""
    monkeypatch.setattr(training, "_FOLDS", 3)
    monkeypatch.setattr(training, "_ROUNDS", 1)
    monkeypatch.setattr(fit_module, "_IN_FOLDS", 4)
    rows, steps = biased_rows(240, 2), comes(number)
    found = FairAUCClassifier("inter_group", max_gap=[0.3, 0.02], demand="new_rows", objective="quadratic_auc")
    found.fit(rows.X, rows.y, sensitive_features=rows.group)
    assert len(steps) == number
    assert [one.status_ for one in found.path_] == [mm.Status.INTERRUPTED] * 2
    assert "within the folds" in found.path_[0].reason_
    assert "before this target was begun" in found.path_[1].reason_
