"""One fit of the estimator: settings, scaling, training by a target or a bound, and calibration."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import minmaxcon as mm
from minmaxcon.checks import number, positive, whole
from minmaxcon.data import Standardizer
from minmaxcon.errors import DataError
from minmaxcon.metrics import AUCEstimate
from minmaxcon_problems.fair_auc.datasets import Dataset
from minmaxcon_problems.fair_auc.evaluation import measured_model
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.metrics import FairnessMetric, Subset, resolve_metric
from minmaxcon_problems.fair_auc.surrogate.build import assemble, build_problem, checked_kappa, pair_masks

from .calibration import LogOdds
from .incremental import Incremental
from .inputs import feature_names

__all__ = [
    "C1",
    "C2",
    "Fitted",
    "Settings",
    "Trained",
    "checked_settings",
    "fit_rows",
    "fit_stream",
    "model_of",
    "train",
    "weighted_standardizer",
]

C1, C2 = 0.5, 1.0
"""Scale and margin of the quadratic loss: others would only rescale kappa and radius."""

_POSITIVE, _NEGATIVE = Subset(label=1), Subset(label=-1)

UNCONSTRAINED = FairnessMetric(
    "none", (_POSITIVE, _NEGATIVE, _POSITIVE, _NEGATIVE), "An AUC against itself: no constraint at all."
)
"""The metric of a model without constraint; its gap is 0 whatever the scores."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Settings:
    """How to train.

    Attributes
    ----------
    metric : FairnessMetric
        The four subsets.
    max_gap : float or None
        Target for the true gap; None where ``kappa`` is given.
    kappa : float or None
        Bound of the surrogate.
    objective, method, demand : str
        As for :func:`~minmaxcon_problems.fair_auc.target.fit_target`.
    radius : float
        Radius of the ball of parameters.
    solver : Solver or None
        For ``kappa``.
    time_limit : float or None
        Seconds.
    seed : int
        Of every draw.
    """

    metric: FairnessMetric
    max_gap: float | None
    kappa: float | None
    objective: Any
    method: Any
    demand: Any
    radius: float
    solver: mm.Solver | None
    time_limit: float | None
    seed: int

    def unconstrained(self) -> Settings:
        """Return the settings of the same model without constraint."""
        return replace(self, metric=UNCONSTRAINED, max_gap=1.0, kappa=None, method="following", demand="value")


def checked_settings(estimator: Any, seed: int) -> Settings:
    """Return the settings of an estimator.

    Parameters
    ----------
    estimator : FairAUCClassifier
        With its parameters as the user gave them.
    seed : int
        Drawn from its ``random_state``.

    Raises
    ------
    InvalidInput
        A parameter cannot be used; it is named, with its value and the remedy.
    """
    max_gap, kappa = estimator.max_gap, estimator.kappa
    if kappa is None and max_gap is None:
        raise mm.InvalidInput("max_gap", None, "give a target such as 0.02, or kappa; max_gap=1 is no constraint.")
    if kappa is None:
        max_gap = number("max_gap", max_gap, "must be a number between 0 and 1.", least=0.0, most=1.0)
        if estimator.solver is not None:
            raise mm.InvalidInput("solver", estimator.solver, "is used with kappa only: give kappa, or leave it out.")
    else:
        kappa = number("kappa", kappa, "must be a number of at least -1.", least=-1.0)
        checked_kappa(kappa, C1, C2)
        if estimator.objective != "auc":
            raise mm.InvalidInput(
                "objective",
                estimator.objective,
                "needs max_gap; leave it out.",
            )
    for argument, choices in _CHOICES.items():
        if getattr(estimator, argument) not in choices:
            raise mm.UnknownName(argument, str(getattr(estimator, argument)), choices)
    radius, limit = positive("radius", estimator.radius), estimator.time_limit
    positive("score_bound", estimator.score_bound)
    limit = None if limit is None else positive("time_limit", limit)
    share = estimator.validation_fraction
    if share is not None:
        remedy = "must lie strictly between 0 and 1, or be None."
        number("validation_fraction", share, remedy, above=0.0, below=1.0)
    kept = estimator.max_rows_per_cell
    if not isinstance(kept, int | np.integer):  # it is used as it stands, and sizes arrays
        raise mm.InvalidInput("max_rows_per_cell", kept, "must be a whole number of at least 2.")
    whole("max_rows_per_cell", kept, 2)
    return Settings(
        metric=resolve_metric(estimator.metric),
        max_gap=max_gap if kappa is None else None,
        kappa=kappa,
        objective=estimator.objective,
        method=estimator.method,
        demand=estimator.demand,
        radius=radius,
        solver=estimator.solver,
        time_limit=limit,
        seed=seed,
    )


_CHOICES = {
    "objective": ("auc", "quadratic_auc", "logistic"),
    "method": ("following", "bounds"),
    "demand": ("value", "upper"),
}


@dataclass(frozen=True, eq=False, kw_only=True)
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted:
    """A trained model with its scaling and calibration.

    Attributes
    ----------
    trained : Trained
        The model.
    standardizer : Standardizer or None
        The features' scaling.
    log_odds : LogOdds
        From scores to the log-odds of the positive label.
    classes : ndarray (2,)
        The labels, sorted.
    direction : {1, -1}
        1 where the positive label is the second one, as scikit-learn's scores mean it; else -1.
    constrained : bool
        Whether sensitive features were there.
    """

    trained: Trained
    standardizer: Standardizer | None
    log_odds: LogOdds
    classes: Any
    direction: int
    constrained: bool

    def decision(self, features: Any) -> Any:
        """Return the log-odds (n,) of the second class for raw features (n, d), dense or CSR."""
        if isinstance(self.trained.model, mm.Linear):
            coef, intercept = self.line()
            return features @ coef + intercept
        dense = features.toarray() if hasattr(features, "tocsr") else features
        scaled = dense if self.standardizer is None else self.standardizer.transform(dense)
        scores = self.trained.model.predict(self.trained.parameters, scaled)
        return self.direction * self.log_odds(scores)

    def line(self) -> tuple[Any, float]:
        """Return coefficients (d,) and intercept that give the log-odds from raw features.

        Raises
        ------
        AttributeError
            The model is not linear.
        """
        if not isinstance(self.trained.model, mm.Linear):
            raise AttributeError("coef_ and intercept_ exist for a linear model only.")
        weight, offset = self.trained.parameters, 0.0
        if self.standardizer is not None:
            weight, offset = self.standardizer.fold(weight)
        return self.direction * self.log_odds.slope * weight, float(self.direction * self.log_odds(offset))


def fit_rows(
    estimator: Any,
    settings: Settings,
    rows: LabelledData,
    validation: LabelledData | None,
    classes: Any,
    *,
    constrained: bool,
    row_weight: Any = None,
) -> Fitted:
    """Scale, train and calibrate.

    Parameters
    ----------
    estimator : FairAUCClassifier
        With its model, standardize and score_bound.
    settings : Settings
        How to train.
    rows, validation : LabelledData
        Training rows (n of them) and those held out, in raw units.
    classes : ndarray (2,)
        The labels, sorted.
    constrained : bool
        Whether rows have groups.
    row_weight : ndarray (n,), optional
        How many rows each one stands for.

    Raises
    ------
    InvalidInput, DataError
        What cannot be used.

    Warns
    -----
    ConvergenceWarning
        The target was not met.
    """
    scaler = weighted_standardizer(rows.features, row_weight) if estimator.standardize else None
    if scaler is not None:
        rows, validation = _scaled(scaler, rows), None if validation is None else _scaled(scaler, validation)
    width = rows.features.shape[1]
    model = model_of(estimator.model, width, score_bound=estimator.score_bound, seed=settings.seed)
    how = settings if constrained else settings.unconstrained()
    trained = train(how, model, rows, validation=validation, row_weight=row_weight)
    if not constrained:
        trained = replace(trained, reason=f"No sensitive_features, so no constraint. {trained.reason}")
    judged, weight = (rows, row_weight) if validation is None else (validation, None)
    scores = trained.model.predict(trained.parameters, judged.features)
    log_odds = LogOdds.fit(scores, judged.label > 0, weight)
    if trained.status in _MISSED:
        warnings.warn(f"{trained.status}: {trained.reason}", ConvergenceWarning, stacklevel=3)
    return Fitted(
        trained=trained,
        standardizer=scaler,
        log_odds=log_odds,
        classes=classes,
        direction=1 if rows.label_values[1] == classes[1] else -1,
        constrained=constrained,
    )


def fit_stream(estimator: Any, stream: Incremental) -> Fitted:
    """Fit the rows that ``partial_fit`` remembers.

    Training begins afresh each time: from the parameters of an earlier fit, to fewer rows, it would end in another
    local optimum, so that a model would depend on when it was asked for.

    Parameters
    ----------
    estimator : FairAUCClassifier
        With its parameters.
    stream : Incremental
        What is remembered.

    Raises
    ------
    NotFittedError
        Not enough has been seen; what is missing is named.
    """
    settings = checked_settings(estimator, stream.seed)
    try:
        rows, weight = stream.rows(settings.metric, estimator.positive, feature_names(estimator))
    except DataError as failure:
        raise NotFittedError(str(failure)) from failure
    validation, share = None, estimator.validation_fraction
    if share is not None:
        rows, weight, validation = stream.parts(rows, weight, share)
    return fit_rows(
        estimator,
        settings,
        rows,
        validation,
        np.array(sorted(rows.label_values)),
        constrained=stream.constrained,
        row_weight=weight,
    )


_MISSED = (
    mm.Status.INFEASIBLE,
    mm.Status.NOT_STRICTLY_FEASIBLE,
    mm.Status.OUT_OF_REACH,
    mm.Status.INCONSISTENT,
    mm.Status.DIVERGED,
)


def _scaled(scaler: Standardizer, rows: LabelledData) -> LabelledData:
    return rows.replace_rows(scaler.transform(rows.features), rows.label, rows.group)


def weighted_standardizer(features: Any, row_weight: Any) -> Standardizer:
    """Return the standardisation by weighted means and deviations.

    Parameters
    ----------
    features : ndarray (n, d) or CSR
        Training rows.
    row_weight : ndarray (n,) or None
        Their weights.

    Raises
    ------
    InvalidInput
        A feature is so large that its variance is not a finite number.
    """
    plain = Standardizer.fit(features)  # which features are constant, or too large, does not depend on weights
    if row_weight is None:
        return plain
    share = row_weight / row_weight.sum()
    sparse = hasattr(features, "tocsr")
    mean = np.asarray(features.T @ share).ravel()
    centred = features.multiply(features) if sparse else (features - mean) ** 2
    variance = np.asarray(centred.T @ share).ravel() - (mean**2 if sparse else 0.0)
    # A column that is nearly one value throughout has rounding for its weighted variance.
    scale = np.where(variance > 1e-20 * plain.scale**2, np.sqrt(np.maximum(variance, 0.0)), plain.scale)
    return Standardizer(plain.mean if sparse else np.where(np.ptp(features, axis=0) == 0, plain.mean, mean), scale)
