"""User files that cannot be used: each gives one clear line that names file, row, line and column."""

from __future__ import annotations

import gzip
import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minmaxcon.errors import DataError, InvalidInput, MinMaxConError
from minmaxcon.tables import encoding_from_dict, fit_encoding, read_source
from minmaxcon.tables.columns import MAX_CATEGORIES

from .files import GOOD, with_line, written


def read(source: Any) -> Any:
    """Return the features of all columns."""
    table = read_source(source)
    return fit_encoding(table, table.columns).encode_table(table)


BAD: list[tuple[str, str | bytes, tuple[str, ...]]] = [
    ("repeated column", with_line(1, "income,sex,age,age,score"), ("two columns", "'age'", "rename")),
    ("column without a name", with_line(1, "income,sex,,job,score"), ("column 3", "no name")),
    ("NaN", with_line(4, "no,female,nan,clerk,0"), ("row 3 (line 4)", "'age'", "missing (or NaN)")),
    ("missing number", with_line(4, "no,female,,clerk,0"), ("row 3 (line 4)", "'age'", "missing")),
    ("several columns", with_line(4, "no,female,,,0"), ("row 3 (line 4)", "'age'", "missing", "and cells of 'job';")),
    ("missing text", with_line(4, "no,female,28,N/A,0"), ("row 3 (line 4)", "'job'", "missing")),
    ("inf", with_line(4, "no,female,-inf,clerk,0"), ("row 3 (line 4)", "'age'", "-inf", "not finite")),
    ("1e309", with_line(4, "no,female,28,clerk,1e309"), ("row 3 (line 4)", "'score'", "not finite")),
    (
        "text among numbers",
        with_line(4, "no,female,abc,clerk,0"),
        ("row 3 (line 4)", "'age'", "'abc'", "text in a numeric"),
    ),
    ("underscore", with_line(4, "no,female,1_0,clerk,0"), ("row 3 (line 4)", "'age'", "'1_0'")),
    ("text in the first row", with_line(2, "no,male,abc,clerk,0"), ("row 1 (line 2)", "'age'", "'abc'")),
    ("number among texts", with_line(4, "no,female,28,7,0"), ("row 3 (line 4)", "'job'", "7", "number in a text")),
    ("missing label", with_line(4, ",female,28,clerk,0"), ("row 3 (line 4)", "'income'", "missing")),
    ("missing group", with_line(4, "no,,28,clerk,0"), ("row 3 (line 4)", "'sex'", "missing")),
    ("short row", with_line(4, "no,female,28,clerk"), ("row 3 (line 4)", "4 cells", "5")),
    ("long row", with_line(4, "no,female,28,clerk,0,9"), ("row 3 (line 4)", "6 cells", "5")),
    ("short row after a blank line", "\n" + with_line(4, "no,female,28,clerk"), ("row 3 (line 5)",)),
    (
        "row after a cell of two lines",
        with_line(3, 'yes,male,45,"a\nb",-2').replace("no,male,39", "no,male,x"),
        ("row 5 (line 7)", "'x'"),
    ),
    ("bad quotes", with_line(4, 'no,female,28,"clerk"s,0'), ("line 4", "cells")),
    ("open quote", with_line(4, 'no,female,28,"clerk,0'), ("line 6", "cells")),
    ("no rows", "income,sex,age,job,score\n", ("heading", "no data row")),
    ("empty file", "", ("is empty",)),
    ("blank file", "\n\n", ("is empty",)),
    ("NUL", GOOD.encode() + b"\0\1\2", ("line 7", "NUL", "binary")),
    ("binary", b"\x80\x04\x95" + bytes(range(200, 250)), ("line 1", "UTF-8", "0x80")),
    ("UTF-16", GOOD.encode("utf-16"), ("is UTF-16", "export the file as UTF-8")),
    ("Latin-1", GOOD.replace("clerk", "caf\u00e9").encode("latin-1"), ("line 2", "UTF-8", "0xe9")),
    ("truncated gzip", gzip.compress(GOOD.encode() * 50)[:60], ("compressed", "damaged")),
    (
        "identifiers",
        "income,sex,key\n" + "".join(f"{i % 2},{i // 2 % 2},k{i}\n" for i in range(MAX_CATEGORIES + 2)),
        ("'key'", "1,000", "identifier"),
    ),
    (
        "notes",
        "income,note\n" + "".join(f"{i % 2},{'same' if i < 19 else f'note {i}'}\n" for i in range(40)),
        ("'note'", "22 different texts in 40 rows", "identifiers", "remove it"),
    ),
    ("decimal commas", "a;b\n1;0,562\n2;-,5\n", ("'b'", "decimal commas", "'0,562'", "decimal points")),
    ("decimal commas but in one row", "a;b\n1;0,562\n2;3\n3;0,5\n", ("'b'", "decimal commas", "'0,562'")),
    ("decimal commas in one row", "a;b\n1;2\n2;3\n3;0,5\n", ("'b'", "decimal commas", "'0,5'")),
    ("lone carriage returns", GOOD.replace("\n", "\r"), ("line 1", "cells")),
    ("open quote in a long file", 'a,b\n1,"x\n' + "1,2\n" * 40_000, ("cells", "field larger than")),
    ("endless row", "a,b\n" + '"x\n","x\n",' * 150_000, ("cells", "row that begins on line 2 is longer than")),
]


@pytest.mark.parametrize("content, words", [pytest.param(*case, id=name) for name, *case in BAD])
def test_bad_files_are_one_line(tmp_path: Path, content: str | bytes, words: tuple[str, ...]) -> None:
    path = written(tmp_path, content)
    with pytest.raises(DataError) as caught:
        read(path)
    message = str(caught.value)
    assert "\n" not in message
    for word in (str(path), *words):
        assert word in message, message


def test_columns_that_are_absent_or_alike_are_refused_where_they_are_wanted(tmp_path: Path) -> None:
    path = written(tmp_path, "age,age,,sex\n1,2,3,f\n")
    assert read_source(path, ["sex"]).columns["sex"].texts == ("f",)
    for wanted, words in (
        (["sexx"], "no column 'sexx', asked for by me; did you mean 'sex'"),
        (["AGE"], "did you mean 'age'"),
        (["age"], "two columns"),
        (["age,sex"], "no column 'age,sex', asked for by me; it names 2 columns, and one is taken: join them into one"),
    ):
        with pytest.raises(DataError, match=words):
            read_source(path, wanted, by="me")


def test_a_parquet_file_that_claims_another_number_of_rows_is_refused(tmp_path: Path) -> None:
    """In the footer the number of rows of the file, four, comes before that of its row group."""
    pq.write_table(pa.table({"x": [1.0, 2.0, 3.0, 4.0]}), tmp_path / "rows.parquet")
    content = (tmp_path / "rows.parquet").read_bytes()
    begin = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    place = content.index(b"\x16\x08", begin)  # field of 64 bits, and 4 in zigzag
    (tmp_path / "rows.parquet").write_bytes(content[:place] + b"\x16\x0a" + content[place + 2 :])
    with pytest.raises(DataError, match=r"rows.parquet: .*(claims 5 rows and holds 4|Parquet)"):
        read_source(tmp_path / "rows.parquet")


def test_a_libsvm_file_is_no_table(tmp_path: Path) -> None:
    path = written(tmp_path, "1 1:1\n", "rows.libsvm")
    with pytest.raises(DataError, match=r"a LIBSVM file has no named columns; if this is a table, rename it to \.csv"):
        read_source(path)


@pytest.mark.parametrize(
    "name, words",
    [
        ("absent.csv", ("absent.csv", "no such file")),
        ("folder.csv", ("folder.csv", "not a regular file")),
        ("model.pkl", ("model.pkl", "'.pkl'", ".csv", ".parquet")),
        ("nul\0.csv", ("nul\\x00.csv", "no such file")),
        ("two\nlines.csv", ("two\\nlines.csv", "no such file")),
        ("bad.parquet", ("bad.parquet", "Parquet")),
    ],
)
def test_bad_paths_are_one_line(tmp_path: Path, name: str, words: tuple[str, ...]) -> None:
    (tmp_path / "folder.csv").mkdir()
    written(tmp_path, b"\x80\x04.", "model.pkl")
    written(tmp_path, GOOD, "bad.parquet")
    with pytest.raises(DataError) as caught:
        read_source(f"{tmp_path}/{name}")
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def frame(change: Callable[[dict[str, Any]], Any]) -> Any:
    pd = pytest.importorskip("pandas")
    columns: dict[str, Any] = {"y": [0, 1, 0, 1], "g": ["a", "a", "b", "b"], "x": [1.0, 2.0, 3.0, 4.0]}
    change(columns)
    return pd.DataFrame(columns)


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda c: c.update(x=[1.0, None, 3.0, 4.0]), ("row 2", "'x'", "missing")),
        (lambda c: c.update(x=[1.0, 2.0, 3.0, float("inf")]), ("row 4", "'x'", "not finite")),
        (lambda c: c.update(x=[1, 2, "three", 4]), ("row 3", "'x'", "'three'")),
        (lambda c: c.update(g=["a", "a", None, "b"]), ("row 3", "'g'", "missing")),
        (lambda c: c.update(x=np.array(["2020-01-01"] * 4, dtype="datetime64[s]")), ("'x'", "timestamp")),
        (lambda c: c.update(y=[], g=[], x=[]), ("no data row",)),
    ],
)
def test_bad_data_frames_are_one_line(change: Any, words: tuple[str, ...]) -> None:
    with pytest.raises(DataError) as caught:
        read(frame(change))
    assert "\n" not in str(caught.value)
    for word in ("data frame", *words):
        assert word in str(caught.value)


def test_frames_with_repeated_columns_are_refused() -> None:
    table = frame(lambda columns: columns.update(x=[0, 0, 1, 1]))
    table.columns = ["y", "g", "y"]
    with pytest.raises(DataError, match=r"^data frame: two columns have one name \(.*'y'.*\); rename or remove one.$"):
        read_source(table)
    with pytest.raises(DataError, match="neither a path nor"):
        read_source([[1, 2], [3, 4]])


def test_parquet_with_repeated_columns_is_refused(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.Table.from_arrays([pa.array([0, 1])] * 3, names=["y", "g", "y"]), tmp_path / "data.parquet")
    assert list(read_source(tmp_path / "data.parquet", ["g"]).columns) == ["g"]
    with pytest.raises(DataError, match="two columns are called 'y'"):
        read_source(tmp_path / "data.parquet")


@pytest.mark.parametrize(
    "kind",
    [
        lambda pa: pa.date32(),
        lambda pa: pa.list_(pa.float64()),
        lambda pa: pa.struct([("a", pa.float64())]),
        lambda pa: pa.binary(),
    ],
    ids=["date", "list", "struct", "binary"],
)
def test_parquet_columns_of_other_types_are_refused(tmp_path: Path, kind: Callable[[Any], Any]) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"x": [1.0], "other": pa.array([None], kind(pa))}), tmp_path / "data.parquet")
    with pytest.raises(DataError, match="column 'other' is of type"):
        read_source(tmp_path / "data.parquet")


def test_damaged_parquet_is_refused(tmp_path: Path) -> None:
    """At every cut, and where a byte of its data is another."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    target = io.BytesIO()
    parquet.write_table(pa.table({"x": np.arange(100.0)}), target, write_page_checksum=True)
    whole = target.getvalue()
    for content in (b"", *(whole[:cut] for cut in range(0, len(whole), 97)), whole[:-4] + b"PARX"):
        with pytest.raises(DataError, match="not a readable Parquet file"):
            read_source(written(tmp_path, content, "data.parquet"))


def test_a_small_file_of_many_rows_is_read_in_seconds(tmp_path: Path) -> None:
    """Eight million rows in less than a megabyte: 120 s for a reader that takes each cell apart."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"x": pa.nulls(8 * 10**6, pa.int8()).fill_null(1)}), tmp_path / "data.parquet")
    assert (tmp_path / "data.parquet").stat().st_size < 2**20
    start = time.process_time()
    assert read_source(tmp_path / "data.parquet").columns["x"].numbers.sum() == 8 * 10**6
    assert time.process_time() - start < 3.0, "about .2 s on a quiet machine"


@pytest.mark.parametrize(
    "content, words",
    [
        ("score,job,age\n2,clerk,30\n3,pilot,31\n", ("row 2 (line 3)", "'job'", "'pilot'", "training", "'clerk'")),
        ("score,job,age\n2,clerk,30\nhigh,clerk,31\n", ("row 2 (line 3)", "'score'", "'high'", "text")),
        ("score,job,age\n2,clerk,30\n3,7,31\n", ("row 2 (line 3)", "'job'", "7", "number")),
        ("score,job,age\n2,clerk,30\n3,,31\n", ("row 2 (line 3)", "'job'", "missing")),
        ("score,job,age\n2,clerk,30\n,clerk,31\n", ("row 2 (line 3)", "'score'", "missing")),
        ("score,job,age\n2,clerk,1e999\n", ("row 1 (line 2)", "'age'", "inf", "not finite")),
        ('score,job,age\n2,clerk,30\n3,clerk,"30,5"\n', ("'age'", "decimal commas", "'30,5'")),
        ("score,job\n2,clerk\n", ("no column 'age'",)),
    ],
)
def test_bad_new_rows_are_one_line(tmp_path: Path, content: str, words: tuple[str, ...]) -> None:
    encoding = fit_encoding(read_source(written(tmp_path, GOOD)), ["age", "job", "score"])
    with pytest.raises(DataError) as caught:
        encoding.encode(written(tmp_path, content, "new.csv"))
    for word in ("new.csv", *words):
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"format": "table", "columns": []},
        {"format": "table", "columns": "x"},
        {"format": "table", "columns": [{"naam": "x"}]},
        {"format": "table", "columns": [{"name": "x", "fill": "1"}]},
        {"format": "table", "columns": [{"name": "x", "fill": float("nan")}]},
        {"format": "table", "columns": [{"name": "x", "categories": "ab"}]},
        {"format": "csv", "columns": [{"name": "x"}]},
        {"format": "libsvm", "n_features": "many"},
        {"format": "libsvm", "n_features": -1},
        {"format": "libsvm", "n_features": 2**40},
        {"format": "libsvm", "n_features": 3, "removed": 4},
        {"format": "libsvm", "n_features": True},
        {"columns": [{"name": object()}]},
        "table",
        None,
        [],
    ],
)
def test_an_encoding_that_is_none_is_refused(fields: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^encoding=.*no encoding") as caught:
        encoding_from_dict(fields)
    assert "\n" not in str(caught.value)


def test_a_deep_description_is_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidInput, match="no encoding"):
        encoding_from_dict({"format": "table", "columns": deep})


@settings(max_examples=150)
@given(st.binary(max_size=200), st.booleans())
def test_no_content_raises_another_error(tmp_path_factory: Any, noise: bytes, inside: bool) -> None:
    content = GOOD.encode()[:70] + noise + GOOD.encode()[70:] if inside else noise
    path = written(tmp_path_factory.mktemp("fuzz", numbered=True), content)
    message = ""
    try:
        read(path)
    except MinMaxConError as caught:
        message = str(caught)
    assert "\n" not in message
