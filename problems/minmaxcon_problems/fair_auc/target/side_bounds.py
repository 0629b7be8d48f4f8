r"""One bound for each side of the quadratic surrogate, chosen by the true gap that it leads to.

Bounds :math:`1 + \kappa_1, 1 + \kappa_2` with :math:`\kappa_{1,2} = \kappa(1 \pm s)` shift the surrogate's middle by
:math:`\beta = (\kappa_1 - \kappa_2)/(4c_1c_2)`, which undoes the bias of the quadratic loss. The pairs of a grid are
the runs of one solve; a second solve interpolates in s to where the true gap meets each target.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon import metrics
from minmaxcon_problems.fair_auc.datasets import Dataset
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.metrics import single_metric
from minmaxcon_problems.fair_auc.surrogate.build import build_problem

from .problem import NO_TARGET, Target, timed_out

__all__ = ["side_problem", "solve_side_bounds"]

_KAPPAS = (0.03, 0.08, 0.2, 0.4, 0.8)
_SHIFTS = (-0.95, -0.6, -0.3, 0.0, 0.3, 0.6, 0.95)
_INACTIVE = 20.0
_STEPS = 2000


def solve_side_bounds(
    rows: LabelledData, target: Target, goals: Any, *, start: Any = None, callbacks: Sequence[Any] = ()
) -> mm.Solution:
    """Return one run for each goal: the pair of bounds of best AUC whose true gap on ``rows`` meets it.

    Goals (T,) are largest true gaps, in the place of the target's own; 1 and more stand for none. Where no pair meets a
    goal, its run is the one of the least gap, with status ``OUT_OF_REACH``. The time limit of the target, of the method
    "bounds", is for both solves together; both start from the parameters ``start`` (d,), if given, and call the
    callbacks, which are as for :func:`minmaxcon.solve`. Raises DataError where a subset of the metric, or a class, is
    empty.
    """
    metric, model, target = single_metric(target.metric), target.model_for(rows), target.started()
    masks = metric.masks_of(rows.label, rows.group, rows.name)
    problem = side_problem(rows, target)
    rest = problem.primal.dimension - model.dimension
    x0 = None if start is None else np.concatenate([np.asarray(start, dtype=np.float64), np.zeros(rest)])
    solver = mm.SFLS(oracle=mm.SMD(steps=_STEPS), levels=12)
    kappa, shift = (grid.ravel() for grid in np.meshgrid(_KAPPAS, _SHIFTS, indexing="ij"))
    kappa, shift = np.append(kappa, _INACTIVE), np.append(shift, 0.0)

    def solved(kappas: Any, shifts: Any) -> tuple[mm.Solution, Any, Any]:
        sides = problem.with_bounds(1.0 + kappas * (1.0 + shifts), 1.0 + kappas * (1.0 - shifts))
        found = mm.solve(sides, solver, seed=target.seed, x0=x0, time_limit=target.left, callbacks=callbacks)
        scores = np.stack([model.predict(x[: model.dimension], rows.features) for x in found.x])
        return found, _signed_gap(scores, masks), metrics.auc(scores[:, rows.label > 0], scores[:, rows.label < 0])

    first, gap, accuracy = solved(kappa, shift)
    middle_kappa, middle_shift = _interpolated(kappa[:-1], shift[:-1], gap[:-1], goals)
    second, second_gap, second_accuracy = solved(middle_kappa, middle_shift)
    gap, accuracy = np.abs(np.concatenate([gap, second_gap])), np.concatenate([accuracy, second_accuracy])
    feasible = np.concatenate([first.feasible, second.feasible])
    chosen, reach = [], []
    for goal in goals:
        meets = np.flatnonzero((gap <= goal) & feasible)
        reach.append(meets.size > 0)
        best = meets[np.argmax(accuracy[meets])] if meets.size else np.argmin(np.where(feasible, gap, np.inf))
        chosen.append(int(best))

    def pick(name: str) -> Any:
        return np.concatenate([np.asarray(getattr(first, name)), np.asarray(getattr(second, name))])[chosen]

    parts = (*first.certificate, *second.certificate), (*first.reason, *second.reason), (*first.status, *second.status)
    certificates, reasons, statuses = parts
    missed = "The time limit was reached." if timed_out(first) or timed_out(second) else "no pair of bounds meets it."
    return replace(
        second,
        x=pick("x"),
        objective=pick("objective"),
        constraints=np.stack([gap[j] - goals[i] for i, j in enumerate(chosen)])[:, None],
        status=tuple(statuses[j] if reach[i] else mm.Status.OUT_OF_REACH for i, j in enumerate(chosen)),
        certificate=tuple(certificates[j] for j in chosen),
        evidence=None,  # multipliers prove bounds of the surrogate, and what is returned is about the measure
        reason=tuple(reasons[j] if reach[i] else missed for i, j in enumerate(chosen)),
        trace=_trace((first, second), chosen),
        steps=first.steps + second.steps,
        samples=first.samples + second.samples,
        seconds=first.seconds + second.seconds,
        settings={**second.settings, "time_limit": target.time_limit},
    )


def side_problem(rows: LabelledData, target: Target) -> mm.MinMaxProblem:
    """Return the surrogate's problem whose bounds are chosen."""
    dataset, metric = Dataset(rows.name, rows, None, rows), single_metric(target.metric)
    return build_problem(dataset, metric, 1.0, radius=target.radius, model=target.model_for(rows))


def _trace(solutions: Sequence[mm.Solution], chosen: Sequence[int]) -> dict[str, Any]:
    """Return the rows of the chosen runs, counted through both solutions, as those of runs 0, 1, ..."""
    runs = [(solution, run) for solution in solutions for run in range(solution.runs or 1)]
    parts = []
    for place, (solution, run) in enumerate(runs[j] for j in chosen):
        mine = np.asarray(solution.trace.get("run", ())) == run  # no row before the first level ends
        rows = {name: np.asarray(column)[mine] for name, column in solution.trace.items()}
        if rows:
            parts.append({**rows, "run": np.full(int(mine.sum()), place)})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}


def _signed_gap(scores: Any, masks: Any) -> Any:
    first, second = (metrics.auc(scores[:, masks[:, g]], scores[:, masks[:, g + 1]]) for g in (0, 2))
    return first - second


def _interpolated(kappa: Any, shift: Any, gap: Any, goals: Any) -> tuple[Any, Any]:
    """Return pairs where the signed gap, linear in s between neighbours, is just inside each side of each goal."""
    found: set[tuple[float, float]] = set()
    for level in np.unique(kappa):
        mine = np.flatnonzero(kappa == level)
        for left, right in itertools.pairwise(mine):
            for limit in goals[goals < NO_TARGET]:
                for goal in (0.97 * limit, 0.0, -0.97 * limit):
                    low, high = sorted((gap[left], gap[right]))
                    if low <= goal <= high and high > low:
                        part = (goal - gap[left]) / (gap[right] - gap[left])
                        found.add((float(level), round(float(shift[left] + part * (shift[right] - shift[left])), 6)))
    pairs = sorted(found) or [(float(kappa[0]), 0.0)]
    return np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
