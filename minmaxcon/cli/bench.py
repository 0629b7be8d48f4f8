"""``minmaxcon bench``: how fast steps are on this machine."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import App, Parameter

from minmaxcon.errors import InvalidInput

__all__ = ["app"]

app = App(name="bench", help="Measure how fast steps are on this machine.")


@app.command
def steps(
    *,
    seconds: float = 30.0,
    runs: str = "1,16,256,1024",
    peers: bool = True,
    seed: int = 0,
    json: Annotated[bool, Parameter(negative="")] = False,
    quiet: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Measure microseconds a step of linear fair AUC: batch 100, 123 dense features, adaptive steps, one thread.

    Beside it stand the two matrix products that no step can do without, and other packages (`pip install
    'minmaxcon[bench]'`) on the same mini-batches. All take turns in one process; medians are shown.

    Parameters
    ----------
    seconds
        Time to measure for; about five more pass before the first measurement.
    runs
        Numbers of runs that one solve carries, separated by commas.
    peers
        Whether other packages are measured where they are installed.
    seed
        Seed of the synthetic data and of the mini-batches.
    json
        Print the result as data, and nothing else.
    quiet
        Show no progress.
    """
    from minmaxcon.results.records import to_json
    from minmaxcon_problems.fair_auc.study.bench import bench_steps

    result = bench_steps(seconds=seconds, runs=_counts(runs), peers=peers, seed=seed, progress=not quiet)
    sys.stdout.write(to_json(result.as_dict()) if json else result.table())


def _counts(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput("runs", text, "must be whole numbers separated by commas, such as 1,16,256,1024.") from None
