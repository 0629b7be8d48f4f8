"""The cost of averaging over processes: ``torchrun --nproc-per-node=2 docs/figures/all_reduce.py``.

Prints the median time of one reduction, and of a step of SMD with and without averaging for growing batches, and how
many samples a second the processes take for each that one takes. The process's own processor time stands beside the
clock, which tells little on a machine that others use too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.distributed import distribute, join
from minmaxcon_problems.fair_auc import build_problem, dataset_from, resolve_metric
from minmaxcon_problems.fair_auc.labelled import LabelledData

FEATURES, ROWS, STEPS = 50, 200_000, 20


def timed(work: Callable[[], Any], times: int) -> tuple[float, float]:
    """Return the medians of clock and processor time, in microseconds."""
    found = []
    for _ in range(times):
        clock, own = time.perf_counter(), time.process_time()
        work()
        found.append((time.perf_counter() - clock, time.process_time() - own))
    clocks, owns = zip(*found, strict=True)
    return 1e6 * median(clocks), 1e6 * median(owns)


def main() -> None:
    """Measure and print."""
    processes = join()
    rng = np.random.default_rng(0)
    label, group = rng.choice([-1, 1], size=(2, ROWS))
    features = rng.normal(size=(ROWS, FEATURES)) + 0.3 * label[:, None]
    rows = LabelledData(features, label, group, tuple(f"x{k}" for k in range(FEATURES)))
    alone = build_problem(dataset_from(rows), resolve_metric("inter_group"), 0.1)
    both = distribute(alone, processes, sharded=False)
    lines = [("one reduction of 60 numbers", *timed(lambda: processes.total(np.zeros(60)), 500))]
    gains = []
    for batch in (100, 1000, 10_000, 100_000):
        oracle = mm.SMD(steps=STEPS, batch_size=batch)
        for name, problem in (("alone", alone), ("averaged", both)):
            level = problem.at_level(0.3)
            start = mm.Start(problem.start_point(1), None, mm.Position.start(np.random.default_rng(0)))

            def steps(level: Any = level, oracle: mm.Oracle = oracle, start: mm.Start = start) -> None:
                oracle.advance(oracle.begin(level, start))

            clock, own = timed(steps, 9)
            lines.append((f"a step, batch {batch:,} a process, {name}", clock / STEPS, own / STEPS))
        gains.append((batch, processes.count * lines[-2][1] / lines[-1][1]))
    if processes.leader:
        print(f"{'microseconds':44} {'clock':>8} {'processor':>10}")
        for name, clock, own in lines:
            print(f"{name:44} {clock:8.0f} {own:10.0f}")
        for batch, gain in gains:
            print(f"batch {batch:,} a process: {gain:.2f} times the samples a second of one process")
    processes.leave()


main()
