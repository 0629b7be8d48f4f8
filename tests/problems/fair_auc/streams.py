"""Cells, slots and single points that tests of streams share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from minmaxcon_problems.fair_auc import resolve_metric
from minmaxcon_problems.fair_auc.surrogate.build import pair_masks

METRIC = resolve_metric("inter_group")
CELLS = ((1, 1), (1, -1), (-1, 1), (-1, -1))
"""(group, label)."""


def raw(rows: Any, indices: Any) -> dict[str, Any]:
    return {"features": rows.features[indices], "label": rows.label[indices], "group": rows.group[indices]}


def slots_of(label: Any, group: Any, metric: Any = METRIC) -> Any:
    """Members of each of the ten slots, (n, 10)."""
    return np.stack([mask for pair in pair_masks(label, metric, group) for mask in pair], axis=1)


def cell_shares(rows: Any) -> dict[tuple[int, int], float]:
    return {(g, y): float(np.mean((rows.group == g) & (rows.label == y))) for g, y in CELLS}


def singles(rows: Any) -> Iterator[dict[str, Any]]:
    for i in range(len(rows)):
        yield {"features": rows.features[i], "label": rows.label[i], "group": rows.group[i]}
