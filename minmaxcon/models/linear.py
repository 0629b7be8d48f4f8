"""The linear model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace
from minmaxcon.checks import whole
from minmaxcon.models.base import Model

__all__ = ["Linear"]


class Linear(Model):
    r"""Scores :math:`h_w(\xi) = \langle w, \xi\rangle`; no intercept, since no difference of scores sees one.

    Parameters
    ----------
    features : int
        Number of features, which is the length of w.

    Raises
    ------
    InvalidInput
        If it is not a whole number of at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.models import Linear
    >>> Linear(2).predict(np.array([1.0, -1.0]), np.array([[3.0, 1.0], [0.0, 2.0]]))
    array([ 2., -2.])
    """

    linear = True
    engine = "numpy"

    def __init__(self, features: int) -> None:
        self.dimension = whole("features", features)

    def evaluate(self, w: Array, features: Array) -> tuple[Array, Callable[[Array], Array]]:
        """See :meth:`Model.evaluate`: two matrix products, which bound the time of a step from below."""
        matmul = namespace(w).matmul
        return matmul(w, features.T), lambda slope: matmul(slope, features)

    def jacobian(self, w: Any, features: Any) -> Any:
        """Return the features themselves."""
        return features

    def start(self, seed: int) -> Any:
        """Zero, for which every score is zero."""
        return np.zeros(self.dimension)

    def score_bound(self, radius: float, means: Any) -> Any:
        r"""Exactly :math:`\text{radius}\cdot|m|_2`."""
        return radius * np.linalg.norm(means, axis=-1)
