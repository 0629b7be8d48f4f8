"""User files that cannot be used: each gives one clear line that names file, row, line and column."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minmaxcon.errors import DataError, InvalidInput, MinMaxConError, MissingDependency
from minmaxcon.tables import encode_rows
from minmaxcon.tables.columns import MAX_CATEGORIES
from minmaxcon.tables.encoding import encoding_from_dict
from minmaxcon_problems.fair_auc.labelled import LabelledData, read_table

GOOD = """\
income,sex,age,job,score
no,male,31,clerk,1.5
yes,male,45,farmer,-2
no,female,28,clerk,0
yes,female,60,driver,1e3
no,male,39,driver,.25
"""


def written(folder: Path, content: str | bytes, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def with_line(number: int, line: str) -> str:
    """Return GOOD with one line (from 1) replaced."""
    lines = GOOD.splitlines()
    lines[number - 1] = line
    return "\n".join(lines) + "\n"


ARGUMENTS = {"label": "income", "sensitive": "sex"}
ONLY_NO = GOOD.replace("yes", "no")

BAD: list[tuple[str, str | bytes, dict[str, Any], tuple[str, ...]]] = [
    ("repeated column", with_line(1, "income,sex,age,age,score"), {}, ("two columns", "'age'", "rename")),
    ("column without a name", with_line(1, "income,sex,,job,score"), {}, ("column 3", "no name")),
    ("label unknown", GOOD, {"label": "incom"}, ("'incom'", "label", "did you mean 'income'", "'age'")),
    ("sensitive unknown", GOOD, {"sensitive": "sexx"}, ("'sexx'", "sensitive", "did you mean 'sex'")),
    ("positive unknown", GOOD, {"positive": "maybe"}, ("'income'", "'maybe'", "positive", "'yes'")),
    ("protected unknown", GOOD, {"protected": "Female"}, ("'sex'", "protected", "did you mean 'female'")),
    ("one class", ONLY_NO, {}, ("one class only", "'income'", "'no'")),
    (
        "3 labels",
        with_line(3, "maybe,male,45,farmer,-2"),
        {},
        ("3 labels", "'maybe'", "'no'", "'yes'", "--positive only"),
    ),
    ("one group", GOOD.replace("female", "male"), {}, ("'sex'", "'male'", "two groups")),
    ("3 groups", with_line(3, "yes,other,45,farmer,-2"), {}, ("'sex'", "3 values", "'other'", "--protected")),
    (
        "empty cell",
        with_line(5, "no,female,60,driver,1e3"),
        {},
        (
            "no row has sex=female & income=yes",
            "sex=male & income=no: 2",
            "sex=female & income=no: 2",
            "sex=male & income=yes: 1",
        ),
    ),
    ("NaN", with_line(4, "no,female,nan,clerk,0"), {}, ("row 3 (line 4)", "'age'", "missing (or NaN)")),
    ("missing number", with_line(4, "no,female,,clerk,0"), {}, ("row 3 (line 4)", "'age'", "missing")),
    ("missing text", with_line(4, "no,female,28,N/A,0"), {}, ("row 3 (line 4)", "'job'", "missing")),
    ("inf", with_line(4, "no,female,-inf,clerk,0"), {}, ("row 3 (line 4)", "'age'", "-inf", "not finite")),
    ("1e309", with_line(4, "no,female,28,clerk,1e309"), {}, ("row 3 (line 4)", "'score'", "not finite")),
    (
        "text among numbers",
        with_line(4, "no,female,abc,clerk,0"),
        {},
        ("row 3 (line 4)", "'age'", "'abc'", "text in a numeric"),
    ),
    ("underscore", with_line(4, "no,female,1_0,clerk,0"), {}, ("row 3 (line 4)", "'age'", "'1_0'")),
    ("text in the first row", with_line(2, "no,male,abc,clerk,0"), {}, ("row 1 (line 2)", "'age'", "'abc'")),
    ("number among texts", with_line(4, "no,female,28,7,0"), {}, ("row 3 (line 4)", "'job'", "7", "number in a text")),
    ("missing label", with_line(4, ",female,28,clerk,0"), {}, ("row 3 (line 4)", "'income'", "missing")),
    ("missing group", with_line(4, "no,,28,clerk,0"), {}, ("row 3 (line 4)", "'sex'", "missing")),
    ("short row", with_line(4, "no,female,28,clerk"), {}, ("row 3 (line 4)", "4 cells", "5")),
    ("long row", with_line(4, "no,female,28,clerk,0,9"), {}, ("row 3 (line 4)", "6 cells", "5")),
    ("short row after a blank line", "\n" + with_line(4, "no,female,28,clerk"), {}, ("row 3 (line 5)",)),
    (
        "row after a cell of two lines",
        with_line(3, 'yes,male,45,"a\nb",-2').replace("no,male,39", "no,male,x"),
        {},
        ("row 5 (line 7)", "'x'"),
    ),
    ("bad quotes", with_line(4, 'no,female,28,"clerk"s,0'), {}, ("line 4", "cells")),
    ("open quote", with_line(4, 'no,female,28,"clerk,0'), {}, ("line 6", "cells")),
    ("no rows", "income,sex,age,job,score\n", {}, ("heading", "no data row")),
    ("empty file", "", {}, ("is empty",)),
    ("blank file", "\n\n", {}, ("is empty",)),
    ("NUL", GOOD.encode() + b"\0\1\2", {}, ("line 7", "NUL", "binary")),
    ("binary", b"\x80\x04\x95" + bytes(range(200, 250)), {}, ("line 1", "UTF-8", "0x80")),
    ("UTF-16", GOOD.encode("utf-16"), {}, ("is UTF-16", "export the file as UTF-8")),
    ("Latin-1", GOOD.replace("clerk", "caf\u00e9").encode("latin-1"), {}, ("line 2", "UTF-8", "0xe9")),
    ("truncated gzip", gzip.compress(GOOD.encode() * 50)[:60], {}, ("compressed", "damaged")),
    ("no feature", "income,sex\nno,a\nyes,b\nyes,a\nno,b\n", {}, ("no column is left",)),
    (
        "identifiers",
        "income,sex,key\n" + "".join(f"{i % 2},{i // 2 % 2},k{i}\n" for i in range(MAX_CATEGORIES + 2)),
        {},
        ("'key'", "1,000", "identifier"),
    ),
]


@pytest.mark.parametrize("content, changed, words", [pytest.param(*case, id=name) for name, *case in BAD])
def test_bad_files_are_one_line(tmp_path: Path, content: str | bytes, changed: Any, words: tuple[str, ...]) -> None:
    path = written(tmp_path, content)
    with pytest.raises(DataError) as caught:
        read_table(path, **(ARGUMENTS | changed))
    message = str(caught.value)
    assert "\n" not in message
    for word in (str(path), *words):
        assert word in message, message


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
        read_table(f"{tmp_path}/{name}", label="income", sensitive="sex")
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
        (lambda c: c.update(x=np.array(["2020-01-01"] * 4, dtype="datetime64[s]")), ("'x'", "Datetime")),
        (lambda c: c.update(y=[], g=[], x=[]), ("no data rows",)),
    ],
)
def test_bad_data_frames_are_one_line(change: Any, words: tuple[str, ...]) -> None:
    with pytest.raises(DataError) as caught:
        read_table(frame(change), label="y", sensitive="g")
    assert "\n" not in str(caught.value)
    for word in ("data frame", *words):
        assert word in str(caught.value)


def test_frames_with_repeated_columns_are_refused() -> None:
    table = frame(lambda columns: columns.update(x=[0, 0, 1, 1]))
    table.columns = ["y", "g", "y"]
    with pytest.raises(DataError, match="two columns"):
        read_table(table, label="y", sensitive="g")
    with pytest.raises(DataError, match="neither a path nor"):
        read_table([[1, 2], [3, 4]], label="y", sensitive="g")


def test_arguments_are_checked(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    with pytest.raises(InvalidInput, match="is the label"):
        read_table(path, label="sex", sensitive="sex")
    with pytest.raises(InvalidInput, match="name the column"):
        read_table(path, sensitive="sex")


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependency, match=r"minmaxcon\[data\]"):
        read_table(written(tmp_path, b"PAR1", "data.parquet"), label="income", sensitive="sex")


def test_parquet_with_repeated_columns_is_refused(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pa.Table.from_arrays([pa.array([0, 1])] * 3, names=["y", "g", "y"])
    parquet.write_table(table, tmp_path / "data.parquet")
    with pytest.raises(DataError, match="two columns are called 'y'"):
        read_table(tmp_path / "data.parquet", label="y", sensitive="g")


@pytest.mark.parametrize(
    "content, words",
    [
        ("score,job,age\n2,clerk,30\n3,pilot,31\n", ("row 2 (line 3)", "'job'", "'pilot'", "training", "'clerk'")),
        ("score,job,age\n2,clerk,30\nhigh,clerk,31\n", ("row 2 (line 3)", "'score'", "'high'", "text")),
        ("score,job,age\n2,clerk,30\n3,7,31\n", ("row 2 (line 3)", "'job'", "7", "number")),
        ("score,job,age\n2,clerk,30\n3,,31\n", ("row 2 (line 3)", "'job'", "missing")),
        ("score,job,age\n2,clerk,30\n,clerk,31\n", ("row 2 (line 3)", "'score'", "missing")),
        ("score,job,age\n2,clerk,1e999\n", ("row 1 (line 2)", "'age'", "inf", "not finite")),
        ("score,job\n2,clerk\n", ("no column 'age'",)),
    ],
)
def test_bad_new_rows_are_one_line(tmp_path: Path, content: str, words: tuple[str, ...]) -> None:
    data = read_table(written(tmp_path, GOOD), label="income", sensitive="sex")
    with pytest.raises(DataError) as caught:
        encode_rows(written(tmp_path, content, "new.csv"), data.encoding)
    for word in ("new.csv", *words):
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


LIBSVM = "+1 1:1 3:2.5\n-1 2:1\n+1 2:1 3:1\n-1 1:1\n"


@pytest.mark.parametrize(
    "content, sensitive, error, words",
    [
        (LIBSVM, "sex", InvalidInput, ("sensitive", "'sex'", "1-based")),
        (LIBSVM, 0, InvalidInput, ("sensitive", "0", "features 1 to 3")),
        (LIBSVM, 4, InvalidInput, ("sensitive", "4", "features 1 to 3")),
        (LIBSVM, 3, DataError, ("feature 3", "3 values", "--protected")),
        (LIBSVM + "3 1:1\n", 1, DataError, ("3 labels", "-1, 1, 3")),
        ("1 1:1\n1 2:1\n", 1, DataError, ("one class only",)),
        ("1 1:1 2:1\n-1 1:1\n", 1, DataError, ("feature 1", "two groups")),
        ("1 1:1\n-1 2:1\n-1 1:1\n", 1, DataError, ("no row has feature 1=0 & label=1",)),
        ("1 1:1\n-1 1:1\n1 1:0\n-1 1:0\n", 1, DataError, ("no feature is left",)),
    ],
)
def test_bad_libsvm_tables_are_one_line(
    tmp_path: Path, content: str, sensitive: Any, error: type[Exception], words: tuple[str, ...]
) -> None:
    with pytest.raises(error) as caught:
        read_table(written(tmp_path, content, "rows.libsvm"), sensitive=sensitive)
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_encoding_that_is_none_is_refused() -> None:
    for fields in ({}, {"format": "table", "columns": [{"name": "x"}]}, {"format": "libsvm", "n_features": "many"}):
        with pytest.raises(InvalidInput, match="no encoding"):
            encoding_from_dict(fields)


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"features": np.zeros((3, 2))}, ("features", "(3, 2)", "(2, 2)")),
        ({"group": np.array([1])}, ("group", "(1,)", "(2,)")),
        ({"label": np.array([1, 0])}, ("label", "row 2", "-1 or +1")),
    ],
)
def test_labelled_data_are_consistent(changed: dict[str, Any], words: tuple[str, ...]) -> None:
    good: dict[str, Any] = {
        "features": np.zeros((2, 2)),
        "label": np.array([1, -1]),
        "group": np.array([1, -1]),
        "feature_names": ("a", "b"),
    }
    LabelledData(**good)
    with pytest.raises(InvalidInput) as caught:
        LabelledData(**(good | changed))
    for word in words:
        assert word in str(caught.value)


@settings(max_examples=150)
@given(st.binary(max_size=200), st.booleans())
def test_no_content_raises_another_error(tmp_path_factory: Any, noise: bytes, inside: bool) -> None:
    content = GOOD.encode()[:70] + noise + GOOD.encode()[70:] if inside else noise
    path = written(tmp_path_factory.mktemp("fuzz", numbered=True), content)
    message = ""
    try:
        read_table(path, label="income", sensitive="sex")
    except MinMaxConError as caught:
        message = str(caught)
    assert "\n" not in message
