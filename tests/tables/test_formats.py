"""Files and frames by their formats: their names, the cells of one column as texts, places of faults, sizes."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from minmaxcon.errors import DataError, InvalidInput
from minmaxcon.tables import TableBlocks, column_names, file_format, formats, read_source, read_texts

from .files import written

TABLE = pa.table({"age": [30.0, None, 31.5], "job": ["cook", "clerk", None], "code": ["007", " 7", "7 "]})
CSV = "age,job,code\n30.0,cook,007\n,clerk, 7\n31.5,,7 \n"


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


@pytest.mark.parametrize(
    "name, expected",
    [
        *((f"rows.{end}", "csv") for end in ("csv", "tsv", "CSV", "csv.gz", "a.Tsv.gz")),
        *((f"rows.{end}", "parquet") for end in ("parquet", "pq", "PQ")),
        *((f"rows.{end}", "libsvm") for end in ("libsvm", "svm", "svmlight", "txt", "t", "svm.gz", "T")),
        *((name, "libsvm") for name in ("rows", "a9a.gz", "folder.csv/rows")),
    ],
)
def test_a_format_is_known_by_the_suffix(name: str, expected: str) -> None:
    assert file_format(name) == file_format(Path(name)) == expected


def test_another_suffix_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(DataError) as caught:
        file_format("rows.xlsx")
    known = ".csv, .libsvm, .parquet, .pq, .svm, .svmlight, .t, .tsv, .txt"
    said = f"rows.xlsx: the suffix '.xlsx' names no known format; export the table as one of {known}."
    assert str(caught.value) == said
    with pytest.raises(InvalidInput, match="path=3"):
        file_format(3)  # type: ignore[arg-type]


def test_headings_are_those_of_the_file_or_frame(tmp_path: Path, parquet: Path) -> None:
    text = written(tmp_path, CSV)
    for source in (text, str(text), parquet, str(parquet), TABLE, TABLE.to_pandas(), pl.from_arrow(TABLE)):
        assert column_names(source) == ("age", "job", "code")
    assert column_names(written(tmp_path, '"a, b";c; d \n1;2;3\n')) == ("a, b", "c", "d")
    assert column_names(pd.DataFrame([[1, 2]])) == ("0", "1")
    with pytest.raises(DataError, match=r"rows.svm: a LIBSVM file has no named columns"):
        column_names(written(tmp_path, "1 1:1\n", "rows.svm"))
    with pytest.raises(DataError, match=r"bad.parquet: is not a readable Parquet file \(.+\); export it again"):
        column_names(written(tmp_path, CSV, "bad.parquet"))


@pytest.mark.parametrize("source", [pl.LazyFrame({"a": [1.0]}), [[1.0]], None, 3, {"a": [1.0]}])
def test_what_is_no_frame_is_told_by_its_type(source: Any) -> None:
    kind = type(source).__name__
    for read in (read_source, column_names):
        with pytest.raises(DataError, match=f"^data frame: a {kind} is neither a path nor an eager data frame; give"):
            read(source)


def test_cells_of_one_column_are_texts_as_they_stand(tmp_path: Path, parquet: Path) -> None:
    text = written(tmp_path, CSV)
    for source in (text, str(text), parquet, written(tmp_path, gzip.compress(CSV.encode()), "rows.csv.gz")):
        assert read_texts(source, "code") == ["007", " 7", "7 "]
        assert read_texts(source, "job") == ["cook", "clerk", ""]
    assert read_texts(text, "age") == ["30.0", "", "31.5"]
    assert read_texts(parquet, "age") == ["30", "", "31.5"]  # numbers, as Arrow writes them
    many = [f"name {k}" for k in range(2000)]  # more than a column of categories may have
    assert read_texts(written(tmp_path, "who,x\n" + "".join(f"{name},1\n" for name in many)), "who") == many


def test_cells_that_are_not_there_or_no_texts_are_told(tmp_path: Path, parquet: Path) -> None:
    for source in (written(tmp_path, CSV), parquet):
        with pytest.raises(DataError, match="no column 'cod', asked for by me; did you mean 'code'"):
            read_texts(source, "cod", by="me")
        with pytest.raises(DataError, match="no column 'x', asked for by the columns to read; Columns: 'age', 'job'"):
            read_texts(source, "x")
    with pytest.raises(DataError, match="two columns are called 'a'"):
        read_texts(written(tmp_path, "a,a\n1,2\n"), "a")
    pq.write_table(pa.table({"l": [[1], [2]], "x": [1, 2]}), tmp_path / "lists.parquet")
    with pytest.raises(DataError, match=r"lists.parquet: column 'l' cannot be read as texts \(.+\); export the file"):
        read_texts(tmp_path / "lists.parquet", "l")
    assert read_texts(tmp_path / "lists.parquet", "x") == ["1", "2"]
    with pytest.raises(DataError, match="a LIBSVM file has no column 'label', asked for by me; leave it out"):
        read_texts(written(tmp_path, "1 1:1\n", "rows.svm"), "label", by="me")
    with pytest.raises(InvalidInput, match=r"name=None: must be the name of a column"):
        read_texts(parquet, None)  # type: ignore[arg-type]


def test_rows_of_text_fit_into_memory_or_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[tuple[float, str, str]]()
    monkeypatch.setattr(formats, "require_memory", lambda *told: asked.append(told))
    path = written(tmp_path, CSV)
    read_texts(path, "code")
    assert asked.pop()[:2] == (24.0 * 3, f"{path}: 3 rows of 1 columns")
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    read_source(tmp_path / "rows.parquet", ["age", "job"])
    size, what, remedy = asked.pop()
    assert (size, what) == (24.0 * 3 * 2, f"{tmp_path / 'rows.parquet'}: 3 rows of 2 columns")
    assert remedy.startswith("read fewer columns or rows, keep sparse features in a LIBSVM file, or stream")


def test_rows_know_the_lines_on_which_they_begin(tmp_path: Path) -> None:
    """After a mark of the byte order, blank lines, lines of blanks, and cells of several lines."""
    text = '\ufeff\n  \na,b\n\n1,"x\ny"\n   \n2,z\r\n"3","\n\n"\n\n4,"say ""no"""\n'
    table = read_source(written(tmp_path, text))
    assert table.lines is not None
    assert table.lines.tolist() == [5, 8, 9, 13]
    assert [table.place(k) for k in (0, 3)] == ["row 1 (line 5)", "row 4 (line 13)"]
    assert table.columns["a"].numbers.tolist() == [1, 2, 3, 4]
    assert table.columns["b"].texts == ("x\ny", "z", 'say "no"')
    assert table.columns["b"].missing.tolist() == [False, False, True, False]


@pytest.mark.parametrize("heading, names", [("a;b;c,d", ("a", "b", "c,d")), ('"a,b,c";d;e', ("a,b,c", "d", "e"))])
def test_the_delimiter_is_the_one_that_the_heading_has_most_of(
    heading: str, names: tuple[str, ...], tmp_path: Path
) -> None:
    """Outside of quotes; the comma where there is none."""
    assert column_names(written(tmp_path, f"{heading}\n1;2;3\n")) == names
    assert column_names(written(tmp_path, "a\n1\n2\n")) == ("a",)
    assert column_names(written(tmp_path, "a;b\n1;2\n")) == ("a", "b")


def test_a_file_of_blocks_is_that_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks end after the row with which they have more characters than they may: 11, of rows of 8 or 9, or of 5."""
    rows = [f'{k},"t{k % 7}"' for k in range(50)]
    path = written(tmp_path, "x,t\n" + "\n".join(rows) + "\n")
    whole = read_source(path)
    file = formats.CsvRows(path)
    for size, counts in ((2**22, [50]), (0, [1] * 50), (5, [1] * 50), (11, [2, 2, 2, 2, 2, 2])):
        monkeypatch.setattr(formats, "_BLOCK", size)
        found = [(len(columns[0]), list(starts)) for columns, starts in file.blocks(["t"])]
        assert [count for count, _ in found][: len(counts)] == counts
        assert [line for _, lines in found for line in lines] == list(range(2, 52))
        assert all(count == len(lines) for count, lines in found)
        table = read_source(path)
        np.testing.assert_array_equal(table.columns["x"].numbers, whole.columns["x"].numbers)
        assert table.columns["t"].texts == whole.columns["t"].texts

    five = formats.CsvRows(written(tmp_path, "x,t\n" + "123,4\n" * 7))
    for size, counts in ((10, [3, 3, 1]), (9, [2, 2, 2, 1])):
        monkeypatch.setattr(formats, "_BLOCK", size)
        assert [len(starts) for _, starts in five.blocks(["x"])] == counts


def test_a_row_of_several_lines_is_read_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 5 + 3 + 3 + 4 characters, their ends included."""
    path = written(tmp_path, 'a,b\n1,"x\nyy\nzz\n",3\n')
    monkeypatch.setattr(formats, "MAX_LINE", 15)
    with pytest.raises(DataError, match=r"row 1 \(line 2\) has 3 cells where the heading has 2"):
        read_source(path)
    monkeypatch.setattr(formats, "MAX_LINE", 14)
    said = r"line 5 cannot be split into cells \(the row that begins on line 2 is longer than 14 characters\); correct"
    with pytest.raises(DataError, match=said):
        read_source(path)


def test_a_large_parquet_file_is_compared_with_its_rows(parquet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight bytes a cell: 3 rows of 2 columns are 48 bytes, which it is looked at from one byte less on."""
    asked = list[tuple[str, float, int]]()
    monkeypatch.setattr(formats, "check_ratio", lambda *told: asked.append(told))
    for looked_at, expected in ((48, []), (47, [(str(parquet), 48.0, parquet.stat().st_size)])):
        monkeypatch.setattr(formats, "_LOOKED_AT", looked_at)
        read_source(parquet, ["age", "job"])
        assert asked == expected


def test_a_source_without_columns_or_rows_has_no_data(tmp_path: Path) -> None:
    nothing, path = pa.table({"a": pa.array([], pa.float64())}), tmp_path / "rows.parquet"
    pq.write_table(nothing, path)
    for source in (pd.DataFrame(), pd.DataFrame({"a": []}), nothing, path, written(tmp_path, "a\n")):
        name = str(source) if isinstance(source, Path) else "data frame"
        with pytest.raises(DataError, match=f"^{name}: there is a heading but no data row; at least one was expected"):
            read_source(source)
    assert read_source(pd.DataFrame({"a": [1.0], "b": [2.0]}), ["b"]).columns.keys() == {"b"}


def test_the_columns_to_read_are_a_list_of_names(tmp_path: Path) -> None:
    path = written(tmp_path, CSV)
    for wanted, told in (("age", "wanted='age'"), (["age", 3], r"wanted\[1\]=3"), (3, "wanted=3")):
        with pytest.raises(InvalidInput, match=f"{told}: must be a list of names of columns, or None for all"):
            read_source(path, wanted)  # type: ignore[arg-type]
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    for source, name in (
        (path, str(path)),
        (tmp_path / "rows.parquet", str(tmp_path / "rows.parquet")),
        (TABLE, "data frame"),
    ):
        with pytest.raises(DataError, match=f"^{name}: no column 'x', asked for by the columns to read;") as caught:
            read_source(source, ["x"])
        assert caught.value.source == name
    table = read_source(path, ["job", "age"])
    assert list(table.columns) == ["job", "age"]
    assert (table.source, table.rows, table.first) == (str(path), 3, 0)
    assert table.columns["job"].name == "job"


@pytest.mark.parametrize(
    "column",
    [
        np.array([1 + 2j, 3]),
        np.array([1, 3], dtype=np.complex64),
        pd.array([1 + 2j, 3]),
        pd.Series(["a", 1j], dtype=object),
        pd.Series([1.5, np.complex64(1)], dtype=object),
        pd.Series([1j, 2.0], dtype="category"),
    ],
    ids=lambda column: str(column.dtype),
)
def test_complex_numbers_of_a_frame_are_refused(column: Any) -> None:
    """Whether all are or one among others, and whatever their imaginary part."""
    frame = pd.DataFrame({"x": [1.0, 2.0], "z": column})
    for read in (read_source, lambda frame: next(TableBlocks([frame]).tables())):
        with pytest.raises(
            DataError, match=r"^data frame: column 'z' is of complex numbers; turn it into real"
        ) as caught:
            read(frame)
        assert caught.value.column == "z"
    assert read_source(frame, ["x"]).rows == 2


def test_objects_of_several_kinds_are_texts() -> None:
    column = read_source(pd.DataFrame({"x": pd.Series([1, "a", None, 2.5], dtype=object)})).columns["x"]
    np.testing.assert_array_equal(column.numbers, [1.0, np.nan, np.nan, 2.5])
    assert (column.texts, column.codes.tolist()) == (("a",), [-1, 0, -1, -1])
