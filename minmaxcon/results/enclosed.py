r"""Values that a check computes itself, each with a bound on its rounding error, so that rounding decides nothing.

A check that compares ``value <= limit`` in float64 says yes or no also where the two are nearer than rounding. Here
each value is an interval. What is added is added exactly (:func:`math.fsum`), so that only products and the last
rounding count, each with a relative error of :math:`2^{-53}`. What a plug-in computes of a batch of rows is its own;
it is asked twice, with the rows cut in two ways, and four times the difference is taken as its error: measured, not
proved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.core import MinMaxProblem
from minmaxcon.core.source import in_double

__all__ = ["Enclosed", "function_values", "too_close"]

_ROWS, _OTHER = 4096, 509
"""Rows of a batch, and at most of one where the rows are cut in another way."""

_UNIT = 2.0**-50
"""Allowance for some operations in a row, relative to the sizes of their terms."""

_MEASURED = 4.0
"""How many times the difference of two ways a value is taken to be off."""


@dataclass(frozen=True, eq=False, slots=True)
class Enclosed:
    """A number that lies between ``low`` and ``high``, floats or fractions; NaN of either decides nothing.

    Examples
    --------
    >>> from minmaxcon.results.enclosed import Enclosed
    >>> found = Enclosed.around(0.5, 0.25)
    >>> found.at_most(0.8), found.at_most(0.5), found.at_most(0.2)
    (True, None, False)
    """

    low: Any
    high: Any

    @classmethod
    def around(cls, value: float, error: float) -> Enclosed:
        """Return the interval of a value and its error, rounded outwards."""
        return cls(math.nextafter(value - error, -math.inf), math.nextafter(value + error, math.inf))

    @property
    def middle(self) -> float:
        """The middle, as a float."""
        return float((self.low + self.high) / 2)

    @property
    def error(self) -> float:
        """Half of the width, as a float."""
        return float((self.high - self.low) / 2)

    def minus(self, number: float) -> Enclosed:
        """Return the interval less a number, which counts as exact; fractions stay fractions."""
        if isinstance(self.low, Fraction):
            return Enclosed(self.low - Fraction(number), self.high - Fraction(number))
        lower, upper = math.fsum([self.low, -number]), math.fsum([self.high, -number])
        return Enclosed(math.nextafter(lower, -math.inf), math.nextafter(upper, math.inf))

    def at_most(self, limit: float) -> bool | None:
        """Tell whether the number is at most the limit; None where the interval does not decide it."""
        if self.high <= limit:
            return True
        return False if self.low > limit else None


def too_close(what: str, found: Enclosed, limit: float) -> str:
    """Say that rounding decides, and by which digits."""
    digits = f"{found.middle:.17g} give or take {found.error:.1g}, and the limit is {limit:.17g}"
    return f"too close for rounding to decide: {what} is {digits}."


@np.errstate(over="ignore", invalid="ignore")  # what overflows has no value, and is found to be infinite
def function_values(problem: MinMaxProblem, points: Any) -> tuple[Any, Any]:
    r"""Return :math:`f_0, f_1, \dots` at points (P, d) and their errors, (P, 1 + m) each; bounds are not subtracted.

    The problem has one run and finite data; its proximal term, where it has one, is part of every function.
    """
    like = namespace(problem.data.like).double(problem.data.like)
    x, rows = namespace(like).asarray(np.asarray(points, dtype=np.float64), like), int(problem.data.size or 1)
    values, sizes = _summed(problem, x, _ROWS)
    again, _ = _summed(problem, x, max(1, min(_OTHER, rows // 3)))
    if problem.proximal is not None:
        term = _double(problem.proximal.value(problem.primal, x))[:, None]
        values, again, sizes = values + term, again + term, sizes + np.abs(values) + 4.0 * np.abs(term)
    return values, _MEASURED * np.abs(values - again) + _UNIT * sizes


def _summed(problem: MinMaxProblem, x: Any, rows: int) -> tuple[Any, Any]:
    """Return the functions at points (P, d), and the sizes of the terms that were added."""
    parts: list[tuple[Any, Any]] = []
    for share, batch in in_double(problem.data).chunks(rows):
        found = problem.family.evaluate(x, batch)
        parts.append((share * _double(found.F), share * _double(found.G)))
    (F, sizes), (G, _) = (_exactly([part[side] for part in parts]) for side in (0, 1))
    values, begin = F.copy(), 0
    for i, function in enumerate(problem.family.constraints):
        if function.dual is not None:
            mine = G[:, begin : begin + function.dual.dimension]
            begin += function.dual.dimension
            inner, most = map(_double, function.dual.maximize(mine))
            values[:, i] += most
            sizes[:, i] += np.abs(most) + (np.abs(inner) * np.abs(mine)).sum(axis=1)
    return values, sizes


def _double(array: Any) -> Any:
    return np.asarray(to_numpy(array), dtype=np.float64)


def _exactly(parts: list[Any]) -> tuple[Any, Any]:
    """Return sums of arrays of one shape, each rounded once, and the sums of their absolute values."""
    stack = np.stack(parts)
    flat = stack.reshape(len(parts), -1)
    total = np.array([math.fsum(column) if np.isfinite(column).all() else column.sum() for column in flat.T])
    return total.reshape(stack.shape[1:]), np.abs(stack).sum(axis=0)
