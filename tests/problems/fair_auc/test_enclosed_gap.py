"""Between which fractions a gap lies, where rounding alone tells scores apart."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon_problems.fair_auc.datasets import Dataset
from minmaxcon_problems.fair_auc.evaluation import enclosed_gap, scores_of
from minmaxcon_problems.fair_auc.labelled import LabelledData
from minmaxcon_problems.fair_auc.target.problem import Target, build_target_problem


@pytest.mark.skipif(np.finfo(np.longdouble).nmant <= 52, reason="NumPy's longest float is float64 here")
def test_a_tie_that_float64_breaks_is_enclosed() -> None:
    """Of four rows of each cell three have one score, and the fourth 1; protected positives lose it beside 1."""
    label, group = np.repeat([1, 1, -1, -1], 4), np.tile(np.repeat([1, -1], 4), 2)
    special, high = (label > 0) & (group > 0), np.arange(16) % 4 == 3
    features = np.where(special[:, None], [1.0, 1.0, 1.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0, 0.0])
    features[high] = [0.0, 0.0, 0.0, 0.0, 1.0]
    rows = LabelledData(features, label, group, tuple("abcde"), ("no", "yes"), ("m", "f"), "rows")
    target = Target(metric="inter_group", max_gap=0.1, model=mm.Linear(5))
    problem = build_target_problem(rows, target, dataset=Dataset("rows", rows, None, rows))
    x, tiny = np.zeros(problem.primal.dimension), 2.0**-55
    x[:5] = [1.0, tiny, tiny, -1.0, 1.0]
    scores = scores_of(problem, x, features)
    assert scores[special & ~high].max() < scores[~special & ~high].min()  # in float64; exactly they are equal
    # Of 16 pairs 3 are won and one is tied; exactly 9 more are.
    lost = Fraction(7, 32) - Fraction(1, 2)
    assert enclosed_gap(problem, x) == [(lost, Fraction(0)), (Fraction(0), -lost)]
