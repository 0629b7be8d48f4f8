"""Problems and commands by name: what a plug-in offers, and its discovery through entry points."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from minmaxcon.checks import choice
from minmaxcon.core import MinMaxProblem
from minmaxcon.errors import InvalidInput, MinMaxConError, UnknownName

__all__ = [
    "COMMAND_GROUP",
    "ENTRY_POINT_GROUP",
    "BringsData",
    "Command",
    "Compares",
    "Encloses",
    "GivesProbabilities",
    "Measures",
    "MeasuresScores",
    "ProblemPlugin",
    "SavesModels",
    "command_points",
    "load_problem",
    "plugin",
    "plugin_names",
]

ENTRY_POINT_GROUP = "minmaxcon.problems"
"""Entry points of problems: ``name = "module:object"``, a :class:`ProblemPlugin`."""

COMMAND_GROUP = "minmaxcon.commands"
"""Entry points of commands: ``name = "module:object"``, a function or a cyclopts App."""

_INSTALL = "A package of your own must be installed first: pip install --editable FOLDER."


class ProblemPlugin(ABC):
    """A named problem.

    A plug-in registers an instance (or the class) under the entry-point group ``minmaxcon.problems``. Only :meth:`load`
    is required. The other methods have a default that says nothing; a plug-in may also be one that
    :class:`SavesModels` or :class:`BringsData`.

    Attributes
    ----------
    name : str
        The name of the entry point.
    summary : str
        One line for ``minmaxcon problems``.
    measures : mapping of str to str
        What tables call the true measures that :meth:`evaluate` returns; others are called by their names.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> class Easy(mm.ProblemPlugin):
    ...     name, summary = "easy", "Toy with a loose bound."
    ...     def load(self, bound: float = 1.5):
    ...         return mm.load_problem("toy", bound=bound)
    >>> mm.solve(Easy().load(), seed=0).status.name, Easy().options()
    ('SOLVED', ('bound',))
    """

    name: str = ""
    summary: str = ""
    measures: Mapping[str, str] = {}  # a default that no plug-in changes in place

    @abstractmethod
    def load(self, *args: Any, **options: Any) -> MinMaxProblem:
        """Return the problem; the keyword arguments are the plug-in's own, all with defaults.

        The command line reads them by their annotations, and shows what the numpydoc docstring says of them: a ``float
        | Sequence[float]`` is a number, or several that commas separate. A bound of this kind makes runs of one solve.
        """

    def evaluate(self, problem: MinMaxProblem, x: Any) -> Mapping[str, Any]:
        """Measure a solution by code that shares nothing with the solvers.

        Parameters
        ----------
        problem : MinMaxProblem
            The problem, from :meth:`load`.
        x : ndarray (d,)
            The solution of one run.

        Returns
        -------
        mapping
            ``objective``, :math:`f_0(x)`; ``values``, the list of :math:`f_i(x)`, bounds not subtracted; and one
            mapping for each part of the data (``train``, ``test``) with the true measures, of which a table of several
            runs has room for the first two. Empty where nothing is measured.
        """
        return {}

    def notes(self, problem: MinMaxProblem, measured: Sequence[Mapping[str, Any]]) -> Mapping[str, Sequence[str]]:
        """Return what a reader must be told together with results: sentences by heading.

        Cautions stand under ``Please note``; beside JSON they are printed on standard error.

        Parameters
        ----------
        problem : MinMaxProblem
            The problem, from :meth:`load`.
        measured : sequence of mapping
            For each run what :meth:`evaluate` returned, with ``constraints``, the list of :math:`f_i(x) - b_i`, added.
        """
        return {}

    def choices(self) -> Mapping[str, Mapping[str, str]]:
        """Return the names that an option of :meth:`load` knows, each with one line of description, by option."""
        return {}

    def examples(self) -> Sequence[Mapping[str, Any]]:
        """Return sets of options of :meth:`load` whose problems are small enough to check and compare in seconds.

        The default is the problem without options. ``minmaxcon check NAME`` checks each of them, and ``minmaxcon
        compare all`` takes the first.
        """
        return ({},)

    def settings(self, problem: MinMaxProblem) -> Mapping[str, Any]:
        """Return options of :meth:`load` whose defaults depend on others, as the problem has them; none by default."""
        return {}

    def options(self) -> tuple[str, ...]:
        """Names of the keyword arguments of :meth:`load`."""
        parameters = inspect.signature(self.load).parameters.values()
        return tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))


@runtime_checkable
class SavesModels(Protocol):
    """A plug-in whose solutions are models, which can be saved and score new rows.

    Examples
    --------
    >>> from minmaxcon.registry import SavesModels
    >>> class Saves:
    ...     def export(self, problem, x):
    ...         return {"weight": x}, {"kind": "linear"}
    ...     def predict(self, arrays, description, data):
    ...         return data @ arrays["weight"]
    >>> isinstance(Saves(), SavesModels)
    True
    """

    def export(self, problem: MinMaxProblem, x: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return the arrays and the JSON-able description of a model that can be saved."""

    def predict(self, arrays: Mapping[str, Any], description: Mapping[str, Any], data: Any) -> Any:
        """Score new rows, an ndarray (n,), with an exported model; ``data`` is a file or data frame.

        Further arguments, by name alone and with defaults, are options of ``minmaxcon predict``.
        """


@runtime_checkable
class GivesProbabilities(Protocol):
    """A plug-in that knows the probabilities behind the scores of its saved models, as ``minmaxcon predict`` asks.

    Examples
    --------
    >>> from minmaxcon.registry import GivesProbabilities
    >>> class Calibrated:
    ...     def probabilities(self, description, scores):
    ...         return [0.5 for _ in scores]
    >>> isinstance(Calibrated(), GivesProbabilities)
    True
    """

    def probabilities(self, description: Mapping[str, Any], scores: Any) -> Any:
        """Return the probabilities (n,) of rows by their scores (n,) and the description of the model."""


class Measures(Protocol):
    """What was measured: ``str`` of it is a text for a reader, whose lines may be wrapped.

    Examples
    --------
    >>> class Share:
    ...     def as_dict(self):
    ...         return {"share": 0.25}
    ...     def __str__(self):
    ...         return "a quarter of the rows"
    >>> str(Share()), Share().as_dict()
    ('a quarter of the rows', {'share': 0.25})
    """

    def as_dict(self) -> Mapping[str, Any]:
        """Return everything as JSON knows it."""


@runtime_checkable
class MeasuresScores(Protocol):
    """A plug-in that measures the scores of its saved models on rows for which the truth is known.

    The arguments of ``measure_scores`` that can be given by name alone, all with defaults, are options of ``minmaxcon
    predict``: they say where in the data the truth stands. Any of them asks for the measures.

    Examples
    --------
    >>> from minmaxcon.registry import MeasuresScores
    >>> class Counted:
    ...     def measure_scores(self, description, scores, data, /, *, label=None):
    ...         return sum(score > 0 for score in scores)
    >>> isinstance(Counted(), MeasuresScores)
    True
    """

    def measure_scores(self, description: Mapping[str, Any], scores: Any, data: Any, /, **options: Any) -> Measures:
        """Measure the scores (n,) of the rows of ``data``, with the description of the model that gave them."""


@runtime_checkable
class Compares(Protocol):
    """A plug-in whose results are read against solutions of other problems, such as that without a constraint.

    Examples
    --------
    >>> from minmaxcon.registry import Compares
    >>> class Beside:
    ...     def references(self, problem):
    ...         return {"loose": problem.with_bounds(10.0)}
    ...     def compared(self, found, references):
    ...         return {**found, "price": found["objective"] - references["loose"]["objective"]}
    >>> isinstance(Beside(), Compares)
    True
    """

    def references(self, problem: MinMaxProblem) -> Mapping[str, MinMaxProblem]:
        """Return these problems, of one run each, by name; ``minmaxcon solve`` solves them after the problem itself."""

    def compared(self, found: Mapping[str, Any], references: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return what ``evaluate`` found of a solution, with what the evaluations of all references add to it."""


@runtime_checkable
class Encloses(Protocol):
    """A plug-in that knows between which rational numbers the true values of its constraints lie.

    ``minmaxcon verify`` then decides by them whether a target is met, so that no rounding does.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from minmaxcon.registry import Encloses
    >>> class Counted:
    ...     def enclosed(self, problem, x):
    ...         return [(Fraction(1, 3), Fraction(1, 3))]
    >>> isinstance(Counted(), Encloses)
    True
    """

    def enclosed(self, problem: MinMaxProblem, x: Any) -> Sequence[tuple[Fraction, Fraction]] | None:
        r"""Return for each constraint two numbers between which :math:`f_i(x)` lies, the bound not subtracted.

        None where they are not known of this problem.

        Parameters
        ----------
        problem : MinMaxProblem
            The problem, from ``load``.
        x : ndarray (d,)
            The solution of one run.
        """


@runtime_checkable
class BringsData(Protocol):
    """A plug-in with named data sets.

    Examples
    --------
    >>> from minmaxcon.registry import BringsData
    >>> class Brings:
    ...     def datasets(self, data_dir=None):
    ...         return [{"name": "rows", "description": "ten rows", "source": "invented", "licence": "any"}]
    ...     def download(self, name, data_dir=None):
    ...         return [], ["nothing to fetch"]
    >>> isinstance(Brings(), BringsData)
    True
    """

    def datasets(self, data_dir: Any = None) -> Sequence[Mapping[str, Any]]:
        """Return the named data sets: ``name, description, source, licence`` and, where it cannot be read, ``missing``.

        Parameters
        ----------
        data_dir : path, optional
            Folder of data files, as the option of ``load``.
        """

    def download(self, name: str, data_dir: Any = None) -> tuple[Sequence[Any], Sequence[str]]:
        """Fetch a named data set; return the files written, and sentences about them.

        Raises
        ------
        UnknownName
            There is no such data set.
        """


@cache
def _entry_points() -> dict[str, Any]:
    return {point.name: point for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda p: p.name)}


@dataclass(frozen=True, slots=True)
class Command:
    """A command that a plug-in adds to the command line.

    Attributes
    ----------
    name : str
        What follows ``minmaxcon``.
    value : str
        Where it is, ``module:object``.
    rivals : tuple of str
        Where commands of the same name are, of other plug-ins.

    Examples
    --------
    >>> from minmaxcon.registry import Command
    >>> Command("report", "my_package.commands:report").name
    'report'
    """

    name: str
    value: str
    rivals: tuple[str, ...] = ()

    def load(self) -> Any:
        """Import the command.

        Raises
        ------
        MinMaxConError
            It fails to import, is no function or App, or another plug-in brings one of the same name.
        """
        if self.rivals:
            brought = " and ".join((self.value, *self.rivals))
            raise MinMaxConError(f"command {self.name!r} is brought by {brought}; uninstall all of these but one.")
        try:
            found = EntryPoint(self.name, self.value, COMMAND_GROUP).load()
        except BaseException as error:
            raise MinMaxConError(f"command {self.name!r} ({self.value}) failed to load: {cause_of(error)}") from error
        if not callable(found):
            raise MinMaxConError(f"command {self.name!r} ({self.value}) is neither a function nor a cyclopts App.")
        return found

    def summary(self) -> str:
        """Return the first line of the command's help, read from its source: nothing is imported."""
        module, _, name = self.value.partition(":")
        with suppress(ImportError, OSError, SyntaxError, ValueError):
            for node in _parsed(_source(module)).body:
                if isinstance(node, ast.FunctionDef) and node.name == name:
                    return (ast.get_docstring(node) or "").partition("\n")[0]
                if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [name]:
                    words = node.value.keywords if isinstance(node.value, ast.Call) else []
                    return next((str(ast.literal_eval(word.value)) for word in words if word.arg == "help"), "")
        return ""


@lru_cache(maxsize=8)
def _parsed(source: str) -> ast.Module:
    """Return the tree of a source; commands of one module share it."""
    return ast.parse(source)


def _source(module: str) -> str:
    """Return the source of a module; only the finder of its top-level package is asked, so that nothing is imported."""
    package, *path = module.split(".")
    spec = find_spec(package)
    folders = [] if spec is None else spec.submodule_search_locations
    for folder in folders or ():
        place = Path(folder, *path)
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                return file.read_text(encoding="utf-8")
    return "" if path or spec is None or spec.origin is None else Path(spec.origin).read_text(encoding="utf-8")


@cache
def command_points() -> dict[str, Command]:
    """Return the commands that installed plug-ins add, by name, sorted; none is imported."""
    found: dict[str, list[str]] = {}
    for name, value in sorted({(point.name, point.value) for point in entry_points(group=COMMAND_GROUP)}):
        found.setdefault(name, []).append(value)
    return {name: Command(name, values[0], tuple(values[1:])) for name, values in found.items()}


def cause_of(error: BaseException) -> str:
    """Return what another's code raised, in words of at most 300 characters.

    Such code may raise anything, also what is no Exception. Ctrl-C is no failure of it, and is raised again.
    """
    if isinstance(error, KeyboardInterrupt):
        raise error
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."


IMPORT_SECONDS = 20.0
"""Seconds that the package of a problem may take to be imported, where all are listed."""

_IMPORT = """
import importlib, json, os, sys
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
sys.path[:] = json.loads(sys.argv[1])
importlib.import_module(sys.argv[2])
print("imported", file=out, flush=True)
os._exit(0)
"""


def import_failure(name: str) -> str:
    """Tell why a problem's package cannot be imported, empty where it can: tried in a process of its own.

    What hangs there, or ends the interpreter, spares this process. Packages of minmaxcon are not tried.
    """
    point = _entry_points().get(name)
    if point is None:
        return ""
    module = str(point.value).partition(":")[0]
    if not isinstance(point, EntryPoint) or module.partition(".")[0] in ("minmaxcon", "minmaxcon_problems"):
        return ""
    words = [sys.executable, "-c", _IMPORT, json.dumps(sys.path), module]
    try:
        done = subprocess.run(  # noqa: S603 - our own program, and the name of an installed module
            words, capture_output=True, timeout=IMPORT_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return f"{module} has not been imported after {IMPORT_SECONDS:g} s"
    if done.stdout == b"imported\n":
        return ""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    ended = f"importing {module} ends the interpreter with exit status {done.returncode}"
    return ended if done.returncode != 1 or not lines else lines[-1][:300]


def plugin_names() -> tuple[str, ...]:
    """Return the names of all installed problems, sorted; no plug-in is imported."""
    return tuple(_entry_points())


def plugin(name: str) -> ProblemPlugin:
    """Return a problem plug-in by name.

    Parameters
    ----------
    name : str
        Its entry point's name.

    Returns
    -------
    ProblemPlugin
        The plug-in, imported on first use.

    Raises
    ------
    UnknownName
        If no such problem is installed; the message suggests the nearest name.
    MinMaxConError
        If the plug-in fails to import, or is not a :class:`ProblemPlugin`.
    """
    return _imported(choice("name", name, _entry_points(), _INSTALL))


@cache
def _imported(name: str) -> ProblemPlugin:
    known = _entry_points()
    try:
        found = known[name].load()
        if isinstance(found, type) and issubclass(found, ProblemPlugin):
            found = found()
    except BaseException as error:
        raise MinMaxConError(f"problem {name!r} ({known[name].value}) failed to load: {cause_of(error)}") from error
    if not isinstance(found, ProblemPlugin):
        raise MinMaxConError(
            f"problem {name!r} ({known[name].value}) is not a ProblemPlugin; register an instance of one."
        )
    return found


def load_problem(name: str, **options: Any) -> MinMaxProblem:
    """Return an installed problem, ready to solve.

    Parameters
    ----------
    name : str
        The problem's name, such as ``"toy"``; ``minmaxcon problems`` lists all.
    **options
        The plug-in's own options.

    Returns
    -------
    MinMaxProblem
        The problem.

    Raises
    ------
    UnknownName
        If there is no such problem.
    InvalidInput
        If the plug-in has no such option, or refuses its value.
    MinMaxConError
        If what the plug-in returns is no problem.
    """
    found = plugin(name)
    known = found.options()
    takes_any = any(p.kind is p.VAR_KEYWORD for p in inspect.signature(found.load).parameters.values())
    for option, value in options.items():
        if option not in known and not takes_any:
            raise InvalidInput(option, value, str(UnknownName("option of " + name, option, known).remedy))
    problem = found.load(**options)
    if not isinstance(problem, MinMaxProblem):
        kind = type(problem).__name__
        raise MinMaxConError(f"load() of problem {name!r} returned a {kind}; it must return a MinMaxProblem.")
    return problem
