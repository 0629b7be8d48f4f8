"""Closed forms of the linear model: moments, the Lagrangian's minimiser, the exact sets, and independent values."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import torch

import minmaxcon as mm
from minmaxcon.arrays import namespace, to_numpy
from minmaxcon_problems.fair_auc import METRICS, least_kappa, plugin
from minmaxcon_problems.fair_auc.surrogate.constraint import AUCFamily, GroupMoments
from tests.cases import fair_auc, labelled
from tests.problems.fair_auc.surrogate.test_constraint import all_pairs, pairs_of

Array = Any


class InPieces(mm.Finite):
    """A source that hands out its rows a few at a time, as one that does not fit in memory would."""

    def chunks(self, rows: int | None = None) -> Iterator[tuple[float, mm.Batch]]:
        return super().chunks(7 if rows is None else min(rows, 7))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("pieces", [False, True])
@pytest.mark.parametrize("metric", ["group", "inter_group", "bpsn_bnsp"])
def test_moments_are_means_and_population_covariances(metric: str, sparse: bool, pieces: bool) -> None:
    rows = labelled(3, n=60, sparse=sparse)
    problem = fair_auc(metric, rows=rows)
    data = problem.data
    assert isinstance(data, mm.Finite)
    moments = GroupMoments.of(InPieces(data.arrays) if pieces else data)
    features = rows.features.toarray() if sparse else rows.features
    slots = [mask for pair in pairs_of(problem) for mask in pair]
    for slot, mask in enumerate(slots):
        assert moments.means[slot] == pytest.approx(features[mask].mean(axis=0), abs=1e-13)
        expected = np.cov(features[mask].T, bias=True)
        assert moments.covariances[slot] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", ["dense", "sparse", "weighted", "float32", "torch", "constraints"])
def test_means_from_moments_are_those_of_a_pass(kind: str) -> None:
    """F, G and the pullback, for several runs; masses are not 1 where weights come from other rows."""
    rows = labelled(2, n=90, sparse=kind == "sparse")
    engine, dtype = ("torch" if kind == "torch" else "numpy"), ("float32" if kind == "float32" else "float64")
    problem = fair_auc("bpsn_bnsp", rows=rows, engine=engine, dtype=dtype, c1=0.4, c2=1.1)
    family, data = problem.family, problem.data
    if kind == "constraints":
        family = problem.constraint_family
    if kind == "weighted":
        assert isinstance(data, mm.Finite)
        shares = np.linspace(0.7, 1.3, data.arrays["weights"].shape[1])
        data = mm.Finite({**data.arrays, "weights": data.arrays["weights"] * shares})
    assert isinstance(data, mm.Finite)
    assert family.knows_means(data)
    rng = np.random.default_rng(1)
    x = namespace(data.like).asarray(problem.primal.sample(rng, 4), data.like)
    found, expected = family.means(x, data), family.evaluate(x, data.arrays)
    close = {"rel": 1e-11, "abs": 1e-11} if dtype == "float64" else {"rel": 1e-4, "abs": 1e-3}
    for own, passed in ((found.F, expected.F), (found.G, expected.G)):
        assert to_numpy(own) == pytest.approx(to_numpy(passed), **close)
    y, a = (namespace(x).asarray(rng.normal(size=part.shape), x) for part in (found.F, found.G))
    assert to_numpy(found.pullback(y, a)) == pytest.approx(to_numpy(expected.pullback(y, a)), **close)
    assert to_numpy(family.refine(x, data)) == pytest.approx(
        to_numpy(AUCFamily.refine(_blind(family), x, data)), **close
    )


def test_rows_are_summed_once_whichever_family_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of a fit makes families anew; moments belong to the rows."""
    sums: list[Any] = []
    of = GroupMoments.of
    monkeypatch.setattr(GroupMoments, "of", lambda data: sums.append(data) or of(data))
    problem = fair_auc("inter_group", 0.1)
    for one in (problem, replace(problem), fair_auc("inter_group", 0.1)):
        assert one.family is not problem.family or one is problem
        for question in (one.at_level(0.3), one.feasibility()):
            question.values(one.start_point())
    assert len(sums) == 2
    assert sums[0] is problem.data.origin


@pytest.mark.parametrize("engine", ["numpy", "torch"])
def test_moments_follow_the_rows(engine: str) -> None:
    """Rows that torch has written over, and arrays that others have replaced, after a solve."""
    problem = fair_auc("group", rows=labelled(2, n=90), engine=engine)
    data: Any = problem.data
    x = namespace(data.like).asarray(problem.primal.sample(np.random.default_rng(1), 2), data.like)
    before = to_numpy(problem.family.means(x, data).F)
    if engine == "torch":
        data.arrays["features"].mul_(1.5)
    else:
        data.arrays["features"] = 1.5 * data.arrays["features"]
    found, passed = (
        to_numpy(at(x, rows).F) for at, rows in ((problem.family.means, data), (problem.family.evaluate, data.arrays))
    )
    assert found == pytest.approx(passed, rel=1e-10)
    assert np.abs(found - before).max() > 1e-3


def test_moments_of_rows_made_in_inference_mode() -> None:
    with torch.inference_mode():
        problem = fair_auc("group", rows=labelled(2, n=90), engine="torch")
        x = namespace(problem.data.like).asarray(np.zeros((1, problem.primal.dimension)), problem.data.like)
        assert to_numpy(problem.family.means(x, problem.data).F) == pytest.approx(
            to_numpy(problem.family.evaluate(x, dict(problem.data.arrays)).F), rel=1e-10
        )


def _blind(family: Any) -> Any:
    """Return the family as one that knows no means."""
    blind = copy.copy(family)
    blind.knows_means = lambda _: False
    return blind


def test_where_moments_have_more_numbers_than_rows_nothing_is_known() -> None:
    narrow = fair_auc("group", rows=labelled(0, n=25))
    assert not narrow.family.knows_means(narrow.data)
    model = fair_auc("group", 1.0, rows=labelled(0, n=200), model=mm.MLP(3, 2))
    assert not model.family.knows_means(model.data)


def minimum(problem: mm.MinMaxProblem, level: mm.LevelProblem, y: Array, a: Array, start: Array) -> float:
    """Minimise the Lagrangian by a general method (SLSQP), from several starts."""
    radius, d = problem.primal.parts[0].radius, problem.primal.parts[0].dimension

    def function(x: Array) -> tuple[float, Array]:
        value, gradient = level.lagrangian(x[None], y[None], a[None])
        return float(value[0]), gradient[0]

    ball = {
        "type": "ineq",
        "fun": lambda x: radius**2 - x[:d] @ x[:d],
        "jac": lambda x: np.concatenate([-2 * x[:d], np.zeros(x.size - d)]),
    }
    found = [
        scipy.optimize.minimize(
            function, x0, jac=True, method="SLSQP", constraints=[ball], options={"ftol": 1e-15, "maxiter": 500}
        )
        for x0 in (start, np.zeros_like(start))
    ]
    return float(min(result.fun for result in found if result.success))


@pytest.mark.parametrize("radius", [10.0, 0.2], ids=["inside", "active_ball"])
@pytest.mark.parametrize("weight", [0.0, 0.7], ids=["plain", "proximal"])
def test_the_lagrangian_is_minimised(radius: float, weight: float) -> None:
    problem = fair_auc("intra_group", 0.3, radius=radius)
    rng = np.random.default_rng(0)
    active = 0
    for trial in range(8):
        center = problem.primal.sample(rng, 1)[0]
        if weight:
            problem = problem.with_proximal(center, weight)
        level = problem.at_level(0.3)
        y = np.array([1.0, 0.0, 0.0]) if trial == 0 else rng.dirichlet(np.ones(3))
        a = np.repeat(y, [1, 2, 2]) * rng.uniform(-0.5, 0.5, 5)
        x = problem.family.lagrangian_minimizer(
            y[None], a[None], problem.data, center[None] if weight else None, weight
        )[0]
        assert problem.primal.contains(x, 1e-9)
        active += abs(np.linalg.norm(x[:3]) - radius) < 1e-9
        value = float(level.lagrangian(x[None], y[None], a[None])[0][0])
        assert value <= minimum(problem, level, y, a, x) + 1e-9
        # which the bound drawn from it confirms from below
        bound = mm.core.lower.lower_bound(level, y[None], a[None], x[None])[0]
        assert bound == pytest.approx(value, abs=1e-9)
    assert (active > 0) == (radius < 1)


def test_a_lagrangian_of_very_many_features_is_left_to_the_general_method() -> None:
    """Where a linear system would cost more than passes; and a network has no system."""
    for options in (
        {"rows": labelled(n=30, d=2001)},
        {"rows": labelled(n=30), "model": mm.MLP(3, 2), "engine": "torch"},
    ):
        problem = fair_auc("inter_group", 0.3, **options)
        level = problem.at_level(0.5)
        y, a = np.full(3, 1.0 / 3.0), np.zeros(level.dual().inner_dimension)
        assert problem.family.lagrangian_minimizer(y[None], a[None], problem.data) is None


def test_a_network_on_sparse_rows_is_that_on_dense_ones() -> None:
    sparse = labelled(2, n=60, sparse=True)
    values = []
    for rows in (sparse, replace(sparse, features=sparse.features.toarray())):
        problem = fair_auc("inter_group", 0.3, rows=rows, model=mm.MLP(3, 2), engine="torch")
        x = problem.start_point() + 0.1
        values.append(np.asarray(problem.at_level(0.0).values(x)))
    np.testing.assert_array_equal(*values)


@pytest.mark.parametrize("at_once", [1, 2**20], ids=["in_pieces", "at_once"])
@pytest.mark.parametrize("weight", [0.0, 0.7], ids=["plain", "proximal"])
def test_minimisers_of_many_runs_are_those_of_each(
    weight: float, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minmaxcon_problems.fair_auc.surrogate.constraint._AT_ONCE", at_once)
    problem, rng = fair_auc("intra_group", 0.3, radius=0.2), np.random.default_rng(1)
    y = rng.dirichlet(np.ones(3), 9)
    y[0] = 0.0, 1.0, 0.0  # the slots of the other functions pull at nothing
    a = np.repeat(y, [1, 2, 2], axis=1) * rng.uniform(-0.5, 0.5, (9, 5))
    centers, weights = problem.primal.sample(rng, 9), weight * np.arange(9)
    found = problem.family.lagrangian_minimizer(y, a, problem.data, centers if weight else None, weights)
    for j in range(9):
        rest = (centers[j : j + 1] if weight else None, weights[j])
        alone = problem.family.lagrangian_minimizer(y[j : j + 1], a[j : j + 1], problem.data, *rest)
        assert found[j] == pytest.approx(alone[0], abs=1e-9)
    assert (np.linalg.norm(found[:, :3], axis=1) >= 0.2 - 1e-9).any()  # some on the ball


def test_fewer_samples_than_features() -> None:
    """Directions without variance: the minimiser runs to the boundary of the ball, and the bound stays tight."""
    rows = labelled(0, n=16, d=40)
    problem = fair_auc("inter_group", 0.1, rows=rows, radius=2.0)
    level, rng = problem.at_level(0.3), np.random.default_rng(0)
    for _ in range(5):
        y = rng.dirichlet(np.ones(3))
        a = np.repeat(y, [1, 2, 2]) * rng.uniform(-0.5, 0.5, 5)
        x = problem.family.lagrangian_minimizer(y[None], a[None], problem.data)[0]
        value = float(level.lagrangian(x[None], y[None], a[None])[0][0])
        assert mm.core.lower.lower_bound(level, y[None], a[None], x[None])[0] == pytest.approx(value, abs=1e-7)
        others = problem.primal.sample(rng, 2000)
        values = level.lagrangian(others, np.tile(y, (2000, 1)), np.tile(a, (2000, 1)))[0]
        assert value <= values.min() + 1e-9


@pytest.mark.parametrize("metric", METRICS)
def test_the_sets_hold_every_optimal_variable_and_no_more(metric: str) -> None:
    """For every w of the sphere the best a, b and alpha lie in their sets; the largest of each touches its bound."""
    problem = fair_auc(metric, 0.1, radius=2.0)
    rows = problem.details.dataset.train
    rng = np.random.default_rng(0)
    w = rng.normal(size=(4000, 3))
    w *= 2.0 / np.linalg.norm(w, axis=1, keepdims=True)
    scores = w @ rows.features.T
    means = np.stack([scores[:, mask].mean(axis=1) for pair in pairs_of(problem) for mask in pair], axis=1)
    offset = float(problem.primal.parts[1].upper.max())
    duals = [c.dual for c in (problem.objective, *problem.constraints)]
    reach = max(dual.reach for dual in duals if dual is not None)
    alpha = means[:, ::2] - means[:, 1::2]
    assert np.abs(means).max() <= offset + 1e-12
    assert np.abs(alpha).max() <= reach + 1e-12
    assert np.abs(means).max() >= 0.99 * offset
    assert np.abs(alpha).max() >= 0.99 * reach
    for dual, columns in zip(duals, ([0], [1, 2], [3, 4]), strict=True):
        assert dual is not None
        assert dual.dimension == len(columns)
        best = dual.maximize(problem.family.evaluate(_at(w, means), problem.data.arrays).G[:, columns])[0]
        np.testing.assert_allclose(best, alpha[:, columns], rtol=0, atol=1e-12)


def _at(w: Array, means: Array) -> Array:
    return np.concatenate([w, means], axis=1)


@pytest.mark.parametrize("metric", METRICS)
def test_three_ways_to_the_value(metric: str) -> None:
    """The exact pass, the plug-in's own evaluation and all pairs agree at any w, the others at the best a and b."""
    problem = fair_auc(metric, 0.1, c1=0.45, c2=1.05)
    for x in problem.primal.sample(np.random.default_rng(1), 5):
        best = problem.family.refine(x[None], problem.data)
        exact = problem.at_level(0.0).values(best)[0]
        report = plugin.evaluate(problem, best[0])
        assert [report["objective"], *report["values"]] == pytest.approx(exact, rel=1e-10)
        assert exact == pytest.approx(all_pairs(problem, x[:3]), rel=1e-10)


@pytest.mark.parametrize("c1, c2", [(0.5, 1.0), (0.25, 1.0), (0.5, 1.2)])
def test_no_model_has_a_kappa_below_the_least(c1: float, c2: float) -> None:
    least = least_kappa(c1, c2)
    assert least == pytest.approx(2 * c1 * c2**2 - 1)
    problem = fair_auc("inter_group", least + 1.0, c1=c1, c2=c2)
    points = problem.family.refine(problem.primal.sample(np.random.default_rng(0), 2000), problem.data)
    values = problem.at_level(np.zeros(2000)).values(points)[:, 1:]
    assert values.max(axis=1).min() >= 1 + least - 1e-12
    start = problem.at_level(0.0).values(problem.start_point())[0, 1:]
    assert start == pytest.approx(1 + least)
    for kappa in (least - 1e-6, [least + 0.1, least - 0.2]):
        with pytest.raises(mm.InvalidInput, match=f"{least:g}"):
            fair_auc("inter_group", kappa, c1=c1, c2=c2)


def test_c1_and_c2_of_one_are_refused_for_every_kappa_below_one() -> None:
    for kappa in (0.0, 0.5, 0.999):
        with pytest.raises(mm.InvalidInput, match=r"infeasible.*kappa below 1"):
            fair_auc("group", kappa, c1=1.0, c2=1.0)
    fair_auc("group", 1.001, c1=1.0, c2=1.0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_least_kappa_itself_leaves_no_room(dtype: str) -> None:
    problem = fair_auc("inter_group", 0.0, dtype=dtype)
    solution = mm.solve(problem, mm.SFLS(oracle=mm.SMD(steps=100, batch_size=20)))
    assert solution.status is mm.Status.NOT_STRICTLY_FEASIBLE
    assert solution.constraints == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize("option", ["c1", "c2", "radius"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_numbers_out_of_range_are_named(option: str, value: float) -> None:
    with pytest.raises(mm.InvalidInput, match=f"^{option}="):
        fair_auc("group", 0.1, **{option: value})


@pytest.mark.parametrize("kappa", [np.nan, [0.1, np.inf], [], [[0.1]], "much", None])
def test_kappas_that_are_no_numbers(kappa: Any) -> None:
    with pytest.raises(mm.InvalidInput, match=r"^kappa="):
        fair_auc("group", kappa)


def test_two_scalings_of_one_problem() -> None:
    """(c1, kappa) = (.5, .1) and (1, 1.2) are the same problem: only (1 + kappa) / (c1 c2^2) matters."""
    one, other = fair_auc("intra_group", 0.1), fair_auc("intra_group", 1.2, c1=1.0)
    assert other.bounds() == pytest.approx(2.0 * one.bounds())
    x = one.primal.sample(np.random.default_rng(0), 3)
    zero = np.zeros(3)
    assert other.at_level(zero).values(x) == pytest.approx(2.0 * one.at_level(zero).values(x), rel=1e-12)


def test_layouts_do_not_mix() -> None:
    one, other = fair_auc("group", 0.1), fair_auc("inter_group", 0.1)
    with pytest.raises(mm.Unsupported, match="layouts"):
        mm.MinMaxProblem(one.objective, other.constraints, one.primal, one.data).at_level(0.5)
