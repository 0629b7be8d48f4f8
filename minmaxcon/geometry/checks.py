"""The check of a dimension: done once, when a geometry is made, before a point of it is stored."""

from __future__ import annotations

from typing import Any

from minmaxcon.checks import whole

__all__ = ["dimension_of"]

_LARGEST = 10**9
"""Coordinates of a point: its float64 array alone is 8 GB."""


def dimension_of(value: Any) -> int:
    """Return the argument ``dimension`` as an int, or raise :class:`InvalidInput`: at least 1, and fit for memory."""
    return whole("dimension", value, most=_LARGEST)
