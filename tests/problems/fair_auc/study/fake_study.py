"""A study that costs nothing, whose numbers depend on their configuration alone."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon_problems.fair_auc.study.study import FairAUCStudy, Panel
from minmaxcon_problems.fair_auc.study.sweep import Configuration

GOALS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.17, 0.23, 0.3)
METHODS = ("max_gap", "level_set", "proxy_lagrangian", "correlation", "post_processing", "unconstrained")
DATA, METRICS, MODELS = ("a9a", "bank"), ("group", "intra_group"), ("linear", "mlp")
COST = {"max_gap": 0.25, "level_set": 0.5, "proxy_lagrangian": 0.7, "correlation": 1.1, "post_processing": 0.9}


def chosen(argument: str, asked: Sequence[str] | None, known: Sequence[str]) -> Sequence[str]:
    for name in asked or ():
        if name not in known:
            raise mm.UnknownName(argument, name, known)
    return known if asked is None else asked


class FakeStudy(FairAUCStudy):
    """A study of nothing; ``log`` gets a line for every run that was begun."""

    seeds = 3
    quick_seeds = 2

    def __init__(
        self, *, log: str = "", delay: float = 0.0, broken: str = "", data: Sequence[str] = DATA, steps: int = 20
    ) -> None:
        self.log, self.delay, self.broken, self.data, self.steps = log, delay, broken, tuple(data), steps

    def panels(
        self,
        data: Sequence[str] | None = None,
        metric: Sequence[str] | None = None,
        model: Sequence[str] | None = None,
    ) -> Sequence[Panel]:
        return [
            Panel(d, m, w)
            for w in chosen("model", model, MODELS)
            for d in chosen("data", data, self.data)
            for m in chosen("metric", metric, METRICS)
        ]

    def methods(self, panel: Panel) -> Sequence[str]:
        return [name for name in METHODS if name not in self.excluded(panel)]

    def excluded(self, panel: Panel) -> Mapping[str, str]:
        if panel.metric == "group":
            return {}
        return {
            "correlation": "it penalises a correlation, which only the group metric has.",
            "post_processing": "it would need the true labels of the rows that are scored.",
        }

    def settings(self, panel: Panel, method: str, quick: bool = False) -> Mapping[str, Any]:
        return {"steps": 10 if quick else self.steps, "goals": GOALS}

    def labels(self) -> Mapping[str, str]:
        return {"max_gap": "max gap (ours)", "group": "Group AUC"}

    def run(
        self, panel: Panel, method: str, seed: int, *, data_dir: Any = None, quick: bool = False
    ) -> Mapping[str, Any]:
        if self.log:
            with Path(self.log).open("a") as file:
                file.write(f"{panel.data}-{panel.metric}-{panel.model}-{method}-{seed} {os.getpid()}\n")
        if self.broken == "input":
            raise mm.DataError("rows.csv", "no such file; look at its name.")
        if self.broken == method:
            raise RuntimeError("first line\nsecond line")
        time.sleep(self.delay)
        words = f"{panel.data}{panel.metric}{panel.model}{seed}"
        rng = np.random.default_rng(zlib.crc32(words.encode()))
        # A product that the number of threads could change in its last bits.
        noise = rng.normal(size=(150, 150))
        top = 0.9 + 1e-3 * float((noise @ noise).std() / 12.2) + 0.003 * float(rng.normal())
        if method == "unconstrained":
            return {"status": "done", "points": [point("selected", 1.0, top, 0.14, rng)], "seconds": 1.0}
        cost = COST[method] * (0.5 if panel.model == "mlp" else 1.0)
        points = [
            point("selected", goal, top - cost * max(0.14 - goal, 0) ** 2 * 8, min(goal, 0.14), rng)
            for goal in (GOALS[::3] if quick else GOALS)
        ]
        if method == "max_gap":
            points += [
                point("target", goal, top - 0.3 * max(0.14 - goal, 0) ** 2 * 8, min(goal, 0.14), rng) for goal in GOALS
            ]
        return {"status": "done", "points": points, "seconds": 1.0}


def point(kind: str, asked: float, auc: float, gap: float, rng: Any) -> dict[str, Any]:
    parts = {}
    for part, spread in (("train", 0.0), ("validation", 0.004), ("test", 0.006)):
        found = abs(gap + spread * float(rng.normal()))
        parts[part] = {
            "auc": auc + 0.3 * spread * float(rng.normal()),
            "gap": found,
            "gap_interval": [max(found - 0.01, 0.0), found + 0.01],
        }
    return {"kind": kind, "asked": asked, **parts}


def configurations(seeds: int = 2, quick: bool = False) -> list[Configuration]:
    """Of four panels of one data set: those of one metric have six methods, the others four."""
    from minmaxcon_problems.fair_auc.study.report import plan  # which no worker needs, and which takes a third longer

    return plan(FakeStudy(), "fake", data=["a9a"], seeds=seeds, quick=quick).configurations
