"""The readers of each kind of file, and the trial of one file: it is read, or refused in one line."""

from __future__ import annotations

import gzip
import itertools
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pyarrow as pa
import pyarrow.dataset as arrow
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import minmaxcon as mm
from minmaxcon.results import compare, read_model, read_result
from minmaxcon.results.verification import verify
from minmaxcon.solvers.checkpoint import CHECKPOINT_FILE, Checkpoints, settings_of
from minmaxcon.tables import TableBlocks, fit_encoding, read_libsvm, read_source, read_texts
from minmaxcon_problems.fair_auc.study.study import Panel
from minmaxcon_problems.fair_auc.study.sweep import Configuration, read_run, write_run
from tests import cases
from tests.fuzzing import drawn
from tests.fuzzing.drawn import Files


@dataclass(frozen=True)
class Case:
    """Files of a kind.

    Attributes
    ----------
    name : str
        What the file is called.
    files : strategy
        Files of the kind, good and spoilt.
    read : callable
        Reads a path.
    inner : strategy, optional
        What stands within the frame of the format, where it has one.
    frame : callable
        Makes a file of that, or of any bytes.
    """

    name: str
    files: Files
    read: Callable[[Path], Any]
    inner: Files | None = None
    frame: Callable[[bytes], bytes] = bytes


READERS = ("csv", "parquet", "libsvm", "model", "record", "checkpoint")
"""Kinds of files; what shares code is one kind."""

QUICK = mm.SFLS(mm.SMD(steps=40, batch_size=20), levels=2)
ROWS = "x,who,y\n0.5,a,1\n1.5,b,0\n-2,a,0\n3,b,1\n0.1,a,1\n7,b,0\n-1,a,0\n2,b,1\n"


def cases_of(kind: str, folder: Path) -> list[Case]:
    """Return the files of a kind; what their readers need beside them is put into the folder."""
    return {"csv": _csv, "parquet": _parquet, "libsvm": _libsvm, "model": _model, "record": _record}.get(
        kind, _checkpoint
    )(folder)


def attempt(case: Case, content: bytes, folder: Path) -> bool:
    """Write a file and read it; return whether it was refused, and raise where it is neither read nor refused."""
    path = folder / case.name
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)  # what a reader tells of is documented
        try:
            case.read(path)
        except mm.MinMaxConError as error:
            said = str(error)
            if not (said.isprintable() and len(said) < 2000):
                raise AssertionError(f"not one short line: {said!r}") from error
            return True
    return False


def tried(kind: str, seconds: float, folder: Path) -> tuple[int, int]:
    """Try files that Hypothesis draws, for so long; return how many there were, and how many were refused."""
    known, counts = cases_of(kind, folder), [0, 0]
    until = time.monotonic() + seconds

    @settings(max_examples=_ROUND, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, len(known) - 1).flatmap(lambda i: st.tuples(st.just(i), known[i].files)))
    def one(file: tuple[int, bytes]) -> None:
        counts[1] += attempt(known[file[0]], file[1], folder)
        counts[0] += 1

    for seed in itertools.count():
        hypothesis.seed(seed)(one)()
        if time.monotonic() >= until:
            break
    return counts[0], counts[1]


_ROUND = 25
"""Files between two looks at the clock."""


# --------------------------------------------------------------------------------------------------------- tables


def _in_blocks(path: Any) -> None:
    blocks = TableBlocks(path, block=2)
    assert sum(table.rows for table in blocks.tables()) == blocks.rows


def _encoded(path: Path) -> None:
    table = read_source(path)
    encoding = fit_encoding(table, table.columns)
    assert encoding.encode(path).shape == (table.rows, len(encoding.feature_names))


def _as_problem(path: Path) -> None:
    options: dict[str, Any] = {"sensitive": 1} if path.suffix == ".libsvm" else {"label": "y", "sensitive": "who"}
    mm.load_problem("fair_auc", data=str(path), test_fraction=0.5, **options)


def _csv(_folder: Path) -> list[Case]:
    texts = drawn.csv_texts() | st.just(ROWS.encode())
    plain, packed = drawn.spoilt(texts), drawn.packed(texts)
    return [
        Case("rows.csv", plain, read_source),
        Case("rows.csv", plain, lambda path: read_texts(path, "who")),
        Case("rows.tsv", plain, _in_blocks),
        Case("rows.csv", plain, _encoded),
        Case("rows.csv", plain, _as_problem),
        Case("rows.csv.gz", packed, read_source, texts, gzip.compress),
        Case("rows.csv.gz", packed, _in_blocks, texts, gzip.compress),
    ]


def _parquet(folder: Path) -> list[Case]:
    files, other = drawn.parquet_files(), folder / "set"
    other.mkdir()
    pq.write_table(pa.table({"x": [0.5, None], "who": ["a", "b"], "y": [1, 0]}), other / "a.parquet")
    part = other.relative_to(folder) / "b.parquet"

    def as_data_set(path: Path) -> None:
        try:
            found = arrow.dataset(path, format="ipc")
        except (pa.ArrowException, OSError, ValueError):  # what the caller makes is the caller's
            return
        _in_blocks(found)

    return [
        Case("rows.parquet", drawn.spoilt(files), read_source),
        Case("rows.parquet", drawn.spoilt(files), lambda path: read_texts(path, "who")),
        Case("rows.parquet", drawn.spoilt(files), _in_blocks),
        Case("rows.parquet", drawn.spoilt(files), lambda path: _in_blocks(f"file://{path}")),
        Case("rows.parquet", drawn.spoilt(files), _as_problem),
        Case("rows.parquet", files, _encoded),
        Case(str(part), drawn.spoilt(files), lambda path: _in_blocks(path.parent)),
        Case("rows.arrow", drawn.spoilt(drawn.arrow_files()), as_data_set),
    ]


def _libsvm(_folder: Path) -> list[Case]:
    plain, packed = drawn.spoilt(drawn.libsvm_texts()), drawn.packed(drawn.libsvm_texts())
    return [
        Case("rows.libsvm", plain, read_libsvm),
        Case("rows.libsvm", plain, lambda path: read_libsvm(path, labelled=False, n_features=5)),
        Case("rows.svm", plain, _in_blocks),
        Case("rows.libsvm", plain, _as_problem),
        Case("rows.gz", packed, read_libsvm, drawn.libsvm_texts(), gzip.compress),
    ]


# -------------------------------------------------------------------------------------------------------- records


def _model(folder: Path) -> list[Case]:
    data = folder / "new.csv"
    data.write_text(ROWS)
    plugin: Any = mm.plugin("fair_auc")
    known = []
    for options in ({}, {"model": "mlp"}):
        problem = mm.load_problem("fair_auc", data=str(data), label="y", sensitive="who", test_fraction=0.5, **options)
        x = np.linspace(-1.0, 1.0, problem.primal.dimension)
        arrays, description = plugin.export(problem, x)
        known.append((dict(arrays), json.loads(json.dumps(dict(description)))))

    def scored(path: Path) -> None:
        arrays, description = read_model(path)
        scores = plugin.predict(arrays, description, str(data), unknown_category="zero")
        assert np.isfinite(scores).all()
        plugin.measure_scores(description, scores, str(data), label="y", sensitive="who")

    whole = [drawn.model_bytes(*each) for each in known]
    return [
        *(
            Case("model.safetensors", drawn.models(*each), scored, drawn.json_files(each[1]), drawn.described(each[0]))
            for each in known
        ),
        Case("model.safetensors", drawn.spoilt(st.sampled_from(whole)), scored),
        *(Case("model.safetensors", drawn.spoilt(drawn.reheaded(each)), read_model) for each in whole),
    ]


def _record(folder: Path) -> list[Case]:
    problem = mm.load_problem("toy", samples=20)
    solution = mm.solve(problem, QUICK, seed=0)
    from minmaxcon.results import RunsRecord, measure, record, to_json

    options = {"problem": "toy", "samples": 20, "seed": 0, "bound": 1.0}
    alone = record(measure(mm.plugin("toy"), problem, solution)[0], solution, options)
    both = RunsRecord(runs=[alone, alone], steps=1, seconds=0.5, settings=options, versions={})
    one, runs = (json.loads(to_json(each)) for each in (alone, both))
    configuration = Configuration("fake", Panel("a9a", "group", "linear"), "level_set", 0, False, {"steps": 20})
    write_run(folder / "run.json", configuration, {"status": "done", "points": [{"asked": 0.1}], "value": 0.5})
    run = json.loads((folder / "run.json").read_text())
    run.pop("blake2b")
    claims = {name: one[name] for name in ("status", "objective", "constraints", "certificate", "evidence")}

    def whole(part: Any) -> bytes:
        return json.dumps({**one, **part} if isinstance(part, dict) else part).encode()

    def few(given: Any) -> Any:
        """Ask for no more samples than are drawn at once, but for what no memory holds."""
        many = isinstance(given, dict) and isinstance(given.get("samples"), int) and 1000 < given["samples"] < 2**50
        return {**given, "samples": 1000} if many else given

    return [
        Case("result.json", drawn.json_files(one), lambda path: read_result(path.parent)),
        Case("result.json", drawn.json_files(runs), lambda path: read_result(path.parent)),
        Case("result.json", drawn.spoilt(st.just(json.dumps(one).encode())), lambda path: read_result(path.parent)),
        Case("result.json", drawn.replanted(claims).map(whole), lambda path: verify(path.parent)),
        Case(
            "result.json",
            drawn.replanted(options).map(lambda given: whole({"settings": few(given)})),
            lambda path: verify(path.parent),
        ),
        Case(
            "run.json",
            drawn.replanted(run).map(drawn.with_digest),
            lambda path: read_run(path, configuration),
            drawn.json_files(run),
            drawn.of_json(drawn.with_digest),
        ),
        Case(
            "run.json",
            drawn.spoilt(drawn.replanted(run).map(drawn.with_digest)),
            lambda path: read_run(path, configuration),
        ),
    ]


def _checkpoint(folder: Path) -> list[Case]:
    found = []
    for name, solver in (
        ("quadratic", QUICK),
        ("worst_group", mm.SFLS(mm.MirrorProx(steps=5), levels=1)),
        ("regression_weakly_convex", mm.IQRC(QUICK, iterations=2)),
    ):
        problem, kept = cases.problem(name), folder / name
        mm.solve(problem, solver, seed=0, checkpoint=kept, budget=50)
        keeper = Checkpoints(kept, problem, settings_of(problem, solver, 0))
        found.append(_manifests(f"{name}/{CHECKPOINT_FILE}", kept, lambda _, keeper=keeper: keeper.read()))
    kept = folder / "quadratic"
    content = (kept / CHECKPOINT_FILE).read_bytes()

    def resumed(path: Path) -> None:
        mm.solve(cases.problem("quadratic"), QUICK, seed=0, resume=path.parent)

    found.append(Case(f"quadratic/{CHECKPOINT_FILE}", drawn.spoilt(st.just(content)), resumed))
    compared = folder / "compared"
    given: dict[str, Any] = {"solvers": {"quick": QUICK}, "samples": 200, "reference": 1.0}
    compare(cases.problem("quadratic"), **given, checkpoint=compared)

    def went_on(path: Path) -> None:
        compare(cases.problem("quadratic"), **given, resume=path.parent)

    return [*found, _manifests(f"compared/{CHECKPOINT_FILE}", compared, went_on)]


def _manifests(name: str, kept: Path, read: Callable[[Path], Any]) -> Case:
    """Return the checkpoints whose digest fits, with other manifests and arrays than one has that was written."""
    content = (kept / CHECKPOINT_FILE).read_bytes()
    manifest, arrays = drawn.unsealed(content)
    return Case(name, drawn.checkpoints(content), read, drawn.json_files(manifest), partial(drawn.manifested, arrays))
