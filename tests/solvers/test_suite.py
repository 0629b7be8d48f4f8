"""Every problem of the table with every solver, against the reference; and no solver asks the reference."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.solvers.repair import measure
from tests.cases import ORACLES, PROBLEMS, SOLVERS, optimum, problem, span

CONVEX = [name for name, case in PROBLEMS.items() if case.convex and case.reference]


@pytest.mark.parametrize("name", CONVEX)
def test_sfls_is_certified_and_right(name: str) -> None:
    solution = mm.solve(problem(name), SOLVERS["sfls"](), seed=0)
    best = float(optimum(name).objective)
    assert solution.feasible
    certificate = solution.certificate
    scale = 1e-6 * (1 + abs(best))
    assert certificate.lower - scale <= best <= certificate.upper + scale
    assert solution.objective == pytest.approx(certificate.upper)
    first = float(np.max(solution.trace["r"][solution.trace["phase"] == "level"]))
    assert (solution.objective - best) <= 0.02 * max(span(name, first), 0.0) + 2e-3
    if solution.status is mm.Status.SOLVED:
        assert (solution.objective - best) <= 0.005 * span(name, first) + 1e-6


@pytest.mark.parametrize("name", PROBLEMS)
def test_iqrc_over_sfls_over_smd_works(name: str) -> None:
    start = problem(name)
    solution = mm.solve(start, SOLVERS["iqrc"](), seed=0)
    assert solution.feasible
    assert solution.certificate.lower == -np.inf
    if PROBLEMS[name].convex and PROBLEMS[name].reference:
        objective, _ = measure(start, start.start_point(1))
        best = float(optimum(name).objective)
        assert solution.objective - best <= 0.5 * max(float(objective[0]) - best, 0.0) + 0.05


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize("name", ["fair_auc_inter", "quadratic", "worst_group"])
def test_every_oracle_serves(name: str, oracle: str) -> None:
    solution = mm.solve(problem(name), mm.SFLS(oracle=ORACLES[oracle](), levels=12), seed=0)
    best = float(optimum(name).objective)
    assert solution.feasible
    assert solution.certificate.lower <= best + 1e-6
    assert solution.objective >= best - 1e-6


@pytest.mark.parametrize("output", ["best", "last", "random"])
def test_the_iterate_that_iqrc_returns(output: str) -> None:
    solver = mm.IQRC(oracle=mm.SFLS(oracle=mm.SMD(steps=100, batch_size=20), levels=2), iterations=5, output=output)
    solution = mm.solve(problem("quadratic"), solver, seed=0)
    rows = solution.trace["objective"]
    assert np.min(np.abs(rows - solution.objective)) < 1e-12 or output == "best"
    if output == "best":
        assert solution.objective <= rows[solution.trace["violation"] <= 0].min() + 1e-12
    if output == "last":
        assert solution.objective == rows[-1]


def test_no_solver_asks_the_reference() -> None:
    script = (
        "import sys; sys.modules['cvxpy'] = None; sys.modules['clarabel'] = None\n"
        "import minmaxcon as mm\nfrom tests.cases import PROBLEMS, SOLVERS\n"
        "for name, case in PROBLEMS.items():\n"
        "    for solver in SOLVERS.values():\n"
        "        mm.solve(case.build(), solver(), seed=0, budget=800)\n"
        "print('solved', len(PROBLEMS))"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=root)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["solved", str(len(PROBLEMS))]
