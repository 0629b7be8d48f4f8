"""Print the tables of the page of experiments from a comparison of all problems, and make its figure small.

Run as ``python docs/figures/compare.py DIR`` on the folder that ``minmaxcon compare all --out DIR`` has written. With a
second word the figure goes there, in 64 colours.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from minmaxcon.cli.output import table


def cell(entry: dict[str, Any]) -> str:
    """Return the returned point's relative gap, and how many of the points on the way were infeasible."""
    if entry["relative_gap"] is None:
        return "-"
    gap = 100.0 * entry["relative_gap"]
    mark = "" if entry["violation"] <= 1e-9 else "!"
    shown = "0" if abs(gap) < 1e-4 else f"{gap:.2g}" if abs(gap) < 99.5 else f"{gap:.0f}"
    return f"{shown}%{mark} {entry['infeasible']}/{entry['checkpoints']}"


def first_cell(entry: dict[str, Any]) -> str:
    """Return the samples after which a feasible point within 1% was first seen."""
    hits = [row["samples"] for row in entry["path"][1:] if row["violation"] <= 1e-9 and _within(row["relative_gap"])]
    return f"{hits[0] / 1000:,.0f}k" if hits else "-"


def _within(gap: float | None) -> bool:
    return gap is not None and gap <= 0.01


def summary(found: dict[str, Any], fill: Callable[[dict[str, Any]], str]) -> str:
    """Return a line for each problem, a column for each solver, and what ``fill`` says of an entry in its cell."""
    solvers = [entry["solver"] for entry in found["comparisons"][0]["solvers"]]
    heading = ["", *(name.partition(":")[0].removeprefix("sfls_").replace("_", " ") for name in solvers)]
    heading = [name.replace("switching subgradient", "switching") for name in heading]
    rows = []
    for one in found["comparisons"]:
        cells = {entry["solver"]: fill(entry) for entry in one["solvers"]}
        rows.append([one["problem"], *(cells.get(name, "-") for name in solvers)])
    return table([heading, *rows])


def totals(found: dict[str, Any]) -> str:
    """Return how many points of each solver on the way were infeasible, and how many of its oracle's raw points."""
    entries = [entry for one in found["comparisons"] for entry in one["solvers"]]
    rows = []
    for name in dict.fromkeys(entry["solver"] for entry in entries):
        points = [row for entry in entries if entry["solver"] == name for row in entry["path"][1:]]
        infeasible = sum(row["violation"] > 1e-9 for row in points)
        raw = [row["estimate_violation"] > 1e-9 for row in points if row["estimate_violation"] is not None]
        rows.append([name, f"{infeasible} of {len(points)}", f"{sum(raw)} of {len(raw)}" if raw else "-"])
    return table([["", "infeasible", "raw points infeasible"], *rows])


def main(folder: Path, figure: Path | None) -> None:
    """Print the tables, and write the figure if it is asked for."""
    found = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    print("relative gap of the returned point, infeasible points on the way\n" + summary(found, cell))
    print("samples to a feasible point within 1%\n" + summary(found, first_cell))
    print(totals(found))
    if figure is not None:
        from PIL import Image

        with Image.open(folder / "comparison.png") as image:
            image.convert("RGB").quantize(64).save(figure, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
