"""What an inner block is: the set, generator and penalty of the inner variables of one constraint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from minmaxcon.arrays import Array

__all__ = ["InnerBlock"]


class InnerBlock(ABC):
    r"""Inner variables :math:`\alpha \in A \subset R^p` with generator :math:`\omega_A` and penalty g.

    They enter a constraint as :math:`\max_{\alpha\in A} \langle\alpha, E\,G\rangle - g(\alpha)`. A new block implements
    the closed forms below; points are arrays whose last axis has length p.

    Attributes
    ----------
    dimension : int
        Number p of inner variables.
    radius : float
        :math:`\max_A |\alpha|_2`.
    reach : float
        The largest absolute value of a single variable on A.
    modulus : float
        Strong convexity modulus of :math:`\omega_A` in the Euclidean norm (1 for all built-in blocks).
    entropic : bool
        Whether the generator is the entropy of the simplex, for which a sharper constant holds.
    """

    dimension: int
    radius: float
    reach: float
    modulus: float = 1.0
    entropic: bool = False

    @property
    @abstractmethod
    def start(self) -> Any:
        r"""The minimiser of :math:`\omega_A`, where its value is 0 and a solver starts, shape (p,)."""

    @property
    @abstractmethod
    def maximum(self) -> float:
        r""":math:`\max_A \omega_A`, where :math:`\min_A \omega_A = 0`."""

    @abstractmethod
    def value(self, alpha: Array) -> Array:
        r"""Return :math:`\omega_A(\alpha)`, shape (...,)."""

    @abstractmethod
    def penalty(self, alpha: Array) -> Array:
        r"""Return :math:`g(\alpha)`, shape (...,)."""

    @abstractmethod
    def divergence(self, alpha: Array, anchor: Array) -> Array:
        r"""Return the Bregman divergence of :math:`\omega_A`, shape (...,)."""

    @abstractmethod
    def prox(self, v: Array, anchor: Array, inverse_step: Array) -> tuple[Array, Array]:
        r"""Minimise :math:`-\langle v,\alpha\rangle + g(\alpha) + B(\alpha,\alpha')/\tau` over A.

        Parameters
        ----------
        v : array (..., p)
            The linear term.
        anchor : array (..., p)
            The point :math:`\alpha'`.
        inverse_step : float or array (..., 1)
            :math:`1/\tau`.

        Returns
        -------
        alpha : array (..., p)
            The minimiser.
        value : array (...,)
            The minimum :math:`\nu`.
        """

    @abstractmethod
    def maximize(self, v: Array) -> tuple[Array, Array]:
        r"""Return maximiser and value of :math:`(g + \iota_A)^*(v) = \max_A \langle v,\alpha\rangle - g(\alpha)`."""

    @abstractmethod
    def sample(self, rng: Any, count: int) -> Any:
        """Draw ``count`` points of A from a NumPy generator, shape (count, p)."""

    @abstractmethod
    def cvxpy_divergence(self, cp: Any, a: Any, y: Any, anchor: Any) -> Any:
        r"""Return the cvxpy expression of :math:`y\,B(a/y, \alpha')`; ``cp`` is the module."""

    @abstractmethod
    def cvxpy_penalty(self, cp: Any, a: Any, y: Any) -> Any:
        r"""Return the cvxpy expression of :math:`y\,g(a/y)`."""

    @abstractmethod
    def cvxpy_constraints(self, cp: Any, a: Any, y: Any) -> list[Any]:
        r"""Return the cvxpy constraints that say :math:`a \in y A`."""
