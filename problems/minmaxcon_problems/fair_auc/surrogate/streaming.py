r"""Fair AUC from a stream of single points: weights :math:`1_G/\Pr G` with known or estimated probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.checks import finite_array, whole
from minmaxcon.data import BadPoint
from minmaxcon_problems.fair_auc.bounds import Details, resolved_bound
from minmaxcon_problems.fair_auc.metrics import FairnessMetric, resolve_metric

from .build import assemble, pair_masks

__all__ = ["GroupWeights", "checked_cells", "checked_points", "slot_probabilities", "stream_problem"]


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
        If there is not one probability in (0, 1] for each slot, or the burn-in is not a whole number.

    Examples
    --------
    >>> import numpy as np
    >>> from minmaxcon_problems.fair_auc import GroupWeights, resolve_metric
    >>> weigh = GroupWeights(resolve_metric("group"), burn_in=1)
    >>> rng = np.random.default_rng(0)
    >>> label, group = rng.choice([-1, 1], 50), rng.choice([-1, 1], 50)
    >>> points = {"features": rng.normal(size=(50, 2)), "label": label, "group": group}
    >>> memory, batch = weigh(weigh.start(), points)
    >>> sorted(batch), len(batch["features"]) <= 50
    (['features', 'weights'], True)
    """

    def __init__(self, metric: FairnessMetric, probabilities: Any = None, burn_in: int = 10) -> None:
        self.metric, self.burn_in = metric, whole("burn_in", burn_in, 0)
        self.probabilities = None
        if probabilities is not None:
            slots = 2 * len(pair_masks([1], metric, [1]))
            remedy = f"must lie in (0, 1], one for each of the {slots} slots."
            self.probabilities = finite_array("probabilities", probabilities, remedy)
            valid = self.probabilities.shape == (slots,)
            if not (valid and ((self.probabilities > 0) & (self.probabilities <= 1)).all()):
                raise mm.InvalidInput("probabilities", probabilities, remedy)

    def start(self) -> _Seen:
        """See :class:`minmaxcon.Preparation`."""
        return _Seen(0, ())

    def __call__(self, memory: _Seen, points: Mapping[str, Any]) -> tuple[_Seen, Mapping[str, Any]]:
        """See :class:`minmaxcon.Preparation`; vectorised over the points."""
        label, group = _signs(points, "label"), _signs(points, "group")
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
    kappa: Any = None,
    *,
    probabilities: Any = None,
    c1: float = 0.5,
    c2: float = 1.0,
    radius: float = 10.0,
    look: int = 1000,
    engine: str = "numpy",
    dtype: str = "float64",
    device: str = "cpu",
) -> mm.MinMaxProblem:
    r"""Build the fair AUC problem of a linear model on a stream.

    Parameters
    ----------
    points : callable or iterable
        As for :class:`minmaxcon.Stream`; each point has ``features`` (p,), ``label`` and ``group`` (both -1 or +1).
    metric : str or four subsets
        The fairness metric.
    kappa : float or array_like (R,), optional
        Both bounds are :math:`1 + \kappa`; 0.1 by default.
    probabilities : mapping of (group, label) to float, optional
        Population probabilities of all four cells, such as ``{(1, 1): 0.1, (1, -1): 0.3, ...}``, which sum to 1;
        estimated as points arrive by default.
    c1, c2, radius
        As for :func:`build_problem`.
    look : int
        How many points are looked at beforehand to size the inner sets (which get twice what these points need).
    engine, dtype, device : str
        Array engine, precision, and where torch or JAX computes.

    Returns
    -------
    MinMaxProblem
        On a stream, where :class:`minmaxcon.SFLS` claims feasibility and bounds with confidence.

    Raises
    ------
    InvalidInput
        If a number is out of range.
    DataError
        If a point is not usable, or a group of the metric has no member among the points looked at.
    """
    resolved = resolve_metric(metric)
    kappa, _ = resolved_bound(kappa, c1=c1, c2=c2, default="kappa")
    known = None if probabilities is None else slot_probabilities(probabilities, resolved)
    stream = mm.Stream(points, prepare=GroupWeights(resolved, known), engine=engine, dtype=dtype, device=device)
    first = checked_points(list(islice(stream.open(), whole("look", look, 1))))
    features = first["features"]
    label, group = _signs(first, "label"), _signs(first, "group")
    resolved.require_members(resolved.masks(label, group), f"the first {len(label)} points of the stream")
    slots = [mask for pair in pair_masks(label, resolved, group) for mask in pair]
    means = 2.0 * np.stack([features[mask].mean(axis=0) for mask in slots])
    model = mm.Linear(features.shape[1])
    details = Details(metric=resolved, model=model, kappa=kappa, c1=float(c1), c2=float(c2))
    return assemble(stream, details, means, radius=radius, name="stream")


def _signs(points: Mapping[str, Any], name: str) -> Any:
    """Return the labels or groups of points, each -1 or +1."""
    signs = np.asarray(points[name])
    wrong = np.abs(signs) != 1
    if wrong.any():
        first = int(np.argmax(wrong))
        raise BadPoint(first, f"{name} is {signs[first]:g} and must be -1 or +1; recode it.")
    return signs.astype(np.int64)


def checked_points(points: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Read points into arrays, as the stream will, and refuse those that are no points of fair AUC."""
    shapes = {"features": 2, "label": 1, "group": 1}
    batches, _ = mm.Stream(points, shuffle=1).draw(mm.Position.start(np.random.default_rng(0)), 1, max(len(points), 1))
    for batch in batches:
        for name, dimensions in shapes.items():
            if name not in batch or batch[name].ndim != dimensions:
                found = batch[name].shape[1:] if name in batch else "missing"
                need = "features (p,), label and group"
                raise mm.DataError("stream", f"{name} of a point is {found}; a point has {need}, one number each.")
        for name in ("label", "group"):
            try:
                _signs(batch, name)
            except BadPoint as bad:
                raise mm.DataError("stream", f"point {bad.index + 1}: {bad.problem}") from bad
        return batch
    raise mm.DataError("stream", "it has no points.")


def checked_cells(probabilities: Any) -> dict[tuple[int, int], float]:
    """Return the probabilities of the four cells (group, label), each -1 or 1, as shares of their sum.

    Raises InvalidInput where they are not four numbers of at least 0 that sum to 1.
    """
    remedy = "give the four cells (group, label), each -1 or 1, with probabilities that sum to 1."
    cells: dict[tuple[int, int], float] = {}
    try:
        for (group, label), p in probabilities.items():
            cells[1 if group > 0 else -1, 1 if label > 0 else -1] = float(p)
    except (AttributeError, TypeError, ValueError):
        raise mm.InvalidInput("probabilities", probabilities, remedy) from None
    weight = np.array(list(cells.values()))
    if not (len(cells) == len(probabilities) == 4 and (weight >= 0).all() and abs(weight.sum() - 1) <= 1e-3):
        raise mm.InvalidInput("probabilities", probabilities, remedy)
    return {cell: float(p) for cell, p in zip(cells, weight / weight.sum(), strict=True)}


def slot_probabilities(probabilities: Any, metric: FairnessMetric) -> Any:
    """Add the probabilities of the four cells up to those of the slots' groups, (10,)."""
    cells = checked_cells(probabilities)
    group, label = np.array(list(cells)).T
    weight = np.array(list(cells.values()))
    slots = [mask for pair in pair_masks(label, metric, group) for mask in pair]
    return np.array([min(1.0, weight[mask].sum()) for mask in slots])
