"""Checks of options, each refused in one line that names it: for what a problem's ``load`` is given, yours included."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minmaxcon.errors import InvalidInput

__all__ = ["number", "positive", "whole"]


def number(
    name: str,
    value: Any,
    remedy: str,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    below: float = math.inf,
    most: float = math.inf,
) -> float:
    """Return ``value`` as a finite float within limits.

    Parameters
    ----------
    name : str
        Name of the option, for the message.
    value : object
        What was given for it; booleans and strings are no numbers.
    remedy : str
        What the message says of it, such as "must be finite and at least 0.".
    above, least, below, most : float
        The number must be above the first, at least the second, below the third and at most the fourth.

    Raises
    ------
    InvalidInput
        If it is no such number.

    Examples
    --------
    >>> number("level", 0.9, "must lie in [0.5, 1).", least=0.5, below=1.0)
    0.9
    """
    try:
        found = math.nan if isinstance(value, (bool, str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if math.isfinite(found) and above < found < below and least <= found <= most:
        return found
    raise InvalidInput(name, value, remedy)


def positive(name: str, value: Any, *, several: bool = False) -> Any:
    """Return a positive, finite number or, with ``several``, a number or a vector of such, as bounds are given.

    Parameters
    ----------
    name : str
        Name of the option, for the message.
    value : object
        What was given for it; booleans and strings are no numbers.
    several : bool
        Whether a vector of at least one number is allowed too.

    Returns
    -------
    float or ndarray (R,)
        The number, or with ``several`` a new array, of length 1 for a single number.

    Raises
    ------
    InvalidInput
        If it is no such number.

    Examples
    --------
    >>> positive("radius", 3)
    3.0
    >>> positive("bound", [0.1, 0.2], several=True)
    array([0.1, 0.2])
    """
    if not several:
        return number(name, value, "must be positive and finite.", above=0.0)
    remedy = "must be positive and finite: a number or a list of them."
    try:
        given = np.asarray(value)
        found = np.atleast_1d(np.array(given, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(name, value, remedy) from None
    if given.dtype.kind not in "iuf" or found.ndim != 1 or found.size == 0:
        raise InvalidInput(name, value, remedy)
    if not (np.isfinite(found) & (found > 0)).all():
        raise InvalidInput(name, value, remedy)
    return found


def whole(name: str, value: Any, least: int = 1) -> int:
    """Return a whole number of at least ``least`` as an int.

    Parameters
    ----------
    name : str
        Name of the option, for the message.
    value : object
        What was given for it; booleans are no numbers, nor is 3.0, which is often a mistake.
    least : int
        The smallest number allowed.

    Raises
    ------
    InvalidInput
        If it is no such number.

    Examples
    --------
    >>> whole("seed", 7, least=0)
    7
    """
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= least:
        return int(value)
    raise InvalidInput(name, value, f"must be a whole number of at least {least}.")
