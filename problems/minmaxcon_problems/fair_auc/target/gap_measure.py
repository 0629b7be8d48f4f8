"""The true AUC gap as a measure that solvers observe, and its surrogates at the points observed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon import metrics
from minmaxcon.arrays import Array, to_numpy

from .curvature import GaussNewton
from .following import FollowedLoss, FollowingAUC
from .frozen import FrozenDistributions

__all__ = ["AUCGapMeasure"]


class AUCGapMeasure(mm.TrueMeasure):
    r"""Both sides :math:`\pm(AUC(G_1, G_1') - AUC(G_2, G_2'))` of the true gap on finite data, ties counted half.

    Parameters
    ----------
    model : Model
        The scoring model, whose parameters come first in x.
    data : Finite
        With ``features`` and ``subsets``, the entries :math:`1_G/\Pr(G)` of the four subsets.
    curvature : GaussNewton, optional
        The objective's curvature.
    bandwidth : float
        Smoothing of the surrogates, in standard deviations of the scores.
    bins : int
        Grid points of the frozen distributions.
    row_weight : ndarray (n,), optional
        Weights of the samples, where ``subsets`` holds weighted ones: they count in the standard deviation too.
    follow_loss : bool
        Whether the objective is one minus the AUC of the classes in ``weights``, followed like the gap.

    Raises
    ------
    InvalidInput
        If a setting is out of range.
    """

    def __init__(
        self,
        model: mm.Model,
        data: mm.Source,
        curvature: GaussNewton | None = None,
        *,
        bandwidth: float = 0.1,
        bins: int = 4096,
        row_weight: Any = None,
        follow_loss: bool = False,
    ) -> None:
        if not (_is_number(bandwidth) and bandwidth > 0):
            raise mm.InvalidInput("bandwidth", bandwidth, "must be positive and finite: 0.1 is a tenth of the spread.")
        if not (_is_number(bins) and int(bins) == bins and bins >= 16):
            raise mm.InvalidInput("bins", bins, "must be a whole number of at least 16.")
        self.model, self.data, self.gauss_newton = model, data, curvature
        self.bandwidth, self.bins, self.row_weight = float(bandwidth), int(bins), row_weight
        self.subsets = _column(data, "subsets")
        self._members = [np.flatnonzero(self.subsets[:, g]) for g in range(4)]
        self._weights = [np.asarray(self.subsets[rows, g], float) for g, rows in enumerate(self._members)]
        self._classes: Any = None
        if follow_loss:
            self._classes = _column(data, "weights")
        self._trivial = np.array_equal(self.subsets[:, 2], self.subsets[:, 3])

    def on(self, data: mm.Source) -> AUCGapMeasure:
        """See :meth:`minmaxcon.TrueMeasure.on`; ``data`` also hold ``positive`` and ``row_weight``, (n,) each."""
        weight, positive = _column(data, "row_weight"), _column(data, "positive") > 0
        curvature = None
        if self.gauss_newton is not None:
            classes = [np.flatnonzero(~positive), np.flatnonzero(positive)]
            curvature = self.gauss_newton.on(_column(data, "features"), classes, weight)
        return AUCGapMeasure(
            self.model,
            data,
            curvature,
            bandwidth=self.bandwidth,
            bins=self.bins,
            row_weight=weight,
            follow_loss=self._classes is not None,
        )

    def scores(self, x: Array) -> Any:
        """Return the scores (R, n) of all samples, in float64."""
        w = x[..., : self.model.dimension]
        parts = [to_numpy(self.model.evaluate(w, batch["features"])[0]) for _, batch in self.data.chunks()]
        return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts], axis=1)

    def observe(self, x: Array) -> mm.Observation:
        """See :meth:`minmaxcon.TrueMeasure.observe`."""
        return _Observed(self, self.scores(x))

    def gap(self, scores: Any) -> Any:
        """Return the signed true gap (R,) of scores (R, n)."""
        own = self._auc(scores, 0, 1)
        return own - (0.5 if self._trivial else self._auc(scores, 2, 3))

    def _auc(self, scores: Any, g: int, other: int) -> Any:
        first, second = self._members[g], self._members[other]
        return metrics.auc(scores[:, first], scores[:, second], weights=(self._weights[g], self._weights[other]))

    def frozen_classes(self, scores: Any) -> FrozenDistributions | None:
        """Return the distributions of the two classes' scores; None where the loss is not followed."""
        if self._classes is None:
            return None
        return FrozenDistributions.of(
            scores, self._classes, bandwidth=self.bandwidth, bins=self.bins, row_weight=self.row_weight
        )

    def accuracy(self, scores: Any) -> Any:
        """Return the true AUC (R,) of scores (R, n) between the two classes; only where the loss is followed."""
        rows = [np.flatnonzero(self._classes[:, g]) for g in (0, 1)]
        weights = tuple(np.asarray(self._classes[mine, g], float) for g, mine in enumerate(rows))
        return metrics.auc(scores[:, rows[0]], scores[:, rows[1]], weights=(weights[0], weights[1]))

    def curvature(self, x: Array) -> Callable[[Any], Any] | None:
        """See :meth:`minmaxcon.TrueMeasure.curvature`."""
        return None if self.gauss_newton is None else self.gauss_newton.at(x)


def _column(data: mm.Source, name: str) -> Any:
    return np.concatenate([np.asarray(to_numpy(batch[name])) for _, batch in data.chunks()])


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and bool(np.isfinite(value))


class _Observed(mm.Observation):
    """The gap of one set of scores, and the constraints that follow it from there."""

    def __init__(self, measure: AUCGapMeasure, scores: Any) -> None:
        self._model, self._loss = measure.model, measure.frozen_classes(scores)
        self.objective = None if self._loss is None else (1.0 - measure.accuracy(scores), 1.0 - self._loss.aucs[:, 0])
        gap = measure.gap(scores)
        self.values = np.stack([gap, -gap], axis=-1)
        self._frozen = FrozenDistributions.of(
            scores,
            measure.subsets,
            bandwidth=measure.bandwidth,
            bins=measure.bins,
            row_weight=measure.row_weight,
        )
        smooth = self._frozen.aucs[:, 0] - self._frozen.aucs[:, 1]
        self.smoothed = np.stack([smooth, -smooth], axis=-1)

    def surrogates(self) -> Sequence[mm.StochasticMinMaxConstraint]:
        """See :meth:`minmaxcon.Observation.surrogates`."""
        return [
            FollowingAUC(self._model, self._frozen, sign, name=f"AUC gap, {side}")
            for sign, side in ((1.0, "upper side"), (-1.0, "lower side"))
        ]

    def objective_surrogate(self) -> mm.StochasticMinMaxConstraint | None:
        """See :meth:`minmaxcon.Observation.objective_surrogate`."""
        return None if self._loss is None else FollowedLoss(self._model, self._loss)
