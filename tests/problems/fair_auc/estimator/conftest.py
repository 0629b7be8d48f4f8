"""Rows that every test of the estimator may fit."""

from __future__ import annotations

import pytest

from tests.problems.fair_auc.estimator.samples import Rows, biased_rows


@pytest.fixture(scope="session")
def rows() -> Rows:
    return biased_rows(600, 0)


@pytest.fixture(scope="session")
def fresh_rows() -> Rows:
    return biased_rows(600, 1)
