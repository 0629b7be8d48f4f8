"""``pareto`` on a file of one's own: its parts, what a finished run depends on, and refusals that write nothing."""

from __future__ import annotations

import json
import pickle
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minmaxcon_problems.fair_auc.labelled import FileColumns
from minmaxcon_problems.fair_auc.study import own_front as front_module
from minmaxcon_problems.fair_auc.study import runs as runs_module
from minmaxcon_problems.fair_auc.study.own_rows import OwnRows, _read, own_rows
from minmaxcon_problems.fair_auc.study.study import FairAUCStudy, Panel
from tests.cli.conftest import FILE_OPTIONS, table, table_rows, write_table
from tests.outlines import outline

__all__ = ["table"]

COLUMNS: dict[str, Any] = {"label": "label", "sensitive": "group"}
PARTS = ("validation", "test")
QUICK = ("--metric", "group", "--quick", "--seeds", 1, "--methods", "max_gap,unconstrained", "--jobs", 1)


def found_in(path: Path, **more: Any) -> OwnRows:
    others = {name: more.pop(name) for name in PARTS if name in more}
    found = own_rows(str(path), FileColumns.of(**{**COLUMNS, **more}), others)
    assert found is not None
    return found


def cells(part: Any) -> list[int]:
    return [int(((part.label == y) & (part.group == g)).sum()) for y in (-1, 1) for g in (-1, 1)]


def test_a_seed_divides_the_rows_with_the_same_share_of_every_cell(table: Path) -> None:
    """60%, 20% and 20%, standardised by the training rows; no row is in two parts, and every one is in one."""
    rows = pickle.loads(pickle.dumps(found_in(table)))
    read = _read.cache_info()
    assert rows.parts(0).name == rows.parts(1).name == "rows.csv"
    assert _read.cache_info().misses == read.misses  # a process reads the files once, whoever brings the rows
    first, again, other = rows.parts(0), rows.parts(0), rows.parts(1)
    parts = (first.train, first.validation, first.test)
    assert [cells(part) for part in parts] == [[36] * 4, [12] * 4, [12] * 4]
    np.testing.assert_allclose(first.train.features.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_array_equal(first.test.features, again.test.features)
    assert not np.array_equal(first.test.features, other.test.features)
    whole = np.concatenate([part.features for part in parts])
    assert len(np.unique(whole, axis=0)) == 240


def test_parts_that_are_files_stay_as_they_are(table: Path, tmp_path: Path) -> None:
    given = {
        name: str(write_table(tmp_path / name, table_rows(n, n))) for name, n in (("validation", 40), ("test", 60))
    }
    given = {name: str(Path(path).rename(f"{path}.csv")) for name, path in given.items()}
    both = found_in(table, **given).parts(3)
    assert [len(part) for part in (both.train, both.validation, both.test)] == [240, 40, 60]
    one = found_in(table, test=given["test"])
    assert [len(part) for part in (one.parts(3).train, one.parts(3).validation, one.parts(3).test)] == [180, 60, 60]
    same = (one.parts(seed).test.label for seed in (0, 1))
    np.testing.assert_array_equal(*same)


def test_what_a_run_depends_on(table: Path, tmp_path: Path) -> None:
    """The columns and the content, wherever the file is; a named data set depends on neither."""
    rows, panel = found_in(table), Panel("rows.csv", "group", "linear")
    assert rows.name == "rows.csv"
    settings = FairAUCStudy(rows).settings(panel, "max_gap")
    (tmp_path / "rows.csv").write_bytes(table.read_bytes())
    assert FairAUCStudy(found_in(tmp_path / "rows.csv")).settings(panel, "max_gap") == settings
    (tmp_path / "rows.csv").write_text(table.read_text() + "1,2,red,a,yes\n")
    for other in (
        found_in(tmp_path / "rows.csv"),
        found_in(table, protected="a"),
        found_in(table, keep_sensitive=True),
        found_in(table, ignore="colour"),
    ):
        assert FairAUCStudy(other).settings(panel, "max_gap") != settings
    assert "rows" not in FairAUCStudy().settings(Panel("a9a", "group", "linear"), "max_gap")
    (tmp_path / "a9a").write_text("".join(f"{(-1, 1)[k % 2]} 1:{k // 2 % 2} 2:{k}\n" for k in range(40)))
    named = found_in(tmp_path / "a9a", label=None, sensitive="1")
    assert named.name == "./a9a"
    assert named.parts(0).train.features.shape == (24, 1)  # dense, without the sensitive feature


def test_pareto_of_a_file(
    call: Callable[..., Any], table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front_module, "png", outline)
    few = replace(runs_module.QUICK, linear=10, warmup=5, baseline=120)
    monkeypatch.setattr(runs_module, "QUICK", few)
    mine, out = tmp_path / "my_rows.csv", tmp_path / "fronts"
    mine.write_bytes(table.read_bytes())
    done = call("pareto", "fair_auc", "--data", mine, *FILE_OPTIONS, *QUICK, "--ignore", "colour", "--out", out)
    assert done.status == 0, done.err
    assert {path.name for path in out.iterdir()} == {"runs", "candidates.csv", "front.txt", "front.png", "summary.json"}
    assert done.out == (out / "front.txt").read_text() + f"\nwritten: {out}\n"
    assert done.out.startswith("my_rows.csv, group, linear: 144 rows train, 48 validate and 48 test\nlabel: 'yes' is")
    for word in ("paper", "ours", "Hypervolume", "panel", "Not run"):
        assert word not in done.out
    summary = json.loads((out / "summary.json").read_text())
    (taken,) = (one for one in summary["candidates"] if one["chosen"])
    assert f"* Chosen: target {taken['target']:g}," in done.out
    assert summary["command"] in done.out
    program, *words = shlex.split(summary["command"])
    words[words.index("--out") + 1] = str(tmp_path / "model")
    assert program == "minmaxcon"
    trained = call(*words, "--quiet", "--json")
    assert trained.status == 0, trained.err
    assert (
        json.loads(trained.out)["settings"] | {"ignore": ["colour"], "max_gap": taken["target"]}
        == (json.loads(trained.out)["settings"])
    )
    runs = {path.name: json.loads(path.read_text()) for path in (out / "runs").iterdir()}
    assert set(runs) == {f"my_rows.csv-group-linear-{method}-0.json" for method in ("max_gap", "unconstrained")}
    free = runs["my_rows.csv-group-linear-unconstrained-0.json"]["points"][0]
    assert free["test"]["auc"] > 0.6
    again = call(
        "pareto", "fair_auc", "--data", mine, *FILE_OPTIONS, *QUICK, "--ignore", "colour", "--out", out, "--json"
    )
    kept = json.loads(again.out)
    assert kept["kept"] == 2
    mine.write_text(mine.read_text() + "1,2,red,a,yes\n")
    other = call("pareto", "fair_auc", "--data", mine, *FILE_OPTIONS, *QUICK, "--ignore", "colour", "--out", out)
    assert (other.status, other.out) == (2, "")
    assert re.search(r"of a run with setting rows, digest = '\w{32}', this one has '\w{32}'; name another", other.err)


def test_files_that_cannot_be_used_are_refused_before_anything_is_written(
    call: Callable[..., Any], table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "o"
    rows = [row for k, row in enumerate(table_rows()) if row[3:] != ["b", "yes"] or k < 8]
    rare = write_table(tmp_path / "rare.csv", rows)
    for words, said in (
        (("--data", rare, *FILE_OPTIONS), "rare.csv: has so few rows of one label and group that the "),
        (("--data", tmp_path / "none.csv", *FILE_OPTIONS), "none.csv: no such file"),
        (("--data", table, "--label", "label"), "--sensitive: name the column"),
        (("--data", table, "--sensitive", "group"), "--label: name the column"),
        (("--data", table, "--label", "lable", "--sensitive", "group"), "asked for by --label; did you mean 'label'"),
        (("--data", table, *FILE_OPTIONS, "--test", table), "--test='"),
        (("--data", table, *FILE_OPTIONS, "--validation", table), "needs --test, the file of the test rows"),
        (("--data", "a9a", "--label", "label"), "--label='label': data set 'a9a' fixes this itself"),
        (("--data", "a9a", "--test", table), "and --data a9a names a data set"),
        (("--data", "a9", *FILE_OPTIONS), "did you mean 'a9a'?"),
        (("--data", "a9a", "--ignore", "id"), "--ignore=id: data set 'a9a' fixes this itself"),
        (("--data", table, *FILE_OPTIONS, "--ignore", "iD"), "no column 'iD', asked for by --ignore"),
        (("--data", table, *FILE_OPTIONS, "--unknown-category", "zero"), "name one by --test, or leave it out"),
        (("--data", "x" * 300, *FILE_OPTIONS), "unknown name; Known: "),
    ):
        done = call("pareto", "fair_auc", *words, *QUICK, "--out", out)
        assert (done.status, done.out, done.err.count("\n")) == (2, "", 1), done.err
        assert said in done.err, done.err
        assert not out.exists()
