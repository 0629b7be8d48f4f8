r"""The inexact quadratically regularised constrained method: :math:`\tilde x_{s+1}`, a proximal point of the last."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from minmaxcon.arrays import to_numpy
from minmaxcon.checks import choice, number, whole
from minmaxcon.core import (
    MinMaxProblem,
    Needs,
    Neighbour,
    Outcome,
    Points,
    Position,
    RunsState,
    Solver,
    Start,
    Status,
)
from minmaxcon.core.first_order import by_the_weight
from minmaxcon.core.runs import put_runs, take_runs, where_runs, zero_rows
from minmaxcon.core.solver import Verdict
from minmaxcon.errors import InvalidInput
from minmaxcon.oracles.smd import SMD
from minmaxcon.solvers.sfls import SFLS
from minmaxcon.solvers.weak_convexity import WeightRule, proximal_inaccuracy, warn_of_weight

__all__ = ["IQRC", "IQRCState"]

_STALLS = 3
_SHORT = 0.02
"""Where nothing is proved, steps shorter than this share of the tolerance count as none."""

_ROUNDING = 1e-7
"""Movements below this, relative to the point, are those of rounding."""


@dataclass(frozen=True, eq=False, slots=True)
class IQRCState(RunsState):
    r"""State of a solve; ``points`` are the centres :math:`\tilde x_s`.

    Attributes
    ----------
    best : Points
        The best feasible iterate so far, else the least infeasible one.
    picked : Points
        The iterate that the ``"random"`` rule returns.
    movement : ndarray (R,)
        :math:`|\tilde x_{s+1} - \tilde x_s|` of the last outer step.
    outer : int
        Outer steps done.
    stalls : ndarray (R,)
        How many times in a row the oracle has found nothing better than its start.
    weight : ndarray (R,)
        :math:`\hat\rho` of the next outer step.
    balance : ndarray (R,)
        The weight whose term would have been as large as the last fall; 0 before the first.
    first : ndarray (R,)
        The objective at the first feasible centre; infinite before.
    seeking : ndarray (R,) of bool
        The runs that first look for a strictly feasible point of the problem itself.
    active : ndarray of int
        The runs of the current proximal problem, or of the search.
    inner : object or None
        The oracle's state.
    origin : Position
        Where the solve began to read. On finite data the s-th outer step draws random numbers of its own, whatever the
        steps before have used, so that a run of many equals the same run alone.
    """

    best: Points
    picked: Points
    movement: Any
    outer: int
    stalls: Any
    weight: Any
    balance: Any
    first: Any
    seeking: Any
    active: Any
    inner: Any
    origin: Position


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

    **The weight adapts** where none is given. The first is small: the term is a hundredth of what the slope of the
    objective promises across the set. A step is taken only where exact values show that its end is feasible and

    .. math:: f_0(\tilde x_{s+1}) + \hat\rho V(\tilde x_{s+1}, \tilde x_s) \le f_0(\tilde x_s),

    which holds at the exact proximal point for any weight, and needs no convexity. If the objective fell and the term
    was more than 1% of the fall, the weight held the step back: the next is a tenth. If it did not fall, the centre
    stays and the next weight is ten times as large, or so large that its term would have taken a tenth of the last
    fall. Where a modulus is declared, no weight exceeds :math:`\max(1, 2\rho)`, at which a failing step is a proof up
    to the oracle's accuracy; it is tried as soon as a step brings less than 1% of what all have brought. Three failures
    in a row end the run.

    From a start that is not strictly feasible, proximal problems may have no solution although the problem has. Where
    the data are finite and the constraints are declared convex, the oracle is first asked about the problem without
    the proximal term: it gives a strictly feasible point to start from, or proves that the problem is infeasible.

    Parameters
    ----------
    oracle : Solver
        Solves the proximal problems; SFLS by default, with ``least_span=0``, as distances need the gap itself.
    weight : float, optional
        :math:`\hat\rho`; by default it adapts, and on streams, where no step can be measured, it is
        :math:`\max(1, 2\rho)`, or 1 where no modulus is declared. A number stays as it is, and every step is taken, as
        in the paper. The theory needs it above the modulus :math:`\rho`; the paper's experiments use 1e-5, which is not
        (a sigmoid network has :math:`\rho \ge 1`). Where a given weight is not above a declared modulus, or above what
        points near the start prove, a :class:`~minmaxcon.errors.WeakConvexityWarning` says so.
    iterations : int
        Outer steps S.
    tolerance : float
        A run is solved (nearly stationary) once :math:`|\hat x - \tilde x_s|` is proved to be at most this, in units of
        x; where nothing is proved, it ends without that claim once three steps in a row are no longer than 2% of this.
        What can be proved is limited by the root of the oracle's gap. The default oracle, with a weight above the
        modulus, is good enough for most small problems; a smaller tolerance asks for one with more steps and levels.
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

    Examples
    --------
    >>> import minmaxcon as mm
    >>> solution = mm.solve(mm.load_problem("toy"), mm.IQRC(weight=1.0, iterations=1), seed=0)
    >>> bool(solution.constraints.max() <= 0)
    True
    """

    def __init__(
        self,
        oracle: Solver | None = None,
        weight: float | None = None,
        iterations: int = 30,
        tolerance: float = 0.05,
        output: Literal["best", "last", "random"] = "best",
    ) -> None:
        self.oracle = SFLS(oracle=SMD(steps=1000), levels=6, growth=1.1, least_span=0.0) if oracle is None else oracle
        if not isinstance(self.oracle, Solver):
            raise InvalidInput("oracle", oracle, "must be a Solver such as SFLS(): it solves the proximal problems.")
        if self.oracle.needs.unregularised or self.oracle.needs.measure:
            raise InvalidInput("oracle", oracle, "solves no problem with a proximal term; use one that does: SFLS().")
        remedy = "must be positive and finite, or None for one that adapts."
        self.weight = None if weight is None else number("weight", weight, remedy, above=0.0)
        self.tolerance = number("tolerance", tolerance, "must be positive and finite.", above=0.0)
        self.iterations = whole("iterations", iterations)
        choice("output", output, ("best", "last", "random"))
        self.output = output

    @property
    def runs(self) -> int | None:
        """Number of runs where a setting of the oracle is a vector."""
        return self.oracle.runs

    @property
    def needs(self) -> Needs:
        """Those of the oracle, of functions with the proximal term; and that the problem has none yet."""
        added = np.finfo(float).max if self.weight is None else self.weight  # enough for any modulus that is declared
        return replace(self.oracle.needs, unregularised=True, added=float(added))

    @property
    def compiled(self) -> bool:
        """See :attr:`Solver.compiled`."""
        return self.oracle.compiled

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
        """See :meth:`Solver.init`.

        Warns
        -----
        WeakConvexityWarning
            If a weight that is given is not above a modulus that is declared, or that points near the start prove.
        """
        begun, runs = RunsState.begun(problem, start), int(start.x.shape[0])
        points: Points = begun["points"]
        if self.weight is not None:
            warn_of_weight(problem, points.x, self.weight)
            weight = np.full(runs, self.weight)
        else:
            weight = self._rule(problem).first(problem, points.x)
        searchable = problem.data.size is not None and all(c.modulus <= 0 for c in problem.constraints)
        nobody = Neighbour.none(runs, problem.primal.dimension)
        begun["evidence"] = replace(begun["evidence"], neighbour=nobody)
        return IQRCState(
            **begun,
            best=points,
            picked=points,
            movement=np.full(runs, np.inf),
            outer=0,
            stalls=np.zeros(runs, dtype=int),
            weight=weight,
            balance=np.zeros(runs),
            first=np.where(points.feasible, points.objective, np.inf),
            seeking=(points.violation >= 0) & searchable,
            active=np.arange(runs),
            inner=None,
            origin=start.position,
        )

    def step(self, state: IQRCState) -> IQRCState:
        """See :meth:`Solver.step`: one step of the oracle."""
        seeking = bool(state.seeking.any())
        if state.inner is None:
            active = np.flatnonzero(state.seeking) if seeking else state.going
            position = state.next.position
            if state.problem.data.size is not None:
                position = state.origin if seeking else state.origin.jumped(2 * state.outer + 1)
            x, dual, memory = take_runs((state.x, state.next.dual, state.next.memory), active)
            start = Start(x, dual, position, memory)
            problem = state.problem.take(active)
            if not seeking:
                problem = problem.with_proximal(np.asarray(to_numpy(start.x)), state.weight[active])
            state = replace(state, active=active, inner=self.oracle.take(active).init(problem, start))
        inner, oracle = state.inner, self.oracle.take(state.active)
        if not oracle.finished(inner):
            inner = oracle.step(inner)
            state = replace(state, inner=inner)
        ended = oracle.finished(inner)
        if seeking:
            return self._sought(state, oracle.outcome(inner), ended)
        return self._end(state, oracle.outcome(inner)) if ended else state

    def outcome(self, state: IQRCState) -> Outcome:
        """See :meth:`Solver.outcome`. No lower bound is claimed: the problem need not be convex."""
        points = {"best": state.best, "last": state.points, "random": state.picked}[self.output]
        if state.inner is None:
            return state.outcome(points)
        running = self.oracle.outcome(state.inner)
        return state.outcome(points, running.steps, running.samples)

    def _rule(self, problem: MinMaxProblem) -> WeightRule:
        modulus = max(problem.modulus, 0.0)
        return WeightRule(modulus, least=1.1 * modulus if self.oracle.needs.convex else 0.0)

    @staticmethod
    def _sought(state: IQRCState, found: Outcome, ended: bool) -> IQRCState:
        """Return the state after a look at the search; a run leaves it with its first strictly feasible point."""
        runs, seeking, verdicts = state.active, state.seeking.copy(), {}
        old, better = take_runs(state.points, runs), np.zeros(len(state.active), dtype=bool)
        for i, (j, worst) in enumerate(zip(runs, found.points.violation, strict=True)):
            final = found.status[i] in {Status.INFEASIBLE, Status.INCONSISTENT, Status.DIVERGED}
            if not seeking[j] or not (worst < 0 or final or ended):
                continue
            seeking[j] = False
            if final and not worst < 0:
                verdicts[int(j)] = found.status[i], found.reason[i]
            better[i] = worst < old.violation[i]
        if found.evidence is not None:
            hopeless = np.array([status is Status.INFEASIBLE for status in found.status])
            known = take_runs(state.evidence, runs)
            proof = where_runs(hopeless, replace(found.evidence, first=None, neighbour=known.neighbour), known)
            state = replace(state, evidence=put_runs(state.evidence, runs, proof))
        points = put_runs(state.points, runs, where_runs(better, found.points, old))
        state = replace(state.judged(verdicts), seeking=seeking, points=points, best=points, picked=points)
        if seeking.any():
            return state
        return replace(state, inner=None, steps=state.steps + found.steps, samples=state.samples + found.samples)

    def _end(self, state: IQRCState, found: Outcome) -> IQRCState:
        """Move the centres to what the oracle has found, and decide which runs have ended."""
        runs, problem, outer = state.active, state.problem, state.outer + 1
        center, best, picked, weight = take_runs((state.points, state.best, state.picked, state.weight), runs)
        new = Points.measured(problem.take(runs), found.x) if found.exact else found.points
        movement = np.asarray(to_numpy(problem.primal.norm(new.x - center.x)), dtype=float)
        lower = found.lower if found.exact else np.full_like(found.lower, -np.inf)
        stationarity = movement + proximal_inaccuracy(weight - problem.modulus, found.points, lower)
        # A short step may also mean that the oracle failed, so it proves nothing by itself.
        proof = np.isfinite(stationarity)
        size = np.asarray(to_numpy(problem.primal.norm(new.x)), dtype=float)
        short = movement <= np.where(proof, _ROUNDING * (1.0 + size), _SHORT * self.tolerance)
        first, weights, balance = state.first.copy(), state.weight.copy(), state.balance.copy()
        inside = center.feasible
        first[runs] = np.where(np.isinf(first[runs]) & inside, center.objective, first[runs])
        if self.weight is None and found.exact:
            term = weight * np.asarray(to_numpy(problem.primal.divergence(new.x, center.x)), dtype=float)
            fall = np.where(inside, center.objective - new.objective, center.violation - new.violation)
            kept = np.where(inside, new.feasible & (fall >= term), fall > 0)
            fall = np.where(kept, fall, 0.0)
            total = np.where(inside, first[runs] - center.objective, 0.0) + fall
            rule = self._rule(problem)
            short = ~rule.fell(fall, total)
            weights[runs], balance[runs] = rule.next(weight, fall, term, total, inside, balance[runs])
            new, movement = where_runs(kept, (new, movement), (center, 0.0 * movement))
        stalls = state.stalls.copy()
        stalls[runs] = np.where(short, stalls[runs] + 1, 0)
        # The proof is about the centre, which therefore must be feasible, and is what the run ends with.
        broken = np.array([status in (Status.DIVERGED, Status.INCONSISTENT) for status in found.status])
        near = by_the_weight(stationarity, weight, problem.modulus) <= self.tolerance
        certified = near & center.feasible & ~broken
        evidence = state.evidence
        if found.evidence is not None:
            beside = Neighbour(weight, np.asarray(to_numpy(found.x), dtype=np.float64), stationarity)
            proof_of = replace(found.evidence, first=None, neighbour=beside)
            known = take_runs(evidence, runs)
            if known.neighbour is None:  # a checkpoint of an older version
                known = replace(known, neighbour=Neighbour.none(len(runs), problem.primal.dimension))
                whole = Neighbour.none(len(state.status), problem.primal.dimension)
                evidence = replace(evidence, neighbour=whole)
            evidence = put_runs(evidence, runs, where_runs(certified, proof_of, known))
        elsewhere = np.asarray(to_numpy((picked.x != center.x).any(axis=-1)))
        verdicts, rows = {}, []
        for i, j in enumerate(map(int, runs)):
            verdict: Verdict = state.status[j], state.reason[j]
            if broken[i]:
                verdict = found.status[i], found.reason[i]
            elif certified[i]:
                text = f"the proximal point (weight {weight[i]:.3g}) is proved to lie within {stationarity[i]:.3g}"
                verdict = Status.SOLVED, f"nearly stationary: {text}."
                if self.output == "random" and elsewhere[i]:
                    text = f"{text} of another iterate than the one drawn, about which nothing is proved"
                    verdict = Status.BUDGET, f"{text}."
            elif stalls[j] >= _STALLS:
                unproved = f"moved by no more than {_SHORT * self.tolerance:g}, which proves nothing"
                what = "found nothing better" if proof[i] or self.weight is None else unproved
                verdict = Status.BUDGET, f"{_STALLS} times in a row the oracle {what}."
            elif outer >= self.iterations:
                verdict = Status.BUDGET, f"the last proximal step has length {movement[i]:.3g}."
            if verdict[0] is Status.BUDGET and not new.feasible[i]:
                verdict = verdict[0], f"{verdict[1][:-1]}; its oracle said: {found.reason[i]}"
            verdicts[j] = verdict
            rows.append(
                {
                    "run": j,
                    "level": state.outer,
                    "objective": float(new.objective[i]),
                    "violation": float(new.violation[i]),
                    "movement": float(movement[i]),
                    "stationarity": float(stationarity[i]),
                    "weight": float(weight[i]),
                    "steps": state.steps + found.steps,
                }
            )
        new = where_runs(certified, center, new)
        # Reservoir sampling: uniform over the outer iterates, with random numbers that no sample is drawn with.
        drawn = (state.origin.jumped(2 * outer).rng().random() * outer < 1.0) & ~certified
        return replace(
            state.judged(verdicts),
            evidence=evidence,
            points=put_runs(state.points, runs, new),
            best=put_runs(state.best, runs, where_runs(new.better(best) | certified, new, best)),
            picked=put_runs(state.picked, runs, where_runs(drawn, new, picked)),
            movement=put_runs(state.movement, runs, movement),
            outer=outer,
            stalls=stalls,
            weight=weights,
            balance=balance,
            first=first,
            inner=None,
            trace=(*state.trace, *rows),
            steps=state.steps + found.steps,
            samples=state.samples + found.samples,
            next=self._onward(state, found.next),
        )

    @staticmethod
    def _onward(state: IQRCState, after: Start) -> Start:
        """Return where the next proximal problem starts: with the duals and step sizes at which this one ended."""
        dual, memory, runs = after.dual, after.memory, state.active
        if dual is not None and len(runs) < len(state.status):
            old, center = state.next.dual, state.problem.at_level(np.zeros(len(state.status))).dual().center(state.x)
            dual = put_runs(center if old is None else old, runs, dual)
        if memory is not None and len(runs) < len(state.status):
            memory = put_runs(state.next.memory or zero_rows(memory, len(state.status)), runs, memory)
        return Start(state.next.x, dual, after.position, memory)
