"""The sentences of a fit's reason, and its warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import minmaxcon as mm
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.measured import comparisons, is_constant, smallest_subset, worst_pair
from minmaxcon_problems.fair_auc.target.fit import FairFit, LeftOut
from minmaxcon_problems.fair_auc.target.problem import Target, timed_out, used_up

from .asked import Asked
from .fitted import MISSED, Fitted

__all__ = [
    "FitWarning",
    "cut_short",
    "told_of_groups",
    "told_of_new_rows",
    "told_of_overfitting",
    "warn_of",
    "with_fewer_starts",
    "with_reasons",
]

_KNOWN = 500
"""Rows of the smallest set behind a gap below which the reason of a fit says what the counts allow to be known."""

_FEW_PREDICTED = 0.1
"""Share of the positive rows below which the rows that are predicted to be positive are told of."""

_OPTIMISM = 0.1
"""By how much, beyond chance, the AUC of training rows may exceed that of new ones without a word."""


class FitWarning(ConvergenceWarning):  # type: ignore[misc]  # scikit-learn has no types
    """A warning of what the reason of the fit says as well."""


def with_reasons(fit: FairFit, told: Iterable[str]) -> FairFit:
    """Return the fit with more sentences in its reason."""
    return replace(fit, reason=" ".join([fit.reason, *filter(None, told)]))


def cut_short(found: list[Fitted], signals: Sequence[str]) -> list[Fitted]:
    """Return models that say so where a signal has ended the training, whatever their own solves have come to."""
    if not signals:
        return found
    name, cut = signals[0], mm.Status.INTERRUPTED
    told = [one.fit.reason if name in one.fit.reason else f"Stopped by {name}. {one.fit.reason}" for one in found]
    return [
        replace(one, fit=replace(one.fit, status=cut, reason=reason)) for one, reason in zip(found, told, strict=True)
    ]


def with_fewer_starts(fit: FairFit, made: int, asked: int, end: str) -> FairFit:
    """Return the best fit of the starts that were begun, as one that ended early where ``end`` came before all were."""
    if made == asked:
        return fit
    early = {mm.Status.SOLVED: mm.Status.BUDGET, mm.Status.OUT_OF_REACH: mm.Status.UNFINISHED}
    reason = f"Starts begun before {end}: {made} of {asked}. {fit.reason}"
    return replace(fit, status=early.get(fit.status, fit.status), reason=reason, starts_left=asked - made)


def told_of_new_rows(left: LeftOut, fit: FairFit, fewest: int) -> str:
    """Say what is known of new rows, and how many rows would tell a gap of the size of the limit.

    ``fewest`` is the number of rows of the smallest combination of label and group.
    """
    if fit.max_gap is None:
        return ""
    half = 1.96 * float(np.nan_to_num(fit.train_gap.standard_error))
    said = f"On rows left out of training the gap is {left.gap:.3g} on average, known to within {half:.2g}"
    if fit.max_gap == 0 or half <= fit.max_gap:
        return f"{said}."
    needed = int(np.ceil(fewest * (half / fit.max_gap) ** 2))
    return f"{said}; within {fit.max_gap:g} would take some {needed:,} rows where the smallest cell has {fewest:,}."


def told_of_groups(
    fitted: Fitted, target: Target, rows: LabelledData, row_weight: Any, copies: Any = None
) -> list[str]:
    """Say of the rows, as given, that a target is about what its bound and the counts do not assure.

    Of a sample each row counts for the ``copies`` (n,) of which it is one.
    """
    fit, found = fitted.fit, []
    decision = fitted.decision(rows.features)
    scores = fitted.direction * decision
    groups = comparisons(rows, target.metric)
    if len(fitted.groups) > 2 and not fitted.several:
        protected = fitted.group_values[1]
        others = ", ".join(repr(value) for value in fitted.groups if value != protected)
        found.append(f"{protected!r} is compared with all others together: {others}.")
    if rows.left_out:
        found.append(f"Left out of the bound for their few rows: {', '.join(map(repr, rows.left_out))}.")
    pair = worst_pair(scores, rows.label, groups, target.metric, rows.label_values, row_weight)
    if pair is not None and not rows.each_other and fit.max_gap is not None and pair.gap.value > fit.max_gap:
        found.append(
            f"Each group is bound against the rest; between {pair.group!r} and {pair.rest!r} alone the {pair.metric}"
            f" gap is {pair.gap.value:.3g}."
        )
    if is_constant(scores):  # of which other warnings tell
        return found
    copies = np.ones(len(rows)) if copies is None else copies
    count, which = smallest_subset(rows.label, groups, target.metric, rows.label_values, copies)
    if count < _KNOWN and fitted.left_out is None:
        said = f"The smallest set behind the gap, {which}, has {count} row{'s' if count > 1 else ''}:"
        new = fit.gap.for_new_rows(1.0)
        if np.isnan(new.lower):
            found.append(f"{said} nothing can be known of the gap of new rows.")
        else:
            found.append(
                f"{said} on as many new rows chance alone may make it anything from {new.lower:.2g} to {new.upper:.2g}."
            )
    log_odds = fitted.direction * fitted.log_odds_by_group(decision, [signs for *_, signs in rows.each_group])
    predicted, positive, total = (
        round(float(copies[chosen].sum())) for chosen in (log_odds > 0, rows.label > 0, np.s_[:])
    )
    if predicted < _FEW_PREDICTED * positive:
        found.append(
            f"The label {rows.label_values[1]!r} is predicted for {predicted:,} of {total:,} rows, of which"
            f" {positive:,} have it: predict asks for a probability above 1/2, TunedThresholdClassifierCV for another."
        )
    return found


def told_of_overfitting(fitted: Fitted, rows: LabelledData) -> str:
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


def _more_work(fit: FairFit, asked: Asked) -> str:
    """Say how a search that ended early can go on; nothing where it did not, or where that was asked for."""
    if fit.starts_left:
        return "Give a longer time_limit."
    if fit.status is mm.Status.UNFINISHED and asked.target.iterations is not None and used_up(fit.solution):
        return "Give a larger max_iter."
    if fit.status is not mm.Status.BUDGET or fit.solution.status is not mm.Status.BUDGET or asked.target.early_stopping:
        return ""
    if timed_out(fit.solution):
        return "Give a longer time_limit."
    if asked.kappa is not None:
        return "Give a solver of more steps."
    if asked.target.method != "following":
        return 'Use method="following".'
    if used_up(fit.solution):
        return "Give a larger max_iter."
    return "Give a larger alpha, or leave out features that depend on each other."


def warn_of(fitted: Fitted, judged: LabelledData, asked: Asked) -> None:
    """Warn of all that a user of the model should know."""
    fit, told = fitted.fit, told_of_overfitting(fitted, judged)
    more = _more_work(fit, asked)
    if fit.status in MISSED or more:
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
