"""``minmaxcon problems`` and ``minmaxcon data``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import minmaxcon as mm
from minmaxcon_problems.fair_auc.target.objectives import OBJECTIVES


def test_names_are_one_a_line(call: Callable[..., Any]) -> None:
    done = call("problems", "--names")
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines() == list(mm.plugin_names())
    assert json.loads(call("problems", "--names", "--json").out) == list(mm.plugin_names())


def test_problems_are_described_with_the_names_that_options_know(call: Callable[..., Any]) -> None:
    text = call("problems").out
    for word in ("fair_auc: Train", "--metric", "inter_group", "bpsn_bnsp", "--data", "loanapp"):
        assert word in text
    found = {problem["name"]: problem for problem in json.loads(call("problems", "--json").out)}
    assert "kappa" in found["fair_auc"]["options"]
    objectives = found["fair_auc"]["choices"]["objective"]
    assert set(objectives) == set(OBJECTIVES)
    assert len(set(objectives.values())) == len(OBJECTIVES)


def test_a_problem_that_fails_to_load_is_listed_with_the_reason(
    call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str) -> mm.ProblemPlugin:
        raise mm.MinMaxConError(f"problem {name!r} failed to load: no such module")

    monkeypatch.setattr(mm, "plugin", broken)
    done = call("problems")
    assert done.status == 0
    assert "failed to load" in done.out


def test_data_says_what_is_there(call: Callable[..., Any], tmp_path: Path) -> None:
    done = call("data", "--data-dir", tmp_path)
    assert done.status == 0
    assert "loanapp (fair_auc)" in done.out
    assert "not here" in done.out
    assert call("data", "list", "--data-dir", tmp_path).out == done.out
    found = {known["name"]: known for known in json.loads(call("data", "--json", "--data-dir", tmp_path).out)}
    assert found["loanapp"]["missing"] == ""
    assert str(tmp_path) in found["a9a"]["missing"]
    (tmp_path / "a9a").touch()
    (tmp_path / "a9a.t.gz").touch()
    found = {known["name"]: known for known in json.loads(call("data", "--json", "--data-dir", tmp_path).out)}
    assert found["a9a"]["missing"] == ""


def test_data_get_says_what_was_written(
    call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from minmaxcon_problems.fair_auc import download

    monkeypatch.setitem(download.DOWNLOADS, "bank", (lambda: {"bank.csv": b"content"}, ("As it is.",)))
    done = call("data", "get", "bank", "--data-dir", tmp_path)
    assert (done.status, done.out) == (0, f"written: {tmp_path / 'bank.csv.gz'}\n  - As it is.\n")
    monkeypatch.setenv("MINMAXCON_DATA", str(tmp_path / "other"))
    assert call("data", "get", "bank").status == 0
    assert (tmp_path / "other" / "bank.csv.gz").exists()


@pytest.mark.parametrize(
    "command",
    [(), ("demo",), ("problems",), ("data",), ("data", "get"), ("solve",), ("predict",), ("compare",), ("check",)],
)
def test_every_command_explains_itself(call: Callable[..., Any], command: tuple[str, ...]) -> None:
    done = call(*command, "--help")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"Usage: {' '.join(('minmaxcon', *command))}")
    assert "Exit status: 0 done" in done.out


def test_version(call: Callable[..., Any]) -> None:
    assert call("--version").out.strip() == mm.__version__
