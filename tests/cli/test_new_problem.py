"""A foreign plug-in for real: generated, installed, found by its entry point, checked, tested and solved."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from minmaxcon import registry
from minmaxcon.cli import main

NAME, LONGEST = "my_problem", "a_name_of_forty_characters_a_name_of_for"


def content(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.parent.name != "__pycache__")
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def run(*words: object, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **variables}
    return subprocess.run(
        [sys.executable, *map(str, words)], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "package"
    assert main(["new-problem", NAME, "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def installed(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Give a function that runs a module where the package is installed, outside of it and of this checkout."""
    site, empty = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("empty")
    pip = ("-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-build-isolation")
    done = run(*pip, "--no-index", "--target", site, package, cwd=empty)
    assert done.returncode == 0, done.stderr
    return lambda *words: run(*words, cwd=empty, PYTHONPATH=str(site))


def test_the_files_of_a_distribution_are_written(package: Path) -> None:
    source = f"src/minmaxcon_{NAME}"
    modules = {f"{source}/{name}" for name in ("__init__.py", "commands.py", "functions.py", "problem.py", "py.typed")}
    assert set(content(package)) == {".gitignore", "README.md", "pyproject.toml", "tests/test_problem.py", *modules}


@pytest.fixture
def forget() -> Iterator[None]:
    """Let no module of this process's stay that a test imported from a package it wrote."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("minmaxcon_"):
            del sys.modules[name]
    registry._imported.cache_clear()


@pytest.mark.usefixtures("forget")
@pytest.mark.parametrize("name", ["none", "true", "false", "any", "mapping", "mean_gap", "logistic_loss", "problem"])
def test_no_name_hides_what_the_package_needs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["new-problem", name, "--out", str(tmp_path / "package")]) == 0
    monkeypatch.syspath_prepend(tmp_path / "package" / "src")
    package = importlib.import_module(f"minmaxcon_{name}")
    assert package.plugin.name == name
    problem = package.plugin.load(samples=50, bound=0.2)
    assert (problem.name, problem.data.size, problem.constraints[0].bound) == (name, 50, 0.2)
    assert importlib.import_module(f"minmaxcon_{name}.problem").plugin is package.plugin


def test_it_tells_what_to_replace(package: Path) -> None:
    found = content(package)
    assert found[f"src/minmaxcon_{NAME}/functions.py"].count("REPLACE") >= 3
    assert found[f"src/minmaxcon_{NAME}/problem.py"].count("REPLACE") >= 5


@pytest.mark.parametrize("name", ["a", LONGEST])
def test_ruff_has_nothing_to_say(name: str, tmp_path: Path) -> None:
    assert main(["new-problem", name, "--out", str(tmp_path / "package")]) == 0
    for words, cwd in itertools.product((["check"], ["format", "--diff"]), (tmp_path, tmp_path / "package")):
        done = run("-m", "ruff", words[0], "--isolated", "--no-cache", *words[1:], cwd=cwd)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_mypy_has_nothing_to_say(package: Path, tmp_path: Path) -> None:
    done = run("-m", "mypy", "--strict", "--cache-dir", tmp_path, cwd=package)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_and_its_command_are_found_by_their_entry_points_and_solve(installed: Callable[..., Any]) -> None:
    """The problem for several bounds."""
    command = f"{NAME.replace('_', '-')}-front"
    script = "from minmaxcon.cli import main\n"
    solve = ["solve", NAME, "--bound", "0.1,0.3", "--seed", "1", "--json", "--quiet"]
    for words in (["problems", "--names"], ["--help"], [command, "--seed", "1"], solve):
        script += f"assert main({words!r}) == 0\nprint('and then')\n"
    done = installed("-c", script)
    assert done.returncode == 0, done.stderr
    names, text, front, solved, _ = done.stdout.split("and then\n")
    assert NAME in names.split()
    assert f"{command} Show the least loss" in " ".join(text.replace("│", " ").split())
    heading, *rows = front.splitlines()
    assert heading.split() == ["bound", "loss", "status"]
    losses = [float(row.split()[1]) for row in rows]
    assert losses == sorted(losses, reverse=True)
    tight, loose = json.loads(solved)["runs"]
    assert tight["feasible"]
    assert loose["feasible"]
    assert tight["recomputed"]
    assert tight["objective"] > loose["objective"]


@pytest.mark.slow
def test_it_passes_its_own_tests(package: Path, installed: Callable[..., Any]) -> None:
    """The checks are among them."""
    done = installed("-m", "pytest", "-p", "no:cacheprovider", "-q", package)
    assert done.returncode == 0, done.stdout
    assert "failed" not in done.stdout


@pytest.mark.usefixtures("forget")
@pytest.mark.parametrize("command", ["solve", "compare", "check"])
def test_what_its_code_raises_is_one_line(
    command: str, package: Path, call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that checks nothing: the error names the problem, what was typed, and what was raised."""
    monkeypatch.syspath_prepend(package / "src")
    module = importlib.import_module(f"minmaxcon_{NAME}.problem")
    monkeypatch.setattr(module, "whole", lambda _, value, **__: value)
    point = EntryPoint(NAME, f"minmaxcon_{NAME}:plugin", registry.ENTRY_POINT_GROUP)
    monkeypatch.setattr(registry, "_entry_points", lambda: {NAME: point})
    registry._imported.cache_clear()
    done = call(command, NAME, "--samples", "-1")
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    for word in (f"problem '{NAME}' could not be loaded with", "--samples=-1", "ValueError: "):
        assert word in done.err


def test_before_it_is_installed_the_remedy_is_said(call: Callable[..., Any]) -> None:
    done = call("solve", NAME)
    assert (done.status, done.out) == (2, "")
    assert f"name='{NAME}': unknown name" in done.err
    assert "pip install --editable FOLDER" in done.err


@pytest.mark.usefixtures("forget")
@pytest.mark.parametrize(
    "command, option, value",
    [
        ("solve", "samples", "x"),
        ("solve", "samples", "0"),
        ("solve", "samples", "2.5"),
        ("solve", "bound", "-1"),
        ("solve", "bound", "x"),
        ("compare", "bound", "-1"),
        ("check", "bound", "x"),
    ],
)
def test_options_that_cannot_be_are_one_line(
    command: str, option: str, value: str, package: Path, call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here without an installation: the entry point is given, the package is the one that was written."""
    monkeypatch.syspath_prepend(package / "src")
    point = EntryPoint(NAME, f"minmaxcon_{NAME}:plugin", registry.ENTRY_POINT_GROUP)
    monkeypatch.setattr(registry, "_entry_points", lambda: {NAME: point})
    registry._imported.cache_clear()
    done = call(command, NAME, f"--{option}", value)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert f"--{option}" in done.err
    assert value in done.err


def test_what_is_broken_in_it_is_found(package: Path, installed: Callable[..., Any]) -> None:
    """The tests that the package brings can fail: a sign is enough."""
    broken = package.parent / "broken"
    for name, text in content(package).items():
        (broken / name).parent.mkdir(parents=True, exist_ok=True)
        (broken / name).write_text(text.replace("return a * slope", "return -a * slope"))
    script = (
        f"import sys; sys.path.insert(0, {str(broken / 'src')!r}); import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    )
    some = ("-p", "no:cacheprovider", "-q", "-k")
    done = installed("-c", script, *some, "constraint-gradient", broken / "tests")
    assert done.returncode == 1, done.stdout
    assert "constraints[0] mean gap: gradient" in done.stdout


@pytest.mark.parametrize(
    "name, said",
    [
        ("My-Problem", "did you mean 'my_problem'?"),
        ("my problem", "did you mean 'my_problem'?"),
        ("_private", "did you mean 'private'?"),
        ("a__b", "did you mean 'a_b'?"),
        ("2", "such as 'my_problem'"),
        ("", "such as 'my_problem'"),
        ("é", "such as 'my_problem'"),
        ("../up", "did you mean 'up'?"),
        ("lambda", "keyword of Python"),
        ("all", "every problem in `minmaxcon compare`"),
        ("fair_auc", "is the name of a problem that is installed"),
        ("problems", "minmaxcon_problems would hide"),
        (LONGEST + "t", "at most 40"),
    ],
)
def test_a_bad_name_is_one_line(name: str, said: str, call: Callable[..., Any], tmp_path: Path) -> None:
    done = call("new-problem", name, "--out", tmp_path / "package")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("minmaxcon: error: name=")
    assert said in done.err
    assert done.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_what_exists_stays_as_it_is(call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "minmaxcon-my-problem"
    folder.mkdir()
    (folder / "notes").write_text("mine")
    done = call("new-problem", NAME)
    assert (done.status, done.out) == (2, "")
    assert "--out='minmaxcon-my-problem': exists" in done.err
    assert content(tmp_path) == {"minmaxcon-my-problem/notes": "mine"}


def test_a_full_disk_leaves_nothing_half_written(
    call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, written = os.fsync, []

    def fsync(descriptor: int) -> None:
        written.append(descriptor)
        if len(written) > 3:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr("minmaxcon.files.os", SimpleNamespace(**{**vars(os), "fsync": fsync}))
    done = call("new-problem", NAME, "--out", tmp_path / "package")
    assert done.status == 2
    assert "No space left on device" in done.err
    assert not list(tmp_path.iterdir())


def test_by_default_the_folder_bears_the_name_and_the_page_shows_what_is_said(
    call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("new-problem", NAME)
    assert (done.status, done.err) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["minmaxcon-my-problem"]
    page = Path(__file__).parents[2] / "docs" / "howto" / "new_problem.rst"
    assert textwrap.indent(done.out, "   ") in page.read_text(encoding="utf-8")
