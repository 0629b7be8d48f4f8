"""Worst-group risk: the least mean loss for which no group of applicants has a large one."""

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

__all__ = ["GROUPS", "WorstGroup", "plugin"]

GROUPS = ("white", "black", "hispan")
"""Columns of loanapp; every row is in exactly one of them."""

_FEATURES = (
    *("hrat", "obrat", "loanprc", "unem", "male", "married", "dep", "sch"),
    *("cosign", "chist", "pubrec", "mortlat1", "mortlat2", "vr", "unver"),
)


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """Features (n, d), of which the first is 1, target (n,) and groups (n, 3)."""

    features: Any
    target: Any
    groups: Any


@dataclass(frozen=True, eq=False, slots=True)
class Details:
    """Rows to learn from and rows to test on."""

    train: Rows
    test: Rows

    def items(self) -> tuple[tuple[str, Rows], ...]:
        """Return both parts with their names."""
        return ("train", self.train), ("test", self.test)


class WorstGroup(mm.ProblemPlugin):
    r"""Minimise the mean squared loss subject to a bound on that of the worst group.

    .. math:: \min_{|w|\le R} E(h_w - t)^2 \quad\text{s.t.}\quad
        \max_{\alpha\in\Delta} \sum_g \alpha_g E[(h_w - t)^2\,|\,g] \le b, \qquad t = \pm 1
    """

    name = "worst_group"
    summary = "Train a classifier of least mean loss, with a bound on the loss of the worst group."

    def load(
        self,
        bound: float | Sequence[float] = 0.65,
        *,
        radius: float = 3.0,
        seed: int = 0,
        engine: str = "numpy",
        device: str = "cpu",
        dtype: str = "float64",
    ) -> mm.MinMaxProblem:
        """Build the problem from mortgage applications (loanapp).

        Parameters
        ----------
        bound : float or sequence of float
            Largest squared loss of a group; a score of 0 has 1. Several are solved as runs of one problem.
        radius : float
            Of the ball of weights, in units of standardised features.
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
        positive("bound", bound, several=True)
        train, test = _parts(seed_number("seed", seed))
        model, loss = mm.Linear(train.features.shape[1]), SquaredLoss()
        weights = population_weights(train.groups)
        arrays = {"features": train.features, "target": train.target, "group_weights": weights}
        return mm.MinMaxProblem(
            Risk(model, loss, name="mean loss"),
            [GroupRisk(model, loss, len(GROUPS), bound, name="loss of the worst group")],
            mm.Ball(model.dimension, radius),
            mm.Finite(arrays, engine=engine, device=device, dtype=dtype),
            name=self.name,
            details=Details(train, test),
        )

    def evaluate(self, problem: mm.MinMaxProblem, x: Any) -> Mapping[str, Any]:
        """See :meth:`minmaxcon.ProblemPlugin.evaluate`.

        Returns
        -------
        mapping
            ``objective``, ``values``; ``train``, ``test`` with the mean ``loss``, the largest of a group
            (``worst_loss``), that of each group, and the share of rows that are misclassified, of all (``error``) and
            of the group where it is largest (``worst_error``).
        """
        w = solution_point(problem, x, Details)
        details: Details = problem.details
        parts = {part: _measures(rows, w) for part, rows in details.items()}
        return {"objective": parts["train"]["loss"], "values": [parts["train"]["worst_loss"]], **parts}


def _parts(seed: int) -> list[Rows]:
    """Return training and test rows: features (n, d), of which the first is 1, target (n,) and groups (n, 3)."""
    columns = wooldridge_columns("loanapp")
    groups = np.stack([columns[name] for name in GROUPS], axis=1) > 0
    target = np.where(columns["approve"] > 0, 1.0, -1.0)
    split = stratified_split_indices(np.column_stack([target, groups]), (0.7, 0.3), seed)
    raw = np.stack([columns[name] for name in _FEATURES], axis=1)
    raw = np.where(np.isnan(raw), np.nanmedian(raw[split[0]], axis=0), raw)
    scaled = Standardizer.fit(raw[split[0]], _FEATURES).transform(raw)
    features = np.column_stack([np.ones(len(raw)), scaled])
    return [Rows(features[rows], target[rows], groups[rows]) for rows in split]


def _measures(rows: Rows, w: Any) -> dict[str, Any]:
    margins = rows.target * (rows.features @ w)
    losses, wrong = (1.0 - margins) ** 2, margins <= 0
    members = dict(zip(GROUPS, rows.groups.T, strict=True))
    found = {f"loss_{group}": float(losses[mine].mean()) for group, mine in members.items()}
    return {
        "rows": len(margins),
        "loss": float(losses.mean()),
        "worst_loss": max(found.values()),
        **found,
        "error": float(wrong.mean()),
        "worst_error": max(float(wrong[mine].mean()) for mine in members.values()),
    }


plugin = WorstGroup()
