"""Checks of the settings of solvers and oracles: done once, when one is made."""

from __future__ import annotations

from typing import Any

from minmaxcon.checks import number, whole
from minmaxcon.errors import InvalidInput
from minmaxcon.geometry.checks import whole_number

__all__ = ["check_draw", "number", "seed_number", "whole_number"]

_LARGEST_DRAW = 10**8
"""Samples that may be drawn at once: their indices alone are 800 MB."""


def seed_number(argument: str, value: Any) -> int:
    """Return ``value`` as an int of at least 0, or raise :class:`InvalidInput`; a float is no seed."""
    return whole(argument, value, least=0)


def check_draw(batch_size: int, samples: int, steps: int) -> None:
    """Refuse a batch size whose draws do not fit into memory: ``samples`` a step in all, ``steps`` drawn at once."""
    largest = _LARGEST_DRAW // steps
    if samples > largest:
        remedy = f"at most {largest:,} samples a step fit into memory where {steps} steps are drawn at once; take fewer"
        raise InvalidInput("batch_size", batch_size, f"{remedy}, such as 100.")
