"""The inner block of the simplex with entropy: worst groups, plain or regularised."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.arrays import Array, Constant
from minmaxcon.checks import finite_array, number
from minmaxcon.errors import InvalidInput
from minmaxcon.geometry.inner import InnerBlock
from minmaxcon.geometry.simplex import Simplex, safe_log, softmax

__all__ = ["SimplexBlock"]


class SimplexBlock(InnerBlock):
    r"""The simplex with :math:`\omega_A = KL(\alpha, \pi)` and :math:`g(\alpha) = \lambda\,KL(\alpha, \pi)`.

    The prior is the minimiser of :math:`\omega_A`, which differs from the entropy by a linear function only: the
    divergence is the Kullback-Leibler divergence whatever the prior.

    Parameters
    ----------
    dimension : int
        Number p of corners (groups, say).
    temperature : float
        :math:`\lambda`, at least 0.
    prior : array_like (p,), optional
        :math:`\pi`, positive and summing to 1; uniform by default.

    Raises
    ------
    InvalidInput
        If the temperature is negative or the prior is not a positive distribution.
    """

    entropic = True
    radius = 1.0
    reach = 1.0

    def __init__(self, dimension: int, temperature: float = 0.0, prior: Any = None) -> None:
        self.set = Simplex(dimension)
        self.dimension = self.set.dimension
        remedy = "must be finite and at least 0."
        self.temperature = number("temperature", temperature, remedy, least=0.0)
        remedy = f"must hold {self.dimension} positive numbers that sum to 1."
        weights = self.set.center if prior is None else finite_array("prior", prior, remedy)
        if weights.shape != (self.dimension,) or not (weights > 0).all() or abs(weights.sum() - 1) > 1e-9:
            raise InvalidInput("prior", prior, remedy)
        self._prior, self._log_prior = Constant(weights), Constant(np.log(weights))

    @property
    def start(self) -> Any:
        """The prior."""
        return self._prior.value

    @property
    def maximum(self) -> float:
        r""":math:`-\ln\min_j\pi_j`, so :math:`\ln p` for the uniform prior."""
        return float(-np.log(self.start.min()))

    def value(self, alpha: Array) -> Array:
        """See :meth:`InnerBlock.value`."""
        return self.divergence(alpha, self._prior.like(alpha))

    def penalty(self, alpha: Array) -> Array:
        """See :meth:`InnerBlock.penalty`."""
        return self.temperature * self.value(alpha)

    def divergence(self, alpha: Array, anchor: Array) -> Array:
        """Return the Kullback-Leibler divergence."""
        return self.set.divergence(alpha, anchor)

    def prox(self, v: Array, anchor: Array, inverse_step: Array) -> tuple[Array, Array]:
        r"""Return :math:`\alpha \propto (\alpha'\pi^{\lambda\tau}e^{\tau v})^{1/(1 + \lambda\tau)}`, by log-sum-exp."""
        total = inverse_step + self.temperature
        logits = (inverse_step * safe_log(anchor) + self.temperature * self._log_prior.like(v) + v) / total
        # The value is -total * (logits - ln alpha), which is the same in every coordinate: the log of the normaliser.
        alpha, normaliser = softmax(logits)
        return alpha, -(total * normaliser)[..., 0]

    def maximize(self, v: Array) -> tuple[Array, Array]:
        """See :meth:`InnerBlock.maximize`."""
        if self.temperature == 0.0:
            lowest, corner = self.set.linear_minimum(-v)
            return corner, -lowest
        alpha, normaliser = softmax(self._log_prior.like(v) + v / self.temperature)
        return alpha, self.temperature * normaliser[..., 0]

    def sample(self, rng: Any, count: int) -> Any:
        """See :meth:`InnerBlock.sample`."""
        return self.set.sample(rng, count)

    def cvxpy_divergence(self, cp: Any, a: Any, y: Any, anchor: Any) -> Any:
        """See :meth:`InnerBlock.cvxpy_divergence`."""
        return cp.sum(cp.rel_entr(a, y * anchor))

    def cvxpy_penalty(self, cp: Any, a: Any, y: Any) -> Any:
        """See :meth:`InnerBlock.cvxpy_penalty`."""
        return self.temperature * cp.sum(cp.rel_entr(a, y * self._prior.value)) if self.temperature else 0.0

    def cvxpy_constraints(self, cp: Any, a: Any, y: Any) -> list[Any]:
        """See :meth:`InnerBlock.cvxpy_constraints`."""
        return [a >= 0, cp.sum(a) == y]

    def __repr__(self) -> str:
        return f"SimplexBlock(dimension={self.dimension}, temperature={self.temperature:g})"
