"""What a reader sees of a solve: status, table, and what they must know to read it rightly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import minmaxcon as mm
from minmaxcon.cli.output import paragraphs, table, wrapped
from minmaxcon.cli.running import Finished
from minmaxcon.results.records import RunRecord, RunsRecord, certificate_text, interval_text

__all__ = ["report"]

_NAMES = {"auc": "AUC", "auc_gap": "true gap"}
_SHORT = {"auc": "AUC", "auc_gap": "gap"}
_PARTS = ("train", "validation", "test")


def report(finished: Finished, *, notes: bool = True) -> str:
    """Return the readable report of a solve.

    Parameters
    ----------
    finished : Finished
        The solve.
    notes : bool
        Whether the sentences for the reader stand below.
    """
    record = finished.record
    text = _runs(finished, record) if isinstance(record, RunsRecord) else _run(finished, record)
    return text + (paragraphs(finished.notes) if notes else "")


def _run(finished: Finished, record: RunRecord) -> str:
    problem = finished.loaded.problem
    title = ", ".join(part for part in (problem.name, finished.labels[0], f"seed {record.settings['seed']}") if part)
    rows = [["objective f_0", _number(record.objective), ""]]
    for i, (value, constraint) in enumerate(zip(record.constraints, problem.constraints, strict=True), start=1):
        rows.append([f"f_{i} - b_{i}", _number(value), constraint.name])
    sentence = mm.Status[record.status.upper()].value
    text = f"{title}\n\n{wrapped('', f'{record.status.upper()}: {sentence}')}{wrapped('', record.reason)}\n"
    text += table([[name, value.rjust(12), comment] for name, value, comment in rows], left=3)
    text += table([["certificate  ", certificate_text(record)], ["cost", _cost(record)]], left=2)
    parts = {name: getattr(record, name) for name in _PARTS if getattr(record, name)}
    if parts:
        text += "\n" + _measures(parts)
    return text


def _measures(parts: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the table of the true measures of each part of the data."""
    first = next(iter(parts.values()))
    names = _measure_names(first)
    heading = ["", "rows"]
    heading += [_NAMES.get(name, name) + (" [95% interval]" if f"{name}_interval" in first else "") for name in names]
    rows = [
        [part, f"{found['rows']:,}" if "rows" in found else "", *(interval_text(found, name) for name in names)]
        for part, found in parts.items()
    ]
    return table([heading, *rows])


def _measure_names(part: Mapping[str, Any]) -> list[str]:
    return [name for name, value in part.items() if isinstance(value, float | None) and name != "rows"]


def _runs(finished: Finished, record: RunsRecord) -> str:
    counts = Counter(run.status for run in record.runs)
    listed = ", ".join(f"{count} {status}" for status, count in counts.items())
    seed = record.settings["seed"]
    text = f"{finished.loaded.problem.name}, seed {seed}: {len(record.runs)} runs in one solve\n\n"
    text += f"{listed}; {_cost(record)}\n"
    text += "".join(wrapped(f"  {status}: ", mm.Status[status.upper()].value) for status in counts)
    heading = ["", "status", "objective", "max f_i-b_i", "gap of f*"]
    parts = [part for part in _PARTS if getattr(record.runs[0], part)]
    names = _measure_names(getattr(record.runs[0], parts[0]))[:2] if parts else []
    for part in parts:
        heading += [f"{part} {_SHORT.get(name, name)}" for name in names]
    if parts and f"{names[-1]}_interval" in getattr(record.runs[0], parts[-1]):
        heading[-1] += " [95% interval]"
    rows = []
    for label, run in zip(finished.labels, record.runs, strict=True):
        worst = max((value for value in run.constraints if value is not None), default=None)
        row = [label, run.status, _number(run.objective), _number(worst, 3), _number(run.certificate.gap, 3)]
        for part in parts:
            row += [interval_text(getattr(run, part), name).split(" ")[0] for name in names]
        if parts:  # there is room for one interval
            row[-1] = interval_text(getattr(run, parts[-1]), names[-1])
        rows.append(row)
    return text + "\n" + table([heading, *rows], left=2)


def _number(value: Any, digits: int = 6) -> str:
    return "unknown" if value is None else f"{value:.{digits}g}"


def _cost(record: RunRecord | RunsRecord) -> str:
    return f"{record.steps:,} steps, {record.seconds:.1f} s"
