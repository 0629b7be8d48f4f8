"""One pytest case a check, for the tests of a plug-in's own package."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from minmaxcon.errors import InvalidInput
from minmaxcon.testing.harness import Check, run_check
from minmaxcon.testing.parts import (
    Part,
    constraint_part,
    generator_part,
    oracle_part,
    problem_parts,
    solver_part,
    suite_names,
)
from minmaxcon.testing.report import CheckFailed

__all__ = ["PendingCheck", "parametrize_checks"]


@dataclass
class _Lazy:
    """An object that is built when the first of its checks runs, and its parts."""

    given: Any
    parts_of: Callable[[Any], list[Part]]

    @cached_property
    def parts(self) -> list[Part]:
        """The parts of the object."""
        function = inspect.isfunction(self.given) or inspect.ismethod(self.given)
        return self.parts_of(self.given() if function else self.given)


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

        findings = [
            run_check(found, part.label, part.subject, self.seed)
            for part in self.source.parts
            if part.kind in self.kinds
            for found in part.suite
            if _is(found, self.check)
        ]
        failures = [str(finding) for finding in findings if finding.status == "failed"]
        if failures:
            raise CheckFailed("\n\n".join(failures))
        if all(finding.status == "skipped" for finding in findings):
            pytest.skip("; ".join(dict.fromkeys(finding.seen for finding in findings)) or "it has no such part")


def _is(found: Check, name: str) -> bool:
    return found.name == name


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
        Constraint, primal and data, as :func:`check_constraint` takes them, or a function that returns the three.
    problem : MinMaxProblem or function, optional
        A problem; its geometry, inner blocks and functions are checked too.
    oracle : Oracle or function, optional
        An oracle; for a problem of your own use :func:`check_oracle`.
    solver : Solver or function, optional
        A solver; for a problem of your own use :func:`check_solver`.
    seed : int
        Seed of all that is drawn.

    Returns
    -------
    decorator
        For a test function of one argument, ``check``, which calls it.

    Raises
    ------
    InvalidInput
        If nothing is given.

    Examples
    --------
    >>> import minmaxcon as mm
    >>> from minmaxcon.testing import parametrize_checks
    >>> @parametrize_checks(generator=mm.Ball(3, 1.0))
    ... def test_ball(check):
    ...     check()
    """
    import pytest

    cases: list[PendingCheck] = []
    if generator is not None:
        lazy = _Lazy(generator, lambda given: [generator_part(given)])
        function = inspect.isfunction(generator) or inspect.ismethod(generator)
        kinds = ("generator", "block", "dual") if function else (lazy.parts[0].kind,)
        cases += _cases("generator", kinds, lazy, seed)
    if constraint is not None:
        cases += _cases("constraint", ("constraint",), _Lazy(constraint, lambda given: [constraint_part(*given)]), seed)
    if problem is not None:
        lazy = _Lazy(problem, problem_parts)
        for kind in ("generator", "block", "dual", "constraint", "problem"):
            cases += _cases({"generator": "primal"}.get(kind, kind), (kind,), lazy, seed)
    if oracle is not None:
        cases += _cases("oracle", ("oracle",), _Lazy(oracle, lambda given: [oracle_part(given, seed=seed)]), seed)
    if solver is not None:
        cases += _cases("solver", ("solver",), _Lazy(solver, lambda given: [solver_part(given, seed=seed)]), seed)
    if not cases:
        raise InvalidInput("problem", None, "give a generator, constraint, problem, oracle or solver to check.")
    return pytest.mark.parametrize("check", cases, ids=[case.name for case in cases])


def _cases(prefix: str, kinds: tuple[str, ...], source: _Lazy, seed: int) -> list[PendingCheck]:
    names = dict.fromkeys(name for kind in kinds for name in suite_names(kind))
    return [PendingCheck(f"{prefix}-{name}", kinds, name, source, seed) for name in names]
