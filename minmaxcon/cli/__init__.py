"""The command line, ``minmaxcon COMMAND``: a module for each command, and what the commands of plug-ins are made of."""

from minmaxcon.cli.main import main
from minmaxcon.cli.options import Flag, Place, Whole, names_of, one_line, wholes_of, words_of
from minmaxcon.cli.output import Output, ProgressLine, paragraphs, table, wrapped
from minmaxcon.cli.solve import CAUTIONS, Finished, finish, load

__all__ = [
    "CAUTIONS",
    "Finished",
    "Flag",
    "Output",
    "Place",
    "ProgressLine",
    "Whole",
    "finish",
    "load",
    "main",
    "names_of",
    "one_line",
    "paragraphs",
    "table",
    "wholes_of",
    "words_of",
    "wrapped",
]
