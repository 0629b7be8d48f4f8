"""Lines and branches that no test reaches, promises aside.

``python docs/figures/reached.py`` runs all tests but promises (the marker rel) in two processes. It writes the share
that they reach, and all that they do not, to ``docs/figures/reached.json``, from which
``docs/figures/reliability.py`` makes its section. What runs in processes that tests start, such as the command line,
counts where these end by themselves.
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

WHY: dict[str, str] = {
    "minmaxcon/arrays.py": "Needs a machine without JAX.",
    "minmaxcon/cli/clock.py": "Clocks of other threads, and limits that are over before they are set.",
    "minmaxcon/cli/main.py": "Ctrl-C before there is a result, in a process that a test starts.",
    "minmaxcon/cli/new_problem.py": "Files of other programs beside the templates.",
    "minmaxcon/cli/options.py": "Annotations of names that only type checkers import.",
    "minmaxcon/cli/predict.py": "Paths that the system refuses to look at.",
    "minmaxcon/cli/solve.py": "A time limit that ends between the solve and what it is compared with.",
    "minmaxcon/core/codec.py": "Parts of problems with several levels of wrapping.",
    "minmaxcon/core/compiled.py": "Objects that Python cannot take apart.",
    "minmaxcon/core/confidence.py": "A method of a source that no confidence bound calls.",
    "minmaxcon/core/constraint.py": "Defaults that every family of the suite overrides.",
    "minmaxcon/core/first_order.py": "Proximal problems that overflow, or whose point beside is not feasible.",
    "minmaxcon/core/scaling.py": "Parts of a scaled inner set that no solver asks for.",
    "minmaxcon/core/solver.py": "A default that every solver of the suite overrides.",
    "minmaxcon/core/source.py": "Defaults that every source of the suite overrides.",
    "minmaxcon/data/on_disk.py": "Text of a value.",
    "minmaxcon/distributed.py": "What a process does whose partner ended, and a launcher's process that is killed.",
    "minmaxcon/errors.py": "Warnings that are pickled.",
    "minmaxcon/files.py": "A scratch file that is appended to after it was read.",
    "minmaxcon/metrics/auc.py": "Scores that no array can be made of, and empty sets.",
    "minmaxcon/oracles/mirror_prox.py": "A query that is asked to go on after it has ended.",
    "minmaxcon/oracles/variance_reduced.py": "Steps that overflow although every term is finite.",
    "minmaxcon/reference/solver.py": "Programs that Clarabel solves exactly with no setting, and best with the first.",
    "minmaxcon/registry.py": "A package that is broken and has no file.",
    "minmaxcon/results/comparison.py": "A comparison in one process that nobody watches.",
    "minmaxcon/results/machine.py": "Systems that do not tell their load or processor.",
    "minmaxcon/results/parallel.py": "Needs the extra cluster.",
    "minmaxcon/results/records.py": "Evidence of an old result, and packages that are not installed.",
    "minmaxcon/results/sampled.py": "Combinations of claims that no solve makes.",
    "minmaxcon/results/saved_models.py": "A description that is nested too deeply for Python itself.",
    "minmaxcon/results/verification.py": "Data that are gone, and evidence that is cut short.",
    "minmaxcon/solvers/averaging/base.py": "A checkpoint of an older version.",
    "minmaxcon/solvers/checkpoint.py": "A disk that fails twice, and packages that are not installed.",
    "minmaxcon/solvers/iqrc.py": "Old checkpoints, and proofs of another iterate than the one drawn.",
    "minmaxcon/solvers/sfls.py": "A stream that gives nothing when it is read again.",
    "minmaxcon/solvers/stationarity.py": "A bracket that closes in none of the rounds, however small.",
    "minmaxcon/solvers/successive/linearised_step.py": "Active sets that cycle.",
    "minmaxcon/solvers/successive/solver.py": "Old checkpoints, and optimal points whose curvature is that of others.",
    "minmaxcon/tables/blocks.py": "Folders on other file systems.",
    "minmaxcon/tables/encoding.py": "A rule for categories that callers have checked already.",
    "minmaxcon/tables/formats.py": "A disk that fails while names of columns are read.",
    "minmaxcon/tables/lines.py": "A disk that fails.",
    "minmaxcon/testing/block.py": "Corners whose neighbours are better in every round.",
    "minmaxcon/testing/problem.py": "What is said where a search finds no smaller example.",
    "minmaxcon/testing/purity.py": "Needs a machine without torch.",
    "minmaxcon/testing/solver.py": "A solver that calls a feasible problem infeasible.",
    "problems/minmaxcon_problems/cvar_portfolio/__init__.py": "Read by ``compare all`` of all that is installed.",
    "problems/minmaxcon_problems/fair_auc/baselines/post_processing.py": "Asked for by the whole study alone.",
    "problems/minmaxcon_problems/fair_auc/commands.py": "Commands that measure for minutes.",
    "problems/minmaxcon_problems/fair_auc/download.py": "Needs the network, or the files of the data sets.",
    "problems/minmaxcon_problems/fair_auc/calibration.py": "Where a search ends far off.",
    "problems/minmaxcon_problems/fair_auc/estimator/classifier.py": "Needs the extra cluster.",
    "problems/minmaxcon_problems/fair_auc/estimator/dataset.py": "Needs the extra cluster, or many rows.",
    "problems/minmaxcon_problems/fair_auc/estimator/incremental.py": "Rows of a type that no test streams.",
    "problems/minmaxcon_problems/fair_auc/estimator/inputs.py": "Labels of mixed types.",
    "problems/minmaxcon_problems/fair_auc/estimator/reasons.py": "Advice on searches that time has ended.",
    "problems/minmaxcon_problems/fair_auc/estimator/report.py": "Scores of no width.",
    "problems/minmaxcon_problems/fair_auc/estimator/shrinkage.py": "Classes without rows.",
    "problems/minmaxcon_problems/fair_auc/evaluation.py": "Problems without rows, and targets of streams.",
    "problems/minmaxcon_problems/fair_auc/labelled.py": "Labels of two types that Python does not compare.",
    "problems/minmaxcon_problems/fair_auc/measured.py": "Texts of values, and measures of data that lie in pieces.",
    "problems/minmaxcon_problems/fair_auc/metrics.py": "Text of a value.",
    "problems/minmaxcon_problems/fair_auc/new_rows.py": "A file that changes meanwhile.",
    "problems/minmaxcon_problems/fair_auc/own_files.py": "Categories of a LIBSVM file.",
    "problems/minmaxcon_problems/fair_auc/streamed.py": "Faults of later blocks, and shards of other processes.",
    "problems/minmaxcon_problems/fair_auc/study/bench.py": "Measures for minutes, beside other packages.",
    "problems/minmaxcon_problems/fair_auc/study/own_front.py": "A front of which no candidate meets its target.",
    "problems/minmaxcon_problems/fair_auc/study/own_rows.py": "A disk that fails.",
    "problems/minmaxcon_problems/fair_auc/study/peers.py": "Needs cooper and other packages that are compared with.",
    "problems/minmaxcon_problems/fair_auc/study/runs.py": "Trains for minutes: the whole study alone runs it.",
    "problems/minmaxcon_problems/fair_auc/study/sweep.py": "Ends a process that lost its parent.",
    "problems/minmaxcon_problems/fair_auc/study/to_target.py": "Races that take minutes.",
    "problems/minmaxcon_problems/fair_auc/surrogate/constraint.py": "A minimum on the ball whose multiplier is zero.",
    "problems/minmaxcon_problems/fair_auc/target/fit.py": "A goal missed in training whose limit held-out rows meet.",
    "problems/minmaxcon_problems/fair_auc/target/signs.py": "Text of a value, and a bound that no method reads.",
    "problems/minmaxcon_problems/group_parity/__init__.py": "Read by ``compare all`` of all that is installed.",
}
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
        options = ["-q", "-n", "2", "-p", "no:cacheprovider", "-m", "not rel", "-o", "timeout=1200"]
        pytest.main([*options, "--cov", "--cov-branch", f"--cov-report=json:{path}"])
        found = measured(json.loads(path.read_text(encoding="utf-8")))
    FIGURES.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
