"""The front of a user's own rows: candidates with intervals on every part, the one that is taken, and how to train it.

A candidate is the model of a target, whose gap on the training rows is held to it. The one that is taken is chosen by
the rule of ``FairAUCClassifier`` with several limits, on the validation rows; the test rows choose nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from minmaxcon.cli import table, words_of, wrapped
from minmaxcon.results import OKABE_ITO, csv_text, empty_figure, png, style_axes, to_json, versions
from minmaxcon_problems.fair_auc.target.fairest import fairest_near_best

from .fronts import UNCONSTRAINED
from .own_rows import OwnRows
from .report import Plan, Report, left_out
from .study import Panel
from .sweep import Sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Candidate", "Other", "OwnFront", "front_figure", "own_front", "own_report"]

PARTS = ("train", "validation", "test")

_OURS = "max_gap"
"""The method whose models are the candidates."""

_MET = 1e-3
"""By how much the gap on the training rows may be above its target, which training leaves open."""

_QUANTILE = 1.959963984540054

_WAYS = {
    "max_gap": "targets, as above, selected",
    "level_set_adaptive": "level sets (--kappa), adaptive weight",
    "level_set": "level sets (--kappa)",
    "proxy_lagrangian": "proxy-Lagrangian",
    "correlation": "correlation penalty",
    "post_processing": "post-processing (reads the group)",
    UNCONSTRAINED: "no limit",
}
"""Names of the methods in the table of other ways."""

Measure = tuple[float, float, float]
"""A value, and the ends of its 95% interval: means over the splits."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """The models of one target: AUC and gap by part of the rows, and whether the target was met on training rows."""

    target: float
    auc: Mapping[str, Measure]
    gap: Mapping[str, Measure]
    met: bool


@dataclass(frozen=True, slots=True)
class Other:
    """The models of another way, selected on validation rows: AUC and gap on the test rows.

    ``within`` tells whether the gap on the validation rows is at most the target in every split. In a split where no
    model's is, the model with the least gap is selected. The way without a limit selects by AUC alone.
    """

    method: str
    auc: Measure
    gap: Measure
    within: bool


@dataclass(frozen=True, slots=True)
class OwnFront:
    """What a sweep found of a user's rows.

    ``chosen`` is the place of the candidate that is taken, None where there is none; ``error`` and ``best`` are what it
    was chosen by, a standard error and a place. ``others`` are the other ways to a fair model, each selected on
    validation rows for the target of the chosen one, and the one without a limit, selected for none; ``same`` are the
    larger targets, whose model is that of the last candidate.
    """

    candidates: list[Candidate]
    chosen: int | None
    best: int | None
    error: float
    others: list[Other]
    splits: int
    same: tuple[float, ...] = ()


def own_front(records: Sequence[Mapping[str, Any]]) -> OwnFront:
    """Return candidates, the one that is taken, and the other ways, from the records of one panel."""
    targets: dict[float, list[Mapping[str, Any]]] = {}
    for record in records:
        for point in record["points"] if record["method"] == _OURS else ():
            if point["kind"] == "target":
                targets.setdefault(float(point["asked"]), []).append(point)
    every = [_candidate(target, targets[target]) for target in sorted(targets)]
    # Beyond the gap without a limit all targets have one model.
    found = [one for k, one in enumerate(every) if k == 0 or (one.auc, one.gap) != (every[k - 1].auc, every[k - 1].gap)]
    met = [k for k, one in enumerate(found) if one.met]
    chosen = best = None
    error = math.nan
    if met:
        values = [found[k].auc["validation"][0] for k in met]
        best = met[int(np.argmax(values))]
        _, low, high = found[best].auc["validation"]
        error = (high - low) / (2.0 * _QUANTILE)
        chosen = met[fairest_near_best(values, [found[k].target for k in met], error)]
    others = [] if chosen is None else _others(records, found[chosen].target)
    same = tuple(one.target for one in every if found and one.target > found[-1].target)
    return OwnFront(found, chosen, best, error, others, len({int(record["seed"]) for record in records}), same)


def _candidate(target: float, points: Sequence[Mapping[str, Any]]) -> Candidate:
    auc, gap = ({part: _measure(points, part, what) for part in PARTS} for what in ("auc", "gap"))
    return Candidate(target, auc, gap, gap["train"][0] <= target + _MET)


def _measure(points: Sequence[Mapping[str, Any]], part: str, what: str) -> Measure:
    """Return the means over splits of a value and the ends of its interval."""
    rows = [[point[part][what], *point[part][f"{what}_interval"]] for point in points]
    value, low, high = np.mean(np.array(rows, dtype=np.float64), axis=0).tolist()
    return value, low, high


def _others(records: Sequence[Mapping[str, Any]], target: float) -> list[Other]:
    """Return what each method selects for a target; without a limit, for none."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        for point in record["points"]:
            asked = point["asked"] == target or record["method"] == UNCONSTRAINED
            if point["kind"] == "selected" and asked:
                found.setdefault(record["method"], []).append(point)
    return [
        Other(
            method,
            _measure(points, "test", "auc"),
            _measure(points, "test", "gap"),
            all(point["validation"]["gap"] <= target for point in points),
        )
        for method, points in found.items()
    ]


def own_report(
    planned: Plan,
    sweep: Sweep,
    rows: OwnRows,
    files: Mapping[str, str],
    out: str,
    methods: Sequence[str] | None = None,
) -> Report:
    """Return text, figure and tables of a sweep of one's own rows.

    ``files`` are those of the parts as they were typed, by option, ``out`` is the folder as it was typed, and
    ``methods`` are those asked for, if not all.
    """
    (panel,) = planned.panels
    front = own_front(sweep.records)
    command = None if front.chosen is None else _command(front.candidates[front.chosen], panel, rows, files)
    text = _heading(front, panel, rows) + _text(front, command, rows, out)
    asked = {
        one: {name: why for name, why in found.items() if methods is None or name in methods}
        for one, found in planned.excluded.items()
    }
    for line in left_out(replace(planned, excluded=asked), lambda name: _WAYS.get(name, name)).splitlines():
        text += wrapped("  - " if line.startswith("  - ") else "", line.removeprefix("  - "))
    summary = {
        **asdict(panel),
        "problem": planned.configurations[0].problem,
        "quick": planned.configurations[0].quick,
        "configurations": sweep.total,
        "finished": len(sweep.records),
        "kept": sweep.kept,
        "failures": sweep.failures,
        "seconds": round(sum(float(record.get("seconds") or 0.0) for record in sweep.records), 3),
        "splits": front.splits,
        "candidates": [{**asdict(one), "chosen": k == front.chosen} for k, one in enumerate(front.candidates)],
        "standard_error": front.error,
        "command": command,
        "others": [asdict(one) for one in front.others],
        "notes": sweep.notes,
        "versions": versions(),
    }
    written = {
        "candidates.csv": csv_text(_every_split(sweep.records)).encode(),
        "front.txt": text.encode(),
        "front.png": png(front_figure(front, panel)),
        "summary.json": to_json(summary).encode(),
    }
    return Report(summary, text, written)


def _command(candidate: Candidate, panel: Panel, rows: OwnRows, files: Mapping[str, str]) -> str:
    """Return the command that trains a candidate."""
    kind = {} if panel.model == "linear" else {"model": panel.model}
    given = {**files, **rows.columns.given()}
    words = words_of({**given, "metric": panel.metric, **kind, "max_gap": candidate.target, "out": "model"})
    return f"minmaxcon solve fair_auc {words}"


def _heading(front: OwnFront, panel: Panel, rows: OwnRows) -> str:
    parts = rows.parts(0)
    train = parts.train
    counts = [len(part) for part in (train, parts.validation, parts.test) if part is not None]
    (negative, positive), (rest, protected) = train.label_values, train.group_values
    told = f"{panel.data}, {panel.metric}, {panel.model}: {counts[0]:,} rows train, {counts[1]:,} validate and"
    told += f" {counts[2]:,} test"
    several = f", in {front.splits} splits" if front.splits > 1 and None in (rows.validation, rows.test) else ""
    meaning = f"label: {positive!r} is positive, {negative!r} negative; protected: {protected!r}, against {rest!r}"
    return wrapped("", told + several) + wrapped("", meaning)


def _text(front: OwnFront, command: str | None, rows: OwnRows, out: str) -> str:
    if not front.candidates:
        return "\nNo candidates: the method max_gap, whose models they are, was not asked for or has not finished.\n"
    means = "; means over the splits" if front.splits > 1 else ""
    text = f"\nCandidates, held to a target on the training rows (95% intervals{means})\n\n"
    body = [["target", "rows", "AUC", "gap"]]
    for k, one in enumerate(front.candidates):
        for part in PARTS:
            first = part == PARTS[0]
            mark = " *" if k == front.chosen else " !" if not one.met else ""
            body.append([f"{one.target:g}{mark}" if first else "", part, _told(one.auc[part]), _told(one.gap[part])])
    text += table(body, left=2)
    if any(not one.met for one in front.candidates):
        text += "! the target was not met on the training rows\n"
    if front.same:
        text += f"larger targets change nothing: {', '.join(f'{target:g}' for target in front.same)}\n"
    if front.chosen is None or front.best is None or command is None:
        return text + "\nNone is chosen: no target was met.\n"
    chosen, best = front.candidates[front.chosen], front.candidates[front.best]
    rule = (
        f"* Chosen: target {chosen.target:g}, the smallest whose AUC on the validation rows,"
        f" {chosen.auc['validation'][0]:.4f}, is within one standard error, {front.error:.4f}, of the best,"
        f" {best.auc['validation'][0]:.4f} (target {best.target:g}). The test rows choose nothing. For a limit of your"
        " own, take the largest target whose gap on the validation rows is within it."
    )
    text += "\n" + wrapped("", rule) + f"\nTrain it:\n  {command}\n"
    if rows.test is None:
        text += wrapped("", "It divides the rows anew, 70% to train and 30% to test: measure what it says of them.")
    text += wrapped("", f"AUC and gap of every split are in {out}/candidates.csv, the figure is {out}/front.png.")
    return text + _text_of_others(front.others, chosen.target)


def _text_of_others(others: Sequence[Other], target: float) -> str:
    """Return the table of other ways, and what each was selected by."""
    text = ""
    limited, free = ([one for one in others if (one.method == UNCONSTRAINED) is alone] for alone in (False, True))
    if limited:
        said = (
            "Other ways, each with the model of the best AUC on the validation rows among those whose gap there is at"
        )
        text += "\n" + wrapped("", f"{said} most {target:g}{'; no limit: the best AUC, of any gap' if free else ''}")
    elif free:
        text += "\n" + wrapped("", "Without a limit: the model of the best AUC on the validation rows, of any gap")
    if others:
        body = [
            [
                f"{_WAYS.get(one.method, one.method)}{'' if one.within or one in free else ' !'}",
                _told(one.auc),
                _told(one.gap),
            ]
            for one in (*limited, *free)
        ]
        text += "\n" + table([["way", "AUC, test", "gap, test"], *body])
    if not all(one.within for one in limited):
        text += wrapped("", "! no model has so small a gap on the validation rows: the one with the least gap there")
    return text


def _told(measure: Measure) -> str:
    value, low, high = measure
    return f"{value:.4f} [{low:.4f}, {high:.4f}]" if math.isfinite(low) else f"{value:.4f} (no interval)"


def _every_split(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each split, model and part."""
    return [
        {
            "method": record["method"],
            "kind": point["kind"],
            "target": point["asked"],
            "split": record["seed"],
            "rows": part,
            **{name: point[part][name] for name in ("auc", "gap")},
            **{
                f"{name}_{end}": point[part][f"{name}_interval"][place]
                for name in ("auc", "gap")
                for place, end in enumerate(("lower", "upper"))
            },
        }
        for record in records
        for point in record["points"]
        for part in PARTS
    ]


_LOOK: dict[str, dict[str, Any]] = {
    "train": {"color": "#9A9A9A", "marker": "v", "markersize": 4, "linewidth": 1.0, "label": "training rows"},
    "validation": {"color": OKABE_ITO[1], "marker": "s", "markersize": 4, "linewidth": 1.0, "label": "validation rows"},
    "test": {"color": OKABE_ITO[0], "marker": "o", "markersize": 6, "linewidth": 1.8, "label": "test rows"},
}
_GREY = "#6E6E6E"


def front_figure(front: OwnFront, panel: Panel) -> Figure:
    """Draw AUC against gap of the candidates on every part, the chosen one with its intervals, and the other ways."""
    figure = empty_figure(7.0, 4.8)
    axes = figure.subplots()
    for part, look in _LOOK.items():
        gaps, areas = [one.gap[part][0] for one in front.candidates], [one.auc[part][0] for one in front.candidates]
        axes.plot(gaps, areas, zorder=3 if part == "test" else 2, **look)
    if front.chosen is not None:
        chosen = front.candidates[front.chosen]
        (gap, left, right), (auc, low, high) = chosen.gap["test"], chosen.auc["test"]
        axes.errorbar(
            [gap],
            [auc],
            xerr=[[gap - left], [right - gap]],
            yerr=[[auc - low], [high - auc]],
            fmt="o",
            color="black",
            markersize=8,
            markerfacecolor=OKABE_ITO[0],
            capsize=3,
            linewidth=1.2,
            zorder=5,
            label=f"chosen: target {chosen.target:g}, with 95% intervals on test rows",
        )
        axes.axvline(chosen.target, color=_GREY, linewidth=0.9, linestyle=(0, (2, 2)), zorder=1)
        where: dict[str, Any] = {
            "xytext": (3, 4),
            "textcoords": "offset points",
            "color": _GREY,
            "fontsize": "small",
            "rotation": 90,
        }
        axes.annotate(f"target {chosen.target:g}", (chosen.target, 0.0), xycoords=("data", "axes fraction"), **where)
    for place, one in enumerate(front.others):
        if one.method != _OURS:
            marker = "*" if one.method == UNCONSTRAINED else "D"
            look = {"color": OKABE_ITO[(place + 2) % len(OKABE_ITO)], "marker": marker}
            name = f"{_WAYS.get(one.method, one.method)}, test rows"
            axes.plot([one.gap[0]], [one.auc[0]], linestyle="", markersize=6, label=name, **look)
    axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    axes.set_xlabel(f"{panel.metric.replace('_', '-')} gap")
    axes.set_ylabel("AUC")
    style_axes(axes)
    means = f", means over {front.splits} splits" if front.splits > 1 else ""
    figure.suptitle(f"{panel.data}: AUC against gap of {len(front.candidates)} candidates{means}", fontsize="medium")
    if front.candidates:
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    return figure
