"""Files that are there as a whole or not at all: a temporary neighbour, fsync, rename; and files without a name."""

from __future__ import annotations

import os
import re
import tempfile
import weakref
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from minmaxcon.errors import InvalidInput, MinMaxConError

__all__ = [
    "Scratch",
    "alive",
    "installed_version",
    "remove_stale",
    "replace_file",
    "sync_folder",
    "write_synced",
]

_STALE = re.compile(r"\.(.+)\.new-[0-9]+")


@cache
def installed_version(package: str) -> str | None:
    """Return the version of an installed package, None where it is not; its files are read once, nothing is imported.

    Parameters
    ----------
    package : str
        The name of the distribution.
    """
    from importlib.metadata import PackageNotFoundError, version  # which takes longer to import than all else here

    try:
        return version(package)
    except PackageNotFoundError:
        return None


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


class Scratch:
    """A file without a name, which only this process sees: whatever ends the process, nothing of it is left.

    Reads and writes name their place, so that several threads may use one file.

    Parameters
    ----------
    folder : path, optional
        On whose disk it lies; the system's folder for temporary files by default, which ``TMPDIR`` names.
    what : str
        What it holds, for messages.

    Raises
    ------
    InvalidInput
        If the folder cannot be used.
    """

    def __init__(self, folder: str | Path | None, what: str) -> None:
        self.folder, self.what, self.size = Path(tempfile.gettempdir() if folder is None else folder), what, 0
        try:
            file = tempfile.TemporaryFile(dir=self.folder, buffering=0)  # noqa: SIM115 - it lives as long as this
        except (OSError, ValueError) as failure:
            cause = getattr(failure, "strerror", None) or failure
            raise InvalidInput("folder", str(self.folder), f"cannot hold {what} ({cause}); name another one.") from None
        self._number = file.fileno()
        weakref.finalize(self, file.close)

    def append(self, content: Any) -> int:
        """Write a contiguous buffer at the end, and return where it begins.

        Raises
        ------
        MinMaxConError
            If the disk is full, or refuses for another reason.
        """
        begin, view = self.size, memoryview(content).cast("B")
        try:
            while view:
                written = os.pwrite(self._number, view, self.size)
                self.size, view = self.size + written, view[written:]
        except OSError as failure:
            need = f"{self.size / 1e6:,.0f} MB were written; name a folder on a larger disk (folder=, TMPDIR)"
            raise MinMaxConError(f"{self.what} do not fit into {self.folder} ({failure.strerror}): {need}.") from None
        return begin

    def read(self, into: Any, begin: int) -> None:
        """Fill a contiguous buffer from a place on."""
        view = memoryview(into).cast("B")
        while view:
            count = os.preadv(self._number, [view], begin)
            begin, view = begin + count, view[count:]
            if not count:
                raise MinMaxConError(f"{self.what} in {self.folder} end too early: the file was cut.")
