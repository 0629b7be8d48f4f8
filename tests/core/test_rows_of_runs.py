"""Rows of some runs, in arrays and in frozen values of arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from minmaxcon.core.runs import put_runs, take_runs, where_runs


@dataclass(frozen=True, eq=False)
class Inner:
    y: Any


@dataclass(frozen=True, eq=False)
class Value:
    x: Any
    inner: Inner
    steps: int


def value(first: float, steps: int) -> Value:
    return Value(np.arange(3.0)[:, None] + first, Inner(np.full(3, first)), steps)


def test_each_run_takes_its_own_row_and_what_is_no_array_is_that_of_the_new_value() -> None:
    new, old = value(10.0, 7), value(0.0, 5)
    mixed = where_runs(np.array([True, False, True]), new, old)
    assert mixed.x.ravel().tolist() == [10.0, 1.0, 12.0]
    assert mixed.inner.y.tolist() == [10.0, 0.0, 10.0]
    assert mixed.steps == 7


def test_rows_are_taken_and_put_back() -> None:
    whole = value(0.0, 5)
    part = take_runs(whole, np.array([2, 0]))
    assert part.x.ravel().tolist() == [2.0, 0.0]
    changed = put_runs(whole, np.array([2, 0]), Value(part.x + 10.0, Inner(part.inner.y + 1.0), 5))
    assert changed.x.ravel().tolist() == [10.0, 1.0, 12.0]
    assert changed.inner.y.tolist() == [1.0, 0.0, 1.0]
    assert whole.x.ravel().tolist() == [0.0, 1.0, 2.0]
