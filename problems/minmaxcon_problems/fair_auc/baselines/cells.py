r"""AUCs between any subsets of labelled rows, from one sort a candidate.

Rows that belong to the same subsets form a cell; label and group make four of them for every metric of the paper. All
AUCs of a candidate are sums of the entries of one small matrix,

.. math:: U_{cc'} = \#\{h > h'\} + \tfrac12 \#\{h = h'\} \text{ over the pairs of cells } c, c',
    \qquad AUC(G, G') = \frac{1_G^\top U 1_{G'}}{|G|\,|G'|}.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.metrics import FairnessMetric

__all__ = ["NEGATIVE", "POSITIVE", "Cells"]

POSITIVE, NEGATIVE = 4, 5
"""Columns of ``Cells.membership`` after G1, G1', G2, G2'."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The cells of rows: those of one cell belong to the same subsets.

    ``code`` (n,) is the cell of each row. Of each cell, none of which is empty, ``sizes`` (K,) counts the rows,
    ``membership`` (K, 6) is 1 where they belong to G1, G1', G2, G2', the positives and the negatives, and ``group``
    (K,) is -1 or +1.
    """

    code: Any
    sizes: Any
    membership: Any
    group: Any

    @classmethod
    def of(cls, rows: LabelledData, metric: FairnessMetric) -> Cells:
        """Return the cells of some rows under a metric."""
        masks = metric.masks(rows.label, rows.group)
        positive = rows.label > 0
        columns = np.column_stack([masks, positive, ~positive, rows.group > 0]).astype(np.int64)
        # One number a row: np.unique of whole rows would sort 32,561 of them by a slow comparison.
        _, first, code = np.unique(columns @ (1 << np.arange(7)), return_index=True, return_inverse=True)
        table = columns[first].astype(np.float64)
        return cls(code.astype(np.int64), np.bincount(code), table[:, :6], 2.0 * table[:, 6] - 1.0)

    def wins(self, scores: Any) -> Any:
        """Return the matrices U (C, K, K) of candidates with scores (C, n) in float32.

        Exact multiples of one half in float64; NaN for a candidate with a score that is not finite.
        """
        kinds = len(self.sizes)
        low = max(1, int(kinds - 1).bit_length())
        indicator = np.arange(kinds)[:, None]
        found = np.full((len(scores), kinds, kinds), np.nan)
        last = np.ones(scores.shape[1], dtype=np.bool_)
        for number, row in enumerate(scores):
            if not np.isfinite(row).all():
                continue
            # Score and cell share one 64-bit key, so that one sort of plain integers (half the time of
            # argsort) orders the cells by score. Adding 0 makes -0 the same key as 0.
            bits = (row + np.float32(0.0)).view(np.int32)
            keys = np.sort((np.where(bits < 0, bits ^ 0x7FFFFFFF, bits).astype(np.int64) << low) | self.code)
            inside = (keys & ((1 << low) - 1)) == indicator
            keys >>= low
            np.not_equal(keys[1:], keys[:-1], out=last[:-1])  # the last row of each run of equal scores
            upto = np.cumsum(inside, axis=1, dtype=np.int32)[:, last].astype(np.float64)
            tied = np.diff(upto, axis=1, prepend=0.0)
            found[number] = tied @ (upto - 0.5 * tied).T
        return found

    def auc(self, wins: Any, above: int, below: int) -> Any:
        """Return the AUC (...) of the subset ``above`` against ``below`` from U (..., K, K); NaN where one is empty.

        Both are columns of ``membership``: 0 to 3 for G1, G1', G2, G2'; ``POSITIVE`` or ``NEGATIVE``.
        """
        a, b = self.membership[:, above], self.membership[:, below]
        pairs = float(a @ self.sizes) * float(b @ self.sizes)
        return np.einsum("...cd,c,d->...", wins, a, b) / (pairs or np.nan)

    def auc_and_gap(self, wins: Any) -> tuple[Any, Any]:
        """Return the AUC for the label and the true gap of the metric, each (...), of matrices U (..., K, K)."""
        gap = np.abs(self.auc(wins, 0, 1) - self.auc(wins, 2, 3))
        return self.auc(wins, POSITIVE, NEGATIVE), gap
