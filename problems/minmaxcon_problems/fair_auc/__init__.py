"""Fair AUC: classifiers that maximise AUC subject to AUC-based fairness constraints, from single samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minmaxcon_problems.fair_auc.surrogate.build import build_problem
from minmaxcon_problems.fair_auc.surrogate.constraint import AUCConstraint, AUCFamily, Layout
from minmaxcon_problems.fair_auc.surrogate.streaming import GroupWeights, stream_problem
from minmaxcon_problems.fair_auc.target.stream import stream_target_problem

from .bounds import least_kappa
from .datasets import DATASETS, Dataset, dataset_from, load_dataset
from .measured import Cell, Compared, GroupGap, Measured
from .metrics import METRICS, FairnessMetric, Subset, resolve_metric, true_gap
from .plugin import FairAUC, plugin

if TYPE_CHECKING:
    from .estimator import FairAUCClassifier, auc_gap_scorer, best_within, fair_auc_scorer, measure_scores

__all__ = [
    "DATASETS",
    "METRICS",
    "AUCConstraint",
    "AUCFamily",
    "Cell",
    "Compared",
    "Dataset",
    "FairAUC",
    "FairAUCClassifier",
    "FairnessMetric",
    "GroupGap",
    "GroupWeights",
    "Layout",
    "Measured",
    "Subset",
    "auc_gap_scorer",
    "best_within",
    "build_problem",
    "dataset_from",
    "fair_auc_scorer",
    "least_kappa",
    "load_dataset",
    "measure_scores",
    "plugin",
    "resolve_metric",
    "stream_problem",
    "stream_target_problem",
    "true_gap",
]


_WITH_SCIKIT_LEARN = frozenset(
    {"FairAUCClassifier", "auc_gap_scorer", "best_within", "fair_auc_scorer", "measure_scores"}
)


def __getattr__(name: str) -> Any:
    """Import the estimator and the scorers when they are first asked for, since they bring scikit-learn."""
    if name in _WITH_SCIKIT_LEARN:
        from . import estimator

        return getattr(estimator, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
