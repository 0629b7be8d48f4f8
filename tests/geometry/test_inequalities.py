"""Inequalities that hold on a set, and their gradients: against membership, convexity and differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.arrays import engine as engine_named
from minmaxcon.arrays import to_numpy
from tests.geometry.cases import GENERATORS

Array = Any

COUNTS = {"ball": 1, "ball_one_dimension": 1, "ball_off_center": 1, "euclidean_product": 1, "nested_product": 2}
COUNTS |= {"mixed_product": 1}


def given(name: str, x: Array, engine: str = "numpy") -> tuple[Array, Array]:
    values, gradients = GENERATORS[name].inequalities(engine_named(engine).create(x, "float64"))
    return np.asarray(to_numpy(values)), np.asarray(to_numpy(gradients))


@pytest.mark.parametrize("engine", ["numpy", "torch"])
@pytest.mark.parametrize("name", GENERATORS)
def test_shapes_and_that_they_hold_on_the_set(name: str, engine: str) -> None:
    generator, count = GENERATORS[name], COUNTS.get(name, 0)
    x = generator.sample(np.random.default_rng(0), 60)
    values, gradients = given(name, x, engine)
    assert values.shape == (60, count)
    assert gradients.shape == (60, count, generator.dimension)
    assert (values <= 1e-12).all()
    single = given(name, x[0], engine)
    assert single[0].shape == (count,)
    assert single[1].shape == (count, generator.dimension)


@pytest.mark.parametrize("radius", [0.5, 4.0])
def test_a_balls_is_violated_exactly_outside_and_is_the_distance_near_the_boundary(radius: float) -> None:
    center = np.array([1.0, -2.0, 0.5])
    ball = mm.Ball(3, radius, center)
    direction = np.array([2.0, 1.0, -2.0]) / 3.0
    for excess in (-0.3, -1e-3, 1e-3, 0.3):
        value, slope = ball.inequalities((center + (radius + excess) * direction)[None])
        assert (value[0, 0] > 0) == (excess > 0)
        if abs(excess) < 0.01:
            assert value[0, 0] == pytest.approx(excess, rel=2e-3)
            assert slope[0, 0] == pytest.approx(direction, abs=5e-3)


def test_a_balls_inequality_describes_the_ball() -> None:
    ball = mm.Ball(4, 2.0)
    points = 2.5 * np.random.default_rng(3).normal(size=(300, 4))
    np.testing.assert_array_equal(ball.inequalities(points)[0][:, 0] <= 0, ball.contains(points, 0.0))


def test_a_products_gradient_vanishes_on_the_other_parts() -> None:
    whole = mm.product([mm.Box([-1.0], [1.0]), mm.Ball(2, 1.0), mm.Box([0.0], [1.0]), mm.Ball(3, 2.0)])
    x = np.random.default_rng(4).normal(size=(6, 7))
    values, gradients = whole.inequalities(x)
    for k, (ball, begin, end) in enumerate([(mm.Ball(2, 1.0), 1, 3), (mm.Ball(3, 2.0), 4, 7)]):
        value, slope = ball.inequalities(x[:, begin:end])
        np.testing.assert_array_equal(values[:, k], value[:, 0])
        np.testing.assert_array_equal(gradients[:, k, begin:end], slope[:, 0])
        assert (np.delete(gradients[:, k], np.s_[begin:end], axis=1) == 0).all()
