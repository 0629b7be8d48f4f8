"""The inexact quadratically regularised constrained method, for weakly convex problems."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np

from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.checks import number, whole
from minmaxcon.core import MinMaxProblem, Needs, Outcome, Solver, Start, Status
from minmaxcon.core.runs import choose, put_rows, take_start
from minmaxcon.errors import InvalidInput
from minmaxcon.oracles.smd import SMD
from minmaxcon.solvers.iqrc_state import IQRCState, moved, sought
from minmaxcon.solvers.repair import measure
from minmaxcon.solvers.sfls import SFLS
from minmaxcon.solvers.state import first_fields
from minmaxcon.solvers.weak_convexity import proximal_inaccuracy, warn_of_weight

__all__ = ["IQRC", "IQRCState"]


_STALLS = 3
_SHORT = 0.02
"""Where nothing is proved, steps shorter than this share of the tolerance count as none."""

_ROUNDING = 1e-7
"""Movements below this, relative to the point, are those of rounding."""


class IQRC(Solver):
    r"""Inexact quadratically regularised constrained method.

    .. math::
        \tilde x_{s+1} \approx \arg\min_{x\in X} f_0(x) + \hat\rho V(x, \tilde x_s)
        \quad\text{s.t.}\quad f_i(x) + \hat\rho V(x, \tilde x_s) \le b_i

    with :math:`V(x, \tilde x) = \frac12|x - \tilde x|^2` on Euclidean sets. The measure of near stationarity is the
    distance :math:`|\hat x - \tilde x_s|` to the exact proximal point. The proximal problem is strongly convex with
    modulus :math:`\hat\rho - \rho`, so where the oracle certifies an optimality gap,

    .. math::
        |\hat x - \tilde x_s| \le |\tilde x_{s+1} - \tilde x_s| + \sqrt{2\,\text{gap}/(\hat\rho - \rho)},

    the column ``stationarity`` of the trace. Without a declared :math:`\rho < \hat\rho` nothing is proved, and the
    column is infinite: a short step may as well mean that the oracle failed.

    The proof is about the centre :math:`\tilde x_s`, not about the step's end. A run is therefore solved at a feasible
    centre, stays there, and returns that centre as ``"best"`` and as ``"last"``; the ``"random"`` iterate counts as
    solved only where it is that centre.

    From a start that is not strictly feasible, proximal problems may have no solution although the problem has. Where
    the data are finite and the constraints are declared convex, the oracle is first asked about the problem without
    the proximal term: it gives a strictly feasible point to start from, or proves that the problem is infeasible.

    Parameters
    ----------
    oracle : Solver
        Solves the proximal problems; SFLS by default, with ``least_span=0``, as distances need the gap itself.
    weight : float
        :math:`\hat\rho`. The theory needs it above the weak convexity modulus :math:`\rho`; the paper's experiments
        use 1e-5, which is not (a sigmoid network has :math:`\rho \ge 1`). The default is 1. Where the weight is not
        above a declared modulus, or above what points near the start prove, a
        :class:`~minmaxcon.errors.WeakConvexityWarning` says so.
    iterations : int
        Outer steps S.
    tolerance : float
        A run is solved (nearly stationary) once :math:`|\hat x - \tilde x_s|` is proved to be at most this, in units of
        x; where nothing is proved, it ends without that claim once three steps in a row are no longer than 2% of this.
        What can be proved is limited by the root of the oracle's gap. With the default oracle, and a weight above their
        modulus, 15 of the 17 small problems of the test suite (``tests/cases.py``) end as solved; a smaller tolerance
        asks for an oracle with more steps and levels.
    output : {"best", "last", "random"}
        Which iterate is returned where none is proved: the best feasible one, the last, or (as in the theorem, proof or
        not) one drawn uniformly with the caller's seed.

    Raises
    ------
    InvalidInput
        If a setting is out of range.

    References
    ----------
    Ma, Lin and Yang (2020); Yao, Lin and Yang (2023), algorithm 3.
    """

    def __init__(
        self,
        oracle: Solver | None = None,
        weight: float = 1.0,
        iterations: int = 30,
        tolerance: float = 0.05,
        output: Literal["best", "last", "random"] = "best",
    ) -> None:
        self.oracle = SFLS(oracle=SMD(steps=1000), levels=6, least_span=0.0) if oracle is None else oracle
        if not isinstance(self.oracle, Solver):
            raise InvalidInput("oracle", oracle, "must be a Solver such as SFLS(): it solves the proximal problems.")
        if self.oracle.needs.unregularised or self.oracle.needs.measure:
            raise InvalidInput("oracle", oracle, "solves no problem with a proximal term; use one that does: SFLS().")
        self.weight = number("weight", weight, "must be positive and finite.", above=0.0)
        self.tolerance = number("tolerance", tolerance, "must be positive and finite.", above=0.0)
        self.iterations = whole("iterations", iterations)
        if output not in ("best", "last", "random"):
            raise InvalidInput("output", output, 'use "best", "last" or "random".')
        self.output = output

    @property
    def runs(self) -> int | None:
        """Number of runs where a setting of the oracle is a vector."""
        return self.oracle.runs

    @property
    def needs(self) -> Needs:
        """Those of the oracle, of functions with the proximal term; and that the problem has none yet."""
        return replace(self.oracle.needs, unregularised=True, added=self.weight)

    @property
    def title(self) -> str:
        """See :attr:`Solver.title`."""
        return f"IQRC(oracle={self.oracle.title})"

    def take(self, runs: Any) -> Self:
        """See :meth:`Solver.take`."""
        other = copy.copy(self)
        other.oracle = self.oracle.take(runs)
        return other

    def init(self, problem: MinMaxProblem, start: Start) -> IQRCState:
        """See :meth:`Solver.init`; refuses a start whose exact values are not finite.

        Warns
        -----
        WeakConvexityWarning
            If the weight is not above a modulus that is declared, or that points near the start prove.
        """
        begun = first_fields(problem, start)
        x, objective, constraints = begun["x"], begun["objective"], begun["constraints"]
        warn_of_weight(problem, x, self.weight)
        runs = len(objective)
        convex = all(constraint.modulus <= 0 for constraint in problem.constraints)
        searchable = convex and problem.data.size is not None
        return IQRCState(
            **begun,
            best=x,
            best_objective=objective,
            best_constraints=constraints,
            movement=np.full(runs, np.inf),
            picked=x,
            picked_values=np.concatenate([objective[:, None], constraints], axis=1),
            outer=0,
            stalls=np.zeros(runs, dtype=int),
            seeking=(constraints.max(axis=1) >= 0) & searchable,
            active=np.arange(runs),
            inner=None,
            origin=start.position,
        )

    def finished(self, state: IQRCState) -> bool:
        """See :meth:`Solver.finished`."""
        return all(status is not None for status in state.status)

    def step(self, state: IQRCState) -> IQRCState:
        """See :meth:`Solver.step`: one step of the oracle."""
        seeking = bool(state.seeking.any())
        if state.inner is None:
            active = np.flatnonzero(state.seeking if seeking else [status is None for status in state.status])
            start = take_start(replace(state.next, x=state.x), active)
            problem = state.problem.take(active)
            if not seeking:
                problem = problem.with_proximal(np.asarray(to_numpy(start.x)), self.weight)
            if state.problem.data.size is not None:
                position = state.origin if seeking else state.origin.jumped(2 * state.outer + 1)
                start = replace(start, position=position)
            state = replace(state, active=active, inner=self.oracle.take(active).init(problem, start))
        inner, oracle = state.inner, self.oracle.take(state.active)
        if not oracle.finished(inner):
            inner = oracle.step(inner)
            state = replace(state, inner=inner)
        if seeking:
            return sought(state, oracle.outcome(inner), oracle.finished(inner))
        return self._end(state) if oracle.finished(inner) else state

    def outcome(self, state: IQRCState) -> Outcome:
        """See :meth:`Solver.outcome`. No lower bound is claimed: the problem need not be convex."""
        exact = state.problem.data.size is not None
        steps, samples = state.steps, state.samples
        if state.inner is not None:
            running = self.oracle.outcome(state.inner)
            steps, samples = steps + running.steps, samples + running.samples
        if self.output == "last":
            x, objective, constraints = state.x, state.objective, state.constraints
        elif self.output == "random":
            x, objective, constraints = state.picked, state.picked_values[:, 0], state.picked_values[:, 1:]
        else:
            x, objective, constraints = state.best, state.best_objective, state.best_constraints
        return Outcome(
            x=x,
            objective=objective,
            constraints=constraints,
            lower=np.full(len(state.status), -np.inf),
            exact=exact,
            confidence=float(exact),
            status=tuple(Status.BUDGET if status is None else status for status in state.status),
            reason=state.reason,
            trace=state.trace,
            steps=steps,
            samples=samples,
            next=state.next,
        )

    def _inaccuracy(self, problem: MinMaxProblem, found: Outcome) -> Any:
        r"""Bound the distance of the oracle's points from the proximal points :math:`\hat x`."""
        modulus = self.weight - problem.modulus
        lower = found.lower if found.exact else np.full_like(found.objective, -np.inf)
        return proximal_inaccuracy(modulus, found.objective, lower, found.constraints)

    def _end(self, state: IQRCState) -> IQRCState:
        runs, found = state.active, self.oracle.outcome(state.inner)
        xp = namespace(state.x)
        new = found.x
        if found.exact:
            objective, constraints = measure(state.problem.take(runs), new)
        else:
            objective, constraints = found.objective, found.constraints
        movement = np.asarray(to_numpy(state.problem.primal.norm(new - xp.rows(state.x, runs))), dtype=float)
        stationarity = movement + self._inaccuracy(state.problem, found)
        # A short step may also mean that the oracle failed, so it proves nothing by itself.
        proof = np.isfinite(stationarity)
        size = np.asarray(to_numpy(state.problem.primal.norm(new)), dtype=float)
        short = movement <= np.where(proof, _ROUNDING * (1.0 + size), _SHORT * self.tolerance)
        stalls = state.stalls.copy()
        stalls[runs] = np.where(short, stalls[runs] + 1, 0)
        status, reason = list(state.status), list(state.reason)
        rows: list[Mapping[str, Any]] = []
        outer = state.outer + 1
        # The proof is about the centre, which therefore must be feasible, and is what the run ends with.
        certified = (stationarity <= self.tolerance) & (state.constraints[runs].max(axis=1) <= 0)
        for i, j in enumerate(runs):
            feasible = bool(constraints[i].max() <= 0)
            if found.status[i] in (Status.DIVERGED, Status.INCONSISTENT):
                status[j], reason[j] = found.status[i], found.reason[i]
                certified[i] = False
            elif certified[i]:
                text = f"the proximal point is proved to lie within {stationarity[i]:.3g}"
                status[j], reason[j] = Status.SOLVED, f"nearly stationary: {text}."
                if self.output == "random" and bool((state.picked[j] != state.x[j]).any()):
                    text = f"{text} of another iterate than the one drawn, about which nothing is proved"
                    status[j], reason[j] = Status.BUDGET, f"{text}."
            elif stalls[j] >= _STALLS:
                what = (
                    "found nothing better"
                    if proof[i]
                    else f"moved by no more than {_SHORT * self.tolerance:g}, which proves nothing"
                )
                status[j], reason[j] = Status.BUDGET, f"{_STALLS} times in a row the oracle {what}."
            elif outer >= self.iterations:
                status[j], reason[j] = Status.BUDGET, f"the last proximal step has length {movement[i]:.3g}."
            if status[j] is Status.BUDGET and not feasible:
                reason[j] = f"{reason[j][:-1]}; its oracle said: {found.reason[i]}"
            rows.append(
                {
                    "run": int(j),
                    "level": state.outer,
                    "objective": float(objective[i]),
                    "violation": float(constraints[i].max()),
                    "movement": float(movement[i]),
                    "stationarity": float(stationarity[i]),
                    "steps": state.steps + found.steps,
                }
            )
        new = choose(certified, xp.rows(state.x, runs), new)
        objective = np.where(certified, state.objective[runs], objective)
        constraints = np.where(certified[:, None], state.constraints[runs], constraints)
        best_violation = state.best_constraints[runs].max(axis=1)
        violation = constraints.max(axis=1)
        better = np.where(
            best_violation <= 0, (violation <= 0) & (objective < state.best_objective[runs]), violation < best_violation
        )
        better |= certified
        # Reservoir sampling: uniform over the outer iterates, with random numbers that no sample is drawn with.
        draw = state.origin.jumped(2 * outer).rng().random()
        pick = (draw * outer < 1.0) & ~certified
        state = moved(state, "x", runs, new, objective, constraints)
        state = moved(state, "best", runs[better], new[better], objective[better], constraints[better])
        state = moved(state, "picked", runs[pick], new[pick], objective[pick], constraints[pick])
        return replace(
            state,
            movement=put_rows(state.movement, runs, movement),
            outer=outer,
            stalls=stalls,
            inner=None,
            status=tuple(status),
            reason=tuple(reason),
            trace=(*state.trace, *rows),
            steps=state.steps + found.steps,
            samples=state.samples + found.samples,
            next=Start(state.next.x, None, found.next.position),
        )
