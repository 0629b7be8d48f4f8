"""The methods of the literature that the paper compares with, on the same data, models and selection."""

from minmaxcon_problems.fair_auc.baselines.base import Baseline, GradientBaseline
from minmaxcon_problems.fair_auc.baselines.correlation import CorrelationPenalty
from minmaxcon_problems.fair_auc.baselines.post_processing import PostProcessing, TransformedTrack
from minmaxcon_problems.fair_auc.baselines.proxy_lagrangian import ProxyLagrangian
from minmaxcon_problems.fair_auc.baselines.track import Track, best_feasible
from minmaxcon_problems.fair_auc.baselines.unconstrained import Unconstrained

__all__ = [
    "BASELINES",
    "Baseline",
    "CorrelationPenalty",
    "GradientBaseline",
    "PostProcessing",
    "ProxyLagrangian",
    "Track",
    "TransformedTrack",
    "Unconstrained",
    "best_feasible",
]

BASELINES: dict[str, type[Baseline]] = {
    kind.name: kind for kind in (Unconstrained, CorrelationPenalty, ProxyLagrangian, PostProcessing)
}
"""The baselines by name; each is constructed without arguments."""
