"""Runs of the study: the work put into each method, our two methods as tracks of candidates, and one configuration."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.arrays import to_numpy
from minmaxcon.metrics import auc_with_interval
from minmaxcon_problems.fair_auc.baselines import (
    Baseline,
    CorrelationPenalty,
    PostProcessing,
    ProxyLagrangian,
    Track,
    Unconstrained,
    best_feasible,
)
from minmaxcon_problems.fair_auc.datasets import DATASETS, VARIABLE, Dataset, load_dataset
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.metrics import FairnessMetric, resolve_metric, true_gap_with_interval
from minmaxcon_problems.fair_auc.surrogate.build import build_problem
from minmaxcon_problems.fair_auc.target.problem import NO_TARGET, Target, build_target_problem, signed_bounds

from .own_rows import OwnRows

__all__ = [
    "BEYOND",
    "CANDIDATES",
    "FULL",
    "GOALS",
    "KAPPAS",
    "METHODS",
    "NETWORK_DAMPING",
    "NETWORK_REACH",
    "QUICK",
    "Effort",
    "TargetTrack",
    "load_parts",
    "run_configuration",
    "thinned_together",
    "track_level_sets",
    "track_targets",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Numbers of steps.

    ``linear`` and ``network`` are the outer steps towards the targets, of a linear model and on each path of a network;
    ``warmup`` and ``network_warmup`` those on the quadratic loss before. ``beyond`` says whether a network, too, is
    asked for gaps on the other side. ``levels`` are oracle steps a level of a linear model's level sets;
    ``network_levels`` and ``proximal`` oracle steps a level, and proximal steps, of a network's; ``baseline`` the steps
    of every baseline.
    """

    linear: int
    network: int
    warmup: int
    network_warmup: int
    beyond: bool
    levels: int
    network_levels: int
    proximal: int
    baseline: int


FULL = Effort(
    linear=200,
    network=25,
    warmup=60,
    network_warmup=20,
    beyond=True,
    levels=2000,
    network_levels=400,
    proximal=8,
    baseline=4000,
)

QUICK = Effort(
    linear=50,
    network=10,
    warmup=15,
    network_warmup=8,
    beyond=False,
    levels=500,
    network_levels=125,
    proximal=6,
    baseline=1000,
)


GOALS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.17, 0.23, 0.3)
"""Targets on the true gap, the bounds of every method."""

BEYOND = (0.0, -0.01, -0.02, -0.035, -0.055, -0.08, -0.11)
"""Signed training gaps on the other side, candidates for data on which the gap is larger than in training."""

KAPPAS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.45, 0.7, 1.0)
"""Bounds of the quadratic surrogate."""

CANDIDATES = 720
"""Models that validation data choose from, at most, for every method, panel and seed."""

PAPER_WEIGHT = 1e-5
r"""The paper's proximal weight :math:`\hat\rho` for networks."""

_MARGIN = 2e-4
_REFRESH = 8
"""Steps between two matrices of a network's curvature, which take most of the time where there are many features."""

_LINEAR_REACH, NETWORK_REACH = 0.1, 1.0
"""First trust regions. Damping makes the steps of a network short, and where they are shortened further all targets
share one path for as long as there are steps."""

_NETWORK_TOLERANCE = 1e-6
"""Damping makes the fall that first-order optimality promises a small part of what many steps bring."""

NETWORK_DAMPING = (3.0, 30.0)
"""Damping of a network's two paths: little of it fits more in as many steps, much of it overfits small groups less.

Chosen on eight data sets that are not in the study, in three metrics and two splits (``docs/figures/damping.py``).
The first path's last models are those that are shown without selection.
"""


@dataclass(frozen=True, slots=True)
class TargetTrack:
    """The candidates of a path of targets, and the models that it ends in.

    ``tracks`` hold every accepted point, for selection on validation data; of a network on two paths. ``solution`` is
    that of the first path: its first runs are those of :data:`GOALS`, the others those of :data:`BEYOND`, if any.
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
    dampings: Sequence[float] = NETWORK_DAMPING,
) -> TargetTrack:
    """Solve for all targets, and keep what was passed on the way.

    A linear model starts from the solution without a target. A network starts from a model that has hardly been
    trained, since one that fits without a target has overfitted small groups already, and validation data could choose
    no earlier one; it takes a path of each of the ``dampings``. The seed is that of a network's start; the
    objective is one of "auc", "quadratic_auc" and "logistic".
    """

    def path(steps: int, damping: float | None) -> tuple[Track, mm.Solution]:
        """Solve without a target, then for all of them, from there or from a model that has hardly been trained.

        That model is what steps on the quadratic loss lead to.
        """
        target = Target(
            metric=metric,
            max_gap=NO_TARGET,
            objective=objective,
            model=model,
            radius=50.0 if objective == "logistic" else 10.0,
            seed=seed,
            damping=damping,
            warmup_steps=effort.warmup if linear else effort.network_warmup,
        )
        problem = build_target_problem(dataset.train, target)
        solver = mm.SuccessiveApproximation(
            iterations=steps,
            tolerance=target.objective.tolerance if linear else _NETWORK_TOLERANCE,
            margin=_MARGIN,
            refresh=1 if linear else _REFRESH,
            reach=_LINEAR_REACH if linear else NETWORK_REACH,
        )
        hardly: list[Any] = []
        points: list[Any] = []

        def begin(progress: mm.Progress) -> None:
            if progress.state.first is None and not hardly:  # before come the steps on the quadratic loss
                hardly.append(np.asarray(to_numpy(progress.state.x), dtype=np.float64)[0])

        def keep(progress: mm.Progress) -> None:
            points.append(np.asarray(to_numpy(progress.state.x), dtype=np.float32)[:, : model.dimension])

        free = mm.solve(problem, solver, seed=seed, callbacks=[begin])
        sided = signed_bounds(problem, free.x, goals)
        solution = mm.solve(sided, solver, seed=seed, x0=free.x if linear else hardly[0], callbacks=[keep])
        unbound = np.broadcast_to(np.asarray(free.x, dtype=np.float32)[: model.dimension], points[0].shape)
        kept = np.stack([unbound, *points[:: max(1, len(points) // 50)], points[-1]])
        return Track(model, kept, goals, np.arange(len(kept))), solution

    linear = isinstance(model, mm.Linear)
    goals = np.array((*GOALS, *BEYOND) if linear or effort.beyond else GOALS)
    paths = [path(effort.linear, None)] if linear else [path(effort.network, one) for one in dampings]
    return TargetTrack(tuple(track for track, _ in paths), paths[0][1])


def track_level_sets(
    dataset: Dataset,
    metric: FairnessMetric,
    kappas: Sequence[float] = KAPPAS,
    *,
    model: mm.Model,
    seed: int,
    weight: float | None = None,
    effort: Effort = FULL,
) -> Track:
    r"""Solve the problem of the quadratic surrogate for all kappas in one solve, and keep what was passed on the way.

    SFLS for a linear model; for a network IQRC around it, with the proximal ``weight`` :math:`\hat\rho`, None for one
    that adapts. Kept are, at every hundredth step, the best point of each run and the average that its query has
    reached.
    """
    linear = isinstance(model, mm.Linear)
    problem = build_problem(
        dataset,
        metric,
        list(kappas),
        model=model,
        seed=seed,
        engine=model.engine,
        dtype="float64" if linear else "float32",
    )
    points: list[Any] = []

    def keep(*found: Any) -> None:
        points.extend(np.asarray(to_numpy(x), dtype=np.float32)[:, : model.dimension] for x in found)

    def of_level_sets(best: Any, runs: Any, sfls: mm.SFLS, state: Any) -> None:
        """Keep what a level-set solve of some of the runs has found, beside the ``best`` points (R, d) of all."""
        found, reached = to_numpy(best).copy(), to_numpy(best).copy()
        found[runs] = to_numpy(state.x)
        if state.query is not None:
            reached[runs[state.active]] = to_numpy(sfls.oracle.estimate(state.query).x)
        keep(found, reached)

    if linear:
        sfls = mm.SFLS(oracle=mm.SMD(steps=effort.levels), levels=12, growth=1.1)
        every = np.arange(len(kappas))
        for state in mm.iterate(problem, sfls, seed=seed):
            of_level_sets(state.x, every, sfls, state)
    else:
        sfls = mm.SFLS(oracle=mm.SMD(steps=effort.network_levels), levels=2, growth=1.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mm.WeakConvexityWarning)  # the paper's weight is below the modulus
            outer = mm.IQRC(oracle=sfls, weight=weight, iterations=effort.proximal)
            for state in mm.iterate(problem, outer, seed=seed):
                if state.inner is None:
                    keep(state.x)
                else:
                    of_level_sets(state.x, state.active, sfls.take(state.active), state.inner)
    return Track(model, np.stack(points), np.array(kappas), np.arange(len(points)))


METHODS = (
    "max_gap",
    "level_set_adaptive",
    "level_set",
    "proxy_lagrangian",
    "correlation",
    "post_processing",
    "unconstrained",
)
"""Ours, targets on the true gap and level sets with a weight that adapts; the paper's level sets; the baselines."""

_PENALTIES = (0.03, 0.1, 0.2, 0.4, 0.8, 1.5, 3.0, 6.0)
_LEAST_AUC = 0.52
"""A candidate that ranks no better than chance is not worth selecting, however fair."""


@lru_cache(maxsize=5)
def _loaded(name: str, data_dir: Any, _variable: str | None, seed: int) -> Dataset:
    """Return a data set; a process that runs one configuration after the other reads it once."""
    return load_dataset(name, data_dir=data_dir, seed=seed)


def load_parts(name: str, seed: int, data_dir: Any = None) -> Dataset:
    """Return a data set with a validation part: where it has none 10% of the training rows, as the paper has of a9a."""
    whole = _loaded(
        name, data_dir, os.environ.get(VARIABLE), 0 if name in DATASETS and DATASETS[name].own_split else seed
    )
    if whole.validation is not None:
        return whole
    order = np.random.default_rng(seed).permutation(len(whole.train))
    held = len(order) // 10
    return replace(whole, train=whole.train.select(order[held:]), validation=whole.train.select(order[:held]))


def run_configuration(
    data: str,
    metric: str,
    model: str,
    method: str,
    seed: int,
    *,
    data_dir: Any = None,
    quick: bool = False,
    rows: OwnRows | None = None,
) -> Mapping[str, Any]:
    """Train and select; return what the tables and figures need.

    The seed is that of split, start and batches; ``quick`` does :data:`QUICK` work instead of :data:`FULL`; ``rows``
    are files of one's own, called ``data``. Of the models that a method passed at most :data:`CANDIDATES`, evenly
    spaced in time, are candidates, and ``candidates`` counts them. The result has ``points``, one for each asked gap
    and kind: ``"selected"``, the best candidate on validation data, as in the paper; and for ``"max_gap"`` also
    ``"target"``, the model whose *training* gap is the target, which needs no validation data. Each has AUC and true
    gap on all parts.
    """
    began = time.perf_counter()
    parts = load_parts(data, seed, data_dir) if rows is None else rows.parts(seed)
    measure = resolve_metric(metric)
    effort = QUICK if quick else FULL
    features = parts.train.features.shape[1]
    scorer: mm.Model = mm.Linear(features) if model == "linear" else mm.mlp(features)
    points: list[dict[str, Any]] = []
    if method == "max_gap":
        found = track_targets(parts, measure, model=scorer, seed=seed, effort=effort)
        points += _targets(found, parts, measure, scorer)
        tracks = [*found.tracks]
    elif method in ("level_set", "level_set_adaptive"):
        weight = PAPER_WEIGHT if method == "level_set" else None
        tracks = [track_level_sets(parts, measure, model=scorer, seed=seed, weight=weight, effort=effort)]
    else:
        strengths = {"correlation": _PENALTIES, "proxy_lagrangian": GOALS}.get(method, (0.0,))
        tracks = [_baseline(method, effort.baseline).fit(parts, measure, strengths, model=scorer, seed=seed)]
    tracks = thinned_together(tracks, CANDIDATES)
    asked = (1.0,) if method == "unconstrained" else GOALS
    points += _selected(tracks, parts, measure, asked)
    return {
        "data": data,
        "metric": metric,
        "model": model,
        "method": method,
        "seed": seed,
        "quick": quick,
        "status": "done",
        "points": points,
        "candidates": sum(track.candidates for track in tracks),
        "seconds": time.perf_counter() - began,
    }


def thinned_together(tracks: Sequence[Track], most: int) -> list[Track]:
    """Return the tracks with at most ``most`` candidates in all; what a short one leaves over goes to the others."""
    found, left = list(tracks), most
    for rank, place in enumerate(sorted(range(len(found)), key=lambda k: found[k].candidates)):
        found[place] = found[place].thinned(left // (len(found) - rank))
        left -= found[place].candidates
    return found


def _baseline(method: str, steps: int) -> Baseline:
    """Return a baseline that passes as many candidates as others: ``moments`` count twice, for iterate and average."""
    if method == "post_processing":  # 120 models, of which the best is transformed in 16 x 37 = 592 ways
        return PostProcessing(base=Unconstrained(steps=steps, moments=20), factor_step=1 / 3, shift_step=1 / 6)
    kinds = {"unconstrained": Unconstrained, "correlation": CorrelationPenalty, "proxy_lagrangian": ProxyLagrangian}
    if method not in kinds:
        raise mm.UnknownName("method", method, METHODS)
    runs = {"correlation": len(_PENALTIES), "proxy_lagrangian": len(GOALS)}.get(method, 1)
    kind = kinds[method]
    return kind(steps=steps, moments=CANDIDATES // (2 * runs * len(kind().rates)))


def _selected(
    tracks: Sequence[Track], parts: Dataset, metric: FairnessMetric, asked: Sequence[float]
) -> list[dict[str, Any]]:
    """For each asked gap the candidate, of all tracks, that is feasible and best on validation data."""
    validation = parts.validation
    if validation is None:
        raise mm.DataError(parts.name, "has no validation part to select models by.")
    judged = [track.evaluate(validation, metric) for track in tracks]
    accuracy = np.concatenate([np.where(auc > _LEAST_AUC, auc, np.nan).ravel() for auc, _ in judged])
    gap = np.concatenate([gap.ravel() for _, gap in judged])
    starts = np.cumsum([0, *(auc.size for auc, _ in judged)])
    points, known = [], {}
    for target in asked:
        place = best_feasible(accuracy, gap, target)[0]
        if place not in known:
            which = int(np.searchsorted(starts, place, side="right")) - 1
            track = tracks[which]
            t, r = np.unravel_index(place - starts[which], judged[which][0].shape)
            known[place] = {
                name: _measured(track.scores(rows, int(t), int(r)), rows, metric) for name, rows in _rows(parts)
            }
        points.append({"kind": "selected", "asked": float(target), **known[place]})
    return points


def _targets(found: TargetTrack, parts: Dataset, metric: FairnessMetric, model: mm.Model) -> list[dict[str, Any]]:
    """For each target the model that it ends in."""
    points = []
    for g, target in enumerate(GOALS):
        weight = np.asarray(found.solution.x)[g, : model.dimension]
        scored = [(name, model.predict(weight, rows.features), rows) for name, rows in _rows(parts)]
        measured: dict[str, Any] = {name: _measured(scores, rows, metric) for name, scores, rows in scored}
        status = str(found.solution.status[g])
        points.append({"kind": "target", "asked": float(target), **measured, "status": status})
    return points


def _rows(parts: Dataset) -> list[tuple[str, LabelledData]]:
    named = (("train", parts.train), ("validation", parts.validation), ("test", parts.test))
    return [(name, rows) for name, rows in named if rows is not None]


def _measured(scores: Any, rows: LabelledData, metric: FairnessMetric) -> dict[str, Any]:
    gap = true_gap_with_interval(scores, rows.label, rows.group, metric)
    accuracy = auc_with_interval(scores[rows.label > 0], scores[rows.label < 0])
    return {
        "auc": float(accuracy.value),
        "auc_interval": [float(accuracy.lower), float(accuracy.upper)],
        "gap": float(gap.value),
        "gap_interval": [float(gap.lower), float(gap.upper)],
    }
