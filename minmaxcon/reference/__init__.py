"""Reference solutions by cvxpy and Clarabel: the prox of any generator, and exact solutions of whole problems.

They are slow and need the extra ``reference``; solvers never call them. This package alone imports cvxpy, on first use.
"""

from minmaxcon.reference.exact import ExactSolution, level_value, proximal_point, solve_exact
from minmaxcon.reference.prox import (
    dual_prox_objective,
    prox_objective,
    reference_dual_prox,
    reference_linear_minimum,
    reference_prox,
    reference_support,
)
from minmaxcon.reference.solver import ReferenceFailed, conic_minimum

__all__ = [
    "ExactSolution",
    "ReferenceFailed",
    "conic_minimum",
    "dual_prox_objective",
    "level_value",
    "prox_objective",
    "proximal_point",
    "reference_dual_prox",
    "reference_linear_minimum",
    "reference_prox",
    "reference_support",
    "solve_exact",
]
