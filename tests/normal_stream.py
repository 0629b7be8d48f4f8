"""A stream of normal samples of which the population is known, drawn whole batches at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import minmaxcon as mm
from tests.problem_library import HalfSquare, Linear, MeanGap, Robust, WorstGroup

Array = Any

POINTS, COSTS = np.array([1.0, 0.5, -0.5]), np.array([0.5, 0.7, 0.2])


class Normal(mm.Source):
    """Independent samples of named vectors with unit variances; ``contrast`` is a sign, ``shares`` the groups'.

    It ends after ``limit`` samples, where one is given.
    """

    size = None

    def __init__(self, limit: int | None = None, dtype: str = "float64") -> None:
        self.limit, self.dtype, self.like = limit, dtype, np.zeros(0, dtype=dtype)

    def draw(self, position: mm.Position, steps: int, batch_size: int) -> tuple[Iterator[mm.Batch], mm.Position]:
        rng = position.rng()
        if self.limit is not None:
            steps = min(steps, (self.limit - position.samples) // batch_size)
        drawn = [self._batch(rng, batch_size) for _ in range(steps)]
        return iter(drawn), mm.Position(rng.bit_generator.state, position.samples + steps * batch_size)

    def _batch(self, rng: Any, size: int) -> Mapping[str, Array]:
        group = rng.integers(0, 3, size)
        shift = 0.3 * (group - 1.0)
        found = {
            "points": rng.normal(size=(size, 3)) + POINTS + shift[:, None],
            "costs": rng.normal(size=(size, 3)) + COSTS,
            "shares": 3.0 * (group[:, None] == np.arange(3)),
            "contrast": np.where(group == 2, 3.0, np.where(group == 0, -3.0, 0.0)),
        }
        return {name: rows.astype(self.dtype) for name, rows in found.items()}


def true_values(x: Array) -> dict[str, float]:
    """Return the population's values of one function of each kind at x."""
    spread = 0.5 * (3.0 + 3.0 * 0.06)
    groups = [0.5 * float(np.sum((x - POINTS - 0.3 * (g - 1.0)) ** 2)) + 1.5 for g in range(3)]
    return {
        "square": 0.5 * float(np.sum((x - POINTS) ** 2)) + spread,
        "linear": float(COSTS @ x),
        "robust": float(COSTS @ x + 0.3 * np.linalg.norm(x)),
        "worst group": max(groups),
        "mean gap": abs(0.6 * float(x.sum())),
    }


FUNCTIONS = {
    "square": HalfSquare,
    "linear": Linear,
    "robust": lambda: Robust(3, 0.3),
    "worst group": lambda: WorstGroup(3),
    "mean gap": MeanGap,
}


def half_space(limit: int | None = None, bound: float = 0.2, dtype: str = "float64") -> tuple[mm.MinMaxProblem, float]:
    """Return the nearest point to the mean in a half-space, from a stream, and its optimal value."""
    data = Normal(limit, dtype)
    problem = mm.MinMaxProblem(HalfSquare(), [Linear(bound)], mm.Ball(3, 3.0), data, start=-np.ones(3))
    short = max(float(COSTS @ POINTS) - bound, 0.0)
    return problem, true_values(POINTS)["square"] + 0.5 * short**2 / float(COSTS @ COSTS)
