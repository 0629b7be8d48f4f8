r"""Platt's calibration: from scores to log-odds by a line that rises.

The probability of the positive class is :math:`1 / (1 + e^{-(ah + b)})` with :math:`a > 0`, fitted by maximum
likelihood to targets that are drawn in from 0 and 1 by one pseudo-row of each class. Since the map rises strictly,
probabilities rank rows as scores do: they have the same AUC and the same fairness gap, which a step function such as
isotonic regression would not guarantee.

References
----------
J. Platt, Probabilistic outputs for support vector machines, Advances in Large Margin Classifiers (1999).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["LogOdds"]

_LEAST = 1e-3
"""Least slope, for scores of unit deviation: scores no better than chance keep their order all the same."""


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
            # exp(-ln(1 + exp(-t))) is the sigmoid of t without overflow
            residual = share * (np.exp(-np.logaddexp(0.0, -logit)) - target)
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


def _polished(line: Any, unit: Any, target: Any, share: Any) -> Any:
    """Return the minimiser that a line (2,) is close to, by Newton's method."""
    for _ in range(8):
        if line[0] <= _LEAST:
            return line
        chance = np.exp(-np.logaddexp(0.0, -(line[0] * unit + line[1])))
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
