"""The page of promises, their tests and their last figures.

Run it in the checkout: ``python docs/figures/reliability.py`` tries every promise at its full count, and ``python
docs/figures/reliability.py kill9 bitflips`` only some. Reports of whole runs serve as well: ``python
docs/figures/reliability.py rel.xml rest.xml`` takes what ``pytest -n 2 -m rel --junitxml=rel.xml`` and the same with
``-m 'not rel'`` and ``rest.xml`` have found. All write ``docs/reliability.rst``. What was not tried keeps the figures
of the last time, which are in ``docs/figures/reliability.json``. The sections on planted faults and on what no test
reaches are made from what ``docs/figures/mutation.py`` and ``docs/figures/reached.py`` found.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE, FIGURES = ROOT / "docs" / "reliability.rst", Path(__file__).with_suffix(".json")

WHOLE = "tests/test_promises.py"
CHECKPOINT, SWEEP = "tests/solvers/test_checkpoint.py", "tests/problems/fair_auc/study/test_sweep.py"

PROMISES: dict[str, tuple[str, tuple[str, ...]]] = {
    "prox_oracle": (
        "No feasible point that a conic solver finds is better than a prox in closed form.",
        ("tests/geometry/test_prox_oracle.py",),
    ),
    "prox_kkt": (
        "Steps satisfy the first-order conditions of their problems, in both precisions.",
        ("tests/geometry/test_prox.py::test_prox_kkt",),
    ),
    "prox_laws": (
        "Projections are idempotent and firmly non-expansive; Moreau's identity and the three-point inequality hold.",
        ("tests/geometry/test_prox.py::test_prox_laws",),
    ),
    "gradients": (
        "Gradients are those of differences and of autograd, and single samples are unbiased.",
        (
            "tests/problems/test_plugin_laws.py::test_gradients",
            "tests/problems/test_plugin_laws.py::test_single_samples",
            "tests/problems/fair_auc/surrogate/test_constraint.py::test_gradients_are_those_of_autograd_and_of_differences",
        ),
    ),
    "optimum": (
        "30 small convex problems end feasible, within 1% of a conic solver's optimum or of the way to it.",
        (f"{WHOLE}::test_30_small_problems_end_within_a_hundredth_of_a_conic_solver",),
    ),
    "engines": (
        "NumPy, torch and compiled steps, and runs together or alone, take the same trajectories.",
        (
            "tests/solvers/test_runs.py::test_a_run_of_many_equals_the_run_alone",
            "tests/oracles/test_compiled.py::test_trajectories_are_those_of_numpy",
            "tests/problems/fair_auc/surrogate/test_constraint.py::test_engines_take_the_same_steps",
        ),
    ),
    "sklearn_contract": (
        "Every estimator passes the checks of scikit-learn, without an exception.",
        ("tests/problems/fair_auc/estimator/test_sklearn_checks.py",),
    ),
    "rerun": ("20 fresh processes give one digest of results.", (f"{WHOLE}::test_20_processes_give_one_digest",)),
    "rng_hygiene": (
        "The global generators of Python, NumPy and torch are neither read nor moved, over 200 solves.",
        (f"{WHOLE}::test_global_generators_are_neither_read_nor_moved",),
    ),
    "threads": (
        "One thread and two take the same mini-batch steps, bit by bit.",
        (f"{WHOLE}::test_one_and_two_threads_take_the_same_mini_batch_steps",),
    ),
    "strong_convexity": (
        "Divergences are at least half the squared distance, and a smaller constant is found out.",
        ("tests/geometry/test_strong_convexity.py",),
    ),
    "lemma1": (
        "The min-max form of a quadratic AUC loss is the loss over all pairs.",
        ("tests/problems/fair_auc/surrogate/test_constraint.py::test_lemma1_on_200_random_sets",),
    ),
    "feasible_iterates": (
        "Of 200 runs at most 30 have an outer iterate that is infeasible before it is checked, and none after.",
        ("tests/oracles/test_smd_theory.py::test_outer_iterates_are_feasible",),
    ),
    "stream_confidence": (
        "What is claimed of a stream holds with the confidence that is asked for, over 200 seeds.",
        ("tests/solvers/test_stream_confidence.py::test_the_confidence_is_kept_over_200_seeds",),
    ),
    "split_resume": (
        "A solve that is split at 50 random places goes on with the same bits.",
        (f"{CHECKPOINT}::test_split_resume",),
    ),
    "kill9": (
        "A solve killed at 200 random instants goes on with the same bits; a naive writer is found out.",
        (f"{CHECKPOINT}::test_kill9", f"{CHECKPOINT}::test_kill9_notices_a_naive_writer"),
    ),
    "io_faults": (
        "A full or broken disk leaves the checkpoint before.",
        (f"{CHECKPOINT}::test_a_disk_that_fails_leaves_the_checkpoint_before",),
    ),
    "bitflips": (
        "Of 5,000 flipped bits, 500 cuts and 500 splices of a checkpoint each is noticed.",
        (f"{CHECKPOINT}::test_bitflips",),
    ),
    "forged_checkpoints": (
        "A checkpoint that was made by hand is refused, and nothing in it is executed.",
        (f"{CHECKPOINT}::test_a_forged_checkpoint_is_refused_in_one_line",),
    ),
    "killed_writes": (
        "A result that is being replaced when its process is killed is the old one or the new one.",
        ("tests/results/test_killed_writes.py",),
    ),
    "sweep_order": ("Sweeps give the same in any order and number of processes.", (f"{SWEEP}::test_sweep_order",)),
    "sweep_kill": ("A sweep whose workers are killed goes on, and does nothing twice.", (f"{SWEEP}::test_sweep_kill",)),
    "sigint": (
        "Ctrl-C at 100 random instants returns the best feasible point within half a second; a second one raises.",
        (
            "tests/solvers/test_loop.py::test_ctrl_c_at_random_instants",
            "tests/solvers/test_loop.py::test_a_second_ctrl_c_raises",
            "tests/cli/test_process.py::test_a_second_ctrl_c_ends_at_once",
        ),
    ),
    "time_limit": (
        "A time limit is exceeded by at most 50 ms and one piece of work, and such a solve is never called solved.",
        ("tests/solvers/test_loop.py::test_time_limit",),
    ),
    "signals": (
        "Ctrl-C, SIGTERM, SIGHUP, a time limit and a budget return the best feasible point.",
        ("tests/solvers/test_loop.py", f"{CHECKPOINT}::test_a_signal_ends_a_solve_in_order"),
    ),
    "infeasible": (
        "Infeasible problems are proved infeasible, feasible ones never are, and no false claim passes, 40 of each.",
        (
            "tests/solvers/test_sfls.py::test_infeasible_40_and_feasible_40",
            "tests/results/test_claims.py::test_feasible_infeasible_and_not_convex_40_of_each",
        ),
    ),
    "wrong_gradients": (
        "A wrong gradient leads to no false claim in 40 solves.",
        ("tests/core/test_evidence.py::test_wrong_gradients",),
    ),
    "verify": (
        "Altered results are not confirmed, true ones are.",
        (
            "tests/results/test_verification.py",
            "tests/results/test_claims.py",
            "tests/results/test_enclosed.py",
            "tests/core/test_first_order.py",
        ),
    ),
    "nonfinite": (
        "Of 300 injected values that are not finite each is named or without effect; the last finite iterate is kept.",
        ("tests/solvers/test_nonfinite.py::test_nonfinite_injections",),
    ),
    "libsvm_limits": (
        "LIBSVM files that were made to waste memory or time are refused at their first bad line, within a second.",
        ("tests/tables/test_libsvm.py::test_hostile_files_are_refused_by_line",),
    ),
    "limits": (
        "Files that unpack to, or claim, too much are refused within a second of processor time.",
        ("tests/tables/test_limits.py",),
    ),
    "fuzz": (
        "Two minutes of spoilt files for each of six kinds of readers: read, or refused in one line.",
        (f"{WHOLE}::test_spoilt_files_are_read_or_refused_in_one_line",),
    ),
    "degenerate": (
        "200 data sets at an edge, such as two rows or one class, are fitted or refused in one line.",
        (
            f"{WHOLE}::test_data_at_the_edge_are_fitted_or_refused_in_one_line",
            f"{WHOLE}::test_batches_without_a_member_of_a_group_are_taken",
        ),
    ),
    "long_float32": (
        "A million compiled steps in single precision end within a millionth of those in double, large gradients too.",
        (f"{WHOLE}::test_a_million_steps_in_single_precision_stay_near_double",),
    ),
    "leaks": (
        "500 fits leave no memory, descriptor or thread behind.",
        (f"{WHOLE}::test_500_fits_leave_nothing_behind",),
    ),
    "hostile_files": (
        "Files that were made to harm who reads them are refused in one line; nothing is executed or written.",
        ("tests/results/test_hostile_files.py",),
    ),
    "strangers": (
        "Forged models and results, and plug-ins that fail, are one line and spare the rest.",
        ("tests/cli/test_strangers.py",),
    ),
    "golden": (
        "Solves give what they gave when their traces were kept, whatever else has changed.",
        ("tests/solvers/test_golden.py",),
    ),
}
"""Each promise, and the tests that try it."""


def ran(tests: Iterable[str], report: Path) -> None:
    """Run tests on two cores, and write their report."""
    options = ["-q", "-n", "2", "--dist", "worksteal", "-p", "no:cacheprovider", "-o", "timeout=3600"]
    words = [sys.executable, "-m", "pytest", *options, f"--junitxml={report}", *tests]
    subprocess.run(words, cwd=ROOT, check=False)


def counted(reports: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """Return counts, seconds, date and figure of the promises of which every test function, or file, is in reports."""
    suites = [next(ET.parse(report).getroot().iter("testsuite")) for report in reports]
    cases = [case for suite in suites for case in suite.iter("testcase") if case.find("skipped") is None]
    broken = [case.attrib["name"] for case in cases if not case.attrib["classname"]]
    if broken:
        raise SystemExit(f"{broken[0]} could not be collected: mend it and run the tests again.")
    found = dict[str, dict[str, Any]]()
    for name, (_, tests) in PROMISES.items():
        own = [sorted((case for case in cases if belongs(case, test)), key=named) for test in tests]
        if all(own):
            every = [case for part in own for case in part]
            passed = sum(case.find("failure") is None and case.find("error") is None for case in every)
            seconds = round(sum(float(case.attrib["time"]) for case in every))
            date = max(suite.attrib["timestamp"] for suite in suites)[:10]
            counts = {"tests": len(every), "passed": passed, "seconds": seconds, "date": date}
            found[name] = {**counts, "figure": together(every)}
    return found


def named(case: ET.Element) -> str:
    """Return the name of a case, by which those of several processes are put in one order."""
    return case.attrib["name"]


def together(cases: Iterable[ET.Element]) -> str:
    """Put what the cases measured together: counts are added, and of extremes the most extreme is kept."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for kept in (kept for case in cases for kept in case.iter("property") if kept.attrib["name"] == "figure"):
        part = json.loads(kept.attrib["value"])
        kind = next(name for name in ("of", "total", "largest", "smallest") if name in part)
        before = found.setdefault((part["what"], kind), part)
        if before is part:
            continue
        for name in ("good", "of", "total"):
            if name in part:
                before[name] += part[name]
        if kind in ("largest", "smallest"):
            before[kind] = (max if kind == "largest" else min)(before[kind], part[kind])
    return ", ".join(map(told, found.values()))


def told(part: dict[str, Any]) -> str:
    """Return one figure as the page shows it."""
    if "of" in part:
        return f"{part['good']:,} of {part['of']:,} {part['what']}"
    if "total" in part:
        return f"{part['total']:,} {part['what']}"
    kind = "largest" if "largest" in part else "smallest"
    value, unit = part[kind], part["unit"]
    text = f"{value:,.0f}" if 100 <= abs(value) < 1e6 else re.sub(r"e([+-])0", r"e\1", f"{value:.2g}")
    return f"{kind} {part['what']} {text}{unit if unit in ('', '%') else ' ' + unit}"


def belongs(case: ET.Element, test: str) -> bool:
    """Tell whether a case of a report is one of a file, or of a function of it."""
    path, _, function = test.partition("::")
    module = path.removesuffix(".py").replace("/", ".")
    return case.attrib["classname"] == module and function in ("", case.attrib["name"].partition("[")[0])


def page(figures: dict[str, dict[str, Any]], machine: str) -> str:
    """Return the page."""
    lines = [
        "Reliability",
        "===========",
        "",
        "Each promise has tests, and each row what they measured the last time that they ran. One is tried by",
        "",
        ".. code-block:: console",
        "",
        "   $ pytest -m rel -k NAME",
        "",
        "and ``python docs/figures/reliability.py NAME`` writes its row too; without a name it tries all. Counts are",
        "those of all cases, the light ones of the ordinary suite among them, and extremes are those of all. Seconds",
        "are those of the tests one after the other, beside whatever else the machine did.",
        "",
        f"Machine: {machine}.",
        "",
        ".. list-table::",
        "   :header-rows: 1",
        "   :widths: 13 27 32 9 8 11",
        "   :class: wide",
        "",
        *row("Name", "Promise", "Last figure", "Tests passed", "Seconds", "Date"),
    ]
    for name, (promise, _) in PROMISES.items():
        if name in figures:
            found = figures[name]
            passed = f"{found['passed']} of {found['tests']}"
            failed = f"{found['tests'] - found['passed']} failed: " if found["tests"] > found["passed"] else ""
            measured = re.sub(r"([*`|_\\])", r"\\\1", failed + found.get("figure", "")) or "–"
            lines += row(f"``{name}``", promise, measured, passed, str(found["seconds"]), found["date"])
    left = [name for name in PROMISES if name not in figures]
    if left:
        lines += ["", "Not tried on this machine yet: " + ", ".join(f"``{name}``" for name in left) + "."]
    lines += [
        "",
        "The tests of a promise are named in ``docs/figures/reliability.py``.",
        *versions(),
        *planted(),
        *unreached(),
    ]
    return "\n".join(lines) + "\n"


def planted() -> list[str]:
    """Return the section on planted faults."""
    from mutation import FIGURES as MUTATION
    from mutation import PARTS, REASONS, SEED

    if not MUTATION.exists():
        return []
    lines = [
        "",
        "Planted faults",
        "--------------",
        "",
        "``python docs/figures/mutation.py`` changes one expression or statement of a function at a time, and runs the",
        f"tests that reach it. A random sample of each part was tried (seed {SEED}). Texts of errors, annotations,",
        "default values and code that runs on import are left out.",
        "",
        ".. list-table::",
        "   :header-rows: 1",
        "   :widths: 30 20 20 20 20",
        "   :class: wide",
        "",
        *row("Part", "Faults", "Tried", "Noticed", "Share"),
    ]
    parts = json.loads(MUTATION.read_text(encoding="utf-8"))
    why = json.loads(REASONS.read_text(encoding="utf-8"))
    left = {name: part["survived"] + part["not reached"] for name, part in parts.items()}
    counts = {name: (part["mutants"], part["tried"], len(left[name])) for name, part in parts.items()}
    counts["together"] = tuple(map(sum, zip(*counts.values(), strict=True)))
    for name, (every, tries, missed) in counts.items():
        lines += row(name, f"{every:,}", str(tries), str(tries - missed), f"{100 * (tries - missed) / tries:.1f}%")
    if untried := [part for part in PARTS if part not in parts]:
        lines += ["", f"Not tried yet: {', '.join(untried)}."]
    lines += ["", "No test notices these, each with the reason:", "", ".. code-block:: text", "   :class: wrap", ""]
    for told in (told for part in left.values() for told in part):
        lines += [f"   {told}", f"       {why.get(told, 'Not explained yet.')}"]
    return lines


def unreached() -> list[str]:
    """Return the section on lines and branches that no test reaches."""
    from reached import FIGURES as REACHED
    from reached import WHY

    if not REACHED.exists():
        return []
    found = json.loads(REACHED.read_text(encoding="utf-8"))
    lines = [
        "",
        "What no test reaches",
        "--------------------",
        "",
        f"The tests, promises aside, reach {found['share']}% of {found['statements']:,} statements and",
        f"{found['branches']:,} branches, and {found['branch share']}% of the branches alone",
        "(``python docs/figures/reached.py``). The number in brackets counts the lines that are not",
        "reached, or are left on one way only.",
        "",
        ".. list-table::",
        "   :header-rows: 1",
        "   :widths: 30 40 30",
        "   :class: wide",
        "",
        *row("File", "Not reached", "Why"),
    ]
    for name, functions in found["left"].items():
        places = ", ".join(f"``{function}`` ({count})" for function, count in functions.items())
        short = name.removeprefix("problems/minmaxcon_problems/")  # a column has no room for more
        lines += row(f"``{short}``", places, WHY.get(name, "Not explained yet."))
    return lines


def versions() -> list[str]:
    """Return the section on versions of Python and of packages."""
    from versions import FIGURES as VERSIONS
    from versions import PACKAGES

    if not VERSIONS.exists():
        return []
    lines = [
        "",
        "Versions",
        "--------",
        "",
        "``.ci/versions`` runs the tests of the core, of the command line and of the classifier with each Python, and",
        "with the oldest (``lowest-direct``) and the newest packages that ``pyproject.toml`` allows.",
        "",
        ".. list-table::",
        "   :header-rows: 1",
        "   :widths: 10 50 12 12 16",
        "   :class: wide",
        "",
        *row("Python", "Packages", "Passed", "Skipped", "Date"),
    ]
    for found in json.loads(VERSIONS.read_text(encoding="utf-8")).values():
        packages = ", ".join(f"{name} {found['packages'][name]}" for name in PACKAGES)
        passed = f"{found['passed']:,} of {found['passed'] + found['failed']:,}"
        lines += row(found["python"], packages, passed, str(found["skipped"]), found["date"])
    return lines


def row(*cells: str) -> list[str]:
    """Return a row of a list-table."""
    return [f"   {'*' if place == 0 else ' '} - {cell}" for place, cell in enumerate(cells)]


def main(names: list[str]) -> None:
    """Try promises and write the page."""
    from minmaxcon.results import describe_machine

    reports = [Path(name) for name in names if name.endswith(".xml")]
    asked = [name for name in names if not name.endswith(".xml")] or ([] if reports else list(PROMISES))
    unknown = sorted(set(asked) - set(PROMISES))
    if unknown:
        raise SystemExit(f"no such promise: {unknown[0]}; known are {', '.join(PROMISES)}.")
    kept = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {"figures": {}}
    with tempfile.TemporaryDirectory() as folder:
        if asked:
            reports.append(Path(folder) / "report.xml")
            ran(dict.fromkeys(test for name in asked for test in PROMISES[name][1]), reports[-1])
        figures = counted(reports)
    for name in PROMISES:
        if name in asked and name not in figures:
            kept["figures"].pop(name, None)  # tried, and skipped: no figure is better than an old one
        before = kept["figures"].get(name, {"tests": 0})["tests"]
        if name in figures and figures[name]["tests"] < before:
            print(f"{name}: {figures[name]['tests']} cases, {before} before; are all its tests in the reports?")
    kept["figures"] |= figures
    found = describe_machine()
    kept["machine"] = f"{found['cpu']}, {found['cores']} cores, {found['system']}"
    FIGURES.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(kept["figures"], kept["machine"]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
