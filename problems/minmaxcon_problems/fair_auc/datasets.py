"""Data sets: their parts, those of a user's rows, and the named ones in the settings of the paper.

Every step that changes the data is declared in ``Dataset.notes``; nothing is changed that is not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from minmaxcon.checks import choice, flag, instance, number
from minmaxcon.data import Standardizer, split_indices, stratified_split_indices
from minmaxcon.errors import DataError, InvalidInput
from minmaxcon.tables import (
    Column,
    ColumnEncoding,
    Table,
    TableEncoding,
    fit_encoding,
    read_source,
    wooldridge_columns,
)

from .labelled import LabelledData, group_of, label_of, read_table

__all__ = [
    "DATASETS",
    "Dataset",
    "DatasetInfo",
    "dataset_from",
    "dataset_of_parts",
    "load_a9a",
    "load_bank",
    "load_catholic",
    "load_compas",
    "load_dataset",
    "load_loanapp",
    "load_twoyear",
    "missing_files",
]


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """The parts of a data set.

    Attributes
    ----------
    name : str
        Name or file.
    train : LabelledData
        The rows to learn from.
    validation : LabelledData or None
        The rows to select a model by, where the setting has them.
    test : LabelledData
        The rows to judge the model by.
    notes : tuple of str
        Declared steps and caveats, one sentence each.
    standardizer : Standardizer or None
        What the features of all parts were standardised with, learned on ``train``; its ``fold`` returns a weight to
        raw units. None where they are raw.

    Examples
    --------
    >>> from minmaxcon_problems.fair_auc import load_dataset
    >>> data = load_dataset("twoyear")
    >>> data.train.features.shape, len(data.test.label), data.validation
    ((3383, 17), 3380, None)
    """

    name: str
    train: LabelledData
    validation: LabelledData | None
    test: LabelledData
    notes: tuple[str, ...] = ()
    standardizer: Standardizer | None = None
    streamed: ClassVar[bool] = False

    def standardized(self) -> Dataset:
        """Return the data set with features standardised by its training part."""
        if self.standardizer is not None:
            return self
        scaler = Standardizer.fit(self.train.features, self.train.feature_names)
        validation = None if self.validation is None else self.validation.scaled(scaler)
        how = "scaled (not centred: sparse)" if hasattr(self.train.features, "tocsr") else "standardised"
        note = f"Features are {how} by the training part; reported weights are in raw units."
        notes = (*self.notes, note)
        return Dataset(self.name, self.train.scaled(scaler), validation, self.test.scaled(scaler), notes, scaler)


def stratified_indices(data: LabelledData, fractions: Sequence[float], seed: int) -> Sequence[Any]:
    """Return the indices of parts of the rows, each with its fraction of every combination of label and group."""
    strata = np.stack([data.label, *(signs for *_, signs in data.each_group)], axis=1)
    return stratified_split_indices(strata, fractions, seed)


def stratified_parts(data: LabelledData, fractions: Sequence[float], seed: int) -> list[LabelledData]:
    """Return the parts of the rows, each with its fraction of every combination of label and group."""
    return [data.select(rows) for rows in stratified_indices(data, fractions, seed)]


def dataset_from(data: LabelledData, *, test_fraction: float = 0.3, standardize: bool = True, seed: int = 0) -> Dataset:
    """Return a user's data, split by label and group into a training and a test part.

    Parameters
    ----------
    data : LabelledData
        From :func:`minmaxcon.data.read_table`.
    test_fraction : float
        Share of the test part, in (0, 1).
    standardize : bool
        Whether features are standardised by the training part.
    seed : int
        Seed of the split.

    Raises
    ------
    InvalidInput
        ``test_fraction`` is outside (0, 1), or an argument of another type.
    """
    instance("data", data, LabelledData, "must be LabelledData, such as read_table() returns.")
    remedy = "must lie strictly between 0 and 1, such as 0.3."
    test_fraction, standardize = (
        number("test_fraction", test_fraction, remedy, above=0.0, below=1.0),
        flag("standardize", standardize),
    )
    train, test = stratified_parts(data, (1.0 - test_fraction, test_fraction), seed)
    note = f"Split {1 - test_fraction:.0%} / {test_fraction:.0%}, stratified by label and group, seed {seed}."
    whole = Dataset(data.name, train, None, test, (note,))
    return whole.standardized() if standardize else whole


def dataset_of_parts(
    train: LabelledData, *, test: LabelledData, validation: LabelledData | None = None, standardize: bool = True
) -> Dataset:
    """Return a data set of parts that are files of their own, read as :func:`read_parts` reads them.

    Features are standardised by the training part where ``standardize`` says so.
    """
    named = (("training", train), ("validation", validation), ("test", test))
    told = ", ".join(f"{name} {part.name} ({len(part):,} rows)" for name, part in named if part is not None)
    note = f"Parts are files of their own: {told}. Categories are those of the training part."
    whole = Dataset(train.name, train, validation, test, (note,))
    return whole.standardized() if standardize else whole


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


def _encoded(
    table: Table, encoding: TableEncoding, label: Any, group: Any, label_values: Any, group_values: Any, name: str
) -> LabelledData:
    features, names = encoding.encode_table(table), encoding.feature_names
    return LabelledData(features, label, group, names, label_values, group_values, name, encoding)


def load_loanapp(_paths: Sequence[Path], seed: int) -> Dataset:
    """Return the mortgage applications of the package wooldridge; no file is read."""
    columns = {name: Column.of_numbers(name, numbers) for name, numbers in wooldridge_columns("loanapp").items()}
    table = Table("loanapp", columns, len(columns["approve"].numbers))
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
    whole = _encoded(table, encoding, label, group, label_values, ("white", "not white"), "loanapp")
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


_TWOYEAR_FEATURES = (
    *("phsrank", "BA", "AA", "exper", "jc", "univ", "stotal", "smcity", "medcity", "submed", "lgcity", "sublg"),
    *("vlgcity", "subvlg", "ne", "nc", "south"),
)
_CATHOLIC_FEATURES = ("read12", "female", "motheduc", "fatheduc", "lfaminc", "cathhs", "parcath")


def load_twoyear(_paths: Sequence[Path], seed: int) -> Dataset:
    """Return the workers of Kane and Rouse in the package wooldridge, to be ranked by wage; no file is read."""
    columns = wooldridge_columns("twoyear", [*_TWOYEAR_FEATURES, "lwage", "female"])
    notes = (
        "Label: hourly wage above the median. Protected: women; sex is no feature.",
        "Features: rank and test score at school, degrees, credits, experience, size of town and region.",
        "Not features: id, female, black, hispanic, lwage, totcoll (the sum of jc and univ).",
    )
    women = columns.pop("female") == 1
    return _halves("twoyear", columns, "lwage", "wage", women, ("men", "women"), notes, seed)


def load_catholic(_paths: Sequence[Path], seed: int) -> Dataset:
    """Return the pupils of Altonji, Elder and Taber in the package wooldridge, to be ranked by mathematics; no file."""
    columns = wooldridge_columns("catholic", [*_CATHOLIC_FEATURES, "math12", "black", "hispan"])
    notes = (
        "Label: mathematics score above the median. Protected: pupils who are black or Hispanic; neither is a feature.",
        "Features: reading score, sex, the parents' education and income, Catholic school, Catholic parent.",
        "Not features: id, asian, black, hispan, hsgrad (1,460 of 7,430 missing), math12.",
    )
    minority = columns.pop("black") + columns.pop("hispan") > 0
    values = ("others", "black or Hispanic")
    return _halves("catholic", columns, "math12", "mathematics", minority, values, notes, seed)


def _halves(
    name: str,
    columns: dict[str, NDArray[np.float64]],
    scored: str,
    what: str,
    protected: NDArray[np.bool_],
    group_values: tuple[str, str],
    notes: tuple[str, ...],
    seed: int,
) -> Dataset:
    """Return rows whose label is a column above its median, half of every label and group held out."""
    score = columns.pop(scored)
    label = np.where(score > np.median(score), 1, -1).astype(np.int8)
    group = np.where(protected, 1, -1).astype(np.int8)
    table = Table(name, {key: Column.of_numbers(key, numbers) for key, numbers in columns.items()}, len(label))
    encoding = TableEncoding(tuple(ColumnEncoding(key) for key in columns))
    values = (f"{what} at most the median", f"{what} above the median")
    whole = _encoded(table, encoding, label, group, values, group_values, name)
    train, test = stratified_split_indices(np.stack([label, group], axis=1), (0.5, 0.5), seed)
    split = f"Nothing is missing. Split 50% / 50%, stratified by label and group, seed {seed}."
    return Dataset(name, whole.select(train), None, whole.select(test), (*notes, split))


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
    ages = ("age below 25 or above 60", "age 25 to 60")
    whole = _encoded(table, encoding, label, group, label_values, ages, "bank")
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
    whole = _encoded(table, encoding, label, group, (0, 1), group_values, "compas")
    unknown = int((recid.numbers == -1).sum())
    notes = (
        "Label: is_recid = 1. Protected: Caucasian, as in the paper; race stays a feature.",
        f"All {table.rows:,} rows, {len(encoding.feature_names)} features; the paper's 14 attributes are unknown.",
        "Text columns have one 0/1 feature per category but the first.",
        f"is_recid = -1 (no case found) in {unknown} rows counts as no recidivism.",
        "Nearly all of these have charge degree O, so the feature c_charge_degree=O leaks that label.",
    )
    return _random_parts(whole, seed, notes)


VARIABLE = "MINMAXCON_DATA"
"""Environment variable that names the folder of data files."""


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """A named data set, as `minmaxcon data` lists it.

    ``files`` are read from the data folder, plain or with ``.gz``; none where a package brings the data.
    ``standardize`` is the default for the features, and ``load(paths, seed)`` returns the raw :class:`Dataset`.
    ``own_split`` says that the data come with their parts, whatever the seed.
    """

    name: str
    description: str
    source: str
    licence: str
    files: tuple[str, ...]
    standardize: bool
    load: Callable[[Sequence[Path], int], Dataset]
    own_split: bool = False


def load_dataset(
    name: str, *, data_dir: str | Path | None = None, seed: int = 0, standardize: bool | None = None
) -> Dataset:
    """Return a data set by name.

    Files are sought in ``data_dir``, else in the folder that the environment variable MINMAXCON_DATA names, else in
    ``../shared/data`` beside a checkout.

    Parameters
    ----------
    name : str
        A name of ``DATASETS``.
    data_dir : path, optional
        Folder of the files.
    seed : int
        Seed of the split, where the data come without one.
    standardize : bool, optional
        Whether features are standardised by the training part; by default as the paper does (a9a: no; others: yes).

    Raises
    ------
    UnknownName
        No data set has that name.
    InvalidInput
        ``data_dir`` is empty, or no path.
    DataError
        A folder or file is missing: what was sought, where, and how to get it; or the file is damaged.
    MissingDependency
        The package that brings the data is not installed.
    """
    choice("data", name, DATASETS)
    if standardize is not None:
        flag("standardize", standardize)
    check_folder(data_dir)
    info = DATASETS[name]
    data = info.load([_find(name, file, data_dir) for file in info.files], seed)
    return data.standardized() if (info.standardize if standardize is None else standardize) else data


def missing_files(name: str, data_dir: str | Path | None = None) -> str:
    """Return which file of a data set is not there, and where it was sought; empty if all are."""
    try:
        for file in DATASETS[name].files:
            _find(name, file, data_dir)
    except DataError as failure:
        return failure.problem
    return ""


def check_folder(data_dir: Any) -> None:
    """Refuse a data folder that is empty, which would be the current one, or no path."""
    if data_dir is None or (isinstance(data_dir, str | os.PathLike) and os.fspath(data_dir).strip()):
        return
    raise InvalidInput("data_dir", data_dir, "name a folder, '.' for the current one.")


def _data_folder(data_dir: str | Path | None) -> tuple[Path, str]:
    """Return the folder of the data files and what named it."""
    if data_dir is not None:
        return Path(data_dir), "--data-dir"
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE]), VARIABLE
    return Path(__file__).resolve().parents[4] / "shared" / "data", "the default, beside a checkout"


def _find(name: str, file: str, data_dir: str | Path | None) -> Path:
    folder, origin = _data_folder(data_dir)
    try:
        for candidate in (folder / f"{file}.gz", folder / file):
            if candidate.is_file():
                return candidate
        defect = f"has no {file}.gz or {file}" if folder.is_dir() else "is not a folder"
    except OSError as failure:
        defect = f"cannot be used ({failure.strerror})"
    raise DataError(
        name,
        f"{folder} ({origin}) {defect}; download the data with 'minmaxcon data get {name}', then name the folder with"
        f" --data-dir or {VARIABLE}.",
    )


DATASETS: dict[str, DatasetInfo] = {
    info.name: info
    for info in (
        DatasetInfo(
            "loanapp",
            "mortgage approval and race, 1,989 applications, 53 features (embedded default, needs no network)",
            "Hunter and Walker (1996), in the package wooldridge",
            "package wooldridge (MIT); data of Wooldridge, Introductory Econometrics",
            (),
            True,
            load_loanapp,
        ),
        DatasetInfo(
            "twoyear",
            "wages and sex, 6,763 workers, 17 features (embedded, needs no network)",
            "Kane and Rouse (1995), in the package wooldridge",
            "package wooldridge (MIT); data of Wooldridge, Introductory Econometrics",
            (),
            True,
            load_twoyear,
        ),
        DatasetInfo(
            "catholic",
            "mathematics and origin, 7,430 pupils, 7 features (embedded, needs no network)",
            "Altonji, Elder and Taber (2005), in the package wooldridge",
            "package wooldridge (MIT); data of Wooldridge, Introductory Econometrics",
            (),
            True,
            load_catholic,
        ),
        DatasetInfo(
            "a9a",
            "income and sex, 32,561 training and 16,281 test rows, 123 binary features",
            "LIBSVM data sets, from UCI Adult",
            "CC BY 4.0 (UCI Adult)",
            ("a9a", "a9a.t"),
            False,
            load_a9a,
            own_split=True,
        ),
        DatasetInfo(
            "bank",
            "subscription and age, 41,188 calls, 53 features",
            "UCI Bank Marketing, bank-additional-full.csv; cite Moro, Cortez and Rita (2014)",
            "CC BY 4.0",
            ("bank-additional-full.csv",),
            True,
            load_bank,
        ),
        DatasetInfo(
            "compas",
            "recidivism and race, 11,757 defendants, 13 features",
            "ProPublica, compas-analysis, compas-scores.csv",
            "none stated by the source",
            ("compas-scores.csv",),
            True,
            load_compas,
        ),
    )
}
"""The data sets that have a name."""
