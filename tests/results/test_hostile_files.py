"""Files that were made to harm who reads them: each is refused in one line, and nothing is executed or written."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import torch

import minmaxcon as mm
from minmaxcon.results import model_bytes, read_model, read_result
from minmaxcon.results.verification import verify
from minmaxcon.solvers.checkpoint import CHECKPOINT_FILE
from minmaxcon.tables import TableBlocks, read_libsvm, read_source
from tests import cases
from tests.costs import cost_of
from tests.figures import Figure


class Evil:
    """Makes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


Made = Callable[[Path], bytes]
"""The content of a file, which may leave a mark at a path."""


def pickled(mark: Path) -> bytes:
    return pickle.dumps(Evil(mark))


def torch_saved(mark: Path) -> bytes:
    content = io.BytesIO()
    torch.save({"weight": Evil(mark)}, content)
    return content.getvalue()


def joblib_dumped(mark: Path) -> bytes:
    content = io.BytesIO()
    joblib.dump(Evil(mark), content, compress=("gzip", 3))
    return content.getvalue()


def objects(mark: Path) -> bytes:
    """NumPy's own archive, with an array of objects, which are pickled."""
    content = io.BytesIO()
    np.savez(content, manifest=np.array([Evil(mark)], dtype=object))
    return content.getvalue()


def zipped(*names: str) -> Made:
    """Members whose names lead out of the folder that they are unpacked into."""

    def content(mark: Path) -> bytes:
        file, array = io.BytesIO(), io.BytesIO()
        np.save(array, np.zeros(3))
        with zipfile.ZipFile(file, "w") as members:
            for name in names:
                members.writestr(name.format(mark=mark), array.getvalue())
        return file.getvalue()

    return content


SLIP = zipped("../evil.npy", "../../evil", "manifest.npy")
ABSOLUTE = zipped("{mark}", "manifest.npy")


def signed(made: Made) -> Made:
    """Put the first line of a checkpoint before it, with a digest that fits."""

    def content(mark: Path) -> bytes:
        body = made(mark)
        return b"minmaxcon-checkpoint 1 " + blake2b(body, digest_size=32).hexdigest().encode() + b"\n" + body

    return content


def record(**changes: Any) -> Made:
    return lambda _: json.dumps({**cases.RESULT, **changes}).encode()


def settings(**options: str) -> Made:
    given = {"problem": "fair_auc", "seed": 0, **options}
    return record(settings={**given, "solver_settings": {}})


def header(text: bytes, size: int) -> Made:
    """A model whose heading claims so many bytes."""
    return lambda _: struct.pack("<Q", size) + text


MODEL = model_bytes({"weight": np.arange(3.0)}, {"problem": "fair_auc", "model": "linear"})


def resumed(path: Path) -> None:
    mm.solve(cases.problem("quadratic"), mm.SFLS(mm.SMD(steps=20), levels=1), resume=path.parent)


READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "model": ("model.safetensors", read_model),
    "result": ("result.json", lambda path: read_result(path.parent)),
    "verify": ("result.json", lambda path: verify(path.parent)),
    "checkpoint": (CHECKPOINT_FILE, resumed),
    "csv": ("rows.csv", read_source),
    "gzip": ("rows.csv.gz", read_source),
    "parquet": ("rows.parquet", read_source),
    "blocks": ("rows.parquet", TableBlocks),
    "libsvm": ("rows.libsvm", read_libsvm),
}

HOSTILE: list[tuple[str, str, Made | str]] = [
    *((reader, "pickle", pickled) for reader in ("model", "result", "checkpoint", "csv", "parquet", "libsvm")),
    *((reader, "torch", torch_saved) for reader in ("model", "result", "checkpoint", "csv", "parquet", "blocks")),
    *((reader, "joblib", joblib_dumped) for reader in ("model", "gzip", "libsvm")),
    *((reader, "zip-slip", SLIP) for reader in ("model", "gzip")),
    ("model", "objects", objects),
    *((reader, "link", "link") for reader in ("model", "result", "verify", "checkpoint")),
    *((reader, "pipe", "pipe") for reader in READERS),
    *((reader, "folder", "folder") for reader in READERS),
    ("model", "heading of 2^62 bytes", header(b"{}", 2**62)),
    ("model", "heading of 90 MB", header(b"{}" * 10, 90_000_000)),
    ("model", "values outside", header(b'{"weight":{"dtype":"F64","shape":[3],"data_offsets":[0,9999999]}}', 65)),
    ("model", "negative place", header(b'{"weight":{"dtype":"F64","shape":[3],"data_offsets":[-24,0]}}   ', 64)),
    ("result", "status ../../x", record(status="../../x")),
    ("result", "status of dunders", record(status="__class__")),
    ("result", "infinite", lambda _: json.dumps({**cases.RESULT, "objective": np.inf}).encode()),
    ("result", "infinite setting", record(settings={"kappa": np.inf})),
    ("result", "infinite evidence", record(evidence={"x": [0.0, -np.inf]})),
    ("result", "yaml", lambda mark: f"!!python/object/apply:os.system ['touch {mark}']".encode()),
    ("verify", "problem ../evil", settings(problem="../evil")),
    ("verify", "problem os:system", settings(problem="os:system")),
    ("verify", "data ../../evil.csv", settings(data="../../evil.csv", label="y", sensitive="a")),
    ("verify", "data /etc/passwd", settings(data="/etc/passwd", label="y", sensitive="a")),
    ("verify", "data /dev/zero", settings(data="/dev/zero", label="y", sensitive="a")),
    ("checkpoint", "signed pickle", signed(pickled)),
    ("checkpoint", "signed torch", signed(torch_saved)),
    ("checkpoint", "signed objects", signed(objects)),
    ("checkpoint", "signed zip-slip", signed(SLIP)),
    ("checkpoint", "signed absolute", signed(ABSOLUTE)),
]


def put(path: Path, made: Made | str, mark: Path) -> None:
    path.parent.mkdir()
    if made == "link":
        beside = path.parent.parent / "elsewhere"
        beside.write_bytes(MODEL if path.suffix == ".safetensors" else json.dumps(cases.RESULT).encode())
        path.symlink_to(beside)
    elif made == "pipe":
        os.mkfifo(path)
    elif made == "folder":
        path.mkdir()
    elif callable(made):
        path.write_bytes(made(mark))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(folder.rglob("*"))}


@pytest.mark.timeout(20)  # who opens a pipe waits for ever
@pytest.mark.parametrize("reader, made", [pytest.param(r, m, id=f"{r}: {name}") for r, name, m in HOSTILE])
def test_a_hostile_file_is_refused(reader: str, made: Made | str, tmp_path: Path, figure: Figure) -> None:
    name, read = READERS[reader]
    path, mark = tmp_path / "a" / "b" / name, tmp_path / "evil"
    path.parent.parent.mkdir()
    put(path, made, mark)
    before = contents(tmp_path)
    found = cost_of(lambda: read(path))
    refused = issubclass(getattr(mm, found.raised, type(None)), mm.MinMaxConError)
    figure.count(refused, 1, "hostile files refused")
    figure.largest("processor time", found.seconds, "s")
    figure.largest("memory", found.megabytes, "MB")
    assert refused, found
    assert "\n" not in found.said
    assert len(found.said) < 1000
    assert contents(tmp_path) == before


def test_the_mark_is_left_by_who_unpickles(tmp_path: Path) -> None:
    for made in (pickled, torch_saved, joblib_dumped, objects):
        mark = tmp_path / made.__name__
        content = io.BytesIO(made(mark))
        assert not mark.exists()
        if made is torch_saved:
            torch.load(content, weights_only=False)
        elif made is objects:
            np.load(content, allow_pickle=True)["manifest"]
        else:
            (joblib.load if made is joblib_dumped else pickle.load)(content)
        assert mark.exists()
    assert len(HOSTILE) >= 30
