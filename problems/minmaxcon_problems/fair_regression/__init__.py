"""Fair regression where the group is known of a part of the rows only: a bound on the squared gap of means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import Array
from minmaxcon.checks import number, positive, seed_number
from minmaxcon.core import solution_point
from minmaxcon.data import Standardizer, population_weights, stratified_split_indices
from minmaxcon.models import Risk, SquaredLoss
from minmaxcon.tables import wooldridge_columns

__all__ = ["FairRegression", "SquaredMeanGap", "plugin"]

_FEATURES = (
    *("educ", "exper", "tenure", "nonwhite", "married", "numdep", "smsa", "northcen", "south", "west"),
    *("trade", "services", "profserv", "profocc", "clerocc", "servocc"),
)


class SquaredMeanGap(mm.StochasticMinMaxConstraint):
    r"""The squared gap of mean scores, :math:`(E[h|a] - E[h|b])^2 = \max_\alpha \alpha\,E\,G - \alpha^2/4`.

    With :math:`G = h\,(1_a/\Pr(a) - 1_b/\Pr(b))`, the array ``contrast`` (n,); it is 0 for rows whose group is not
    known. The maximum is at :math:`\alpha = 2 E\,G`, so it is exact on :math:`[-I, I]` with :math:`I = 2\max_w|E\,G|`.

    ``reach`` is that maximum over the primal set, or a larger number.
    """

    convex = True

    def __init__(self, model: mm.Linear, reach: float, bound: Any) -> None:
        self.model, self.bound, self.name = model, bound, "squared gap of means"
        self.dual = mm.interval(2.0 * reach, curvature=0.25)

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        """See :meth:`minmaxcon.StochasticMinMaxConstraint.evaluate`."""
        scores, pull = self.model.evaluate(x, batch["features"])
        share = batch["contrast"] * (1.0 / int(scores.shape[-1]))
        return mm.Evaluation(0.0 * scores[..., 0], (scores @ share)[..., None], lambda _, a: pull(a * share))

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        """See :meth:`minmaxcon.StochasticMinMaxConstraint.cvxpy_value`."""
        ((_, rows),) = data.chunks(data.size)
        return cp.square((np.asarray(rows["contrast"]) @ np.asarray(rows["features"]) / data.size) @ x)


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """Features (n, d), of which the first is 1, target, sex and whether it is known, each (n,)."""

    features: Any
    target: Any
    female: Any
    known: Any


@dataclass(frozen=True, eq=False, slots=True)
class Details:
    """Rows to learn from and rows to test on."""

    train: Rows
    test: Rows

    def items(self) -> tuple[tuple[str, Rows], ...]:
        """Return both parts with their names."""
        return ("train", self.train), ("test", self.test)


class FairRegression(mm.ProblemPlugin):
    r"""Minimise the squared error subject to a bound on the squared gap of mean predictions.

    .. math:: \min_{|w|\le R} E(h_w - t)^2 \quad\text{s.t.}\quad (E[h_w|a] - E[h_w|b])^2 \le b
    """

    name = "fair_regression"
    summary = "Train a regression whose mean differs little between two groups, known of a part of the rows."

    def load(
        self,
        bound: float | Sequence[float] = 0.04,
        *,
        known: float = 0.5,
        radius: float = 3.0,
        seed: int = 0,
        engine: str = "numpy",
        device: str = "cpu",
        dtype: str = "float64",
    ) -> mm.MinMaxProblem:
        """Build the problem from hourly wages of women and men (wage1).

        Parameters
        ----------
        bound : float or sequence of float
            Largest squared gap of mean predictions, in units of the variance of the target: 0.04 lets the means differ
            by a fifth of its standard deviation. Several are solved as runs of one problem.
        known : float
            Share of the training rows whose group is known, above 0 and at most 1; which ones is drawn at random.
        radius : float
            Of the ball of weights, in units of standardised features and of the standardised logarithm of the wage.
        seed : int
            Of the split, 70% train and 30% test, and of the rows whose group is known.
        engine : {"numpy", "torch", "jax"}
            Array engine.
        device : str
            Where torch or JAX computes: "cpu", "cuda", "cuda:1", "gpu", "mps".
        dtype : {"float64", "float32"}
            Precision.

        Raises
        ------
        InvalidInput
            If an option is out of range.
        MissingDependency
            If the package wooldridge, which brings the data, is not installed.
        """
        positive("bound", bound, several=True)
        remedy = "must be above 0 and at most 1, the share of rows whose group is known."
        share = number("known", known, remedy, above=0.0, most=1.0)
        train, test = _parts(seed_number("seed", seed), share)
        weights = population_weights(np.column_stack([train.female, ~train.female]) & train.known[:, None])
        contrast = weights[:, 0] - weights[:, 1]
        arrays = {"features": train.features, "target": train.target}
        model = mm.Linear(train.features.shape[1])
        primal = mm.Ball(model.dimension, radius)
        reach = float(model.score_bound(primal.radius, contrast @ train.features / len(contrast)))
        return mm.MinMaxProblem(
            Risk(model, SquaredLoss(), name="mean squared error"),
            [SquaredMeanGap(model, reach, bound)],
            primal,
            mm.Finite({**arrays, "contrast": contrast}, engine=engine, device=device, dtype=dtype),
            name=self.name,
            details=Details(train, test),
        )

    def evaluate(self, problem: mm.MinMaxProblem, x: Any) -> Mapping[str, Any]:
        """See :meth:`minmaxcon.ProblemPlugin.evaluate`.

        ``gap`` is the mean prediction of men minus that of women, also of rows whose group the solver was not told.
        """
        w = solution_point(problem, x, Details)
        details: Details = problem.details
        train, found = details.train, {part: _measures(rows, w) for part, rows in details.items()}
        seen = _gap(train.features @ w, train.female & train.known, ~train.female & train.known)
        return {"objective": found["train"]["mse"], "values": [seen**2], **found}


def _parts(seed: int, known: float) -> list[Rows]:
    """Return training and test rows: features (n, d), of which the first is 1, target, female, and known (n,)."""
    columns = wooldridge_columns("wage1")
    female = columns["female"] > 0
    split = stratified_split_indices(female, (0.7, 0.3), seed)
    raw = np.stack([columns[name] for name in (*_FEATURES, "lwage")], axis=1)
    scaled = Standardizer.fit(raw[split[0]]).transform(raw)
    features = np.column_stack([np.ones(len(raw)), scaled[:, :-1]])
    told = np.random.default_rng([seed, 1]).random(len(raw)) < known
    return [Rows(features[rows], scaled[rows, -1], female[rows], told[rows]) for rows in split]


def _gap(scores: Any, women: Any, men: Any) -> float:
    return float(scores[men].mean() - scores[women].mean())


def _measures(rows: Rows, w: Any) -> dict[str, Any]:
    scores, target = rows.features @ w, rows.target
    mse = float(((scores - target) ** 2).mean())
    gap = _gap(scores, rows.female, ~rows.female)
    return {"rows": len(scores), "mse": mse, "r2": 1.0 - mse / float(target.var()), "gap": gap}


plugin = FairRegression()
