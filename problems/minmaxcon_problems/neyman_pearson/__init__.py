"""Multi-class Neyman-Pearson classification: the least loss of one class while those of the others are bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import Array
from minmaxcon.checks import positive, seed_number, whole
from minmaxcon.core import solution_point
from minmaxcon.data import Standardizer, population_weights, stratified_split_indices
from minmaxcon.models import LogisticLoss

__all__ = ["ClassLoss", "NeymanPearson", "plugin"]

_DATA = {
    "wine": "178 wines, 13 features, 3 classes (default)",
    "iris": "150 flowers, 4 features, 3 classes",
    "digits": "1,797 handwritten digits, 64 features, 10 classes",
}


class ClassLoss(mm.StochasticMinMaxConstraint):
    r"""The pairwise logistic loss of one class, a plain expectation.

    .. math:: F_k(w) = \frac{1_k}{\Pr(k)} \sum_{l\ne k} \ln(1 + e^{-\langle w_k - w_l, \xi\rangle})

    k is ``index``, from 0. Reads ``features`` (n, p), ``membership`` (n, classes), 0 or 1, and ``class_weights``, that
    over the shares of the classes. The weights :math:`w_1, \dots` of the classes are joined in one vector.
    """

    convex = True

    def __init__(self, index: int, classes: int, bound: Any = 0.0) -> None:
        self.index, self.classes, self.bound, self.name = index, classes, bound, f"loss of class {index}"

    def terms(self, x: Array, batch: mm.Batch) -> tuple[Array, Array | None]:
        """See :meth:`minmaxcon.StochasticMinMaxConstraint.terms`."""
        return _ClassLosses([self]).evaluate(x, batch).F[..., 0], None

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        """See :meth:`minmaxcon.StochasticMinMaxConstraint.evaluate`."""
        found = _ClassLosses([self]).evaluate(x, batch)
        return mm.Evaluation(found.F[..., 0], found.G, lambda y, a: found.pullback(y[..., None], a))

    @classmethod
    def fuse(cls, constraints: Sequence[Any]) -> mm.ConstraintFamily:
        """See :meth:`minmaxcon.StochasticMinMaxConstraint.fuse`: the scores are computed once for all classes."""
        return _ClassLosses(constraints)

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        """See :meth:`minmaxcon.StochasticMinMaxConstraint.cvxpy_value`."""
        ((_, batch),) = data.chunks(data.size)
        rows = np.asarray(batch["features"])[np.asarray(batch["membership"])[:, self.index] > 0]
        weights = [x[k * rows.shape[1] : (k + 1) * rows.shape[1]] for k in range(self.classes)]
        others = [cp.logistic(rows @ (w - weights[self.index])) for k, w in enumerate(weights) if k != self.index]
        return cp.sum(cp.hstack(others)) / len(rows)


class _ClassLosses(mm.ConstraintFamily):
    """Losses of several classes, from one matrix product."""

    def __init__(self, constraints: Sequence[ClassLoss]) -> None:
        super().__init__(constraints)
        self.classes, self.indices = constraints[0].classes, [c.index for c in constraints]

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        """See :meth:`minmaxcon.ConstraintFamily.evaluate`."""
        features, member = batch["features"], batch["membership"].T  # (B, p), (K, B)
        weights = batch["class_weights"][:, self.indices] * (1.0 / int(features.shape[0]))  # (B, k)
        scores = x.reshape((*x.shape[:-1], self.classes, -1)) @ features.T  # (..., K, B)
        margins = (scores * member).sum(-2)[..., None, :] - scores
        value, slope = LogisticLoss().evaluate(margins, 1.0)
        rivals = 1.0 - member
        value, slope = (value * rivals).sum(-2), slope * rivals

        def pullback(y: Array, _: Array) -> Array:
            pushed = slope * (y @ weights.T)[..., None, :]  # to the margin over each rival
            return ((member * pushed.sum(-2)[..., None, :] - pushed) @ features).reshape(x.shape)

        return mm.Evaluation(value @ weights, x[..., :0], pullback)


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """Features (n, p), of which the last is 1, and membership (n, classes)."""

    features: Any
    membership: Any


@dataclass(frozen=True, eq=False, slots=True)
class Details:
    """Rows to learn from and rows to test on, and the settings that evaluation needs."""

    train: Rows
    test: Rows
    target_class: int

    def items(self) -> tuple[tuple[str, Rows], ...]:
        """Return both parts with their names."""
        return ("train", self.train), ("test", self.test)


class NeymanPearson(mm.ProblemPlugin):
    r"""Minimise the loss of one class subject to bounds on the losses of the others.

    .. math:: \min_{|w_l|\le R} f_k(w) \quad\text{s.t.}\quad f_l(w) \le b,\quad l \ne k
    """

    name = "neyman_pearson"
    summary = "Train a multi-class classifier of least loss on one class, the losses of the others bounded."

    def load(
        self,
        data: str = "wine",
        *,
        target_class: int = 0,
        bound: float | Sequence[float] = 0.3,
        radius: float = 1.0,
        seed: int = 0,
        engine: str = "numpy",
        device: str = "cpu",
        dtype: str = "float64",
    ) -> mm.MinMaxProblem:
        """Build the problem from a data set that comes with scikit-learn.

        Parameters
        ----------
        data : {"wine", "iris", "digits"}
            The data set.
        target_class : int
            The class whose loss is minimised, from 0.
        bound : float or sequence of float
            Largest loss of every other class; with all scores 0 it is (classes - 1) ln 2. Several are runs of one
            problem; for a bound of its own for each class use ``problem.with_bounds``.
        radius : float
            Of the ball of each class's weights, in units of standardised features.
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
        """
        positive("bound", bound, several=True)
        train, test = _parts(data, seed_number("seed", seed))
        count, width = train.membership.shape[1], train.features.shape[1]
        if whole("target_class", target_class, 0) >= count:
            raise mm.InvalidInput("target_class", target_class, f"must be one of the classes 0 to {count - 1}.")
        arrays = {"features": train.features, "membership": train.membership}
        others = [k for k in range(count) if k != target_class]
        return mm.MinMaxProblem(
            ClassLoss(target_class, count),
            [ClassLoss(k, count, bound) for k in others],
            mm.product([mm.Ball(width, radius)] * count),
            mm.Finite(
                {**arrays, "class_weights": population_weights(train.membership)},
                engine=engine,
                device=device,
                dtype=dtype,
            ),
            name=self.name,
            details=Details(train, test, target_class),
        )

    def choices(self) -> Mapping[str, Mapping[str, str]]:
        """See :meth:`minmaxcon.ProblemPlugin.choices`."""
        return {"data": _DATA}

    def evaluate(self, problem: mm.MinMaxProblem, x: Any) -> Mapping[str, Any]:
        """See :meth:`minmaxcon.ProblemPlugin.evaluate`.

        ``error`` of all rows and ``error_0`` ... of each class: the shares for which another class scores as high.
        """
        point = solution_point(problem, x, Details)
        details: Details = problem.details
        weights = point.reshape(details.train.membership.shape[1], -1)
        losses = _losses(details.train, weights)
        objective = losses.pop(details.target_class)
        parts = {part: _errors(rows, weights) for part, rows in details.items()}
        return {"objective": objective, "values": losses, **parts}


def _parts(name: str, seed: int) -> list[Rows]:
    """Return training and test rows: features (n, p), the last of which is 1, and membership (n, classes)."""
    if name not in _DATA:
        raise mm.UnknownName("data", name, _DATA)
    import sklearn.datasets

    raw, label = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    split = stratified_split_indices(label, (0.7, 0.3), seed)
    scaled = Standardizer.fit(raw[split[0]]).transform(raw)
    features = np.column_stack([scaled, np.ones(len(raw))])
    membership = label[:, None] == np.arange(label.max() + 1)
    return [Rows(features[rows], membership[rows]) for rows in split]


def _losses(rows: Rows, weights: Any) -> list[float]:
    found = []
    for k, mine in enumerate(rows.membership.T):
        scores = rows.features[mine] @ weights.T
        found.append(float(np.logaddexp(0.0, np.delete(scores, k, axis=1) - scores[:, [k]]).sum(axis=1).mean()))
    return found


def _errors(rows: Rows, weights: Any) -> dict[str, Any]:
    scores = rows.features @ weights.T
    own = np.where(rows.membership, scores, -np.inf).max(axis=1)
    wrong = np.where(rows.membership, -np.inf, scores).max(axis=1) >= own
    each = {f"error_{k}": float(wrong[mine].mean()) for k, mine in enumerate(rows.membership.T)}
    return {"rows": len(own), "error": float(wrong.mean()), **each}


plugin = NeymanPearson()
