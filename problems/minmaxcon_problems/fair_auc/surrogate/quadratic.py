r"""Group means and covariances: for linear scores every loss is a quadratic of them.

With m and S the mean and population covariance of a group, and :math:`\delta = m_G - m_{G'}`,

.. math::
    L_{G,G'}(w) = w^\top A w - 2b^\top w + c_1c_2^2,
    \qquad A = c_1(S_G + S_{G'} + \delta\delta^\top),\quad b = c_1c_2\delta.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import to_numpy

if TYPE_CHECKING:
    from .constraint import AUCFamily, Layout

__all__ = ["GroupMoments"]


@dataclass(frozen=True)
class GroupMoments:
    """Moments of the features in the group of each slot.

    Attributes
    ----------
    means : ndarray (S, p)
        Mean features.
    covariances : ndarray (S, p, p)
        Population covariances; slots of the same group share one array's values.
    """

    means: Any
    covariances: Any

    @classmethod
    def of(cls, data: mm.Source) -> GroupMoments:
        """Compute the moments of finite data by one pass.

        Parameters
        ----------
        data : Source
            Finite data with ``features`` (n, p) and ``weights`` (n, S).
        """
        first: Any = 0.0
        second: Any = 0.0
        for share, batch in data.chunks():
            raw = batch["features"]
            features: Any = raw if hasattr(raw, "tocsr") else np.asarray(to_numpy(raw), dtype=np.float64)
            weights = np.asarray(to_numpy(batch["weights"]), dtype=np.float64) * (share / raw.shape[0])
            first = first + np.asarray((features.T @ weights).T)
            products: list[Any] = []
            groups: dict[bytes, Any] = {}  # slots of one group have one column, and so one product in each piece
            for s in range(weights.shape[1]):
                key = weights[:, s].tobytes()
                if key not in groups:
                    scaled = (
                        features.multiply(weights[:, s][:, None])
                        if hasattr(raw, "tocsr")
                        else features * weights[:, [s]]
                    )
                    product = features.T @ scaled
                    groups[key] = np.asarray(product.todense() if hasattr(product, "todense") else product)
                products.append(groups[key])
            second = second + np.stack(products)
        return cls(first, second - first[:, :, None] * first[:, None, :])

    def lagrangian_minimizer(self, family: AUCFamily, y: Any, a: Any, center: Any = None, weight: float = 0.0) -> Any:
        r"""Minimise the Lagrangian of a linear model over the ball of parameters.

        Parameters
        ----------
        family : AUCFamily
            The constraints, with k levels.
        y : ndarray (k,)
            Their weights.
        a : ndarray (p,)
            Their scaled inner variables.
        center : ndarray (d,), optional
            Centre of the proximal term.
        weight : float
            Its weight.

        Returns
        -------
        ndarray (d,)
            The minimiser :math:`(w, a, b)`. The offsets are eliminated in closed form; what is left is
            :math:`(Q + \lambda I)w = l` with :math:`\lambda \ge 0` and :math:`|w| \le R`, solved in its eigenbasis.
        """
        layout, slots = family.layout, family.slots
        pull = 2.0 * layout.c1 * np.maximum(y, 0.0)[family.owner]
        means, d = self.means[slots], layout.model.dimension
        old = np.zeros(layout.dimension) if center is None else np.asarray(center, dtype=np.float64)
        stiffness = pull * weight / np.where(pull + weight > 0, pull + weight, 1.0)
        matrix = np.einsum("s,sij->ij", pull, self.covariances[slots]) + (means.T * stiffness) @ means
        linear = means.T @ (stiffness * old[d + slots] - family._slope.value * pull / (2.0 * layout.c1))
        linear = linear - means.T @ (family._difference.value @ a) + weight * old[:d]
        w = _trust_region(matrix + weight * np.eye(d), linear, layout.radius)
        offsets = old[d:].copy()
        scores = means @ w
        offsets[slots] = np.where(
            pull + weight > 0,
            (pull * scores + weight * old[d + slots]) / np.where(pull + weight > 0, pull + weight, 1.0),
            scores,
        )
        return np.concatenate([w, offsets])

    def cvxpy_value(self, cp: Any, x: Any, layout: Layout, pairs: Sequence[int]) -> Any:
        """The cvxpy expression of the summed losses of ``pairs`` at x = (w, a, b)."""
        d, c1, c2 = layout.model.dimension, layout.c1, layout.c2
        total: Any = 0.0
        for pair in pairs:
            delta = self.means[2 * pair] - self.means[2 * pair + 1]
            total = total + c1 * cp.square(delta @ x[:d]) - 2.0 * c1 * c2 * (delta @ x[:d]) + c1 * c2**2
            for slot in (2 * pair, 2 * pair + 1):
                root = _root(self.covariances[slot])
                total = (
                    total + c1 * cp.sum_squares(root @ x[:d]) + c1 * cp.square(self.means[slot] @ x[:d] - x[d + slot])
                )
        return total


def _trust_region(matrix: Any, linear: Any, radius: float) -> Any:
    r"""Minimise :math:`\frac12 w'Qw - l'w` over :math:`|w| \le R` for a positive semidefinite Q."""
    from scipy.optimize import brentq

    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, 0.0)
    parts = vectors.T @ linear
    floor = 1e-12 * max(float(values[-1]), 1e-300)
    flat = values <= floor
    free = np.where(flat, 0.0, parts / np.maximum(values, floor))
    # A slope in a direction without curvature (fewer samples than features) leads to the boundary.
    slope = np.linalg.norm(parts[flat]) > 1e-10 * np.linalg.norm(parts)
    if not slope and np.linalg.norm(free) <= radius:
        return vectors @ free

    def excess(shift: float) -> float:
        return float(np.linalg.norm(parts / (values + shift))) - radius

    high = float(np.linalg.norm(parts)) / radius
    low = 1e-14 * high
    if excess(low) <= 0:
        return vectors @ (parts / (values + low))
    return vectors @ (parts / (values + float(brentq(excess, low, high, xtol=1e-15 * high, rtol=1e-13))))


def _root(covariance: Any) -> Any:
    values, vectors = np.linalg.eigh(covariance)
    keep = values > 1e-12 * max(float(values[-1]), 1e-300)
    return np.sqrt(values[keep])[:, None] * vectors[:, keep].T
