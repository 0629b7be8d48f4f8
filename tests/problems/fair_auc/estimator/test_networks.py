"""Networks in the estimator: the paper's, any torch module, a model of the framework; and what importing loads."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

import minmaxcon as mm
from minmaxcon.errors import InvalidInput
from minmaxcon_problems.fair_auc import FairAUCClassifier
from tests.cases import promises
from tests.problems.fair_auc.estimator.samples import Rows, gap_by_pairs


def two_layers(features: int) -> Any:
    import torch

    return torch.nn.Sequential(torch.nn.Linear(features, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1))


MODELS = {
    "mlp": lambda: "mlp",
    "factory": lambda: two_layers,
    "module": lambda: two_layers(4),
    "model": lambda: mm.mlp(4, hidden=3),
}


@pytest.mark.parametrize("name", promises(MODELS, ["mlp", "module"]))
def test_networks_meet_the_gap(rows: Rows, name: str) -> None:
    if name in ("factory", "module"):  # whose Jacobian takes ten times as long
        rows = rows.take(slice(0, 150 if name == "module" else 200))
    found = FairAUCClassifier("group", max_gap=0.05, model=MODELS[name](), random_state=0)
    found.fit(rows.X, rows.y, sensitive_features=rows.group)
    scores = found.decision_function(rows.X)
    assert found.gap_.value == pytest.approx(gap_by_pairs("group", scores, rows), abs=1e-4)
    assert found.gap_.value <= 0.051
    assert found.auc_.value == pytest.approx(roc_auc_score(rows.y == "yes", scores), abs=1e-4)
    assert found.auc_.value > 0.7
    assert not hasattr(found, "coef_")
    np.testing.assert_allclose(found.decision_function(csr_matrix(rows.X)), scores)
    for other in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        np.testing.assert_array_equal(other.decision_function(rows.X), scores)
    again = clone(found)
    assert not hasattr(again, "gap_")
    if name == "factory":
        again.fit(rows.X, rows.y, sensitive_features=rows.group)
        np.testing.assert_array_equal(again.decision_function(rows.X), scores)


@pytest.mark.filterwarnings("ignore:.*target:sklearn.exceptions.ConvergenceWarning")  # stopped by the clock
def test_a_factory_gets_the_number_of_features_and_leaves_torchs_seed_alone(rows: Rows) -> None:
    import torch

    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    fits = [
        FairAUCClassifier("group", max_gap=0.1, model=two_layers, random_state=seed, time_limit=0.2).fit(
            rows.X[:100], rows.y[:100], sensitive_features=rows.group[:100]
        )
        for seed in (0, 0, 1)
    ]
    assert torch.rand(1) == expected
    first, same, other = (fit._fitted.fit.model.start(0) for fit in fits)
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


def test_kappa_with_a_network(rows: Rows) -> None:
    solver = mm.IQRC(oracle=mm.SFLS(oracle=mm.SMD(steps=40), levels=2), iterations=2)
    found = FairAUCClassifier("group", kappa=0.5, model="mlp", solver=solver, random_state=0)
    found.fit(rows.X, rows.y, sensitive_features=rows.group)
    assert found.solution_.feasible
    assert found.gap_.value == pytest.approx(gap_by_pairs("group", found.decision_function(rows.X), rows), abs=1e-6)


def test_a_bound_that_is_none_is_refused(rows: Rows) -> None:
    with pytest.raises(InvalidInput, match="score_bound=-1"):
        FairAUCClassifier(model=two_layers, score_bound=-1).fit(rows.X, rows.y, sensitive_features=rows.group)


def test_importing_the_problem_loads_neither_scikit_learn_nor_torch() -> None:
    code = (
        "import sys, minmaxcon_problems.fair_auc as f\n"
        "heavy = ('torch', 'cvxpy', 'matplotlib', 'sklearn')\n"
        "print([name for name in heavy if name in sys.modules])\n"
        "f.FairAUCClassifier\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split("\n")[:2] == ["[]", "['sklearn']"]
