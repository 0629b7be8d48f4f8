"""Readers of tables, and the encoding of their columns as features."""

from minmaxcon.tables.blocks import TableBlocks
from minmaxcon.tables.bundled import wooldridge_columns
from minmaxcon.tables.columns import MAX_CATEGORIES, Column, Table, have_decimal_commas
from minmaxcon.tables.encoding import (
    ColumnEncoding,
    LibsvmEncoding,
    RowEncoding,
    TableEncoding,
    encoding_from_dict,
    fit_encoding,
    identifies_rows,
    require_categories,
)
from minmaxcon.tables.formats import column_names, file_format, read_source, read_texts
from minmaxcon.tables.libsvm import read_libsvm
from minmaxcon.tables.lines import existing_file, shown, source_name

__all__ = [
    "MAX_CATEGORIES",
    "Column",
    "ColumnEncoding",
    "LibsvmEncoding",
    "RowEncoding",
    "Table",
    "TableBlocks",
    "TableEncoding",
    "column_names",
    "encoding_from_dict",
    "existing_file",
    "file_format",
    "fit_encoding",
    "have_decimal_commas",
    "identifies_rows",
    "read_libsvm",
    "read_source",
    "read_texts",
    "require_categories",
    "shown",
    "source_name",
    "wooldridge_columns",
]
