"""Sizes that files claim: refused at once, or read; never a hang, never more memory than may be used."""

from __future__ import annotations

import gzip
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import minmaxcon as mm
from minmaxcon.memory import VARIABLE, memory_limit, parsed, require_memory
from minmaxcon.tables import read_libsvm, read_source
from tests.costs import cost_of
from tests.figures import Figure

Refused = Callable[..., None]


@pytest.fixture
def refused(figure: Figure) -> Refused:
    """Give what sees that a file is refused in one line, within a second of processor time and 100 MB."""

    def check(read: Callable[[], Any], said: str, kind: type[Exception] = mm.DataError) -> None:
        see_refused(read, said, kind, figure)

    return check


def see_refused(read: Callable[[], Any], said: str, kind: type[Exception], figure: Figure) -> None:
    found = cost_of(read)
    figure.total(1, "files refused")
    figure.largest("processor time", found.seconds, "s")
    figure.largest("memory", found.megabytes, "MB")
    assert found.raised == kind.__name__, found
    assert re.search(said, found.said)
    assert len(found.said.splitlines()) == 1
    assert found.seconds < 1.0 or sys.gettrace()  # coverage takes longer
    assert found.megabytes < 100


def constant_parquet(path: Path, rows: int) -> Path:
    column = pa.array(np.zeros(2**20, dtype=np.int8))
    with pq.ParquetWriter(path, pa.schema([("x", pa.int8())]), compression="zstd") as writer:
        for _ in range(rows // 2**20):
            writer.write_table(pa.table({"x": column}))
    return path


def test_a_parquet_file_of_many_rows_in_few_bytes_is_refused(tmp_path: Path, refused: Refused) -> None:
    path = constant_parquet(tmp_path / "bomb.parquet", 30 * 2**20)
    assert path.stat().st_size < 2**20
    refused(lambda: read_source(path), "unpacks to more than 200 times its size")


@pytest.mark.parametrize(
    "line", [b"\n", b"0" * 2000 + b"\n", *(pytest.param(line, marks=pytest.mark.rel) for line in (b"0\n", b" \n"))]
)
def test_a_compressed_table_of_many_lines_is_refused(line: bytes, tmp_path: Path, refused: Refused) -> None:
    path = packed(tmp_path / "bomb.csv.gz", b"x\n", line)
    refused(lambda: read_source(path), "unpacks to more than 200 times its size")


@pytest.mark.parametrize(
    "line", [b"1 1:1\n", *(pytest.param(line, marks=pytest.mark.rel) for line in (b"\n", b"# nothing\n"))]
)
def test_a_compressed_file_of_many_sparse_rows_is_refused(line: bytes, tmp_path: Path, refused: Refused) -> None:
    path = packed(tmp_path / "bomb.libsvm.gz", b"1 1:1\n", line)
    refused(lambda: read_libsvm(path), "unpacks to more than 200 times its size")


def packed(path: Path, first: bytes, line: bytes) -> Path:
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(first)
        for _ in range(10):
            file.write(line * (2**20 // len(line)))
    return path


def test_what_packs_well_is_read(tmp_path: Path) -> None:
    """0 and 1 in thirty columns pack by a factor of 10 or so."""
    rows = np.random.default_rng(0).integers(0, 2, size=(3000, 30))
    text = ",".join(f"x{j}" for j in range(30)) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    with gzip.open(tmp_path / "rows.csv.gz", "wt") as file:
        file.write(text)
    assert read_source(tmp_path / "rows.csv.gz").rows == 3000


def test_an_index_that_hardly_any_feature_reaches_is_refused(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "rows.libsvm"
    path.write_text("".join(f"{(-1) ** i} 1:{i} 7:2 16777216:1\n" for i in range(50)))
    refused(lambda: read_libsvm(path), "largest feature index is 16,777,216, and only 3 features occur")
    assert read_libsvm(path, n_features=2**24).features.shape == (50, 2**24)


def test_what_does_not_fit_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({f"x{j}": rng.normal(size=20_000) for j in range(5)})
    pq.write_table(table, tmp_path / "rows.parquet")
    (tmp_path / "rows.csv").write_text("a,b\n" + "1,2\n" * 30_000)
    monkeypatch.setenv(VARIABLE, "1M")
    said = r"20,000 rows of 5 columns need about 2.29 MB of memory, and 1 MB may be used .--memory.*fewer columns"
    refused(lambda: read_source(tmp_path / "rows.parquet"), said, mm.OutOfMemory)
    refused(lambda: read_source(tmp_path / "rows.csv"), "rows of 2 columns need about", mm.OutOfMemory)
    assert read_source(tmp_path / "rows.parquet", ["x1"]).rows == 20_000
    monkeypatch.setenv(VARIABLE, "1G")
    assert read_source(tmp_path / "rows.parquet").rows == 20_000


def test_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [parsed("m", text) for text in ("1", "2K", "1.5 M", "4G", "4GiB", "1tb")] == [
        *(1.0, 2048.0, 1.5 * 2**20, 2.0**32, 2.0**32, 2.0**40)
    ]
    monkeypatch.delenv(VARIABLE, raising=False)
    assert memory_limit() == pytest.approx(parsed("m", "50%"))
    for text in ("", "0", "-1", "G", "much", "1e9", "4 X", "0%", "nan"):
        with pytest.raises(mm.InvalidInput, match="must be a size"):
            parsed("m", text)
    assert parsed("m", "100%") == 2.0 * parsed("m", "50%")
    with pytest.raises(mm.InvalidInput, match="m='200%': must be at most 100% of the memory"):
        parsed("m", "200%")
    monkeypatch.setenv(VARIABLE, "lots")
    with pytest.raises(mm.InvalidInput, match=VARIABLE):
        require_memory(1.0, "a thing", "less.")


def test_the_cost_of_a_refusal_is_measured(tmp_path: Path) -> None:
    """Arrays of NumPy and of Arrow count, and processor time does."""
    path = constant_parquet(tmp_path / "rows.parquet", 2**20)

    def work() -> None:
        kept = np.ones(10 * 2**20), pq.read_table(path).cast(pa.schema([("x", pa.float64())]))
        began = time.process_time()
        while time.process_time() - began < 0.05:
            pass
        raise KeyError(len(kept))

    found = cost_of(work)
    assert (found.raised, found.said) == ("KeyError", "2")
    assert found.megabytes > 80
    assert found.seconds >= 0.05


@pytest.mark.parametrize("kind", ["libsvm", pytest.param("csv", marks=pytest.mark.rel)])
def test_a_wide_table_is_solved_within_its_time_limit(kind: str, tmp_path: Path) -> None:
    """Of 20,000 columns and 40 rows: no matrix of all pairs of columns is made, and no column looks through all."""
    cells, path = np.random.default_rng(0).integers(-99, 100, (40, 20_000)), tmp_path / f"wide.{kind}"
    if kind == "csv":
        heading = ["y,a," + ",".join(f"x{j}" for j in range(20_000))]
        lines = [",".join(map(str, (i % 2, i // 2 % 2, *row))) for i, row in enumerate(cells)]
        options: dict[str, Any] = {"label": "y", "sensitive": "a"}
    else:
        features = (" ".join(f"{j + 2}:{row[j]}" for j in np.flatnonzero(row > 90)) for row in cells)
        heading, lines = [], [f"{2 * (i % 2) - 1} 1:{i // 2 % 2} {text}" for i, text in enumerate(features)]
        options = {"sensitive": 1}
    path.write_text("\n".join(heading + lines))

    def solve() -> None:
        problem = mm.load_problem("fair_auc", data=str(path), kappa=0.5, test_fraction=0.2, **options)
        assert problem.primal.dimension > 10_000
        assert mm.solve(problem, mm.SFLS(oracle=mm.SMD(steps=200)), time_limit=0.3).feasible

    cost = cost_of(solve)
    assert not cost.raised, cost
    assert cost.seconds < 8.0 or sys.gettrace()
    assert cost.megabytes < 400
