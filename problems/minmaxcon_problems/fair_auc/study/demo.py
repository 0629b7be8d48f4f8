"""The demonstration: mortgage approvals without and with a bound, and the front between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import minmaxcon as mm
from minmaxcon.cli import Finished, Output, finish, load, paragraphs, table
from minmaxcon.results import (
    FrontPoint,
    RunRecord,
    RunsRecord,
    certificate_text,
    check_folder,
    front_figure,
    interval_text,
    png,
    to_json,
    write_folder,
)

__all__ = ["run_demo"]

FOLDER = Path("minmaxcon-demo")
KAPPAS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 2.0)
"""The bounds of the front; the last is so loose that it does not bind, which is checked."""

SMALL_GAP = 0.01
TIME_LIMIT = 18.0
RULE = (
    f"With the constraint: the loosest bound of the front whose true gap on the training part is at most {SMALL_GAP}."
    " The held-out part has no say in it."
)
_FILES = ("result.json", "front.png")
_PARTS = {"train": "training part", "test": "held out"}
_WHAT = ("auc", "auc_gap")


def run_demo(output: Output, *, out: Path | None, overwrite: bool, seed: int) -> int:
    """Solve, print and write what ``minmaxcon demo`` tells; return its exit status."""
    if seed < 0:
        raise mm.InvalidInput("seed", seed, "must be at least 0.")
    json = output.json
    target, replace = (FOLDER, True) if out is None else (out, overwrite)
    writes = out is not None or not json
    if writes:
        check_folder(target, overwrite=replace, only=None if overwrite else _FILES)
    given = {"data": "loanapp", "metric": "inter_group", "kappa": list(KAPPAS), "seed": seed}
    with output.guarded():
        loaded = load("fair_auc", given)
        solver = mm.SFLS(oracle=mm.SMD(), tolerance=0.01)
        solution = mm.solve(loaded.problem, solver, seed=seed, time_limit=TIME_LIMIT, callbacks=output.progress())
        finished = finish(loaded, solution, {"solver": "sfls", "time_limit": TIME_LIMIT})
        pair = len(KAPPAS) - 1, choose([run.train["auc_gap"] for run in _record(finished).runs])
        result = _result(finished, *pair)
        figure = _figure(_record(finished), *pair) if writes else b""
    if writes:
        write_folder(target, {"result.json": to_json(result).encode(), "front.png": figure}, overwrite=replace)
    output.result(to_json(result) if json else _text(finished, *pair, notes=not output.quiet))
    written = f"written: {target / 'front.png'} and {target / 'result.json'}"
    if writes and json:
        output.note(written)
    elif writes:
        output.result(f"\n{written}\n")
    return 1 if mm.Status.INTERRUPTED in solution.status else 0


def choose(gaps: Sequence[float]) -> int:
    """Return which bound the rule takes, by the true gaps on the training part, tightest bound first.

    Examples
    --------
    >>> choose([0.001, 0.002, 0.009, 0.04]), choose([0.03, 0.02, 0.04])
    (2, 1)
    """
    small = [j for j, gap in enumerate(gaps[:-1]) if gap <= SMALL_GAP]
    return small[-1] if small else min(range(len(gaps) - 1), key=lambda j: gaps[j])


def _record(finished: Finished) -> Any:
    """Return the record of all runs, each with the measures of fair AUC."""
    return finished.record


def _result(finished: Finished, without: int, chosen: int) -> dict[str, Any]:
    """Return what the demo tells, as data."""
    record = _record(finished)
    front = [{"kappa": kappa, **_row(run)} for kappa, run in zip(KAPPAS, record.runs, strict=True)]
    return {
        "rows": [{"fit": "without", **front[without]}, {"fit": "with", **front[chosen]}],
        "rule": RULE,
        "loosest_bound_binds": _binds(record.runs[without]),
        "front": front,
        **record.model_dump(exclude={"runs"}),
    }


def _row(run: RunRecord) -> dict[str, Any]:
    told = {"status", "feasible", "objective", "constraints", "certificate", "train", "test"}
    return run.model_dump(include=told)


def _binds(run: RunRecord) -> bool:
    """Whether the bound of a run shapes its solution."""
    return any(value is not None and value > -0.01 for value in run.constraints)


def _figure(record: RunsRecord, without: int, chosen: int) -> bytes:
    labels = {chosen: f"with, kappa = {KAPPAS[chosen]:g}", without: "without"}

    def points(part: str) -> list[FrontPoint]:
        found: list[Mapping[str, Any]] = [getattr(run, part) for run in record.runs]
        return [
            FrontPoint(labels.get(j, ""), m["auc"], m["auc_gap"], m["auc_interval"], m["auc_gap_interval"])
            for j, m in enumerate(found)
        ]

    first: Mapping[str, Any] = {part: getattr(record.runs[0], part) for part in _PARTS}
    panels = {f"{name} ({first[part]['rows']:,} rows)": points(part) for part, name in _PARTS.items()}
    title = f"Mortgage approvals: {len(KAPPAS)} bounds kappa in one solve, with 95% intervals"
    return png(front_figure(panels, xlabel="true inter-group gap", ylabel="AUC", title=title))


def _text(finished: Finished, without: int, chosen: int, *, notes: bool) -> str:
    record = _record(finished)
    fits = {"without": record.runs[without], f"with, kappa = {KAPPAS[chosen]:g}": record.runs[chosen]}
    text = "Mortgage approvals (loanapp): inter-group gap between applicants who are white and who are not\n"
    text += f"{len(KAPPAS)} bounds in one solve, seed {record.settings['seed']}: "
    text += f"{record.steps:,} steps, {record.seconds:.1f} s\n"
    for part, name in reversed(_PARTS.items()):
        rows = [[fit, *(interval_text(getattr(run, part), what) for what in _WHAT)] for fit, run in fits.items()]
        text += f"\n{name}, {getattr(record.runs[0], part)['rows']:,} rows\n"
        text += table([["", "AUC [95% interval]", "true gap [95% interval]"], *rows])
    rows = [[fit, run.status, certificate_text(run)] for fit, run in fits.items()]
    text += "\ncertificate, training part\n" + table(rows, left=3)
    text += "\nthe front\n" + _front(record)
    if not notes:
        return text
    loose = "which binds after all, so that this is not the unconstrained optimum"
    loose = loose if _binds(record.runs[without]) else "which does not bind"
    said = [
        f"Without the constraint: kappa = {KAPPAS[-1]:g}, {loose}.",
        RULE,
        "Look at the intervals: one split of 1,989 rows proves little.",
    ]
    return text + paragraphs({"How to read this": [*said, *finished.notes.get("Mind", ())]})


def _front(record: RunsRecord) -> str:
    heading = ["kappa", *(f"{name} {what}" for name in ("training", "held-out") for what in ("AUC", "gap"))]
    rows = []
    for kappa, run in zip(KAPPAS, record.runs, strict=True):
        found: list[Mapping[str, Any]] = [getattr(run, part) for part in _PARTS]
        rows.append([f"{kappa:g}", *(f"{measures[what]:.4f}" for measures in found for what in _WHAT)])
    return table([heading, *rows], left=0)
