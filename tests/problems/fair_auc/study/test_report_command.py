"""``minmaxcon report``: the page of rows that it held out, and bad input in one line."""

from __future__ import annotations

import html
import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from minmaxcon import registry
from minmaxcon_problems.fair_auc.estimator import report as report_module
from minmaxcon_problems.fair_auc.target import fit
from tests.outlines import outline
from tests.problems.fair_auc.estimator.samples import biased_rows


@pytest.fixture
def reporting(call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Give a function that calls the command, whether or not the installed package knows it."""
    place = "minmaxcon_problems.fair_auc.commands:report"
    monkeypatch.setattr(registry, "entry_points", lambda group: [EntryPoint("report", place, group)])
    registry.command_points.cache_clear()
    yield lambda *words: call("report", *words)
    registry.command_points.cache_clear()


def test_the_command_reports_on_rows_that_it_held_out(
    reporting: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names labels, groups and features as the file does, and says where the limit was missed."""
    rows, table, out = biased_rows(150, 0), tmp_path / "people.csv", tmp_path / "report.html"
    lines = [",".join(map(str, (*x, y, g))) for x, y, g in zip(rows.X.tolist(), rows.y, rows.group, strict=True)]
    table.write_text("\n".join(["wage,age,score,debt,hired,place", *lines]) + "\n")
    monkeypatch.setattr(report_module, "png", outline)
    words = ("--data", table, "--label", "hired", "--positive", "yes", "--sensitive", "place", "--protected", "b")
    done = reporting(*words, "--out", out, "--max-gap", "0.2,0.1", "--alpha", 1)
    assert done.status == 0, done.err
    assert "training rows: gap" in done.out
    assert "note: Split 70% / 30%" in done.err
    told = html.unescape(out.read_text(encoding="utf-8"))
    for text in ("held-out rows", "'yes' of 'b'", "wage", "of AUC on the rows", "<td>alpha</td><td>1.0</td>"):
        assert text in told, text
    assert reporting(*words, "--out", out).status == 2  # the file exists
    monkeypatch.setattr(fit, "_STEPS", 3)
    parts = {name: tmp_path / f"{name}.csv" for name in ("data", "validation", "test")}
    for path, (begin, end) in zip(parts.values(), ((0, 60), (60, 100), (100, 150)), strict=True):
        path.write_text("\n".join(["wage,age,score,debt,hired,place", *lines[begin:end]]) + "\n")
    own = [word for name, path in parts.items() for word in (f"--{name}", path)]
    done = reporting(*own, *words[2:], "--out", tmp_path / "own.html", "--max-gap", "0.5", "--alpha", 1)
    assert done.status in (0, 1), done.err
    assert "validation rows: gap" in done.out
    assert "note: Parts are files of their own" in done.err
    told = html.unescape((tmp_path / "own.html").read_text(encoding="utf-8"))
    for part, count in (("training rows", 60), ("held-out part of the fit", 40), ("held-out rows", 50)):
        assert f'<td>{part}</td><td class="number">{count}</td>' in told
    missed = reporting(*words, "--out", out, "--overwrite", "--max-gap", "0", "--alpha", 1, "--quiet")
    assert (missed.status, missed.err) == (1, "")
    for *wrong, said in (("--max-gap", "x", "--max-gap"), ("--metric", "grup", "'group'"), ("--protected", "z", "'z'")):
        given = [word for pair in zip(words[::2], words[1::2], strict=True) if pair[0] != wrong[0] for word in pair]
        refused = reporting(*given, "--out", tmp_path / "new.html", *wrong)
        assert (refused.status, refused.err.count("\n")) == (2, 1)
        assert said in refused.err
        assert not (tmp_path / "new.html").exists()


def test_the_package_declares_the_command() -> None:
    declared = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text())["project"]["entry-points"]
    for value in declared["minmaxcon.commands"].values():
        assert EntryPoint("", value, "").load() is not None
    assert "report" in declared["minmaxcon.commands"]
