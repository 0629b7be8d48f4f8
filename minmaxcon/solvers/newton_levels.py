"""Closing the optimality gap of a convex problem by Newton's method on its level function, with exact passes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minmaxcon.arrays import Array, to_numpy
from minmaxcon.core import MinMaxProblem, Position, Start
from minmaxcon.core.lower import lower_bound
from minmaxcon.core.runs import choose
from minmaxcon.oracles.mirror_prox import MirrorProx
from minmaxcon.solvers.repair import measure, pull_back

__all__ = ["Bracket", "close_gap"]


@dataclass(frozen=True, eq=False)
class Bracket:
    r"""Points of R runs, and what is known of the optimal values.

    Attributes
    ----------
    x : array (R, d)
        The best points, feasible where any is known.
    objective, constraints : ndarray (R,), (R, m)
        Exact :math:`f_0` and :math:`f_i - b_i` there.
    lower : ndarray (R,)
        Lower bounds on the optimal values.
    multipliers : ndarray (R, m)
        :math:`\bar y_i/\bar y_0` of the duals with the best bound.
    """

    x: Array
    objective: Any
    constraints: Any
    lower: Any
    multipliers: Any

    @property
    def gap(self) -> Any:
        """Upper less lower bound (R,); infinite where one is missing."""
        known = (self.constraints.max(axis=1) <= 0) & np.isfinite(self.lower)
        return np.where(known, self.objective, np.inf) - np.where(known, self.lower, 0.0)


def close_gap(problem: MinMaxProblem, found: Bracket, gap: float = 1e-8, rounds: int = 12) -> Bracket:
    r"""Narrow brackets from below.

    :math:`H(r) \ge D(r)`, which is linear in r with slope :math:`-\bar y_0`, so its root :math:`r + D(r)/\bar y_0` is a
    lower bound on :math:`f^*`, and the next level: Newton's method. What such a level answers is not quite feasible,
    and is pulled back towards the first feasible point.

    Parameters
    ----------
    problem : MinMaxProblem
        The problem, on finite data. Where it is not known to be convex there are no lower bounds, and only the
        multipliers and points at the level of the best objective are sought.
    found : Bracket
        Where to begin.
    gap : float
        What is asked for, relative to :math:`1 + |f_0|`; what can be reached is limited by the oracle.
    rounds : int
        Largest number of levels.
    """
    oracle, position = MirrorProx(), Position.start(np.random.default_rng(0))  # which draws nothing
    anchor, slack = found.x, found.constraints.max(axis=1)
    start = Start(anchor, None, position)
    for _ in range(rounds):
        level = np.where(np.isfinite(found.lower), found.lower, found.objective)
        question, wanted = problem.at_level(level), gap * (1.0 + np.abs(level))
        answer = oracle.query(question, start, accuracy=float(wanted.min()))
        weights = np.asarray(to_numpy(answer.weights), dtype=np.float64)
        first = np.maximum(weights[:, 0], 1e-300)
        bound = level + lower_bound(question, answer.weights, answer.scaled, answer.x) / first
        better, before = (weights[:, 0] > 1e-8) & (bound > found.lower), found.gap
        fresh = (better | np.isnan(found.multipliers).any(axis=1))[:, None]
        multipliers = np.where(fresh, weights[:, 1:] / first[:, None], found.multipliers)
        found = replace(found, lower=np.where(better, bound, found.lower), multipliers=multipliers)
        found = _lowered(problem, found, anchor, slack, answer.x)
        # Newton's method squares the gap; where it does not even halve, the oracle has come to its end.
        if ((found.gap <= wanted) | ~(found.gap < 0.5 * before)).all():
            break
        start = answer.next
    return found


def _lowered(problem: MinMaxProblem, found: Bracket, anchor: Array, slack: Any, x: Array) -> Bracket:
    """Return the brackets with the points x, pulled back where they are not feasible, if they are better."""
    objective, constraints = measure(problem, x)
    violation = constraints.max(axis=1)
    back = (violation > 0) & (slack < 0)
    if back.any():
        nearer = pull_back(problem, anchor, np.minimum(slack, -1e-300), x, np.maximum(violation, 1e-300))
        x = choose(back, nearer[0], x)
        objective = np.where(back, nearer[1], objective)
        constraints = np.where(back[:, None], nearer[2], constraints)
    feasible = constraints.max(axis=1) <= 0
    before = np.where(found.constraints.max(axis=1) <= 0, found.objective, np.inf)
    better = feasible & (objective < before)
    return replace(
        found,
        x=choose(better, x, found.x),
        objective=np.where(better, objective, found.objective),
        constraints=np.where(better[:, None], constraints, found.constraints),
    )
