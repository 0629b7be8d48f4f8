"""Several solvers on one problem: what each reaches by when, and whether its points are feasible on the way."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from minmaxcon.checks import number, seed_number, whole
from minmaxcon.core import MinMaxProblem, Solution, Solver, Status
from minmaxcon.errors import InvalidInput, MinMaxConError
from minmaxcon.results.compare_reference import Optimum, exact_optimum, found_optimum, measures
from minmaxcon.results.comparison import Comparison, Entry
from minmaxcon.results.records import FEASIBLE
from minmaxcon.solvers import Progress, named_solver, solve

__all__ = ["compare"]

_WHICH = "name at least one solver, such as ['sfls', 'iqrc'], or give a mapping, such as {'mine': SFLS(steps=500)}."


def compare(
    problem: MinMaxProblem,
    solvers: Sequence[str] | Mapping[str, Solver],
    *,
    seed: int = 0,
    seeds: Sequence[int] | None = None,
    samples: int | None = None,
    time_limit: float | None = None,
    reference: float | None = None,
    name: str | None = None,
    report: Callable[[str, int], Any] | None = None,
) -> Comparison:
    r"""Run several solvers on one problem under a common budget.

    Every solver has its own stopping rule beside the budget. Its clock stands still while the comparison looks at it;
    the exact passes that the method itself makes at its checkpoints count. The optimum is found, and the returned
    points are measured, outside the clock.

    Parameters
    ----------
    problem : MinMaxProblem
        A problem of one run.
    solvers : sequence of str, or mapping of str to Solver
        Names as :func:`minmaxcon.solvers.solver_names` lists them, or solvers by any name.
    seed : int
        Seed of every solve.
    seeds : sequence of int, optional
        Several seeds instead: every solver runs with each.
    samples : int, optional
        A solve ends with the piece of work in which it has drawn this many samples.
    time_limit : float, optional
        A solve ends with the piece of work in which its own time reaches this many seconds.
    reference : float, optional
        :math:`f^*` where it is known; else a conic solver finds it where the problem has a cvxpy form and cvxpy is
        installed, else the best feasible point of all solvers stands in for it, which ``optimum.source`` says.
    name : str, optional
        What the problem is called; its own name by default.
    report : callable, optional
        Called with the solver's name and the seed before each solve.

    Returns
    -------
    Comparison
        An entry for every solver and seed; a solver that does not take the problem has one with the reason.

    Raises
    ------
    UnknownName
        There is no such solver.
    InvalidInput
        An argument is out of range, or the problem has several runs.
    """
    _check(problem, report)
    if samples is not None:
        samples = whole("samples", samples)
    if time_limit is not None:
        remedy = "must be a positive and finite number of seconds; leave it out for no limit."
        time_limit = number("time_limit", time_limit, remedy, above=0.0)
    chosen = _solvers(solvers)
    every = _seeds("seed", [seed]) if seeds is None else _seeds("seeds", seeds)
    optimum = exact_optimum(problem, reference)
    entries: list[Entry] = []
    for (label, solver), one in itertools.product(chosen.items(), every):
        if report is not None:
            report(label, one)
        entries.append(_run(problem, label, solver, one, samples, time_limit))
        if entries[-1].status == str(Status.INTERRUPTED):
            break
    if optimum.source == "unknown" and problem.data.size is not None:
        bounds = [(entry.objective, entry.violation, entry.lower) for entry in entries if entry.ran]
        optimum = found_optimum(optimum, bounds, FEASIBLE)
    measured = tuple(_with_gaps(entry, optimum) for entry in entries)
    return Comparison(name or problem.name, optimum, measured, samples, time_limit)


def _check(problem: Any, report: Any) -> None:
    if not isinstance(problem, MinMaxProblem):
        raise InvalidInput("problem", problem, "must be a MinMaxProblem, such as load_problem() returns.")
    if problem.runs is not None:
        raise InvalidInput("problem", problem.name, "has several runs; give one bound, so that solvers compare.")
    if report is not None and not callable(report):
        raise InvalidInput("report", report, "must be a function of a solver's name and a seed; leave it out for none.")


def _solvers(asked: Any) -> dict[str, Solver]:
    if isinstance(asked, Mapping):
        chosen = dict(asked)
    else:
        names = list(asked) if isinstance(asked, Iterable) and not isinstance(asked, str) else [asked]
        if not all(isinstance(name, str) for name in names):
            raise InvalidInput("solvers", asked, _WHICH)
        chosen = {name: named_solver(name) for name in names}
    if not chosen:
        raise InvalidInput("solvers", asked, _WHICH)
    for name, solver in chosen.items():
        if not isinstance(solver, Solver):
            raise InvalidInput("solvers", solver, f"{name!r} must be a Solver such as SFLS().")
    return chosen


def _seeds(argument: str, asked: Any) -> list[int]:
    if not isinstance(asked, Iterable) or not (seeds := list(asked)):
        raise InvalidInput(argument, asked, "must be whole numbers of at least 0, at least one, such as range(3).")
    return list(dict.fromkeys(seed_number(argument, seed) for seed in seeds))


class _Watch:
    """A callback that notes when each row of the trace appeared, by the solver's own clock, and ends the solve."""

    def __init__(self, samples: int | None, time_limit: float | None) -> None:
        self.samples, self.time_limit = samples, time_limit
        self.seconds = self.away = 0.0
        self.path: list[dict[str, Any]] = []
        self.ended = ""

    def __call__(self, progress: Progress) -> bool:
        arrived = time.perf_counter()
        self.seconds = seconds = progress.seconds - self.away
        outcome = progress.outcome
        if not self.path:
            begun = {"objective": float(outcome.objective[0]), "violation": float(outcome.constraints[0].max())}
            self._note(begun, seconds, outcome.steps, outcome.samples)
        for row in outcome.trace[len(self.path) - 1 :]:
            self._note(row, seconds, outcome.steps, outcome.samples)
        if self.samples is not None and outcome.samples >= self.samples:
            self.ended = f"the budget of {self.samples:,} samples was used"
        elif self.time_limit is not None and seconds >= self.time_limit:
            self.ended = f"the time limit of {self.time_limit:g} s was reached"
        self.away += time.perf_counter() - arrived
        return bool(self.ended)

    def _note(self, row: Mapping[str, Any], seconds: float, steps: int, samples: int) -> None:
        """Add a row; what the method itself says of steps and samples stands, as some add several rows at once."""
        self.path.append(
            {
                "checkpoint": len(self.path),
                "seconds": seconds,
                "samples": int(row.get("samples", samples)),
                "steps": int(row.get("steps", steps)),
                "objective": float(row["objective"]),
                "violation": float(row["violation"]),
                "estimate_violation": float(row.get("estimate_violation", math.nan)),
            }
        )


def _run(
    problem: MinMaxProblem, name: str, solver: Solver, seed: int, samples: int | None, time_limit: float | None
) -> Entry:
    """Run one solver; one that does not take the problem says why."""
    watch = _Watch(samples, time_limit)
    try:
        solution = solve(problem, solver, seed=seed, callbacks=[watch])
    except MinMaxConError as refusal:
        return Entry(name, seed, "not run", str(refusal))
    objective, violation = _returned(problem, solution)
    reason = str(solution.reason)
    if watch.ended:
        reason = reason.replace("Stopped by a callback", watch.ended[0].upper() + watch.ended[1:])
    infeasible = sum(not row["violation"] <= FEASIBLE for row in watch.path[1:])
    return Entry(
        solver=name,
        seed=seed,
        status=str(solution.status),
        reason=reason,
        seconds=watch.seconds,
        samples=int(solution.samples),
        steps=int(solution.steps),
        objective=objective,
        violation=violation,
        upper=solution.certificate.upper,
        lower=solution.certificate.lower,
        checkpoints=len(watch.path) - 1,
        infeasible=infeasible,
        path=tuple(watch.path),
        settings=solution.settings.get("solver", {}),
    )


def _returned(problem: MinMaxProblem, solution: Solution) -> tuple[float, float]:
    """Return objective and largest violation of the returned point: exact on finite data."""
    if problem.data.size is None:
        return float(solution.objective), float(np.max(solution.constraints))
    return measures(problem, solution.x)


def _with_gaps(entry: Entry, optimum: Optimum) -> Entry:
    """Return the entry with its gaps, where an optimal value is known."""
    if optimum.value is None or optimum.scale is None:
        path = tuple({**row, "gap": math.nan, "relative_gap": math.nan} for row in entry.path)
        return replace(entry, path=path)
    value, scale = optimum.value, optimum.scale
    gaps = [(row, row["objective"] - value) for row in entry.path]
    path = tuple({**row, "gap": gap, "relative_gap": gap / scale} for row, gap in gaps)
    gap = entry.objective - value
    return replace(entry, path=path, gap=gap, relative_gap=gap / scale)
