"""Measures of the scores that a saved model gives to the rows of a file whose labels and groups are known."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.tables import Column, Table, encoding_from_dict, read_source

from .labelled import group_of, is_libsvm, label_of, libsvm_table, listed, position_of, signs_like, truth_columns
from .measured import GroupSigns, Measured, measured
from .metrics import METRICS, resolve_metric

__all__ = ["measure_new_rows"]


def measure_new_rows(
    description: Mapping[str, Any],
    scores: Any,
    data: Any,
    *,
    label: str | None,
    positive: object,
    sensitive: str | int | None,
    protected: object,
    metric: str | None,
    confidence: float,
    missing: str,
) -> Measured:
    """Measure scores (n,), with the description of the model that gave them; see ``FairAUC.measure_scores``."""
    if missing not in ("refuse", "drop"):
        raise mm.UnknownName("missing", str(missing), ("refuse", "drop"))
    if sensitive is None:
        for name, value in (("protected", protected), ("metric", metric)):
            if value is not None:
                raise mm.InvalidInput(name, value, "is about groups: name their column with sensitive.")
    truth_columns(data, label, sensitive)
    resolved = resolve_metric(_metric(description, metric, needed=sensitive is not None))
    table, label, column = _truth(description, data, label, sensitive)
    if table.rows != len(scores):
        raise mm.DataError(table.source, f"has {table.rows:,} rows now, and {len(scores):,} were scored; run it again.")
    if missing == "drop":
        table, scores = _with_truth(table, np.asarray(scores))
    signs, labels = _label(table, label, description, positive)
    groups = [] if column is None else [_group(table, column, description, protected)]
    return measured(np.asarray(scores, dtype=np.float64), signs, groups, resolved, labels, confidence=confidence)


def _metric(description: Mapping[str, Any], asked: str | None, *, needed: bool) -> str:
    """Return the metric that is asked for, by default the model's own."""
    known = [name for name in METRICS if name == description.get("metric")]
    if asked is None and needed and not known:
        remedy = f"the model does not name the metric that it was trained with; give one of {', '.join(METRICS)}."
        raise mm.InvalidInput("metric", asked, remedy)
    return [*known, *METRICS][0] if asked is None else asked


def _truth(
    description: Mapping[str, Any], data: Any, label: str | None, sensitive: str | int | None
) -> tuple[Table, str, str | None]:
    """Return a table with the columns of the truth, and their names in it."""
    if is_libsvm(data):
        if sensitive is None:
            raise mm.InvalidInput("sensitive", None, "give the index of the feature that is the sensitive attribute.")
        encoding = encoding_from_dict(description.get("encoding"))
        return libsvm_table(data, sensitive, getattr(encoding, "n_features", None))[:3]
    assert label is not None  # noqa: S101 - truth_columns has seen to it
    found = read_source(data, [label], by="label")
    if sensitive is None:
        return found, label, None
    column = str(sensitive)
    groups = read_source(data, [column], by="sensitive")
    return Table(found.source, {**found.columns, **groups.columns}, found.rows, found.lines), label, column


def _with_truth(table: Table, scores: Any) -> tuple[Table, Any]:
    """Return the rows that have all cells of the truth, and their scores; a warning counts the others."""
    kept = ~np.any([column.missing for column in table.columns.values()], axis=0)
    count = int((~kept).sum())
    if not count:
        return table, scores
    if count == table.rows:
        raise mm.DataError(
            table.source, f"no row has all of {listed(list(table.columns))}: there is nothing to measure."
        )
    told = f"{count:,} of {table.rows:,} rows lack one of {listed(list(table.columns))}: they are scored, not measured."
    warnings.warn(f"{table.source}: {told}", stacklevel=2)
    columns = {}
    for name, column in table.columns.items():
        used, codes = np.unique(column.codes[kept], return_inverse=True)
        codes -= int((used < 0).any())  # the code of cells that are no texts stays -1
        texts = tuple(column.texts[code] for code in used if code >= 0)
        columns[name] = Column(name, column.numbers[kept], codes.astype(np.int32), texts)
    lines = None if table.lines is None else table.lines[kept]
    return Table(table.source, columns, int(kept.sum()), lines), scores[kept]


def _pair(description: Mapping[str, Any], name: str) -> tuple[Any, Any]:
    """Return two values of the description of a model, which may be forged."""
    found = description.get(name)
    if (
        not isinstance(found, list | tuple)
        or len(found) != 2
        or not all(isinstance(v, int | float | str) for v in found)
    ):
        raise mm.InvalidInput(name, found, "the description of the model has no two such values; solve again.")
    return found[0], found[1]


def _label(table: Table, name: str, description: Mapping[str, Any], positive: object) -> tuple[Any, tuple[Any, Any]]:
    """Return the signs (n,) of the labels, and their values."""
    own, column = _pair(description, "label_values"), table.columns[name]
    if positive is None:
        unknown = "is no label of the training data (--positive says which of two other labels is the positive one)"
        return signs_like(table, column, own, own, unknown), own
    signs, values = label_of(table, column, positive)
    if position_of(own[:1], values[1]) is not None:
        remedy = f"low scores of this model mean this label, and high ones {own[1]!r}; leave it out."
        raise mm.InvalidInput("positive", positive, remedy)
    return signs, values


def _group(table: Table, name: str, description: Mapping[str, Any], protected: object) -> GroupSigns:
    """Return the signs (n,) of the groups and what they are called."""
    column = table.columns[name]
    if protected is not None:
        signs, (rest, value) = group_of(table, column, protected)
        return GroupSigns(value, rest, signs)
    own = _pair(description, "group_values")
    anything = own[0] == f"not {own[1]}"  # of several groups one was protected, against all others
    unknown = "is no group of the training data (--protected says which group is, against all others)"
    signs = signs_like(table, column, own, None if anything else own, unknown)
    return GroupSigns(own[1], own[0], signs)
