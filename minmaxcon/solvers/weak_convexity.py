r"""Proximal weights :math:`\hat\rho`, and what a weak convexity modulus :math:`\rho` below them proves."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.core import MinMaxProblem, Points
from minmaxcon.core.modulus import modulus_near
from minmaxcon.errors import WeakConvexityWarning

__all__ = ["WeightRule", "proximal_inaccuracy", "warn_of_weight"]

_FIRST = 1e-2
"""The first weight, as a share of the objective's slope over the set's diameter: the step is hardly held back."""

_FACTOR = 10.0
_HELD, _FELT = 1e-2, 1e-1
"""Shares of a fall: a term below the first did not hold the step back, so that a smaller weight would change nothing;
where a step fails, the next weight would have taken at least the second of the last fall."""

_FELL, _SLOW = 1e-4, 1e-2
"""Shares of all that a run has fallen: less than the first is no fall; less than the second asks for a proof."""


@dataclass(frozen=True, slots=True)
class WeightRule:
    r"""Weights that follow what the last step was measured to do, see :class:`~minmaxcon.IQRC`.

    Attributes
    ----------
    modulus : float
        The declared modulus :math:`\rho`, infinite where a function declares none.
    least : float
        Weights stay at or above this.
    """

    modulus: float
    least: float = 0.0

    @property
    def reference(self) -> float:
        r"""The weight of proofs, :math:`\max(1, 2\rho)`; infinite where no modulus is declared."""
        return max(1.0, 2.0 * self.modulus)

    def first(self, problem: MinMaxProblem, x: Array) -> Any:
        r"""Return the first weights (R,): a hundredth of :math:`|\nabla f_0(x)|_*` over the diameter of X.

        On streams, where no step can be measured, the weight is that of proofs, or 1, and stays.
        """
        runs = int(x.shape[0])
        highest = self.reference if np.isfinite(self.reference) else 1.0
        if problem.data.size is None:
            return np.full(runs, highest)
        xp, level = namespace(x), problem.at_level(np.zeros(runs))
        dual = level.dual()
        weights = xp.asarray(np.eye(dual.levels)[np.zeros(runs, dtype=int)], x)
        scaled = dual.spread(weights) * dual.center(x).inner
        slope = problem.primal.dual_norm(level.lagrangian(x, weights, scaled)[1])
        found = _FIRST * np.asarray(to_numpy(slope), dtype=float) / np.sqrt(2.0 * problem.primal.squared_diameter)
        return np.clip(np.where(np.isfinite(found) & (found > 0), found, highest), self.least, self.reference)

    def fell(self, fall: Any, total: Any) -> Any:
        """Tell of which runs (R,) the last step counts as a fall of what it was to lower."""
        return fall > _FELL * total

    def next(self, weight: Any, fall: Any, term: Any, total: Any, inside: Any, balance: Any) -> tuple[Any, Any]:
        r"""Return the weights (R,) of the next step, and the balance.

        Parameters
        ----------
        weight, fall, term : ndarray (R,)
            The last weight, the fall of the objective (or of the violation, where the centre was infeasible), and the
            proximal term :math:`\hat\rho V` at the step's end.
        total : ndarray (R,)
            How far the run has fallen in all.
        inside : ndarray (R,) of bool
            Whether the centre was feasible; otherwise the term itself may leave no feasible point.
        balance : ndarray (R,)
            The weight whose term would have been as large as the fall of the last step that fell; 0 before.
        """
        fell = self.fell(fall, total)
        balance = np.where(fell & (term > 0), weight * fall / np.where(term > 0, term, 1.0), balance)
        lowered = np.where(term > _HELD * fall, weight / _FACTOR, weight)
        raised = np.maximum(weight * _FACTOR, _FELT * balance)
        after = np.where(fell, lowered, np.where(inside, raised, weight / _FACTOR))
        if np.isfinite(self.reference):  # a step of this weight that fails to lower the objective is a proof
            after = np.where(inside & (fall <= _SLOW * total), self.reference, after)
        return np.clip(after, self.least, self.reference), balance


def warn_of_weight(problem: MinMaxProblem, x: Array, weight: float) -> None:
    r"""Warn where :math:`\hat\rho` is at or below a modulus: one that is declared, or one that two points near x prove.

    The points are looked for only where a function declares no modulus and the data are finite, at the cost of about
    ten gradients of each function. Nothing of a solve depends on them.

    Parameters
    ----------
    problem : MinMaxProblem
        The problem.
    x : array (R, d)
        Where the solve starts.
    weight : float
        :math:`\hat\rho`.
    """
    functions = problem.family.constraints
    declared = np.array([function.modulus for function in functions])
    known = np.where(np.isfinite(declared), declared, 0.0)
    modulus, name, how = float(known.max()), functions[int(known.argmax())].name, "the modulus declared by"
    if weight > modulus and np.isinf(declared).any() and problem.data.size is not None:
        found = modulus_near(problem, x)
        modulus, name = found.value, found.witness.name
        how = "what two points near the start prove of the modulus of"
    if modulus > 0 and weight <= modulus:
        warnings.warn(
            f"weight={weight:g} is not above {modulus:.4g}, {how} {name!r}: proximal problems need not be convex, "
            f"and nothing is proved of their solutions. Use weight=w with w above {modulus:.4g}; "
            "estimate_modulus() looks further.",
            WeakConvexityWarning,
            stacklevel=3,
        )


def proximal_inaccuracy(modulus: float, points: Points, lower: Any) -> Any:
    r"""Bound the distance of points from the solutions of proximal problems, by their optimality gaps.

    A proximal problem is strongly convex with modulus :math:`\hat\rho - \rho`, so its gap bounds
    :math:`\frac{\hat\rho - \rho}2|x - \hat x|^2` at a feasible point; without a gap there is no bound.

    Parameters
    ----------
    modulus : float
        :math:`\hat\rho - \rho`; nothing is proved where it is not positive.
    points : Points
        Points with the exact values of the proximal problem.
    lower : ndarray (R,)
        Lower bounds on its optimal value.

    Returns
    -------
    ndarray (R,)
        The bounds, infinite where nothing is proved.
    """
    gap = np.asarray(points.objective - lower, dtype=float)
    strong = np.broadcast_to(np.asarray(modulus, dtype=float), gap.shape)
    known = np.isfinite(gap) & points.feasible & (strong > 0)
    return np.where(
        known, np.sqrt(2.0 * np.maximum(np.where(known, gap, 0.0), 0.0) / np.where(known, strong, 1.0)), np.inf
    )
