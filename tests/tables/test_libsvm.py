"""LIBSVM files: read as scikit-learn reads them, and refused early where they are hostile."""

from __future__ import annotations

import gzip
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from minmaxcon.errors import DataError, InvalidInput, MinMaxConError
from minmaxcon.tables.libsvm import MAX_FEATURES, read_libsvm
from tests.costs import cost_of
from tests.figures import Figure


def written(folder: Path, content: str | bytes, name: str = "rows.libsvm") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_reads_what_scikit_learn_writes(tmp_path_factory: Any, seed: int, packed: bool) -> None:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rng.integers(1, 9), rng.integers(1, 9))) * (rng.random() < 0.8)
    features[rng.random(features.shape) < 0.5] = 0.0
    features[0, -1] = 1.0
    label = rng.integers(-2, 3, len(features))
    path = tmp_path_factory.mktemp("rows") / "rows.svm"
    dump_svmlight_file(features, label, str(path), zero_based=False)
    if packed:
        path = written(path.parent, gzip.compress(path.read_bytes()), "rows.svm.gz")
    rows = read_libsvm(path)
    expected, _ = load_svmlight_file(str(path))
    np.testing.assert_array_equal(rows.features.toarray(), expected.toarray())
    np.testing.assert_allclose(rows.features.toarray(), features, rtol=1e-14)
    np.testing.assert_array_equal(rows.labels, label)
    assert rows.features.dtype == np.float64


@pytest.mark.data
def test_a9a_equals_scikit_learn_within_a_second(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "a9a.gz"
    read_libsvm(written(tmp_path, "1 1:1\n"))  # what is imported when it is needed
    taken = []
    for _ in range(2):
        start = time.process_time()
        rows = read_libsvm(path)
        taken.append(time.process_time() - start)
    expected, label = load_svmlight_file(str(path))
    assert rows.features.shape == (32561, 123)
    assert (rows.features != expected).nnz == 0
    np.testing.assert_array_equal(rows.labels, label)
    assert min(taken) < 1.5 or sys.gettrace(), "about .3 s on a quiet machine, where no coverage is measured"


def test_dialects(tmp_path: Path) -> None:
    text = "\n# a comment\n+1 1:1e-3 4:-2 # note\r\n\n-1\n1.5\t2:+3\n"
    rows = read_libsvm(written(tmp_path, text))
    np.testing.assert_array_equal(rows.features.toarray(), [[1e-3, 0, 0, -2], [0, 0, 0, 0], [0, 3, 0, 0]])
    np.testing.assert_array_equal(rows.labels, [1, -1, 1.5])
    np.testing.assert_array_equal(rows.lines, [3, 5, 6])


def test_the_number_of_features_may_be_given(tmp_path: Path) -> None:
    path = written(tmp_path, "1 1:1\n-1 2:1\n")
    assert read_libsvm(path).features.shape == (2, 2)
    assert read_libsvm(path, n_features=123).features.shape == (2, 123)
    with pytest.raises(DataError, match=r"row 2 \(line 2\).*feature index 2"):
        read_libsvm(path, n_features=1)
    for wrong in (0, 2**31):
        with pytest.raises(InvalidInput, match=f"n_features={wrong}"):
            read_libsvm(path, n_features=wrong)


def test_labels_may_be_absent_where_they_are_not_needed(tmp_path: Path) -> None:
    path = written(tmp_path, "1:2\n+1 2:3\n")
    rows = read_libsvm(path, labelled=False)
    np.testing.assert_array_equal(rows.features.toarray(), [[2, 0], [0, 3]])
    assert math.isnan(rows.labels[0])
    assert rows.labels[1] == 1
    with pytest.raises(DataError, match=r"row 1 \(line 1\): the label '1:2'"):
        read_libsvm(path)


@pytest.mark.parametrize("occurring, refused", [(700, False), (699, True)])
def test_many_features_may_be_absent_but_not_nearly_all(tmp_path: Path, occurring: int, refused: bool) -> None:
    """Of 70,000 features one in a hundred must occur."""
    indices = [*range(1, occurring), 70_000]
    path = written(tmp_path, "1 " + " ".join(f"{index}:1" for index in indices) + "\n-1 2:1\n")
    if refused:
        with pytest.raises(DataError, match="the largest feature index is 70,000, and only 699 features occur; number"):
            read_libsvm(path)
    else:
        expected, _ = load_svmlight_file(str(path))
        assert (read_libsvm(path).features != expected).nnz == 0


ROW = "1 1:1 2:1\n-1 2:1\n"
MANY = "".join(f"{2 * (i % 2) - 1} 1:1 5:{i}\n" for i in range(5000))

HOSTILE: list[tuple[str, str | bytes | Callable[[], bytes], tuple[str, ...]]] = [
    ("long line", lambda: b"1 " + b"1:1 " * 50_000_000, ("line 1", "longer than 1,048,576 bytes")),
    ("long line, packed", lambda: gzip.compress(b"1 " + bytes([49]) * 40_000_000, 1), ("line 1", "longer than")),
    ("long line after a good one", lambda: ROW.encode() + b"1" * 40_000_000, ("line 3", "longer than")),
    ("line of many values", "1 " + " ".join(f"{i}:1" for i in range(1, 150_000)), ("line 1", "longer than")),
    ("index 2^40", ROW + f"1 {2**40}:1\n", ("row 3 (line 3)", str(2**40), "above the largest allowed")),
    ("index above the limit", ROW + f"1 {MAX_FEATURES + 1}:1\n", ("row 3", "above the largest")),
    ("index of 4,999 digits", ROW + "1 " + "9" * 4999 + ":1\n", ("row 3 (line 3)", "index:value")),
    ("index 0", ROW + "1 0:1\n", ("row 3 (line 3)", "count from 1")),
    ("negative index", ROW + "1 -1:1\n", ("row 3 (line 3)", "'-1:1'", "index:value")),
    ("repeated index", ROW + "1 2:1 2:1\n", ("row 3 (line 3)", "must increase", "2 came before")),
    ("falling index", ROW + "1 3:1 2:1\n", ("row 3 (line 3)", "must increase", "3 came before")),
    ("NaN label", ROW + "nan 1:1\n", ("row 3 (line 3)", "label nan", "not a finite")),
    ("infinite label", ROW + "-inf 1:1\n", ("row 3 (line 3)", "label -inf", "not a finite")),
    ("label of text", "label,sex\n1,2\n", ("row 1 (line 1)", "'label,sex'", "not a number", ".csv")),
    ("label with underscore", ROW + "1_0 1:1\n", ("row 3 (line 3)", "'1_0'", "not a number")),
    ("value 1e309", ROW + "1 1:1e309\n", ("row 3 (line 3)", "index 1", "'1e309'", "not finite")),
    ("value NaN", ROW + "1 1:nan\n", ("row 3 (line 3)", "'nan'", "not finite")),
    ("value of text", ROW + "1 1:one\n", ("row 3 (line 3)", "'1:one'", "no number after the colon")),
    ("value with underscore", ROW + "1 1:1_0\n", ("row 3 (line 3)", "no number after the colon")),
    ("two colons", ROW + "1 1:2:3\n", ("row 3 (line 3)", "'1:2:3'")),
    ("no colon", ROW + "1 1\n", ("row 3 (line 3)", "'1'", "index:value")),
    ("query", ROW + "1 qid:1 1:1\n", ("row 3 (line 3)", "'qid:1'", "index:value")),
    ("cut in a value", ROW + "1 1:", ("row 3 (line 3)", "'1:'", "cut short")),
    ("NUL", ROW.encode() + b"1 1:\x001\n", ("line 3", "NUL", "binary")),
    ("binary", b"\x80\x04\x95\xff\xfe" * 9, ("row 1 (line 1)", "label", "not a number")),
    ("truncated gzip", gzip.compress(MANY.encode())[:-400], ("compressed", "damaged")),
    ("damaged gzip", gzip.compress(MANY.encode())[:200] + b"\xff" * 300, ()),
    ("gzip with a wrong sum", gzip.compress(MANY.encode())[:-8] + b"\0" * 8, ("compressed", "damaged")),
    ("empty", "", ("no rows",)),
    ("only comments", "# nothing\n\n#\n", ("no rows",)),
    ("no features", "1\n-1\n", ("no row has a feature",)),
]


@pytest.mark.parametrize("content, words", [pytest.param(*case, id=name) for name, *case in HOSTILE])
def test_hostile_files_are_refused_by_line(
    tmp_path: Path, content: Any, words: tuple[str, ...], figure: Figure
) -> None:
    path = written(tmp_path, content() if callable(content) else content)
    found = cost_of(lambda: read_libsvm(path))
    path.unlink()  # one is large
    figure.count(found.raised == "DataError", 1, "LIBSVM files refused by line")
    figure.largest("processor time", found.seconds, "s")
    figure.largest("memory", found.megabytes, "MB")
    assert found.raised == "DataError", found
    assert found.seconds < 1.0
    assert found.megabytes < 20
    assert "\n" not in found.said
    assert len(found.said) < len(str(path)) + 300
    for word in (str(path), *words):
        assert word in found.said


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_libsvm(tmp_path / "absent")
    with pytest.raises(DataError, match="not a regular file"):
        read_libsvm(tmp_path)


tokens = st.sampled_from(
    ["1", "-1", "1:1", "2:.5", "3:nan", "0:1", ":", "#", "\n", "\r", "1e999", "x", "9" * 30, "\0", "é"]
)


@settings(max_examples=200)
@given(st.one_of(st.binary(max_size=200), st.lists(tokens, max_size=30).map(lambda parts: " ".join(parts).encode())))
def test_no_content_raises_another_error(tmp_path_factory: Any, content: bytes) -> None:
    path = written(tmp_path_factory.mktemp("fuzz"), content)
    message = ""
    try:
        rows = read_libsvm(path)
        assert np.isfinite(rows.features.data).all()
        assert np.isfinite(rows.labels).all()
    except MinMaxConError as caught:
        message = str(caught)
    assert "\n" not in message


@pytest.mark.parametrize("index, fault", [(0, "indices count from 1"), (1, "indices must increase, and 1 came before")])
def test_an_index_that_does_not_rise_is_told_with_its_fault(index: int, fault: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"'{index}:2' has feature index {index}; {fault}"):
        read_libsvm(written(tmp_path, f"1 1:1 {index}:2\n"))


def test_numbers_are_read_up_to_their_limits(tmp_path: Path) -> None:
    path = written(tmp_path, "1 1:1e100 2:-1e100\n-1 2:1\n")
    np.testing.assert_array_equal(read_libsvm(path).features.toarray(), [[1e100, -1e100], [0, 1]])
    for value in ("1.0000001e100", "-1.0000001e100"):
        said = rf"row 2 \(line 2\): feature index 1 has the value '{value}', which is too large, above 1e\+100; rescale"
        with pytest.raises(DataError, match=said):
            read_libsvm(written(tmp_path, f"1 1:1\n1 1:{value}\n"))
    for index in ("1" + "0" * 18, "0" * 18 + "2"):  # of nineteen digits
        rows = written(tmp_path, f"1 1:1\n1 {index}:1\n")
        if index.startswith("0"):
            np.testing.assert_array_equal(read_libsvm(rows).features.toarray(), [[1, 0], [0, 1]])
        else:
            with pytest.raises(DataError, match=f"has feature index {index}, above the largest allowed, {2**24};"):
                read_libsvm(rows)
    with pytest.raises(DataError, match="'00000000000000000002:1' is not of the form index:value"):
        read_libsvm(written(tmp_path, "1 00000000000000000002:1\n"))


def test_a_token_that_is_wrong_is_shown_in_forty_characters(tmp_path: Path) -> None:
    for token, shown in (
        (b"x" * 38, repr("x" * 38)),
        (b"x" * 39, "'" + "x" * 36 + "..."),
        (b"x" * 500, "'" + "x" * 36 + "..."),
        (b"\xff:1", r"'\\xff:1'"),
    ):
        with pytest.raises(DataError) as caught:
            read_libsvm(written(tmp_path, b"1 1:1\n1 " + token + b"\n"))
        assert f"row 2 (line 2): {shown} is not of the form index:value; correct it." in str(caught.value)


def test_a_limit_that_is_no_whole_number_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "1 1:1 5:1\n")
    for name in ("n_features", "max_features", "max_line"):
        for wrong in (0, 1.5, "1"):
            with pytest.raises(InvalidInput, match=f"^{name}={wrong!r}: must be a whole number of at least 1"):
                read_libsvm(path, **{name: wrong})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"^labelled=1: "):
        read_libsvm(path, labelled=1)  # type: ignore[arg-type]
    for limit, read in ((5, True), (4, False)):
        if read:
            assert read_libsvm(path, max_features=limit).features.shape == (1, 5)
        else:
            with pytest.raises(DataError, match="feature index 5, above the largest allowed, 4; correct it, or give"):
                read_libsvm(path, max_features=limit)
    assert read_libsvm(path, max_line=10).labels.tolist() == [1.0]
    with pytest.raises(DataError, match="line 1 is longer than 9 bytes"):
        read_libsvm(path, max_line=9)


def test_few_features_need_not_occur(tmp_path: Path) -> None:
    """Up to 65,536; of more one in a hundred, unless their number is given."""
    assert read_libsvm(written(tmp_path, "1 65536:1\n")).features.shape == (1, 65_536)
    path = written(tmp_path, "1 65537:1\n")
    with pytest.raises(
        DataError, match="largest feature index is 65,537, and only 1 features occur; number those that"
    ):
        read_libsvm(path)
    assert read_libsvm(path, n_features=65_537).features.shape == (1, 65_537)


def test_rows_are_kept_as_they_come(tmp_path: Path) -> None:
    rows = read_libsvm(written(tmp_path, "\n2 3:1 5:2\n#\n-1\n0.5 1:4\n"))
    assert (rows.features.indices.tolist(), rows.features.indptr.tolist()) == ([2, 4, 0], [0, 2, 2, 3])
    assert (rows.features.data.tolist(), rows.labels.tolist(), rows.lines.tolist()) == (
        [1, 2, 4],
        [2, -1, 0.5],
        [2, 4, 5],
    )
    assert (rows.features.dtype, rows.labels.dtype, rows.lines.dtype) == (np.float64, np.float64, np.int64)
    assert rows.features.shape == (3, 5)
    with pytest.raises(DataError, match="no row has a feature; lines of the form 'label index:value"):
        read_libsvm(written(tmp_path, "1\n"))
    assert read_libsvm(written(tmp_path, "1\n"), n_features=2).features.shape == (1, 2)
    with pytest.raises(DataError, match="the file has no rows; lines of the form 'label index:value"):
        read_libsvm(written(tmp_path, "#\n"), n_features=2)
