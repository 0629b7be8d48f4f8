r"""Fair AUC from a stream of single points: weights :math:`1_G/\Pr G` with known or estimated probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

import minmaxcon as mm

from .build import assemble, checked_kappa, pair_masks
from .metrics import FairnessMetric, resolve_metric

__all__ = ["GroupWeights", "stream_problem"]


@dataclass(frozen=True, slots=True)
class _Seen:
    """Points counted so far, and members of each slot's group among them."""

    points: int
    members: tuple[int, ...]


class GroupWeights:
    r"""Turns points (features, label, group) into features and slot weights.

    Parameters
    ----------
    metric : FairnessMetric
        The four subsets.
    probabilities : array_like (slots,), optional
        The population's :math:`\Pr(G)` of each slot. Without them sample t enters with :math:`1_G(z_t)\,t/N_t`, where t
        and :math:`N_t` count samples, the current one included; its expectation is
        :math:`(1 - (1-p)^t)E[\cdot \mid G]`.
    burn_in : int
        Points that are only counted go on until every group has this many members.

    Raises
    ------
    InvalidInput
        If a probability is not in (0, 1].
    """

    def __init__(self, metric: FairnessMetric, probabilities: Any = None, burn_in: int = 10) -> None:
        self.metric, self.burn_in = metric, int(burn_in)
        self.probabilities = None if probabilities is None else np.asarray(probabilities, dtype=np.float64)
        if self.probabilities is not None and not ((self.probabilities > 0) & (self.probabilities <= 1)).all():
            raise mm.InvalidInput("probabilities", probabilities, "must lie in (0, 1], one for each slot.")

    def start(self) -> _Seen:
        """See :class:`minmaxcon.Preparation`."""
        return _Seen(0, ())

    def __call__(self, memory: _Seen, points: Mapping[str, Any]) -> tuple[_Seen, Mapping[str, Any]]:
        """See :class:`minmaxcon.Preparation`; vectorised over the points."""
        label = np.where(points["label"] > 0, 1, -1)
        group = np.where(points["group"] > 0, 1, -1)
        masks = pair_masks(label, self.metric, group)
        member = np.stack([mask for pair in masks for mask in pair], axis=1).astype(np.float64)
        features = points["features"]
        if self.probabilities is not None:
            return memory, {"features": features, "weights": member / self.probabilities}
        before = np.zeros(member.shape[1]) if memory.points == 0 else np.asarray(memory.members, dtype=np.float64)
        counts = before + np.cumsum(member, axis=0)
        clock = memory.points + 1.0 + np.arange(len(member))
        weights = member * clock[:, None] / np.maximum(counts, 1.0)
        ready = counts.min(axis=1) >= self.burn_in
        seen = _Seen(memory.points + len(member), tuple(int(c) for c in counts[-1]))
        return seen, {"features": features[ready], "weights": weights[ready]}


def stream_problem(
    points: Callable[[], Iterator[Mapping[str, Any]]] | Iterable[Mapping[str, Any]],
    metric: Any = "inter_group",
    kappa: Any = 0.1,
    *,
    probabilities: Any = None,
    c1: float = 0.5,
    c2: float = 1.0,
    radius: float = 10.0,
    look: int = 1000,
    engine: str = "numpy",
    dtype: str = "float64",
) -> mm.MinMaxProblem:
    r"""Build the fair AUC problem of a linear model on a stream.

    Parameters
    ----------
    points : callable or iterable
        As for :class:`minmaxcon.Stream`; each point has ``features`` (p,), ``label`` and ``group`` (both -1 or +1).
    metric : str or four subsets
        The fairness metric.
    kappa : float or array_like (R,)
        Both bounds are :math:`1 + \kappa`.
    probabilities : mapping of (group, label) to float, optional
        Population probabilities of the four cells, such as ``{(1, 1): .1, (1, -1): .3, ...}``; estimated as points
        arrive by default.
    c1, c2, radius
        As for :func:`build_problem`.
    look : int
        How many points are looked at beforehand to size the inner sets (which get twice what these points need).
    engine, dtype : str
        Array engine and precision.

    Returns
    -------
    MinMaxProblem
        On a stream: values are estimates, and the certificate holds with confidence only.

    Raises
    ------
    InvalidInput
        If a number is out of range.
    DataError
        If a group of the metric has no member among the points looked at.
    """
    resolved = resolve_metric(metric)
    bounds = checked_kappa(kappa, c1, c2)
    slot_probabilities = None
    if probabilities is not None:
        cells = [(float(p), group, label) for (group, label), p in probabilities.items()]
        weight = np.array([p for p, _, _ in cells])
        masks = pair_masks(np.array([y for _, _, y in cells]), resolved, np.array([g for _, g, _ in cells]))
        slot_probabilities = np.array([weight[mask].sum() for pair in masks for mask in pair])
    stream = mm.Stream(points, prepare=GroupWeights(resolved, slot_probabilities), engine=engine, dtype=dtype)
    first = list(islice(stream.open(), look))
    if not first:
        raise mm.DataError("stream", "it has no points.")
    features = np.asarray([point["features"] for point in first], dtype=np.float64)
    label = np.where(np.asarray([point["label"] for point in first]) > 0, 1, -1)
    group = np.where(np.asarray([point["group"] for point in first]) > 0, 1, -1)
    resolved.require_members(resolved.masks(label, group), f"the first {len(first)} points of the stream")
    slots = [mask for pair in pair_masks(label, resolved, group) for mask in pair]
    means = 2.0 * np.stack([features[mask].mean(axis=0) for mask in slots])
    details = {"metric": resolved, "kappa": kappa, "c1": c1, "c2": c2}
    return assemble(
        stream, mm.Linear(features.shape[1]), means, bounds, c1=c1, c2=c2, radius=radius, name="stream", details=details
    )
