"""Print the numbers on a9a and loanapp that the pages of theory quote.

Run as ``python docs/figures/a9a.py SECTION`` with one or several of exact, scan, sides, generator, upper, levels,
together, race, or all of them without a word. The data set a9a must be at hand (``minmaxcon data`` says where it is
looked for), and the extra ``reference`` installed. The exact solutions take some seconds each. ``race`` compares with
the version whose folder the environment variable OLDER names, if it does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.reference import solve_exact

METRICS = ("group", "inter_group", "intra_group")
KAPPAS = {"group": (0.1, 0.2, 0.5, 1.0), "inter_group": (0.2, 0.5), "intra_group": (0.2, 0.5)}


def load(metric: str, kappa: Any = 0.2, data: str = "a9a") -> mm.MinMaxProblem:
    """Return fair AUC with radius 10, c1 = 1/2 and c2 = 1."""
    return mm.load_problem("fair_auc", data=data, metric=metric, kappa=kappa)


def measured(problem: mm.MinMaxProblem, x: Any) -> str:
    """Return AUC and true gap on both parts."""
    found = mm.plugin("fair_auc").evaluate(problem, x)
    parts = ((name, found[name]) for name in ("train", "test"))
    return ", ".join(f"{name} AUC {part['auc']:.3f} true gap {part['auc_gap']:.3f}" for name, part in parts)


def exact() -> None:
    """Print the exact optimum; a constraint without a multiplier is inactive."""
    for metric, kappas in KAPPAS.items():
        for kappa in kappas:
            found = solve_exact(load(metric, kappa))
            active = "" if found.multipliers.max() > 1e-6 else " (inactive)"
            print(f"{metric}, kappa {kappa:g}: f* = {found.objective:.4f}{active}")


def scan() -> None:
    """Print the true gap of the exact optimum for the intra-group metric as kappa falls."""
    for kappa in (2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.005):
        problem = load("intra_group", kappa)
        print(f"intra_group, kappa {kappa:g}: {measured(problem, solve_exact(problem).x)}")


def sides() -> None:
    """Print, for bounds of the same mean .5, the pair whose exact optimum has the smallest true training gap."""
    for metric in METRICS:
        problem, best = load(metric), (np.inf, "")
        for shift in np.linspace(-0.4, 0.4, 17):
            changed = problem.with_bounds(1.5 + shift, 1.5 - shift)
            x = solve_exact(changed).x
            gap = mm.plugin("fair_auc").evaluate(problem, x)["train"]["auc_gap"]
            best = min(best, (gap, f"{metric}, kappas {0.5 + shift:.2f} and {0.5 - shift:.2f}: {measured(problem, x)}"))
        print(best[1])


def generator() -> None:
    """Print the entropy weight K of the theorem."""
    for metric in METRICS:
        dual: Any = load(metric).at_level(0.0).dual("theorem")
        print(f"{metric}: K = {dual.entropy_weight:.0f}")


def upper() -> None:
    """Print how often U is below the exact value of the point that it came with, near the end of a solve."""
    problem = load("inter_group", 0.1, "loanapp")
    solution = mm.solve(problem, mm.SFLS(), seed=0)
    level = problem.at_level(solution.objective)
    below, excess = 0, 0.0
    for seed in range(100):
        start = mm.Start(solution.x[None], None, mm.Position.start(np.random.default_rng(seed)))
        found = mm.SMD().query(level, start)
        value = float((level.values(problem.family.refine(found.x, problem.data)) - level.bounds).max())
        below, excess = below + (found.upper[0] < value), max(excess, value - found.upper[0])
    print(f"loanapp, inter_group, kappa .1: U below P in {below} of 100 queries, by up to {excess:.4f}")


def levels() -> None:
    """Print how near the lower bound is to the exact optimum after nine levels."""
    for metric in METRICS:
        problem = load(metric)
        found = mm.solve(problem, mm.SFLS(levels=9, tolerance=1e-6), seed=0).certificate
        print(f"{metric}, kappa .2: f* - lower = {solve_exact(problem).objective - found.lower:.1e} after 9 levels")


def together() -> None:
    """Print what twelve bounds in one solve reach, and the steps and levels that it takes."""
    kappas = np.round(np.geomspace(0.05, 1.0, 12), 3).tolist()
    solution = mm.solve(load("inter_group", kappas), mm.SFLS(), seed=0)
    reached = [c.gap / (0.5 - c.lower) for c in solution.certificate]
    shown = ", ".join(f"{kappa:g}: {share:.2%}" for kappa, share in zip(kappas, reached, strict=True))
    print(f"relative optimality at most {shown}")
    print(f"{solution.steps} steps in {int(solution.trace['level'].max()) + 1} levels")


_RACER = """
import json, statistics, sys, time, warnings
import minmaxcon as mm

optima, kappas = json.loads(sys.argv[1])

def seconds(metric, kappa, seed, optimum):
    problem = mm.load_problem("fair_auc", data="a9a", metric=metric, kappa=kappa)
    began = time.process_time()

    def near(progress):  # within 1% of the optimum, and of what each run itself proves where that is not known
        now, outcome = time.process_time(), progress.outcome
        lower = outcome.lower if optimum is None else optimum
        share = (outcome.objective - lower) / abs(0.5 - lower)  # no number where nothing is proved yet
        done = (share <= 0.01) & (outcome.constraints.max(axis=1) <= 0)
        took.append(now - began - sum(rests))
        rests.append(time.process_time() - now)
        return bool(done.all())

    took, rests = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mm.solve(problem, seed=seed, callbacks=[near])
    return took[-1]

def median(*asked):
    return statistics.median(seconds(*asked[:2], seed, asked[2]) for seed in range(3))

found = {metric: median(metric, 0.2, optimum) for metric, optimum in optima.items()}
if kappas:
    for metric in optima:
        found[f"{metric}, one bound"] = median(metric, [0.2], None)
        found[f"{metric}, twelve bounds"] = median(metric, kappas, None)
print(json.dumps(found))
"""


def race() -> None:
    """Print processor seconds to 1% of the optimum without a setting, beside an older version, and of twelve bounds."""
    optima = {metric: float(solve_exact(load(metric)).objective) for metric in METRICS}
    kappas = np.round(np.geomspace(0.05, 1.0, 12), 3).tolist()

    def timed(folder: Path | None, several: list[float]) -> dict[str, float]:
        paths = [] if folder is None else [str(folder), str(folder / "problems")]
        path = os.pathsep.join([*paths, *filter(None, [os.environ.get("PYTHONPATH")])])
        asked = [sys.executable, "-P", "-c", _RACER, json.dumps([optima, several])]
        run = subprocess.run(
            asked, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True, check=True
        )
        found: dict[str, float] = json.loads(run.stdout)
        return found

    now = timed(None, kappas)
    older = timed(Path(os.environ["OLDER"]), []) if "OLDER" in os.environ else {}
    for name, seconds in now.items():
        before = f", the older version {older[name]:.2f} s: {older[name] / seconds:.1f} times" if name in older else ""
        print(f"{name}: {seconds:.2f} s{before}")
    for metric in METRICS:
        ratio = now[f"{metric}, twelve bounds"] / now[f"{metric}, one bound"]
        print(f"{metric}: twelve bounds in one solve take {ratio:.2f} times one bound")


SECTIONS = {part.__name__: part for part in (exact, scan, sides, generator, upper, levels, together, race)}

if __name__ == "__main__":
    for section in sys.argv[1:] or SECTIONS:
        print(f"# {section}", flush=True)
        SECTIONS[section]()
