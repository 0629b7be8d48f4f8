"""Solvers and oracles, and the one loop that drives them."""

from minmaxcon.solvers.conex import ConEx
from minmaxcon.solvers.extragradient import ExtraGradient
from minmaxcon.solvers.iqrc import IQRC
from minmaxcon.solvers.kkt import KKTResidual, Stationarity, kkt_residual, stationarity
from minmaxcon.solvers.loop import Progress, iterate, progress_bar, solve
from minmaxcon.solvers.mirror_prox import MirrorProx
from minmaxcon.solvers.named import named_solver, solver_names
from minmaxcon.solvers.primal_dual import PrimalDual
from minmaxcon.solvers.sfls import SFLS
from minmaxcon.solvers.smd import SMD
from minmaxcon.solvers.steps import Adaptive, InverseSqrt, StepRule, Theory
from minmaxcon.solvers.successive import SuccessiveApproximation
from minmaxcon.solvers.switching import SwitchingSubgradient
from minmaxcon.solvers.variance_reduced import VarianceReduced

__all__ = [
    "IQRC",
    "SFLS",
    "SMD",
    "Adaptive",
    "ConEx",
    "ExtraGradient",
    "InverseSqrt",
    "KKTResidual",
    "MirrorProx",
    "PrimalDual",
    "Progress",
    "Stationarity",
    "StepRule",
    "SuccessiveApproximation",
    "SwitchingSubgradient",
    "Theory",
    "VarianceReduced",
    "iterate",
    "kkt_residual",
    "named_solver",
    "progress_bar",
    "solve",
    "solver_names",
    "stationarity",
]
