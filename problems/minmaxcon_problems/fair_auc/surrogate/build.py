"""The fair AUC problem of a data set, a metric and bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.checks import finite_array, instance, positive
from minmaxcon_problems.fair_auc.bounds import Details, checked_kappa
from minmaxcon_problems.fair_auc.datasets import Dataset
from minmaxcon_problems.fair_auc.metrics import FairnessMetric, resolve_metric

from .constraint import AUCConstraint, Layout

__all__ = ["assemble", "build_problem", "pair_masks"]


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
    metric: Any,
    kappa: Any,
    *,
    c1: float = 0.5,
    c2: float = 1.0,
    radius: float = 10.0,
    model: mm.Model | None = None,
    row_weight: Any = None,
    seed: int = 0,
    engine: str = "numpy",
    dtype: str = "float64",
    device: str = "cpu",
) -> mm.MinMaxProblem:
    r"""Build the problem: maximise a surrogate of AUC subject to both sides of the fairness surrogate.

    Parameters
    ----------
    dataset : Dataset
        The data; the problem is about ``dataset.train``.
    metric : str, FairnessMetric or four subsets
        As in :func:`resolve_metric`.
    kappa : float or array_like (R,)
        :math:`\kappa`; both bounds are :math:`1 + \kappa`.
    c1, c2 : float
        Scale and margin of the quadratic loss; only :math:`(1 + \kappa)/(c_1c_2^2)` and radius/c2 matter for models
        that are homogeneous in their parameters.
    radius : float
        Radius of the ball of parameters, in the units in which the model is trained.
    model : Model, optional
        Linear by default.
    row_weight : ndarray (n,), optional
        How many rows each training row stands for.
    seed : int
        Seed of the starting parameters of a network.
    engine, dtype, device : str
        Array engine, precision, and where torch or JAX computes.

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
    instance("dataset", dataset, Dataset, "must be a Dataset, such as load_dataset() and dataset_from() return.")
    metric, kappa = resolve_metric(metric), checked_kappa(kappa, c1, c2)
    train = dataset.train
    metric.masks_of(train.label, train.group, train.name)
    slots = [mask for pair in pair_masks(train.label, metric, train.group) for mask in pair]
    features = train.features
    model = checked_model(model, features.shape[1])
    if hasattr(features, "tocsr") and not isinstance(model, mm.Linear):
        features = features.toarray()
    if row_weight is None:
        weights = np.stack([mask / mask.mean() for mask in slots], axis=1)
        means = np.stack([np.asarray(features[mask].mean(axis=0)).ravel() for mask in slots])
    else:
        weights = np.stack(slots, axis=1) * checked_weight(row_weight, len(train))[:, None]
        weights = weights / weights.mean(axis=0)
        # (features' weights)' rather than weights' features: the product of a CSR matrix and a dense one is dense.
        means = np.asarray(features.T @ weights).T / len(train)
    data = mm.Finite({"features": features, "weights": weights}, engine=engine, dtype=dtype, device=device)
    details = Details(metric=metric, model=model, dataset=dataset, kappa=kappa, c1=float(c1), c2=float(c2))
    return assemble(data, details, means, radius=radius, name=f"{dataset.name}, {metric.name}", seed=seed)


def checked_model(model: Any, features: int) -> mm.Model:
    """Return the model, linear by default; raises InvalidInput where it is none."""
    if model is None:
        return mm.Linear(features)
    found: mm.Model = instance("model", model, mm.Model, "must be a Model such as mlp(5), or None for a linear one.")
    return found


def checked_weight(row_weight: Any, count: int) -> Any:
    """Return the weights of the rows, 1 by default; raises InvalidInput where they are no positive numbers."""
    if row_weight is None:
        return np.ones(count)
    remedy = f"must be positive and finite, one for each of {count} rows."
    weight = finite_array("row_weight", row_weight, remedy)
    if weight.shape != (count,) or not (weight > 0).all():
        raise mm.InvalidInput("row_weight", row_weight, remedy)
    return weight


def assemble(
    data: mm.Source, details: Details, means: Any, *, radius: float, name: str, seed: int = 0
) -> mm.MinMaxProblem:
    r"""Put the problem together from a source of ``features`` (B, p) and slot ``weights`` (B, 10).

    ``means`` (10, p) are the mean features of each slot's group, which size the sets: :math:`I_{ab}` bounds a mean
    score, :math:`I_\alpha` a difference of the two of a pair. Raises InvalidInput where a number is out of range.
    """
    radius, model = positive("radius", radius), details.model
    reach = float(np.max(model.score_bound(radius, means[::2] - means[1::2])))
    offset = float(np.max(model.score_bound(radius, means)))
    reach, offset = max(reach, 1e-6), max(offset, 1e-6)  # a metric that no score can tell apart still needs a set
    layout = Layout(model, len(means) // 2, details.c1, details.c2, radius)
    size = len(means)
    sides = (([1, 2], "AUC(G1,G1') not above AUC(G2,G2')"), ([3, 4], "AUC(G2,G2') not above AUC(G1,G1')"))
    return mm.MinMaxProblem(
        objective=AUCConstraint(layout, [0], reach, name="AUC surrogate"),
        constraints=[AUCConstraint(layout, pairs, reach, 1.0 + details.kappa, side) for pairs, side in sides],
        primal=mm.product([mm.Ball(model.dimension, radius), mm.Box([-offset] * size, [offset] * size)]),
        data=data,
        start=np.concatenate([model.start(seed), np.zeros(size)]),
        name=f"fair_auc: {name}",
        details=details,
    )
