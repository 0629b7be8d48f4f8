"""Results of the tests with other versions of Python and of packages, kept for the page of promises.

``.ci/versions`` installs each, runs the tests and calls this: ``python docs/figures/versions.py report.xml highest``
adds what ``report.xml`` says of the Python that runs it to ``docs/figures/versions.json``.
"""

from __future__ import annotations

import json
import platform
import sys
import xml.etree.ElementTree as ET
from importlib.metadata import version
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).with_suffix(".json")
PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "cvxpy", "pyarrow", "pydantic")


def tried(report: Path) -> dict[str, Any]:
    """Return versions, and what a report says of the tests."""
    suite = next(ET.parse(report).getroot().iter("testsuite")).attrib
    count = {name: int(suite[name]) for name in ("tests", "failures", "errors", "skipped")}
    return {
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "passed": count["tests"] - count["failures"] - count["errors"] - count["skipped"],
        "failed": count["failures"] + count["errors"],
        "skipped": count["skipped"],
        "date": suite["timestamp"][:10],
    }


def main(report: str, resolution: str) -> None:
    """Add a report to the figures."""
    found = tried(Path(report))
    kept = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    kept[f"{'.'.join(found['python'].split('.')[:2])}, {resolution}"] = found
    FIGURES.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
