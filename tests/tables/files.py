"""A small table, and how tests write files."""

from __future__ import annotations

from pathlib import Path

GOOD = """\
income,sex,age,job,score
no,male,31,clerk,1.5
yes,male,45,farmer,-2
no,female,28,clerk,0
yes,female,60,driver,1e3
no,male,39,driver,.25
"""


def written(folder: Path, content: str | bytes, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def with_line(number: int, line: str) -> str:
    """Return GOOD with one line (from 1) replaced."""
    lines = GOOD.splitlines()
    lines[number - 1] = line
    return "\n".join(lines) + "\n"
