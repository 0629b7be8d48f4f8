"""From rows to parameters: by a target for the true gap, or by a bound of the surrogate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import minmaxcon as mm
from minmaxcon.metrics import AUCEstimate
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.partition import Dataset
from minmaxcon_problems.fair_auc.surrogate.build import assemble, build_problem, checked_kappa, pair_masks
from minmaxcon_problems.fair_auc.target.measured import measured_model

from .settings import C1, C2, Settings

__all__ = ["Trained", "model_of", "train"]


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A trained model and what is known of it.

    Attributes
    ----------
    model : Model
        The scoring model.
    parameters : ndarray (d,)
        Its parameters, in the units of the rows trained on.
    status : Status
        How training ended.
    reason : str
        The evidence, one sentence.
    target : float or None
        The target that the training gap was held to; None with ``kappa``.
    gap, auc : AUCEstimate
        On the validation part where there is one, else on the training rows.
    price : float
        AUC of the model without constraint less this AUC, on the same rows.
    certificate : Certificate or None
        Bounds on the optimal value, with ``kappa``.
    solution : Solution
        With the trace.
    """

    model: mm.Model
    parameters: Any
    status: mm.Status
    reason: str
    target: float | None
    gap: AUCEstimate
    auc: AUCEstimate
    price: float
    certificate: mm.Certificate | None
    solution: mm.Solution


def model_of(model: Any, features: int, *, score_bound: float, seed: int) -> mm.Model:
    """Return the scoring model that the user means.

    Parameters
    ----------
    model : {"linear", "mlp"}, Model, torch.nn.Module or callable
        A callable is called with the number of features and returns a module.
    features : int
        Number of features.
    score_bound : float
        Upper bound on the absolute scores of a module.
    seed : int
        Seed of torch while a callable makes its module, which leaves torch's own state alone.

    Raises
    ------
    InvalidInput
        None of these.
    """
    if isinstance(model, mm.Model):
        return model
    if isinstance(model, str):
        named: Mapping[str, Callable[[int], mm.Model]] = {"linear": mm.Linear, "mlp": mm.mlp}
        if model not in named:
            raise mm.UnknownName("model", model, named)
        return named[model](features)
    if not isinstance(model, type) and hasattr(model, "named_parameters"):
        return mm.TorchModule(model, score_bound)
    if not callable(model):
        raise mm.InvalidInput(
            "model",
            model,
            'use "linear", "mlp", a Model, or a function of the number of features that returns a module.',
        )
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = model(features)
    if not (isinstance(made, mm.Model) or hasattr(made, "named_parameters")):
        kind = type(made).__name__
        raise mm.InvalidInput(
            "model", model, f"returned an object of type {kind} for {features} features, not a torch.nn.Module."
        )
    return made if isinstance(made, mm.Model) else mm.TorchModule(made, score_bound)


def train(
    settings: Settings,
    model: mm.Model,
    rows: LabelledData,
    *,
    validation: LabelledData | None = None,
    row_weight: Any = None,
) -> Trained:
    """Train a model.

    Parameters
    ----------
    settings : Settings
        How.
    model : Model
        The scoring model.
    rows : LabelledData
        Training rows, n of them.
    validation : LabelledData, optional
        The rows that the target is about, if not the training rows.
    row_weight : ndarray (n,), optional
        How many rows each training row stands for.

    Raises
    ------
    InvalidInput, DataError
        What cannot be used, named with the remedy.
    """
    if settings.max_gap is not None:
        return _by_target(settings, settings.max_gap, model, rows, validation, row_weight)
    return _by_bound(settings, model, rows, validation, row_weight)


def _by_target(
    settings: Settings,
    max_gap: float,
    model: mm.Model,
    rows: LabelledData,
    validation: Any,
    row_weight: Any,
) -> Trained:
    from minmaxcon_problems.fair_auc.target.fit import fit_target

    found = fit_target(
        rows,
        settings.metric,
        max_gap,
        validation=validation,
        demand=settings.demand,
        method=settings.method,
        objective=settings.objective,
        model=model,
        radius=settings.radius,
        row_weight=row_weight,
        seed=settings.seed,
        time_limit=settings.time_limit,
    )
    gap, area = found.train_gap, found.train_auc
    if found.validation_gap is not None and found.validation_auc is not None:
        gap, area = found.validation_gap, found.validation_auc
    return Trained(
        model=found.model,
        parameters=np.asarray(found.parameters, dtype=np.float64),
        status=found.status,
        reason=found.reason,
        target=float(found.target),
        gap=gap,
        auc=area,
        price=float(found.price),
        certificate=None,
        solution=found.solution,
    )


def _by_bound(settings: Settings, model: mm.Model, rows: LabelledData, validation: Any, row_weight: Any) -> Trained:
    linear = isinstance(model, mm.Linear)
    solver = settings.solver
    if solver is None:
        solver = mm.SFLS(oracle=mm.SMD()) if linear else mm.IQRC()
    problem = _bounded_problem(settings, model, rows, row_weight)
    solution = mm.solve(problem, solver, seed=settings.seed, time_limit=settings.time_limit)
    parameters = np.asarray(solution.x, dtype=np.float64)[: model.dimension]
    judged, judged_weight = (rows, row_weight) if validation is None else (validation, None)
    gap, area = measured_model(model, parameters, judged, settings.metric, judged_weight)
    free = train(settings.unconstrained(), model, rows, validation=validation, row_weight=row_weight)
    return Trained(
        model=model,
        parameters=parameters,
        status=solution.status,
        reason=solution.reason,
        target=None,
        gap=gap,
        auc=area,
        price=free.auc.value - area.value,
        certificate=solution.certificate,
        solution=solution,
    )


def _bounded_problem(settings: Settings, model: mm.Model, rows: LabelledData, row_weight: Any) -> mm.MinMaxProblem:
    linear = isinstance(model, mm.Linear)
    features = rows.features
    if not linear and hasattr(features, "tocsr"):
        rows = rows.replace_rows(features.toarray(), rows.label, rows.group)
    engine = "numpy" if linear else "torch"
    if row_weight is None:
        dataset = Dataset("the training data", rows, None, rows)
        return build_problem(
            dataset,
            settings.metric,
            settings.kappa,
            c1=C1,
            c2=C2,
            radius=settings.radius,
            model=model,
            seed=settings.seed,
            engine=engine,
        )
    bound = checked_kappa(settings.kappa, C1, C2)
    settings.metric.require_members(settings.metric.masks(rows.label, rows.group), rows.name)
    pairs = pair_masks(rows.label, settings.metric, rows.group)
    weights = np.stack([mask for pair in pairs for mask in pair], axis=1) * row_weight[:, None]
    weights = weights / weights.mean(axis=0)
    # (features' weights)' rather than weights' features: the product of a CSR matrix and a dense one is dense.
    means = np.asarray(rows.features.T @ weights).T / len(rows)
    data = mm.Finite({"features": rows.features, "weights": weights}, engine=engine)
    return assemble(
        data,
        model,
        means,
        bound,
        c1=C1,
        c2=C2,
        radius=settings.radius,
        name=f"{rows.name}, {settings.metric.name}",
        details={"metric": settings.metric, "kappa": settings.kappa, "c1": C1, "c2": C2, "model": model},
        seed=settings.seed,
    )
