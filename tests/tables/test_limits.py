"""Sizes that files claim: refused at once, or read; never a hang, never more memory than may be used."""

from __future__ import annotations

import gzip
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


def refused(read: Callable[[], Any], said: str, kind: type[Exception] = mm.DataError) -> None:
    """See that it is refused in a second or two of processor time, also on a busy machine."""
    began = time.process_time()
    with pytest.raises(kind, match=said) as refusal:
        read()
    assert time.process_time() - began < 2.5 or sys.gettrace()  # coverage takes longer
    assert len(str(refusal.value).splitlines()) == 1


def constant_parquet(path: Path, rows: int) -> Path:
    column = pa.array(np.zeros(2**20, dtype=np.int8))
    with pq.ParquetWriter(path, pa.schema([("x", pa.int8())]), compression="zstd") as writer:
        for _ in range(rows // 2**20):
            writer.write_table(pa.table({"x": column}))
    return path


def test_a_parquet_file_of_many_rows_in_few_bytes_is_refused(tmp_path: Path) -> None:
    path = constant_parquet(tmp_path / "bomb.parquet", 30 * 2**20)
    assert path.stat().st_size < 2**20
    refused(lambda: read_source(path), "unpacks to more than 200 times its size")


@pytest.mark.parametrize(
    "line", [b"\n", b"0" * 2000 + b"\n", *(pytest.param(line, marks=pytest.mark.rel) for line in (b"0\n", b" \n"))]
)
def test_a_compressed_table_of_many_lines_is_refused(line: bytes, tmp_path: Path) -> None:
    path = packed(tmp_path / "bomb.csv.gz", b"x\n", line)
    refused(lambda: read_source(path), "unpacks to more than 200 times its size")


@pytest.mark.parametrize(
    "line", [b"1 1:1\n", *(pytest.param(line, marks=pytest.mark.rel) for line in (b"\n", b"# nothing\n"))]
)
def test_a_compressed_file_of_many_sparse_rows_is_refused(line: bytes, tmp_path: Path) -> None:
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


def test_an_index_that_hardly_any_feature_reaches_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.libsvm"
    path.write_text("".join(f"{(-1) ** i} 1:{i} 7:2 16777216:1\n" for i in range(50)))
    refused(lambda: read_libsvm(path), "largest feature index is 16,777,216, and only 3 features occur")
    assert read_libsvm(path, n_features=2**24).features.shape == (50, 2**24)


def test_what_does_not_fit_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_wide_table_is_solved_within_its_time_limit(tmp_path: Path) -> None:
    """No matrix of all pairs of features is made."""
    rng = np.random.default_rng(0)
    lines = []
    for i in range(40):
        chosen = np.sort(rng.choice(5000, size=40, replace=False)) + 2
        lines.append(f"{1 if i % 2 else -1} 1:{(i // 2) % 2} " + " ".join(f"{j}:{rng.normal():.3f}" for j in chosen))
    path = tmp_path / "wide.libsvm"
    path.write_text("\n".join(lines))
    problem = mm.load_problem("fair_auc", data=str(path), sensitive=1, kappa=0.5, test_fraction=0.2)
    assert problem.primal.dimension > 4000
    began = time.process_time()
    found = mm.solve(problem, mm.SFLS(oracle=mm.SMD(steps=200)), time_limit=0.3)
    assert found.feasible
    assert time.process_time() - began < 5.0
