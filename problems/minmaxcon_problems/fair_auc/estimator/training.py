"""One fit of the estimator: scaling, training by a target or a bound, calibration, measures of the given rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import StandardScaler

import minmaxcon as mm
from minmaxcon.data import Standardizer
from minmaxcon.errors import DataError
from minmaxcon.metrics import AUCEstimate
from minmaxcon_problems.fair_auc.datasets import Dataset
from minmaxcon_problems.fair_auc.evaluation import measured_model, measured_scores
from minmaxcon_problems.fair_auc.labelled import LabelledData, warn_of_alike
from minmaxcon_problems.fair_auc.measured import GroupSigns, is_constant, smallest_subset, worst_pair
from minmaxcon_problems.fair_auc.metrics import UNCONSTRAINED, single_metric
from minmaxcon_problems.fair_auc.surrogate.build import build_problem
from minmaxcon_problems.fair_auc.target.fit import FairFit, LeftOut, fit_new_rows, fit_path, fit_target
from minmaxcon_problems.fair_auc.target.problem import NO_TARGET, Target, timed_out

from .asked import Asked, asked_of, model_of, signs_of, unbound
from .calibration import GroupCalibration, LogOdds, calibration_by_group, lines_by_group
from .groups import checked_use_group, rows_with_groups, shifts_unpenalised
from .incremental import Incremental
from .inputs import SENSITIVE, feature_names
from .shrinkage import Shrinkage, check_magnitude, chosen_shrinkage

__all__ = ["FitWarning", "Fitted", "fit_rows", "fit_stream", "held_on_all", "train", "weighted_standardizer"]


def train(
    asked: Asked,
    rows: LabelledData,
    *,
    validation: LabelledData | None = None,
    row_weight: Any = None,
    validation_weight: Any = None,
) -> list[FairFit]:
    """Train the models that are asked for; with ``validation`` targets are about those rows, not the training rows.

    A training row stands for ``row_weight`` (n,) rows, a held-out one for ``validation_weight``. Raises InvalidInput or
    DataError for what cannot be used.
    """
    weights = {"row_weight": row_weight, "validation_weight": validation_weight}
    if asked.kappa is None:
        return fit_path(rows, asked.target, asked.gaps, validation=validation, **weights)
    if rows.more_groups is not None:
        remedy = "bounds one gap of two groups: give max_gap in its place, or say with protected= which group is meant."
        raise mm.InvalidInput("kappa", asked.kappa, remedy)
    target, model = asked.target, asked.target.model_for(rows)
    linear, metric = isinstance(model, mm.Linear), single_metric(asked.target.metric)
    problem = build_problem(
        Dataset(rows.name, rows, None, rows),
        metric,
        asked.kappa,
        radius=target.radius,
        model=model,
        row_weight=row_weight,
        seed=target.seed,
        engine=model.engine,
    )
    solver = mm.IQRC() if asked.solver is None and not linear else asked.solver  # None: the one that fits the problem
    solution = mm.solve(problem, solver, seed=target.seed, time_limit=target.time_limit)
    parameters = np.asarray(solution.x, dtype=np.float64)[: model.dimension]
    free = fit_target(rows, unbound(target, UNCONSTRAINED), validation=validation, **weights)
    gap, area = measured_model(model, parameters, rows, metric, row_weight)
    judged, weight = (rows, row_weight) if validation is None else (validation, validation_weight)
    held_out = (None, None) if validation is None else measured_model(model, parameters, judged, metric, weight)
    fit = FairFit(
        parameters=parameters,
        free_parameters=free.parameters,
        model=model,
        status=solution.status,
        reason=solution.reason,
        max_gap=None,
        target=None,
        train_gap=gap,
        train_auc=area,
        validation_gap=held_out[0],
        validation_auc=held_out[1],
        unconstrained_auc=free.auc,
        unconstrained_gap=measured_model(model, free.parameters, judged, metric, weight)[0],
        surrogate={"objective": float(solution.objective)},
        solution=solution,
    )
    return [fit]


class FitWarning(ConvergenceWarning):  # type: ignore[misc]  # scikit-learn has no types
    """A warning of what the reason of the fit says as well."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted:
    """A trained model with its scaling and calibration.

    ``log_odds`` leads from scores to the log-odds of the positive label, and ``classes`` (2,) are the labels, sorted.
    ``by_group`` are such lines by group, where there are any, ``calibration`` how far probabilities are off by group.
    ``direction`` is 1 where the positive label is the second one, as scikit-learn's scores mean it, else -1;
    ``constrained`` whether sensitive features were there. ``labels`` are the values (negative, positive),
    ``group_values`` (unprotected, protected), and ``groups`` all values of the sensitive features; with ``several``
    each was compared with the rest. ``alpha`` is the strength of the ridge penalty, and ``alpha_path`` what it was
    chosen from, where it was chosen. ``compared`` are the groups that were each compared with the rest, of which the
    model reads what ``use_group`` says, and ``feature_names`` those of the features that it reads. ``path`` are the
    models of all limits, where there are several, and ``left_out`` what rows left out of training tell of new ones.
    """

    fit: FairFit
    standardizer: Standardizer | None
    log_odds: LogOdds
    classes: Any
    direction: int
    constrained: bool
    labels: tuple[Any, Any]
    group_values: tuple[Any, Any]
    groups: tuple[Any, ...]
    several: bool
    alpha: float
    alpha_path: Shrinkage | None
    use_group: str
    compared: tuple[Any, ...]
    feature_names: tuple[str, ...]
    by_group: tuple[LogOdds, ...] = ()
    calibration: tuple[GroupCalibration, ...] = ()
    path: tuple[Fitted, ...] = ()
    left_out: LeftOut | None = None

    def log_odds_by_group(self, decision: Any, signs: Any) -> Any:
        """Return log-odds (n,) of the second class, by the line of each row's group, from those by one line for all.

        ``signs`` are those (n,) of each compared group.
        """
        scores = (self.direction * decision - self.log_odds.intercept) / self.log_odds.slope
        found = self.by_group[-1](scores)
        for line, sign in zip(self.by_group, signs, strict=False):
            found = np.where(sign > 0, line(scores), found)
        return self.direction * found

    def decision(self, features: Any) -> Any:
        """Return the log-odds (n,) of the second class for raw features (n, d), dense or CSR."""
        if isinstance(self.fit.model, mm.Linear):
            coef, intercept = self.line()
            return features @ coef + intercept
        dense = features.toarray() if hasattr(features, "tocsr") else features
        scaled = dense if self.standardizer is None else self.standardizer.transform(dense)
        scores = self.fit.model.predict(self.fit.parameters, scaled)
        return self.direction * self.log_odds(scores)

    def line(self) -> tuple[Any, float]:
        """Return coefficients (d,) and intercept that give the log-odds from raw features.

        Raises AttributeError where the model is not linear.
        """
        if not isinstance(self.fit.model, mm.Linear):
            raise AttributeError("coef_ and intercept_ exist for a linear model only.")
        weight, offset = self.fit.parameters, 0.0
        if self.standardizer is not None:
            weight, offset = self.standardizer.fold(weight)
        return self.direction * self.log_odds.slope * weight, float(self.direction * self.log_odds(offset))


def fit_rows(
    estimator: Any,
    asked: Asked,
    rows: LabelledData,
    validation: LabelledData | None,
    classes: Any,
    *,
    constrained: bool,
    groups: tuple[Any, ...],
    total: float,
    row_weight: Any = None,
    validation_weight: Any = None,
) -> Fitted:
    """Scale, train and calibrate, on training and held-out rows in raw units.

    The estimator gives model, standardize and score_bound; ``classes`` (2,) are the labels, sorted, ``groups`` the
    values of the sensitive features; a training row stands for ``row_weight`` (n,) rows, all of them for ``total``, a
    held-out one for ``validation_weight``. Raises InvalidInput or DataError for what cannot be used; warns with
    ConvergenceWarning where the target was not met, and where training rows say little of others.
    """
    way = checked_use_group(estimator.use_group)
    if way and not constrained:
        raise mm.InvalidInput("use_group", estimator.use_group, "needs sensitive_features, of which none were given.")
    warn_of_alike(groups, SENSITIVE)
    own = rows.feature_names
    if way:
        rows = rows_with_groups(rows, way)
        validation = None if validation is None else rows_with_groups(validation, way)
    raw, raw_weight, raw_validation = rows, row_weight, validation
    sampled = len(rows) > MANY and asked.kappa is None and asked.target.method == "following"
    if sampled:
        part, row_weight = _sample(rows, row_weight, asked.target.seed)
        rows = rows.select(part)
    scaler = weighted_standardizer(rows.features, row_weight) if estimator.standardize else None
    shifts = max(1, len(rows.each_group) - 1) if way else 0
    if scaler is not None:
        if way:
            scaler = shifts_unpenalised(scaler, shifts)
        rows, validation = rows.scaled(scaler), None if validation is None else validation.scaled(scaler)
    width = rows.features.shape[1]
    model = model_of(estimator.model, width, score_bound=estimator.score_bound, seed=asked.target.seed)
    asked = asked if constrained else Asked(target=unbound(asked.target, UNCONSTRAINED), gaps=(NO_TARGET,))
    alpha, path = _alpha_of(estimator, model, rows, row_weight, total, asked.target.seed, shifts)
    strength = alpha / total if path is None else path.noise
    kind: dict[str, Any] = {"ridge" if isinstance(model, mm.Linear) else "decay": strength}
    signs = _signs(estimator, own, way, model, width)
    asked = replace(asked, target=replace(asked.target, model=model, signs=signs, **kind))
    judged, weight = (rows, row_weight) if validation is None else (validation, validation_weight)
    known: dict[Any, tuple[AUCEstimate, AUCEstimate]] = {}
    folds = _folds(rows, asked.target) if constrained and asked.target.demand == "new_rows" else []

    def trained(gaps: tuple[float, ...]) -> list[Fitted]:
        """Return the models held to some gaps, measured on the rows as they were given."""
        made: list[tuple[FairFit, LeftOut | None]]
        if folds:
            targets = [replace(asked.target, max_gap=gap) for gap in gaps]
            made = [fit_new_rows(rows, one, folds, row_weight=row_weight) for one in targets]
        else:
            weights = {"row_weight": row_weight, "validation_weight": validation_weight}
            fits = [
                train(replace(one, gaps=gaps), rows, validation=validation, **weights)
                for one in _starts(estimator, asked, width)
            ]
            by_auc = validation is None or asked.target.early_stopping
            made = [(_best_start(same, by_auc), None) for same in zip(*fits, strict=True)]
        found = []
        for (fit, left), limit in zip(made, asked.gaps, strict=True):
            scores = fit.model.predict(fit.parameters, judged.features)
            log_odds = LogOdds.fit(scores, judged.label > 0, weight)
            by_group = lines_by_group(log_odds, scores, judged, weight) if estimator.calibration == "by_group" else ()
            fit = replace(fit, max_gap=None if fit.max_gap is None else limit)
            if not constrained:
                fit = replace(fit, reason=f"No sensitive_features, so no constraint. {fit.reason}")
            fitted = Fitted(
                fit=fit,
                standardizer=scaler,
                log_odds=log_odds,
                classes=classes,
                direction=1 if rows.label_values[1] == classes[1] else -1,
                constrained=constrained,
                labels=rows.label_values,
                group_values=rows.group_values,
                groups=groups,
                several=rows.more_groups is not None,
                alpha=alpha,
                alpha_path=path,
                use_group=way,
                compared=tuple(value for value, _, _ in rows.each_group),
                feature_names=rows.feature_names,
                left_out=left,
                by_group=by_group,
                calibration=calibration_by_group(log_odds, by_group, scores, judged, weight) if constrained else (),
            )
            fit = _measured_as_given(
                fitted, asked.target, (raw, raw_weight), (raw_validation, validation_weight), sampled, known
            )
            told = _told_of_new_rows(left, fit, rows), _overfit(replace(fitted, fit=fit), rows)
            found.append(replace(fitted, fit=_with_reasons(fit, told)))
        return found

    found = trained(asked.gaps)
    if sampled and constrained and validation is None and not folds:
        found = held_on_all(trained, found)
    if constrained:
        given = (raw, raw_weight) if raw_validation is None else (raw_validation, validation_weight)
        found = [replace(one, fit=_with_reasons(one.fit, _told_of_groups(one, asked.target, *given))) for one in found]
    best = _best_of(found)
    _warn_of(found[best], judged, asked)
    return replace(found[best], path=tuple(found)) if len(found) > 1 else found[best]


def _starts(estimator: Any, asked: Asked, width: int) -> list[Asked]:
    """Return what is asked, once for each start of a network, which share the time."""
    target, several = asked.target, int(estimator.n_init)
    if several == 1:
        return [asked]
    model = estimator.model
    if isinstance(model, mm.TorchModule) or (hasattr(model, "named_parameters") and not isinstance(model, type)):
        remedy = "needs other starts, and the module brings its own: give a function that makes a module."
        raise mm.InvalidInput("n_init", several, remedy)
    limit = None if target.time_limit is None else target.time_limit / several
    found = []
    for seed in range(target.seed, target.seed + several):
        made = model_of(model, width, score_bound=estimator.score_bound, seed=seed)
        found.append(replace(asked, target=replace(target, model=made, seed=seed, time_limit=limit)))
    return found


def _best_start(fits: Sequence[FairFit], by_auc: bool) -> FairFit:
    """Return the fit of the best AUC that meets its target, else the fairest; its price counts from the best known.

    ``by_auc`` says that the AUC of a fit is the one by which models are chosen.
    """

    def rank(fit: FairFit) -> tuple[bool, float]:
        met = fit.status not in _MISSED
        return met, fit.auc.value if met else -fit.gap.value

    best = max(fits, key=rank)
    free = max(fits, key=lambda fit: fit.unconstrained_auc.value)
    if len(fits) == 1 or not by_auc or not isinstance(best.model, mm.MLP):
        return best  # parameters of another module may go with other buffers
    known = {name: getattr(free, name) for name in ("free_parameters", "unconstrained_auc", "unconstrained_gap")}
    return replace(best, **known)


def _signs(estimator: Any, own: tuple[str, ...], way: str, model: mm.Model, width: int) -> Any:
    """Return the signs (width,) that coefficients are to have, None where any will do; shifts of groups are free."""
    asked, named = estimator.monotonic_cst, hasattr(estimator, "feature_names_in_")
    signs = signs_of(asked, own, named=named, use_group=way)
    if signs is None:
        return None
    if not isinstance(model, mm.Linear):
        raise mm.InvalidInput("monotonic_cst", asked, "is for linear models; leave it out.")
    return np.concatenate([signs, np.zeros(width - len(signs), dtype=np.int8)])


def _parts(strata: Any, folds: int, rng: np.random.Generator) -> Iterator[tuple[Any, Any]]:
    """Yield the rows to train on and those left out, of folds in which every stratum has its share.

    ``strata`` (n,) are whole numbers. The first of the larger folds changes from stratum to stratum.
    """
    order = rng.permutation(len(strata))
    place = np.empty(len(strata), dtype=np.int64)
    ranked = order[np.argsort(strata[order], kind="stable")]
    place[ranked] = np.arange(len(strata)) % folds
    for fold in range(folds):
        yield np.flatnonzero(place != fold), np.flatnonzero(place == fold)


_FOLDS, _ROUNDS, _IN_A_FOLD = 5, 2, 5
"""Folds of rows left out, rounds of them, and the least rows of each combination of label and group in each."""


def _folds(rows: LabelledData, target: Target) -> list[tuple[Any, Any]]:
    """Return the folds that tell of new rows; raises DataError where a combination has too few rows for them."""
    code, least = _cells(rows), _FOLDS * _IN_A_FOLD
    counts = np.bincount(code)[2 if rows.left_out else 0 :]  # rows of groups that are left out come first
    fewest = int(counts[counts > 0].min())
    if fewest < least:
        raise DataError(
            rows.name,
            f'demand="new_rows" needs {least} rows of each combination of label and group, {_IN_A_FOLD} in each of'
            f" {_FOLDS} folds, and the smallest one has {fewest}; give more rows, or ask for the training rows.",
        )
    rng = np.random.default_rng(target.seed)
    return [fold for _ in range(_ROUNDS) for fold in _parts(code, _FOLDS, rng)]


def _told_of_new_rows(left: LeftOut | None, fit: FairFit, rows: LabelledData) -> str:
    """Say what is known of new rows, and how many rows would tell a gap of the size of the limit."""
    if left is None or fit.max_gap is None:
        return ""
    half, counts = 1.96 * float(np.nan_to_num(fit.train_gap.standard_error)), np.bincount(_cells(rows))
    fewest = int(counts[counts > 0].min())
    said = f"On rows left out of training the gap is {left.gap:.3g} on average, known to within {half:.2g}"
    if fit.max_gap == 0 or half <= fit.max_gap:
        return f"{said}."
    needed = int(np.ceil(fewest * (half / fit.max_gap) ** 2))
    return f"{said}; within {fit.max_gap:g} would take some {needed:,} rows where the smallest cell has {fewest:,}."


_KNOWN = 500
"""Rows of the smallest set behind a gap below which the reason of a fit says what the counts allow to be known."""

_FEW_PREDICTED = 0.1
"""Share of the positive rows below which the rows that are predicted to be positive are told of."""


def _with_reasons(fit: FairFit, told: Iterable[str]) -> FairFit:
    """Return the fit with more sentences in its reason."""
    return replace(fit, reason=" ".join([fit.reason, *filter(None, told)]))


def _told_of_groups(fitted: Fitted, target: Target, rows: LabelledData, row_weight: Any) -> list[str]:
    """Say of the rows, as given, that a target is about what its bound and the counts do not assure."""
    fit, found = fitted.fit, []
    scores = fitted.direction * fitted.decision(rows.features)
    groups = [GroupSigns(*group) for group in rows.each_group]
    if len(fitted.groups) > 2 and not fitted.several:
        protected = fitted.group_values[1]
        others = ", ".join(repr(value) for value in fitted.groups if value != protected)
        found.append(f"{protected!r} is compared with all others together: {others}.")
    if rows.left_out:
        found.append(f"Left out of the bound for their few rows: {', '.join(map(repr, rows.left_out))}.")
    pair = worst_pair(scores, rows.label, groups, target.metric, rows.label_values, row_weight)
    if pair is not None and fit.max_gap is not None and pair.gap.value > fit.max_gap:
        found.append(
            f"Each group is bound against the rest; between {pair.group!r} and {pair.rest!r} alone the {pair.metric}"
            f" gap is {pair.gap.value:.3g}."
        )
    if is_constant(scores):  # of which other warnings tell
        return found
    count, which = smallest_subset(rows.label, groups, target.metric, rows.label_values)
    if count < _KNOWN and fitted.left_out is None:
        said = f"The smallest set behind the gap, {which}, has {count} row{'s' if count > 1 else ''}:"
        new = fit.gap.for_new_rows(1.0)
        if np.isnan(new.lower):
            found.append(f"{said} nothing can be known of the gap of new rows.")
        else:
            found.append(
                f"{said} on as many new rows chance alone may make it anything from {new.lower:.2g} to {new.upper:.2g}."
            )
    predicted, positive = int((scores > 0).sum()), int((rows.label > 0).sum())
    if predicted < _FEW_PREDICTED * positive:
        found.append(
            f"The label {rows.label_values[1]!r} is predicted for {predicted:,} of {len(rows):,} rows, of which"
            f" {positive:,} have it: predict asks for a probability above 1/2, TunedThresholdClassifierCV for another."
        )
    return found


MANY = 200_000
"""Rows above which a model is trained on a sample, and held to its target on all."""

_CELL = 8192
"""Rows of each combination of label and groups in that sample."""

_SLACK, _CLOSE, _AGAIN = 2e-4, 1e-3, 3
"""How far below a target the gap on all rows is aimed at, how near it is to come, and the fits that this may take."""


def _cells(rows: LabelledData) -> Any:
    """Return the number (n,) of each row's combination of label and group."""
    code = (rows.label > 0).astype(np.int64)
    for k, (_, _, signs) in enumerate(rows.each_group):
        code += (signs > 0) * (2 * k + 2)
    return code


def _sample(rows: LabelledData, row_weight: Any, seed: int) -> tuple[Any, Any]:
    """Return the rows of a sample of each combination of label and groups, and how many rows each one stands for."""
    code = _cells(rows)
    rng, counts = np.random.default_rng(seed), np.bincount(code)
    own = np.ones(len(rows)) if row_weight is None else row_weight
    parts, weights = [], []
    for cell in np.flatnonzero(counts):
        mine = np.flatnonzero(code == cell)
        kept = mine if mine.size <= _CELL else np.sort(rng.choice(mine, _CELL, replace=False))
        parts.append(kept)
        weights.append(own[kept] * (own[mine].sum() / own[kept].sum()))
    return np.concatenate(parts), np.concatenate(weights)


def held_on_all(trained: Callable[[tuple[float, ...]], list[Fitted]], found: list[Fitted]) -> list[Fitted]:
    """Move the gaps that the sample is held to until the gaps on all rows come close below the limits.

    Of the models of one limit the best that meets it is kept, else the fairest.
    """

    def rank(one: Fitted) -> tuple[bool, float]:
        reached, limit = one.fit.gap.value, one.fit.max_gap or 0.0
        return (True, one.fit.auc.value) if reached <= limit else (False, -reached)

    goals, latest, best = [float(one.fit.max_gap or 0.0) for one in found], found, list(found)
    for _ in range(_AGAIN):
        missed = [float(one.fit.max_gap or 0.0) - _SLACK - one.fit.gap.value for one in latest]
        bound = [off < -_SLACK or (off > _CLOSE and one.fit.price > 0) for off, one in zip(missed, latest, strict=True)]
        if not any(bound):
            break
        goals = [
            min(max(goal + off, 0.0), NO_TARGET) if moves else goal
            for goal, off, moves in zip(goals, missed, bound, strict=True)
        ]
        latest = trained(tuple(goals))
        best = [max(pair, key=rank) for pair in zip(best, latest, strict=True)]
    return best


def _best_of(path: list[Fitted]) -> int:
    """Return which model is the fairest whose AUC is within one standard error of the best that meets its limit."""
    met = [k for k, one in enumerate(path) if one.fit.status not in _MISSED]
    if not met:
        return int(np.argmin([one.fit.gap.value for one in path]))
    best = max((path[k].fit.auc for k in met), key=lambda auc: auc.value)
    error = float(np.nan_to_num(best.standard_error))  # unknown where a class has one row
    near = [k for k in met if path[k].fit.auc.value >= best.value - error]
    return min(near, key=lambda k: (path[k].fit.max_gap or 0.0, k))


def _more_work(fit: FairFit, asked: Asked) -> str:
    """Say how a search that ended early can go on; nothing where it did not, or where that was asked for."""
    if fit.status is not mm.Status.BUDGET or fit.solution.status is not mm.Status.BUDGET or asked.target.early_stopping:
        return ""
    if timed_out(fit.solution):
        return "Give a longer time_limit."
    if asked.kappa is not None:
        return "Give a solver of more steps."
    if asked.target.method != "following":
        return 'Use method="following".'
    if "outer steps" in fit.solution.reason:
        return "Give a larger max_iter."
    return "Give a larger alpha, or leave out features that depend on each other."


def _warn_of(fitted: Fitted, judged: LabelledData, asked: Asked) -> None:
    """Warn of all that a user of the model should know."""
    fit, told = fitted.fit, _overfit(fitted, judged)
    more = _more_work(fit, asked)
    if fit.status in _MISSED or more:
        warnings.warn(f"{fit.status}: {fit.reason} {more}".rstrip(), FitWarning, stacklevel=4)
    if is_constant(fit.model.predict(fit.parameters, judged.features)):
        message = "The model gives all rows one score: its AUC is one half, and its gap 0 says nothing."
        warnings.warn(message, ConvergenceWarning, stacklevel=4)
    if told:
        warnings.warn(told, FitWarning, stacklevel=4)
    if judged.left_out:
        named = ", ".join(map(repr, judged.left_out))
        warnings.warn(
            f"Groups with fewer than min_rows_per_cell rows are left out of the bound: {named}.", stacklevel=4
        )
    off = [one for one in fitted.calibration if one.apparent]
    if off:
        worst = max(off, key=lambda one: abs(one.error))
        remedy = (
            'use_group=True with calibration="by_group" mends it, if the group may be read.'
            if not fitted.use_group
            else 'calibration="by_group" mends it.'
        )
        warnings.warn(f"Probabilities are off by {worst.error:+.2f} in the group {worst.value}: {remedy}", stacklevel=4)


def _alpha_of(
    estimator: Any, model: mm.Model, rows: LabelledData, row_weight: Any, total: float, seed: int, shifts: int
) -> tuple[float, Shrinkage | None]:
    """Return the strength of the ridge penalty for scaled rows, and the path that it was chosen from."""
    if isinstance(model, mm.Linear):
        check_magnitude(rows.features)
    if estimator.alpha is not None:
        return float(estimator.alpha), None
    if not isinstance(model, mm.Linear) or estimator.kappa is not None or estimator.method != "following":
        return 0.0, None
    path = chosen_shrinkage(rows.features, rows.label > 0, row_weight, total, seed, shifts)
    return (1.0, None) if path is None else (path.alpha, path)


_OPTIMISM = 0.1
"""By how much, beyond chance, the AUC of training rows may exceed that of new ones without a word."""


def _overfit(fitted: Fitted, rows: LabelledData) -> str:
    """Say where the AUC of the training rows says little of other rows; else nothing."""
    area, path, (count, features) = fitted.fit.train_auc.value, fitted.alpha_path, rows.features.shape
    sizes = (rows.label > 0).sum(), (rows.label < 0).sum()
    chance = 2.0 * np.sqrt(sum(1.0 / size for size in sizes) / 12.0)  # two standard deviations where nothing is learnt
    if path is not None and area - path.auc > _OPTIMISM + chance:
        return (
            f"The AUC is {area:.3f} on the training rows, but an estimated {path.auc:.3f} on new ones: give more rows"
            " or fewer features."
        )
    if path is None and features >= count and area > 1.0 - 1e-9:
        return (
            f"{features:,} features tell {count:,} rows apart: an AUC of 1 on them says nothing of other rows. Give"
            " more rows or fewer features, or leave out alpha."
        )
    return ""


def _measured_as_given(
    fitted: Fitted,
    target: Target,
    trained: tuple[LabelledData, Any],
    held_out: tuple[LabelledData | None, Any],
    sampled: bool,
    known: dict[Any, tuple[AUCEstimate, AUCEstimate]],
) -> FairFit:
    """Return the fit with all measures taken on the scores that the decision function gives for raw rows.

    ``trained`` and ``held_out`` are rows in raw units with their weights; ``sampled`` says that training saw a sample,
    and ``known`` keeps what was measured for fits of the same rows.
    Those that training saw differ in rounding, which matters where columns are constant up to rounding or nearly so.
    """

    def found(parameters: Any, part: LabelledData, weight: Any) -> tuple[AUCEstimate, AUCEstimate]:
        key = np.asarray(parameters).tobytes(), id(part)
        if key not in known:
            known[key] = measured(parameters, part, weight)
        return known[key]

    def measured(parameters: Any, part: LabelledData, weight: Any) -> tuple[AUCEstimate, AUCEstimate]:
        scores = fitted.direction * replace(fitted, fit=replace(fitted.fit, parameters=parameters)).decision(
            part.features
        )
        return measured_scores(scores, part, target.metric, weight)

    fit = fitted.fit
    train_gap, train_auc = found(fit.parameters, *trained)
    validation, weight = held_out
    gap, area = (None, None) if validation is None else found(fit.parameters, validation, weight)
    judged = trained if validation is None else (validation, weight)
    free_gap, free_auc = found(fit.free_parameters, *judged)
    fit = replace(
        fit,
        train_gap=train_gap,
        train_auc=train_auc,
        validation_gap=gap,
        validation_auc=area,
        unconstrained_gap=free_gap,
        unconstrained_auc=free_auc,
    )
    if target.demand == "new_rows":  # the gap of the training rows is not what was asked
        return fit
    reached = fit.gap.upper if target.demand == "upper" else fit.gap.value
    if fit.max_gap is not None and reached > fit.max_gap and fit.status in (mm.Status.SOLVED, mm.Status.BUDGET):
        rounding = f"but rounding in raw units makes it {reached:.4g}: rescale the data."
        whole = f"a sample of the rows, but over all it is {reached:.4g}."
        reason = f"The gap met its target on {whole}" if sampled else f"In training the gap met its target, {rounding}"
        fit = replace(fit, status=mm.Status.OUT_OF_REACH, reason=reason)
    return fit


def fit_stream(estimator: Any, stream: Incremental) -> Fitted:
    """Fit the rows that ``partial_fit`` remembers.

    Training begins afresh each time: from the parameters of an earlier fit, to fewer rows, it would end in another
    local optimum, so that a model would depend on when it was asked for. Raises NotFittedError where not enough has
    been seen; what is missing is named.
    """
    asked = asked_of(estimator, stream.seed, rows_at_hand=False)
    try:
        rows, weight = stream.rows(asked.target.metric, estimator.positive, feature_names(estimator))
    except DataError as failure:
        raise NotFittedError(str(failure)) from failure
    validation, held_out, share = None, None, estimator.validation_fraction
    if share is not None:
        rows, weight, validation, held_out = stream.parts(rows, weight, share)
    return fit_rows(
        estimator,
        asked,
        rows,
        validation,
        np.array(sorted(rows.label_values)),
        constrained=stream.constrained,
        groups=tuple(stream.groups.values),
        total=float(len(rows)) if weight is None else float(weight.sum()),
        row_weight=weight,
        validation_weight=held_out,
    )


_MISSED = (
    mm.Status.INFEASIBLE,
    mm.Status.NOT_STRICTLY_FEASIBLE,
    mm.Status.OUT_OF_REACH,
    mm.Status.UNFINISHED,
    mm.Status.INCONSISTENT,
    mm.Status.DIVERGED,
)


def weighted_standardizer(features: Any, row_weight: Any) -> Standardizer:
    """Return the standardisation by means and deviations of features (n, d), weighted where there are weights (n,).

    Raises InvalidInput where a feature is so large that its variance is not a finite number.
    """
    plain = Standardizer.fit(features)
    if row_weight is None:
        return plain
    sparse = hasattr(features, "tocsr")
    scaler = StandardScaler(with_mean=not sparse).fit(features, sample_weight=row_weight)
    return Standardizer(plain.mean if sparse else scaler.mean_, scaler.scale_)
