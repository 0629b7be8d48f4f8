"""``minmaxcon solve``: a problem by its name, its solution measured again, the record, its files and the report."""

from __future__ import annotations

import csv
import inspect
import io
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

import minmaxcon as mm
from minmaxcon.cli.clock import current_clock
from minmaxcon.cli.options import Flag, Place, Whole, bound_options, words_of
from minmaxcon.cli.output import Output, paragraphs, table, wrapped
from minmaxcon.distributed import EndedError, Processes, Shards, distribute, join
from minmaxcon.memory import VARIABLE, parsed
from minmaxcon.registry import Compares, SavesModels, cause_of
from minmaxcon.solvers import AUTO, automatic, named_solver, solver_names

if TYPE_CHECKING:
    from minmaxcon.results import RunRecord, RunsRecord

__all__ = ["Finished", "Loaded", "finish", "load", "load_problem", "solve"]

_SOLVER = Group("Solver", sort_key=1)
_OUTPUT = Group("Output", sort_key=2)
_PARTS = ("train", "validation", "test")

CAUTIONS = "Please note"
"""Heading of the notes that are also shown beside JSON."""


def solve(
    name: str,
    /,
    *,
    solver: Annotated[str | None, Parameter(group=_SOLVER)] = None,
    steps: Annotated[Whole | None, Parameter(group=_SOLVER)] = None,
    batch_size: Annotated[Whole | None, Parameter(group=_SOLVER)] = None,
    seed: Annotated[Whole, Parameter(group=_SOLVER)] = 0,
    time_limit: Annotated[float | None, Parameter(group=_SOLVER)] = None,
    checkpoint: Annotated[Place | None, Parameter(group=_SOLVER)] = None,
    resume: Annotated[Place | None, Parameter(group=_SOLVER)] = None,
    every: Annotated[float, Parameter(group=_SOLVER)] = 30.0,
    memory: Annotated[str | None, Parameter(group=_SOLVER)] = None,
    distributed: Annotated[Flag, Parameter(group=_SOLVER)] = False,
    out: Annotated[Place | None, Parameter(group=_OUTPUT)] = None,
    overwrite: Annotated[Flag, Parameter(group=_OUTPUT)] = False,
    json: Annotated[Flag, Parameter(group=_OUTPUT)] = False,
    quiet: Annotated[Flag, Parameter(group=_OUTPUT)] = False,
    **options: Any,
) -> int:
    """Solve a problem for one bound or several, and say what is proved.

    The status says how the solve ended; objective and constraints are measured again outside the solver, exactly, on
    the training data; the certificate bounds the optimal value from both sides. Several bounds, separated by commas,
    are one solve. `minmaxcon solve NAME --help` also shows the options of that problem. Exit status 0 if every run is
    solved, 1 if not, 2 for bad input.

    Parameters
    ----------
    name
        The problem; `minmaxcon problems` lists all.
    solver
        sfls, the level-set method; iqrc, the proximal method for weakly convex problems; successive, successive
        approximation of true measures; or another that `minmaxcon compare --help` names. auto, the default, takes one
        that fits the problem.
    steps
        Steps of mirror descent in the first level (later ones grow); 100 for sfls, 1000 for iqrc by default.
    batch_size
        Samples a step; 100 by default.
    seed
        Seed of the solve, and of the problem's data where it draws or splits any; the same seed gives the same bits.
    time_limit
        Seconds from the start of the command, after which the solve ends with the best feasible point so far. Where
        the problem has not been imported and loaded by then, one line says so, the exit status is 1, and nothing is
        written.
    checkpoint
        Folder that holds the latest state of the solve, so that it can go on after whatever ends it. One that holds a
        checkpoint already is refused, unless --resume names it too.
    resume
        Folder from which the solve goes on, with the same bits as if it had never ended. With --checkpoint of the same
        folder the solve begins where there is nothing yet, so that one command line serves the first time and the next.
    every
        Seconds between two checkpoints.
    memory
        Memory that data may need, such as 4G or 50% of the machine's; half of it by default. A file that needs more
        is read in pieces where the problem can, and is refused otherwise. It does not limit the memory of the process.
    distributed
        One solve over the processes that torchrun has started, as in `torchrun --nproc-per-node=2 -m minmaxcon solve
        NAME --distributed`: each has its own rows and draws its own batches. The first one reports.
    out
        Folder for result.json, model.safetensors where the solution is a model (with several bounds
        model-0.safetensors, ... in their order), trace.csv and trace.png. It must not exist.
    overwrite
        Replace a folder that holds an earlier result, or nothing.
    json
        Print the content of result.json on standard output, and nothing else there.
    quiet
        No progress and no notes.
    """
    from minmaxcon.results import check_folder, environment, write_folder

    clock = current_clock()
    processes = join() if distributed else None
    first = processes is None or processes.leader
    output = Output(json=json and first, quiet=quiet or not first)
    if memory is not None:
        parsed("memory", memory)
    if seed < 0:
        raise mm.InvalidInput("seed", seed, "must be at least 0.")
    settings = {name: value for name, value in (("steps", steps), ("batch_size", batch_size)) if value is not None}
    if solver not in (None, AUTO):
        named_solver(solver, **settings)  # what is wrong with it is said before anything is loaded
    if out is not None:
        check_folder(out, overwrite=overwrite)
    with _as_one(processes), output.guarded(), environment({} if memory is None else {VARIABLE: memory}):
        loaded = load(name, options, seed=seed)
        if processes is not None and not isinstance(loaded.problem.data, Shards):
            loaded = replace(loaded, problem=distribute(loaded.problem, processes, sharded=False))
        chosen, method = _chosen(loaded.problem, solver, settings)
        clock.stop()  # from here on the solver looks at the time itself
        limits: dict[str, Any] = {"seed": seed, "time_limit": time_limit, "every": every}
        kept: dict[str, Any] = {"checkpoint": checkpoint, "resume": resume, "elapsed": clock.seconds}
        solution = mm.solve(loaded.problem, method, **limits, **kept, callbacks=output.progress())
        asked = {"solver": chosen, "steps": steps, "batch_size": batch_size, "time_limit": time_limit}
        if VARIABLE in os.environ:
            asked["memory"] = os.environ[VARIABLE]  # by which files are read whole or in pieces, also to verify
        references = {}
        others = _references(loaded, solution)
        if others and clock.over:
            output.note("note: no time was left for what the solution is compared with.")
            others = {}
        for name, other in others.items():
            folder = None if (checkpoint or resume) is None else Path(checkpoint or resume or "") / name
            kept = {"checkpoint": folder, "resume": folder, "elapsed": clock.seconds}
            references[name] = other, mm.solve(other, method, **limits, **kept, callbacks=output.progress())
        finished = finish(loaded, solution, asked, references)
        files = {} if out is None or not first else _files(finished, output)
    if not first:
        return 0 if finished.record.solved else 1
    if out is not None:
        write_folder(out, files, overwrite=overwrite)
    _tell(finished, output, "" if out is None else f"written: {out} ({', '.join(files)})")
    return 0 if finished.record.solved else 1


@contextmanager
def _as_one(processes: Processes | None) -> Iterator[None]:
    """Let several processes end as one: what one cannot do the first one tells, and nobody waits for the others."""
    try:
        yield
    except mm.MinMaxConError as failure:
        if processes is None:
            raise
        shared = processes.fail(failure)
        if not (processes.leader or isinstance(shared, EndedError)):
            raise SystemExit(2) from None
        raise shared from None
    finally:
        if processes is not None:
            processes.leave()


def _chosen(problem: mm.MinMaxProblem, name: str | None, settings: Mapping[str, Any]) -> tuple[str, mm.Solver]:
    """Return a solver and its name: the one asked for, else one that fits; with settings of mirror descent, by that."""
    name = None if name == AUTO else name
    if name is None and settings:
        fitting = (each for each in ("successive", "sfls", "iqrc") if named_solver(each).needs.missing(problem) is None)
        name = next(fitting, "sfls")
    if name is not None:
        return name, named_solver(name, **settings)
    found = automatic(problem)
    return next((each for each in solver_names() if named_solver(each).title == found.title), found.title), found


def _tell(finished: Finished, output: Output, written: str) -> None:
    from minmaxcon.results import to_json

    if output.json:
        output.result(to_json(finished.record))
        for sentence in finished.notes.get(CAUTIONS, ()):
            output.note(f"note: {sentence}")
        if written:
            output.note(written)
    else:
        output.result(_report(finished, notes=not output.quiet) + (f"\n{written}\n" if written else ""))


@dataclass(frozen=True, eq=False, slots=True)
class Loaded:
    """A problem and what it was made from: ``settings`` has its name and every option, defaults included."""

    plugin: mm.ProblemPlugin
    problem: mm.MinMaxProblem
    settings: Mapping[str, Any]

    def run_option(self) -> str | None:
        """Return the option that tells runs apart: a number or, for each of several runs, one; None where none is."""
        runs = self.problem.runs
        for option in bound_options(self.plugin):
            value = self.settings[option]
            if isinstance(value, int | float) if runs is None else isinstance(value, list) and len(value) == runs:
                return option
        return None


@dataclass(frozen=True, eq=False, slots=True)
class Finished:
    """A solve that has ended, and what was measured.

    Attributes
    ----------
    loaded : Loaded
        What was solved.
    solution : Solution
        The solution.
    measured : list of mapping
        The plug-in's measures of each run.
    record : RunRecord or RunsRecord
        What is reported.
    notes : mapping
        What the reader must know: sentences by heading.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> from minmaxcon.cli import finish, load
    >>> loaded = load("toy", {})
    >>> solution = mm.solve(loaded.problem, seed=0)
    >>> finished = finish(loaded, solution, {"seed": 0})
    >>> finished.record.status, finished.labels
    ('solved', ['bound 1'])
    """

    loaded: Loaded
    solution: mm.Solution
    measured: list[dict[str, Any]]
    record: RunRecord | RunsRecord
    notes: Mapping[str, Sequence[str]]

    @property
    def runs(self) -> list[mm.Solution]:
        """The solution of each run."""
        solution = self.solution
        return [solution] if solution.runs is None else [solution[j] for j in range(solution.runs)]

    @property
    def labels(self) -> list[str]:
        """A name for each run: its bound."""
        option = self.loaded.run_option()
        value = None if option is None else self.loaded.settings[option]
        named = "" if option is None else option.replace("_", " ")
        if self.solution.runs is None:
            return [f"{named} {value:.12g}" if option is not None else ""]
        if option is None:
            return [f"run {j}" for j in range(self.solution.runs)]
        return [f"{named} {one:.12g}" for one in value or ()]


def load(name: str, options: Mapping[str, Any], *, seed: int = 0) -> Loaded:
    """Load a problem by name.

    Parameters
    ----------
    name : str
        The problem.
    options : mapping
        Its options, those that were given.
    seed : int
        Seed of its data, where it has an option of this name.

    Raises
    ------
    UnknownName
        There is no such problem.
    InvalidInput
        The problem has no such option, or refuses its value.
    """
    plugin = mm.plugin(name)
    parameters = inspect.signature(plugin.load).parameters
    known = {option: parameters[option].default for option in plugin.options()}
    given = {**({"seed": seed} if "seed" in known else {}), **options}
    defaults = {option: None if value is inspect.Parameter.empty else value for option, value in known.items()}
    problem = load_problem(name, given)
    settings = {**defaults, "seed": seed, **given, **plugin.settings(problem)}
    return Loaded(plugin, problem, {"problem": name, **settings})


def load_problem(name: str, options: Mapping[str, Any]) -> mm.MinMaxProblem:
    """Load a problem; what its code raises at values that it does not check becomes one line.

    MinMaxConError if the problem has no such option, refuses its value or fails at it.
    """
    try:
        return mm.load_problem(name, **options)
    except mm.MinMaxConError:
        raise
    except BaseException as failure:
        given = f" with {words_of(options)}" if options else ""
        raise mm.MinMaxConError(f"problem {name!r} could not be loaded{given}: {cause_of(failure)}") from failure


def _references(loaded: Loaded, solution: mm.Solution) -> Mapping[str, mm.MinMaxProblem]:
    """Return the problems that the solution is compared with; none after Ctrl-C."""
    statuses = [solution.status] if solution.runs is None else solution.status
    if isinstance(loaded.plugin, Compares) and mm.Status.INTERRUPTED not in statuses:
        return loaded.plugin.references(loaded.problem)
    return {}


def finish(
    loaded: Loaded,
    solution: mm.Solution,
    settings: Mapping[str, Any],
    references: Mapping[str, tuple[mm.MinMaxProblem, mm.Solution]] | None = None,
) -> Finished:
    """Measure a solution and make its record.

    Parameters
    ----------
    loaded : Loaded
        What was solved.
    solution : Solution
        The solution.
    settings : mapping
        The solver's settings, as they were given.
    references : mapping, optional
        The problems that the solution is compared with, and their solutions, by name.
    """
    from minmaxcon.results import RunsRecord, measure, plain, record, versions

    plugin, problem = loaded.plugin, loaded.problem
    try:
        measured = measure(plugin, problem, solution, references)
    except BaseException as failure:  # what was solved is not lost because it cannot be measured
        measured = measure(None, problem, solution)
        failed = f"evaluate of {plugin.name!r} failed, so that the values are the solver's own: {cause_of(failure)}"
    else:
        failed = ""
    notes = _notes(plugin, problem, measured, failed)
    asked = {**loaded.settings, **settings}
    if solution.runs is None:
        alone = record(measured[0], solution, asked, _flat(notes))
        return Finished(loaded, solution, measured, alone, notes)
    option = loaded.run_option()
    of_run = [{} if option is None else {option: asked[option][j]} for j in range(solution.runs)]
    runs = [
        record(mine, solution[j], {**asked, **of_run[j]}, _flat(_notes(plugin, problem, [mine], failed)))
        for j, mine in enumerate(measured)
    ]
    together = RunsRecord(
        runs=runs,
        steps=int(solution.steps),
        seconds=float(solution.seconds),
        settings=plain({**asked, "solver_settings": solution.settings.get("solver")}),
        versions=versions(),
        notes=_flat(notes),
    )
    return Finished(loaded, solution, measured, together, notes)


def _notes(
    plugin: mm.ProblemPlugin, problem: mm.MinMaxProblem, measured: Sequence[Mapping[str, Any]], failed: str
) -> Mapping[str, Sequence[str]]:
    """Return the plug-in's notes, and what failed."""
    try:
        told = plugin.notes(problem, measured)
        found = {str(heading): [str(one) for one in sentences] for heading, sentences in told.items()}
    except BaseException as failure:
        found, failed = {}, failed or f"notes of {plugin.name!r} failed: {cause_of(failure)}"
    return found if not failed else {**found, CAUTIONS: [*found.get(CAUTIONS, ()), f"{failed}."]}


def _flat(notes: Mapping[str, Sequence[str]]) -> list[str]:
    return [sentence for sentences in notes.values() for sentence in sentences]


def _files(finished: Finished, output: Output) -> dict[str, bytes]:
    """Return the content of a result folder by file name; a problem without models has no model file, which is said."""
    from minmaxcon.results import model_bytes, png, to_json, trace_figure

    loaded, solution = finished.loaded, finished.solution
    files = {"result.json": to_json(finished.record).encode()}
    if isinstance(loaded.plugin, SavesModels):
        for j, run in enumerate(finished.runs):
            name = "model.safetensors" if solution.runs is None else f"model-{j}.safetensors"
            files[name] = model_bytes(*loaded.plugin.export(loaded.problem, run.x.copy()))
    else:
        output.note(f"note: no model is saved: the solution of {loaded.plugin.name!r} is the point x itself.")
    files["trace.csv"] = _csv(solution.trace).encode()
    title = loaded.problem.name + ("" if solution.runs is not None else f", {finished.labels[0]}")
    files["trace.png"] = png(trace_figure(solution.trace, finished.labels, title.removesuffix(", ")))
    return files


def _csv(trace: Mapping[str, Any]) -> str:
    """Return the trace as a CSV file; floats are written so that they read back exactly."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(trace or ["run", "level"])
    writer.writerows(zip(*(column.tolist() for column in trace.values()), strict=True))
    return text.getvalue()


def _report(finished: Finished, *, notes: bool = True) -> str:
    """Return what a reader sees: status, table, and what they must know to read it rightly."""
    from minmaxcon.results import RunsRecord

    record = finished.record
    text = _runs(finished, record) if isinstance(record, RunsRecord) else _run(finished, record)
    return text + (paragraphs(finished.notes) if notes else "")


def _run(finished: Finished, record: RunRecord) -> str:
    from minmaxcon.results import certificate_text

    problem = finished.loaded.problem
    title = ", ".join(part for part in (problem.name, finished.labels[0], f"seed {record.settings['seed']}") if part)
    rows = [["objective f_0", _number(record.objective), ""]]
    for i, (value, constraint) in enumerate(zip(record.constraints, problem.constraints, strict=True), start=1):
        rows.append([f"f_{i} - b_{i}", _number(value), constraint.name])
    sentence = mm.Status[record.status.upper()].value
    text = f"{title}\n\n{wrapped('', f'{record.status.upper()}: {sentence}')}{wrapped('', record.reason)}\n"
    text += table([[name, value.rjust(12), comment] for name, value, comment in rows], left=3)
    text += table([["certificate  ", certificate_text(record)], ["cost", _cost(record)]], left=2)
    parts = {name: getattr(record, name) for name in _PARTS if getattr(record, name)}
    if parts:
        text += "\n" + _measures(parts, finished.loaded.plugin)
    return text


def _measures(parts: Mapping[str, Mapping[str, Any]], plugin: mm.ProblemPlugin) -> str:
    """Return the table of the true measures of each part of the data."""
    from minmaxcon.results import interval_text

    first = next(iter(parts.values()))
    names = _measure_names(first)
    heading = ["", "rows"]
    heading += [_called(plugin, name) + (" [95% interval]" if f"{name}_interval" in first else "") for name in names]
    rows = [
        [part, f"{found['rows']:,}" if "rows" in found else "", *(interval_text(found, name) for name in names)]
        for part, found in parts.items()
    ]
    return table([heading, *rows])


def _called(plugin: mm.ProblemPlugin, measure: str) -> str:
    """Return what a measure is called."""
    return plugin.measures.get(measure, measure)


def _measure_names(part: Mapping[str, Any]) -> list[str]:
    return [name for name, value in part.items() if isinstance(value, float | None) and name != "rows"]


def _runs(finished: Finished, record: RunsRecord) -> str:
    from minmaxcon.results import interval_text

    counts = Counter(run.status for run in record.runs)
    listed = ", ".join(f"{count} {status}" for status, count in counts.items())
    seed = record.settings["seed"]
    text = f"{finished.loaded.problem.name}, seed {seed}: {len(record.runs)} runs in one solve\n\n"
    text += f"{listed}; {_cost(record)}\n"
    text += "".join(wrapped(f"  {status}: ", mm.Status[status.upper()].value) for status in counts)
    heading = ["", "status", "objective", "max f_i-b_i", "gap of f*"]
    parts = [part for part in _PARTS if getattr(record.runs[0], part)]
    names = _measure_names(getattr(record.runs[0], parts[0]))[:2] if parts else []
    for part in parts:
        heading += [f"{part} {_called(finished.loaded.plugin, name)}" for name in names]
    if parts and f"{names[-1]}_interval" in getattr(record.runs[0], parts[-1]):
        heading[-1] += " [95% interval]"
    rows = []
    for label, run in zip(finished.labels, record.runs, strict=True):
        known = [value for value in run.constraints if value is not None]
        worst = max(known) if len(known) == len(run.constraints) else None
        row = [label, run.status, _number(run.objective), _number(worst, 3), _number(run.certificate.gap, 3)]
        for part in parts:
            row += [interval_text(getattr(run, part), name).split(" ")[0] for name in names]
        if parts:  # there is room for one interval
            row[-1] = interval_text(getattr(run, parts[-1]), names[-1])
        rows.append(row)
    return text + "\n" + table([heading, *rows], left=2)


def _number(value: Any, digits: int = 6) -> str:
    return "unknown" if value is None else f"{value:.{digits}g}"


def _cost(record: RunRecord | RunsRecord) -> str:
    return f"{record.steps:,} steps, {record.seconds:.1f} s"
