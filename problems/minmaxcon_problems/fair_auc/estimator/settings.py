"""The parameters of the estimator that say how to train, checked when it is fitted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.checks import number, positive, whole
from minmaxcon_problems.fair_auc.metrics import FairnessMetric, resolve_metric
from minmaxcon_problems.fair_auc.subsets import Subset
from minmaxcon_problems.fair_auc.surrogate.build import checked_kappa

__all__ = ["C1", "C2", "Settings", "checked_settings"]

C1, C2 = 0.5, 1.0
"""Scale and margin of the quadratic loss: others would only rescale kappa and radius."""

_POSITIVE, _NEGATIVE = Subset(label=1), Subset(label=-1)

UNCONSTRAINED = FairnessMetric(
    "none", (_POSITIVE, _NEGATIVE, _POSITIVE, _NEGATIVE), "An AUC against itself: no constraint at all."
)
"""The metric of a model without constraint; its gap is 0 whatever the scores."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to train.

    Attributes
    ----------
    metric : FairnessMetric
        The four subsets.
    max_gap : float or None
        Target for the true gap; None where ``kappa`` is given.
    kappa : float or None
        Bound of the surrogate.
    objective, method, demand : str
        As for :func:`~minmaxcon_problems.fair_auc.target.fit_target`.
    radius : float
        Radius of the ball of parameters.
    solver : Solver or None
        For ``kappa``.
    time_limit : float or None
        Seconds.
    seed : int
        Of every draw.
    """

    metric: FairnessMetric
    max_gap: float | None
    kappa: float | None
    objective: Any
    method: Any
    demand: Any
    radius: float
    solver: mm.Solver | None
    time_limit: float | None
    seed: int

    def unconstrained(self) -> Settings:
        """Return the settings of the same model without constraint."""
        return replace(self, metric=UNCONSTRAINED, max_gap=1.0, kappa=None, method="following", demand="value")


def checked_settings(estimator: Any, seed: int) -> Settings:
    """Return the settings of an estimator.

    Parameters
    ----------
    estimator : FairAUCClassifier
        With its parameters as the user gave them.
    seed : int
        Drawn from its ``random_state``.

    Raises
    ------
    InvalidInput
        A parameter cannot be used; it is named, with its value and the remedy.
    """
    max_gap, kappa = estimator.max_gap, estimator.kappa
    if kappa is None and max_gap is None:
        raise mm.InvalidInput("max_gap", None, "give a target such as 0.02, or kappa; max_gap=1 is no constraint.")
    if kappa is None:
        max_gap = number("max_gap", max_gap, "must be a number between 0 and 1.", least=0.0, most=1.0)
        if estimator.solver is not None:
            raise mm.InvalidInput("solver", estimator.solver, "is used with kappa only: give kappa, or leave it out.")
    else:
        kappa = number("kappa", kappa, "must be a number of at least -1.", least=-1.0)
        checked_kappa(kappa, C1, C2)
        if estimator.objective != "auc":
            raise mm.InvalidInput(
                "objective",
                estimator.objective,
                "needs max_gap; leave it out.",
            )
    for argument, choices in _CHOICES.items():
        if getattr(estimator, argument) not in choices:
            raise mm.UnknownName(argument, str(getattr(estimator, argument)), choices)
    radius, limit = positive("radius", estimator.radius), estimator.time_limit
    positive("score_bound", estimator.score_bound)
    limit = None if limit is None else positive("time_limit", limit)
    share = estimator.validation_fraction
    if share is not None:
        remedy = "must lie strictly between 0 and 1, or be None."
        number("validation_fraction", share, remedy, above=0.0, below=1.0)
    kept = estimator.max_rows_per_cell
    if not isinstance(kept, int | np.integer):  # it is used as it stands, and sizes arrays
        raise mm.InvalidInput("max_rows_per_cell", kept, "must be a whole number of at least 2.")
    whole("max_rows_per_cell", kept, 2)
    return Settings(
        metric=resolve_metric(estimator.metric),
        max_gap=max_gap if kappa is None else None,
        kappa=kappa,
        objective=estimator.objective,
        method=estimator.method,
        demand=estimator.demand,
        radius=radius,
        solver=estimator.solver,
        time_limit=limit,
        seed=seed,
    )


_CHOICES = {
    "objective": ("auc", "quadratic_auc", "logistic"),
    "method": ("following", "bounds"),
    "demand": ("value", "upper"),
}
