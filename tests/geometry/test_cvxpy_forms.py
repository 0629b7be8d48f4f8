"""The cvxpy forms say the same as the closed ones: values, divergences, penalties and membership."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minmaxcon.geometry import DistanceGenerator, InnerBlock
from minmaxcon.reference.solver import load_cvxpy
from tests.geometry.cases import DUALS, each_generator

cp = load_cvxpy("tests")
BLOCKS: list[InnerBlock] = [block for blocks in DUALS.values() for block in blocks if block is not None]
each_block = pytest.mark.parametrize("block", BLOCKS, ids=repr)


def violation(constraints: list[Any]) -> float:
    return max(float(np.max(constraint.violation())) for constraint in constraints)


def constant(value: Any) -> Any:
    variable = cp.Variable(np.shape(value))
    variable.value = value
    return variable


@each_block
@pytest.mark.parametrize("weight", [0.3])
def test_blocks(block: InnerBlock, weight: float) -> None:
    """The perspectives y B(a/y, alpha') and y g(a/y), at a = y alpha."""
    rng = np.random.default_rng(71)
    anchors = 0.9 * block.sample(rng, 5) + 0.1 * block.start
    for alpha, anchor in zip(block.sample(rng, 5), anchors, strict=True):
        a, y = constant(weight * alpha), constant(weight)
        divergence = cp.Constant(0.0) + block.cvxpy_divergence(cp, a, y, anchor)
        assert float(divergence.value) == pytest.approx(weight * block.divergence(alpha, anchor), abs=1e-12)
        penalty = cp.Constant(0.0) + block.cvxpy_penalty(cp, a, y)
        assert float(penalty.value) == pytest.approx(weight * block.penalty(alpha), abs=1e-12)
        assert violation(block.cvxpy_constraints(cp, a, y)) <= 1e-12
        assert violation(block.cvxpy_constraints(cp, constant(alpha + 50.0), y)) > 1e-3


@each_generator
def test_generators(generator: DistanceGenerator) -> None:
    for u in generator.sample(np.random.default_rng(72), 5):
        assert float(generator.cvxpy_value(cp, constant(u)).value) == pytest.approx(generator.value(u), abs=1e-12)
        assert violation(generator.cvxpy_constraints(cp, constant(u))) <= 1e-9
        assert violation(generator.cvxpy_constraints(cp, constant(u + 50.0))) > 1e-3
