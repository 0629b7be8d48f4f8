"""The promises of docs/reliability as names for ``pytest -k``: ``pytest -m rel -k kill9`` runs the tests of one."""

from __future__ import annotations

import runpy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_PAGE = Path(__file__).parents[1] / "docs" / "figures" / "reliability.py"


@cache
def promises() -> dict[str, tuple[str, ...]]:
    """Return the tests of each promise, files or functions, from the one table of them."""
    return {name: tests for name, (_, tests) in runpy.run_path(str(_PAGE))["PROMISES"].items()}


def select(config: Any, items: list[Any]) -> None:
    """Give each test the names of its promises; where one is asked for, keep its tests and no others.

    With ``-m rel`` these are all of its tests, also those that are tried every time.
    """
    known, asked = promises(), config.getoption("keyword")
    names: dict[str, list[str]] = {}
    for name, tests in known.items():
        for test in tests:
            names.setdefault(test, []).append(name)
    for item in items:
        parts = item.nodeid.partition("[")[0].split("::")
        for end in range(1, len(parts) + 1):  # the file, what stands in it, the test itself
            item.extra_keyword_matches.update(names.get("::".join(parts[:end]), ()))
    if asked in known:
        others = [item for item in items if asked not in item.extra_keyword_matches]
        items[:] = [item for item in items if asked in item.extra_keyword_matches]
        for item in items if config.getoption("markexpr") == "rel" else ():
            item.add_marker(pytest.mark.rel)
        config.hook.pytest_deselected(items=others)
