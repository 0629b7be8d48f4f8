"""Which configurations the paper's section of experiments has, and how its figures call them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

import minmaxcon as mm
from minmaxcon_problems.fair_auc.baselines import BASELINES
from minmaxcon_problems.fair_auc.datasets import DATASETS
from minmaxcon_problems.fair_auc.metrics import METRICS, resolve_metric

from .effort import FULL, QUICK
from .ours import BEYOND, GOALS, KAPPAS
from .run import METHODS, run_configuration

__all__ = ["FairAUCStudy"]

_DATA = ("a9a", "bank", "compas")
_METRICS = ("group", "inter_group", "intra_group")
_MODELS = ("linear", "mlp")


class FairAUCStudy(mm.Study):
    """Three data sets, three metrics, two models; two methods of ours and four baselines."""

    quick_seeds = 1

    def panels(
        self,
        data: Sequence[str] | None = None,
        metric: Sequence[str] | None = None,
        model: Sequence[str] | None = None,
    ) -> Sequence[mm.Panel]:
        """See :meth:`minmaxcon.Study.panels`; by default those of the paper, on request any named data and metric."""
        names = (
            _known("data", data, _DATA, DATASETS),
            _known("metric", metric, _METRICS, METRICS),
            _known("model", model, _MODELS, _MODELS),
        )
        return [mm.Panel(*chosen) for chosen in product(*names)]

    def methods(self, panel: mm.Panel) -> Sequence[str]:
        """See :meth:`minmaxcon.Study.methods`."""
        excluded = self.excluded(panel)
        return [method for method in METHODS if method not in excluded]

    def excluded(self, panel: mm.Panel) -> Mapping[str, str]:
        """See :meth:`minmaxcon.Study.excluded`."""
        metric = resolve_metric(panel.metric)
        reasons = {name: kind().applies_to(metric) for name, kind in BASELINES.items()}
        return {name: reason for name, reason in reasons.items() if reason}

    def run(
        self, panel: mm.Panel, method: str, seed: int, *, data_dir: Any = None, quick: bool = False
    ) -> Mapping[str, Any]:
        """See :meth:`minmaxcon.Study.run`."""
        return run_configuration(panel.data, panel.metric, panel.model, method, seed, data_dir=data_dir, quick=quick)

    def settings(self, quick: bool = False) -> Mapping[str, Any]:
        """See :meth:`minmaxcon.Study.settings`."""
        return {**asdict(QUICK if quick else FULL), "goals": GOALS, "beyond_goals": BEYOND, "kappas": KAPPAS}

    def labels(self) -> Mapping[str, str]:
        """See :meth:`minmaxcon.Study.labels`."""
        return {
            "max_gap": "max_gap (ours)",
            "level_set": "level set (the paper's)",
            "proxy_lagrangian": "proxy-Lagrangian",
            "correlation": "correlation penalty",
            "post_processing": "post-processing",
            "group": "group AUC",
            "inter_group": "inter-group",
            "intra_group": "intra-group",
            "compas": "COMPAS",
            "mlp": "network",
        }


def _known(argument: str, asked: Sequence[str] | None, default: Sequence[str], all_names: Any) -> Sequence[str]:
    for name in asked or ():
        if name not in all_names:
            raise mm.UnknownName(argument, name, tuple(all_names))
    return tuple(asked) if asked else default
