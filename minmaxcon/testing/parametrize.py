"""One pytest case a check, for the tests of a plug-in's own package."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from minmaxcon.errors import InvalidInput
from minmaxcon.testing.parts import (
    Part,
    constraint_part,
    generator_part,
    oracle_part,
    problem_parts,
    run_parts,
    solver_part,
    suite_names,
)
from minmaxcon.testing.report import CheckFailed

__all__ = ["PendingCheck", "parametrize_checks"]


@dataclass(eq=False)
class _Lazy:
    """An object that is built when the first of its checks runs, and its parts."""

    given: Any
    parts_of: Callable[[Any], list[Part]]

    @cached_property
    def parts(self) -> list[Part]:
        """The parts of the object."""
        return self.parts_of(self.given() if self.late else self.given)

    @property
    def late(self) -> bool:
        """Whether a function makes the object."""
        return inspect.isfunction(self.given) or inspect.ismethod(self.given)


def _lazy(given: Any, parts_of: Callable[[Any], list[Part]]) -> _Lazy:
    """Return the parts to be; those of an object that is there already are made, so that it is refused at once."""
    found = _Lazy(given, parts_of)
    if not found.late:
        _ = found.parts
    return found


def _constraint(given: Any) -> list[Part]:
    if not isinstance(given, tuple) or len(given) not in (3, 4):
        raise InvalidInput("constraint", given, "must be a tuple: constraint, primal, data and, if wanted, start.")
    return [constraint_part(*given)]


def _pair(given: Any) -> tuple[Any, ...]:
    return given if isinstance(given, tuple) and len(given) == 2 else (given,)


@dataclass(frozen=True)
class PendingCheck:
    """A check that waits to be called.

    Attributes
    ----------
    name : str
        The kind of object and the check's name: the id of the pytest case.
    """

    name: str
    kinds: tuple[str, ...] = field(repr=False)
    check: str = field(repr=False)
    source: _Lazy = field(repr=False)
    seed: int = field(repr=False)

    def __call__(self) -> None:
        """Run the check on every part that it applies to.

        Raises
        ------
        CheckFailed
            If it fails on one.
        """
        import pytest

        parts = [part for part in self.source.parts if part.kind in self.kinds]
        findings = run_parts(parts, self.seed, (self.check,))
        failures = [str(finding) for finding in findings if finding.status == "failed"]
        if failures:
            raise CheckFailed("\n\n".join(failures))
        if all(finding.status == "skipped" for finding in findings):
            pytest.skip("; ".join(dict.fromkeys(finding.seen for finding in findings)) or "it has no such part")


def parametrize_checks(
    *,
    generator: Any = None,
    constraint: Any = None,
    problem: Any = None,
    oracle: Any = None,
    solver: Any = None,
    seed: int = 0,
) -> Any:
    """Return a decorator that makes one pytest case of every check, each run when its turn comes.

    Parameters
    ----------
    generator : DistanceGenerator, InnerBlock, PerspectiveGenerator or function, optional
        What to check, or a function without arguments that returns it and is called when the first case runs.
    constraint : tuple or function, optional
        Constraint, primal, data and, if wanted, start, as :func:`check_constraint` takes them, or a function that
        returns them.
    problem : MinMaxProblem or function, optional
        A problem; its geometry, inner blocks and functions are checked too.
    oracle : Oracle, tuple or function, optional
        An oracle, or an oracle and the problem that it is tried on.
    solver : Solver, tuple or function, optional
        A solver, or a solver and the problem that it is tried on.
    seed : int
        Seed of all that is drawn.

    Returns
    -------
    decorator
        For a test function of one argument, ``check``, which calls it.

    Raises
    ------
    InvalidInput
        If nothing is given, or what is given is of another kind; what a function returns is looked at when its first
        case runs. Also of a problem beside an oracle or solver, which would not be tried on it.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> from minmaxcon.testing import parametrize_checks
    >>> @parametrize_checks(generator=mm.Ball(3, 1.0))
    ... def test_ball(check):
    ...     check()
    """
    import pytest

    for name, method in (("oracle", oracle), ("solver", solver)):
        if problem is not None and method is not None:
            remedy = f"give {name}=({name}, problem) to try it on the problem, or use two decorators."
            raise InvalidInput(name, method, remedy)
    cases: list[PendingCheck] = []
    if generator is not None:
        lazy = _lazy(generator, lambda given: [generator_part(given)])
        cases += _cases("generator", ("generator", "block", "dual") if lazy.late else (lazy.parts[0].kind,), lazy, seed)
    if constraint is not None:
        cases += _cases("constraint", ("constraint",), _lazy(constraint, _constraint), seed)
    if problem is not None:
        lazy = _lazy(problem, problem_parts)
        for kind in ("generator", "block", "dual", "constraint", "problem"):
            cases += _cases({"generator": "primal"}.get(kind, kind), (kind,), lazy, seed)
    if oracle is not None:
        lazy = _lazy(oracle, lambda given: [oracle_part(*_pair(given), seed=seed)])
        cases += _cases("oracle", ("oracle",), lazy, seed)
    if solver is not None:
        lazy = _lazy(solver, lambda given: [solver_part(*_pair(given), seed=seed)])
        cases += _cases("solver", ("solver",), lazy, seed)
    if not cases:
        raise InvalidInput("problem", None, "give a generator, constraint, problem, oracle or solver to check.")
    return pytest.mark.parametrize("check", cases, ids=[case.name for case in cases])


def _cases(prefix: str, kinds: tuple[str, ...], source: _Lazy, seed: int) -> list[PendingCheck]:
    names = dict.fromkeys(name for kind in kinds for name in suite_names(kind))
    return [PendingCheck(f"{prefix}-{name}", kinds, name, source, seed) for name in names]
