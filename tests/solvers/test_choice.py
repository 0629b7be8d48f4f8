"""The automatic choice on the gallery: what is promised of a solve without a solver."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

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
