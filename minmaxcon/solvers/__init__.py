"""Solvers and oracles, and the one loop that drives them."""

from minmaxcon.solvers.iqrc import IQRC
from minmaxcon.solvers.loop import Progress, iterate, progress_bar, solve
from minmaxcon.solvers.sfls import SFLS
from minmaxcon.solvers.smd import SMD
from minmaxcon.solvers.steps import Adaptive, InverseSqrt, StepRule, Theory
from minmaxcon.solvers.successive import SuccessiveApproximation

__all__ = [
    "IQRC",
    "SFLS",
    "SMD",
    "Adaptive",
    "InverseSqrt",
    "Progress",
    "StepRule",
    "SuccessiveApproximation",
    "Theory",
    "iterate",
    "progress_bar",
    "solve",
]
