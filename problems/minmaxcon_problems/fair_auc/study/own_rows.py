"""A file of one's own in the place of a named data set: what is read, and its parts by seed."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.memory import require_memory
from minmaxcon.tables import existing_file, source_name
from minmaxcon_problems.fair_auc.datasets import DATASETS, Dataset, stratified_parts
from minmaxcon_problems.fair_auc.labelled import FileColumns, LabelledData
from minmaxcon_problems.fair_auc.own_files import check_parts, looks_like_file, rows_of_files

__all__ = ["OwnRows", "own_rows"]

_HELD_OUT = (0.8, 0.2)
_SELECT = (0.75, 0.25)
"""Shares of training rows and of those that models are selected by: with a fifth to judge by, 60%, 20% and 20%."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRows:
    """The files of a study's rows, as absolute paths, and which of their columns are what.

    ``digest`` is that of the content of all files: what was computed from other content is not taken for a result of
    this one. It pickles and hashes, so that each process reads the files once.
    """

    data: str
    validation: str | None
    test: str | None
    columns: FileColumns
    digest: str

    @property
    def name(self) -> str:
        """What the panel is called: the name of the file, never that of a named data set."""
        name = Path(self.data).name
        return f"./{name}" if name in DATASETS else name

    def settings(self) -> dict[str, Any]:
        """Return what results depend on: columns and content, wherever the files are."""
        return {**asdict(self.columns), "digest": self.digest}

    def parts(self, seed: int) -> Dataset:
        """Return the three parts of a seed, standardised by the training rows.

        Rows are divided with the same shares of every label and group; files that are parts stay as they are.
        """
        with warnings.catch_warnings():  # other processes read the rows too, and need not say it again
            warnings.simplefilter("ignore", UserWarning)
            train, validation, test = _read(self)
        if test is None:
            train, test = stratified_parts(train, _HELD_OUT, seed)
        if validation is None:
            train, validation = stratified_parts(train, _SELECT, seed)
        return Dataset(self.name, train, validation, test).standardized()


_PARTS = ("validation", "test")


def own_rows(data: str, columns: FileColumns, others: Mapping[str, str]) -> OwnRows | None:
    """Return the files that are meant, once they have been read, or None where the data are those of a name.

    ``others`` are the files of other parts than the training rows. Raises InvalidInput for options of a file beside a
    name, and the errors of ``FairAUC.load`` for what cannot be read. Warns of what is odd about the rows.
    """
    if data not in DATASETS and not looks_like_file(data):
        return None  # an unknown name, which the study refuses
    check_parts(data, others)
    if data in DATASETS:
        for name, value in columns.given().items():
            raise mm.InvalidInput(name, value, f"data set {data!r} fixes this itself; leave it out, or give a file.")
        return None
    digest = hashlib.blake2b(digest_size=16)
    for source in (data, *others.values()):
        try:
            with existing_file(source).open("rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
        except OSError as failure:
            cause = f"cannot be read ({failure.strerror}); check the file."
            raise mm.DataError(source_name(source), cause) from failure
    validation, test = (str(Path(others[name]).absolute()) if name in others else None for name in _PARTS)
    place = str(Path(data).absolute())
    found = OwnRows(data=place, validation=validation, test=test, columns=columns, digest=digest.hexdigest())
    _read(found)  # what is wrong or odd is said before anything is written, and once
    _require_cells(found.parts(0), source_name(data))
    return found


def _require_cells(parts: Dataset, source: str) -> None:
    """Refuse rows of which a part has no row of a label and group: every seed gives it the same share of them."""
    for name in ("train", *_PARTS):
        part = getattr(parts, name)
        if len(np.unique(2 * part.label + part.group)) < 4:
            raise mm.DataError(
                source,
                f"has so few rows of one label and group that the {name} part would have none of them; give more rows,"
                " or the parts as files of their own (--validation, --test).",
            )


@lru_cache(maxsize=2)
def _read(rows: OwnRows) -> tuple[LabelledData, LabelledData | None, LabelledData | None]:
    """Return the rows of all files, dense, as the methods of a study need them; a process reads them once."""
    others = {name: part for name in _PARTS if (part := getattr(rows, name)) is not None}
    train, parts = rows_of_files(rows.data, others, rows.columns)
    validation, test = (None if name not in parts else _dense(parts[name]) for name in _PARTS)
    return _dense(train), validation, test


def _dense(rows: LabelledData) -> LabelledData:
    if not hasattr(rows.features, "toarray"):
        return rows
    size = 8.0 * rows.features.shape[0] * rows.features.shape[1]
    require_memory(size, f"{rows.name}: its dense features", "keep fewer rows or features.")
    return replace(rows, features=rows.features.toarray())
