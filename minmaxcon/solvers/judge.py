"""What SFLS concludes at the end of a level: exactly on finite data, from the oracle's bound on streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from minmaxcon.arrays import Array, namespace, to_numpy
from minmaxcon.core import Estimate, LevelProblem, Status
from minmaxcon.core.lower import lower_bound
from minmaxcon.core.runs import choose
from minmaxcon.solvers.consistency import contradictions
from minmaxcon.solvers.repair import measure, pull_back

if TYPE_CHECKING:
    from minmaxcon.solvers.sfls import SFLS, SFLSState

__all__ = ["Verdict", "judge_exactly", "judge_stream"]

_TIE = 1e-9
"""Violations and bounds nearer to 0 than this count as 0."""

_UNPROVED = "no lower bound is known, as where a function does not declare convex = True."
_ENDED = "the stream has ended; the point is feasible by estimate."


@dataclass(frozen=True, eq=False, slots=True)
class Verdict:
    """The new values of the runs of one query; names as in :class:`~minmaxcon.solvers.sfls.SFLSState`."""

    level: Any
    anchor: Array
    first: Any
    x: Array
    objective: Any
    constraints: Any
    lower: Any
    opening: Any
    status: list[Status | None]
    reason: list[str]
    rows: list[Mapping[str, Any]]


def _rows(state: SFLSState, estimate: Estimate, **columns: Any) -> list[Mapping[str, Any]]:
    """Return the rows that a query adds to the trace; P and D are NaN where there is none."""
    searching = bool(np.isinf(state.level[state.active]).any())
    nothing = np.full(state.active.size, np.nan)
    columns = {"r": state.level[state.active], "U": estimate.upper, "P": nothing, "D": nothing, **columns}
    return [
        {
            "run": int(j),
            "level": int(state.rounds[j]) - 1,
            "phase": "search" if searching else "level",
            **{name: float(column[i]) for name, column in columns.items()},
            "steps": state.steps + estimate.steps,
        }
        for i, j in enumerate(state.active)
    ]


def judge_exactly(state: SFLSState, estimate: Estimate, solver: SFLS) -> Verdict:
    """Judge a query on finite data by exact evaluation."""
    runs = state.active
    problem = state.problem.take(runs)
    searching = bool(np.isinf(state.level[runs]).any())
    level, first, opening = state.level[runs].copy(), state.first[runs].copy(), state.opening[runs].copy()
    anchor, x = state.anchor[runs], state.x[runs]
    objective, constraints, lower = state.objective[runs], state.constraints[runs], state.lower[runs]

    family = problem.constraint_family if searching else problem.family
    raw = family.refine(estimate.x, problem.data)
    new_objective, new_constraints = measure(problem, raw)
    raw_violation = violation = new_constraints.max(axis=1)
    new = raw
    question = problem.feasibility(runs.size) if searching else problem.at_level(level)
    bound = lower_bound(question, estimate.weights, estimate.scaled, estimate.x)

    hit = (violation < -_TIE) & np.isfinite(new_objective)
    if searching:
        anchor = choose(hit, new, anchor)
        level = np.where(hit, new_objective + solver.slack, level)
        first = np.where(hit, level, first)
        exact_upper = violation
    else:
        exact_upper = np.maximum(new_objective - level, violation)
        infeasible = violation > 0
        if infeasible.any():
            slack = measure(problem, anchor)[1].max(axis=1)
            back, back_objective, back_constraints = pull_back(problem, anchor, slack, new, np.maximum(violation, _TIE))
            new = choose(infeasible, back, new)
            new_objective = np.where(infeasible, back_objective, new_objective)
            new_constraints = np.where(infeasible[:, None], back_constraints, new_constraints)
            violation = new_constraints.max(axis=1)
        weight = np.asarray(to_numpy(estimate.weights[:, 0]), dtype=np.float64)
        lower = np.maximum(lower, np.where(weight > 1e-8, level + bound / np.maximum(weight, 1e-8), -np.inf))
        stuck = ((new_objective >= objective) | (violation > 0)) & (objective >= level)
        if stuck.any():  # perhaps the first point is the best: then its dual is (1, 0, ..., 0)
            lower = np.where(stuck, np.maximum(lower, _unconstrained(question, estimate)), lower)

    old_violation = constraints.max(axis=1)
    feasible, was_feasible = violation <= 0, old_violation <= 0
    better = np.where(was_feasible, feasible & (new_objective < objective), violation < old_violation)
    better &= np.isfinite(new_objective)
    x = choose(better, new, x)
    objective = np.where(better, new_objective, objective)
    constraints = np.where(better[:, None], new_constraints, constraints)
    opening = np.where(np.isnan(opening) & ~searching, exact_upper, opening)
    if not searching:  # r + P/(2 theta), with the best feasible objective in the place of r + P
        level = np.where(objective < level, level + (objective - level) / (2.0 * solver.theta), level)

    status: list[Status | None] = []
    reason: list[str] = []
    levels = state.rounds - state.searched
    best = (problem, x, objective, constraints, lower)
    seen = {"bound": bound, "upper": exact_upper, "searching": searching}
    claims = contradictions(*best, **seen, position=state.next.position)
    proved = np.where([claim is None for claim in claims], lower, -np.inf)
    for i, j in enumerate(runs):
        verdict: tuple[Status | None, str]
        if estimate.failure[i] is not None:
            verdict = Status.DIVERGED, f"{estimate.failure[i]} of query {state.rounds[j]}."
        elif (claim := claims[i]) is not None:
            verdict = Status.INCONSISTENT, claim
        elif searching:
            margin = violation[i] if hit[i] else max(violation[i], 0.0)  # an objective that is no number is no start
            verdict = _search_verdict(margin, bound[i], int(state.rounds[j]), solver.searches)
        else:
            verdict = _level_verdict(
                objective[i], lower[i], first[i], exact_upper[i], opening[i], int(levels[j]), solver
            )
        status.append(verdict[0])
        reason.append(verdict[1])
    rows = _rows(
        state,
        estimate,
        P=exact_upper,
        D=bound,
        objective=objective,
        violation=constraints.max(axis=1),
        estimate_violation=raw_violation,
        lower=lower,
    )
    return Verdict(level, anchor, first, x, objective, constraints, proved, opening, status, reason, rows)


def _unconstrained(question: LevelProblem, estimate: Estimate) -> Any:
    """Bound the objective from below by its own minimum over X, at the inner variables of the estimate."""
    xp = namespace(estimate.x)
    owner = question.dual().owner
    weight = np.asarray(to_numpy(estimate.weights), dtype=np.float64)
    y = np.zeros_like(weight)
    y[:, 0] = 1.0
    scaled = np.asarray(to_numpy(estimate.scaled), dtype=np.float64)
    a = np.where(owner == 0, scaled / np.maximum(weight[:, :1], 1e-300), 0.0)
    bound = lower_bound(question, xp.asarray(y, estimate.x), xp.asarray(a, estimate.x), estimate.x)
    return np.where(weight[:, 0] > 1e-8, question.bounds[:, 0] + bound, -np.inf)


def _search_verdict(violation: float, bound: float, rounds: int, searches: int) -> tuple[Status | None, str]:
    if violation < -_TIE:
        return None, "a strictly feasible point was found."
    if bound > _TIE:
        return Status.INFEASIBLE, f"every point violates some constraint by at least {bound:.6g}."
    if bound >= -1e-6 * (1.0 + abs(violation)) and violation <= 1e-6:
        return Status.NOT_STRICTLY_FEASIBLE, f"the least violation lies between {bound:.3g} and {violation:.3g}."
    if rounds >= searches:
        return Status.NOT_STRICTLY_FEASIBLE, (
            f"after {rounds} searches the least violation found is {violation:.6g}, "
            + (f"and it cannot be below {bound:.6g}." if np.isfinite(bound) else _UNPROVED)
        )
    return None, "looking for a strictly feasible point."


def _level_verdict(
    objective: float, lower: float, first: float, upper: float, opening: float, rounds: int, solver: SFLS
) -> tuple[Status | None, str]:
    gap, span = objective - lower, first - lower
    if np.isfinite(lower):
        relative = gap / span if span > 0 else 0.0
        if gap <= solver.tolerance * span:
            return Status.SOLVED, f"relative optimality is at most {max(relative, 0.0):.3g}, exactly on the data."
        if gap <= max(solver.tolerance * solver.least_span, _TIE) * (1.0 + abs(objective)):
            text = f"the objective is within {gap:.3g} of the optimal value, exactly on the data"
            return Status.SOLVED, f"{text}; the first level was hardly farther from it."
        if rounds >= solver.levels:
            return Status.BUDGET, f"after {rounds} levels relative optimality is at most {relative:.3g}."
        return None, f"relative optimality is at most {relative:.3g}."
    # No certificate (weak convexity): the paper's rule, U >= -eps_opt with |H(r_0)| replaced by its estimate.
    if opening < 0 and -_stop(solver, opening) <= upper <= 0:
        return Status.BUDGET, f"the level-set rule U >= -eps_opt holds; {_UNPROVED}"
    return (Status.BUDGET if rounds >= solver.levels else None), f"after {rounds} levels; {_UNPROVED}"


def _stop(solver: SFLS, opening: float) -> float:
    r""":math:`\epsilon_{opt} = \frac{4\theta}{6\theta - 1}\,\epsilon\,|H(r_0)|`."""
    size = max(-opening - solver.oracle_error, 0.0)
    return 4.0 * solver.theta / (6.0 * solver.theta - 1.0) * solver.tolerance * size


def judge_stream(state: SFLSState, estimate: Estimate, solver: SFLS) -> Verdict:
    """Judge a query on a stream by the oracle's bound U; nothing here is exact.

    U bounds H from above only, so it gives neither a lower bound on the optimal value nor a proof of optimality: the
    certificate's lower bound stays at minus infinity, and a run that ends by the paper's rule ends without that claim.
    After a search the objective is estimated from up to 20,000 points read ahead; the next query goes back to where the
    search ended, for which the source opens its points again.
    """
    runs = state.active
    searching = bool(np.isinf(state.level[runs]).any())
    level, first, opening = state.level[runs].copy(), state.first[runs].copy(), state.opening[runs].copy()
    anchor, x = state.anchor[runs], state.x[runs]
    objective, constraints, lower = state.objective[runs], state.constraints[runs], state.lower[runs]
    upper = np.asarray(estimate.upper, dtype=float)
    values = np.asarray(estimate.values, dtype=float)
    margins = values if searching else values[:, 1:]
    violation = margins.max(axis=1)
    exhausted = estimate.exhausted

    status: list[Status | None] = []
    reason: list[str] = []
    levels = state.rounds - state.searched
    hit = violation < 0
    if searching:
        objective = _objective_estimate(state, estimate)
        hit &= np.isfinite(objective)
        level = first = np.where(hit, objective + solver.slack, level)
        constraints = margins
        anchor, x = choose(hit, estimate.x, anchor), estimate.x
    else:
        opening = np.where(np.isnan(opening), upper, opening)
        better = np.where(constraints.max(axis=1) <= 0, (violation <= 0) & (values[:, 0] + level < objective), True)
        x = choose(better, estimate.x, x)
        objective = np.where(better, values[:, 0] + level, objective)
        constraints = np.where(better[:, None], margins, constraints)
        level = np.where(upper < 0, level + upper / (2.0 * solver.theta), level)
    for i, j in enumerate(runs):
        verdict: tuple[Status | None, str]
        if estimate.failure[i] is not None:
            verdict = Status.DIVERGED, f"{estimate.failure[i]} of query {state.rounds[j]}."
        elif searching:
            verdict = _stream_search(bool(hit[i]), violation[i], exhausted, int(state.rounds[j]), solver.searches)
        elif violation[i] <= 0 and upper[i] >= -_stop(solver, opening[i]):
            share_left = max(-upper[i], 0.0) / max(-opening[i], 1e-300)
            text = f"the level-set rule U >= -eps_opt holds, U being {share_left:.3g} of its first value; this"
            verdict = Status.BUDGET, f"{text} proves no optimality on a stream."
        elif exhausted or levels[j] >= solver.levels:
            verdict = Status.BUDGET, _ENDED if exhausted else f"after {levels[j]} levels; feasible by estimate."
        else:
            verdict = None, f"after {levels[j]} levels."
        status.append(verdict[0])
        reason.append(verdict[1])
    rows = _rows(
        state,
        estimate,
        objective=objective,
        violation=constraints.max(axis=1),
        estimate_violation=violation,
        lower=lower,
    )
    return Verdict(level, anchor, first, x, objective, constraints, lower, opening, status, reason, rows)


def _stream_search(
    hit: bool, violation: float, exhausted: bool, rounds: int, searches: int
) -> tuple[Status | None, str]:
    if hit:
        return (Status.BUDGET, _ENDED) if exhausted else (None, "a strictly feasible point was found, by estimate.")
    if exhausted or rounds >= searches:
        return Status.NOT_STRICTLY_FEASIBLE, f"the least violation found is {violation:.6g}."
    return None, "looking for a strictly feasible point."


def _objective_estimate(state: SFLSState, estimate: Estimate) -> Any:
    """Estimate the objective at the points found from the next samples of the stream, which are not used up.

    Where the stream has ended there are none, and the samples of the search itself serve, read once more.
    """
    runs = state.active
    problem = state.problem.take(runs)
    question = problem.at_level(np.zeros(runs.size))
    begun = state.positions[int(state.rounds[runs[0]]) - 1]
    F: Any = 0.0
    G: Any = 0.0
    count = 0
    for position, steps, size in ((estimate.next.position, 200, 100), (begun, 200, 100), (begun, 100, 1)):
        for batch in problem.data.draw(position, steps, size)[0]:
            found = question.family.evaluate(estimate.x, batch)
            F, G, count = F + found.F, G + found.G, count + 1
        if count:
            break
    else:
        return np.full(runs.size, np.inf)
    return np.asarray(to_numpy(question.dual().support(F / count, G / count)), dtype=np.float64)[:, 0]
