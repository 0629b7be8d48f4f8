"""Encodings: the features that columns become, and how rows that have none are refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from minmaxcon.errors import DataError, InvalidInput, UnknownName
from minmaxcon.tables import (
    ColumnEncoding,
    LibsvmEncoding,
    Table,
    TableEncoding,
    encoding_from_dict,
    fit_encoding,
    identifies_rows,
    read_source,
    require_categories,
)

from .files import written


def table(**columns: list[Any]) -> Table:
    return read_source(pa.table(columns))


def test_each_category_has_a_feature_but_the_first_where_it_is_dropped() -> None:
    rows = table(t=["b", "a", "c", "b"], x=[1.0, 2.0, 3.0, 4.0])
    whole, dropped = fit_encoding(rows, ["t", "x"]), fit_encoding(rows, ["t", "x"], drop_first=True)
    assert whole.columns == (ColumnEncoding("t", ("a", "b", "c")), ColumnEncoding("x"))
    assert dropped.columns == (ColumnEncoding("t", ("a", "b", "c"), drop_first=True), ColumnEncoding("x"))
    assert whole.feature_names == ("t=a", "t=b", "t=c", "x")
    assert dropped.feature_names == ("t=b", "t=c", "x")
    expected = np.array([[0, 1, 0, 1], [1, 0, 0, 2], [0, 0, 1, 3], [0, 1, 0, 4]])
    np.testing.assert_array_equal(whole.encode_table(rows), expected)
    np.testing.assert_array_equal(dropped.encode_table(rows), expected[:, 1:])
    assert whole.encode_table(rows).dtype == np.float64


@pytest.mark.parametrize("drop_first", [False, True])
def test_an_unknown_category_is_zero_in_all_features_or_refused(drop_first: bool) -> None:
    encoding = ColumnEncoding("t", ("a", "b"), drop_first)
    rows = table(t=["b", "new", "a", "new", "other"])
    expected = np.array([[0, 1], [0, 0], [1, 0], [0, 0], [0, 0]])[:, int(drop_first) :]
    with pytest.warns(UserWarning, match=r"3 rows have a category in column 't' that was not .*\('new', 'other'\)"):
        found = encoding.encode(rows, "zero")
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(DataError) as caught:
        encoding.encode(rows)
    said = "row 2, column 't': the category 'new' was not in the training data; known are 'a', 'b'."
    assert f"data frame: {said}" in str(caught.value)
    assert 'unknown_category="zero"' in caught.value.remedy
    known = table(t=["b", "a"])  # nothing to warn of
    np.testing.assert_array_equal(encoding.encode(known, "zero"), encoding.encode(known))


@pytest.mark.parametrize("count", [12, 13])
def test_a_dozen_of_the_known_categories_are_told(count: int) -> None:
    known = tuple(f"c{k}" for k in range(count))
    with pytest.raises(DataError) as caught:
        ColumnEncoding("t", known).encode(table(t=["x"]))
    listed = ", ".join(f"'c{k}'" for k in range(12)) + ", ..." * (count == 13)
    assert f"known are {listed}." in str(caught.value)


def test_missing_numbers_are_filled_where_the_encoding_says_by_what() -> None:
    rows = table(x=[1.0, None, -9.0])
    np.testing.assert_array_equal(ColumnEncoding("x", fill=0.5).encode(rows), [[1], [0.5], [-9]])
    np.testing.assert_array_equal(ColumnEncoding("x", fill=0.5, missing_code=-9.0).encode(rows), [[1], [0.5], [0.5]])
    coded = ColumnEncoding("x", missing_code=-9.0)  # a code alone fills nothing
    np.testing.assert_array_equal(coded.encode(table(x=[1.0, -9.0])), [[1], [-9]])
    with pytest.raises(DataError, match=r"row 2, column 'x': the value is missing"):
        coded.encode(rows)


def test_only_the_columns_of_the_model_are_read(tmp_path: Path) -> None:
    """Others may have one name, be of another type, or hold a text of their own in every row."""
    encoding = TableEncoding((ColumnEncoding("b", ("u", "v")), ColumnEncoding("a")))
    expected = [[1, 0, 1], [0, 1, 2]]
    times = pa.array([0, 1], pa.timestamp("s"))
    np.testing.assert_array_equal(encoding.encode(pa.table({"when": times, "a": [1, 2], "b": ["u", "v"]})), expected)
    np.testing.assert_array_equal(encoding.encode(written(tmp_path, "n,a,n,b,\nx,1,y,u,\nx,2,y,v,\n")), expected)
    with pytest.raises(DataError, match=r"no column 'b', asked for by the model; Columns: 'a', 'c'"):
        encoding.encode(pa.table({"a": [1], "c": [2]}))
    with pytest.raises(DataError, match="no column 'b', asked for by the model"):
        encoding.encode_table(table(a=[1.0]))


def test_what_is_no_encoding_or_no_table_is_named() -> None:
    rows, numbers = table(x=[1.0]), TableEncoding((ColumnEncoding("x"),))
    calls: list[tuple[Any, tuple[Any, ...], str]] = [
        (fit_encoding, ("rows", ["x"]), "table='rows': must be a Table, such as read_source() returns."),
        (fit_encoding, (rows, "x"), "names='x': must be a list of names of columns."),
        (numbers.encode_table, ("rows",), "table='rows': must be a Table, such as read_source() returns."),
        (TableEncoding, ((),), "columns=(): a model needs at least one feature."),
        (TableEncoding, (("x",),), "columns[0]='x': must be a sequence of ColumnEncoding."),
        (LibsvmEncoding, (0,), "n_features=0: must be a whole number of at least 1 and at most 2147483647."),
        (LibsvmEncoding, (2**31,), "n_features=2147483648: must be a whole number of at least 1"),
        (LibsvmEncoding, (3, 0), "removed=0: must be a whole number of at least 1 and at most 3."),
        (LibsvmEncoding, (3, 4), "removed=4: must be a whole number of at least 1 and at most 3."),
    ]
    for call, given, said in calls:
        with pytest.raises(InvalidInput) as caught:
            call(*given)
        assert str(caught.value).startswith(said)
    with pytest.raises(DataError, match="data frame: no column is left as a feature; the file needs another one"):
        fit_encoding(rows, [])
    with pytest.raises(DataError, match="no column 'y', asked for by the features"):
        fit_encoding(rows, ["y"])
    for call in (numbers.encode_table, ColumnEncoding("x", ("1",)).encode):
        with pytest.raises(UnknownName, match=r"unknown_category='skip': unknown name;.*Known: refuse, zero"):
            call(rows, "skip")  # type: ignore[arg-type]


def test_features_of_libsvm_files_are_their_indices(tmp_path: Path) -> None:
    path = written(tmp_path, "1 1:1 3:3\n-1 2:2\n", "rows.libsvm")
    cases: list[tuple[int | None, tuple[str, ...], Any]] = [
        (None, ("1", "2", "3"), [[1, 0, 3], [0, 2, 0]]),
        (1, ("2", "3"), [[0, 3], [2, 0]]),
        (3, ("1", "2"), [[1, 0], [0, 2]]),
    ]
    for removed, names, expected in cases:
        encoding = LibsvmEncoding(3, removed)
        assert encoding.feature_names == names
        np.testing.assert_array_equal(encoding.encode(path).toarray(), expected)
        assert encoding_from_dict(json.loads(json.dumps(encoding.as_dict()))) == encoding
    assert LibsvmEncoding(5).encode(path).shape == (2, 5)
    with pytest.raises(DataError, match="above the largest allowed, 2"):
        LibsvmEncoding(2).encode(path)
    for other in ("zero", None, ["refuse"]):
        with pytest.raises(InvalidInput, match=r"unknown_category=.*: a LIBSVM file has no categories; leave it out"):
            LibsvmEncoding(3).encode(path, other)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields, said",
    [
        ({"columns": [{"naam": "x"}]}, "columns.0.name: Field required"),
        ({"columns": [{"name": "x", "more": 1}]}, "columns.0.more: Unexpected keyword argument"),
        ({"columns": [{"name": "x"}], "format": "csv"}, "format: Input should be 'table'"),
        ({"format": "libsvm", "n_features": "3"}, "n_features: Input should be a valid integer"),
        ({"format": "libsvm", "n_features": 3, "removed": 4}, "removed=4: must be a whole number"),
        ({"columns": {1, 2}}, "Object of type set is not JSON serializable"),
    ],
)
def test_a_saved_encoding_is_refused_by_its_first_fault(fields: Any, said: str) -> None:
    with pytest.raises(
        InvalidInput, match=rf"^encoding=.*: is no encoding of a data file \(.*{re.escape(said)}.*; fit"
    ):
        encoding_from_dict(fields)


@pytest.mark.parametrize(
    "texts, rows, identifies",
    [(20, 20, False), (21, 21, True), (21, 41, True), (21, 42, False), (30, 60, False), (31, 60, True), (0, 0, False)],
)
def test_a_column_identifies_rows_by_more_than_twenty_texts_in_less_than_twice_as_many(
    texts: int, rows: int, identifies: bool
) -> None:
    assert identifies_rows(texts, rows) == identifies
    names = [f"t{k % max(texts, 1)}" for k in range(rows)]
    if identifies:
        said = rf"column 't' has {texts} different texts in {rows} rows, such as notes or identifiers have"
        with pytest.raises(DataError, match=said) as caught:
            require_categories("s", "t", texts, rows)
        assert caught.value.column == "t"
        with pytest.raises(DataError, match=said):
            fit_encoding(table(t=names), ["t"])
    else:
        require_categories("s", "t", texts, rows)
        if rows:
            assert len(fit_encoding(table(t=names), ["t"]).feature_names) == texts
