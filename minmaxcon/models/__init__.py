"""Scoring models as one flat parameter vector."""

from minmaxcon.models.base import Model
from minmaxcon.models.linear import Linear
from minmaxcon.models.module import MLP, TorchModule, mlp

__all__ = ["MLP", "Linear", "Model", "TorchModule", "mlp"]
