"""Variance reduction: where batches alone stall, it goes on; what it says is exact."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.arrays import to_numpy
from minmaxcon.core.lower import lower_bound
from minmaxcon.oracles.mirror import DualMirror
from tests import cases
from tests.exact_fair_auc import Quadratics

Array = Any

CONVEX = [name for name, case in cases.PROBLEMS.items() if case.convex and case.reference]


@cache
def level_of(name: str) -> float:
    problem = cases.problem(name)
    first = float(problem.at_level(0.0).values(problem.start_point())[0, 0])
    best = float(cases.optimum(name).objective)
    return best + 0.3 * max(first - best, 0.3)


def start(problem: mm.MinMaxProblem, runs: int = 1, seed: int = 0) -> mm.Start:
    return mm.Start(problem.start_point(runs), None, mm.Position.start(np.random.default_rng(seed)))


@pytest.mark.parametrize("name", cases.promises([name for name in CONVEX if name not in cases.ALIKE]))
def test_the_bounds_are_exact_and_meet(name: str) -> None:
    """U is the value at the point returned, D <= H <= U, and both come near H."""
    from minmaxcon.reference import level_value

    problem = cases.problem(name)
    level, value = problem.at_level(level_of(name)), float(level_value(cases.problem(name), level_of(name)))
    opening = float((level.values(problem.start_point()) - level.bounds).max())
    found = mm.VarianceReduced(epochs=25, batch_size=20, relative_accuracy=0.0).query(level, start(problem))
    exact = float((level.values(found.x) - level.bounds).max())
    below = float(lower_bound(level, found.weights, found.scaled, found.x)[0])
    assert found.upper[0] == pytest.approx(exact, abs=1e-9)
    assert below - 1e-6 <= value <= exact + 1e-6 * (1 + abs(value))
    assert exact - below <= 0.1 * max(opening - value, 0.1)


@pytest.mark.slow
def test_where_mirror_descent_stalls_it_goes_on() -> None:
    """At the same number of sample gradients its error is a tenth of mirror descent's, on three seeds of four."""
    problem = cases.fair_auc("inter_group", 0.1, rows=cases.labelled(3, n=4000, d=6))
    quadratics = Quadratics.of(problem)
    bounds = problem.bounds()[0]
    r = float(quadratics.optimum(bounds)[0]) + 0.03
    level, value = problem.at_level(r), quadratics.level(r, bounds)
    wins = 0
    for seed in range(4):
        reduced = mm.VarianceReduced(epochs=100, batch_size=50, relative_accuracy=0.0).query(
            level, start(problem, 1, seed)
        )
        plain = mm.SMD(steps=reduced.samples // 50, batch_size=50).query(level, start(problem, 1, seed))
        errors = [float((level.values(found.x) - level.bounds).max()) - value for found in (reduced, plain)]
        assert plain.samples >= reduced.samples - 50
        assert errors[0] <= 1e-3 * abs(value)
        wins += errors[0] <= 0.1 * errors[1]
    assert wins >= 3


@pytest.mark.parametrize("name", ["fair_auc_inter", "worst_group", "robust", "worst_group_regularised"])
def test_mirror_coordinates_mix_divergences(name: str) -> None:
    r"""sum_j c_j V(z, z_j) = V(z, anchor) + sum_i y_i e_i + a constant, for any z: by differences of random points."""
    dual = cases.problem(name).at_level(0.3).dual()
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(3))
    drawn = dual.sample(rng, 3)
    anchors = [dual.point(drawn.weights[j : j + 1], drawn.inner[j : j + 1] + 1e-3) for j in range(3)]
    if any(isinstance(block, mm.SimplexBlock) for block in dual.blocks):
        anchors = [dual.point(a.weights, np.maximum(a.inner, 1e-6) / np.maximum(a.inner, 1e-6).sum()) for a in anchors]
    mirror = DualMirror(dual)
    anchor, extra = mirror.anchor(sum(s * mirror.coordinates(a) for s, a in zip(shares, anchors, strict=True)))
    gaps = []
    for _ in range(6):
        point = dual.sample(rng, 1)
        mixed = sum(s * dual.divergence(point, a) for s, a in zip(shares, anchors, strict=True))
        gaps.append(float((mixed - dual.divergence(point, anchor) - (point.weights * extra).sum(-1))[0]))
    assert np.ptp(gaps) <= 1e-10


def parts(found: mm.Estimate) -> dict[str, Array]:
    dual = found.next.dual
    assert dual is not None
    kept = {name: getattr(found, name) for name in ("x", "weights", "scaled", "upper", "values")}
    kept |= {"last x": found.next.x, "y": dual.weights, "alpha": dual.inner}
    kept |= {f"steps {i}": part for i, part in enumerate(found.next.memory)}  # from which the next query starts
    return {name: np.asarray(to_numpy(value)) for name, value in kept.items()}


@pytest.mark.parametrize("proximal", [False, True], ids=["plain", "proximal"])
@pytest.mark.parametrize(
    "name",
    cases.promises(
        ["fair_auc_inter", "fair_auc_torch", "worst_group", "robust", "mixed_geometry"],
        ["fair_auc_inter", "robust", "mixed_geometry"],
    ),
)
def test_a_run_of_many_equals_the_run_alone(name: str, proximal: bool) -> None:
    """Runs end at their own times, undo steps of their own, and what others do does not touch them."""
    problem = cases.problem(name)
    if proximal:
        problem = problem.with_proximal(problem.start_point()[0], 0.3)
    levels = level_of(name) + np.array([0.0, 0.05, 0.2])
    oracle = mm.VarianceReduced(epochs=4, batch_size=20, relative_accuracy=0.3)
    together = oracle.query(problem.at_level(levels), start(problem, 3))
    many = parts(together)
    for j in range(3):
        found = oracle.query(problem.at_level(levels[j : j + 1]), start(problem))
        mine, theirs = found.next.position, together.next.position  # alike, so that the next query draws alike
        assert (mine.generator, mine.samples) == (theirs.generator, theirs.samples)
        for part, value in parts(found).items():
            assert many[part][j] == pytest.approx(value[0], abs=1e-8), part


def test_engines_agree_and_the_seed_decides() -> None:
    problem, torch = cases.problem("fair_auc_inter"), cases.problem("fair_auc_torch")
    oracle = mm.VarianceReduced(epochs=5, batch_size=20, relative_accuracy=0.0)
    one, again, other, seeded = (
        parts(oracle.query(p.at_level(0.35), start(p, seed=seed)))
        for p, seed in ((problem, 0), (problem, 0), (torch, 0), (problem, 1))
    )
    for name, value in one.items():
        assert value.tobytes() == again[name].tobytes(), name
        assert value == pytest.approx(other[name], abs=1e-8), name
    assert not np.allclose(one["last x"], seeded["last x"])


def test_a_query_goes_on_from_any_state() -> None:
    """A state is a value: what follows from it is the same however often it is asked for."""
    problem = cases.problem("fair_auc_inter")
    oracle = mm.VarianceReduced(epochs=4, batch_size=20, relative_accuracy=0.0)
    state = oracle.begin(problem.at_level(0.35), start(problem), effort=1.5)
    states = [state]
    while not oracle.finished(states[-1]):
        states.append(oracle.advance(states[-1]))
    again = states[2]
    while not oracle.finished(again):
        again = oracle.advance(again)
    for name, value in parts(oracle.estimate(again)).items():
        assert value.tobytes() == parts(oracle.estimate(states[-1]))[name].tobytes(), name
    assert oracle.estimate(again).steps == 6 * 20  # effort lengthens it from 4 epochs to 6


@pytest.mark.parametrize("where", ["F", "gradient"])
def test_what_is_not_finite_is_named(where: str) -> None:
    """A marked sample spoils small batches; exact passes are spared."""

    class Spoiled(cases.HalfSquare):
        def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
            found = super().evaluate(x, batch)
            bad = np.nan if len(batch["mark"]) < 100 and bool((batch["mark"] > 0).any()) else 0.0
            value = found.F + (bad if where == "F" else 0.0)
            return mm.Evaluation(value, found.G, lambda y, a: found.pullback(y, a) + (bad if where != "F" else 0.0))

    arrays = {name: cases.arrays()[name] for name in ("points", "costs")}
    arrays["mark"] = (np.arange(120) == 17).astype(float)
    data = mm.Finite(arrays)
    problem = mm.MinMaxProblem(Spoiled(name="spoiled"), [cases.Linear(0.5)], mm.Ball(3, 6.0), data)
    begun = start(problem, seed=1)
    marks = [bool((batch["mark"] > 0).any()) for batch in data.draw(begun.position, 200, 2)[0]]
    oracle = mm.VarianceReduced(epochs=20, batch_size=2, relative_accuracy=0.0)
    found = oracle.query(problem.at_level(5.0), begun)
    named = "F of 'spoiled'" if where == "F" else "the gradient"
    assert found.failure == (f"{named} is not finite at step {marks.index(True)}",)
    assert np.isfinite(found.x).all()
    assert np.isfinite(found.next.x).all()


@pytest.mark.parametrize("setting", [{"epochs": 0}, {"batch_size": 0}, {"inner_steps": 0}, {"relative_accuracy": "x"}])
def test_settings_out_of_range_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(mm.InvalidInput, match=next(iter(setting))):
        mm.VarianceReduced(**setting)


@pytest.mark.parametrize("name", cases.promises(["fair_auc_inter", "worst_group", "portfolio"]))
def test_sfls_with_it_is_accurate(name: str) -> None:
    """Half a thousandth of r_0 - f*, by its own certificate and against the reference."""
    oracle = mm.VarianceReduced(batch_size=20)
    solution = mm.solve(cases.problem(name), mm.SFLS(oracle=oracle, tolerance=5e-4), seed=0)
    best = float(cases.optimum(name).objective)
    first = float(solution.trace["r"][0])
    assert solution.status is mm.Status.SOLVED
    assert solution.feasible
    assert -1e-7 <= solution.objective - best <= 5e-4 * (first - best) + 1e-7


@pytest.mark.data
@pytest.mark.rel
def test_a9a_to_half_a_thousandth(shared_data: Path) -> None:
    """Relative optimality at most 0.05% against the quadratic program, no violation, within a minute of one thread."""
    problem = mm.load_problem("fair_auc", data="a9a", data_dir=shared_data, metric="inter_group", kappa=0.2)
    best = float(Quadratics.of(problem).optimum(np.full(2, 1.2))[0])
    solution = mm.solve(problem, mm.SFLS(oracle=mm.VarianceReduced(), tolerance=5e-4), seed=0)
    measured = mm.plugin("fair_auc").evaluate(problem, solution.x)
    assert solution.status is mm.Status.SOLVED
    assert (measured["objective"] - best) / (0.5 - best) <= 5e-4
    assert max(measured["values"]) - 1.2 <= 1e-5
    assert solution.certificate.lower <= best + 1e-6
