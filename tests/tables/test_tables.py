"""User files: what is read from them, the same in every format."""

from __future__ import annotations

import copy
import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minmaxcon.errors import DataError
from minmaxcon.tables import encode_rows
from minmaxcon.tables.encoding import ColumnEncoding, LibsvmEncoding, TableEncoding, encoding_from_dict
from minmaxcon_problems.fair_auc.labelled import read_table

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
    "values, positive, expected",
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
    for other in (copy.deepcopy(data), pickle.loads(pickle.dumps(data))):
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


def test_fill_and_missing_code_apply_to_new_rows(tmp_path: Path) -> None:
    encoding = TableEncoding((ColumnEncoding("a", fill=5.0, missing_code=666.0), ColumnEncoding("b", ("x", "y"), True)))
    rows = written(tmp_path, "a,b\n1,x\n666,y\n,x\nNA,y\n")
    np.testing.assert_array_equal(encode_rows(rows, encoding), [[1, 0], [5, 1], [5, 0], [5, 1]])
    assert encoding.feature_names == ("a", "b=y")


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
