"""Labelled rows of user files: which values are positive and protected, and what cannot be used."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minmaxcon.errors import DataError, InvalidInput
from minmaxcon_problems.fair_auc.labelled import LabelledData, read_table
from tests.tables.files import GOOD, with_line, written


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


def test_sensitive_column_as_a_feature(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    data = read_table(path, label="income", sensitive="sex", keep_sensitive=True)
    assert data.feature_names[:2] == ("sex=female", "sex=male")
    rows = written(tmp_path, "age,job,score\n1,clerk,2\n", "new.csv")
    with pytest.raises(DataError, match="no column 'sex'"):
        data.encoding.encode(rows)


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


LIBSVM = "+1 1:1 3:2.5\n-1 2:1\n+1 2:1 3:1\n-1 1:1\n"


def test_libsvm_files_stay_sparse(tmp_path: Path) -> None:
    path = written(tmp_path, LIBSVM, "rows.libsvm")
    data = read_table(path, sensitive=1)
    np.testing.assert_array_equal(data.features.toarray(), [[0, 2.5], [1, 0], [1, 1], [0, 0]])
    assert data.feature_names == ("2", "3")
    np.testing.assert_array_equal(data.label, [1, -1, 1, -1])
    np.testing.assert_array_equal(data.group, [1, -1, -1, 1])
    np.testing.assert_array_equal(data.select([2]).features.toarray(), [[1, 1]])
    np.testing.assert_array_equal(data.encoding.encode(path).toarray(), data.features.toarray())
    assert read_table(path, sensitive="1", keep_sensitive=True, n_features=5).features.shape == (4, 5)


ARGUMENTS = {"label": "income", "sensitive": "sex"}
ONLY_NO = GOOD.replace("yes", "no")

BAD: list[tuple[str, str, dict[str, Any], tuple[str, ...]]] = [
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
    ("3 groups", with_line(3, "yes,other,45,farmer,-2"), {}, ("'sex'", "3 values", "--protected", "FairAUCClassifier")),
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
    ("no feature", "income,sex\nno,a\nyes,b\nyes,a\nno,b\n", {}, ("no column is left",)),
    ("missing label", with_line(4, ",female,28,clerk,0"), {}, ("row 3 (line 4)", "'income'", "missing")),
    ("missing group", with_line(4, "no,,28,clerk,0"), {}, ("row 3 (line 4)", "'sex'", "missing")),
    ("bad feature", with_line(4, "no,female,abc,clerk,0"), {}, ("row 3 (line 4)", "'age'", "'abc'")),
]


@pytest.mark.parametrize("content, changed, words", [pytest.param(*case, id=name) for name, *case in BAD])
def test_bad_files_are_one_line(tmp_path: Path, content: str, changed: Any, words: tuple[str, ...]) -> None:
    path = written(tmp_path, content)
    with pytest.raises(DataError) as caught:
        read_table(path, **(ARGUMENTS | changed))
    message = str(caught.value)
    assert "\n" not in message
    for word in (str(path), *words):
        assert word in message, message


def test_arguments_are_checked(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    with pytest.raises(InvalidInput, match="is the label"):
        read_table(path, label="sex", sensitive="sex")
    with pytest.raises(InvalidInput, match="name the column"):
        read_table(path, sensitive="sex")


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
