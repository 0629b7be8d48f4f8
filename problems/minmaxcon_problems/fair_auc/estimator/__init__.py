"""Fair AUC as a scikit-learn estimator, and its measures as functions and scorers for scikit-learn's tools."""

from .classifier import FairAUCClassifier
from .measures import auc_gap_scorer, best_within, fair_auc_scorer, measure_scores

__all__ = ["FairAUCClassifier", "auc_gap_scorer", "best_within", "fair_auc_scorer", "measure_scores"]
