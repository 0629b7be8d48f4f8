"""Columns: what each cell becomes, and how a column that is refused is told."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from minmaxcon.errors import DataError
from minmaxcon.tables import Column, Table, have_decimal_commas, read_source
from minmaxcon.tables.columns import MAX_CATEGORIES, ColumnBuilder


def column(*cells: Any) -> Column:
    return read_source(pa.table({"x": list(cells)})).columns["x"]


def table(**columns: list[Any]) -> Table:
    return read_source(pa.table(columns))


@pytest.mark.parametrize("text", ["1,5", "-2,0", "+,5", " 10,25 ", "1,0"])
def test_a_number_with_a_decimal_comma(text: str) -> None:
    assert have_decimal_commas([text])
    assert not have_decimal_commas([text, "1.5"])


@pytest.mark.parametrize("text", ["1.5", "1,", "a,5", "1,5 kg", "1,5,2", "", "1,000.5"])
def test_what_is_no_number_with_a_decimal_comma(text: str) -> None:
    assert not have_decimal_commas([text])


def test_cells_are_numbers_texts_or_missing() -> None:
    found = column("b", "1.5", None, "a", "NaN", " b ", "inf", "#N/A", "<NA>", "n/a", "null", "-")
    np.testing.assert_array_equal(found.numbers, [np.nan, 1.5, *[np.nan] * 4, np.inf, *[np.nan] * 5])
    assert found.texts == ("b", "a", "-")
    assert found.codes.tolist() == [0, -1, -1, 1, -1, 0, -1, -1, -1, -1, -1, 2]
    assert found.missing.tolist() == [k in (2, 4, 7, 8, 9, 10) for k in range(12)]
    assert (found.codes.dtype, found.numbers.dtype) == (np.int32, np.float64)
    assert (found.cell(0), found.cell(1), found.cell(6)) == ("'b'", "1.5", "inf")


@pytest.mark.parametrize(
    "cells, numbers",
    [
        (pa.array([1, 2, 3], pa.uint8()), [1, 2, 3]),
        (pa.array([1, None, 3], pa.int64()), [1, math.nan, 3]),
        (pa.array([0.5, None, math.nan], pa.float32()), [0.5, math.nan, math.nan]),
        (pa.array([Decimal("1.25"), None]), [1.25, math.nan]),
        (pa.nulls(2), [math.nan, math.nan]),
        (pa.array(["1", " 2e3", None, ".5 "]), [1, 2000, math.nan, 0.5]),
        (pa.chunked_array([[1.0], [2.0, 3.0]]), [1, 2, 3]),
        (pa.array([5, 7, 5]).dictionary_encode(), [5, 7, 5]),
    ],
)
def test_numbers_of_every_type_of_arrow(cells: Any, numbers: list[float]) -> None:
    builder = ColumnBuilder("x", "s")
    builder.add(cells)
    found = builder.build()
    np.testing.assert_array_equal(found.numbers, numbers)
    assert found.texts == ()
    assert found.codes.tolist() == [-1] * len(numbers)


def test_blocks_of_one_column_share_its_texts() -> None:
    builder = ColumnBuilder("x", "s")
    for cells in (pa.array([1.0, 2.0]), pa.array(["b", "3"]), pa.array([True, False]), pa.array(["a", "b"])):
        builder.add(cells)
    found = builder.build()
    assert found.texts == ("b", "True", "False", "a")
    assert found.codes.tolist() == [-1, -1, 0, -1, 1, 2, 3, 0]
    np.testing.assert_array_equal(found.numbers, [1, 2, np.nan, 3, *[np.nan] * 4])


def test_a_thousand_different_texts_are_a_column_of_text() -> None:
    texts = [f"t{k}" for k in range(MAX_CATEGORIES)]
    found = column(*texts, *texts, "7")
    assert found.texts == tuple(texts)
    with pytest.raises(
        DataError, match=r"column 'x' has more than 1,000 different texts \(such as 'one more'\)"
    ) as caught:
        column(*texts, "t0", "one more")
    assert caught.value.column == "x"


def test_a_column_of_numbers_alone_has_no_texts() -> None:
    found = Column.of_numbers("x", np.array([0.5, np.nan]))
    assert (found.codes.tolist(), found.texts, found.missing.tolist()) == ([-1, -1], (), [False, True])


def test_a_row_is_named_by_its_place_in_the_data_set() -> None:
    numbers = {"x": Column.of_numbers("x", np.zeros(3))}
    assert Table("s", numbers, 3).place(0) == "row 1"
    assert Table("s", numbers, 3, np.array([2, 5, 6])).place(1) == "row 2 (line 5)"
    assert Table("s", numbers, 3, np.array([12, 15, 16]), 10).place(2) == "row 13 (line 16)"


@pytest.mark.parametrize(
    "cells, said",
    [
        (["a", "b", "1"], "row 3, column 'x': the value 1 is a number in a text column;"),
        (["a", "1", "2"], "row 1, column 'x': the value 'a' is text in a numeric column;"),
        (["a", "1"], "row 1, column 'x': the value 'a' is text in a numeric column;"),  # as many: a column of numbers
        (["a", "b", None, None], "row 3, column 'x': the value is missing (2 such cells);"),
        (["1", None, "2", None], "row 2, column 'x': the value is missing (or NaN) (2 such cells);"),
        (["1", "-inf", "2"], "row 2, column 'x': the value -inf is not finite;"),
        (["1", "2", "-1e101"], "row 3, column 'x': the value -1e+101 is too large, above 1e+100;"),
        (["1,5", "2,5", None], "column 'x' holds numbers with decimal commas (such as '1,5'); export"),
    ],
)
def test_a_column_of_two_kinds_is_refused_by_the_rarer(cells: list[Any], said: str) -> None:
    found = table(x=cells)
    with pytest.raises(DataError) as caught:
        found.is_text(found.columns["x"])
    assert f"data frame: {said}" in str(caught.value)
    assert caught.value.column == "x"


def test_columns_of_one_kind() -> None:
    found = table(x=["1", "1e100", "-1e100"], t=["a", "b", "a"])
    assert (found.is_text(found.columns["x"]), found.is_text(found.columns["t"])) == (False, True)
    gaps = table(x=[1.0, None])
    gaps.require_numbers(gaps.columns["x"], missing=True)
    with pytest.raises(DataError, match=r"row 2, column 'x': the value is missing \(or NaN\);"):
        gaps.require_numbers(gaps.columns["x"])


@pytest.mark.parametrize("others", [0, 1, 12, 13])
def test_a_missing_cell_is_told_with_the_other_columns_that_have_some(others: int) -> None:
    cells: dict[str, list[Any]] = {"x": [1.0, None], "full": [1.0, 2.0]}
    found = table(**cells, **{f"o{k}": [None, 1.0] for k in range(others)})
    with pytest.raises(DataError) as caught:
        found.require_numbers(found.columns["x"])
    listed = ", ".join(f"'o{k}'" for k in range(min(others, 12)))
    told = f", and cells of {listed}" if others else ""
    told += ", ... (13 columns)" if others > 12 else ""
    assert f"the value is missing (or NaN){told}; correct it" in str(caught.value)


def test_a_column_is_found_by_its_name() -> None:
    found = table(age=[1.0], job=["a"])
    assert found.column("job", "me") is found.columns["job"]
    for name, hint in (
        ("jobs", " did you mean 'job'?"),
        ("AGE", " did you mean 'age'?"),
        ("zzz", ""),
        ("age, job", " it names 2 columns, and one is taken: join them into one column of the data first."),
    ):
        with pytest.raises(DataError) as caught:
            found.column(name, "me")
        assert f"no column {name!r}, asked for by me;{hint} Columns: 'age', 'job'." in str(caught.value)


def test_names_that_are_no_texts_are_read_as_such() -> None:
    assert list(read_source(pd.DataFrame([[1.0, 2.0]])).columns) == ["0", "1"]
