"""The methods of the literature that the paper compares with, on the same data, models and selection."""

from .base import Baseline, GradientBaseline
from .correlation import CorrelationPenalty
from .post_processing import PostProcessing, TransformedTrack
from .proxy_lagrangian import ProxyLagrangian
from .track import Track, best_feasible
from .unconstrained import Unconstrained

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
