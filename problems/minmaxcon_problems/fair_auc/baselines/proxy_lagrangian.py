r"""The proxy-Lagrangian method of Cotter et al. (2019): true rates for the multipliers, a proxy for the parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from minmaxcon.checks import positive

from .base import GradientBaseline, Rule, Strata, quadratic_loss

__all__ = ["ProxyLagrangian", "fixed_point", "pairwise_rates"]


def pairwise_rates(scores: Any, above: Any, below: Any, temperature: float) -> tuple[Any, Any, Any]:
    r"""Return the AUC (R,) of scores (R, B) between two subsets, its proxy (R,), and the proxy's gradient (R, B).

    .. math:: \sum_{ij} u_i v_j \big(1[h_i > h_j] + \tfrac12 1[h_i = h_j]\big), \qquad
        \sum_{ij} u_i v_j\, \sigma\big((h_i - h_j) / \tau\big)

    The weights u and v, (B,) each, sum to 1 and are zero outside the subsets; the temperature :math:`\tau` has the unit
    of the scores.
    """
    a, b = np.flatnonzero(above), np.flatnonzero(below)
    u, v = above[a].astype(scores.dtype), below[b].astype(scores.dtype)
    difference = scores[:, a, None] - scores[:, None, b]
    rate = 0.5 + 0.5 * (np.sign(difference) @ v @ u)
    half = np.tanh(difference * (0.5 / temperature))  # 2 sigmoid - 1
    proxy = 0.5 + 0.5 * (half @ v @ u)
    density = (1.0 - half * half) * (0.25 / temperature)
    slope = np.zeros_like(scores)
    slope[:, a] += u * (density @ v)
    slope[:, b] -= v * (u @ density)
    return rate, proxy, slope


def fixed_point(matrix: Any) -> Any:
    r"""Return the distributions :math:`\lambda = M\lambda` (R, 3) of positive M (R, 3, 3) whose columns sum to 1.

    By the Markov chain tree theorem :math:`\lambda_i` is proportional to the weight of the trees that lead to i.
    """
    found = []
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        into = matrix[:, i]  # into[:, j]: mass that leaves j for i
        found.append(into[:, j] * into[:, k] + into[:, j] * matrix[:, j, k] + into[:, k] * matrix[:, k, j])
    trees = np.stack(found, axis=1)
    return trees / trees.sum(axis=1, keepdims=True)


@dataclass(frozen=True, slots=True, eq=False)
class _TwoPlayers(Rule):
    """Both players of one step; the state is the logarithm (R, 3, 3) of the multipliers' matrix."""

    strata: Strata
    kappa: Any
    c1: float
    c2: float
    temperature: float
    dual_rate: float

    def start(self, runs: int) -> Any:
        """See :meth:`Rule.start`: all entries are one third."""
        return np.full((runs, 3, 3), -np.log(3.0))

    def gap(self, scores: Any) -> tuple[Any, Any]:
        """Return the signed true gap (R,) of a batch and the gradient (R, B) of its proxy."""
        slots = self.strata.slots
        gap, slope = np.zeros(len(scores), dtype=scores.dtype), np.zeros_like(scores)
        for sign, (above, below) in ((1.0, slots[0:2]), (-1.0, slots[2:4])):
            if not np.array_equal(above, below):  # a set against itself has AUC one half, whatever the scores
                rate, _, tilt = pairwise_rates(scores, above, below, self.temperature)
                gap, slope = gap + sign * (rate - 0.5), slope + sign * tilt
        return gap, slope

    def step(self, scores: Any, state: Any) -> tuple[Any, Any]:
        """See :meth:`Rule.step`."""
        _, slope = quadratic_loss(scores, self.strata, self.c1, self.c2)
        gap, tilt = self.gap(scores)
        share = fixed_point(np.exp(state))
        mixed = share.astype(scores.dtype)
        descent = mixed[:, :1] * slope + (mixed[:, 1:2] - mixed[:, 2:3]) * tilt
        violation = np.stack([np.zeros_like(gap), gap - self.kappa, -gap - self.kappa], axis=1)
        risen = state + self.dual_rate * violation[:, :, None] * share[:, None, :]
        # Entries are kept from vanishing, so that a constraint that was long satisfied can still be taken up.
        top = risen.max(axis=1, keepdims=True)
        risen = np.maximum(risen - top, -30.0)
        return descent, risen - np.log(np.exp(risen).sum(axis=1, keepdims=True))


@dataclass(frozen=True, kw_only=True)
class ProxyLagrangian(GradientBaseline):
    r"""Play the game of Algorithm 2 on the two constraints :math:`\pm(AUC_1 - AUC_2) \le \kappa`.

    With :math:`\lambda = M\lambda` of the left-stochastic 3 x 3 matrix M, each step

    .. math:: w \text{ descends } \lambda_0 \ell + (\lambda_1 - \lambda_2)(\tilde A_1 - \tilde A_2), \qquad
        M \gets M \odot \exp\big(\eta\, g\, \lambda^\top\big) \text{, columns normalised},

    where :math:`\ell` is the quadratic AUC loss, :math:`\tilde A` the AUC of the batch with a sigmoid for the step, and
    :math:`g = (0, A_1 - A_2 - \kappa, A_2 - A_1 - \kappa)` has the true rates. As in the paper's experiments one
    stochastic step stands for the oracle of the non-convex case. A strength is :math:`\kappa`, the largest true gap.
    ``temperature`` is :math:`\tau` of the sigmoid, in the unit of the scores (the margin c2 is 1), and ``dual_rate`` is
    :math:`\eta`. See :class:`GradientBaseline` for the other settings.

    Source: Cotter et al., *Optimization with non-differentiable constraints with applications to fairness, recall,
    churn, and other goals*, JMLR 20 (2019), Algorithm 2. Narasimhan et al., *Pairwise fairness for ranking and
    regression*, AAAI 2020.
    """

    name: ClassVar[str] = "proxy_lagrangian"
    temperature: float = 0.25
    dual_rate: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("temperature", self.temperature)
        positive("dual_rate", self.dual_rate)

    def rule(self, strata: Strata, strengths: Any) -> Rule:
        """See :meth:`GradientBaseline.rule`."""
        return _TwoPlayers(strata, strengths, self.c1, self.c2, self.temperature, self.dual_rate)
