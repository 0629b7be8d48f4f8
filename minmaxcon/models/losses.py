"""Convex losses of a score, with value, slope and cvxpy form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace

__all__ = ["LogisticLoss", "Loss", "SquaredLoss"]


class Loss(ABC):
    r"""A loss :math:`\ell(s, t)` of a score s and a target t, convex in s.

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.models import Loss
    >>> class Huber(Loss):  # quadratic near the target, linear far from it
    ...     def evaluate(self, scores, target):
    ...         slope = np.clip(scores - target, -1.0, 1.0)
    ...         return slope * (scores - target) - 0.5 * slope**2, slope
    ...     def cvxpy_value(self, cp, w, features, target, weights):
    ...         return 0.5 * weights @ cp.huber(features @ w - target)
    >>> Huber().evaluate(np.array([0.5, 3.0]), np.zeros(2))
    (array([0.125, 2.5  ]), array([0.5, 1. ]))
    """

    @abstractmethod
    def evaluate(self, scores: Array, target: Array) -> tuple[Array, Array]:
        r"""Return the loss and its derivative in the score, both of the shape of ``scores``.

        Parameters
        ----------
        scores : array (..., B)
            s, one row per run.
        target : array (B,)
            t.
        """

    @abstractmethod
    def cvxpy_value(self, cp: Any, w: Any, features: Any, target: Any, weights: Any) -> Any:
        """Return the cvxpy expression of a weighted sum of the losses of linear scores ``features @ w``.

        Parameters
        ----------
        cp : module
            cvxpy.
        w : cvxpy expression (p,)
            The weights of the features.
        features, target : ndarray (n, p), (n,)
            The rows.
        weights : ndarray (n,)
            Of the rows, at least 0.
        """


class LogisticLoss(Loss):
    r""":math:`\ell(s, t) = \ln(1 + e^{-ts})` with :math:`t \in \{-1, +1\}`; no score overflows.

    Examples
    --------
    >>> import numpy as np
    >>> value, slope = LogisticLoss().evaluate(np.array([0.0, -1000.0]), np.array([1.0, 1.0]))
    >>> value.round(3).tolist(), slope.tolist()
    ([0.693, 1000.0], [-0.5, -1.0])
    """

    def evaluate(self, scores: Array, target: Array) -> tuple[Array, Array]:
        """See :meth:`Loss.evaluate`."""
        xp = namespace(scores)
        margin = target * scores
        small = xp.exp(-xp.abs(margin))
        value = xp.maximum(-margin, 0.0) + xp.log(1.0 + small)
        return value, -target * xp.where(margin > 0, small, 1.0 + 0.0 * small) / (1.0 + small)

    def cvxpy_value(self, cp: Any, w: Any, features: Any, target: Any, weights: Any) -> Any:
        """See :meth:`Loss.cvxpy_value`."""
        used = weights > 0
        return weights[used] @ cp.logistic(-(target[used, None] * features[used]) @ w)


class SquaredLoss(Loss):
    r""":math:`\ell(s, t) = (s - t)^2`.

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.models import SquaredLoss
    >>> value, slope = SquaredLoss().evaluate(np.array([1.0, 3.0]), np.array([0.0, 3.0]))
    >>> value, slope
    (array([1., 0.]), array([2., 0.]))
    """

    def evaluate(self, scores: Array, target: Array) -> tuple[Array, Array]:
        """See :meth:`Loss.evaluate`."""
        error = scores - target
        return error * error, 2.0 * error

    def cvxpy_value(self, cp: Any, w: Any, features: Any, target: Any, weights: Any) -> Any:
        """See :meth:`Loss.cvxpy_value`: p + 1 squares, whatever the number of rows."""
        # A QR factor has the rows' second moments, and is a well scaled program where n squares are not.
        factor: Any = np.linalg.qr(np.sqrt(weights)[:, None] * np.column_stack([features, -target]), mode="r")
        return cp.sum_squares(factor[:, :-1] @ w + factor[:, -1])
