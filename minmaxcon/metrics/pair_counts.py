r"""Exact AUCs of more scores than fit in memory, by sorted runs on disk.

Rows belong to C cells, such as label times group. One pass sorts the scores in runs, a second merges them in increasing
order. For a row i and a cell c', :math:`L_{c'}(i)` is the number of rows of c' that score less, plus half of those that
score the same; so

.. math:: W_{cc'} = \sum_{i\in c} L_{c'}(i), \qquad
    AUC(G, G') = \frac{\sum_{c\subset G, c'\subset G'} W_{cc'}}{n_G n_{G'}}

for any sets G and G' that are made of cells. :math:`2W` are whole numbers, and are counted as such. The second moments
of L within each cell give DeLong's variance of every difference of such AUCs, since the share of a row in its error is
linear in L.

Rows may have weights: L is then a sum of weights, a pair counts the product of its weights, and sums of squared weights
take the place of numbers of rows in the variance. A row of weight 2 counts twice, and remains one observation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minmaxcon.arrays import to_numpy
from minmaxcon.checks import whole
from minmaxcon.errors import InvalidInput
from minmaxcon.files import Scratch
from minmaxcon.metrics.intervals import AUCEstimate

__all__ = ["PairCounts", "ScoreRuns"]

_RUN = 2**19
"""Rows of a run, where the caller names no number: about 40 MiB while they are sorted."""

_MARK = 4096
"""One score in so many of a run is remembered, to cut all runs at the same scores."""

_METHOD = "normal interval, DeLong variance, all rows"


@dataclass(frozen=True, eq=False, slots=True)
class PairCounts:
    """What pairs of scores of C cells of rows say.

    Attributes
    ----------
    counts : ndarray (C,) int
        Rows of each cell.
    doubled : list of list of int, or of float with weights
        Twice the pairs that a row of the first cell wins against one of the second, half a pair for a tie: exact
        without weights.
    first : ndarray (C, C)
        Sums over the rows of a cell of L, times their squared weights.
    second : ndarray (C, C, C)
        Sums over the rows of a cell of the products of two entries of L, times their squared weights.
    mass, squares : ndarray (C,)
        Sums of the weights, and of their squares, of the rows of each cell; the rows where there are no weights.

    Examples
    --------
    >>> from minmaxcon.metrics import ScoreRuns
    >>> runs = ScoreRuns(2)
    >>> runs.add([3.0, 1.0, 2.0, 0.0], [1, 1, 0, 0])
    >>> counts = runs.counts()
    >>> counts.auc([False, True], [True, False])
    0.75
    """

    counts: NDArray[np.int64]
    doubled: list[list[int]]
    first: NDArray[np.float64]
    second: NDArray[np.float64]
    mass: NDArray[Any]
    squares: NDArray[Any]

    def tied(self) -> PairCounts:
        """Return what the pairs say if all rows have one score.

        Examples
        --------
        >>> from minmaxcon.metrics import ScoreRuns
        >>> runs = ScoreRuns(2)
        >>> runs.add([3.0, 1.0, 2.0, 0.0], [1, 1, 0, 0])
        >>> runs.counts().tied().auc([False, True], [True, False])
        0.5
        """
        rows, half = self.mass.tolist(), 0.5 * self.mass
        return PairCounts(
            self.counts,
            [[own * other for other in rows] for own in rows],
            np.multiply.outer(self.squares, half),
            np.multiply.outer(self.squares, np.multiply.outer(half, half)),
            self.mass,
            self.squares,
        )

    def auc(self, own: Any, other: Any) -> float:
        """Return the AUC of two sets of cells, boolean arrays (C,), half a pair for a tie; NaN where one is empty."""
        mine, theirs = np.flatnonzero(own), np.flatnonzero(other)
        pairs = 2 * self.mass[mine].sum().item() * self.mass[theirs].sum().item()
        won = sum(self.doubled[a][b] for a in mine for b in theirs)
        return min(1.0, won / pairs) if pairs else math.nan  # rounding of weights may exceed it

    def difference(self, pairs: Sequence[tuple[Any, Any]], confidence: float = 0.95) -> AUCEstimate:
        """Return the first AUC less those that follow, with its interval and p-value; one pair alone is an AUC."""
        values = [self.auc(own, other) for own, other in pairs]
        sizes = tuple(int(self.counts[np.asarray(cells, dtype=bool)].sum()) for pair in pairs for cells in pair)
        value, low = values[0] - sum(values[1:]), -1.0 if len(pairs) > 1 else 0.0
        if math.isnan(value):
            nan = math.nan
            return AUCEstimate(nan, nan, nan, nan, sizes, "a set has no rows", _METHOD)
        error = math.sqrt(max(0.0, self._variance(pairs, values)))
        z = NormalDist().inv_cdf(0.5 + 0.5 * confidence)
        p = None
        if len(pairs) > 1:
            p = 1.0 if not value else math.erfc(abs(value) / error / math.sqrt(2.0)) if error else 0.0
        ends = max(low, value - z * error), min(1.0, value + z * error)
        return AUCEstimate(value, *ends, error, sizes, "", _METHOD, p)

    def gap(self, first: tuple[Any, Any], second: tuple[Any, Any], confidence: float = 0.95) -> AUCEstimate:
        """Return the absolute difference of two AUCs, and the interval folded at 0."""
        signed = self.difference([first, second], confidence)
        ends = sorted((abs(signed.lower), abs(signed.upper)))
        lower = 0.0 if signed.lower <= 0.0 <= signed.upper else ends[0]
        return AUCEstimate(
            abs(signed.value), lower, ends[1], signed.standard_error, signed.counts, signed.reason, signed.method
        )

    def _variance(self, pairs: Sequence[tuple[Any, Any]], values: Sequence[float]) -> float:
        """Return the sum of squares of the rows' shares, which are linear in L within each cell."""
        cells = len(self.counts)
        slope, constant = np.zeros((cells, cells)), np.zeros(cells)
        for k, ((own, other), value) in enumerate(zip(pairs, values, strict=True)):
            sign = 1.0 if k == 0 else -1.0
            own, other = np.asarray(own, dtype=bool), np.asarray(other, dtype=bool)
            n, m = float(self.mass[own].sum()), float(self.mass[other].sum())
            slope[own] += sign * other / (n * m)  # V_i = L(i) summed over G', by its size
            constant[own] -= sign * value / n
            slope[other] -= sign * own / (n * m)  # a row of G' wins where one of G does not
            constant[other] += sign * (1.0 - value) / m
        square = np.einsum("ci,cij,cj->c", slope, self.second, slope) + self.squares * constant**2
        return float((square + 2.0 * constant * np.einsum("ci,ci->c", slope, self.first)).sum())


class ScoreRuns:
    """Takes scores block by block, in bounded memory, and counts their pairs.

    Parameters
    ----------
    cells : int
        Number C of cells, at most 256.
    rows : int
        Rows that are sorted at a time.
    folder : path, optional
        On whose disk runs lie; the system's folder for temporary files by default. They have no name, and are gone
        with the process.

    Raises
    ------
    InvalidInput
        If a number is out of range or the folder cannot be used.

    Examples
    --------
    >>> runs = ScoreRuns(2)
    >>> runs.add([3.0, 1.0, 2.0], [1, 1, 1])
    >>> runs.add([2.0, 0.0], [0, 0])
    >>> runs.counts().auc([False, True], [True, False])
    0.75
    """

    def __init__(self, cells: int, *, rows: int = _RUN, folder: str | Path | None = None) -> None:
        self._cells, self._rows = whole("cells", cells, most=256), whole("rows", rows)
        self._folder = folder
        self._scratch: Scratch | None = None
        self._waiting: list[tuple[Any, ...]] = []
        self._held = 0
        self._runs: list[_Run] = []
        self._weighted: bool | None = None

    def add(self, scores: Any, cells: Any, weights: Any = None) -> None:
        """Take in scores (n,) of any unit, the cell (n,) of each, from 0, and its weight (n,), if rows have any.

        Raises
        ------
        InvalidInput
            If a score is not finite, a cell is none, a weight is not positive and finite, lengths differ, or some
            blocks have weights and others none.
        MinMaxConError
            If the disk is full.
        """
        given, which = np.asarray(to_numpy(scores)), np.asarray(to_numpy(cells))
        if given.dtype.kind not in "iuf" or np.ma.is_masked(scores):
            raise InvalidInput("scores", scores, "must be real numbers, none of them masked.")
        if which.dtype.kind not in "iu":
            raise InvalidInput("cells", cells, "must be whole numbers.")
        found = given.astype(np.float64, copy=False)
        if found.ndim != 1 or which.shape != found.shape:
            raise InvalidInput("scores", f"shape {found.shape}", f"must have shape (n,), as the cells {which.shape}.")
        if not np.isfinite(found).all():
            raise InvalidInput("scores", float(found[np.argmin(np.isfinite(found))]), "must be finite.")
        if found.size and not 0 <= which.min() <= which.max() < self._cells:
            raise InvalidInput("cells", which, f"must lie between 0 and {self._cells - 1}.")
        mass = None if weights is None else self._checked(weights, found.size)
        if self._weighted not in (None, mass is not None):
            raise InvalidInput("weights", "some", "give them with every block of scores, or with none.")
        self._weighted = mass is not None
        for begin in range(0, found.size, self._rows):
            part = slice(begin, begin + self._rows)
            if self._held and self._held + len(found[part]) > self._rows:
                self._spill()
            one = np.ones(len(found[part]), dtype=np.int64)
            amounts = (one,) if mass is None else (one, mass[part].copy(), np.square(mass[part]))
            self._waiting.append((found[part].copy(), which[part].astype(np.uint8), *amounts))
            self._held += len(found[part])

    @staticmethod
    def _checked(weights: Any, size: int) -> NDArray[np.float64]:
        mass = np.asarray(weights, dtype=np.float64)
        if mass.shape != (size,):
            raise InvalidInput("weights", f"shape {mass.shape}", f"must have shape ({size},), as the scores.")
        good = np.isfinite(mass) & (mass > 0)
        if not good.all():
            raise InvalidInput("weights", float(mass[np.argmin(good)]), "must be positive and finite.")
        return mass

    def _taken(self) -> Any:
        """Return what waits, as scores in increasing order with the rows of each cell that have them."""
        scores, cells, *amounts = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        self._waiting, self._held = [], 0
        return _tallied(scores, cells, *amounts)

    def _spill(self) -> None:
        if self._scratch is None:
            self._scratch = Scratch(self._folder, "sorted scores")
        self._runs.append(_Run(self._scratch, *self._taken()))

    def counts(self) -> PairCounts:
        """Return what the pairs of all scores so far say; the runs are used up.

        Raises
        ------
        InvalidInput
            If there is no score.
        """
        if self._runs and self._waiting:
            self._spill()
        if not self._runs and not self._waiting:
            raise InvalidInput("scores", "none", "give at least one.")
        parts = _merged(self._runs, self._rows) if self._runs else iter([self._taken()])
        size = self._cells
        rows, squares = np.zeros(size, dtype=np.int64), np.zeros(size)
        doubled: list[list[Any]] = [[0] * size for _ in range(size)]
        before: Any = np.zeros(size, dtype=np.float64 if self._weighted else np.int64)
        first, second = np.zeros((size, size)), np.zeros((size, size, size))
        for scores, cells, *amounts in parts:
            starts = np.flatnonzero(np.diff(scores, prepend=np.nan) != 0)
            place = np.cumsum(np.diff(scores, prepend=scores[:1]) != 0)
            tables = []  # rows of each cell at each different score; with weights also their sums and those of squares
            for amount in amounts:
                tables.append(np.zeros((len(starts), size), dtype=amount.dtype))
                tables[-1][place, cells] = amount
            count, table, square = tables if self._weighted else (*tables, *tables, *tables)
            below = np.cumsum(table, axis=0) - table + before
            twice = 2 * below + table
            for a, row in enumerate((table.T @ twice).tolist()):
                doubled[a] = [old + new for old, new in zip(doubled[a], row, strict=True)]
            less = 0.5 * twice
            first += square.T @ less
            for a in range(size):
                here = count[:, a] > 0
                second[a] += (less[here] * square[here, a, None]).T @ less[here]
            before = before + table.sum(axis=0)
            rows, squares = rows + count.sum(axis=0), squares + square.sum(axis=0)
        weighted = bool(self._weighted)
        self._runs, self._scratch, self._weighted = [], None, None
        return PairCounts(rows, doubled, first, second, before, squares if weighted else rows)


def _tallied(scores: Any, cells: Any, *amounts: Any) -> tuple[Any, ...]:
    """Return each pair of score and cell once, in increasing order, with sums of amounts (n,): ties take no room."""
    order = np.lexsort((cells, scores))
    scores, cells = scores[order], cells[order]
    new = np.flatnonzero((np.diff(scores, prepend=np.nan) != 0) | (np.diff(cells.astype(np.int16), prepend=-1) != 0))
    return scores[new], cells[new], *(np.add.reduceat(amount[order], new) for amount in amounts)


class _Run:
    """A sorted run on disk: scores, cells and amounts, one after the other, read from the beginning to the end."""

    def __init__(self, scratch: Scratch, scores: Any, *others: Any) -> None:
        self.scratch, self.size, self.place = scratch, len(scores), 0
        self.marks = scores[::_MARK].copy()
        self._kinds = [part.dtype for part in (scores, *others)]
        self._begins = [scratch.append(np.ascontiguousarray(part)) for part in (scores, *others)]

    def until(self, end: float, size: int) -> Iterator[tuple[Any, ...]]:
        """Yield what is left below a score."""
        while self.place < self.size:
            count = min(size, self.size - self.place)
            scores = self._read(0, count)
            cut = int(np.searchsorted(scores, end)) if end < math.inf else count
            if cut:
                yield scores[:cut], *(self._read(part, cut) for part in range(1, len(self._kinds)))
            self.place += cut
            if cut < count:
                return

    def _read(self, part: int, count: int) -> Any:
        found = np.empty(count, dtype=self._kinds[part])
        self.scratch.read(found, self._begins[part] + self.place * found.itemsize)
        return found


def _merged(runs: Sequence[_Run], rows: int) -> Iterator[tuple[Any, ...]]:
    """Yield all runs in increasing order of scores, in parts between which no score is shared."""
    marks = np.sort(np.concatenate([run.marks for run in runs]))
    cuts = np.unique(marks[max(1, rows // _MARK) :: max(1, rows // _MARK)])
    for end in [*cuts.tolist(), math.inf]:
        pieces = [piece for run in runs for piece in run.until(end, _MARK)]
        if pieces:
            yield _tallied(*(np.concatenate(parts) for parts in zip(*pieces, strict=True)))
