r"""Post-processing after Kallus and Zhou (2019): shift and stretch the scores of one group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

import minmaxcon as mm
from minmaxcon.checks import positive
from minmaxcon_problems.fair_auc.datasets import Dataset
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.metrics import FairnessMetric

from .base import Baseline
from .cells import Cells
from .track import Track, best_feasible
from .unconstrained import Unconstrained

__all__ = ["PostProcessing", "TransformedTrack", "transformed_wins"]


def transformed_wins(base: Any, cells: Cells, omega_1: Any, omega_2: Any) -> Any:
    r"""Return the matrices U (A, D, K, K) of :class:`Cells` for A factors (at least 0) times D shifts of scores (n,).

    Pairs within a group keep their order. A pair across groups is counted by looking the transformed protected scores
    up among the sorted others: :math:`O(|\Omega|\, n \log n)` for the grid :math:`\Omega`, never all pairs. Entries are
    exact multiples of one half.
    """
    sizes = cells.sizes.astype(np.float64)
    wins = np.empty((len(omega_1), len(omega_2), len(sizes), len(sizes)))
    wins[:] = cells.wins(np.asarray(base, dtype=np.float32)[None])[0]
    protected, others = np.flatnonzero(cells.group > 0), np.flatnonzero(cells.group < 0)
    for c in protected:  # a factor of 0 makes the whole group equal
        wins[np.ix_(omega_1 == 0, np.ones(len(omega_2), dtype=bool), [c], protected)] = (
            0.5 * sizes[c] * sizes[protected]
        )
    ordered = [np.sort(base[cells.code == k]) for k in range(len(sizes))]
    for c in protected:
        for k in others:
            below = ordered[k]
            for a, factor in enumerate(omega_1):
                moved = factor * ordered[c] + omega_2[:, None]
                place = np.searchsorted(below, moved)
                count = place.sum(axis=1, dtype=np.float64)
                tied = below[np.minimum(place, len(below) - 1)] == moved
                if tied.any():
                    at, _ = np.nonzero(tied)
                    runs = np.searchsorted(below, moved[tied], side="right") - place[tied]
                    count += 0.5 * np.bincount(at, runs, len(omega_2))
                wins[a, :, c, k] = count
                wins[a, :, k, c] = sizes[c] * sizes[k] - count
    return wins


@dataclass(frozen=True, slots=True, eq=False)
class TransformedTrack(Track):
    r"""One model under every transform :math:`\omega_1 h + \omega_2` of the protected scores.

    The moments of the track are the transforms, the factor ``omega_1`` (A,) varying slower than the shift ``omega_2``
    (D,); ``steps`` numbers them. ``parameters`` (1, 1, d) are those of the one model. The transform acts on :math:`(h -
    center) / scale`, with mean and standard deviation of h on the training rows. The model was chosen among ``bases``.
    """

    omega_1: Any = field(default_factory=lambda: np.ones(1))
    omega_2: Any = field(default_factory=lambda: np.zeros(1))
    center: float = 0.0
    scale: float = 1.0
    bases: int = 0

    def __post_init__(self) -> None:
        if np.shape(self.parameters) != (1, 1, self.model.dimension):
            expected = (1, 1, self.model.dimension)
            raise mm.InvalidInput("parameters", f"shape {np.shape(self.parameters)}", f"must have shape {expected}.")

    def thinned(self, most: int) -> TransformedTrack:
        """Return the track itself: its grid is chosen, not passed."""
        return self

    @property
    def candidates(self) -> int:
        """How many models there were to choose from, those before the transform included."""
        return len(self.steps) + self.bases

    def weight(self, t: int, r: int = 0) -> Any:
        """See :meth:`Track.weight`; the same for every transform."""
        return np.asarray(self.parameters[0, 0], dtype=np.float64)

    def transform(self, t: int) -> tuple[float, float]:
        """Return the transform (omega_1, omega_2) of candidate t."""
        a, d = divmod(int(t), len(self.omega_2))
        return float(self.omega_1[a]), float(self.omega_2[d])

    def _base(self, rows: LabelledData) -> Any:
        return (self.model.predict(self.weight(0), rows.features) - self.center) / self.scale

    def scores(self, rows: LabelledData, t: int, r: int = 0) -> Any:
        """See :meth:`Track.scores`; the group of each row is known, its label is not used."""
        factor, shift = self.transform(t)
        base = self._base(rows)
        return np.where(rows.group > 0, factor * base + shift, base)

    def evaluate(self, rows: LabelledData, metric: FairnessMetric) -> tuple[Any, Any]:
        """See :meth:`Track.evaluate`; the whole grid at once."""
        cells = Cells.of(rows, metric)
        # Rounded once, so that what is equal within a group and across groups is decided by the same numbers.
        base = self._base(rows).astype(np.float32).astype(np.float64)
        auc, gap = cells.auc_and_gap(transformed_wins(base, cells, self.omega_1, self.omega_2))
        return auc.reshape(self.shape), gap.reshape(self.shape)


@dataclass(frozen=True, kw_only=True)
class PostProcessing(Baseline):
    r"""Train without constraints, then replace protected scores by :math:`\omega_1 h + \omega_2`.

    The transform acts on scores in standard deviations from their mean on the training rows. No AUC sees that change of
    unit, and it gives the paper's grid one meaning for every model: in raw units, where scores deviate by .3 to .4 on
    the paper's data, a shift by 0.1 would be a coarser step. Strengths are ignored: the grid serves every target.

    Of the candidates of ``base`` the one with the best validation AUC is transformed. The grid of :math:`\omega_1`
    starts at 0, that of :math:`\omega_2` lies on both sides of 0. Raises InvalidInput where a setting is out of range.
    Source: Kallus and Zhou, *The fairness of risk scores beyond classification: bipartite ranking and the xAUC metric*,
    NeurIPS 2019.
    """

    name: ClassVar[str] = "post_processing"
    reads_group: ClassVar[bool] = True
    base: Unconstrained = field(default_factory=Unconstrained)
    largest_factor: float = 5.0
    factor_step: float = 0.05
    largest_shift: float = 3.0
    shift_step: float = 0.1

    def __post_init__(self) -> None:
        for argument in ("largest_factor", "factor_step", "largest_shift", "shift_step"):
            positive(argument, getattr(self, argument))
        for step, largest in (("factor_step", "largest_factor"), ("shift_step", "largest_shift")):
            if getattr(self, step) > getattr(self, largest):
                raise mm.InvalidInput(step, getattr(self, step), f"must be at most {largest}.")

    def applies_to(self, metric: FairnessMetric) -> str:
        """Return why a metric that compares within groups alone is refused."""
        label, group = np.array([1, 1, -1, -1]), np.array([1, -1, 1, -1])
        members = [set(group[mask].tolist()) for mask in metric.masks(label, group).T]
        if len(members[0] | members[1]) == len(members[2] | members[3]) == 1:
            return "no common shift of a group changes an AUC within it, and one by label would need the labels."
        return ""

    def fit(
        self, dataset: Dataset, metric: FairnessMetric, strengths: Sequence[float], *, model: mm.Model, seed: int
    ) -> TransformedTrack:
        """See :meth:`Baseline.fit`; one run, whose moments are the transforms."""
        self.require_applies(metric)
        plain = self.base.fit(dataset, metric, (), model=model, seed=seed)
        judge = dataset.train if dataset.validation is None else dataset.validation
        auc, _ = plain.evaluate(judge, metric)
        t, r = best_feasible(auc, np.zeros_like(auc), 0.0)
        scores = plain.scores(dataset.train, t, r)
        omega_1 = self.factor_step * np.arange(round(self.largest_factor / self.factor_step) + 1)
        half = round(self.largest_shift / self.shift_step)
        omega_2 = self.shift_step * np.arange(-half, half + 1)
        return TransformedTrack(
            model=model,
            parameters=plain.parameters[t, r][None, None],
            strengths=np.zeros(1),
            steps=np.arange(len(omega_1) * len(omega_2)),
            omega_1=omega_1,
            omega_2=omega_2,
            center=float(scores.mean()),
            scale=float(scores.std()) or 1.0,
            bases=plain.candidates,
        )
