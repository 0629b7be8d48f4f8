"""Our two methods as tracks of candidates: targets on the true gap, and the paper's level sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import to_numpy
from minmaxcon_problems.fair_auc.baselines import Track
from minmaxcon_problems.fair_auc.datasets import Dataset
from minmaxcon_problems.fair_auc.metrics import FairnessMetric
from minmaxcon_problems.fair_auc.surrogate.build import build_problem
from minmaxcon_problems.fair_auc.target.objectives import named_objective
from minmaxcon_problems.fair_auc.target.problem import NO_TARGET, build_target_problem, signed_bounds

from .effort import FULL, Effort

__all__ = ["BEYOND", "GOALS", "KAPPAS", "TargetTrack", "track_level_sets", "track_targets"]

GOALS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.17, 0.23, 0.3)
"""Targets on the true gap, the bounds of every method."""

BEYOND = (0.0, -0.01, -0.02, -0.035, -0.055, -0.08, -0.11)
"""Signed training gaps on the other side, candidates for data on which the gap is larger than in training."""

KAPPAS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.45, 0.7, 1.0)
"""Bounds of the quadratic surrogate."""

_MARGIN = 2e-4
_REFRESH = 8
"""Steps between two matrices of a network's curvature, which take most of the time where there are many features."""

_EAGER = 3.0
"""Damping of a network's second path, a tenth of the default: it gains more AUC, where it does not learn by heart.

On the validation parts of seed 0 the second path was the better one for bank, group and inter-group, and COMPAS; the
first one, by far, for bank, intra-group. So both are candidates, and validation data choose.
"""


@dataclass(frozen=True, slots=True)
class TargetTrack:
    """The candidates of a path of targets, and the models that it ends in.

    Attributes
    ----------
    tracks : tuple of Track
        Every accepted point, for selection on validation data; of a network on two paths.
    solution : Solution
        That of the first path; its first runs are those of :data:`GOALS`, the others those of :data:`BEYOND`, if any.
    """

    tracks: tuple[Track, ...]
    solution: mm.Solution


def track_targets(
    dataset: Dataset,
    metric: FairnessMetric,
    *,
    model: mm.Model,
    seed: int,
    objective: str = "auc",
    effort: Effort = FULL,
) -> TargetTrack:
    """Solve for all targets, and keep what was passed on the way.

    A linear model starts from the solution without a target. For a network two paths are kept: one starts from a model
    that has hardly been trained, since one that fits without a target knows small groups by heart already; the other
    from the solution without a target, with less damping.

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
    effort : Effort
        How many steps.
    """

    def path(steps: int, goals: Any, damping: float | None, trained: bool) -> tuple[Track, mm.Solution]:
        """Solve without a target, then for all of them, from there or from a model that has hardly been trained."""
        problem = build_target_problem(
            dataset.train,
            metric,
            NO_TARGET,
            objective=objective,
            model=model,
            radius=50.0 if objective == "logistic" else 10.0,
            seed=seed,
            damping=damping,
            warmup_steps=effort.warmup,
        )
        solver = mm.SuccessiveApproximation(
            iterations=steps,
            tolerance=named_objective(objective).tolerance,
            margin=_MARGIN,
            refresh=1 if linear else _REFRESH,
        )
        free = mm.solve(problem, solver, seed=seed)
        points: list[Any] = []

        def keep(progress: mm.Progress) -> None:
            points.append(np.asarray(to_numpy(progress.state.x), dtype=np.float32)[:, : model.dimension])

        sided = signed_bounds(problem, free.x, goals)
        solution = mm.solve(sided, solver, seed=seed, x0=free.x if trained else None, callbacks=[keep])
        unbound = np.broadcast_to(np.asarray(free.x, dtype=np.float32)[: model.dimension], points[0].shape)
        kept = np.stack([unbound, *points[:: max(1, len(points) // 50)], points[-1]])
        return Track(model, kept, goals, np.arange(len(kept))), solution

    linear = isinstance(model, mm.Linear)
    goals = np.array((*GOALS, *BEYOND) if linear or effort.beyond else GOALS)
    if linear:
        track, solution = path(effort.linear, goals, None, True)
        return TargetTrack((track,), solution)
    first, solution = path(effort.network, goals, None, False)
    second, _ = path(effort.eager, np.array(GOALS), _EAGER, True)
    return TargetTrack((first, second), solution)


def track_level_sets(
    dataset: Dataset,
    metric: FairnessMetric,
    kappas: Sequence[float] = KAPPAS,
    *,
    model: mm.Model,
    seed: int,
    effort: Effort = FULL,
) -> Track:
    r"""Solve the paper's problem for all kappas in one solve, and keep the iterate after every level.

    SFLS for a linear model; for a network IQRC around it, with :math:`\hat\rho = 1` in the place of the paper's 1e-5.

    Parameters
    ----------
    dataset, metric, model, seed, effort
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
    solver: mm.Solver = (
        mm.SFLS(oracle=mm.SMD(steps=effort.levels), levels=12)
        if linear
        else mm.IQRC(oracle=mm.SFLS(oracle=mm.SMD(steps=effort.network_levels), levels=4), iterations=effort.proximal)
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
