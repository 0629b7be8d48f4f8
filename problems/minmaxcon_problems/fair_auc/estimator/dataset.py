"""The fit of the estimator to a data set of any size: a bounded sample of each cell, then measures on all rows."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.errors import DataError, InvalidInput
from minmaxcon.metrics import AUCEstimate
from minmaxcon.tables import Column, Table, TableBlocks
from minmaxcon_problems.fair_auc.metrics import FairnessMetric, MetricSet, resolve_metrics
from minmaxcon_problems.fair_auc.streamed import CellScores, score_cells

from .inputs import SENSITIVE
from .training import Fitted, fit_stream, held_on_all

__all__ = ["fit_dataset"]


def fit_dataset(estimator: Any, source: Any, label: str, sensitive: Any, sample_weight: Any) -> None:
    """Fit an estimator to the rows of a data set, block by block, as :meth:`FairAUCClassifier.fit` says.

    ``label`` and ``sensitive`` (or None) name columns; all others are features. Raises InvalidInput or DataError for
    what cannot be used.
    """
    if sample_weight is not None:
        raise InvalidInput("sample_weight", sample_weight, "is for rows at hand; a data set is read without weights.")
    if sensitive is not None and not isinstance(sensitive, str):
        raise InvalidInput(SENSITIVE, type(sensitive).__name__, "must name a column, as y does.")
    for name, value in (("use_group", estimator.use_group), ("max_gap", estimator.max_gap)):
        if value is True or not isinstance(value, float | int | np.number | None):
            raise InvalidInput(name, value, "is for rows at hand; leave it out, or give one number, for a data set.")
    rows = _Rows(source if isinstance(source, TableBlocks) else TableBlocks(source), label, sensitive)
    for name in ("_stream", "_fitted"):
        vars(estimator).pop(name, None)
    for features, labels, groups in rows.blocks():
        estimator.partial_fit(features, labels, sensitive_features=groups)
    stream = estimator._stream
    found = _measured(fit_stream(estimator, stream), estimator, rows)
    limit, held_out = found.fit.max_gap, found.fit.validation_gap
    if found.constrained and limit is not None and held_out is None and estimator.demand != "new_rows":

        def trained(gaps: tuple[float, ...]) -> list[Fitted]:
            other = copy.copy(estimator)
            other.max_gap = min(*gaps, 1.0)
            made = _measured(fit_stream(other, stream), estimator, rows)
            return [replace(made, fit=replace(made.fit, max_gap=limit))]

        (found,) = held_on_all(trained, [found])
        excess = found.fit.gap.value - limit
        if excess > 0 and found.fit.status in (mm.Status.SOLVED, mm.Status.BUDGET):
            reason = (
                f"On the sample the gap met its target; over all {rows.source.rows:,} rows it is {excess:.4g} above."
            )
            found = replace(found, fit=replace(found.fit, status=mm.Status.OUT_OF_REACH, reason=reason))
    estimator._fitted, stream.fresh = found, False
    estimator._stream = None


class _Rows:
    """Features, labels and groups of the blocks of a data set."""

    def __init__(self, source: TableBlocks, label: str, sensitive: str | None) -> None:
        self.source, self.label, self.sensitive = source, label, sensitive
        source.tables([label], by="y")  # refused here, by its argument, where there is no such column
        if sensitive is not None:
            source.tables([sensitive], by=SENSITIVE)
        self.names = [name for name in source.names if name not in (label, sensitive)]
        if not self.names:
            raise DataError(source.name, "no column is left as a feature; the data need another one.")

    def blocks(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield features as a table of Arrow, labels (b,) and groups (b,) or None, as they are given to a fit."""
        import pyarrow as pa

        for table, labels, groups in self._read():
            yield pa.table([table.columns[name].numbers for name in self.names], names=self.names), labels, groups

    def _read(self) -> Iterator[tuple[Table, Any, Any]]:
        for table in self.source.tables():
            for name in self.names:
                column = table.columns[name]
                if table.is_text(column):
                    said = f"column {name!r} holds texts, such as {column.texts[0]!r}; encode it as numbers first."
                    raise DataError(table.source, said)
            label = table.columns[self.label]
            (table.require_texts if table.is_text(label) else table.require_numbers)(label)
            yield table, _values(label), None if self.sensitive is None else _values(table.columns[self.sensitive])

    def cells(self, found: Fitted, unknown: str) -> Iterator[tuple[Any, Any]]:
        """Yield features (b, d) and cells (b,) of the rows that have a group."""
        for table, labels, groups in self._read():
            features = np.stack([table.columns[name].numbers for name in self.names], axis=1)
            label = labels == found.labels[1]
            group = np.zeros(len(label), dtype=bool)
            if groups is not None:
                missing = np.array([value is None for value in groups.tolist()])
                if unknown == "own_group":
                    groups = np.where(missing, "unknown", groups)
                group = groups == found.group_values[1]
                if unknown == "drop":
                    features, label, group = features[~missing], label[~missing], group[~missing]
            yield features, 2 * label.astype(np.intp) + group


def _values(column: Column) -> Any:
    """Return the cells (n,) of a column as the user wrote them: whole numbers, numbers, or texts; None if missing."""
    numbers = column.numbers
    whole = bool((numbers[~np.isnan(numbers)] % 1 == 0).all())
    if not column.texts and not column.missing.any():
        return numbers.astype(np.int64) if whole else numbers
    values = numbers.astype(object)
    for row in np.flatnonzero(~np.isnan(numbers)) if whole else ():
        values[row] = int(numbers[row])
    values[np.isnan(numbers)] = None
    if column.texts:
        named = column.codes >= 0
        values[named] = np.array(column.texts, dtype=object)[column.codes[named]]
    return values


def _measured(found: Fitted, estimator: Any, rows: _Rows) -> Fitted:
    """Return the fit with gap and AUC of the model, and of the one without a target, on all rows of the data set."""
    fit, metric = found.fit, resolve_metrics(estimator.metric)
    models = [found, replace(found, fit=replace(fit, parameters=fit.free_parameters))]

    def scores(features: Any) -> Any:
        return np.stack([model.direction * model.decision(features) for model in models])

    own, free = score_cells(scores, rows.cells(found, estimator.unknown), models=2)
    fit = replace(fit, train_auc=own.area())
    if found.constrained:
        fit = replace(fit, train_gap=_largest_gap(own, metric))
    if fit.validation_gap is None:
        fit = replace(fit, unconstrained_auc=free.area())
        if found.constrained:
            fit = replace(fit, unconstrained_gap=_largest_gap(free, metric))
    return replace(found, fit=fit)


def _largest_gap(scores: CellScores, metric: FairnessMetric | MetricSet) -> AUCEstimate:
    gaps: list[AUCEstimate] = [scores.gap(member) for member in metric.members]
    return max(gaps, key=lambda gap: gap.value)
