"""Fair AUC: classifiers that maximise AUC subject to AUC-based fairness constraints, from single samples."""

from minmaxcon_problems.fair_auc.build import build_problem, least_kappa
from minmaxcon_problems.fair_auc.constraint import AUCConstraint, AUCFamily, Layout
from minmaxcon_problems.fair_auc.datasets import DATASETS, Dataset, dataset_from, load_dataset
from minmaxcon_problems.fair_auc.metrics import METRICS, FairnessMetric, resolve_metric, true_gap
from minmaxcon_problems.fair_auc.plugin import FairAUC, plugin
from minmaxcon_problems.fair_auc.streaming import GroupWeights, stream_problem
from minmaxcon_problems.fair_auc.subsets import Subset

__all__ = [
    "DATASETS",
    "METRICS",
    "AUCConstraint",
    "AUCFamily",
    "Dataset",
    "FairAUC",
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
    "true_gap",
]
