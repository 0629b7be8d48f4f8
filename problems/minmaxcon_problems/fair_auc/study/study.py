"""The paper's experiments: panels, methods and seeds, the run of one configuration, and what figures call them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import minmaxcon as mm
from minmaxcon_problems.fair_auc.baselines import BASELINES
from minmaxcon_problems.fair_auc.datasets import DATASETS
from minmaxcon_problems.fair_auc.metrics import METRICS, resolve_metric

from .own_rows import OwnRows
from .runs import (
    BEYOND,
    CANDIDATES,
    FULL,
    GOALS,
    KAPPAS,
    METHODS,
    NETWORK_DAMPING,
    NETWORK_REACH,
    PAPER_WEIGHT,
    QUICK,
    run_configuration,
)

__all__ = ["FairAUCStudy", "Panel"]

_DATA = ("a9a", "bank", "compas")
_METRICS = ("group", "inter_group", "intra_group")
_MODELS = ("linear", "mlp")


@dataclass(frozen=True, slots=True, order=True)
class Panel:
    """One panel of a figure of fronts: all that methods have in common when they are compared."""

    data: str
    metric: str
    model: str


_LEVEL_SETS = ("network_levels", "proximal", "kappas")
_SETTINGS = {
    ("max_gap", True): ("linear", "warmup", "beyond_goals"),
    ("max_gap", False): ("network", "network_damping", "network_warmup", "network_reach", "beyond", "beyond_goals"),
    ("level_set", True): ("levels", "kappas"),
    ("level_set", False): (*_LEVEL_SETS, "paper_weight"),
    ("level_set_adaptive", False): _LEVEL_SETS,
}
"""Names of the settings that a run depends on, by method and by whether the model is linear; a baseline depends on its
number of steps alone."""


class FairAUCStudy:
    """Three data sets, three metrics, two models; two methods of ours, the paper's, and four baselines.

    ``own`` names ours; ``apart`` those that read the group of the person who is scored, which are shown but not
    compared with the others. It pickles, since configurations run in several processes, and :meth:`run` depends on its
    arguments alone. Seeds are 0 to n - 1, n = ``seeds`` by default and ``quick_seeds`` with ``--quick``. ``rows`` are
    files of one's own, whose name is then that of a panel's data.
    """

    rows: OwnRows | None = None
    seeds = 5
    quick_seeds = 1
    own = ("max_gap", "level_set_adaptive")
    apart = tuple(name for name, kind in BASELINES.items() if kind.reads_group)

    def __init__(self, rows: OwnRows | None = None) -> None:
        self.rows = rows

    def panels(
        self,
        data: Sequence[str] | None = None,
        metric: Sequence[str] | None = None,
        model: Sequence[str] | None = None,
    ) -> Sequence[Panel]:
        """Return the panels with these names: by default those of the paper, on request any named data and metric.

        Raises UnknownName.
        """
        own = [] if self.rows is None else [self.rows.name]
        names = (
            _known("data", data, _DATA, [*DATASETS, *own]),
            _known("metric", metric, _METRICS, METRICS),
            _known("model", model, _MODELS, _MODELS),
        )
        return [Panel(*chosen) for chosen in product(*names)]

    def methods(self, panel: Panel) -> Sequence[str]:
        """Return the methods that apply to a panel, in the order in which they are shown."""
        excluded = self.excluded(panel)
        return [method for method in METHODS if method not in excluded]

    def excluded(self, panel: Panel) -> Mapping[str, str]:
        """Return the methods that do not apply to a panel, each with the reason."""
        metric = resolve_metric(panel.metric)
        reasons = {name: kind().applies_to(metric) for name, kind in BASELINES.items()}
        if panel.model == "linear":
            reasons["level_set_adaptive"] = "linear models make the problem convex, and SFLS has no proximal weight."
        return {name: reason for name, reason in reasons.items() if reason}

    def run(
        self, panel: Panel, method: str, seed: int, *, data_dir: Any = None, quick: bool = False
    ) -> Mapping[str, Any]:
        """Run one configuration, see :func:`run_configuration`."""
        words = (panel.data, panel.metric, panel.model, method, seed)
        return run_configuration(*words, data_dir=data_dir, quick=quick, rows=self.rows)

    def settings(self, panel: Panel, method: str, quick: bool = False) -> Mapping[str, Any]:
        """Return what a run of a method on a panel depends on beside its arguments, such as numbers of steps, for JSON.

        It is written into the file of each configuration, and a file that other settings have made is refused.
        """
        known = asdict(QUICK if quick else FULL) | {
            "goals": GOALS,
            "beyond_goals": BEYOND,
            "kappas": KAPPAS,
            "candidates": CANDIDATES,
            "paper_weight": PAPER_WEIGHT,
            "network_damping": NETWORK_DAMPING,
            "network_reach": NETWORK_REACH,
        }
        names = _SETTINGS.get((method, panel.model == "linear"), ("baseline",))
        own = {} if self.rows is None else {"rows": self.rows.settings()}
        return {**{name: known[name] for name in (*names, "goals", "candidates")}, **own}

    def labels(self) -> Mapping[str, str]:
        """Return what figures and tables call data sets, metrics, models and methods; other names stand as they are."""
        return {
            "max_gap": "max_gap (ours)",
            "level_set_adaptive": "level set (ours)",
            "level_set": "level set (the paper's)",
            "proxy_lagrangian": "proxy-Lagrangian",
            "correlation": "correlation penalty",
            "post_processing": "post-processing (reads the group)",
            "group": "group AUC",
            "inter_group": "inter-group",
            "intra_group": "intra-group",
            "compas": "COMPAS",
            "mlp": "network",
            **({} if self.rows is None else {self.rows.name: self.rows.name}),
        }


def _known(argument: str, asked: Sequence[str] | None, default: Sequence[str], all_names: Any) -> Sequence[str]:
    for name in asked or ():
        if name not in all_names:
            raise mm.UnknownName(argument, name, tuple(all_names))
    return tuple(asked) if asked else default
