"""Weighted sums of what steps visit: the same bits however many steps are added at once, and as many as fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from minmaxcon.oracles.stochastic import _LEAST, _NUMBERS, _Rows, _Sums, _sums

STEPS, RUNS, WIDTHS = 11, 3, (4, 1, 2)


def added(sums: Any, dtype: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    for _ in range(STEPS):
        sums.add(tuple(rng.normal(size=(RUNS, width)).astype(dtype) for width in WIDTHS), rng.random((RUNS, 1)))
    found: tuple[Any, Any] = sums.total()
    return found


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_are_added_in_their_order(dtype: str) -> None:
    """Bit for bit whatever the number of rows that are kept, and the exact sums to rounding."""
    before = np.full((RUNS, sum(WIDTHS)), 0.1), np.full((RUNS, 1), 2.0)
    one, *others = (added(_Rows(*before, steps), dtype) for steps in (1, 2, 5, STEPS, 100))
    for other in others:
        assert all(np.array_equal(*parts) for parts in zip(one, other, strict=True))
    rng, terms, weights = np.random.default_rng(1), [], []
    for _ in range(STEPS):
        parts = [rng.normal(size=(RUNS, width)).astype(dtype) for width in WIDTHS]
        weights.append(rng.random((RUNS, 1)))
        terms.append(np.concatenate(parts, axis=-1) * weights[-1])
    exact = [[math.fsum([0.1, *(term[r, c] for term in terms)]) for c in range(sum(WIDTHS))] for r in range(RUNS)]
    np.testing.assert_allclose(one[0], exact, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(one[1], 2.0 + sum(weights), rtol=1e-14)
    plain = added(_Sums(*before), dtype)  # multiplies in the precision of the parts
    np.testing.assert_allclose(plain[0], one[0], rtol=1e-5 if dtype == "float32" else 1e-13, atol=1e-6)
    assert all((part == start).all() for part, start in zip(before, (0.1, 2.0), strict=True))  # it was not written into


def test_rows_are_kept_as_long_as_they_are_short() -> None:
    for width, kept in ((10, True), (_NUMBERS // _LEAST, True), (_NUMBERS // _LEAST + 1, False), (10**5, False)):
        assert isinstance(_sums(np.zeros((1, width)), np.zeros((1, 1))), _Rows) is kept
