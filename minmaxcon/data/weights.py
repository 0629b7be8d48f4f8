r"""Weights :math:`1_g(z)/\Pr(g)` that turn a mean over samples into the means of groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.errors import InvalidInput

__all__ = ["population_weights"]


def population_weights(membership: Any) -> Any:
    r"""Return :math:`1_g(z)/\Pr(g)`, whose products with a quantity average to the quantity's mean in each group.

    The shares are those of all the data, never of a batch: a sample then enters every batch with the same weight, and
    the mean of any batch is unbiased, whether or not it has a member of each group.

    Parameters
    ----------
    membership : array_like (n, k) of bool
        Whether each sample is in each group. Groups may overlap, and a sample may be in none: samples whose group is
        unknown, say, which then count for no group.

    Returns
    -------
    ndarray (n, k)
        Float64; the mean of each column is 1.

    Raises
    ------
    InvalidInput
        If this is no table of zeros and ones, or a group has no member.

    Examples
    --------
    >>> import numpy as np
    >>> kind = np.array([0, 1, 1, 1])
    >>> weights = population_weights(kind[:, None] == [0, 1])
    >>> loss = np.array([4.0, 1.0, 2.0, 3.0])
    >>> (loss[:, None] * weights).mean(axis=0)
    array([4., 2.])
    """
    remedy = "must be a table (n, k) that says of each sample whether it is in each group."
    try:
        found = np.asarray(membership, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("membership", membership, remedy) from None
    if found.ndim != 2 or not found.size or not np.isin(found, (0.0, 1.0)).all():
        raise InvalidInput("membership", membership, remedy)
    shares = found.mean(axis=0)
    if not shares.all():
        group = int(np.argmin(shares))
        raise InvalidInput("membership", f"group {group}", "has no member; merge it with another or leave it out.")
    return found / shares
