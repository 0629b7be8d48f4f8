"""A small data set in which the label depends on the features and one feature on the group."""

from __future__ import annotations

import numpy as np
import pytest

from minmaxcon_problems.fair_auc import Dataset
from minmaxcon_problems.fair_auc.labelled import LabelledData


def rows_of(n: int, seed: int) -> LabelledData:
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(n) < 0.3, 1, -1)
    features = rng.normal(size=(n, 4))
    features[:, 0] += 0.8 * group
    label = np.where(features @ [1.0, 1.0, 0.5, 0.0] + rng.normal(size=n) > 0.5, 1, -1)
    return LabelledData(features, label.astype(np.int8), group.astype(np.int8), ("a", "b", "c", "d"), name="made up")


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    return Dataset("made up", rows_of(900, 0), rows_of(400, 1), rows_of(400, 2))
