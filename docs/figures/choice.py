"""Measure which solver reaches a target first: the tables behind the automatic choice.

Run as ``OMP_NUM_THREADS=1 python docs/figures/choice.py SET ...`` with one or several sets of problems, all without a
word:

``gallery``
    the first example of every problem of the gallery;
``new``
    nine more, with other data, sizes, bounds and seeds, on which no setting was ever chosen;
``large``
    data on which a pass is long: more rows x variables than the automatic choice calls small, and fair AUC on a9a, bank
    and a million rows, also *by rows*, as if its means were not known without a pass.

Every method runs until its best point is feasible and within the last target of :math:`r_0 - f^*`, or has drawn a
million samples (on large data, 8 processor seconds). Feasibility and gap are measured on all data, outside the clock.
``--seeds 5`` takes other numbers of seeds than 1, ``--solvers auto,sfls`` other methods, ``--only a9a,bank`` the
problems with such a word in their names. ``--records DIR`` keeps every run in a file and runs none again.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.cli.output import table
from minmaxcon.cli.solve import load_problem
from minmaxcon.results.comparison import Optimum, exact_optimum
from minmaxcon.solvers import automatic, ends_together, named_solver
from minmaxcon_problems.fair_auc import resolve_metric
from minmaxcon_problems.fair_auc.datasets import Dataset
from minmaxcon_problems.fair_auc.study.to_target import synthetic_rows
from minmaxcon_problems.fair_auc.surrogate.build import build_problem

SAMPLES, SECONDS = 10**6, 8.0
FEASIBLE = 1e-9
OURS = ("auto", "sfls", "sfls_mirror_prox", "sfls_variance_reduced")
RIVALS = ("primal_dual", "conex", "switching_subgradient")
METRICS = ("group", "inter_group", "intra_group")

NEW: Mapping[str, Mapping[str, Any]] = {
    "cvar_portfolio": {"assets": 12, "scenarios": 1000, "bound": 4.0, "beta": 0.8, "seed": 3},
    "fair_auc": {"data": "twoyear", "metric": "intra_group", "kappa": 0.05},
    "fair_regression": {"bound": 0.01, "known": 0.8, "seed": 3},
    "group_dro": {"slack": 0.02, "temperature": 0.02, "seed": 3},
    "group_parity": {"bound": 0.15, "seed": 3},
    "neyman_pearson": {"data": "iris", "bound": 0.6, "seed": 3},
    "robust_diet": {"samples": 500, "need": 0.8, "seed": 3},
    "toy": {"samples": 2000, "bound": 0.5, "center": 1.0, "noise": 3.0, "seed": 3},
    "worst_group": {"bound": 0.6, "seed": 3},
}
LARGE: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "cvar_portfolio, 65,000": ("cvar_portfolio", {"scenarios": 65_000, "seed": 1}),
    "robust_diet, 20,000": ("robust_diet", {"samples": 20_000, "seed": 1}),
    "toy, 2 million": ("toy", {"samples": 2_000_000, "seed": 1}),
    **{f"a9a {one}": ("fair_auc", {"data": "a9a", "metric": one, "kappa": 0.2}) for one in METRICS},
    **{f"bank {one}": ("fair_auc", {"data": "bank", "metric": one, "kappa": 0.2}) for one in METRICS},
}
BY_ROWS = ("a9a group", "a9a inter_group", "bank group", "bank inter_group")


@dataclass(frozen=True)
class Run:
    """One run: samples and processor seconds at the first feasible point within each target, and what it took in all.

    ``infeasible`` counts the points on the way that violate a constraint.
    """

    hits: dict[float, tuple[int, float]]
    infeasible: int
    samples: int
    seconds: float


@dataclass
class Watch:
    """A callback that notes when the best point is first within each target, and ends the solve at the last one."""

    optimum: Optimum
    targets: tuple[float, ...]
    samples: int
    limit: float
    begun: float = field(default_factory=time.process_time)
    away: float = 0.0
    rows: int = 0
    infeasible: int = 0
    drawn: int = 0
    seconds: float = 0.0
    hits: dict[float, tuple[int, float]] = field(default_factory=dict)

    def __call__(self, progress: mm.Progress) -> bool:
        """Look at the outcome after each piece of work; the clock stands still meanwhile."""
        arrived = time.process_time()
        self.seconds = seconds = arrived - self.begun - self.away
        outcome = progress.outcome
        self.drawn = int(outcome.samples)
        if len(outcome.trace) > self.rows:
            self.rows = len(outcome.trace)
            violation = float(outcome.constraints[0].max())
            self.infeasible += violation > FEASIBLE
            if violation <= FEASIBLE and self.optimum.value is not None and self.optimum.scale is not None:
                gap = (float(outcome.objective[0]) - self.optimum.value) / self.optimum.scale
                for target in self.targets:
                    if gap <= target:
                        self.hits.setdefault(target, (self.drawn, seconds))
        ended = self.targets[-1] in self.hits or self.drawn >= self.samples or seconds >= self.limit
        self.away += time.process_time() - arrived
        return ended


def measured(
    problem: mm.MinMaxProblem,
    optimum: Optimum,
    solver: str,
    seed: int,
    *,
    targets: tuple[float, ...] = (0.01, 0.005),
    samples: int = SAMPLES,
    seconds: float = math.inf,
) -> Run:
    """Run one solver with one seed."""
    began = time.process_time()
    made = automatic(problem) if solver == "auto" else named_solver(solver)
    watch = Watch(optimum, targets, samples, seconds, began)
    with ends_together(all_or_nothing=True):  # a run that Ctrl-C cuts short is no record
        mm.solve(problem, made, seed=seed, callbacks=[watch])
    return Run(watch.hits, watch.infeasible, watch.drawn, watch.seconds)


@dataclass(frozen=True)
class Set:
    """Problems by what the tables call them, and when a run on them ends."""

    problems: dict[str, Callable[[], mm.MinMaxProblem]]
    solvers: tuple[str, ...]
    targets: tuple[float, ...] = (0.01, 0.005)
    samples: int = SAMPLES
    seconds: float = math.inf


def synthetic() -> mm.MinMaxProblem:
    """Return linear fair AUC on a million rows of 20 features."""
    rows = synthetic_rows(1_000_000, 20, 0)
    return build_problem(
        Dataset("synthetic", rows, None, rows.select(np.arange(20))), resolve_metric("inter_group"), 0.2
    )


def by_rows(problem: mm.MinMaxProblem) -> mm.MinMaxProblem:
    """Return the problem as one whose means no family knows."""

    def blind(family: Any) -> Any:
        other = copy.copy(family)
        other.knows_means = lambda _: False
        return other

    return problem.over(problem.data, blind)


def problem_set(name: str) -> Set:
    """Return a set by name."""
    if name == "large":
        made = {
            label: lambda one=one, options=options: load_problem(one, options)
            for label, (one, options) in LARGE.items()
        }
        blind = {f"{one}, by rows": lambda load=made[one]: by_rows(load()) for one in BY_ROWS}
        return Set({**made, "synthetic": synthetic, **blind}, OURS, samples=10**10, seconds=SECONDS)
    names = [one for one in mm.plugin_names() if mm.plugin(one).examples() and one in NEW]
    options = NEW if name == "new" else {one: mm.plugin(one).examples()[0] for one in names}
    return Set({one: lambda one=one: load_problem(one, options[one]) for one in names}, (*OURS[:2], OURS[3], *RIVALS))


def runs(
    name: str, chosen: Set, solvers: Iterable[str], seeds: int, folder: Path | None
) -> dict[tuple[str, str], list[Run]]:
    """Return all runs of a set; those that are in the folder are read."""
    found: dict[tuple[str, str], list[Run]] = {}
    for label, load in chosen.problems.items():

        @cache
        def optimum(label: str = label, load: Callable[[], mm.MinMaxProblem] = load) -> Optimum:
            kept = None if folder is None else folder / f"{name}, {label}, optimum.json"
            if kept is not None and kept.exists():
                return Optimum(**json.loads(kept.read_text()))
            best = exact_optimum(load())
            if kept is not None:
                kept.write_text(json.dumps(asdict(best)) + "\n")
            return best

        for solver in solvers:
            for seed in range(seeds):
                file = None if folder is None else folder / f"{name}, {label}, {solver}, {seed}.json"
                if file is not None and file.exists():
                    raw = json.loads(file.read_text())
                    run = Run(**{**raw, "hits": {float(at): tuple(hit) for at, hit in raw["hits"].items()}})
                else:
                    limits = {"targets": chosen.targets, "samples": chosen.samples, "seconds": chosen.seconds}
                    run = measured(load(), optimum(), solver, seed, **limits)  # no run shares what another computed
                    if file is not None:
                        file.write_text(json.dumps(asdict(run)) + "\n")
                found.setdefault((label, solver), []).append(run)
    return found


def median(found: list[Run], target: float, which: int) -> float:
    """Return the median of samples or seconds, a run without a hit counted as endless."""
    return statistics.median(run.hits[target][which] if target in run.hits else math.inf for run in found)


def cell(value: float, which: int) -> str:
    """Return a median in words."""
    if math.isinf(value):
        return "-"
    return f"{value / 1000:,.0f}k" if which == 0 else f"{value:.2f}"


def log(found: list[Run], target: float, which: int) -> float:
    """Return the mean logarithm of the runs; one without a hit counts as twice its whole effort."""
    spent = [
        run.hits[target][which] if target in run.hits else 2.0 * (run.samples, run.seconds)[which] for run in found
    ]
    return statistics.fmean(math.log10(max(value, 1e-3)) for value in spent)


def places(found: dict[tuple[str, str], list[Run]], labels: list[str], target: float, which: int) -> str:
    """Return on how many problems the automatic choice is ahead of every rival, and how far behind elsewhere."""
    ratios = {}
    for label in labels:
        rivals = min(median(found[label, one], target, which) for one in RIVALS if (label, one) in found)
        own = median(found[label, "auto"], target, which)
        ratios[label] = math.inf if math.isinf(own) else own / rivals
    behind = ", ".join(f"{label} {ratio:.2f} times" for label, ratio in ratios.items() if ratio > 1)
    ahead = f"{sum(ratio <= 1 for ratio in ratios.values())} of {len(ratios)}"
    return f"auto is ahead of every rival on {ahead}; behind: {behind or 'nowhere'}\n"


def show(name: str, chosen: Set, found: dict[tuple[str, str], list[Run]], solvers: list[str], seeds: int) -> None:
    """Print the tables of a set."""
    labels = list(chosen.problems)
    for which, unit in enumerate(("samples", "processor seconds")):
        for target in chosen.targets:
            names = [one.removeprefix("sfls_").removesuffix("_subgradient").replace("_", " ") for one in solvers]
            rows = [["", *names]]
            rows += [
                [label, *(cell(median(found[label, one], target, which), which) for one in solvers)] for label in labels
            ]
            totals = [sum(log(found[label, one], target, which) for label in labels) for one in solvers]
            rows.append(["sum of logs", *(f"{total:.2f}" for total in totals)])
            print(f"{name}: median {unit} of {seeds} to a feasible point within {100 * target:g}%\n" + table(rows))
            if "auto" in solvers and set(RIVALS) & set(solvers):
                print(places(found, labels, target, which))
    counts = [sum(run.infeasible for label in labels for run in found[label, one]) for one in solvers]
    print(f"{name}: points that violate a constraint\n" + table([["", *solvers], ["", *map(str, counts)]]))


def main() -> None:
    """Measure and print."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("sets", nargs="*", default=["gallery", "new", "large"])
    reader.add_argument("--seeds", type=int, default=1)
    reader.add_argument("--solvers")
    reader.add_argument("--only", default="")
    reader.add_argument("--records", type=Path)
    asked = reader.parse_args()
    if unknown := set(asked.sets) - {"gallery", "new", "large"}:
        reader.error(f"there is no set {unknown.pop()!r}")
    warnings.simplefilter("ignore")
    if asked.records is not None:
        asked.records.mkdir(parents=True, exist_ok=True)
    for name in asked.sets:
        chosen = problem_set(name)
        words = asked.only.split(",")
        some = {label: load for label, load in chosen.problems.items() if any(word in label for word in words)}
        chosen = replace(chosen, problems=some)
        solvers = asked.solvers.split(",") if asked.solvers else list(chosen.solvers)
        found = runs(name, chosen, solvers, asked.seeds, asked.records)
        show(name, chosen, found, solvers, asked.seeds)


if __name__ == "__main__":
    main()
