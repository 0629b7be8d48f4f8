r"""Objectives that a target is met at the least cost of, and Gauss-Newton models of their curvature.

The model is the Hessian itself where the scores are linear in the parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.checks import choice, positive
from minmaxcon_problems.fair_auc.surrogate.constraint import AUCConstraint, Layout

__all__ = [
    "OBJECTIVES",
    "AUCObjective",
    "GaussNewton",
    "LogisticLoss",
    "LogisticObjective",
    "ScoreObjective",
    "SmoothedAUC",
    "auc_curvature",
    "logistic_curvature",
    "named_objective",
]


class ScoreObjective(ABC):
    r"""An objective of the scores, with variables of its own beside the model's parameters.

    Of these there are ``variables``, which follow the parameters in x. ``c1`` and ``c2`` are scale and margin of the
    quadratic loss, where it is one; ``quadratic`` says whether its curvature is taken to be that of a quadratic
    function of the scores, ``followed`` whether it is refreshed at every point, like the constraints. ``tolerance`` is
    by how much first-order optimality may still let it fall, relative to one plus its size. ``ridge_curvature`` is the
    curvature of the penalty at ridge :math:`\tau = 1`, in the objective's own unit.
    """

    name: str = ""
    c1: float = 0.5
    c2: float = 1.0
    variables: int
    quadratic: bool = False
    followed: bool = False
    tolerance: float = 1e-5
    ridge_curvature: float

    @abstractmethod
    def constraint(self, model: mm.Model, radius: float, reach: float) -> mm.StochasticMinMaxConstraint:
        """Return the objective; ``reach`` bounds every score."""

    @abstractmethod
    def arrays(self, positive: Any, row_weight: Any) -> Mapping[str, Any]:
        """Return what a batch needs besides the features: arrays of n rows, from a mask (n,) and weights (n,)."""

    @abstractmethod
    def curvature(self) -> Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Any]:
        """Return the matrix for :class:`~minmaxcon_problems.fair_auc.target.objectives.GaussNewton`."""


class AUCObjective(ScoreObjective):
    """The quadratic AUC loss :math:`E[c_1(h - h' - c_2)^2]`, with the two means as variables."""

    name = "quadratic_auc"
    variables = 2
    quadratic = True

    def __init__(self, c1: float = 0.5, c2: float = 1.0) -> None:
        self.c1, self.c2 = positive("c1", c1), positive("c2", c2)
        self.ridge_curvature = 4.0 * self.c1  # noise of two rows, in 2 c1 (S + S')

    def constraint(self, model: mm.Model, radius: float, reach: float) -> mm.StochasticMinMaxConstraint:
        """See :meth:`ScoreObjective.constraint`."""
        layout = Layout(model, 1, self.c1, self.c2, radius)
        return AUCConstraint(layout, [0], 2.0 * reach, name="AUC surrogate")

    def arrays(self, positive: Any, row_weight: Any) -> Mapping[str, Any]:
        """See :meth:`ScoreObjective.arrays`."""
        weights = np.stack([positive, ~positive], axis=1) * row_weight[:, None]
        return {"weights": weights / weights.mean(axis=0)}

    def curvature(self) -> Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Any]:
        """See :meth:`ScoreObjective.curvature`."""
        return auc_curvature(self.c1)


class LogisticLoss(mm.StochasticMinMaxConstraint):
    r"""The logistic loss :math:`E\ln(1 + \exp(-\zeta(h_w + b)))` of labels :math:`\zeta`; x = (w, b).

    A batch carries ``features`` (B, p) and ``signs`` (B,), the labels times the weights of the rows.
    """

    name = "logistic loss"

    def __init__(self, model: mm.Model) -> None:
        self.model = model
        self.convex = model.linear

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        """See :meth:`minmaxcon.StochasticMinMaxConstraint.evaluate`."""
        xp = namespace(x)
        size = self.model.dimension
        scores, score_pullback = self.model.evaluate(x[..., :size], batch["features"])
        signs = batch["signs"]
        weight = xp.abs(signs) * (1.0 / signs.shape[0])
        margin = xp.sign(signs) * (scores + x[..., size:])
        # ln(1 + exp(-m)) without overflow for large |m|
        low = xp.exp(-xp.abs(margin))
        loss = xp.log(1.0 + low) + xp.maximum(-margin, margin * 0.0)
        slope = -xp.where(margin > 0, low, low * 0.0 + 1.0) / (1.0 + low) * xp.sign(signs) * weight

        def pullback(y: Array, _a: Array) -> Array:
            mine = y[..., None] * slope
            return xp.concat([score_pullback(mine), xp.sum(mine, keepdims=True)])

        return mm.Evaluation(xp.sum(loss * weight), xp.zeros((*x.shape[:-1], 0), x), pullback)


class LogisticObjective(ScoreObjective):
    """The logistic loss, with an intercept as variable."""

    name = "logistic"
    variables = 1
    ridge_curvature = 0.25  # the loss curves by at most a quarter

    def constraint(self, model: mm.Model, radius: float, reach: float) -> mm.StochasticMinMaxConstraint:
        """See :meth:`ScoreObjective.constraint`."""
        return LogisticLoss(model)

    def arrays(self, positive: Any, row_weight: Any) -> Mapping[str, Any]:
        """See :meth:`ScoreObjective.arrays`."""
        return {"signs": np.where(positive, 1.0, -1.0) * row_weight / row_weight.mean()}

    def curvature(self) -> Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Any]:
        """See :meth:`ScoreObjective.curvature`."""
        return logistic_curvature


class SmoothedAUC(AUCObjective):
    r"""One minus the true AUC, by a smooth form that is followed from point to point; its curvature model is quadratic.

    It starts where the quadratic loss ends: from constant scores there is nothing to follow.
    """

    name = "auc"
    variables = 0
    followed = True
    tolerance = 1e-4  # in the unit of the AUC, of which no data set shows that many digits


OBJECTIVES: dict[str, type[ScoreObjective]] = {
    "auc": SmoothedAUC,
    "quadratic_auc": AUCObjective,
    "logistic": LogisticObjective,
}
"""The objectives by name."""


def named_objective(objective: str | ScoreObjective, c1: float = 0.5, c2: float = 1.0) -> ScoreObjective:
    """Return the objective of a name, with scale and margin of its quadratic loss, or the one given.

    Raises UnknownName where there is none of that name.
    """
    if isinstance(objective, ScoreObjective):
        return objective
    kind = OBJECTIVES[choice("objective", objective, OBJECTIVES)]
    return kind(c1, c2) if issubclass(kind, AUCObjective) else kind()


_ROWS = 500
"""Rows of each class that a network's matrix is estimated from, beside its damping; a linear model takes all."""

_RIDGE_LINEAR, _RIDGE_NETWORK = 1e-7, 30.0
"""Added to the diagonal, relative to its mean: for directions that no sample moves in, and for a network far more.

A network's undamped step meets a target on a small group by the cheapest change of parameters, which overfits its
few rows; damping makes steps more like those along gradients, whose effect carries over to other rows.
"""

_UNSEEN = 10.0
"""A block counts as if every direction had been seen in this many rows more."""


class GaussNewton:
    r"""Maps g to :math:`B^{-1}g` at any points, with :math:`B = E[J^\top H J]`, J the Jacobian of the scores.

    ``features`` (n, p) are those of all rows, dense or CSR, ``classes`` the rows of the negative and of the positive
    class, ``row_weight`` (n,) the weight of each row. ``matrix(jacobians, weights, scores)``, each one array a class
    (weights sum to the share of the class), gives B of shape (k, k) with k at least d; further variables of x get the
    gradient 0. B is the same at all points where ``constant``, given a linear model. ``ridge`` is added to the
    diagonal, relative to its mean; None stands for what suits the model.
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
        self.linear = model.linear
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
        from scipy.linalg import cho_solve  # half of the time of importing the package, and only fits need it

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
        from scipy.linalg import cho_factor

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
        matrix[np.diag_indices_from(matrix)] += self.ridge * max(float(np.trace(matrix)) / len(matrix), 1e-12)
        return matrix


def auc_curvature(c1: float) -> Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Any]:
    r"""Return :math:`B = 2c_1(S_{D_+} + S_{D_-} + \delta\delta^\top)`, S and :math:`\delta` of the rows of J."""

    def matrix(jacobians: Sequence[Any], weights: Sequence[Any], _scores: Sequence[Any]) -> Any:
        total: Any = 0.0
        means = []
        for jacobian, weight in zip(jacobians, weights, strict=True):
            share = weight / weight.sum()
            means.append(np.asarray(jacobian.T @ share).ravel().astype(jacobian.dtype))
            total = total + _second_moment(jacobian, share)
        # Of means m and n: S + S' + (n - m)(n - m)^T = E JJ^T + E' JJ^T - mn^T - nm^T.
        cross = np.outer(means[0], means[1])
        total -= cross
        total -= cross.T
        total *= 2.0 * c1
        return total

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
    return scaled.T @ scaled
