"""Groups that a model may read: features that give each group its own shift, or its own coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from minmaxcon.checks import choice
from minmaxcon.data import Standardizer
from minmaxcon.errors import DataError, InvalidInput
from minmaxcon_problems.fair_auc.labelled import LabelledData, listed, position_of

from .inputs import SENSITIVE, sensitive_column

__all__ = [
    "checked_use_group",
    "rows_with_groups",
    "shifts_unpenalised",
    "signs_of_column",
    "signs_of_values",
    "with_groups",
]

_UNPENALISED = 10.0
"""By how much shifts are scaled up in training: a ridge penalty counts a hundredth for them."""


def checked_use_group(use_group: Any) -> str:
    """Return "", "shift" or "coefficients"; True stands for the shift. Raises UnknownName for anything else."""
    if isinstance(use_group, bool):
        return "shift" if use_group else ""
    return choice("use_group", use_group, ("shift", "coefficients"))


def with_groups(features: Any, signs: Sequence[Any], way: str) -> Any:
    """Return features (n, d), dense or CSR, with those that the groups add; ``way`` is of :func:`checked_use_group`.

    ``signs`` are those (n,) of each group that is compared with the rest. Of several, which all rows are divided
    between, the last one is what the shifts of the others are measured from.
    """
    members = [np.asarray(sign) > 0 for sign in (signs if len(signs) == 1 else signs[:-1])]
    if hasattr(features, "tocsr"):
        from scipy.sparse import csr_matrix, hstack

        parts = [csr_matrix(np.stack(members, axis=1).astype(np.float64))]
        own = [features.multiply(member[:, None]) for member in members] if way == "coefficients" else []
        return hstack([features, *own, *parts], format="csr")
    own = [features * member[:, None] for member in members] if way == "coefficients" else []
    return np.concatenate([features, *own, np.stack(members, axis=1)], axis=1)


def rows_with_groups(rows: LabelledData, way: str) -> LabelledData:
    """Return rows with the features of their groups."""
    values, signs = [value for value, _, _ in rows.each_group], [sign for _, _, sign in rows.each_group]
    values = values if len(values) == 1 else values[:-1]
    own = [f"{name}, {value}" for value in values for name in rows.feature_names] if way == "coefficients" else []
    names = (*rows.feature_names, *own, *(f"group {value}" for value in values))
    return replace(rows, features=with_groups(rows.features, signs, way), feature_names=names)


def shifts_unpenalised(scaler: Standardizer, shifts: int) -> Standardizer:
    """Return a scaling under which the last features, shifts of groups, hardly count in a ridge penalty."""
    scale = scaler.scale.copy()
    scale[-shifts:] /= _UNPENALISED
    return Standardizer(scaler.mean, scale)


def signs_of_values(values: Any, rows: int, groups: Sequence[Any], compared: Sequence[Any]) -> list[Any]:
    """Return the signs (n,) of each compared group, for sensitive features as users give them.

    ``groups`` are all values that were fitted. Raises DataError for another value, or one that is missing, and
    InvalidInput where there are none.
    """
    if values is None:
        raise InvalidInput(SENSITIVE, None, "the model reads the group: give the group of each row.")
    return signs_of_column(sensitive_column(values, rows), groups, compared)


def signs_of_column(column: Any, groups: Sequence[Any], compared: Sequence[Any]) -> list[Any]:
    """Return the signs (n,) of each compared group, for a column without missing values."""
    place = {value: code for code, value in enumerate(groups)}
    codes = np.empty(len(column), dtype=np.int64)
    for row, value in enumerate(column.tolist()):
        code = place.get(value)
        if code is None:
            raise DataError(
                SENSITIVE,
                f"row {row} (counted from 0) has the group {value!r}, which fit has not seen; its groups are"
                f" {listed(list(groups))}.",
            )
        codes[row] = code
    meant = [np.array([position_of([value], one) == 0 for value in groups]) for one in compared]
    return [np.where(mine[codes], 1, -1).astype(np.int8) for mine in meant]
