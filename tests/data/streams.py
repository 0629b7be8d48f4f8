"""Points, positions and a preparation that tests of streams share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import minmaxcon as mm


def points(count: int) -> Any:
    def read() -> Iterator[dict[str, Any]]:
        for i in range(count):
            yield {"z": float(i), "features": np.array([float(i), 1.0])}

    return read


def position(seed: int = 0) -> mm.Position:
    return mm.Position.start(np.random.default_rng(seed))


def content(where: mm.Position) -> tuple[Any, int, Any]:
    """Return what a position holds; positions themselves compare by identity."""
    return where.generator, where.samples, where.memory


def values(stream: mm.Stream, where: mm.Position, steps: int, size: int) -> tuple[list[float], mm.Position]:
    batches, after = stream.draw(where, steps, size)
    return [float(z) for batch in batches for z in batch["z"]], after


class Every:
    """Lets through the points from the second on whose number is even, with a count of all points so far."""

    def start(self) -> int:
        return 0

    def __call__(self, memory: int, points: Any) -> tuple[int, Any]:
        order = memory + 1.0 + np.arange(len(points["z"]))
        kept = points["z"] % 2 == 0
        return memory + len(kept), {"z": points["z"][kept], "order": order[kept]}
