"""Lines and branches that no ordinary test reaches.

``python docs/figures/reached.py`` runs the ordinary suite in two processes and writes the share that it reaches, and
all that it does not, to ``docs/figures/reached.json``, from which ``docs/figures/reliability.py`` makes its section.
What runs in processes that tests start, such as the command line, counts where they end by themselves.
"""

from __future__ import annotations

import ast
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIGURES = Path(__file__).with_suffix(".json")
PACKAGES = ("minmaxcon", "problems/minmaxcon_problems")

WHY: dict[str, str] = {}
"""Why the rest of a file is not reached."""


def functions(file: Path) -> dict[int, str]:
    """Return the function or class that each line of a file belongs to, the innermost one."""
    found: dict[int, str] = {}

    def walk(owner: ast.AST, prefix: str) -> None:
        for node in ast.iter_child_nodes(owner):
            named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            name = f"{prefix}.{node.name}".lstrip(".") if named else prefix
            if named:
                found.update(dict.fromkeys(range(node.lineno, node.end_lineno + 1), name))
            walk(node, name)

    walk(ast.parse(file.read_text(encoding="utf-8")), "")
    return found


def measured(report: dict[str, Any]) -> dict[str, Any]:
    """Return the share that is reached, and the functions with lines or branches that are not, of coverage's report."""
    left: dict[str, dict[str, int]] = {}
    for name, file in sorted(report["files"].items()):
        owners = functions(ROOT / name)
        places = [*file["missing_lines"], *(abs(start) for start, _ in file["missing_branches"])]
        counts: dict[str, int] = {}
        for line in sorted(set(places)):
            owner = owners.get(line, "on import")
            counts[owner] = counts.get(owner, 0) + 1
        if counts:
            left[name] = counts
    totals = report["totals"]
    whole, reached = (
        totals["num_statements"] + totals["num_branches"],
        totals["covered_lines"] + totals["covered_branches"],
    )
    return {
        "statements": totals["num_statements"],
        "branches": totals["num_branches"],
        "share": round(100.0 * reached / whole, 2),
        "branch share": round(100.0 * totals["covered_branches"] / totals["num_branches"], 2),
        "left": left,
    }


def main() -> None:
    """Run the suite and write what it reaches."""
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "coverage.json"
        options = ["-q", "-n", "2", "-p", "no:cacheprovider", "-m", "not slow and not rel", "-o", "timeout=1200"]
        pytest.main([*options, "--cov", "--cov-branch", f"--cov-report=json:{path}"])
        found = measured(json.loads(path.read_text(encoding="utf-8")))
    FIGURES.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
