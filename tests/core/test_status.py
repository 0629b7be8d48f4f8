"""The statuses: every member has a sentence, and the documentation's table tells of each and of no other."""

from __future__ import annotations

import re
from pathlib import Path

import minmaxcon as mm

START = Path(__file__).parents[2] / "docs" / "start.rst"
NUMBERS = {6: "six", 7: "seven", 8: "eight", 9: "nine"}


def test_the_table_of_the_documentation_is_complete() -> None:
    text = START.read_text(encoding="utf-8")
    named = set(re.findall(r"^   ``(\w+)`` +\w", text, re.MULTILINE))
    assert named == {str(status) for status in mm.Status}
    assert f"one of {NUMBERS[len(mm.Status)]} statuses." in text
    assert repr(mm.Status.SOLVED.value) in text


def test_every_status_says_what_happened() -> None:
    for status in mm.Status:
        assert str(status) == status.name.lower()
        assert status.value[0].isupper()
        assert status.value.endswith(".")
        assert "\n" not in status.value


def test_the_documented_kinds_of_certificates_are_those_of_the_class() -> None:
    text = START.read_text(encoding="utf-8")
    documented = mm.Certificate.__doc__ or ""
    for kind in ("exact on the data", "with confidence", "estimate", "none"):
        assert f"``{kind}``" in text
        assert f'``"{kind}"``' in documented
