r"""The bounded memory of ``partial_fit``: the values seen, exact counts, and a uniform sample of each cell.

A cell is a combination of label and group. Of the :math:`N` rows of a cell that have passed, at most K are kept, every
set of K with the same probability (algorithm R of Vitter, 1985): row t of the cell, from the (K+1)-th on, draws u
uniformly and takes the place :math:`\lfloor ut \rfloor` if that is below K. A kept row stands for
:math:`N / \min(N, K)` rows, times its own sample weight, so that weighted means over the kept rows are unbiased for
those over all that have passed, whatever the order of arrival and however rare the cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minmaxcon.errors import DataError, InvalidInput
from minmaxcon_problems.fair_auc.labelled import LabelledData, position_of, protected_option
from minmaxcon_problems.fair_auc.metrics import FairnessMetric, MetricSet

from .inputs import MOST_GROUPS, SENSITIVE, Vocabulary, positive_code, protected_code

__all__ = ["CELLS", "Incremental", "Reservoir"]

_NO_GROUP = "no group"

_PLAIN = (str, int, float, bool)

_LARGEST = 2**53
"""Numbers beyond this are no plain labels: not every one of them is a float."""


class Incremental:
    """Rows seen one by one or in blocks, in any order of labels and groups.

    Which label is positive and which group is protected is decided only when a model is asked for, from all that has
    been seen. ``capacity`` is the most rows kept of a combination of label and group, ``seed`` that of the sample; rows
    come with sensitive features where ``constrained``. ``each_other`` is whether every two groups were to be compared,
    which a remedy has to undo.
    """

    def __init__(
        self, constrained: bool, protected: Any, capacity: int, seed: int, *, each_other: bool = False
    ) -> None:
        self.constrained, self.protected, self.seed = constrained, protected, seed
        self.labels = Vocabulary("y", 2, "only binary classification is supported: keep the rows of two labels.")
        several = protected is not None
        self.groups = Vocabulary(
            SENSITIVE,
            MOST_GROUPS if several else 2,
            "merge its values into a few groups."
            if several
            else f"say with {protected_option(each_other)} which one is protected, against all others.",
        )
        self.reservoir = Reservoir(capacity, seed)
        self.fresh = False
        self._declared: tuple[Any, ...] | None = None

    def declared(self, classes: Any) -> bool:
        """Whether these are the classes of an earlier call, in the same order; cheap, and False where not sure."""
        if classes is None:
            return True
        if type(classes) not in (list, tuple, np.ndarray) or len(classes) != 2:
            return False
        try:
            return self._declared == tuple(classes)
        except (TypeError, ValueError):  # values that compare to no truth value
            return False

    def add_row(self, row: Any, label: Any, group: Any) -> bool:
        """Take in one dense, real row (1, d) if it is plainly in order; return whether it was.

        A label or group that is missing or of an unusual type, and a row whose sum is not finite, are left to the
        caller, who can say what is wrong with them.
        """
        if type(label) not in _PLAIN or (type(label) is float and not label.is_integer()):
            return False
        if type(label) is not str and abs(label) > _LARGEST:
            return False
        # NaN is the one value that differs from itself.
        if self.constrained and (type(group) not in _PLAIN or group != group):
            return False
        if not math.isfinite(row.sum()):
            return False
        sizes = len(self.labels.codes), len(self.groups.codes)
        try:
            cell = self._cell(self.labels.code(label), self._group_code(group))
        except DataError:
            self._forget(sizes)
            raise
        self.reservoir.add_row(row, cell)
        self.fresh = True
        return True

    def _forget(self, sizes: tuple[int, int]) -> None:
        """Drop the values that came with rows that were refused."""
        self.labels.forget(sizes[0])
        self.groups.forget(sizes[1])

    def add(self, rows: Any, labels: Any, groups: Any, weight: Any = None) -> None:
        """Take in a block of rows (n, d), finite, dense or CSR; groups are None where rows come without.

        Rows have positive sample weights (n,), 1 by default.

        Raises DataError for a third label, or a sensitive value too many.
        """
        sizes = len(self.labels.codes), len(self.groups.codes)
        try:
            label = self.labels.encode(labels)
            group = np.zeros(len(label), dtype=np.int64) if groups is None else self.groups.encode(groups)
        except DataError:
            self._forget(sizes)
            raise
        if groups is not None and self.protected is not None:
            flags = np.array([self._is_protected(value) for value in self.groups.values], dtype=np.int64)
            group = flags[group]
        self.reservoir.add(rows, self._cell(label, group), weight)
        self.fresh = True

    @staticmethod
    def _cell(label: Any, group: Any) -> Any:
        return 2 * label + group

    def _group_code(self, value: Any) -> int:
        if not self.constrained:
            return 0
        code = self.groups.code(value)
        return code if self.protected is None else int(self._is_protected(value))

    def _is_protected(self, value: Any) -> bool:
        return position_of([value], self.protected) == 0

    def require_classes(self, classes: Any) -> None:
        """Note the two labels that may come; raises InvalidInput if they are not two, or not those seen so far."""
        try:
            column = np.asarray(classes)
            given = np.unique(column).tolist() if column.ndim == 1 else []
        except (TypeError, ValueError):  # values that have no order, or lists of several lengths
            raise InvalidInput("classes", classes, "must be the two labels, numbers or texts throughout.") from None
        if len(given) != 2 or not set(self.labels.values) <= set(given):
            seen = f" of which those seen are {self.labels.values}" if self.labels.values else ""
            raise InvalidInput("classes", classes, f"must be the two labels{seen}.")
        for value in given:
            self.labels.code(value)
        self._declared = tuple(column.tolist())

    def _count(self, labels: Any, groups: Any) -> int:
        return sum(self.reservoir.counts[self._cell(label, group)] for label in labels for group in groups)

    def positive(self, positive: Any) -> int:
        """Return the code of the positive label; raises DataError while only one label has been seen."""
        values = self.labels.values
        if len(values) < 2 or not all(self._count([code], (0, 1)) for code in (0, 1)):
            seen = [value for code, value in enumerate(values) if self._count([code], (0, 1))]
            raise DataError("partial_fit", f"rows of one class only have been seen, {seen}; give rows of both.")
        return positive_code(values, positive)

    def _protected(self) -> int:
        """Return the code (0 or 1 within a cell) of the protected group."""
        if not self.constrained:
            return 0
        if self.protected is not None:
            return 1
        values = self.groups.values
        return protected_code(values, [self._count((0, 1), [code]) for code in range(len(values))], None)

    def _other_group(self, protected: int) -> str:
        values = self.groups.values
        if self.protected is not None:
            return f"not {self.protected}"
        return str(values[1 - protected]) if len(values) == 2 else _NO_GROUP

    def rows(
        self, metric: FairnessMetric | MetricSet, positive: Any, names: tuple[str, ...]
    ) -> tuple[LabelledData, Any, Any]:
        """Return the sample, the weight (k,) of its rows, and of how many rows seen each is one, (k,).

        A weight is that number times the row's own; there are none (None) where all are 1.

        Raises DataError where a subset or a class has not been seen yet; it is named, with the rows of each
        combination.
        """
        label, group = self.positive(positive), self._protected()
        signs = np.array([(y, g) for y in (-1, 1) for g in (-1, 1)])
        cells = [self._cell(label if y > 0 else 1 - label, group if g > 0 else 1 - group) for y, g in signs]
        seen = np.array([self.reservoir.counts[cell] for cell in cells])
        if self.constrained:
            for one in metric.members:
                self._require_seen(one, signs, seen)
        features, cell, weight = self.reservoir.kept(cells)
        sign_of = np.empty((len(cells), 2), dtype=np.int8)
        sign_of[cells] = signs
        values = self.labels.values
        protected = self.protected if self.protected is not None else (self.groups.values or [_NO_GROUP])[group]
        kept = LabelledData(
            features,
            sign_of[cell, 0],
            sign_of[cell, 1],
            names,
            (values[1 - label], values[label]),
            (self._other_group(group), protected),
            "the rows seen so far",
        )
        share = np.empty(len(cells))
        share[cells] = self.reservoir.shares(cells)
        return kept, None if weight.min() == weight.max() == 1.0 else weight, share[cell]

    def parts(self, rows: LabelledData, weight: Any, fraction: float) -> tuple[LabelledData, Any, LabelledData, Any]:
        """Hold out a part of the sample that :meth:`rows` returned, drawn with the stream's seed.

        Returns the rows to train on, how many of the rows seen each one stands for, (k,), and the rows held out: every
        combination of label and group has its share of all rows seen there, and at most ``fraction`` of the kept rows
        of a combination are taken. The last is the weight of the rows held out, None where no row came with one.
        """
        cell = (rows.label > 0) * 2 + (rows.group > 0)
        kept = np.bincount(cell, minlength=CELLS)
        counts = np.bincount(cell, weights=weight, minlength=CELLS)
        part = representative_part(counts, kept, fraction)
        order = np.random.default_rng(self.seed).permutation(len(rows))
        ranks = np.empty(len(rows), dtype=np.int64)
        for which in range(CELLS):
            mine = order[cell[order] == which]
            ranks[mine] = np.arange(mine.size)
        held_out = ranks < part[cell]
        own = np.ones(len(rows)) if weight is None else weight

        def stands_for(chosen: Any) -> Any:
            """Return how many rows seen each of the chosen rows stands for."""
            left = np.bincount(cell[chosen], weights=own[chosen], minlength=CELLS)
            return own[chosen] * (counts / np.where(left > 0, left, 1.0))[cell[chosen]]

        judged = stands_for(held_out) if self.reservoir.weighted else None
        return rows.select(~held_out), stands_for(~held_out), rows.select(held_out), judged

    def _require_seen(self, metric: FairnessMetric, signs: Any, seen: Any) -> None:
        there = seen > 0
        masks = metric.masks(signs[:, 0], signs[:, 1])
        missing = [str(subset) for k, subset in enumerate(metric.subsets) if not (masks[:, k] & there).any()]
        if missing:
            words = {-1: ("negative", "unprotected"), 1: ("positive", "protected")}
            counts = ", ".join(
                f"{words[y][0]} & {words[g][1]}: {count:,}" for (y, g), count in zip(signs.tolist(), seen, strict=True)
            )
            raise DataError(
                "partial_fit",
                f"no row of {' nor of '.join(dict.fromkeys(missing))} has been seen, which the metric {metric.name}"
                f" needs (rows seen: {counts}); go on until there is one.",
            )


def representative_part(counts: Any, kept: Any, fraction: float) -> Any:
    """Return how many kept rows of each cell make a part in which the cells have the shares of all rows seen.

    ``counts`` and ``kept`` (4,) are the rows seen and kept of each cell, ``fraction`` the largest share of a cell's
    kept rows that may be taken. Raises InvalidInput where a cell is too small for its share to be a row.
    """
    there = counts > 0
    scale = fraction * float(np.min(kept[there] / counts[there]))
    part = np.floor(scale * counts + 0.5).astype(np.int64)
    undivided = there & ((part == 0) | (part >= kept))
    if undivided.any():
        raise InvalidInput(  # counts may be of weights: what is said of rows is of those that are kept
            "validation_fraction",
            fraction,
            f"the {int(kept[undivided].min())} rows kept of a combination of label and group cannot be divided so;"
            " give more rows, a larger max_rows_per_cell, or leave it out.",
        )
    return np.where(there, part, 0)


CELLS = 4
"""Two labels times two groups."""


class Reservoir:
    """Counts (rows seen of each cell) and uniform samples, of at most ``capacity`` rows, of the cells.

    One number is drawn for each row that finds its cell full: which rows are kept depends on their order and the seed
    alone, not on the blocks in which they came.
    """

    def __init__(self, capacity: int, seed: int) -> None:
        self.capacity = capacity
        self.counts = [0] * CELLS
        self._weights: list[dict[int, float]] = [{} for _ in range(CELLS)]  # of the kept rows whose weight is not 1
        self._rng = np.random.default_rng(seed)
        self._cells: list[_Dense | _Sparse] | None = None

    @property
    def weighted(self) -> bool:
        """Whether a kept row has a sample weight other than 1."""
        return any(self._weights)

    @property
    def seen(self) -> int:
        """Rows seen in all."""
        return sum(self.counts)

    def add_row(self, row: Any, cell: int) -> None:
        """Take in one dense row (1, d); the same as :meth:`add`, at a tenth of the cost."""
        cells = self._stores(row)
        number = self.counts[cell] + 1
        place = int(self._rng.random() * number) if number > self.capacity else number - 1
        if place < self.capacity:
            cells[cell].put_one(place, row)
            self._weights[cell].pop(place, None)
        self.counts[cell] = number

    def add(self, rows: Any, cells: Any, weight: Any = None) -> None:
        """Take in a block of rows (n, d), dense or CSR, in their order, with the cell (n,) of each, 0 to 3.

        Rows have sample weights (n,), 1 by default.
        """
        stores = self._stores(rows)
        members = [np.flatnonzero(cells == cell) for cell in range(CELLS)]
        number = np.zeros(len(cells), dtype=np.int64)
        for cell, mine in enumerate(members):
            number[mine] = self.counts[cell] + np.arange(1, mine.size + 1)
        place, full = number - 1, number > self.capacity
        place[full] = (self._rng.random(int(full.sum())) * number[full]).astype(np.int64)
        for cell, mine in enumerate(members):
            kept = mine[place[mine] < self.capacity]
            # A place taken twice in a block belongs to the later row: np.unique finds the first one from behind.
            places, last = np.unique(place[kept][::-1], return_index=True)
            source = kept[::-1][last]
            stores[cell].put(places, rows, source)
            own = np.ones(len(source)) if weight is None else weight[source]
            for taken, value in zip(places.tolist(), own.tolist(), strict=True):
                if value != 1.0:
                    self._weights[cell][taken] = value
                elif self._weights[cell]:
                    self._weights[cell].pop(taken, None)
        for cell, mine in enumerate(members):
            self.counts[cell] += mine.size

    def _stores(self, rows: Any) -> list[_Dense | _Sparse]:
        if self._cells is None:
            kind = _Sparse if hasattr(rows, "tocsr") else _Dense
            self._cells = [kind(self.capacity, rows.shape[1]) for _ in range(CELLS)]
        return self._cells

    def fetch(self, features: Callable[[Any], Any], width: int) -> None:
        """Put rows (k, width) in the place of the kept ones, which hold numbers (k,): ``features`` gives them by those.

        For rows that lie elsewhere: the sample is drawn from their numbers, and only what it keeps is fetched.
        """
        stores = self._cells or []
        sizes = [min(count, self.capacity) for count in self.counts]
        numbers = [store.rows(size)[:, 0] for store, size in zip(stores, sizes, strict=True)]
        found, begin = features(np.concatenate(numbers)), 0
        self._cells = [_Dense(self.capacity, width) for _ in stores]
        for store, size in zip(self._cells, sizes, strict=True):
            store.put(np.arange(size), found, np.arange(begin, begin + size))
            begin += size

    def shares(self, cells: Sequence[int]) -> list[float]:
        """Return how many rows seen of each cell stand behind one that is kept of it; 1 where there is none."""
        return [
            self.counts[cell] / min(self.counts[cell], self.capacity) if self.counts[cell] else 1.0 for cell in cells
        ]

    def kept(self, cells: Sequence[int]) -> tuple[Any, Any, Any]:
        """Return copies of the rows (k, d) kept of some cells, in that order, and for each its cell and weight, (k,).

        The weight is how many rows one stands for, times its own sample weight.
        """
        stores = self._cells or []
        sizes = [min(self.counts[cell], self.capacity) for cell in cells]
        parts = [stores[cell].rows(size) for cell, size in zip(cells, sizes, strict=True) if size]
        weights = self.shares(cells)
        own = [np.ones(size) for size in sizes]
        for mine, cell in zip(own, cells, strict=True):
            for place, value in self._weights[cell].items():
                mine[place] = value
        return _stacked(parts), np.repeat(cells, sizes), np.repeat(weights, sizes) * np.concatenate(own)


def _stacked(parts: list[Any]) -> Any:
    if hasattr(parts[0], "tocsr"):
        from scipy.sparse import vstack

        return vstack(parts, format="csr")
    return np.concatenate(parts)


class _Dense:
    """Dense rows at numbered places; memory is taken as places are filled."""

    def __init__(self, capacity: int, width: int) -> None:
        self.capacity = capacity
        self._rows = np.empty((0, width))

    def _reach(self, place: int) -> None:
        if place >= len(self._rows):
            size = min(self.capacity, max(2 * len(self._rows), place + 1, 64))
            grown = np.empty((size, self._rows.shape[1]))
            grown[: len(self._rows)] = self._rows
            self._rows = grown

    def put_one(self, place: int, row: Any) -> None:
        self._reach(place)
        self._rows[place] = row[0]

    def put(self, places: Any, block: Any, source: Any) -> None:
        if len(places):
            self._reach(int(places[-1]))
            chosen = block[source]
            self._rows[places] = chosen.toarray() if hasattr(chosen, "toarray") else chosen

    def rows(self, size: int) -> Any:
        return self._rows[:size].copy()


class _Sparse:
    """Sparse rows at numbered places: columns and values of each."""

    def __init__(self, capacity: int, width: int) -> None:
        self.width = width
        self._rows: dict[int, tuple[Any, Any]] = {}

    def put_one(self, place: int, row: Any) -> None:
        columns = np.flatnonzero(row[0])
        self._rows[place] = columns, row[0][columns]

    def put(self, places: Any, block: Any, source: Any) -> None:
        from scipy.sparse import csr_matrix

        block = block if hasattr(block, "tocsr") else csr_matrix(block)
        for place, row in zip(places.tolist(), source.tolist(), strict=True):
            part = slice(block.indptr[row], block.indptr[row + 1])
            self._rows[place] = block.indices[part].copy(), block.data[part].copy()

    def rows(self, size: int) -> Any:
        from scipy.sparse import csr_matrix

        chosen = [self._rows[place] for place in range(size)]
        ends = np.cumsum([0, *(len(columns) for columns, _ in chosen)])
        columns = np.concatenate([columns for columns, _ in chosen])
        values = np.concatenate([values for _, values in chosen])
        return csr_matrix((values, columns, ends), shape=(size, self.width))
