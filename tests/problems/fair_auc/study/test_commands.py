"""``pareto`` and ``reproduce``: the folder, its tables and figures, resuming, and bad input in one line."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from minmaxcon_problems.fair_auc.study import report as report_module
from minmaxcon_problems.fair_auc.study import study as study_module
from tests.outlines import outline
from tests.problems.fair_auc.study.fake_study import FakeStudy

FILES = {
    "runs",
    "summary.json",
    "hypervolume.csv",
    "ahead.csv",
    "best_auc.csv",
    "achieved.csv",
    "fronts.csv",
    "tables.txt",
}
ONE = ("--data", "a9a", "--metric", "group")


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakeStudy], None]:
    """Give a function that puts a study in the place of the paper's; one is there from the start."""

    def put(study: FakeStudy) -> None:
        monkeypatch.setattr(study_module, "FairAUCStudy", lambda: study)

    put(FakeStudy())
    return put


@pytest.fixture
def outlined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put outlines in the place of the figures of fronts."""
    monkeypatch.setattr(report_module, "png", outline)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.usefixtures("install")
def test_pareto_writes_the_folder(call: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "o"
    done = call("pareto", "fair_auc", *ONE, "--out", out, "--jobs", 1)
    assert done.status == 0
    assert names(out) == FILES | {"fronts-linear.png"}
    assert len(names(out / "runs")) == 6 * 3
    assert done.out == (out / "tables.txt").read_text() + f"\nwritten: {out}\n"
    assert "18 of 18 configurations" in done.err
    volumes = rows(out / "hypervolume.csv")
    assert [(row["method"], row["kind"]) for row in volumes][:3] == [
        ("max_gap", "selected"),
        ("max_gap", "target"),
        ("level_set", "selected"),
    ]
    assert [row["best"] for row in volumes].count("1") == 1
    assert max(volumes, key=lambda row: float(row["mean"]))["best"] == "1"
    assert (out / "fronts-linear.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("install", "outlined")
def test_json_is_the_summary(call: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "o"
    words = ("--model", "mlp", "--seeds", 2, "--methods", "level_set,correlation", "--json", "--quiet")
    done = call("pareto", "fair_auc", "--data", "bank", "--metric", "intra_group", *words, "--out", out, "--jobs", 1)
    assert (done.status, done.err) == (0, "")
    summary = json.loads(done.out)
    assert summary == json.loads((out / "summary.json").read_text())
    assert (summary["configurations"], summary["finished"], summary["kept"], summary["seconds"]) == (2, 2, 0, 2.0)
    assert [row["method"] for row in summary["hypervolume"]] == ["level_set"]
    assert {found["method"] for found in summary["excluded"]} == {"correlation", "post_processing"}


@pytest.mark.usefixtures("outlined")
def test_reproduce_takes_everything_and_goes_on(
    call: Callable[..., Any], tmp_path: Path, install: Callable[[FakeStudy], None]
) -> None:
    install(FakeStudy(data=["bank"]))
    out = tmp_path / "o"
    done = call("reproduce", "--quick", "--out", out, "--jobs", 1, "--json", "--quiet")
    summary = json.loads(done.out)
    assert (done.status, summary["configurations"], summary["kept"], summary["quick"]) == (0, 40, 0, True)
    assert names(out) == FILES | {"fronts-linear.png", "fronts-mlp.png"}
    kept = {path.name: path.read_bytes() for path in out.iterdir() if path.suffix in (".csv", ".png")}
    for path in (out / "runs").glob("bank-group-*"):
        path.unlink()
    again = call("reproduce", "fair_auc", "--quick", "--out", out, "--jobs", 1, "--json", "--quiet")
    assert json.loads(again.out)["kept"] == 40 - 6 * 2 * 2
    assert kept == {path.name: path.read_bytes() for path in out.iterdir() if path.suffix in (".csv", ".png")}
    other = call("reproduce", "--out", out, "--jobs", 1)
    assert (other.status, other.out, other.err.count("\n")) == (2, "", 1)
    assert "quick = True, this one has False" in other.err


@pytest.mark.usefixtures("outlined")
def test_damage_is_noted_and_failures_are_told(
    call: Callable[..., Any], tmp_path: Path, install: Callable[[FakeStudy], None]
) -> None:
    out = tmp_path / "o"
    install(FakeStudy(broken="level_set"))
    done = call("pareto", "fair_auc", *ONE, "--out", out, "--jobs", 1)
    assert done.status == 1
    assert done.err.splitlines()[-1] == (
        "minmaxcon: 3 of 18 configurations failed and are left out, first a9a-group-linear-level_set-0: "
        "RuntimeError: first line second line"
    )
    assert "level set" not in done.out
    (out / "runs" / "a9a-group-linear-max_gap-0.json").write_text("{")
    install(FakeStudy())
    done = call("pareto", "fair_auc", *ONE, "--out", out, "--jobs", 1)
    assert done.status == 0
    assert "note: a9a-group-linear-max_gap-0.json was computed again: is damaged" in done.err


def test_ctrl_c_says_how_to_go_on(
    call: Callable[..., Any], tmp_path: Path, install: Callable[[FakeStudy], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(self: FakeStudy, *arguments: Any, **options: Any) -> Any:
        if arguments[2] == 2:
            raise KeyboardInterrupt
        return plain_run(self, *arguments, **options)

    plain_run = FakeStudy.run
    monkeypatch.setattr(FakeStudy, "run", run)
    install(FakeStudy())
    out = tmp_path / "o"
    done = call("pareto", "fair_auc", *ONE, "--out", out, "--jobs", 1, "--quiet")
    assert (done.status, done.out) == (1, "")
    said = "interrupted: 2 of 18 configurations are finished and kept; run the same command again to go on."
    assert done.err == f"minmaxcon: {said}\n"
    assert names(out) == {"runs"}


@pytest.mark.usefixtures("outlined")
@pytest.mark.parametrize("command", [("pareto", "fair_auc", *ONE), ("reproduce", "--data", "a9a", "--metric", "group")])
def test_runs_have_a_folder_of_their_own(
    call: Callable[..., Any],
    tmp_path: Path,
    install: Callable[[FakeStudy], None],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
) -> None:
    def run(self: FakeStudy, *arguments: Any, **options: Any) -> Any:
        started.append(arguments)
        if len(started) == 3:
            raise KeyboardInterrupt
        return plain_run(self, *arguments, **options)

    def go(*options: str | Path) -> Any:
        return call(*command, "--model", "linear", "--jobs", 1, "--quiet", "--json", *options)

    install(FakeStudy())
    kept, moved, out = (tmp_path / name for name in ("kept runs", "moved", "out"))
    whole = json.loads(go("--out", tmp_path / "whole").out)
    started: list[Any] = []
    plain_run = FakeStudy.run
    monkeypatch.setattr(FakeStudy, "run", run)
    done = go("--checkpoint", kept, "--resume", kept, "--out", out)
    assert (done.status, done.out) == (1, "")
    assert done.err.endswith(f"2 of 18 configurations are finished and kept; go on with --resume '{kept}'.\n")
    assert not out.exists()
    begun = {path: path.stat().st_mtime_ns for path in (kept / "runs").iterdir()}
    done = go("--checkpoint", moved, "--resume", kept, "--out", out)
    assert json.loads(done.out) == {**whole, "kept": 2}
    assert (len(started), names(out)) == (3 + 16, FILES - {"runs"} | {"fronts-linear.png"})
    assert begun == {path: path.stat().st_mtime_ns for path in (kept / "runs").iterdir()}
    assert json.loads(go("--resume", kept, "--out", out).out) == {**whole, "kept": 2}
    ours = {path.name: path.read_bytes() for path in (tmp_path / "whole" / "runs").iterdir()}
    assert all(ours == {path.name: path.read_bytes() for path in (one / "runs").iterdir()} for one in (kept, moved))
    done = go("--checkpoint", kept, "--resume", kept, "--quick", "--out", out)
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert done.err.startswith("minmaxcon: error: --resume=")
    assert "holds a9a-group-linear-" in done.err


@pytest.mark.usefixtures("install")
def test_bad_folders_of_runs(call: Callable[..., Any], tmp_path: Path) -> None:
    held, plain, other, blocked, bank = (tmp_path / name for name in ("held", "plain", "other", "blocked", "bank"))
    (held / "runs").mkdir(parents=True)
    (held / "runs" / "a9a-group-linear-max_gap-0.json").write_text("{")
    (other / "runs").mkdir(parents=True)
    (other / "thesis.tex").write_text("years of work")
    plain.write_text("")
    blocked.mkdir()
    (blocked / "runs").write_text("")
    (bank / "runs").mkdir(parents=True)
    (bank / "runs" / "bank-group-linear-max_gap-0.json").write_text("{")
    (tmp_path / "sealed" / "summary.json").mkdir(parents=True)
    none, new = "holds no run of this command, such as a9a-group-linear-max_gap-0.json in runs", tmp_path / "new"
    refused = {
        ("--out", plain / "o", "--checkpoint", new): "is no folder and cannot be one",
        ("--checkpoint", held): "--checkpoint=",
        ("--checkpoint", new, "--resume", tmp_path / "none"): none,
        ("--resume", bank): none,
        ("--checkpoint", tmp_path / "o" / "kept"): "lies in the folder of --out",
        ("--checkpoint", new, "--resume", new, "--out", new / "paper"): "--out=",
        ("--resume", held, "--checkpoint", held / "more"): "lies in the folder of --resume",
        ("--checkpoint", blocked): "--checkpoint=",
        ("--out", tmp_path / "sealed", "--checkpoint", new): "exists and is no regular file",
        ("--resume", tmp_path): "which this command does not write",
        ("--resume", plain): "is no folder",
        ("--resume", other): "'thesis.tex', which this command does not write",
        ("--checkpoint", other, "--resume", other): "'thesis.tex', which this command does not write",
        ("--checkpoint", held, "--resume", held, "--seeds", 0): "--seeds=0",
        ("--checkpoint", new, "--resume", held, "--methods", "maxgap"): "did you mean 'max_gap'?",
    }
    for options, words in refused.items():
        done = call("pareto", "fair_auc", *ONE, *(() if "--out" in options else ("--out", tmp_path / "o")), *options)
        assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
        assert words in done.err
    assert names(tmp_path) == {"held", "other", "plain", "blocked", "bank", "sealed"}
    assert names(held / "runs") == {"a9a-group-linear-max_gap-0.json"}


@pytest.mark.usefixtures("install")
@pytest.mark.parametrize(
    "options,words",
    [
        (["--data", "a9", "--metric", "group"], ("--data='a9'", "did you mean 'a9a'?")),
        (["--data", "a9a", "--metric", "grup"], ("--metric='grup'", "did you mean 'group'?")),
        ([*ONE, "--model", "tree"], ("--model='tree'", "Known: linear, mlp.")),
        ([*ONE, "--methods", "levelset"], ("--methods='levelset'", "did you mean 'level_set'?")),
        ([*ONE, "--methods", "a,,b"], ("--methods='a,,b'", "separated by commas")),
        ([*ONE, "--seeds", "0"], ("--seeds=0", "from 1 to 1,000")),
        ([*ONE, "--seeds", "x"], ("--seeds", "no whole number")),
        ([*ONE, "--jobs", "-1"], ("--jobs=-1", "from 1 to 1,024")),
        (["--data", "a9a", "--metric", "intra_group", "--methods", "correlation"], ("--methods='correlation'", "only")),
        (["--data", "a9a"], ("--metric requires an argument",)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_options(call: Callable[..., Any], tmp_path: Path, options: list[str], words: tuple[str, ...]) -> None:
    done = call("pareto", "fair_auc", *options, "--out", tmp_path / "o")
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert not (tmp_path / "o").exists()
    for word in words:
        assert word in done.err


@pytest.mark.usefixtures("install")
def test_bad_folders_and_problems(call: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    bad = {".": "which this command does not write", "file": "is no folder", "file/x": "is no folder", "link": "a link"}
    for out, word in bad.items():
        done = call("pareto", "fair_auc", *ONE, "--out", tmp_path / out)
        assert (done.status, done.err.count("\n")) == (2, 1)
        assert word in done.err
        assert done.err.count("--out") + done.err.count("name another") == 2  # one message, not one in another
    assert names(tmp_path) == {"thesis.tex", "file", "link"}
    done = call("pareto", "toy", *ONE, "--out", tmp_path / "o")
    assert (done.status, done.out) == (2, "")
    assert "name='toy': unknown name; Known: fair_auc. Only this problem has a study of fronts." in done.err
    assert call("reproduce", "fair_acu", "--out", tmp_path / "o").status == 2
    assert call("reproduce").status == 2


def test_missing_data_is_one_line(
    call: Callable[..., Any], tmp_path: Path, install: Callable[[FakeStudy], None]
) -> None:
    install(FakeStudy(broken="input"))
    done = call("pareto", "fair_auc", *ONE, "--out", tmp_path / "o", "--jobs", 1)
    assert (done.status, done.out, done.err) == (2, "", "minmaxcon: error: rows.csv: no such file; look at its name.\n")
