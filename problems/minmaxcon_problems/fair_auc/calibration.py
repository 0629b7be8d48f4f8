r"""Platt's calibration: from scores to log-odds by a line that rises.

The probability of the positive class is :math:`1 / (1 + e^{-(ah + b)})` with :math:`a > 0`, fitted by maximum
likelihood to targets that are drawn in from 0 and 1 by one pseudo-row of each class. Since the map rises strictly,
probabilities rank rows as scores do, but for those that round to 0 or 1: they have the same AUC and the same fairness
gap, which a step function such as isotonic regression would not guarantee.

References
----------
J. Platt, Probabilistic outputs for support vector machines, Advances in Large Margin Classifiers (1999).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from minmaxcon_problems.fair_auc.labelled import LabelledData

__all__ = ["GroupCalibration", "LogOdds", "calibration_by_group", "lines_by_group", "sigmoid"]

_LEAST = 1e-3
"""Least slope, for scores of unit deviation: scores no better than chance keep their order all the same."""


def sigmoid(log_odds: Any) -> Any:
    r"""Return :math:`1 / (1 + e^{-t})` of log-odds t (...), without overflow, as :math:`e^{-\ln(1 + e^{-t})}`."""
    return np.exp(-np.logaddexp(0.0, -log_odds))


@dataclass(frozen=True, slots=True)
class LogOdds:
    """The line :math:`ah + b`, a > 0, from scores to the log-odds of the positive class."""

    slope: float
    intercept: float

    @classmethod
    def fit(cls, scores: Any, positive: Any, row_weight: Any = None) -> LogOdds:
        """Fit the line to scores (n,) in any unit and a mask of the positive rows, of both classes.

        A row stands for ``row_weight`` (n,) rows, 1 by default. The slope is at least 0.001 over the scores' standard
        deviation.
        """
        from scipy.optimize import minimize

        weight = np.ones(len(scores)) if row_weight is None else np.asarray(row_weight, dtype=np.float64)
        total = float(weight.sum())
        centre = float(weight @ scores) / total
        spread = float(np.sqrt(weight @ (scores - centre) ** 2 / total))
        spread = spread if spread > 1e-12 * max(abs(centre), 1.0) else 1.0
        unit = (scores - centre) / spread
        members = float(weight @ positive), float(weight @ ~positive)
        target = np.where(positive, (members[0] + 1.0) / (members[0] + 2.0), 1.0 / (members[1] + 2.0))
        share = weight / total

        def loss(line: Any) -> tuple[float, Any]:
            logit = line[0] * unit + line[1]
            value = share @ (np.logaddexp(0.0, logit) - target * logit)
            residual = share * (sigmoid(logit) - target)
            return float(value), np.array([residual @ unit, residual.sum()])

        prior = float(np.log((members[0] + 1.0) / (members[1] + 1.0)))
        found = minimize(
            loss, np.array([1.0, prior]), jac=True, method="L-BFGS-B", bounds=[(_LEAST, None), (None, None)]
        )
        line = _polished(found.x, unit, target, share)
        slope = float(line[0]) / spread
        return cls(slope, float(line[1]) - slope * centre)

    def __call__(self, scores: Any) -> Any:
        """Return the log-odds (n,) of scores (n,)."""
        return self.slope * scores + self.intercept

    def probability(self, scores: Any) -> Any:
        """Return the probability (n,) of the positive class at scores (n,)."""
        with np.errstate(over="ignore"):  # log-odds may be infinite
            return sigmoid(self(scores))


def _polished(line: Any, unit: Any, target: Any, share: Any) -> Any:
    """Return the minimiser that a line (2,) is close to, by Newton's method."""
    for _ in range(8):
        if line[0] <= _LEAST:
            return line
        chance = sigmoid(line[0] * unit + line[1])
        residual, curvature = share * (chance - target), share * chance * (1.0 - chance)
        first, second = curvature @ unit, curvature @ (unit * unit)
        hessian = np.array([[second, first], [first, curvature.sum()]])
        if np.linalg.cond(hessian) > 1e12:
            return line
        step = np.linalg.solve(hessian, [residual @ unit, residual.sum()])
        if np.abs(step).max() > 0.1 * (1.0 + np.abs(line).max()):
            return line
        line = line - step
    return line


_APPARENT = 0.05
"""Error of a group's mean probability from which a warning tells of it, where chance does not explain it."""


@dataclass(frozen=True, eq=False, slots=True)
class GroupCalibration:
    """The mean probability of the positive label in a group of so many rows, and the share of rows that have it."""

    value: Any
    rows: int
    predicted: float
    observed: float

    @property
    def error(self) -> float:
        """Mean probability less the share."""
        return self.predicted - self.observed

    @property
    def apparent(self) -> bool:
        """Whether the error is above 0.05, and above three standard deviations of the share."""
        deviation = math.sqrt(max(self.observed * (1.0 - self.observed), 0.0) / self.rows)
        return abs(self.error) > max(_APPARENT, 3.0 * deviation)


def _members(rows: LabelledData) -> list[tuple[Any, Any]]:
    """Return values and masks (n,) of the groups: each of several, or one and the others."""
    found = [(value, signs > 0) for value, _, signs in rows.each_group]
    return found if rows.more_groups is not None else [*found, (rows.each_group[0][1], rows.group < 0)]


def lines_by_group(line: LogOdds, scores: Any, rows: LabelledData, row_weight: Any = None) -> tuple[LogOdds, ...]:
    """Return the line of each group, or the one for all where a group has rows of one class only."""
    positive, found = rows.label > 0, []
    for _, mine in _members(rows):
        both = positive[mine].any() and not positive[mine].all()
        weight = None if row_weight is None else row_weight[mine]
        found.append(LogOdds.fit(scores[mine], positive[mine], weight) if both else line)
    return tuple(found)


def calibration_by_group(
    line: LogOdds, by_group: tuple[LogOdds, ...], scores: Any, rows: LabelledData, row_weight: Any = None
) -> tuple[GroupCalibration, ...]:
    """Return how far probabilities are off in each group; ``by_group`` are the lines by group, if there are any."""
    found, weight = [], np.ones(len(rows)) if row_weight is None else row_weight
    for k, (value, mine) in enumerate(_members(rows)):
        if mine.any():
            share = weight[mine] / weight[mine].sum()
            chance = (by_group[k] if by_group else line).probability(scores[mine])
            observed = float(share @ (rows.label[mine] > 0))
            found.append(GroupCalibration(value, int(mine.sum()), float(share @ chance), observed))
    return tuple(found)
