"""Time and memory of many rows: ``python docs/figures/large.py ROWS FOLDER``, and the same with ``fit`` or ``target``.

The first writes a Parquet file of ROWS x 50 float32 to FOLDER, solves it from disk by the command line and fits the
classifier to it, each in a process of its own, and prints processor time and the largest resident memory of each. The
second fits the classifier to 10^6 x 30 numbers in memory, and prints what the fit itself took. The third solves linear
fair AUC to 1% of r_0 - f* on 10^5 to 10^7 x 20 numbers in memory, and prints what each part of it took.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import minmaxcon as mm
from minmaxcon.cli.output import table
from minmaxcon_problems.fair_auc import build_problem, dataset_from, resolve_metric
from minmaxcon_problems.fair_auc.study.to_target import synthetic_rows

FEATURES, BLOCK = 50, 100_000
FIT = """
import sys
from minmaxcon_problems.fair_auc import FairAUCClassifier
made = FairAUCClassifier("inter_group", max_gap=0.02, random_state=0).fit(sys.argv[1], "y", sensitive_features="g")
print(made.status_, made.gap_, made.auc_)
"""
FIT_IN_MEMORY = """
import resource, time
import numpy as np
from minmaxcon_problems.fair_auc import FairAUCClassifier
rng = np.random.default_rng(0)
X, group = rng.normal(size=(1_000_000, 30)), rng.random(1_000_000) < 0.3
direction = rng.normal(size=30) / 30**0.5
X[:, 0] += group
label = (X @ direction + 1.2 * group + rng.normal(size=len(X)) > 0.2).astype(int)
made = FairAUCClassifier("inter_group", max_gap=0.02, random_state=0)
made.fit(X[:1000], label[:1000], sensitive_features=group[:1000])  # imports
before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
made.fit(X, label, sensitive_features=group)
seconds, after = time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(made.status_, made.gap_, made.auc_)
beside = f"{(after - before) / 1000:.0f} MB beside {X.nbytes / 1e6:.0f} MB of data"
print(f"fit in memory: {seconds:.1f} s of processor time, {beside}")
"""


def write(path: Path, rows: int) -> None:
    """Write rows whose groups differ in features and labels."""
    rng = np.random.default_rng(0)
    turn, direction = np.linalg.qr(rng.normal(size=(FEATURES, FEATURES)))[0], rng.normal(size=FEATURES) / FEATURES**0.5
    names = [f"x{k}" for k in range(FEATURES)]
    schema = pa.schema([*((name, pa.float32()) for name in names), ("y", pa.int8()), ("g", pa.string())])
    with pq.ParquetWriter(path, schema, use_dictionary=["g", "y"], compression="none") as file:
        for begin in range(0, rows, BLOCK):
            size = min(BLOCK, rows - begin)
            group = rng.random(size) < 0.3
            points = (rng.normal(size=(size, FEATURES)) @ turn * np.linspace(0.5, 2, FEATURES)).astype(np.float32)
            points[:, 0] += group
            points[:, 1] -= 0.7 * group
            label = (points @ direction + 1.2 * group + rng.normal(size=size) > 0.2).astype(np.int8)
            columns = [*points.T.copy(), label, np.where(group, "f", "m")]
            file.write_table(pa.table(columns, schema=schema), row_group_size=1_000_000)


def measured(name: str, command: list[str]) -> None:
    """Run a command, and print what it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{name}: {seconds:.0f} s of processor time, at most {after.ru_maxrss / 1000:.0f} MB", flush=True)


def to_target(rows: int) -> list[float]:
    """Return processor seconds of building, of the first pass, of the way to 1%, and of checking what is claimed.

    The first pass keeps the moments of the rows for all solves of a problem, so that a second solve lacks only it.
    """
    data, clock, seen = synthetic_rows(rows, 20, 0), time.process_time, list[float]()
    begun = clock()
    problem = build_problem(dataset_from(data), resolve_metric("inter_group"), 0.2)
    built = clock() - begun
    solver = mm.SFLS(oracle=mm.MirrorProx(), tolerance=0.01)
    ways = []
    for _ in range(4):
        begun = clock()
        solution = mm.solve(problem, solver, callbacks=[lambda _: bool(seen.append(clock()))])
        if solution.status is not mm.Status.SOLVED:
            sys.exit(f"not solved: {solution.reason}")
        ways.append((seen[-1] - begun, clock() - seen[-1]))
    way, check = np.median(ways[1:], axis=0)
    return [built, ways[0][0] - way, way, check]


if __name__ == "__main__":
    if sys.argv[1:] == ["target"]:
        sizes = [10**5, 10**6, 10**7]
        lines = [[f"{rows:,}", *(f"{seconds:.2f}" for seconds in to_target(rows))] for rows in sizes]
        print(table([["rows", "s to build", "s first pass", "s to 1%", "s to check"], *lines]), end="")
        sys.exit()
    if sys.argv[1:] == ["fit"]:
        measured("its process", ["-W", "ignore", "-c", FIT_IN_MEMORY])
        sys.exit()
    place = Path(sys.argv[2]) / "large.parquet"
    write(place, int(float(sys.argv[1])))
    measured("fit", ["-c", FIT, str(place)])
    options = [
        "--label",
        "y",
        "--sensitive",
        "g",
        "--kappa",
        "0.1",
        "--dtype",
        "float32",
        "--solver",
        "sfls",
        "--quiet",
    ]
    for memory in sys.argv[3:] or ["500MB"]:
        words = ["-m", "minmaxcon", "solve", "fair_auc", "--data", str(place), *options, "--memory", memory]
        measured(f"solve with {memory}", words)
    place.unlink()
