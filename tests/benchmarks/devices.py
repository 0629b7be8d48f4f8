"""Run-steps a second of mirror descent on fair AUC, by number of runs, model, engine and device.

``python tests/benchmarks/devices.py --engine jax --device cuda --rows 1000000`` prints one line for each.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import minmaxcon as mm
from minmaxcon_problems.fair_auc.study.bench import _synthetic


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="jax", choices=["numpy", "torch", "jax"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--runs", default="1,8,64,512,4096,8192")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    given = parser.parse_args()
    labelled = _synthetic(given.rows, given.features, 0)
    sys.stdout.write("model    runs  us a step  run-steps a second  s to the first block\n")
    for model in ("linear", "mlp"):
        known = mm.load_problem("fair_auc", data=labelled, kappa=0.1, model=model, dtype="float32", engine=given.engine)
        rows = {name: np.asarray(mm.arrays.to_numpy(values)) for name, values in known.data.arrays.items()}
        data = mm.Finite(rows, engine=given.engine, device=given.device, dtype="float32")
        for runs in map(int, given.runs.split(",")):
            limits = [one.with_bound(np.linspace(1.05, 2.0, runs)) for one in known.constraints]
            problem = mm.MinMaxProblem(known.objective, limits, known.primal, data, start=known.start)
            oracle = mm.SMD(steps=10**9, block=max(1, min(100, 6400 // runs)))
            start = mm.Start(problem.start_point(runs), None, mm.Position.start(np.random.default_rng(0)))
            begin = time.perf_counter()
            state = oracle.advance(oracle.begin(problem.at_level(np.full(runs, 0.5)), start))
            first, begin, before = time.perf_counter() - begin, time.perf_counter(), state.steps
            while time.perf_counter() - begin < given.seconds:
                state = oracle.advance(state)
            each = (time.perf_counter() - begin) / (state.steps - before)
            line = f"{model:<7}{runs:>6,}{1e6 * each:>11,.1f}{runs / each:>20,.0f}{first:>22.2f}"
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
