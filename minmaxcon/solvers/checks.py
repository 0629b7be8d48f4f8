"""Checks of the settings of solvers and oracles: done once, when one is made."""

from __future__ import annotations

import math
from typing import Any

from minmaxcon.checks import number, seed_number, whole
from minmaxcon.errors import InvalidInput

__all__ = ["batch_number", "check_draw", "number", "seed_number", "whole_number"]

_LARGEST_DRAW = 10**8
"""Samples that may be drawn at once: their indices alone are 800 MB."""


def whole_number(argument: str, value: Any) -> int:
    """Return ``value`` as an int of at least 1, or raise :class:`InvalidInput`."""
    return whole(argument, value)


def batch_number(value: Any) -> int:
    """Return the argument ``batch_size`` as an int of at least 1; :func:`check_draw` says how many are too many."""
    return whole("batch_size", value, most=math.inf)


def check_draw(batch_size: int, samples: int, steps: int) -> None:
    """Refuse a batch size whose draws do not fit into memory: ``samples`` a step in all, ``steps`` drawn at once."""
    largest = _LARGEST_DRAW // steps
    if samples > largest:
        remedy = f"at most {largest:,} samples a step fit into memory where {steps} steps are drawn at once; take fewer"
        raise InvalidInput("batch_size", batch_size, f"{remedy}, such as 100.")
