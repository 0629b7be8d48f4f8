"""The values of a column, in order of appearance, and the signs they stand for."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from minmaxcon.errors import DataError, InvalidInput

__all__ = ["SENSITIVE", "Vocabulary", "group_signs", "only", "positive_code", "protected_code"]

SENSITIVE = "sensitive_features"

MOST_GROUPS = 1000
"""Most different sensitive values, where one is protected against all others; more are a measurement."""


class Vocabulary:
    """The different values of a column, in order of appearance.

    Parameters
    ----------
    argument : str
        As messages name the column.
    most : int
        Most different values; another one is refused as it arrives.
    remedy : str
        What to do about too many values.
    """

    def __init__(self, argument: str, most: int, remedy: str) -> None:
        self.argument, self.most, self.remedy = argument, most, remedy
        self.codes: dict[Hashable, int] = {}

    def forget(self, size: int) -> None:
        """Drop the values that came after the first ``size``."""
        while len(self.codes) > size:
            self.codes.popitem()

    @property
    def values(self) -> list[Any]:
        """The values; that of code k at place k."""
        return list(self.codes)

    def encode(self, column: Any) -> Any:
        """Return the code of each value, an integer array (n,); new values get the next codes.

        Raises
        ------
        DataError
            There are more values than the column may have.
        """
        if column.dtype.kind == "O":
            return np.array([self.code(_plain(value)) for value in column], dtype=np.int64)
        if len(column) == 1:
            return np.array([self.code(column.item())], dtype=np.int64)
        found, first, inverse = np.unique(column, return_index=True, return_inverse=True)
        codes = np.empty(len(found), dtype=np.int64)
        for place in np.argsort(first, kind="stable"):
            codes[place] = self.code(found[place].item())
        return codes[inverse]

    def code(self, value: Hashable) -> int:
        """Return the code of one value."""
        code = self.codes.get(value)
        if code is None:
            if len(self.codes) == self.most:
                listed = ", ".join(repr(known) for known in [*self.codes, value][:8])
                raise DataError(self.argument, f"has more than {self.most:,} values ({listed}); {self.remedy}")
            code = self.codes[value] = len(self.codes)
        return code


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _position(values: Sequence[Any], asked: Any, argument: str, column: str) -> int:
    """Return which value was asked for; a text may be asked for by a number that reads alike, and the reverse."""
    for same in (lambda value: value == asked, lambda value: str(value) == str(asked)):
        for code, value in enumerate(values):
            if same(value):
                return code
    listed = ", ".join(repr(value) for value in values[:8]) + (", ..." if len(values) > 8 else "")
    raise InvalidInput(argument, asked, f"is no value of {column}; its values are {listed}.")


def positive_code(values: Sequence[Any], positive: Any) -> int:
    """Return the code of the positive label: the one asked for, else the last in sorted order, as scikit-learn has it.

    Raises
    ------
    InvalidInput
        No label is the one asked for.
    DataError
        Numbers and texts are mixed.
    """
    if positive is not None:
        return _position(values, positive, "positive", "y")
    try:
        return max(range(len(values)), key=values.__getitem__)
    except TypeError:
        raise DataError("y", f"has labels of several types, {list(values)}; use numbers or texts throughout.") from None


def protected_code(values: Sequence[Any], counts: Sequence[int], protected: Any) -> int:
    """Return the code of the protected value.

    Parameters
    ----------
    values : sequence
        The different values of the sensitive column.
    counts : sequence of int
        Rows of each.
    protected : object, optional
        The protected value, against all others. By default, of two values, the one with fewer rows (of equally many
        the one that sorts later).

    Raises
    ------
    DataError
        One value only, or more than two and none was asked for.
    InvalidInput
        No value is the one asked for.
    """
    if len(values) == 1:
        raise DataError(SENSITIVE, f"is {values[0]!r} in every row; two groups are needed.")
    if protected is not None:
        return _position(values, protected, "protected", SENSITIVE)
    if len(values) > 2:
        listed = ", ".join(repr(value) for value in values[:8]) + (", ..." if len(values) > 8 else "")
        raise DataError(
            SENSITIVE,
            f"has {len(values):,} values ({listed}); say with protected= which one is protected, against all others.",
        )
    if counts[0] != counts[1]:
        return int(counts[1] < counts[0])
    try:
        return int(values[1] > values[0])
    except TypeError:  # values of two types have no order of their own
        return int(str(values[1]) > str(values[0]))


def group_signs(column: Any, protected: Any) -> tuple[Any, tuple[Any, Any]]:
    """Return the signs of the groups, and what they stand for.

    Parameters
    ----------
    column : ndarray (n,)
        Sensitive values, none missing.
    protected : object, optional
        As in :func:`protected_code`.

    Returns
    -------
    signs : ndarray (n,) of int8
        +1 protected, -1 unprotected.
    values : (unprotected, protected)
        Their values; several unprotected ones are called "not ...".

    Raises
    ------
    DataError, InvalidInput
        As in :func:`protected_code`.
    """
    vocabulary = Vocabulary(SENSITIVE, MOST_GROUPS, "merge its values into a few groups.")
    codes = vocabulary.encode(column)
    values = vocabulary.values
    chosen = protected_code(values, np.bincount(codes).tolist(), protected)
    others = values[1 - chosen] if len(values) == 2 else f"not {values[chosen]}"
    return np.where(codes == chosen, 1, -1).astype(np.int8), (others, values[chosen])


def only(values: Any) -> Any:
    """Return the single value of an array or list of one, as Python has it; None where there is not just one."""
    if type(values) is np.ndarray:
        return values.item() if values.shape == (1,) and values.dtype.kind != "O" else None
    return _plain(values[0]) if type(values) in (list, tuple) and len(values) == 1 else None
