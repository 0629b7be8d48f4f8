"""Sweeps: many configurations of a study, one file each, in any order, in several processes, resumed after any end."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from minmaxcon.errors import DataError, InvalidInput, MinMaxConError
from minmaxcon.results import check_file

from .run_files import Configuration, distinct, read_run, remove_stale, write_run
from .study import FairAUCStudy

__all__ = ["Sweep", "Tick", "run_sweep"]

_QUIET_TRACKER = "ignore:resource_tracker:UserWarning"
"""joblib's tracker of semaphores reports those of workers that Ctrl-C has ended; nothing is lost by them."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Tick:
    """What is known when a configuration ends.

    Attributes
    ----------
    name : str
        The configuration that ended.
    done, total : int
        Configurations with a file, and all of them.
    seconds : float
        Since the sweep began.
    left : float
        Seconds until the end, if the rest takes as long as what this sweep has run so far.
    """

    name: str
    done: int
    total: int
    seconds: float
    left: float


@dataclass(frozen=True, eq=False, slots=True)
class Sweep:
    """What a sweep has found.

    Attributes
    ----------
    records : list of dict
        Of the configurations that finished, in the order in which they were asked for, whichever finished first.
    total : int
        Configurations asked for.
    kept : int
        Of these, files that were there before.
    failures : dict
        Message by name of a configuration that failed.
    interrupted : bool
        Whether Ctrl-C ended it.
    notes : list of str
        Sentences for the reader: what was damaged.
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
    folder: str | Path,
    *,
    jobs: int = 1,
    data_dir: str | None = None,
    overwrite: bool = False,
    report: Callable[[Tick], Any] | None = None,
) -> Sweep:
    """Run configurations, each on one thread, and write ``folder/NAME.json`` as soon as one ends.

    Files of the same configuration and version are kept; damaged ones are computed again. Numbers depend neither on the
    order nor on ``jobs``.

    Parameters
    ----------
    study : FairAUCStudy
        What runs a configuration.
    configurations : sequence of Configuration
        What is to be run.
    folder : path
        Where the files are; made if missing.
    jobs : int
        Processes at a time; with 1 no further process is started.
    data_dir : str, optional
        Folder of data files, handed to the study.
    overwrite : bool
        Compute again what another version or setting has left, instead of refusing it.
    report : callable, optional
        Called with a :class:`Tick` after each configuration.

    Returns
    -------
    Sweep
        The records. Other errors than those below leave their configuration out and are listed.

    Raises
    ------
    InvalidInput, DataError, UnknownName
        Bad input, which other configurations would meet too; a file of another run in the folder.
    MinMaxConError
        A process was killed.
    """
    if jobs < 1:
        raise InvalidInput("jobs", jobs, "must be at least 1.")
    distinct(configurations)
    folder = Path(folder)
    paths = {one.name: folder / f"{one.name}.json" for one in configurations}
    for path in list(paths.values())[:1]:
        check_file(path, overwrite=True)
    folder.mkdir(parents=True, exist_ok=True)
    remove_stale(folder)
    notes: list[str] = []
    waiting = [one for one in configurations if not _is_kept(paths[one.name], one, overwrite, notes)]
    kept, total, began = len(configurations) - len(waiting), len(configurations), time.monotonic()
    tasks = [(study, one, paths[one.name], data_dir) for one in waiting]
    failures: dict[str, str] = {}
    interrupted = False
    try:
        with closing(_results(tasks, jobs)) as results:
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


def _is_kept(path: Path, one: Configuration, overwrite: bool, notes: list[str]) -> bool:
    """Return whether a file is there and stands; one that is damaged is noted."""
    if not path.exists():
        return False
    try:
        read_run(path, one)
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
    tasks: Sequence[tuple[FairAUCStudy, Configuration, Path, str | None]], jobs: int
) -> Generator[tuple[str, str | None], None, None]:
    """Run the tasks; give the name and the failure of each, as they end."""
    if jobs == 1 or len(tasks) < 2:
        with _one_thread():
            yield from (_run(*task) for task in tasks)
        return
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    try:
        loky = parallel_config(backend="loky", n_jobs=min(jobs, len(tasks)), inner_max_num_threads=1)
        filters = [text for text in (os.environ.get("PYTHONWARNINGS"), _QUIET_TRACKER) if text]
        with _environment({"PYTHONWARNINGS": ",".join(filters)}), loky:
            workers = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")
            yield from workers(delayed(_in_worker)(os.getpid(), *task) for task in tasks)
    except TerminatedWorkerError as failure:
        raise MinMaxConError(
            "a worker process was killed, perhaps for want of memory; what had finished is kept: run the same command "
            "again, with fewer --jobs if memory was short."
        ) from failure


def _in_worker(
    parent: int, study: FairAUCStudy, one: Configuration, path: Path, data_dir: str | None
) -> tuple[str, str | None]:
    """Run a task in a process of its own, which leaves Ctrl-C to the process that started it, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with(parent)
    with _one_thread():
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
        found: Mapping[str, Any] = study.run(one.panel, one.method, one.seed, data_dir=data_dir, quick=one.quick)
    except (InvalidInput, DataError):
        raise
    except Exception as failure:
        return one.name, f"{type(failure).__name__}: {failure}"
    write_run(path, one, {"seconds": round(time.perf_counter() - began, 3), **found})
    return one.name, None


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for this process and those that it starts; put all back afterwards."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _one_thread() -> Iterator[None]:
    """Hold linear algebra at one thread, also that of libraries which are loaded meanwhile; put all back afterwards."""
    from threadpoolctl import threadpool_limits

    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch is not None else 1
    try:
        with _environment(dict.fromkeys(_THREADS, "1")), threadpool_limits(limits=1):
            if torch is not None:
                torch.set_num_threads(1)
            yield
    finally:
        if torch is not None:
            torch.set_num_threads(threads)
