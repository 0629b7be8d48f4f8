"""``minmaxcon predict``: the scores are those of the model, and a damaged model is refused."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import minmaxcon as mm
from minmaxcon.cli import main
from minmaxcon.results import model_bytes, read_model
from tests.outlines import outline

from .conftest import FILE_OPTIONS, table_rows, write_table


@pytest.fixture(scope="module")
def solved(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a solve, to look at."""
    folder = tmp_path_factory.mktemp("solved") / "result"
    words = ("solve", "fair_auc", "--data", table, *FILE_OPTIONS, "--kappa", 0.3, "--out", folder, "--quiet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("minmaxcon.results.png", outline)
        assert main(list(map(str, words))) == 0
    return folder


@pytest.fixture
def result(solved: Path, tmp_path: Path) -> Path:
    """Give a copy of the folder of a solve, to do with what a test will."""
    return Path(shutil.copytree(solved, tmp_path / "result"))


def features_of(rows: list[list[str]]) -> Any:
    return np.array([[float(r[0]), float(r[1]), r[2] == "green", r[2] == "red"] for r in rows])


def test_scores_are_features_times_weight(call: Callable[..., Any], result: Path, tmp_path: Path) -> None:
    rows = table_rows(50, seed=9)
    fresh = write_table(tmp_path / "fresh.csv", [[r[2], r[1], r[0]] for r in rows], "colour,x2,x1")
    expected = features_of(rows) @ load_file(result / "model.safetensors")["weight"]
    done = call("predict", result, "--data", fresh)
    assert (done.status, done.err) == (0, "")
    np.testing.assert_allclose([float(line) for line in done.out.splitlines()], expected, rtol=1e-12)
    as_json = json.loads(call("predict", result, "--data", fresh, "--json").out)
    assert as_json["rows"] == 50
    np.testing.assert_allclose(as_json["scores"], expected, rtol=1e-12)


@pytest.mark.usefixtures("limit_of_the_solve", "outlined")
def test_a_network_is_saved_too(call: Callable[..., Any], table: Path, tmp_path: Path) -> None:
    """Scores by NumPy from the arrays in the file, and the AUC that result.json says, from the scores of all rows."""
    folder = tmp_path / "network"
    asked = ("--max-gap", 1.0, "--objective", "quadratic_auc", "--model", "mlp", "--time-limit", 0.5)
    solved = call("solve", "fair_auc", "--data", table, *FILE_OPTIONS, *asked, "--out", folder, "--quiet")
    assert solved.status in (0, 1)  # within so little time
    arrays = load_file(folder / "model.safetensors")
    rows = table_rows(50, seed=9)
    fresh = write_table(tmp_path / "fresh.csv", [[r[2], r[1], r[0]] for r in rows], "colour,x2,x1")
    units = features_of(rows) @ arrays["hidden_weight"].T + arrays["hidden_bias"]
    expected = (1.0 / (1.0 + np.exp(-units))) @ arrays["output_weight"]
    done = call("predict", folder, "--data", fresh)
    assert (done.status, done.err) == (0, "")
    np.testing.assert_allclose([float(line) for line in done.out.splitlines()], expected, rtol=1e-12)
    check_reported_aucs(call, folder, table)


def test_scores_reproduce_the_auc_that_was_reported(call: Callable[..., Any], result: Path, table: Path) -> None:
    """All rows, training and test, scored from the file: the same AUCs as in result.json."""
    check_reported_aucs(call, result, table)


def check_reported_aucs(call: Callable[..., Any], result: Path, table: Path) -> None:
    scores = np.array([float(line) for line in call("predict", result, "--data", table).out.splitlines()])
    reported = json.loads((result / "result.json").read_text())
    given = {"data": str(table), "label": "label", "sensitive": "group", "standardize": False}
    data = mm.load_problem("fair_auc", **given).details.dataset
    whole = np.concatenate([data.train.features, data.test.features])
    with table.open() as file:
        lines = [list(row.values()) for row in csv.DictReader(file)]
    score_of = dict(zip(map(tuple, features_of(lines)), scores, strict=True))
    assert len(score_of) == len(whole) == len(scores)  # no two rows are alike
    for part in ("train", "test"):
        rows = getattr(data, part)
        h = np.array([score_of[tuple(row)] for row in rows.features])
        wins = h[rows.label == 1][:, None] - h[rows.label == -1][None, :]
        assert np.mean(wins > 0) + 0.5 * np.mean(wins == 0) == pytest.approx(reported[part]["auc"], abs=1e-12)


def test_scores_go_to_a_file_in_the_form_that_its_name_says(
    call: Callable[..., Any], result: Path, table: Path, tmp_path: Path
) -> None:
    plain = call("predict", result, "--data", table).out
    for name in ("s.txt", "s.csv", "s.json"):
        done = call("predict", result, "--data", table, "--out", tmp_path / name)
        assert (done.status, done.out) == (0, "")
        assert "240 scores" in done.err
    assert (tmp_path / "s.txt").read_text() == plain
    with (tmp_path / "s.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["score"] for row in rows] == plain.split()
    assert rows[0]["row"] == "1"
    assert json.loads((tmp_path / "s.json").read_text())["scores"] == [float(x) for x in plain.split()]
    again = call("predict", result, "--data", table, "--out", tmp_path / "s.csv")
    assert again.status == 2
    assert "--overwrite" in again.err
    assert call("predict", result, "--data", table, "--out", tmp_path / "s.csv", "--overwrite").status == 0


@pytest.mark.usefixtures("outlined")
def test_several_models_ask_which(
    call: Callable[..., Any], solve_table: Callable[..., Any], table: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "several"
    solve_table("--kappa", "0.1,0.4", "--out", folder, "--quiet")
    done = call("predict", folder, "--data", table)
    assert done.status == 2
    assert "models 0 to 1" in done.err
    assert call("predict", folder, "--data", table, "--run", 2).status == 2
    scores = [call("predict", folder, "--data", table, "--run", j).out for j in (0, 1)]
    assert scores[0] != scores[1]


def test_rows_that_do_not_fit_are_refused(call: Callable[..., Any], result: Path, tmp_path: Path) -> None:
    rows = table_rows(20)
    rows[4][2] = "mauve"
    odd = write_table(tmp_path / "odd.csv", rows)
    done = call("predict", result, "--data", odd)
    assert (done.status, done.out) == (2, "")
    assert "row 5 (line 6), column 'colour': the category 'mauve'" in done.err
    narrow = write_table(tmp_path / "narrow.csv", [row[:1] for row in rows], "x1")
    assert "no column 'x2'" in call("predict", result, "--data", narrow).err


def test_a_damaged_model_is_refused_by_name(call: Callable[..., Any], result: Path, table: Path) -> None:
    path = result / "model.safetensors"
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    damaged = []
    for position in rng.choice(8 * len(whole), size=60, replace=False):
        content = bytearray(whole)
        content[position // 8] ^= 1 << (position % 8)
        damaged.append(bytes(content))
    damaged += [whole[: int(cut)] for cut in rng.choice(len(whole), size=20, replace=False)]
    damaged += [whole + b"\0", b"", b"garbage" * 100]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(mm.DataError, match=re.escape(str(path))):
            read_model(path)
    done = call("predict", result, "--data", table)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert str(path) in done.err
    path.write_bytes(whole)
    assert call("predict", result, "--data", table).status == 0


def test_a_model_of_somebody_else_is_refused(call: Callable[..., Any], result: Path, table: Path) -> None:
    path = result / "model.safetensors"
    save_file({"weight": np.zeros(4)}, path)
    done = call("predict", result, "--data", table)
    assert done.status == 2
    assert "no model of minmaxcon" in done.err
    path.write_bytes(model_bytes({"weight": np.zeros(3)}, {"problem": "toy"}))
    done = call("predict", result, "--data", table)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert "problem 'toy' has no model that scores rows." in done.err
    done = call("predict", result, "--data", table, "--run", 0)
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert f"--run=0: {result} holds one model only; leave it out." in done.err


def test_inputs_are_never_written_over(call: Callable[..., Any], result: Path, table: Path, tmp_path: Path) -> None:
    """Neither the rows nor the model, by whatever name, not even with --overwrite."""
    rows = tmp_path / "rows.csv"
    rows.write_bytes(table.read_bytes())
    link = tmp_path / "link.csv"
    link.symlink_to(rows)
    model = result / "model.safetensors"
    before = rows.read_bytes(), model.read_bytes()
    for out in (rows, link, model, tmp_path / "." / "rows.csv"):
        for more in ((), ("--overwrite",)):
            done = call("predict", result, "--data", rows, "--out", out, *more)
            assert (done.status, done.out) == (2, "")
            assert done.err.startswith("minmaxcon: error: --out='/")
            assert "is what the scores are made from" in done.err
    assert (rows.read_bytes(), model.read_bytes()) == before


def test_a_missing_column_is_asked_for_by_the_model(call: Callable[..., Any], result: Path, tmp_path: Path) -> None:
    fresh = write_table(tmp_path / "fresh.csv", [row[:2] for row in table_rows(20)], "x1,x2")
    done = call("predict", result, "--data", fresh)
    assert done.status == 2
    assert f"{fresh}: no column 'colour', asked for by the model;" in done.err
