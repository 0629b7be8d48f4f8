"""Arguments that describe no set: one clear error each, that names the argument, its value and the remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from minmaxcon.errors import InvalidInput
from minmaxcon.geometry import (
    Ball,
    BallBlock,
    Box,
    BoxBlock,
    EuclideanProduct,
    PerspectiveGenerator,
    Product,
    Simplex,
    SimplexBlock,
    interval,
    product,
)

CASES: list[tuple[Callable[[], Any], str, str]] = [
    (lambda: Ball(0, 1.0), "dimension=0", "at least 1"),
    (lambda: Ball(2.5, 1.0), "dimension=2.5", "whole number"),
    (lambda: Ball(float("nan"), 1.0), "dimension=nan", "whole number"),
    (lambda: Ball(float("inf"), 1.0), "dimension=inf", "whole number"),
    (lambda: Ball("two", 1.0), "dimension='two'", "whole number"),
    (lambda: Ball(None, 1.0), "dimension=None", "whole number"),
    (lambda: Ball(2, 0.0), "radius=0.0", "positive and finite"),
    (lambda: Ball(2, -1.0), "radius=-1.0", "positive and finite"),
    (lambda: Ball(2, np.inf), "radius=inf", "positive and finite"),
    (lambda: Ball(2, np.nan), "radius=nan", "positive and finite"),
    (lambda: Ball(2, "wide"), "radius='wide'", "positive and finite"),
    (lambda: Ball(2, None), "radius=None", "positive and finite"),
    (lambda: Ball(2, 1.0, [0.0]), "center=[0.0]", "2 finite numbers"),
    (lambda: Ball(2, 1.0, [0.0, np.nan]), "center=[0.0, nan]", "2 finite numbers"),
    (lambda: Ball(2, 1.0, ["a", "b"]), "center=['a', 'b']", "2 finite numbers"),
    (lambda: Box([1.0], [0.0]), "lower=1.0", "exceeds upper=0 in coordinate 0"),
    (lambda: Box([0.0, 3.0], [1.0, 2.0]), "lower=3.0", "exceeds upper=2 in coordinate 1"),
    (lambda: Box([0.0], [1.0, 2.0]), "upper=[1.0, 2.0]", "shape of lower"),
    (lambda: Box([], []), "lower=[]", "at least one"),
    (lambda: Box([[0.0]], [[1.0]]), "lower=[[0.0]]", "vector"),
    (lambda: Box([0.0], [np.inf]), "upper=[inf]", "compact"),
    (lambda: Box([-np.inf], [0.0]), "lower=[-inf]", "compact"),
    (lambda: Box(["x"], [0.0]), "lower=['x']", "finite numbers"),
    (lambda: Box([None], [0.0]), "lower=[None]", "finite numbers"),
    (lambda: Simplex(0), "dimension=0", "at least 1"),
    (lambda: Simplex(-3), "dimension=-3", "at least 1"),
    (lambda: product([]), "parts=[]", "at least one geometry"),
    (lambda: Product([]), "parts=[]", "at least one geometry"),
    (lambda: EuclideanProduct([]), "parts=[]", "at least one geometry"),
    (lambda: product(None), "parts=None", "sequence of geometries"),
    (lambda: Product(3), "parts=3", "sequence of geometries"),
    (lambda: EuclideanProduct(2.5), "parts=2.5", "sequence of geometries"),
    (lambda: PerspectiveGenerator(None), "blocks=None", "sequence of inner blocks"),
    (lambda: PerspectiveGenerator(True), "blocks=True", "sequence of inner blocks"),
    (lambda: product([Ball(1, 1.0), 3]), "parts=3", "DistanceGenerator"),
    (lambda: product(["ball"]), "parts='ball'", "DistanceGenerator"),
    (lambda: EuclideanProduct([Simplex(2)]), "parts=Simplex(dimension=2)", "use product(parts)"),
    (lambda: interval(-1.0), "radius=-1.0", "at least 0"),
    (lambda: interval(np.nan), "radius=nan", "finite"),
    (lambda: interval(1.0, -0.5), "curvature=-0.5", "at least 0"),
    (lambda: BoxBlock([0.0], [1.0], np.nan), "curvature=nan", "finite"),
    (lambda: BoxBlock([0.0], [1.0], [1.0, 2.0]), "curvature=[1.0, 2.0]", "one a variable"),
    (lambda: BoxBlock([0.0, 0.0], [1.0, 1.0], [1.0, -1.0]), "curvature=[1.0, -1.0]", "at least 0"),
    (lambda: BoxBlock([0.0], [1.0], "steep"), "curvature='steep'", "one number"),
    (lambda: BoxBlock([2.0], [1.0]), "lower=2.0", "exceeds upper"),
    (lambda: BallBlock(2, 1.0, [1.0, 2.0]), "curvature=[1.0, 2.0]", "one number"),
    (lambda: BallBlock(2, 1.0, []), "curvature=[]", "one number"),
    (lambda: BallBlock(2, -1.0), "radius=-1.0", "positive and finite"),
    (lambda: BallBlock(0, 1.0), "dimension=0", "at least 1"),
    (lambda: SimplexBlock(2, -1.0), "temperature=-1.0", "at least 0"),
    (lambda: SimplexBlock(2, np.inf), "temperature=inf", "finite"),
    (lambda: SimplexBlock(2, 0.0, [0.5, 0.6]), "prior=[0.5, 0.6]", "sum to 1"),
    (lambda: SimplexBlock(2, 0.0, [1.0, 0.0]), "prior=[1.0, 0.0]", "positive"),
    (lambda: SimplexBlock(2, 0.0, [1.0]), "prior=[1.0]", "2 positive"),
    (lambda: SimplexBlock(2, 0.0, [0.5, np.nan]), "prior=[0.5, nan]", "2 positive"),
    (lambda: PerspectiveGenerator([]), "blocks=[]", "at least one level"),
    (lambda: PerspectiveGenerator([3]), "blocks=3", "InnerBlock"),
    (lambda: PerspectiveGenerator([None], 0.0), "entropy_weight=0.0", "positive number"),
    (lambda: PerspectiveGenerator([None], -1.0), "entropy_weight=-1.0", "positive number"),
    (lambda: PerspectiveGenerator([None], np.nan), "entropy_weight=nan", "positive number"),
    (lambda: PerspectiveGenerator([None], "best"), "entropy_weight='best'", "theorem"),
    (lambda: PerspectiveGenerator([None], None), "entropy_weight=None", "theorem"),
]


@pytest.mark.parametrize("make, says, remedy", CASES, ids=[case[1] + " " + case[2] for case in CASES])
def test_bad_argument(make: Callable[[], Any], says: str, remedy: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        make()
    message = str(caught.value)
    assert message.startswith(says)
    assert remedy in message
    assert "\n" not in message
    assert caught.value.__cause__ is None


def test_what_is_close_to_bad_but_good() -> None:
    assert Ball(np.int64(2), np.float32(1.5)).radius == 1.5
    assert Ball(2.0, 1).dimension == 2
    assert Box(0.0, 1.0).dimension == 1
    assert interval(0.0).radius == 0.0
    np.testing.assert_array_equal(Ball(2, 1.0, torch.tensor([1.0, 2.0])).center, [1.0, 2.0])
    np.testing.assert_array_equal(Box(torch.zeros(2), torch.ones(2)).upper, [1.0, 1.0])
    single = Ball(2, 1.0)
    assert product([single]) is single
    assert product(iter([single, single])).dimension == 4
    assert PerspectiveGenerator([None], 1).entropy_weight == 1.0


def test_descriptions_of_a_set_cannot_be_changed() -> None:
    for array in (Ball(2, 1.0).center, Box([0.0], [1.0]).lower, Simplex(2).center, SimplexBlock(2).start):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5.0
    given = np.zeros(2)
    ball = Ball(2, 1.0, given)
    given += 1.0
    np.testing.assert_array_equal(ball.center, 0.0)
