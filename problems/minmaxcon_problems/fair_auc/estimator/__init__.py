"""Fair AUC as a scikit-learn estimator."""

from .classifier import FairAUCClassifier

__all__ = ["FairAUCClassifier"]
