"""The framework speaks of no problem: words of fair AUC stand in metrics/ alone."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import minmaxcon

ROOT = Path(minmaxcon.__file__).parent
WORDS = {"auc", "kappa", "max_gap", "sensitive", "protected", "fairness"}
METRICS = "metrics"
"""The folder of what is measured between any two subsets of rows, the AUC among it."""

ALLOWED: set[tuple[str, str]] = set()
"""Places, as (path, line), where a problem is named all the same; the aim is none."""

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def parts(line: str) -> set[str]:
    """Return the words of a line, whole and as parts of identifiers, in lower case; pairs of parts too."""
    found = set()
    for identifier in IDENTIFIER.findall(line):
        split = [part.lower() for part in PART.findall(identifier)]
        found.update(split, (f"{first}_{second}" for first, second in itertools.pairwise(split)))
    return found


def test_the_reader_finds_words_and_parts_of_identifiers() -> None:
    for line in (
        "the AUC",
        "auc_gap = 1",
        "FairAUC()",
        "--max-gap",
        "maxGap",
        "is_protected",
        "Sensitive",
        "kappas=kappa",
    ):
        line = line.replace("-", "_")
        assert parts(line) & WORDS, line
    for line in ("case-insensitive", "unprotected_", "a gap, at most", "max(gap)", "caucus"):
        assert not parts(line) & WORDS, line


def test_the_framework_knows_no_problem_in_words() -> None:
    found = []
    for path in sorted(ROOT.rglob("*")):
        place = path.relative_to(ROOT)
        if path.suffix not in {".py", ".pyi", ".template"} or place.parts[0] == METRICS:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if parts(line.replace("-", "_")) & WORDS and (str(place), line.strip()) not in ALLOWED:
                found.append(f"{place}:{number}: {line.strip()}")
    assert not found, "\n".join(found)
