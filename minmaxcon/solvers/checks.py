"""Checks of the settings of solvers and oracles: done once, when one is made."""

from __future__ import annotations

import math
from typing import Any

from minmaxcon.errors import InvalidInput

__all__ = ["number", "whole_number"]


def whole_number(argument: str, value: Any) -> int:
    """Return ``value`` as an int of at least 1, or raise :class:`InvalidInput` in the argument's name."""
    try:
        if not isinstance(value, bool) and int(value) == value and value >= 1:
            return int(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidInput(argument, value, "must be a whole number of at least 1.")


def number(argument: str, value: Any, remedy: str, *, above: float = -math.inf, least: float = -math.inf) -> float:
    """Return ``value`` as a finite float above ``above`` and at least ``least``, or raise :class:`InvalidInput`."""
    try:
        found = math.nan if isinstance(value, (bool, str)) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if math.isfinite(found) and found > above and found >= least:
        return found
    raise InvalidInput(argument, value, remedy)
