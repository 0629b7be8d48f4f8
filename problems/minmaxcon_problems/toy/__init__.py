r"""A problem of one variable whose every answer is a formula.

.. math:: \min_{|x| \le 2c}\ E\,\tfrac12 (x - z)^2 \quad\text{subject to}\quad
          \max_{\alpha\in[-1,1]} \alpha\,E[x - u] \le b

with :math:`E z = c > 0`, :math:`E u = 0` and both of variance :math:`\sigma^2`, so that
:math:`f_0(x) = \frac12(x - c)^2 + \frac12\sigma^2` and :math:`f_1(x) = |x|`. With :math:`\beta = \min(b, c)`:

- optimum :math:`x^* = \beta`, value :math:`f^* = \frac12(c - \beta)^2 + \frac12\sigma^2`, multiplier
  :math:`\lambda^* = c - \beta`;
- with :math:`\varrho = r - \frac12\sigma^2` the level-set function :math:`H(r) = \min_x \max(f_0(x) - r,
  f_1(x) - b)` is

  .. math:: H(r) = \begin{cases} -\varrho & \varrho \le b - c \\
                   c - b + 1 - \sqrt{1 + 2(c - b + \varrho)} & b - c \le \varrho \le \frac12c^2 + b \\
                   -b & \frac12c^2 + b \le \varrho\end{cases}

  convex and never increasing; its root is :math:`f^*`, and for :math:`b \le c` its slope there is
  :math:`-1/(1 + \lambda^*)`: minus the weight :math:`y_0` of the objective.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.checks import positive, seed_number, whole
from minmaxcon.core import solution_point

__all__ = ["AbsoluteMean", "HalfSquare", "Toy", "level_function", "optimum", "plugin"]


class HalfSquare(mm.StochasticMinMaxConstraint):
    r""":math:`f_0(x) = E\,\frac12 (x - z)^2`, no inner variable; z is the array ``target``."""

    name = "half square"
    convex = True

    def terms(self, x: Any, batch: mm.Batch) -> tuple[Any, Any]:
        """Return the batch mean of F, and no G."""
        return 0.5 * ((x - batch["target"]) ** 2).mean(-1), None

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        """Return the terms and their gradient."""
        offset = x - batch["target"].mean()
        return mm.Evaluation(self.terms(x, batch)[0], x[..., :0], lambda y, _: y[..., None] * offset)

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        """Return the exact mean of F."""
        ((_, rows),) = data.chunks(data.size)
        z = np.asarray(rows["target"])
        return 0.5 * cp.sum_squares(x - z.mean()) + 0.5 * float(z.var())


class AbsoluteMean(mm.StochasticMinMaxConstraint):
    r""":math:`f_1(x) = \max_{\alpha\in[-1,1]} \alpha\,E[x - u]`, with F = 0 and G = x - u; u is the array ``shift``."""

    name = "absolute mean"
    convex = True
    dual = mm.interval(1.0)

    def __init__(self, bound: Any) -> None:
        self.bound = bound

    def terms(self, x: Any, batch: mm.Batch) -> tuple[Any, Any]:
        """Return F = 0 and the batch mean of G, shape (..., 1)."""
        return 0.0 * x[..., 0], x - batch["shift"].mean()

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        r"""Return the terms and their gradient: that of :math:`aG` is a."""
        return mm.Evaluation(*self.terms(x, batch), lambda _, a: a)

    def cvxpy_value(self, cp: Any, x: Any, data: mm.Source) -> Any:
        """Return the absolute value of the exact mean of G."""
        ((_, rows),) = data.chunks(data.size)
        return cp.abs(x[0] - float(rows["shift"].mean()))


def optimum(center: float, bound: float, noise: float) -> tuple[float, float, float]:
    r"""Return :math:`x^*, f^*, \lambda^*`."""
    x = min(bound, center)
    return x, 0.5 * (center - x) ** 2 + 0.5 * noise**2, center - x


def level_function(center: float, bound: float, noise: float, r: float) -> float:
    r"""Return :math:`H(r)`."""
    rho = r - 0.5 * noise**2
    if rho <= bound - center:
        return -rho
    if rho >= 0.5 * center**2 + bound:
        return -bound
    return float(center - bound + 1.0 - np.sqrt(1.0 + 2.0 * (center - bound + rho)))


@dataclass(frozen=True, slots=True)
class Law:
    r"""The numbers of the formulas: c and :math:`\sigma`."""

    center: float
    noise: float


class Toy(mm.ProblemPlugin):
    """The toy of the gallery."""

    name = "toy"
    summary = "One variable, one absolute value: optimum, multiplier and level-set function are formulas."

    def load(
        self,
        bound: float | Sequence[float] = 1.0,
        *,
        center: float = 2.0,
        noise: float = 1.0,
        samples: int = 500,
        seed: int = 0,
        engine: str = "numpy",
        device: str = "cpu",
        dtype: str = "float64",
    ) -> mm.MinMaxProblem:
        r"""Draw the samples and build the problem.

        Parameters
        ----------
        bound : float or sequence of float
            :math:`b > 0`; several are solved as runs of one problem.
        center : float
            The centre :math:`c > 0`. The samples are shifted and scaled so that the formulas hold exactly.
        noise : float
            The noise :math:`\sigma > 0`.
        samples : int
            Number of samples, at least 2.
        seed : int
            Seed of their normal law.
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
        center, noise = positive("center", center), positive("noise", noise)
        drawn = np.random.default_rng(seed_number("seed", seed)).normal(size=(2, whole("samples", samples, 2)))
        target, shift = noise * (drawn - drawn.mean(1, keepdims=True)) / drawn.std(1, keepdims=True)
        return mm.MinMaxProblem(
            HalfSquare(),
            [AbsoluteMean(bound)],
            mm.Box([-2.0 * center], [2.0 * center]),
            mm.Finite({"target": center + target, "shift": shift}, engine=engine, device=device, dtype=dtype),
            start=[0.0],
            name="toy",
            details=Law(center, noise),
        )

    def evaluate(self, problem: mm.MinMaxProblem, x: Any) -> Mapping[str, Any]:
        """See :meth:`minmaxcon.ProblemPlugin.evaluate`: by the formulas, without the samples."""
        point = float(solution_point(problem, x, Law)[0])
        law: Law = problem.details
        center, noise = law.center, law.noise
        objective = 0.5 * (point - center) ** 2 + 0.5 * noise**2
        return {"objective": objective, "values": [abs(point)], "train": {"distance_to_target": abs(point - center)}}

    def examples(self) -> Sequence[Mapping[str, Any]]:
        """Return option sets that are small enough to check and compare quickly."""
        return ({"samples": 200},)


plugin = Toy()
