"""What a configuration of the study reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minmaxcon_problems.fair_auc.datasets import Dataset
from minmaxcon_problems.fair_auc.study import load_parts, runs
from tests.cases import labelled


def test_a_process_reads_a_data_set_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """But anew for another split, where the data come without one, and from another folder."""
    read: list[tuple[str, Any, int]] = []

    def load(name: str, data_dir: Any, seed: int) -> Dataset:
        read.append((name, data_dir, seed))
        return Dataset(name, labelled(seed, n=40), None, labelled(9, n=20), ())

    monkeypatch.setattr(runs, "load_dataset", load)
    runs._loaded.cache_clear()
    try:
        first, second, again = (load_parts("a9a", seed) for seed in (0, 1, 0))
        assert read == [("a9a", None, 0)]
        for part in ("train", "validation"):
            one, other, same = (getattr(parts, part).features for parts in (first, second, again))
            assert (one == same).all()
            assert not np.array_equal(one, other)  # the validation part is drawn by the seed
        for seed in (0, 1, 0):
            load_parts("bank", seed)
        monkeypatch.setenv("MINMAXCON_DATA", "elsewhere")
        load_parts("bank", 0)
        load_parts("bank", 0, "there")
        assert read[1:] == [("bank", None, 0), ("bank", None, 1), ("bank", None, 0), ("bank", "there", 0)]
    finally:
        runs._loaded.cache_clear()
