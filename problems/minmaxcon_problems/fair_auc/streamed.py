"""Data sets larger than memory: read in pieces twice, kept on disk, and measured by passes over all rows.

The first pass learns what the rows are: labels, groups, categories, means and deviations of the training part. The
second encodes and scales them. What is known of a row afterwards is its features and its cell, the combination of label
and group, on which every metric depends alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.data import Standardizer
from minmaxcon.errors import DataError, InvalidInput
from minmaxcon.files import Scratch
from minmaxcon.memory import memory_limit
from minmaxcon.metrics import PairCounts, ScoreRuns
from minmaxcon.tables import (
    MAX_CATEGORIES,
    Column,
    ColumnEncoding,
    LibsvmEncoding,
    Table,
    TableBlocks,
    TableEncoding,
    file_format,
    require_categories,
)

from .bounds import Details
from .evaluation import rounding_of
from .labelled import FileColumns, group_of, label_of, leaving_out
from .measured import ROUNDING
from .metrics import FairnessMetric
from .surrogate.build import assemble, pair_masks

__all__ = [
    "CELLS",
    "CellScores",
    "LargeDataset",
    "LargePart",
    "large_evaluation",
    "large_problem",
    "load_large",
    "score_cells",
    "too_large",
]

CELLS = np.array([(-1, -1), (-1, 1), (1, -1), (1, 1)])
"""Signs of label and group of the four cells, in their order."""

_BYTES_A_CELL = 24.0
"""Bytes of memory for each number of a table that is read at once, as :mod:`minmaxcon.tables` counts them."""

_BYTES_A_BYTE = 3.0
"""Bytes of memory for each byte of a LIBSVM file that is read at once."""

_ROUNDING = 1e-12
"""Deviation of a feature, relative to its mean, up to which it is constant."""


def too_large(source: Any) -> bool:
    """Whether a source is to be read in pieces.

    A folder of Parquet files, an address and a data set of pyarrow always are; a Parquet, CSV or LIBSVM file is where
    its table would take more than the memory that may be used.
    """
    if hasattr(source, "get_fragments"):
        return True
    if not isinstance(source, str | Path):
        return False
    path = Path(source)
    if "://" in str(source):
        return True
    try:
        regular = path.is_file()
    except OSError:  # a name that is too long for a path, which is refused where it is read
        return False
    if not regular:  # an empty text is no folder, though pathlib reads it as the current one
        return bool(str(source)) and any(each.suffix in (".parquet", ".pq") for each in islice(path.rglob("*"), 10_000))
    kind = file_format(path)
    if kind == "libsvm":
        return _BYTES_A_BYTE * path.stat().st_size > memory_limit()
    if kind == "csv":
        return _BYTES_A_CELL * _cells_of(path) > memory_limit()
    if kind != "parquet" or path.stat().st_size * _BYTES_A_CELL < memory_limit():
        return False
    blocks = TableBlocks(path)
    return _BYTES_A_CELL * blocks.rows * len(blocks.names) > memory_limit()


_SAMPLE = 2**20
"""Bytes of a text file by which its cells are counted."""


def _cells_of(path: Path) -> float:
    """Return how many cells a CSV file has, about: as many a byte as at its beginning, and one a byte if packed."""
    with path.open("rb") as file:
        begin = file.read(_SAMPLE)
    size = float(path.stat().st_size)
    if begin[:2] == b"\x1f\x8b":
        return size
    ends = (sum(begin.count(mark) for mark in (b",", b";", b"\t")) + begin.count(b"\n")) / max(len(begin), 1)
    return size * ends


@dataclass(frozen=True, eq=False)
class LargePart:
    """Rows of a part that lie on disk.

    Attributes
    ----------
    pieces : callable
        Returns an iterator of features (b, d) and cells (b,) of all rows.
    counts : ndarray (4,)
        Rows of each cell.
    feature_names, label_values, group_values, encoding, name
        As those of :class:`LabelledData`.
    """

    pieces: Callable[[], Iterable[tuple[Any, Any]]]
    counts: Any
    feature_names: tuple[str, ...]
    label_values: tuple[Any, Any]
    group_values: tuple[Any, Any]
    encoding: Any
    name: str

    def __len__(self) -> int:
        return int(self.counts.sum())


@dataclass(frozen=True, eq=False)
class LargeDataset:
    """A data set of which no part is in memory; attributes are those of :class:`Dataset`.

    ``rows`` are the training rows as a source of ``features`` (d) and ``cell``, and ``means`` (4, d) the mean features
    of each cell.
    """

    name: str
    train: LargePart
    test: LargePart
    notes: tuple[str, ...]
    standardizer: Standardizer | None
    rows: mm.OnDisk
    means: Any
    exchange: Callable[[Any], Sequence[Any]] | None = None
    validation: None = None
    streamed: bool = True


@dataclass(eq=False)
class _Summary:
    """Columns, counts and moments that the first pass learns; those of different rows add up."""

    kinds: dict[str, bool] = field(default_factory=dict)
    pairs: Counter[tuple[Any, Any, bool]] = field(default_factory=Counter)
    texts: dict[str, Counter[str]] = field(default_factory=dict)
    seen: dict[str, set[str]] = field(default_factory=dict)
    rows: int = 0
    mean: Any = 0.0
    spread: Any = 0.0
    least: Any = np.inf
    most: Any = -np.inf

    def add(self, table: Table, features: Sequence[str], label: str, sensitive: str, held_out: Any) -> None:
        """Take in a block, of which some rows are held out, (n,)."""
        for name, column in table.columns.items():
            if name not in self.kinds:
                self.kinds[name] = table.is_text(column)
            (table.require_texts if self.kinds[name] else table.require_numbers)(column)
        (labels, own), (groups, mine) = (_values(table.columns[name]) for name in (label, sensitive))
        for code, count in Counter((2 * (own * len(groups) + mine) + held_out).tolist()).items():
            place, out = divmod(code, 2)
            self.pairs[labels[place // len(groups)], groups[place % len(groups)], bool(out)] += count
        for name in features:
            if self.kinds[name]:
                column = table.columns[name]
                counts = np.bincount(column.codes[~held_out], minlength=len(column.texts)).tolist()
                self.seen.setdefault(name, set()).update(column.texts)
                self.texts.setdefault(name, Counter()).update(dict(zip(column.texts, counts, strict=True)))
                if len(self.seen[name]) > MAX_CATEGORIES:
                    need = "it looks like a name or an identifier, remove it from the data."
                    told = f"column {name!r} has more than {MAX_CATEGORIES:,} different texts; {need}"
                    raise DataError(table.source, told, name)
        numbers = [table.columns[name].numbers[~held_out] for name in features if not self.kinds[name]]
        if numbers and len(numbers[0]):
            block = np.stack(numbers)
            mean = block.mean(axis=1)
            spread = ((block - mean[:, None]) ** 2).sum(axis=1)
            self._merge(block.shape[1], mean, spread, block.min(axis=1), block.max(axis=1))
        elif not numbers:
            self.rows += int((~held_out).sum())

    def _merge(self, rows: int, mean: Any, spread: Any, least: Any, most: Any) -> None:
        """Add the moments of other rows (Chan, Golub and LeVeque 1983)."""
        total = self.rows + rows
        apart = mean - self.mean
        self.spread = self.spread + spread + apart**2 * (self.rows * rows / total if total else 0.0)
        self.mean = self.mean + apart * (rows / total if total else 0.0)
        self.rows, self.least, self.most = total, np.minimum(self.least, least), np.maximum(self.most, most)

    def merged(self, other: _Summary, source: str) -> _Summary:
        """Return what both know; DataError where they are of different columns."""
        if self.kinds != other.kinds:
            name = next(iter(dict(self.kinds.items() ^ other.kinds.items())))
            raise DataError(source, f"column {name!r} is not of one kind in all shards; make them alike.")
        found = _Summary(dict(self.kinds), self.pairs + other.pairs)
        for name in self.texts:
            found.texts[name] = self.texts[name] + other.texts[name]
            found.seen[name] = self.seen[name] | other.seen[name]
        for part in (self, other):
            found._merge(part.rows, part.mean, part.spread, part.least, part.most)
        return found


def _values(column: Column) -> tuple[list[Any], Any]:
    """Return the different values of a column, numbers or texts, and which of them each row has."""
    if column.texts:
        return list(column.texts), column.codes.astype(np.int64)
    values, index = np.unique(column.numbers, return_inverse=True)
    return values.tolist(), index


def _small_table(source: str, names: tuple[str, str], pairs: Sequence[tuple[Any, Any]]) -> Table:
    """Return a table with a row for each combination of label and group."""
    columns = {}
    for place, name in enumerate(names):
        values = [pair[place] for pair in pairs]
        if isinstance(values[0], str):
            texts = tuple(dict.fromkeys(values))
            codes = np.array([texts.index(value) for value in values], dtype=np.int32)
            columns[name] = Column(name, np.full(len(values), np.nan), codes, texts)
        else:
            columns[name] = Column.of_numbers(name, np.array(values, dtype=np.float64))
    return Table(source, columns, len(pairs))


def load_large(
    source: Any,
    *,
    columns: FileColumns,
    test_fraction: float = 0.3,
    standardize: bool = True,
    seed: int = 0,
    engine: str = "numpy",
    dtype: str = "float64",
    device: str = "cpu",
    folder: Any = None,
    exchange: Callable[[Any], Sequence[Any]] | None = None,
    part: tuple[int, int] = (0, 1),
) -> LargeDataset:
    """Read a data set larger than memory.

    Parameters
    ----------
    source : path, address, pyarrow.dataset.Dataset or TableBlocks
        As for :class:`minmaxcon.tables.TableBlocks`.
    columns : FileColumns
        Which columns are what.
    standardize, seed
        As for ``FairAUC.load``.
    test_fraction : float
        Chance of each row to be held out.
    engine, dtype, device, folder
        As for :class:`minmaxcon.OnDisk`.
    exchange : callable, optional
        Where several processes read shards: gives the list of what all of them called it with.
    part : pair of int
        Which shard this process reads, of how many.

    Raises
    ------
    DataError, InvalidInput
        What cannot be used, with row and column.
    MinMaxConError
        If the disk is full.
    """
    if not 0.0 < test_fraction < 1.0:
        raise InvalidInput("test_fraction", test_fraction, "must lie strictly between 0 and 1, such as 0.3.")
    blocks = source if isinstance(source, TableBlocks) else TableBlocks(source)
    libsvm = isinstance(source, str | Path) and "://" not in str(source) and _is_libsvm(source)
    if part[1] > 1:
        blocks = blocks.shard(*part)
    label, sensitive = _columns(blocks, columns, libsvm)
    unused = {label, *columns.ignore} if columns.keep_sensitive else {label, sensitive, *columns.ignore}
    features = [name for name in blocks.names if name not in unused]
    if not features:
        raise DataError(blocks.name, "no column is left as a feature; the data need another one.")
    with leaving_out(columns.ignore, label, sensitive):
        reader = _Rows(blocks, features, label, sensitive, (seed, test_fraction, part[0]))
        summary = reader.summary()
        everywhere, *others = [summary] if exchange is None else exchange(summary)
        for other in others:
            everywhere = everywhere.merged(other, blocks.name)
        reader.learn(everywhere, summary, columns.positive, columns.protected, standardize, libsvm)
    rows = mm.OnDisk(reader, seed=seed, folder=folder, engine=engine, dtype=dtype, device=device)
    sums = reader.sums if exchange is None else sum(exchange(reader.sums))
    return reader.dataset(rows, sums / reader.counts[False][:, None], test_fraction, seed, exchange)


def _is_libsvm(source: Any) -> bool:
    path = Path(source)
    return path.is_file() and file_format(path) == "libsvm"


def _columns(blocks: TableBlocks, columns: FileColumns, libsvm: bool) -> tuple[str, str]:
    """Return the names of label and sensitive column, which are there and not the same."""
    label, sensitive = columns.label, columns.sensitive
    if libsvm and columns.ignore:
        need = "a LIBSVM file has no named columns; take the feature out of the file."
        raise InvalidInput("ignore", ",".join(columns.ignore), need)
    if libsvm:
        if label is not None:
            raise InvalidInput("label", label, "a LIBSVM file has its label first on each line; leave it out.")
        label = blocks.names[0]
    if label is None:
        raise InvalidInput("label", label, "name the column of the label; only a LIBSVM file has it in a fixed place.")
    if sensitive is None:
        remedy = "name the column of the sensitive attribute (for LIBSVM a feature's index)."
        raise InvalidInput("sensitive", sensitive, remedy)
    label, sensitive = str(label), str(sensitive)
    if label == sensitive:
        raise InvalidInput("sensitive", sensitive, "is the label; the sensitive attribute must be another column.")
    blocks.tables([label], by="label")  # refused here, by its option, where there is no such column
    blocks.tables([sensitive], by="sensitive")
    blocks.tables(columns.ignore, by="ignore")
    return label, sensitive


class _Rows:
    """Reads the blocks twice; the second time it gives the training rows, and keeps those that are held out."""

    def __init__(
        self, blocks: TableBlocks, features: list[str], label: str, sensitive: str, split: tuple[int, float, int]
    ) -> None:
        self.source, self.features, self.label, self.sensitive, self.split = blocks, features, label, sensitive, split
        self.name, self.rows = blocks.name, 0

    def _tables(self) -> Iterator[tuple[Table, Any]]:
        """Yield the blocks, and which of their rows are held out."""
        seed, share, shard = self.split
        rng = np.random.default_rng([seed, 1, shard])
        names = list(dict.fromkeys([*self.features, self.label, self.sensitive]))
        for table in self.source.tables(names, by="the features"):
            yield table, rng.random(table.rows) < share

    def summary(self) -> _Summary:
        found = _Summary()
        for table, held_out in self._tables():
            found.add(table, self.features, self.label, self.sensitive, held_out)
        return found

    def learn(
        self, whole: _Summary, own: _Summary, positive: Any, protected: Any, standardize: bool, libsvm: bool
    ) -> None:
        """Settle what labels, groups and features are, from all shards; ``own`` is this one's."""
        pairs = list(dict.fromkeys((label, group) for label, group, _ in whole.pairs))
        table = _small_table(self.name, (self.label, self.sensitive), pairs)
        if protected is None:
            groups: Counter[Any] = Counter()
            for (_, group, _), count in whole.pairs.items():
                groups[group] += count
            if len(groups) == 2:  # the one with fewer rows, of equally many the larger
                protected = min(groups, key=lambda value: (groups[value], value != max(groups)))
        labels, self.label_values = label_of(table, table.columns[self.label], positive)
        signs, self.group_values = group_of(table, table.columns[self.sensitive], protected)
        cells = 2 * (labels > 0) + (signs > 0)
        self._cell = dict(zip(pairs, cells.tolist(), strict=True))
        self.counts = {out: self._counted(whole, out) for out in (False, True)}
        self._require_cells()
        self.rows = int(self._counted(own, False).sum())
        for name in self.features:
            if whole.kinds[name]:
                require_categories(self.name, name, len(whole.seen[name]), sum(whole.pairs.values()))
        self.encoding = TableEncoding(
            tuple(
                ColumnEncoding(name, tuple(sorted(whole.seen[name])) if whole.kinds[name] else None)
                for name in self.features
            )
        )
        self.saved_encoding: Any = self.encoding
        if libsvm:
            width = len(self.source.names) - 1
            self.saved_encoding = LibsvmEncoding(
                width, None if self.sensitive in self.features else int(self.sensitive)
            )
        self.standardizer = self._scaler(whole) if standardize else None
        self.sums = np.zeros((4, len(self.encoding.feature_names)))
        self.held_out = _Held(self.name, len(self.encoding.feature_names))

    def _counted(self, summary: _Summary, held_out: bool) -> Any:
        counts = np.zeros(4, dtype=np.int64)
        for (label, group, out), count in summary.pairs.items():
            if out is held_out:
                counts[self._cell[label, group]] += count
        return counts

    def _require_cells(self) -> None:
        for part, counts in (("training", self.counts[False]), ("held-out", self.counts[True])):
            if not counts.all():
                words = {-1: ("negative", "unprotected"), 1: ("positive", "protected")}
                named = [f"{words[y][0]} & {words[g][1]}" for y, g in CELLS.tolist()]
                listed = ", ".join(f"{name}: {count:,}" for name, count in zip(named, counts.tolist(), strict=True))
                empty = named[int(np.argmin(counts))]
                need = f"no row of the {part} part is {empty} (rows of each cell: {listed})"
                raise DataError(self.name, f"{need}; every group needs rows of both labels.")

    def _scaler(self, summary: _Summary) -> Standardizer:
        """Return the standardisation of the encoded training rows: a category's feature has the mean of its share."""
        mean, deviation, constant, number = [], [], [], 0
        for column in self.encoding.columns:
            if column.categories is None:
                same = summary.least[number] == summary.most[number]
                mean.append(float(summary.least[number] if same else summary.mean[number]))
                deviation.append(float(np.sqrt(summary.spread[number] / summary.rows)))
                constant.append(bool(same))
                number += 1
            else:
                for text in column.categories:
                    share = summary.texts[column.name][text] / summary.rows
                    mean.append(share)
                    deviation.append(float(np.sqrt(share * (1.0 - share))))
                    constant.append(share in (0.0, 1.0))
        centre, spread = np.array(mean), np.array(deviation)
        return Standardizer(centre, np.where(np.array(constant) | (spread <= _ROUNDING * np.abs(centre)), 1.0, spread))

    def blocks(self) -> Iterator[Mapping[str, Any]]:
        """See :class:`minmaxcon.data.BlockReader`; the rows that are held out are put aside on the way."""
        self.sums[:] = 0.0
        self.held_out = _Held(self.name, len(self.encoding.feature_names))
        for table, held_out in self._tables():
            features = self.encoding.encode_table(table)
            if self.standardizer is not None:
                features = self.standardizer.transform(features)
            (labels, own), (groups, mine) = (_values(table.columns[n]) for n in (self.label, self.sensitive))
            code = np.array([[self._cell.get((a, b), -1) for b in groups] for a in labels])
            cell = code[own, mine]
            if (cell < 0).any():
                raise DataError(
                    self.name, f"{table.place(int(np.argmin(cell)))} changed while it was read; read again."
                )
            self.held_out.add(features[held_out], cell[held_out])
            features, cell = features[~held_out], cell[~held_out]
            for which in range(4):
                self.sums[which] += features[cell == which].sum(axis=0)
            yield {"features": features, "cell": cell}

    def dataset(self, rows: mm.OnDisk, means: Any, test_fraction: float, seed: int, exchange: Any) -> LargeDataset:
        """Return the data set, of which the training rows are on disk."""
        total = sum(int(counts.sum()) for counts in self.counts.values())
        notes = [
            f"Read in pieces: {total:,} rows, kept on disk in {rows.dtype}.",
            f"Split {1 - test_fraction:.0%} / {test_fraction:.0%}, each row by chance, seed {seed}.",
        ]
        if self.standardizer is not None:
            notes.append("Features are standardised by the training part; reported weights are in raw units.")

        def pieces() -> Iterator[tuple[Any, Any]]:
            for _, batch in rows.chunks():
                found = {name: mm.arrays.to_numpy(values) for name, values in batch.items()}
                yield found["features"], found["cell"].astype(np.intp)

        names = self.encoding.feature_names
        common = (names, self.label_values, self.group_values, self.saved_encoding, self.name)
        train = LargePart(pieces, self.counts[False], *common)
        test = LargePart(self.held_out.pieces, self.counts[True], *common)
        return LargeDataset(self.name, train, test, tuple(notes), self.standardizer, rows, means, exchange)


class _Held:
    """Rows that are only passed over, in the order of the data set."""

    def __init__(self, name: str, width: int) -> None:
        self.width, self.rows = width, 0
        self._scratch = Scratch(None, f"the held-out rows of {name}")

    def add(self, features: Any, cells: Any) -> None:
        rows = np.concatenate([features, cells[:, None]], axis=1).astype(np.float64)
        if len(rows):
            self._scratch.append(rows)
            self.rows += len(rows)

    def pieces(self) -> Iterator[tuple[Any, Any]]:
        for begin in range(0, self.rows, _PIECE):
            rows = np.empty((min(_PIECE, self.rows - begin), self.width + 1))
            self._scratch.read(rows, begin * 8 * (self.width + 1))
            yield rows[:, :-1], rows[:, -1].astype(np.intp)


_PIECE = 2**15


@dataclass(frozen=True, eq=False)
class CellScores:
    """Scores of all rows by cell: what their pairs say, and their means and sums of squared deviations, (4,)."""

    pairs: PairCounts
    means: Any
    spreads: Any

    def gap(self, metric: FairnessMetric) -> Any:
        """Return the true gap with its interval."""
        masks = metric.masks(CELLS[:, 0], CELLS[:, 1])
        return self.pairs.gap((masks[:, 0], masks[:, 1]), (masks[:, 2], masks[:, 3]))

    def area(self) -> Any:
        """Return the AUC with its interval."""
        return self.pairs.difference([(CELLS[:, 0] > 0, CELLS[:, 0] < 0)])

    def loss(self, own: Any, other: Any, c1: float, c2: float) -> float:
        """Return the quadratic loss of a pair of sets of cells, from their means and variances."""
        (mean, variance), (mean_other, variance_other) = self._moments(own), self._moments(other)
        return c1 * (variance + variance_other + (mean - mean_other - c2) ** 2)

    def _moments(self, cells: Any) -> tuple[float, float]:
        share = self.pairs.mass[cells] / self.pairs.mass[cells].sum()
        mean = float(share @ self.means[cells])
        within = self.spreads[cells].sum() / self.pairs.mass[cells].sum()
        return mean, float(within + share @ (self.means[cells] - mean) ** 2)


def score_cells(
    score: Callable[[Any], Any],
    pieces: Iterable[tuple[Any, ...]],
    exchange: Callable[[Any], Sequence[Any]] | None = None,
    models: int = 1,
    rounding: Callable[[Any], float] = lambda _: 0.0,
) -> list[CellScores]:
    """Return what the scores of all rows say, for each of some models, by one pass: exactly, however many they are.

    ``score`` gives the scores (models, b) of features (b, d), and ``pieces`` yields features, cells (b,) and, where
    rows have weights, these (b,); with ``exchange`` each of several processes passes over its own rows. Scores that
    differ by no more than ``rounding`` of the features, or than that of the scores themselves, are one score.
    """
    runs = [ScoreRuns(4) for _ in range(models)]
    masses, means, spreads = np.zeros(4), np.zeros((models, 4)), np.zeros((models, 4))
    low, high, error = np.full(models, np.inf), np.full(models, -np.inf), np.zeros(models)

    def add(found: Any, own_error: float, cells: Any, weight: Any = None) -> None:
        if found.size:
            low[:], high[:] = np.minimum(low, found.min(axis=1)), np.maximum(high, found.max(axis=1))
            error[:] = np.maximum(error, np.maximum(own_error, ROUNDING * np.abs(found).max(axis=1)))
        for each, scores in zip(runs, found, strict=True):
            each.add(scores, cells, weight)
        for which in range(4):
            mine = found[:, cells == which]
            if mine.size:
                mass = np.ones(mine.shape[1]) if weight is None else weight[cells == which]
                size = mass.sum()
                mean = mine @ mass / size
                total, apart = masses[which] + size, mean - means[:, which]
                spreads[:, which] += (mine - mean[:, None]) ** 2 @ mass + apart**2 * masses[which] * size / total
                means[:, which] += apart * size / total
                masses[which] = total

    own = (
        (np.asarray(score(features), dtype=np.float64).reshape(models, -1), rounding(features), *rest)
        for features, *rest in pieces
    )
    if exchange is None:
        for part in own:
            add(*part)
    else:
        while True:
            parts = exchange(next(own, None))
            if all(part is None for part in parts):
                break
            for part in parts:
                if part is not None:
                    add(*part)
    found = [each.counts() for each in runs]
    found = [each.tied() if same else each for each, same in zip(found, high - low <= error, strict=True)]
    return [CellScores(each, *moments) for each, *moments in zip(found, means, spreads, strict=True)]


@dataclass(frozen=True, eq=False)
class _Slots:
    """Features and slot weights of rows, from their cells; the cell stays."""

    table: Any

    def __call__(self, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        weights = self.table[arrays["cell"].astype(np.intp)]
        return {"features": arrays["features"], "weights": weights, "cell": arrays["cell"]}


def large_problem(
    dataset: LargeDataset,
    metric: FairnessMetric,
    kappa: Any,
    *,
    c1: float = 0.5,
    c2: float = 1.0,
    radius: float = 10.0,
    model: mm.Model | None = None,
    seed: int = 0,
) -> mm.MinMaxProblem:
    """Build the problem of a data set larger than memory; arguments are those of :func:`build_problem`.

    Raises
    ------
    InvalidInput, DataError
        As :func:`build_problem`.
    """
    metric.masks_of(CELLS[:, 0], CELLS[:, 1], dataset.name)
    slots = np.stack([mask for pair in pair_masks(CELLS[:, 0], metric, CELLS[:, 1]) for mask in pair])
    counts = dataset.train.counts
    rows = slots @ counts
    means = (slots * counts) @ dataset.means / rows[:, None]
    data = dataset.rows.prepared_by(_Slots(np.ascontiguousarray((slots * (counts.sum() / rows)[:, None]).T)))
    model = mm.Linear(dataset.means.shape[1]) if model is None else model
    details = Details(metric=metric, model=model, dataset=dataset, kappa=kappa, c1=float(c1), c2=float(c2))
    return assemble(data, details, means, radius=radius, name=f"{dataset.name}, {metric.name}", seed=seed)


def large_evaluation(problem: mm.MinMaxProblem, x: Any) -> dict[str, Any]:
    """Return the true measures of a solution, as :func:`evaluation` does, by a pass over the rows of each part."""
    details: Details = problem.details
    dataset, model = details.dataset, details.model
    w = np.asarray(x, dtype=np.float64)[: model.dimension]

    def score(features: Any) -> Any:
        return model.predict(w, np.asarray(features, dtype=np.float64))

    found: dict[str, Any] = {}
    losses: list[float] = []
    for name, part in (("train", dataset.train), ("test", dataset.test)):
        (scores,) = score_cells(
            score, part.pieces(), dataset.exchange, rounding=lambda features: rounding_of(model, w, features)
        )
        gap, area = scores.gap(details.metric), scores.area()
        found[name] = {
            "auc": area.value,
            "auc_interval": [area.lower, area.upper],
            "auc_gap": gap.value,
            "auc_gap_interval": [gap.lower, gap.upper],
            "rows": len(part),
        }
        if name == "train":
            pairs = pair_masks(CELLS[:, 0], details.metric, CELLS[:, 1])
            losses = [scores.loss(own, other, details.c1, details.c2) for own, other in pairs]
    return {"objective": losses[0], "values": [losses[1] + losses[2], losses[3] + losses[4]], **found}
