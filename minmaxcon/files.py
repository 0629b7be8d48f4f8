"""Files that are there as a whole or not at all: a temporary neighbour, fsync, rename."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

__all__ = ["alive", "remove_stale", "replace_file", "sync_folder", "write_synced"]

_STALE = re.compile(r"\.(.+)\.new-[0-9]+")


def replace_file(path: Path, content: bytes) -> None:
    """Put a file in the place of an earlier one, so that at every instant one of the two is there as a whole.

    Parameters
    ----------
    path : Path
        The file, in a folder that exists.
    content : bytes
        What it is to hold.

    Raises
    ------
    OSError
        If the system refuses; then the earlier file is untouched.
    """
    fresh = path.with_name(f".{path.name}.new-{os.getpid()}")
    try:
        fresh.unlink(missing_ok=True)
        write_synced(fresh, content)
        fresh.replace(path)
    except BaseException:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # the rename is done already, so that a refusal changes nothing
        sync_folder(path.parent)


def remove_stale(path: Path) -> None:
    """Remove what processes that were killed left beside a file; those of processes that live are kept."""
    for other in path.parent.glob(f".{path.name}.new-*"):
        found = _STALE.fullmatch(other.name)
        if found and found[1] == path.name and not alive(int(other.name.rpartition("-")[2])):
            other.unlink(missing_ok=True)


def alive(process: int) -> bool:
    """Whether a process of this number runs, other than this one."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return process != os.getpid()


def write_synced(path: Path, content: bytes) -> None:
    """Write a new file, and return when its content has reached the disk."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Return when the names in a folder have reached the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
