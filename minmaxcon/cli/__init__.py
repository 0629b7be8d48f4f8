"""The command line, ``minmaxcon COMMAND``: a module for each command."""

from minmaxcon.cli.main import main

__all__ = ["main"]
