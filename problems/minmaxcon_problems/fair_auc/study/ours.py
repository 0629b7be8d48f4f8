"""Our two methods as tracks of candidates: targets on the true gap, and the paper's level sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import to_numpy
from minmaxcon_problems.fair_auc.baselines import Track
from minmaxcon_problems.fair_auc.build import build_problem
from minmaxcon_problems.fair_auc.metrics import FairnessMetric
from minmaxcon_problems.fair_auc.objectives import named_objective
from minmaxcon_problems.fair_auc.partition import Dataset
from minmaxcon_problems.fair_auc.target_path import NO_TARGET, signed_bounds
from minmaxcon_problems.fair_auc.target_problem import build_target_problem

__all__ = ["GOALS", "KAPPAS", "TargetTrack", "track_level_sets", "track_targets"]

GOALS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.17, 0.23, 0.3)
"""Targets on the true gap, the bounds of every method."""

BEYOND = (0.0, -0.01, -0.02, -0.035, -0.055, -0.08, -0.11)
"""Signed training gaps on the other side, candidates for data on which the gap is larger than in training."""

KAPPAS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.45, 0.7, 1.0)
"""Bounds of the quadratic surrogate."""

_MARGIN = 2e-4
_NETWORK_STEPS = 40


@dataclass(frozen=True, slots=True)
class TargetTrack:
    """The candidates of a path of targets, and the models that it ends in.

    Attributes
    ----------
    track : Track
        Every accepted point, for selection on validation data.
    solution : Solution
        Its runs are those of :data:`GOALS`, then of the goals beyond.
    """

    track: Track
    solution: mm.Solution


def track_targets(
    dataset: Dataset, metric: FairnessMetric, *, model: mm.Model, seed: int, objective: str = "auc", quick: bool = False
) -> TargetTrack:
    """Solve for all targets from the model without one, and keep what was passed on the way.

    Parameters
    ----------
    dataset : Dataset
        The data.
    metric : FairnessMetric
        The fairness metric.
    model : Model
        The scoring model.
    seed : int
        Seed of a network's start.
    objective : {"auc", "quadratic_auc", "logistic"}
        What is minimised.
    quick : bool
        A third of the outer steps.
    """
    linear = isinstance(model, mm.Linear)
    most = 200 if linear else _NETWORK_STEPS
    iterations = max(most // 3, 10) if quick else most
    problem = build_target_problem(
        dataset.train,
        metric,
        NO_TARGET,
        objective=objective,
        model=model,
        radius=50.0 if objective == "logistic" else 10.0,
        seed=seed,
    )
    solver = mm.SuccessiveApproximation(
        iterations=iterations, tolerance=named_objective(objective).tolerance, margin=_MARGIN
    )
    free = mm.solve(problem, solver, seed=seed)
    sided = signed_bounds(problem, free.x, (*GOALS, *BEYOND))
    points: list[Any] = []

    def keep(progress: mm.Progress) -> None:
        points.append(np.asarray(to_numpy(progress.state.x), dtype=np.float32)[:, : model.dimension])

    solution = mm.solve(sided, solver, seed=seed, x0=free.x, callbacks=[keep])
    start = np.broadcast_to(np.asarray(free.x, dtype=np.float32)[: model.dimension], points[0].shape)
    kept = np.stack([start, *points[:: max(1, len(points) // 50)], points[-1]])
    track = Track(model, kept, np.array((*GOALS, *BEYOND)), np.arange(len(kept)))
    return TargetTrack(track, solution)


def track_level_sets(
    dataset: Dataset,
    metric: FairnessMetric,
    kappas: Sequence[float] = KAPPAS,
    *,
    model: mm.Model,
    seed: int,
    quick: bool = False,
) -> Track:
    r"""Solve the paper's problem for all kappas in one solve, and keep the iterate after every level.

    SFLS for a linear model; for a network IQRC around it, with :math:`\hat\rho = 1` in the place of the paper's 1e-5.

    Parameters
    ----------
    dataset, metric, model, seed, quick
        As for :func:`track_targets`.
    kappas : sequence of float
        Bounds of the surrogate.
    """
    linear = isinstance(model, mm.Linear)
    problem = build_problem(
        dataset,
        metric,
        list(kappas),
        model=model,
        seed=seed,
        engine="numpy" if linear else "torch",
        dtype="float64" if linear else "float32",
    )
    cut = 3 if quick else 1
    solver: mm.Solver = (
        mm.SFLS(oracle=mm.SMD(steps=2000 // cut), levels=12)
        if linear
        else mm.IQRC(oracle=mm.SFLS(oracle=mm.SMD(steps=500 // cut), levels=4), iterations=10)
    )
    points: list[Any] = []
    seen: list[int] = [0]

    def keep(progress: mm.Progress) -> None:
        rows = len(progress.state.trace)
        if rows > seen[0]:  # a level, or an outer step, has ended
            seen[0] = rows
            points.append(np.asarray(to_numpy(progress.state.x), dtype=np.float32)[:, : model.dimension])

    mm.solve(problem, solver, seed=seed, callbacks=[keep])
    return Track(model, np.stack(points), np.array(kappas), np.arange(len(points)))
