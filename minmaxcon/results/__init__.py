"""Results: records of solves, folders, saved models, figures and comparisons."""

from minmaxcon.results.comparison import Comparison, Entry, as_data, compare, comparison_text, path_rows
from minmaxcon.results.comparison_figure import comparison_figure
from minmaxcon.results.figures import OKABE_ITO, empty_figure, png, style_axes, trace_figure
from minmaxcon.results.folders import check_file, check_folder, leftover, remove_leftovers, write_file, write_folder
from minmaxcon.results.machine import describe_machine, environment, load_average, one_thread
from minmaxcon.results.parallel import in_parallel
from minmaxcon.results.records import (
    RunRecord,
    RunsRecord,
    certificate_text,
    csv_text,
    interval_text,
    measure,
    plain,
    read_result,
    record,
    to_json,
    versions,
)
from minmaxcon.results.saved_models import checked_arrays, model_bytes, read_model

__all__ = [
    "OKABE_ITO",
    "Comparison",
    "Entry",
    "RunRecord",
    "RunsRecord",
    "as_data",
    "certificate_text",
    "check_file",
    "check_folder",
    "checked_arrays",
    "compare",
    "comparison_figure",
    "comparison_text",
    "csv_text",
    "describe_machine",
    "empty_figure",
    "environment",
    "in_parallel",
    "interval_text",
    "leftover",
    "load_average",
    "measure",
    "model_bytes",
    "one_thread",
    "path_rows",
    "plain",
    "png",
    "read_model",
    "read_result",
    "record",
    "remove_leftovers",
    "style_axes",
    "to_json",
    "trace_figure",
    "versions",
    "write_file",
    "write_folder",
]
