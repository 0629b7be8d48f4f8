"""The automatic choice on the gallery: what is promised of a solve without a solver."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.cli.solve import load_problem
from minmaxcon.results.comparison import Optimum
from tests import cases

CHOICE = Path(__file__).parents[2] / "docs" / "figures" / "choice.py"

SAMPLES = {  # within which the first example is solved, in thousands; half more than today
    "cvar_portfolio": 130,
    "fair_auc": 920,
    "fair_regression": 32,
    "group_dro": 510,
    "group_parity": 66,
    "neyman_pearson": 11,
    "robust_diet": 42,
    "toy": 14,
    "worst_group": 200,
}
QUICK = ["fair_regression", "neyman_pearson", "robust_diet", "toy"]


def example(name: str) -> mm.MinMaxProblem:
    return load_problem(name, mm.plugin(name).examples()[0])


@pytest.mark.parametrize("name", cases.promises(list(SAMPLES), QUICK))
def test_first_examples_are_solved_without_a_setting(name: str) -> None:
    """To 0.5%, by the certificate and in few samples; any seed gives the same, as nothing is random."""
    solution = mm.solve(example(name), seed=3)
    assert solution.status is mm.Status.SOLVED, solution.reason
    assert solution.feasible
    assert solution.samples <= 1000 * SAMPLES[name]


def test_what_measures_the_choice_counts_feasible_points_near_the_optimum() -> None:
    watched = runpy.run_path(str(CHOICE))
    problem: Any = example("toy")
    optimum = Optimum(1.0, "given", 1.0, 2.5, 1.5)  # by the formulas of the gallery's page
    found = watched["measured"](problem, optimum, "auto", 0)
    assert found.infeasible == 0
    assert 0 < found.hits[0.01][0] <= found.hits[0.005][0] <= 14_000
    assert 0.0 < found.hits[0.005][1] <= found.seconds
    elsewhere = Optimum(0.0, "given", 0.0, 2.5, 1.5)  # nobody is within 1% of a value that no point has
    assert not watched["measured"](problem, elsewhere, "auto", 0).hits


@pytest.mark.parametrize(
    "name, options, batch_size, steps",
    [
        ("toy", {"samples": 300_000}, 100, 100),  # 30 passes over so few numbers take no longer than the least
        ("robust_diet", {"samples": 20_000}, 100, 107),  # 30 passes of 360,000 numbers, 101,800 a step
        ("cvar_portfolio", {"scenarios": 4_000, "assets": 300}, 20, 200),  # a pass in samples
        ("cvar_portfolio", {"scenarios": 4_000, "assets": 300}, 1, 359),
        ("toy", {"samples": 500}, 1, 100),
    ],
)
def test_a_first_query_is_as_long_as_the_passes_that_follow(
    name: str, options: dict[str, Any], batch_size: int, steps: int
) -> None:
    """It counts what a pass costs in steps, where a row of one number costs a pass nearly nothing."""
    problem = load_problem(name, options)
    start = mm.Start(problem.start_point(), None, mm.Position.start(np.random.default_rng(0)))
    state = mm.SMD(batch_size=batch_size).begin(problem.at_level(1.0), start, effort=1.0)
    assert state.limit == pytest.approx(steps, rel=0.02)
