"""Successive approximation on streams: the population's optimum, from blocks of which each is far from it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.core.constraint import family_of
from minmaxcon.solvers.successive.tilted import Tilted
from tests.cases import fair_auc, quadratic
from tests.problem_library import HalfSquare
from tests.staircases import Tangent

Array = Any

CENTER, NORMAL, BOUND = np.array([1.0, 0.5]), np.array([0.8, -0.6]), -0.2
"""E p, E q and b: the nearest point to E p where <E q, x> <= b."""

SAMPLE, STEPS = 50, 150


def nearest(bound: float = BOUND) -> Array:
    return CENTER - max(float(NORMAL @ CENTER) - bound, 0.0) * NORMAL


def points(seed: int = 0, count: int | None = None) -> Iterator[dict[str, Any]]:
    """Points p and slopes q, each with a standard deviation of 1."""
    rng, number = np.random.default_rng(seed), 0
    while count is None or number < count:
        slope = NORMAL + rng.normal(size=2)
        yield {"points": CENTER + rng.normal(size=2), "slopes": slope}
        number += 1


class Seen(mm.Observation):
    def __init__(self, normal: Array, x: Array) -> None:
        self._x, self._normal = np.asarray(x, dtype=np.float64), normal
        self.values = self.smoothed = (self._x @ normal)[:, None]

    def surrogates(self) -> list[Tangent]:
        return [Tangent(self.values[:, 0], np.tile(self._normal, (len(self._x), 1)), self._x)]


class Plane(mm.TrueMeasure):
    """t(x) = <E q, x>, the mean taken over the rows at hand."""

    def __init__(self, data: mm.Finite | None = None, sizes: list[int] | None = None) -> None:
        self.normal = NORMAL if data is None else np.asarray(data.arrays["slopes"]).mean(axis=0)
        self.sizes = [] if sizes is None else sizes

    def on(self, data: Any) -> Plane:
        self.sizes.append(data.size)
        return Plane(data, self.sizes)

    def observe(self, x: Array) -> Seen:
        return Seen(self.normal, x)


class Breaking(Plane):
    def on(self, data: Any) -> Breaking:
        return Breaking(data)

    def observe(self, x: Array) -> Seen:
        found = super().observe(x)
        found.values = found.values * np.nan
        return found


def streamed(bound: Any = BOUND, measure: mm.TrueMeasure | None = None, **options: Any) -> mm.RefreshedProblem:
    measure = Plane() if measure is None else measure
    side = measure.observe(np.zeros((1, 2))).surrogates()[0].with_bound(bound)
    data = mm.Stream(partial(points, **options))
    return mm.RefreshedProblem(HalfSquare(), [side], mm.Ball(2, 4.0), data, start=np.zeros(2), measure=measure)


def solver(**options: Any) -> mm.SuccessiveApproximation:
    return mm.SuccessiveApproximation(**{"sample": SAMPLE, "iterations": STEPS, **options})


# ------------------------------------------------------------------------------------------------------- the population


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.rel)])
def test_the_populations_optimum_is_found(seed: int) -> None:
    """To the error of all rows together, which is a twelfth of that of one block."""
    solution = mm.solve(streamed(seed=seed), solver(), seed=seed)
    rows = (STEPS + 1) * SAMPLE
    assert solution.samples == rows
    assert solution.steps == STEPS
    assert np.linalg.norm(solution.x - nearest()) <= 6.0 / np.sqrt(rows)
    value = 0.5 * float(((nearest() - CENTER) ** 2).sum()) + 1.0  # E |p - E p|^2 / 2 = 1
    assert solution.objective == pytest.approx(value, abs=6.0 / np.sqrt(rows))
    assert solution.feasible
    assert abs(float(NORMAL @ solution.x) - BOUND) <= 6.0 / np.sqrt(rows)


def test_more_rows_come_nearer() -> None:
    def error(steps: int) -> float:
        found = [mm.solve(streamed(seed=seed), solver(iterations=steps), seed=seed).x for seed in range(3)]
        return float(np.mean([np.linalg.norm(x - nearest()) for x in found]))

    few, many = error(4), error(32)
    assert many <= 0.5 * few  # a quarter by the square root


def test_a_target_without_effect() -> None:
    solution = mm.solve(streamed(bound=5.0), solver())
    assert solution.x == pytest.approx(CENTER, abs=0.04)


# ------------------------------------------------------------------------------------------------------------ no proof


def test_nothing_is_proved() -> None:
    solution = mm.solve(streamed(), solver(iterations=40, tolerance=0.9))
    assert solution.status is mm.Status.BUDGET  # however loose the tolerance
    assert solution.steps == 40
    assert "by an estimate from 2,050 rows" in solution.reason
    assert solution.certificate.kind == "estimate"
    assert solution.certificate.confidence == 0.0
    assert solution.certificate.lower == -np.inf


def test_steps_that_are_refused_on_a_stream_end_no_run() -> None:
    """Blocks of few rows contradict one another; after a refusal or two the step sizes are those of the beginning."""
    solution = mm.solve(streamed(), solver(iterations=40, sample=4, patience=1), seed=0)
    assert solution.steps == 40
    assert solution.status is mm.Status.BUDGET
    assert solution.x == pytest.approx(nearest(), abs=1.0)


def test_a_target_that_nobody_can_meet_is_not_said_to_be_out_of_reach() -> None:
    solution = mm.solve(streamed(bound=-5.0), solver(iterations=60))
    assert solution.status is mm.Status.BUDGET
    assert not solution.feasible
    assert "by an estimate" in solution.reason
    assert NORMAL @ solution.x <= -3.9  # and no point of the ball comes below -4


def test_a_stream_that_ends_says_so() -> None:
    solution = mm.solve(streamed(count=1020), solver())
    assert solution.status is mm.Status.BUDGET
    assert solution.reason.startswith("The stream has ended; by an estimate from 1,020 rows")
    assert solution.samples == 1020
    assert solution.steps == 20  # the last block is shorter
    assert np.linalg.norm(solution.x - nearest()) <= 6.0 / np.sqrt(1020)


def test_one_block_is_a_start_alone() -> None:
    solution = mm.solve(streamed(count=20, bound=0.5), solver())
    assert solution.steps == 0
    assert solution.x.tolist() == [0.0, 0.0]
    assert "has ended" in solution.reason


def test_an_empty_stream_is_refused() -> None:
    with pytest.raises(mm.DataError, match="no points"):
        mm.solve(streamed(count=0), solver())


def test_values_that_are_not_finite() -> None:
    solution = mm.solve(streamed(measure=Breaking()), solver())
    assert solution.status is mm.Status.DIVERGED


# --------------------------------------------------------------------------------------------------- runs, bits, memory


def test_a_run_of_many_is_the_run_alone() -> None:
    bounds = [-0.5, BOUND, 0.1, 5.0]
    aiming = solver(iterations=15, margin=1e-3)  # else rounding decides which points meet a target
    many = mm.solve(streamed(bound=bounds), aiming)
    for j, bound in enumerate(bounds):
        alone = mm.solve(streamed(bound=bound), aiming)
        assert many[j].x == pytest.approx(alone.x, abs=1e-12)
        assert many[j].objective == pytest.approx(alone.objective, abs=1e-12)
        assert many[j].status is alone.status
        assert many[j].trace["weight"] == pytest.approx(alone.trace["weight"])


def test_the_same_seed_gives_the_same_bits() -> None:
    one, other = (mm.solve(streamed(), solver(iterations=12), seed=4) for _ in range(2))
    assert one.x.tobytes() == other.x.tobytes()
    assert one.trace["objective"].tobytes() == other.trace["objective"].tobytes()
    assert mm.solve(streamed(), solver(iterations=12), seed=5).x.tobytes() != one.x.tobytes()  # blocks are shuffled


def test_memory_is_bounded_by_the_sample() -> None:
    """Blocks are no larger than asked for, and no more points are read than blocks need, and one shuffle."""
    read = 0

    def counted() -> Iterator[dict[str, Any]]:
        nonlocal read
        for point in points():
            read += 1
            yield point

    measure = Plane()
    problem = streamed(measure=measure)
    mm.solve(mm.RefreshedProblem(**{**_parts(problem), "data": mm.Stream(counted)}), solver(iterations=60))
    assert set(measure.sizes) == {SAMPLE}
    assert len(measure.sizes) == 61
    assert 61 * SAMPLE <= read <= 61 * SAMPLE + 1000


def _parts(problem: mm.RefreshedProblem) -> dict[str, Any]:
    names = ("objective", "constraints", "primal", "data", "start", "measure")
    return {name: getattr(problem, name) for name in names}


@pytest.mark.parametrize("bad", [0, 2.5, "many", None])
def test_the_sample_must_be_a_number_of_rows(bad: Any) -> None:
    with pytest.raises(mm.InvalidInput, match="sample="):
        mm.SuccessiveApproximation(sample=bad)


# -------------------------------------------------------------------------------------------------------- other methods


INNER = mm.SFLS(oracle=mm.SMD(steps=50, batch_size=20), levels=2)


def test_another_method_solves_the_proximal_problems_of_a_stream() -> None:
    """From single samples of each block, tied to the blocks before as the linearised step is."""
    solution = mm.solve(streamed(), solver(iterations=15, inner=INNER, sample=300, margin=0.01))
    linearised = mm.solve(streamed(), solver(iterations=15, sample=300, margin=0.01))
    assert solution.status is mm.Status.BUDGET
    assert solution.x == pytest.approx(nearest(), abs=0.1)
    assert solution.x == pytest.approx(linearised.x, abs=0.1)
    assert solution.samples > linearised.samples


def test_a_tilted_function_is_the_sum_of_both() -> None:
    """Alone and fused: values, and gradients by finite differences, with inner variables of two classes."""
    problem = fair_auc()
    ((_, batch),) = problem.data.chunks()
    rng = np.random.default_rng(0)
    x, center = rng.normal(size=(3, problem.primal.dimension)), rng.normal(size=problem.primal.dimension)
    slopes = rng.normal(size=(3, problem.primal.dimension))
    functions = [problem.objective, *problem.constraints]
    tilted = [Tilted(f, slope, center) for f, slope in zip(functions, slopes, strict=True)]
    y, a = rng.normal(size=(3, 3)), rng.normal(size=(3, 5))
    plain, found = problem.family.evaluate(x, batch), family_of(tilted).evaluate(x, batch)
    np.testing.assert_allclose(found.F, plain.F + (x - center) @ slopes.T, atol=1e-12)
    np.testing.assert_array_equal(found.G, plain.G)
    np.testing.assert_allclose(found.pullback(y, a), plain.pullback(y, a) + y @ slopes, atol=1e-12)
    one = tilted[1].evaluate(x, batch)
    np.testing.assert_allclose(one.F, found.F[:, 1], atol=1e-12)
    np.testing.assert_allclose(tilted[1].terms(x, batch)[0], one.F, atol=1e-12)
    towards, step = rng.normal(size=x.shape), 1e-6
    ahead, behind = (tilted[1].evaluate(x + sign * step * towards, batch) for sign in (1, -1))
    size = one.G.shape[-1]
    slope = (ahead.F - behind.F + ((ahead.G - behind.G) * a[:, :size]).sum(-1)) / (2 * step)
    pulled = one.pullback(np.ones(3), a[:, :size])
    np.testing.assert_allclose((pulled * towards).sum(-1), slope, rtol=1e-5)


def test_the_inner_method_must_be_a_solver() -> None:
    with pytest.raises(mm.InvalidInput, match=r"inner=.*SFLS"):
        mm.SuccessiveApproximation(inner=mm.SMD())


def test_the_proximal_method_refuses_a_problem_with_a_proximal_term() -> None:
    """It would put its own in the place of that one, and with it of the rho_hat of an outer method."""
    with pytest.raises(mm.Unsupported, match="proximal term"):
        mm.solve(quadratic().with_proximal(np.zeros(3), 1.0), mm.IQRC())
