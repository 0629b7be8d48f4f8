"""Sources of samples: finite, streaming, and readers of files."""

from minmaxcon.data.finite import Finite

__all__ = ["Finite"]
