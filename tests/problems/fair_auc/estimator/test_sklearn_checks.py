"""scikit-learn's own suite, without a single expected failure."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from minmaxcon_problems.fair_auc import FairAUCClassifier
from tests.figures import Figure


# The suite knows no sensitive features, of which the estimator warns, and has data of more features than rows.
@pytest.mark.filterwarnings("ignore:No sensitive_features were given")
@pytest.mark.filterwarnings("ignore:30 features tell .* rows apart")
@parametrize_with_checks([FairAUCClassifier(objective="quadratic_auc")])
def test_the_suite_of_scikit_learn(estimator: Any, check: Any, figure: Figure) -> None:
    """With the objective that takes least; what the suite asks does not depend on it."""
    check(estimator)
    figure.total(1, "checks of scikit-learn without an exception")


@pytest.mark.rel
@pytest.mark.filterwarnings("ignore:No sensitive_features were given")
@pytest.mark.filterwarnings("ignore:30 features tell .* rows apart")
@pytest.mark.filterwarnings("ignore:partial_fit starts from the fitted model")
@parametrize_with_checks([FairAUCClassifier(), FairAUCClassifier(objective="logistic")])
def test_the_suite_of_scikit_learn_with_other_objectives(estimator: Any, check: Any, figure: Figure) -> None:
    check(estimator)
    figure.total(1, "checks of scikit-learn without an exception")
