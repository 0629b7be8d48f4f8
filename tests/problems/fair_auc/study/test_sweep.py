"""Sweeps: the same files whatever the order and the number of processes, after any end, and never a wrong one kept."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.results import in_parallel
from minmaxcon_problems.fair_auc.baselines import Track
from minmaxcon_problems.fair_auc.study.report import plan
from minmaxcon_problems.fair_auc.study.runs import thinned_together
from minmaxcon_problems.fair_auc.study.study import FairAUCStudy, Panel
from minmaxcon_problems.fair_auc.study.sweep import Configuration, Runs, Tick, read_run, run_sweep, write_run
from tests.figures import Figure

from .fake_study import FakeStudy, configurations

SCRIPT = """
import sys
from tests.problems.fair_auc.study.fake_study import FakeStudy, configurations
from minmaxcon_problems.fair_auc.study.sweep import run_sweep
if __name__ == "__main__":
    found = run_sweep(FakeStudy(log=sys.argv[2], delay=0.03), configurations(), sys.argv[1], jobs=int(sys.argv[3]))
    print(len(found.records), found.kept, found.interrupted)
"""


COUNT = len(configurations())


def test_a_file_depends_on_the_settings_of_its_own_method_alone() -> None:
    study = FairAUCStudy()
    linear, network = (Panel("a9a", "group", model) for model in ("linear", "mlp"))
    asked = {(p.model, m): set(study.settings(p, m)) for p in (linear, network) for m in study.methods(p)}
    assert asked["linear", "level_set"] == {"levels", "kappas", "goals", "candidates"}
    assert "network" in asked["mlp", "max_gap"] - asked["linear", "max_gap"]
    assert asked["mlp", "level_set"] - asked["mlp", "level_set_adaptive"] == {"paper_weight"}
    assert asked["mlp", "proxy_lagrangian"] == {"baseline", "goals", "candidates"}
    quick, full = (study.settings(network, "max_gap", quick) for quick in (True, False))
    assert quick["network"] < full["network"]


@pytest.mark.parametrize("moments, kept", [((5, 100), (5, 25)), ((40, 50), (15, 15)), ((3, 4), (3, 4))])
def test_what_one_path_of_candidates_leaves_over_goes_to_the_other(moments: Any, kept: Any) -> None:
    """Two runs each, 60 candidates in all; the last moment of each track stays."""
    model = mm.Linear(1)
    tracks = [Track(model, np.arange(2.0 * n).reshape(n, 2, 1), np.zeros(2), np.arange(n)) for n in moments]
    for order in (1, -1):
        found = thinned_together(tracks[::order], 60)[::order]
        assert tuple(len(track.steps) for track in found) == kept
        assert [track.steps[-1] for track in found] == [n - 1 for n in moments]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def begun(log: Path) -> Counter[str]:
    return Counter(line.split()[0] for line in log.read_text().splitlines())


def start(folder: Path, log: Path, jobs: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder), str(log), str(jobs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[4]), *sys.path])},
    )


def wait_for(folder: Path, count: int) -> None:
    until = time.monotonic() + 60
    while not folder.is_dir() or sum(path.suffix == ".json" for path in folder.iterdir()) < count:
        assert time.monotonic() < until
        time.sleep(0.005)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Give the files of a sweep that ran in one process, in order."""
    folder = tmp_path_factory.mktemp("whole") / "runs"
    assert run_sweep(FakeStudy(), configurations(), folder).finished
    return contents(folder)


@pytest.mark.parametrize("jobs", [1, 2])
def test_neither_order_nor_processes_change_a_byte(tmp_path: Path, whole: dict[str, bytes], jobs: int) -> None:
    assert len(whole) == COUNT
    shuffled = configurations()
    random.Random(jobs).shuffle(shuffled)
    ticks: list[Tick] = []
    found = run_sweep(FakeStudy(), shuffled, tmp_path / "runs", jobs=jobs, report=ticks.append)
    assert contents(tmp_path / "runs") == whole
    assert [(tick.done, tick.total) for tick in ticks] == [(k + 1, COUNT) for k in range(COUNT)]
    assert {tick.name for tick in ticks} == {one.name for one in shuffled}
    names = [(r["data"], r["metric"], r["model"], r["method"], r["seed"]) for r in found.records]
    expected = [(o.panel.data, o.panel.metric, o.panel.model, o.method, o.seed) for o in shuffled]
    assert names == expected


@pytest.mark.parametrize("jobs,after", [(1, 3), pytest.param(2, 11, marks=pytest.mark.rel)])
def test_a_killed_sweep_goes_on(tmp_path: Path, whole: dict[str, bytes], jobs: int, after: int) -> None:
    folder, log = tmp_path / "runs", tmp_path / "log"
    process = start(folder, log, jobs)
    wait_for(folder, after)
    process.kill()
    process.communicate()
    if jobs > 1:
        time.sleep(0.5)  # a worker may still end what it had begun
    finished = {path.stem for path in folder.iterdir() if path.suffix == ".json"}
    assert after <= len(finished) < len(whole)
    (folder / f".{next(iter(finished))}.json.new-0123abcd").write_text("half")
    (folder / f".{next(iter(finished))}.json.try-0123abcd").mkdir()
    before = begun(log)
    found = run_sweep(FakeStudy(log=str(log)), configurations(), folder, jobs=jobs)
    assert contents(folder) == whole
    assert len(list(folder.iterdir())) == len(whole)
    assert found.kept == len(finished)
    again = begun(log) - before
    assert set(again) == {Path(name).stem for name in whole} - finished
    assert set(again.values()) == {1}


def test_a_killed_worker_is_named_and_the_rest_goes_on(tmp_path: Path, whole: dict[str, bytes]) -> None:
    folder, log = tmp_path / "runs", tmp_path / "log"
    process = start(folder, log, 2)
    wait_for(folder, 5)
    os.kill(int(log.read_text().splitlines()[-1].split()[1]), signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "a worker process was killed" in err
    assert run_sweep(FakeStudy(), configurations(), folder).finished
    assert contents(folder) == whole


@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.rel), 2])
def test_ctrl_c_keeps_what_has_finished(tmp_path: Path, jobs: int) -> None:
    process = start(tmp_path / "runs", tmp_path / "log", jobs)
    wait_for(tmp_path / "runs", 4)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert err == ""
    records, kept, interrupted = out.split()
    assert (kept, interrupted) == ("0", "True")
    assert 4 <= int(records) < COUNT


LEAKING = """
import sys
from joblib.externals.loky.backend import resource_tracker
from minmaxcon_problems.fair_auc.study.sweep import run_sweep
from tests.problems.fair_auc.study.fake_study import FakeStudy, configurations

assert run_sweep(FakeStudy(), configurations()[:4], sys.argv[1], jobs=2).finished
resource_tracker.register("/loky-of-a-worker-that-was-ended", "semlock")
"""


@pytest.mark.rel
def test_semaphores_of_ended_workers_are_no_news_for_the_reader(tmp_path: Path) -> None:
    """As after Ctrl-C at an unlucky moment, when joblib's tracker finds one that nobody has given back."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    command = [sys.executable, "-c", LEAKING, str(tmp_path / "runs")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.timeout(20)
def test_a_pipe_in_the_place_of_a_run_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.json")
    with pytest.raises(mm.errors.DataError, match="is no regular file"):
        read_run(tmp_path / "run.json", configurations()[0])


@pytest.mark.parametrize("damage", ["half", "empty", "flipped", "list", "undigested"])
def test_a_damaged_file_is_computed_again(tmp_path: Path, whole: dict[str, bytes], damage: str) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    for name, content in whole.items():
        (folder / name).write_bytes(content)
    name, content = "a9a-group-linear-level_set-1.json", whole["a9a-group-linear-level_set-1.json"]
    flipped = content.replace(b'"asked": 0.05', b'"asked": 0.06')
    assert flipped != content
    undigested = json.dumps({key: value for key, value in json.loads(content).items() if key != "blake2b"}).encode()
    spoiled = {"half": content[:400], "empty": b"", "flipped": flipped, "list": b"[]", "undigested": undigested}
    (folder / name).write_bytes(spoiled[damage])
    log = tmp_path / "log"
    found = run_sweep(FakeStudy(log=str(log)), configurations(), folder)
    assert contents(folder) == whole
    assert begun(log) == {Path(name).stem: 1}
    (note,) = found.notes
    assert note.startswith(f"{name} was computed again: is damaged")


def test_files_of_other_runs_are_refused_or_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "runs"
    quick = configurations(1, quick=True)
    run_sweep(FakeStudy(), quick, folder)
    old = contents(folder)
    with pytest.raises(mm.InvalidInput, match=r"quick = True, this one has False; .*--overwrite"):
        run_sweep(FakeStudy(), configurations(1), folder)
    assert contents(folder) == old
    assert run_sweep(FakeStudy(), configurations(1), folder, overwrite=True).kept == 0
    assert contents(folder) != old
    monkeypatch.setattr(mm, "__version__", "9.9.9")
    with pytest.raises(mm.InvalidInput, match=r"minmaxcon = '.*', this one has '9.9.9'"):
        run_sweep(FakeStudy(), configurations(1), folder)


def test_a_folder_is_resumed_from_whole_or_not_at_all(tmp_path: Path) -> None:
    """What agrees is not copied either where a file of another run is beside it; links and spellings are one folder."""
    kept, fresh, out, link = (tmp_path / name for name in ("kept", "fresh", "out", "link"))
    run_sweep(FakeStudy(), configurations(1), kept / "runs")
    run_sweep(FakeStudy(), configurations(1, quick=True), tmp_path / "quick")
    link.symlink_to(kept)
    times = [path.stat().st_mtime_ns for path in sorted((kept / "runs").iterdir())]
    for one, other in ((link, kept), (kept, link), (tmp_path / "out" / ".." / "kept", kept)):
        assert run_sweep(FakeStudy(), configurations(1), Runs.of(out, one, other)).kept == len(times)
    assert times == [path.stat().st_mtime_ns for path in sorted((kept / "runs").iterdir())]
    last = f"{configurations(1)[-1].name}.json"
    (kept / "runs" / last).write_bytes((tmp_path / "quick" / last).read_bytes())
    runs = Runs.of(out, fresh, kept)
    with pytest.raises(mm.InvalidInput, match=f"^resume=.*: holds {last} of a run with quick = True, this one has Fal"):
        run_sweep(FakeStudy(), configurations(1), runs)
    assert not fresh.exists()
    assert run_sweep(FakeStudy(), configurations(1), runs, overwrite=True).kept == len(times) - 1
    assert len(list((fresh / "runs").iterdir())) == len(times)


def test_threads_give_what_processes_give(tmp_path: Path, whole: dict[str, bytes]) -> None:
    run_sweep(FakeStudy(), configurations(), tmp_path, jobs=2, backend="threading")
    assert contents(tmp_path) == whole


def test_files_of_other_settings_are_refused_or_replaced(tmp_path: Path) -> None:
    run_sweep(FakeStudy(), configurations(1), tmp_path)
    old = contents(tmp_path)
    other = plan(FakeStudy(steps=30), "fake", data=["a9a"], seeds=1).configurations
    with pytest.raises(mm.InvalidInput, match=r"setting steps = 20, this one has 30; .*--overwrite"):
        run_sweep(FakeStudy(steps=30), other, tmp_path)
    assert contents(tmp_path) == old
    assert run_sweep(FakeStudy(steps=30), other, tmp_path, overwrite=True).kept == 0
    assert run_sweep(FakeStudy(), configurations(1), tmp_path, overwrite=True).kept == 0
    assert contents(tmp_path) == old


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_configuration_that_fails_is_left_out(tmp_path: Path, jobs: int) -> None:
    found = run_sweep(FakeStudy(broken="level_set"), configurations(1), tmp_path, jobs=jobs)
    assert not found.finished
    assert len(found.records) == 16
    assert set(found.failures.values()) == {"RuntimeError: first line\nsecond line"}


def test_data_that_are_missing_end_the_sweep(tmp_path: Path) -> None:
    with pytest.raises(mm.DataError, match="no such file"):
        run_sweep(FakeStudy(broken="input"), configurations(2), tmp_path, jobs=1)


@pytest.mark.rel
@pytest.mark.slow
def test_sweep_order(tmp_path: Path, figure: Figure) -> None:
    """64 configurations, shuffled, with one process and with two."""
    chosen, alike, sweeps = configurations(seeds=4)[:64], 0, 0
    run_sweep(FakeStudy(), chosen, tmp_path / "whole")
    expected = contents(tmp_path / "whole")
    for jobs in (1, 2):
        for shuffle in range(3):
            random.Random(shuffle).shuffle(chosen)
            folder = tmp_path / f"{jobs}-{shuffle}"
            run_sweep(FakeStudy(), chosen, folder, jobs=jobs)
            alike, sweeps = alike + (contents(folder) == expected), sweeps + 1
    figure.count(alike, sweeps, f"sweeps of {len(chosen)} configurations with the same bytes")
    assert alike == sweeps


@pytest.mark.rel
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_sweep_kill(tmp_path: Path, whole: dict[str, bytes], figure: Figure) -> None:
    """A random worker of each of 20 sweeps is killed; run again it ends the same, and nothing is done twice."""
    rng, sweeps, alike, twice = random.Random(0), 20, 0, 0
    for sweep in range(sweeps):
        folder, log = tmp_path / f"runs{sweep}", tmp_path / f"log{sweep}"
        with ThreadPoolExecutor(1) as pool:  # the process of the tests takes the place of the sweep's own
            running = pool.submit(run_sweep, FakeStudy(log=str(log), delay=0.03), configurations(), folder, jobs=2)
            wait_for(folder, rng.randint(1, 20))
            workers = sorted({int(line.split()[1]) for line in log.read_text().splitlines()})
            os.kill(rng.choice(workers), signal.SIGKILL)
            with pytest.raises(mm.MinMaxConError, match="a worker process was killed"):
                running.result(timeout=60)
        finished = {path.stem for path in folder.iterdir() if path.suffix == ".json"}
        before = begun(log)
        run_sweep(FakeStudy(log=str(log)), configurations(), folder, jobs=2 if sweep % 5 == 0 else 1)
        alike += contents(folder) == whole
        missing = Counter({Path(name).stem: 1 for name in whole if Path(name).stem not in finished})
        twice += (begun(log) - before - missing).total()
        assert not missing - begun(log)
    figure.count(alike, sweeps, "killed sweeps ended with the same bytes")
    figure.total(twice, "finished configurations done again")
    assert (alike, twice) == (sweeps, 0)


def test_arguments(tmp_path: Path) -> None:
    with pytest.raises(mm.InvalidInput, match="jobs=0: must be at least 1"):
        run_sweep(FakeStudy(), configurations(1), tmp_path, jobs=0)
    with pytest.raises(mm.InvalidInput, match="occurs twice"):
        run_sweep(FakeStudy(), configurations(1) * 2, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(mm.InvalidInput, match="cannot be written"):
        run_sweep(FakeStudy(), configurations(1), tmp_path / "file")


def test_names_that_are_no_file_names(tmp_path: Path) -> None:
    one = Configuration("fake", Panel("../a b", "x/y", "linear"), "level_set", 0, False)
    assert one.name == ".._a_b-x_y-linear-level_set-0"
    record: dict[str, Any] = {"status": "done", "points": [], "value": float("nan")}
    write_run(tmp_path / f"{one.name}.json", one, record)
    assert read_run(tmp_path / f"{one.name}.json", one)["value"] is None


# --------------------------------------------------------------------------------------------------- other backends


def test_a_worker_of_dask_that_is_killed_loses_nothing_and_nothing_is_done_twice(
    tmp_path: Path, whole: dict[str, bytes]
) -> None:
    pytest.importorskip("dask.distributed", reason="dask is not installed: pip install 'minmaxcon[cluster]'")
    script = SCRIPT.replace("jobs=int(sys.argv[3])", "jobs=2, backend='dask'").replace("delay=0.03", "delay=0.1")
    folder, log = tmp_path / "runs", tmp_path / "log"
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(folder), str(log)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[4]), os.environ["PYTHONPATH"]])},
    )
    wait_for(folder, 5)
    os.kill(int(log.read_text().splitlines()[-1].split()[1]), signal.SIGKILL)
    out, err = process.communicate(timeout=200)
    assert (process.returncode, out) == (0, f"{COUNT} 0 False\n"), err
    assert contents(folder) == whole
    counts = begun(log)
    assert sum(counts.values()) <= COUNT + 1  # what the killed worker was at, and no more
    assert set(counts) == {Path(name).stem for name in whole}


def test_a_cluster_of_this_machine_keeps_the_memory_that_a_step_needs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dask.distributed", reason="dask is not installed: pip install 'minmaxcon[cluster]'")
    import dask

    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    before = dask.config.get("distributed.nanny.pre-spawn-environ")
    assert list(in_parallel(os.getenv, [("MALLOC_TRIM_THRESHOLD_", "none")], jobs=1, backend="dask")) == ["none"]
    assert dask.config.get("distributed.nanny.pre-spawn-environ") == before  # other clusters are as they were


def test_backends_that_are_not_there_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(mm.InvalidInput, match="backend='spark-of-none'"):
        run_sweep(FakeStudy(), configurations(1), tmp_path, jobs=2, backend="spark-of-none")
    assert not list(tmp_path.iterdir())
    if not find_spec("dask"):
        with pytest.raises(mm.MissingDependency, match="dask is needed for the backend dask"):
            run_sweep(FakeStudy(), configurations(1), tmp_path, jobs=2, backend="dask")
