"""The README's programs are examples of the documentation, and print what it says; its links lead somewhere."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
OUTPUTS = runpy.run_path(str(ROOT / "docs" / "figures" / "outputs.py"))


def test_the_programs_are_short_examples_with_their_output() -> None:
    """So tests/test_examples.py runs them."""
    shown = list(OUTPUTS["SHOWN"].finditer(README))
    assert len(shown) == len(re.findall("```python", README)) == 2
    for found, name in zip(shown, ("fair_model", "first_solve"), strict=True):
        example = ROOT / "docs" / "examples" / f"{name}.py"
        assert found["program"] == OUTPUTS["program_of"](example)
        assert found["output"] == example.with_suffix(".txt").read_text(encoding="utf-8")
        assert len([line for line in found["program"].splitlines() if line]) <= 13


def test_links_and_pictures_exist() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", README)
    assert len(targets) >= 10
    assert not [target for target in targets if "://" not in target and not (ROOT / target).exists()]
