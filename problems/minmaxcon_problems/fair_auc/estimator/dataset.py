"""The fit of the estimator to a data set of any size: a bounded sample of each cell, then measures on all rows.

Blocks are read one after the other. Of a frame whose partitions lie on a cluster, only labels and groups of all rows
are fetched, over whose numbers the sample is drawn; then the features of the rows that it keeps, and the scores that
the workers give. So the fit is that of the same rows in one frame, to the last bit.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.errors import DataError, InvalidInput
from minmaxcon.metrics import AUCEstimate
from minmaxcon.tables import Column, Table, TableBlocks, shown
from minmaxcon_problems.fair_auc.metrics import FairnessMetric, MetricSet, resolve_metrics
from minmaxcon_problems.fair_auc.streamed import CellScores, score_cells

from .fitted import Fitted
from .inputs import SENSITIVE
from .training import fit_stream, held_on_all

__all__ = ["fit_dataset", "is_partitioned"]


def fit_dataset(estimator: Any, source: Any, label: str, sensitive: Any, sample_weight: Any) -> None:
    """Fit an estimator to the rows of a data set, block by block, as :meth:`FairAUCClassifier.fit` says.

    ``label``, and ``sensitive`` and ``sample_weight`` unless they are None, name columns; all others are features.
    Raises InvalidInput or DataError for what cannot be used.
    """
    columns = _Columns(label, sensitive, sample_weight)
    for name, value in (("use_group", estimator.use_group), ("max_gap", estimator.max_gap)):
        if value is True or not isinstance(value, float | int | np.number | None):
            raise InvalidInput(name, value, "is for rows at hand; leave it out, or give one number, for a data set.")
    rows: _Rows | _Partitions
    if is_partitioned(source):
        rows = _Partitions(source, columns)
    else:
        rows = _Rows(source if isinstance(source, TableBlocks) else TableBlocks(source), columns)
    for name in ("_stream", "_fitted"):
        vars(estimator).pop(name, None)
    rows.remember(estimator)
    stream = estimator._stream
    began = time.perf_counter()
    found = _measured(fit_stream(estimator, stream), estimator, rows)
    limit, held_out = found.fit.max_gap, found.fit.validation_gap
    if found.constrained and limit is not None and held_out is None and estimator.demand != "new_rows":

        def trained(gaps: tuple[float, ...]) -> list[Fitted]:
            other = copy.copy(estimator)
            other.max_gap = min(*gaps, 1.0)
            made = _measured(fit_stream(other, stream, until), estimator, rows)
            return [replace(made, fit=replace(made.fit, max_gap=limit))]

        until = None if estimator.time_limit is None else began + float(estimator.time_limit)

        def late() -> str:
            over = until is not None and time.perf_counter() >= until
            return f"The time limit of {estimator.time_limit} s was reached." if over else ""

        (found,) = held_on_all(trained, [found], late)
        excess = found.fit.gap.value - limit
        if excess > 0 and found.fit.status in (mm.Status.SOLVED, mm.Status.BUDGET):
            reason = f"On the sample the gap met its target; over all {rows.count:,} rows it is {excess:.4g} above."
            found = replace(found, fit=replace(found.fit, status=mm.Status.OUT_OF_REACH, reason=reason))
    estimator._fitted, stream.fresh = found, False
    estimator._stream = None


@dataclass(frozen=True, eq=False, slots=True)
class _Columns:
    """The columns that are no features."""

    label: str
    sensitive: Any = None
    weight: Any = None

    def __post_init__(self) -> None:
        named = self.named()
        for argument, name in list(named.items())[1:]:
            if not isinstance(name, str):
                raise InvalidInput(argument, type(name).__name__, "must name a column, as y does.")
        for argument, name in named.items():
            first = next(other for other in named if named[other] == name)
            if first != argument:
                raise InvalidInput(argument, name, f"is the column of {first}; each needs one of its own.")

    def named(self) -> dict[str, Any]:
        """Return those that there are, by the argument of ``fit``."""
        found = {"y": self.label, SENSITIVE: self.sensitive, "sample_weight": self.weight}
        return {argument: name for argument, name in found.items() if name is not None}

    def features(self, names: Sequence[str]) -> list[str]:
        """Return the other columns."""
        return [name for name in names if name not in self.named().values()]


class _Rows:
    """Features, labels, groups and weights of the blocks of a data set."""

    def __init__(self, source: TableBlocks, columns: _Columns) -> None:
        self.source, self.columns = source, columns
        for argument, name in columns.named().items():
            source.tables([name], by=argument)  # refused here, by its argument, where there is no such column
        self.names = columns.features(source.names)
        if not self.names:
            raise DataError(source.name, "no column is left as a feature; the data need another one.")

    @property
    def count(self) -> int:
        """Number of rows."""
        return self.source.rows

    def remember(self, estimator: Any) -> None:
        """Let an estimator take in all rows."""
        import pyarrow as pa

        taken = False
        for table, labels, groups, weight in self.tables():
            if weight is None or weight.any():
                features = pa.table([table.columns[name].numbers for name in self.names], names=self.names)
                estimator.partial_fit(features, labels, sensitive_features=groups, sample_weight=weight)
                taken = True
        if not taken:
            raise DataError(self.source.name, _NO_WEIGHT.format(shown(self.columns.weight)))

    def tables(self) -> Iterator[tuple[Table, Any, Any, Any]]:
        """Yield tables whose features are numbers, with labels (b,), and groups (b,) and weights (b,) or None."""
        for table in self.source.tables():
            for name in self.names:
                column = table.columns[name]
                if table.is_text(column):
                    said = f"column {name!r} holds texts, such as {column.texts[0]!r}; encode it as numbers first."
                    raise DataError(table.source, said)
            label = table.columns[self.columns.label]
            sensitive, weight = (
                None if name is None else table.columns[name] for name in (self.columns.sensitive, self.columns.weight)
            )
            (table.require_texts if table.is_text(label) else table.require_numbers)(label)
            yield (
                table,
                _values(label),
                None if sensitive is None else _values(sensitive),
                None if weight is None else _weights(table, weight),
            )

    def scored(self, models: Sequence[Fitted], unknown: str) -> Iterator[tuple[Any, ...]]:
        """Yield scores (models, b), cells (b,) and weights (b,), if any, of the rows with a group and a weight."""
        found = models[0]
        for table, labels, groups, weight in self.tables():
            features = np.stack([table.columns[name].numbers for name in self.names], axis=1)
            label = labels == found.labels[1]
            group = np.zeros(len(label), dtype=bool)
            kept = np.ones(len(label), dtype=bool) if weight is None else weight > 0
            if groups is not None:
                missing = np.array([value is None for value in groups.tolist()])
                if unknown == "own_group":
                    groups = np.where(missing, "unknown", groups)
                group = groups == found.group_values[1]
                if unknown == "drop":
                    kept &= ~missing
            if not kept.any():
                continue
            scores = np.stack([model.direction * model.decision(features[kept]) for model in models])
            cells = 2 * label[kept].astype(np.intp) + group[kept]
            yield (scores, cells) if weight is None else (scores, cells, weight[kept])


def is_partitioned(source: Any) -> bool:
    """Tell whether a source is a frame in partitions, such as one of Dask."""
    return hasattr(source, "to_delayed") and hasattr(source, "npartitions") and hasattr(source, "columns")


class _Partitions:
    """The rows of a Dask DataFrame, in the order of its partitions; what is asked of them is computed where they are.

    Raises MinMaxConError where a partition cannot be computed, and DataError for what is wrong with its rows.
    """

    def __init__(self, frame: Any, columns: _Columns) -> None:
        self.parts, self.columns = frame.to_delayed(), columns
        names = [str(name) for name in frame.columns]
        for by, name in columns.named().items():
            if name not in names:
                known = ", ".join(map(shown, names[:8])) + (", ..." if len(names) > 8 else "")
                raise DataError(
                    _FRAME, f"{by} names column {shown(name)}, which there is not; its columns are {known}."
                )
        self.names = columns.features(names)
        if not self.names:
            raise DataError(_FRAME, "no column is left as a feature; the data need another one.")
        self.ends: list[int] = []

    @property
    def count(self) -> int:
        """Number of rows, once they have been passed over."""
        return self.ends[-1]

    def remember(self, estimator: Any) -> None:
        """Let an estimator remember the rows that it would keep of all of them, one after the other."""
        import pyarrow as pa

        twin, seen, taken = copy.copy(estimator), 0, False
        twin.__dict__.pop("feature_names_in_", None)
        for labels, groups, weight in self._each(_keys, self.columns):
            if len(labels) and (weight is None or weight.any()):
                numbers = pa.table({"row": np.arange(seen, seen + len(labels), dtype=np.float64)})
                twin.partial_fit(numbers, labels, sensitive_features=groups, sample_weight=weight)
                taken = True
            seen += len(labels)
            self.ends.append(seen)
        if not seen:
            raise DataError(_FRAME, "has no rows; at least one was expected.")
        if not taken:
            raise DataError(_FRAME, _NO_WEIGHT.format(shown(self.columns.weight)))
        stream = twin._stream
        stream.reservoir.fetch(self._features, len(self.names))
        estimator.n_features_in_ = len(self.names)
        estimator.feature_names_in_ = np.array(self.names, dtype=object)
        estimator._stream = stream

    def _features(self, numbers: Any) -> Any:
        """Return the features (k, d) of the rows with these numbers (k,), fetched each once."""
        wanted, place = np.unique(numbers.astype(np.int64), return_inverse=True)
        begins = np.array([0, *self.ends[:-1]])
        which = np.searchsorted(self.ends, wanted, side="right")
        mine = [wanted[which == part] - begins[part] for part in range(len(self.ends))]
        return np.concatenate(list(self._each(_chosen, self.columns, each=mine)))[place]

    def scored(self, models: Sequence[Fitted], unknown: str) -> Iterator[tuple[Any, ...]]:
        """See :meth:`_Rows.scored`."""
        return (part for parts in self._each(_scored, self.columns, list(models), unknown) for part in parts)

    def _each(self, function: Callable[..., Any], *given: Any, each: Sequence[Any] | None = None) -> Iterator[Any]:
        """Yield what a function gives of each partition, and of its own part of ``each``, in order."""
        import dask

        for begin in range(0, len(self.parts), _AT_ONCE):
            tasks = [
                dask.delayed(_located)(
                    number, function, self.parts[number], *given, *(() if each is None else (each[number],))
                )
                for number in range(begin, min(begin + _AT_ONCE, len(self.parts)))
            ]
            try:
                found = dask.compute(*tasks)
            except mm.MinMaxConError:
                raise
            except Exception as failure:  # whatever a worker, the network or the making of a partition raises
                cause = " ".join(f"{type(failure).__name__}: {failure}".split())[:160]
                need = f"partitions {begin} to {begin + len(tasks) - 1} could not be computed ({cause}); fit again."
                raise mm.MinMaxConError(f"{_FRAME}: {need}") from failure
            for part in found:
                if isinstance(part, DataError):
                    raise part
                yield part


_FRAME = "Dask DataFrame"

_NO_WEIGHT = "column {}, the weights, is 0 in every row; rows of weight 0 are left out, and none is left."

_AT_ONCE = 16
"""Partitions whose results are waited for together, and are in memory at once."""


def _located(number: int, function: Callable[..., Any], frame: Any, *given: Any) -> Any:
    """Call a function of a partition; what is wrong with a row is returned with the number of the partition."""
    try:
        return function(frame, *given)
    except DataError as failure:
        return DataError(f"{_FRAME}, partition {number}", str(failure).removeprefix("frames: "))


def _keys(frame: Any, columns: _Columns) -> tuple[Any, Any, Any]:
    """Return labels (n,), and groups and weights (n,) or None, of a partition, whose features are finite numbers."""
    if not len(frame):
        return np.zeros(0), None, None
    rows = _Rows(TableBlocks([frame]), columns)
    found = []
    for table, *mine in rows.tables():
        for name in rows.names:
            table.require_numbers(table.columns[name])
        found.append(mine)
    labels, groups, weights = (None if part[0] is None else np.concatenate(part) for part in zip(*found, strict=True))
    return labels, groups, weights


def _chosen(frame: Any, columns: _Columns, numbers: Any) -> Any:
    """Return the features (k, d) of some rows of a partition."""
    if not len(numbers):
        return np.zeros((0, len(frame.columns) - len(columns.named())))
    rows = _Rows(TableBlocks([frame.iloc[numbers]]), columns)
    return np.concatenate(
        [np.stack([table.columns[name].numbers for name in rows.names], axis=1) for table, *_ in rows.tables()]
    )


def _scored(frame: Any, columns: _Columns, models: Sequence[Fitted], unknown: str) -> list[tuple[Any, ...]]:
    """Return scores, cells and weights of the blocks of a partition."""
    return list(_Rows(TableBlocks([frame]), columns).scored(models, unknown)) if len(frame) else []


def _weights(table: Table, column: Column) -> Any:
    """Return the weights (b,) in a column; raises DataError for one that is no number of at least 0."""
    table.require_numbers(column)
    negative = column.numbers < 0
    if negative.any():
        row = int(np.argmax(negative))
        said = f"column {shown(column.name)}: the weight {column.cell(row)} is negative; weights are at least 0."
        raise DataError(table.source, f"{table.place(row)}, {said}")
    return column.numbers


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


def _measured(found: Fitted, estimator: Any, rows: _Rows | _Partitions) -> Fitted:
    """Return the fit with gap and AUC of the model, and of the one without a target, on all rows of the data set."""
    fit, metric = found.fit, resolve_metrics(estimator.metric)
    models = [found, replace(found, fit=replace(fit, parameters=fit.free_parameters))]
    own, free = score_cells(lambda scores: scores, rows.scored(models, estimator.unknown), models=2)
    known = {"train": own} if fit.validation_gap is not None else {"train": own, "unconstrained": free}
    measured = {f"{name}_auc": scores.area() for name, scores in known.items()}
    if found.constrained:
        measured |= {f"{name}_gap": _largest_gap(scores, metric) for name, scores in known.items()}
    return replace(found, fit=replace(fit, **measured))


def _largest_gap(scores: CellScores, metric: FairnessMetric | MetricSet) -> AUCEstimate:
    gaps: list[AUCEstimate] = [scores.gap(member) for member in metric.members]
    return max(gaps, key=lambda gap: gap.value)
