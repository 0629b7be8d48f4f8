"""Readers of tables, and the encoding of their columns as features."""

from minmaxcon.tables.blocks import TableBlocks
from minmaxcon.tables.bundled import wooldridge_columns
from minmaxcon.tables.columns import Column, Table
from minmaxcon.tables.encoding import (
    ColumnEncoding,
    LibsvmEncoding,
    RowEncoding,
    TableEncoding,
    encoding_from_dict,
    fit_encoding,
    require_categories,
)
from minmaxcon.tables.formats import file_format, read_source, read_texts
from minmaxcon.tables.libsvm import read_libsvm
from minmaxcon.tables.lines import existing_file, shown, source_name

__all__ = [
    "Column",
    "ColumnEncoding",
    "LibsvmEncoding",
    "RowEncoding",
    "Table",
    "TableBlocks",
    "TableEncoding",
    "encoding_from_dict",
    "existing_file",
    "file_format",
    "fit_encoding",
    "read_libsvm",
    "read_source",
    "read_texts",
    "require_categories",
    "shown",
    "source_name",
    "wooldridge_columns",
]
