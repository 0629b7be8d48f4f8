"""Writing results so that nothing half-written is ever seen: a temporary neighbour, fsync, rename."""

from __future__ import annotations

import glob
import os
import re
import secrets
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from minmaxcon.checks import file_path, flag, instance, instances, mapping
from minmaxcon.errors import InvalidInput
from minmaxcon.files import alive, sync_folder, write_synced

__all__ = [
    "RESULT_FILE",
    "check_file",
    "check_folder",
    "leftover",
    "recover",
    "remove_leftovers",
    "write_file",
    "write_folder",
]

RESULT_FILE = "result.json"
"""The file that the folder of every solve holds."""

_RECORDS = (RESULT_FILE, "comparison.json")
"""A folder with one of these, of ours, is a result that may be replaced."""

_OURS = re.compile(
    r"result\.json|model(-\d+)?\.safetensors|trace\.(csv|png)|(front|demo)\.png|comparison\.(json|csv|png)"
)
_LEFT = re.compile(r"\.(.+)\.(?:new|try|old)-[0-9a-f]{8}")
_MARK = re.compile(rb'"versions":\s*\{\s*"minmaxcon":')


def check_folder(path: str | Path, *, overwrite: bool = False, only: Collection[str] | None = None) -> None:
    """Refuse a folder that :func:`write_folder` could not write; to be asked before the work is done.

    Parameters
    ----------
    path : path
        Where a result is to go. Missing parents will be made.
    overwrite : bool
        Whether an earlier result, or an empty folder, may be replaced. Anything else never is.
    only : collection of str, optional
        Replace a folder only if it holds no other files than these.

    Raises
    ------
    InvalidInput
        The path exists and may not be replaced, or nothing can be written there.
    """
    target, overwrite = file_path("path", path), flag("overwrite", overwrite)
    with _named(path):
        recover(target)
        if _exists(target):
            _check_replaceable(target, overwrite, only)
        _try_parent(target)


def write_folder(path: str | Path, files: Mapping[str, bytes], *, overwrite: bool = False) -> None:
    """Write a folder of files, all or nothing.

    The files go into a new folder beside the target, reach the disk, and the folder is renamed; an earlier result is
    moved aside first and removed last.

    Parameters
    ----------
    path : path
        The folder.
    files : mapping of str to bytes
        Content by file name; a name with slashes lies in folders of the folder.
    overwrite : bool
        As for :func:`check_folder`.

    Raises
    ------
    InvalidInput
        As :func:`check_folder`, or the disk refused; then the target is what it was before.
    """
    remedy = "must map names of files to bytes."
    instances("files", mapping("files", files, remedy).values(), bytes, remedy)
    check_folder(path, overwrite=overwrite)
    with _fresh(path) as (target, fresh):
        fresh.mkdir()
        for name, content in files.items():
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            write_synced(fresh / name, content)
        sync_folder(fresh)
        _put(fresh, target, overwrite)


def check_file(path: str | Path, *, overwrite: bool = False) -> None:
    """Refuse a file that :func:`write_file` could not write.

    Parameters
    ----------
    path : path
        The file.
    overwrite : bool
        Whether a regular file may be replaced.

    Raises
    ------
    InvalidInput
        The path exists and may not be replaced, or nothing can be written there.
    """
    target, overwrite = file_path("path", path), flag("overwrite", overwrite)
    with _named(path):
        recover(target)
        if _exists(target):
            if target.is_symlink() or not target.is_file():
                raise InvalidInput("out", str(path), "exists and is no regular file; name another.")
            if not overwrite:
                raise InvalidInput("out", str(path), "exists; name another file, or replace it with --overwrite.")
        _try_parent(target)


def write_file(path: str | Path, content: bytes, *, overwrite: bool = False) -> None:
    """Write one file, all or nothing.

    Parameters
    ----------
    path : path
        The file.
    content : bytes
        What it is to hold.
    overwrite : bool
        As for :func:`check_file`.

    Raises
    ------
    InvalidInput
        As :func:`check_file`, or the disk refused; then the target is what it was before.
    """
    instance("content", content, bytes, "must be bytes; encode a text first.")
    check_file(path, overwrite=overwrite)
    with _fresh(path) as (target, fresh):
        write_synced(fresh, content)
        fresh.replace(target)


@contextmanager
def _fresh(path: str | Path) -> Iterator[tuple[Path, Path]]:
    """Give the target and a new neighbour to be renamed to it; what is left of the neighbour is removed."""
    target = Path(path)
    fresh = _beside(target, "new")
    with _named(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield target, fresh
            with suppress(OSError):  # the rename is done already, so that a refusal changes nothing
                sync_folder(target.parent)
        finally:
            if fresh.is_dir():
                shutil.rmtree(fresh, ignore_errors=True)
            else:
                fresh.unlink(missing_ok=True)


@contextmanager
def _named(path: str | Path) -> Iterator[None]:
    """Turn what the system says into an error that names the path."""
    try:
        yield
    except InvalidInput:
        raise
    except (OSError, ValueError) as failure:
        cause = " ".join(str(getattr(failure, "strerror", None) or failure).split())
        raise InvalidInput("out", str(path), f"cannot be written ({cause}); name another.") from failure


def _exists(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _check_replaceable(target: Path, overwrite: bool, only: Collection[str] | None) -> None:
    """Refuse an existing path unless it is a result of ours, or empty, and may be overwritten."""
    if target.is_symlink() or not target.is_dir():
        raise InvalidInput("out", str(target), "exists and is no folder; name another.")
    if not overwrite:
        raise InvalidInput("out", str(target), "exists; name another folder, or replace it with --overwrite.")
    entries = sorted(entry.name for entry in target.iterdir())
    foreign = [name for name in entries if not (_OURS.fullmatch(name) if only is None else name in only)]
    if foreign:
        remedy = f"is not replaced: it holds {foreign[0]!r}, which this command does not write; name another."
        raise InvalidInput("out", str(target), remedy)
    records = [target / name for name in _RECORDS if (target / name).is_file()]
    if entries and not any(_MARK.search(record.read_bytes()) for record in records):
        raise InvalidInput("out", str(target), f"is not replaced: it has no {RESULT_FILE} of minmaxcon; name another.")


def _try_parent(target: Path) -> None:
    """Make and remove a folder where the target will be: the one sure way to know that it can be made."""
    if target.name in ("", ".."):
        raise OSError("it has no name of its own")
    parent = target.parent
    while not parent.exists() and parent != parent.parent:
        parent = parent.parent
    probe = _beside(parent / target.name, "try")
    probe.mkdir()
    probe.rmdir()


def leftover(name: str) -> str | None:
    """Return what the temporary neighbour that a killed process left was to become; None for any other name.

    Examples
    --------
    >>> leftover(".tables.txt.new-0123abcd"), leftover("tables.txt")
    ('tables.txt', None)
    """
    found = _LEFT.fullmatch(instance("name", name, str, "must be the name of a file."))
    return None if found is None else found[1]


def remove_leftovers(folder: Path, ending: str = "") -> None:
    """Remove what killed processes left in a folder of their own, of writes of files with some ending of the name."""
    folder = file_path("folder", folder)
    for path in folder.iterdir() if folder.is_dir() else ():
        name = leftover(path.name)
        if name is None or not name.endswith(ending):
            continue
        if path.is_dir() and not path.is_symlink():  # made to see whether a file can be
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def recover(path: str | Path) -> None:
    """Undo what a process that was killed left of a write: an earlier result comes back, half of a new one goes.

    Neighbours of processes that run are left alone. What the system refuses stays as it is.
    """
    target = file_path("folder", path)
    with suppress(OSError, ValueError):
        for other in sorted(target.parent.glob(f".{glob.escape(target.name)}.*-*"), reverse=True):
            found = _LEFT.fullmatch(other.name)
            if found is None or found[1] != target.name or alive(int(other.name[-8:-2], 16)):
                continue
            if ".old-" in other.name and not _exists(target):
                other.rename(target)
            elif other.is_dir() and not other.is_symlink():
                shutil.rmtree(other, ignore_errors=True)
            else:
                other.unlink(missing_ok=True)


def _beside(target: Path, purpose: str) -> Path:
    """Return a new name beside the target that tells which process it belongs to."""
    return target.with_name(f".{target.name[:100]}.{purpose}-{os.getpid():06x}{secrets.token_hex(1)}")


def _put(fresh: Path, target: Path, overwrite: bool) -> None:
    """Put the new folder in the place of the old one, or leave the old one where it was."""
    if not (overwrite and target.exists()):
        fresh.rename(target)
        return
    old = _beside(target, "old")
    target.rename(old)
    try:
        fresh.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)
