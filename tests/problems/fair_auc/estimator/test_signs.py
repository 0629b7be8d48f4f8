"""Coefficients of a fixed sign: the set is what it claims, and no better model with these signs is missed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import minmaxcon as mm
from minmaxcon.testing import check_generator
from minmaxcon_problems.fair_auc import FairAUCClassifier
from minmaxcon_problems.fair_auc.target.signs import SignedBall
from tests.problems.fair_auc.estimator.samples import Rows, biased_rows, gap_by_pairs

SIGNS = [1, -1, 0, 1]


@pytest.fixture(scope="module")
def rows() -> Rows:
    return biased_rows(1200, 3)


def test_the_projection_is_exact() -> None:
    """Against cvxpy's, inside, outside, and where every sign is wrong."""
    cp = pytest.importorskip("cvxpy")
    ball, rng = SignedBall(1.5, SIGNS), np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(6, 4)) * [[0.3], [1], [1], [3], [3], [9]], [[-1.0, 1.0, 0.0, -2.0]]])
    for point in points:
        u = cp.Variable(4)
        cp.Problem(cp.Minimize(cp.sum_squares(u - point)), ball.cvxpy_constraints(cp, u)).solve(solver="CLARABEL")
        found = ball.project(point.copy())
        np.testing.assert_allclose(found, u.value, atol=1e-4)  # the solver's own accuracy; ours is no farther away
        assert np.linalg.norm(found - point) <= np.linalg.norm(u.value - point) + 1e-6
        assert np.linalg.norm(found) <= 1.5 + 1e-12
        assert (found * np.array(SIGNS) >= 0).all()
    along = rng.normal(size=(5, 4))
    for slope, value in zip(along, ball.linear_minimum(along)[0], strict=True):
        u = cp.Variable(4)
        found = cp.Problem(cp.Minimize(slope @ u), ball.cvxpy_constraints(cp, u)).solve(solver="CLARABEL")
        assert value == pytest.approx(found, abs=1e-5)


@pytest.mark.rel
def test_the_set_passes_all_checks() -> None:
    report = check_generator(SignedBall(2.0, SIGNS))
    assert report.passed, str(report)


@pytest.mark.parametrize("group", [False, True])
def test_coefficients_have_their_signs_and_the_target_is_met(rows: Rows, group: bool) -> None:
    model = FairAUCClassifier(
        "inter_group", max_gap=0.05, monotonic_cst=[-1, 1, 0, 1], use_group=group, alpha=0, random_state=0
    ).fit(rows.X, rows.y, sensitive_features=rows.group)
    w = model.coef_[0]
    assert w[0] <= 0 <= w[1]
    assert w[3] >= 0
    assert min(abs(w[0]), abs(w[1]), abs(w[3])) < 1e-12  # the data ask for other signs
    groups = {"sensitive_features": rows.group} if group else {}
    scores = model.decision_function(rows.X, **groups)
    assert gap_by_pairs("inter_group", scores, rows) <= 0.05
    assert model.status_ is mm.Status.SOLVED
    assert model.price_ >= 0


def test_no_model_of_these_signs_ranks_better(rows: Rows) -> None:
    """Without a target the quadratic loss has a minimiser with such signs, here by scipy's bounds."""
    signs = np.array([0, -1, 0, 1])
    model = FairAUCClassifier(objective="quadratic_auc", max_gap=1.0, monotonic_cst=signs, alpha=0, standardize=False)
    scaled = (rows.X - rows.X.mean(0)) / rows.X.std(0)
    with pytest.warns(UserWarning, match="No sensitive_features"):
        model.fit(scaled, rows.y)
    positive = rows.y == "yes"
    near, far = scaled[positive], scaled[~positive]

    def loss(w: Any) -> float:
        one, other = near @ w, far @ w
        return float(0.5 * (one.var() + other.var() + (one.mean() - other.mean() - 1.0) ** 2))

    bounds = [(0 if s > 0 else None, 0 if s < 0 else None) for s in signs]
    best = minimize(loss, np.zeros(4), bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-10})
    w = np.asarray(model._fitted.fit.parameters)
    assert loss(w) == pytest.approx(best.fun, rel=1e-5)
    assert (w * signs >= 0).all()


@pytest.mark.parametrize("signs", [[], [2, 0], [0.5], [[1, -1]], 1, [float("nan")]])
def test_what_are_no_signs_of_coordinates_is_refused(signs: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=r"signs=.*must hold -1, 0 or 1 for each coordinate"):
        SignedBall(1.0, signs)


def test_names_and_refusals(rows: Rows) -> None:
    frame = pd.DataFrame(rows.X, columns=["age", "income", "debt", "years"])
    found = FairAUCClassifier("group", max_gap=0.1, monotonic_cst={"income": -1}, random_state=0).fit(
        frame, rows.y, sensitive_features=rows.group
    )
    assert found.coef_[0, 1] <= 0
    series = found.set_params(monotonic_cst=pd.Series({"income": -1, "age": 0}))  # by its index, in whatever order
    assert series.fit(frame, rows.y, sensitive_features=rows.group).coef_[0, 1] <= 0
    wrong: list[tuple[dict[str, Any], str, Any]] = [
        ({"monotonic_cst": {"incom": 1}}, "did you mean 'income'", frame),
        ({"monotonic_cst": pd.Series({"incom": 1, "debt": 0})}, "did you mean 'income'", frame),
        ({"monotonic_cst": {"income": 1}}, "no names of columns", rows.X),
        ({"monotonic_cst": [1, 0]}, "for each of 4 features", rows.X),
        ({"monotonic_cst": [2, 0, 0, 0]}, "must give 1", rows.X),
        ({"monotonic_cst": [True, 0, 0, 0]}, "must give 1", rows.X),
        ({"monotonic_cst": {"income": np.True_}}, "must give 1", frame),
        ({"monotonic_cst": [1, 0, 0, 0], "kappa": 0.1}, "acts with max_gap", rows.X),
        ({"monotonic_cst": [1, 0, 0, 0], "method": "bounds"}, "acts with max_gap", rows.X),
        ({"monotonic_cst": [1, 0, 0, 0], "model": "mlp"}, "is for linear models", rows.X),
        ({"monotonic_cst": [1, 0, 0, 0], "use_group": "coefficients"}, "one coefficient a feature", rows.X),
    ]
    for settings, says, X in wrong:
        with pytest.raises(mm.InvalidInput, match=says):
            FairAUCClassifier("group", **settings).fit(X, rows.y, sensitive_features=rows.group)
