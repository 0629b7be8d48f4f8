"""Subsets of the rows by label and sensitive group: the sets G and G' between which an AUC is taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from minmaxcon.errors import InvalidInput

__all__ = ["PredicateSubset", "Subset", "SubsetLike", "subset_from"]

Mask = NDArray[np.bool_]
Sign = Literal[-1, 1] | None


class SubsetLike(Protocol):
    """Whatever selects rows by label and group; ``str`` of it stands in messages."""

    def mask(self, label: NDArray[Any], group: NDArray[Any]) -> Mask:
        """Return which of the n rows belong, a boolean array (n,)."""


@dataclass(frozen=True, slots=True)
class Subset:
    """The rows with a given label, a given group, both or neither.

    Attributes
    ----------
    label : +1, -1 or None
        Positive, negative, or either.
    group : +1, -1 or None
        Protected, unprotected, or either.

    Raises
    ------
    InvalidInput
        Another value.

    Examples
    --------
    >>> str(Subset(label=1, group=-1)), str(Subset())
    ('positive & unprotected', 'everyone')
    """

    label: Sign = None
    group: Sign = None

    def __post_init__(self) -> None:
        for argument in ("label", "group"):
            if getattr(self, argument) not in (-1, 1, None):
                raise InvalidInput(argument, getattr(self, argument), "must be 1, -1 or None (either).")

    def mask(self, label: NDArray[Any], group: NDArray[Any]) -> Mask:
        """Return which of the n rows belong, a boolean array (n,)."""
        inside = np.ones(len(label), dtype=np.bool_)
        if self.label is not None:
            inside &= label == self.label
        if self.group is not None:
            inside &= group == self.group
        return inside

    def __str__(self) -> str:
        label = {1: "positive", -1: "negative", None: ""}[self.label]
        group = {1: "protected", -1: "unprotected", None: ""}[self.group]
        return " & ".join(filter(None, (label, group))) or "everyone"


@dataclass(frozen=True, slots=True)
class PredicateSubset:
    """The rows that a function of label and group selects.

    Attributes
    ----------
    function : callable
        ``function(label, group)`` with arrays (n,) of -1 and +1 returns a boolean array (n,).
    """

    function: Callable[[NDArray[Any], NDArray[Any]], Any]

    def mask(self, label: NDArray[Any], group: NDArray[Any]) -> Mask:
        """Return which of the n rows belong, a boolean array (n,).

        Raises
        ------
        InvalidInput
            The function returned something else.
        """
        inside = np.asarray(self.function(label, group))
        if inside.dtype != np.bool_ or inside.shape != label.shape:
            returned = f"{inside.dtype} of shape {inside.shape}"
            raise InvalidInput(str(self), returned, f"must return a boolean array of shape {label.shape}.")
        return inside

    def __str__(self) -> str:
        return str(getattr(self.function, "__name__", "function"))


def subset_from(value: Any) -> SubsetLike:
    """Return the subset that a user means.

    Parameters
    ----------
    value : object
        An object with a method ``mask``, a function ``f(label, group)``, or a pair (label, group) of 1, -1 or None.

    Raises
    ------
    InvalidInput
        None of these.
    """
    if hasattr(value, "mask"):
        subset: SubsetLike = value
        return subset
    if callable(value):
        return PredicateSubset(value)
    if isinstance(value, tuple) and len(value) == 2:
        return Subset(*value)
    raise InvalidInput("metric", value, "a subset is a Subset, a pair (label, group) or a function f(label, group).")
