"""Checks in plain tables, their findings, and the numbers that a finding shows."""

from __future__ import annotations

import traceback
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np

from minmaxcon.arrays import to_numpy
from minmaxcon.checks import seed_number
from minmaxcon.errors import InvalidInput, MissingDependency, Unsupported
from minmaxcon.testing.report import Finding, Outcome, Report

__all__ = [
    "Check",
    "Fault",
    "Findings",
    "Part",
    "Skip",
    "apart",
    "at",
    "bounded",
    "differing",
    "exact_solutions",
    "report_of",
    "require",
    "require_kind",
    "shown",
]

_PACKAGE = Path(__file__).parents[1]


class Fault(Exception):
    """Raised by a check that found a fault: what was seen, and the numbers of a counterexample by name."""

    def __init__(self, seen: str, **example: Any) -> None:
        super().__init__(seen, example)
        self.seen, self.counterexample = seen, shown(**example)


class Skip(Exception):
    """Raised by a check that cannot be tried; the message is the reason."""


@dataclass(frozen=True, eq=False, slots=True)
class Check:
    """One row of a table of checks: its name, the page that explains it, and the function that runs it.

    The function takes the subject and a NumPy generator, and returns how far it was tried, or raises :class:`Fault` or
    :class:`Skip`. Its docstring is the sentence that findings show as expected. Where a check of the same table that
    is named in ``after`` fails, this one would only repeat the failure.
    """

    name: str
    page: str
    run: Callable[[Any, np.random.Generator], str]
    after: tuple[str, ...] = ()

    @property
    def expected(self) -> str:
        """The theory's demand, one sentence."""
        return " ".join((self.run.__doc__ or "").split())


@dataclass(frozen=True, eq=False)
class Part:
    """An object under its name in findings, and the table of its checks.

    Where the first check of a part in ``after`` fails, the checks of this one would only repeat the failure.
    """

    label: str
    subject: Any
    checks: tuple[Check, ...]
    after: tuple[Part, ...] = ()


class Findings:
    """The findings of some parts: each check runs when it is first asked for.

    Every check draws from a generator of its own, so that its finding does not depend on which others run.
    """

    def __init__(self, parts: Iterable[Part], seed: Any) -> None:
        self.parts, self.seed = tuple(parts), seed_number("seed", seed)
        self._kept: dict[str, dict[str, Finding]] = {part.label: {} for part in self.parts}

    def all(self) -> tuple[Finding, ...]:
        """Return the findings of all checks, in the order of parts and tables."""
        return tuple(self.of(part, check) for part in self.parts for check in part.checks)

    def of(self, part: Part, check: Check) -> Finding:
        """Return the finding of one check; what would only repeat a failure is skipped, and says so."""
        kept = self._kept[part.label]
        if check.name not in kept:
            kept[check.name] = self._made(part, check)
        return kept[check.name]

    def _made(self, part: Part, check: Check) -> Finding:
        broken = [other.label for other in part.after if self.of(other, other.checks[0]).status == "failed"]
        if broken:
            first = part.after[0].checks[0].name
            return _finding(part, check, "skipped", f"until {first} of {', '.join(broken)} passes")
        for before in part.checks:
            if before.name in check.after and self.of(part, before).status == "failed":
                return _finding(part, check, "skipped", f"until {before.name} passes")
        found = _run(part, check, self.seed)
        for other in self._kept[part.label].values():
            same = (found.seen, found.counterexample) == (other.seen, other.counterexample)
            if found.status == other.status == "failed" and same and found.seen.startswith("raised "):
                reason = f"until {other.check} passes: the same exception at the same place"
                return _finding(part, check, "skipped", reason)
        return found


def report_of(title: str, parts: Iterable[Part], seed: Any) -> Report:
    """Return the report of all checks of some parts."""
    return Report(title, Findings(parts, seed).all())


def _finding(part: Part, check: Check, status: Outcome, seen: str, counterexample: str = "") -> Finding:
    return Finding(part.label, check.name, status, check.expected, seen, counterexample, check.page)


def _run(part: Part, check: Check, seed: int) -> Finding:
    """Run one check; whatever the subject raises is a failure that quotes it."""
    rng = np.random.default_rng([seed, zlib.crc32(check.name.encode())])
    try:
        return _finding(part, check, "passed", check.run(part.subject, rng))
    except (Skip, MissingDependency) as reason:
        return _finding(part, check, "skipped", str(reason))
    except Fault as fault:
        return _finding(part, check, "failed", fault.seen, fault.counterexample)
    except Exception as error:  # a plug-in may raise anything
        return _finding(part, check, "failed", f"raised {type(error).__name__}: {error}", _place(error))


def _place(error: BaseException) -> str:
    """Return the last frame of the plug-in's own code; the innermost one where there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _library(frame.filename)]
    return "".join(f"at {frame.filename}, line {frame.lineno}" for frame in (own or frames)[-1:])


def _library(filename: str) -> bool:
    inside = Path(filename).is_relative_to(_PACKAGE) or filename.startswith("<")
    return inside or any(part in ("site-packages", "dist-packages") for part in Path(filename).parts)


def require(ok: Any, seen: str, **example: Any) -> None:
    """Raise a fault unless ``ok``."""
    if not bool(ok):
        raise Fault(seen, **example)


def require_kind(argument: str, value: Any, kinds: Any, need: str) -> None:
    """Refuse an argument that is of another kind."""
    if not isinstance(value, kinds):
        raise InvalidInput(argument, value, f"must be {need}.")


def at(excess: Any, tolerance: float) -> int | None:
    """Return where the largest excess is if it is above the tolerance or not a number, else None."""
    flat = np.asarray(to_numpy(excess), dtype=np.float64).ravel()
    if flat.size == 0:
        return None
    worst = int(np.argmax(np.where(np.isnan(flat), np.inf, flat)))
    return None if flat[worst] <= tolerance else worst


def bounded(excess: Any, tolerance: float, seen: str, **rows: Any) -> None:
    """Raise a fault if an excess (n,) is above the tolerance or not a number.

    The fault quotes the worst row: of the named arrays those that ``seen`` has places for, ``excess`` among them, the
    others as the counterexample.
    """
    worst = at(excess, tolerance)
    if worst is not None:
        row = {name: values[worst] for name, values in {"excess": np.asarray(excess), **rows}.items()}
        quoted = {name for _, name, _, _ in Formatter().parse(seen) if name} | {"excess"}
        told = seen.format(**{name: float(row[name]) for name in quoted})
        raise Fault(told, **{name: value for name, value in row.items() if name not in quoted})


def shown(**values: Any) -> str:
    """Return named numbers so that they can be read: at most six entries of each, four digits."""
    return ", ".join(f"{name} = {_number(value)}" for name, value in values.items())


def _number(value: Any) -> str:
    array = np.asarray(to_numpy(value), dtype=np.float64)
    if array.ndim == 0:
        return f"{float(array):.6g}"
    flat = array.ravel()
    entries = ", ".join(f"{entry:.4g}" for entry in flat[:6])
    return f"({entries}, ...) of {flat.size} entries" if flat.size > 6 else f"({entries})"


def differing(first: Any, second: Any) -> str:
    """Return the entry in which two arrays of one shape differ most, with digits enough to see it."""
    one, other = (np.asarray(to_numpy(value), dtype=np.float64) for value in (first, second))
    off = np.where(one == other, 0.0, np.abs(one - other))
    worst = np.unravel_index(int(np.argmax(np.nan_to_num(off, nan=np.inf))), off.shape)
    place = f"entry {tuple(int(i) for i in worst)}: " if worst else ""
    return f"{place}{one[worst]:.10g} and {other[worst]:.10g}"


def apart(first: Any, second: Any, scale: float = 1e-12) -> float:
    """Return the largest difference of two arrays relative to their largest entry, at least a scale."""
    one, other = (np.asarray(to_numpy(value), dtype=np.float64) for value in (first, second))
    if one.shape != other.shape:
        return np.inf
    if one.size == 0:
        return 0.0
    difference = np.where(one == other, 0.0, np.abs(one - other))
    size = max(float(np.abs(one).max()), float(np.abs(other).max()), scale)
    return float(np.nan_to_num(difference.max() / size, nan=np.inf))


@contextmanager
def exact_solutions() -> Iterator[tuple[Any, Any]]:
    """Give the package of exact solutions and cvxpy; without cvxpy or a cvxpy form the check is skipped."""
    from minmaxcon import reference
    from minmaxcon.reference.solver import load_cvxpy

    cvxpy = load_cvxpy("checks against exact solutions")
    try:
        yield reference, cvxpy
    except Unsupported as reason:
        raise Skip(str(reason)) from None
