"""The paper's experiments, and ours beside them."""

from .runs import METHODS, load_parts, run_configuration
from .study import FairAUCStudy

__all__ = ["METHODS", "FairAUCStudy", "load_parts", "run_configuration"]
