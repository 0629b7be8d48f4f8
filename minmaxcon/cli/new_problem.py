"""``minmaxcon new-problem``."""

from __future__ import annotations

import importlib.util
import keyword
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

import minmaxcon as mm
from minmaxcon.cli.compare import ALL
from minmaxcon.cli.options import Place
from minmaxcon.cli.output import Output

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["new_problem"]

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_LONGEST = 40
_SUFFIX = ".template"
"""Ending that keeps tools from taking a template for a program."""


def new_problem(name: str, /, *, out: Place | None = None) -> int:
    """Write a package for a problem of your own: a small one that runs, to be replaced part by part.

    It solves a constrained problem as it stands, and passes its tests, the conformance checks, ruff and mypy. Comments
    that begin with REPLACE tell what to put in its place.

    Parameters
    ----------
    name
        The problem's name, such as my_problem: what `minmaxcon solve` will know it by.
    out
        Folder of the package; minmaxcon-my-problem in the current folder by default. It must not exist.
    """
    from minmaxcon.results.folders import write_folder

    _check_name(name)
    distribution = f"minmaxcon-{name.replace('_', '-')}"
    target = Path(distribution) if out is None else out
    if target.is_symlink() or target.exists():
        raise mm.InvalidInput("out", str(target), "exists; name another folder with --out.")
    write_folder(target, _rendered(name, distribution))
    Output(json=False, quiet=False).result(_told(name, target))
    return 0


def _check_name(name: str) -> None:
    """Refuse what cannot be the name of a package, or is one already."""
    if not _NAME.fullmatch(name):
        near = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_0123456789")
        hint = f"; did you mean {near!r}?" if _NAME.fullmatch(near) else ", such as 'my_problem'."
        raise mm.InvalidInput("name", name, f"use lower-case letters, digits and single underscores between them{hint}")
    if len(name) > _LONGEST:
        raise mm.InvalidInput("name", name, f"has {len(name)} characters; use at most {_LONGEST}.")
    if keyword.iskeyword(name):
        raise mm.InvalidInput("name", name, "is a keyword of Python; choose another.")
    if name == ALL:
        raise mm.InvalidInput("name", name, "stands for every problem in `minmaxcon compare`; choose another.")
    if name in mm.plugin_names():
        raise mm.InvalidInput("name", name, "is the name of a problem that is installed; choose another.")
    package = _package(name)
    if importlib.util.find_spec(package) is not None:
        raise mm.InvalidInput("name", name, f"its package {package} would hide one that is installed; choose another.")


def _package(name: str) -> str:
    return f"minmaxcon_{name}"


def _rendered(name: str, distribution: str) -> Mapping[str, bytes]:
    """Return the content of each file by its path in the new folder."""
    from importlib.resources import files

    package = _package(name)
    words = {
        "name": name,
        "package": package,
        "distribution": distribution,
        "command": f"{name.replace('_', '-')}-front",
        "class_name": "".join(word.capitalize() for word in name.split("_")),
        "minmaxcon_version": mm.__version__,
    }
    return {
        path.replace("PACKAGE", package).removesuffix(_SUFFIX): Template(text).substitute(words).encode()
        for path, text in _templates(files("minmaxcon") / "templates" / "problem")
    }


def _templates(folder: Traversable, path: str = "") -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _templates(entry, f"{path}{entry.name}/")
        elif entry.name.endswith(_SUFFIX):  # systems and editors leave files of their own in a checkout
            yield f"{path}{entry.name}", entry.read_text(encoding="utf-8")


def _told(name: str, target: Path) -> str:
    return f"""written: {target}

It runs as it stands. Next:
  python -m pip install --editable {shlex.quote(f"{target}[tests]")}
  minmaxcon solve {name}
  minmaxcon check {name}
  minmaxcon {name.replace("_", "-")}-front
  python -m pytest {shlex.quote(str(target))}
then replace what the comments in {target / "src" / _package(name)} say.
"""
