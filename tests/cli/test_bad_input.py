"""Bad input: one line on standard error that says what, where and what to do, nothing on standard output, exit 2."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from minmaxcon.cli.main import build_app
from minmaxcon.cli.options import option_names

from .conftest import FILE_OPTIONS, table_rows, write_table


def refused(done: Any, *words: str) -> None:
    assert done.status == 2
    assert done.out == ""
    assert done.err.startswith("minmaxcon: error: ")
    assert done.err.count("\n") == 1
    assert done.err.endswith("\n")
    for word in words:
        assert word in done.err


def one_class(rows: list[list[str]]) -> list[list[str]]:
    return [[*row[:4], "yes"] for row in rows]


def empty_cell(rows: list[list[str]]) -> list[list[str]]:
    return [row for row in rows if row[3:] != ["a", "yes"]]


def changed(cell: int, value: str) -> Callable[[list[list[str]]], list[list[str]]]:
    def change(rows: list[list[str]]) -> list[list[str]]:
        return [[*row[:cell], value, *row[cell + 1 :]] if k == 6 else row for k, row in enumerate(rows)]

    return change


@pytest.mark.parametrize(
    "change,words",
    [
        (one_class, ("one class only", "'label'")),
        (empty_cell, ("no row has group=a & label=yes",)),
        (changed(1, "nan"), ("row 7 (line 8)", "column 'x2'", "missing")),
        (changed(1, "inf"), ("row 7 (line 8)", "column 'x2'", "not finite")),
        (changed(1, "1e200"), ("row 7 (line 8)", "column 'x2'", "1e+200 is too large, above 1e+100")),
        (changed(1, "abc"), ("row 7 (line 8)", "column 'x2'", "'abc' is text in a numeric column")),
        (changed(4, "maybe"), ("has 3 labels", "'maybe', 'no', 'yes'")),
        (lambda _rows: [], ("a heading but no data row",)),
    ],
    ids=["one class", "empty cell", "nan", "inf", "large", "text", "three labels", "no rows"],
)
def test_files(call: Callable[..., Any], tmp_path: Path, change: Any, words: tuple[str, ...]) -> None:
    path = write_table(tmp_path / "rows.csv", change(table_rows()))
    refused(call("solve", "fair_auc", "--data", path, *FILE_OPTIONS), str(path), *words)


@pytest.mark.parametrize(
    "options,words",
    [
        (["--data", "no_such.csv"], ("no_such.csv: no such file",)),
        (["--data", "lonapp"], ("--data='lonapp'", "did you mean 'loanapp'?")),
        (["--metric", "intergroup"], ("--metric='intergroup'", "did you mean 'inter_group'?")),
        (["--kappa", "-0.1"], ("--kappa=-0.1", "below 0")),
        (["--kappa", "-0.1,0.5"], ("--kappa=-0.1", "below 0")),
        (["--kappa", "0.1,x"], ("--kappa", "'x' is no number")),
        (["--kappa", "nan"], ("--kappa=nan",)),
        (["--kappa", "1e308"], ("--kappa=1e+308", "at most 1e+06")),
        (["--kappa", "0.1,1e7"], ("--kappa=", "at most 1e+06")),
        (["--label", "approve"], ("--label='approve'", "leave it out")),
        (["--keep-sensitive"], ("--keep-sensitive", "leave it out")),
        (["--steps", "3.5"], ("--steps", "'3.5' is no whole number")),
        (["--steps", "0"], ("--steps=0", "at least 1")),
        (["--batch-size", "-3"], ("--batch-size=-3",)),
        (["--batch-size", "9" * 20], ("--batch-size=" + "9" * 20, "at most 1,000,000")),
        (["--batch-size", "1000000000000"], ("--batch-size=1000000000000", "at most 1,000,000", "such as 100")),
        (["--solver", "iqrc", "--batch-size", "1000000000000"], ("--batch-size=1000000000000",)),
        (["--data", ""], ("'': an empty text is no path",)),
        (["--seed", "-1"], ("--seed=-1",)),
        (["--time-limit", "-1"], ("--time-limit=-1",)),
        (["--test-fraction", "x"], ("--test-fraction", '"x"')),
        (["--solver", "sfl"], ("--solver='sfl'", "did you mean 'sfls'?")),
        (["--kapa", "1"], ("--kapa", "Did you mean --kappa?", "'minmaxcon solve fair_auc --help'")),
        (["--max-gab", "1"], ("Unknown option: --max-gab. Did you mean --max-gap?",)),
        (["--train", "t.csv"], ("Unknown option: --train. See 'minmaxcon solve fair_auc --help'",)),
        (["--data"], ("--data requires an argument",)),
        (["--alpha", "1"], ("--alpha=1.0: needs --max-gap; without one there is no penalty",)),
        (["--device", "cuda"], ("--device='cuda': NumPy", "need --engine torch or --engine jax.")),
        (["extra"], ("unexpected argument 'extra'",)),
        (["--json=perhaps"], ("--json", '"perhaps"')),
        (["--steps", "1", "--steps", "2"], ("--steps specified multiple times",)),
        (["--data", "a\nb\x1b[31m.csv", *FILE_OPTIONS], (r"a\nb\x1b[31m.csv",)),
    ],
    ids=lambda value: " ".join(value).encode("unicode_escape").decode() if isinstance(value, list) else "",
)
def test_options(call: Callable[..., Any], options: list[str], words: tuple[str, ...]) -> None:
    refused(call("solve", "fair_auc", *options), *words)


def test_paths_that_are_no_files(call: Callable[..., Any], tmp_path: Path) -> None:
    """A folder is named, also before the columns that it lacks; so is an encoding other than UTF-8."""
    for options in ((), FILE_OPTIONS):
        refused(call("solve", "fair_auc", "--data", tmp_path, *options), f"{tmp_path}: is not a regular file")
    text = write_table(tmp_path / "rows.csv", table_rows()).read_text()
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        path = tmp_path / f"{encoding}.csv"
        path.write_bytes(text.encode(encoding))
        refused(call("solve", "fair_auc", "--data", path, *FILE_OPTIONS), str(path), "UTF-16", "export", "UTF-8")


@pytest.mark.parametrize(
    "part",
    ["x" * 100_000, *(pytest.param(word * 33_333, marks=pytest.mark.rel) for word in ("x/", "../"))],
    ids=str.__len__,
)
def test_a_path_of_100_000_characters_is_named_in_short(call: Callable[..., Any], table: Path, part: str) -> None:
    given = ("solve", "fair_auc", "--data", table, *FILE_OPTIONS, "--kappa", 0.3, "--time-limit", 30)
    for words in (
        *(("solve", "fair_auc", "--data", f"{part}{ending}", *FILE_OPTIONS) for ending in ("", ".csv")),
        *((*given, option, part) for option in ("--out", "--resume")),
        (*given, "--checkpoint", f"{part}/kept"),
        (*given[:2], "--data", "bank", "--data-dir", part),
        ("predict", part, "--data", table),
        ("predict", table.parent, "--data", part),
        ("verify", part),
        ("compare", "toy", "--out", part),
        ("pareto", "fair_auc", "--data", "loanapp", "--metric", "group", "--out", part),
        ("pareto", "fair_auc", "--data", part, *FILE_OPTIONS, "--metric", "group", "--out", "fronts"),
        ("report", "--data", part, "--out", "report.html"),
    ):
        done = call(*words)
        assert done.status == 2, words[0]
        assert done.err.count("\n") == 1
        assert len(done.err) < 1000
        assert "Errno" not in done.err, words


def test_a_libsvm_file_takes_no_label(call: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "rows.libsvm"
    path.write_text("".join(f"{1 if k % 2 else -1} 1:{k % 3} 2:{k // 2 % 2}\n" for k in range(40)))
    asked = ("solve", "fair_auc", "--data", path, "--sensitive", "2")
    refused(call(*asked, "--label", "label"), "--label='label'", "leave it out")
    path.write_text(path.read_text() + "1 1:1e200 2:1\n")
    refused(call(*asked), str(path), "row 41 (line 41)", "feature index 1", "1e200", "too large")


def test_options_of_files(call: Callable[..., Any], table: Path) -> None:
    solve = ("solve", "fair_auc", "--data", table)
    refused(call(*solve, "--label", "lable", "--sensitive", "group"), "no column 'lable'", "did you mean 'label'?")
    refused(call(*solve, "--label", "label"), "--sensitive: name the column")
    refused(call(*solve, "--sensitive", "group"), "--label: name the column")
    refused(call(*solve, *FILE_OPTIONS, "--positive", "y"), "no value 'y'")
    refused(call(*solve, *FILE_OPTIONS, "--protected", "z"), "no value 'z'")
    refused(call(*solve, *FILE_OPTIONS, "--test-fraction", "2"), "--test-fraction=2.0")


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["solve", "fair_acu"], ("name='fair_acu'", "did you mean 'fair_auc'?")),
        (["solve"], ("NAME requires an argument",)),
        (["sovle"], ('"sovle"', 'Did you mean "solve"?', "minmaxcon --help")),
        (["data", "gte"], ("'gte'", "Did you mean 'get'?")),
        (["data", "get", "bnak"], ("'bnak'", "did you mean 'bank'?")),
        (["data", "get", "loanapp"], ("needs no download",)),
        (["data", "get", "bank"], ("--data-dir: say where",)),
        (["predict", "nowhere", "--data", "x.csv"], ("nowhere: no such result folder",)),
        (["predict", ".", "--data", "x.csv"], ("holds no model.safetensors",)),
        (["predict", "."], ("--data requires an argument",)),
        (["demo", "--seed", "x"], ("--seed", "'x' is no whole number")),
        (["demo", "--seed", "-1"], ("--seed=-1",)),
        (["bench", "stesp"], ('"stesp"', 'Did you mean "steps"?')),
        *(
            ([*command, f"{option}="], (f"{option}: the path is empty; name a file or folder",))
            for command, options in {
                ("solve", "toy"): ("--checkpoint", "--resume", "--out"),
                ("compare", "toy"): ("--checkpoint", "--resume", "--out"),
                ("pareto", "fair_auc", "--data", "loanapp", "--metric", "group"): ("--out",),
                ("demo",): ("--out",),
                ("new-problem", "mine"): ("--out",),
                ("data", "list"): ("--data-dir",),
            }.items()
            for option in options
        ),
        (["predict", "", "--data", "x.csv"], ("error: the path is empty",)),
        (["verify", ""], ("error: the path is empty",)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_commands(
    call: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MINMAXCON_DATA", raising=False)
    refused(call(*arguments), *words)
    assert list(tmp_path.iterdir()) == []


def test_a_process_says_the_same() -> None:
    words = [sys.executable, "-c", "import sys; from minmaxcon.cli import main; sys.exit(main())"]
    done = subprocess.run([*words, "solve", "fair_acu"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("minmaxcon: error: name='fair_acu'")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [["solve", "fair_auc"], ["compare", "toy"], ["verify", "r"], ["problems"], ["new-problem", "mine"], ["report"]],
    ids=lambda words: words[0],
)
def test_the_options_that_errors_speak_of_are_those_that_are_read(words: list[str]) -> None:
    """By name alone, also those of groups of options and those with a name of their own."""
    app = build_app(words)
    command = app.parse_commands(words)[1][-1]
    read = {name for argument in command.assemble_argument_collection() for name in argument.names}
    positive = {name for name in read if name.startswith("--") and not name.startswith("--no-")}
    assert {f"--{name.replace('_', '-')}" for name in option_names(command.default_command)} == positive
