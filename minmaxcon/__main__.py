"""``python -m minmaxcon``: the command line, as launchers of several processes call it."""

import sys

from minmaxcon.cli import main

if __name__ == "__main__":
    sys.exit(main())
