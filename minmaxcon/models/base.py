"""The interface of scoring models: one flat parameter vector, scores, and their pullback."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, to_numpy
from minmaxcon.checks import finite_array
from minmaxcon.errors import InvalidInput

__all__ = ["Model"]


class Model(ABC):
    """A scoring model :math:`h_w` with flat parameters w.

    Attributes
    ----------
    dimension : int
        Length of w.
    linear : bool
        Whether scores are linear in w, so that convex losses of them are convex; nothing is claimed by default.
    engine : str
        The array engine of problems that name none: ``"torch"``, which gives gradients, unless the model gives its own
        and runs faster with ``"numpy"``.

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon.models import MLP, Linear
    >>> [model.dimension for model in (Linear(3), MLP(3))]
    [3, 50]
    """

    dimension: int
    linear: bool = False
    engine: str = "torch"

    @abstractmethod
    def evaluate(self, w: Array, features: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Score a batch.

        Parameters
        ----------
        w : array (..., d)
            Parameters, one vector per run.
        features : array (B, p)
            The batch.

        Returns
        -------
        scores : array (..., B)
            :math:`h_w`.
        pullback : callable
            Gives, from the gradient in the scores (..., B), the gradient in w (..., d).
        """

    @abstractmethod
    def jacobian(self, w: Any, features: Any) -> Any:
        """Return the derivatives (B, d) of the scores of rows in the parameters, for one vector w (d,).

        Parameters
        ----------
        w : ndarray (d,)
            Parameters.
        features : array (B, p)
            Rows, dense or CSR.

        Returns
        -------
        ndarray or CSR (B, d)
            One row per sample.
        """

    def predict(self, w: Any, features: Any) -> Any:
        """Return the scores (n,) of rows as an ndarray, for one parameter vector w (d,).

        Raises
        ------
        InvalidInput
            If w is no vector of d finite numbers, or the features are no matrix of real numbers.
        """
        point, rows = self.checked(w, features)
        return np.asarray(to_numpy(self.evaluate(point, rows)[0]), dtype=np.float64)

    def checked(self, w: Any, features: Any) -> tuple[Any, Any]:
        """Return the parameters (d,) in float64, and the rows as NumPy or SciPy hold them; errors are as above."""
        remedy = f"must be a vector of {self.dimension} finite numbers."
        point = finite_array("w", w, remedy)
        if point.shape != (self.dimension,):
            raise InvalidInput("w", w, remedy)
        rows = features if hasattr(features, "tocsr") else np.asarray(to_numpy(features))
        # The values of the rows are not looked at: that would take as long as their scores.
        if rows.ndim != 2 or rows.dtype.kind not in "biuf" or np.ma.is_masked(features):
            raise InvalidInput("features", features, "must be a matrix (n, p) of real numbers, none of them masked.")
        return point, rows

    @abstractmethod
    def start(self, seed: int) -> Any:
        """Return parameters for which the scores are constant, from which training can start: an ndarray (d,)."""

    @abstractmethod
    def score_bound(self, radius: float, means: Any) -> Any:
        r"""Bound :math:`|\langle m, h_w\rangle|` over :math:`|w| \le \text{radius}` for each mean vector m.

        Parameters
        ----------
        radius : float
            Radius of the ball of parameters.
        means : ndarray (g, p)
            Mean features of each group, or differences of them.

        Returns
        -------
        ndarray (g,)
            Upper bounds on the absolute mean score (or difference of mean scores).
        """
