"""``minmaxcon predict``."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

import minmaxcon as mm
from minmaxcon.cli.options import Flag, Place, Whole, keywords_of, one_line, printable
from minmaxcon.cli.output import Output, wrapped
from minmaxcon.registry import GivesProbabilities, MeasuresScores, SavesModels, cause_of

__all__ = ["model_options", "named_folder", "predict"]

_MODEL = re.compile(r"model(-(\d+))?\.safetensors")

_SCORES, _PROBABILITIES = ("score", "scores"), ("probability", "probabilities")
"""The names of the value of one row, and of the values of all rows."""


def predict(
    folder: Annotated[Place, Parameter(name="DIR")],
    /,
    *,
    data: str,
    run: Whole | None = None,
    identifier: Annotated[str | None, Parameter(name="--id")] = None,
    probabilities: Flag = False,
    out: Place | None = None,
    overwrite: Flag = False,
    json: Flag = False,
    quiet: Flag = False,
    **options: Any,
) -> int:
    """Score new rows with a model that `minmaxcon solve --out DIR` saved, and measure the scores where truth is known.

    Columns are found by name; what the model does not ask for may be there or not. Scores go to standard output, one a
    line, unless `--out` says where. With an option that names the column of the truth, such as `--label`, the measures
    of the scores go there instead; `minmaxcon predict DIR --help` shows these options. A damaged model is refused.

    Parameters
    ----------
    folder
        The result folder.
    data
        CSV, Parquet or LIBSVM file of the new rows, of the kind that the model was trained on.
    run
        Which of several models: the place, from 0, of its bound among those of the solve.
    identifier
        Column that tells rows apart, whose cells are repeated, as they are, beside the scores.
    probabilities
        Give probabilities in the place of scores, where the model knows them. Measures stay those of the scores; beside
        them this option and `--id` need `--out`.
    out
        File for the scores: one a line, after the identifier and a tab if `--id` is given; with the ending .csv a table
        with the columns row, id if it is given, and score or probability; with .json as `--json` without measures.
    overwrite
        Replace a file that exists.
    json
        Print the scores, or the measures, as JSON on standard output, and nothing else there.
    quiet
        No notes.
    """
    from minmaxcon.results.folders import check_file, write_file
    from minmaxcon.results.records import to_json

    output = Output(json=json, quiet=quiet)
    path = _model_file(folder, run)
    if out is not None:
        _check_inputs(out, data, path)
        check_file(out, overwrite=overwrite)
    measured = None
    with output.guarded(), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        arrays, description, plugin = _read(path)
        asked = _split(plugin, options)
        if "measure_scores" in asked and out is None and (probabilities or identifier is not None):
            name, value = ("probabilities", True) if probabilities else ("id", identifier)
            raise mm.InvalidInput(name, value, "acts on the scores, and measures are printed: name a file by --out.")
        with _named(plugin, "score"):
            scores = plugin.predict(arrays, description, data, **asked.get("predict", {}))
        if "measure_scores" in asked:
            with _named(plugin, "measure"):
                measured = plugin.measure_scores(description, scores, data, **asked["measure_scores"])
        if probabilities:
            scores = _probabilities(plugin, description, scores)
        names = None if identifier is None else _identifiers(data, identifier)
    for note in told:
        output.note(f"note: {one_line(str(note.message))}")
    found, what = [float(score) for score in scores], _PROBABILITIES if probabilities else _SCORES
    if out is not None:
        write_file(out, _text(out.suffix.lower(), path, data, found, names, what).encode(), overwrite=overwrite)
        output.note(f"written: {out} ({len(found):,} {what[1]})")
    if measured is not None:
        head = {"model": str(path), "data": data, "rows": len(found)}
        output.result(to_json({**head, "measured": measured.as_dict()}) if json else _wrapped(str(measured)))
    elif json or out is None:
        output.result(_text(".json" if json else "", path, data, found, names, what))
    return 0


def model_options(words: Sequence[str]) -> tuple[mm.ProblemPlugin | None, Sequence[Callable[..., Any]]]:
    """Return the plug-in whose model is in the folder that the words of the command name, and what has its options.

    Where no model can be read any option is taken, so that the command itself says what is wrong with the folder.
    """
    named = named_folder(words)
    try:
        plugin = None if named is None else _read(next(iter(_models(Path(named)).values())))[2]
    except (mm.MinMaxConError, OSError, ValueError):
        plugin = None
    if plugin is None:
        return None, [_anything]
    return plugin, [plugin.predict, *([plugin.measure_scores] if isinstance(plugin, MeasuresScores) else [])]


def named_folder(words: Sequence[str]) -> str | None:
    """Return the folder that the words of the command name: the word after the command, else the first that is one."""
    rest = list(words)[list(words).index("predict") + 1 :]
    if rest and not rest[0].startswith("-"):
        return rest[0]
    return next((word for word in rest if _is_folder(word)), None)


def _anything(**_options: Any) -> None:
    """Take any option."""


def _is_folder(word: str) -> bool:
    with suppress(OSError, ValueError):
        return Path(word).is_dir()
    return False


def _read(path: Path) -> tuple[Mapping[str, Any], Mapping[str, Any], Any]:
    """Return the arrays and the description of a model, and the plug-in that it belongs to."""
    from minmaxcon.results.saved_models import read_model

    arrays, description = read_model(path)
    name = description.get("problem")
    if not isinstance(name, str):
        raise mm.DataError(str(path), "the model does not say which problem it belongs to; solve again.")
    plugin = mm.plugin(name)
    if not isinstance(plugin, SavesModels):
        raise mm.Unsupported(f"problem {name!r} has no model that scores rows.")
    return arrays, description, plugin


def _split(plugin: Any, options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the options that were given by the method of the plug-in that takes them."""
    measuring = keywords_of(plugin.measure_scores) if isinstance(plugin, MeasuresScores) else []
    found: dict[str, dict[str, Any]] = {}
    for option, value in options.items():
        found.setdefault("measure_scores" if option in measuring else "predict", {})[option] = value
    return found


@contextmanager
def _named(plugin: Any, what: str) -> Iterator[None]:
    """Tell in one line what the code of a plug-in raises that it did not foresee."""
    try:
        yield
    except (mm.MinMaxConError, OSError, MemoryError):
        raise
    except BaseException as failure:
        raise mm.MinMaxConError(f"problem {plugin.name!r} failed to {what} the rows: {cause_of(failure)}") from failure


def _probabilities(plugin: Any, description: Mapping[str, Any], scores: Any) -> Any:
    """Return the probabilities behind the scores."""
    if not isinstance(plugin, GivesProbabilities):
        raise mm.Unsupported(f"problem {plugin.name!r} knows no probabilities; leave --probabilities out.")
    with _named(plugin, "calibrate"):
        return plugin.probabilities(description, scores)


def _identifiers(data: str, column: str) -> list[str]:
    """Return the cells of a column as the file has them."""
    from minmaxcon.tables import read_texts

    return read_texts(data, column, by="id")


def _wrapped(text: str) -> str:
    """Return a text for a reader, each line wrapped to the terminal, what goes on further in than it begins."""
    lines = []
    for line in text.splitlines():
        inner = line.lstrip(" ")
        lines.append(wrapped(line[: len(line) - len(inner)], printable(inner)))
    return "".join(lines)


def _check_inputs(out: Path, *inputs: str | Path) -> None:
    """Refuse to write the scores over what they are made from."""
    for file in inputs:
        same = False
        with suppress(OSError, ValueError):  # what is no path is named by those who read it
            same = out.samefile(file)
        if same:
            raise mm.InvalidInput("out", str(out), "is what the scores are made from; name another file.")


def _models(folder: Path) -> dict[str | None, Path]:
    """Return the models of a result folder by run, None for the one of a single run; there is one at least."""
    from minmaxcon.results.folders import recover

    recover(folder)
    if not folder.is_dir():
        raise mm.DataError(str(folder), "no such result folder; 'minmaxcon solve --out DIR' writes one.")
    found = {match[2]: entry for entry in folder.iterdir() if (match := _MODEL.fullmatch(entry.name))}
    if not found:
        raise mm.DataError(str(folder), "holds no model.safetensors; 'minmaxcon solve --out DIR' writes one.")
    return dict(sorted(found.items(), key=lambda each: int(each[0] or -1)))


def _model_file(folder: Path, run: int | None) -> Path:
    """Return the model that is meant."""
    found = _models(folder)
    if run is None and len(found) == 1:
        return next(iter(found.values()))
    wanted = None if run is None else str(run)
    if wanted in found:
        return found[wanted]
    numbers = sorted(int(number) for number in found if number is not None)
    if not numbers:
        raise mm.InvalidInput("run", run, f"{folder} holds one model only; leave it out.")
    raise mm.InvalidInput("run", run, f"{folder} holds models {numbers[0]} to {numbers[-1]}; say which one.")


def _text(kind: str, path: Path, data: str, values: list[float], names: list[str] | None, what: tuple[str, str]) -> str:
    """Return the scores or probabilities as text; floats are written so that they read back exactly."""
    from minmaxcon.results.records import to_json

    if kind == ".json":
        found: dict[str, Any] = {"model": str(path), "data": data, "rows": len(values)}
        return to_json({**found, **({} if names is None else {"ids": names}), what[1]: values})
    if kind == ".csv":
        columns: list[Sequence[Any]] = [range(1, len(values) + 1), *([] if names is None else [names])]
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["row", *([] if names is None else ["id"]), what[0]])
        writer.writerows(zip(*columns, map(repr, values), strict=True))
        return text.getvalue()
    if names is not None:
        return "".join(f"{printable(name)}\t{value!r}\n" for name, value in zip(names, values, strict=True))
    return "".join(f"{value!r}\n" for value in values)
