r"""Gauss-Newton models of an objective's curvature: the Hessian itself where scores are linear in the parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

import minmaxcon as mm
from minmaxcon.arrays import Array, to_numpy

__all__ = ["GaussNewton", "auc_curvature", "logistic_curvature"]

_ROWS = 2000
"""Rows of each class that a network's matrix is estimated from; a linear model takes all."""

_RIDGE_LINEAR, _RIDGE_NETWORK = 1e-8, 30.0
"""Added to the diagonal, relative to its mean: for directions that no sample moves in, and for a network far more.

A network's undamped step meets a target on a small group by the cheapest change of parameters, which is to learn its
few rows by heart; damping makes steps more like those along gradients, whose effect carries over to other rows.
"""

_UNSEEN = 10.0
"""A block counts as if every direction had been seen in this many rows more."""


class GaussNewton:
    r"""Maps g to :math:`B^{-1}g` at any points, with :math:`B = E[J^\top H J]`, J the Jacobian of the scores.

    Parameters
    ----------
    model : Model
        The scoring model.
    features : ndarray or CSR (n, p)
        All rows.
    classes : sequence of ndarray of int
        The rows of the negative and of the positive class.
    row_weight : ndarray (n,)
        Weight of each row.
    matrix : callable
        ``matrix(jacobians, weights, scores)``, each one array a class (weights sum to the share of the class), gives
        B of shape (k, k) with k at least d; further variables of x get the gradient 0.
    constant : bool
        Whether B is the same at all points, given a linear model.
    ridge : float, optional
        Added to the diagonal, relative to its mean; by default what suits the model.
    """

    def __init__(
        self,
        model: mm.Model,
        features: Any,
        classes: Sequence[Any],
        row_weight: Any,
        matrix: Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Any],
        constant: bool = False,
        ridge: float | None = None,
    ) -> None:
        self.model, self.matrix = model, matrix
        self.linear = model.weak_convexity == 0.0
        self.ridge = (_RIDGE_LINEAR if self.linear else _RIDGE_NETWORK) if ridge is None else ridge
        self.constant = constant and self.linear
        self._factor: Any = None
        rng = np.random.default_rng(0)  # a fixed sample: the model of the curvature is no random draw of the solve
        self.parts, self.weights = [], []
        for rows in classes:
            few = self.linear or rows.size <= _ROWS
            chosen = rows if few else np.sort(rng.choice(rows, _ROWS, replace=False))
            weight = row_weight[chosen] * (row_weight[rows].sum() / row_weight[chosen].sum() / row_weight.sum())
            self.parts.append(features[chosen])
            self.weights.append(weight)

    def on(self, features: Any, classes: Sequence[Any], row_weight: Any) -> GaussNewton:
        """Return the model of the curvature from other rows, a block of a stream: arguments as for the class."""
        # A feature that no row of the block has may still have a gradient, from the blocks before.
        ridge = max(self.ridge, _UNSEEN / len(row_weight))
        return GaussNewton(self.model, features, classes, row_weight, self.matrix, self.constant, ridge)

    def at(self, x: Array) -> Callable[[Any], Any]:
        """Return the map at x (R, d): from an ndarray (R, k, d) to one of the same shape."""
        points = np.asarray(to_numpy(x), dtype=np.float64)
        # Single precision halves the time of a network's matrix, and is enough for a model of the curvature.
        precision = np.float64 if self.linear else np.float32
        if self.constant:
            self._factor = self._factored(points[0], precision) if self._factor is None else self._factor
            factors = [self._factor] * len(points)
        else:
            factors = [self._factored(point, precision) for point in points]

        def inverse(gradients: Any) -> Any:
            found = np.zeros_like(gradients)
            for r, (mine, factor) in enumerate(zip(gradients, factors, strict=True)):
                size = factor[0].shape[0]
                found[r, :, :size] = cho_solve(factor, mine[:, :size].T.astype(precision)).T
            return found

        return inverse

    def _factored(self, point: Any, precision: Any) -> Any:
        matrix = self._matrix(point).astype(precision)
        shift = np.finfo(precision).eps * max(float(np.abs(matrix).max()), 1e-6)
        while True:
            try:
                return cho_factor(matrix)
            except np.linalg.LinAlgError:  # all rows have one score, and what is left is rounding
                matrix[np.diag_indices_from(matrix)] += shift
                shift *= 10.0

    def _matrix(self, point: Any) -> Any:
        w = point[: self.model.dimension]
        jacobians = [self.model.jacobian(w, part) for part in self.parts]
        intercept = point[self.model.dimension : self.model.dimension + 1].sum()  # 0 where x is w alone
        scores = [self.model.predict(w, part) + intercept for part in self.parts]
        matrix = self.matrix(jacobians, self.weights, scores)
        return matrix + self.ridge * max(float(np.trace(matrix)) / len(matrix), 1e-12) * np.eye(len(matrix))


def auc_curvature(c1: float) -> Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Any]:
    r"""Return :math:`B = 2c_1(S_{D_+} + S_{D_-} + \delta\delta^\top)`, S and :math:`\delta` of the rows of J."""

    def matrix(jacobians: Sequence[Any], weights: Sequence[Any], _scores: Sequence[Any]) -> Any:
        total: Any = 0.0
        means = []
        for jacobian, weight in zip(jacobians, weights, strict=True):
            share = weight / weight.sum()
            mean = np.asarray(jacobian.T @ share, dtype=np.float64).ravel()
            total = total + _second_moment(jacobian, share) - np.outer(mean, mean)
            means.append(mean)
        difference = means[1] - means[0]
        return 2.0 * c1 * (total + np.outer(difference, difference))

    return matrix


def logistic_curvature(jacobians: Sequence[Any], weights: Sequence[Any], scores: Sequence[Any]) -> Any:
    r"""Return :math:`B = E[p(1 - p)(J, 1)^\top(J, 1)]`, with the intercept as last variable."""
    size = jacobians[0].shape[1]
    total = np.zeros((size + 1, size + 1))
    for jacobian, weight, score in zip(jacobians, weights, scores, strict=True):
        chance = 1.0 / (1.0 + np.exp(-np.clip(score, -60.0, 60.0)))
        share = weight * np.maximum(chance * (1.0 - chance), 1e-6)
        mean = np.asarray(jacobian.T @ share, dtype=np.float64).ravel()
        total[:size, :size] += _second_moment(jacobian, share)
        total[:size, size] += mean
        total[size, :size] += mean
        total[size, size] += share.sum()
    return total


def _second_moment(jacobian: Any, share: Any) -> Any:
    if hasattr(jacobian, "tocsr"):
        return np.asarray((jacobian.T @ jacobian.multiply(share[:, None])).todense(), dtype=np.float64)
    scaled = jacobian * np.sqrt(share).astype(jacobian.dtype)[:, None]
    return np.asarray(scaled.T @ scaled, dtype=np.float64)
