"""User files: what is read from them, the same in every format, and encoded alike for new rows."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import minmaxcon.tables.formats
from minmaxcon.errors import DataError
from minmaxcon.tables import (
    ColumnEncoding,
    LibsvmEncoding,
    Table,
    TableEncoding,
    encoding_from_dict,
    fit_encoding,
    read_source,
)

from .files import GOOD, written

FEATURES = ["age", "job", "score"]
EXPECTED = [[31, 1, 0, 0, 1.5], [45, 0, 0, 1, -2], [28, 1, 0, 0, 0], [60, 0, 1, 0, 1000], [39, 0, 1, 0, 0.25]]


def cells(table: Table) -> dict[str, list[float | str | None]]:
    """Return each column as numbers, texts and None for what is missing."""
    return {
        name: [
            None if gone else column.texts[code] if code >= 0 else number
            for number, code, gone in zip(column.numbers.tolist(), column.codes, column.missing, strict=True)
        ]
        for name, column in table.columns.items()
    }


def test_a_table_is_read(tmp_path: Path) -> None:
    table = read_source(written(tmp_path, GOOD))
    assert table.source.endswith("data.csv")
    assert table.rows == 5
    assert cells(table) == {
        "income": ["no", "yes", "no", "yes", "no"],
        "sex": ["male", "male", "female", "female", "male"],
        "age": [31.0, 45.0, 28.0, 60.0, 39.0],
        "job": ["clerk", "farmer", "clerk", "driver", "driver"],
        "score": [1.5, -2.0, 0.0, 1000.0, 0.25],
    }
    assert table.columns["age"].numbers.dtype == np.float64
    encoding = fit_encoding(table, FEATURES)
    assert encoding.feature_names == ("age", "job=clerk", "job=driver", "job=farmer", "score")
    np.testing.assert_array_equal(encoding.encode_table(table), EXPECTED)
    assert table == table != read_source(written(tmp_path, GOOD)), "tables compare by identity"


@pytest.mark.parametrize(
    "variant",
    [
        pytest.param(GOOD.replace(",", ";"), id="semicolons"),
        pytest.param(GOOD.replace(",", "\t"), id="tabs"),
        pytest.param(GOOD.replace("\n", "\r\n"), id="CRLF"),
        pytest.param("\ufeff" + GOOD, id="byte order mark"),
        pytest.param("\n  \n" + GOOD.replace("\n", "\n\n"), id="blank lines"),
        pytest.param(GOOD.replace(",", ", "), id="spaces"),
        pytest.param(GOOD.replace("clerk", '"clerk"').replace("31", '"31"'), id="quotes"),
        pytest.param(GOOD.replace("clerk", ' "clerk"').replace("31", ' "31"'), id="quotes after spaces"),
        pytest.param('"income";"sex,";"age";"job";"score"' + GOOD[24:].replace(",", ";"), id="quoted heading"),
        pytest.param(GOOD.rstrip("\n"), id="no last line end"),
    ],
)
def test_dialects_mean_the_same(tmp_path: Path, variant: str) -> None:
    path = written(tmp_path, variant)
    for file in (path, written(tmp_path, gzip.compress(variant.encode()), "packed.csv.gz")):
        table = read_source(file)
        encoding = fit_encoding(table, FEATURES)
        np.testing.assert_array_equal(encoding.encode_table(table), EXPECTED)


def test_texts_of_arrow_mean_the_same_however_they_are_kept() -> None:
    pa = pytest.importorskip("pyarrow")
    texts = pa.array(["b", "a", None, "b", "a rather long text"])
    kinds = (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()))
    found = [cells(read_source(pa.table({"x": texts.cast(kind)}))) for kind in kinds]
    assert found == [{"x": texts.to_pylist()}] * 4


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_formats_mean_the_same(tmp_path: Path, kind: str) -> None:
    pytest.importorskip(kind)
    pd = pytest.importorskip("pandas")
    frame = pd.read_csv(written(tmp_path, GOOD))
    frame["flag"] = [True, False, True, False, True]
    frame["job"] = frame["job"].astype("category")
    frame["count"] = pd.array([1, None, 2**40, 3, 4], dtype="Int64")
    frame["gap"] = [0.5, None, 1.0, math.inf, -2.0]
    frame["kind"] = ["a", None, "b", "a", "NA"]
    frame["object"] = pd.Series([1, "x", None, 2.5, True], dtype=object)
    frame["whole"] = pd.Series([1, 2, 1, 2, 2], dtype="category")
    frame.to_csv(tmp_path / "data.csv", index=False)
    texts = frame.assign(object=frame["object"].map(str, na_action="ignore"))
    texts.to_parquet(tmp_path / "data.parquet")
    other: Any = frame.set_index(frame["age"] + 100)  # an index changes nothing
    if kind == "polars":
        other = pytest.importorskip("polars").from_pandas(texts)
    elif kind == "pyarrow":
        other = pytest.importorskip("pyarrow").Table.from_pandas(texts, preserve_index=False)
    expected = cells(read_source(tmp_path / "data.csv"))
    assert expected["flag"] == ["True", "False", "True", "False", "True"]
    assert expected["object"] == [1.0, "x", None, 2.5, "True"]
    assert cells(read_source(tmp_path / "data.parquet")) == expected
    assert cells(read_source(other)) == expected
    wanted = ["score", "flag"]
    for source in (tmp_path / "data.csv", tmp_path / "data.parquet", other):
        assert list(read_source(source, wanted).columns) == wanted


AWKWARD = (
    """|  |NA|nan|Null|1| 2.5 |-0|1e309|-inf|1_0|+5|.5|5.|0x1|1,5|a;b|x| x|é|٣|#|'|\ufeff|1e-400|say "no"|"|tab\there"""
)
awkward = st.sampled_from([*AWKWARD.split("|"), "two\nlines", "two\r\nlines"])


@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(st.lists(awkward, min_size=width, max_size=width), min_size=1, max_size=9)
    ),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["\n", "\r\n"]),
)
@example([["\ufeff"], ["\ufeffx"]], csv.QUOTE_MINIMAL, ",", "\n")  # a mark of the byte order where a block begins
def test_cells_are_what_the_standard_library_writes(
    tmp_path_factory: Any, rows: list[list[str]], quoting: Any, delimiter: str, end: str
) -> None:
    """Blocks are cut at every row, too; two columns at least, as a lone empty cell is a blank line."""
    text = io.StringIO()
    heading = [f"column {k}" for k in range(len(rows[0]) + 1)]
    csv.writer(text, quoting=quoting, delimiter=delimiter, lineterminator=end).writerows(
        [heading, *([*row, "z"] for row in rows)]
    )

    def meaning(cell: str) -> float | str | None:
        cell = cell.strip()
        if cell.lower() in ("", "na", "nan", "null"):
            return None
        try:
            return cell if cell == "1_0" else float(cell)
        except ValueError:
            return cell

    path = written(tmp_path_factory.mktemp("cells"), text.getvalue())
    expected = {name: [meaning(row[k]) for row in rows] for k, name in enumerate(heading[:-1])}
    whole = minmaxcon.tables.formats._BLOCK
    for block in (whole, 0):
        minmaxcon.tables.formats._BLOCK = block
        try:
            table = read_source(path, heading[:-1])
        finally:
            minmaxcon.tables.formats._BLOCK = whole
        assert cells(table) == expected


def test_reading_loads_neither_pandas_nor_scikit_learn(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"x": [1.0, 2.0], "y": ["a", "b"]}), tmp_path / "data.parquet")
    paths = [str(written(tmp_path, GOOD)), str(tmp_path / "data.parquet")]
    code = (
        "import sys; from minmaxcon.tables import read_source, fit_encoding; assert 'pyarrow' not in sys.modules\n"
        f"for path in {paths}: table = read_source(path); fit_encoding(table, table.columns).encode_table(table)\n"
        "assert not {'pandas', 'sklearn', 'torch', 'narwhals'} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_wide_and_long_rows_are_read(tmp_path: Path) -> None:
    """A heading of more than 128 KiB, and cells of some."""
    names = ["b" * 150_000, *(f"a_column_with_a_rather_long_name_{k}" for k in range(1, 5000))]
    rows = [[str(k * j) for k in range(5000)] for j in range(3)]
    path = written(tmp_path, "\n".join(",".join(row) for row in [names, *rows]))
    table = read_source(path)
    assert list(table.columns) == names
    assert table.columns[names[7]].numbers.tolist() == [0.0, 7.0, 14.0]
    long = read_source(written(tmp_path, f"a,b\n1,{'x' * 500_000}\n2,y\n"))
    assert [len(text) for text in long.columns["b"].texts] == [500_000, 1]


def test_new_rows_are_encoded_as_the_training_rows(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    fitted = fit_encoding(read_source(path), FEATURES)
    encoding = encoding_from_dict(json.loads(json.dumps(fitted.as_dict())))
    assert encoding == fitted
    np.testing.assert_array_equal(encoding.encode(path), EXPECTED)
    # Another order, no other columns but one that nobody asked for, one category only.
    rows = written(tmp_path, "note,score,job,age\nx y,2,farmer,30\n'?',3,farmer,31\n", "new.csv")
    np.testing.assert_array_equal(encoding.encode(rows), [[30, 0, 0, 1, 2], [31, 0, 0, 1, 3]])


def test_fill_and_missing_code_apply_to_new_rows(tmp_path: Path) -> None:
    encoding = TableEncoding((ColumnEncoding("a", fill=5.0, missing_code=666.0), ColumnEncoding("b", ("x", "y"), True)))
    rows = written(tmp_path, "a,b\n1,x\n666,y\n,x\nNA,y\n")
    np.testing.assert_array_equal(encoding.encode(rows), [[1, 0], [5, 1], [5, 0], [5, 1]])
    assert encoding.feature_names == ("a", "b=y")
    assert encoding_from_dict(json.loads(json.dumps(encoding.as_dict()))) == encoding


def test_libsvm_rows_stay_sparse(tmp_path: Path) -> None:
    path = written(tmp_path, "+1 1:1 3:2.5\n2:5\n-1 3:1\n", "rows.libsvm")
    encoding = encoding_from_dict(json.loads(json.dumps(LibsvmEncoding(3, removed=1).as_dict())))
    assert encoding == LibsvmEncoding(3, removed=1)
    assert encoding.feature_names == ("2", "3")
    features = encoding.encode(path)
    assert features.format == "csr"
    np.testing.assert_array_equal(features.toarray(), [[0, 2.5], [5, 0], [0, 1]])


def test_the_size_of_a_table_is_checked_while_its_rows_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[tuple[float, str]]()
    monkeypatch.setattr(
        minmaxcon.tables.formats, "require_memory", lambda size, what, _: asked.append((size, what.partition(": ")[2]))
    )
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n" + "1,2\n" * 25_000)
    assert read_source(path).rows == 25_000
    counts = [int(what.partition(" ")[0].replace(",", "")) for _, what in asked]
    assert counts[:2] == [10_000, 20_000]
    assert all(what.endswith(" rows of 2 columns") for _, what in asked)
    assert [size for size, _ in asked] == [24.0 * 2 * count for count in counts]


@pytest.mark.parametrize("count", [12, 13])
def test_an_unknown_column_lists_a_dozen_of_those_that_exist(tmp_path: Path, count: int) -> None:
    names = [f"column {i}" for i in range(count)]
    (tmp_path / "rows.csv").write_text(",".join(names) + "\n" + ",".join(["1"] * count) + "\n")
    with pytest.raises(DataError, match="no column 'colum', asked for by test") as caught:
        read_source(tmp_path / "rows.csv", ["colum"], by="test")
    assert str(caught.value).count("'column") == 12 + 1  # one of them is the suggestion
    assert ("... (13 in all)" in str(caught.value)) == (count == 13)


def test_a_row_loses_its_end_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes(b"a,maX\r\n1,X\r\n2,XX\n")
    table = read_source(tmp_path / "rows.csv")
    assert list(table.columns) == ["a", "maX"]
    assert [table.columns["maX"].texts[code] for code in table.columns["maX"].codes] == ["X", "XX"]


@pytest.mark.parametrize("count", [8, 9])
def test_categories_that_training_had_not_are_told_up_to_eight(tmp_path: Path, count: int) -> None:
    (tmp_path / "rows.csv").write_text("who\na\nb\n")
    (tmp_path / "new.csv").write_text("who\na\n" + "".join(f"c{i}\n" for i in range(count)))
    encoding = fit_encoding(read_source(tmp_path / "rows.csv"), ["who"])
    told = ", ".join(f"'c{i}'" for i in range(8)) + (", ..." if count == 9 else "")
    with pytest.warns(
        UserWarning, match=re.escape(f"{count} rows have a category in column 'who' that was not")
    ) as seen:
        encoding.encode(tmp_path / "new.csv", unknown_category="zero")
    assert f"({told}): its features are 0." in str(seen[0].message)
