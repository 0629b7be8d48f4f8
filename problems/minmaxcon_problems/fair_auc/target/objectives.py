"""What a target is met at the least cost of: an AUC loss, or the logistic loss of the paper's remark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import Array, namespace
from minmaxcon_problems.fair_auc.surrogate.constraint import AUCConstraint, Layout

from .curvature import auc_curvature, logistic_curvature

__all__ = [
    "OBJECTIVES",
    "AUCObjective",
    "LogisticLoss",
    "LogisticObjective",
    "ScoreObjective",
    "SmoothedAUC",
    "named_objective",
]


class ScoreObjective(ABC):
    """An objective of the scores, with variables of its own beside the model's parameters.

    Attributes
    ----------
    variables : int
        Their number; they follow the parameters in x.
    quadratic : bool
        Whether its curvature is taken to be that of a quadratic function of the scores.
    followed : bool
        Whether it is refreshed at every point, like the constraints.
    tolerance : float
        By how much first-order optimality may still let it fall, relative to one plus its size.
    """

    variables: int
    quadratic: bool = False
    followed: bool = False
    tolerance: float = 1e-5

    @abstractmethod
    def constraint(self, model: mm.Model, radius: float, reach: float) -> mm.StochasticMinMaxConstraint:
        """Return the objective; ``reach`` bounds every score."""

    @abstractmethod
    def arrays(self, positive: Any, row_weight: Any) -> Mapping[str, Any]:
        """Return what a batch needs besides the features: arrays of n rows, from a mask (n,) and weights (n,)."""

    @abstractmethod
    def curvature(self) -> Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Any]:
        """Return the matrix for :class:`~minmaxcon_problems.fair_auc.target.curvature.GaussNewton`."""


class AUCObjective(ScoreObjective):
    r"""The quadratic AUC loss :math:`E[c_1(h - h' - c_2)^2]`, with the two means as variables.

    Parameters
    ----------
    c1, c2 : float
        Scale and margin.
    """

    variables = 2
    quadratic = True

    def __init__(self, c1: float = 0.5, c2: float = 1.0) -> None:
        self.c1, self.c2 = c1, c2

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

    Parameters
    ----------
    model : Model
        The scoring model.
    """

    name = "logistic loss"

    def __init__(self, model: mm.Model) -> None:
        self.model = model
        self.weak_convexity = model.weak_convexity

    def terms(self, x: Array, batch: mm.Batch) -> tuple[Array, None]:
        """See :meth:`minmaxcon.StochasticMinMaxConstraint.terms`."""
        return self.evaluate(x, batch).F, None

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

    variables = 1

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

    variables = 0
    followed = True
    tolerance = 1e-4  # in the unit of the AUC, of which no data set shows that many digits


OBJECTIVES: dict[str, Callable[[], ScoreObjective]] = {
    "auc": SmoothedAUC,
    "quadratic_auc": AUCObjective,
    "logistic": LogisticObjective,
}
"""The objectives by name."""


def named_objective(objective: str | ScoreObjective) -> ScoreObjective:
    """Return the objective of a name, or the one given.

    Raises
    ------
    UnknownName
        If there is none of that name.
    """
    if isinstance(objective, ScoreObjective):
        return objective
    if objective not in OBJECTIVES:
        raise mm.UnknownName("objective", str(objective), OBJECTIVES)
    return OBJECTIVES[objective]()
