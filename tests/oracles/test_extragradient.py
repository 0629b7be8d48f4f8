"""Stochastic extragradient: its averages and bound, and what it gains where noise is small."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.arrays import to_numpy
from minmaxcon.core.lower import lower_bound
from tests import cases
from tests.problem_library import MeanGap

Array = Any


class FullBatch(mm.Finite):
    """Every batch is the whole data: expectations without noise."""

    def draw(self, position: mm.Position, steps: int, batch_size: int) -> tuple[Iterator[mm.Batch], mm.Position]:
        return (self.arrays for _ in range(steps)), replace(position, samples=position.samples + steps * batch_size)


def start(problem: mm.MinMaxProblem, runs: int = 1, seed: int = 0) -> mm.Start:
    return mm.Start(problem.start_point(runs), None, mm.Position.start(np.random.default_rng(seed)))


def level_of(name: str) -> float:
    problem = cases.problem(name)
    first = float(problem.at_level(0.0).values(problem.start_point())[0, 0])
    best = float(cases.optimum(name).objective)
    return best + 0.3 * max(first - best, 0.3)


def noise_free(name: str) -> mm.MinMaxProblem:
    problem = cases.problem(name)
    return replace(problem, data=FullBatch(problem.data.arrays))


@pytest.mark.parametrize("proximal", [False, True], ids=["plain", "proximal"])
@pytest.mark.parametrize(
    "name",
    cases.promises(
        ["fair_auc_inter", "robust", "worst_group", "portfolio", "mixed_geometry", "cvar"],
        ["fair_auc_inter", "robust", "mixed_geometry"],
    ),
)
def test_without_noise_the_bounds_hold_the_value(name: str, proximal: bool) -> None:
    """D <= P(x_bar) <= U at every length, and H between them."""
    from minmaxcon.reference import level_value

    problem = noise_free(name)
    value = -np.inf if proximal else float(level_value(cases.problem(name), level_of(name)))
    if proximal:
        problem = problem.with_proximal(problem.start_point()[0], 0.5)
    level = problem.at_level(level_of(name))
    for steps in (1, 4, 40):
        found = mm.ExtraGradient(steps=steps, batch_size=1).query(level, start(problem))
        at_point = float((level.values(found.x) - level.bounds).max())
        below = float(lower_bound(level, found.weights, found.scaled, found.x)[0])
        assert below <= at_point + 1e-9
        assert value <= at_point + 1e-7
        assert at_point <= found.upper[0] + 1e-9 * (1 + abs(found.upper[0]))
        assert proximal or below <= value + 1e-7


class ConstantSteps(mm.StepRule):
    """The same step at all times."""

    def start(self, problem: Any, dual: Any, x: Array, probe: Any, kept: Any = None) -> Any:
        return np.full((len(x), 1), 0.3)

    def next(
        self, memory: Any, problem: Any, x: Array, gradient: Array, u: Array, v: Array
    ) -> tuple[Any, Any, Any, Any]:
        return memory, memory, memory, memory


def test_it_does_not_circle() -> None:
    """A bilinear game without noise and constant steps: descent-ascent circles, with a look ahead it arrives."""
    data = FullBatch(cases.finite("points", "contrast").arrays)
    problem = mm.MinMaxProblem(MeanGap(), [MeanGap(10.0)], mm.Ball(3, 6.0), data, start=np.full(3, 0.2))
    level = problem.at_level(-1.0)
    rule = ConstantSteps()
    ends = {}
    for oracle in (
        mm.SMD(steps=400, batch_size=1, step_rule=rule),
        mm.ExtraGradient(steps=400, batch_size=1, step_rule=rule),
    ):
        last = oracle.query(level, start(problem)).next
        ends[type(oracle).__name__] = float(level.values(last.x)[0, 0])
    assert ends["ExtraGradient"] <= 0.1 * ends["SMD"]


def test_two_batches_a_step() -> None:
    """The path by hand: the first batch leads ahead, the second, taken there, moves the iterate."""
    problem = cases.problem("mean_gap")
    level, begun = problem.at_level(level_of("mean_gap")), start(problem)
    step = 0.05
    rule = mm.InverseSqrt(step)
    found = mm.ExtraGradient(steps=1, batch_size=7, step_rule=rule).query(level, begun)
    first, second = problem.data.draw(begun.position, 2, 7)[0]
    dual = level.dual()
    y = dual.center(begun.x)

    def at(x: Array, point: mm.DualPoint, batch: mm.Batch) -> tuple[Array, Array, Array]:
        terms = problem.family.evaluate(x, batch)
        return terms.F - level.bounds, terms.G, terms.pullback(point.weights, dual.scaled(point))

    u, v, g = at(begun.x, y, first)
    ahead, y_ahead = problem.primal.prox(begun.x, g, step), dual.prox(y, u, v, step)
    u, v, g = at(ahead, y_ahead, second)
    assert found.x == pytest.approx(ahead, abs=1e-12)
    assert found.weights == pytest.approx(y_ahead.weights, abs=1e-12)
    assert found.values == pytest.approx(dual.support(u, v), abs=1e-12)
    assert found.next.x == pytest.approx(problem.primal.prox(begun.x, g, step), abs=1e-12)
    assert (found.steps, found.samples) == (1, 14)


def parts(found: mm.Estimate) -> dict[str, Array]:
    dual = found.next.dual
    assert dual is not None
    kept = {name: getattr(found, name) for name in ("x", "weights", "scaled", "upper", "values")}
    kept |= {"last x": found.next.x, "y": dual.weights, "alpha": dual.inner}
    return {name: np.asarray(to_numpy(value)) for name, value in kept.items()}


@pytest.mark.parametrize("rule", ["adaptive", "inverse_sqrt", "theory"])
@pytest.mark.parametrize(
    "name", cases.promises(["fair_auc_torch", "worst_group", "mixed_geometry"], ["fair_auc_torch", "mixed_geometry"])
)
def test_a_run_of_many_equals_the_run_alone(name: str, rule: str) -> None:
    problem = cases.problem(name)
    levels = level_of(name) + np.array([0.0, 0.1, 0.3])
    oracle = mm.ExtraGradient(steps=60, batch_size=10, step_rule=rule)
    many = parts(oracle.query(problem.at_level(levels), start(problem, 3)))
    for j in range(3):
        for part, value in parts(oracle.query(problem.at_level(levels[j : j + 1]), start(problem))).items():
            assert many[part][j] == pytest.approx(value[0], abs=1e-10), part


def test_engines_agree_and_the_seed_decides() -> None:
    problem, torch = cases.problem("fair_auc_inter"), cases.problem("fair_auc_torch")
    level = 0.35
    results = [
        parts(mm.ExtraGradient(steps=50, batch_size=10, block=block).query(p.at_level(level), start(p, seed=seed)))
        for p, seed, block in ((problem, 0, 100), (problem, 0, 7), (torch, 0, 100), (problem, 1, 100))
    ]
    for name, value in results[0].items():
        assert value.tobytes() == results[1][name].tobytes(), name
        assert value == pytest.approx(results[2][name], abs=1e-9), name
    assert not np.allclose(results[0]["x"], results[3]["x"])


class Spoiled(cases.HalfSquare):
    """Not finite where a marked sample is in a small batch."""

    def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
        found = super().evaluate(x, batch)
        bad = len(batch["mark"]) < 100 and bool((batch["mark"] > 0).any())
        return mm.Evaluation(found.F + (np.nan if bad else 0.0), found.G, found.pullback)


def spoiled() -> mm.MinMaxProblem:
    arrays = {name: cases.arrays()[name] for name in ("points", "costs")}
    arrays["mark"] = (np.arange(120) == 17).astype(float)
    return mm.MinMaxProblem(Spoiled(name="spoiled"), [cases.Linear(0.5)], mm.Ball(3, 6.0), mm.Finite(arrays))


@pytest.mark.parametrize("seed", range(3))
def test_what_is_not_finite_is_named(seed: int) -> None:
    """In the first or second batch of a step."""
    problem, begun = spoiled(), start(spoiled(), seed=seed)
    marks = [bool((batch["mark"] > 0).any()) for batch in problem.data.draw(begun.position, 400, 3)[0]]
    found = mm.ExtraGradient(steps=200, batch_size=3).query(problem.at_level(5.0), begun)
    assert found.failure == (f"F of 'spoiled' is not finite at step {marks.index(True) // 2}",)
    assert np.isfinite(found.x).all()
    assert np.isfinite(found.next.x).all()


def test_sfls_takes_it() -> None:
    problem = cases.problem("fair_auc_inter")
    solution = mm.solve(problem, mm.SFLS(oracle=mm.ExtraGradient(steps=300, batch_size=60), tolerance=0.02), seed=0)
    best = float(cases.optimum("fair_auc_inter").objective)
    assert solution.status is mm.Status.SOLVED
    assert -1e-7 <= solution.objective - best <= 0.02 * (float(solution.trace["r"][0]) - best)
