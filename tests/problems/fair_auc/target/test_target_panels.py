"""The panels of the paper with linear models, at a target of 0.02."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from minmaxcon_problems.fair_auc import Dataset, load_dataset
from tests.problems.fair_auc.by_pairs import masks_of
from tests.problems.fair_auc.fits import check, fit, judged

# AUC on the test rows that no panel may fall below: what was asked of a9a; for bank and COMPAS, what was measured with
# seed 0, less 0.003.
LEAST: dict[tuple[str, str], float] = {
    ("a9a", "group"): 0.880,
    ("a9a", "inter_group"): 0.892,
    ("a9a", "intra_group"): 0.893,
    ("bank", "group"): 0.904,
    ("bank", "inter_group"): 0.926,
    ("bank", "intra_group"): 0.879,
    ("compas", "group"): 0.714,
    ("compas", "inter_group"): 0.713,
    ("compas", "intra_group"): 0.716,
}


@cache
def shared(name: str, folder: Path, seed: int = 0) -> Dataset:
    return load_dataset(name, data_dir=folder, seed=seed)


QUICK = [("compas", "group")]


@pytest.mark.data
@pytest.mark.parametrize(
    "name, metric",
    [*QUICK, *(pytest.param(*panel, marks=pytest.mark.slow) for panel in LEAST if panel not in QUICK)],
)
def test_panels_of_the_paper(shared_data: Path, name: str, metric: str) -> None:
    data = shared(name, shared_data)
    found = fit(metric, 0.02, data.train)
    gap, _ = judged(found, data.train, masks_of(data.train, metric))
    assert found.train_gap.value == pytest.approx(gap, abs=1e-9)
    assert gap <= 0.0205
    assert gap >= 0.017 or found.unconstrained_gap.value <= 0.0205
    _, area = judged(found, data.test, masks_of(data.test, metric))
    assert area >= LEAST[name, metric]


@pytest.mark.data
@pytest.mark.rel
@pytest.mark.parametrize(
    "name, metric, least",
    [
        ("bank", "inter_group", 0.923),
        ("bank", "intra_group", 0.868),
        ("compas", "group", 0.722),
        ("compas", "inter_group", 0.722),
        ("compas", "intra_group", 0.713),
    ],
)
def test_panels_of_the_paper_over_five_splits(shared_data: Path, name: str, metric: str, least: float) -> None:
    areas = []
    for seed in range(5):
        data = shared(name, shared_data, seed)
        found = fit(metric, 0.02, data.train)
        check(found, data.train, masks_of(data.train, metric), 0.02)
        areas.append(judged(found, data.test, masks_of(data.test, metric))[1])
    assert np.mean(areas) >= least
