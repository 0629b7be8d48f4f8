"""Sources of samples, and readers of files."""

from minmaxcon.data.bundled import wooldridge_columns, wooldridge_frame
from minmaxcon.data.encoding import ColumnEncoding, TableEncoding, encoding_from_dict, fit_encoding
from minmaxcon.data.finite import Finite
from minmaxcon.data.formats import read_csv, read_frame
from minmaxcon.data.labelled import LabelledData, group_of, label_of
from minmaxcon.data.lines import existing_file
from minmaxcon.data.splits import Standardizer, split_indices, stratified_split_indices
from minmaxcon.data.stream import BadPoint, Preparation, Stream
from minmaxcon.data.tables import encode_rows, read_table
from minmaxcon.data.weights import population_weights

__all__ = [
    "BadPoint",
    "ColumnEncoding",
    "Finite",
    "LabelledData",
    "Preparation",
    "Standardizer",
    "Stream",
    "TableEncoding",
    "encode_rows",
    "encoding_from_dict",
    "existing_file",
    "fit_encoding",
    "group_of",
    "label_of",
    "population_weights",
    "read_csv",
    "read_frame",
    "read_table",
    "split_indices",
    "stratified_split_indices",
    "wooldridge_columns",
    "wooldridge_frame",
]
