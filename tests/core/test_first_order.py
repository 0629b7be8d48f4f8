"""First-order claims: bounds, distances of proximal points and falls that are allowed, and what confirms them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.core import Proved, allowed_fall, proved_distance
from minmaxcon.core.first_order import AllowedFall, ProvedDistance, distance_of
from minmaxcon.reference import proximal_point
from tests import cases
from tests.staircases import POINTS, Scaled, Staircase, bowl, staircase


@pytest.mark.parametrize(
    "lower, unit, claimed, objective, holds",
    [
        (1.0, 0.0, 1.0, 1.0, True),
        (1.0, 0.0, 1.047, 2.0, True),  # a twentieth of the gap that is claimed
        (1.0, 0.0, 1.048, 2.0, False),
        (1.0, 0.0, 1.001, 0.5, False),  # there is no gap that it could be a share of
        (-5.0, 1e4, -4.9901, -6.0, True),  # a millionth of the terms
        (-5.0, 1e4, -4.9899, -6.0, False),
        (-math.inf, 0.0, 1.0, 2.0, False),
    ],
)
def test_a_bound_is_confirmed_by_one_that_is_weaker_by_a_little(
    lower: float, unit: float, claimed: float, objective: float, holds: bool
) -> None:
    assert Proved(lower, 0.0, "", unit=unit).confirms(claimed, objective) is holds
    assert not Proved(lower, 0.0, "a fault", unit=unit).confirms(claimed, objective)


@pytest.mark.parametrize(
    "distance, step, unit, claimed, holds",
    [
        (0.5, 0.5, 0.0, 0.5, True),
        (0.5, 0.5, 0.0, 0.499, False),  # what lies at a distance is no nearer
        (1.0, 0.0, 0.0, 0.976, True),  # the square of what is beside the step is a twentieth more
        (1.0, 0.0, 0.0, 0.975, False),
        (2.0, 1.0, 0.0, 1.976, True),
        (2.0, 1.0, 0.0, 1.975, False),
        (0.999e-3, 0.0, 1e3, 0.0, True),  # the root of a billionth of the unit
        (1.001e-3, 0.0, 1e3, 0.0, False),
        (0.5, 0.5, 1e3, 0.4991, True),
        (0.5, 0.5, 1e3, 0.4989, False),
        (math.inf, 0.0, 0.0, 1.0, False),
    ],
)
def test_a_distance_is_confirmed_by_one_that_is_longer_by_a_little(
    distance: float, step: float, unit: float, claimed: float, holds: bool
) -> None:
    assert ProvedDistance(distance, "", step=step, unit=unit).confirms(claimed) is holds
    assert not ProvedDistance(distance, "a fault", step=step, unit=unit).confirms(claimed)


def test_a_fall_is_small_by_both_of_its_parts() -> None:
    assert AllowedFall(0.1, 0.02).is_small(0.1, 1.0)
    assert not AllowedFall(0.1001, 0.02).is_small(0.1, 1.0)
    assert not AllowedFall(0.1, 0.0201).is_small(0.1, 1.0)
    assert AllowedFall(0.1, 0.19).is_small(0.1, 10.0)  # a fiftieth of the objective's size
    assert not AllowedFall(0.0, 0.0, "a fault").is_small(0.1, 1.0)
    assert AllowedFall(0.25, 0.5).total == 0.75


@pytest.mark.parametrize("end", [math.inf, -math.inf, math.nan])
def test_a_distance_needs_two_bounds_and_a_modulus(end: float) -> None:
    assert distance_of(0.25, 3.0, 1.0, 4.0) == 1.25
    assert distance_of(0.25, 1.0, 3.0, 4.0) == 0.25  # rounding: it is no less than 0
    assert distance_of(0.25, end, 1.0, 4.0) == distance_of(0.25, 3.0, end, 4.0) == math.inf
    for modulus in (0.0, -1.0, math.nan):
        assert distance_of(0.25, 3.0, 1.0, modulus) == math.inf


@pytest.fixture(scope="module")
def proximal() -> dict[str, Any]:
    """A quadratic and a point, the multipliers of its proximal problem of weight 2, and the solution of that."""
    x = np.array([0.2, -0.3, 0.1])
    problem = cases.quadratic(bound=float(cases.arrays()["costs"].mean(axis=0) @ x) + 0.2)
    exact = proximal_point(problem, x, 2.0)
    weights = [1.0, *exact.multipliers]
    return {"problem": problem, "x": x, "weights": weights, "scaled": [], "near": exact.x, "point": exact.x}


def test_the_distance_of_a_proximal_point_is_bounded(proximal: dict[str, Any]) -> None:
    """By little more than it is, with the solution beside it; with another point by more."""
    given = {name: value for name, value in proximal.items() if name != "point"}
    away = float(np.linalg.norm(proximal["point"] - proximal["x"]))
    assert away > 0.05
    inside = proximal["x"] + 0.999 * (proximal["point"] - proximal["x"])
    found = proved_distance(**given, neighbour=(2.0, inside))
    assert found.fault == ""
    assert away <= found.distance <= 1.1 * away + 1e-3
    assert found.step == pytest.approx(0.999 * away)
    objective = float(0.5 * ((inside - cases.arrays()["points"]) ** 2).sum(-1).mean())
    objective += float(((inside - proximal["x"]) ** 2).sum())
    assert found.unit == pytest.approx(2.0 * (1.0 + objective) / 2.0, rel=1e-9)
    half = proved_distance(**given, neighbour=(2.0, proximal["x"]))
    assert (half.fault, half.step) == ("", 0.0)
    assert away < half.distance


@pytest.mark.parametrize(
    "change, fault",
    [
        ({"neighbour": (0.0, [0.0] * 3)}, "the proximal weight 0 is not above the modulus 0 that is declared."),
        ({"neighbour": (np.nan, [0.0] * 3)}, "the proximal weight nan is not above the modulus 0 that is declared."),
        ({"neighbour": (np.inf, [0.0] * 3)}, "the proximal weight inf is not above the modulus 0 that is declared."),
        ({"neighbour": (2.0, [0.0] * 2)}, "the point beside it is no point."),
        ({"neighbour": (2.0, [0.0, 0.0, np.nan])}, "the point beside it is no point."),
        ({"neighbour": (2.0, [0.0, 0.0, 7.0])}, "the point beside it is no point of the set."),
        ({"neighbour": (2.0, [3.0, 0.0, 0.0])}, "the point beside it violates the proximal problem by "),
        ({"weights": [0.0, 1.0]}, "the bound on violations is not positive."),
        ({"weights": [0.0, 1.0], "problem": cases.quadratic(bound=-100.0)}, "the multipliers prove no bound."),
        ({"weights": [1.0]}, "the multipliers are not as many as the functions have."),
    ],
)
def test_what_is_no_proximal_problem_or_proves_nothing_bounds_no_distance(
    change: dict[str, Any], fault: str, proximal: dict[str, Any]
) -> None:
    given: dict[str, Any] = {name: value for name, value in proximal.items() if name != "point"}
    found = proved_distance(**{**given, "neighbour": (2.0, proximal["x"]), **change})
    assert found.fault.startswith(fault)
    assert found.distance == math.inf
    assert not found.confirms(1e9)


def test_arguments_of_first_order_claims_are_named(proximal: dict[str, Any]) -> None:
    given: dict[str, Any] = {name: value for name, value in proximal.items() if name != "point"}
    for pair in (3, (2.0,), (2.0, [0.0] * 3, 1.0), "ab"):
        with pytest.raises(mm.InvalidInput, match=r"^neighbour=.*must be a pair of the proximal weight and a point"):
            proved_distance(**given, neighbour=pair)
    for pair, name in ((("x", [0.0] * 3), r"neighbour\[0\]"), ((2.0, "x"), r"neighbour\[1\]")):
        with pytest.raises(mm.InvalidInput, match=rf"^{name}=.*must be a vector of numbers"):
            proved_distance(**given, neighbour=pair)
    for values in ("x", [[0.0]], [1j]):
        with pytest.raises(mm.InvalidInput, match=r"^multipliers=.*must be a vector of numbers"):
            allowed_fall(staircase(), [0.0, 0.0], values)
    with pytest.raises(mm.InvalidInput, match=r"^problem=.*must be a RefreshedProblem"):
        allowed_fall(cases.quadratic(), [0.0] * 3, [0.0, 0.0])
    with pytest.raises(mm.InvalidInput, match=r"^x=.*must be a point, 2 finite numbers"):
        allowed_fall(staircase(), [0.0] * 3, [0.0, 0.0])


@pytest.mark.parametrize("multipliers", [[1.0], [-1e-9, 0.0], [math.nan, 0.0], [0.0, math.inf]])
def test_what_are_no_multipliers_allow_any_fall(multipliers: list[float]) -> None:
    found = allowed_fall(staircase(), [0.0, 0.0], multipliers)
    assert found.fault.startswith("the multipliers are not ")
    assert (found.curved, found.room) == (math.inf, math.inf)


class Dug(Staircase):
    """With a curvature model that is not positive definite."""

    def curvature(self, x: Any) -> Any:
        return lambda g: -g


class Endless(Staircase):
    """With a curvature model that has no bound."""

    def curvature(self, x: Any) -> Any:
        return lambda g: np.inf * g


@pytest.mark.parametrize(
    "kind, fault",
    [(Dug, "the model of the curvature is not positive definite."), (Endless, "a gradient is not finite.")],
)
def test_a_curvature_that_is_none_allows_any_fall(kind: Any, fault: str) -> None:
    x, factor = np.array([0.3, -0.2]), 0.5
    found = allowed_fall(staircase(kind=kind), x, [factor, 0.0])
    assert (found.fault, found.total) == (fault, math.inf)
    residual = x - POINTS.mean(axis=0) + factor * bowl(x[None])[1][0]
    assert allowed_fall(staircase(), x, [factor, 0.0]).curved == pytest.approx(0.5 * residual @ residual)
    assert allowed_fall(staircase(kind=Scaled), x, [factor, 0.0]).curved == pytest.approx(residual @ residual / 6.0)
