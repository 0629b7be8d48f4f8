"""A trained model as the estimator keeps it: the fit, scaling, calibration, and what labels and groups mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.data import Standardizer
from minmaxcon_problems.fair_auc.calibration import GroupCalibration, LogOdds
from minmaxcon_problems.fair_auc.target.fit import FairFit, LeftOut

from .shrinkage import Shrinkage

__all__ = ["MISSED", "Fitted"]

MISSED = (
    mm.Status.INFEASIBLE,
    mm.Status.NOT_STRICTLY_FEASIBLE,
    mm.Status.OUT_OF_REACH,
    mm.Status.UNFINISHED,
    mm.Status.INCONSISTENT,
    mm.Status.DIVERGED,
)
"""How a fit ends whose model does not meet its limit."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted:
    """A trained model with its scaling and calibration.

    ``log_odds`` leads from scores to the log-odds of the positive label, and ``classes`` (2,) are the labels, sorted.
    ``by_group`` are such lines by group, where there are any, ``calibration`` how far probabilities are off by group.
    ``direction`` is 1 where the positive label is the second one, as scikit-learn's scores mean it, else -1;
    ``constrained`` whether sensitive features were there. ``labels`` are the values (negative, positive),
    ``group_values`` (unprotected, protected), and ``groups`` all values of the sensitive features; with ``several``
    each was compared with the rest or, with ``each_other``, every two with one another. ``alpha`` is the strength of
    the ridge penalty, and ``alpha_path`` what it was chosen from, where it was chosen. ``compared`` are the groups that
    were compared, of which the model reads what ``use_group`` says, and ``feature_names`` those of the features that it
    reads. ``path`` are the
    models of all limits, where there are several, and ``left_out`` what rows left out of training tell of new ones.
    """

    fit: FairFit
    standardizer: Standardizer | None
    log_odds: LogOdds
    classes: Any
    direction: int
    constrained: bool
    labels: tuple[Any, Any]
    group_values: tuple[Any, Any]
    groups: tuple[Any, ...]
    several: bool
    alpha: float
    alpha_path: Shrinkage | None
    use_group: str
    compared: tuple[Any, ...]
    feature_names: tuple[str, ...]
    by_group: tuple[LogOdds, ...] = ()
    calibration: tuple[GroupCalibration, ...] = ()
    path: tuple[Fitted, ...] = ()
    left_out: LeftOut | None = None
    each_other: bool = False

    def log_odds_by_group(self, decision: Any, signs: Any) -> Any:
        """Return log-odds (n,) of the second class, by the line of each row's group, from those by one line for all.

        ``signs`` are those (n,) of each compared group. Where there is no line by group that for all remains.
        """
        if not self.by_group:
            return decision
        scores = (self.direction * decision - self.log_odds.intercept) / self.log_odds.slope
        found = self.by_group[-1](scores)
        for line, sign in zip(self.by_group, signs, strict=False):
            found = np.where(sign > 0, line(scores), found)
        return self.direction * found

    def decision(self, features: Any) -> Any:
        """Return the log-odds (n,) of the second class for raw features (n, d), dense or CSR."""
        if isinstance(self.fit.model, mm.Linear):
            coef, intercept = self.line()
            return features @ coef + intercept
        dense = features.toarray() if hasattr(features, "tocsr") else features
        scaled = dense if self.standardizer is None else self.standardizer.transform(dense)
        scores = self.fit.model.predict(self.fit.parameters, scaled)
        return self.direction * self.log_odds(scores)

    def line(self) -> tuple[Any, float]:
        """Return coefficients (d,) and intercept that give the log-odds from raw features.

        Raises AttributeError where the model is not linear.
        """
        if not isinstance(self.fit.model, mm.Linear):
            raise AttributeError("coef_ and intercept_ exist for a linear model only.")
        weight, offset = self.fit.parameters, 0.0
        if self.standardizer is not None:
            weight, offset = self.standardizer.fold(weight)
        return self.direction * self.log_odds.slope * weight, float(self.direction * self.log_odds(offset))
