"""What the package declares of itself: extras, versions of Python, and names of promises."""

from __future__ import annotations

import importlib.metadata
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from tests.promises import promises, select

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_all_names_every_optional_dependency() -> None:
    """All that the package can use, but not its peers, which only `bench` compares, nor what develops it."""
    extras = PROJECT["optional-dependencies"]
    assert {"docs", "lint", "tests"} <= set(extras)
    used = sorted(set(extras) - {"all", "bench", "dev", "docs", "lint", "tests"})
    assert extras["all"] == [f"minmaxcon[{','.join(used)}]"]


def test_versions_of_python_are_those_of_the_classifiers() -> None:
    versions = [text.rpartition(" ")[2] for text in PROJECT["classifiers"] if text.startswith("Programming Language")]
    assert [version for version in versions if "." in version] == ["3.11", "3.12", "3.13"]
    assert PROJECT["requires-python"] == ">=3.11"


def test_every_pinned_version_takes_the_oldest_python() -> None:
    """Distributions ship first releases, such as 3.11.2: a version that needs a later one cannot be installed there."""
    pinned = {line.partition("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()}
    oldest = Version(f"{PROJECT['requires-python'].removeprefix('>=')}.0")
    seen, refused = 0, []
    for found in importlib.metadata.distributions():
        name, needs = found.metadata["Name"], found.metadata["Requires-Python"]
        if name.lower().replace("_", "-") in pinned:
            seen += 1
            if needs is not None and oldest not in SpecifierSet(needs):
                refused.append(f"{name} {found.version} needs Python {needs}")
    assert seen > 20
    assert refused == []


def test_every_promise_has_its_tests() -> None:
    for name, tests in promises().items():
        for test in tests:
            path, _, function = test.partition("::")
            assert f"def {function or 'test_'}" in (ROOT / path).read_text(), (name, test)


class Item:
    """What selection sees of a test."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid, self.extra_keyword_matches, self.markers = nodeid, set[str](), list[Any]()

    def add_marker(self, marker: Any) -> None:
        self.markers.append(marker.name)


@pytest.mark.parametrize("markexpr", ["rel", "not rel", ""])
@pytest.mark.parametrize("name", promises())
def test_a_promise_is_selected_by_its_name(name: str, markexpr: str) -> None:
    left: list[Item] = []
    options = {"keyword": name, "markexpr": markexpr}
    config = SimpleNamespace(
        getoption=options.get, hook=SimpleNamespace(pytest_deselected=lambda items: left.extend(items))
    )
    known = promises()
    nodes = [f"{test}{'' if '::' in test else '::test_x'}[1]" for tests in known.values() for test in tests]
    others = ["tests/test_other.py::test_x", *(f"{node.partition('[')[0]}_and_more" for node in nodes if "::" in node)]
    items = [Item(node) for node in [*dict.fromkeys(nodes), *others]]
    select(config, items)
    assert len(items) >= len(known[name])
    assert all(any(item.nodeid.startswith(test) for test in known[name]) for item in items)
    assert all(item.markers == (["rel"] if markexpr == "rel" else []) for item in items)
    assert len(items) + len(left) == len(dict.fromkeys(nodes)) + len(others)
