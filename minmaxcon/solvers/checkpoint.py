"""Checkpoints: the state of a solve on disk, with all that its future depends on, and the settings that it belongs to.

A folder holds one file. Its first line has the format's version and the BLAKE2 digest of the rest, a NumPy archive of
the arrays and of a JSON manifest: settings, versions, and the state's tree (:mod:`minmaxcon.core.codec`). The file is
replaced whole, so a process may be killed at any instant; nothing in it is executed when it is read.
"""

from __future__ import annotations

import enum
import io
import json
import platform
import time
import warnings
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from hashlib import blake2b
from os.path import realpath
from pathlib import Path
from typing import Any

import numpy as np

from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.checks import file_path, number
from minmaxcon.core import MinMaxProblem, RefreshedProblem, Solver
from minmaxcon.core.codec import Codec
from minmaxcon.errors import CheckpointWarning, CorruptCheckpoint, InvalidInput
from minmaxcon.files import installed_version, remove_stale, replace_file

__all__ = ["CHECKPOINT_FILE", "Checkpoints", "Saved", "open_checkpoints", "settings_of"]

CHECKPOINT_FILE = "checkpoint.mmc"
"""The file in a checkpoint's folder."""

_MAGIC, _FORMAT = "minmaxcon-checkpoint", 1
_LARGEST = 2**34
_LISTED = 40
"""Entries of a list that are described one by one."""


@dataclass(frozen=True, eq=False, slots=True)
class Saved:
    """A state that was read, and the seconds that led to it."""

    state: Any
    seconds: float


class Checkpoints:
    """Writes the states of one solve, and reads the last one.

    Parameters
    ----------
    folder : path
        Where the checkpoint is.
    problem : MinMaxProblem
        The problem.
    settings : mapping
        From :func:`settings_of`.
    every : float
        Least number of seconds between two checkpoints; 0 for one after each piece of work.
    argument : str
        What the caller names the folder by.
    """

    def __init__(
        self,
        folder: str | Path,
        problem: MinMaxProblem,
        settings: Mapping[str, Any],
        *,
        every: float = 30.0,
        argument: str = "checkpoint",
    ) -> None:
        self.path = Path(folder) / CHECKPOINT_FILE
        self._settings, self._every, self._argument = dict(settings), every, argument
        packages = {str(settings[name]).partition(".")[0] for name in settings if name.endswith("class")}
        self._codec = Codec(problem, packages - {"builtins", "numpy"})
        self._last, self._kept = time.monotonic(), None  # when the last one was tried, and the state in it
        self._versions = _versions()

    def exists(self) -> bool:
        """Whether the folder holds a checkpoint."""
        return self.path.is_file()

    def prepare(self) -> None:
        """Make the folder, and remove what a process that was killed left in it.

        Raises
        ------
        InvalidInput
            If the folder cannot be made.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            remove_stale(self.path)
        except (OSError, ValueError) as failure:
            raise self._refusal(failure) from failure

    def due(self) -> bool:
        """Whether it is time for the next one, as it is before any work."""
        return self._kept is None or time.monotonic() - self._last >= self._every

    def write(self, state: Any, seconds: float) -> None:
        """Write a state that was reached after so many seconds.

        Where the disk refuses, the checkpoint before is kept, and the solve goes on with a warning; it is tried again
        when the next one is due.

        Raises
        ------
        InvalidInput
            If the disk refuses the first of a solve.
        Unsupported
            If the state holds what no checkpoint can hold.
        """
        tree, arrays = self._codec.encode(state)
        manifest = {"settings": self._settings, "versions": self._versions, "seconds": seconds, "state": tree}
        try:
            replace_file(self.path, _packed(manifest, arrays))
        except OSError as failure:
            refusal = self._refusal(failure)
            if self._kept is None:
                raise refusal from failure
            text = f"{refusal.remedy.partition(';')[0]}; the one before is kept, and the solve goes on."
            warnings.warn(f"the checkpoint in {self.path.parent} {text}", CheckpointWarning, stacklevel=3)
            self._last = time.monotonic()
            return
        self._last, self._kept = time.monotonic(), state

    def read(self) -> Saved:
        """Return the last state.

        Raises
        ------
        CorruptCheckpoint
            If the file is damaged, was changed, or is of another version.
        InvalidInput
            If it cannot be read, or is of another problem, solver or seed: what differs is named.
        """
        try:
            whole = self.path.is_file() and not self.path.is_symlink() and self.path.stat().st_size <= _LARGEST
            content = self.path.read_bytes() if whole or not self.path.exists() else b""
        except (OSError, ValueError) as failure:
            raise self._refusal(failure, "read") from failure
        if not whole:
            raise CorruptCheckpoint(str(self.path), "is no file that a solve wrote; name another folder.")
        manifest, arrays = _unpacked(str(self.path), content)
        try:
            self._compare(manifest["settings"])
            state = self._codec.decode(manifest["state"], arrays)
            self._warn(manifest["versions"])
            seconds = float(manifest["seconds"])
            if not 0.0 <= seconds < np.inf:
                raise ValueError(f"its seconds are {seconds}")
            return Saved(state, seconds)
        except CorruptCheckpoint as failure:
            raise CorruptCheckpoint(str(self.path), failure.problem) from failure
        except InvalidInput:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as failure:
            raise CorruptCheckpoint(str(self.path), f"is no checkpoint: {failure}.") from failure

    def _compare(self, there: Mapping[str, Any]) -> None:
        """Refuse the checkpoint of another problem, solver or seed, and name what differs."""
        here = self._settings
        was, now = map(_kind, (there, here))
        if was != now:
            need = f"holds the checkpoint of {was}, and this is {now}; name another folder."
            raise InvalidInput(self._argument, str(self.path.parent), need)
        for name in [*there, *(name for name in here if name not in there)]:
            old, new = there.get(name, "nothing"), here.get(name, "nothing")
            if not _alike(old, new):
                was, now = (str(value)[:60] for value in (old, new))
                need = f"was written with {name} = {was}, and this solve has {now}; use the same, or begin anew."
                raise InvalidInput(self._argument, str(self.path.parent), need)

    def _warn(self, there: Mapping[str, str]) -> None:
        """Warn where the rest of the solve may have other bits than if it had not been interrupted."""
        other = [name for name in self._versions if there.get(name) != self._versions[name]]
        if other:
            was, now = ", ".join(f"{name} {there.get(name)}" for name in other), "another version or number of threads"
            text = f"the checkpoint was written with {was}: the solve goes on with {now}, so that last bits may differ."
            warnings.warn(text, CheckpointWarning, stacklevel=5)

    def _refusal(self, failure: Exception, verb: str = "written") -> InvalidInput:
        cause = " ".join(str(getattr(failure, "strerror", None) or failure).split())
        return InvalidInput(self._argument, str(self.path.parent), f"cannot be {verb} ({cause}); name another folder.")


def open_checkpoints(
    problem: MinMaxProblem,
    settings: Callable[[], Mapping[str, Any]],
    *,
    checkpoint: str | Path | None,
    resume: str | Path | None,
    every: float = 30.0,
) -> tuple[Checkpoints | None, Saved | None]:
    """Return what writes checkpoints, and the state to go on from, where these are asked for.

    Parameters
    ----------
    problem : MinMaxProblem
        The problem.
    settings : callable
        Returns what the work depends on, see :func:`settings_of`; called where one of the folders is given.
    checkpoint, resume : path, optional
        Where to write, and from where to go on; with ``resume`` alone both. Where both are one folder, work begins
        where it holds nothing yet.
    every : float
        Least number of seconds between two checkpoints.

    Raises
    ------
    InvalidInput
        If there is nothing to go on from, or a checkpoint that would be written over; if a folder cannot be read or
        made, or holds a checkpoint of other settings: what differs is named.
    CorruptCheckpoint
        If the checkpoint is damaged or of another version.
    """
    for argument, folder in (("checkpoint", checkpoint), ("resume", resume)):
        if folder is not None:
            file_path(argument, folder)
        if folder is not None and not str(folder).strip():  # a Path of it would be the folder it is in
            raise InvalidInput(argument, folder, "must name a folder.")
    every = number("every", every, "must be a number of seconds, at least 0.", least=0.0)
    folders = {"checkpoint": checkpoint, "resume": resume}
    if checkpoint is None and resume is None:
        return None, None
    asked = settings()
    keepers = {
        name: Checkpoints(folder, problem, asked, every=every, argument=name)
        for name, folder in folders.items()
        if folder is not None
    }
    here, there = (keepers.get(name) for name in folders)
    same = here is not None and there is not None and realpath(here.path.parent) == realpath(there.path.parent)
    saved = None if there is None or (same and not there.exists()) else there.read()
    if here is not None and not same and here.exists():
        need = "holds a checkpoint already; resume from it, or name another folder."
        raise InvalidInput("checkpoint", str(checkpoint), need)
    writer = keepers["resume" if here is None else "checkpoint"]
    writer.prepare()
    return writer, saved


def _kind(settings: Mapping[str, Any]) -> str:
    """Return what has such settings."""
    return "a comparison" if "solvers" in settings else "a solve"


def _alike(one: Any, other: Any) -> bool:
    """Whether two descriptions agree: texts as they are, values up to what another number of threads may change."""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return bool(np.allclose(one, other, rtol=1e-4, atol=1e-6))
    return bool(one == other)


def _packed(manifest: Mapping[str, Any], arrays: list[Any]) -> bytes:
    """Return the file's content."""
    text = json.dumps(manifest, allow_nan=False, separators=(",", ":")).encode()
    buffer = io.BytesIO()
    np.savez(buffer, manifest=np.frombuffer(text, dtype=np.uint8), **{f"array{i}": a for i, a in enumerate(arrays)})
    body = buffer.getvalue()
    return f"{_MAGIC} {_FORMAT} {blake2b(body, digest_size=32).hexdigest()}\n".encode() + body


def _unpacked(path: str, content: bytes) -> tuple[Any, list[Any]]:
    """Return the manifest and the arrays of a file's content."""
    first, _, body = content[:200].partition(b"\n")
    words = first.split(b" ")
    if len(words) != 3 or words[0] != _MAGIC.encode():
        raise CorruptCheckpoint(path, "is damaged or no checkpoint: its first line is not that of one.")
    body = content[len(first) + 1 :]
    if words[2] != blake2b(body, digest_size=32).hexdigest().encode():
        raise CorruptCheckpoint(path, "is damaged or was changed: its content does not match its digest.")
    reader = _READERS.get(words[1])
    if reader is None:
        known = f"this version of minmaxcon reads format {b' or '.join(_READERS).decode()}"
        raise CorruptCheckpoint(path, f"has format {words[1].decode(errors='replace'):.20}, and {known}.")
    try:
        return reader(body)
    except Exception as failure:  # whatever zipfile, and NumPy's parser of headings, raise at content made by hand
        cause = " ".join(str(failure).split())[:120] or type(failure).__name__
        raise CorruptCheckpoint(path, f"is no checkpoint ({cause}).") from failure


def _first_format(body: bytes) -> tuple[Any, list[Any]]:
    with zipfile.ZipFile(io.BytesIO(body)) as members:
        if any(member.compress_type != zipfile.ZIP_STORED for member in members.infolist()):
            raise ValueError("its arrays are packed, which no solve does")
    with np.load(io.BytesIO(body), allow_pickle=False) as archive:
        manifest = json.loads(archive["manifest"].tobytes())
        return manifest, [archive[f"array{i}"] for i in range(len(archive.files) - 1)]


_READERS = {b"1": _first_format}
"""How each format is read: a new one stands beside those before it, whose files can still be resumed from."""


def _versions() -> dict[str, str]:
    """Return what the last bits depend on beside the settings."""
    from threadpoolctl import threadpool_info

    threads = max((int(pool["num_threads"]) for pool in threadpool_info()), default=1)
    found = {"python": platform.python_version(), "machine": platform.machine(), "threads": str(threads)}
    installed = {name: installed_version(name) for name in ("minmaxcon", "numpy", "torch")}
    return found | {name: number for name, number in installed.items() if number is not None}


def settings_of(
    problem: MinMaxProblem, solver: Solver | Mapping[str, Solver], seed: int, x0: Any = None
) -> dict[str, Any]:
    """Return what a solve depends on, by name; with several solvers, what the solves by each of them do.

    Public attributes of the parts are described by text: numbers and names as they are, arrays by shape and digest.
    What a function hides shows in its values at two points, which are numbers. Time limit and budget are not among
    them: they end a solve, and may be others when it goes on.
    """
    walk = _Walk()
    walk.visit("seed", int(seed))
    walk.visit("x0", None if x0 is None else np.asarray(x0, dtype=np.float64))
    walk.visit("solver", solver)
    walk.visit("objective", problem.objective)
    for i, constraint in enumerate(problem.constraints):
        walk.visit(f"constraints[{i}]", constraint)
    for name in ("primal", "data", "start", "proximal"):
        walk.visit(name, getattr(problem, name))
    found: dict[str, Any] = walk.found
    if isinstance(problem, RefreshedProblem):
        walk.visit("measure", problem.measure)
        walk.visit("first_steps", problem.first_steps)
        if problem.first is not None:
            first = settings_of(problem.first, solver, seed, None)
            found |= {f"first {name}": value for name, value in first.items() if not name.startswith("solver")}
    elif problem.data.size is not None:
        found |= _values(problem)
    return found


def _values(problem: MinMaxProblem) -> dict[str, list[float]]:
    """Return the values of the functions at the start and at a drawn point, on the first rows."""
    start = problem.start_point(1)
    drawn = namespace(start).asarray(problem.primal.sample(np.random.default_rng(0), 1), start)
    _, batch = next(iter(problem.data.chunks(1000)))
    dual = problem.at_level(0.0).dual()
    found = {}
    for name, x in (("values at the start", start), ("values at a point", drawn)):
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            seen = problem.family.evaluate(x, batch)
            values = np.asarray(to_numpy(dual.support(seen.F, seen.G)), dtype=np.float64)[0]
        found[name] = [float(value) if np.isfinite(value) else 0.0 for value in values]
    return found


class _Walk:
    """Describes values by their parts; ``found`` has a text for each."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self._seen: dict[int, str] = {}
        self._alive: list[Any] = []

    def visit(self, name: str, value: Any, depth: int = 0) -> None:
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes, enum.Enum)):
            text = repr(value)
            self.found[name] = text if len(text) <= 200 else _digest(text.encode())
        elif id(value) in self._seen:
            self.found[name] = self._seen[id(value)]
        else:
            self._seen[id(value)] = f"the {name}"
            self._alive.append(value)  # an address is not given away while it stands for this value
            self._parts(name, value, depth)

    def _parts(self, name: str, value: Any, depth: int) -> None:
        if hasattr(value, "tocsr"):
            parts: dict[Any, Any] = {"shape": str(value.shape), "entries": value.data}
            parts |= {at: getattr(value, at) for at in ("indices", "indptr") if hasattr(value, at)}
        elif hasattr(value, "shape") and hasattr(value, "dtype"):
            array = np.ascontiguousarray(to_numpy(value))
            content = repr(array.tolist()).encode() if array.dtype.hasobject else array.tobytes()
            self.found[name] = self._seen[id(value)] = f"{array.dtype}{array.shape} {_digest(content)}"
            return
        elif isinstance(value, Mapping):
            parts = {f"[{key!r}]": item for key, item in value.items()}
        elif isinstance(value, (tuple, list)):
            if len(value) > _LISTED:
                self.found[name] = f"{len(value)} entries {_digest(repr(value).encode())}"
                return
            parts = {f"[{i}]": item for i, item in enumerate(value)}
        elif isinstance(value, type) or not (hasattr(value, "__dict__") or hasattr(value, "__slots__")):
            self.found[name] = _named(value if isinstance(value, type) else type(value))
            return
        elif hasattr(value, "__qualname__") or depth > 12:
            self.found[name] = _named(value if hasattr(value, "__qualname__") else type(value))
            return
        else:
            self.found[f"{name}.class"] = _named(type(value))
            parts = {f".{part}": item for part, item in _attributes(value).items()}
        for part, item in parts.items():
            self.visit(f"{name}{part}" if str(part)[0] in ".[" else f"{name}.{part}", item, depth + 1)


def _attributes(value: Any) -> dict[str, Any]:
    """Return what a value is made of: the arguments that it is rebuilt from, else its public attributes."""
    names = getattr(type(value), "rebuilt_from", None)
    if names is None and is_dataclass(value):
        names = [field.name for field in fields(value) if not field.name.startswith("_")]
    if names is None:
        state = value.__getstate__() if hasattr(value, "__getstate__") else None
        parts = state if isinstance(state, tuple) else (state,)
        found = {name: item for part in parts if isinstance(part, dict) for name, item in part.items()}
        return {name: item for name, item in sorted(found.items()) if not name.startswith("_")}
    return {name: getattr(value, name) for name in names}


def _named(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{value.__qualname__}"


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=8).hexdigest()
