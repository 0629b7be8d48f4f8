"""The tables of geometries that one suite crosses, and how random points, steps and instances are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from minmaxcon.geometry import (
    Ball,
    BallBlock,
    Box,
    BoxBlock,
    DistanceGenerator,
    DualPoint,
    InnerBlock,
    PerspectiveGenerator,
    Simplex,
    SimplexBlock,
    interval,
    product,
)

Blocks = Sequence[InnerBlock | None]

GENERATORS: dict[str, DistanceGenerator] = {
    "ball": Ball(4, 2.0),
    "ball_one_dimension": Ball(1, 0.5),
    "ball_off_center": Ball(3, 1.5, [3.0, -1.0, 0.2]),
    "box": Box([-1.0, 0.0, -3.0, 2.0], [1.0, 0.5, -1.0, 7.0]),
    "interval": Box([-2.0], [3.0]),
    "box_with_a_fixed_coordinate": Box([-1.0, 2.0], [1.0, 2.0]),
    "simplex": Simplex(5),
    "simplex_two": Simplex(2),
    "simplex_one": Simplex(1),
    "euclidean_product": product([Ball(3, 1.0), Box([-1.0, -1.0], [1.0, 2.0])]),
    "nested_product": product([product([Ball(2, 1.0, [1.0, 0.0]), Box([0.0], [1.0])]), Ball(2, 3.0)]),
    "mixed_product": product([Simplex(3), Ball(2, 1.0), Box([-2.0], [1.0]), Simplex(2)]),
}

DUALS: dict[str, Blocks] = {
    "plain": [None, None, None],
    "one_level": [interval(1.0, 0.5)],
    "interval_flat": [interval(2.0), interval(1.0)],
    "interval_curved": [None, interval(2.0, 0.5), interval(0.5, 2.0)],
    "fair_auc": [interval(3.0, 0.5), BoxBlock([-3.0, -2.0], [3.0, 2.0], 0.5), BoxBlock([-1.0] * 2, [1.0] * 2, 0.5)],
    "box_off_center": [BoxBlock([1.0, -2.0], [2.0, 0.5], [0.0, 1.5]), None],
    "ball_flat": [BallBlock(3, 1.5), BallBlock(2, 0.5)],
    "ball_curved": [BallBlock(2, 2.0, 0.25), None, BallBlock(1, 1.0, 1.0)],
    "simplex_flat": [SimplexBlock(3), SimplexBlock(4)],
    "simplex_warm": [SimplexBlock(3, 0.5, [0.2, 0.3, 0.5]), None, SimplexBlock(2, 2.0)],
    "simplex_corner": [SimplexBlock(1), SimplexBlock(2, 0.0, [0.9, 0.1])],
    "every_kind": [
        None,
        interval(2.0, 0.5),
        BoxBlock([-1.0, 0.0], [2.0, 0.5], [0.0, 1.0]),
        BallBlock(3, 1.5, 0.2),
        BallBlock(2, 1.0),
        SimplexBlock(3, 0.4, [0.2, 0.3, 0.5]),
        SimplexBlock(2),
    ],
}

each_generator = pytest.mark.parametrize("generator", GENERATORS.values(), ids=GENERATORS.keys())
each_dual = pytest.mark.parametrize("blocks", DUALS.values(), ids=DUALS.keys())
each_engine = pytest.mark.parametrize("engine", ["numpy", "torch"])

SEEDS = st.integers(0, 2**32 - 1)
STEPS = st.floats(-4.0, 3.0).map(lambda exponent: 10.0**exponent)
WEIGHTS = st.floats(-2.0, 2.0).map(lambda exponent: 10.0**exponent)
SIZES = st.floats(-2.0, 2.0).map(lambda exponent: 10.0**exponent)


def examples(count: int) -> Callable[..., Any]:
    """Return the settings of a property that is tried ``count`` times a case."""
    return settings(max_examples=count, deadline=None)


def promise(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a promise of reliability at its full count; the ordinary suite runs a smaller count of the same check."""
    return pytest.mark.rel(pytest.mark.slow(function))


def interior(generator: DistanceGenerator, rng: np.random.Generator, count: int, margin: float = 0.02) -> Any:
    """Draw points that keep away from the boundary, where the gradient of an entropy is finite."""
    return (1.0 - margin) * generator.sample(rng, count) + margin * generator.center


def dual_interior(generator: PerspectiveGenerator, rng: np.random.Generator, count: int, margin: float = 0.02) -> Any:
    """Draw dual points with positive weights and inner variables off the faces of a simplex."""
    point = generator.sample(rng, count)
    start = np.concatenate([b.start for b in generator.blocks if b is not None] or [np.zeros(0)])
    return generator.point(
        (1.0 - margin) * point.weights + margin / generator.levels, (1.0 - margin) * point.inner + margin * start
    )


def single(point: DualPoint, j: int) -> DualPoint:
    """Return one of several dual points."""
    return DualPoint(point.log_weights[j], point.weights[j], point.inner[j])


def converted(point: DualPoint, convert: Callable[[Any], Any]) -> DualPoint:
    """Return the dual point with every array converted."""
    return DualPoint(convert(point.log_weights), convert(point.weights), convert(point.inner))


def random_generator(rng: np.random.Generator, depth: int = 1) -> DistanceGenerator:
    """Draw a geometry of any kind: its sizes range over three orders of magnitude."""
    kind = rng.integers(4 if depth else 3)
    d, size = int(rng.integers(1, 6)), float(10.0 ** rng.uniform(-1.0, 1.5))
    if kind == 0:
        return Ball(d, size, size * rng.standard_normal(d) if rng.random() < 0.5 else None)
    if kind == 1:
        ends = np.sort(size * rng.standard_normal((2, d)), axis=0)
        return Box(*ends)
    if kind == 2:
        return Simplex(d)
    return product([random_generator(rng, depth - 1) for _ in range(int(rng.integers(2, 4)))])


def random_block(rng: np.random.Generator) -> InnerBlock | None:
    """Draw an inner block of any kind, with any of its penalties, or none."""
    kind = rng.integers(4)
    p, size = int(rng.integers(1, 4)), float(10.0 ** rng.uniform(-1.0, 1.0))
    curved = rng.random() < 0.6
    if kind == 0:
        return None
    if kind == 1:
        if rng.random() < 0.5:
            return interval(size, float(rng.exponential()) if curved else 0.0)
        ends = np.sort(size * rng.standard_normal((2, p)), axis=0)
        return BoxBlock(*ends, rng.exponential(size=p) * (rng.random(p) < 0.6) if curved else 0.0)
    if kind == 2:
        return BallBlock(p, size, float(rng.exponential()) if curved else 0.0)
    prior = rng.dirichlet(np.ones(p)) + 0.02
    return SimplexBlock(p, float(rng.exponential()) if curved else 0.0, prior / prior.sum())


def random_dual(rng: np.random.Generator) -> PerspectiveGenerator:
    """Draw a dual generator of one to five levels with any blocks and any rule for K."""
    blocks = [random_block(rng) for _ in range(int(rng.integers(1, 6)))]
    rules: list[Any] = ["free", "theorem", "paper", float(10.0 ** rng.uniform(-0.5, 1.0))]
    return PerspectiveGenerator(blocks, rules[int(rng.integers(len(rules)))])
