"""Measured figures of a promise for the page "Reliability": counts and extremes, kept in the report of the tests.

Each is written as JSON, so that ``docs/figures/reliability.py`` can put those of all cases of a promise together: it
adds counts, and keeps the largest and the smallest of the extremes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable


class Figure:
    """Keeps what a test measured; to be called before what is asserted of it, so that a failure is told as well."""

    def __init__(self, keep: Callable[[str, object], None]) -> None:
        self._keep = keep

    def count(self, good: int, of: int, what: str) -> None:
        """Keep "198 of 200 <what>"."""
        self._put(what=_named(what), good=int(good), of=int(of))

    def total(self, number: int, what: str) -> None:
        """Keep "20,000 <what>"."""
        self._put(what=_named(what), total=int(number))

    def largest(self, what: str, value: float, unit: str = "") -> None:
        """Keep "largest <what> 12 <unit>"."""
        self._put(what=what, largest=float(value), unit=unit)

    def smallest(self, what: str, value: float, unit: str = "") -> None:
        """Keep "smallest <what> 0.2 <unit>"."""
        self._put(what=what, smallest=float(value), unit=unit)

    def _put(self, **parts: object) -> None:
        self._keep("figure", json.dumps(parts))


def _named(what: str) -> str:
    """Return what is counted; raises ValueError for "refused" alone, which does not say of what."""
    if re.fullmatch(r"\w+(ed|ible)", what):
        raise ValueError(f"figure {what!r}: say of what, as in 'files {what}'.")
    return what
