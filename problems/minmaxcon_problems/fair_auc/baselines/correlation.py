r"""The correlation penalty of Beutel et al. (2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from minmaxcon_problems.fair_auc.metrics import METRICS, FairnessMetric

from .base import GradientBaseline, Rule, Strata, quadratic_loss

__all__ = ["CorrelationPenalty", "correlation"]


def correlation(scores: Any, strata: Strata) -> tuple[Any, Any]:
    r"""Return the correlation (R,) of scores (R, B) and group on a batch, and its gradient (R, B) in the scores.

    .. math:: \rho = \frac{\sum_i \omega_i (h_i - \bar h)(\gamma_i - \bar\gamma)}{s_h s_\gamma}, \qquad
        \frac{\partial\rho}{\partial h_i} = \omega_i\Big(\frac{\gamma_i - \bar\gamma}{s_h s_\gamma}
        - \rho\,\frac{h_i - \bar h}{s_h^2}\Big)

    with the weights :math:`\omega` of the batch, which sum to 1. Constant scores have correlation 0 and gradient 0.
    """
    weight, group = strata.weight.astype(scores.dtype), strata.group.astype(scores.dtype)
    offset = scores - (scores @ weight)[:, None]
    side = group - weight @ group
    variance, spread = (offset**2) @ weight, np.sqrt(weight @ side**2)
    # Exact zeros alone are constant scores; the slope of any others is large where they nearly are, as it should be.
    inverse = np.where(variance > 0, 1.0 / np.sqrt(np.where(variance > 0, variance, 1.0)), 0.0).astype(scores.dtype)
    rho = (offset @ (weight * side)) * inverse / spread
    slope = weight * (side * (inverse / spread)[:, None] - offset * (rho * inverse**2)[:, None])
    return rho, slope


@dataclass(frozen=True, slots=True, eq=False)
class _Penalised(Rule):
    strata: Strata
    weight: Any
    c1: float
    c2: float

    def step(self, scores: Any, state: Any) -> tuple[Any, Any]:
        """See :meth:`Rule.step`."""
        _, slope = quadratic_loss(scores, self.strata, self.c1, self.c2)
        rho, tilt = correlation(scores, self.strata)
        return slope + (self.weight.astype(scores.dtype) * np.sign(rho))[:, None] * tilt, state


@dataclass(frozen=True, kw_only=True)
class CorrelationPenalty(GradientBaseline):
    r"""Minimise the AUC loss plus :math:`\lambda\,|\mathrm{corr}(h, \gamma)|`.

    A strength is the weight :math:`\lambda \ge 0`. See :class:`GradientBaseline` for the settings. Source: Beutel et
    al., *Putting fairness principles into practice: challenges, metrics, and improvements*, AIES 2019.
    """

    name: ClassVar[str] = "correlation"

    def applies_to(self, metric: FairnessMetric) -> str:
        """Return why a metric other than ``group`` is refused."""
        if metric.subsets == METRICS["group"].subsets:
            return ""
        return "a correlation with the group is a penalty for the metric group alone; use proxy_lagrangian."

    def rule(self, strata: Strata, strengths: Any) -> Rule:
        """See :meth:`GradientBaseline.rule`."""
        return _Penalised(strata, strengths, self.c1, self.c2)
