"""The kit on everything that is built in: no failure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.geometry import PerspectiveGenerator
from minmaxcon.testing import Report, check_constraint, check_generator, check_oracle, check_problem, check_solver
from minmaxcon.testing.constraint import smallest_curvature
from minmaxcon_problems.fair_auc.target.problem import Target, build_target_problem
from tests.cases import ORACLES, PROBLEMS, SOLVERS, fair_auc, labelled, problem
from tests.geometry.cases import DUALS, GENERATORS, promise, random_block, random_generator
from tests.problem_library import HalfSquare

BLOCKS = {f"{name}_{i}": block for name, blocks in DUALS.items() for i, block in enumerate(blocks) if block is not None}

# What a quick run leaves out costs seconds each; `pytest -m rel` runs the whole tables.
QUICK_PROBLEMS = {
    *("fair_auc_inter", "fair_auc_torch", "worst_group_regularised", "mean_gap"),
    *("cvar", "portfolio", "mixed_geometry", "regression_weakly_convex"),
}
ORACLE_SETTINGS = {"steps": 80, "batch_size": 10, "block": 20}
QUICK_ORACLES: dict[str, Any] = {
    "adaptive": lambda: mm.SMD(**ORACLE_SETTINGS),
    "inverse_sqrt": lambda: mm.SMD(**ORACLE_SETTINGS, step_rule=mm.InverseSqrt(0.3)),
    "theorem_weight": lambda: mm.SMD(**ORACLE_SETTINGS, entropy_weight="theorem"),
}
QUICK_SOLVERS: dict[str, Any] = {
    "sfls": lambda: mm.SFLS(oracle=mm.SMD(steps=40, batch_size=10), levels=4, tolerance=0.04),
    "iqrc": lambda: mm.IQRC(oracle=mm.SFLS(oracle=mm.SMD(steps=30, batch_size=10), levels=2), iterations=3),
}


def passes(report: Report) -> None:
    assert len(report) > 5
    assert report.passed, str(report)


@pytest.mark.parametrize("generator", GENERATORS.values(), ids=GENERATORS.keys())
def test_generators(generator: mm.DistanceGenerator) -> None:
    passes(check_generator(generator))


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS.keys())
def test_inner_blocks(block: mm.InnerBlock) -> None:
    passes(check_generator(block))


@pytest.mark.parametrize("blocks", DUALS.values(), ids=DUALS.keys())
@pytest.mark.parametrize("weight", ["free", "theorem"])
def test_perspective_generators(blocks: Any, weight: Any) -> None:
    report = check_generator(PerspectiveGenerator(blocks, weight))
    passes(report)
    claimed = {finding.check: finding.status for finding in report}["strong_convexity"]
    assert claimed == "passed" or weight == "free"


@pytest.mark.parametrize("name", sorted(QUICK_PROBLEMS))
def test_problems(name: str) -> None:
    passes(check_problem(problem(name)))


@promise
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", PROBLEMS)
def test_all_problems(name: str, seed: int) -> None:
    passes(check_problem(problem(name), seed=seed))


@promise
@pytest.mark.parametrize("seed", range(60))
def test_random_geometries(seed: int) -> None:
    rng = np.random.default_rng(seed)
    passes(check_generator(random_generator(rng), seed=seed))
    blocks = [random_block(rng) for _ in range(3)]
    for block in blocks:
        if block is not None:
            passes(check_generator(block, seed=seed))
    passes(check_generator(PerspectiveGenerator(blocks, "theorem"), seed=seed))


def test_several_runs_and_single_precision() -> None:
    passes(check_problem(fair_auc(kappa=[0.1, 0.2], dtype="float32")))


def test_a_problem_of_surrogates_is_checked_as_far_as_it_goes() -> None:
    rows = labelled(n=120)
    report = check_problem(build_target_problem(rows, Target(metric="inter_group", max_gap=0.05)))
    passes(report)
    passed = {(finding.subject, finding.check) for finding in report.having("passed")}
    assert {subject for subject, _ in passed} >= {"primal", "dual", "objective", "problem"}
    side = "constraints[0] AUC gap, upper side"
    assert {(side, name) for name in ("shapes", "unbiased", "gradient", "pure", "run_axis", "engines")} <= passed
    assert {("problem", "fused"), ("problem", "sampling")} <= passed


def test_a_wrong_sign_in_a_surrogate_is_found() -> None:
    target = build_target_problem(labelled(n=120), Target(metric="inter_group", max_gap=0.05))
    faithful = target.objective.evaluate

    def turned(x: Any, batch: Any) -> mm.Evaluation:
        found = faithful(x, batch)
        return mm.Evaluation(found.F, found.G, lambda y, a: -found.pullback(y, a))

    target.objective.evaluate = turned
    assert ("objective", "gradient") in {(found.subject, found.check) for found in check_problem(target).failures}


def test_a_network_has_no_cvxpy_form_and_hides_its_parameters_from_autograd() -> None:
    """Its own gradient is right by differences."""
    report = check_problem(fair_auc(kappa=0.2, model=mm.mlp(3, 2), engine="torch"))
    passes(report)
    skipped = {(finding.subject, finding.check): finding.seen for finding in report.having("skipped")}
    assert "no cvxpy form" in skipped["objective", "reference_value"]
    assert "autograd" in skipped["objective", "autograd"]


def test_a_function_on_a_stream() -> None:
    rng = np.random.default_rng(0)
    rows = [{"points": row} for row in rng.standard_normal((5000, 3))]
    report = check_constraint(HalfSquare(), mm.Ball(3, 2.0), mm.Stream(rows))
    passes(report)
    skipped = {finding.check: finding.seen for finding in report.having("skipped")}
    assert "stream" in skipped["reference_value"]


def test_kinks_are_no_negative_curvature() -> None:
    """Differences of the gradient of a maximum of linear functions jump; along any one direction they only rise."""
    rng = np.random.default_rng(0)
    slopes = rng.standard_normal((400, 4))

    def gradient(x: Any) -> Any:
        return (x @ slopes.T > 0) @ slopes / len(slopes)

    found = [
        smallest_curvature(gradient, 1e-6 * rng.standard_normal(4), np.linalg.qr(rng.standard_normal((4, 4)))[0])[0]
        for _ in range(50)
    ]
    assert min(found) >= 0.0
    bent = smallest_curvature(lambda x: x * [1.0, -0.5, 2.0, 0.0], np.zeros(4), np.eye(4))
    assert bent[0] == pytest.approx(-0.5)
    assert abs(bent[1]) == pytest.approx([0.0, 1.0, 0.0, 0.0])


@pytest.mark.parametrize("oracle", QUICK_ORACLES.values(), ids=QUICK_ORACLES.keys())
def test_oracles(oracle: Any) -> None:
    passes(check_oracle(oracle()))


@promise
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("oracle", ORACLES.values(), ids=ORACLES.keys())
def test_all_oracles(oracle: Any, seed: int) -> None:
    passes(check_oracle(oracle(), seed=seed))
    passes(check_oracle(oracle(), problem("mean_gap"), seed=seed, tolerance=0.3))


@pytest.mark.parametrize("solver", QUICK_SOLVERS.values(), ids=QUICK_SOLVERS.keys())
def test_solvers(solver: Any) -> None:
    passes(check_solver(solver()))


@promise
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS.keys())
def test_all_solvers(solver: Any) -> None:
    passes(check_solver(solver()))
    passes(check_solver(solver(), problem("quadratic")))
