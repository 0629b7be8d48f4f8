"""Checks of the numbers that describe a set: done once, when a geometry is made, and never inside a prox."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.arrays import to_numpy
from minmaxcon.errors import InvalidInput

__all__ = ["finite_array", "whole_number"]


def whole_number(argument: str, value: Any) -> int:
    """Return ``value`` as an int of at least 1, or raise :class:`InvalidInput`; unlike an option, 1e4 is one too."""
    try:
        if not isinstance(value, bool) and int(value) == value and value >= 1:
            return int(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidInput(argument, value, "must be a whole number of at least 1.")


def finite_array(argument: str, value: Any, remedy: str) -> Any:
    """Return ``value`` as a new float64 NumPy array of finite numbers, or raise :class:`InvalidInput`."""
    try:
        array = np.array(to_numpy(value), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(argument, value, remedy) from None
    if np.isfinite(array).all():
        return array
    raise InvalidInput(argument, value, remedy)
