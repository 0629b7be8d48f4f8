"""One solve over two processes: the trajectories of one process with both batches, and one line when one is gone."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import minmaxcon as mm
from minmaxcon.distributed import join
from tests.cases import PROBLEMS
from tests.distributed_worker import found_of
from tests.problems.fair_auc.test_streamed import frame

ROOT = Path(__file__).parents[1]


def port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def start(command: list[str], count: int = 2, **changes: str) -> list[subprocess.Popen[str]]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "problems")])
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port()), "WORLD_SIZE": "2", "PYTHONPATH": path, **changes}
    return [
        subprocess.Popen(
            [sys.executable, *(word.replace("{rank}", str(rank)) for word in command)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **common, "RANK": str(rank)},
        )
        for rank in range(count)
    ]


def ended(processes: list[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    return [(process.returncode, *texts) for process in processes if (texts := process.communicate(timeout=250))]


def worker(folder: Path, *cases: Any) -> list[subprocess.Popen[str]]:
    return start(["-m", "tests.distributed_worker", str(folder / "{rank}.json"), json.dumps(cases)])


def run(folder: Path, *cases: Any) -> list[Any]:
    """Return what cases give, which is the same in both processes, to the last bit."""
    found = ended(worker(folder, *cases))
    assert [code for code, *_ in found] == [0, 0], found
    first, second = (json.loads((folder / f"{rank}.json").read_text()) for rank in range(2))
    assert first == second
    return list(first)


def run_forked(folder: Path, *cases: Any) -> list[Any]:
    """Return what cases give in two processes that need not import anything anew."""
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port()), "WORLD_SIZE": "2"}
    processes = []
    for rank in range(2):
        process = os.fork()
        if process == 0:
            status = 1
            try:
                os.environ.update(common, RANK=str(rank))
                (folder / f"{rank}.json").write_text(json.dumps(found_of(cases)))
                join().leave()
                status = 0
            finally:
                os._exit(status)
        processes.append(process)
    assert [os.waitpid(process, 0)[1] for process in processes] == [0, 0]
    first, second = (json.loads((folder / f"{rank}.json").read_text()) for rank in range(2))
    assert first == second
    return list(first)


def require_same(found: Any) -> None:
    together, alone = found["together"], found["alone"]
    assert (together["status"], together["steps"]) == (alone["status"], alone["steps"])
    for name in ("x", "objective", "values"):
        np.testing.assert_allclose(together[name], alone[name], rtol=1e-12, atol=1e-12)


def test_two_processes_are_one_with_both_batches(tmp_path: Path) -> None:
    """One pair of processes for all."""
    cases = [("same", "several", "smd"), ("same", "cvar", "smd")]
    kept = str(tmp_path / "kept")
    *found, unequal, resumed, limited = run_forked(tmp_path, *cases, ("unequal",), ("resumed", kept), ("limited",))
    for each in found:
        require_same(each)
    np.testing.assert_allclose(unequal["together"], unequal["alone"], rtol=1e-12)  # shards of two sizes
    np.testing.assert_allclose(*unequal["refined"], rtol=1e-12)
    assert resumed["whole"] == resumed["rest"]
    assert limited["status"] == ["budget"]  # each has its own clock


@pytest.mark.slow
def test_every_problem_oracle_and_solver_is_the_same_over_two_processes(tmp_path: Path) -> None:
    even = [(name, case) for name, case in PROBLEMS.items() if (case.build().data.size or 1) % 2 == 0]  # equal shards
    cases = [(name, "smd" if case.convex else "iqrc") for name, case in even]
    cases += [("fair_auc_inter", "mirror_prox"), ("cvar", "variance_reduced"), ("quadratic", "primal_dual")]
    for found in run(tmp_path, *(("same", *case) for case in cases)):
        require_same(found)


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_process_that_dies_ends_the_other_with_one_line_and_a_readable_checkpoint(
    tmp_path: Path, victim: int
) -> None:
    folder = tmp_path / "kept"
    processes = worker(tmp_path, ("slow", str(folder)))
    until = time.monotonic() + 100
    while not (folder / "checkpoint.mmc").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    time.sleep(1.0)
    processes[victim].send_signal(signal.SIGKILL)
    found = ended(processes)
    code, _, said = found[1 - victim]
    assert code == 2
    lines = [line for line in said.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert lines[0].startswith("error: another process of this solve has ended, and so does this one")
    (after,) = run(tmp_path, ("continued", str(folder)))
    assert after["steps"] >= 40


def test_processes_that_nobody_has_started() -> None:
    with pytest.raises(mm.InvalidInput, match=r"distributed=True: RANK is not set: start it by torchrun --nproc-per"):
        join()


@pytest.mark.slow
def test_processes_that_differ_or_cannot_be_reached(tmp_path: Path) -> None:
    for code, _, said in ended(worker(tmp_path, ("different",))):
        assert code == 2
        assert "error: the processes have different problems: bounds is" in said
    command = ["-c", "import minmaxcon.distributed as d\ntry: d.join(2.0)\nexcept d.MinMaxConError as e: print(e)"]
    ((_, out, _),) = ended(start(command, count=1))
    assert out.startswith("the other processes cannot be reached at 127.0.0.1:")
    assert out.count("\n") == 1


def files(folder: Path, count: int, rows: int = 4000) -> Path:
    folder.mkdir()
    table = pa.Table.from_pandas(frame(rows), preserve_index=False)
    for k in range(count):
        pq.write_table(table.slice(k * rows // count, rows // count), folder / f"part-{k}.parquet")
    return folder


def solve(folder: Path, *more: str) -> list[tuple[int, str, str]]:
    words = ["-m", "minmaxcon", "solve", "fair_auc", "--data", str(folder), "--label", "y", "--sensitive", "g"]
    return ended(start([*words, "--kappa", "0.1", "--solver", "sfls", "--quiet", "--distributed", *more]))


@pytest.mark.slow
def test_the_command_solves_shards_of_files_and_the_first_process_reports(tmp_path: Path) -> None:
    (code, out, _), (other, silent, _) = solve(files(tmp_path / "rows", 3), "--out", str(tmp_path / "found"))
    assert (code, other, silent) == (0, 0, "")
    assert "SOLVED" in out
    record = json.loads((tmp_path / "found" / "result.json").read_text())
    assert record["train"]["rows"] + record["test"]["rows"] == 3999
    alone = mm.load_problem("fair_auc", data=tmp_path / "rows", label="y", sensitive="g", kappa=0.1)
    found = mm.solve(alone, mm.SFLS(oracle=mm.SMD()))
    assert record["objective"] == pytest.approx(found.objective, abs=0.03)


@pytest.mark.slow
def test_a_missing_shard_and_shards_of_different_columns_are_one_line(tmp_path: Path) -> None:
    found = solve(files(tmp_path / "one", 1))
    assert [code for code, *_ in found] == [2, 2]
    assert "has 1 files for 2 processes; write at least one file a process, such as with" in found[0][2]
    assert found[1][2] == ""
    folder = files(tmp_path / "two", 2)
    table = pq.read_table(folder / "part-1.parquet")
    pq.write_table(table.rename_columns(["z", *table.column_names[1:]]), folder / "part-1.parquet")
    found = solve(folder)
    assert [code for code, *_ in found] == [2, 2]
    assert "column 'x0' is no column in " in found[0][2]
    assert found[0][2].count("\n") == 1
