"""Checks as pytest cases, for the tests of a plug-in's own package."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from minmaxcon.errors import InvalidInput
from minmaxcon.testing.block import BLOCK, DUAL
from minmaxcon.testing.check import Check, Findings, Part
from minmaxcon.testing.constraint import CONSTRAINT, constraint_part
from minmaxcon.testing.generator import GENERATOR, generator_part
from minmaxcon.testing.oracle import ORACLE, oracle_part
from minmaxcon.testing.problem import PROBLEM, problem_parts
from minmaxcon.testing.report import CheckFailed
from minmaxcon.testing.solver import SOLVER, solver_part

__all__ = ["PendingCheck", "parametrize_checks"]

_GENERATORS = (GENERATOR, BLOCK, DUAL)


@dataclass(frozen=True, eq=False)
class PendingCheck:
    """A check that waits to be called.

    Attributes
    ----------
    name : str
        The kind of object and the check's name: the id of the pytest case.

    Examples
    --------
    >>> from minmaxcon.testing import PendingCheck, parametrize_checks
    >>> import minmaxcon as mm
    >>> @parametrize_checks(generator=mm.Ball(3, 1.0))
    ... def test_ball(check: PendingCheck) -> None:
    ...     check()
    """

    name: str
    tables: tuple[tuple[Check, ...], ...] = field(repr=False)
    findings: Callable[[], Findings] = field(repr=False)

    def __call__(self) -> None:
        """Run the check on every part that it applies to.

        Raises
        ------
        CheckFailed
            If it fails on one.
        """
        import pytest

        made, name = self.findings(), self.name.partition("-")[2]
        parts = [part for part in made.parts if part.checks in self.tables]
        found = [made.of(part, check) for part in parts for check in part.checks if check.name == name]
        failures = [str(finding) for finding in found if finding.status == "failed"]
        if failures:
            raise CheckFailed("\n\n".join(failures))
        if all(finding.status == "skipped" for finding in found):
            pytest.skip("; ".join(dict.fromkeys(finding.seen for finding in found)) or "it has no such part")


def parametrize_checks(
    *,
    generator: Any = None,
    constraint: Any = None,
    problem: Any = None,
    oracle: Any = None,
    solver: Any = None,
    seed: int = 0,
) -> Any:
    """Return the ``pytest.mark.parametrize`` of a test function of one argument, ``check``, which calls it.

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
        One pytest case for every check, each run when its turn comes.

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

    def add(given: Any, parts_of: Callable[[Any], list[Part]], kinds: dict[str, tuple[tuple[Check, ...], ...]]) -> None:
        if given is None:
            return
        late = inspect.isfunction(given) or inspect.ismethod(given)
        findings = cache(lambda: Findings(parts_of(given() if late else given), seed))
        if not late:
            present = {part.checks for part in findings().parts}  # made now, so that another kind is refused now
            kinds = {kind: tuple(table for table in tables if table in present) for kind, tables in kinds.items()}
        for kind, tables in kinds.items():
            names = dict.fromkeys(check.name for table in tables for check in table)
            cases.extend(PendingCheck(f"{kind}-{name}", tables, findings) for name in names)

    add(generator, lambda given: [generator_part(given)], {"generator": _GENERATORS})
    add(constraint, _constraint_parts, {"constraint": (CONSTRAINT,)})
    tables = {"primal": GENERATOR, "block": BLOCK, "dual": DUAL, "constraint": CONSTRAINT, "problem": PROBLEM}
    add(problem, problem_parts, {kind: (table,) for kind, table in tables.items()})
    add(oracle, lambda given: [oracle_part(*_pair(given), seed=seed)], {"oracle": (ORACLE,)})
    add(solver, lambda given: [solver_part(*_pair(given), seed=seed)], {"solver": (SOLVER,)})
    if not cases:
        raise InvalidInput("problem", None, "give a generator, constraint, problem, oracle or solver to check.")
    return pytest.mark.parametrize("check", cases, ids=[case.name for case in cases])


def _constraint_parts(given: Any) -> list[Part]:
    if not isinstance(given, tuple) or len(given) not in (3, 4):
        raise InvalidInput("constraint", given, "must be a tuple: constraint, primal, data and, if wanted, start.")
    return [constraint_part(*given)]


def _pair(given: Any) -> tuple[Any, ...]:
    return given if isinstance(given, tuple) and len(given) == 2 else (given,)
