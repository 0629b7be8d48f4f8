"""How a check is written and run: it returns what it tried, or raises a fault or the reason why it cannot be tried."""

from __future__ import annotations

import random
import sys
import traceback
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from minmaxcon.arrays import Namespace, engine, namespace, to_numpy
from minmaxcon.errors import MissingDependency
from minmaxcon.testing.report import Finding

__all__ = [
    "Check",
    "Fault",
    "Skip",
    "Suite",
    "apart",
    "at",
    "cvxpy_module",
    "differing",
    "other_engine",
    "reference",
    "require",
    "run_check",
    "shown",
    "skipped",
    "unchanged",
]


_PACKAGE = Path(__file__).parents[1]


class Fault(Exception):
    """Raised by a check that found a fault.

    Parameters
    ----------
    seen : str
        What was seen.
    counterexample : str
        Numbers that show it.
    """

    def __init__(self, seen: str, counterexample: str = "") -> None:
        super().__init__(seen, counterexample)
        self.seen, self.counterexample = seen, counterexample


class Skip(Exception):
    """Raised by a check that cannot be tried; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check.

    Attributes
    ----------
    name : str
        Its name.
    expected : str
        What the theory needs, one sentence.
    page : str
        The page that explains it.
    run : callable
        Takes the subject and a NumPy generator; returns what was tried.
    after : tuple of str
        Checks of the same suite without which this one would only repeat their failure.
    """

    name: str
    expected: str
    page: str
    run: Callable[[Any, np.random.Generator], str]
    after: tuple[str, ...] = ()


class Suite(list[Check]):
    """The checks of one kind of object, in the order in which they are written."""

    def check(
        self, expected: str, page: str, after: tuple[str, ...] = ()
    ) -> Callable[[Callable[[Any, Any], str]], Callable[[Any, Any], str]]:
        """Return the decorator that adds a function to the suite, under its own name."""

        def add(function: Callable[[Any, Any], str]) -> Callable[[Any, Any], str]:
            self.append(Check(function.__name__, expected, page, function, after))
            return function

        return add


def run_check(check: Check, label: str, subject: Any, seed: int) -> Finding:
    """Run one check; whatever the subject raises is a failure that quotes it.

    Each check draws from its own generator, so that its result does not depend on which others run.
    """
    rng = np.random.default_rng([seed, zlib.crc32(check.name.encode())])
    try:
        tried = check.run(subject, rng)
    except (Skip, MissingDependency) as reason:
        return skipped(check, label, str(reason))
    except Fault as fault:
        return Finding(label, check.name, "failed", check.expected, fault.seen, fault.counterexample, check.page)
    except Exception as error:  # a plug-in may raise anything
        seen = f"raised {type(error).__name__}: {error}"
        return Finding(label, check.name, "failed", check.expected, seen, _place(error), check.page)
    return Finding(label, check.name, "passed", check.expected, tried, "", check.page)


def skipped(check: Check, label: str, reason: str) -> Finding:
    """Return the finding of a check that is not tried."""
    return Finding(label, check.name, "skipped", check.expected, reason, "", check.page)


def _place(error: BaseException) -> str:
    """Return the last frame of the plug-in's own code; the innermost one where there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _library(frame.filename)]
    return "".join(f"at {frame.filename}, line {frame.lineno}" for frame in (own or frames)[-1:])


def _library(filename: str) -> bool:
    inside = Path(filename).is_relative_to(_PACKAGE) or filename.startswith("<")
    return inside or any(part in ("site-packages", "dist-packages") for part in Path(filename).parts)


def require(ok: Any, seen: str, counterexample: str = "") -> None:
    """Raise a fault unless ``ok``."""
    if not bool(ok):
        raise Fault(seen, counterexample)


def at(excess: Any, tolerance: float) -> int | None:
    """Return where the largest excess is if it is above the tolerance or not a number, else None."""
    flat = np.asarray(to_numpy(excess), dtype=np.float64).ravel()
    if flat.size == 0:
        return None
    worst = int(np.argmax(np.where(np.isnan(flat), np.inf, flat)))
    return None if flat[worst] <= tolerance else worst


def shown(**values: Any) -> str:
    """Return named numbers so that they can be read: at most six entries of each, four digits."""
    return ", ".join(f"{name} = {_number(value)}" for name, value in values.items())


def _number(value: Any) -> str:
    array = np.asarray(to_numpy(value), dtype=np.float64)
    if array.ndim == 0:
        return f"{float(array):.6g}"
    flat = array.ravel()
    entries = ", ".join(f"{entry:.4g}" for entry in flat[:6])
    return f"({entries}{', ...' if flat.size > 6 else ''})" + (f" of {flat.size} entries" if flat.size > 6 else "")


def differing(first: Any, second: Any) -> str:
    """Return the entry in which two arrays of one shape differ most, with digits enough to see it."""
    one, other = (np.asarray(to_numpy(value), dtype=np.float64) for value in (first, second))
    off = np.where(one == other, 0.0, np.abs(one - other))
    worst = np.unravel_index(int(np.argmax(np.nan_to_num(off, nan=np.inf))), off.shape)
    place = f"entry {tuple(int(i) for i in worst)}: " if worst else ""
    return f"{place}{one[worst]:.10g} and {other[worst]:.10g}"


@contextmanager
def unchanged(call: str, arrays: Mapping[str, Any]) -> Iterator[None]:
    """Raise a fault if a call changes one of its arrays, or the global random state of a library."""
    before, states = {name: _bits(array) for name, array in arrays.items()}, _random_states()
    yield
    for name, array in arrays.items():
        require(_bits(array) == before[name], f"{call} changed its argument {name}.")
    for name, state in _random_states().items():
        drew = f"{call} drew from the global random state of {name}; draw from the caller's seed."
        require(states.get(name, state) == state, drew)


def _bits(array: Any) -> bytes:
    if hasattr(array, "tocsr"):
        array = array.data
    return bytes(np.ascontiguousarray(to_numpy(array)).tobytes())


def _random_states() -> dict[str, bytes]:
    legacy: Any = np.random.get_state(legacy=False)  # noqa: NPY002  # looked at, never drawn from
    states = {"random": repr(random.getstate()).encode(), "numpy": repr(legacy["state"]["pos"]).encode()}
    states["numpy"] += legacy["state"]["key"].tobytes()
    torch = sys.modules.get("torch")
    if torch is not None:
        states["torch"] = torch.get_rng_state().numpy().tobytes()
    return states


def reference() -> Any:
    """Return the package of exact solutions; the check that needs it is skipped where cvxpy is missing."""
    from minmaxcon import reference as package

    cvxpy_module()
    return package


def cvxpy_module() -> Any:
    """Return cvxpy; the check that needs it is skipped where it is missing."""
    from minmaxcon.reference.solver import load_cvxpy

    return load_cvxpy("checks against exact solutions")


def apart(first: Any, second: Any) -> float:
    """Return the largest difference of two arrays relative to their largest entry; infinite where shapes differ."""
    one, other = (np.asarray(to_numpy(value), dtype=np.float64) for value in (first, second))
    if one.shape != other.shape:
        return np.inf
    if one.size == 0:
        return 0.0
    difference = np.where(one == other, 0.0, np.abs(one - other))
    size = max(float(np.abs(one).max()), float(np.abs(other).max()), 1e-12)
    return float(np.nan_to_num(difference.max() / size, nan=np.inf))


def other_engine(array: Any) -> Namespace:
    """Return the functions of the other array engine."""
    return engine("torch" if namespace(array).name == "numpy" else "numpy")
