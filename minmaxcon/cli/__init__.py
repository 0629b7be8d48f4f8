"""The command line: ``minmaxcon demo | problems | data | solve | predict | bench``."""

from minmaxcon.cli.main import main

__all__ = ["main"]
