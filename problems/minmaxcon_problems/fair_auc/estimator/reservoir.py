r"""A bounded memory of a stream of labelled rows: exact counts, and a uniform sample of each cell.

A cell is a combination of label and group. Of the :math:`N` rows of a cell that have passed, at most K are kept, every
set of K with the same probability (algorithm R of Vitter, 1985): row t of the cell, from the (K+1)-th on, draws u
uniformly and takes the place :math:`\lfloor ut \rfloor` if that is below K. A kept row stands for
:math:`N / \min(N, K)` rows, so that weighted means over the kept rows are unbiased for those over all that have passed,
whatever the order of arrival and however rare the cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["CELLS", "Reservoir"]

CELLS = 4
"""Two labels times two groups."""


class Reservoir:
    """Counts and uniform samples of the cells.

    One number is drawn for each row that finds its cell full: which rows are kept depends on their order and the seed
    alone, not on the blocks in which they came.

    Parameters
    ----------
    capacity : int
        K, the most rows kept of a cell.
    seed : int
        Seed of the draws.

    Attributes
    ----------
    counts : list of int
        Rows seen of each cell.
    """

    def __init__(self, capacity: int, seed: int) -> None:
        self.capacity = capacity
        self.counts = [0] * CELLS
        self._rng = np.random.default_rng(seed)
        self._cells: list[_Dense | _Sparse] | None = None

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
        self.counts[cell] = number

    def add(self, rows: Any, cells: Any) -> None:
        """Take in a block of rows, in their order.

        Parameters
        ----------
        rows : ndarray (n, d) or CSR (n, d)
            Features.
        cells : ndarray (n,) of int
            The cell of each, 0 to 3.
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
            stores[cell].put(places, rows, kept[::-1][last])
        for cell, mine in enumerate(members):
            self.counts[cell] += mine.size

    def _stores(self, rows: Any) -> list[_Dense | _Sparse]:
        if self._cells is None:
            kind = _Sparse if hasattr(rows, "tocsr") else _Dense
            self._cells = [kind(self.capacity, rows.shape[1]) for _ in range(CELLS)]
        return self._cells

    def kept(self, cells: Sequence[int]) -> tuple[Any, Any, Any]:
        """Return the kept rows.

        Parameters
        ----------
        cells : sequence of int
            Which cells, in the order in which their rows shall come.

        Returns
        -------
        features : ndarray (k, d) or CSR
            Copies of the rows.
        cell : ndarray (k,) of int
            The cell of each.
        weight : ndarray (k,)
            How many rows each one stands for.
        """
        stores = self._cells or []
        sizes = [min(self.counts[cell], self.capacity) for cell in cells]
        parts = [stores[cell].rows(size) for cell, size in zip(cells, sizes, strict=True) if size]
        weights = [self.counts[cell] / size if size else 1.0 for cell, size in zip(cells, sizes, strict=True)]
        return _stacked(parts), np.repeat(cells, sizes), np.repeat(weights, sizes)


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
