"""Objects and the suites that they are checked by."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minmaxcon.arrays import to_numpy
from minmaxcon.checks import number, seed_number
from minmaxcon.core import MinMaxProblem, Oracle, RefreshedProblem, Solver, Source, StochasticMinMaxConstraint
from minmaxcon.errors import InvalidInput
from minmaxcon.geometry import DistanceGenerator, InnerBlock, PerspectiveGenerator
from minmaxcon.testing import constraint_purity, oracle_purity, purity
from minmaxcon.testing.blocks import BLOCK
from minmaxcon.testing.constraint_laws import CONSTRAINT
from minmaxcon.testing.duals import DUAL
from minmaxcon.testing.functions import Function
from minmaxcon.testing.generator_laws import GENERATOR
from minmaxcon.testing.harness import Check, Suite, run_check, skipped
from minmaxcon.testing.oracle_laws import ORACLE
from minmaxcon.testing.problem_laws import PROBLEM, single_run
from minmaxcon.testing.report import Finding
from minmaxcon.testing.solver_laws import SOLVER
from minmaxcon.testing.toys import mixed_toy, robust_toy
from minmaxcon.testing.trials import OracleTrial, SolverTrial, without_noise

__all__ = [
    "Part",
    "all_checks",
    "constraint_part",
    "generator_part",
    "oracle_part",
    "problem_parts",
    "run_parts",
    "solver_part",
    "suite_names",
]

del constraint_purity, oracle_purity, purity  # imported for the checks that they add to the suites


_SUITES: dict[str, Suite] = {
    "generator": GENERATOR,
    "block": BLOCK,
    "dual": DUAL,
    "constraint": CONSTRAINT,
    "problem": PROBLEM,
    "oracle": ORACLE,
    "solver": SOLVER,
}


@dataclass(frozen=True, eq=False)
class Part:
    """An object and the suite that it is checked by.

    Attributes
    ----------
    kind : str
        ``generator``, ``block``, ``dual``, ``constraint``, ``problem``, ``oracle`` or ``solver``.
    label : str
        What findings call it.
    subject : object
        What the suite's checks take.
    """

    kind: str
    label: str
    subject: Any

    @property
    def suite(self) -> Suite:
        """The checks of its kind."""
        return _SUITES[self.kind]


def all_checks() -> tuple[Check, ...]:
    """Return every check of every kind."""
    return tuple(check for suite in _SUITES.values() for check in suite)


def suite_names(kind: str) -> tuple[str, ...]:
    """Return the names of the checks of a kind."""
    return tuple(check.name for check in _SUITES[kind])


_SURROGATES = 1e-2  # how exact the slopes of surrogates must be: they may be read from tables

_FIRST = "shapes"  # of a function: where it fails, all that evaluates the function would repeat the failure


def run_parts(parts: Iterable[Part], seed: int, only: Collection[str] | None = None) -> list[Finding]:
    """Run the checks of some parts in turn; what would only repeat a failure is skipped, and says so.

    Parameters
    ----------
    parts : iterable of Part
        The parts.
    seed : int
        Seed of all that is drawn.
    only : collection of str, optional
        Names of the checks that are wanted; all by default. Those that they come after are run, not returned.
    """
    found: list[Finding] = []
    broken: list[str] = []
    for part in parts:
        ended: dict[str, Finding] = {}
        if part.kind == "constraint":
            ended[_FIRST] = _run(part, _FIRST, seed)
            if ended[_FIRST].status == "failed":
                broken.append(part.label)
        for check in part.suite:
            if only is not None and check.name not in only:
                continue
            if check.name not in ended:
                ended[check.name] = _next(part, check, seed, ended, broken)
            found.append(ended[check.name])
    return found


def _run(part: Part, name: str, seed: int) -> Finding:
    (check,) = (check for check in part.suite if check.name == name)
    return run_check(check, part.label, part.subject, seed)


def _next(part: Part, check: Check, seed: int, ended: dict[str, Finding], broken: list[str]) -> Finding:
    if part.kind == "constraint" and ended[_FIRST].status == "failed":
        return skipped(check, part.label, f"after {_FIRST} is mended")
    if part.kind == "problem" and broken:
        return skipped(check, part.label, f"after {_FIRST} of {', '.join(broken)} is mended")
    for name in check.after:
        ended.setdefault(name, _run(part, name, seed))
        if ended[name].status == "failed":
            return skipped(check, part.label, f"after {name} is mended")
    finding = run_check(check, part.label, part.subject, seed)
    for other in ended.values():
        same = (finding.seen, finding.counterexample) == (other.seen, other.counterexample)
        if finding.status == other.status == "failed" and same and finding.seen.startswith("raised "):
            return skipped(check, part.label, f"after {other.check} is mended: the same exception at the same place")
    return finding


def _instance(argument: str, value: Any, kinds: Any, need: str) -> None:
    if not isinstance(value, kinds):
        raise InvalidInput(argument, value, f"must be {need}.")


def generator_part(generator: Any, label: str = "generator") -> Part:
    """Return the checks of a geometry, an inner block or a perspective generator."""
    need = "a DistanceGenerator, an InnerBlock or a PerspectiveGenerator"
    _instance("generator", generator, (DistanceGenerator, InnerBlock, PerspectiveGenerator), need)
    if isinstance(generator, DistanceGenerator):
        return Part("generator", label, generator)
    if isinstance(generator, InnerBlock):
        return Part("block", label, generator)
    return Part("dual", label, generator)


def constraint_part(constraint: Any, primal: Any, data: Any, start: Any = None, label: str | None = None) -> Part:
    """Return the checks of a constraint on a set and data."""
    _instance("constraint", constraint, StochasticMinMaxConstraint, "a StochasticMinMaxConstraint")
    _instance("primal", primal, DistanceGenerator, "a DistanceGenerator such as Ball(3, 1.0)")
    _instance("data", data, Source, 'a Source; wrap arrays: Finite({"name": array})')
    named = str(constraint.name) if label is None else label
    return Part("constraint", named, Function(constraint, primal, data, _begun(primal, start)))


def _begun(primal: DistanceGenerator, start: Any) -> Any:
    """Return where solvers start, or refuse what is no point of X."""
    if start is None:
        return None
    need = f"must be a finite point of X, an array of shape ({primal.dimension},)."
    try:
        point = np.array(to_numpy(start), dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("start", start, need) from None
    if point.shape != (primal.dimension,) or not np.isfinite(point).all():
        raise InvalidInput("start", start, need)
    if not bool(np.all(primal.contains(point, 1e-6))):
        raise InvalidInput("start", start, "lies outside X: " + need)
    return point


def problem_parts(problem: Any) -> list[Part]:
    """Return the checks of a problem: of its geometry, its inner blocks, their generator, its functions and itself."""
    _instance("problem", problem, MinMaxProblem, "a MinMaxProblem, such as load_problem() returns")
    labels = ["objective"]
    for i, constraint in enumerate(problem.constraints):
        labels.append(f"constraints[{i}]" + (f" {constraint.name}" if constraint.name != "constraint" else ""))
    functions = list(zip(labels, (problem.objective, *problem.constraints), strict=True))
    parts = [generator_part(problem.primal, "primal")]
    seen: list[str] = []
    for label, function in functions:
        if function.dual is not None and (said := repr(function.dual)) not in seen:
            seen.append(said)
            parts.append(generator_part(function.dual, f"inner block of {label}"))
    parts.append(generator_part(PerspectiveGenerator([f.dual for _, f in functions], "theorem"), "dual"))
    whole_parts = [constraint_part(f, problem.primal, problem.data, problem.start, label) for label, f in functions]
    whole_parts.append(Part("problem", "problem", problem))
    if isinstance(problem, RefreshedProblem):
        for i, part in enumerate(whole_parts[:-1]):
            whole_parts[i] = replace(part, subject=replace(part.subject, slopes=_SURROGATES))
    return [*parts, *whole_parts]


def _share(tolerance: Any) -> float:
    return number("tolerance", tolerance, "must be a positive number, a share such as 0.1.", above=0.0)


def _single(problem: MinMaxProblem) -> MinMaxProblem:
    """Return a problem of one run on finite data, or refuse what is none."""
    _instance("problem", problem, MinMaxProblem, "a MinMaxProblem on finite data")
    if problem.data.size is None:
        raise InvalidInput(
            "problem", problem.name, "must be a MinMaxProblem on finite data: nothing is exact on a stream."
        )
    return single_run(problem)


def oracle_part(oracle: Any, problem: Any = None, *, tolerance: Any = 0.1, seed: int = 0) -> Part:
    """Return the checks of an oracle."""
    _instance("oracle", oracle, Oracle, "an Oracle such as SMD()")
    single = _single(robust_toy(200, seed=1) if problem is None else problem)
    given = () if problem is None or isinstance(single, RefreshedProblem) else (without_noise(single),)
    quiet = (robust_toy(1), mixed_toy(), *given)
    return Part(
        "oracle",
        type(oracle).__name__,
        OracleTrial(oracle, single, quiet, _share(tolerance), seed_number("seed", seed)),
    )


def solver_part(solver: Any, problem: Any = None, *, tolerance: Any = 0.05, seed: int = 0) -> Part:
    """Return the checks of a solver."""
    _instance("solver", solver, Solver, "a Solver such as SFLS()")
    single = _single(robust_toy(200, seed=1) if problem is None else problem)
    return Part(
        "solver", type(solver).__name__, SolverTrial(solver, single, _share(tolerance), seed_number("seed", seed))
    )
