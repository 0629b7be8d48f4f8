"""Damping of a network's paths to its targets, on data sets that the study of the paper does not have.

``python docs/figures/damping.py [SPLITS] [DATA ...]`` trains networks as ``minmaxcon pareto`` does, with paths of
several dampings, and prints by how much their hypervolume on test is above that of the proxy-Lagrangian: of each path's
last models, and of what validation data select from the candidates of one path, or of two. The data are those of
``fair_models.py``, with one group of each against the rest, and 60%, 20% and 20% of the rows in the three parts.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from fair_models import DATA, METRICS, hypervolume

import minmaxcon as mm
from minmaxcon.cli.output import table
from minmaxcon.solvers import ends_together
from minmaxcon_problems.fair_auc.baselines import ProxyLagrangian
from minmaxcon_problems.fair_auc.datasets import Dataset, stratified_parts
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.metrics import resolve_metric
from minmaxcon_problems.fair_auc.study import runs

DAMPINGS = (0.3, 3.0, 30.0)
GROUPS: dict[str, Callable[[Any], Any]] = {
    "recid": lambda group: group == "black",
    "labsup": lambda group: group == "black",
    "cps91": lambda group: group == "black",
    "happiness": lambda group: np.char.startswith(group, "woman"),
    "benefits": lambda group: np.char.startswith(group, "female"),
    "arrests": lambda group: group == "Black",
    "smokeban": lambda group: np.char.startswith(group, "female"),
    "hi": lambda group: group == "black",
}


def parts_of(name: str, seed: int) -> Dataset:
    """Return the three parts of a data set, standardised."""
    features, label, group = DATA[name]()
    mine = GROUPS[name](np.asarray(group).astype(str))
    names = tuple(f"x{j}" for j in range(features.shape[1]))
    rows = LabelledData(features, np.where(label > 0, 1, -1), np.where(mine, 1, -1), names, name=name)
    train, test = stratified_parts(rows, (0.8, 0.2), seed)
    train, validation = stratified_parts(train, (0.75, 0.25), seed)
    return Dataset(name, train, validation, test).standardized()


def volume(points: list[dict[str, Any]]) -> float:
    """Return the hypervolume of points on test."""
    return hypervolume([(point["test"]["auc"], point["test"]["gap"]) for point in points])


def measured(name: str, metric_name: str, seed: int) -> dict[str, float]:
    """Return by how much each way is above the proxy-Lagrangian."""
    parts, metric = parts_of(name, seed), resolve_metric(metric_name)
    model = mm.mlp(parts.train.features.shape[1])

    def selected(tracks: Any) -> float:
        thin = runs.thinned_together(tracks, runs.CANDIDATES)
        return volume(runs._selected(thin, parts, metric, runs.GOALS))

    moments = runs.CANDIDATES // (2 * len(runs.GOALS) * len(ProxyLagrangian().rates))
    rival = ProxyLagrangian(steps=runs.FULL.baseline, moments=moments)
    base = selected([rival.fit(parts, metric, runs.GOALS, model=model, seed=seed)])
    found, tracks = {}, {}
    for damping in DAMPINGS:
        path = runs.track_targets(parts, metric, model=model, seed=seed, dampings=(damping,))
        found[f"last models, {damping:g}"] = volume(runs._targets(path, parts, metric, model)) - base
        tracks[damping] = path.tracks[0]
    for count in (1, 2):
        for chosen in itertools.combinations(DAMPINGS, count):
            words = " and ".join(f"{damping:g}" for damping in chosen)
            found[f"selected, {words}"] = selected([tracks[damping] for damping in chosen]) - base
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("splits", nargs="?", type=int, default=2, help="splits of each data set")
    parser.add_argument("data", nargs="*", default=list(GROUPS), help=f"data sets, by default {', '.join(GROUPS)}")
    asked = parser.parse_args()
    if unknown := set(asked.data) - set(GROUPS):
        parser.error(f"there is no data set {unknown.pop()!r}")
    warnings.simplefilter("ignore")
    cases = list(itertools.product(asked.data, METRICS, range(asked.splits)))
    with ends_together(all_or_nothing=True):
        every = [measured(*case) for case in cases]
    rows = []
    for way in every[0]:
        apart = np.array([one[way] for one in every])
        error = apart.std(ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else float("nan")
        each = [
            f"{np.mean([gain for gain, case in zip(apart, cases, strict=True) if case[0] == name]):+.3f}"
            for name in asked.data
        ]
        rows.append([way, f"{apart.mean():+.4f} ± {error:.4f}", *each])
    print(table([["models of damping", "less the proxy-Lagrangian", *asked.data], *rows], left=1))


if __name__ == "__main__":
    main()
