"""The fair AUC problem of a data set, a metric and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.checks import positive
from minmaxcon_problems.fair_auc.datasets import Dataset
from minmaxcon_problems.fair_auc.metrics import FairnessMetric

from .constraint import AUCConstraint, Layout

__all__ = ["assemble", "build_problem", "checked_kappa", "least_kappa", "pair_masks"]


LARGEST_KAPPA = 1e6


def least_kappa(c1: float, c2: float) -> float:
    r"""Return :math:`2c_1c_2^2 - 1`, below which no model satisfies both constraints.

    Their maximum is at least :math:`2c_1c_2^2` whatever the scores.
    """
    return 2.0 * c1 * c2**2 - 1.0


def pair_masks(label: Any, metric: FairnessMetric, group: Any) -> list[tuple[Any, Any]]:
    """Return the boolean masks (G, G') of the five pairs: one of the objective, two of each constraint."""
    first, first_other, second, second_other = metric.masks(label, group).T
    positive = np.asarray(label) > 0
    return [
        (positive, ~positive),
        (first_other, first),
        (second, second_other),
        (second_other, second),
        (first, first_other),
    ]


def build_problem(
    dataset: Dataset,
    metric: FairnessMetric,
    kappa: Any,
    *,
    c1: float = 0.5,
    c2: float = 1.0,
    radius: float = 10.0,
    model: mm.Model | None = None,
    seed: int = 0,
    engine: str = "numpy",
    dtype: str = "float64",
) -> mm.MinMaxProblem:
    r"""Build the problem: maximise a surrogate of AUC subject to both sides of the fairness surrogate.

    Parameters
    ----------
    dataset : Dataset
        The data; the problem is about ``dataset.train``.
    metric : FairnessMetric
        The four subsets.
    kappa : float or array_like (R,)
        :math:`\kappa`; both bounds are :math:`1 + \kappa`.
    c1, c2 : float
        Scale and margin of the quadratic loss; only :math:`(1 + \kappa)/(c_1c_2^2)` and radius/c2 matter for models
        that are homogeneous in their parameters.
    radius : float
        Radius of the ball of parameters, in the units in which the model is trained.
    model : Model, optional
        Linear by default.
    seed : int
        Seed of the starting parameters of a network.
    engine, dtype : str
        Array engine and precision.

    Returns
    -------
    MinMaxProblem
        With x = (w, a_0, b_0, ..., a_4, b_4).

    Raises
    ------
    InvalidInput
        If a number is out of range; a kappa below the least feasible one is refused with that number.
    DataError
        If one of the metric's subsets is empty in the training data.
    """
    bounds = checked_kappa(kappa, c1, c2)
    train = dataset.train
    metric.require_members(metric.masks(train.label, train.group), train.name)
    masks = pair_masks(train.label, metric, train.group)
    slots = [mask for pair in masks for mask in pair]
    weights = np.stack([mask / mask.mean() for mask in slots], axis=1)
    features = train.features
    model = mm.Linear(features.shape[1]) if model is None else model
    data = mm.Finite({"features": features, "weights": weights}, engine=engine, dtype=dtype)

    means = np.stack([np.asarray(features[mask].mean(axis=0)).ravel() for mask in slots])
    details = {"dataset": dataset, "metric": metric, "kappa": kappa, "c1": c1, "c2": c2, "model": model}
    return assemble(
        data,
        model,
        means,
        bounds,
        c1=c1,
        c2=c2,
        radius=radius,
        name=f"{dataset.name}, {metric.name}",
        details=details,
        seed=seed,
    )


def assemble(
    data: mm.Source,
    model: mm.Model,
    means: Any,
    bounds: Any,
    *,
    c1: float,
    c2: float,
    radius: float,
    name: str,
    details: Mapping[str, Any],
    seed: int = 0,
) -> mm.MinMaxProblem:
    r"""Put the problem together from a source of features and slot weights.

    Parameters
    ----------
    data : Source
        Batches with ``features`` (B, p) and ``weights`` (B, 10).
    model : Model
        The scoring model.
    means : ndarray (10, p)
        Mean features of each slot's group, which size the sets: :math:`I_{ab}` bounds a mean score,
        :math:`I_\alpha` a difference of the two of a pair.
    bounds : float or ndarray (R,)
        :math:`1 + \kappa`.
    c1, c2, radius : float
        As for :func:`build_problem`.
    name : str
        For reports.
    details : mapping
        Kept with the problem.
    seed : int
        Seed of the starting parameters.

    Raises
    ------
    InvalidInput
        If a number is out of range.
    """
    c1, c2, radius = positive("c1", c1), positive("c2", c2), positive("radius", radius)
    reach = float(np.max(model.score_bound(radius, means[::2] - means[1::2])))
    offset = float(np.max(model.score_bound(radius, means)))
    reach, offset = max(reach, 1e-6), max(offset, 1e-6)  # a metric that no score can tell apart still needs a set
    layout = Layout(model, len(means) // 2, c1, c2, radius)
    size = len(means)
    sides = (([1, 2], "AUC(G1,G1') not above AUC(G2,G2')"), ([3, 4], "AUC(G2,G2') not above AUC(G1,G1')"))
    return mm.MinMaxProblem(
        objective=AUCConstraint(layout, [0], reach, name="AUC surrogate"),
        constraints=[AUCConstraint(layout, pairs, reach, bounds, side) for pairs, side in sides],
        primal=mm.product([mm.Ball(model.dimension, radius), mm.Box([-offset] * size, [offset] * size)]),
        data=data,
        start=np.concatenate([model.start(seed), np.zeros(size)]),
        name=f"fair_auc: {name}",
        details=details,
    )


def checked_kappa(kappa: Any, c1: float, c2: float) -> Any:
    r"""Return the bounds :math:`1 + \kappa`, a float or ndarray (R,), or refuse a kappa that no model can meet.

    Raises
    ------
    InvalidInput
        If a number is not finite, or a kappa is below the least feasible one, which the message names.
    """
    positive("c1", c1)
    positive("c2", c2)
    try:
        numbers = np.asarray(kappa, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.asarray(np.nan)
    if numbers.ndim > 1 or numbers.size == 0 or not np.isfinite(numbers).all():
        raise mm.InvalidInput("kappa", kappa, "must be a finite number or a list of them.")
    if (numbers > LARGEST_KAPPA).any():
        raise mm.InvalidInput("kappa", kappa, f"at most {LARGEST_KAPPA:g}; a bound so loose leaves out nothing.")
    least = least_kappa(c1, c2)
    if (numbers < least - 1e-12).any():
        worst = float(numbers.min())
        raise mm.InvalidInput(
            "kappa",
            worst,
            f"infeasible: with c1={c1:g} and c2={c2:g} no model has a kappa below {least:g} (the constant model has "
            f"exactly that), and solvers need one above it; use kappa > {least:g} or a smaller c1*c2^2.",
        )
    return 1.0 + (float(numbers) if numbers.ndim == 0 else numbers)
