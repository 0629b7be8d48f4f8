"""Checks of the settings of solvers and oracles: done once, when one is made."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minmaxcon.errors import InvalidInput

__all__ = ["check_draw", "number", "seed_number", "whole_number"]

_LARGEST_DRAW = 10**8
"""Samples that may be drawn at once: their indices alone are 800 MB."""


def whole_number(argument: str, value: Any) -> int:
    """Return ``value`` as an int of at least 1, or raise :class:`InvalidInput` in the argument's name."""
    try:
        if not isinstance(value, bool) and int(value) == value and value >= 1:
            return int(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidInput(argument, value, "must be a whole number of at least 1.")


def seed_number(argument: str, value: Any) -> int:
    """Return ``value`` as an int of at least 0, or raise :class:`InvalidInput`; a float is no seed."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InvalidInput(argument, value, "must be a whole number of at least 0.")
    return int(value)


def number(argument: str, value: Any, remedy: str, *, above: float = -math.inf, least: float = -math.inf) -> float:
    """Return ``value`` as a finite float above ``above`` and at least ``least``, or raise :class:`InvalidInput`."""
    try:
        found = math.nan if isinstance(value, (bool, str)) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if math.isfinite(found) and found > above and found >= least:
        return found
    raise InvalidInput(argument, value, remedy)


def check_draw(batch_size: int, samples: int, steps: int) -> None:
    """Refuse a batch size whose draws do not fit into memory: ``samples`` a step in all, ``steps`` drawn at once."""
    largest = _LARGEST_DRAW // steps
    if samples > largest:
        remedy = f"at most {largest:,} samples a step fit into memory where {steps} steps are drawn at once; take fewer"
        raise InvalidInput("batch_size", batch_size, f"{remedy}, such as 100.")
