"""The paper's experiments, and ours beside them."""

from minmaxcon_problems.fair_auc.study.run import METHODS, load_parts, run_configuration
from minmaxcon_problems.fair_auc.study.study import FairAUCStudy

__all__ = ["METHODS", "FairAUCStudy", "load_parts", "run_configuration"]
