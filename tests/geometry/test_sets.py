"""Diameters, linear minima, membership, samples and norms, against brute force."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
import pytest

from minmaxcon.geometry import (
    Ball,
    BallBlock,
    Box,
    BoxBlock,
    DistanceGenerator,
    EuclideanGenerator,
    InnerBlock,
    PerspectiveGenerator,
    Simplex,
    SimplexBlock,
    interval,
    product,
)
from minmaxcon.geometry.simplex import safe_log
from tests.geometry.cases import DUALS, Blocks, each_dual, each_generator, interior

BLOCKS: list[InnerBlock] = [block for blocks in DUALS.values() for block in blocks if block is not None]
each_block = pytest.mark.parametrize("block", BLOCKS, ids=repr)


def extremes(where: Any, rng: np.random.Generator, count: int) -> Any:
    """Return extreme points of a set: minimisers of random linear functions."""
    return where.linear_minimum(rng.standard_normal((count, where.dimension)))[1]


@each_dual
@pytest.mark.parametrize("rule", ["free", "theorem"])
def test_dual_squared_diameter_is_reached_and_never_exceeded(blocks: Blocks, rule: Any) -> None:
    rng = np.random.default_rng(21)
    generator = PerspectiveGenerator(blocks, rule)
    corners = np.eye(generator.levels)[rng.integers(generator.levels, size=3000)]
    parts = [extremes(block.set, rng, 3000) for block in blocks if block is not None]
    extreme = generator.point(corners, np.concatenate([np.zeros((3000, 0)), *parts], axis=1))
    anywhere = generator.sample(rng, 3000)
    start = generator.center(np.zeros((3000, 1)))
    for point in (extreme, anywhere):
        height = generator.value(point)
        assert height.min() >= -1e-12
        assert height.max() <= generator.squared_diameter + 1e-9
        np.testing.assert_allclose(generator.divergence(point, start), height, rtol=1e-9, atol=1e-9)
    assert generator.value(extreme).max() == pytest.approx(generator.squared_diameter, rel=1e-9)
    assert generator.value(start).max() == pytest.approx(0.0, abs=1e-12)


@each_block
def test_block_sizes(block: InnerBlock) -> None:
    rng = np.random.default_rng(22)
    points = np.concatenate([block.sample(rng, 2000), extremes(block.set, rng, 2000)])
    lengths = np.linalg.norm(points, axis=1)
    assert lengths.max() == pytest.approx(block.radius, rel=1e-9)
    # the corner of a box is always drawn; the pole of a ball is only approached
    assert block.reach * 0.98 <= np.abs(points).max() <= block.reach * (1.0 + 1e-12)
    height = block.value(points)
    assert height.min() >= -1e-13
    assert height.max() == pytest.approx(block.maximum, rel=1e-9, abs=1e-12)
    assert block.value(block.start) == pytest.approx(0.0, abs=1e-15)


@each_dual
def test_stacks_agree_with_their_blocks(blocks: Blocks) -> None:
    """The vectors of all levels at once give what each block gives alone."""
    rng = np.random.default_rng(25)
    generator = PerspectiveGenerator(blocks)
    v, inverse = rng.standard_normal((7, generator.inner_dimension)), rng.uniform(0.1, 3.0, (7, 1))
    inner, anchor = generator.sample(rng, 7).inner, 0.9 * generator.sample(rng, 7).inner + 0.05
    found = {
        "prox": generator.stack.prox(v, anchor, inverse),
        "maximize": generator.stack.maximize(v),
        "penalty": (inner, generator.stack.penalty(inner)),
        "value": (inner, generator.stack.value(inner)),
        "divergence": (inner, generator.stack.divergence(inner, anchor)),
        "mirror": generator.stack.mirror(inner),
        "unmirror": generator.stack.unmirror(generator.stack.mirror(inner)[0]),
    }
    begin = 0
    for i, block in enumerate(blocks):
        if block is None:
            for _, values in found.values():
                np.testing.assert_array_equal(values[:, i], 0.0)
            continue
        cut = slice(begin, begin + block.dimension)
        begin = cut.stop
        assert (generator.owner[cut] == i).all()
        alone = {
            "prox": block.prox(v[:, cut], anchor[:, cut], inverse),
            "maximize": block.maximize(v[:, cut]),
            "penalty": (inner[:, cut], block.penalty(inner[:, cut])),
            "value": (inner[:, cut], block.value(inner[:, cut])),
            "divergence": (inner[:, cut], block.divergence(inner[:, cut], anchor[:, cut])),
            "mirror": block.mirror(inner[:, cut]),
            "unmirror": block.unmirror(block.mirror(inner[:, cut])[0]),
        }
        for name, (point, values) in alone.items():
            np.testing.assert_allclose(found[name][0][:, cut], point, rtol=1e-13, atol=1e-13, err_msg=name)
            np.testing.assert_allclose(found[name][1][:, i], values, rtol=1e-13, atol=1e-13, err_msg=name)


@each_generator
def test_linear_minimum_of_nothing_is_zero(generator: DistanceGenerator) -> None:
    value, point = generator.linear_minimum(np.zeros(generator.dimension))
    assert value == pytest.approx(0.0, abs=1e-15)
    assert generator.contains(point)


@each_generator
def test_membership_ends_at_the_tolerance_in_every_coordinate(generator: DistanceGenerator) -> None:
    for j, sign in itertools.product(range(generator.dimension), (1.0, -1.0)):
        outward = -sign * np.eye(generator.dimension)[j]
        face = generator.linear_minimum(-outward)[1]
        moved = face + np.array([[0.0], [1e-7], [1e-3], [1e3]]) * outward
        np.testing.assert_array_equal(generator.contains(moved), [True, False, False, False])
        np.testing.assert_array_equal(generator.contains(moved, 1e-6), [True, True, False, False])


@each_generator
def test_what_a_geometry_overrides_is_what_it_would_inherit(generator: DistanceGenerator) -> None:
    rng = np.random.default_rng(33)
    u, v = interior(generator, rng, 40), interior(generator, rng, 40)
    divergence = DistanceGenerator.divergence(generator, u, v)
    np.testing.assert_allclose(generator.divergence(u, v), divergence, rtol=1e-9, atol=1e-12)
    g = u - 1.5 * v
    np.testing.assert_allclose(generator.squared_norm(g), generator.norm(g) ** 2, rtol=1e-12)
    np.testing.assert_allclose(generator.squared_dual_norm(g), generator.dual_norm(g) ** 2, rtol=1e-12)
    np.testing.assert_allclose(DistanceGenerator.squared_norm(generator, g), generator.norm(g) ** 2, rtol=1e-12)
    np.testing.assert_allclose(DistanceGenerator.squared_dual_norm(generator, g), generator.dual_norm(g) ** 2)
    step = 1e-6 * np.eye(generator.dimension)
    slope = (generator.value(u[0] + step) - generator.value(u[0] - step)) / 2e-6
    np.testing.assert_allclose(generator.gradient(u[0]), slope, rtol=1e-6, atol=1e-7)
    assert generator.value(generator.center) == pytest.approx(0.0, abs=1e-12)


def test_points_of_a_set_without_a_sample_of_its_own_lie_on_its_boundary_and_inside() -> None:
    ball = Ball(3, 2.0, [5.0, 0.0, -1.0])
    points = EuclideanGenerator.sample(ball, np.random.default_rng(34), 4000)
    assert points.shape == (4000, 3)
    length = np.linalg.norm(points - ball.center, axis=1)
    inside = length[length < 2.0 - 1e-9]
    assert len(inside) / 4000 == pytest.approx(0.5, abs=0.03)
    np.testing.assert_allclose(np.quantile(inside, [0.1, 0.5, 0.9]), [0.2, 1.0, 1.8], atol=0.1)


def test_a_product_is_euclidean_where_all_parts_are() -> None:
    ball, box, simplex = Ball(2, 1.0), Box([0.0], [1.0]), Simplex(2)
    assert isinstance(product([ball, box]), EuclideanGenerator)
    mixed = product([ball, simplex])
    assert not isinstance(mixed, EuclideanGenerator)
    assert repr(mixed) == f"product([{ball!r}, {simplex!r}])"


def test_ends_and_starts_of_blocks() -> None:
    np.testing.assert_array_equal([interval(2.0, 0.5).set.lower, interval(2.0, 0.5).set.upper], [[-2.0], [2.0]])
    np.testing.assert_array_equal(BoxBlock([-2.0, 1.0, -1.0], [-1.0, 2.0, 3.0]).start, [-1.0, 1.0, 0.0])


def test_membership_of_the_simplex_needs_sum_and_sign() -> None:
    given = np.array([[0.5, 0.5], [0.5, 0.4], [1.2, -0.2], [1.0, 0.0]])
    np.testing.assert_array_equal(Simplex(2).contains(given), [True, False, False, True])


class TestDualByHand:
    """Values of the KL-plus-perspective generator at points that can be checked on paper."""

    generator = PerspectiveGenerator([None, BoxBlock([-2.0], [2.0], 0.5), BallBlock(2, 5.0, 0.25)], 3.0)
    point = generator.point(np.array([0.5, 0.25, 0.25]), np.array([1.0, 3.0, 4.0]))

    def test_value(self) -> None:
        entropy = -0.5 * np.log(2.0) - 0.5 * np.log(4.0) + np.log(3.0)
        assert self.generator.value(self.point) == pytest.approx(3.0 * entropy + 0.25 * 0.5 + 0.25 * 12.5)

    def test_penalty(self) -> None:
        assert self.generator.penalty(self.point) == pytest.approx(0.25 * 0.5 + 0.25 * 0.25 * 25.0)

    def test_scaled_and_spread(self) -> None:
        np.testing.assert_allclose(self.generator.scaled(self.point), [0.25, 0.75, 1.0])
        np.testing.assert_allclose(self.generator.spread(np.array([1.0, 2.0, 3.0])), [2.0, 3.0, 3.0])

    def test_squared_distance(self) -> None:
        other = self.generator.point(np.array([0.25, 0.5, 0.25]), np.array([1.0, 3.0, 0.0]))
        assert self.generator.squared_distance(self.point, other) == pytest.approx(0.25 + 0.0625 + 1.0)

    def test_divergence(self) -> None:
        other = self.generator.point(np.array([0.25, 0.5, 0.25]), np.array([2.0, 3.0, 0.0]))
        expected = 3.0 * (0.5 * np.log(2.0) - 0.25 * np.log(2.0)) + 0.25 * 0.5 + 0.25 * 8.0
        assert self.generator.divergence(self.point, other) == pytest.approx(expected)

    def test_support(self) -> None:
        u, v = np.array([1.0, 2.0, 3.0]), np.array([1.5, 1.0, 0.0])
        # alpha = clip(1.5 / 1) = 1.5 gives 1.125; alpha = (2, 0) of length 2 gives 2 - 1
        np.testing.assert_allclose(self.generator.support(u, v), [1.0, 3.125, 4.0])

    def test_warm_points_keep_every_weight_above_a_floor(self) -> None:
        far = self.generator.point(np.array([1.0, 0.0, 0.0]), self.point.inner)
        warm = self.generator.warm(far, 0.3)
        np.testing.assert_allclose(warm.weights, [0.8, 0.1, 0.1])
        np.testing.assert_allclose(warm.log_weights, np.log(warm.weights))
        assert np.isfinite(self.generator.warm(far, 0.0).log_weights).all()


def test_the_prior_is_where_a_simplex_block_starts_and_is_zero() -> None:
    block = SimplexBlock(2, 0.0, [0.9, 0.1])
    np.testing.assert_allclose(block.start, [0.9, 0.1])
    assert block.maximum == pytest.approx(np.log(10.0))
    assert block.value(np.array([0.0, 1.0])) == pytest.approx(np.log(10.0))


def test_logarithms_near_zero_stop_at_what_each_precision_holds() -> None:
    for dtype, floor in ((np.float64, 1e-300), (np.float32, 1e-37)):
        found = safe_log(np.array([0.0, 1e-36, 1.0], dtype=dtype))
        np.testing.assert_allclose(found, np.log([floor, 1e-36, 1.0]), rtol=1e-6)
        assert found.dtype == dtype


def test_a_dual_point_is_frozen_small_and_compared_by_identity() -> None:
    point = PerspectiveGenerator([None]).center(np.zeros(1))
    with pytest.raises(AttributeError):
        point.weights = np.ones(1)
    assert not hasattr(point, "__dict__")
    assert bool(point == copy.copy(point)) is False
    assert len({point, PerspectiveGenerator([None]).center(np.zeros(1))}) == 2


def test_centers_and_diameters_by_hand() -> None:
    assert Ball(3, 4.0).squared_diameter == 8.0
    assert Box([0.0, -1.0], [2.0, 3.0]).squared_diameter == pytest.approx((4.0 + 16.0) / 8.0)
    np.testing.assert_array_equal(Box([0.0, -1.0], [2.0, 3.0]).center, [1.0, 1.0])
    assert Simplex(5).squared_diameter == pytest.approx(np.log(5.0))
    assert interval(2.0).penalty(np.ones(1)) == BoxBlock([0.0], [2.0]).penalty(np.ones(1)) == 0.0
    assert BallBlock(2, 1.0).penalty(np.ones(2)) == SimplexBlock(2).penalty(np.array([0.9, 0.1])) == 0.0
    assert interval(2.0, 0.5).penalty(np.array([3.0])) == pytest.approx(4.5)
    assert BoxBlock([1.0, -2.0], [2.0, 0.5]).maximum == pytest.approx(0.5 * (1.0 + 4.0))


def test_a_third_of_the_samples_of_a_simplex_lie_towards_its_faces() -> None:
    simplex, count = Simplex(4), 20_000
    points = simplex.sample(np.random.default_rng(5), count)
    law = np.random.default_rng(6).dirichlet(np.full(4, 0.1), count)
    face = (points == 0).any(axis=1)
    assert np.mean(face) == pytest.approx(np.mean((law < 1e-4).any(axis=1)) / 3, abs=0.015)
    assert len(np.unique(points[~face], axis=0)) == np.count_nonzero(~face)
    assert np.mean(np.count_nonzero(points[face], axis=1) > 1) > 0.3  # edges and sides, not corners alone
    assert points[face][points[face] > 0].min() >= 1e-4 * (1 - 1e-12)


def test_membership_in_a_simplex_allows_each_coordinate_the_tolerance() -> None:
    simplex, even = Simplex(4), np.full(4, 0.25)
    for off, inside in ((3.9e-3, True), (-3.9e-3, True), (4.1e-3, False), (-4.1e-3, False)):
        assert bool(simplex.contains(even + off / 4, 1e-3)) == inside
    for low, inside in ((0.9e-3, True), (1.1e-3, False)):
        assert bool(simplex.contains(np.array([1.0, -low, low, 0.0]), 1e-3)) == inside


@pytest.mark.parametrize("size", [1e-3, 1.0, 10.0, 1e3, 1e6])
def test_points_that_single_precision_has_rounded_belong_to_the_set(size: float) -> None:
    """Projections in single precision, seen in double; what lies outside by more does not."""
    rng = np.random.default_rng(5)
    box = Box(-size * np.ones(7), size * np.ones(7))
    for generator in (Ball(130, size), box, product([Ball(9, size), Ball(4, size)])):
        far = (3.0 * size * rng.standard_normal((500, generator.dimension))).astype(np.float32)
        points = np.asarray(generator.project(far), dtype=np.float64)
        assert generator.holds(points).all()
        assert not generator.holds(1.001 * points + 1e-4 * np.sign(points)).any()
        assert not generator.holds(np.full(generator.dimension, np.nan))


@pytest.mark.parametrize("dimension, radius", [(10_000, 1e3), (100_000, 100.0), (1_000_000, 100.0)])
def test_rounded_points_of_a_ball_of_many_dimensions_belong_to_it(dimension: int, radius: float) -> None:
    ball = Ball(dimension, radius)
    far = (3.0 * np.random.default_rng(7).standard_normal((3, dimension))).astype(np.float32) * np.float32(radius)
    assert ball.holds(ball.project(far)).all()


def test_room_for_rounding_is_each_points_and_each_entrys_own() -> None:
    """No other point, and no larger entry or part, makes more room; numbers without an end make none."""
    ball = Ball(3, 1.0)
    np.testing.assert_array_equal(ball.holds(np.array([[50.0, 0, 0], [1e9, 0, 0], [1.0, 0, 0]])), [False, False, True])
    wide = Box(np.array([-1.0, -1e9]), np.array([1.0, 1e9]))
    both = product([Ball(1, 1.0), Ball(1, 1e9)])
    for generator in (wide, both):
        given = np.array([[900.0, 1e9], [1.0000005, 1e9 + 1.0], [1.00001, 0.0]])
        np.testing.assert_array_equal(generator.holds(given), [False, True, False])
    for generator in (ball, Box(-np.ones(3), np.ones(3)), Simplex(3), product([Ball(2, 1.0), Ball(1, 1.0)])):
        for bad in (np.inf, -np.inf, np.nan, 1e308):
            assert not generator.holds(np.array([bad, 0.0, 0.0]))
        assert generator.holds(np.zeros((0, 3))).shape == (0,)


@each_generator
def test_a_rounded_point_is_held_of_each_set(generator: DistanceGenerator) -> None:
    rng = np.random.default_rng(6)
    points = generator.sample(rng, 200)
    assert generator.holds(points.astype(np.float32).astype(np.float64)).all()
    assert not generator.holds(points + 100.0 * (1.0 + np.abs(points).max())).any()
