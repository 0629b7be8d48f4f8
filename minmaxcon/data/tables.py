"""A user's file becomes labelled data: CSV, Parquet, LIBSVM or a data frame; nothing is filled in silently.

One policy for every column: a missing, infinite or unreadable cell is refused, and so is a column that mixes numbers
and texts; the message names file, row, line, column and remedy. Rows count from 1 without the heading.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from minmaxcon.data.columns import NUMBER, Column, Table
from minmaxcon.data.encoding import LibsvmEncoding, RowEncoding, fit_encoding
from minmaxcon.data.formats import file_format, read_source
from minmaxcon.data.labelled import LabelledData, group_of, label_of, require_all_cells
from minmaxcon.data.libsvm import LibsvmRows, read_libsvm
from minmaxcon.data.lines import existing_file, shown, source_name
from minmaxcon.errors import DataError, InvalidInput

__all__ = ["encode_rows", "read_table"]


def read_table(
    source: Any,
    *,
    label: str | None = None,
    sensitive: str | int,
    positive: object = None,
    protected: object = None,
    keep_sensitive: bool = False,
    n_features: int | None = None,
) -> LabelledData:
    """Return the labelled rows of a file or data frame.

    Parameters
    ----------
    source : path or data frame
        A ``.csv`` or ``.tsv`` file (separated by commas, semicolons or tabs), ``.parquet``, LIBSVM (``.libsvm``,
        ``.svm``, ``.txt``, ``.t`` or no suffix), text also with ``.gz``; or a pandas, polars or Arrow frame.
    label : str
        Column of the label, any two values; not for LIBSVM, whose label comes first on each line.
    sensitive : str or int
        Column of the sensitive attribute; for LIBSVM the 1-based index of a feature.
    positive : str or number, optional
        The positive value of the label. By default the larger of two numbers; of two texts the one among yes, true, 1
        and positive if just one is, else the later in lexicographic order.
    protected : str or number, optional
        The protected value of the sensitive column, against all others. By default, of two values, the one with fewer
        rows.
    keep_sensitive : bool
        Whether the sensitive column is also a feature.
    n_features : int, optional
        For LIBSVM only: the number of features, where the file may lack the last ones (a test file).

    Returns
    -------
    LabelledData
        ``label_values`` and ``group_values`` report the mapping. A column in which no value reads as a number has one
        0/1 feature per category, in lexicographic order; every other column is one feature. LIBSVM stays sparse.

    Raises
    ------
    DataError
        The file or its content cannot be used; one line names file, row, column and remedy.
    InvalidInput
        ``label`` is absent, given for a LIBSVM file, or the same as ``sensitive``; or ``sensitive`` is no feature index
        of a LIBSVM file.
    MissingDependency
        A Parquet file, and pyarrow is not installed.
    """
    if _is_libsvm(source):
        if label is not None:
            raise InvalidInput("label", label, "a LIBSVM file has its label first on each line; leave it out.")
        return _read_libsvm(source, sensitive, positive, protected, keep_sensitive, n_features)
    sensitive = str(sensitive)
    if label is None:
        raise InvalidInput("label", label, "name the column of the label; only a LIBSVM file has it in a fixed place.")
    if label == sensitive:
        raise InvalidInput("sensitive", sensitive, "is the label; the sensitive attribute must be another column.")
    table = read_source(source)
    label_column, group_column = table.column(label, "label"), table.column(sensitive, "sensitive")
    signs, label_values = label_of(table, label_column, positive)
    group, group_values = group_of(table, group_column, protected)
    require_all_cells(
        table.source, signs, group, names=(label, sensitive), label_values=label_values, group_values=group_values
    )
    unused = {label} if keep_sensitive else {label, sensitive}
    encoding = fit_encoding(table, [name for name in table.columns if name not in unused])
    features = encoding.encode_table(table)
    names = encoding.feature_names
    return LabelledData(features, signs, group, names, label_values, group_values, table.source, encoding)


def encode_rows(source: Any, encoding: RowEncoding) -> Any:
    """Return the features (n, d) of new rows, encoded as the training data were.

    Columns are found by name; others are ignored, so that the label and (unless it is a feature) the sensitive column
    may be there or not.

    Parameters
    ----------
    source : path or data frame
        As for :func:`read_table`.
    encoding : RowEncoding
        ``LabelledData.encoding`` of the training data.

    Raises
    ------
    DataError
        A column is absent, or a cell is missing, not finite, of the wrong kind or an unknown category: row and column
        are named.
    """
    return encoding.encode(source)


def _is_libsvm(source: Any) -> bool:
    return isinstance(source, str | Path) and file_format(existing_file(source)) == "libsvm"


def _read_libsvm(
    path: str | Path,
    sensitive: str | int,
    positive: object,
    protected: object,
    keep_sensitive: bool,
    n_features: int | None,
) -> LabelledData:
    try:
        index = int(sensitive)
    except ValueError:
        raise InvalidInput("sensitive", sensitive, "in a LIBSVM file give the 1-based index of a feature.") from None
    rows = read_libsvm(path, n_features=n_features)
    n, d = rows.features.shape
    if not 1 <= index <= d:
        raise InvalidInput(
            "sensitive", sensitive, f"{source_name(path)} has features 1 to {d}; give the index of one of them."
        )
    label_name, group_name = "label", f"feature {index}"
    table = Table(
        source_name(path),
        {
            label_name: _numeric(label_name, rows.labels),
            group_name: _numeric(group_name, _dense_column(rows, index - 1)),
        },
        n,
        rows.lines,
    )
    signs, label_values = label_of(table, table.columns[label_name], positive)
    group, group_values = group_of(table, table.columns[group_name], protected)
    require_all_cells(
        source_name(path),
        signs,
        group,
        names=(label_name, group_name),
        label_values=label_values,
        group_values=group_values,
    )
    encoding = LibsvmEncoding(d, None if keep_sensitive else index)
    if not encoding.feature_names:
        raise DataError(
            source_name(path), f"no feature is left beside the sensitive one, {shown(index)}; the file needs another."
        )
    features = encoding.keep(rows.features)
    names = encoding.feature_names
    return LabelledData(features, signs, group, names, label_values, group_values, source_name(path), encoding)


def _dense_column(rows: LibsvmRows, index: int) -> Any:
    return np.asarray(rows.features[:, [index]].toarray()).ravel()


def _numeric(name: str, numbers: Any) -> Column:
    return Column(name, numbers, np.full(len(numbers), NUMBER, dtype=np.int32), ())
