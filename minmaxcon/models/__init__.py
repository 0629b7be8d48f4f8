"""Scoring models as one flat parameter vector, losses of their scores, and risks as objectives and constraints."""

from minmaxcon.models.base import Model
from minmaxcon.models.linear import Linear
from minmaxcon.models.losses import LogisticLoss, Loss, SquaredLoss
from minmaxcon.models.module import MLP, TorchModule, mlp
from minmaxcon.models.risks import GroupRisk, Risk

__all__ = [
    "MLP",
    "GroupRisk",
    "Linear",
    "LogisticLoss",
    "Loss",
    "Model",
    "Risk",
    "SquaredLoss",
    "TorchModule",
    "mlp",
]
