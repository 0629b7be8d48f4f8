"""Closed forms against a conic solver: the minimiser's objective is never above that of any point of the set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from minmaxcon.geometry import DistanceGenerator, DualPoint, PerspectiveGenerator
from minmaxcon.reference import (
    dual_prox_objective,
    prox_objective,
    reference_dual_prox,
    reference_prox,
    reference_support,
)
from tests.figures import Figure
from tests.geometry.cases import (
    GENERATORS,
    SEEDS,
    SIZES,
    STEPS,
    WEIGHTS,
    Blocks,
    dual_interior,
    each_dual,
    each_generator,
    examples,
    interior,
    promise,
    random_dual,
    random_generator,
    single,
)

Gap = tuple[float, float]


def prox_gap(generator: DistanceGenerator, seed: int, size: float, step: float, weight: float) -> Gap:
    """Return how far the closed form's objective lies above the reference's, and how far below; relative."""
    rng = np.random.default_rng(seed)
    anchor, center = interior(generator, rng, 2)
    gradient = size * rng.standard_normal(generator.dimension)
    penalty: dict[str, Any] = {"center": center, "weight": weight} if weight else {}
    point = generator.prox(anchor, gradient, step, **penalty)
    assert generator.contains(point, 1e-12 * (1.0 + np.abs(point).max()))
    closed = prox_objective(generator, point, anchor, gradient, step, **penalty)
    _, reference = reference_prox(generator, anchor, gradient, step, **penalty)
    scale = 1.0 + abs(closed)
    return (closed - reference) / scale, (reference - closed) / scale


def dual_gap(generator: PerspectiveGenerator, seed: int, size: float, step: float) -> Gap:
    rng = np.random.default_rng(seed)
    anchor = single(dual_interior(generator, rng, 1), 0)
    u, v = size * rng.standard_normal(generator.levels), size * rng.standard_normal(generator.inner_dimension)
    point = generator.prox(anchor, u, v, step)
    assert_in_dual_set(generator, point)
    closed = dual_prox_objective(generator, point, anchor, u, v, step)
    _, reference = reference_dual_prox(generator, anchor, u, v, step)
    scale = 1.0 + abs(closed)
    return (closed - reference) / scale, (reference - closed) / scale


def support_gap(generator: PerspectiveGenerator, seed: int, size: float) -> Gap:
    rng = np.random.default_rng(seed)
    u, v = size * rng.standard_normal(generator.levels), size * rng.standard_normal(generator.inner_dimension)
    closed = float(generator.support(u, v).max())
    _, reference = reference_support(generator, u, v)
    return (reference - closed) / (1.0 + abs(closed)), (closed - reference) / (1.0 + abs(closed))


def assert_in_dual_set(generator: PerspectiveGenerator, point: DualPoint) -> None:
    assert point.weights.sum() == pytest.approx(1.0, abs=1e-14)
    assert (point.weights >= 0).all()
    begin = 0
    for block in generator.blocks:
        if block is not None:
            cut = slice(begin, begin + block.dimension)
            assert block.set.contains(point.inner[cut], 1e-12 * (1.0 + block.reach))
            begin = cut.stop


def assert_same(gap: Gap) -> None:
    above, below = gap
    assert above <= 1e-9
    assert below <= 1e-5, "the reference is so much worse that it solved another problem"


@each_generator
@examples(4)
@given(seed=SEEDS, size=SIZES, step=STEPS, weight=WEIGHTS)
def test_prox_with_a_proximal_penalty(
    generator: DistanceGenerator, seed: int, size: float, step: float, weight: float
) -> None:
    assert_same(prox_gap(generator, seed, size, step, weight))


@each_dual
@examples(4)
@given(seed=SEEDS, size=SIZES, step=STEPS)
def test_dual_prox(blocks: Blocks, seed: int, size: float, step: float) -> None:
    assert_same(dual_gap(PerspectiveGenerator(blocks), seed, size, step))


@each_dual
@examples(3)
@given(seed=SEEDS, size=SIZES)
def test_support_is_the_conjugate(blocks: Blocks, seed: int, size: float) -> None:
    assert_same(support_gap(PerspectiveGenerator(blocks), seed, size))


@promise
def test_prox_oracle(figure: Figure) -> None:
    """500 random instances, 250 primal (half with a penalty) and 250 dual: 500 of 500 within 1e-9."""
    rng = np.random.default_rng(20232)
    gaps = []
    for j in range(250):
        size, step, weight = 10.0 ** rng.uniform([-2.0, -3.0, -2.0], [2.0, 2.0, 2.0])
        gaps.append(prox_gap(random_generator(rng), j, size, step, weight * (j % 2)))
        gaps.append(dual_gap(random_dual(rng), j, size, step))
    above, below = np.array(gaps).T
    figure.count((above <= 1e-9).sum(), len(gaps), "as good as the conic solver's points, to 1e-9")
    figure.largest("relative excess", above.max())
    assert (above <= 1e-9).sum() == 500
    assert below.max() <= 1e-5


@pytest.mark.parametrize("name", ["ball_off_center", "box", "simplex", "mixed_product"])
@pytest.mark.parametrize("fault", [{"sign": -1.0}, {"step": 0.5}, {"weight": 0.0}], ids=["sign", "step", "penalty"])
def test_the_comparison_can_fail(name: str, fault: dict[str, float]) -> None:
    generator, rng = GENERATORS[name], np.random.default_rng(9)
    (anchor, center), g = interior(generator, rng, 2, 0.5), rng.standard_normal(generator.dimension)
    _, reference = reference_prox(generator, anchor, g, 0.3, center=center, weight=2.0)
    used = {"sign": 1.0, "step": 0.3, "weight": 2.0, **fault}
    point = generator.prox(anchor, used["sign"] * g, used["step"], center=center, weight=used["weight"])
    assert prox_objective(generator, point, anchor, g, 0.3, center=center, weight=2.0) > reference + 1e-4
