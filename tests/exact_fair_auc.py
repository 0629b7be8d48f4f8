"""Fair AUC with linear scores as a quadratically constrained quadratic program in w alone, written without the library.

With group means m, population covariances S and delta = m_G - m_G', a pair's loss is w'Aw - 2b'w + c1 c2^2 with
A = c1 (S_G + S_G' + delta delta') and b = c1 c2 delta.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon_problems.fair_auc.surrogate.build import pair_masks

Array = Any


@dataclass(frozen=True)
class Quadratics:
    """f_i(w) = |root_i w|^2 - 2 linear_i'w + constant_i for i = 0, 1, 2, on |w| <= radius."""

    roots: list[Array]
    linear: Array
    constant: Array
    radius: float

    @classmethod
    def of(cls, problem: mm.MinMaxProblem) -> Quadratics:
        """Take features, label and group of a fair AUC problem's training rows."""
        details = problem.details
        rows, c1, c2 = details.dataset.train, details.c1, details.c2
        features = rows.features.toarray() if hasattr(rows.features, "toarray") else np.asarray(rows.features)
        d = features.shape[1]
        cache: dict[bytes, tuple[Array, Array]] = {}

        def moments(mask: Array) -> tuple[Array, Array]:
            key = mask.tobytes()
            if key not in cache:
                part = features[mask]
                cache[key] = part.mean(axis=0), np.cov(part.T, bias=True).reshape(d, d)
            return cache[key]

        matrices, linear, constant = np.zeros((3, d, d)), np.zeros((3, d)), np.zeros(3)
        pairs = pair_masks(rows.label, details.metric, rows.group)
        for owner, (g, other) in zip([0, 1, 1, 2, 2], pairs, strict=True):
            (mean, spread), (mean_other, spread_other) = moments(g), moments(other)
            delta = mean - mean_other
            matrices[owner] += c1 * (spread + spread_other + np.outer(delta, delta))
            linear[owner] += c1 * c2 * delta
            constant[owner] += c1 * c2**2
        roots = []
        for matrix in matrices:
            values, vectors = np.linalg.eigh(matrix)
            roots.append(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)
        return cls(roots, linear, constant, problem.primal.parts[0].radius)

    def values(self, w: Array) -> Array:
        """Return f_0, f_1, f_2 at w."""
        squares = np.array([np.sum((root @ w) ** 2) for root in self.roots])
        return squares - 2.0 * self.linear @ w + self.constant

    def _expressions(self, w: Any) -> list[Any]:
        import cvxpy as cp

        parts = zip(self.roots, self.linear, self.constant, strict=True)
        return [cp.sum_squares(root @ w) - 2.0 * linear @ w + constant for root, linear, constant in parts]

    def optimum(self, bounds: Array) -> tuple[float, Array]:
        """Return f* and a minimiser for the bounds of f_1 and f_2."""
        import cvxpy as cp

        w = cp.Variable(self.linear.shape[1])
        f = self._expressions(w)
        below = [value <= bound for value, bound in zip(f[1:], bounds, strict=True)]
        solved = cp.Problem(cp.Minimize(f[0]), [*below, cp.norm(w, 2) <= self.radius])
        solved.solve(solver=cp.CLARABEL)
        assert solved.status == cp.OPTIMAL
        return float(solved.value), w.value

    def level(self, r: float, bounds: Array) -> float:
        """Return H(r) = min over w of max(f_0 - r, f_1 - b_1, f_2 - b_2)."""
        import cvxpy as cp

        w, top = cp.Variable(self.linear.shape[1]), cp.Variable()
        below = [value - bound <= top for value, bound in zip(self._expressions(w), [r, *bounds], strict=True)]
        solved = cp.Problem(cp.Minimize(top), [*below, cp.norm(w, 2) <= self.radius])
        solved.solve(solver=cp.CLARABEL)
        assert solved.status == cp.OPTIMAL
        return float(solved.value)
