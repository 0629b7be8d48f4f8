"""Intervals of values of functions on full data, against fractions: they hold the value and are not wide."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.results import enclosed
from minmaxcon.results.enclosed import Enclosed, function_values
from tests import cases
from tests.core.test_evidence import Uneven
from tests.problem_library import HalfSquare, Linear, Robust, WorstGroup


def exact_values(x: Any) -> list[Fraction]:
    """The functions below at a point, each sum of products in fractions; the root of a square to 60 digits."""
    rows = {name: [[Fraction(float(v)) for v in row] for row in np.atleast_2d(cases.arrays()[name])] for name in PARTS}
    at, many = [Fraction(float(v)) for v in x], len(rows["points"])
    squares = [sum((a - b) ** 2 for a, b in zip(at, row, strict=True)) / 2 for row in rows["points"]]
    linear = sum(a * b for row in rows["costs"] for a, b in zip(at, row, strict=True)) / many
    length = Fraction(Decimal(sum(a * a for a in at).numerator).sqrt(Context(60))) / Fraction(
        Decimal(sum(a * a for a in at).denominator).sqrt(Context(60))
    )
    groups = [sum(s * row[g] for s, row in zip(squares, rows["shares"], strict=True)) / many for g in range(3)]
    return [sum(squares, Fraction(0)) / many, linear, linear + Fraction(0.3) * length, max(groups)]


PARTS = ("points", "costs", "shares")


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("weight", [0.0, 0.75])
def test_values_lie_in_intervals_that_are_not_wide(scale: float, weight: float) -> None:
    """Of functions with and without inner variables, with and without a proximal term, against exact arithmetic."""
    functions = [HalfSquare(), Linear(0.1), Robust(3, 0.3, 0.2), WorstGroup(3, 9.0)]
    problem = mm.MinMaxProblem(functions[0], functions[1:], mm.Ball(3, 2e4), cases.finite(*PARTS))
    center = np.array([0.5, -0.25, 1.0])  # exact in binary
    if weight:
        problem = problem.with_proximal(center, weight)
    points = scale * np.random.default_rng(0).normal(size=(4, 3))
    values, errors = function_values(problem, points)
    for x, found, wide in zip(points, values, errors, strict=True):
        square = sum((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(x, center, strict=True))
        exact = [one + Fraction(weight) * square / 2 for one in exact_values(x)]
        for value, error, true in zip(found, wide, exact, strict=True):
            interval = Enclosed.around(float(value), float(error))
            assert Fraction(interval.low) <= true <= Fraction(interval.high)
            assert error <= 2e-14 * (1.0 + scale) * (3.0 + scale)  # the sizes of the terms that are added
            # an allowance for four operations with each part, whatever the two ways of summing happen to give
            assert error >= 4 * 2.0**-53 * (float(abs(true - Fraction(weight) * square / 2)) + weight * float(square))


@pytest.mark.parametrize("rows", [120, 2])
@pytest.mark.parametrize("constant, slope", [(1e-3, 0.0), (0.0, 1e-3), (-1e-3, 2e-3)])
def test_values_that_depend_on_how_rows_are_cut_are_off_by_four_times_the_difference(
    constant: float, slope: float, rows: int
) -> None:
    data = mm.Finite({"costs": cases.arrays()["costs"][:rows]})
    problem = mm.MinMaxProblem(Uneven(constant, slope, 100 if rows > 2 else 1), [Linear(0.0)], mm.Ball(3, 2.0), data)
    x = np.array([0.3, -0.7, 0.4])
    values, errors = (part[0] for part in function_values(problem, x[None]))
    assert values == pytest.approx([data.arrays["costs"].mean(axis=0) @ x] * 2, rel=1e-14)
    assert errors[0] == pytest.approx(4.0 * abs(constant + slope * x[1]), rel=1e-9)
    assert errors[1] <= 1e-14


def test_sums_of_many_pieces_are_rounded_once() -> None:
    """Numbers that cancel are added exactly; what is infinite has no value and is no error."""
    parts = [np.array([[1e16, 1.0]]), np.array([[1.0, np.inf]]), np.array([[-1e16, 2.0]]), np.array([[0.5, np.nan]])]
    total, sizes = enclosed._exactly(parts)
    assert (total[0, 0], sizes[0, 0]) == (1.5, 2e16)
    assert np.isnan(total[0, 1])
    costs = np.random.default_rng(0).normal(size=(9000, 3)) + 1e3
    problem = mm.MinMaxProblem(Linear(), [Linear(0.0)], mm.Ball(3, 2.0), mm.Finite({"costs": costs}))
    values, errors = function_values(problem, np.array([[1.0, 0.5, 0.0]]))
    true = sum(map(Fraction, costs @ [1.0, 0.5, 0.0])) / 9000  # products that are rounded a little
    assert abs(Fraction(float(values[0, 0])) - true) <= Fraction(float(errors[0, 0]))
    assert errors[0, 0] <= 1e-11
    beyond, _ = function_values(problem, np.array([[np.nan, 0.0, 0.0], [1e300, 0.0, 0.0]]))
    assert not np.isfinite(beyond[0]).any()


def test_an_interval_less_a_number_holds_the_difference() -> None:
    rng = np.random.default_rng(0)
    for low, width, number in rng.normal(size=(200, 3)) * 10.0 ** rng.integers(-8, 8, size=(200, 3)):
        found = Enclosed(float(low), float(low + abs(width)))
        less = found.minus(float(number))
        for end, other, side in ((less.low, found.low, -1), (less.high, found.high, 1)):
            exact = Fraction(other) - Fraction(float(number))
            assert side * (Fraction(end) - exact) > 0
            assert abs(end - float(exact)) <= 2.0 * math.ulp(float(exact))
        assert found.middle == pytest.approx(low + 0.5 * abs(width), rel=1e-12)
        assert found.error == pytest.approx(0.5 * (found.high - found.low))
    exact = Enclosed(Fraction(1, 3), Fraction(1, 2)).minus(0.25)
    assert (exact.low, exact.high) == (Fraction(1, 12), Fraction(1, 4))
    assert (exact.at_most(0.25), exact.at_most(0.2), exact.at_most(0.08)) == (True, None, False)
    assert Enclosed(0.0, math.nan).at_most(1.0) is None
    for value, error in ((0.1, 0.2), (-1e9, 1e-12), (0.0, 0.0)):
        around = Enclosed.around(value, error)
        assert Fraction(around.low) < Fraction(value) - Fraction(error)
        assert Fraction(around.high) > Fraction(value) + Fraction(error)
        assert around.high - around.low <= 2.0 * error + 4.0 * math.ulp(abs(value) + error)
