"""User files: what is read from them, the same in every format, and one clear line for each that cannot be used."""

from __future__ import annotations

import copy
import gzip
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minmaxcon.data.columns import MAX_CATEGORIES
from minmaxcon.data.encoding import ColumnEncoding, LibsvmEncoding, TableEncoding, encoding_from_dict
from minmaxcon.data.labelled import LabelledData
from minmaxcon.data.tables import encode_rows, read_table
from minmaxcon.errors import DataError, InvalidInput, MinMaxConError, MissingDependency

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


def test_a_table_is_read(tmp_path: Path) -> None:
    data = read_table(written(tmp_path, GOOD), label="income", sensitive="sex")
    assert data.feature_names == ("age", "job=clerk", "job=driver", "job=farmer", "score")
    expected = [[31, 1, 0, 0, 1.5], [45, 0, 0, 1, -2], [28, 1, 0, 0, 0], [60, 0, 1, 0, 1000], [39, 0, 1, 0, 0.25]]
    np.testing.assert_array_equal(data.features, expected)
    assert data.features.dtype == np.float64
    np.testing.assert_array_equal(data.label, [-1, 1, -1, 1, -1])
    np.testing.assert_array_equal(data.group, [-1, -1, 1, 1, -1])
    assert data.label.dtype == data.group.dtype == np.int8
    assert data.label_values == ("no", "yes")
    assert data.group_values == ("male", "female")
    assert data.name.endswith("data.csv")
    assert len(data) == 5


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
        pytest.param(GOOD.rstrip("\n"), id="no last line end"),
    ],
)
def test_dialects_mean_the_same(tmp_path: Path, variant: str) -> None:
    plain = read_table(written(tmp_path, GOOD), label="income", sensitive="sex")
    other = read_table(written(tmp_path, variant, "other.csv"), label="income", sensitive="sex")
    np.testing.assert_array_equal(other.features, plain.features)
    np.testing.assert_array_equal(other.label, plain.label)
    assert other.feature_names == plain.feature_names
    packed = read_table(written(tmp_path, gzip.compress(variant.encode()), "p.csv.gz"), label="income", sensitive="sex")
    np.testing.assert_array_equal(packed.features, plain.features)


def test_formats_mean_the_same(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = written(tmp_path, GOOD + "yes,female,1,clerk,7\n")
    frame = pd.read_csv(path)
    frame["flag"] = [True, False, True, False, True, True]
    frame["job"] = frame["job"].astype("category")
    frame.to_parquet(tmp_path / "data.parquet")
    frame.to_csv(path, index=False)
    # Another index must change nothing.
    tables = [path, tmp_path / "data.parquet", frame.set_index(frame["age"] + 100)]
    first, *others = [read_table(table, label="income", sensitive="sex") for table in tables]
    assert "flag=True" in first.feature_names
    for other in others:
        np.testing.assert_array_equal(other.features, first.features)
        np.testing.assert_array_equal(other.label, first.label)
        np.testing.assert_array_equal(other.group, first.group)
        assert other.encoding == first.encoding


def test_sensitive_column_as_a_feature(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    data = read_table(path, label="income", sensitive="sex", keep_sensitive=True)
    assert data.feature_names[:2] == ("sex=female", "sex=male")
    rows = written(tmp_path, "age,job,score\n1,clerk,2\n", "new.csv")
    with pytest.raises(DataError, match="no column 'sex'"):
        encode_rows(rows, data.encoding)


@pytest.mark.parametrize(
    ("values", "positive", "expected"),
    [
        (("0", "1"), None, ("0", "1")),
        (("1", "2"), None, ("1", "2")),
        (("-1", "1"), "-1", ("1", "-1")),
        (("0.5", "-3"), None, ("-3", "0.5")),
        (("no", "yes"), None, ("no", "yes")),
        (("True", "False"), None, ("False", "True")),
        (("positive", "unknown"), None, ("unknown", "positive")),
        (("bad", "good"), None, ("bad", "good")),
        (("bad", "good"), "bad", ("good", "bad")),
        (("1", "0"), 1, ("0", "1")),
        (("1", "0"), "1.0", ("0", "1")),
    ],
)
def test_any_two_labels_are_mapped(tmp_path: Path, values: Any, positive: Any, expected: Any) -> None:
    rows = [(value, group) for value in values for group in ("a", "b", "a")]
    path = written(tmp_path, "y,g,x\n" + "".join(f"{value},{group},1\n" for value, group in rows))
    data = read_table(path, label="y", sensitive="g", positive=positive)
    assert tuple(map(str, data.label_values)) == expected
    np.testing.assert_array_equal(data.label, [1 if value == expected[1] else -1 for value, _ in rows])
    assert data.group_values == ("a", "b"), "the smaller group is protected by default"


def test_one_protected_value_against_all_others(tmp_path: Path) -> None:
    path = written(tmp_path, "y,g,x\n" + "".join(f"{y},{g},1\n" for y in (0, 1) for g in "abc"))
    data = read_table(path, label="y", sensitive="g", protected="b")
    np.testing.assert_array_equal(data.group, [-1, 1, -1, -1, 1, -1])
    assert data.group_values == ("not b", "b")


def test_rows_can_be_selected_and_data_travel(tmp_path: Path) -> None:
    data = read_table(written(tmp_path, GOOD), label="income", sensitive="sex")
    part = data.select([4, 0])
    np.testing.assert_array_equal(part.features, data.features[[4, 0]])
    np.testing.assert_array_equal(part.group, [-1, -1])
    assert part.encoding == data.encoding
    assert len(data.select(data.label == 1)) == 2
    part.features[:] = 0.0
    assert data.features[4, 0] == 39, "a selection is a copy"
    for other in (copy.deepcopy(data), pickle.loads(pickle.dumps(data))):  # noqa: S301  (our own bytes)
        np.testing.assert_array_equal(other.features, data.features)
        assert other.encoding == data.encoding


def test_new_rows_are_encoded_as_the_training_rows(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    data = read_table(path, label="income", sensitive="sex")
    stored = json.loads(json.dumps(data.encoding.as_dict()))
    encoding = encoding_from_dict(stored)
    assert encoding == data.encoding
    np.testing.assert_array_equal(encode_rows(path, encoding), data.features)
    # Other order, no label, no sensitive column, one more column that nobody asked for, one category only.
    rows = written(tmp_path, "note,score,job,age\nx y,2,farmer,30\n'?',3,farmer,31\n", "new.csv")
    np.testing.assert_array_equal(encode_rows(rows, encoding), [[30, 0, 0, 1, 2], [31, 0, 0, 1, 3]])


@pytest.mark.parametrize(
    ("content", "words"),
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


def test_fill_and_missing_code_apply_to_new_rows(tmp_path: Path) -> None:
    encoding = TableEncoding((ColumnEncoding("a", fill=5.0, missing_code=666.0), ColumnEncoding("b", ("x", "y"), True)))
    rows = written(tmp_path, "a,b\n1,x\n666,y\n,x\nNA,y\n")
    np.testing.assert_array_equal(encode_rows(rows, encoding), [[1, 0], [5, 1], [5, 0], [5, 1]])
    assert encoding.feature_names == ("a", "b=y")


ARGUMENTS = {"label": "income", "sensitive": "sex"}
ONLY_NO = GOOD.replace("yes", "no")

BAD: list[Any] = [
    pytest.param(with_line(1, "income,sex,age,age,score"), {}, ("two columns", "'age'", "rename"), id="repeated column"),
    pytest.param(with_line(1, "income,sex,,job,score"), {}, ("column 3", "no name"), id="column without a name"),
    pytest.param(GOOD, {"label": "incom"}, ("'incom'", "label", "did you mean 'income'", "'age'"), id="label unknown"),
    pytest.param(GOOD, {"sensitive": "sexx"}, ("'sexx'", "sensitive", "did you mean 'sex'"), id="sensitive unknown"),
    pytest.param(GOOD, {"positive": "maybe"}, ("'income'", "'maybe'", "positive", "'yes'"), id="positive unknown"),
    pytest.param(GOOD, {"protected": "Female"}, ("'sex'", "protected", "did you mean 'female'"), id="protected unknown"),
    pytest.param(ONLY_NO, {}, ("one class only", "'income'", "'no'"), id="one class"),
    pytest.param(with_line(3, "maybe,male,45,farmer,-2"), {}, ("3 labels", "'maybe'", "'no'", "'yes'", "--positive only"), id="3 labels"),
    pytest.param(GOOD.replace("female", "male"), {}, ("'sex'", "'male'", "two groups"), id="one group"),
    pytest.param(with_line(3, "yes,other,45,farmer,-2"), {}, ("'sex'", "3 values", "'other'", "--protected"), id="3 groups"),
    pytest.param(
        with_line(5, "no,female,60,driver,1e3"),
        {},
        ("no row has sex=female & income=yes", "sex=male & income=no: 2", "sex=female & income=no: 2", "sex=male & income=yes: 1"),
        id="empty cell",
    ),
    pytest.param(with_line(4, "no,female,nan,clerk,0"), {}, ("row 3 (line 4)", "'age'", "missing (or NaN)"), id="NaN"),
    pytest.param(with_line(4, "no,female,,clerk,0"), {}, ("row 3 (line 4)", "'age'", "missing"), id="missing number"),
    pytest.param(with_line(4, "no,female,28,N/A,0"), {}, ("row 3 (line 4)", "'job'", "missing"), id="missing text"),
    pytest.param(with_line(4, "no,female,-inf,clerk,0"), {}, ("row 3 (line 4)", "'age'", "-inf", "not finite"), id="inf"),
    pytest.param(with_line(4, "no,female,28,clerk,1e309"), {}, ("row 3 (line 4)", "'score'", "not finite"), id="1e309"),
    pytest.param(with_line(4, "no,female,abc,clerk,0"), {}, ("row 3 (line 4)", "'age'", "'abc'", "text in a numeric"), id="text among numbers"),
    pytest.param(with_line(4, "no,female,1_0,clerk,0"), {}, ("row 3 (line 4)", "'age'", "'1_0'"), id="underscore"),
    pytest.param(with_line(2, "no,male,abc,clerk,0"), {}, ("row 1 (line 2)", "'age'", "'abc'"), id="text in the first row"),
    pytest.param(with_line(4, "no,female,28,7,0"), {}, ("row 3 (line 4)", "'job'", "7", "number in a text"), id="number among texts"),
    pytest.param(with_line(4, ",female,28,clerk,0"), {}, ("row 3 (line 4)", "'income'", "missing"), id="missing label"),
    pytest.param(with_line(4, "no,,28,clerk,0"), {}, ("row 3 (line 4)", "'sex'", "missing"), id="missing group"),
    pytest.param(with_line(4, "no,female,28,clerk"), {}, ("row 3 (line 4)", "4 cells", "5"), id="short row"),
    pytest.param(with_line(4, "no,female,28,clerk,0,9"), {}, ("row 3 (line 4)", "6 cells", "5"), id="long row"),
    pytest.param("\n" + with_line(4, "no,female,28,clerk"), {}, ("row 3 (line 5)",), id="short row after a blank line"),
    pytest.param(with_line(3, 'yes,male,45,"a\nb",-2').replace("no,male,39", "no,male,x"), {}, ("row 5 (line 7)", "'x'"), id="row after a cell of two lines"),
    pytest.param(with_line(4, 'no,female,28,"clerk"s,0'), {}, ("line 4", "cells"), id="bad quotes"),
    pytest.param(with_line(4, 'no,female,28,"clerk,0'), {}, ("line 6", "cells"), id="open quote"),
    pytest.param("income,sex,age,job,score\n", {}, ("heading", "no data row"), id="no rows"),
    pytest.param("", {}, ("is empty",), id="empty file"),
    pytest.param("\n\n", {}, ("is empty",), id="blank file"),
    pytest.param(GOOD.encode() + b"\0\1\2", {}, ("line 7", "NUL", "binary"), id="NUL"),
    pytest.param(b"\x80\x04\x95" + bytes(range(200, 250)), {}, ("line 1", "UTF-8", "0x80"), id="binary"),
    pytest.param(GOOD.encode("utf-16"), {}, ("line 1",), id="UTF-16"),
    pytest.param(GOOD.replace("clerk", "caf\u00e9").encode("latin-1"), {}, ("line 2", "UTF-8", "0xe9"), id="Latin-1"),
    pytest.param(gzip.compress(GOOD.encode() * 50)[:60], {}, ("compressed", "damaged"), id="truncated gzip"),
    pytest.param("income,sex\nno,a\nyes,b\nyes,a\nno,b\n", {}, ("no column is left",), id="no feature"),
    pytest.param(
        "income,sex,key\n" + "".join(f"{i % 2},{i // 2 % 2},k{i}\n" for i in range(MAX_CATEGORIES + 2)),
        {},
        ("'key'", "1,000", "identifier"),
        id="identifiers",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("content", "changed", "words"), BAD)
def test_bad_files_are_one_line(tmp_path: Path, content: str | bytes, changed: Any, words: tuple[str, ...]) -> None:
    path = written(tmp_path, content)
    with pytest.raises(DataError) as caught:
        read_table(path, **(ARGUMENTS | changed))
    message = str(caught.value)
    assert "\n" not in message
    for word in (str(path), *words):
        assert word in message, message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("absent.csv", ("absent.csv", "no such file")),
        ("folder.csv", ("folder.csv", "not a regular file")),
        ("model.pkl", ("model.pkl", "'.pkl'", ".csv", ".parquet")),
        ("nul\0.csv", ("cannot be used",)),
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
    ("change", "words"),
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
    table = frame(lambda c: None)
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
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingDependency, match=r"minmaxcon\[data\]"):
        read_table(written(tmp_path, b"PAR1", "data.parquet"), label="income", sensitive="sex")


def test_parquet_with_repeated_columns_is_refused(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pa.Table.from_arrays([pa.array([0, 1])] * 3, names=["y", "g", "y"])
    parquet.write_table(table, tmp_path / "data.parquet")
    with pytest.raises(DataError, match="two columns are called 'y'"):
        read_table(tmp_path / "data.parquet", label="y", sensitive="g")


LIBSVM = "+1 1:1 3:2.5\n-1 2:1\n+1 2:1 3:1\n-1 1:1\n"


def test_libsvm_files_stay_sparse(tmp_path: Path) -> None:
    path = written(tmp_path, LIBSVM, "rows.libsvm")
    data = read_table(path, sensitive=1)
    np.testing.assert_array_equal(data.features.toarray(), [[0, 2.5], [1, 0], [1, 1], [0, 0]])
    assert data.feature_names == ("2", "3")
    np.testing.assert_array_equal(data.label, [1, -1, 1, -1])
    np.testing.assert_array_equal(data.group, [1, -1, -1, 1])
    np.testing.assert_array_equal(data.select([2]).features.toarray(), [[1, 1]])
    encoding = encoding_from_dict(json.loads(json.dumps(data.encoding.as_dict())))
    assert encoding == LibsvmEncoding(3, removed=1)
    np.testing.assert_array_equal(encode_rows(path, encoding).toarray(), data.features.toarray())
    unlabelled = written(tmp_path, "2:5\n3:1\n", "new.libsvm")
    np.testing.assert_array_equal(encode_rows(unlabelled, encoding).toarray(), [[5, 0], [0, 1]])
    assert read_table(path, sensitive="1", keep_sensitive=True, n_features=5).features.shape == (4, 5)


@pytest.mark.parametrize(
    ("content", "sensitive", "error", "words"),
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
    ("changed", "words"),
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
    try:
        read_table(path, label="income", sensitive="sex")
    except MinMaxConError as caught:
        assert "\n" not in str(caught)
