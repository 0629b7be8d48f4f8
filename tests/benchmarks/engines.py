"""Processor seconds of whole solves, interpreted and compiled, by problem and oracle.

``python tests/benchmarks/engines.py`` prints one line for each: a solve with NumPy, the first one with JAX, which
compiles, and a second one of the same problem, which need not. Mirror-prox is never compiled; ``passes`` is the share
of its solve that compiling could shorten, its trials.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from importlib.metadata import version
from typing import Any

import minmaxcon as mm
from minmaxcon.results import describe_machine, versions


class Timed(mm.MirrorProx):
    """Mirror-prox that adds up the seconds of its trials."""

    seconds = 0.0

    def _trial(self, state: Any) -> Any:
        begin = time.process_time()
        after = super()._trial(state)
        Timed.seconds += time.process_time() - begin
        return after


def solved(problem: mm.MinMaxProblem, oracle: Any) -> tuple[float, str]:
    """Return the processor seconds of a solve, and its status."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mm.EngineWarning)
        found: Any = mm.solve(problem, mm.SFLS(oracle=oracle), seed=0, time_limit=60)
    return time.process_time() - begin, found.status.name


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", default="toy,fair_auc,robust_diet")
    given = parser.parse_args()
    machine, packages = describe_machine(), versions()
    sys.stdout.write(f"{machine['cpu']}, numpy {packages['numpy']}, jax {version('jax')}\n")
    sys.stdout.write("problem          oracle             numpy  jax, first  jax, again  passes  status\n")
    for name in given.problems.split(","):
        for oracle in (mm.SMD, mm.VarianceReduced, Timed):
            title = "MirrorProx" if oracle is Timed else oracle.__name__
            Timed.seconds = 0.0
            plain, status = solved(mm.load_problem(name), oracle())
            share = f"{Timed.seconds / plain:.0%}" if oracle is Timed else ""
            line = f"{name:<17}{title:<16}{plain:>8.2f}"
            if oracle is Timed:
                line += 24 * " "
            else:
                problem = mm.load_problem(name, engine="jax")
                line += f"{solved(problem, oracle())[0]:>12.2f}{solved(problem, oracle())[0]:>12.2f}"
            sys.stdout.write(f"{line}{share:>8}  {status}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
