"""Oracles for level problems, and their step rules."""

from minmaxcon.oracles.extragradient import ExtraGradient
from minmaxcon.oracles.mirror_prox import MirrorProx
from minmaxcon.oracles.smd import SMD
from minmaxcon.oracles.step_rules import Adaptive, InverseSqrt, StepRule, Theory
from minmaxcon.oracles.variance_reduced import VarianceReduced

__all__ = [
    "SMD",
    "Adaptive",
    "ExtraGradient",
    "InverseSqrt",
    "MirrorProx",
    "StepRule",
    "Theory",
    "VarianceReduced",
]
