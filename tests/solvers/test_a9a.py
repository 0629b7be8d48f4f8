"""Fair AUC on a9a with default settings, against the quadratic program written without the library."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import minmaxcon as mm
from tests.exact_fair_auc import Quadratics

pytestmark = pytest.mark.data
FULL = [pytest.mark.rel, pytest.mark.slow]


def load(folder: Path, metric: str, kappa: object) -> mm.MinMaxProblem:
    return mm.load_problem("fair_auc", data="a9a", data_dir=folder, metric=metric, kappa=kappa)


OTHERS = (("inter_group", 1), ("group", 0), ("intra_group", 0))


@pytest.mark.parametrize("metric, seed", [("inter_group", 0), *(pytest.param(*one, marks=FULL) for one in OTHERS)])
def test_default_settings_reach_the_optimum(shared_data: Path, metric: str, seed: int) -> None:
    """Relative optimality at most 0.6%, constraints met, the certificate's gap at most 1% of r_0 - f*."""
    problem = load(shared_data, metric, 0.2)
    best = float(Quadratics.of(problem).optimum(np.full(2, 1.2))[0])
    solution = mm.solve(problem, mm.SFLS(oracle=mm.SMD()), seed=seed)
    measured = mm.plugin("fair_auc").evaluate(problem, solution.x)
    span = 0.5 - best
    assert (measured["objective"] - best) / span <= 0.006
    assert max(measured["values"]) - 1.2 <= 1e-3
    assert solution.certificate.lower <= best + 1e-6
    assert solution.certificate.gap <= 0.01 * span
    assert solution.status is mm.Status.SOLVED


@pytest.mark.rel
@pytest.mark.slow
def test_twelve_bounds_in_one_solve(shared_data: Path) -> None:
    kappas = np.round(np.geomspace(0.05, 1.0, 12), 3)
    problem = load(shared_data, "inter_group", kappas.tolist())
    quadratics = Quadratics.of(problem)
    best = np.array([float(quadratics.optimum(np.full(2, 1.0 + kappa))[0]) for kappa in kappas])
    solution = mm.solve(problem, mm.SFLS(oracle=mm.SMD()), seed=0)
    assert np.all((solution.objective - best) / (0.5 - best) <= 0.01)
    assert np.all(solution.feasible)
