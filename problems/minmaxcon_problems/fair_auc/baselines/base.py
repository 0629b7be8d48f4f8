"""What every baseline is: settings that need no tuning, the metrics it applies to, and a fit that returns a track."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import minmaxcon as mm
from minmaxcon.checks import positive, whole
from minmaxcon_problems.fair_auc.metrics import FairnessMetric
from minmaxcon_problems.fair_auc.partition import Dataset

from .track import Track
from .training import Rule, Strata, descend

__all__ = ["Baseline", "GradientBaseline"]


class Baseline(ABC):
    """A method of the literature, with the data, models and selection that our own method has.

    Attributes
    ----------
    name : str
        As tables and figures call it.
    """

    name: ClassVar[str]

    def applies_to(self, metric: FairnessMetric) -> str:
        """Return why the method cannot serve a metric; empty if it can."""
        return ""

    @abstractmethod
    def fit(
        self, dataset: Dataset, metric: FairnessMetric, strengths: Sequence[float], *, model: mm.Model, seed: int
    ) -> Track:
        """Train on ``dataset.train``, all strengths in one loop.

        Parameters
        ----------
        dataset : Dataset
            The data.
        metric : FairnessMetric
            The four subsets.
        strengths : sequence of float
            What each run is asked for, in the unit that the method documents.
        model : Model
            The scoring model.
        seed : int
            Seed of the batches and of the start; the same seed gives the same bits.

        Returns
        -------
        Track
            All candidates.

        Raises
        ------
        InvalidInput
            If the method does not apply to the metric, or a strength is out of range.
        DataError
            If a subset of the metric has no training row.
        """

    def require_applies(self, metric: FairnessMetric) -> None:
        """Refuse a metric that the method cannot serve."""
        if reason := self.applies_to(metric):
            raise mm.InvalidInput("metric", metric.name, f"{self.name} does not apply: {reason}")


@dataclass(frozen=True, kw_only=True)
class GradientBaseline(Baseline):
    r"""A baseline that descends along stochastic gradients of the quadratic AUC loss and something more.

    Every strength is run with every step size, all in one loop and on the same batches: the step size is then chosen
    on validation data as part of the candidate, which is how the paper tunes it.

    Attributes
    ----------
    c1, c2 : float
        Scale and margin of the loss :math:`c_1(h - h' - c_2)^2`.
    batch_size : int
        Rows of a mini-batch.
    steps : int
        Steps of every run.
    moments : int
        How often a run is recorded.
    rates : sequence of float
        Step sizes.
    dtype : {"float32", "float64"}
        Precision.

    Raises
    ------
    InvalidInput
        A setting out of range.
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
        """Return what is done with the scores of a batch.

        Parameters
        ----------
        strata : Strata
            The layout of the batches.
        strengths : ndarray (R,)
            Strength of each run.
        """

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
