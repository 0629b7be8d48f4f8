"""Writes of results that are killed at any operation on files: the next command finds the old result or the new one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from minmaxcon.errors import InvalidInput
from minmaxcon.results import check_folder, read_result, write_file, write_folder
from tests.cli.test_strangers import RESULT
from tests.figures import Figure

OLD = RESULT.replace('"settings"', '"versions": {"minmaxcon": "0"}, "settings"').replace('"versions": {}, ', "")
NEW = OLD.replace('"steps": 1', '"steps": 2')
OPERATIONS = ("open", "mkdir", "rename", "rmtree", "fsync", "unlink", "rmdir")


def crashing(patch: pytest.MonkeyPatch, operation: str, after: int) -> None:
    """End the process at the k-th call of an operation from now on, before it is done."""
    calls = [0]

    def wrapped(old: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            calls[0] += 1
            if calls[0] > after:
                os._exit(7)
            return old(*arguments, **named)

        return call

    owner = {"rmtree": shutil, "fsync": os}.get(operation, Path)
    patch.setattr(owner, operation, wrapped(getattr(owner, operation)))


def run(work: Callable[[], Any]) -> int:
    process = os.fork()
    if process == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_result_is_replaced_or_as_it_was(
    operation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: Figure
) -> None:
    folder, seen, killed = tmp_path / "r", set(), 0
    for after in range(8):
        if not folder.exists():
            write_folder(folder, {"result.json": OLD.encode()})
        with monkeypatch.context() as patch:
            crashing(patch, operation, after)
            ended = run(lambda: write_folder(folder, {"result.json": NEW.encode(), "trace.csv": b""}, overwrite=True))
        found = read_result(folder)  # also where the process ended between the two renames
        assert found.steps in (1, 2)
        seen.add((ended, found.steps))
        killed += ended == 7
        check_folder(folder, overwrite=True)
        assert [path.name for path in tmp_path.iterdir()] == ["r"]
        write_folder(folder, {"result.json": OLD.encode()}, overwrite=True)
    figure.total(killed, "processes killed, each leaving one whole result")
    assert (0, 2) in seen  # in the end the operation was done often enough
    assert {1, 7} & {ended for ended, _ in seen} or operation in ("unlink", "rmdir")


def test_what_belongs_to_others_is_left_alone(tmp_path: Path) -> None:
    """Neighbours of processes that run, and names that are not ours."""
    parent = os.getppid()
    kept = [f".r.new-{parent:06x}00", ".r.new-text", ".r.newer-00000000", ".other.new-ffffff00", "r.new-ffffff00"]
    for name in kept:
        (tmp_path / name).mkdir()
    (tmp_path / ".r.new-ffffff00").mkdir()
    write_folder(tmp_path / "r", {"result.json": OLD.encode()})
    assert {path.name for path in tmp_path.iterdir()} == {*kept, "r"}
    (tmp_path / ".f.new-ffffff00").write_bytes(b"half")
    write_file(tmp_path / "f", b"1")
    assert not (tmp_path / ".f.new-ffffff00").exists()
    assert (tmp_path / "f").read_bytes() == b"1"


@pytest.mark.parametrize("kind, said", [("folder", "no regular file"), ("link", "no regular file"), ("..", "no name")])
def test_a_file_takes_no_place_that_is_none(kind: str, said: str, tmp_path: Path) -> None:
    """Not that of a folder or behind a link, and a path needs a name; replacing does not change that."""
    target = tmp_path / "there"
    if kind == "folder":
        target.mkdir()
    elif kind == "link":
        target.symlink_to(tmp_path / "elsewhere")
    else:
        target = tmp_path / "nowhere" / ".."
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InvalidInput, match=f"out=.*{said}"):
        write_file(target, b"1", overwrite=True)
    assert sorted(tmp_path.iterdir()) == before
