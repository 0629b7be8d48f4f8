"""``minmaxcon problems`` and ``minmaxcon data``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from cyclopts import App

import minmaxcon as mm
from minmaxcon.cli.options import Flag, Place, one_line
from minmaxcon.cli.output import Output, table, wrapped
from minmaxcon.registry import BringsData, cause_of, import_failure

__all__ = ["data_app", "problems"]

data_app = App(name="data", help="List the named data sets, or download one.")


def problems(*, names: Flag = False, json: Flag = False) -> int:
    """List the problems that are installed, and the names that their options know.

    Parameters
    ----------
    names
        Print names only, one a line; nothing is imported for that.
    json
        Print the list as JSON.
    """
    output = Output(json=json, quiet=True)
    found = mm.plugin_names()
    if names:
        output.result(_json(list(found)) if json else "".join(f"{name}\n" for name in found))
        return 0
    with output.guarded():
        described = [_described(name) for name in found]
    output.result(_json(described) if json else "\n".join(map(_problem_text, described)))
    return 0


def _described(name: str) -> dict[str, Any]:
    """Describe a problem; one that cannot be loaded is listed with the reason."""
    try:
        if failure := import_failure(name):
            raise mm.MinMaxConError(f"problem {name!r} failed to load: {failure}.")
        plugin = mm.plugin(name)
        choices = {option: dict(known) for option, known in plugin.choices().items()}
        return {"name": name, "summary": str(plugin.summary), "options": list(plugin.options()), "choices": choices}
    except BaseException as failure:
        summary = one_line(str(failure) if isinstance(failure, mm.MinMaxConError) else cause_of(failure))
        return {"name": name, "summary": summary, "options": [], "choices": {}}


def _problem_text(found: Mapping[str, Any]) -> str:
    text = f"{found['name']}: {found['summary']}\n"
    for option, known in found["choices"].items():
        lines = table([[f"    {name}", meaning] for name, meaning in known.items()], left=2)
        text += f"  --{option.replace('_', '-')}\n{lines}"
    return text


@data_app.default
@data_app.command(name="list")
def data_list(*, data_dir: Place | None = None, json: Flag = False) -> int:
    """List the named data sets, and whether their files are there.

    Parameters
    ----------
    data_dir
        Folder with their files.
    json
        Print the list as JSON.
    """
    output = Output(json=json, quiet=True)
    with output.guarded():
        found = [
            {"problem": name, **known}
            for name, plugin in _with_data()
            for known in plugin.datasets(None if data_dir is None else str(data_dir))
        ]
    output.result(_json(found) if json else "\n".join(map(_dataset_text, found)))
    return 0


def _dataset_text(found: Mapping[str, Any]) -> str:
    where = f"not here: {found['missing']}" if found.get("missing") else "ready"
    lines = {"source": found["source"], "licence": found["licence"], "files": where}
    text = f"{found['name']} ({found['problem']}): {found['description']}\n"
    return text + "".join(wrapped(f"  {name:9}", line) for name, line in lines.items())


@data_app.command(name="get")
def data_get(name: str, /, *, data_dir: Place | None = None) -> int:
    """Download a data set, check it, and write its files into a folder.

    Parameters
    ----------
    name
        The data set.
    data_dir
        The folder; by default the one that the environment variable MINMAXCON_DATA names.
    """
    output = Output(json=False, quiet=False)
    with output.guarded():
        files, notes = _download(name, None if data_dir is None else str(data_dir))
    output.result("".join(f"written: {file}\n" for file in files) + "".join(f"  - {note}\n" for note in notes))
    return 0


def _download(name: str, data_dir: str | None) -> tuple[Sequence[Any], Sequence[str]]:
    """Ask each problem that has data to download; the last that does not know the name says which it knows."""
    refusal = mm.UnknownName("name", name, ())
    for _, plugin in _with_data():
        try:
            return plugin.download(name, data_dir)
        except mm.UnknownName as failure:
            refusal = failure
    raise refusal


def _with_data() -> Sequence[tuple[str, BringsData]]:
    """Return the problems that have data sets and can be loaded."""
    found: list[tuple[str, BringsData]] = []
    for name in mm.plugin_names():
        with suppress(mm.MinMaxConError):
            plugin = mm.plugin(name)
            if isinstance(plugin, BringsData):
                found.append((name, plugin))
    return found


def _json(value: Any) -> str:
    from minmaxcon.results.records import to_json

    return to_json(value)
