"""A small table, and the command line called in this process."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from minmaxcon.cli import main
from tests.outlines import outline

FILE_OPTIONS = ("--label", "label", "--sensitive", "group")


@dataclass(frozen=True)
class Called:
    status: int
    out: str
    err: str


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., Called]:
    """Give a function that runs a command and returns its exit status and both streams."""

    def run(*words: object) -> Called:
        capsys.readouterr()
        status = main([str(word) for word in words])
        streams = capsys.readouterr()
        return Called(status, streams.out, streams.err)

    return run


def table_rows(n: int = 240, seed: int = 1) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(n):
        group, label = "ab"[k % 2], ("no", "yes")[(k // 2) % 2]
        shift = 1.0 if label == "yes" else 0.0
        x = rng.normal(shift, 1.0), 100 * rng.normal(0.5 * shift + (group == "a"), 1.0)
        rows.append([f"{x[0]:.6f}", f"{x[1]:.6f}", str(rng.choice(["red", "green"])), group, label])
    return rows


def write_table(path: Path, rows: list[list[str]], heading: str = "x1,x2,colour,group,label") -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(heading.split(","))
        writer.writerows(rows)
    return path


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a CSV file of 240 rows with two numbers, a text, a group and a label."""
    return write_table(tmp_path_factory.mktemp("table") / "rows.csv", table_rows())


@pytest.fixture
def solve_table(call: Callable[..., Called], table: Path) -> Callable[..., Called]:
    """Give a function that solves fair AUC on the table, fast, with further options."""

    def run(*words: object) -> Called:
        words = words if "--kappa" in words else (*words, "--kappa", 0.3)
        return call("solve", "fair_auc", "--data", table, *FILE_OPTIONS, *words)

    return run


@pytest.fixture
def limit_of_the_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a time limit count from where the solve begins, so that it is short whatever loading takes."""
    monkeypatch.setattr("minmaxcon.cli.clock._limit", lambda _: math.inf)
    clock = SimpleNamespace(stop=lambda: None, seconds=0.0, over=False)
    monkeypatch.setattr("minmaxcon.cli.solve.current_clock", lambda: clock)


@pytest.fixture
def outlined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make commands write outlines in the place of PNG files."""
    for place in ("minmaxcon.results.png", "minmaxcon.results.figures.png"):
        monkeypatch.setattr(place, outline)
