"""Solve a new problem and all first examples with no option, and print what it took: ``python docs/figures/solved.py``.

``minmaxcon new-problem`` writes its package, which is installed into a folder of its own; then ``minmaxcon solve NAME``
solves it and the first example of every problem of the gallery, each in a process of its own. Processor seconds are
those of the whole process, imports included.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import minmaxcon as mm
from minmaxcon.cli.options import words_of
from minmaxcon.cli.output import table

NEW = "my_problem"
RUN = "import sys; from minmaxcon.cli import main; sys.exit(main(sys.argv[1:]))"


def run(*words: str, path: str = "") -> tuple[str, float]:
    """Run Python in a process of its own; return what it printed, and its processor seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    search = os.pathsep.join(filter(None, [path, os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": search},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def solved(name: str, options: list[str], path: str = "") -> list[str]:
    """Solve a problem; return a row of the table."""
    printed, seconds = run("-c", RUN, "solve", name, *options, "--json", path=path)
    found: dict[str, Any] = json.loads(printed)
    proved = f"{found['certificate']['lower']:.5g} <= f* <= {found['certificate']['upper']:.5g}"
    return [name, found["status"], f"{seconds:.1f}", f"{found['steps']:,}", proved]


def main() -> None:
    """Print the table."""
    rows = [["problem", "status", "seconds", "steps", "proved"]]
    with tempfile.TemporaryDirectory() as folder:
        package, site = Path(folder) / "package", Path(folder) / "site"
        run("-c", RUN, "new-problem", NEW, "--out", str(package))
        pip = ("-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-build-isolation")
        run(*pip, "--no-index", "--target", str(site), str(package))
        rows.append(solved(NEW, [], str(site)))
    examples = {name: mm.plugin(name).examples() for name in mm.plugin_names()}
    rows += [solved(name, words_of(options[0]).split()) for name, options in examples.items() if options]
    print(table(rows))


if __name__ == "__main__":
    main()
