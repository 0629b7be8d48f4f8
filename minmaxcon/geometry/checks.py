"""Checks of the numbers that describe a set: done once, when a geometry is made, and never inside a prox."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minmaxcon.arrays import to_numpy
from minmaxcon.errors import InvalidInput

__all__ = ["finite_array", "finite_number", "whole_number"]


def whole_number(argument: str, value: Any) -> int:
    """Return ``value`` as an int of at least 1, or raise :class:`InvalidInput` in the argument's name."""
    try:
        number = int(value)
        if number == value and number >= 1:
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidInput(argument, value, "must be a whole number of at least 1.")


def finite_number(argument: str, value: Any, remedy: str, *, zero: bool = False) -> float:
    """Return ``value`` as a positive, finite float (or 0 where ``zero``), or raise :class:`InvalidInput`."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isfinite(number) and (number > 0 or (zero and number == 0)):
        return number
    raise InvalidInput(argument, value, remedy)


def finite_array(argument: str, value: Any, remedy: str) -> Any:
    """Return ``value`` as a new float64 NumPy array of finite numbers, or raise :class:`InvalidInput`."""
    try:
        array = np.array(to_numpy(value), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(argument, value, remedy) from None
    if np.isfinite(array).all():
        return array
    raise InvalidInput(argument, value, remedy)
