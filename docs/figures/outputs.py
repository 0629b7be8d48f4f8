"""Outputs that pages and the README show: run again, and write what the programs print now.

``python docs/figures/outputs.py`` writes ``docs/examples/NAME.txt`` for every example that has such a file, and the
blocks of the README that follow a program.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
README = ROOT / "README.md"
SHOWN = re.compile(r"```python\n(?P<program>.*?)```\n\n```text\n(?P<output>.*?)```", flags=re.DOTALL)


def program_of(example: Path) -> str:
    """Return the part of an example that pages show."""
    return example.read_text(encoding="utf-8").partition("# start\n")[2].partition("# end\n")[0]


def output_of(example: Path) -> str:
    """Return what an example prints."""
    command = [sys.executable, "-W", "error", str(example)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Write all outputs anew."""
    readme = README.read_text(encoding="utf-8")
    for stored in sorted(EXAMPLES.glob("*.txt")):
        example = stored.with_suffix(".py")
        output, program = output_of(example), program_of(example)
        stored.write_text(output, encoding="utf-8")
        for found in SHOWN.finditer(readme):
            if found["program"].strip() == program.strip():
                readme = readme[: found.start("output")] + output + readme[found.end("output") :]
                break
        print(stored.relative_to(ROOT))
    README.write_text(readme, encoding="utf-8")


if __name__ == "__main__":
    main()
