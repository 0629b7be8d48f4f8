"""The base of results of ``minmaxcon bench``: notes, and all that repeats the measurement."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["BenchResult"]


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class BenchResult:
    """The notes on a measurement, its settings, and the machine and versions with which it was made."""

    notes: list[str]
    settings: dict[str, Any]
    machine: dict[str, Any]
    versions: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as JSON knows it."""
        return asdict(self)
