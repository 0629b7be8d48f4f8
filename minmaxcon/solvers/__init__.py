"""Solvers, and the one loop that drives them."""

from minmaxcon.solvers.averaging import ConEx, PrimalDual, SwitchingSubgradient
from minmaxcon.solvers.iqrc import IQRC
from minmaxcon.solvers.loop import Progress, ends_together, iterate, progress_bar, progress_lines, solve
from minmaxcon.solvers.named import AUTO, automatic, named_solver, solver_names
from minmaxcon.solvers.sfls import SFLS
from minmaxcon.solvers.stationarity import KKTResidual, Stationarity, kkt_residual, stationarity
from minmaxcon.solvers.successive import SuccessiveApproximation

__all__ = [
    "AUTO",
    "IQRC",
    "SFLS",
    "ConEx",
    "KKTResidual",
    "PrimalDual",
    "Progress",
    "Stationarity",
    "SuccessiveApproximation",
    "SwitchingSubgradient",
    "automatic",
    "ends_together",
    "iterate",
    "kkt_residual",
    "named_solver",
    "progress_bar",
    "progress_lines",
    "solve",
    "solver_names",
    "stationarity",
]
