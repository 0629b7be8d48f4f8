"""The proximal steps: closed forms by hand, first-order conditions, and the three-point inequality."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minmaxcon.geometry import (
    Ball,
    BallBlock,
    Box,
    BoxBlock,
    DistanceGenerator,
    DualPoint,
    PerspectiveGenerator,
    Simplex,
    SimplexBlock,
    interval,
    product,
)
from tests.figures import Figure
from tests.geometry.cases import (
    DUALS,
    GENERATORS,
    Blocks,
    converted,
    dual_interior,
    each_dual,
    each_generator,
    interior,
    promise,
    random_dual,
    random_generator,
)
from tests.geometry.laws import (
    Instance,
    draw_dual_instance,
    draw_instance,
    dual_kkt_residual,
    dual_three_point_slack,
    kkt_residual,
    projection_faults,
    three_point_slack,
)

EUCLIDEAN = {name: generator for name, generator in GENERATORS.items() if generator.euclidean}


def widened(array: Any) -> Any:
    """Return a result in float64; what its own precision cannot tell from 0 is raised to where logarithms are exact."""
    wide, floor = array.astype(np.float64), 1e-299 if array.dtype == np.float64 else 1e-37
    return np.where(np.abs(wide) < floor, floor, wide)


def primal_prox(generator: DistanceGenerator, instance: Instance, dtype: Any = np.float64) -> Any:
    given = {name: value.astype(dtype) for name, value in instance.items()}
    point = generator.prox(
        given["anchor"], given["gradient"], given["step"], center=given["center"], weight=given["weight"]
    )
    assert point.dtype == dtype
    return widened(point)


def dual_prox(generator: PerspectiveGenerator, instance: Instance, dtype: Any = np.float64) -> DualPoint:
    anchor = converted(instance["anchor"], lambda array: array.astype(dtype))
    u, v, step = (instance[name].astype(dtype) for name in ("u", "v", "step"))
    point = generator.prox(anchor, u, v, step)
    assert {point.log_weights.dtype, point.weights.dtype, point.inner.dtype} == {np.dtype(dtype)}
    assert np.abs(point.weights.sum(1) - 1.0).max() <= 4.0 * generator.levels * np.finfo(dtype).eps
    return converted(point, widened)


class TestByHand:
    def test_ball_with_a_penalty(self) -> None:
        # (u' - eta g + eta rho c) / (1 + eta rho) = ((1, 0) - (2, 4) + 3 (1, 2)) / 4 = (0.5, 0.5), inside
        point = Ball(2, 1.0).prox(
            np.array([1.0, 0.0]), np.array([4.0, 8.0]), 0.5, center=np.array([1.0, 2.0]), weight=6.0
        )
        np.testing.assert_allclose(point, [0.5, 0.5], rtol=1e-15)

    def test_ball_from_outside(self) -> None:
        point = Ball(2, 2.0, [1.0, 1.0]).prox(np.array([1.0, 1.0]), np.array([-30.0, -40.0]), 1.0)
        np.testing.assert_allclose(point, [1.0 + 1.2, 1.0 + 1.6], rtol=1e-15)

    def test_box(self) -> None:
        point = Box([-1.0, 0.0], [1.0, 3.0]).prox(np.array([0.5, 1.0]), np.array([-2.0, 3.0]), 0.5)
        np.testing.assert_array_equal(point, [1.0, 0.0])

    def test_simplex(self) -> None:
        # proportional to (1/4 * 1, 3/4 * 1/9)
        point = Simplex(2).prox(np.array([0.25, 0.75]), np.array([0.0, np.log(9.0)]), 1.0)
        np.testing.assert_allclose(point, [0.75, 0.25], rtol=1e-15)

    def test_simplex_with_a_penalty(self) -> None:
        # the square root of (1/4 * 4/5, 3/4 * 1/5), normalised
        anchor, center = np.array([0.25, 0.75]), np.array([0.8, 0.2])
        point = Simplex(2).prox(anchor, np.zeros(2), 2.0, center=center, weight=0.5)
        root = np.sqrt(anchor * center)
        np.testing.assert_allclose(point, root / root.sum(), rtol=1e-15)

    def test_interval_of_fair_auc(self) -> None:
        # clip((v + alpha' / tau) / (2 c1 + 1 / tau)) and nu = -v alpha + c1 alpha^2 + (alpha - alpha')^2 / (2 tau)
        c1, tau, v, before = 0.5, 0.25, np.array([3.0, 100.0]), np.array([1.0, 1.0])
        generator = PerspectiveGenerator([BoxBlock([-2.0] * 2, [2.0] * 2, c1), None], 3.0)
        anchor = generator.point(np.array([0.25, 0.75]), before)
        point = generator.prox(anchor, np.array([0.1, 0.2]), v, tau)
        np.testing.assert_allclose(point.inner, [(3.0 + 4.0) / 5.0, 2.0], rtol=1e-15)
        cost = (-v * point.inner + c1 * point.inner**2 + (point.inner - before) ** 2 / (2.0 * tau)).sum()
        raw = np.array([0.25 * np.exp(tau * (0.1 - cost) / 3.0), 0.75 * np.exp(tau * 0.2 / 3.0)])
        np.testing.assert_allclose(point.weights, raw / raw.sum(), rtol=1e-14)
        np.testing.assert_allclose(point.log_weights, np.log(raw / raw.sum()), rtol=1e-13, atol=1e-15)

    def test_flat_ball_projects_a_gradient_step(self) -> None:
        generator = PerspectiveGenerator([BallBlock(2, 1.0), None])
        anchor = generator.point(np.array([0.5, 0.5]), np.array([0.6, 0.0]))
        point = generator.prox(anchor, np.zeros(2), np.array([0.0, 1.6]), 0.5)
        np.testing.assert_allclose(point.inner, [0.6, 0.8], rtol=1e-15)

    def test_regularised_simplex(self) -> None:
        # alpha proportional to (alpha' prior^(lambda tau) exp(tau v))^(1 / (1 + lambda tau))
        prior, before, v, strength, tau = (
            np.array([0.2, 0.3, 0.5]),
            np.array([0.5, 0.25, 0.25]),
            np.arange(3.0),
            0.5,
            2.0,
        )
        block = SimplexBlock(3, strength, prior)
        alpha, value = block.prox(v, before, 1.0 / tau)
        raw = np.sqrt(before * prior * np.exp(2.0 * v))
        np.testing.assert_allclose(alpha, raw / raw.sum(), rtol=1e-14)
        cost = -v @ alpha + strength * alpha @ np.log(alpha / prior) + alpha @ np.log(alpha / before) / tau
        assert value == pytest.approx(cost, rel=1e-14)

    def test_flat_simplex_has_the_soft_maximum_as_its_value(self) -> None:
        before, v, tau = np.array([0.5, 0.25, 0.25]), np.arange(3.0), 0.7
        value = SimplexBlock(3).prox(v, before, 1.0 / tau)[1]
        assert value == pytest.approx(-np.log(before @ np.exp(tau * v)) / tau, rel=1e-14)


@each_generator
@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-10), (np.float32, 1e-4)], ids=["float64", "float32"])
def test_first_order_conditions(generator: DistanceGenerator, dtype: Any, tolerance: float) -> None:
    instance = draw_instance(generator, np.random.default_rng(1), 400)
    found = primal_prox(generator, instance, dtype)
    if dtype == np.float32:  # judged as a minimiser over the set itself, not as a point of it
        found = generator.prox(found, 0.0 * found, 1.0)
    assert kkt_residual(generator, found, instance).max() <= tolerance


@each_dual
@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-10), (np.float32, 1e-4)], ids=["float64", "float32"])
@pytest.mark.parametrize("rule", ["free", "theorem", 0.3])
def test_dual_first_order_conditions(blocks: Blocks, dtype: Any, tolerance: float, rule: Any) -> None:
    generator = PerspectiveGenerator(blocks, rule)
    instance = draw_dual_instance(generator, np.random.default_rng(2), 300)
    assert dual_kkt_residual(generator, dual_prox(generator, instance, dtype), instance).max() <= tolerance


@promise
def test_prox_kkt(figure: Figure) -> None:
    """20,000 instances: 400 geometries of each sort, 25 steps each; relative residual 1e-10, in float32 1e-4."""
    rng = np.random.default_rng(20230)
    residuals: dict[Any, list[Any]] = {np.float64: [], np.float32: []}
    for _ in range(400):
        primal, dual = random_generator(rng), random_dual(rng)
        step, dual_step = draw_instance(primal, rng, 25), draw_dual_instance(dual, rng, 25)
        for dtype, found in residuals.items():
            point = primal_prox(primal, step, dtype)
            point = primal.prox(point, 0.0 * point, 1.0) if dtype == np.float32 else point
            found.append(kkt_residual(primal, point, step))
            found.append(dual_kkt_residual(dual, dual_prox(dual, dual_step, dtype), dual_step))
    for dtype, tolerance in ((np.float64, 1e-10), (np.float32, 1e-4)):
        each = np.concatenate([np.ravel(part) for part in residuals[dtype]])
        figure.count((each <= tolerance).sum(), each.size, f"steps in {dtype.__name__} to {tolerance:g}")
        figure.largest(f"relative residual in {dtype.__name__}", each.max())
        assert each.size == 20_000
        assert each.max() <= tolerance


def three_points(generator: DistanceGenerator, rng: np.random.Generator, count: int) -> float:
    instance = draw_instance(generator, rng, count)
    point = primal_prox(generator, instance)
    others = (generator.sample(rng, count), interior(generator, rng, count), instance["anchor"], instance["center"])
    return min(float(three_point_slack(generator, point, other, instance).min()) for other in others)


def dual_three_points(generator: PerspectiveGenerator, rng: np.random.Generator, count: int) -> float:
    instance = draw_dual_instance(generator, rng, count)
    point = dual_prox(generator, instance)
    others = (generator.sample(rng, count), dual_interior(generator, rng, count), instance["anchor"])
    return min(float(dual_three_point_slack(generator, point, other, instance).min()) for other in others)


@pytest.mark.parametrize("generator", EUCLIDEAN.values(), ids=EUCLIDEAN.keys())
def test_projections(generator: DistanceGenerator) -> None:
    faults = projection_faults(generator, np.random.default_rng(5), 1000)
    assert max(faults.values()) <= 1e-13, faults


@promise
def test_prox_laws(figure: Figure) -> None:
    """20,000 of each: projections idempotent, firmly non-expansive, Moreau; three-point slack at least -1e-10."""
    rng = np.random.default_rng(20231)
    slack, faults, projected = np.inf, 0.0, 0
    for _ in range(200):
        generator = random_generator(rng)
        slack = min(slack, three_points(generator, rng, 25), dual_three_points(random_dual(rng), rng, 34))
        euclidean = generator if generator.euclidean else product([Ball(2, 1.0), Box([0.0], [1.0])])
        faults, projected = max(faults, *projection_faults(euclidean, rng, 100).values()), projected + 100
    figure.total(projected, "projections")
    figure.largest("fault of a law", faults)
    figure.smallest("three-point slack", slack)
    assert slack >= -1e-10
    assert faults <= 1e-13


class TestTheChecksCanFail:
    """A fault of the kind that is easy to make must be far outside the tolerance."""

    generator = PerspectiveGenerator(DUALS["fair_auc"])

    def residual(self, faulty: PerspectiveGenerator, **changes: Any) -> float:
        instance = draw_dual_instance(self.generator, np.random.default_rng(6), 300)
        point = dual_prox(faulty, {**instance, **{name: change(instance) for name, change in changes.items()}})
        return float(dual_kkt_residual(self.generator, point, instance).max())

    def test_as_it_is(self) -> None:
        assert self.residual(self.generator) <= 1e-12

    def test_penalty_without_c1(self) -> None:
        blocks = [interval(3.0, 1.0), BoxBlock([-3.0, -2.0], [3.0, 2.0], 1.0), BoxBlock([-1.0] * 2, [1.0] * 2, 1.0)]
        assert self.residual(PerspectiveGenerator(blocks)) > 1e-3

    def test_another_entropy_weight(self) -> None:
        assert self.residual(PerspectiveGenerator(DUALS["fair_auc"], 2.2)) > 1e-3

    @pytest.mark.parametrize("name", ["u", "v"])
    def test_wrong_sign(self, name: str) -> None:
        assert self.residual(self.generator, **{name: lambda instance: -instance[name]}) > 1e-3

    def test_penalty_of_the_primal_prox_left_out(self) -> None:
        generator = GENERATORS["ball"]
        instance = draw_instance(generator, np.random.default_rng(7), 300)
        point = primal_prox(generator, {**instance, "weight": 0.0 * instance["weight"]})
        assert kkt_residual(generator, point, instance).max() > 1e-3


@each_dual
def test_long_runs_towards_one_level_stay_finite(blocks: Blocks) -> None:
    """A weight of e^-1e5 is 0 in any precision; its logarithm and its inner variables stay finite."""
    for dtype in (np.float32, np.float64):
        generator = PerspectiveGenerator(blocks)
        like = np.zeros((2, 1), dtype=dtype)
        point = generator.center(like)
        u = np.zeros((2, generator.levels), dtype=dtype)
        u[:, 0] = 1e4
        v = np.full((2, generator.inner_dimension), 1e3, dtype=dtype)
        for _ in range(50):
            point = generator.prox(point, u, v, np.full((2, 1), 10.0, dtype=dtype))
        for array in (point.log_weights, point.weights, point.inner, generator.value(point)):
            assert np.isfinite(array).all()
            assert array.dtype == dtype
        np.testing.assert_allclose(point.weights.sum(1), 1.0, rtol=1e-6)
        assert np.isfinite(generator.divergence(generator.center(like), point)).all()


@each_generator
def test_a_penalty_without_weight_is_none(generator: DistanceGenerator) -> None:
    instance = draw_instance(generator, np.random.default_rng(32), 5)
    anchor, gradient, step = instance["anchor"], instance["gradient"], instance["step"]
    alone = generator.prox(anchor, gradient, step)
    np.testing.assert_allclose(generator.prox(anchor, gradient, step, center=instance["center"]), alone, atol=1e-15)


@each_generator
@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_extreme_gradients_stay_in_the_set(generator: DistanceGenerator, size: float) -> None:
    rng = np.random.default_rng(8)
    gradient = size * rng.standard_normal((50, generator.dimension))
    point = generator.prox(interior(generator, rng, 50), gradient, 1.0)
    assert np.isfinite(point).all()
    assert generator.contains(point, 1e-12).all()
