"""The models that a training run passes through, and the choice among them on validation data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import engine, to_numpy
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.metrics import FairnessMetric

from .cells import Cells

__all__ = ["Track", "best_feasible", "dense", "engine_of", "score_all"]

_NUMBERS_AT_ONCE = 4_000_000
"""Scores in memory at a time: 16 MB in float32."""


def dense(features: Any, dtype: str = "float32") -> Any:
    """Return features (n, p), sparse or not, as a dense C-ordered array of one precision."""
    rows = features.toarray() if hasattr(features, "tocsr") else to_numpy(features)
    return np.ascontiguousarray(rows, dtype=dtype)


def engine_of(model: mm.Model, features: Any) -> str:
    """Return the array engine that a model works on, "numpy" where it takes both; found by scoring one row."""
    try:
        model.evaluate(np.zeros(model.dimension, dtype=features.dtype), features[:1])
    except (mm.Unsupported, AttributeError, TypeError):  # a model written for torch alone need not say so
        return "torch"
    return "numpy"


def score_all(model: mm.Model, parameters: Any, features: Any) -> Any:
    """Yield the scores of candidates with parameters (C, d), in pieces that fit the cache.

    A piece is the slice of the candidates and their scores (c, n) in float32; features (n, p) are dense or sparse.
    """
    rows = dense(features)
    xp = engine(engine_of(model, rows))
    batch = xp.create(rows, "float32")
    # A network holds units, with torch their graph too, besides the scores, so it goes one candidate at a time.
    size = max(1, _NUMBERS_AT_ONCE // max(1, len(rows))) if isinstance(model, mm.Linear) else 1
    for begin in range(0, len(parameters), size):
        piece = xp.create(parameters[begin : begin + size], "float32")
        yield slice(begin, begin + size), xp.to_numpy(model.evaluate(piece, batch)[0])


def best_feasible(auc: Any, gap: Any, target: float) -> tuple[int, ...]:
    """Return the index of the best candidate: feasible with the highest AUC, else the one of least gap.

    ``auc`` and ``gap`` have one shape, and NaN marks a candidate that cannot be chosen; of equal ones the first is
    taken. Raises InvalidInput where no candidate has finite scores, or the target is not a number.

    >>> best_feasible(np.array([0.9, 0.8, 0.7]), np.array([0.3, 0.02, 0.01]), 0.05)
    (1,)
    """
    if not target >= 0:
        raise mm.InvalidInput("target", target, "must be a gap of at least 0.")
    usable = np.isfinite(auc) & np.isfinite(gap)
    if not usable.any():
        raise mm.InvalidInput("track", "no finite scores", "every candidate diverged; use smaller rates.")
    feasible = usable & (gap <= target)
    merit = np.where(feasible, auc, -np.inf) if feasible.any() else np.where(usable, -gap, -np.inf)
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(merit)), merit.shape))


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """The candidates of R runs at T moments of training.

    Evaluate once and call :func:`best_feasible` for each of many targets; :meth:`select` does both for one. Any method
    that passes through models can be judged as a track. ``parameters`` (T, R, d) are those of each candidate,
    ``strengths`` (R,) what each run was asked for (kappa, a penalty weight, or 0), ``steps`` (T,) those before each
    moment, ``rates`` (R,) the step sizes where runs differ by them. Raises InvalidInput where shapes do not fit
    together.
    """

    model: mm.Model
    parameters: Any
    strengths: Any
    steps: Any
    rates: Any = None

    def __post_init__(self) -> None:
        shape = (*np.shape(self.steps), *np.shape(self.strengths), self.model.dimension)
        if len(shape) != 3 or np.shape(self.parameters) != shape:
            raise mm.InvalidInput("parameters", f"shape {np.shape(self.parameters)}", f"must have shape {shape}.")

    @property
    def shape(self) -> tuple[int, int]:
        """Moments and runs, (T, R)."""
        return len(self.steps), len(self.strengths)

    @property
    def candidates(self) -> int:
        """How many models there are to choose from."""
        moments, runs = self.shape
        return moments * runs

    def thinned(self, most: int) -> Track:
        """Return the track with at most ``most`` candidates: moments evenly spaced, the last one among them."""
        moments, runs = self.shape
        count = min(moments, max(1, most // runs))
        kept = np.linspace(moments - 1, 0, count).round().astype(np.int64)[::-1]
        return replace(self, parameters=self.parameters[kept], steps=self.steps[kept])

    def weight(self, t: int, r: int) -> Any:
        """Return the parameters (d,) of candidate (t, r) in float64."""
        return np.asarray(self.parameters[t, r], dtype=np.float64)

    def scores(self, rows: LabelledData, t: int, r: int) -> Any:
        """Return the scores (n,) of rows by candidate (t, r), in float64."""
        return self.model.predict(self.weight(t, r), rows.features)

    def evaluate(self, rows: LabelledData, metric: FairnessMetric) -> tuple[Any, Any]:
        """Return AUC and true gap (T, R) of every candidate, from scores in float32.

        Ties count one half; NaN where scores are not finite or a subset is empty.
        """
        cells = Cells.of(rows, metric)
        flat = np.reshape(self.parameters, (-1, self.model.dimension))
        wins = np.empty((len(flat), len(cells.sizes), len(cells.sizes)))
        for piece, scores in score_all(self.model, flat, rows.features):
            wins[piece] = cells.wins(scores)
        auc, gap = cells.auc_and_gap(wins)
        return auc.reshape(self.shape), gap.reshape(self.shape)

    def select(
        self, validation: LabelledData, metric: FairnessMetric, target: float, runs: Sequence[int] | None = None
    ) -> tuple[int, int]:
        """Choose as the paper does: of all tracked models, the feasible one with the best AUC on validation rows.

        Returns the moment and run (t, r); where no gap is at most ``target``, that of the least gap. ``runs`` are the
        runs to choose from, all by default. Raises DataError where a subset has no validation row, InvalidInput where
        no candidate has finite scores or the target is negative.
        """
        metric.require_members(metric.masks(validation.label, validation.group), validation.name)
        auc, gap = self.evaluate(validation, metric)
        if runs is not None:
            others = np.setdiff1d(np.arange(gap.shape[1]), np.asarray(runs))
            gap[:, others] = np.nan
        t, r = best_feasible(auc, gap, target)
        return t, r
