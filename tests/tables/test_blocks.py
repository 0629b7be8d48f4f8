"""Tables read block by block: the cells are those of one table, rows count through all blocks, faults are one line."""

from __future__ import annotations

import functools
import gzip
import struct
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import minmaxcon as mm
from minmaxcon.tables import TableBlocks, formats, read_source

N = 1000
_rng = np.random.default_rng(0)
TABLE = pa.table(
    {
        "x": _rng.normal(size=N).astype(np.float32),
        "count": _rng.integers(5, size=N),
        "kind": pa.array(np.array(["a", "b", "c"])[_rng.integers(3, size=N)]).dictionary_encode(),
        "flag": _rng.random(N) < 0.5,
    }
)


def file(folder: Path) -> Any:
    pq.write_table(TABLE, folder / "one.parquet", row_group_size=333)
    return folder / "one.parquet"


def files(folder: Path) -> Any:
    for k in range(3):
        pq.write_table(TABLE.slice(k * 400, 400), folder / f"part-{k}.parquet")
    return folder


def feather(folder: Path) -> Any:
    pyarrow.feather.write_feather(TABLE, str(folder / "one.feather"))
    return ds.dataset(folder / "one.feather", format="feather")


def text(folder: Path) -> Any:
    table = TABLE.to_pandas().astype({"x": float})
    table.to_csv(folder / "one.csv", index=False, float_format="%.17g")
    return folder / "one.csv"


SOURCES: dict[str, Any] = {
    "csv": text,
    "file": file,
    "folder": files,
    "address": lambda folder: f"file://{files(folder)}",
    "dataset": feather,
    "frames": lambda _: [TABLE.slice(0, 500).to_pandas(), TABLE.slice(500).to_pandas()],
    "function": lambda _: lambda: iter([pl.from_arrow(TABLE.slice(0, 100)), pl.from_arrow(TABLE.slice(100))]),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_blocks_hold_what_the_whole_table_holds(tmp_path: Path, kind: str) -> None:
    whole = read_source(TABLE)
    blocks = TableBlocks(SOURCES[kind](tmp_path), block=90)
    assert (blocks.rows, blocks.names) == (N, ("x", "count", "kind", "flag"))
    for _ in range(2):
        tables = list(blocks.tables())
        assert max(table.rows for table in tables) <= 90
        assert [table.first for table in tables] == np.cumsum([0, *(table.rows for table in tables)])[:-1].tolist()
        for name, column in whole.columns.items():
            cells = [table.columns[name].cell(row) for table in tables for row in range(table.rows)]
            assert cells == [column.cell(row) for row in range(N)]


def test_an_address_of_another_file_system() -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    with memory.open("/blocks/one.parquet", "wb") as stream:
        pq.write_table(TABLE, stream)
    assert TableBlocks("memory://blocks").rows == N
    with pytest.raises(mm.DataError, match=r"memory://nothing: nothing is at this address"):
        TableBlocks("memory://nothing")


def test_libsvm_files(tmp_path: Path) -> None:
    path = tmp_path / "small.libsvm"
    path.write_text("1 1:0.5 3:2\n-1 2:1\n\n# nothing\n1 3:-1\n")
    blocks = TableBlocks(path, block=2)
    assert (blocks.rows, blocks.names) == (3, ("label", "1", "2", "3"))
    (first, second) = blocks.arrays(features=["1", "2", "3"], target="label").blocks()
    np.testing.assert_array_equal(first["features"], [[0.5, 0, 2], [0, 1, 0]])
    np.testing.assert_array_equal(second["features"], [[0, 0, -1]])
    assert second["target"].tolist() == [1.0]
    assert [table.place(0) for table in blocks.tables(["1"])] == ["row 1 (line 1)", "row 3 (line 5)"]
    (whole,) = TableBlocks(path, block=3).tables()  # its rows are those of one block
    assert (whole.rows, whole.first) == (3, 0)
    path.write_text("1 5000:1\n")
    with pytest.raises(mm.DataError, match="has 5,000 features, and blocks are dense"):
        TableBlocks(path)


class Part:
    """A part of a data set that has no path, and fewer rows than it says."""

    def __init__(self, **columns: list[Any]) -> None:
        self.table = pa.table(columns)
        self.physical_schema = self.table.schema

    def count_rows(self) -> int:
        return self.table.num_rows + 1

    def to_batches(self, **_: Any) -> list[Any]:
        return self.table.to_batches()


def test_a_part_without_a_path_is_told_by_the_data_set() -> None:
    parts = [Part(x=[1.0, 2.0]), Part(x=[3.0])]
    blocks = TableBlocks(SimpleNamespace(get_fragments=lambda: parts))
    assert (blocks.name, blocks.rows) == ("data set", 5)
    with pytest.raises(mm.DataError) as caught:
        list(blocks.tables())
    said = "data set: data set cannot be read after row 2 (it claims 3 rows and holds 2); export it again."
    assert str(caught.value) == said
    other = [*parts, Part(x=["a"])]
    with pytest.raises(mm.DataError) as caught:
        TableBlocks(SimpleNamespace(get_fragments=lambda: other))
    said = "data set: column 'x' is string in a part, and double in the files before; make them alike."
    assert str(caught.value) == said


def test_batches_without_rows_are_passed_over(tmp_path: Path) -> None:
    numbers = TABLE.select(["x", "count"])
    with pa.ipc.new_file(tmp_path / "rows.arrow", numbers.schema) as opened:
        for begin, count in ((0, 400), (400, 0), (400, 600)):
            part = numbers.slice(begin, count).combine_chunks()
            opened.write_batch(pa.RecordBatch.from_pydict(part.to_pydict(), numbers.schema))
    tables = list(TableBlocks(ds.dataset(tmp_path / "rows.arrow", format="ipc"), block=300).tables(["x"]))
    assert all(table.rows for table in tables)
    cells = np.concatenate([table.columns["x"].numbers for table in tables])
    np.testing.assert_array_equal(cells, TABLE["x"].to_numpy().astype(float))


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_a_file_of_a_set_with_a_name_twice_is_refused(order: tuple[str, str], tmp_path: Path) -> None:
    good, twice = pa.table({"x": [1.0]}), pa.table([[1.0], [2.0]], names=["x", "x"])
    for name, table in zip(order, (good, twice), strict=True):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    with pytest.raises(mm.DataError, match=r"two columns are called 'x'; rename or remove one|duplicate field names"):
        TableBlocks(tmp_path)


def test_an_arrow_file_whose_texts_lie_elsewhere_is_refused(tmp_path: Path) -> None:
    """Arrow takes the places of texts as they stand in its own files; reading there would end the process."""
    table, path = pa.table({"who": ["aa", "bb", "cc"]}), tmp_path / "rows.arrow"
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    good, bad = (struct.pack("<4i", 0, 2, 4, last) for last in (6, 2**30))
    content = path.read_bytes()
    assert content.count(good) == 1
    path.write_bytes(content.replace(good, bad))
    with pytest.raises(mm.DataError, match=r"rows.arrow cannot be read after row 0 \(.*export it again"):
        list(TableBlocks(ds.dataset(path, format="ipc")).tables())


def test_a_file_that_was_replaced_after_it_was_counted_is_noticed(tmp_path: Path) -> None:
    blocks = TableBlocks(files(tmp_path))
    pq.write_table(TABLE.slice(400, 399), tmp_path / "part-1.parquet")
    with pytest.raises(
        mm.DataError, match=r"part-1.parquet cannot be read after row \S+ \(it claims 400 rows and holds 399"
    ):
        list(blocks.tables())


def test_arrays_are_asked_for_by_name(tmp_path: Path) -> None:
    with pytest.raises(mm.InvalidInput, match=r"columns={}: name at least one array and its columns"):
        TableBlocks(file(tmp_path)).arrays()


def test_arrays_feed_a_source_on_disk(tmp_path: Path) -> None:
    data = mm.OnDisk(TableBlocks(files(tmp_path)).arrays(features=["x", "count"], target="count"), window=100)
    found = sum(share * batch["features"].mean(axis=0) for share, batch in data.chunks())
    expected = [TABLE[name].to_numpy().mean(dtype=np.float64) for name in ("x", "count")]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    with pytest.raises(mm.DataError, match=r"no column 'y', asked for by arrays"):
        TableBlocks(tmp_path).arrays(target="y")


def half_way(column: Any) -> Any:
    return TABLE.slice(500).set_column(0, "x", column)


CHANGED: dict[str, Any] = {
    "a type": (half_way(pa.array(["1.5"] * 500)), "column 'x' is string in .*part-1.parquet, and float in the files"),
    "a name": (TABLE.rename_columns(["z", "count", "kind", "flag"]), "column 'x' is no column in .*part-1.parquet"),
    "one more": (TABLE.append_column("z", TABLE["x"]), "column 'z' is float in .*part-1.parquet, and no column in the"),
    "the order": (
        TABLE.select(["count", "x", "kind", "flag"]),
        "part-1.parquet has its columns in another order than x, count, kind, flag, ",
    ),
}


@pytest.mark.parametrize("change", CHANGED)
def test_a_schema_that_changes_half_way_is_named_before_any_work(tmp_path: Path, change: str) -> None:
    other, said = CHANGED[change]
    pq.write_table(TABLE.slice(0, 500), tmp_path / "part-0.parquet")
    pq.write_table(other, tmp_path / "part-1.parquet")
    with pytest.raises(mm.DataError, match=said) as caught:
        TableBlocks(tmp_path)
    assert "\n" not in str(caught.value)


def test_another_order_of_columns_is_told_by_the_first_six(tmp_path: Path) -> None:
    many = pa.table({f"c{k}": [1.0] for k in range(8)})
    pq.write_table(many, tmp_path / "a.parquet")
    pq.write_table(many.select([f"c{k}" for k in reversed(range(8))]), tmp_path / "b.parquet")
    with pytest.raises(
        mm.DataError, match=r"b.parquet has its columns in another order than c0, c1, c2, c3, c4, c5, \.\.\.;"
    ):
        TableBlocks(tmp_path)


def test_bad_cells_are_named_by_their_row_in_all(tmp_path: Path) -> None:
    values = TABLE["x"].to_numpy().copy()
    values[777] = np.nan
    pq.write_table(TABLE.set_column(0, "x", pa.array(values)), tmp_path / "one.parquet")
    reader = TableBlocks(tmp_path / "one.parquet", block=100).arrays(x="x")
    with pytest.raises(mm.DataError, match=r"row 778, column 'x': the value is missing"):
        mm.OnDisk(reader)
    with pytest.raises(mm.DataError, match=r"row 1, column 'kind': the value '.' is text in a numeric column"):
        mm.OnDisk(TableBlocks(tmp_path / "one.parquet").arrays(x="kind"))


def test_bad_sources(tmp_path: Path) -> None:
    with pytest.raises(mm.DataError, match=r"missing\.parquet: no such file"):
        TableBlocks(tmp_path / "missing.parquet")
    with pytest.raises(mm.DataError, match="is a folder without Parquet files; give one that holds them"):
        TableBlocks(tmp_path)
    pq.write_table(TABLE.slice(0, 0), tmp_path / "empty.parquet")
    with pytest.raises(mm.DataError, match="has no rows"):
        TableBlocks(tmp_path)
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    with pytest.raises(mm.DataError, match=r"is no data set that can be read .*; give Parquet files, or one CSV"):
        TableBlocks(tmp_path)
    frame = pd.DataFrame({"a": [1.0]})
    for once in (iter([frame]), frame, 3):
        with pytest.raises(mm.InvalidInput, match="a function that returns a fresh iterator"):
            TableBlocks(once)
    for none in (lambda: None, lambda: frame, lambda: 3):
        with pytest.raises(mm.InvalidInput, match="no iterator of frames; give a path"):
            TableBlocks(none)
    for odd, kind in ((3, "int"), (pl.LazyFrame({"a": [1.0]}), "LazyFrame")):
        with pytest.raises(mm.DataError, match=f"{kind} is no eager data frame; give frames of pandas"):
            TableBlocks([frame, odd])
    same = iter([frame])
    with pytest.raises(mm.DataError, match="1 rows were read at first and 0 now; the function must return a fresh"):
        list(TableBlocks(lambda: same).tables())
    with pytest.raises(mm.DataError, match=r"frame 2 has other columns than the first, such as '[ab]'"):
        TableBlocks([frame, frame.rename(columns={"a": "b"})])


def test_files_are_divided_among_processes(tmp_path: Path) -> None:
    whole = TableBlocks(files(tmp_path))
    parts = [whole.shard(k, 2) for k in range(2)]
    assert [part.rows for part in parts] == [600, 400]
    cells = sorted(x for part in parts for table in part.tables(["x"]) for x in table.columns["x"].numbers.tolist())
    assert cells == sorted(TABLE["x"].to_pylist())
    with pytest.raises(mm.DataError, match="has 3 files for 4 processes"):
        whole.shard(0, 4)
    (tmp_path / "rows.libsvm").write_text("1 1:1\n-1 2:1\n")
    for source, what in (
        (text(tmp_path), "one CSV file"),
        (tmp_path / "rows.libsvm", "one LIBSVM file"),
        ([TABLE.to_pandas()], "frames"),
    ):
        with pytest.raises(mm.DataError, match=f"{what} cannot be divided among 2 processes; (write|give)"):
            TableBlocks(source).shard(0, 2)


CSV_FAULTS = {
    "ragged": ("a,b\n1,2\n3\n", r"row 2 \(line 3\) has 1 cells where the heading has 2"),
    "twice": ("a,a\n1,2\n", "two columns are called 'a'"),
    "no name": ("a,\n1,2\n", "column 2 has no name"),
    "heading alone": ("a,b\n", "has no rows"),
    "nothing": ("", "the file is empty"),
}


@pytest.mark.parametrize("fault", CSV_FAULTS)
def test_faults_of_a_csv_file_are_found_in_the_first_pass(tmp_path: Path, fault: str) -> None:
    content, says = CSV_FAULTS[fault]
    (tmp_path / "table.csv").write_text(content)
    with pytest.raises(mm.DataError, match=says):
        TableBlocks(tmp_path / "table.csv")


def test_a_csv_file_is_read_in_blocks_whose_places_are_those_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packed, with quotes, blank lines and line ends in cells; each bad cell has its row and line."""
    monkeypatch.setattr(formats, "_BLOCK", 200)
    rows = [f'{k},"two\nlines, {k % 3}"' for k in range(100)]
    with gzip.open(tmp_path / "table.csv.gz", "wt") as packed:
        packed.write("x;kind\n\n".replace(";", ",") + "\n".join(rows) + "\noops,a\n")
    blocks = TableBlocks(tmp_path / "table.csv.gz", block=7)
    found = list(blocks.tables())
    assert blocks.rows == 101
    assert max(table.rows for table in found) <= 7
    assert sum(table.rows for table in found) == 101
    x = np.concatenate([table.columns["x"].numbers for table in found])
    np.testing.assert_array_equal(x[:100], np.arange(100))
    with pytest.raises(mm.DataError, match=r"row 101 \(line 203\), column 'x': the value 'oops' is text"):
        mm.OnDisk(blocks.arrays(x="x"))


def test_names_and_sizes_of_every_kind_of_source(tmp_path: Path) -> None:
    """What messages call it, how many rows a block has, and that names may be asked for in any order."""
    files(tmp_path)
    (tmp_path / "rows.svm").write_text("1 1:1\n-1 2:2\n1 3:3\n")
    frame = pd.DataFrame({"x": np.arange(5.0), "y": list("abcde")})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    cases: list[tuple[Any, str, str, list[str], list[int]]] = [
        (tmp_path / "part-0.parquet", str(tmp_path / "part-0.parquet"), "x", ["flag", "x"], [150, 150, 100]),
        (tmp_path / "rows.csv", str(tmp_path / "rows.csv"), "x", ["y", "x"], [5]),
        (tmp_path / "rows.svm", str(tmp_path / "rows.svm"), "label", ["2", "label"], [3]),
        ([frame, frame], "frames", "x", ["y"], [5, 5]),
        (ds.dataset(tmp_path / "part-0.parquet"), "data set", "x", ["count"], [150, 150, 100]),
    ]
    for source, name, first, wanted, sizes in cases:
        blocks = TableBlocks(source, block=150)
        assert (blocks.name, blocks.names[0], blocks.rows) == (name, first, sum(sizes))
        tables = list(blocks.tables(wanted))
        assert [table.rows for table in tables] == sizes
        assert {tuple(table.columns) for table in tables} == {tuple(wanted)}
        assert {table.source for table in tables} == {name}
        assert [column.name for column in tables[0].columns.values()] == wanted
        with pytest.raises(mm.DataError, match=f"{name}: no column 'z', asked for by me;.*Columns: '{first}'"):
            next(blocks.tables(["z"], by="me"))
        with pytest.raises(mm.DataError, match="no column 'z', asked for by the columns to read"):
            next(blocks.tables(["z"]))


def test_numbers_that_are_none_are_named(tmp_path: Path) -> None:
    blocks = TableBlocks(files(tmp_path))
    (tmp_path / "rows.svm").write_text("1 1:1\n")
    calls: list[tuple[Any, str]] = [
        (lambda: TableBlocks(tmp_path / "part-0.parquet", block=0), "block=0: must be a whole number of at least 1."),
        (
            lambda: TableBlocks(tmp_path / "rows.svm", n_features=0),
            "n_features=0: must be a whole number of at least 1",
        ),
        (lambda: TableBlocks(tmp_path / "rows.svm", n_features=2**31), "n_features=2147483648: must be a whole number"),
        (lambda: blocks.shard(-1, 2), "number=-1: must be a whole number of at least 0."),
        (lambda: blocks.shard(0, 0), "shards=0: must be a whole number of at least 1."),
        (
            lambda: TableBlocks(TABLE),
            "source='Table': give a path, a data set of pyarrow, a list of frames, or a function",
        ),
        (lambda: TableBlocks(3), "source='int': give a path, a data set of pyarrow, a list of frames, or a function"),
    ]
    for call, said in calls:
        with pytest.raises(mm.InvalidInput) as caught:
            call()
        assert str(caught.value).startswith(said)


def test_a_part_of_the_files_is_a_data_set_of_its_own(tmp_path: Path) -> None:
    whole = TableBlocks(files(tmp_path), block=300)
    second = whole.shard(1, 2)
    assert (second.name, second.names, second.rows, second.block) == (whole.name, whole.names, 400, 300)
    tables = list(second.tables(["x"]))
    assert [(table.first, table.rows) for table in tables] == [(0, 300), (300, 100)]
    numbers = np.concatenate([table.columns["x"].numbers for table in tables])
    np.testing.assert_array_equal(numbers, TABLE["x"].to_numpy()[400:800].astype(float))
    assert whole.rows == N  # as it was
    assert whole.shard(0, 1).rows == N
    assert [whole.shard(k, 3).rows for k in range(3)] == [400, 400, 200]


@pytest.mark.parametrize("given", [None, 5])
def test_features_of_a_libsvm_file_are_as_many_as_are_given(given: int | None, tmp_path: Path) -> None:
    path = tmp_path / "rows.svm"
    path.write_text("1\n-1 2:2 3:3\n1 1:1\n2 2:1\n")
    blocks = TableBlocks(path, n_features=given, block=3)
    width = given or 3
    assert blocks.names == ("label", *map(str, range(1, width + 1)))
    expected = np.zeros((4, width))
    expected[[1, 1, 2, 3], [1, 2, 0, 1]] = [2, 3, 1, 1]
    tables = list(blocks.tables())
    assert [(table.first, table.rows, list(table.lines)) for table in tables] == [(0, 3, [1, 2, 3]), (3, 1, [4])]
    found = np.concatenate([np.stack([c.numbers for c in table.columns.values()], axis=1) for table in tables])
    np.testing.assert_array_equal(found, np.column_stack([[1, -1, 1, 2], expected]))
    with pytest.raises(
        mm.DataError, match=r"row 2 \(line 2\): '3:3' has feature index 3, above the largest allowed, 2"
    ):
        TableBlocks(path, n_features=2)


def test_a_libsvm_file_is_made_dense_up_to_4096_features(tmp_path: Path) -> None:
    path = tmp_path / "rows.svm"
    path.write_text("1 4096:1\n")
    (table,) = TableBlocks(path).tables(["4096", "4095"])
    assert [column.numbers.tolist() for column in table.columns.values()] == [[1.0], [0.0]]
    with pytest.raises(mm.DataError, match="has 4,097 features, and blocks are dense; up to 4,096 can be read so"):
        TableBlocks(path, n_features=4097)


def test_arrays_are_one_column_or_several(tmp_path: Path) -> None:
    blocks = TableBlocks(file(tmp_path), block=600)
    asked = blocks.arrays(one="x", several=["count", "x"], again=["x"])
    assert (asked.name, asked.rows) == (blocks.name, N)
    x, count = (TABLE[name].to_numpy().astype(float) for name in ("x", "count"))
    found = list(asked.blocks())
    assert [{name: array.shape for name, array in block.items()} for block in found] == [
        {"one": (rows,), "several": (rows, 2), "again": (rows, 1)} for rows in (600, 400)
    ]
    np.testing.assert_array_equal(np.concatenate([block["one"] for block in found]), x)
    np.testing.assert_array_equal(np.concatenate([block["several"] for block in found]), np.column_stack([count, x]))
    np.testing.assert_array_equal(np.concatenate([block["again"] for block in found])[:, 0], x)
    with pytest.raises(mm.DataError, match=r"no column 'y', asked for by arrays; Columns: 'x', 'count', 'kind'"):
        blocks.arrays(one="x", other=["count", "y"])


def test_the_last_of_frames_that_differ_is_told_by_its_number() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    alike = [frame, frame, frame]
    assert TableBlocks(alike).rows == 6
    for other, column in (
        (frame.assign(c=1.0), "c"),
        (frame.drop(columns="b"), "b"),
        (frame[["b", "a"]], "b"),  # in another order
    ):
        said = f"frames: frame 3 has other columns than the first, such as '{column}'; make them alike"
        with pytest.raises(mm.DataError, match=said):
            TableBlocks([frame, frame, other])
    with pytest.raises(mm.DataError, match="frames: has no rows; at least one was expected"):
        TableBlocks([])


def test_rows_of_frames_count_through_all_of_them() -> None:
    """Whatever kind of frame, and cut into blocks."""
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        frames = [make({"x": [1.0, 2.0, 3.0]}), make({"x": [4.0, np.nan]})]
        tables = list(TableBlocks(functools.partial(iter, frames), block=2).tables())
        assert [(table.first, table.rows) for table in tables] == [(0, 2), (2, 1), (3, 2)]
        numbers = np.concatenate([table.columns["x"].numbers for table in tables])
        np.testing.assert_array_equal(numbers, [1, 2, 3, 4, np.nan])
        assert tables[2].place(1) == "row 5"
        with pytest.raises(mm.DataError, match="frames: row 5, column 'x': the value is missing"):
            list(TableBlocks(frames, block=2).arrays(x="x").blocks())
    counts = iter([2, 2, 3])
    growing = TableBlocks(lambda: [pd.DataFrame({"x": np.zeros(next(counts))})])
    assert sum(table.rows for table in growing.tables()) == 2
    with pytest.raises(mm.DataError, match="frames: 2 rows were read at first and 3 now; the function must return"):
        list(growing.tables())


def test_an_address_that_cannot_be_opened_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(mm.DataError, match=r"^file:///absent/here: nothing is at this address; check it"):
        TableBlocks("file:///absent/here")
    with pytest.raises(mm.DataError, match=r"none://a: is no data set that can be read \(Protocol not known: none"):
        TableBlocks("none://a")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(mm.MissingDependency, match=r"the address file://x.*minmaxcon\[remote\]"):
        TableBlocks("file://x")
    with pytest.raises(mm.DataError, match=f"^{tmp_path / 'nothing'}: no such file; check the path"):
        TableBlocks(tmp_path / "nothing")
