"""Measures of any scores on rows as users have them, and the same as scorers for scikit-learn's tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import sklearn
from sklearn.metrics import make_scorer

from minmaxcon.arrays import to_numpy
from minmaxcon.checks import number
from minmaxcon.errors import DataError, InvalidInput
from minmaxcon.metrics import AUCEstimate
from minmaxcon_problems.fair_auc.labelled import listed
from minmaxcon_problems.fair_auc.measured import (
    Compared,
    GroupSigns,
    Measured,
    compared,
    each_other,
    gap_and_area,
    measured,
)
from minmaxcon_problems.fair_auc.metrics import FairnessMetric, MetricSet, resolve_metrics

from .inputs import (
    MOST_COMPARED,
    SENSITIVE,
    checked_against,
    group_signs,
    positive_code,
    present,
    require_aligned,
    require_few_pairs,
    require_labels,
    sensitive_column,
    weights_of,
)

__all__ = [
    "LabelledScores",
    "auc_gap_scorer",
    "best_within",
    "fair_auc_scorer",
    "measure_scores",
    "scores_of_classifier",
]

Metric = str | FairnessMetric | Sequence[Any]


class LabelledScores:
    """Labels, groups and weights of rows, from any container, as signs and positive numbers.

    Rows of weight 0 are left out.

    ``y`` has labels among ``labels`` (negative, positive) where these are given, else any two; the positive one is then
    ``positive``, by default the last in sorted order. Groups are compared as :func:`group_signs` has them, or, of more
    than two, every two ``each_other``; ``groups`` are the values that may occur, if that is known, of which
    ``left_out`` do not count in the largest gap. Raises DataError or InvalidInput for what cannot be used.
    """

    def __init__(
        self,
        y: Any,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        *,
        positive: Any = None,
        protected: Any = None,
        labels: tuple[Any, Any] | None = None,
        groups: Sequence[Any] | None = None,
        group_values: tuple[Any, Any] | None = None,
        left_out: Sequence[Any] = (),
        each_other: bool = False,
        unknown: str = "refuse",
    ) -> None:
        require_aligned({"y": y, SENSITIVE: sensitive_features, "sample_weight": sample_weight})
        require_labels(y)
        column = np.asarray(y)
        column = column[:, 0] if column.ndim == 2 and column.shape[1] == 1 else column
        if column.ndim != 1:
            raise DataError("y", f"has shape {column.shape}; give one label for each row.")
        self.rows = len(column)
        self.labels = _two_labels(column, positive) if labels is None else labels
        known = (column == self.labels[0]) | (column == self.labels[1])
        if not known.all():
            row = int(np.argmin(known))
            other = column[row : row + 1].tolist()[0]
            raise DataError(
                "y", f"row {row} (counted from 0) has the label {other!r}; labels are {listed(self.labels)}."
            )
        self._label = np.where(column == self.labels[1], 1, -1).astype(np.int8)
        self._weight = None if sample_weight is None else weights_of(sample_weight, self.rows)
        self._kept = np.ones(self.rows, dtype=np.bool_) if self._weight is None else self._weight > 0
        self._groups: list[GroupSigns] = []
        if sensitive_features is not None:
            values = sensitive_column(sensitive_features, self.rows, unknown)
            self._kept &= present(values)
            known = values[self._kept]
            if groups is not None:
                _require_known(known, groups)
            if group_values is None and groups is None:
                signs, group_values, groups = group_signs(known, protected, MOST_COMPARED, each_other=each_other)
                several = signs.ndim == 2
            else:
                several = group_values is None
            if several and groups is not None:
                pairs = [(value, f"not {value}") for value in groups]
            else:
                pairs = [] if group_values is None else [(group_values[1], group_values[0])]
            for value, rest in pairs:
                signs = np.where(np.array([v == value for v in values.tolist()]), 1, -1).astype(np.int8)
                self._groups.append(GroupSigns(value, rest, signs, value not in left_out))
        self._each_other = each_other and len(self._groups) > 1
        if self._each_other:
            require_few_pairs(len(self._groups) - len(left_out))

    def _arguments(self, metric: FairnessMetric | MetricSet) -> tuple[Any, list[GroupSigns], Any]:
        label, groups = self.signs()
        groups = each_other(groups, metric) if self._each_other else groups
        return label, groups, None if self._weight is None else self._weight[self._kept]

    def _checked(self, scores: Any) -> Any:
        array = np.asarray(to_numpy(scores))
        if array.dtype.kind not in "iuf" or np.ma.is_masked(scores):
            raise InvalidInput("scores", scores, "must be real numbers, one for each row, none of them masked.")
        if array.shape != (self.rows,):
            raise InvalidInput("scores", f"shape {array.shape}", f"must have shape ({self.rows},), one for each row.")
        return array[self._kept]

    def signs(self) -> tuple[Any, list[GroupSigns]]:
        """Return label signs and groups of the rows that are kept."""
        return self._label[self._kept], [replace(group, signs=group.signs[self._kept]) for group in self._groups]

    @property
    def kept(self) -> Any:
        """Which rows (n,) are measured: those of a positive weight that have a group."""
        return self._kept

    def measured(self, scores: Any, metric: FairnessMetric | MetricSet, confidence: float) -> Measured:
        """Measure scores (n,) that are higher for the positive label."""
        label, groups, weight = self._arguments(metric)
        return measured(
            self._checked(scores), label, groups, metric, self.labels, row_weight=weight, confidence=confidence
        )

    def gap_and_area(self, scores: Any, metric: FairnessMetric | MetricSet) -> tuple[AUCEstimate, AUCEstimate]:
        """Return the largest gap and the AUC of scores (n,)."""
        label, groups, weight = self._arguments(metric)
        return gap_and_area(self._checked(scores), label, groups, metric, weight)

    def compared(self, one: Any, other: Any, metric: FairnessMetric | MetricSet, confidence: float) -> Compared:
        """Compare two scores (n,) of the rows."""
        label, groups, weight = self._arguments(metric)
        both = self._checked(one), self._checked(other)
        return compared(both, label, groups, metric, self.labels, row_weight=weight, confidence=confidence)


def _two_labels(column: Any, positive: Any) -> tuple[Any, Any]:
    values = np.unique(column).tolist()
    if len(values) != 2:
        raise DataError("y", f"has {len(values)} labels ({listed(values)}); rows of two labels can be measured.")
    chosen = positive_code(values, positive)
    return values[1 - chosen], values[chosen]


def _require_known(values: Any, groups: Sequence[Any]) -> None:
    known = set(groups)
    for row, value in enumerate(values.tolist()):
        if value not in known:
            raise DataError(
                SENSITIVE,
                f"row {row} (counted from 0) has the group {value!r}, which fit has not seen; its groups are"
                f" {listed(list(groups))}.",
            )


def measure_scores(
    scores: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    metric: Metric = "inter_group",
    positive: Any = None,
    protected: Any = None,
    against: Literal["rest", "each_other"] = "rest",
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> Measured:
    """Measure the AUC and the fairness of any scores: those of another model, or of a file.

    Parameters
    ----------
    scores : array_like (n,)
        Higher for the positive label, in any unit.
    y : array_like (n,)
        Labels, of two values.
    sensitive_features : array_like (n,), optional
        Group of each row; without them there is no gap.
    metric : str, FairnessMetric or four subsets
        As for :class:`FairAUCClassifier`.
    positive, protected, against : optional
        As for :class:`FairAUCClassifier`.
    sample_weight : array_like (n,), optional
        Weights of the rows; a row of weight 0 is left out.
    confidence : float
        Of all intervals, in (0, 1).

    Returns
    -------
    Measured
        AUC, signed gap with the favoured side in words, intervals, rows of each cell, and reasons.

    Raises
    ------
    InvalidInput, DataError
        What cannot be used; the message names it.

    Examples
    --------
    >>> found = measure_scores([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0], sensitive_features=list("aabb"), metric="group")
    >>> found.auc.value
    0.75
    >>> found.signed_gap.value
    -0.5
    """
    pairs = checked_against(against, protected)
    rows = LabelledScores(
        y, sensitive_features, sample_weight, positive=positive, protected=protected, each_other=pairs
    )
    return rows.measured(scores, resolve_metrics(metric), confidence)


def scores_of_classifier(model: Any, X: Any, classes: Any, positive: Any, sensitive_features: Any = None) -> Any:
    """Return scores (n,) of any classifier, higher for the positive label; an array is taken as such scores.

    Groups are passed on to a model that has read them in training, as its ``use_group`` says.
    Raises InvalidInput where the model has other classes, or neither a decision function nor probabilities.
    """
    scoring = hasattr(model, "decision_function") or hasattr(model, "predict_proba")
    if isinstance(model, type) or not (scoring or hasattr(model, "__len__")):
        raise InvalidInput("other", model, "give a fitted classifier, or an array of scores, one for each row.")
    if not scoring:
        return np.asanyarray(model)  # a masked array is still one, and is refused as scores
    own = list(np.asarray(model.classes_).tolist())
    if own != list(classes):
        raise InvalidInput("other", own, f"must have the classes {list(classes)}.")
    place = own.index(positive)
    groups = {SENSITIVE: sensitive_features} if _reads_group(model) else {}
    while groups and hasattr(model, "best_estimator_"):
        model = model.best_estimator_  # a search hands nothing on to what it has chosen
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X, **groups))
        return scores if place == 1 else -scores
    return np.asarray(model.predict_proba(X))[:, place]


def _reads_group(model: Any) -> bool:
    """Tell whether a model, or the last step of a pipeline, or what a search has chosen, reads the group."""
    while inner := getattr(model, "best_estimator_", None) or getattr(model, "steps", None):
        model = inner[-1][1] if isinstance(inner, list) else inner
    return bool(getattr(model, "use_group", False))


def _gap_and_area(
    y_true: Any,
    y_score: Any,
    metric: FairnessMetric | MetricSet,
    pos_label: Any,
    protected: Any,
    pairs: bool,
    given: Mapping[str, Any],
) -> tuple[float, float]:
    """Return the largest gap and the AUC of scores, or of predicted labels."""
    if given.get(SENSITIVE) is None:
        raise _unrouted()
    rows = LabelledScores(
        y_true,
        given[SENSITIVE],
        given.get("sample_weight"),
        positive=pos_label,
        protected=protected,
        each_other=pairs,
    )
    scores = np.asarray(y_score)
    if scores.dtype.kind != "f":  # labels, as scikit-learn's search for a threshold has them
        scores = (scores == rows.labels[1]).astype(np.float64)
    gap, area = rows.gap_and_area(scores, metric)
    if not gap.defined:
        raise DataError("scorer", f"the {metric.name} gap is undefined: {gap.reason}.")
    return gap.value, area.value


def _unrouted() -> InvalidInput:
    return InvalidInput(
        SENSITIVE,
        None,
        "the scorer needs them: call sklearn.set_config(enable_metadata_routing=True) and pass"
        " sensitive_features to fit, score or cross_validate (params={'sensitive_features': ...}).",
    )


def _negated_gap_of(
    y_true: Any,
    y_score: Any,
    *,
    metric: Any,
    pos_label: Any = None,
    protected: Any = None,
    pairs: bool = False,
    sensitive_features: Any = None,
    sample_weight: Any = None,
) -> float:
    given = {SENSITIVE: sensitive_features, "sample_weight": sample_weight}
    return -_gap_and_area(y_true, y_score, metric, pos_label, protected, pairs, given)[0]


def _fair_area_of(
    y_true: Any,
    y_score: Any,
    *,
    metric: Any,
    max_gap: float,
    pos_label: Any = None,
    protected: Any = None,
    pairs: bool = False,
    sensitive_features: Any = None,
    sample_weight: Any = None,
) -> float:
    given = {SENSITIVE: sensitive_features, "sample_weight": sample_weight}
    gap, area = _gap_and_area(y_true, y_score, metric, pos_label, protected, pairs, given)
    return area if gap <= max_gap else max_gap - gap


def auc_gap_scorer(
    metric: Metric = "inter_group",
    *,
    positive: Any = None,
    protected: Any = None,
    against: Literal["rest", "each_other"] = "rest",
) -> Any:
    """Return a scorer for scikit-learn's tools: the negative true gap, so that greater is fairer.

    It is given ``sensitive_features`` by metadata routing, which ``sklearn.set_config(enable_metadata_routing=True)``
    turns on, and ``sample_weight`` where its ``set_score_request(sample_weight=True)`` asks for it. A model that reads
    the group (``use_group``) gets it too; its AUC is :func:`fair_auc_scorer` with ``max_gap=1``.

    Parameters
    ----------
    metric : str, FairnessMetric or four subsets
        The fairness metric.
    positive, protected, against : optional
        As for :class:`FairAUCClassifier`.

    Returns
    -------
    scorer
        For ``GridSearchCV``, ``cross_validate``, ``TunedThresholdClassifierCV`` and the like. A fold in which a subset
        has no row raises DataError, of which these tools warn.

    Examples
    --------
    >>> import numpy as np, sklearn
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_validate
    >>> rng = np.random.default_rng(0)
    >>> X, group = rng.normal(size=(200, 3)), np.tile(["a", "b"], 100)
    >>> y = X[:, 0] + (group == "a") > 0
    >>> scoring = {"auc": "roc_auc", "gap": auc_gap_scorer("group")}
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     found = cross_validate(LogisticRegression(), X, y, scoring=scoring, params={"sensitive_features": group})
    >>> bool((found["test_gap"] <= 0).all())
    True
    """
    pairs = checked_against(against, protected)
    return _scorer(
        _negated_gap_of, metric=resolve_metrics(metric), pos_label=positive, protected=protected, pairs=pairs
    )


def fair_auc_scorer(
    metric: Metric = "inter_group",
    max_gap: float = 0.02,
    *,
    positive: Any = None,
    protected: Any = None,
    against: Literal["rest", "each_other"] = "rest",
) -> Any:
    r"""Return a scorer that maximises AUC subject to the gap.

    It is the AUC where the true gap is at most ``max_gap``, and :math:`\text{max\_gap} - \text{gap}`, below 0 and so
    below every AUC, where it is not. Scikit-learn's tools average it over folds, so that one fold above ``max_gap``
    costs a model most of its score; :func:`best_within` judges by the average gap.

    Parameters and result are those of :func:`auc_gap_scorer`.

    Raises
    ------
    InvalidInput
        ``max_gap`` is no number in [0, 1].
    """
    gap, pairs = (
        number("max_gap", max_gap, "must lie in [0, 1].", least=0.0, most=1.0),
        checked_against(against, protected),
    )
    return _scorer(
        _fair_area_of,
        metric=resolve_metrics(metric),
        max_gap=gap,
        pos_label=positive,
        protected=protected,
        pairs=pairs,
    )


def _scorer(function: Callable[..., float], **settings: Any) -> Any:
    made = make_scorer(function, response_method=("decision_function", "predict_proba"), **settings)
    made.__class__ = GroupScorer
    with sklearn.config_context(enable_metadata_routing=True):  # a request can be made under no other setting
        return made.set_score_request(**{SENSITIVE: True})


_Scorer: Any = type(make_scorer(_negated_gap_of))
"""The class of scikit-learn's scorers of one function, which has no public name."""


class GroupScorer(_Scorer):  # type: ignore[misc]  # scikit-learn has no types
    """A scorer that passes the group on to a model that reads it; scikit-learn's give it to the measure alone."""

    def _score(self, method_caller: Any, estimator: Any, X: Any, y_true: Any, **given: Any) -> Any:
        if not _reads_group(estimator):
            return super()._score(method_caller, estimator, X, y_true, **given)
        if given.get(SENSITIVE) is None:
            raise _unrouted()
        classes = np.asarray(estimator.classes_).tolist()
        positive = classes[positive_code(classes, self._kwargs["pos_label"])]
        scores = scores_of_classifier(estimator, X, classes, positive, given[SENSITIVE])
        return self._sign * self._score_func(y_true, scores, **self._kwargs, **given)


def best_within(max_gap: float, *, auc: str = "auc", gap: str = "gap") -> Callable[[Mapping[str, Any]], int]:
    """Return a ``refit`` for ``GridSearchCV``: the best mean AUC among candidates whose mean gap is small enough.

    Where no candidate's is, it is the one of the least mean gap.

    Parameters
    ----------
    max_gap : float
        The largest mean gap over the folds.
    auc, gap : str
        Names in ``scoring`` of the AUC and of an :func:`auc_gap_scorer`.

    Examples
    --------
    >>> results = {"mean_test_auc": [0.8, 0.9, 0.7], "mean_test_gap": [-0.01, -0.2, -0.01]}
    >>> best_within(0.02)(results)
    0
    """
    number("max_gap", max_gap, "must lie in [0, 1].", least=0.0, most=1.0)

    def choose(results: Mapping[str, Any]) -> int:
        area, apart = (np.asarray(results[f"mean_test_{name}"], dtype=np.float64) for name in (auc, gap))
        fair = -apart <= max_gap
        return int(np.nanargmax(np.where(fair, area, -np.inf) if fair.any() else apart))

    return choose
