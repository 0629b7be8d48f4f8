"""Commands of plug-ins: found by their entry points, imported when they are asked for, refused by name."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import pytest

from minmaxcon import registry

GOOD = '''
from cyclopts import App

from minmaxcon.cli import Output, Whole

tools = App(name="tools", help="Several small tools.")


def greet(name: str = "you", /, *, times: Whole = 1) -> int:
    """Say hello.

    Parameters
    ----------
    times
        How often.
    """
    Output(json=False, quiet=True).result(f"hello {name}\\n" * times)
    return 1


@tools.command
def sharpen() -> None:
    """Sharpen."""


@tools.command
def leave() -> None:
    """Leave with a status."""
    raise SystemExit(3)
'''


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Give a function that pretends that packages with these commands are installed."""
    (tmp_path / "foreign_good.py").write_text(GOOD)
    (tmp_path / "foreign_broken.py").write_text('raise RuntimeError("first\\nsecond")')
    monkeypatch.syspath_prepend(tmp_path)

    def put(*points: tuple[str, str]) -> None:
        found = [EntryPoint(name, value, registry.COMMAND_GROUP) for name, value in points]

        def installed(group: str) -> Any:
            return found if group == registry.COMMAND_GROUP else entry_points(group=group)

        monkeypatch.setattr(registry, "entry_points", installed)
        registry.command_points.cache_clear()

    yield put
    registry.command_points.cache_clear()
    for name in ("foreign_good", "foreign_broken"):
        sys.modules.pop(name, None)


def test_a_function_and_an_app_become_commands(call: Callable[..., Any], install: Callable[..., None]) -> None:
    install(("greet", "foreign_good:greet"), ("tools", "foreign_good:tools"))
    done = call("greet", "there", "--times", 2)
    assert (done.status, done.out, done.err) == (1, "hello there\nhello there\n", "")
    assert "How often." in call("greet", "--help").out
    assert "Sharpen." in call("tools", "--help").out
    assert call("tools", "sharpen").status == 0
    with pytest.raises(SystemExit, match="3"):  # a command may, in the place of returning its status
        call("tools", "leave")
    refused = call("greet", "--times", "1.5")
    assert (refused.status, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "'1.5' is no whole number" in refused.err


def test_help_lists_them_and_imports_none(call: Callable[..., Any], install: Callable[..., None]) -> None:
    install(("greet", "foreign_good:greet"), ("tools", "foreign_good:tools"), ("bad", "foreign_broken:bad"))
    lines = {words[1]: words for line in call("--help").out.splitlines() if len(words := line.split()) > 1}
    assert lines["greet"][2:4] == ["Say", "hello."]
    assert lines["tools"][2:4] == ["Several", "small"]
    assert lines["bad"][2:4] == ["Of", "foreign_broken:bad:"]
    assert not {"foreign_good", "foreign_broken"}.intersection(sys.modules)


def test_help_is_read_from_packages_and_from_folders_that_share_a_name(
    call: Callable[..., Any], install: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, path in (("one", "shared_space/plain.py"), ("two", "shared_space/deep/__init__.py")):
        monkeypatch.syspath_prepend(tmp_path / folder)
        file = tmp_path / folder / path
        file.parent.mkdir(parents=True)
        file.write_text(f'def {folder}():\n    """Say {folder}."""\n')
    install(("one", "shared_space.plain:one"), ("two", "shared_space.deep:two"), ("none", "shared_space.gone:none"))
    text = " ".join(call("--help").out.split())
    assert "Say one." in text
    assert "Say two." in text
    assert "Of shared_space.gone:none" in text
    assert not [name for name in sys.modules if name.startswith("shared_space")]


@pytest.mark.parametrize(
    "value, said",
    [
        ("foreign_broken:bad", "failed to load: RuntimeError: first second"),
        ("foreign_good:nothing", "failed to load: AttributeError"),
        ("foreign_nowhere:bad", "failed to load: ModuleNotFoundError"),
        ("foreign_good:__name__", "is neither a function nor a cyclopts App"),
    ],
)
def test_one_that_cannot_be_imported_is_one_line_and_spares_the_others(
    value: str, said: str, call: Callable[..., Any], install: Callable[..., None]
) -> None:
    install(("bad", value), ("greet", "foreign_good:greet"))
    done = call("bad", "--help")
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"minmaxcon: error: command 'bad' ({value}) ")
    assert said in done.err
    assert call("greet").out == "hello you\n"
    assert call("problems", "--names").status == 0


def test_a_name_that_is_taken_is_refused(call: Callable[..., Any], install: Callable[..., None]) -> None:
    install(("problems", "foreign_good:greet"), ("twice", "foreign_good:greet"), ("twice", "other:greet"))
    done = call("problems", "--names")
    assert "hello" not in done.out
    assert done.err == (
        "minmaxcon: note: command 'problems' of foreign_good:greet is refused: the name is that of a built-in one.\n"
    )
    quiet = call("compare", "toy", "--jobs", 0, "--quiet")
    assert (quiet.status, quiet.err.count("\n"), "note" in quiet.err) == (2, 1, False)
    done = call("twice")
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 2)
    assert (
        "command 'twice' is brought by foreign_good:greet and other:greet; uninstall all of these but one." in done.err
    )


def test_the_package_runs_as_a_module(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], call: Callable[..., Any]
) -> None:
    for words, status in ((["problems", "--names"], 0), (["solve", "nothing"], 2)):
        monkeypatch.setattr(sys, "argv", ["minmaxcon", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            runpy.run_module("minmaxcon", run_name="__main__")
        assert ended.value.code == status
        said, done = capsys.readouterr(), call(*words)
        assert (said.out, said.err) == (done.out, done.err)


def test_light_commands_import_no_plug_in() -> None:
    script = """
import sys
from minmaxcon.cli import main
for words in (["--help"], ["solve", "--help"], ["problems", "--names"], ["data", "--help"]):
    main(words)
heavy = {"minmaxcon_problems", "torch", "cvxpy", "matplotlib", "sklearn", "scipy", "pandas", "pydantic"}
sys.exit(f"loaded: {sorted(heavy & set(sys.modules))}" if heavy & set(sys.modules) else 0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
