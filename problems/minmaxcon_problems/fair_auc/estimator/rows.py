"""Rows as users give them to a fit, made into labelled rows: those to train on, and their own rows to judge by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minmaxcon.errors import DataError, InvalidInput
from minmaxcon_problems.fair_auc.labelled import LabelledData, listed

from .groups import signs_of_column
from .inputs import (
    MOST_COMPARED,
    SENSITIVE,
    feature_names,
    group_signs,
    positive_code,
    present,
    require_aligned,
    require_few_pairs,
    sensitive_column,
    validated,
    weights_of,
)

__all__ = ["Given", "given_rows", "training_rows", "validation_rows"]


@dataclass(frozen=True, eq=False, slots=True)
class Given:
    """Features (n, d), labels (n,), sensitive values and weights (n,), each None where there are none.

    Rows of weight 0, and those that the user wants to leave out, are gone.
    """

    features: Any
    labels: Any
    column: Any
    weight: Any

    @property
    def total(self) -> float:
        """How many rows these stand for."""
        return float(len(self.labels) if self.weight is None else self.weight.sum())

    @property
    def row_weight(self) -> Any:
        """The weights where they differ."""
        return None if self.weight is None or self.weight.min() == self.weight.max() else self.weight


def given_rows(
    estimator: Any, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, *, reset: bool, suffix: str = ""
) -> Given:
    """Return checked rows; messages add ``suffix`` to the names of arguments that are not in line."""
    parts = {"X": X, "y": y, SENSITIVE: sensitive_features, "sample_weight": sample_weight}
    require_aligned({name + suffix: part for name, part in parts.items()})
    features, labels = validated(estimator, X, y, reset=reset)
    weight = None if sample_weight is None else weights_of(sample_weight, len(labels))
    kept = np.ones(len(labels), dtype=np.bool_) if weight is None else weight > 0
    column: Any = None
    if sensitive_features is not None:
        column = sensitive_column(sensitive_features, len(labels), estimator.unknown)
        kept &= present(column)
    if not kept.all():
        features, labels = features[kept], labels[kept]
        weight, column = (None if part is None else part[kept] for part in (weight, column))
    return Given(features, labels, column, weight)


def training_rows(estimator: Any, given: Given) -> tuple[LabelledData, Any]:
    """Return labelled rows and the classes (2,), sorted, which say what positive and protected mean.

    Of several groups those are compared that have ``min_rows_per_cell`` rows of either label. Raises DataError or
    InvalidInput where labels or groups are too few, too many to compare every two of them, or not those asked for.
    """
    classes, code = np.unique(given.labels, return_inverse=True)
    values = classes.tolist()
    if len(values) < 2:
        raise DataError("y", f"has one class only, {values[0]!r} in every row; give rows of two classes.")
    chosen = positive_code(values, estimator.positive)
    sign = np.where(code == chosen, 1, -1).astype(np.int8)
    group, group_values, groups = np.ones(len(sign), dtype=np.int8), (SENSITIVE, SENSITIVE), ()
    if given.column is not None:
        pairs = estimator.against == "each_other"
        found = group_signs(given.column, estimator.protected, MOST_COMPARED, each_other=pairs)
        group, group_values, groups = found
    first, more = (group[:, 0], group[:, 1:]) if group.ndim == 2 else (group, None)
    rows = LabelledData(
        given.features,
        sign,
        first,
        feature_names(estimator),
        (values[1 - chosen], values[chosen]),
        group_values,
        "the training data",
        more_groups=more,
        groups=groups,
        each_other=more is not None and estimator.against == "each_other",
    )
    rows = _of_large_groups(rows, estimator.min_rows_per_cell)
    if rows.each_other:
        require_few_pairs(len(rows.compared or rows.groups))
    return rows, classes


def _of_large_groups(rows: LabelledData, least: int | None) -> LabelledData:
    """Leave out of the comparison each of several groups that has fewer rows of a label than ``least``."""
    if least is None or not rows.groups:
        return rows
    members = [(value, signs > 0) for value, _, signs in rows.each_group]
    if rows.more_groups is None:
        members.append((rows.group_values[0], rows.group < 0))
    counts = [[int((mine & (rows.label == sign)).sum()) for sign in (-1, 1)] for _, mine in members]
    large = [k for k, count in enumerate(counts) if min(count) >= least]
    if len(large) == len(members):
        return rows
    if len(large) < 2:
        few = ", ".join(
            f"{members[k][0]!r} has {count[0]:,} and {count[1]:,}" for k, count in enumerate(counts) if k not in large
        )
        raise InvalidInput(
            "min_rows_per_cell",
            least,
            f"leaves fewer than two groups to compare ({few} rows of the labels {listed(rows.label_values)}): give more"
            " rows, merge groups, or ask for fewer rows.",
        )
    signs, values = [rows.group, *rows.more_groups.T], tuple(members[k][0] for k in large)
    more = np.stack([signs[k] for k in large[1:]], axis=1)
    named = (f"not {values[0]}", values[0])
    return replace(rows, group=signs[large[0]], more_groups=more, compared=values, group_values=named)


def validation_rows(given: Given, rows: LabelledData) -> LabelledData:
    """Return the user's own rows to judge by, with labels and groups as in the training rows.

    Raises DataError for a label or group that those do not have, and InvalidInput where one of both has groups and the
    other has none.
    """
    if (given.column is None) == bool(rows.groups):
        remedy = "give the groups of training and validation rows, or of neither."
        raise InvalidInput(f"{SENSITIVE}_val", "none" if given.column is None else "given", remedy)
    known = np.isin(given.labels, np.array(rows.label_values))
    if not known.all():
        row = int(np.argmin(known))
        other = given.labels[row : row + 1].tolist()[0]
        raise DataError(
            "y_val", f"row {row} (counted from 0) has the label {other!r}; labels are {listed(rows.label_values)}."
        )
    sign = np.where(given.labels == rows.label_values[1], 1, -1).astype(np.int8)
    signs = [np.ones(len(sign), dtype=np.int8)]
    if rows.groups:
        signs = signs_of_column(given.column, rows.groups, [value for value, _, _ in rows.each_group])
    more = None if rows.more_groups is None else np.stack(signs[1:], axis=1)
    return replace(
        rows, features=given.features, label=sign, group=signs[0], more_groups=more, name="the validation rows"
    )
