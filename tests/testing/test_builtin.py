"""The kit on what is built in: no failure. One case an object; whole tables are promises of reliability."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.geometry import PerspectiveGenerator
from minmaxcon.testing import Report, check_constraint, check_generator, check_oracle, check_problem, check_solver
from minmaxcon.testing.constraint import smallest_curvature
from minmaxcon.testing.problem import problem_parts
from minmaxcon_problems.fair_auc.target.problem import Target, build_target_problem
from tests.cases import ALIKE, ORACLES, PROBLEMS, SOLVERS, fair_auc, labelled, problem
from tests.geometry.cases import DUALS, GENERATORS, promise, random_block, random_generator
from tests.problem_library import HalfSquare
from tests.testing.planted_faults import found

BLOCKS = {f"{name}_{i}": block for name, blocks in DUALS.items() for i, block in enumerate(blocks) if block is not None}

# A quick run takes one of each kind; `pytest -m rel` takes the whole tables.
QUICK_DUALS = ("plain", "one_level", "box_off_center", "simplex_corner", "every_kind")
QUICK_BLOCKS = tuple(name for name in BLOCKS if name.rpartition("_")[0] in QUICK_DUALS)
QUICK_PROBLEMS = ("mean_gap", "cvar", "mixed_geometry", "regression_weakly_convex")


def passes(report: Report) -> None:
    assert len(report) > 5
    assert report.passed, str(report)


@pytest.mark.parametrize("name", GENERATORS)
def test_generators(name: str) -> None:
    passes(check_generator(GENERATORS[name]))


@pytest.mark.parametrize("name", QUICK_BLOCKS)
def test_inner_blocks(name: str) -> None:
    passes(check_generator(BLOCKS[name]))


@pytest.mark.parametrize("name", QUICK_DUALS)
def test_perspective_generators(name: str) -> None:
    report = check_generator(PerspectiveGenerator(DUALS[name], "theorem"))
    passes(report)
    assert {finding.check: finding.status for finding in report}["strong_convexity"] == "passed"


def test_a_constant_below_the_theorem_claims_no_modulus() -> None:
    report = check_generator(PerspectiveGenerator(DUALS["every_kind"], 0.5))
    passes(report)
    (skipped,) = report.having("skipped")
    assert skipped.check == "strong_convexity"
    assert "no modulus is claimed" in skipped.seen


@promise
@pytest.mark.parametrize("name", DUALS)
def test_all_blocks_and_perspective_generators(name: str) -> None:
    for block in DUALS[name]:
        if block is not None:
            passes(check_generator(block))
    for weight in ("free", "theorem"):
        passes(check_generator(PerspectiveGenerator(DUALS[name], weight)))


@promise
@pytest.mark.parametrize("seed", range(20))
def test_random_geometries(seed: int) -> None:
    rng = np.random.default_rng(seed)
    passes(check_generator(random_generator(rng), seed=seed))
    blocks = [random_block(rng) for _ in range(3)]
    for block in blocks:
        if block is not None:
            passes(check_generator(block, seed=seed))
    passes(check_generator(PerspectiveGenerator(blocks, "theorem"), seed=seed))


@pytest.mark.parametrize("name", QUICK_PROBLEMS)
def test_problems(name: str) -> None:
    passes(check_problem(problem(name)))


@promise
@pytest.mark.parametrize("name", [name for name in PROBLEMS if name not in ALIKE])
def test_all_problems(name: str) -> None:
    passes(check_problem(problem(name), seed=1))


def test_several_runs_and_single_precision() -> None:
    passes(check_problem(fair_auc(kappa=[0.1, 0.2], rows=labelled(n=60), dtype="float32")))


def test_a_problem_of_surrogates_is_checked_as_far_as_it_goes() -> None:
    asked = Target(metric="inter_group", max_gap=0.05, objective="quadratic_auc")
    target = build_target_problem(labelled(n=120), asked)
    report = check_problem(target)
    passes(report)
    passed = {(finding.subject, finding.check) for finding in report.having("passed")}
    assert {subject for subject, _ in passed} >= {"primal", "dual", "objective", "problem"}
    side = "constraints[0] AUC gap, upper side"
    assert {(side, name) for name in ("shapes", "unbiased", "gradient", "pure", "run_axis", "engines")} <= passed
    assert {("problem", "fused"), ("problem", "sampling")} <= passed

    faithful = target.objective.evaluate

    def turned(x: Any, batch: Any) -> mm.Evaluation:
        given = faithful(x, batch)
        return mm.Evaluation(given.F, given.G, lambda y, a: -given.pullback(y, a))

    target.objective.evaluate = turned  # a wrong sign is found though slopes are read from tables
    (objective,) = [part for part in problem_parts(target) if part.label == "objective"]
    assert found(objective, "gradient").status == "failed"


def test_a_network_has_no_cvxpy_form_and_hides_its_parameters_from_autograd() -> None:
    """Its own gradient is right by differences."""
    network = fair_auc(kappa=0.2, rows=labelled(n=120), model=mm.mlp(3, 2), engine="torch")
    report = check_constraint(network.objective, network.primal, network.data, start=network.start)
    passes(report)
    skipped = {finding.check: finding.seen for finding in report.having("skipped")}
    assert "no cvxpy form" in skipped["reference_value"]
    assert "autograd" in skipped["autograd"]


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

    least = [
        smallest_curvature(gradient, 1e-6 * rng.standard_normal(4), np.linalg.qr(rng.standard_normal((4, 4)))[0])[0]
        for _ in range(50)
    ]
    assert min(least) >= 0.0
    bent = smallest_curvature(lambda x: x * [1.0, -0.5, 2.0, 0.0], np.zeros(4), np.eye(4))
    assert bent[0] == pytest.approx(-0.5)
    assert abs(bent[1]) == pytest.approx([0.0, 1.0, 0.0, 0.0])


def test_an_oracle() -> None:
    passes(check_oracle(mm.SMD(steps=40, batch_size=10, block=10)))


@promise
@pytest.mark.parametrize("name", [name for name in ORACLES if name not in ("inverse_sqrt", "theorem_weight")])
def test_all_oracles(name: str) -> None:
    passes(check_oracle(ORACLES[name]()))


@promise
@pytest.mark.parametrize("name", ["mirror_prox", "variance_reduced"])
def test_an_oracle_of_each_kind_on_another_problem(name: str) -> None:
    passes(check_oracle(ORACLES[name](), problem("mean_gap"), tolerance=0.3))


def test_a_solver() -> None:
    passes(check_solver(mm.SFLS(oracle=mm.SMD(steps=40, batch_size=10), levels=4, tolerance=0.04)))


@promise
@pytest.mark.parametrize("name", SOLVERS)
def test_all_solvers(name: str) -> None:
    passes(check_solver(SOLVERS[name](), None if name == "sfls" else problem("quadratic")))
