"""A comparison as text, as rows of a CSV file and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from minmaxcon.results.compare_reference import Optimum
from minmaxcon.results.comparison import Comparison, Entry
from minmaxcon.results.machine import describe_machine, load_average
from minmaxcon.results.records import plain, versions

__all__ = ["as_data", "comparison_text", "path_rows"]

_HEADING = ("solver", "status", "seconds", "samples", "relative gap", "max f_i-b_i", "infeasible on the way")
_TOO_SHORT = (
    "no checkpoint fell within the budget, and a solve ends only between two pieces of its work: the row tells nothing "
    "of the method. Allow more."
)


def comparison_text(found: Comparison, table: Callable[..., str], wrapped: Callable[[str, str], str]) -> str:
    """Return a comparison for a reader: a line a solver, medians over seeds, and what is needed to read them.

    Parameters
    ----------
    found : Comparison
        The comparison.
    table, wrapped : callable
        Align rows of cells and wrap a sentence, as those of :mod:`minmaxcon.cli.output` do.
    """
    by_solver: dict[str, list[Entry]] = {}
    for entry in found.entries:
        by_solver.setdefault(entry.solver, []).append(entry)
    seeds = max(len(mine) for mine in by_solver.values())
    listed = f"seed {found.entries[0].seed}" if seeds == 1 else f"medians over {seeds} seeds"
    text = f"{found.problem}: {listed}{_budget(found)}\n\n"
    text += table([_HEADING, *(_line(name, mine) for name, mine in by_solver.items())], left=2)
    text += wrapped("f*: ", _optimum_text(found.optimum))
    refused = [mine[0] for mine in by_solver.values() if not mine[0].ran]
    text += "".join(wrapped(f"{entry.solver}: ", entry.reason) for entry in refused)
    idle = [name for name, mine in by_solver.items() if any(_too_short(entry, found) for entry in mine)]
    return text + (wrapped(f"{', '.join(idle)}: ", _TOO_SHORT) if idle else "")


def _too_short(entry: Entry, found: Comparison) -> bool:
    """Return whether a solve used the budget before the method looked at any point of its own."""
    samples = np.inf if found.samples is None else found.samples
    seconds = np.inf if found.time_limit is None else found.time_limit
    used = entry.samples >= samples or entry.seconds >= seconds
    return (
        entry.ran
        and used
        and not any(row["samples"] <= samples and row["seconds"] <= seconds for row in entry.path[1:])
    )


def _budget(found: Comparison) -> str:
    parts = [] if found.samples is None else [f"{found.samples:,} samples"]
    parts += [] if found.time_limit is None else [f"{found.time_limit:g} s"]
    return f", at most {' or '.join(parts)} a solve" if parts else ""


def _line(name: str, mine: Sequence[Entry]) -> list[str]:
    ran = [entry for entry in mine if entry.ran]
    counts = Counter(entry.status for entry in mine)
    status = ", ".join(word if len(mine) == 1 else f"{count} {word}" for word, count in counts.items())
    if not ran:
        return [name, status, *("-" for _ in _HEADING[2:])]

    def median(field: str) -> float:
        return float(np.median([getattr(entry, field) for entry in ran]))

    infeasible, checkpoints = (sum(getattr(entry, word) for entry in ran) for word in ("infeasible", "checkpoints"))
    gap = median("relative_gap")
    return [
        name,
        status,
        f"{median('seconds'):.2f}",
        f"{median('samples'):,.0f}",
        "unknown" if np.isnan(gap) else f"{100.0 * gap:.3g}%",
        f"{max(entry.violation for entry in ran):.2g}",
        f"{infeasible} of {checkpoints}",
    ]


def _optimum_text(optimum: Optimum) -> str:
    if optimum.value is None:
        return f"{optimum.source}: {optimum.note or 'no solver found a feasible point'}."
    unit = f"A relative gap is f_0 - f* in units of {optimum.scale:.6g}"
    unit += ", of 1 + |f*|" if optimum.start is None else f": the start has f_0 = {optimum.start:.6g}"
    said = {"exact": "exact, by a conic solver", "given": "as given"}.get(optimum.source, "")
    if optimum.source == "best found":
        least = "none is proved" if optimum.lower is None else f"{optimum.lower:.6g} is proved"
        why = f" as {optimum.note.rstrip('.')}" if optimum.note else ""
        said = f"the best feasible point of these solvers{why}; of lower bounds {least}"
    return f"{optimum.value:.6g}, {said}. {unit}."


def path_rows(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Return every point of every path as a row, with the names of problem and solver and the seed."""
    return [
        {"problem": found.problem, "solver": entry.solver, "seed": entry.seed, **row}
        for found in comparisons
        for entry in found.entries
        for row in entry.path
    ]


def as_data(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Return comparisons as JSON knows them, with versions and the machine that the seconds are of."""
    listed = [{"problem": found.problem, **_fields(found)} for found in comparisons]
    machine = {**describe_machine(), "load_average": load_average()}
    return {"comparisons": plain(listed), "machine": plain(machine), "versions": plain(versions())}


def _fields(found: Comparison) -> dict[str, Any]:
    return {
        "optimum": asdict(found.optimum),
        "samples": found.samples,
        "time_limit": found.time_limit,
        "solvers": [asdict(entry) for entry in found.entries],
    }
