"""From options to a solve, its record and its files: what ``solve`` and ``demo`` share."""

from __future__ import annotations

import csv
import inspect
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import minmaxcon as mm
from minmaxcon.cli.options import value_of, words_of
from minmaxcon.cli.output import Output
from minmaxcon.solvers import named_solver

if TYPE_CHECKING:
    from minmaxcon.results.records import RunRecord, RunsRecord

__all__ = ["Finished", "Loaded", "build_solver", "finish", "load", "load_problem", "options_of", "result_files"]


_BY_VALUES = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)
"""What code raises at an option's value that it did not expect."""


@dataclass(frozen=True, eq=False, slots=True)
class Loaded:
    """A problem and what it was made from.

    Attributes
    ----------
    plugin : ProblemPlugin
        The plug-in.
    problem : MinMaxProblem
        The problem.
    settings : mapping
        The problem's name and every option of the plug-in, defaults included.
    """

    plugin: mm.ProblemPlugin
    problem: mm.MinMaxProblem
    settings: Mapping[str, Any]


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
        option, bound = _bound(self.loaded.settings, self.solution.runs)
        named = option.replace("_", " ")
        if self.solution.runs is None:
            return [f"{named} {bound:g}" if isinstance(bound, float) else ""]
        if isinstance(bound, list) and len(bound) == self.solution.runs:
            return [f"{named} {value:g}" for value in bound]
        return [f"run {j}" for j in range(self.solution.runs)]


def build_solver(name: str, steps: int | None = None, batch_size: int | None = None) -> mm.Solver:
    """Return a solver by name with its default settings, but for those given.

    Parameters
    ----------
    name : str
        The method, one of :func:`minmaxcon.solvers.solver_names`.
    steps, batch_size : int, optional
        Steps a level, and samples a step, of mirror descent.

    Raises
    ------
    UnknownName
        There is no such method.
    InvalidInput
        A setting that the method does not have, or whose value it refuses.
    """
    asked = {"steps": steps, "batch_size": batch_size}
    return named_solver(name, **{key: value for key, value in asked.items() if value is not None})


def load(name: str, given: Mapping[str, Any]) -> Loaded:
    """Load a problem by name.

    Parameters
    ----------
    name : str
        The problem.
    given : mapping
        Options, those that were not given as None.

    Raises
    ------
    UnknownName
        There is no such problem.
    InvalidInput
        The problem has no such option, or refuses its value.
    """
    plugin = mm.plugin(name)
    known = plugin.options()
    options = {option: value for option, value in given.items() if value is not None}
    for option, value in options.items():
        if option not in known and option != "seed":
            raise mm.InvalidInput(option, value, f"problem {name!r} has no such option; leave it out.")
    mine = {option: value for option, value in options.items() if option in known}
    parameters = inspect.signature(plugin.load).parameters
    defaults = {option: parameters[option].default for option in known}
    if "max_gap" in mine:
        defaults["kappa"] = None  # the target takes its place
    settings = {option: None if value is inspect.Parameter.empty else value for option, value in defaults.items()}
    return Loaded(plugin, load_problem(name, mine), {"problem": name, **settings, **options})


def load_problem(name: str, options: Mapping[str, Any]) -> mm.MinMaxProblem:
    """Load a problem; what its code raises at values that it does not check becomes one line.

    Parameters
    ----------
    name : str
        The problem.
    options : mapping
        Its options.

    Raises
    ------
    MinMaxConError
        The problem has no such option, refuses its value or fails at it.
    """
    try:
        return mm.load_problem(name, **options)
    except mm.MinMaxConError:
        raise
    except _BY_VALUES as failure:
        given = f" with {words_of(options)}" if options else ""
        cause = f"{type(failure).__name__}: {failure}"
        raise mm.MinMaxConError(f"problem {name!r} could not be loaded{given}: {cause}") from failure


def options_of(name: str | None, words: Mapping[str, str], command: Callable[..., Any]) -> dict[str, Any]:
    """Return a problem's options from words that a command has no parameter for, read as their defaults tell.

    Parameters
    ----------
    name : str or None
        The problem; None where it has no options.
    words : mapping of str to str
        What followed each option, by its name on the command line.
    command : callable
        The command, for the message.

    Raises
    ------
    UnknownName
        Neither the problem nor the command has such an option, or there is no such problem.
    """
    plugin = None if name is None else mm.plugin(name)
    known = () if plugin is None else plugin.options()
    parameters = {} if plugin is None else inspect.signature(plugin.load).parameters
    found = {}
    for word, text in words.items():
        option = word.replace("-", "_")
        if option not in known:
            ours = inspect.signature(command).parameters.values()
            own = [parameter.name for parameter in ours if parameter.kind is parameter.KEYWORD_ONLY]
            names = dict.fromkeys(f"--{each.replace('_', '-')}" for each in (*known, *own))
            raise mm.UnknownName("option", f"--{word}", names)
        found[option] = value_of(text, parameters[option].default)
    return found


def finish(loaded: Loaded, solution: mm.Solution, settings: Mapping[str, Any]) -> Finished:
    """Measure a solution and make its record.

    Parameters
    ----------
    loaded : Loaded
        What was solved.
    solution : Solution
        The solution.
    settings : mapping
        The solver's settings, as they were given.
    """
    from minmaxcon.results.records import RunsRecord, measure, plain, record, versions

    plugin, problem = loaded.plugin, loaded.problem
    measured = measure(plugin, problem, solution)
    notes = plugin.notes(problem, measured)
    asked = {**loaded.settings, **settings}
    if solution.runs is None:
        alone = record(measured[0], solution, asked, _flat(notes))
        return Finished(loaded, solution, measured, alone, notes)
    option, bound = _bound(asked, solution.runs)
    runs = [
        record(
            mine,
            solution[j],
            {**asked, option: bound[j]} if isinstance(bound, list) else asked,
            _flat(plugin.notes(problem, [mine])),
        )
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


def _bound(settings: Mapping[str, Any], runs: int | None) -> tuple[str, Any]:
    """Return the option whose values tell runs apart, and these: the target, else the bound, by whichever name."""
    for option in ("max_gap", "kappa"):
        if settings.get(option) is not None:
            return option, settings[option]
    lists = (option for option, value in settings.items() if isinstance(value, list) and len(value) == runs)
    option = next(lists, "bound")
    return option, settings.get(option)


def _flat(notes: Mapping[str, Sequence[str]]) -> list[str]:
    return [sentence for sentences in notes.values() for sentence in sentences]


def result_files(finished: Finished, output: Output) -> dict[str, bytes]:
    """Return the content of a result folder by file name; a problem without models has no model file, which is said."""
    from minmaxcon.results.figures import png, trace_figure
    from minmaxcon.results.records import to_json
    from minmaxcon.results.saved_models import model_bytes

    loaded, solution = finished.loaded, finished.solution
    files = {"result.json": to_json(finished.record).encode()}
    try:
        for j, run in enumerate(finished.runs):
            name = "model.safetensors" if solution.runs is None else f"model-{j}.safetensors"
            files[name] = model_bytes(*loaded.plugin.export(loaded.problem, run.x))
    except mm.Unsupported as reason:
        output.note(f"note: no model is saved: {reason}")
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
