"""Solvers and oracles."""

from minmaxcon.solvers.smd import SMD
from minmaxcon.solvers.steps import Adaptive, InverseSqrt, StepRule, Theory

__all__ = ["SMD", "Adaptive", "InverseSqrt", "StepRule", "Theory"]
