"""The file of one configuration: written whole, and known again only if it is what this run would write."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import minmaxcon as mm
from minmaxcon.errors import DataError, InvalidInput
from minmaxcon.results import plain, write_file

from .study import Panel

__all__ = ["Configuration", "distinct", "read_run", "remove_stale", "write_run"]

_STALE = re.compile(r"\..+\.json\.new-[0-9a-f]{8}")
_UNUSUAL = re.compile(r"[^A-Za-z0-9_.+]+")
_DIGEST = "blake2b"


@dataclass(frozen=True, slots=True)
class Configuration:
    """One run of a method.

    Attributes
    ----------
    problem : str
        The problem's name.
    panel : Panel
        Data set, metric and model.
    method : str
        The method.
    seed : int
        Seed of split and solver.
    quick : bool
        Whether the study's small grid is used.
    settings : mapping
        What else the study's numbers depend on, as JSON holds it.
    """

    problem: str
    panel: Panel
    method: str
    seed: int
    quick: bool
    settings: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        """The name of its file, without the ending."""
        words = (self.panel.data, self.panel.metric, self.panel.model, self.method, str(self.seed))
        return "-".join(_UNUSUAL.sub("_", word) for word in words)

    def stamp(self) -> dict[str, Any]:
        """Return what a file must agree with to be kept: configuration, settings, and the version that runs it."""
        panel = {"data": self.panel.data, "metric": self.panel.metric, "model": self.panel.model}
        rest = {"method": self.method, "seed": self.seed, "quick": self.quick}
        settings = {f"setting {name}": plain(value) for name, value in self.settings.items()}
        return {"problem": self.problem, "minmaxcon": mm.__version__, **panel, **rest, **settings}


def distinct(configurations: Sequence[Configuration]) -> None:
    """Refuse configurations that would share a file.

    Raises
    ------
    InvalidInput
        Two of them have the same file name.
    """
    seen: set[str] = set()
    for one in configurations:
        if one.name in seen:
            raise InvalidInput("configurations", one.name, "occurs twice; give every configuration once.")
        seen.add(one.name)


def write_run(path: Path, configuration: Configuration, record: Mapping[str, Any]) -> None:
    """Write the file of a configuration, all or nothing; another of the same name is replaced.

    Parameters
    ----------
    path : path
        The file.
    configuration : Configuration
        What was run.
    record : mapping
        What the study returned.

    Raises
    ------
    InvalidInput
        The disk refused.
    """
    content = plain({**record, **configuration.stamp()})
    text = json.dumps({**content, _DIGEST: _digest(content)}, indent=1, allow_nan=False) + "\n"
    write_file(path, text.encode(), overwrite=True)


def read_run(path: Path, configuration: Configuration) -> dict[str, Any]:
    """Return the record in a configuration's file.

    Raises
    ------
    DataError
        The file is damaged or half-written, or cannot be read.
    InvalidInput
        It is whole, and another configuration or version wrote it.
    """
    try:
        content = json.loads(path.read_bytes())
        known = content.pop(_DIGEST)
    except (OSError, ValueError, AttributeError, KeyError, TypeError, RecursionError) as failure:
        raise DataError(str(path), "is damaged or half-written.") from failure
    if not isinstance(content, dict) or known != _digest(content):
        raise DataError(str(path), "is damaged: its content does not match its digest.")
    for name, expected in configuration.stamp().items():
        if content.get(name) != expected:
            remedy = (
                f"holds {path.name} of a run with {name} = {content.get(name)!r}, this one has {expected!r}; "
                "name another folder, or replace such files with --overwrite."
            )
            raise InvalidInput("out", str(path.parent.parent), remedy)
    return content


def remove_stale(folder: Path) -> None:
    """Remove the temporary files that a killed run left."""
    for path in folder.iterdir():
        if _STALE.fullmatch(path.name):
            path.unlink(missing_ok=True)


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
