"""Fair AUC: classifiers that maximise AUC subject to AUC-based fairness constraints, from single samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minmaxcon_problems.fair_auc.build import build_problem, least_kappa
from minmaxcon_problems.fair_auc.constraint import AUCConstraint, AUCFamily, Layout
from minmaxcon_problems.fair_auc.datasets import DATASETS, Dataset, dataset_from, load_dataset
from minmaxcon_problems.fair_auc.metrics import METRICS, FairnessMetric, resolve_metric, true_gap
from minmaxcon_problems.fair_auc.plugin import FairAUC, plugin
from minmaxcon_problems.fair_auc.streaming import GroupWeights, stream_problem
from minmaxcon_problems.fair_auc.subsets import Subset
from minmaxcon_problems.fair_auc.target_stream import stream_target_problem

if TYPE_CHECKING:
    from minmaxcon_problems.fair_auc.estimator import FairAUCClassifier

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
        from minmaxcon_problems.fair_auc.estimator import FairAUCClassifier

        return FairAUCClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
