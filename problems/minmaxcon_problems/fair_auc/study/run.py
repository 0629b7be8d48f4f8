"""One configuration of the paper's experiments: data, metric, model, method and seed, to a record of its front."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.metrics import auc_gap_with_interval, auc_with_interval
from minmaxcon_problems.fair_auc.baselines import (
    Baseline,
    CorrelationPenalty,
    PostProcessing,
    ProxyLagrangian,
    Track,
    Unconstrained,
    best_feasible,
)
from minmaxcon_problems.fair_auc.datasets import Dataset, load_dataset
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.metrics import FairnessMetric, resolve_metric

from .effort import FULL, QUICK
from .ours import GOALS, TargetTrack, track_level_sets, track_targets

__all__ = ["METHODS", "load_parts", "run_configuration"]

METHODS = ("max_gap", "level_set", "proxy_lagrangian", "correlation", "post_processing", "unconstrained")
"""Ours: targets on the true gap, and the paper's level sets; then the baselines."""

_PENALTIES = (0.03, 0.1, 0.2, 0.4, 0.8, 1.5, 3.0, 6.0)
_LEAST_AUC = 0.52
"""A candidate that ranks no better than chance is not worth selecting, however fair."""


def load_parts(name: str, seed: int, data_dir: Any = None) -> Dataset:
    """Return a data set with a validation part: for a9a 10% of the training rows, as in the paper."""
    whole = load_dataset(name, data_dir=data_dir, seed=seed)
    if whole.validation is not None:
        return whole
    order = np.random.default_rng(seed).permutation(len(whole.train))
    held = len(order) // 10
    return Dataset(
        whole.name,
        whole.train.select(order[held:]),
        whole.train.select(order[:held]),
        whole.test,
        whole.notes,
        whole.standardizer,
    )


def run_configuration(
    data: str, metric: str, model: str, method: str, seed: int, *, data_dir: Any = None, quick: bool = False
) -> Mapping[str, Any]:
    """Train and select; return what the tables and figures need.

    Parameters
    ----------
    data, metric : str
        Names.
    model : {"linear", "mlp"}
        The scoring model.
    method : str
        A name of :data:`METHODS`.
    seed : int
        Seed of split, start and batches.
    data_dir : path, optional
        Folder of the data files.
    quick : bool
        :data:`QUICK` work instead of :data:`FULL`.

    Returns
    -------
    mapping
        ``points``, one for each asked gap and kind: ``"selected"``, the best model on validation data of all that were
        passed, as in the paper; and for ``"max_gap"`` also ``"target"``, the model whose *training* gap is the target,
        which needs no validation data. Each has AUC and true gap on all parts.
    """
    began = time.perf_counter()
    parts, measure = load_parts(data, seed, data_dir), resolve_metric(metric)
    effort = QUICK if quick else FULL
    features = parts.train.features.shape[1]
    scorer: mm.Model = mm.Linear(features) if model == "linear" else mm.mlp(features)
    points: list[dict[str, Any]] = []
    if method == "max_gap":
        found = track_targets(parts, measure, model=scorer, seed=seed, effort=effort)
        points += _targets(found, parts, measure, scorer)
        tracks = [*found.tracks]
    elif method == "level_set":
        tracks = [track_level_sets(parts, measure, model=scorer, seed=seed, effort=effort)]
    else:
        tracks = [_baseline(method, effort.baseline).fit(parts, measure, _strengths(method), model=scorer, seed=seed)]
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
        "seconds": time.perf_counter() - began,
    }


def _baseline(method: str, steps: int) -> Baseline:
    if method == "post_processing":
        return PostProcessing(base=Unconstrained(steps=steps))
    kinds = {"unconstrained": Unconstrained, "correlation": CorrelationPenalty, "proxy_lagrangian": ProxyLagrangian}
    if method not in kinds:
        raise mm.UnknownName("method", method, METHODS)
    return kinds[method](steps=steps)


def _strengths(method: str) -> Sequence[float]:
    return {"correlation": _PENALTIES, "proxy_lagrangian": GOALS}.get(method, (0.0,))


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
    masks = metric.masks(rows.label, rows.group)
    gap = auc_gap_with_interval(scores, (masks[:, 0], masks[:, 1]), (masks[:, 2], masks[:, 3]))
    accuracy = auc_with_interval(scores[rows.label > 0], scores[rows.label < 0])
    return {
        "auc": float(accuracy.value),
        "auc_interval": [float(accuracy.lower), float(accuracy.upper)],
        "gap": float(gap.value),
        "gap_interval": [float(gap.lower), float(gap.upper)],
    }
