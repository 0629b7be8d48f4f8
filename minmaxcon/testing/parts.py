"""Objects and the suites that they are checked by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minmaxcon.core import MinMaxProblem, Oracle, RefreshedProblem, Solver, Source, StochasticMinMaxConstraint
from minmaxcon.errors import InvalidInput
from minmaxcon.geometry import DistanceGenerator, InnerBlock, PerspectiveGenerator
from minmaxcon.testing import constraint_purity, purity
from minmaxcon.testing.blocks import BLOCK
from minmaxcon.testing.constraint_laws import CONSTRAINT
from minmaxcon.testing.duals import DUAL
from minmaxcon.testing.functions import Function
from minmaxcon.testing.generator_laws import GENERATOR
from minmaxcon.testing.harness import Check, Skip, Suite
from minmaxcon.testing.oracle_laws import ORACLE
from minmaxcon.testing.problem_laws import PROBLEM
from minmaxcon.testing.solver_laws import SOLVER
from minmaxcon.testing.toys import robust_toy
from minmaxcon.testing.trials import OracleTrial, SolverTrial

__all__ = [
    "Part",
    "all_checks",
    "constraint_part",
    "generator_part",
    "oracle_part",
    "problem_parts",
    "solver_part",
    "suite_names",
    "whole",
]

del constraint_purity, purity  # imported for the checks that they add to the suites


@dataclass(frozen=True)
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
    suite : Suite
        The checks.
    """

    kind: str
    label: str
    subject: Any
    suite: Suite


_SUITES: dict[str, Suite] = {
    "generator": GENERATOR,
    "block": BLOCK,
    "dual": DUAL,
    "constraint": CONSTRAINT,
    "problem": PROBLEM,
    "oracle": ORACLE,
    "solver": SOLVER,
}


def all_checks() -> tuple[Check, ...]:
    """Return every check of every kind."""
    return tuple(check for suite in _SUITES.values() for check in suite)


def suite_names(kind: str) -> tuple[str, ...]:
    """Return the names of the checks of a kind."""
    return tuple(check.name for check in _SUITES[kind])


def whole(seed: Any) -> int:
    """Return a seed, or refuse what is none."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InvalidInput("seed", seed, "must be a whole number of at least 0.")
    return int(seed)


def _instance(argument: str, value: Any, kinds: Any, need: str) -> None:
    if not isinstance(value, kinds):
        raise InvalidInput(argument, value, f"must be {need}.")


def generator_part(generator: Any, label: str = "generator") -> Part:
    """Return the checks of a geometry, an inner block or a perspective generator."""
    need = "a DistanceGenerator, an InnerBlock or a PerspectiveGenerator"
    _instance("generator", generator, (DistanceGenerator, InnerBlock, PerspectiveGenerator), need)
    if isinstance(generator, DistanceGenerator):
        return Part("generator", label, generator, GENERATOR)
    if isinstance(generator, InnerBlock):
        return Part("block", label, generator, BLOCK)
    return Part("dual", label, generator, DUAL)


def constraint_part(constraint: Any, primal: Any, data: Any, start: Any = None, label: str | None = None) -> Part:
    """Return the checks of a constraint on a set and data."""
    _instance("constraint", constraint, StochasticMinMaxConstraint, "a StochasticMinMaxConstraint")
    _instance("primal", primal, DistanceGenerator, "a DistanceGenerator such as Ball(3, 1.0)")
    _instance("data", data, Source, 'a Source; wrap arrays: Finite({"name": array})')
    named = str(constraint.name) if label is None else label
    return Part("constraint", named, Function(constraint, primal, data, start), CONSTRAINT)


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
    whole_parts.append(Part("problem", "problem", problem, PROBLEM))
    if isinstance(problem, RefreshedProblem):
        whole_parts = [replace(part, suite=Suite(map(_refreshed, part.suite))) for part in whole_parts]
    return [*parts, *whole_parts]


def _refreshed(check: Check) -> Check:
    """Return a check that is skipped: surrogates are tied to the runs at whose points they were made."""

    def run(_subject: Any, _rng: np.random.Generator) -> str:
        raise Skip("the functions are surrogates that each run makes anew at its own point")

    return replace(check, run=run)


def oracle_part(oracle: Any, problem: Any = None, *, tolerance: float = 0.1, seed: int = 0) -> Part:
    """Return the checks of an oracle."""
    _instance("oracle", oracle, Oracle, "an Oracle such as SMD()")
    problem = robust_toy(200, seed=1) if problem is None else problem
    _instance("problem", problem, MinMaxProblem, "a MinMaxProblem on finite data")
    single = problem.take([0]) if problem.runs else problem
    bounds = [float(b) for b in single.bounds()[0]]
    trial = OracleTrial(oracle, single.with_bounds(*bounds), robust_toy(1), float(tolerance), whole(seed))
    return Part("oracle", type(oracle).__name__, trial, ORACLE)


def solver_part(solver: Any, problem: Any = None, *, tolerance: float = 0.05, seed: int = 0) -> Part:
    """Return the checks of a solver."""
    _instance("solver", solver, Solver, "a Solver such as SFLS()")
    problem = robust_toy(200, seed=1) if problem is None else problem
    _instance("problem", problem, MinMaxProblem, "a MinMaxProblem on finite data")
    single = problem.take([0]) if problem.runs else problem
    bounds = [float(b) for b in single.bounds()[0]]
    trial = SolverTrial(solver, single.with_bounds(*bounds), float(tolerance), whole(seed))
    return Part("solver", type(solver).__name__, trial, SOLVER)
