"""The command as a process: signals, pipes, and what it loads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import minmaxcon as mm
from minmaxcon.cli import Output

from .conftest import FILE_OPTIONS, Called

TERMINAL = (signal.SIGTERM, signal.SIGHUP)
COMMAND = [sys.executable, "-c", "import sys; from minmaxcon.cli import main; sys.exit(main())"]


def start(*words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def begun(folder: Path) -> None:
    """Wait until a solve has written its first checkpoint; before, Python and its imports answer signals."""
    deadline = time.monotonic() + 60
    while not list(folder.glob("checkpoint.mmc")) and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.mark.parametrize("delay", [pytest.param(0.5, marks=pytest.mark.rel), 0.1])
def test_ctrl_c_reports_the_best_point_so_far(table: Path, tmp_path: Path, delay: float) -> None:
    folder = tmp_path / "r"
    words = ("solve", "fair_auc", "--data", table, *FILE_OPTIONS, "--steps", 10**7, "--json", "--out", folder)
    process = start(*words, "--kappa", 0.3, "--checkpoint", tmp_path / "kept")
    begun(tmp_path / "kept")
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "Traceback" not in err
    result = json.loads(out)
    assert result["status"] == "interrupted"
    assert result["feasible"] is True
    assert {path.name for path in tmp_path.iterdir()} == {"r", "kept"}


@pytest.mark.parametrize("kept", [False, True])
def test_a_second_ctrl_c_ends_at_once(
    kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Called]
) -> None:
    """With one line and nothing half-written; a checkpoint is that of before, and the solve goes on from it."""
    words = ("solve", "toy", "--solver", "sfls", "--out", tmp_path / "r")
    folder = ("--checkpoint", tmp_path / "kept") if kept else ()

    seen: list[float] = []

    def twice(progress: mm.Progress) -> None:
        seen.append(progress.seconds)
        if len(seen) == 3:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Output, "progress", lambda _: [twice])
        before = signal.getsignal(signal.SIGINT)
        done = call(*words, *folder)
        assert signal.getsignal(signal.SIGINT) is before
    assert (done.status, done.out) == (1, "")
    assert done.err == "minmaxcon: interrupted before there was a result.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["kept"] * kept
    if kept:
        assert call(*words, "--resume", tmp_path / "kept").status == 0


@pytest.mark.parametrize("which", [signal.SIGUSR1, *(pytest.param(one, marks=pytest.mark.rel) for one in TERMINAL)])
def test_a_signal_is_answered_with_a_result_and_a_checkpoint(
    table: Path, tmp_path: Path, which: signal.Signals
) -> None:
    words = ("solve", "fair_auc", "--data", table, *FILE_OPTIONS, "--steps", 10**7, "--json", "--kappa", 0.3)
    process = start(*words, "--checkpoint", tmp_path / "kept", "--out", tmp_path / "r")
    begun(tmp_path / "kept")
    process.send_signal(which)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in err
    result = json.loads(out)
    assert (result["status"], result["feasible"]) == ("interrupted", True)
    assert result["reason"].startswith(f"Stopped by {'SIGTERM' if which == signal.SIGUSR1 else which.name}")
    assert {path.name for path in tmp_path.iterdir()} == {"kept", "r"}
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["checkpoint.mmc"]


def test_a_program_keeps_its_own_use_of_sigusr1(call: Callable[..., Any]) -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda which, _: seen.append(which))
    try:
        assert call("problems", "--names").status == 0
        signal.raise_signal(signal.SIGUSR1)
        assert seen == [signal.SIGUSR1]
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        assert call("problems", "--names").status == 0
        assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_reader_that_has_enough_ends_it_quietly() -> None:
    words = " ".join(f"'{word}'" for word in [*COMMAND, "problems", "--names"])
    script = f"{words} | head -n 1; exit ${{PIPESTATUS[1]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, "")


def test_a_full_disk_behind_standard_output_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, "problems", "--names"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert "No space left on device" in done.stderr.splitlines()[0]
