"""Files of a user's own: the training rows, and other parts where they are files of their own."""

from __future__ import annotations

import filecmp
import itertools
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from minmaxcon.errors import InvalidInput
from minmaxcon.tables import existing_file

from .datasets import DATASETS, Dataset
from .labelled import FileColumns, LabelledData, is_libsvm, read_parts

__all__ = ["check_parts", "check_unknown_category", "looks_like_file", "rows_of_files"]


def looks_like_file(name: str) -> bool:
    """Whether a text that names no data set is meant as a path."""
    if "/" in name or "\\" in name or "." in name:
        return True
    with suppress(OSError):  # a name that is too long for a path
        return Path(name).exists()
    return False


def check_parts(data: Any, others: Mapping[str, Any], test_fraction: Any = None) -> None:
    """Refuse sources of parts that do not go together: ``others`` holds those beside the training rows, by name.

    Raises InvalidInput for parts beside what is no file of training rows, validation without test rows, a share that is
    held out beside parts, and one source, or a copy of it, twice.
    """
    if not others:
        return
    name, part = next(iter(others.items()))
    if isinstance(data, Dataset | LabelledData):
        raise InvalidInput(name, part, "goes with the file of the training rows; give Dataset its parts instead.")
    if isinstance(data, str) and (data in DATASETS or not looks_like_file(data)):
        remedy = f'goes with the file of the training rows, and data="{data}" names a data set: name it by data=.'
        raise InvalidInput(name, part, remedy)
    if "test" not in others:
        raise InvalidInput(
            name, part, "needs test=, the file of the test rows: both are files of their own, or neither."
        )
    if test_fraction is not None:
        raise InvalidInput("test_fraction", test_fraction, "is for rows that are split; leave it out beside test=.")
    for (one, first), (other, second) in itertools.combinations({"data": data, **others}.items(), 2):
        if _same(first, second):
            raise InvalidInput(other, second, f"is the file of {one}=, or a copy; each part needs rows of its own.")


def _same(first: Any, second: Any) -> bool:
    """Whether two sources are one, or a copy of the other."""
    if isinstance(first, str | Path) and isinstance(second, str | Path):
        return filecmp.cmp(existing_file(first), existing_file(second), shallow=False)
    return first is second


def rows_of_files(
    data: Any, others: Mapping[str, Any], columns: FileColumns
) -> tuple[LabelledData, dict[str, LabelledData]]:
    """Return the training rows of a file, and the rows of other parts by name.

    Raises the errors of :func:`read_parts`, and InvalidInput where no column is the sensitive one, or unknown
    categories are spoken of where there is no other part, or none has categories.
    """
    if isinstance(data, str | Path):
        existing_file(data)  # a wrong path is named before the columns that it lacks
    if columns.sensitive is None:
        raise InvalidInput(
            "sensitive", None, "name the column of the sensitive attribute (for LIBSVM a feature's index)."
        )
    check_unknown_category(columns, others)
    if columns.unknown_category != "refuse" and is_libsvm(data):
        raise InvalidInput(
            "unknown_category", columns.unknown_category, "a LIBSVM file has no categories; leave it out."
        )
    return read_parts(data, others, columns)


def check_unknown_category(columns: FileColumns, others: Mapping[str, Any]) -> None:
    """Refuse to speak of unknown categories where all rows are those of one file, of which all teach."""
    if columns.unknown_category != "refuse" and not others:
        need = "is about files of other parts, and all rows are of one file: name one by test=, or leave it out."
        raise InvalidInput("unknown_category", columns.unknown_category, need)
