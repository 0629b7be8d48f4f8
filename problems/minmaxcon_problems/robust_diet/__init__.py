r"""The cheapest diet whose nutrients suffice although what foods contain is uncertain.

.. math:: \min_{0 \le x \le c}\ E\langle p, x\rangle \quad\text{subject to}\quad
          \max_{|\alpha|_2 \le s} E\langle \alpha - \xi_i, x\rangle \le -q, \qquad i = 1..m

x is what a day's ration of each food costs at the prices of the table, in dimes; p is a day's price over these,
:math:`\xi_i` what a dime's worth contains of nutrient i as a share of a day's need, q the share that must be met. The
mean contents may be wrong by any vector :math:`\alpha` of length s, so the constraint says :math:`\langle E\xi_i,
x\rangle - s|x|_2 \ge q`: the robust linear constraint of [1]_ with the data of Stigler's diet [2]_.

.. [1] Ben-Tal and Nemirovski (1999), Robust Solutions of Uncertain Linear Programs.
.. [2] Stigler (1945), The Cost of Subsistence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import namespace
from minmaxcon.checks import positive, seed_number, whole
from minmaxcon.core import solution_point
from minmaxcon_problems.robust_diet.table import FOODS, NUTRIENTS, TABLE

__all__ = ["FOODS", "NUTRIENTS", "TABLE", "Cost", "Nutrient", "RobustDiet", "plugin"]


class Cost(mm.StochasticMinMaxConstraint):
    r""":math:`f_0(x) = E\langle p, x\rangle`; no inner variable."""

    name = "cost, dimes a day"
    convex = True

    def terms(self, x: Any, batch: mm.Batch) -> tuple[Any, Any]:
        """Return the batch mean of F, and no G."""
        return x @ batch["price"].mean(0), None

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        """Return the terms and their gradient."""
        price = batch["price"].mean(0)
        return mm.Evaluation(x @ price, x[..., :0], lambda y, _: y[..., None] * price)

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        """Return the exact mean."""
        return _mean_of(data, "price") @ x


class Nutrient(mm.StochasticMinMaxConstraint):
    r""":math:`f_i(x) = \max_{|\alpha|_2\le s} E\langle\alpha - \xi_i, x\rangle`, so :math:`G = x`."""

    convex = True

    def __init__(self, nutrient: str, size: float, bound: Any) -> None:
        self.name, self.index, self.size, self.bound = nutrient, NUTRIENTS.index(nutrient), size, bound
        self.dual = mm.BallBlock(len(FOODS), size)

    def terms(self, x: Any, batch: mm.Batch) -> tuple[Any, Any]:
        """Return the batch mean of F, and G = x."""
        return -(x @ batch["contents"][:, self.index].mean(0)), x

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        """Return the terms and their gradient."""
        contents = batch["contents"][:, self.index].mean(0)
        return mm.Evaluation(-(x @ contents), x, lambda y, a: a - y[..., None] * contents)

    @classmethod
    def fuse(cls, constraints: Sequence[Any]) -> mm.ConstraintFamily:
        """Evaluate all nutrients by one product."""
        return _Nutrients(constraints)

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        """Return the closed form of the maximum."""
        return self.size * cp.norm(x, 2) - _mean_of(data, "contents")[self.index] @ x


class _Nutrients(mm.ConstraintFamily):
    """Several nutrients: a matrix of contents, and x once for each."""

    def __init__(self, constraints: Sequence[Nutrient]) -> None:
        super().__init__(constraints)
        self._rows = np.array([constraint.index for constraint in constraints])

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        contents = batch["contents"].mean(0)[self._rows]
        shape = (*x.shape[:-1], *contents.shape)
        return mm.Evaluation(
            -(x @ contents.T),
            namespace(x).concat([x] * len(self._rows)),
            lambda y, a: a.reshape(shape).sum(-2) - y @ contents,
        )


def _mean_of(data: mm.Source, name: str) -> Any:
    """Return the mean (foods,) of one array of finite data."""
    return sum(share * np.asarray(batch[name]).mean(0) for share, batch in data.chunks())


@dataclass(frozen=True, eq=False, slots=True)
class Market:
    """Prices (days, foods), contents (days, nutrients, foods), and the radius s of the ball."""

    price: Any
    contents: Any
    size: float


class RobustDiet(mm.ProblemPlugin):
    """The diet of the gallery."""

    name = "robust_diet"
    summary = "Buy the cheapest diet that is sufficient for all contents of foods in a ball around the table's."

    def load(
        self,
        need: float | Sequence[float] = 1.0,
        *,
        nutrients: Sequence[str] = NUTRIENTS,
        size: float = 0.1,
        most: float = 0.6,
        variation: float = 0.2,
        samples: int = 1000,
        seed: int = 0,
        engine: str = "numpy",
        device: str = "cpu",
        dtype: str = "float64",
    ) -> mm.MinMaxProblem:
        r"""Draw prices and contents and build the problem.

        Parameters
        ----------
        need : float or sequence of float
            :math:`q > 0`, the share of the needs that must be met; several are solved as runs of one problem.
        nutrients : sequence of str
            The nutrients that count, names of ``NUTRIENTS``.
        size : float
            :math:`s > 0`, the radius of the ball, shares of a day's need a dime.
        most : float
            c, the most that is spent on one food, dimes a day.
        variation : float
            Standard deviation of prices and contents over their means; each is lognormal and independent of the others.
        samples : int
            Number of market days, at least 2.
        seed : int
            Seed of the market days.
        engine : {"numpy", "torch", "jax"}
            Array engine.
        device : str
            Where torch or JAX computes: "cpu", "cuda", "cuda:1", "gpu", "mps".
        dtype : {"float64", "float32"}
            Precision.

        Raises
        ------
        InvalidInput
            If an option is out of range, or no diet within the box meets the needs.
        """
        largest = float(positive("need", need, several=True).max())
        size, most, variation = positive("size", size), positive("most", most), positive("variation", variation)
        samples, seed = whole("samples", samples, 2), seed_number("seed", seed)
        if isinstance(nutrients, str) or not nutrients:
            raise mm.InvalidInput("nutrients", nutrients, "give a list of names, at least one.")
        for name in nutrients:
            if name not in NUTRIENTS:
                raise mm.UnknownName("nutrients", name, NUTRIENTS)
        rng = np.random.default_rng(seed)
        sigma = np.sqrt(np.log1p(variation**2))
        noise = rng.lognormal(-0.5 * sigma**2, sigma, size=(1 + len(NUTRIENTS), samples, len(FOODS)))
        contents = noise[1:].swapaxes(0, 1) * TABLE.T  # (samples, nutrients, foods)
        sums = contents.mean(0).sum(-1) - size * np.sqrt(len(FOODS))  # what a dime of every food gives at worst
        worst = min(float(sums[NUTRIENTS.index(name)]) for name in nutrients)
        if worst * most <= 1.02 * largest:
            raise mm.InvalidInput("need", need, f"even {most:g} dimes of every food do not do; ask for less.")
        bound = -np.asarray(need, dtype=np.float64)
        return mm.MinMaxProblem(
            Cost(),
            [Nutrient(name, size, bound) for name in nutrients],
            mm.Box(np.zeros(len(FOODS)), np.full(len(FOODS), most)),
            mm.Finite({"price": noise[0], "contents": contents}, engine=engine, device=device, dtype=dtype),
            # As much of every food as meets all needs with room to spare.
            start=np.full(len(FOODS), min(most, 1.1 * largest / worst)),
            name="robust diet",
            details=Market(noise[0], contents, size),
        )

    def evaluate(self, problem: mm.MinMaxProblem, x: Any) -> Mapping[str, Any]:
        """See :meth:`minmaxcon.ProblemPlugin.evaluate`: cost, and the least share met at worst."""
        ration = solution_point(problem, x, Market)
        market: Market = problem.details
        size = market.size
        cost = float(np.mean([price @ ration for price in market.price]))
        shares = dict(zip(NUTRIENTS, (market.contents @ ration).mean(0), strict=True))
        met = [float(shares[c.name]) - size * float(np.linalg.norm(ration)) for c in problem.constraints]
        train = {"cost": cost, "least_share_met": min(met)}
        return {"objective": cost, "values": [-share for share in met], "train": train}

    def examples(self) -> Sequence[Mapping[str, Any]]:
        """Return option sets that are small enough to check and compare quickly."""
        return ({"nutrients": ("energy", "protein", "calcium", "vitamin_c"), "samples": 200},)


plugin = RobustDiet()
