"""Successive approximation of true measures by surrogates that are refreshed at every step."""

from minmaxcon.solvers.successive.solver import SuccessiveApproximation

__all__ = ["SuccessiveApproximation"]
