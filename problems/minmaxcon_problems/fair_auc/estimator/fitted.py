"""One fit: scale, train, calibrate; and what it leaves behind."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import minmaxcon as mm
from minmaxcon.data import Standardizer
from minmaxcon.errors import DataError
from minmaxcon_problems.fair_auc.labelled import LabelledData

from .calibration import LogOdds
from .incremental import Incremental
from .inputs import feature_names
from .settings import Settings, checked_settings
from .training import Trained, model_of, train

__all__ = ["Fitted", "fit_rows", "fit_stream", "weighted_standardizer"]


@dataclass(frozen=True, kw_only=True)
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
