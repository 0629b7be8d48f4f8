"""Reports of a sweep: the plan of its configurations, tables, figures, and the files of a folder."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from minmaxcon.cli import table
from minmaxcon.errors import InvalidInput, UnknownName
from minmaxcon.results import (
    OKABE_ITO,
    csv_text,
    empty_figure,
    leftover,
    png,
    remove_leftovers,
    style_axes,
    to_json,
    versions,
    write_file,
)

from .fronts import UNCONSTRAINED, Asked, Series, mean_and_error, mean_front, series_of
from .study import FairAUCStudy, Panel
from .sweep import Configuration, Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "GAPS",
    "Plan",
    "Report",
    "achieved_rows",
    "ahead_rows",
    "best_auc_rows",
    "check_out",
    "front_panels",
    "front_rows",
    "hypervolume_rows",
    "left_out",
    "plan",
    "report",
    "series_label",
    "text_tables",
    "write_report",
]

GAPS = (0.01, 0.02, 0.05)
"""Gaps at which the best AUC is reported."""

GRID = tuple(round(0.01 * k, 2) for k in range(31))
"""Gaps at which fronts are interpolated."""

Row = dict[str, Any]
Panels = Mapping[Panel, Sequence[Series]]


def _head(series: Series, apart: Sequence[str] = ()) -> Row:
    found = {**asdict(series.panel), "method": series.method, "kind": series.kind}
    return {**found, "apart": series.method in apart} if apart else found


def _mean_sd(values: Sequence[float]) -> Row:
    """Return mean, standard deviation and number of the values that exist."""
    known = np.array([value for value in values if math.isfinite(value)])
    mean = float(known.mean()) if known.size else math.nan
    return {"seeds": int(known.size), "mean": mean, "sd": float(known.std(ddof=1)) if known.size > 1 else math.nan}


def _with_best(rows: list[Row]) -> list[Row]:
    """Mark the rows with the largest mean, among those that do not stand apart and have as many seeds as any."""
    most = max((row["seeds"] for row in rows), default=0)
    shared = [not row.get("apart") and row["seeds"] == most and math.isfinite(row["mean"]) for row in rows]
    top = max((row["mean"] for row, one in zip(rows, shared, strict=True) if one), default=math.nan)
    return [{**row, "best": one and row["mean"] == top} for row, one in zip(rows, shared, strict=True)]


def hypervolume_rows(panels: Panels, apart: Sequence[str] = ()) -> list[Row]:
    """Return mean and standard deviation over seeds of the normalised hypervolume on test, by panel and method.

    Methods ``apart`` are never the best.
    """
    return [
        row
        for found in panels.values()
        for row in _with_best([{**_head(one, apart), **_mean_sd(one.hypervolumes())} for one in found])
    ]


def ahead_rows(panels: Panels, own: Sequence[str], apart: Sequence[str] = ()) -> list[Row]:
    """Return, by panel, how far the best series of ours is ahead of the best other, in hypervolume, paired over seeds.

    ``mean`` and ``error`` are those of the difference over the seeds that all compared series have, by which the best
    are chosen, too: a sweep that has not ended compares nothing with other seeds. ``verdict`` is ``"ahead"``,
    ``"level"`` where the difference is negative and at most one standard error, or ``"behind"``. Methods ``apart`` and
    the unconstrained model count for neither side.
    """
    rows: list[Row] = []
    for panel, found in panels.items():
        compared = [one for one in found if one.method not in (*apart, UNCONSTRAINED)]
        volumes = {one.key: dict(zip(one.seeds, one.hypervolumes(), strict=True)) for one in compared}
        seeds = sorted(set.intersection(*(set(known) for known in volumes.values()))) if volumes else []
        mine, rivals = ([one for one in compared if (one.method in own) is ours] for ours in (True, False))
        if not (mine and rivals and seeds):
            continue
        means = {key: np.mean([known[seed] for seed in seeds]) for key, known in volumes.items()}
        best, other = (max(series, key=lambda one: means[one.key]) for series in (mine, rivals))
        mean, error = mean_and_error([volumes[best.key][seed] - volumes[other.key][seed] for seed in seeds])
        verdict = "ahead" if mean >= 0 else "level" if mean >= -error else "behind"
        names = {"method": best.method, "kind": best.kind, "other": other.method}
        rows.append({**asdict(panel), **names, "seeds": len(seeds), "mean": mean, "error": error, "verdict": verdict})
    return rows


def best_auc_rows(panels: Panels, apart: Sequence[str] = ()) -> list[Row]:
    """Return the best AUC on test at a gap on test of at most each of :data:`GAPS`.

    ``seeds`` counts those that have such a point; the mean is over them. It is marked as best only among series with as
    many seeds as any.
    """
    rows: list[Row] = []
    for found in panels.values():
        for limit in GAPS:
            mine = [{**_head(one, apart), "gap": limit, **_mean_sd(one.best_aucs(limit))} for one in found]
            rows += _with_best(mine)
    return rows


def achieved_rows(panels: Panels) -> list[Row]:
    """Return for each asked gap the means over seeds of gap and AUC on all parts, and the share that met it."""
    return [
        {
            **_head(one),
            "asked": reached.asked,
            "seeds": reached.seeds,
            **{f"{part}_gap": reached.gap[part][0] for part in ("train", "validation", "test")},
            "test_gap_sd": reached.gap_sd,
            "test_auc": reached.auc["test"][0],
            "met": reached.met,
        }
        for found in panels.values()
        for one in found
        for reached in one.by_asked()
    ]


def front_rows(panels: Panels) -> list[Row]:
    """Return what is drawn, mean points by asked gap, and the mean of the seeds' fronts at a grid of gaps."""
    rows: list[Row] = []
    shown: Row
    for one in (series for found in panels.values() for series in found):
        for reached in one.by_asked():
            (gap, gap_error), (auc, auc_error) = reached.gap["test"], reached.auc["test"]
            shown = {"asked": reached.asked, "gap": gap, "gap_error": gap_error, "auc": auc, "auc_error": auc_error}
            rows.append({**_head(one), "curve": "asked", **shown, "seeds": reached.seeds, "front": reached.front})
        for gap, auc, error, count in zip(GRID, *mean_front(one.fronts(), GRID), strict=True):
            shown = {"asked": "", "gap": float(gap), "gap_error": "", "auc": float(auc), "auc_error": float(error)}
            rows.append({**_head(one), "curve": "interpolated", **shown, "seeds": int(count), "front": ""})
    return rows


def text_tables(panels: Panels, label: Callable[[str], str], own: Sequence[str] = (), apart: Sequence[str] = ()) -> str:
    """Return the tables as text; ``label`` says what a data set, metric, model or method is called.

    ``own`` names the methods that are compared with the others, ``apart`` those that are only shown.
    """
    first = "Hypervolume on test (AUC above 0.5, gap below 0.3; 1 is perfect): mean and sd over seeds, * best\n"
    second = "Best AUC on test at a test gap of at most g: mean over the seeds that have one (fewer: number), * best\n"
    third = (
        "Gap on test where a target was asked for, by target: mean over seeds, and the share of seeds whose interval\n"
        "on test contains the target or lies below it (achieved.csv has all parts and methods)\n"
    )
    volumes, accuracies = hypervolume_rows(panels, apart), best_auc_rows(panels, apart)
    text = first + _wide(volumes, label, lambda row: _number(row, sd=True))
    if compared := ahead_rows(panels, own, apart):
        text += "\n" + _ahead(compared, label)
    seeds = max((row["seeds"] for row in volumes), default=0)
    text += "\n" + second + _wide(accuracies, label, lambda row: _number(row, seeds=seeds))
    targets = [row for row in achieved_rows(panels) if row["kind"] == "target"]
    if targets:
        text += "\n" + third + _achieved(targets, label)
    return text


def _ahead(rows: Sequence[Row], label: Callable[[str], str]) -> str:
    """Return a line for each panel: the best series of ours against the best other one."""
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in ("ahead", "level", "behind")}
    text = (
        "Our best series less the best other one, in hypervolume: mean and standard error of the difference, paired\n"
        "over seeds (level: behind by at most one standard error)\n"
    )
    heading = ["model", "data", "metric", "ours", "other", "difference", "verdict"]
    body = []
    for row in rows:
        names = (label(row[word]) for word in ("model", "data", "metric"))
        error = f" ±{row['error']:.4f}" if math.isfinite(row["error"]) else ""
        ours = series_label(row["method"], row["kind"], label)
        body.append([*names, ours, label(row["other"]), f"{row['mean']:+.4f}{error}", row["verdict"]])
    text += table([heading, *body], left=5)
    return f"{text}{', '.join(f'{verdict} in {count}' for verdict, count in counts.items())} of {len(rows)} panels\n"


def series_label(method: str, kind: str, label: Callable[[str], str]) -> str:
    """Return what a series is called."""
    return label(method) + (", no validation" if kind == "target" else "")


def _wide(rows: Sequence[Row], label: Callable[[str], str], cell: Callable[[Row], str]) -> str:
    """Return a table with a line for each panel (and gap) and a column for each series."""
    columns = list(dict.fromkeys((row["method"], row["kind"]) for row in rows))
    lines: dict[tuple[str, ...], dict[tuple[str, str], str]] = {}
    for row in rows:
        name: tuple[str, ...] = (label(row["model"]), label(row["data"]), label(row["metric"]))
        name += (f"{row['gap']:g}",) if "gap" in row else ()
        lines.setdefault(name, {})[row["method"], row["kind"]] = cell(row)
    head = ["model", "data", "metric", "g"][: len(next(iter(lines), ()))]
    heading = [*head, *(series_label(*column, label) for column in columns)]
    body = [[*name, *(cells.get(column, "") for column in columns)] for name, cells in lines.items()]
    return table([heading, *body], left=len(head)) if body else "nothing has finished\n"


def _number(row: Row, *, sd: bool = False, seeds: int = 0) -> str:
    if not math.isfinite(row["mean"]):
        return "-  "
    text = f"{row['mean']:.4f}"
    if sd and math.isfinite(row["sd"]):
        text += f" ±{row['sd']:.4f}"
    if row["seeds"] < seeds:
        text += f" ({row['seeds']})"
    return text + (" *" if row["best"] else "  ")


def _achieved(rows: Sequence[Row], label: Callable[[str], str]) -> str:
    """Return a line for each panel and series and a column for each asked gap."""
    asked = sorted({row["asked"] for row in rows})
    lines: dict[tuple[str, ...], dict[float, str]] = {}
    for row in rows:
        name = tuple(label(row[word]) for word in ("model", "data", "metric", "method"))
        met = "" if math.isnan(row["met"]) else f" {row['met']:4.0%}"
        gap = "-" if math.isnan(row["test_gap"]) else f"{row['test_gap']:.3f}"
        lines.setdefault(name, {})[row["asked"]] = gap + met
    heading = ["model", "data", "metric", "method", *(f"{gap:g}" for gap in asked)]
    return table([heading, *([*name, *(cells.get(gap, "") for gap in asked)] for name, cells in lines.items())], left=4)


_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_LINES = ("-", (0, (4, 1.5, 1, 1.5)), (0, (7, 2)), ":", (0, (6, 1.5, 1, 1.5, 1, 1.5)), "-.", (0, (2, 1)))
_BELOW = 0.12
"""Points this far below the best AUC of a panel are counted instead of drawn, since they would flatten the others."""
_BEYOND = 0.3
_GREY = "#6E6E6E"


def front_panels(
    panels: Mapping[Panel, Sequence[Series]],
    *,
    order: Sequence[str],
    label: Callable[[str], str],
) -> Figure:
    """Draw the fronts of one model; see :func:`minmaxcon.results.figures.png`.

    Shown are means over seeds by asked gap, with standard errors on both axes; a line joins those that no other of the
    same series dominates, the others are small and faint. A method has its colour, marker and line style by its place
    in ``order``, all methods of the study, in every figure.
    """
    rows = list(dict.fromkeys(panel.data for panel in panels))
    columns = list(dict.fromkeys(panel.metric for panel in panels))
    legend = _columns(len({one.key for found in panels.values() for one in found}), len(columns))
    figure = empty_figure(max(4.3 * len(columns) + 0.6, 3.1 * legend), 3.4 * len(rows) + 1.4)
    grid = figure.subplots(len(rows), len(columns), squeeze=False)
    empty = {(data, metric) for data in rows for metric in columns}
    entries: dict[tuple[str, str], Any] = {}
    for panel, found in panels.items():
        axes = grid[rows.index(panel.data), columns.index(panel.metric)]
        empty.discard((panel.data, panel.metric))
        reached = {one.key: one.by_asked() for one in found}
        _limit(axes, reached)
        for key in sorted(reached, key=lambda key: key[1] == "target"):
            entries[key] = _draw(axes, key, reached[key], order)
        style_axes(axes)
    for data, metric in empty:
        grid[rows.index(data), columns.index(metric)].set_visible(False)
    for place, metric in enumerate(columns):
        grid[0, place].set_title(label(metric), fontsize="large")
        grid[-1, place].set_xlabel("true AUC gap on test")
    for place, data in enumerate(rows):
        grid[place, 0].set_ylabel(f"{label(data)}\nAUC on test" if len(rows) > 1 else "AUC on test")
    ranked = sorted(entries, key=lambda key: (_place(key[0], order), key[1]))
    handles, names = [entries[key] for key in ranked], [series_label(*key, label) for key in ranked]
    figure.legend(handles, names, loc="outside lower center", ncols=legend, handlelength=3.2, frameon=False)
    models = ", ".join(dict.fromkeys(label(panel.model) for panel in panels))
    title = models if len(rows) > 1 else f"{label(rows[0])}, {models}"
    figure.suptitle(f"{title}: means over seeds, bars are standard errors", fontsize="medium")
    return figure


def _columns(entries: int, panels: int) -> int:
    """Return how many columns the legend has, so that its rows are even and it is no wider than the panels."""
    most = max(2 * panels - 1, 2)
    return max(1, math.ceil(entries / math.ceil(max(entries, 1) / most)))


def _place(method: str, order: Sequence[str]) -> int:
    return list(order).index(method) if method in order else len(order)


def _limit(axes: Axes, reached: Mapping[tuple[str, str], Sequence[Asked]]) -> None:
    """Set both axes to what is worth seeing, and say how many points lie outside."""
    points = [(one.gap["test"][0], one.auc["test"][0]) for found in reached.values() for one in found]
    gap, auc = np.array(points, dtype=float).reshape(-1, 2).T
    known = np.isfinite(gap) & np.isfinite(auc)
    gap, auc = gap[known], auc[known]
    if not gap.size:
        axes.text(0.5, 0.5, "nothing to draw", ha="center", va="center", transform=axes.transAxes, color=_GREY)
        return
    low, right = max(auc.min(), auc.max() - _BELOW), min(gap.max(), _BEYOND)
    inside = (auc >= low) & (gap <= right)
    height, width = max(auc.max() - low, 0.005), max(right, 0.005)
    axes.set_xlim(-0.04 * width, 1.08 * width)
    axes.set_ylim(low - 0.08 * height, auc.max() + 0.1 * height)
    if not inside.all():
        count = int((~inside).sum())
        text = f"{count} point{'s' if count > 1 else ''} outside"
        axes.text(0.98, 0.02, text, ha="right", va="bottom", transform=axes.transAxes, color=_GREY, fontsize="small")


def _draw(axes: Axes, key: tuple[str, str], reached: Sequence[Asked], order: Sequence[str]) -> Any:
    """Draw one series; return what stands for it in the legend."""
    method, kind = key
    place = _place(method, order)
    colour, target = OKABE_ITO[place % (len(OKABE_ITO) - 1)], kind == "target"
    look: dict[str, Any] = {
        "color": colour,
        "marker": _MARKERS[place % len(_MARKERS)],
        "markersize": 5.0 if target else 5.5,
        "markerfacecolor": "white" if target else colour,
        "linestyle": "--" if target else _LINES[place % len(_LINES)],
        "linewidth": 1.5,
        "zorder": 4 if target else 3,
    }
    if method == UNCONSTRAINED:
        look |= {"color": "black", "markerfacecolor": "black", "marker": "*", "markersize": 12, "linestyle": ""}
        look["zorder"] = 5
    columns = np.array([[*one.gap["test"], *one.auc["test"], one.front] for one in reached], dtype=float).reshape(-1, 5)
    gap, gap_error, auc, auc_error, front = columns[np.isfinite(columns[:, 0]) & np.isfinite(columns[:, 2])].T
    on = front > 0
    bars: dict[str, Any] = {"fmt": "none", "ecolor": look["color"], "elinewidth": 0.8, "capsize": 1.5, "zorder": 2}
    errors = np.nan_to_num(np.stack([gap_error, auc_error]))
    x, y, x_error, y_error = np.unique(np.stack([gap[on], auc[on], *errors[:, on]]), axis=1)  # each bar once
    axes.errorbar(x, y, xerr=x_error, yerr=y_error, alpha=0.4, **bars)
    faint = {**look, "linestyle": "", "markersize": 3.5, "alpha": 0.4}
    axes.plot(gap[~on], auc[~on], **faint)
    rank = np.argsort(gap[on])
    (line,) = axes.plot(gap[on][rank], auc[on][rank], **look)
    return line


_OURS = re.compile(
    r"runs|summary\.json|(hypervolume|ahead|best_auc|achieved|fronts)\.csv|tables\.txt|fronts-.*\.png"
    r"|candidates\.csv|front\.(txt|png)"
)


@dataclass(frozen=True, slots=True)
class Plan:
    """Configurations by panel, method and seed; what does not apply, and why; all methods by their colours."""

    configurations: list[Configuration]
    panels: list[Panel]
    excluded: dict[Panel, dict[str, str]]
    order: list[str]


@dataclass(frozen=True, eq=False, slots=True)
class Report:
    """A sweep as JSON knows it, its tables as text, and the content of its files by name, ``summary.json`` last."""

    summary: dict[str, Any]
    text: str
    files: dict[str, bytes]


def plan(
    study: FairAUCStudy,
    problem: str,
    *,
    data: Sequence[str] | None = None,
    metric: Sequence[str] | None = None,
    model: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    seeds: int | None = None,
    quick: bool = False,
) -> Plan:
    """Return the configurations that were asked for: all names by default, and the study's own number of seeds.

    With ``quick`` the study's small grid is used. Raises UnknownName, or InvalidInput where no method asked for
    applies.
    """
    panels = list(study.panels(data=data, metric=metric, model=model))
    everything = dict.fromkeys([*study.panels(), *panels])
    order = list(dict.fromkeys(name for panel in everything for name in study.methods(panel)))
    for name in methods or ():
        if name not in order:
            raise UnknownName("methods", name, order)
    count = (study.quick_seeds if quick else study.seeds) if seeds is None else seeds
    configurations = [
        Configuration(problem, panel, name, seed, quick, study.settings(panel, name, quick))
        for panel in panels
        for name in study.methods(panel)
        if methods is None or name in methods
        for seed in range(count)
    ]
    excluded = {panel: dict(study.excluded(panel)) for panel in panels}
    if not configurations:
        reasons = [why for found in excluded.values() for name, why in found.items() if methods and name in methods]
        remedy = ": ".join(["does not apply here", *reasons[:1]])
        raise InvalidInput("methods", ",".join(methods or ()), remedy)
    return Plan(configurations, panels, excluded, order)


def report(study: FairAUCStudy, planned: Plan, sweep: Sweep) -> Report:
    """Return tables and figures of what a sweep of the plan found."""
    names = study.labels()

    def label(name: str) -> str:
        return names.get(name, name.replace("_", " "))

    panels = series_of(sweep.records)
    rows = {
        "hypervolume": hypervolume_rows(panels, study.apart),
        "ahead": ahead_rows(panels, study.own, study.apart),
        "best_auc": best_auc_rows(panels, study.apart),
        "achieved": achieved_rows(panels),
    }
    text = text_tables(panels, label, study.own, study.apart)
    text += _candidates(sweep.records, label) + left_out(planned, label)
    first = planned.configurations[0]
    summary = {
        "problem": first.problem,
        "quick": first.quick,
        "configurations": sweep.total,
        "finished": len(sweep.records),
        "kept": sweep.kept,
        "failures": sweep.failures,
        "seconds": round(sum(float(record.get("seconds") or 0.0) for record in sweep.records), 3),
        "excluded": [
            {**asdict(panel), "method": name, "reason": why}
            for panel, found in planned.excluded.items()
            for name, why in found.items()
        ],
        **rows,
        "notes": sweep.notes,
        "versions": versions(),
    }
    files = {f"{name}.csv": csv_text(found).encode() for name, found in rows.items()}
    files["fronts.csv"] = csv_text(front_rows(panels)).encode()
    files["tables.txt"] = text.encode()
    for model in dict.fromkeys(panel.model for panel in panels):
        mine = {panel: found for panel, found in panels.items() if panel.model == model}
        figure = front_panels(mine, order=planned.order, label=label)
        files[f"fronts-{re.sub(r'[^A-Za-z0-9_.+]+', '_', model)}.png"] = png(figure)
    files["summary.json"] = to_json(summary).encode()
    return Report(summary, text, files)


def _candidates(records: Sequence[Mapping[str, Any]], label: Callable[[str], str]) -> str:
    """Return from how many models validation data chose, by method."""
    counts: dict[str, list[int]] = {}
    for record in records:
        if "candidates" in record:
            counts.setdefault(record["method"], []).append(int(record["candidates"]))
    if not counts:
        return ""
    words = []
    for name, found in counts.items():
        few, many = min(found), max(found)
        words.append(f"{label(name)} {many}" if few == many else f"{label(name)} {few} to {many}")
    return f"\nCandidates of a panel and seed, from which validation data choose: {', '.join(words)}.\n"


def left_out(planned: Plan, label: Callable[[str], str]) -> str:
    """Return why methods are missing, one line a method and reason."""
    reasons: dict[tuple[str, str], list[Panel]] = {}
    for panel, found in planned.excluded.items():
        for name, why in found.items():
            reasons.setdefault((name, why), []).append(panel)
    lines = []
    for (name, why), panels in reasons.items():
        metrics = ", ".join(dict.fromkeys(label(panel.metric) for panel in panels))
        lines.append(f"  - {label(name)} ({metrics}): {why}\n")
    return "".join(["\nNot run\n", *lines]) if lines else ""


def check_out(out: str | Path, option: str = "out") -> None:
    """Refuse (InvalidInput) a path that is no folder, or a folder that holds what these commands do not write."""
    folder = Path(out)
    try:
        entries = sorted(entry.name for entry in folder.iterdir())
    except FileNotFoundError:
        if not folder.is_symlink():
            return
        raise InvalidInput(option, str(out), "is a link to nothing; name another.") from None
    except NotADirectoryError:
        raise InvalidInput(option, str(out), "is no folder and cannot be one; name another.") from None
    except (OSError, ValueError) as failure:
        cause = getattr(failure, "strerror", None) or str(failure)
        raise InvalidInput(option, str(out), f"cannot be read ({cause}); name another.") from failure
    for name in entries:
        if not _OURS.fullmatch(leftover(name) or name):
            raise InvalidInput(option, str(out), f"holds {name!r}, which this command does not write; name another.")


def write_report(out: str | Path, found: Report) -> None:
    """Write the files of a report into the folder, each whole; ``summary.json`` is the last.

    Raises InvalidInput where the disk refused.
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)
    for name, content in found.files.items():
        write_file(folder / name, content, overwrite=True)
