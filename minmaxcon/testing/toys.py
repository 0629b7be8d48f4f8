"""Small problems whose optimum cvxpy finds in milliseconds: what oracles and solvers are tried on."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace
from minmaxcon.core import Batch, Evaluation, MinMaxProblem, Source, StochasticMinMaxConstraint
from minmaxcon.data import Finite
from minmaxcon.geometry import Ball, BallBlock, Box, Simplex, SimplexBlock, interval, product

__all__ = ["Distance", "PenalisedMean", "RobustCost", "SoftWorstCost", "mixed_toy", "robust_toy"]


def _mean(data: Source, name: str) -> Any:
    total: Any = sum(
        share * np.asarray(namespace(data.like).to_numpy(batch[name])).mean(0) for share, batch in data.chunks()
    )
    return total


class Distance(StochasticMinMaxConstraint):
    r""":math:`f(x) = E \frac12|x - z|^2`, z in the array ``points``."""

    name = "distance"
    convex = True

    def evaluate(self, x: Array, batch: Batch) -> Evaluation:
        """See :meth:`StochasticMinMaxConstraint.evaluate`."""
        points = batch["points"]
        mean, square = points.mean(0), (points * points).sum(-1).mean()
        value = 0.5 * (x * x).sum(-1) - x @ mean + 0.5 * square
        return Evaluation(value, x[..., :0], lambda y, _: y[..., None] * (x - mean))

    def cvxpy_value(self, cp: Any, x: Any, data: Source) -> Any:
        """See :meth:`StochasticMinMaxConstraint.cvxpy_value`."""
        mean = _mean(data, "points")
        square: Any = sum(share * float((b["points"] ** 2).sum(-1).mean()) for share, b in data.chunks())
        return 0.5 * cp.sum_squares(x - mean) + 0.5 * float(square - mean @ mean)


class RobustCost(StochasticMinMaxConstraint):
    r""":math:`f(x) = \max_{|\alpha| \le s} E\langle c + \alpha, x\rangle`, c in the array ``costs``."""

    name = "robust cost"
    convex = True

    def __init__(self, dimension: int, size: float, bound: Any) -> None:
        self.size, self.bound = size, bound
        self.dual = BallBlock(dimension, size)

    def evaluate(self, x: Array, batch: Batch) -> Evaluation:
        """See :meth:`StochasticMinMaxConstraint.evaluate`."""
        slope = batch["costs"].mean(0)
        return Evaluation(x @ slope, 1.0 * x, lambda y, a: y[..., None] * slope + a)

    def cvxpy_value(self, cp: Any, x: Any, data: Source) -> Any:
        """See :meth:`StochasticMinMaxConstraint.cvxpy_value`."""
        return _mean(data, "costs") @ x + self.size * cp.norm(x, 2)


class SoftWorstCost(StochasticMinMaxConstraint):
    r""":math:`f(x) = \max_\alpha \langle\alpha, E Cx\rangle - T\,KL(\alpha, 1/k)` on the simplex, C in ``groups``."""

    name = "soft worst cost"
    convex = True

    def __init__(self, groups: int, temperature: float, bound: Any) -> None:
        self.temperature, self.bound = temperature, bound
        self.dual = SimplexBlock(groups, temperature)

    def evaluate(self, x: Array, batch: Batch) -> Evaluation:
        """See :meth:`StochasticMinMaxConstraint.evaluate`."""
        costs = batch["groups"].mean(0)
        return Evaluation(0.0 * x[..., 0], x @ costs.T, lambda _, a: a @ costs)

    def cvxpy_value(self, cp: Any, x: Any, data: Source) -> Any:
        """See :meth:`StochasticMinMaxConstraint.cvxpy_value`."""
        costs = _mean(data, "groups")
        return self.temperature * (cp.log_sum_exp(costs @ x / self.temperature) - float(np.log(len(costs))))


class PenalisedMean(StochasticMinMaxConstraint):
    r""":math:`f(x) = \max_{|\alpha| \le 1} \alpha E\langle c, x\rangle - q\alpha^2`, c in the array ``contrast``."""

    name = "penalised mean"
    convex = True

    def __init__(self, curvature: float, bound: Any) -> None:
        self.curvature, self.bound = curvature, bound
        self.dual = interval(1.0, curvature)

    def evaluate(self, x: Array, batch: Batch) -> Evaluation:
        """See :meth:`StochasticMinMaxConstraint.evaluate`."""
        slope = batch["contrast"].mean(0)
        return Evaluation(0.0 * x[..., 0], (x @ slope)[..., None], lambda _, a: a * slope)

    def cvxpy_value(self, cp: Any, x: Any, data: Source) -> Any:
        """See :meth:`StochasticMinMaxConstraint.cvxpy_value`."""
        return cp.huber(_mean(data, "contrast") @ x, 2.0 * self.curvature) / (4.0 * self.curvature)


def mixed_toy() -> MinMaxProblem:
    """Return a problem of a single sample: inner simplex and penalised interval on a simplex times a box."""
    arrays = {
        "points": [[0.8, 0.1, 0.9]],
        "groups": [[[1.0, -0.5, 0.6], [0.4, 0.2, 0.9], [-0.6, 0.8, 0.3]]],
        "contrast": [[0.9, -0.4, 0.8]],
    }
    constraints = [SoftWorstCost(3, 0.1, 0.35), PenalisedMean(0.5, 0.15)]
    primal, start = product([Simplex(2), Box([-1.0], [1.0])]), np.array([0.4, 0.6, -0.7])
    return MinMaxProblem(Distance(), constraints, primal, Finite(arrays), start=start, name="mixed toy")


def robust_toy(
    samples: int, bound: Any = 0.2, *, seed: int = 0, engine: str = "numpy", dtype: str = "float64"
) -> MinMaxProblem:
    """Return the nearest point to a mean whose robust cost is at most ``bound``, a float or (R,).

    A bound of -3 and less is infeasible. With a single sample there is no noise, whatever a method draws. Engine and
    dtype are as of :class:`~minmaxcon.Finite`.
    """
    rng = np.random.default_rng(seed)
    noise = 0.0 if samples == 1 else 0.4
    points = np.array([1.2, 0.9]) + noise * rng.standard_normal((samples, 2))
    costs = np.array([1.0, 0.5]) + noise * rng.standard_normal((samples, 2))
    data = Finite({"points": points, "costs": costs}, engine=engine, dtype=dtype)
    start = np.array([-0.6, -0.4])
    return MinMaxProblem(Distance(), [RobustCost(2, 0.3, bound)], Ball(2, 2.0), data, start=start, name="robust toy")
