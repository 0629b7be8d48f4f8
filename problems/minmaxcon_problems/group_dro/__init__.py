"""Group distributionally robust regression: the regularised worst group, with a bound on the mean error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.checks import positive, seed_number
from minmaxcon.core import solution_point
from minmaxcon.data import Standardizer, population_weights, stratified_split_indices
from minmaxcon.models import GroupRisk, Risk, SquaredLoss
from minmaxcon.tables import wooldridge_columns

__all__ = ["GROUPS", "GroupDRO", "plugin"]

GROUPS = ("white_north", "white_south", "black_north", "black_south")
"""Race and region of the rows of the data set card, in this order."""

_FEATURES = ("educ", "exper", "expersq", "smsa", "smsa66", "nearc2", "nearc4")


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """Features (n, d), of which the first is 1, target (n,) and groups (n, 4)."""

    features: Any
    target: Any
    groups: Any


@dataclass(frozen=True, eq=False, slots=True)
class Details:
    """Rows to learn from and rows to test on, and the settings that evaluation needs."""

    train: Rows
    test: Rows
    temperature: float

    def items(self) -> tuple[tuple[str, Rows], ...]:
        """Return both parts with their names."""
        return ("train", self.train), ("test", self.test)


class GroupDRO(mm.ProblemPlugin):
    r"""Minimise the regularised risk of the worst group subject to a bound on the mean risk.

    .. math:: \min_{|w|\le R} \max_{\alpha\in\Delta} \sum_g \alpha_g E[(h_w - t)^2\,|\,g] - \lambda\,KL(\alpha, \pi)
        \quad\text{s.t.}\quad E(h_w - t)^2 \le (1 + \text{slack}) \min_w E(h_w - t)^2
    """

    name = "group_dro"
    summary = "Train a regression for its worst groups (KL-regularised DRO), with a bound on the mean error."

    def load(
        self,
        slack: float | Sequence[float] = 0.01,
        *,
        temperature: float = 0.05,
        radius: float = 3.0,
        seed: int = 0,
        engine: str = "numpy",
        device: str = "cpu",
        dtype: str = "float64",
    ) -> mm.MinMaxProblem:
        r"""Build the problem from wages of young men (card).

        Parameters
        ----------
        slack : float or sequence of float
            Share by which the mean squared error may exceed the least possible. Several are runs of one problem.
        temperature : float
            :math:`\lambda > 0`: near 0 the largest risk counts alone, for large values the mean does. The prior
            :math:`\pi` is the share of each group.
        radius : float
            Of the ball of weights, in units of standardised features and of the standardised logarithm of the wage.
        seed : int
            Of the split: 70% train, 30% test.
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
        excess, temperature = positive("slack", slack, several=True), positive("temperature", temperature)
        train, test = _parts(seed_number("seed", seed))
        fit, least = _least_squares(train)
        # Between 0 and least squares the error is (1 - s)^2 (1 - least) above its minimum: a strictly feasible point.
        start = fit * (1.0 - min(1.0, float(np.sqrt(0.75 * excess.min() * least / (1.0 - least)))))
        model, loss, primal = mm.Linear(len(fit)), SquaredLoss(), mm.Ball(len(fit), radius)
        if not primal.contains(start):
            raise mm.InvalidInput("radius", radius, f"must be above {np.linalg.norm(start):.3g}, where a solve starts.")
        shares = train.groups.mean(axis=0)
        objective = GroupRisk(
            model, loss, len(GROUPS), temperature=temperature, prior=shares, name="regularised worst-group error"
        )
        weights = population_weights(train.groups)
        arrays = {"features": train.features, "target": train.target, "group_weights": weights}
        return mm.MinMaxProblem(
            objective,
            [Risk(model, loss, least * (1.0 + np.asarray(slack, dtype=np.float64)), name="mean squared error")],
            primal,
            mm.Finite(arrays, engine=engine, device=device, dtype=dtype),
            start=start,
            name=self.name,
            details=Details(train, test, temperature),
        )

    def evaluate(self, problem: mm.MinMaxProblem, x: Any) -> Mapping[str, Any]:
        """See :meth:`minmaxcon.ProblemPlugin.evaluate`.

        Returns
        -------
        mapping
            ``objective``, ``values``; ``train``, ``test`` with the mean squared error ``mse``, that of each group and
            the largest, ``worst_mse``, all in units of the variance of the target.
        """
        w = solution_point(problem, x, Details)
        details: Details = problem.details
        parts = {part: _measures(rows, w) for part, rows in details.items()}
        risks = np.array([parts["train"][f"mse_{group}"] for group in GROUPS])
        shares = details.train.groups.mean(axis=0)
        temperature, top = details.temperature, risks.max()
        soft = top + temperature * float(np.log(shares @ np.exp((risks - top) / temperature)))
        return {"objective": float(soft), "values": [parts["train"]["mse"]], **parts}


def _parts(seed: int) -> list[Rows]:
    """Return training and test rows: features (n, d), of which the first is 1, target (n,) and groups (n, 4)."""
    columns = wooldridge_columns("card")
    cell = (2 * columns["black"] + columns["south"]).astype(int)
    groups = cell[:, None] == np.arange(len(GROUPS))
    split = stratified_split_indices(cell, (0.7, 0.3), seed)
    raw = np.stack([columns[name] for name in (*_FEATURES, "lwage")], axis=1)
    scaled = Standardizer.fit(raw[split[0]]).transform(raw)
    features = np.column_stack([np.ones(len(raw)), scaled[:, :-1]])
    return [Rows(features[rows], scaled[rows, -1], groups[rows]) for rows in split]


def _least_squares(rows: Rows) -> tuple[Any, float]:
    """Return the weights of least mean squared error, and that error."""
    fit = np.linalg.lstsq(rows.features, rows.target, rcond=None)[0]
    return fit, float(((rows.features @ fit - rows.target) ** 2).mean())


def _measures(rows: Rows, w: Any) -> dict[str, Any]:
    squares = (rows.features @ w - rows.target) ** 2
    found = {f"mse_{group}": float(squares[mine].mean()) for group, mine in zip(GROUPS, rows.groups.T, strict=True)}
    return {"rows": len(squares), "mse": float(squares.mean()), "worst_mse": max(found.values()), **found}


plugin = GroupDRO()
