"""The common ground of baselines: stratified batches, the AUC loss on them, and the loop that trains all runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import engine
from minmaxcon.checks import positive, whole
from minmaxcon_problems.fair_auc.datasets import Dataset
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.metrics import FairnessMetric

from .cells import NEGATIVE, POSITIVE, Cells
from .track import Track, dense, engine_of

__all__ = ["Baseline", "GradientBaseline", "Rule", "Strata", "descend", "quadratic_loss"]


class Baseline(ABC):
    """A method of the literature, with the data, models and selection that our own method has.

    ``name`` is what tables and figures call it; ``reads_group`` tells whether it needs the group of the person who is
    scored.
    """

    name: ClassVar[str]
    reads_group: ClassVar[bool] = False

    def applies_to(self, metric: FairnessMetric) -> str:
        """Return why the method cannot serve a metric; empty if it can."""
        return ""

    @abstractmethod
    def fit(
        self, dataset: Dataset, metric: FairnessMetric, strengths: Sequence[float], *, model: mm.Model, seed: int
    ) -> Track:
        """Train on ``dataset.train``, all strengths in one loop, and return all candidates.

        A strength is what a run is asked for, in the unit that the method documents; the seed is that of batches and
        start, and the same seed gives the same bits. Raises InvalidInput where the method does not apply to the metric
        or a strength is out of range, DataError where a subset of the metric has no training row.
        """

    def require_applies(self, metric: FairnessMetric) -> None:
        """Refuse a metric that the method cannot serve."""
        if reason := self.applies_to(metric):
            raise mm.InvalidInput("metric", metric.name, f"{self.name} does not apply: {reason}")


@dataclass(frozen=True, kw_only=True)
class GradientBaseline(Baseline):
    """A baseline that descends along stochastic gradients of the quadratic AUC loss and something more.

    Every strength is run with every step size of ``rates``, all in one loop and on the same batches: the step size is
    then chosen on validation data as part of the candidate, which is how the paper tunes it. The loss is :math:`c_1(h -
    h' - c_2)^2`; a run is recorded ``moments`` times in its ``steps``. Raises InvalidInput where a setting is out of
    range.
    """

    c1: float = 0.5
    c2: float = 1.0
    batch_size: int = 100
    steps: int = 4000
    moments: int = 40
    rates: Sequence[float] = (0.003, 0.01, 0.03)
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for argument in ("c1", "c2"):
            positive(argument, getattr(self, argument))
        for argument, least in (("batch_size", 2), ("steps", 1), ("moments", 1)):
            object.__setattr__(self, argument, whole(argument, getattr(self, argument), least))
        if self.moments > self.steps:
            raise mm.InvalidInput("moments", self.moments, f"must be at most the number of steps, {self.steps}.")
        given: Any = self.rates
        if isinstance(given, str) or not np.iterable(given) or not len(rates := tuple(given)):
            raise mm.InvalidInput("rates", given, "must be a list of at least one step size.")
        for rate in rates:
            positive("rates", rate)
        object.__setattr__(self, "rates", tuple(float(rate) for rate in rates))
        if self.dtype not in ("float32", "float64"):
            raise mm.InvalidInput("dtype", self.dtype, 'use "float32" or "float64".')

    @abstractmethod
    def rule(self, strata: Strata, strengths: Any) -> Rule:
        """Return what is done with the scores of a batch, for the strength (R,) of each run."""

    def checked(self, strengths: Sequence[float]) -> Any:
        """Return the strengths as an array (S,), or refuse them."""
        try:
            found = np.asarray(strengths, dtype=np.float64)
        except (TypeError, ValueError):
            found = np.full(0, np.nan)
        if found.ndim != 1 or not found.size or not (np.isfinite(found) & (found >= 0)).all():
            raise mm.InvalidInput("strengths", strengths, "must be a list of finite numbers of at least 0.")
        return found

    def fit(
        self, dataset: Dataset, metric: FairnessMetric, strengths: Sequence[float], *, model: mm.Model, seed: int
    ) -> Track:
        """See :meth:`Baseline.fit`; run ``k * len(rates) + j`` has strength k and step size j."""
        self.require_applies(metric)
        runs = np.repeat(self.checked(strengths), len(self.rates))
        rates = np.tile(np.asarray(self.rates, dtype=np.float64), len(runs) // len(self.rates))
        strata = Strata.of(dataset.train, metric, self.batch_size)
        parameters, taken = descend(
            model,
            dataset.train,
            strata,
            self.rule(strata, runs),
            rates=rates,
            steps=self.steps,
            moments=self.moments,
            seed=seed,
            dtype=self.dtype,
        )
        return Track(model, parameters, runs, taken, rates)


_BLOCK = 100
"""Steps whose indices are drawn at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    r"""Mini-batches that hold rows of every cell, in fixed numbers and places.

    On a9a 3.6% of the rows are positive and protected: a plain batch of 100 lacks them once in 40 draws, and then an
    AUC of theirs does not exist. So every cell gets its place, :math:`n_c \propto \sqrt{p_c}` of the batch, at least
    two, and each of its rows the weight :math:`p_c / n_c` that restores the population. A weighted mean over all pairs
    of the batch is then unbiased, and the weights are constants that no step has to compute.

    ``members`` are the rows of each cell, ``counts`` (K,) its places in a batch of B, one cell after the other. Of each
    place, ``weight`` (B,) sums to 1, ``group`` (B,) is -1 or +1, and ``slots`` (6, B) are the weights within G1, G1',
    G2, G2', the positives and the negatives, whose rows sum to 1.
    """

    members: tuple[Any, ...]
    counts: Any
    weight: Any
    group: Any
    slots: Any

    @classmethod
    def of(cls, rows: LabelledData, metric: FairnessMetric, batch_size: int) -> Strata:
        """Lay the batches out for training rows and a metric.

        Raises DataError where a subset or a class has no row, InvalidInput where a batch cannot hold two rows of each
        cell.
        """
        metric.masks_of(rows.label, rows.group, rows.name)
        cells = Cells.of(rows, metric)
        kinds = len(cells.sizes)
        if batch_size < 2 * kinds:
            raise mm.InvalidInput("batch_size", batch_size, f"must be at least {2 * kinds}: two rows of each cell.")
        share = cells.sizes / len(rows)
        root = np.sqrt(share)
        counts = 2 + np.floor((batch_size - 2 * kinds) * root / root.sum()).astype(np.int64)
        counts[np.argmax(share)] += batch_size - counts.sum()
        place = np.repeat(np.arange(kinds), counts)
        weight = (share / counts)[place]
        slots = cells.membership[place].T * weight
        members = tuple(np.flatnonzero(cells.code == c) for c in range(kinds))
        return cls(members, counts, weight, cells.group[place], slots / slots.sum(axis=1, keepdims=True))

    def draw(self, rng: np.random.Generator, steps: int) -> Any:
        """Return row indices (steps, B), drawn with replacement within each cell."""
        parts = [
            rows[rng.integers(len(rows), size=(steps, n))] for rows, n in zip(self.members, self.counts, strict=True)
        ]
        return np.concatenate(parts, axis=1)


def quadratic_loss(scores: Any, strata: Strata, c1: float, c2: float) -> tuple[Any, Any]:
    r"""Return the quadratic AUC loss (R,) of scores (R, B) of a batch, and its gradient (R, B) in the scores.

    .. math:: \sum_{ij} u_i v_j\, c_1 (h_i - h_j - c_2)^2 = c_1\big[\mathrm{Var}_u h + \mathrm{Var}_v h
        + (m_u - m_v - c_2)^2\big]

    for weights u of the positives and v of the negatives: O(B) instead of O(B^2).
    """
    u, v = (strata.slots[k].astype(scores.dtype) for k in (POSITIVE, NEGATIVE))
    above, below = scores @ u, scores @ v
    excess = above - below - c2
    from_above, from_below = scores - above[:, None], scores - below[:, None]
    loss = c1 * ((from_above**2) @ u + (from_below**2) @ v + excess**2)
    slope = 2.0 * c1 * (u * (from_above + excess[:, None]) + v * (from_below - excess[:, None]))
    return loss, slope


class Rule(ABC):
    """The rule of a method for the scores of a batch; it keeps nothing between steps but what it returns."""

    def start(self, runs: int) -> Any:
        """Return the state before the first step; none by default."""
        return None

    @abstractmethod
    def step(self, scores: Any, state: Any) -> tuple[Any, Any]:
        """Return the gradient in the scores (R, B) that the parameters descend along, and the next state."""


def descend(
    model: mm.Model,
    rows: LabelledData,
    strata: Strata,
    rule: Rule,
    *,
    rates: Any,
    steps: int,
    moments: int,
    seed: int,
    dtype: str = "float32",
) -> tuple[Any, Any]:
    r"""Train all runs on the same batches by Adam and return the models that they pass through.

    .. math:: w \gets w - c\,\big(1 - t/T\big)\, \hat m_t / (\sqrt{\hat v_t} + \epsilon)

    for T ``steps`` and the step size c of each run, ``rates`` (R,); all runs start from ``model.start(seed)``. Returned
    are parameters (2 moments, R, d), an iterate at even places and at odd ones the average of the iterates since the
    last record, and the steps before each, (2 moments,). Source: Kingma and Ba, *Adam: a method for stochastic
    optimization*, ICLR 2015.
    """
    features = dense(rows.features, dtype)
    xp = engine(engine_of(model, features))
    features = xp.create(features, dtype)
    rate = np.asarray(rates, dtype=dtype)[:, None]
    point = np.repeat(np.asarray(model.start(seed), dtype=dtype)[None], len(rate), axis=0)
    first, second, total = np.zeros_like(point), np.zeros_like(point), np.zeros_like(point)
    ends = np.unique(np.linspace(0, steps, moments + 1).astype(np.int64))[1:]
    record, previous, kept = iter(ends.tolist()), 0, []
    due = next(record)
    state, rng = rule.start(len(rate)), np.random.default_rng(seed)
    indices: Any = None
    # A run that leaves the numbers stays there and is never chosen; the others must not be disturbed by warnings.
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(steps):
            if t % _BLOCK == 0:
                indices = strata.draw(rng, min(_BLOCK, steps - t))
            batch = xp.rows(features, indices[t % _BLOCK])
            scores, pullback = model.evaluate(xp.asarray(point, features), batch)
            slope, state = rule.step(xp.to_numpy(scores), state)
            gradient = xp.to_numpy(pullback(xp.asarray(slope, features)))
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient * gradient - second)
            size = (1.0 - t / steps) * np.sqrt(1.0 - 0.999 ** (t + 1)) / (1.0 - 0.9 ** (t + 1))
            point = point - (size * rate) * first / (np.sqrt(second) + 1e-8)
            total += point
            if t + 1 == due:
                kept += [point, total / (due - previous)]
                previous, due, total = due, next(record, 0), np.zeros_like(point)
    return np.stack(kept), np.repeat(ends, 2)
