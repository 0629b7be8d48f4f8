"""``minmaxcon predict``."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

import minmaxcon as mm
from minmaxcon.cli.options import Flag, Whole
from minmaxcon.cli.output import Output
from minmaxcon.registry import SavesModels

__all__ = ["predict"]

_MODEL = re.compile(r"model(-(\d+))?\.safetensors")


def predict(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    data: str,
    run: Whole | None = None,
    out: Path | None = None,
    overwrite: Flag = False,
    json: Flag = False,
    quiet: Flag = False,
) -> int:
    """Score new rows with a model that `minmaxcon solve --out DIR` saved.

    Columns are found by name; what the model does not ask for may be there or not. Scores go to standard output, one a
    line, unless `--out` says where. A damaged model is refused.

    Parameters
    ----------
    folder
        The result folder.
    data
        CSV, Parquet or LIBSVM file of the new rows, of the kind that the model was trained on.
    run
        Which of several models: the place, from 0, of its bound among those of the solve.
    out
        File for the scores: one a line; with the ending .csv a table with the columns row and score, with .json as
        `--json`.
    overwrite
        Replace a file that exists.
    json
        Print the scores as JSON on standard output, and nothing else there.
    quiet
        No notes.
    """
    from minmaxcon.results.folders import check_file, write_file
    from minmaxcon.results.saved_models import read_model

    output = Output(json=json, quiet=quiet)
    path = _model_file(folder, run)
    if out is not None:
        _check_inputs(out, data, path)
        check_file(out, overwrite=overwrite)
    with output.guarded():
        arrays, description = read_model(path)
        name = description.get("problem")
        if not isinstance(name, str):
            raise mm.DataError(str(path), "the model does not say which problem it belongs to; solve again.")
        plugin = mm.plugin(name)
        if not isinstance(plugin, SavesModels):
            raise mm.Unsupported(f"problem {name!r} has no model that scores rows.")
        scores = [float(score) for score in plugin.predict(arrays, description, data)]
    if out is not None:
        write_file(out, _text(out.suffix.lower(), path, data, scores).encode(), overwrite=overwrite)
        output.note(f"written: {out} ({len(scores):,} scores)")
    if json or out is None:
        output.result(_text(".json" if json else "", path, data, scores))
    return 0


def _check_inputs(out: Path, *inputs: str | Path) -> None:
    """Refuse to write the scores over what they are made from."""
    for file in inputs:
        same = False
        with suppress(OSError, ValueError):  # what is no path is named by those who read it
            same = out.samefile(file)
        if same:
            raise mm.InvalidInput("out", str(out), "is what the scores are made from; name another file.")


def _model_file(folder: Path, run: int | None) -> Path:
    """Return the model that is meant."""
    from minmaxcon.results.folders import recover

    recover(folder)
    if not folder.is_dir():
        raise mm.DataError(str(folder), "no such result folder; 'minmaxcon solve --out DIR' writes one.")
    found = {match[2]: entry for entry in sorted(folder.iterdir()) if (match := _MODEL.fullmatch(entry.name))}
    if not found:
        raise mm.DataError(str(folder), "holds no model.safetensors; 'minmaxcon solve --out DIR' writes one.")
    if run is None and len(found) == 1:
        return next(iter(found.values()))
    wanted = None if run is None else str(run)
    if wanted in found:
        return found[wanted]
    numbers = sorted(int(number) for number in found if number is not None)
    if not numbers:
        raise mm.InvalidInput("run", run, f"{folder} holds one model only; leave it out.")
    raise mm.InvalidInput("run", run, f"{folder} holds models {numbers[0]} to {numbers[-1]}; say which one.")


def _text(kind: str, path: Path, data: str, scores: list[float]) -> str:
    """Return the scores as text; floats are written so that they read back exactly."""
    from minmaxcon.results.records import to_json

    if kind == ".json":
        found: dict[str, Any] = {"model": str(path), "data": data, "rows": len(scores), "scores": scores}
        return to_json(found)
    if kind == ".csv":
        return "row,score\n" + "".join(f"{row},{score!r}\n" for row, score in enumerate(scores, start=1))
    return "".join(f"{score!r}\n" for score in scores)
