"""One minus the AUC, followed as an objective: its value, gradient and single samples, and what a fit gains by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score

import minmaxcon as mm
from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.core.constraint import family_of
from minmaxcon.core.linearisation import exact_gradients, exact_values
from minmaxcon_problems.fair_auc.target.fit import fit_target
from minmaxcon_problems.fair_auc.target.followed import FollowedLoss, FrozenDistributions, RememberedScores
from minmaxcon_problems.fair_auc.target.problem import Target, build_target_problem
from minmaxcon_problems.fair_auc.target.ridge import Ridged
from tests.cases import labelled
from tests.problem_library import HalfSquare
from tests.problems.fair_auc.by_pairs import smooth_auc

Array = Any

ROWS = labelled(4, n=150)
POSITIVE = ROWS.label > 0
CLASSES = np.stack([POSITIVE / POSITIVE.mean(), ~POSITIVE / (~POSITIVE).mean()], axis=1)
MODELS = [("linear", "numpy"), ("linear", "torch"), ("mlp", "torch"), ("mlp", "numpy")]


def setting(name: str, engine: str) -> tuple[mm.Model, mm.Finite, Array, FollowedLoss]:
    model: mm.Model = mm.Linear(3) if name == "linear" else mm.MLP(3, 4)
    data = mm.Finite({"features": ROWS.features, "weights": CLASSES}, engine=engine)
    drawn = np.random.default_rng(0).normal(size=(2, model.dimension))
    x = namespace(data.like).asarray(drawn, data.like)
    scores = np.stack([model.predict(w, ROWS.features) for w in drawn])
    return model, data, x, FollowedLoss(model, FrozenDistributions.of(scores, CLASSES, bandwidth=0.1, bins=2**15))


@pytest.mark.parametrize("name, engine", MODELS)
def test_value_and_gradient_are_those_of_the_smoothed_auc(name: str, engine: str) -> None:
    model, data, x, loss = setting(name, engine)
    values, gradients = exact_gradients(family_of([loss]), x, data)
    for r, w in enumerate(np.asarray(to_numpy(x))):
        beta = 0.1 * model.predict(w, ROWS.features).std()

        def smoothed(point: Array, beta: float = beta) -> float:
            h = model.predict(point, ROWS.features)
            return 1.0 - smooth_auc(h[POSITIVE], h[~POSITIVE], beta)

        assert values[r, 0] == pytest.approx(smoothed(w), abs=1e-6)
        for i in range(0, w.size, 3):
            step = np.zeros_like(w)
            step[i] = 1e-5
            slope = (smoothed(w + step) - smoothed(w - step)) / 2e-5
            assert gradients[r, 0, i] == pytest.approx(slope, abs=1e-4)


@pytest.mark.parametrize("name, engine", MODELS)
def test_single_samples_have_the_mean_of_the_whole(name: str, engine: str) -> None:
    _, data, x, loss = setting(name, engine)
    away = 1.1 * x
    whole = exact_values(family_of([loss]), away, data)[:, 0]
    singles = [loss.terms(away, {key: value[i : i + 1] for key, value in data.arrays.items()})[0] for i in range(150)]
    assert np.mean([np.asarray(to_numpy(one)) for one in singles], axis=0) == pytest.approx(whole, rel=1e-9)


def test_one_point_and_a_row_of_points_agree() -> None:
    model, data, x, loss = setting("linear", "numpy")
    scores = model.predict(x[0], ROWS.features)[None]
    alone = FollowedLoss(model, FrozenDistributions.of(scores, CLASSES, bandwidth=0.1, bins=2**15))
    found, many = alone.evaluate(x[0], data.arrays), loss.evaluate(x, data.arrays)
    assert pytest.approx(many.F[0], rel=1e-12) == found.F
    both = many.pullback(np.ones(2), np.zeros((2, 0)))
    assert found.pullback(np.ones(()), np.zeros(0)) == pytest.approx(both[0], rel=1e-9)


def test_the_objective_of_a_fit_is_one_minus_the_true_auc() -> None:
    rows = labelled(3, n=600)
    problem = build_target_problem(rows, Target(metric="group", max_gap=0.05))
    solution = mm.solve(problem, mm.SuccessiveApproximation(tolerance=1e-4, margin=2e-4))
    scores = rows.features @ solution.x
    assert solution.objective == pytest.approx(1.0 - roc_auc_score(rows.label > 0, scores), abs=1e-12)
    assert solution.constraints.max() <= 0


def test_a_refreshed_problem_follows_its_objective_too() -> None:
    problem = build_target_problem(labelled(3, n=200), Target(metric="group", max_gap=0.05))
    x = problem.start_point() + 0.1
    ordinary = problem.refreshed(problem.measure.observe(x))
    assert isinstance(ordinary.objective, FollowedLoss)
    values = exact_values(ordinary.family, x, problem.data)[0]
    observation = problem.measure.observe(x)
    assert observation.objective is not None
    assert values == pytest.approx([observation.objective[1][0], *observation.smoothed[0]], abs=1e-4)


@pytest.mark.parametrize("model", [mm.MLP(3, 4), mm.Linear(3)])
def test_scores_that_are_remembered_change_nothing_and_are_made_once_a_point(model: mm.Model) -> None:
    """Measure, objective and sides of the gap ask for the same ones; other points and other rows are scored anew."""
    rows = ROWS.features
    asked: list[Any] = []

    class Counting(type(model)):  # type: ignore[misc]  # of whichever model
        def evaluate(self, w: Array, features: Array) -> Any:
            asked.append(len(features))
            return super().evaluate(w, features)

    counting = Counting(3, 4) if isinstance(model, mm.MLP) else Counting(3)
    remembered = RememberedScores(counting)
    points = np.random.default_rng(0).normal(size=(2, 2, model.dimension))
    part = rows[:50]
    for w, few in ((points[0], rows), (points[0], rows), (points[0], part), (points[1], rows), (points[0], rows)):
        scores, pullback = remembered.evaluate(w, few)
        expected, pulled = model.evaluate(w, few)
        np.testing.assert_array_equal(scores, expected)
        np.testing.assert_array_equal(pullback(expected), pulled(expected))
    again = [len(rows)] if model.linear else []
    assert asked == [len(rows), *again, len(part), len(rows), len(rows)]


def test_warmup_steps_tell_how_far_the_start_has_come() -> None:
    rows, starts = labelled(3, n=300), []
    for steps in (1, 5, 40):
        target = Target(metric="group", max_gap=0.05, model=mm.MLP(3, 3), warmup_steps=steps)
        states = mm.iterate(build_target_problem(rows, target), mm.SuccessiveApproximation())
        starts.append(next(np.asarray(to_numpy(state.x))[0] for state in states if state.first is None))
    # The loss that is followed to get there, by all pairs.
    losses = []
    for start in starts:
        scores = np.asarray(mm.MLP(3, 3).predict(start, rows.features))
        differences = scores[rows.label > 0][:, None] - scores[rows.label < 0]
        losses.append(float(np.mean((differences - 1.0) ** 2)))
    assert losses[0] > losses[1] > losses[2]


def noisy_auc(w: Array, noise: float) -> float:
    """The smoothed AUC of noisy scores by all pairs."""
    h = ROWS.features @ w
    beta = np.sqrt((0.1 * h.std()) ** 2 + 6.0 / np.pi**2 * noise * (w @ w))
    return smooth_auc(h[POSITIVE], h[~POSITIVE], float(beta))


@pytest.mark.parametrize("engine", ["numpy", "torch"])
def test_a_ridge_counts_noise_in_every_feature(engine: str) -> None:
    """Value and gradient by finite differences; along w, where neither changes, to rounding."""
    problem = build_target_problem(ROWS, Target(metric="group", max_gap=1.0, ridge=4.0), engine=engine)
    w = np.random.default_rng(1).normal(size=3)
    x = namespace(problem.data.like).asarray(w[None], problem.data.like)
    seen = problem.measure.observe(x)
    assert seen.objective[1][0] == pytest.approx(1.0 - noisy_auc(w, 4.0), abs=1e-6)
    gradient = exact_gradients(family_of([seen.objective_surrogate()]), x, problem.data)[1][0, 0]
    for i, unit in enumerate(np.eye(3)):
        slope = (noisy_auc(w - 1e-5 * unit, 4.0) - noisy_auc(w + 1e-5 * unit, 4.0)) / 2e-5
        assert gradient[i] == pytest.approx(slope, abs=2e-3)  # the spread of the scores counts as constant


def test_a_ridge_of_two_functions_is_refused() -> None:
    ridged = [Ridged(HalfSquare(bound=9.0), 0.1, 3) for _ in range(2)]
    with pytest.raises(mm.Unsupported, match="one objective has a ridge penalty: give constraints none"):
        mm.MinMaxProblem(ridged[0], ridged[1:], mm.Ball(3, 1.0), mm.Finite({"points": np.eye(3)}))


def test_a_strong_ridge_leads_to_the_difference_of_the_means() -> None:
    w = fit_target(ROWS, Target(metric="group", max_gap=1.0, ridge=1e6)).parameters
    delta = ROWS.features[POSITIVE].mean(axis=0) - ROWS.features[~POSITIVE].mean(axis=0)
    assert w @ delta / np.linalg.norm(w) / np.linalg.norm(delta) == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize("alpha", [3.0, 300.0])
def test_the_quadratic_loss_with_a_ridge_is_ridge_regression(alpha: float) -> None:
    """As scikit-learn has it, where both classes weigh the same."""
    rows = ROWS.select(np.r_[np.flatnonzero(POSITIVE)[:40], np.flatnonzero(~POSITIVE)[:40]])
    target = Target(metric="group", max_gap=1.0, ridge=alpha / 80, objective="quadratic_auc")
    w = fit_target(rows, target).parameters
    expected = Ridge(alpha=alpha).fit(rows.features, rows.label).coef_
    assert w / np.linalg.norm(w) == pytest.approx(expected / np.linalg.norm(expected), abs=1e-3)


@pytest.mark.parametrize("engine", ["numpy", "torch"])
def test_weight_decay_adds_half_of_it_times_the_squared_norm(engine: str) -> None:
    """Value by pairs and gradient by finite differences, where the AUC is followed; two runs at once."""
    model = mm.MLP(3, 4)
    target = Target(metric="group", max_gap=1.0, model=model, decay=0.3)
    problem = build_target_problem(ROWS, target, engine=engine, dtype="float64")
    x = np.random.default_rng(2).normal(size=(2, model.dimension))
    points = namespace(problem.data.like).asarray(x, problem.data.like)
    seen = problem.measure.observe(points)
    loss = seen.objective_surrogate()
    values, gradients = exact_gradients(family_of([loss]), points, problem.data)
    for r, w in enumerate(x):
        beta = 0.1 * model.predict(w, ROWS.features).std()

        def penalised(point: Array, beta: float = beta) -> float:
            h = model.predict(point, ROWS.features)
            return 1.0 - smooth_auc(h[POSITIVE], h[~POSITIVE], beta) + 0.15 * float(point @ point)

        h = model.predict(w, ROWS.features)
        assert seen.objective[1][r] == pytest.approx(penalised(w), abs=1e-4)
        assert seen.objective[0][r] == pytest.approx(1.0 - roc_auc_score(POSITIVE, h) + 0.15 * w @ w)
        assert values[r, 0] == pytest.approx(penalised(w), abs=1e-4)
        for i in range(0, w.size, 5):
            step = 1e-5 * np.eye(w.size)[i]
            slope = (penalised(w + step) - penalised(w - step)) / 2e-5
            assert gradients[r, 0, i] == pytest.approx(slope, abs=1e-3)


@pytest.mark.parametrize("objective", ["auc", pytest.param("quadratic_auc", marks=pytest.mark.rel)])
def test_more_decay_gives_smaller_weights_and_the_limit_is_met_all_the_same(objective: str) -> None:
    norms = []
    for decay in (0.0, 1e-4, 3e-2):
        target = Target(
            metric="group", max_gap=0.05, model=mm.MLP(3, 2), decay=decay, objective=objective, iterations=40
        )
        found = fit_target(ROWS, target)
        assert found.gap.value <= 0.05
        norms.append(float(np.linalg.norm(found.parameters)))
    assert norms[0] > norms[1] > norms[2]
    with pytest.raises(mm.InvalidInput, match=r"decay=1.0: is for networks"):
        Target(metric="group", max_gap=0.05, decay=1.0)
