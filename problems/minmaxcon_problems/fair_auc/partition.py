"""The parts of a data set that a model learns from and is judged by, and how a user's rows become such parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from minmaxcon.data import Standardizer, stratified_split_indices
from minmaxcon.errors import InvalidInput

from .labelled import LabelledData

__all__ = ["Dataset", "dataset_from"]


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
    """

    name: str
    train: LabelledData
    validation: LabelledData | None
    test: LabelledData
    notes: tuple[str, ...] = ()
    standardizer: Standardizer | None = None

    def standardized(self) -> Dataset:
        """Return the data set with features standardised by its training part."""
        if self.standardizer is not None:
            return self
        scaler = Standardizer.fit(self.train.features, self.train.feature_names)

        def scaled(part: LabelledData) -> LabelledData:
            return part.replace_rows(scaler.transform(part.features), part.label, part.group)

        validation = None if self.validation is None else scaled(self.validation)
        how = "scaled (not centred: sparse)" if hasattr(self.train.features, "tocsr") else "standardised"
        note = f"Features are {how} by the training part; reported weights are in raw units."
        notes = (*self.notes, note)
        return Dataset(self.name, scaled(self.train), validation, scaled(self.test), notes, scaler)


def stratified_parts(data: LabelledData, fractions: Sequence[float], seed: int) -> list[LabelledData]:
    """Return the parts of the rows, each with its fraction of every combination of label and group."""
    strata = np.stack([data.label, data.group], axis=1)
    return [data.select(rows) for rows in stratified_split_indices(strata, fractions, seed)]


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
        ``test_fraction`` is outside (0, 1).
    """
    if not 0.0 < test_fraction < 1.0:
        raise InvalidInput("test_fraction", test_fraction, "must lie strictly between 0 and 1, such as 0.3.")
    train, test = stratified_parts(data, (1.0 - test_fraction, test_fraction), seed)
    note = f"Split {1 - test_fraction:.0%} / {test_fraction:.0%}, stratified by label and group, seed {seed}."
    whole = Dataset(data.name, train, None, test, (note,))
    return whole.standardized() if standardize else whole
