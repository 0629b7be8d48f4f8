"""Scoring models as one flat parameter vector."""

from minmaxcon.models.base import Model
from minmaxcon.models.linear import Linear

__all__ = ["Linear", "Model"]
