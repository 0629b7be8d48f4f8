r"""A portfolio of the largest expected return whose tail loss is bounded.

.. math:: \max_{w, t}\ 12\,E\langle r, w\rangle \quad\text{subject to}\quad
          E\Big[t + \frac{(-\langle r, w\rangle - t)_+}{1 - \beta}\Big] \le b,
          \qquad w \text{ in the simplex},\ t \in [-T, T]

Minimised over t, the constraint is the conditional value-at-risk of the loss: the mean of the worst :math:`1 - \beta`
[1]_. The kink is rounded off a little, see :class:`CVaR`. The returns r are those of a month, the objective is of a
year, and x holds w and t/T: so scaled, both parts of x and both functions move alike, and methods need fewer steps.

.. [1] Rockafellar and Uryasev (2000), Optimization of Conditional Value-at-Risk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import namespace
from minmaxcon.checks import number, positive, seed_number, whole
from minmaxcon.core import solution_point
from minmaxcon_problems.cvar_portfolio.market import simulate

__all__ = ["CVaR", "CVaRPortfolio", "NegativeReturn", "plugin", "tail_mean"]

_YEAR = 12.0  # months


class NegativeReturn(mm.StochasticMinMaxConstraint):
    r""":math:`f_0(w, t) = -12\,E\langle r, w\rangle`; no inner variable."""

    name = "minus expected return, % a year"
    convex = True

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        """Return the terms and their gradient."""
        xp, mean = namespace(x), batch["returns"].mean(0)
        slope = xp.concat([-_YEAR * mean, xp.zeros((1,), x)])
        return mm.Evaluation(x @ slope, x[..., :0], lambda y, _: y[..., None] * slope)

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        """Return the exact mean."""
        ((_, rows),) = data.chunks(data.size)
        return -_YEAR * (np.asarray(rows["returns"]).mean(0) @ x[:-1])


class CVaR(mm.StochasticMinMaxConstraint):
    r""":math:`f_1(w, t) = E[t + p_\epsilon(L - t)/(1 - \beta)]` with the loss :math:`L = -\langle r, w\rangle`.

    :math:`p_\epsilon(u)` is :math:`(u)_+` but for :math:`|u| < \epsilon`, where it is
    :math:`(u + \epsilon)^2/(4\epsilon)`: convex, smooth, and above :math:`(u)_+` by at most :math:`\epsilon/4`. The
    last coordinate of x is t/T.
    """

    name = "conditional value-at-risk, % a month"
    convex = True

    def __init__(self, beta: float, bound: Any, smoothing: float, unit: float) -> None:
        self.beta, self.bound, self.unit = beta, bound, unit
        self.smoothing = max(smoothing, 1e-9)  # at 0 the exact form, to 1e-9

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        """Return the terms and their gradient."""
        xp, returns = namespace(x), batch["returns"]
        scale = 1.0 / ((1.0 - self.beta) * returns.shape[0])
        excess = -(x[..., :-1] @ returns.T) - self.unit * x[..., -1:]
        inside = xp.clip(excess / (2.0 * self.smoothing) + 0.5, 0.0, 1.0)  # the derivative of p
        # p(u) = s u + epsilon s (1 - s) for s = p'(u)
        value = self.unit * x[..., -1] + scale * xp.sum(inside * (excess + self.smoothing * (1.0 - inside)))

        def pullback(y: Any, _: Any) -> Any:
            slope = xp.concat([-(inside @ returns), self.unit * (1.0 / scale - xp.sum(inside, keepdims=True))])
            return (scale * y)[..., None] * slope

        return mm.Evaluation(value, x[..., :0], pullback)

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        r"""Return the exact mean; :math:`p_\epsilon(u) = (u + h(u))/2` with a Huber function h of the size of u."""
        ((_, rows),) = data.chunks(data.size)
        returns, width = np.asarray(rows["returns"]), self.smoothing
        excess = -(returns @ x[:-1]) - self.unit * x[-1]
        size = (cp.huber(excess, width) + width**2) / (2.0 * width) if width > 1e-6 else cp.abs(excess)
        return self.unit * x[-1] + cp.sum(excess + size) / (2.0 * (1.0 - self.beta) * len(returns))


def tail_mean(losses: Any, beta: float) -> Any:
    r"""Return the mean of the worst :math:`1 - \beta` of losses (n, ...): by sorting, one of them counted in part."""
    count = (1.0 - beta) * len(losses)
    full = int(np.floor(count + 1e-9))
    worst = np.sort(losses, axis=0)[::-1]
    rest = (count - full) * worst[full] if full < len(losses) else 0.0
    return (worst[:full].sum(axis=0) + rest) / count


@dataclass(frozen=True, eq=False, slots=True)
class Scenarios:
    r"""Returns (scenarios, assets) to learn from and to judge by, and the numbers of the risk measure."""

    train: Any
    test: Any
    beta: float
    smoothing: float
    unit: float


class CVaRPortfolio(mm.ProblemPlugin):
    """The portfolio of the gallery."""

    name = "cvar_portfolio"
    summary = "Choose a portfolio of the largest expected return whose conditional value-at-risk is bounded."

    def load(
        self,
        bound: float | Sequence[float] = 5.0,
        *,
        beta: float = 0.9,
        smoothing: float = 0.05,
        assets: int = 16,
        scenarios: int = 2000,
        seed: int = 0,
        engine: str = "numpy",
        device: str = "cpu",
        dtype: str = "float64",
    ) -> mm.MinMaxProblem:
        r"""Draw the scenarios and build the problem.

        Parameters
        ----------
        bound : float or sequence of float
            :math:`b > 0`, the largest conditional value-at-risk, percent a month; several are runs of one problem.
        beta : float
            :math:`\beta\in[0.5, 1)`.
        smoothing : float
            :math:`\epsilon \ge 0`, percent. The conditional value-at-risk is overstated by at most
            :math:`\epsilon/(4(1-\beta))`, and lower bounds become tight: at a kink a subgradient says little.
        assets : int
            Number of assets, cash included, at least 4.
        scenarios : int
            Number of scenarios to learn from, at least 100, and of those to judge by.
        seed : int
            Seed of the scenarios.
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
        levels = positive("bound", bound, several=True)
        smoothing = number("smoothing", smoothing, "must be finite and at least 0.", least=0.0)
        beta = number("beta", beta, "must lie in [0.5, 1).", least=0.5, below=1.0)
        train, test = simulate(
            whole("assets", assets, 4), whole("scenarios", scenarios, 100), seed_number("seed", seed)
        )
        # The value-at-risk of any mixture lies in [-T, T]: it is at most the conditional one, convex in w and so at
        # most that of some asset; and, since beta >= 1/2, at least minus the same of the gain.
        unit = float(max(tail_mean(-train, beta).max(), tail_mean(train, beta).max()))
        even = np.full(assets, 1.0 / assets)
        share = min(1.0, 0.5 * float(levels.min()) / max(float(tail_mean(-train @ even, beta)), 1e-9))
        start = share * even + (1.0 - share) * np.eye(assets)[-1]
        quantile = np.quantile(-train @ start, beta, method="inverted_cdf")
        return mm.MinMaxProblem(
            NegativeReturn(),
            [CVaR(beta, bound, smoothing, unit)],
            mm.product([mm.Simplex(assets), mm.Box([-1.0], [1.0])]),
            mm.Finite({"returns": train}, engine=engine, device=device, dtype=dtype),
            start=np.append(start, quantile / unit),
            name="CVaR portfolio",
            details=Scenarios(train, test, beta, smoothing, unit),
        )

    def evaluate(self, problem: mm.MinMaxProblem, x: Any) -> Mapping[str, Any]:
        """See :meth:`minmaxcon.ProblemPlugin.evaluate`: the tail by sorting, for both sets of scenarios."""
        point, found = solution_point(problem, x, Scenarios), problem.details
        beta, width = found.beta, max(found.smoothing, 1e-9)
        w, t = point[:-1], float(point[-1]) * found.unit
        losses = [-returns @ w for returns in (found.train, found.test)]
        excess = losses[0] - t
        measured = [
            {"rows": len(loss), "expected_return": -_YEAR * float(loss.mean()), "cvar": float(tail_mean(loss, beta))}
            for loss in losses
        ]
        above = np.where(np.abs(excess) < width, (excess + width) ** 2 / (4.0 * width), np.maximum(excess, 0.0))
        value = t + float(above.mean()) / (1.0 - beta)
        objective = _YEAR * float(losses[0].mean())
        return {"objective": objective, "values": [value], "train": measured[0], "test": measured[1]}

    def examples(self) -> Sequence[Mapping[str, Any]]:
        """Return option sets that are small enough to check and compare quickly."""
        return ({"assets": 6, "scenarios": 400},)


plugin = CVaRPortfolio()
