"""``--out``: all or nothing, never over what is not ours, and refused before the work is done."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import minmaxcon as mm
from minmaxcon.results.folders import write_folder

FILES = ["model.safetensors", "result.json", "trace.csv", "trace.png"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def never_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    def solve(*_: Any, **__: Any) -> None:
        pytest.fail("the folder should have been refused before the solve")

    monkeypatch.setattr(mm, "solve", solve)


def test_a_result_is_written_with_its_parents_and_ordinary_rights(
    solve_table: Callable[..., Any], tmp_path: Path
) -> None:
    folder = tmp_path / "new" / "deep" / "result"
    done = solve_table("--out", folder, "--quiet")
    assert done.status == 0
    assert names(folder) == FILES
    assert names(folder.parent) == ["result"]  # no temporary neighbour is left
    umask = os.umask(0)
    os.umask(umask)
    assert folder.stat().st_mode & 0o777 == 0o777 & ~umask
    assert (folder / "result.json").stat().st_mode & 0o777 == 0o666 & ~umask
    assert (folder / "trace.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert f"written: {folder}" in done.out


def test_nothing_is_written_without_out(
    solve_table: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert solve_table().status == 0
    assert names(tmp_path) == []


@pytest.mark.usefixtures("outlined")
def test_an_earlier_result_is_replaced_only_when_asked(solve_table: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "r"
    assert solve_table("--kappa", "0.3,0.4", "--out", folder, "--quiet").status in (0, 1)
    before = (folder / "result.json").read_bytes()
    refused = solve_table("--out", folder)
    assert refused.status == 2
    assert "--overwrite" in refused.err
    assert (folder / "result.json").read_bytes() == before
    assert solve_table("--out", folder, "--overwrite", "--quiet").status == 0
    assert names(folder) == FILES  # the models of the earlier result are gone
    assert names(tmp_path) == ["r"]


@pytest.mark.usefixtures("never_solved")
@pytest.mark.parametrize("overwrite", [(), ("--overwrite",)])
@pytest.mark.parametrize("kind", ["file", "link", "foreign", "unmarked", "broken link"])
def test_what_is_not_ours_is_never_replaced(
    solve_table: Callable[..., Any], tmp_path: Path, kind: str, overwrite: tuple[str, ...]
) -> None:
    target, other = tmp_path / "r", tmp_path / "other"
    other.mkdir()
    (other / "result.json").write_text('{"versions": {"minmaxcon": "0"}}')
    if kind == "file":
        target.write_text("mine")
    elif kind == "link":
        target.symlink_to(other)
    elif kind == "broken link":
        target.symlink_to(tmp_path / "nothing")
    else:
        target.mkdir()
        (target / "result.json").write_text("{}" if kind == "unmarked" else '{"versions": {"minmaxcon": "0"}}')
        if kind == "foreign":
            (target / "thesis.tex").write_text("mine")
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    done = solve_table("--out", target, *overwrite)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert f"--out='{target}'" in done.err
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


@pytest.mark.usefixtures("never_solved")
def test_a_place_that_cannot_be_written_is_refused_before_the_solve(
    solve_table: Callable[..., Any], table: Path
) -> None:
    for place in (table / "x", "/proc/result", "/dev/null/x"):
        done = solve_table("--out", place)
        assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
        assert "cannot be written" in done.err


@pytest.mark.usefixtures("outlined")
def test_an_empty_folder_is_replaced_only_when_asked(solve_table: Callable[..., Any], tmp_path: Path) -> None:
    assert solve_table("--out", tmp_path).status == 2
    folder = tmp_path / "empty"
    folder.mkdir()
    assert solve_table("--out", folder, "--overwrite", "--quiet").status == 0
    assert names(folder) == FILES


@pytest.mark.parametrize("failing", range(1, 7))
@pytest.mark.parametrize("function", ["fsync", "rename"])
def test_a_disk_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, failing: int
) -> None:
    """The k-th fsync or rename fails: old or new result, whole, and no temporary file is left."""
    folder = tmp_path / "r"
    old = {"result.json": b'{"versions": {"minmaxcon": "0"}}', "trace.csv": b"old"}
    new = {**old, "trace.csv": b"new", "trace.png": b"new"}
    write_folder(folder, old)
    count = 0
    real: Callable[..., Any] = os.fsync if function == "fsync" else Path.rename

    def flaky(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        if count == failing:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments)

    monkeypatch.setattr(os if function == "fsync" else Path, function, flaky)
    # Three files and their folder must reach the disk, then two renames; what comes after cannot undo it.
    if failing <= (4 if function == "fsync" else 2):
        with pytest.raises(mm.InvalidInput, match="No space left on device"):
            write_folder(folder, new, overwrite=True)
        expected = old
    else:
        write_folder(folder, new, overwrite=True)
        expected = new
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == expected
    assert names(tmp_path) == ["r"]


@pytest.mark.usefixtures("outlined")
def test_an_error_while_files_are_made_writes_nothing(
    solve_table: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")))
    done = solve_table("--out", tmp_path / "r", "--json")
    assert (done.status, done.out) == (2, "")
    assert "Input/output error" in done.err
    assert names(tmp_path) == []


@pytest.mark.usefixtures("outlined")
def test_result_json_is_what_json_prints(solve_table: Callable[..., Any], tmp_path: Path) -> None:
    done = solve_table("--out", tmp_path / "r", "--json", "--quiet")
    assert done.out == (tmp_path / "r" / "result.json").read_text()
    json.loads(done.out, parse_constant=pytest.fail)
