"""Solvers side by side: what a comparison says is true, and is about the solvers alone."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.cli.output import table, wrapped
from minmaxcon.results import comparison, csv_text
from minmaxcon.results.comparison import Comparison, as_data, compare, comparison_text, path_rows
from minmaxcon.results.comparison_figure import comparison_figure
from minmaxcon.results.figures import png
from tests.cases import SOLVERS, optimum, problem, quadratic


def by_hand(x: Any) -> tuple[float, float]:
    """Objective and constraint of the case ``quadratic``, from its data."""
    data: Any = quadratic().data
    points, costs = np.asarray(data.arrays["points"]), np.asarray(data.arrays["costs"])
    return float(0.5 * ((x - points) ** 2).sum(axis=1).mean()), float((costs @ x).mean() - 0.5)


@dataclass(frozen=True)
class _Walked:
    problem: mm.MinMaxProblem
    start: mm.Start
    done: int = 0
    trace: tuple[dict[str, Any], ...] = ()


class Walk(mm.Solver):
    """Walks along given points, whatever they are worth; every step draws ten samples."""

    def __init__(self, points: Sequence[Any], clock: Any = None) -> None:
        self.points, self.clock = [np.asarray(point, dtype=float) for point in points], clock

    def init(self, problem: mm.MinMaxProblem, start: mm.Start) -> Any:
        return _Walked(problem, start)

    def step(self, state: Any) -> Any:
        if self.clock is not None:
            self.clock.now += 1.0
        objective, violation = by_hand(self.points[state.done])
        row = {"run": 0, "level": state.done, "objective": objective, "violation": violation}
        return replace(state, done=state.done + 1, trace=(*state.trace, row))

    def finished(self, state: Any) -> bool:
        return bool(state.done == len(self.points))

    def outcome(self, state: Any) -> mm.Outcome:
        if self.clock is not None:
            self.clock.now += 100.0
        x = state.start.x[0] if state.done == 0 else self.points[state.done - 1]
        objective, violation = by_hand(x)
        return mm.Outcome(
            x=x[None],
            objective=np.array([objective]),
            constraints=np.array([[violation]]),
            lower=np.array([-np.inf]),
            exact=True,
            confidence=1.0,
            status=(mm.Status.BUDGET,),
            reason=("walked.",),
            trace=state.trace,
            steps=state.done,
            samples=10 * state.done,
            next=state.start,
        )


class Clock:
    """A clock that moves only when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


CHOSEN: dict[str, Any] = {
    "sfls": lambda: mm.SFLS(oracle=mm.SMD(steps=120, batch_size=60), tolerance=0.02),
    "iqrc": lambda: mm.IQRC(oracle=mm.SFLS(oracle=mm.SMD(steps=60, batch_size=60), levels=3), iterations=6),
    "primal_dual": SOLVERS["primal_dual"],
}

WAY = ([0.0, 0.0, 0.0], [2.0, 2.0, 2.0], [0.1, 0.1, 0.1], [0.5, 1.0, 1.5])
"""Feasible, infeasible, feasible, infeasible in the case ``quadratic``."""


@pytest.fixture(scope="module")
def found() -> Comparison:
    """Give four methods on the case ``quadratic``, two of which leave the feasible set."""
    solvers = {name: build() for name, build in CHOSEN.items()}
    return compare(problem("quadratic"), {**solvers, "walk": Walk(WAY)}, samples=30_000)


def without_seconds(value: Any) -> Any:
    if isinstance(value, dict):
        left_out = {"seconds", "load_average"}
        return {name: without_seconds(item) for name, item in value.items() if name not in left_out}
    return [without_seconds(item) for item in value] if isinstance(value, list | tuple) else value


def test_gaps_are_measured_from_the_exact_optimum_in_units_of_the_starts(found: Comparison) -> None:
    exact, start = float(optimum("quadratic").objective), by_hand(np.array([-1.0, -1.0, -1.0]))
    assert start[1] < 0
    assert found.optimum.source == "exact"
    assert found.optimum.value == pytest.approx(exact, abs=1e-7)
    assert found.optimum.start == pytest.approx(start[0], rel=1e-12)
    for entry in found.entries:
        assert entry.gap == pytest.approx(entry.objective - exact, abs=1e-7)
        assert entry.relative_gap == pytest.approx((entry.objective - exact) / (start[0] - exact), abs=1e-7)
        for row in entry.path:
            assert row["gap"] == pytest.approx(row["objective"] - exact, abs=1e-7)
        if entry.violation <= 0:
            assert entry.gap >= -1e-7


def test_the_returned_point_is_measured_afresh(found: Comparison) -> None:
    walk = found.entries[-1]
    assert (walk.objective, walk.violation) == pytest.approx(by_hand(np.array(WAY[-1])), rel=1e-12)
    watched = []

    def stop(progress: mm.Progress) -> bool:
        watched.append(progress)
        return progress.outcome.samples >= 30_000

    for entry, build in zip(found.entries, CHOSEN.values(), strict=False):
        solution = mm.solve(problem("quadratic"), build(), seed=0, callbacks=[stop])
        assert (entry.objective, entry.violation) == pytest.approx(by_hand(solution.x), rel=1e-9, abs=1e-12)
        assert (entry.samples, entry.steps, entry.status) == (solution.samples, solution.steps, str(solution.status))
        rows = solution.records()
        assert [row["objective"] for row in entry.path[1:]] == [row["objective"] for row in rows]
        assert [row["steps"] for row in entry.path[1:]] == [row["steps"] for row in rows]
    assert watched


def test_a_method_that_leaves_the_feasible_set_is_seen_to_do_so(found: Comparison) -> None:
    by_name = {entry.solver: entry for entry in found.entries}
    assert (by_name["walk"].checkpoints, by_name["walk"].infeasible) == (4, 2)
    assert [row["violation"] > 0 for row in by_name["walk"].path[1:]] == [by_hand(np.array(x))[1] > 0 for x in WAY]
    assert (by_name["sfls"].infeasible, by_name["iqrc"].infeasible) == (0, 0)
    assert 0 < by_name["primal_dual"].infeasible < by_name["primal_dual"].checkpoints
    assert by_name["primal_dual"].violation <= 0  # what it returns is its best feasible point
    assert by_name["sfls"].checkpoints == len(by_name["sfls"].path) - 1 > 2
    # What SFLS's oracle says is infeasible now and then: it is checked, and pulled back.
    assert all(math.isfinite(row["estimate_violation"]) for row in by_name["sfls"].path[1:])


def test_the_budget_of_samples_is_common_and_said(found: Comparison) -> None:
    sfls, iqrc, primal_dual, walk = found.entries
    for entry in (sfls, iqrc):
        assert entry.samples >= 30_000 > entry.path[-2]["samples"]
        assert "30,000 samples" in entry.reason
        assert [row["samples"] for row in entry.path] == sorted(row["samples"] for row in entry.path)
        assert entry.path[-1]["samples"] <= entry.samples
    assert primal_dual.samples < 30_000  # its own stopping rule comes first
    assert "samples" not in walk.reason


def test_everything_but_seconds_is_repeated_and_another_seed_differs() -> None:
    solvers = {"sfls": SOLVERS["sfls"]()}
    one, again = (compare(problem("quadratic"), solvers, seeds=[3, 4], samples=20_000) for _ in range(2))
    assert without_seconds(as_data([one])) == without_seconds(as_data([again]))
    assert [entry.seed for entry in one.entries] == [3, 4]
    assert one.entries[0].objective != one.entries[1].objective


def test_seconds_are_the_solvers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step takes one second, each look at the solver a hundred."""
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    found = compare(problem("quadratic"), {"walk": Walk(WAY, clock)}, reference=1.0)
    assert [row["seconds"] for row in found.entries[0].path] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert found.entries[0].seconds == 4.0


def test_the_time_limit_is_on_the_solvers_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    found = compare(problem("quadratic"), {"walk": Walk(WAY, clock)}, reference=1.0, time_limit=3.0)
    assert found.entries[0].checkpoints == 3
    assert "time limit of 3 s" in found.entries[0].reason


def test_a_given_reference_stands() -> None:
    found = compare(problem("quadratic"), {"walk": Walk(WAY)}, reference=5.0)
    assert (found.optimum.source, found.optimum.value) == ("given", 5.0)
    assert found.entries[0].gap == pytest.approx(by_hand(np.array(WAY[-1]))[0] - 5.0)


def test_without_a_cvxpy_form_the_best_feasible_point_stands_in_and_says_so() -> None:
    solvers = {name: build() for name, build in CHOSEN.items()}
    found = compare(problem("regression_weakly_convex"), solvers, samples=60_000)
    feasible = [entry.objective for entry in found.entries if entry.violation <= 1e-9]
    assert feasible
    assert (found.optimum.source, found.optimum.value) == ("best found", min(feasible))
    assert found.optimum.lower is None
    assert "not declared convex" in " ".join(
        comparison_text(found, table, wrapped).split()
    )  # wherever lines are broken


def test_without_cvxpy_lower_bounds_of_the_solvers_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = float(optimum("quadratic").objective)
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    found = compare(problem("quadratic"), {"sfls": SOLVERS["sfls"](), "walk": Walk(WAY)}, samples=60_000)
    assert found.optimum.source == "best found"
    assert found.optimum.lower == found.entries[0].lower <= exact <= found.optimum.value
    # The walk's last point is infeasible, and better than any feasible one: it must not stand in for the optimum.
    assert found.entries[1].objective < exact
    assert found.optimum.value == found.entries[0].objective
    assert "cvxpy is needed" in comparison_text(found, table, wrapped)
    outside = compare(problem("quadratic"), {"walk": Walk([5.0 * np.asarray(WAY[-1])])}, samples=60_000)
    assert (outside.optimum.source, outside.optimum.value) == ("unknown", None)  # no feasible point was returned
    assert math.isnan(outside.entries[0].gap)


def test_an_infeasible_problem_has_no_gaps() -> None:
    found = compare(quadratic(bound=-100.0), {"sfls": SOLVERS["sfls"]()}, samples=60_000)
    assert (found.optimum.source, found.optimum.value) == ("infeasible", None)
    assert found.entries[0].status == "infeasible"
    assert math.isnan(found.entries[0].gap)
    assert "no point is feasible" in comparison_text(found, table, wrapped)
    assert json.loads(json.dumps(as_data([found]), allow_nan=False))


def test_from_an_infeasible_start_the_unit_is_the_size_of_the_optimum() -> None:
    found = compare(problem("quadratic_infeasible_start"), {"sfls": SOLVERS["sfls"]()}, samples=60_000)
    assert found.optimum.start is None
    assert found.optimum.scale == pytest.approx(1.0 + float(optimum("quadratic_infeasible_start").objective), rel=1e-7)


def test_a_solver_that_does_not_take_the_problem_has_a_line_with_the_reason() -> None:
    found = compare(problem("quadratic"), ["successive", "sfls"], samples=1_000)
    refused, ran = found.entries
    assert (refused.status, refused.ran, ran.ran) == ("not run", False, True)
    assert "RefreshedProblem" in refused.reason
    text = comparison_text(found, table, wrapped)
    assert "not run" in text
    assert "successive: " in text


def test_on_a_target_only_the_method_that_refreshes_runs() -> None:
    asked = mm.load_problem("fair_auc", max_gap=0.05, metric="group")
    found = compare(asked, ["sfls", "successive"], samples=10**9)
    refused, ran = found.entries
    assert "refreshed" in refused.reason
    assert ran.status == "solved"
    train = mm.plugin("fair_auc").evaluate(
        asked, mm.solve(asked, mm.SuccessiveApproximation(tolerance=1e-4, margin=2e-4)).x
    )
    assert ran.objective == pytest.approx(1.0 - float(train["train"]["auc"]), abs=1e-9)
    assert ran.violation == pytest.approx(float(train["train"]["auc_gap"]) - 0.05, abs=1e-9)
    assert found.optimum.source == "best found"


def test_on_a_stream_nothing_is_claimed() -> None:
    drawn = problem("quadratic")
    arrays: Any = drawn.data

    def rows() -> Any:
        for k in range(120):
            yield {name: value[k] for name, value in arrays.arrays.items()}

    stream = mm.MinMaxProblem(drawn.objective, drawn.constraints, drawn.primal, mm.Stream(rows), start=drawn.start)
    found = compare(stream, {"sfls": mm.SFLS(mm.SMD(steps=20, batch_size=2))})
    assert found.optimum.source == "unknown"
    assert math.isnan(found.entries[0].gap)
    assert "stream" in comparison_text(found, table, wrapped)
    assert png(comparison_figure([found]))[:4] == b"\x89PNG"


def test_the_csv_has_the_paths_of_the_json(found: Comparison) -> None:
    lines = csv_text(path_rows([found])).splitlines()
    heading = lines[0].split(",")
    listed = [
        (entry["solver"], row) for entry in as_data([found])["comparisons"][0]["solvers"] for row in entry["path"]
    ]
    assert len(lines) - 1 == len(listed)
    for line, (solver, row) in zip(lines[1:], listed, strict=True):
        cells = dict(zip(heading, line.split(","), strict=True))
        assert cells["solver"] == solver
        for name, value in row.items():
            assert (float(cells[name]) if cells[name] else None) == value


def test_the_figure_shows_every_solver_and_marks_what_is_infeasible(found: Comparison) -> None:
    figure = comparison_figure([found, found])
    assert png(comparison_figure([found])) == png(comparison_figure([found]))
    top, bottom = figure.axes[0], figure.axes[2]
    away = found.entries[-2:]
    hollow = [line for line in bottom.lines if line.get_markerfacecolor() == "white" and len(line.get_xdata())]
    assert sorted(np.concatenate([line.get_ydata() for line in hollow])) == pytest.approx(
        sorted(row["violation"] for entry in away for row in entry.path[1:] if row["violation"] > 0)
    )
    assert any(list(line.get_ydata()) == [0.0, 0.0] for line in bottom.lines)
    assert top.get_xlim() == bottom.get_xlim()
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["sfls", "iqrc", "primal dual", "walk", "hollow: infeasible"]
    colours = [line.get_color() for line in top.lines if line.get_linestyle() != "None"]
    assert len(set(colours)) == 4


def test_a_figure_of_many_has_no_empty_axes_and_few_marks_a_line() -> None:
    """Two strips of three columns hold four problems; of sixty looks some twenty are marked, the last among them."""
    walked = compare(problem("quadratic"), {"walk": Walk([WAY[0]] * 60)}, reference=1.0)
    assert len(walked.entries[0].path) > 50
    figure = comparison_figure([walked] * 4, title="Walks")
    assert figure.get_suptitle() == "Walks"
    assert len([axes for axes in figure.axes if axes.get_visible()]) == 8
    marked = [line for line in figure.axes[0].lines if line.get_linestyle() == "None" and len(line.get_xdata())]
    marks = np.concatenate([line.get_xdata() for line in marked])
    assert 10 <= len(marks) <= 20
    assert max(marks) == walked.entries[0].path[-1]["samples"]


def test_two_settings_of_one_solver_look_different_and_one_alone_as_always() -> None:
    names = ["conex", "sfls:steps=1", "sfls:steps=2"]
    drawn = comparison_figure([compare(problem("quadratic"), {name: Walk(WAY) for name in names}, reference=1.0)])
    alone = comparison_figure([compare(problem("quadratic"), {"sfls": Walk(WAY)}, reference=1.0)])

    def looks(figure: Any) -> dict[str, Any]:
        (legend,) = figure.legends
        pairs = zip(legend.get_texts(), legend.legend_handles, strict=True)
        return {text.get_text(): (handle.get_color(), handle.get_marker()) for text, handle in pairs}

    found = looks(drawn)
    assert list(found)[:3] == ["sfls, steps 1", "conex", "sfls, steps 2"]
    assert len(set(found.values())) == len(found)
    assert found["sfls, steps 1"] == looks(alone)["sfls"]


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"solvers": ["slfs"]}, "did you mean 'sfls'"),
        ({"solvers": []}, "at least one"),
        ({"solvers": {"mine": 3}}, "must be a Solver"),
        ({"solvers": None}, "solvers=None: name at least one"),
        ({"solvers": mm.SFLS()}, "solvers=.*give a mapping"),
        ({"solvers": [mm.SFLS()]}, "solvers=.*give a mapping"),
        ({"samples": 0}, "samples=0"),
        ({"samples": "10"}, "samples='10'"),
        ({"samples": 1.5}, "samples=1.5"),
        ({"samples": True}, "samples=True"),
        ({"time_limit": "x"}, "time_limit='x'"),
        ({"reference": "x"}, "reference='x'"),
        ({"seeds": 5}, "seeds=5"),
        ({"seeds": [[1]]}, "seeds="),
        ({"report": 3}, "report=3"),
        ({"time_limit": -1.0}, "time_limit=-1.0"),
        ({"time_limit": math.nan}, "time_limit=nan"),
        ({"seeds": []}, "seeds"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": 0.5}, "seed=0.5"),
        ({"reference": math.inf}, "reference=inf"),
        ({"problem": 3}, "must be a MinMaxProblem"),
        ({"problem": quadratic(bound=np.array([0.5, 0.6]))}, "several runs"),
    ],
)
def test_bad_arguments_are_refused_before_any_solve(changes: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"problem": problem("quadratic"), "solvers": ["sfls"], **changes}
    with pytest.raises(mm.InvalidInput, match=said):
        compare(given.pop("problem"), given.pop("solvers"), **given)


PARALLEL = [pytest.param("threading"), pytest.param("loky", marks=pytest.mark.rel)]


@pytest.mark.parametrize("backend", PARALLEL)
def test_several_processes_give_what_one_does(backend: str, tmp_path: Path) -> None:
    """Entries in the order asked for, whichever ends first; only seconds differ. What had ended is not done again."""
    asked: dict[str, Any] = {"solvers": ["sfls", "iqrc"], "seeds": [0, 1], "samples": 3_000}
    told: list[tuple[str, int]] = []
    one = compare(mm.load_problem("toy"), **asked)
    several: dict[str, Any] = {"jobs": 2, "backend": backend, "report": lambda name, seed: told.append((name, seed))}
    other = compare(mm.load_problem("toy"), **asked, **several, checkpoint=tmp_path)
    assert sorted(told) == sorted((entry.solver, entry.seed) for entry in one.entries)
    assert one.optimum == other.optimum
    for mine, theirs in zip(one.entries, other.entries, strict=True):
        for name in ("solver", "seed", "status", "samples", "steps", "objective", "violation", "upper", "lower"):
            assert getattr(mine, name) == getattr(theirs, name)
    again = compare(mm.load_problem("toy"), **asked, **several, resume=tmp_path)
    assert len(told) == 4
    assert as_data([again])["comparisons"] == as_data([other])["comparisons"]


def test_backends_and_jobs_that_are_not_there_are_one_line() -> None:
    for wrong, says in (({"backend": "spark-of-none"}, "joblib has none of this name"), ({"jobs": 0}, "jobs=0")):
        with pytest.raises(mm.InvalidInput, match=says):
            compare(mm.load_problem("toy"), ["sfls"], samples=1000, **wrong)


# ------------------------------------------------------------------------------------------------------ checkpoints


class Slow(Walk):
    """Walks as its parent does, takes its time, and notes each solve that begins."""

    pause = 0.0

    def __init__(self, log: Path) -> None:
        super().__init__(WAY)
        self.log = log

    def init(self, problem: mm.MinMaxProblem, start: mm.Start) -> Any:
        with self.log.open("a") as file:
            file.write("begun\n")
        return super().init(problem, start)

    def step(self, state: Any) -> Any:
        time.sleep(self.pause)
        return super().step(state)

    def begun(self) -> int:
        return len(self.log.read_text().splitlines())


def test_a_comparison_that_was_killed_goes_on(tmp_path: Path) -> None:
    """What had ended is not done again, and the table is that of one that nothing has ended."""
    kept = tmp_path / "kept"

    def compared(log: str, **options: Any) -> Comparison:
        solvers = {name: Slow(tmp_path / log) for name in ("one", "two", "three")}
        return compare(problem("quadratic"), solvers, seeds=[0, 1], reference=1.0, **options)

    def by_name(log: str, **options: Any) -> Comparison:
        """The log is a setting of the solvers: it moves, so that the name stays."""
        found = compared("log", **options)
        (tmp_path / "log").rename(tmp_path / log)
        return found

    unbroken = by_name("whole")
    process = os.fork()
    if process == 0:
        Slow.pause = 0.05
        try:
            compared("log", checkpoint=kept)
        finally:
            os._exit(0)
    until = time.monotonic() + 60
    while not (tmp_path / "log").exists() or Slow(tmp_path / "log").begun() < 3:
        assert time.monotonic() < until
        time.sleep(0.005)
    os.kill(process, signal.SIGKILL)
    assert os.WIFSIGNALED(os.waitpid(process, 0)[1])
    begun = Slow(tmp_path / "log").begun()
    found = by_name("all", resume=kept)
    assert Slow(tmp_path / "all").begun() in (6, 7)  # the one that was under way may have begun twice
    assert begun < 6
    assert without_seconds(as_data([found])) == without_seconds(as_data([unbroken]))
    (tmp_path / "log").touch()
    again = by_name("none", checkpoint=kept, resume=kept)
    assert Slow(tmp_path / "none").begun() == 0
    assert as_data([again])["comparisons"] == as_data([found])["comparisons"]
    assert [path.name for path in kept.iterdir()] == ["checkpoint.mmc"]


def test_a_comparison_goes_on_from_its_own_checkpoint_alone(tmp_path: Path) -> None:
    given: dict[str, Any] = {"solvers": {"walk": Walk(WAY)}, "samples": 1_000, "reference": 1.0}
    kept, nowhere = tmp_path / "kept", tmp_path / "nowhere"
    first = compare(problem("quadratic"), **given, checkpoint=kept)
    before = (kept / "checkpoint.mmc").read_bytes()
    others: list[tuple[mm.MinMaxProblem, dict[str, Any], str]] = [
        (quadratic(bound=0.7), {}, r"constraints\[0\].bound = 0.5, and this solve has 0.7"),
        (problem("quadratic"), {"name": "mine"}, "problem = .*, and this solve has mine"),
        (problem("quadratic"), {"solvers": ["sfls"]}, "solvers = walk, and this solve has sfls"),
        (problem("quadratic"), {"solvers": {"walk": Walk(WAY[:2])}}, r"solver\['walk'\].points"),
        (problem("quadratic"), {"seed": 3}, "seeds = 0, and this solve has 3"),
        (problem("quadratic"), {"seeds": [0, 1]}, "seeds = 0, and this solve has 0, 1"),
        (problem("quadratic"), {"samples": None}, "samples = 1000, and this solve has None"),
        (problem("quadratic"), {"time_limit": 5.0}, "time_limit = None, and this solve has 5.0"),
        (problem("quadratic"), {"reference": None}, "reference = 1.0, and this solve has None"),
    ]
    for other, changes, said in others:
        with pytest.raises(mm.InvalidInput, match=f"^resume='.*kept': was written with {said}"):
            compare(other, **{**given, **changes}, resume=kept)
    with pytest.raises(mm.InvalidInput, match=r"^checkpoint='.*kept': holds a checkpoint already; resume from it"):
        compare(problem("quadratic"), **given, checkpoint=kept)
    with pytest.raises(mm.InvalidInput, match=r"^resume='.*: cannot be read"):
        compare(problem("quadratic"), **given, resume=nowhere)
    for wrong, said in (({"reference": math.nan}, "reference=nan"), ({"jobs": 0}, "jobs=0")):
        with pytest.raises(mm.InvalidInput, match=said):
            compare(problem("quadratic"), **{**given, **wrong}, checkpoint=nowhere)
    assert not nowhere.exists()
    assert (kept / "checkpoint.mmc").read_bytes() == before
    moved = compare(problem("quadratic"), **given, resume=kept, checkpoint=nowhere)
    assert as_data([moved])["comparisons"] == as_data([first])["comparisons"]
    (kept / "checkpoint.mmc").write_bytes(before[:-1])
    with pytest.raises(mm.CorruptCheckpoint, match="its content does not match its digest"):
        compare(problem("quadratic"), **given, resume=kept)


def test_what_is_no_comparison_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a solve, or made by hand."""
    given: dict[str, Any] = {"solvers": {"walk": Walk(WAY)}, "reference": 1.0, "resume": tmp_path}
    mm.solve(problem("quadratic"), Walk(WAY), checkpoint=tmp_path)
    with pytest.raises(mm.InvalidInput, match="holds the checkpoint of a solve, and this is a comparison; name"):
        compare(problem("quadratic"), **given)
    (tmp_path / "checkpoint.mmc").unlink()
    compare(problem("quadratic"), **given, checkpoint=tmp_path)
    with pytest.raises(mm.InvalidInput, match="holds the checkpoint of a comparison, and this is a solve; name"):
        mm.solve(problem("quadratic"), Walk(WAY), resume=tmp_path)
    known, row = compare(problem("quadratic"), {"walk": Walk(WAY)}, reference=1.0), {"objective": 1.0}
    entry, optimum, kind = known.entries[0], known.optimum, comparison._Kept
    wrong = [5, (), {"entries": ()}, entry, kind(optimum, 5), kind(optimum, (5,)), kind(entry, ()), kind(optimum, [])]
    wrong += [kind(replace(optimum, scale=scale), ()) for scale in (0.0, "x")]
    wrong += [kind(optimum, (replace(entry, seconds=seconds),)) for seconds in ("x", math.nan, math.inf, 1e308, -1.0)]
    changes = ({"path": (row,)}, {"path": 5}, {"path": (5,)}, {"settings": ()}, {"seed": 0.5})
    wrong += [kind(optimum, (replace(entry, **change),)) for change in changes]
    for state in wrong:
        (tmp_path / "checkpoint.mmc").unlink()
        with monkeypatch.context() as patch:
            patch.setattr(comparison, "_keep", lambda keeper, *_, state=state: keeper.write(state, 0.0))
            compare(problem("quadratic"), **given, checkpoint=tmp_path)
        with pytest.raises(mm.CorruptCheckpoint, match="is no checkpoint of a comparison; name another folder"):
            compare(problem("quadratic"), **given)


def test_what_did_not_run_or_was_ended_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {"solvers": ["successive", "sfls"], "samples": 1_000, "resume": tmp_path}
    began: list[str] = []

    def pressed(*rest: Any, **options: Any) -> mm.Solution:
        return mm.solve(*rest, **{**options, "callbacks": [lambda _: signal.raise_signal(signal.SIGINT)]})

    with monkeypatch.context() as patch:
        patch.setattr(comparison, "solve", pressed)
        assert compare(problem("quadratic"), **given, checkpoint=tmp_path).interrupted
    for times in (2, 3):
        found = compare(problem("quadratic"), **given, report=lambda name, _: began.append(name))
        assert [entry.ran for entry in found.entries] == [False, True]
        assert not found.interrupted
        assert began == ["successive", "sfls", "successive"][:times]
