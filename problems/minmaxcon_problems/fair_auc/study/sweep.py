"""Sweeps: many configurations of a study, one file each, in any order, in several processes, resumed after any end."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import minmaxcon as mm
from minmaxcon.errors import DataError, InvalidInput, MinMaxConError
from minmaxcon.results import check_file, environment, in_parallel, one_thread, plain, remove_leftovers, write_file
from minmaxcon.solvers import ends_together

from .study import FairAUCStudy, Panel

__all__ = ["Configuration", "Runs", "Sweep", "Tick", "read_run", "run_sweep", "write_run"]

_UNUSUAL = re.compile(r"[^A-Za-z0-9_.+]+")
_DIGEST = "blake2b"


@dataclass(frozen=True, slots=True)
class Configuration:
    """One run of a method on a panel; ``settings`` are what else its numbers depend on, as JSON holds it."""

    problem: str
    panel: Panel
    method: str
    seed: int
    quick: bool
    settings: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        """The name of its file, without the ending."""
        words = (self.panel.data, self.panel.metric, self.panel.model, self.method, str(self.seed))
        return "-".join(_UNUSUAL.sub("_", word) for word in words)

    def stamp(self) -> dict[str, Any]:
        """Return what a file must agree with to be kept: configuration, settings, and the version that runs it."""
        rest = {"method": self.method, "seed": self.seed, "quick": self.quick}
        settings = {f"setting {name}": plain(value) for name, value in self.settings.items()}
        return {"problem": self.problem, "minmaxcon": mm.__version__, **asdict(self.panel), **rest, **settings}


def write_run(path: Path, configuration: Configuration, record: Mapping[str, Any]) -> None:
    """Write what the study returned for a configuration, all or nothing; another file of the name is replaced."""
    content = plain({**record, **configuration.stamp()})
    text = json.dumps({**content, _DIGEST: _digest(content)}, indent=1, allow_nan=False) + "\n"
    write_file(path, text.encode(), overwrite=True)


def read_run(path: Path, configuration: Configuration, option: str = "out") -> dict[str, Any]:
    """Return the record in a configuration's file.

    Raises DataError where the file is damaged, half-written or cannot be read, InvalidInput where it is whole and
    another configuration or version wrote it; ``option`` is what named the folder above the file's.
    """
    if not path.is_file():  # who opens a pipe waits for ever
        raise DataError(str(path), "is no regular file.")
    try:
        content = json.loads(path.read_bytes())
        known = content.pop(_DIGEST)
    except (OSError, ValueError, AttributeError, KeyError, TypeError, RecursionError) as failure:
        raise DataError(str(path), "is damaged or half-written.") from failure
    if not isinstance(content, dict) or known != _digest(content):
        raise DataError(str(path), "is damaged: its content does not match its digest.")
    for name, expected in configuration.stamp().items():
        if content.get(name) != expected:
            what, was, now = _difference(name, content.get(name), expected)
            remedy = (
                f"holds {path.name} of a run with {what} = {was!r}, this one has {now!r}; "
                "name another folder, or replace such files with --overwrite."
            )
            raise InvalidInput(option, str(path.parent.parent), remedy)
    return content


def _difference(name: str, was: Any, now: Any) -> tuple[str, Any, Any]:
    """Return what differs and how: of two mappings with the same keys the first entry that does."""
    if isinstance(was, Mapping) and isinstance(now, Mapping) and was.keys() == now.keys():
        return next(_difference(f"{name}, {key}", was[key], now[key]) for key in now if was[key] != now[key])
    return name, was, now


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Runs:
    """Where a sweep's files are written, ``folder``, and taken from where they are there already, ``begun``.

    ``option`` is what named the folder above ``begun``, and ``written`` that above ``folder``. Where ``required``, at
    least one file must be there already.
    """

    folder: Path
    begun: Path
    option: str = "out"
    written: str = "out"
    required: bool = False

    @classmethod
    def of(cls, out: Path, checkpoint: Path | None, resume: Path | None) -> Runs:
        """Return those of a command's options: each names the folder above that of the files.

        Without the others, files are written to ``out`` and taken from there; with ``resume`` alone, to it and from it.
        Where ``checkpoint`` is the same folder, work begins where there are none yet.

        Raises
        ------
        InvalidInput
            If one folder lies in another, which would then be refused when the command goes on; if ``checkpoint`` holds
            files and ``resume`` is not the same.
        """
        given = {"out": out, "checkpoint": checkpoint, "resume": resume}
        places = {option: folder.resolve() for option, folder in given.items() if folder is not None}
        for inner, outer in permutations(places, 2):
            if places[outer] in places[inner].parents:
                need = f"lies in the folder of --{outer}, which must hold nothing else; name another."
                raise InvalidInput(inner, str(given[inner]), need)
        if resume is not None and places["resume"] == places.get("checkpoint"):
            return cls(resume / "runs", resume / "runs", "resume", "resume")
        if checkpoint is not None and any((checkpoint / "runs").glob("*.json")):
            need = "holds runs already; resume from it, or name another folder."
            raise InvalidInput("checkpoint", str(checkpoint), need)
        begun = "resume" if resume else "checkpoint" if checkpoint else "out"
        written = "checkpoint" if checkpoint else begun
        runs = {option: folder / "runs" for option, folder in given.items() if folder is not None}
        return cls(runs[written], runs[begun], begun, written, required=resume is not None)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Name the option of the folder where a file of it is refused, which :func:`write_file` calls ``out``."""
        try:
            yield
        except InvalidInput as failure:
            if failure.argument != "out":
                raise
            raise InvalidInput(self.written, failure.value, failure.remedy) from failure


_QUIET_TRACKER = "ignore:resource_tracker:UserWarning"
"""joblib's tracker of semaphores reports those of workers that Ctrl-C has ended; nothing is lost by them."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A configuration that ended: how many have a file, of how many, and the seconds passed and left.

    ``left`` counts as if the rest took as long as what this sweep has run so far.
    """

    name: str
    done: int
    total: int
    seconds: float
    left: float


@dataclass(frozen=True, eq=False, slots=True)
class Sweep:
    """Results of a sweep.

    ``records`` are those of the configurations that finished, in the order in which they were asked for, whichever
    finished first. Of the ``total`` asked for, ``kept`` files were there before; ``failures`` are messages by name of a
    configuration, ``interrupted`` says whether a signal ended the sweep, and ``notes`` tell what was damaged.
    """

    records: list[dict[str, Any]]
    total: int
    kept: int
    failures: dict[str, str]
    interrupted: bool
    notes: list[str]

    @property
    def finished(self) -> bool:
        """Whether every configuration has its record."""
        return len(self.records) == self.total


def run_sweep(
    study: FairAUCStudy,
    configurations: Sequence[Configuration],
    runs: str | Path | Runs,
    *,
    jobs: int = 1,
    data_dir: str | None = None,
    overwrite: bool = False,
    report: Callable[[Tick], Any] | None = None,
    backend: str = "loky",
) -> Sweep:
    """Run configurations, each on one thread, and write NAME.json in the folder ``runs`` as soon as one ends.

    Files of the same configuration and version are kept, and copied where :class:`Runs` begin in another folder;
    damaged ones are computed again, and with ``overwrite`` also those that another version or setting has left, which
    are refused otherwise. Numbers depend neither on the order nor on ``jobs``, the processes at a time (with 1 no
    further process is started). ``report`` is called with a :class:`Tick` after each configuration. ``backend`` is one
    of joblib: ``"loky"`` for processes of this machine, ``"dask"`` for the workers of the cluster that
    ``DASK_SCHEDULER_ADDRESS`` names or of the client at hand, else of a cluster on this machine, or another that was
    registered. Workers share the folder; a worker that dies loses what it was at, which another one does, and nothing
    that has a file is done again.

    Raises InvalidInput, DataError or UnknownName for bad input, which other configurations would meet too, and for a
    file of another run in the folder; MinMaxConError where a process was killed. Other errors leave their configuration
    out and are listed.
    """
    if jobs < 1:
        raise InvalidInput("jobs", jobs, "must be at least 1.")
    names = [one.name for one in configurations]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput("configurations", name, "occurs twice; give every configuration once.")
    runs = runs if isinstance(runs, Runs) else Runs(Path(runs), Path(runs))
    sources, paths = ({one.name: at / f"{one.name}.json" for one in configurations} for at in (runs.begun, runs.folder))
    if runs.required and not any(path.exists() for path in sources.values()):
        need = f"holds no run of this command, such as {configurations[0].name}.json in runs; name another folder."
        raise InvalidInput(runs.option, str(runs.begun.parent), need)
    for path in list(paths.values())[:1]:
        check_file(path, overwrite=True)
    notes: list[str] = []
    waiting = [one for one in configurations if not _is_kept(sources[one.name], one, runs.option, overwrite, notes)]
    runs.folder.mkdir(parents=True, exist_ok=True)  # when nothing is refused any more
    remove_leftovers(runs.folder, ".json")
    if runs.begun != runs.folder:
        for name in sorted(paths.keys() - {one.name for one in waiting}):
            write_file(paths[name], sources[name].read_bytes(), overwrite=True)
    kept, total, began = len(configurations) - len(waiting), len(configurations), time.monotonic()
    tasks = [(study, one, paths[one.name], data_dir) for one in waiting]
    failures: dict[str, str] = {}
    interrupted = False
    try:
        with closing(_results(tasks, jobs, backend)) as results:
            for run, (name, failure) in enumerate(results, start=1):
                if failure is not None:
                    failures[name] = failure
                if report is not None:
                    seconds = time.monotonic() - began
                    report(Tick(name, kept + run, total, seconds, seconds / run * (len(waiting) - run)))
    except KeyboardInterrupt:
        interrupted = True
    records = [read_run(paths[one.name], one) for one in configurations if _whole(paths[one.name], one)]
    return Sweep(records, total, kept, failures, interrupted, notes)


def _is_kept(path: Path, one: Configuration, option: str, overwrite: bool, notes: list[str]) -> bool:
    """Return whether a file is there and stands; one that is damaged is noted."""
    if not path.exists():
        return False
    try:
        read_run(path, one, option)
    except DataError as failure:
        notes.append(f"{path.name} was computed again: {str(failure).removeprefix(f'{path}: ')}")
        return False
    except InvalidInput:
        if not overwrite:
            raise
        return False
    return True


def _whole(path: Path, one: Configuration) -> bool:
    try:
        read_run(path, one)
    except MinMaxConError:
        return False
    return True


def _results(
    tasks: Sequence[tuple[FairAUCStudy, Configuration, Path, str | None]], jobs: int, backend: str
) -> Generator[tuple[str, str | None], None, None]:
    """Run the tasks; give the name and the failure of each, as they end."""
    if backend != "loky":
        yield from _elsewhere(tasks, jobs, backend)
        return
    if jobs == 1 or len(tasks) < 2:
        with one_thread():
            yield from (_run(*task) for task in tasks)
        return
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    try:
        loky = parallel_config(backend="loky", n_jobs=min(jobs, len(tasks)), inner_max_num_threads=1)
        filters = [text for text in (os.environ.get("PYTHONWARNINGS"), _QUIET_TRACKER) if text]
        with environment({"PYTHONWARNINGS": ",".join(filters)}), loky:
            workers = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")
            yield from workers(delayed(_in_worker)(os.getpid(), *task) for task in tasks)
    except TerminatedWorkerError as failure:
        raise MinMaxConError(
            "a worker process was killed, perhaps for want of memory; what had finished is kept: run the same command "
            "again, with fewer --jobs if memory was short."
        ) from failure


def _elsewhere(
    tasks: Sequence[tuple[FairAUCStudy, Configuration, Path, str | None]], jobs: int, backend: str
) -> Generator[tuple[str, str | None], None, None]:
    """Run the tasks on another backend of joblib, whose workers may be on other machines."""
    absolute = [(study, one, path.absolute(), data_dir) for study, one, path, data_dir in tasks]
    kept = "what had finished is kept: run it again."
    yield from in_parallel(_once, absolute, jobs=jobs, backend=backend, ordered=False, remedy=kept)


def _once(study: FairAUCStudy, one: Configuration, path: Path, data_dir: str | None) -> tuple[str, str | None]:
    """Run a task where a scheduler may give it out again: one whose file is there was done by a worker that died."""
    if path.exists() and _whole(path, one):
        return one.name, None
    with one_thread():
        return _run(study, one, path, data_dir)


def _in_worker(
    parent: int, study: FairAUCStudy, one: Configuration, path: Path, data_dir: str | None
) -> tuple[str, str | None]:
    """Run a task in a process of its own, which leaves Ctrl-C to the process that started it, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with(parent)
    with one_thread():
        return _run(study, one, path, data_dir)


@cache
def _end_with(parent: int) -> None:
    """End this process soon after its parent, which may be killed without a word to its workers."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _run(study: FairAUCStudy, one: Configuration, path: Path, data_dir: str | None) -> tuple[str, str | None]:
    """Run a configuration and write its file; return its name and, if it failed, why."""
    began = time.perf_counter()
    try:
        with ends_together(all_or_nothing=True):  # what a signal cuts short is no result
            found: Mapping[str, Any] = study.run(one.panel, one.method, one.seed, data_dir=data_dir, quick=one.quick)
    except (InvalidInput, DataError):
        raise
    except Exception as failure:
        return one.name, f"{type(failure).__name__}: {failure}"
    write_run(path, one, {"seconds": round(time.perf_counter() - began, 3), **found})
    return one.name, None
