"""The demonstration: mortgage approvals without and with a bound, and the front between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import minmaxcon as mm
from minmaxcon.cli import CAUTIONS, Finished, Output, finish, load, paragraphs, table
from minmaxcon.results import (
    OKABE_ITO,
    RunRecord,
    RunsRecord,
    certificate_text,
    check_folder,
    empty_figure,
    interval_text,
    png,
    style_axes,
    to_json,
    write_folder,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FrontPoint", "front_figure", "run_demo"]

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

_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_GREY = "#6E6E6E"


def run_demo(output: Output, *, out: Path | None, overwrite: bool, seed: int) -> int:
    """Solve, print and write what ``minmaxcon demo`` tells; return its exit status."""
    if seed < 0:
        raise mm.InvalidInput("seed", seed, "must be at least 0.")
    json = output.json
    target, replace = (FOLDER, True) if out is None else (out, overwrite)
    writes = out is not None or not json
    if writes:
        check_folder(target, overwrite=replace, only=None if overwrite else _FILES)
    given = {"data": "loanapp", "metric": "inter_group", "kappa": list(KAPPAS)}
    with output.guarded():
        loaded = load("fair_auc", given, seed=seed)
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
    told = {"status", "feasible", "objective", "constraints", "certificate", "train", "test"}
    rows = (run.model_dump(include=told) for run in record.runs)
    front = [{"kappa": kappa, **row} for kappa, row in zip(KAPPAS, rows, strict=True)]
    return {
        "rows": [{"fit": "without", **front[without]}, {"fit": "with", **front[chosen]}],
        "rule": RULE,
        "loosest_bound_binds": _binds(record.runs[without]),
        "front": front,
        **record.model_dump(exclude={"runs"}),
    }


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
    return text + paragraphs({"How to read this": [*said, *finished.notes.get(CAUTIONS, ())]})


def _front(record: RunsRecord) -> str:
    heading = ["kappa", *(f"{name} {what}" for name in ("training", "held-out") for what in ("AUC", "gap"))]
    rows = []
    for kappa, run in zip(KAPPAS, record.runs, strict=True):
        found: list[Mapping[str, Any]] = [getattr(run, part) for part in _PARTS]
        rows.append([f"{kappa:g}", *(f"{measures[what]:.4f}" for measures in found for what in _WHAT)])
    return table([heading, *rows], left=0)


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """One model of a front: AUC and gap with their confidence intervals (lower, upper).

    ``label`` is what stands beside the point; at most two points of a front have one.
    """

    label: str
    auc: float
    gap: float
    auc_interval: tuple[float, float]
    gap_interval: tuple[float, float]


def front_figure(parts: Mapping[str, Sequence[FrontPoint]], *, xlabel: str, ylabel: str, title: str = "") -> Figure:
    """Draw a front of models, one panel a part of the data, with the intervals of both measures; see :func:`png`.

    ``parts`` are the points of each panel, in the order of the bound; the labels say what the gap and the AUC are.
    """
    figure = empty_figure(5.0 * len(parts) + 0.2, 4.2)
    panels = figure.subplots(1, len(parts), squeeze=False)[0]
    for place, (axes, (name, points)) in enumerate(zip(panels, parts.items(), strict=True)):
        _draw_front(axes, points, OKABE_ITO[place], _MARKERS[place])
        style_axes(axes)
        axes.set_title(name, fontsize="medium")
        axes.set_xlabel(xlabel)
        axes.margins(0.05)
    panels[0].set_ylabel(ylabel)
    if title:
        figure.suptitle(title)
    return figure


def _draw_front(axes: Axes, points: Sequence[FrontPoint], colour: str, marker: str) -> None:
    """Draw the points as one line; those with a label stand out, and so do their intervals."""
    named = [point for point in points if point.label]
    for group, strength in ((points, 0.22), (named, 1.0)):
        gap, auc = np.array([point.gap for point in group]), np.array([point.auc for point in group])
        bars = {
            "xerr": _lengths(gap, [point.gap_interval for point in group]),
            "yerr": _lengths(auc, [point.auc_interval for point in group]),
        }
        axes.errorbar(gap, auc, **bars, fmt="none", ecolor=colour, elinewidth=0.9, alpha=strength, capsize=3 * strength)
    line = [(point.gap, point.auc) for point in points]
    axes.plot(*zip(*line, strict=True), color=colour, marker=marker, markersize=5, linewidth=1.2)
    for point, offset in zip(named, ((24, 62), (20, -40)), strict=False):
        axes.plot(point.gap, point.auc, marker="o", markersize=12, markerfacecolor="none", color="black", linestyle="")
        axes.annotate(
            point.label,
            (point.gap, point.auc),
            xytext=offset,
            textcoords="offset points",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
            arrowprops={"arrowstyle": "-", "color": _GREY, "linewidth": 0.8, "shrinkB": 7},
        )


def _lengths(values: Any, intervals: Sequence[tuple[float, float]]) -> Any:
    """Return the lengths (2, n) of error bars; 0 where there is no interval."""
    low, high = np.array(intervals, dtype=float).reshape(-1, 2).T
    return np.nan_to_num(np.maximum(np.stack([values - low, high - values]), 0.0))
