"""``minmaxcon pareto`` and ``minmaxcon reproduce``: fronts of all methods on one panel, or on the paper's."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import minmaxcon as mm
from minmaxcon.cli.options import Flag, Whole, names_of, one_line
from minmaxcon.cli.output import Output, table

if TYPE_CHECKING:
    from minmaxcon.experiments.sweep import Tick

__all__ = ["pareto", "reproduce"]

_MOST_SEEDS, _MOST_JOBS = 1000, 1024


def pareto(
    name: str,
    /,
    *,
    data: str,
    metric: str,
    model: str = "linear",
    out: Path,
    seeds: Whole | None = None,
    methods: str | None = None,
    jobs: Whole | None = None,
    data_dir: Path | None = None,
    quick: Flag = False,
    overwrite: Flag = False,
    json: Flag = False,
    quiet: Flag = False,
) -> int:
    """Compare the fronts of all methods on one data set, metric and model, with error bars over seeds.

    Every configuration that ends is written to DIR/runs at once: started again after any end, the same command goes on
    where it was.

    Parameters
    ----------
    name
        The problem.
    data
        The data set.
    metric
        The metric.
    model
        The scoring model.
    out
        Folder for runs, tables and figures.
    seeds
        Number of seeds, 0 to N - 1.
    methods
        Only these methods, separated by commas.
    jobs
        Processes at a time, each on one thread; by default one a core.
    data_dir
        Folder of data files.
    quick
        The small grid, with fewer seeds.
    overwrite
        Compute again the files in DIR that another version or setting has left; those that agree are kept.
    json
        Print the summary as JSON on standard output, and nothing else there.
    quiet
        No progress and no notes.
    """
    where = _Folder(out, overwrite, None if data_dir is None else str(data_dir))
    chosen = {"data": [data], "metric": [metric], "model": [model], "methods": names_of("methods", methods)}
    return _fronts(name, chosen, seeds, jobs, quick, where, Output(json, quiet))


def reproduce(
    name: str = "fair_auc",
    /,
    *,
    out: Path,
    data: str | None = None,
    metric: str | None = None,
    model: str | None = None,
    seeds: Whole | None = None,
    methods: str | None = None,
    jobs: Whole | None = None,
    data_dir: Path | None = None,
    quick: Flag = False,
    overwrite: Flag = False,
    json: Flag = False,
    quiet: Flag = False,
) -> int:
    """Run the experiments of the paper: every data set, metric, model, method and seed, with its figures and tables.

    Every configuration that ends is written to DIR/runs at once: started again after any end, the same command goes on
    where it was.

    Parameters
    ----------
    name
        The problem.
    out
        Folder for runs, tables and figures.
    data
        Only these data sets, separated by commas.
    metric
        Only these metrics, separated by commas.
    model
        Only these models, separated by commas.
    seeds
        Number of seeds, 0 to N - 1.
    methods
        Only these methods, separated by commas.
    jobs
        Processes at a time, each on one thread; by default one a core.
    data_dir
        Folder of data files.
    quick
        The small grid, with fewer seeds.
    overwrite
        Compute again the files in DIR that another version or setting has left; those that agree are kept.
    json
        Print the summary as JSON on standard output, and nothing else there.
    quiet
        No progress and no notes.
    """
    where = _Folder(out, overwrite, None if data_dir is None else str(data_dir))
    given = {"data": data, "metric": metric, "model": model, "methods": methods}
    chosen = {option: names_of(option, text) for option, text in given.items()}
    return _fronts(name, chosen, seeds, jobs, quick, where, Output(json, quiet))


@dataclass(frozen=True, slots=True)
class _Folder:
    out: Path
    overwrite: bool
    data_dir: str | None


def _fronts(
    name: str,
    chosen: Mapping[str, list[str] | None],
    seeds: int | None,
    jobs: int | None,
    quick: bool,
    where: _Folder,
    output: Output,
) -> int:
    """Run what was chosen, write the folder, and print its tables."""
    from minmaxcon.experiments.front_report import check_out, plan, report, write_report
    from minmaxcon.experiments.results import to_json
    from minmaxcon.experiments.sweep import run_sweep

    check_out(where.out)
    seeds = _checked("seeds", seeds, _MOST_SEEDS)
    jobs = _checked("jobs", jobs, _MOST_JOBS) or os.cpu_count() or 1
    line = _Line(output)
    with output.guarded():
        study = mm.plugin(name).study()
        planned = plan(study, name, **chosen, seeds=seeds, quick=quick)
        try:
            sweep = run_sweep(
                study,
                planned.configurations,
                where.out / "runs",
                jobs=jobs,
                data_dir=where.data_dir,
                overwrite=where.overwrite,
                report=line,
            )
        finally:
            line.end()
        for note in sweep.notes:
            output.note(f"note: {note}")
        if sweep.interrupted:
            done = f"interrupted: {len(sweep.records)} of {sweep.total} configurations are finished and kept"
            print(f"minmaxcon: {done}; run the same command again to go on.", file=sys.stderr)
            return 1
        found = report(study, planned, sweep, table)
        write_report(where.out, found)
    output.result(to_json(found.summary) if output.json else f"{found.text}\nwritten: {where.out}\n")
    if output.json:
        output.note(f"written: {where.out}")
    if sweep.failures:
        first, why = next(iter(sweep.failures.items()))
        count = f"{len(sweep.failures)} of {sweep.total} configurations failed"
        print(f"minmaxcon: {count} and are left out, first {first}: {one_line(why)}", file=sys.stderr)
    return 0 if sweep.finished else 1


def _checked(option: str, value: int | None, most: int) -> int | None:
    if value is not None and not 1 <= value <= most:
        raise mm.InvalidInput(option, value, f"must be from 1 to {most:,}.")
    return value


class _Line:
    """Progress: one line that is written over on a terminal, elsewhere a line every ten seconds."""

    def __init__(self, output: Output) -> None:
        self._output, self._terminal, self._last = output, sys.stderr.isatty(), -10.0

    def __call__(self, tick: Tick) -> None:
        left = f", about {_time(tick.left)} left" if tick.done < tick.total else ""
        text = f"{tick.done} of {tick.total} configurations, {_time(tick.seconds)}{left}: {tick.name}"
        if self._output.quiet:
            return
        if self._terminal:
            sys.stderr.write(f"\r\x1b[K{text[:110]}")
            sys.stderr.flush()
        elif tick.done == tick.total or time.monotonic() - self._last >= 10.0:
            self._last = time.monotonic()
            self._output.note(text)

    def end(self) -> None:
        """Leave the line."""
        if self._terminal and not self._output.quiet:
            sys.stderr.write("\r\x1b[K")


def _time(seconds: float) -> str:
    """Return a time as people say it.

    Examples
    --------
    >>> _time(41.6), _time(200.0)
    ('42 s', '3.3 min')
    """
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
