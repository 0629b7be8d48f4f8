"""The rule by which one of several limits is taken."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["fairest_near_best"]


def fairest_near_best(areas: Sequence[float], limits: Sequence[float], error: float) -> int:
    """Return the place of the smallest limit whose AUC is within one standard error of the best; the first of equals.

    >>> fairest_near_best([0.70, 0.74, 0.75], [0.01, 0.02, 0.05], 0.015)
    1
    """
    least = max(areas) - error
    near = [k for k, area in enumerate(areas) if area >= least]
    return min(near, key=lambda k: (limits[k], k))
