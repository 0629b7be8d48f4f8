"""Problems by name: the interface of a plug-in, and its discovery through entry points."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from minmaxcon.core import MinMaxProblem
from minmaxcon.errors import InvalidInput, MinMaxConError, UnknownName, Unsupported

__all__ = ["ENTRY_POINT_GROUP", "Panel", "ProblemPlugin", "Study", "load_problem", "plugin", "plugin_names"]

ENTRY_POINT_GROUP = "minmaxcon.problems"

_INSTALL = "A package of your own must be installed first: pip install --editable FOLDER."


@dataclass(frozen=True, slots=True, order=True)
class Panel:
    """One panel of a figure of fronts: all that methods have in common when they are compared."""

    data: str
    metric: str
    model: str


class Study(ABC):
    """Experiments that compare methods by their fronts, what ``minmaxcon pareto`` and ``minmaxcon reproduce`` run.

    It must pickle, since configurations run in several processes, and :meth:`run` must depend on its arguments alone.

    Attributes
    ----------
    seeds, quick_seeds : int
        Number of seeds, 0 to n - 1, by default and with ``--quick``.
    """

    seeds: int = 5
    quick_seeds: int = 2

    @abstractmethod
    def panels(
        self,
        data: Sequence[str] | None = None,
        metric: Sequence[str] | None = None,
        model: Sequence[str] | None = None,
    ) -> Sequence[Panel]:
        """Return the panels with these names; None takes all of the study.

        Raises
        ------
        UnknownName
            If a name is unknown.
        """

    @abstractmethod
    def methods(self, panel: Panel) -> Sequence[str]:
        """Return the methods that apply to a panel, in the order in which they are shown."""

    def excluded(self, panel: Panel) -> Mapping[str, str]:
        """Return the methods that do not apply to a panel, each with the reason."""
        return {}

    @abstractmethod
    def run(
        self, panel: Panel, method: str, seed: int, *, data_dir: Any = None, quick: bool = False
    ) -> Mapping[str, Any]:
        """Run one configuration.

        Returns
        -------
        mapping
            What JSON can hold: ``status``; ``points``, a list of mappings with ``kind`` (``"selected"``: the best model
            whose gap on the validation part is at most ``asked``; ``"target"``: the model that was asked for that gap),
            ``asked`` and, for each part ``train, validation, test``, ``auc``, ``gap`` and for the test part
            ``gap_interval``; optionally ``unconstrained``, the same parts of the unconstrained model, ``seconds`` and
            ``reason``. The configuration's names (``data, metric, model, method, seed, quick``) are added. A method
            called ``"unconstrained"`` is drawn as a point.
        """

    def settings(self, quick: bool = False) -> Mapping[str, Any]:
        """Return what :meth:`run` depends on beside its arguments, such as numbers of steps, as JSON can hold.

        It is written into the file of each configuration, and a file that other settings have made is refused.
        """
        return {}

    def labels(self) -> Mapping[str, str]:
        """Return what figures and tables call data sets, metrics, models and methods; other names stand as they are."""
        return {}


class ProblemPlugin(ABC):
    """A named problem.

    A plug-in registers an instance (or the class) under the entry-point group ``minmaxcon.problems``. Only :meth:`load`
    is required; the rest lets the command line report true measures beside surrogates, save a model and use it again.

    Attributes
    ----------
    name : str
        The name of the entry point.
    summary : str
        One line for ``minmaxcon problems``.
    """

    name: str = ""
    summary: str = ""

    @abstractmethod
    def load(self, *args: Any, **options: Any) -> MinMaxProblem:
        """Return the problem; the keyword arguments are the plug-in's own, all with defaults."""

    def evaluate(self, problem: MinMaxProblem, x: Any) -> Mapping[str, Any]:
        """Measure a solution by code that shares nothing with the solvers.

        Parameters
        ----------
        problem : MinMaxProblem
            What :meth:`load` returned.
        x : ndarray (d,)
            The solution of one run.

        Returns
        -------
        mapping
            ``objective``, :math:`f_0(x)`; ``values``, the list of :math:`f_i(x)`, bounds not subtracted; and one
            mapping for each part of the data (``train``, ``test``) with the true measures, of which a table of several
            runs has room for the first two.
        """
        return {}

    def export(self, problem: MinMaxProblem, x: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return the arrays and the JSON-able description of a model that can be saved.

        Raises
        ------
        Unsupported
            If the plug-in's solutions are no models.
        """
        raise Unsupported(f"problem {self.name!r} has no model to save: its solution is the point x itself.")

    def predict(self, arrays: Mapping[str, Any], description: Mapping[str, Any], data: Any) -> Any:
        """Score new rows, an ndarray (n,), with an exported model; ``data`` is a file or data frame.

        Raises
        ------
        Unsupported
            If the plug-in's solutions are no models.
        """
        raise Unsupported(f"problem {self.name!r} has no model that scores rows.")

    def notes(self, problem: MinMaxProblem, measured: Sequence[Mapping[str, Any]]) -> Mapping[str, Sequence[str]]:
        """Return what a reader must be told together with results: sentences by heading, cautions under ``Mind``.

        Parameters
        ----------
        problem : MinMaxProblem
            What :meth:`load` returned.
        measured : sequence of mapping
            For each run what :meth:`evaluate` returned, with ``constraints``, the list of :math:`f_i(x) - b_i`, added.
        """
        return {}

    def choices(self) -> Mapping[str, Mapping[str, str]]:
        """Return the names that an option of :meth:`load` knows, each with one line of description, by option."""
        return {}

    def datasets(self, data_dir: Any = None) -> Sequence[Mapping[str, Any]]:
        """Return the named data sets: ``name, description, source, licence`` and, where it cannot be read, ``missing``.

        Parameters
        ----------
        data_dir : path, optional
            Folder of data files, as the option of :meth:`load`.
        """
        return ()

    def download(self, name: str, data_dir: Any = None) -> tuple[Sequence[Any], Sequence[str]]:
        """Fetch a named data set; return the files written, and sentences about them.

        Raises
        ------
        Unsupported
            If the plug-in has nothing to download.
        """
        raise Unsupported(f"problem {self.name!r} has no data to download.")

    def examples(self) -> Sequence[Mapping[str, Any]]:
        """Return sets of options of :meth:`load` whose problems are small enough to check and compare in seconds.

        The default is the problem without options. ``minmaxcon check NAME`` checks each of them, and ``minmaxcon
        compare all`` takes the first.
        """
        return ({},)

    def study(self) -> Study:
        """Return the experiments that compare methods on this problem.

        Raises
        ------
        Unsupported
            If the plug-in has none.
        """
        raise Unsupported(f"problem {self.name!r} has no study of fronts; 'minmaxcon solve' solves it.")

    def options(self) -> tuple[str, ...]:
        """Names of the keyword arguments of :meth:`load`."""
        parameters = inspect.signature(self.load).parameters.values()
        return tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))


@cache
def _entry_points() -> dict[str, Any]:
    return {point.name: point for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda p: p.name)}


def plugin_names() -> tuple[str, ...]:
    """Return the names of all installed problems, sorted; no plug-in is imported."""
    return tuple(_entry_points())


@cache
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
    known = _entry_points()
    if name not in known:
        raise UnknownName("problem", name, known, _INSTALL)
    try:
        found = known[name].load()
        if isinstance(found, type) and issubclass(found, ProblemPlugin):
            found = found()
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        raise MinMaxConError(f"problem {name!r} ({known[name].value}) failed to load: {cause}") from error
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
        The problem's name, such as ``"fair_auc"``; ``minmaxcon problems`` lists all.
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
    """
    found = plugin(name)
    known = found.options()
    takes_any = any(p.kind is p.VAR_KEYWORD for p in inspect.signature(found.load).parameters.values())
    for option, value in options.items():
        if option not in known and not takes_any:
            raise InvalidInput(option, value, str(UnknownName("option of " + name, option, known).remedy))
    return found.load(**options)
