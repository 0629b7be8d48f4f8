"""Points of a problem with a true measure: steps to them, and what is seen from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.arrays import Array, namespace
from minmaxcon.core import MinMaxProblem, Observation, RefreshedProblem
from minmaxcon.core.constraint import family_of
from minmaxcon.core.linearisation import exact_gradients, exact_values

__all__ = ["gradients_at", "moved", "observe", "refined"]


def refined(problem: MinMaxProblem, x: Array) -> Array:
    """Set the variables whose minimiser is known."""
    return family_of([problem.objective]).refine(x, problem.data)


def moved(problem: MinMaxProblem, x: Array, direction: Any) -> Array:
    """Step, go back into X, and set the variables whose minimiser is known."""
    primal: Any = problem.primal  # Euclidean, as the solver needs
    return refined(problem, primal.project(x + namespace(x).asarray(direction, x)))


def observe(problem: RefreshedProblem, x: Array, runs: Any) -> tuple[Any, Any, Any, Observation]:
    """Return objective (R,), true :math:`t_i - b_i` (R, m), by how much these exceed their smooth forms, and more.

    The third is of shape (R, 1 + m), the objective first; the last is the observation, which makes surrogates.
    """
    observation = problem.measure.observe(x)
    if observation.objective is None:
        objective = exact_values(family_of([problem.objective]), x, problem.data)[:, 0]
        offset = np.zeros_like(objective)
    else:
        objective, smooth = (np.asarray(part, dtype=np.float64) for part in observation.objective)
        offset = objective - smooth
    bounds = problem.bounds()
    mine = bounds if problem.runs is None else bounds[runs]
    true = np.asarray(observation.values, dtype=np.float64)
    bias = np.concatenate([offset[:, None], true - observation.smoothed], axis=1)
    return objective, true - mine, bias, observation


def gradients_at(problem: RefreshedProblem, x: Array, observation: Observation) -> Any:
    """Return the gradients (R, 1 + m, d) of the objective and of the surrogates at x, where they were made."""
    objective = observation.objective_surrogate() or problem.objective
    return exact_gradients(family_of([objective, *observation.surrogates()]), x, problem.data)[1]
