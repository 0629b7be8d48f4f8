"""What a sweep gains by a second worker: ``python docs/figures/sweep.py [SEEDS]``, three times in turn.

The configurations are those of ``minmaxcon reproduce fair_auc`` on the data set loanapp, the metric group and linear
models, of the method max_gap with 10 seeds. They run in this process, in two processes of joblib (loky), and on two
workers of Dask, of a cluster that is started on this machine and whose start is counted. The results are compared.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from statistics import median

from minmaxcon.results import plain
from minmaxcon_problems.fair_auc.study.report import plan
from minmaxcon_problems.fair_auc.study.study import FairAUCStudy
from minmaxcon_problems.fair_auc.study.sweep import run_sweep

WAYS = {"one process": (1, "loky"), "two processes": (2, "loky"), "two workers of Dask": (2, "dask")}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="?", type=int, default=10, help="configurations of the sweep")
    parser.add_argument("--times", type=int, default=3, help="turns, of which the median counts")
    asked = parser.parse_args()
    study = FairAUCStudy()
    only = {"data": ["loanapp"], "metric": ["group"], "model": ["linear"], "methods": ["max_gap"]}
    planned = plan(study, "fair_auc", seeds=asked.seeds, **only)
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    written: set[str] = set()
    for _ in range(asked.times):
        for name, (jobs, backend) in WAYS.items():
            with tempfile.TemporaryDirectory() as folder:
                began = time.perf_counter()
                found = run_sweep(study, planned.configurations, folder, jobs=jobs, backend=backend)
                seconds[name].append(time.perf_counter() - began)
                if found.failures:
                    raise SystemExit(str(found.failures))
                records = [{**one, "seconds": None} for one in found.records]
                written.add(json.dumps(plain(records), sort_keys=True))
    alone = median(seconds["one process"])
    print(f"{len(planned.configurations)} configurations, seconds by the clock, medians of {asked.times}")
    for name, taken in seconds.items():
        print(f"{name:22} {median(taken):7.1f} {alone / median(taken):6.2f} times as fast")
    print("the same results" if len(written) == 1 else "other results")


if __name__ == "__main__":
    main()
