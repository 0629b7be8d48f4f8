"""What a reader of a fair AUC result must be told, at the moment when it matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .metrics import FairnessMetric

__all__ = ["LARGE_GAP", "cautions", "target_cautions"]

LARGE_GAP = 0.05
"""A true gap above this is called out where the surrogate holds."""

_PARTS = {"train": "training", "test": "test"}
_ROUNDING = 1e-9


def cautions(metric: FairnessMetric, measured: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the sentences.

    Parameters
    ----------
    metric : FairnessMetric
        The metric.
    measured : sequence of mapping
        For each run the evaluation, with the surrogates' ``constraints`` :math:`f_i(x) - b_i`.
    """
    found = [
        "kappa bounds a quadratic surrogate and is no guarantee for the true gap of AUCs: read the true gap, not kappa."
    ]
    if metric.name == "intra_group":
        found.append(
            "The symmetric surrogate cannot make the intra-group gap small: on a9a its exact optimum keeps a true gap"
            " of at least 0.048 whatever kappa is, while the AUC drops."
        )
    for part, name in _PARTS.items():
        sentence = _large_gap(part, name, measured)
        if sentence:
            found.append(sentence)
    return found


def target_cautions(metric: FairnessMetric, measured: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the sentences for targets on the true gap: they are met where the model was fitted, and nowhere else.

    Parameters
    ----------
    metric : FairnessMetric
        The metric.
    measured : sequence of mapping
        For each run the evaluation, with ``constraints``, the true gap less its target.
    """
    found = [
        f"max_gap holds the {metric.name} gap on the training part; on new rows it varies as its interval says.",
    ]
    prices = [m["train"]["without_target"]["price"] for m in measured if "without_target" in m.get("train", {})]
    if prices:
        cost = f"{prices[0]:.4f}" if len(prices) == 1 else f"{min(prices):.4f} to {max(prices):.4f}"
        found.append(f"The price of fairness is {cost} of training AUC, against the model without a target.")
    return found


def _large_gap(part: str, name: str, measured: Sequence[Mapping[str, Any]]) -> str:
    """Say where the surrogate is met and the true gap of a part is large all the same."""
    kept = [m for m in measured if max(m["constraints"]) <= _ROUNDING]
    large = [m[part] for m in kept if part in m and m[part]["auc_gap"] > LARGE_GAP]
    if not large:
        return ""
    if len(measured) > 1:
        runs = f"in {len(large)} of {len(measured)} runs"
        return f"The surrogate is met, yet {runs} the true gap on the {name} part is above {LARGE_GAP:g}."
    low, high = large[0]["auc_gap_interval"]
    interval = f"95% interval {low:.3f} to {high:.3f}"
    return f"The surrogate is met, yet the true gap on the {name} part is {large[0]['auc_gap']:.3f} ({interval})."
