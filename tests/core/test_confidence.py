"""Bounds from fresh samples: they cover, narrow with the root of the samples, and spend what they are given."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import t

import minmaxcon as mm
from minmaxcon.core import confidence as module
from minmaxcon.core.confidence import _around, look, share_of_look, student
from minmaxcon.core.lower import lower_bound
from tests.normal_stream import COSTS, FUNCTIONS, POINTS, Normal, half_space, true_values
from tests.problem_library import HalfSquare, Linear

X = np.array([[0.7, -0.2, 0.4]])


def every_function(dtype: str = "float64") -> mm.MinMaxProblem:
    functions = [make() for make in FUNCTIONS.values()]
    return mm.MinMaxProblem(functions[0], functions[1:], mm.Ball(3, 3.0), Normal(dtype=dtype))


def misses(seeds: int, samples: int, beta: float) -> dict[str, float]:
    """Count how often a bound from above is below the true value, of each function; and a bound from below above it."""
    problem, names = every_function(), list(FUNCTIONS)
    true = np.array([true_values(X[0])[name] for name in names])
    level, one = problem.at_level(0.0), np.array([[0.5, 0.5]])
    simple, best = half_space()
    counts = dict.fromkeys([*names, "first", "lower"], 0)
    y, a = np.full((1, 5), 0.2), np.zeros((1, level.dual().inner_dimension))
    for seed in range(seeds):
        position = mm.Position.start(np.random.default_rng(seed))
        found = look(level, [X], y, a, position, samples=samples, beta=beta, lower=False)
        assert found is not None
        for name, bound, value in zip(names, found.upper[0, 0], true, strict=True):
            counts[name] += bool(bound < value)
        counts["first"] += bool(found.first[0] > true[0])
        below = look(simple.at_level(best), [X], one, np.zeros((1, 0)), position, samples=samples, beta=beta)
        assert below is not None
        counts["lower"] += bool(best + below.lower[0] / 0.5 > best)
    return counts


def test_bounds_cover_in_a_few_draws() -> None:
    """Each misses once in ten times; 5 or more misses of 6 have a probability of 0.006%."""
    assert max(misses(6, 640, 0.1).values()) <= 4


@pytest.mark.rel
def test_bounds_cover_over_200_seeds_and_are_not_wide() -> None:
    """At 5% each 10 misses of 200 are expected; 18 or more have a probability below 1%. Where a function is smooth the
    bound is as tight as a bound can be: it misses sometimes."""
    found = misses(200, 1600, 0.05)
    assert max(found.values()) <= 17
    assert min(found[name] for name in ("square", "linear", "robust", "first")) >= 2


def test_the_bound_on_the_first_function_is_at_the_inner_variables_of_the_duals() -> None:
    """Near the mean at those, by many other samples, and below it."""
    robust = FUNCTIONS["robust"]()
    level = mm.MinMaxProblem(robust, [FUNCTIONS["linear"]()], mm.Ball(3, 3.0), Normal()).at_level(0.0)
    alpha = np.array([[0.2, -0.1, 0.15]])[:, : robust.dual.dimension]
    draw = level.data.draw(mm.Position.start(np.random.default_rng(9)), 1, 400_000)[0]
    found = robust.evaluate(X, next(draw))
    mean = float((found.F + (found.G * alpha).sum(axis=-1) - robust.dual.penalty(alpha))[0])
    position = mm.Position.start(np.random.default_rng(0))
    seen = look(level, [X], np.array([[0.4, 0.6]]), 0.4 * alpha, position, samples=40_000, beta=0.05, lower=False)
    assert seen is not None
    assert mean - 0.2 < seen.first[0] < mean + 0.02


@pytest.mark.parametrize("name", FUNCTIONS)
def test_widths_fall_with_the_root_of_the_samples(name: str) -> None:
    level, i = every_function().at_level(0.0), list(FUNCTIONS).index(name)
    y, a = np.full((1, 5), 0.2), np.zeros((1, level.dual().inner_dimension))
    widths = []
    for samples in (1000, 16000):
        found = [
            look(
                level,
                [X],
                y,
                a,
                mm.Position.start(np.random.default_rng(seed)),
                samples=samples,
                beta=0.05,
                lower=False,
            )
            for seed in range(6)
        ]
        widths.append(np.mean([each.upper[0, 0, i] - each.mean[0, 0, i] for each in found if each is not None]))
    assert 3.0 <= widths[0] / widths[1] <= 5.3


class Raised(HalfSquare):
    """The same with a constant of a million, which no sample scatters."""

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        return mm.Evaluation(found.F + 1e6, found.G, found.pullback)


def test_a_constant_makes_no_bound_from_below_looser() -> None:
    problem, best = half_space()
    bounds = []
    for objective, level in ((problem.objective, best), (Raised(), best + 1e6)):
        like = replace(problem, objective=objective).at_level(level)
        position = mm.Position.start(np.random.default_rng(0))
        found = look(like, [X], np.array([[0.5, 0.5]]), np.zeros((1, 0)), position, samples=1600, beta=0.05)
        assert found is not None
        bounds.append(found.lower[0])
    assert bounds[1] == pytest.approx(bounds[0], abs=1e-3)


def test_the_lower_bound_narrows_too() -> None:
    simple, best = half_space()
    gaps = []
    for samples in (2000, 32000):
        position = mm.Position.start(np.random.default_rng(0))
        found = look(
            simple.at_level(best), [X], np.array([[0.5, 0.5]]), np.zeros((1, 0)), position, samples=samples, beta=0.05
        )
        assert found is not None
        gaps.append(-found.lower[0])
    # the least value of 0.5 (f_0 - best) + 0.5 (f_1 - b) over X is at POINTS - COSTS, and is what is left in the end
    x = POINTS - COSTS
    exact = 0.5 * (true_values(x)["square"] - best + true_values(x)["linear"] - 0.2)
    # the deviation falls with the root of the samples, Jensen's loss with the samples
    assert 3.0 <= (gaps[0] + exact) / (gaps[1] + exact) <= 17.0


def test_the_lower_bound_moves_with_the_level() -> None:
    """By what the level moves by, times the multiplier of the objective; from the same samples."""
    simple, best = half_space()
    position, duals = mm.Position.start(np.random.default_rng(1)), (np.array([[0.25, 0.75]]), np.zeros((1, 0)))
    found = [
        look(simple.at_level(best + by), [X], *duals, position, samples=1000, beta=0.05) for by in (0.0, -2.0, 4.0)
    ]
    lower = [float(one.lower[0]) for one in found if one is not None]
    assert np.diff(lower) == pytest.approx([0.5, -1.5], abs=1e-5)
    values = true_values(POINTS - 3.0 * COSTS)  # where 0.25 f_0 + 0.75 f_1 is least
    exact = 0.25 * (values["square"] - best) + 0.75 * (values["linear"] - 0.2)
    assert exact - 0.5 <= lower[0] <= exact


def test_all_looks_together_spend_delta() -> None:
    spent = [share_of_look(0.1, k) for k in range(1, 20_000)]
    assert sum(spent) <= 0.1
    assert sum(spent) >= 0.0999
    assert student(5, 0.05) == pytest.approx(2.131846786 / math.sqrt(5))  # a table's value


def test_the_corners_surround_the_ellipsoid() -> None:
    """In every direction the corners reach as far as the ellipsoid, and no farther in the steepest one."""
    rng = np.random.default_rng(0)
    for q in (1, 2, 4, 24):  # the last has more inner variables than blocks
        W = rng.normal(size=(20, q + 1)) @ rng.normal(size=(q + 1, q + 1))
        alpha = rng.normal(size=q)
        corners, S = _around(W, alpha, 0.3) - W.mean(axis=0), np.cov(W.T)
        for direction in rng.normal(size=(50, q + 1)):
            assert (corners @ direction).max() >= 0.3 * math.sqrt(direction @ S @ direction) - 1e-12
        steep = np.concatenate([[1.0], alpha])
        assert (corners @ steep).max() == pytest.approx(0.3 * math.sqrt(steep @ S @ steep))


def test_runs_proximal_terms_and_single_precision() -> None:
    """A run gives what it gives alone, the proximal term is added, float32 is widened, a short stream gives none."""
    problem, best = half_space()
    problem = problem.with_bounds(np.array([0.2, 0.4])).with_proximal(np.zeros(3), 0.5)
    x, y, a = np.concatenate([X, -X]), np.array([[0.5, 0.5], [0.8, 0.2]]), np.zeros((2, 0))
    position = mm.Position.start(np.random.default_rng(3))
    level = problem.at_level(np.array([best, best]))
    both = look(level, [x], y, a, position, samples=640, beta=0.1)
    alone = look(level.take([1]), [x[1:]], y[1:], a[1:], position, samples=640, beta=0.1)
    assert both is not None
    assert alone is not None
    assert both.upper[0, 1] == pytest.approx(alone.upper[0, 0], rel=1e-12)
    assert both.lower[1] == pytest.approx(alone.lower[0], rel=1e-6)
    plain = look(replace(level, proximal=None), [x], y, a, position, samples=640, beta=0.1)
    assert plain is not None
    assert both.upper - plain.upper == pytest.approx(0.25 * np.sum(x * x, axis=1)[None, :, None] + np.zeros((1, 2, 2)))
    single, _ = half_space(dtype="float32")
    low = look(single.at_level(best), [X.astype("float32")], y[:1], a[:1], position, samples=640, beta=0.1)
    assert low is not None
    assert low.upper.dtype == np.float64
    short, _ = half_space(limit=100)
    assert look(short.at_level(best), [X], y[:1], a[:1], position, samples=64, beta=0.1) is None


def test_a_lagrangian_is_bounded_in_the_runs_whose_proximal_term_covers_the_modulus() -> None:
    """One run has a term that covers the modulus of 1 and one has not; without a term nothing is bounded."""
    data, weights = Normal(), np.array([2.0, 0.5])
    dented = Dented()
    problem = mm.MinMaxProblem(dented, [Linear(0.2)], mm.Ball(3, 3.0), data)
    y, a, x = np.array([[0.5, 0.5]] * 2), np.zeros((2, 0)), np.concatenate([X, X])
    level = problem.with_proximal(np.zeros((2, 3)), weights).at_level(np.zeros(2))
    position = mm.Position.start(np.random.default_rng(0))
    found = look(level, [x], y, a, position, samples=6400, beta=0.01)
    assert found is not None
    # 0.5 (|x - E p|^2 / 2 + c - |x|^2 / 2 + <E q, x> - 0.2) + |x|^2 is least at (E p - E q) / 4
    least = (POINTS - COSTS) / 4.0
    terms = true_values(least)
    exact = 0.5 * (terms["square"] - 0.5 * least @ least + terms["linear"] - 0.2) + least @ least
    assert exact - 0.5 <= found.lower[0] <= exact
    assert found.lower[1] == -np.inf
    dented.asked = 0
    plain = look(replace(level, proximal=None), [x], y, a, position, samples=640, beta=0.1)
    assert plain is not None
    assert (plain.lower == -np.inf).all()
    assert dented.asked == 32  # once for each half block: no time is spent on minimising what is not convex


class Dented(HalfSquare):
    """Half the squared distance less half the squared norm, which is linear and declares a modulus of 1."""

    modulus, asked = 1.0, 0

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        self.asked += 1
        found = super().evaluate(x, batch)
        value = found.F - 0.5 * (x * x).sum(-1)
        return mm.Evaluation(value, found.G, lambda y, a: found.pullback(y, a) - y[..., None] * x)


def test_the_mean_is_that_of_the_rows_that_are_read() -> None:
    """Each once: the rows of a look in two halves are those of the position, drawn again."""
    problem, best = half_space()
    position = mm.Position.start(np.random.default_rng(5))
    level = problem.at_level(best)
    found = look(level, [X], np.array([[0.5, 0.5]]), np.zeros((1, 0)), position, samples=640, beta=0.1)
    assert found is not None
    assert found.samples == found.position.samples == 640
    batches, _ = problem.data.draw(position, 16, 40)
    values = [problem.family.evaluate(X, batch).F[0] for batch in batches]
    np.testing.assert_allclose(found.mean[0, 0], np.mean(values, axis=0), rtol=1e-12)
    batches, _ = problem.data.draw(position, 16, 40)
    halves = [{name: rows[k : k + 20] for name, rows in batch.items()} for batch in batches for k in (0, 20)]
    values = [problem.family.evaluate(X, half).F[0] for half in halves]
    width = t.ppf(0.9, 31) * np.std(values, axis=0, ddof=1) / math.sqrt(32)
    np.testing.assert_allclose(found.upper[0, 0], np.mean(values, axis=0) + width, rtol=1e-12)


def test_the_lower_bound_is_students_of_the_least_values_of_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """One value for each of 15 blocks, of each run; a run without one has no bound."""
    values = np.random.default_rng(0).normal([0.0, 5.0], size=(15, 2))
    left = list(np.where(np.arange(2) == 1, values, -np.inf)) + list(values)
    monkeypatch.setattr(module, "lower_bound", lambda *_, **__: left.pop())
    problem, best = half_space()
    level, y, a = problem.at_level(np.array([best] * 2)), np.full((2, 2), 0.5), np.zeros((2, 0))
    position, x = mm.Position.start(np.random.default_rng(0)), np.concatenate([X, X])
    expected = values.mean(axis=0) - t.ppf(0.95, 14) * values.std(axis=0, ddof=1) / math.sqrt(15)
    for bounded in ([0, 1], [1]):
        found = look(level, [x], y, a, position, samples=640, beta=0.05)
        assert found is not None
        np.testing.assert_allclose(found.lower[bounded], expected[bounded], rtol=1e-12)
        assert (np.delete(found.lower, bounded) == -np.inf).all()


def test_the_bound_of_the_first_function_takes_the_inner_variables_of_the_duals() -> None:
    """The mean of F_0 + <alpha, G> less its width and the penalty; without a weight alpha is the block's start."""
    rng, block = np.random.default_rng(2), mm.SimplexBlock(3, 0.5)
    F, G = rng.normal(size=(9, 2, 2)), rng.normal(size=(9, 2, 3))
    y, a = np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([[0.1, 0.15, 0.25], [0.0, 0.0, 0.0]])
    dual = mm.PerspectiveGenerator([block, None])
    found = module._first(dual, list(zip(F, G, strict=True)), y, a, 0.7)
    for run, alpha in enumerate((np.array([0.2, 0.3, 0.5]), np.full(3, 1 / 3))):
        values = F[:, run, 0] + G[:, run] @ alpha
        penalty = 0.5 * (alpha * np.log(3 * alpha)).sum()
        assert found[run] == pytest.approx(values.mean() - 0.7 * values.std(ddof=1) - penalty, rel=1e-12)
    plain = module._first(mm.PerspectiveGenerator([None, block]), list(zip(F, G, strict=True)), y, a, 0.7)
    np.testing.assert_allclose(plain, F[..., 0].mean(0) - 0.7 * F[..., 0].std(0, ddof=1), rtol=1e-12)


def test_a_block_is_minimised_to_a_hundredth_of_the_scatter(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the Lagrangian over half blocks at the last point, as many other half blocks show it."""
    problem = mm.MinMaxProblem(HalfSquare(), [FUNCTIONS["robust"]()], mm.Ball(3, 3.0), Normal())
    level, y, a = problem.at_level(0.0), np.array([[0.25, 0.75]]), np.array([[0.1, -0.2, 0.05]])
    told: list[float] = []

    def bound(*given: Any, enough: Any, **options: Any) -> Any:
        told.extend(enough)
        return lower_bound(*given, enough=enough, **options)

    monkeypatch.setattr(module, "lower_bound", bound)
    far, position = np.array([[-2.0, 1.0, -1.0]]), mm.Position.start(np.random.default_rng(0))
    look(level, [far, X], y, a, position, samples=640, beta=0.1)
    batches, _ = level.data.draw(mm.Position.start(np.random.default_rng(1)), 400, 20)
    found = [level.family.evaluate(X, batch) for batch in batches]
    scatter = np.std([(y * one.F).sum() + (a * one.G).sum() for one in found])
    assert len(told) == 15  # one for each block but the first
    assert 0.005 * scatter <= min(told) <= told[-1] == pytest.approx(0.01 * scatter, rel=0.3)
    assert max(told) <= 0.02 * scatter


class Coarse(HalfSquare):
    """Computes in single precision, and returns it or what it is in double precision."""

    def __init__(self, dtype: type) -> None:
        super().__init__()
        self.dtype = dtype

    def evaluate(self, x: Any, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        value = (found.F + 1e5).astype(np.float32)
        return mm.Evaluation(value.astype(self.dtype), found.G, found.pullback)


def test_values_of_single_precision_are_added_in_double_precision() -> None:
    found = []
    for dtype in (np.float32, np.float64):
        data = Normal()
        level = mm.MinMaxProblem(Coarse(dtype), [Coarse(dtype)], mm.Ball(3, 3.0), data).at_level(0.0)
        position, y = mm.Position.start(np.random.default_rng(0)), np.array([[0.5, 0.5]])
        one = look(level, [X], y, np.zeros((1, 0)), position, samples=640, beta=0.1, lower=False)
        assert one is not None
        found.append((one.mean, one.upper, one.first))
    assert all((one == other).all() for one, other in zip(*found, strict=True))


@pytest.mark.parametrize("blocks, known", [(3, False), (4, True), (5, True)])
def test_a_stream_that_ends_is_asked_once_more_and_bounds_by_what_it_gave(blocks: int, known: bool) -> None:
    """From four blocks on, each of which has two halves of 16 samples at least."""
    asked = 0

    class Ending(Normal):
        def draw(self, *given: Any) -> Any:
            nonlocal asked
            asked += 1
            return super().draw(*given)

    data, y = Ending(limit=32 * blocks + 31), np.array([[0.5, 0.5]])
    level = mm.MinMaxProblem(HalfSquare(), [Linear(0.2)], mm.Ball(3, 3.0), data).at_level(0.0)
    position = mm.Position.start(np.random.default_rng(0))
    found = look(level, [X], y, np.zeros((1, 0)), position, samples=64, beta=0.1)
    assert asked == blocks + 1
    assert (found is not None) is known
    assert found is None or (found.samples == found.position.samples == 32 * blocks and np.isfinite(found.lower[0]))
