"""Measure which solver reaches a target first: the tables behind the automatic choice.

Run as ``OMP_NUM_THREADS=1 python docs/figures/choice.py``: every method below on the first example of every problem of
the gallery, and on a9a with ``--large``, until its best point is feasible and within 0.5% of :math:`r_0 - f^*` or it
has drawn a million samples (40 processor seconds on a9a). Feasibility and gap are measured on all data. ``--seeds 5``
takes other numbers of seeds than 5, ``--solvers auto,sfls`` other methods.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
import warnings
from typing import Any

import minmaxcon as mm
from minmaxcon.cli.output import table
from minmaxcon.cli.solve import load_problem
from minmaxcon.results.comparison import Optimum, exact_optimum
from minmaxcon.solvers import automatic, named_solver

TARGETS = (0.01, 0.005)
SAMPLES = 10**6
SECONDS = 40.0
FEASIBLE = 1e-9
SOLVERS = ("auto", "sfls", "sfls_mirror_prox", "sfls_variance_reduced", "conex", "switching_subgradient", "primal_dual")
METRICS = ("group", "inter_group", "intra_group")


class Watch:
    """Notes samples and processor seconds at which the best point is feasible and near the optimum."""

    def __init__(self, optimum: Optimum, samples: int, seconds: float) -> None:
        self.optimum, self.samples, self.limit = optimum, samples, seconds
        self.begun, self.away, self.rows = time.process_time(), 0.0, 0
        self.hits: dict[float, tuple[int, float]] = {}
        self.infeasible, self.seconds = 0, 0.0

    def __call__(self, progress: mm.Progress) -> bool:
        """Look at the outcome after each piece of work; the clock stands still meanwhile."""
        arrived = time.process_time()
        self.seconds = seconds = arrived - self.begun - self.away
        outcome = progress.outcome
        if len(outcome.trace) > self.rows:
            self.rows = len(outcome.trace)
            violation = float(outcome.constraints[0].max())
            self.infeasible += violation > FEASIBLE
            if violation <= FEASIBLE and self.optimum.value is not None and self.optimum.scale is not None:
                gap = (float(outcome.objective[0]) - self.optimum.value) / self.optimum.scale
                for target in TARGETS:
                    if gap <= target:
                        self.hits.setdefault(target, (int(outcome.samples), seconds))
        ended = TARGETS[-1] in self.hits or outcome.samples >= self.samples or seconds >= self.limit
        self.away += time.process_time() - arrived
        return ended


def measured(problem: mm.MinMaxProblem, optimum: Optimum, solver: str, seed: int, large: bool) -> Watch:
    """Run one solver with one seed."""
    made = automatic(problem) if solver == "auto" else named_solver(solver)
    watch = Watch(optimum, 10**9 if large else SAMPLES, SECONDS if large else math.inf)
    mm.solve(problem, made, seed=seed, callbacks=[watch])
    return watch


def cell(values: list[tuple[int, float] | None], which: int) -> str:
    """Return the median of samples or seconds, a run without a hit counted as endless."""
    found = statistics.median(math.inf if value is None else value[which] for value in values)
    if math.isinf(found):
        return "-"
    return f"{found / 1000:,.0f}k" if which == 0 else f"{found:.2f}"


def logs(hits: dict[tuple[str, str], list[Watch]], solver: str, target: float, which: int) -> float:
    """Return the sum over problems of the mean logarithm; a run without a hit counts as twice its whole effort."""
    total = 0.0
    for (_, name), watches in hits.items():
        if name == solver:
            spent = [
                watch.hits[target][which] if target in watch.hits else 2.0 * (SAMPLES, watch.seconds)[which]
                for watch in watches
            ]
            total += statistics.fmean(math.log10(max(value, 1e-3)) for value in spent)
    return total


def main() -> None:
    """Measure and print."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--seeds", type=int, default=5)
    reader.add_argument("--solvers", default=",".join(SOLVERS))
    reader.add_argument("--large", action="store_true")
    asked = reader.parse_args()
    warnings.simplefilter("ignore")
    solvers = asked.solvers.split(",")
    if asked.large:
        problems = {
            f"a9a {metric}": mm.load_problem("fair_auc", data="a9a", metric=metric, kappa=0.2) for metric in METRICS
        }
    else:
        names = [name for name in mm.plugin_names() if mm.plugin(name).examples()]
        problems = {name: load_problem(name, mm.plugin(name).examples()[0]) for name in names}
    hits: dict[tuple[str, str], list[Any]] = {}
    for label, problem in problems.items():
        optimum = exact_optimum(problem)
        for solver in solvers:
            seeds = range(asked.seeds)
            hits[label, solver] = [measured(problem, optimum, solver, seed, asked.large) for seed in seeds]
    for which, unit in enumerate(("samples", "processor seconds")):
        for target in TARGETS:
            rows = [["", *(name.removeprefix("sfls_").replace("_", " ") for name in solvers)]]
            for label in problems:
                found = {name: [watch.hits.get(target) for watch in hits[label, name]] for name in solvers}
                rows.append([label, *(cell(found[name], which) for name in solvers)])
            rows.append(["sum of logs", *(f"{logs(hits, name, target, which):.2f}" for name in solvers)])
            print(f"median {unit} to a feasible point within {100 * target:g}%\n" + table(rows))
    counts = [sum(watch.infeasible for label in problems for watch in hits[label, one]) for one in solvers]
    print("points that violate a constraint\n" + table([["", *solvers], ["", *map(str, counts)]]))


if __name__ == "__main__":
    main()
