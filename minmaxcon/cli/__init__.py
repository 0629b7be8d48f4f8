"""The command line: ``minmaxcon demo | problems | data | solve | predict | pareto | reproduce | bench``."""

from minmaxcon.cli.main import main

__all__ = ["main"]
