"""Checks of options, each refused in one line that names it: minmaxcon's own, and those of your problems.

There is one rule for what a number is, and every check here goes by it: the integers and floats of Python and NumPy,
arrays of a single number without axes, and what else converts to a float, such as a fraction. Booleans, texts, dates,
complex numbers, NaN and infinity are none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from minmaxcon.arrays import to_numpy
from minmaxcon.errors import InvalidInput, UnknownName

__all__ = [
    "batch_number",
    "check_draw",
    "choice",
    "dimension_of",
    "file_path",
    "finite_array",
    "flag",
    "instance",
    "instances",
    "mapping",
    "number",
    "positive",
    "seed_number",
    "whole",
]

_LARGEST_DIMENSION = 10**9
"""Coordinates of a point: its float64 array alone is 8 GB."""

_LARGEST_DRAW = 10**8
"""Samples that may be drawn at once: their indices alone are 800 MB."""

_REFUSED = (TypeError, ValueError, ArithmeticError, AttributeError, RuntimeError)
"""Errors of conversions to a number; torch raises RuntimeError."""


def _scalar(value: Any) -> Any:
    """Return ``value`` as a Python number, exactly where it is whole, or raise TypeError if it is none."""
    if hasattr(value, "dtype"):
        array = to_numpy(value)
        if array.dtype.kind not in "iuf" or array.ndim or np.ma.is_masked(value):
            raise TypeError
        value = array.item()
    # Texts and buffers have neither method; float() reads them all the same.
    if isinstance(value, bool) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise TypeError
    return value


def _holds_boolean(value: Any) -> bool:
    """Tell whether a list holds a boolean or an array of them, which NumPy would turn into numbers beside others."""
    if isinstance(value, list | tuple):
        return any(map(_holds_boolean, value))
    return isinstance(value, bool) or (hasattr(value, "dtype") and str(value.dtype) in ("bool", "torch.bool"))


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
        found = float(_scalar(value))
    except _REFUSED:
        found = math.nan
    if math.isfinite(found) and above < found < below and least <= found <= most:
        return found
    raise InvalidInput(name, value, remedy)


def finite_array(name: str, value: Any, remedy: str) -> Any:
    """Return ``value``, numbers of any shape, as a new array of finite numbers.

    Parameters
    ----------
    name : str
        Name of the option, for the message.
    value : array_like
        What was given for it; arrays of booleans or strings are none of numbers.
    remedy : str
        What the message says of it, such as "must be a vector of finite numbers.".

    Returns
    -------
    ndarray of float64
        Of the shape of ``value``: () for a single number.

    Raises
    ------
    InvalidInput
        If an entry is no number or not finite.

    Examples
    --------
    >>> finite_array("center", [0, 1.5], "must be a vector of finite numbers.")
    array([0. , 1.5])
    """
    try:
        given = np.asarray(to_numpy(value))
        if given.dtype.kind == "O":  # fractions and integers of any length among others
            given = np.array([float(_scalar(entry)) for entry in given.flat]).reshape(given.shape)
        good = given.dtype.kind in "iuf" and not np.ma.is_masked(value) and not _holds_boolean(value)
        if good and not isinstance(value, bytearray | memoryview):
            with np.errstate(over="ignore"):  # what is longer than float64 becomes infinite
                found = np.array(given, dtype=np.float64)
            if np.isfinite(found).all():
                return found
    except _REFUSED:
        pass
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
    found = np.atleast_1d(finite_array(name, value, remedy))
    if found.ndim != 1 or found.size == 0 or not (found > 0).all():
        raise InvalidInput(name, value, remedy)
    return found


def whole(name: str, value: Any, least: int = 1, most: float = 2**63 - 1) -> int:
    """Return a whole number within limits as an int.

    Parameters
    ----------
    name : str
        Name of the option, for the message.
    value : object
        What was given for it; booleans are no numbers, and a float that is whole, such as 1e4, is one. Go on with what
        is returned: ``range`` and shapes of arrays take no float.
    least : int
        The smallest number allowed.
    most : int
        The largest number allowed, by default the largest that fits into 64 bits; ``math.inf`` for none.

    Raises
    ------
    InvalidInput
        If it is no such number.

    See Also
    --------
    seed_number : For seeds, where a float is a mistake.

    Examples
    --------
    >>> whole("steps", 1e4)
    10000
    """
    try:
        given = _scalar(value)
        found = int(given)
        good = bool(found == given)
    except _REFUSED:
        found, good = least, False
    if good and least <= found <= most:
        return found
    limits = f"at least {least}" + (f" and at most {most}" if found > most or most < 2**63 - 1 else "")
    raise InvalidInput(name, value, f"must be a whole number of {limits}.")


def seed_number(name: str, value: Any) -> int:
    """Return a seed, a whole number of at least 0 and of any length, as an int.

    Parameters
    ----------
    name : str
        Name of the option, for the message.
    value : object
        What was given for it. Only Python's and NumPy's integers are seeds: a float would be a mistake, even 3.0.

    Raises
    ------
    InvalidInput
        If it is no such number.

    Examples
    --------
    >>> seed_number("seed", 7)
    7
    """
    try:
        found = int(_scalar(value)) if isinstance(value, int | np.integer) else -1
    except TypeError:
        found = -1
    if found >= 0:
        return found
    raise InvalidInput(name, value, "must be a whole number of at least 0.")


def choice(name: str, value: Any, known: Iterable[str], advice: str = "") -> str:
    """Return a text that is one of those known.

    Parameters
    ----------
    name : str
        Name of the option, for the message.
    value : object
        What was given for it.
    known : iterable of str
        The texts that are allowed.
    advice : str
        What the message says beside their list, a sentence.

    Raises
    ------
    UnknownName
        If it is none of them; the message suggests the nearest.

    Examples
    --------
    >>> choice("ties", "half", ("half", "strict"))
    'half'
    """
    listed = tuple(known)
    if isinstance(value, str) and value in listed:
        return value
    raise UnknownName(name, value, listed, advice)


def instance(name: str, value: Any, kind: Any, remedy: str) -> Any:
    """Return a value of some kind as it is.

    Parameters
    ----------
    name : str
        Name of the option, for the message.
    value : object
        What was given for it.
    kind : type or tuple of types
        What it must be an instance of.
    remedy : str
        What the message says of it, such as "must be a Model such as Linear(3).".

    Raises
    ------
    InvalidInput
        If it is none.

    Examples
    --------
    >>> instance("text", "a", str, "must be a text.")
    'a'
    """
    if isinstance(value, kind):
        return value
    raise InvalidInput(name, value, remedy)


def instances(name: str, value: Any, kind: Any, remedy: str) -> tuple[Any, ...]:
    """Return the entries of a list, or of any other iterable but a text, all of some kind.

    Parameters
    ----------
    name, kind, remedy
        As for :func:`instance`.
    value : object
        What was given.

    Returns
    -------
    tuple
        The entries; there may be none.

    Raises
    ------
    InvalidInput
        If it is no such iterable; where an entry is of another kind it is named: ``texts[1]``.

    Examples
    --------
    >>> instances("texts", ["a", "b"], str, "must be a list of texts.")
    ('a', 'b')
    """
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InvalidInput(name, value, remedy)
    return tuple(instance(f"{name}[{i}]", entry, kind, remedy) for i, entry in enumerate(_entries(name, value, remedy)))


def _entries(name: str, value: Any, remedy: str) -> list[Any]:
    """Return the entries of an iterable; an array without axes has none, though it has the method."""
    try:
        return list(value)
    except TypeError:
        raise InvalidInput(name, value, remedy) from None


def mapping(name: str, value: Any, remedy: str) -> Mapping[str, Any]:
    """Return a mapping by names as it is.

    Parameters
    ----------
    name : str
        Name of the option, for the message.
    value : object
        What was given for it.
    remedy : str
        What the message says of it, such as 'must map names to arrays: {"features": array}.'.

    Raises
    ------
    InvalidInput
        If it is none, or one of its keys is no text.

    Examples
    --------
    >>> mapping("arrays", {"a": 1}, "must map names to arrays.")
    {'a': 1}
    """
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return value
    raise InvalidInput(name, value, remedy)


def file_path(name: str, value: Any) -> Path:
    """Return the path of a file or folder, whether it is there or not.

    Parameters
    ----------
    name : str
        Name of the option, for the message.
    value : object
        What was given for it: a text or a path.

    Raises
    ------
    InvalidInput
        If it is none.

    Examples
    --------
    >>> file_path("folder", "results").name
    'results'
    """
    try:
        return Path(value)
    except TypeError:
        raise InvalidInput(name, value, "must be a path: a text or a pathlib.Path.") from None


def flag(name: str, value: Any) -> bool:
    """Return a choice between yes and no as a bool.

    Parameters
    ----------
    name : str
        Name of the option, for the message.
    value : object
        What was given for it: True or False, Python's or NumPy's.

    Raises
    ------
    InvalidInput
        If it is neither.

    Examples
    --------
    >>> flag("labelled", True)
    True
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise InvalidInput(name, value, "must be True or False.")


def dimension_of(value: Any) -> int:
    """Return the argument ``dimension`` as an int, or raise :class:`InvalidInput`: at least 1, and fit for memory."""
    return whole("dimension", value, most=_LARGEST_DIMENSION)


def batch_number(value: Any) -> int:
    """Return the argument ``batch_size`` as an int of at least 1; :func:`check_draw` says how many are too many."""
    return whole("batch_size", value, most=math.inf)


def check_draw(batch_size: int, samples: int, steps: int) -> None:
    """Refuse a batch size whose draws do not fit into memory: ``samples`` a step in all, ``steps`` drawn at once."""
    largest = _LARGEST_DRAW // steps
    if samples > largest:
        remedy = f"at most {largest:,} samples a step fit into memory where {steps} steps are drawn at once; take fewer"
        raise InvalidInput("batch_size", batch_size, f"{remedy}, such as 100.")
