"""Small constraints of every kind of inner set, in closed form: the problems that solvers are tried on.

They stand for a user's own plug-ins: written against the public interface alone, for any engine and any number of runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import namespace

Array = Any


def mean(rows: Array) -> Array:
    """Return the mean of rows; for NumPy's the bits of ``rows.mean(0)``, which takes most of the time of a step."""
    return np.add.reduce(rows, 0) / len(rows) if type(rows) is np.ndarray else rows.mean(0)


class HalfSquare(mm.StochasticMinMaxConstraint):
    r"""f(x) = E 1/2 |x - z|^2 with z in the array ``points``; ``scale`` times it."""

    convex = True

    def __init__(self, bound: Any = 0.0, scale: float = 1.0, name: str = "half square") -> None:
        self.bound, self.scale, self.name = bound, scale, name

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        points = batch["points"]
        center, square = mean(points), mean((points * points).sum(-1))
        value = self.scale * (0.5 * (x * x).sum(-1) - x @ center + 0.5 * square)
        return mm.Evaluation(value, x[..., :0], lambda y, _: self.scale * y[..., None] * (x - center))

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        points = whole(data)["points"]
        spread = 0.5 * float(((points - points.mean(0)) ** 2).sum(-1).mean())
        return self.scale * (0.5 * cp.sum_squares(x - points.mean(0)) + spread)


class Linear(mm.StochasticMinMaxConstraint):
    """f(x) = E <c, x> with c in the array ``costs``."""

    convex = True

    def __init__(self, bound: Any = 0.0, sign: float = 1.0, name: str = "linear") -> None:
        self.bound, self.sign, self.name = bound, sign, name

    def terms(self, x: Array, batch: mm.Batch) -> tuple[Array, Array | None]:
        return self.sign * (x @ mean(batch["costs"])), None

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        slope = self.sign * mean(batch["costs"])
        return mm.Evaluation(x @ slope, x[..., :0], lambda y, _: y[..., None] * slope)

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        return self.sign * (whole(data)["costs"].mean(0) @ x)


class Robust(mm.StochasticMinMaxConstraint):
    """f(x) = max over |alpha| <= s of E <c + alpha, x>, which is E <c, x> + s |x|."""

    convex = True

    def __init__(self, dimension: int, size: float, bound: Any = 0.0, name: str = "robust") -> None:
        self.size, self.bound, self.name = size, bound, name
        self.dual = mm.BallBlock(dimension, size)

    def terms(self, x: Array, batch: mm.Batch) -> tuple[Array, Array | None]:
        return x @ mean(batch["costs"]), x

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        slope = mean(batch["costs"])
        return mm.Evaluation(x @ slope, x, lambda y, a: y[..., None] * slope + a)

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        return whole(data)["costs"].mean(0) @ x + self.size * cp.norm(x, 2)


class WorstGroup(mm.StochasticMinMaxConstraint):
    """f(x) = max over alpha in the simplex of sum_g alpha_g E[1/2 |x - z|^2 1_g / p_g] - temperature KL(alpha, 1/k).

    The array ``shares`` (n, groups) holds 1_g / p_g.
    """

    convex = True

    def __init__(self, groups: int, bound: Any = 0.0, temperature: float = 0.0, name: str = "worst group") -> None:
        self.bound, self.name, self.temperature = bound, name, temperature
        self.dual = mm.SimplexBlock(groups, temperature)

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        points, shares = batch["points"], batch["shares"] * (1.0 / batch["points"].shape[0])
        mass, first = shares.sum(0), shares.T @ points  # (g,), (g, d)
        second = shares.T @ (points * points).sum(-1)
        G = 0.5 * (x * x).sum(-1)[..., None] * mass - x @ first.T + 0.5 * second
        return mm.Evaluation(0.0 * x.sum(-1), G, lambda _, a: (a @ mass)[..., None] * x - a @ first)

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        arrays = whole(data)
        points, shares = arrays["points"], arrays["shares"] / len(arrays["points"])
        means = shares.T @ points
        spreads = [0.5 * float(s @ ((points - m) ** 2).sum(-1)) for s, m in zip(shares.T, means, strict=True)]
        losses = [0.5 * cp.sum_squares(x - m) + s for s, m in zip(spreads, means, strict=True)]
        if self.temperature == 0:
            return cp.maximum(*losses)
        scaled = cp.hstack([loss / self.temperature for loss in losses])
        return self.temperature * (cp.log_sum_exp(scaled) - np.log(len(losses)))


class CVaR(mm.StochasticMinMaxConstraint):
    """f(w, t) = E t + (L - t)_+ / (1 - beta) with L = <c, w>: a plain expectation, t is the last coordinate of x."""

    convex = True

    def __init__(self, beta: float, bound: Any = 0.0, name: str = "CVaR") -> None:
        self.beta, self.bound, self.name = beta, bound, name

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        costs = batch["costs"]
        w, t = x[..., :-1], x[..., -1:]
        over = w @ costs.T - t
        inside = namespace(x).asarray(over > 0, x) * (1.0 / ((1.0 - self.beta) * costs.shape[0]))
        value = t[..., 0] + (over * inside).sum(-1)

        def pullback(y: Array, _: Array) -> Array:
            parts = [inside @ costs, 1.0 - inside.sum(-1)[..., None]]
            return y[..., None] * namespace(x).concat(parts)

        return mm.Evaluation(value, x[..., :0], pullback)

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        costs = whole(data)["costs"]
        return x[-1] + cp.sum(cp.pos(costs @ x[:-1] - x[-1])) / ((1.0 - self.beta) * len(costs))


class MeanGap(mm.StochasticMinMaxConstraint):
    """f(x) = |E <x, z> contrast|, the maximum over alpha in [-1, 1] of alpha times it."""

    convex = True
    dual = mm.interval(1.0)

    def __init__(self, bound: Any = 0.0, name: str = "mean gap") -> None:
        self.bound, self.name = bound, name

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        slope = (batch["contrast"][:, None] * batch["points"]).mean(0)
        return mm.Evaluation(0.0 * x.sum(-1), (x @ slope)[..., None], lambda _, a: a * slope)

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        arrays = whole(data)
        return cp.abs((arrays["contrast"] @ arrays["points"] / len(arrays["contrast"])) @ x)


class RobustRegression(mm.StochasticMinMaxConstraint):
    r"""f(x) = E log(1 + (<x, z> - target)^2): weakly convex, with modulus at most lambda_max(E z z') / 4."""

    def __init__(self, modulus: float, bound: Any = 0.0, name: str = "robust regression") -> None:
        self.weak_convexity, self.bound, self.name = modulus, bound, name

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        points, count = batch["points"], batch["points"].shape[0]
        error = x @ points.T - batch["target"]
        value = np.log1p(error * error).mean(-1)
        slope = 2.0 * error / (1.0 + error * error) / count
        return mm.Evaluation(value, x[..., :0], lambda y, _: y[..., None] * (slope @ points))


def whole(data: mm.Source) -> dict[str, Any]:
    """Return all arrays of finite data as NumPy arrays."""
    (_, batch), *rest = list(data.chunks())
    assert not rest
    return {name: np.asarray(value) for name, value in batch.items()}
