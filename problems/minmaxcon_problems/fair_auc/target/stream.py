r"""Targets on a stream: points that arrive singly, looked at in blocks that hold members of every subset.

A block is what a stream gave last, completed by earlier rows of the cells (label, group) that were rare or absent. Each
row counts :math:`\Pr(c)/n_c`, the probability of its cell over the cell's rows in the block, so that a block stands for
the population whatever the order in which groups and labels arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import to_numpy
from minmaxcon.checks import whole
from minmaxcon_problems.fair_auc.bounds import resolved_bound
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.metrics import FairnessMetric, single_metric
from minmaxcon_problems.fair_auc.surrogate.streaming import (
    GroupWeights,
    checked_cells,
    checked_points,
    slot_probabilities,
)

from .objectives import ScoreObjective
from .problem import Target, build_target_problem

__all__ = ["TargetStream", "stream_target_problem"]

_CELLS = ((-1, -1), (-1, 1), (1, -1), (1, 1))
"""(group, label)."""

_ENOUGH = 10
"""Members that every subset must have before the first block counts as one, if points go on."""


@dataclass(frozen=True, eq=False, slots=True)
class _Kept:
    """The rows of a block, how many points of each cell have passed, and what the stream itself remembers."""

    features: Any
    label: Any
    group: Any
    counts: Any
    memory: Any

    def cells(self) -> list[Any]:
        return [np.flatnonzero((self.group == g) & (self.label == y)) for g, y in _CELLS]

    def with_rows(self, fresh: _Kept, least: int, rng: np.random.Generator) -> _Kept:
        """Put fresh rows in the place of old ones; a cell keeps some, drawn at random, until it has ``least``."""
        kept = [np.arange(0)]
        for old, new in zip(self.cells(), fresh.cells(), strict=True):
            room = max(least - new.size, 0)
            kept.append(old if old.size <= room else np.sort(rng.choice(old, room, replace=False)))
        rows = np.concatenate(kept)
        return _Kept(
            np.concatenate([self.features[rows], fresh.features]),
            np.concatenate([self.label[rows], fresh.label]),
            np.concatenate([self.group[rows], fresh.group]),
            self.counts + fresh.counts,
            fresh.memory,
        )


class _Points:
    """Prepares points: the features, label and group of each, and what functions read of single samples."""

    def __init__(self, weights: GroupWeights) -> None:
        self._weights = weights

    def start(self) -> Any:
        return self._weights.start()

    def __call__(self, memory: Any, points: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
        memory, found = self._weights(memory, points)
        slots = found["weights"]
        label = points["label"]
        # slots: both classes, then G1', G1, G2, G2' and once more
        arrays = {"weights": slots[:, :2], "subsets": slots[:, [3, 2, 4, 5]], "signs": label}
        return memory, {"features": found["features"], "label": label, "group": points["group"], **arrays}


class TargetStream(mm.Stream):
    r"""A stream of points (features, label, group) for problems with a target.

    Draws give single samples with the weights :math:`1_G/\Pr(G)` of :class:`GroupWeights`. Blocks hold at most twice as
    many rows as are asked for, and what the objective reads. Points are as for :func:`stream_target_problem`; the
    probabilities of the four cells (group, label) are counted by default, and every subset must have a member within
    ``look`` points. Raises InvalidInput where a setting is out of range.
    """

    def __init__(
        self,
        points: Callable[[], Iterator[Mapping[str, Any]]] | Iterable[Mapping[str, Any]],
        metric: FairnessMetric,
        objective: ScoreObjective,
        *,
        probabilities: Any = None,
        look: int = 100_000,
        engine: str = "numpy",
        dtype: str = "float64",
        device: str = "cpu",
    ) -> None:
        known = None if probabilities is None else slot_probabilities(probabilities, metric)
        prepare = _Points(GroupWeights(metric, known, burn_in=0))
        super().__init__(points, prepare=prepare, engine=engine, dtype=dtype, device=device)
        self.metric, self.objective, self.look = metric, objective, whole("look", look, 1)
        self.probabilities = None
        if probabilities is not None:
            cells = checked_cells(probabilities)
            self.probabilities = np.array([cells[cell] for cell in _CELLS])

    def draw(self, position: mm.Position, steps: int, batch_size: int) -> tuple[Iterator[mm.Batch], mm.Position]:
        """See :meth:`minmaxcon.Stream.draw`; a block's rows are no part of it."""
        if isinstance(position.memory, _Kept):
            position = replace(position, memory=position.memory.memory)
        return super().draw(position, steps, batch_size)

    def block(self, position: mm.Position, rows: int) -> tuple[mm.Source | None, mm.Position]:
        """See :meth:`minmaxcon.Source.block`; the first one goes on until every subset has members.

        Raises DataError where a subset of the metric, or a class, has no member among the first points (it is named),
        InvalidInput where a point belongs to a cell that was said to have the probability 0.
        """
        kept, position = self.kept(position, rows)
        if kept is None:
            return None, position
        weight, positive = self.row_weight(kept), kept.label > 0
        subsets = self.metric.masks(kept.label, kept.group) * weight[:, None]
        arrays = {
            "features": kept.features,
            "subsets": subsets / subsets.mean(axis=0),
            **self.objective.arrays(positive, weight),
            "row_weight": weight,
            "positive": positive.astype(np.float64),
        }
        return mm.Finite(arrays, engine=self.engine, dtype=self.dtype, device=self.device), position

    def kept(self, position: mm.Position, rows: int) -> tuple[_Kept | None, mm.Position]:
        """Read on, as :meth:`block` does, and return the rows of the block; None where nothing is left."""
        old: _Kept | None = position.memory if isinstance(position.memory, _Kept) else None
        begun = position.samples
        position = position if old is None else replace(position, memory=old.memory)
        key = int(position.rng().integers(2**62))
        kept, enough = old, False
        while not enough:
            # asked to go on, a block that lacks a subset reads as much again
            found, position = super().block(position, rows)
            if found is None:
                break
            fresh = _read(found, position)
            rng = np.random.default_rng([key, position.samples])
            kept = fresh if kept is None else kept.with_rows(fresh, rows // len(_CELLS), rng)
            enough = old is not None or position.samples >= self.look or bool((self._members(kept) >= _ENOUGH).all())
        if kept is None or position.samples == begun:
            return None, position
        self.metric.masks_of(kept.label, kept.group, f"the first {position.samples:,} points of the stream")
        return kept, replace(position, memory=kept)

    def row_weight(self, kept: _Kept) -> Any:
        """Return how much each row of a block counts, (n,), 1 on average."""
        weight = np.zeros(len(kept.label))
        shares = kept.counts / kept.counts.sum() if self.probabilities is None else self.probabilities
        for cell, share, rows in zip(_CELLS, shares, kept.cells(), strict=True):
            if rows.size and share == 0:
                remedy = f"a point with (group, label) = {cell} has come: its probability is not 0."
                raise mm.InvalidInput("probabilities", 0.0, remedy)
            weight[rows] = share / max(rows.size, 1)
        return weight / weight.mean()

    def _members(self, kept: _Kept) -> Any:
        classes = [(kept.label > 0).sum(), (kept.label < 0).sum()]
        return np.concatenate([self.metric.masks(kept.label, kept.group).sum(axis=0), classes])


def _read(found: mm.Source, position: mm.Position) -> _Kept:
    ((_, batch),) = found.chunks(2**62)
    features, label, group = (np.asarray(to_numpy(batch[name])) for name in ("features", "label", "group"))
    counts = np.array([((group == g) & (label == y)).sum() for g, y in _CELLS])
    return _Kept(features, label.astype(np.int64), group.astype(np.int64), counts, position.memory)


def stream_target_problem(
    points: Callable[[], Iterator[Mapping[str, Any]]] | Iterable[Mapping[str, Any]],
    metric: Any = "inter_group",
    max_gap: Any = None,
    *,
    probabilities: Any = None,
    objective: str | ScoreObjective = "auc",
    model: mm.Model | None = None,
    radius: float = 10.0,
    bandwidth: float = 0.1,
    first: int = 5000,
    look: int = 100_000,
    seed: int = 0,
    engine: str | None = None,
    dtype: str | None = None,
    device: str = "cpu",
) -> mm.RefreshedProblem:
    r"""Build the problem of a target on a stream: the best objective subject to a true gap of at most ``max_gap``.

    The gap and the objective are those of the population that the points come from.

    Parameters
    ----------
    points : callable or iterable
        As for :class:`minmaxcon.Stream`; each point has ``features`` (p,), ``label`` and ``group`` (both -1 or +1).
        Groups and labels may come in any order.
    metric : str or four subsets
        The fairness metric.
    max_gap : float or array_like (R,), optional
        Targets, in the unit of the AUC; 0.02 by default.
    probabilities : mapping of (group, label) to float, optional
        Population probabilities of all four cells, such as ``{(1, 1): 0.1, (1, -1): 0.3, ...}``, which sum to 1;
        counted as points arrive by default.
    objective : {"auc", "quadratic_auc", "logistic"} or ScoreObjective
        What is minimised, as for a data set.
    model : Model, optional
        Linear by default.
    radius : float
        Radius of the ball of parameters.
    bandwidth : float
        Smoothing of the followed distributions, in standard deviations of the scores.
    first : int
        Points that are read to size the sets and, where the objective follows the AUC, for the model that comes first.
    look : int
        Within how many points every subset of the metric must have a member.
    seed : int
        Seed of a network's starting parameters, and of the order in which the first points are read.
    engine, dtype : str, optional
        By default the model's own, in float64 for a linear model and in float32 for others.
    device : str
        Where torch or JAX computes.

    Returns
    -------
    RefreshedProblem
        For :class:`minmaxcon.SuccessiveApproximation`, whose ``sample`` says how many points each outer step reads. The
        result is an estimate: nothing is proved.

    Raises
    ------
    InvalidInput
        If a number is out of range.
    DataError
        If a point is not usable, or a subset of the metric has no member among the first points.
    """
    _, gaps = resolved_bound(max_gap=max_gap, default="max_gap")
    target = Target(
        metric=metric,
        max_gap=gaps,
        objective=objective,
        model=model,
        radius=radius,
        bandwidth=bandwidth,
        seed=seed,
    )
    linear = model is None or isinstance(model, mm.Linear)
    if engine is None:
        engine = "numpy" if model is None else model.engine
    if dtype is None:
        dtype = "float64" if linear else "float32"
    stream = TargetStream(
        points,
        single_metric(target.metric),
        target.objective,
        probabilities=probabilities,
        look=look,
        engine=engine,
        dtype=dtype,
        device=device,
    )
    width = checked_points(list(islice(stream.open(), 1)))["features"].shape[1]
    kept, _ = stream.kept(mm.Position.start(np.random.default_rng(seed)), whole("first", first, 1))
    if kept is None:
        raise mm.DataError("stream", "it has no points.")
    names = tuple(f"x{j}" for j in range(width))
    rows = LabelledData(kept.features, kept.label, kept.group, names, name="stream")
    kind: dict[str, Any] = {"engine": engine, "dtype": dtype, "device": device}
    problem = build_target_problem(rows, target, row_weight=stream.row_weight(kept), **kind)
    return replace(problem, data=stream)
