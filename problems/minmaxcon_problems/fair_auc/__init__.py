"""Fair AUC: classifiers that maximise AUC subject to AUC-based fairness constraints, from single samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minmaxcon_problems.fair_auc.surrogate.build import build_problem
from minmaxcon_problems.fair_auc.surrogate.constraint import AUCConstraint, AUCFamily, Layout
from minmaxcon_problems.fair_auc.surrogate.streaming import GroupWeights, stream_problem
from minmaxcon_problems.fair_auc.target.stream import stream_target_problem

from .bounds import least_kappa
from .datasets import DATASETS, Dataset, dataset_from, load_dataset
from .metrics import METRICS, FairnessMetric, Subset, resolve_metric, true_gap
from .plugin import FairAUC, plugin

if TYPE_CHECKING:
    from .estimator import FairAUCClassifier

__all__ = [
    "DATASETS",
    "METRICS",
    "AUCConstraint",
    "AUCFamily",
    "Dataset",
    "FairAUC",
    "FairAUCClassifier",
    "FairnessMetric",
    "GroupWeights",
    "Layout",
    "Subset",
    "build_problem",
    "dataset_from",
    "least_kappa",
    "load_dataset",
    "plugin",
    "resolve_metric",
    "stream_problem",
    "stream_target_problem",
    "true_gap",
]


def __getattr__(name: str) -> Any:
    """Import the estimator when it is first asked for, since it brings scikit-learn."""
    if name == "FairAUCClassifier":
        from .estimator import FairAUCClassifier

        return FairAUCClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
