"""Small instances of fair AUC and a plain mirror descent, in NumPy alone, for the errata.

Nothing here uses the library: the tests are about the paper's formulas and must not share a mistake with the code.
Names follow the paper: a pair is (G, G'), and F and G are the means of what its equation (GFDef) defines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Which of the five pairs belong to f_0, f_1 and f_2.
OWNER = np.array([[1, 0, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 1, 1]], dtype=float)


def pair_loss(h: Array, left: Mask, right: Mask, c1: float, c2: float) -> float:
    """Mean of c1 (h - h' - c2)^2 over all pairs of left x right, by brute force."""
    return float(np.mean(c1 * (h[left][:, None] - h[right][None, :] - c2) ** 2))


def mean_f(h: Array, a: float, b: float, left: Mask, right: Mask, c1: float, c2: float) -> float:
    """E F of the pair, equation (GFDef)."""
    inside = -2 * c2 * h[left].mean() + 2 * c2 * h[right].mean()
    return float(c1 * (c2**2 + inside + np.mean((h[left] - a) ** 2) + np.mean((h[right] - b) ** 2)))


def mean_g(h: Array, left: Mask, right: Mask, c1: float) -> float:
    """E G of the pair, equation (GFDef)."""
    return float(2 * c1 * (h[left].mean() - h[right].mean()))


@dataclass(frozen=True)
class FairAUC:
    """Linear scores, inter-group metric: x = (w, a, b) with a, b of shape (5,), weights of shape (5, n)."""

    features: Array
    label: NDArray[np.int64]
    group: NDArray[np.int64]
    kappa: float = 0.1
    c1: float = 0.5
    c2: float = 1.0
    interval: float = 100.0
    left: Array = field(init=False, repr=False)
    right: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        weights = [(l / l.sum(), r / r.sum()) for l, r in self.pairs()]
        object.__setattr__(self, "left", np.array([w[0] for w in weights]))
        object.__setattr__(self, "right", np.array([w[1] for w in weights]))

    @classmethod
    def random(cls, seed: int, n: int = 40, d: int = 2, **settings: float) -> FairAUC:
        """Draw n points whose features lean on label and group; every cell has at least two members."""
        rng = np.random.default_rng(seed)
        label = np.where(np.arange(n) % 2 == 0, 1, -1)
        group = np.where(np.arange(n) % 4 < 2, 1, -1)
        lean = rng.normal(size=(2, d))
        features = rng.normal(size=(n, d)) + 0.7 * (label[:, None] * lean[0] + group[:, None] * lean[1])
        return cls(features=features, label=label, group=group, **settings)

    def cell(self, label: int, group: int) -> Mask:
        members: Mask = (self.label == label) & (self.group == group)
        return members

    def pairs(self) -> list[tuple[Mask, Mask]]:
        """Give (D+, D-); (G1', G1), (G2, G2'); (G2', G2), (G1, G1')."""
        g1, g1_prime, g2, g2_prime = self.cell(1, 1), self.cell(-1, -1), self.cell(1, -1), self.cell(-1, 1)
        return [(self.label == 1, self.label == -1), (g1_prime, g1), (g2, g2_prime), (g2_prime, g2), (g1, g1_prime)]

    @property
    def size(self) -> int:
        return int(self.features.shape[1]) + 10

    def bounds(self, level: float) -> Array:
        return np.array([level, 1 + self.kappa, 1 + self.kappa])

    def by_pairs(self, w: Array) -> Array:
        """f_0, f_1, f_2 at the best a and b, from the O(n^2) pairs."""
        losses = np.array([pair_loss(self.features @ w, l, r, self.c1, self.c2) for l, r in self.pairs()])
        by_level: Array = OWNER @ losses
        return by_level

    def terms(self, x: Array) -> tuple[Array, Array]:
        """F of shape (3,) without the bounds, and G of shape (5,), at x."""
        w, a, b = np.split(x, [self.features.shape[1], self.features.shape[1] + 5])
        h = self.features @ w
        mean_left, mean_right = self.left @ h, self.right @ h
        squares = self.left @ h**2 - 2 * a * mean_left + a**2 + self.right @ h**2 - 2 * b * mean_right + b**2
        values = self.c1 * (self.c2**2 - 2 * self.c2 * (mean_left - mean_right) + squares)
        return OWNER @ values, 2 * self.c1 * (mean_left - mean_right)

    def gradient(self, x: Array, y: Array, dual: Array) -> Array:
        """Gradient in x of <y, F> + <dual, G>, where dual = y_i alpha."""
        w, a, b = np.split(x, [self.features.shape[1], self.features.shape[1] + 5])
        h, owned = self.features @ w, OWNER.T @ y
        inside = (
            -2 * self.c1 * self.c2 * (self.left - self.right)
            + 2 * self.c1 * self.left * (h - a[:, None])
            + 2 * self.c1 * self.right * (h - b[:, None])
        )
        in_h = owned @ inside + dual @ (2 * self.c1 * (self.left - self.right))
        in_a, in_b = -2 * self.c1 * owned * (self.left @ h - a), -2 * self.c1 * owned * (self.right @ h - b)
        return np.concatenate([self.features.T @ in_h, in_a, in_b])

    def conjugate(self, v: Array) -> Array:
        """Maximum over the interval of alpha v - c1 alpha^2, one a component."""
        alpha = np.clip(v / (2 * self.c1), -self.interval, self.interval)
        return alpha * v - self.c1 * alpha**2

    def worst(self, level: float, x: Array) -> float:
        """P(r, x) = max_i f_i(x) - b_i."""
        f, g = self.terms(x)
        return float(np.max(f - self.bounds(level) + OWNER @ self.conjugate(g)))


@dataclass(frozen=True)
class Path:
    """What mirror descent visited: x of shape (T, d), F - b of shape (T, 3), G of shape (T, 5), tau of shape (T,)."""

    x: Array
    f: Array
    g: Array
    tau: Array


def mirror_descent(
    problem: FairAUC,
    level: float,
    eta: Sequence[float] | Array,
    tau: Sequence[float] | Array,
    start: Array,
    entropy_weight: float = 2.0,
) -> Path:
    """Algorithm 2 without noise (full batches) and without a proximal term; alpha is kept, not y alpha."""
    x, log_y, alpha = start.copy(), np.full(3, -np.log(3.0)), np.zeros(5)
    visited: list[tuple[Array, Array, Array]] = []
    for step_x, step_y in zip(eta, tau, strict=True):
        f, g = problem.terms(x)
        f = f - problem.bounds(level)
        visited.append((x, f, g))
        y = np.exp(log_y)
        moved = x - step_x * problem.gradient(x, y, (OWNER.T @ y) * alpha)
        # alpha# maximises alpha v - c1 alpha^2 - (alpha - alpha')^2 / (2 tau) over the interval; nu is that maximum.
        new = np.clip((g + alpha / step_y) / (2 * problem.c1 + 1 / step_y), -problem.interval, problem.interval)
        gain = new * g - problem.c1 * new**2 - (new - alpha) ** 2 / (2 * step_y)
        log_y = log_y + step_y * (f + OWNER @ gain) / entropy_weight
        log_y = log_y - np.logaddexp.reduce(log_y)
        x, alpha = moved, new
    return Path(
        x=np.array([v[0] for v in visited]),
        f=np.array([v[1] for v in visited]),
        g=np.array([v[2] for v in visited]),
        tau=np.asarray(tau, dtype=float),
    )
