"""Every solver and every oracle on every problem of the tables: what is claimed is true."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.core.lower import lower_bound
from tests import cases


def crossed(names: Iterable[str], others: Iterable[str], always: Iterable[str] = ()) -> list[Any]:
    """Return all pairs; promises are those that are neither typical nor of a kind of their own with ``always``."""
    kept = set(always)

    def often(name: str, other: str) -> bool:
        if other in cases.RIVALS:
            return name == "regression_weakly_convex"  # which two of them refuse
        return name in cases.TYPICAL or (other in kept and name not in (*cases.GALLERY, *cases.ALIKE))

    return [
        pytest.param(name, other, marks=() if often(name, other) else pytest.mark.rel)
        for name in names
        for other in others
        if other not in cases.RIVALS or not cases.PROBLEMS[name].convex  # the others stand in averaging/test_rivals
        if other != "iqrc" or name not in (*cases.GALLERY[2:], *cases.ALIKE)  # solved as others are
    ]


@cache
def solved(name: str, solver: str) -> mm.Solution:
    chosen = cases.SOLVERS[solver]()
    if isinstance(chosen, mm.IQRC):
        chosen.iterations = cases.PROBLEMS[name].outer
    elif isinstance(chosen, mm.SFLS):
        chosen.oracle = mm.SMD(steps=cases.PROBLEMS[name].query, batch_size=60)
    return mm.solve(cases.problem(name), chosen, seed=0)


def exact(problem: mm.MinMaxProblem, x: Any) -> tuple[float, Any]:
    """Objective and f_i - b_i at x, by a fresh exact pass."""
    like = problem.start_point()
    values = problem.at_level(0.0).values(mm.core.problem.namespace(like).asarray(x[None], like))[0]
    return float(values[0]), values[1:] - problem.bounds()[0]


@pytest.mark.parametrize("name, solver", crossed(cases.PROBLEMS, cases.SOLVERS, always=["sfls"]))
def test_what_is_returned_is_what_is_said(name: str, solver: str) -> None:
    if cases.SOLVERS[solver].convex_only and not cases.PROBLEMS[name].convex:
        with pytest.raises(mm.Unsupported, match=r"needs convex functions.*IQRC\(oracle="):
            solved(name, solver)
        return
    said(name, solver)


def said(name: str, solver: str) -> None:
    """Try what the solution says of itself."""
    problem, promised, solution = cases.problem(name), cases.SOLVERS[solver], solved(name, solver)
    objective, constraints = exact(problem, solution.x)
    assert solution.objective == pytest.approx(objective, abs=1e-12)
    assert solution.constraints == pytest.approx(constraints, abs=1e-12)
    assert problem.primal.contains(solution.x, 1e-9)
    assert solution.feasible == bool((constraints <= 0).all())
    if promised.keeps_feasible:
        assert solution.feasible  # every problem of the table has a strictly feasible point
        assert solution.trace["violation"][-1] <= 0
    else:  # what it returns is no worse than where it started
        assert constraints.max() <= max(exact(problem, problem.start_point()[0])[1].max(), 0.0)
    ended = {mm.Status.SOLVED, mm.Status.BUDGET} if solution.feasible else {mm.Status.BUDGET}
    assert solution.status in ended
    assert solution.certificate.upper == (solution.objective if solution.feasible else np.inf)


@pytest.mark.parametrize(
    "name",
    cases.promises(
        [n for n, case in cases.PROBLEMS.items() if case.convex],
        set(cases.PROBLEMS) - {*cases.GALLERY, *cases.ALIKE},
    ),
)
def test_sfls_solves_every_convex_problem_within_its_tolerance(name: str) -> None:
    solution, best = solved(name, "sfls"), float(cases.optimum(name).objective)
    first = solution.trace["r"][np.isfinite(solution.trace["r"])][0]
    assert solution.status is mm.Status.SOLVED
    assert -1e-7 <= solution.objective - best <= 0.02 * (first - best) + 1e-7
    assert solution.certificate.lower <= best + 1e-7 <= solution.certificate.upper + 2e-7
    assert solution.certificate.gap <= 0.02 * (first - solution.certificate.lower) + 1e-9
    assert solution.certificate.kind == "exact on the data"


@pytest.mark.parametrize("name, _", crossed([n for n, case in cases.PROBLEMS.items() if case.reference], ["iqrc"]))
def test_iqrc_approaches_the_optimum_of_a_convex_problem(name: str, _: str) -> None:
    """Quickly, without a lower bound: from 10% of r_0 - f*, which the default settings bring to about 1%."""
    solution, problem = solved(name, "iqrc"), cases.problem(name)
    best = float(cases.optimum(name).objective)
    first = exact(problem, problem.start_point()[0])[0] if name != "quadratic_infeasible_start" else best + 30.0
    assert -1e-7 <= solution.objective - best <= 0.1 * (first - best)
    # the bound on the distance from the proximal point falls by half at least
    stationarity = solution.trace["stationarity"][np.isfinite(solution.trace["stationarity"])]
    assert stationarity.min() <= 0.5 * stationarity[0]


@pytest.mark.parametrize(
    "name, oracle",
    crossed(
        [n for n, case in cases.PROBLEMS.items() if case.reference and n not in cases.ALIKE],
        cases.ORACLES,
        ["mirror_prox"],
    ),
)
def test_every_oracle_bounds_every_level_from_below(name: str, oracle: str) -> None:
    """One short query: the duals give D <= H, and the point it gives lies in X."""
    problem = cases.problem(name)
    first = exact(problem, problem.start_point()[0])[0]
    level = problem.at_level(first - 0.1)
    start = mm.Start(problem.start_point(), None, mm.Position.start(np.random.default_rng(0)))
    found = cases.ORACLES[oracle]().query(level, start)
    below = lower_bound(level, found.weights, found.scaled, found.x)[0]
    assert below <= level_value(name, first - 0.1) + 1e-7
    assert np.isfinite(below)
    assert bool(problem.primal.contains(found.x, 1e-7).all())
    weights = np.asarray(found.weights)[0]
    assert (weights >= -1e-12).all()
    assert weights.sum() == pytest.approx(1.0)
    assert found.failure == (None,)


@cache
def level_value(name: str, level: float) -> float:
    from minmaxcon.reference import level_value as reference

    return float(reference(cases.problem(name), level))


@pytest.mark.parametrize("name", cases.promises(["fair_auc_inter", "worst_group"]))
def test_sfls_takes_any_oracle(name: str) -> None:
    """Full subgradients in the place of mirror descent: the same certificate, from another method."""
    solver = mm.SFLS(oracle=cases.SwitchingSubgradient(60), levels=10, tolerance=0.1, growth=1.0)
    solution = mm.solve(cases.problem(name), solver)
    best = float(cases.optimum(name).objective)
    assert solution.feasible
    assert solution.certificate.lower <= best + 1e-7 <= solution.objective + 2e-7
    first = solution.trace["r"][np.isfinite(solution.trace["r"])][0]
    assert solution.objective - best <= 0.1 * (first - best)


BLOCKED = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("cvxpy", "clarabel"):
            raise ImportError("blocked: " + name)

sys.meta_path.insert(0, Refuse())
import numpy as np
import minmaxcon as mm
from tests import cases

for name in {TYPICAL}:
    for solver in cases.SOLVERS.values():
        if solver.convex_only and not cases.PROBLEMS[name].convex:
            continue
        solution = mm.solve(cases.problem(name), solver(), seed=0, budget=100)
        done = solution.steps >= 100 or solution.status is mm.Status.SOLVED
        assert np.isfinite(solution.objective) and done, (name, solution)
assert not {"cvxpy", "clarabel"} & set(sys.modules)
try:  # the block works: the reference itself cannot be used
    cases.optimum("quadratic")
except mm.MissingDependency as error:
    print(error.package)
"""


def test_no_solver_calls_the_reference() -> None:
    """Every solver on typical problems in a process where cvxpy cannot be imported."""
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    found = subprocess.run(
        [sys.executable, "-c", BLOCKED.replace("{TYPICAL}", repr(cases.TYPICAL))],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() in {"cvxpy", "clarabel"}
