"""``minmaxcon compare``: methods side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

import minmaxcon as mm
from minmaxcon.cli.options import Flag, Place, Whole, names_of, wholes_of
from minmaxcon.cli.output import Output, ProgressLine, table, wrapped
from minmaxcon.cli.solve import load, load_problem
from minmaxcon.registry import import_failure
from minmaxcon.solvers import AUTO, named_solver, solver_names

if TYPE_CHECKING:
    from minmaxcon.results.comparison import Comparison

__all__ = ["compare"]

ALL = "all"
"""Stands for every installed problem, each in its own small example."""

TIME_LIMIT = 10.0
"""Seconds a solve may take where no budget is given."""

_SOLVERS = (
    f"Names separated by commas, of {', '.join(solver_names())}, or auto for the one that fits; by default all "
    "that take the problem. Settings may follow a name but auto, as in sfls:steps=500:tolerance=0.01."
)


def compare(
    name: str,
    /,
    *,
    solvers: Annotated[str | None, Parameter(help=_SOLVERS)] = None,
    seed: str = "0",
    max_samples: Whole | None = None,
    time_limit: float | None = None,
    jobs: Whole = 1,
    backend: str = "loky",
    checkpoint: Place | None = None,
    resume: Place | None = None,
    out: Place | None = None,
    overwrite: Flag = False,
    json: Flag = False,
    quiet: Flag = False,
    **options: Any,
) -> int:
    """Compare solvers on a problem, or on all: time, samples, gap, and violation along the way.

    Each solver runs with its default settings under the same budget, and its clock stands still while it is looked at.
    The optimal value comes from a conic solver where the problem has a cvxpy form. `minmaxcon compare NAME --help` also
    shows the options of that problem. Exit status 1 if no solver ran, 2 for bad input.

    Parameters
    ----------
    name
        The problem; `minmaxcon problems` lists them. `all` takes each in a small example of its own.
    solvers
        Names separated by commas, with settings.
    seed
        Seed of the solves; with several, separated by commas, every solver runs with each.
    max_samples
        A solve ends when it has drawn this many samples.
    time_limit
        A solve ends after this many seconds; 10 where max_samples is not given.
    jobs
        Solves at a time, each in a process of its own on one thread; seconds compare only if each has a core.
    backend
        Where they run: loky, processes of this machine; dask, the workers of the cluster that DASK_SCHEDULER_ADDRESS
        names, else of one on this machine; or another backend of joblib.
    checkpoint
        Folder that holds the solves that have ended, so that the comparison can go on after whatever ends it. One that
        holds a checkpoint already is refused, unless --resume names it too.
    resume
        Folder from which the comparison goes on: what had ended is not done again and keeps its seconds. With
        --checkpoint of the same folder it begins where there is nothing yet.
    out
        Folder for comparison.json, comparison.csv and comparison.png. It must not exist.
    overwrite
        Replace a folder that holds an earlier result, or nothing.
    json
        Print the content of comparison.json on standard output, and nothing else there.
    quiet
        No progress and no notes.
    """
    from minmaxcon.results.comparison import as_data, comparison_text
    from minmaxcon.results.folders import check_folder, write_folder
    from minmaxcon.results.records import to_json

    output = Output(json=json, quiet=quiet)
    if max_samples is not None and max_samples < 1:
        raise mm.InvalidInput("max_samples", max_samples, "must be at least 1; leave it out for no limit.")
    limit = TIME_LIMIT if time_limit is None and max_samples is None else time_limit
    budget: dict[str, Any] = {"seeds": wholes_of("seed", seed), "samples": max_samples, "time_limit": limit}
    if jobs < 1:
        raise mm.InvalidInput("jobs", jobs, "must be at least 1.")
    budget |= {"jobs": jobs, "backend": backend}
    chosen = _chosen(names_of("solvers", solvers))
    if out is not None:
        check_folder(out, overwrite=overwrite)
    with output.guarded():
        found = _comparisons(name, chosen, budget, options, output, (checkpoint, resume))
        if solvers is None:
            found = [_that_apply(one) for one in found]
        text = "\n".join(comparison_text(one, table, wrapped) for one in found)
        data = to_json(as_data(found))
        interrupted = any(one.interrupted for one in found)
        files = {} if out is None or interrupted else _files(found, data)
    if out is not None and files:
        write_folder(out, files, overwrite=overwrite)
    output.result(data if json else text)
    if interrupted:
        folder = checkpoint or resume
        rest = "." if folder is None else f"; go on with --resume {folder}."
        output.note("interrupted: solvers are missing" + ("" if out is None else ", and nothing was written") + rest)
        return 1
    if out is not None and json:
        output.note(f"written: {out}")
    elif out is not None:
        output.result(f"\nwritten: {out} ({', '.join(files)})\n")
    return 0 if any(entry.ran for one in found for entry in one.entries) else 1


def _files(found: Sequence[Comparison], data: str) -> dict[str, bytes]:
    """Return the content of the folder by file name."""
    from minmaxcon.results import csv_text
    from minmaxcon.results.comparison import path_rows
    from minmaxcon.results.comparison_figure import comparison_figure
    from minmaxcon.results.figures import png

    files = {"comparison.json": data.encode(), "comparison.csv": csv_text(path_rows(found)).encode()}
    return {**files, "comparison.png": png(comparison_figure(found))}


def _chosen(words: Sequence[str] | None) -> dict[str, mm.Solver | str]:
    """Make the solvers that were asked for, by name and settings such as ``sfls:steps=500``, before anything is loaded.

    InvalidInput if there is no such solver, or it has no such setting or refuses its value.
    """
    known = solver_names()
    found: dict[str, mm.Solver | str] = {}
    for word in known if words is None else words:
        name, *settings = word.split(":")
        if word == AUTO:
            found[word] = AUTO
            continue
        if name not in known:
            raise mm.UnknownName("solvers", name, [*known, AUTO])
        parts = [setting.partition("=") for setting in settings]
        if not all(key and value for key, _, value in parts):
            raise mm.InvalidInput("solvers", word, "settings follow the name as in sfls:steps=500:tolerance=0.01.")
        try:
            found[word] = named_solver(name, **{key.replace("-", "_"): _value(text) for key, _, text in parts})
        except mm.InvalidInput as refusal:
            raise mm.InvalidInput("solvers", word, str(refusal)) from None
    return found


def _value(text: str) -> Any:
    """Return the number or the text that a setting of a solver is."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return {"true": True, "false": False}.get(text.lower(), text)


def _that_apply(found: Comparison) -> Comparison:
    """Leave out what nobody asked for and the problem does not take."""
    applied = tuple(entry for entry in found.entries if entry.ran)
    return replace(found, entries=applied or found.entries)


def _comparisons(
    name: str,
    solvers: Mapping[str, mm.Solver | str],
    budget: Mapping[str, Any],
    options: Mapping[str, Any],
    output: Output,
    folders: tuple[Path | None, Path | None],
) -> list[Comparison]:
    from minmaxcon.results.comparison import compare as compare_solvers

    if name == ALL:
        problems = _all_problems(output)
    else:
        problems = {name: load(name, options, seed=budget["seeds"][0]).problem}
    found, line = [], ProgressLine(output)
    for place, (label, problem) in enumerate(problems.items(), start=1):
        if len(problems) > 1:
            output.note(f"{label} ({place} of {len(problems)})")
        kept = _kept(folders, None if name != ALL else label, place)
        found.append(compare_solvers(problem, solvers, **budget, **kept, name=label, report=_reporting(label, line)))
        if found[-1].interrupted:
            break
    line.end()
    return found


def _kept(folders: tuple[Path | None, Path | None], label: str | None, place: int) -> dict[str, Any]:
    """Return where one problem's checkpoint is written and read: of all problems, each in a folder of its own.

    Those after the first may not have begun yet in what the comparison goes on from.
    """
    here, there = folders if label is None else ((None if folder is None else folder / label) for folder in folders)
    if place > 1 and there is not None and not there.is_dir():
        here, there = here or there, None
    return {"checkpoint": here, "resume": there}


def _all_problems(output: Output) -> dict[str, mm.MinMaxProblem]:
    """Load the first example of every installed problem; one that cannot be loaded is left out, which is said."""
    found = {}
    for name in mm.plugin_names():
        try:
            if reason := import_failure(name):
                raise mm.MinMaxConError(f"it failed to load: {reason}.")
            found[name] = load_problem(name, next(iter(mm.plugin(name).examples()), {}))
        except mm.MinMaxConError as failure:
            output.note(f"{name} is left out: {failure}")
    if not found:
        raise mm.InvalidInput("problem", ALL, "no installed problem can be loaded.")
    return found


def _reporting(label: str, line: ProgressLine) -> Callable[[str, int], None]:
    return lambda solver, seed: line(f"{label}: {solver}, seed {seed}")
