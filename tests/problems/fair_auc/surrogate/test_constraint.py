"""The min-max form of fair AUC: against all pairs, autograd, differences and single samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.arrays import namespace, to_numpy
from minmaxcon_problems.fair_auc import METRICS, resolve_metric
from minmaxcon_problems.fair_auc.surrogate.build import pair_masks
from tests.cases import fair_auc, labelled
from tests.figures import Figure

Array = Any

METRIC_NAMES = list(METRICS)
OWNER = np.array([0, 1, 1, 2, 2])  # which function each of the five pairs belongs to
WIDE = 50.0  # a kappa that every c1 allows


def pairs_of(problem: mm.MinMaxProblem) -> list[tuple[Array, Array]]:
    rows = problem.details.dataset.train
    return pair_masks(rows.label, problem.details.metric, rows.group)


def all_pairs(problem: mm.MinMaxProblem, w: Array) -> Array:
    """f_0, f_1, f_2 by the definition: the mean of c1 (h - h' - c2)^2 over all pairs of both subsets."""
    rows, c1, c2 = problem.details.dataset.train, problem.details.c1, problem.details.c2
    h = np.asarray(rows.features @ w)
    losses = [c1 * np.mean((h[g][:, None] - h[other][None, :] - c2) ** 2) for g, other in pairs_of(problem)]
    return np.bincount(OWNER, weights=losses)


def batch_of(problem: mm.MinMaxProblem, rows: Any = slice(None)) -> dict[str, Array]:
    return {name: value[rows] for name, value in problem.data.arrays.items()}


def draw(problem: mm.MinMaxProblem, seed: int) -> tuple[Array, Array, Array]:
    """Return a point, weights and scaled inner variables, none of them special."""
    rng = np.random.default_rng(seed)
    x = 0.7 * rng.normal(size=problem.primal.dimension)
    return x, rng.dirichlet(np.ones(3)), rng.normal(size=5)


def check_lemma(metric: str, c1: float, seed: int) -> float:
    """Return the largest relative difference of the saddle value from the loss over all pairs."""
    rows = labelled(seed, n=30 + seed % 40, d=1 + seed % 4)
    problem = fair_auc(metric, WIDE, rows=rows, c1=c1, c2=0.5 + 0.25 * (seed % 4))
    rng = np.random.default_rng(seed)
    w = rng.normal(size=rows.features.shape[1])
    start = np.concatenate([w, rng.normal(size=10)])
    x = problem.family.refine(start[None], problem.data)[0]
    found = problem.family.evaluate(x, batch_of(problem))
    # min over a, b: the gradient in them vanishes, and F is a sum of squares in them
    flat = found.pullback(np.ones(3), np.zeros(5))[w.size :]
    assert flat == pytest.approx(0.0, abs=1e-11)
    # max over alpha of alpha G - c1 alpha^2, at its stationary point
    best = np.bincount(OWNER, weights=found.G**2 / (4.0 * c1))
    exact = all_pairs(problem, w)
    assert found.F + best == pytest.approx(exact, rel=1e-10)
    assert problem.at_level(0.0).values(x[None])[0] == pytest.approx(exact, rel=1e-10)
    # away from the minimisers every function is larger
    away = problem.family.evaluate(np.concatenate([w, x[w.size :] + rng.normal(size=10)]), batch_of(problem))
    assert (away.F > found.F).all()
    return float(np.max(np.abs(found.F + best - exact) / exact))


@pytest.mark.parametrize("c1", [0.25, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_lemma1_is_the_loss_over_all_pairs(metric: str, c1: float) -> None:
    for seed in range(4):
        check_lemma(metric, c1, seed)


@pytest.mark.rel
def test_lemma1_on_200_random_sets(figure: Figure) -> None:
    found = [
        check_lemma(METRIC_NAMES[seed % len(METRIC_NAMES)], c1, seed)
        for seed in range(200)
        for c1 in (0.25, 0.5, 1.0, 2.0)
    ]
    figure.total(len(found), "sets and weights")
    figure.largest("relative difference", max(found))


def test_subsets_given_by_the_caller() -> None:
    """Two overlapping subsets of the caller's own, in the order G1, G1', G2, G2'."""
    subsets = [(1, None), (None, 1), (None, None), lambda label, group: (label < 0) | (group < 0)]
    problem = fair_auc(subsets, WIDE)
    w = np.array([0.4, -0.3, 0.8])
    x = problem.family.refine(np.concatenate([w, np.zeros(10)])[None], problem.data)
    assert problem.at_level(0.0).values(x)[0] == pytest.approx(all_pairs(problem, w), rel=1e-10)
    rows = problem.details.dataset.train
    h = rows.features @ w
    g1, g1_other, g2, g2_other = resolve_metric(subsets).masks(rows.label, rows.group).T

    def pair(g: Any, other: Any) -> Any:
        return 0.5 * np.mean((h[g][:, None] - h[other][None, :] - 1.0) ** 2)

    # f_1 is large where AUC(G1, G1') exceeds AUC(G2, G2'), so its pairs are (G1', G1) and (G2, G2')
    assert all_pairs(problem, w)[1] == pytest.approx(pair(g1_other, g1) + pair(g2, g2_other))
    assert all_pairs(problem, w)[2] == pytest.approx(pair(g2_other, g2) + pair(g1, g1_other))


def torch_saddle(problem: mm.MinMaxProblem, x: Array, y: Array, a: Array) -> tuple[float, Array]:
    """Write <y, F> + <a, G> anew in torch, from the formulas and the masks alone."""
    import torch

    rows, c1, c2 = problem.details.dataset.train, problem.details.c1, problem.details.c2
    d = rows.features.shape[1]
    point = torch.tensor(x, requires_grad=True)
    h = torch.tensor(rows.features) @ point[:d]
    total = torch.zeros((), dtype=torch.float64)
    for pair, (g, other) in enumerate(pairs_of(problem)):
        left, right = (torch.tensor(mask / mask.mean()) for mask in (g, other))
        offset_left, offset_right = point[d + 2 * pair], point[d + 2 * pair + 1]
        loss = c1 * c2**2 + (-2 * c1 * c2 * h + c1 * (h - offset_left) ** 2) * left
        loss = loss + (2 * c1 * c2 * h + c1 * (h - offset_right) ** 2) * right
        total = total + y[OWNER[pair]] * loss.mean() + a[pair] * (2 * c1 * h * (left - right)).mean()
    total.backward()
    assert point.grad is not None
    return total.item(), point.grad.numpy()


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_gradients_are_those_of_autograd_and_of_differences(metric: str, figure: Figure) -> None:
    problem, worst = fair_auc(metric, WIDE, c1=0.7, c2=1.3), 0.0
    for seed in range(50):
        x, y, a = draw(problem, seed)
        found = problem.family.evaluate(x, batch_of(problem))
        gradient = found.pullback(y, a)
        value, expected = torch_saddle(problem, x, y, a)
        assert y @ found.F + a @ found.G == pytest.approx(value, rel=1e-12)
        apart = float(np.max(np.abs(gradient - expected)) / np.max(np.abs(expected)))
        assert apart <= 1e-12
        worst = max(worst, apart)
        # the saddle function is quadratic in x, so central differences are exact but for rounding
        shifts = 1e-4 * np.eye(x.size)
        moved = problem.family.evaluate(x + np.concatenate([shifts, -shifts]), batch_of(problem))
        ahead, behind = np.split(moved.F @ y + moved.G @ a, 2)
        assert gradient == pytest.approx((ahead - behind) / 2e-4, abs=1e-7)
    figure.largest("from autograd", worst)


def test_one_constraint_alone_gives_what_the_family_gives() -> None:
    problem = fair_auc("intra_group", WIDE)
    x, y, a = draw(problem, 0)
    together = problem.family.evaluate(x, batch_of(problem))
    single = [c.evaluate(x, batch_of(problem)) for c in (problem.objective, *problem.constraints)]
    assert np.array([part.F for part in single]) == pytest.approx(together.F, rel=1e-13)
    assert np.concatenate([part.G for part in single]) == pytest.approx(together.G, rel=1e-13)
    cuts = np.split(a, [1, 3])
    total = sum(part.pullback(y[i], cuts[i]) for i, part in enumerate(single))
    assert total == pytest.approx(together.pullback(y, a), rel=1e-12)
    mean, moment = problem.objective.terms(x, batch_of(problem))
    assert (mean, moment) == (pytest.approx(together.F[0]), pytest.approx(together.G[:1]))
    without_objective = problem.constraint_family.evaluate(x, batch_of(problem))
    assert pytest.approx(together.F[1:], rel=1e-13) == without_objective.F
    pulled = without_objective.pullback(y[1:], a[1:])
    assert pulled == pytest.approx(together.pullback(np.r_[0.0, y[1:]], np.r_[0.0, a[1:]]), rel=1e-12)


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_single_samples_are_unbiased(metric: str) -> None:
    """The mean over all batches of one sample is the value on the whole data: F, G and the gradient."""
    problem = fair_auc(metric, WIDE, rows=labelled(3, n=50))
    x, y, a = draw(problem, 1)
    whole = problem.family.evaluate(x, batch_of(problem))
    parts = [problem.family.evaluate(x, batch_of(problem, [i])) for i in range(50)]
    assert np.mean([p.F for p in parts], axis=0) == pytest.approx(whole.F, rel=1e-12)
    assert np.mean([p.G for p in parts], axis=0) == pytest.approx(whole.G, rel=1e-12, abs=1e-13)
    gradient = np.mean([p.pullback(y, a) for p in parts], axis=0)
    assert gradient == pytest.approx(whole.pullback(y, a), rel=1e-12, abs=1e-13)


def test_batches_without_a_member_of_a_group() -> None:
    problem = fair_auc("inter_group", WIDE)
    rows = problem.details.dataset.train
    x, y, a = draw(problem, 2)
    for label in (-1, 1):
        for group in (-1, 1):
            members = np.flatnonzero((rows.label == label) & (rows.group == group))[:5]
            found = problem.family.evaluate(x, batch_of(problem, members))
            for part in (found.F, found.G, found.pullback(y, a)):
                assert np.isfinite(part).all()


def test_refine_never_makes_a_function_larger() -> None:
    for metric in METRIC_NAMES:
        problem = fair_auc(metric, WIDE)
        level = problem.at_level(np.zeros(50))
        points = problem.primal.sample(np.random.default_rng(0), 50)
        for family in (problem.family, problem.constraint_family):
            better = family.refine(points, problem.data)
            assert better[:, :3] == pytest.approx(points[:, :3], abs=0)
            assert (level.values(better) <= level.values(points) + 1e-12).all()


def each_pair_of_engines() -> list[Any]:
    def sparse(**options: Any) -> mm.MinMaxProblem:
        return fair_auc(rows=labelled(4, sparse=True), **options)

    def dense(**options: Any) -> mm.MinMaxProblem:
        rows = labelled(4, sparse=True)
        return fair_auc(rows=replace(rows, features=rows.features.toarray()), **options)

    def torch(**options: Any) -> mm.MinMaxProblem:
        rows = labelled(4, sparse=True)
        rows = replace(rows, features=rows.features.toarray())
        return fair_auc(rows=rows, engine="torch", **options)

    return [pytest.param(dense, sparse, id="sparse"), pytest.param(dense, torch, id="torch")]


@pytest.mark.parametrize("dtype, apart", [("float64", 1e-12), pytest.param("float32", 1e-5, marks=pytest.mark.rel)])
@pytest.mark.parametrize("first, second", each_pair_of_engines())
@pytest.mark.parametrize("runs, steps", [(1, 200), pytest.param(3, 2000, marks=pytest.mark.rel)])
def test_engines_take_the_same_steps(
    first: Callable[..., mm.MinMaxProblem],
    second: Callable[..., mm.MinMaxProblem],
    runs: int,
    steps: int,
    dtype: str,
    apart: float,
    figure: Figure,
) -> None:
    """Iterates, averages and bounds agree over 2,000 steps."""
    estimates = []
    for build in (first, second):
        problem = build(kappa=0.1, dtype=dtype)
        start = mm.Start(problem.start_point(runs), None, mm.Position.start(np.random.default_rng(5)))
        estimates.append(mm.SMD(steps=steps, batch_size=20).query(problem.at_level(np.linspace(0.3, 0.4, runs)), start))
    one, other = estimates
    named = ("x", "weights", "scaled", "upper", "values")
    parts = {name: (getattr(one, name), getattr(other, name)) for name in named} | {"next": (one.next.x, other.next.x)}
    found = {name: float(np.abs(to_numpy(a) - to_numpy(b)).max()) for name, (a, b) in parts.items()}
    figure.largest(f"difference of engines in {dtype}", max(found.values()))
    assert {name: far for name, far in found.items() if not far <= apart} == {}


@pytest.mark.parametrize("engine", ["numpy", "torch"])
def test_single_precision_stays_single_and_near_double(engine: str) -> None:
    """No step of a float32 solve is promoted, and 500 steps stay within 1e-4 of float64."""
    estimates = []
    for dtype in ("float64", "float32"):
        problem = fair_auc(kappa=0.1, engine=engine, dtype=dtype)
        start = mm.Start(problem.start_point(2), None, mm.Position.start(np.random.default_rng(5)))
        smd = mm.SMD(steps=500, batch_size=20)
        state = smd.begin(problem.at_level([0.3, 0.4]), start)
        while not smd.finished(state):
            state = smd.advance(state)
        assert dtype in str(state.x.dtype)
        assert dtype in str(state.y.weights.dtype)
        assert "float64" in str(state.sums.dtype)  # averages are kept in float64 whatever the precision of the steps
        assert namespace(state.x).name == engine
        estimates.append(smd.estimate(state))
    for name in ("x", "weights", "upper"):
        assert to_numpy(getattr(estimates[1], name)) == pytest.approx(to_numpy(getattr(estimates[0], name)), abs=1e-4)
