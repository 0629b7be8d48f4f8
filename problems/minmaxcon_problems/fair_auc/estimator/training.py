"""One fit of the estimator: scaling, training by a target or a bound, calibration, measures of the given rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

import minmaxcon as mm
from minmaxcon.data import Standardizer
from minmaxcon.errors import DataError
from minmaxcon.metrics import AUCEstimate
from minmaxcon.solvers import ends_together
from minmaxcon_problems.fair_auc.calibration import LogOdds, calibration_by_group, lines_by_group
from minmaxcon_problems.fair_auc.datasets import Dataset
from minmaxcon_problems.fair_auc.evaluation import measured_model, measured_scores
from minmaxcon_problems.fair_auc.labelled import LabelledData, protected_option, warn_of_alike
from minmaxcon_problems.fair_auc.metrics import UNCONSTRAINED, single_metric
from minmaxcon_problems.fair_auc.surrogate.build import build_problem
from minmaxcon_problems.fair_auc.target.fairest import fairest_near_best
from minmaxcon_problems.fair_auc.target.fit import FairFit, LeftOut, fit_new_rows_path, fit_path, fit_target
from minmaxcon_problems.fair_auc.target.problem import NO_TARGET, Target

from .asked import Asked, asked_of, model_of, signs_of, unbound
from .fitted import MISSED, Fitted
from .groups import checked_use_group, rows_with_groups, shifts_unpenalised
from .incremental import Incremental
from .inputs import SENSITIVE, feature_names
from .reasons import (
    cut_short,
    told_of_groups,
    told_of_new_rows,
    told_of_overfitting,
    warn_of,
    with_fewer_starts,
    with_reasons,
)
from .shrinkage import Shrinkage, check_magnitude, chosen_shrinkage

__all__ = ["fit_rows", "fit_stream", "held_on_all", "train", "weighted_standardizer"]


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
        option = protected_option(rows.each_other)
        remedy = f"bounds one gap of two groups: give max_gap in its place, or say with {option} which group is meant."
        raise mm.InvalidInput("kappa", asked.kappa, remedy)
    target, model = asked.target.started(), asked.target.model_for(rows)
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
    solution = mm.solve(problem, solver, seed=target.seed, time_limit=target.time_limit, elapsed=target.spent)
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
    copies: Any = None,
) -> Fitted:
    """Scale, train and calibrate, on training and held-out rows in raw units.

    The estimator gives model, standardize and score_bound; ``classes`` (2,) are the labels, sorted, ``groups`` the
    values of the sensitive features; a training row stands for ``row_weight`` (n,) rows, all of them for ``total``, a
    held-out one for ``validation_weight``. Where the rows that the target is about are a sample, each is one of
    ``copies`` (n,) rows. Raises InvalidInput or DataError for what cannot be used; warns with ConvergenceWarning where
    the target was not met, and where training rows say little of others.
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
    asked = replace(asked, target=replace(asked.target, model=model).started())
    alpha, path = _alpha_of(estimator, model, rows, row_weight, total, asked.target.seed, shifts)
    strength = alpha / total if path is None else path.noise
    kind: dict[str, Any] = {"ridge" if isinstance(model, mm.Linear) else "decay": strength}
    signs = _signs(estimator, own, way, model, width)
    asked = replace(asked, target=replace(asked.target, signs=signs, shifts=shifts, **kind))
    judged, weight = (rows, row_weight) if validation is None else (validation, validation_weight)
    known: dict[Any, tuple[AUCEstimate, AUCEstimate]] = {}
    folds = _folds(rows, asked.target) if constrained and asked.target.demand == "new_rows" else []

    def trained(gaps: tuple[float, ...]) -> list[Fitted]:
        """Return the models held to some gaps, measured on the rows as they were given."""
        made: list[tuple[FairFit, LeftOut | None]]
        if folds:
            made = [*fit_new_rows_path(rows, asked.target, gaps, folds, row_weight=row_weight)]
        else:
            weights = {"row_weight": row_weight, "validation_weight": validation_weight}
            fits = [
                train(replace(one, gaps=gaps), rows, validation=validation, **weights)
                for one in _starts(estimator, asked, width, signals)
            ]
            by_auc = validation is None or asked.target.early_stopping
            end = signals[0] if signals else f"the time limit of {asked.target.time_limit} s"
            begun = len(fits), int(estimator.n_init), end
            made = [(with_fewer_starts(_best_start(same, by_auc), *begun), None) for same in zip(*fits, strict=True)]
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
                each_other=rows.each_other,
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
            told = (
                "" if left is None else told_of_new_rows(left, fit, _fewest(rows)),
                told_of_overfitting(replace(fitted, fit=fit), rows),
            )
            found.append(replace(fitted, fit=with_reasons(fit, told)))
        return found

    with ends_together() as signals:
        found = trained(asked.gaps)
        if sampled and constrained and validation is None and not folds:
            found = held_on_all(trained, found, lambda: _end(asked.target, signals))
    if constrained:
        given = (raw, raw_weight) if raw_validation is None else (raw_validation, validation_weight)
        told = [told_of_groups(one, asked.target, *given, copies) for one in found]
        found = [replace(one, fit=with_reasons(one.fit, said)) for one, said in zip(found, told, strict=True)]
    best = _best_of(found)
    found = cut_short(found, signals)
    warn_of(found[best], judged, asked)
    return replace(found[best], path=tuple(found)) if len(found) > 1 else found[best]


def _starts(estimator: Any, asked: Asked, width: int, signals: Sequence[str]) -> Iterator[Asked]:
    """Yield what is asked, once for each start of a network that there is time for, and before a signal."""
    target, several = asked.target, int(estimator.n_init)
    if several == 1:
        yield asked
        return
    model = estimator.model
    if isinstance(model, mm.TorchModule) or (hasattr(model, "named_parameters") and not isinstance(model, type)):
        remedy = "needs other starts, and the module brings its own: give a function that makes a module."
        raise mm.InvalidInput("n_init", several, remedy)
    left = target.left or 0.0
    for k, seed in enumerate(range(target.seed, target.seed + several)):
        if k and (target.over or signals):
            return
        made = model_of(model, width, score_bound=estimator.score_bound, seed=seed)
        until = None if target.until is None else target.until - left * (1.0 - (k + 1) / several)
        yield replace(asked, target=replace(target, model=made, seed=seed, until=until))


def _best_start(fits: Sequence[FairFit], by_auc: bool) -> FairFit:
    """Return the fit of the best AUC that meets its target, else the fairest; its price counts from the best known.

    ``by_auc`` says that the AUC of a fit is the one by which models are chosen.
    """

    def rank(fit: FairFit) -> tuple[bool, float]:
        met = fit.status not in MISSED
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
    code, least, fewest = _cells(rows), _FOLDS * _IN_A_FOLD, _fewest(rows)
    if fewest < least:
        raise DataError(
            rows.name,
            f'demand="new_rows" needs {least} rows of each combination of label and group, {_IN_A_FOLD} in each of'
            f" {_FOLDS} folds, and the smallest one has {fewest}; give more rows, or ask for the training rows.",
        )
    rng = np.random.default_rng(target.seed)
    return [fold for _ in range(_ROUNDS) for fold in _parts(code, _FOLDS, rng)]


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


def _fewest(rows: LabelledData) -> int:
    """Return how many rows the smallest combination of label and group has, of groups that are not left out."""
    counts = np.bincount(_cells(rows))[2 if rows.left_out else 0 :]  # rows of groups that are left out come first
    return int(counts[counts > 0].min())


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


def held_on_all(
    trained: Callable[[tuple[float, ...]], list[Fitted]], found: list[Fitted], late: Callable[[], str]
) -> list[Fitted]:
    """Move the gaps that the sample is held to until the gaps on all rows come close below the limits.

    It ends where it is ``late``, which then tells why, and models that do not meet their limits are unfinished.

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
        if why := late():
            return [one if rank(one)[0] else _unfinished(one, why) for one in best]
        goals = [
            min(max(goal + off, 0.0), NO_TARGET) if moves else goal
            for goal, off, moves in zip(goals, missed, bound, strict=True)
        ]
        latest = trained(tuple(goals))
        best = [max(pair, key=rank) for pair in zip(best, latest, strict=True)]
    return best


def _end(target: Target, signals: Sequence[str]) -> str:
    """Say what has ended the training, if anything has."""
    late = f"The time limit of {target.time_limit} s was reached." if target.over else ""
    return f"Stopped by {signals[0]}." if signals else late


def _unfinished(one: Fitted, why: str) -> Fitted:
    return replace(one, fit=replace(one.fit, status=mm.Status.UNFINISHED, reason=f"{why} {one.fit.reason}"))


def _best_of(path: list[Fitted]) -> int:
    """Return which model is the fairest whose AUC is within one standard error of the best that meets its limit."""
    met = [k for k, one in enumerate(path) if one.fit.status not in MISSED]
    if not met:
        return int(np.argmin([one.fit.gap.value for one in path]))
    best = max((path[k].fit.auc for k in met), key=lambda auc: auc.value)
    error = float(np.nan_to_num(best.standard_error))  # unknown where a class has one row
    areas, limits = [path[k].fit.auc.value for k in met], [path[k].fit.max_gap or 0.0 for k in met]
    return met[fairest_near_best(areas, limits, error)]


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


def fit_stream(estimator: Any, stream: Incremental, until: float | None = None) -> Fitted:
    """Fit the rows that ``partial_fit`` remembers, of which the time may end ``until`` then, see :class:`Target`.

    Training begins afresh each time: from the parameters of an earlier fit, to fewer rows, it would end in another
    local optimum, so that a model would depend on when it was asked for. Raises NotFittedError where not enough has
    been seen; what is missing is named.
    """
    asked = asked_of(estimator, stream.seed, rows_at_hand=False)
    asked = replace(asked, target=replace(asked.target, until=until))
    try:
        rows, weight, copies = stream.rows(asked.target.metric, estimator.positive, feature_names(estimator))
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
        copies=copies if share is None else None,
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
