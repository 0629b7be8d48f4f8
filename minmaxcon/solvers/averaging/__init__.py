"""Methods whose answer is a weighted average of the iterates of a Lagrangian game."""

from minmaxcon.solvers.averaging.conex import ConEx
from minmaxcon.solvers.averaging.primal_dual import PrimalDual
from minmaxcon.solvers.averaging.switching import SwitchingSubgradient

__all__ = ["ConEx", "PrimalDual", "SwitchingSubgradient"]
