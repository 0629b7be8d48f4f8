"""From a study to its configurations, and from their records to the files of a folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minmaxcon.errors import InvalidInput, UnknownName
from minmaxcon.results import csv_text, to_json, versions, write_file

from .front_panels import front_panels
from .front_tables import achieved_rows, best_auc_rows, front_rows, hypervolume_rows, text_tables
from .run_files import Configuration
from .series import series_of
from .study import FairAUCStudy, Panel
from .sweep import Sweep

__all__ = ["Plan", "Report", "check_out", "plan", "report", "write_report"]

_OURS = re.compile(r"runs|summary\.json|(hypervolume|best_auc|achieved|fronts)\.csv|tables\.txt|fronts-.*\.png")
_LEFT = re.compile(r"\.(.+)\.(new|try)-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run.

    Attributes
    ----------
    configurations : list of Configuration
        By panel, method and seed.
    panels : list of Panel
        The panels that were chosen.
    excluded : dict
        For each panel the methods that do not apply, with the reason.
    order : list of str
        All methods of the study, in the order of their colours.
    """

    configurations: list[Configuration]
    panels: list[Panel]
    excluded: dict[Panel, dict[str, str]]
    order: list[str]


@dataclass(frozen=True, eq=False, slots=True)
class Report:
    """What is told of a sweep.

    Attributes
    ----------
    summary : dict
        As JSON knows it.
    text : str
        The tables.
    files : dict of str to bytes
        Content by file name.
    """

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
    """Return the configurations that were asked for.

    Parameters
    ----------
    study : FairAUCStudy
        The study.
    problem : str
        The problem's name.
    data, metric, model, methods : sequence of str, optional
        What to take; all by default.
    seeds : int, optional
        Number of seeds; the study's own by default.
    quick : bool
        Whether the study's small grid is used.

    Raises
    ------
    UnknownName
        A name is unknown.
    InvalidInput
        No method that was asked for applies.
    """
    panels = list(study.panels(data=data, metric=metric, model=model))
    everything = dict.fromkeys([*study.panels(), *panels])
    order = list(dict.fromkeys(name for panel in everything for name in study.methods(panel)))
    for name in methods or ():
        if name not in order:
            raise UnknownName("methods", name, order)
    count = (study.quick_seeds if quick else study.seeds) if seeds is None else seeds
    settings = study.settings(quick)
    configurations = [
        Configuration(problem, panel, name, seed, quick, settings)
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


def report(study: FairAUCStudy, planned: Plan, sweep: Sweep, table: Callable[..., str]) -> Report:
    """Return tables and figures of what a sweep found.

    Parameters
    ----------
    study : FairAUCStudy
        The study.
    planned : Plan
        What was asked for.
    sweep : Sweep
        What was found.
    table : callable
        Aligns rows of cells, as :func:`minmaxcon.cli.output.table`.
    """
    from minmaxcon.results import png

    names = study.labels()

    def label(name: str) -> str:
        return names.get(name, name.replace("_", " "))

    panels = series_of(sweep.records)
    rows = {
        "hypervolume": hypervolume_rows(panels),
        "best_auc": best_auc_rows(panels),
        "achieved": achieved_rows(panels),
    }
    text = text_tables(panels, label, table) + _left_out(planned, label)
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
            {"data": panel.data, "metric": panel.metric, "model": panel.model, "method": name, "reason": why}
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


def _left_out(planned: Plan, label: Callable[[str], str]) -> str:
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


def check_out(out: str | Path) -> None:
    """Refuse a folder that holds what these commands do not write.

    Raises
    ------
    InvalidInput
        The path is no folder, or holds something else.
    """
    folder = Path(out)
    try:
        entries = sorted(entry.name for entry in folder.iterdir())
    except FileNotFoundError:
        if not folder.is_symlink():
            return
        raise InvalidInput("out", str(out), "is a link to nothing; name another.") from None
    except NotADirectoryError:
        raise InvalidInput("out", str(out), "is no folder and cannot be one; name another.") from None
    except (OSError, ValueError) as failure:
        cause = getattr(failure, "strerror", None) or str(failure)
        raise InvalidInput("out", str(out), f"cannot be read ({cause}); name another.") from failure
    for name in entries:
        left = _LEFT.fullmatch(name)
        if not _OURS.fullmatch(left[1] if left else name):
            raise InvalidInput("out", str(out), f"holds {name!r}, which this command does not write; name another.")


def write_report(out: str | Path, found: Report) -> None:
    """Write the files of a report into the folder, each whole; ``summary.json`` is the last.

    Raises
    ------
    InvalidInput
        The disk refused.
    """
    folder = Path(out)
    for entry in folder.iterdir():
        if _LEFT.fullmatch(entry.name) and entry.is_file():
            entry.unlink(missing_ok=True)
    for name, content in _last(found.files, "summary.json").items():
        write_file(folder / name, content, overwrite=True)


def _last(files: Mapping[str, bytes], name: str) -> dict[str, bytes]:
    return {**{key: value for key, value in files.items() if key != name}, name: files[name]}
