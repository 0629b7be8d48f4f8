"""The one tree of errors.

Every message is a single line that names the argument, its value and the remedy, so that the command line can print
it as it stands and exit with status 2.
"""

from __future__ import annotations

import difflib
import pickle
from collections.abc import Iterable

__all__ = [
    "CheckpointWarning",
    "CorruptCheckpoint",
    "DataError",
    "EngineWarning",
    "InvalidInput",
    "MinMaxConError",
    "MissingDependency",
    "OutOfMemory",
    "UnknownName",
    "Unsupported",
    "WeakConvexityWarning",
]


class MinMaxConError(Exception):
    """Base of every error that minmaxcon raises on purpose.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> try:
    ...     mm.Simplex(0)
    ... except mm.MinMaxConError as error:
    ...     print(error)
    dimension=0: must be a whole number of at least 1 and at most 1000000000.
    """

    def __str__(self) -> str:
        """Return the message in one line, also where it quotes another library's of several.

        Characters that could control a terminal, such as those of a file's own texts, are written as escapes.
        """
        text = " ".join(line.strip() for line in super().__str__().splitlines())
        return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class _Shown:
    """Stands for a value that cannot be pickled, so that an error can still leave its process."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _portable(value: object) -> object:
    try:
        pickle.dumps(value)
    except Exception:  # whatever the value's own methods raise
        return _Shown(repr(value))
    return value


class InvalidInput(MinMaxConError, ValueError):
    """An argument has a value that cannot be used.

    Parameters
    ----------
    argument : str
        Name of the argument, as the caller wrote it.
    value : object
        Its value; shown with ``repr`` and cut to 80 characters.
    remedy : str
        What is wrong and what to do about it, one sentence.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> mm.Ball(2, -1.0)
    Traceback (most recent call last):
    ...
    minmaxcon.errors.InvalidInput: radius=-1.0: must be positive and finite: the set has to be compact.
    """

    def __init__(self, argument: str, value: object, remedy: str) -> None:
        self.argument, self.value, self.remedy = argument, value, remedy
        try:
            shown = " ".join(repr(value).split())
        except (ValueError, RecursionError):  # Python writes no integer of more than 4,300 digits, nor deep lists
            shown = f"a {type(value).__name__} too long to be shown"
        shown = shown if len(shown) <= 80 else shown[:77] + "..."
        super().__init__(f"{argument}={shown}: {remedy}")

    def __reduce__(self) -> tuple[type[InvalidInput], tuple[object, ...]]:
        return type(self), (self.argument, _portable(self.value), self.remedy)


class UnknownName(InvalidInput):
    """A name is not among those registered; the message lists them and suggests the nearest.

    Parameters
    ----------
    argument : str
        Name of the argument.
    value : str
        The name that was asked for.
    known : iterable of str
        The names that exist.
    advice : str
        What else may be wrong, a sentence.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> mm.load_problem("tpy")
    Traceback (most recent call last):
    ...
    minmaxcon.errors.UnknownName: name='tpy': unknown name; did you mean 'toy'? ...
    """

    def __init__(self, argument: str, value: str, known: Iterable[str], advice: str = "") -> None:
        self.known, self.advice = tuple(known), advice
        folded = {str(name).casefold(): name for name in self.known}
        near = difflib.get_close_matches(str(value).casefold(), folded, n=1, cutoff=0.5)
        hint = f"did you mean {folded[near[0]]!r}? " if near else ""
        listed = ", ".join(self.known) or "none"
        super().__init__(argument, value, f"unknown name; {hint}Known: {listed}. {advice}".rstrip())

    def __reduce__(self) -> tuple[type[InvalidInput], tuple[object, ...]]:
        return type(self), (self.argument, _portable(self.value), self.known, self.advice)


class DataError(MinMaxConError, ValueError):
    """A data set cannot be used as it is.

    Parameters
    ----------
    source : str
        The file or the data set's name.
    problem : str
        What is wrong, where known with row and column, and the remedy: one sentence.
    column : str, optional
        The column that is at fault, where the data could be used without it.
    remedy : str
        A further remedy, an argument as Python writes it: another sentence.

    Examples
    --------
    >>> from minmaxcon.tables import read_source
    >>> read_source("missing.csv")
    Traceback (most recent call last):
    ...
    minmaxcon.errors.DataError: missing.csv: no such file; check the path.
    """

    def __init__(self, source: str, problem: str, column: str | None = None, remedy: str = "") -> None:
        self.source, self.problem, self.column, self.remedy = source, problem, column, remedy
        super().__init__(f"{source}: {problem} {remedy}".rstrip())

    def __reduce__(self) -> tuple[type[DataError], tuple[object, ...]]:
        return type(self), (self.source, self.problem, self.column, self.remedy)


class CorruptCheckpoint(DataError):
    """A checkpoint is damaged, was changed after it was written, or is of another version.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as kept:
    ...     found = mm.solve(mm.load_problem("toy"), mm.SFLS(mm.SMD(steps=10)), seed=0, budget=10, checkpoint=kept)
    ...     file = next(path for path in pathlib.Path(kept).iterdir() if path.is_file())
    ...     size = file.write_bytes(file.read_bytes()[:-9])
    ...     try:
    ...         mm.solve(mm.load_problem("toy"), mm.SFLS(mm.SMD(steps=10)), seed=0, resume=kept)
    ...     except mm.CorruptCheckpoint:
    ...         print("damaged")
    damaged
    """


class OutOfMemory(MinMaxConError, MemoryError):
    """Something would need more memory than may be used; it says how much, and what would fit.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> issubclass(mm.errors.OutOfMemory, mm.MinMaxConError)
    True
    """


class Unsupported(MinMaxConError, TypeError):
    """Two parts that cannot work together were combined; the message names both and the remedy.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> mm.solve(mm.load_problem("toy"), mm.SuccessiveApproximation())
    Traceback (most recent call last):
    ...
    minmaxcon.errors.Unsupported: SuccessiveApproximation cannot solve 'toy'. It needs a RefreshedProblem...
    """


class WeakConvexityWarning(UserWarning):
    """A proximal weight is not above the weak convexity modulus, so that proximal problems need not be convex.

    The message says both numbers, where the modulus comes from, and the remedy.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> issubclass(mm.WeakConvexityWarning, UserWarning)
    True
    """


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written, or other versions or another number of threads have written it.

    Examples
    --------
    >>> import warnings
    >>> import minmaxcon as mm
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", mm.CheckpointWarning)  # stop instead of going on without checkpoints
    """


class EngineWarning(UserWarning):
    """A problem whose engine compiles is solved by a method that is not compiled.

    Parameters
    ----------
    engine : str
        The engine.
    solver : str
        The solver whose steps are not compiled, as its title says it.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> str(mm.EngineWarning("jax", "SFLS(MirrorProx)")).partition(":")[0]
    'engine="jax" compiles nothing here, as the steps of SFLS(MirrorProx) are not compiled'
    """

    def __init__(self, engine: str, solver: str) -> None:
        self.engine, self.solver = engine, solver
        super().__init__(self.told(f'engine="{engine}"', "SFLS(SMD())"))

    def told(self, engine: str, method: str) -> str:
        """Return the message, with the engine and a method that is compiled as they are typed."""
        return (
            f"{engine} compiles nothing here, as the steps of {self.solver} are not compiled: "
            f"name a method whose steps are, such as {method}, or leave the engine out."
        )

    def __reduce__(self) -> tuple[type[EngineWarning], tuple[str, str]]:
        return type(self), (self.engine, self.solver)


class MissingDependency(MinMaxConError, ImportError):
    """An optional package is needed and is not installed.

    Parameters
    ----------
    package : str
        The package that is missing.
    extra : str
        The extra of minmaxcon that brings it.
    purpose : str
        What it is needed for.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> print(mm.MissingDependency("cvxpy", "reference", "exact solutions"))
    cvxpy is needed for exact solutions; install it with: pip install 'minmaxcon[reference]'
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package, self.extra, self.purpose = package, extra, purpose
        super().__init__(f"{package} is needed for {purpose}; install it with: pip install 'minmaxcon[{extra}]'")

    def __reduce__(self) -> tuple[type[MissingDependency], tuple[str, str, str]]:
        return type(self), (self.package, self.extra, self.purpose)
