"""Constraints that follow the AUC: gradients, single samples, both engines, and the run axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.core.linearisation import exact_gradients, exact_values
from minmaxcon_problems.fair_auc.target.followed import FollowingAUC, FollowingFamily, FrozenDistributions
from tests.cases import labelled
from tests.problems.fair_auc.by_pairs import masks_of, smooth_auc

Array = Any

ROWS = labelled(4, n=150)
MASKS = masks_of(ROWS, "inter_group")
SHARES = MASKS / MASKS.mean(axis=0)
MODELS = {("linear", "numpy"), ("linear", "torch"), ("mlp", "torch")}


def model_of(name: str) -> mm.Model:
    return mm.Linear(3) if name == "linear" else mm.MLP(3, 4)


def source(engine: str) -> mm.Finite:
    return mm.Finite({"features": ROWS.features, "subsets": SHARES}, engine=engine)


def point(model: mm.Model, engine: str, runs: int, seed: int = 0, extra: int = 2) -> Array:
    """Parameters and two variables that the constraint has nothing to do with."""
    drawn = np.random.default_rng(seed).normal(size=(runs, model.dimension + extra))
    return namespace(source(engine).like).asarray(drawn, source(engine).like)


def scores_of(model: mm.Model, x: Array) -> Array:
    return np.stack([model.predict(np.asarray(to_numpy(w))[: model.dimension], ROWS.features) for w in x])


def sides_at(model: mm.Model, x: Array, bins: int = 2**15) -> list[FollowingAUC]:
    frozen = FrozenDistributions.of(scores_of(model, x), SHARES, bandwidth=0.1, bins=bins)
    return [FollowingAUC(model, frozen, sign, bound=0.1) for sign in (1.0, -1.0)]


@pytest.mark.parametrize("name, engine", sorted(MODELS))
def test_values_are_the_smoothed_gap_and_its_negative(name: str, engine: str) -> None:
    model = model_of(name)
    x = point(model, engine, 2)
    values = exact_values(FollowingFamily(sides_at(model, x)), x, source(engine))
    for r, scores in enumerate(scores_of(model, x)):
        h, beta = [scores[MASKS[:, g]] for g in range(4)], 0.1 * scores.std()
        gap = smooth_auc(h[0], h[1], beta) - smooth_auc(h[2], h[3], beta)
        assert values[r] == pytest.approx([gap, -gap], abs=1e-6)


@pytest.mark.parametrize("away", [0.0, 0.1])
@pytest.mark.parametrize("name, engine", sorted(MODELS))
def test_gradients_are_central_differences(name: str, engine: str, away: float) -> None:
    """Of the exact followed form where x has moved, and at the proximal point itself."""
    model = model_of(name)
    start = point(model, engine, 1)
    family = FollowingFamily(sides_at(model, start, bins=2**17))
    x = start + away * point(model, engine, 1, seed=5)
    _, gradients = exact_gradients(family, x, source(engine))
    step = 1e-4
    for j in range(model.dimension):
        shift = namespace(x).asarray(step * np.eye(int(x.shape[1]))[j], x)
        ahead, behind = (exact_values(family, at, source(engine)) for at in (x + shift, x - shift))
        slope = (ahead - behind) / (2 * step)
        assert gradients[0, :, j] == pytest.approx(slope[0], abs=2e-4 * (1 + abs(slope).max()))
    assert (gradients[..., model.dimension :] == 0).all()
    assert gradients[:, 0] == pytest.approx(-gradients[:, 1], abs=1e-14)


@pytest.mark.parametrize("name, engine", sorted(MODELS))
def test_single_samples_are_unbiased(name: str, engine: str) -> None:
    """The mean over all batches of one row is the full batch, in value and gradient."""
    model, data = model_of(name), source(engine)
    x = point(model, engine, 2)
    family = FollowingFamily(sides_at(model, x))
    moved = 0.8 * x
    whole = dict(data.arrays)
    y = namespace(x).asarray(np.array([[0.3, 0.5], [0.7, 0.1]]), x)
    full = family.evaluate(moved, whole)
    value, gradient = np.asarray(to_numpy(full.F)), np.asarray(to_numpy(full.pullback(y, full.G)))
    values, gradients = np.zeros_like(value), np.zeros_like(gradient)
    for i in range(len(ROWS)):
        one = family.evaluate(moved, {key: part[i : i + 1] for key, part in whole.items()})
        values += np.asarray(to_numpy(one.F)) / len(ROWS)
        gradients += np.asarray(to_numpy(one.pullback(y, one.G))) / len(ROWS)
    assert values == pytest.approx(value, abs=1e-12)
    assert gradients == pytest.approx(gradient, abs=1e-12)


def test_engines_agree() -> None:
    model = mm.Linear(3)
    found = [
        exact_gradients(
            FollowingFamily(sides_at(model, point(model, "numpy", 2))), 0.9 * point(model, engine, 2), source(engine)
        )
        for engine in ("numpy", "torch")
    ]
    for one, other in zip(*found, strict=True):
        assert one == pytest.approx(other, abs=1e-13)


@pytest.mark.parametrize("name, engine", sorted(MODELS))
def test_a_run_of_many_is_the_run_alone(name: str, engine: str) -> None:
    model = model_of(name)
    x = point(model, engine, 3)
    sides = sides_at(model, x)
    many = exact_gradients(FollowingFamily(sides), 0.9 * x, source(engine))
    for j in range(3):
        frozen = sides_at(model, x[j : j + 1])[0].frozen
        alone = [FollowingAUC(model, frozen, sign) for sign in (1.0, -1.0)]
        found = exact_gradients(FollowingFamily(alone), 0.9 * x[j : j + 1], source(engine))
        for one, other in zip(found, many, strict=True):
            assert one[0] == pytest.approx(other[j], abs=1e-12)
        taken = FollowingAUC(model, frozen, -1.0, bound=0.1)
        single = exact_values(mm.core.constraint.family_of([taken]), 0.9 * x[j : j + 1], source(engine))
        assert single[0, 0] == pytest.approx(many[0][j, 1], abs=1e-12)
        assert taken.bound == 0.1


@pytest.mark.parametrize("runs", [1, 2])
def test_one_side_alone_and_one_point_without_a_run_axis(runs: int) -> None:
    model, data = mm.Linear(3), source("numpy")
    x = point(model, "numpy", runs)
    sides = sides_at(model, x)
    both = FollowingFamily(sides).evaluate(x, dict(data.arrays))
    for j, side in enumerate(sides):
        alone = side.evaluate(x, dict(data.arrays))
        np.testing.assert_array_equal(alone.F, both.F[:, j])
        np.testing.assert_array_equal(side.terms(x, dict(data.arrays))[0], both.F[:, j])
        assert side.terms(x, dict(data.arrays))[1] is None
        weights = np.zeros((runs, 2))
        weights[:, j] = 2.0
        np.testing.assert_allclose(
            alone.pullback(np.full(runs, 2.0), alone.G), both.pullback(weights, both.G), atol=1e-15
        )
    if runs == 1:
        flat = sides[0].evaluate(x[0], dict(data.arrays))
        assert flat.F.shape == ()
        assert float(flat.F) == both.F[0, 0]
        assert flat.pullback(np.array(1.0), flat.G).shape == x[0].shape


def test_sides_of_different_points_cannot_be_fused() -> None:
    model = mm.Linear(3)
    one, other = (sides_at(model, point(model, "numpy", 1, seed=seed))[0] for seed in (0, 1))
    with pytest.raises(mm.Unsupported, match="same distributions"):
        FollowingFamily([one, other])


def test_they_are_constraints_that_any_solver_takes() -> None:
    """Constraints of an ordinary problem: the level-set method lowers the followed gap below its bound."""
    from tests.problem_library import HalfSquare

    model, data = mm.Linear(3), mm.Finite({"features": ROWS.features, "subsets": SHARES, "points": ROWS.features})
    start = np.array([0.02, -0.01, 0.0])
    sides = sides_at(model, np.array([[1.0, 0.5, -0.5]]))
    problem = mm.MinMaxProblem(HalfSquare(), sides, mm.Ball(3, 2.0), data, start=start)
    solver = mm.IQRC(oracle=mm.SFLS(oracle=mm.SMD(steps=100), levels=3), iterations=3, weight=1.0)
    with pytest.warns(mm.WeakConvexityWarning, match="weight=1 is not above .* 'AUC gap'"):
        solution = mm.solve(problem, solver, seed=0)
    assert np.isfinite(solution.objective)
    assert solution.constraints.shape == (2,)


def test_both_sides_of_a_gap_pull_back_through_the_scores_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = mm.MLP(3, 4)
    x = point(model, "numpy", 2)
    family = FollowingFamily(sides_at(model, x))
    expected, pulled, evaluate = exact_gradients(family, x, source("numpy"))[1], [], mm.MLP.evaluate

    def counted(self: mm.MLP, w: Array, features: Array) -> Any:
        scores, pullback = evaluate(self, w, features)
        return scores, lambda slope: pulled.append(slope) or pullback(slope)

    monkeypatch.setattr(mm.MLP, "evaluate", counted)
    assert (exact_gradients(family, x, source("numpy"))[1] == expected).all()
    assert len(pulled) == 1
    found = family.evaluate(x, {"features": ROWS.features, "subsets": SHARES})
    mixed = found.pullback(np.array([[0.2, 0.7], [0.5, 0.1]]), np.zeros((2, 0)))
    assert mixed == pytest.approx(np.array([[-0.5], [0.4]]) * expected[:, 0], abs=1e-12)
