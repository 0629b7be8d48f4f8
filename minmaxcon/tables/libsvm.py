"""Reader of LIBSVM files: ``label index:value index:value ...``, one row a line, indices from 1.

Memory and time stay proportional to what the file rightly holds: lines, indices and numbers are checked as they are
read, so that a hostile file is refused at its first bad line.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minmaxcon.checks import flag, whole
from minmaxcon.errors import DataError
from minmaxcon.tables.columns import MAX_NUMBER
from minmaxcon.tables.lines import MAX_LINE, bounded_lines, place, shown, source_name

__all__ = ["MAX_FEATURES", "LibsvmRows", "parsed_lines", "read_libsvm"]

MAX_FEATURES = 2**24
"""Largest feature index that is accepted where the number of features is not given."""

LARGEST_INDEX = 2**31 - 1
"""Largest number of features: sparse matrices count their columns in 32 bits."""


@dataclass(frozen=True, eq=False, slots=True)
class LibsvmRows:
    """Rows of a LIBSVM file, and the line of the file on which each stands, (n,).

    Features are a scipy.sparse.csr_array (n, d) of float64, indices sorted; labels (n,) are the first number of each
    line, NaN where there is none.
    """

    features: Any
    labels: NDArray[np.float64]
    lines: NDArray[np.int64]


_DENSE = 2**16
"""Features up to which it does not matter how many of them occur."""

_SHARE = 100
"""Above, one in so many must occur."""


def _check_occurring(source: str, width: int, occurring: int) -> None:
    """Refuse features of which hardly any occurs: each would still have its parameter."""
    if width > _SHARE * occurring:
        need = f"the largest feature index is {width:,}, and only {occurring:,} features occur"
        raise DataError(source, f"{need}; number those that occur from 1, or give the number of features.")


def _number(token: bytes) -> float:
    # Python reads "1_000" as a number; the format does not.
    if b"_" in token:
        raise ValueError
    return float(token)


def _parse(line: bytes, n_features: int, *, labelled: bool) -> tuple[float, list[int], list[float]]:
    """Return label, indices and values of a line that is not blank; ValueError has the defect and its remedy."""
    tokens = line.split()
    label = math.nan
    if labelled or b":" not in tokens[0]:
        try:
            label = _number(tokens.pop(0))
        except ValueError:
            raise ValueError(
                f"the label {_text(line.split()[0])} is not a number; if this is a table, name it .csv"
            ) from None
        if not math.isfinite(label):
            raise ValueError(f"the label {label} is not a finite number; correct it")
    indices: list[int] = []
    values: list[float] = []
    previous = 0
    for token in tokens:
        index_text, colon, value_text = token.partition(b":")
        if not colon or not index_text.isdigit() or len(index_text) > 19:
            raise ValueError(f"{_text(token)} is not of the form index:value; correct it")
        index = int(index_text)
        if index <= previous:
            fault = "indices count from 1" if index == 0 else f"indices must increase, and {previous} came before"
            raise ValueError(f"{_text(token)} has feature index {index}; {fault}")
        if index > n_features:
            raise ValueError(
                f"{_text(token)} has feature index {index}, above the largest allowed, {n_features}; correct it,"
                " or give the number of features"
            )
        try:
            value = _number(value_text)
        except ValueError:
            raise ValueError(f"{_text(token)} has no number after the colon; the file may be cut short") from None
        if not math.isfinite(value):
            raise ValueError(
                f"feature index {index} has the value {_text(value_text)}, which is not finite; correct it"
            )
        if abs(value) > MAX_NUMBER:
            raise ValueError(
                f"feature index {index} has the value {_text(value_text)}, which is too large, above {MAX_NUMBER:g};"
                " rescale the feature"
            )
        indices.append(index)
        values.append(value)
        previous = index
    return label, indices, values


def _text(token: bytes) -> str:
    return shown(token.decode("utf-8", "backslashreplace"), 40)


def parsed_lines(
    path: str | Path, n_features: int | None = None, *, max_line: int = MAX_LINE, labelled: bool = True
) -> Iterator[tuple[int, float, list[int], list[float]]]:
    """Yield number, label, indices and values of each line that is not blank, as :func:`read_libsvm` reads them."""
    limit, row = MAX_FEATURES if n_features is None else n_features, 0
    for number, raw in bounded_lines(path, max_bytes=max_line):
        line = raw.partition(b"#")[0].strip()
        if not line:
            continue
        row += 1
        try:
            label, indices, values = _parse(line, limit, labelled=labelled)
        except ValueError as defect:
            raise DataError(source_name(path), f"{place(row, number)}: {defect}.") from None
        yield number, label, indices, values


def read_libsvm(
    path: str | Path,
    *,
    n_features: int | None = None,
    max_features: int = MAX_FEATURES,
    max_line: int = MAX_LINE,
    labelled: bool = True,
) -> LibsvmRows:
    """Return the rows of a LIBSVM file, plain or gzip, read line by line.

    Blank lines, and what follows ``#``, are passed over. Time and memory are linear in the accepted part of the file.

    Parameters
    ----------
    path : path
        The file.
    n_features : int, optional
        Number of features d; the largest index that occurs by default. A test file needs the d of its training file.
    max_features : int
        Largest index that is accepted where ``n_features`` is not given.
    max_line : int
        Longest line in bytes.
    labelled : bool
        Whether each line must begin with a label; otherwise it may.

    Returns
    -------
    LibsvmRows
        Sparse features, labels and line numbers.

    Raises
    ------
    DataError
        No such file or no rows; or a line that is too long, is binary, has a label or value that is no finite number,
        an index that is 0, too large or not above the one before. Row and line are named.
    InvalidInput
        A number is no whole one of at least 1, or the path none.

    References
    ----------
    C.-C. Chang and C.-J. Lin, LIBSVM: a library for support vector machines, ACM TIST 2 (2011).
    """
    from scipy.sparse import csr_array

    limit = whole("max_features", max_features)
    if n_features is not None:
        limit = whole("n_features", n_features, most=LARGEST_INDEX)
    max_line, labelled = whole("max_line", max_line), flag("labelled", labelled)
    labels, values, indices = array("d"), array("d"), array("i")
    ends, lines = array("q", [0]), array("q")
    for number, label, row_indices, row_values in parsed_lines(path, limit, max_line=max_line, labelled=labelled):
        labels.append(label)
        lines.append(number)
        indices.extend(row_indices)
        values.extend(row_values)
        ends.append(len(indices))
    if not lines:
        raise DataError(
            source_name(path), "the file has no rows; lines of the form 'label index:value ...' were expected."
        )
    columns = np.array(indices) - 1
    width = int(columns.max(initial=-1)) + 1 if n_features is None else limit
    if not width:
        raise DataError(
            source_name(path), "no row has a feature; lines of the form 'label index:value ...' were expected."
        )
    if n_features is None and width > _DENSE:
        _check_occurring(source_name(path), width, int(np.unique(columns).size))
    matrix = csr_array((np.array(values), columns, np.array(ends)), shape=(len(lines), width))
    return LibsvmRows(matrix, np.array(labels), np.array(lines))
