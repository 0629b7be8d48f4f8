"""What is claimed on a stream, against the population: feasible points, bounds on both sides, and the confidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from tests.figures import Figure
from tests.normal_stream import COSTS, half_space, true_values

BOUND = 0.2


def solver(steps: int = 150, levels: int = 3, delta: float = 0.1, **settings: Any) -> mm.SFLS:
    return mm.SFLS(oracle=mm.SMD(steps=steps, batch_size=20), levels=levels, delta=delta, **settings)


def wrong(solution: mm.Solution, best: float) -> bool:
    """Tell whether anything that is claimed of the population is false."""
    x, certificate = np.asarray(solution.x), solution.certificate
    false = [certificate.lower > best, certificate.upper < best]
    if solution.feasible:
        false += [float(COSTS @ x) > BOUND, true_values(x)["square"] > certificate.upper]
    return any(false)


def test_a_stream_has_a_certificate_with_confidence() -> None:
    problem, best = half_space()
    for seed in range(1):
        solution = mm.solve(problem, solver(), seed=seed)
        certificate = solution.certificate
        assert (certificate.kind, certificate.confidence) == ("with confidence", 0.9)
        assert str(certificate).endswith("(with confidence 0.9)")
        assert np.isfinite([certificate.lower, certificate.upper]).all()
        assert solution.feasible
        assert solution.objective == certificate.upper
        assert "with confidence 0.9" in solution.reason
        assert not wrong(solution, best)


@pytest.mark.rel
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_confidence_is_kept_over_200_seeds(figure: Figure) -> None:
    """All claims of one solve, of its iterates too, hold with probability 0.9 at least, and points are confirmed."""
    problem, best = half_space()
    false, confirmed, seeds = 0, 0, 200
    for seed in range(seeds):
        seen: list[mm.Outcome] = []
        callbacks = [lambda now, seen=seen: seen.append(now.outcome)]
        solution = mm.solve(problem, solver(steps=60, levels=1), seed=seed, callbacks=callbacks)
        iterates = [one.x[0] for one in seen if one.points.feasible[0]]
        false += wrong(solution, best) or any(float(COSTS @ x) > BOUND for x in iterates)
        confirmed += bool(solution.feasible)
    figure.count(false, seeds, "solves with a false claim")
    figure.count(confirmed, seeds, "with a point that is confirmed")
    assert false <= 20
    assert confirmed >= 190


@pytest.mark.rel
def test_the_width_falls_with_the_root_of_the_samples() -> None:
    """The distance of the bound from the objective that it bounds, of 16 times the samples."""
    problem, _ = half_space()
    widths = []
    for steps in (100, 1600):
        found = [mm.solve(problem, solver(steps, levels=1), seed=seed) for seed in range(2)]
        widths.append(np.mean([each.certificate.upper - true_values(np.asarray(each.x))["square"] for each in found]))
    assert 2.5 <= widths[0] / widths[1] <= 6.5


def test_delta_is_honoured() -> None:
    """A smaller one gives wider bounds from the same samples, and stands in the certificate and the settings."""
    problem, _ = half_space()
    loose, strict = (mm.solve(problem, solver(levels=2, delta=delta, theta=1e6)) for delta in (0.5, 0.001))
    assert (loose.certificate.confidence, strict.certificate.confidence) == (0.5, 0.999)
    assert strict.certificate.gap > loose.certificate.gap
    assert strict.settings["solver"]["delta"] == 0.001
    assert "with confidence 0.999" in str(strict)


@pytest.mark.parametrize("theta", [0.6, 3.0])
def test_levels_on_a_stream_follow_the_rule(theta: float) -> None:
    r"""r moves by (U_0 - r) / (2 theta), U_0 being the bound on the best feasible point that is confirmed."""
    problem, _ = half_space()
    trace = mm.solve(problem, solver(steps=60, levels=4, theta=theta, tolerance=1e-6)).trace
    levels = trace["phase"] == "level"
    assert levels.tolist() == [False, True, True, True, True]
    assert (trace["violation"][levels] <= 0).all()
    r, best = trace["r"][levels], trace["objective"][levels]
    assert r[1:] == pytest.approx((r + np.minimum(best - r, 0.0) / (2.0 * theta))[:-1], abs=1e-12)
    assert (np.diff(r) < 0).any()


def test_an_infeasible_stream_is_not_called_feasible() -> None:
    problem, _ = half_space()
    solution = mm.solve(problem.with_bounds(-4.0), solver(levels=2, searches=2))
    assert not solution.feasible
    assert solution.certificate.upper == np.inf


@pytest.mark.parametrize("limit, near", [(3150, 0.8), (2900, 0.3), (50, 0.3)])
def test_a_stream_that_ends_leaves_an_estimate(limit: int, near: float) -> None:
    """From samples that the search has left, from batches of what it has read, or from single ones of these."""
    problem, _ = half_space(limit=limit)
    solution = mm.solve(problem, solver())
    assert (solution.certificate.kind, solution.certificate.confidence) == ("estimate", 0.0)
    assert "stream has ended" in solution.reason
    assert solution.objective == pytest.approx(true_values(np.asarray(solution.x))["square"], abs=near)


def test_functions_that_are_not_convex_are_confirmed_one_by_one() -> None:
    """No bound is mixed, and none is drawn from below: what ends a solve is the value of a query beside its first."""
    problem, _ = half_space()
    objective, (constraint,) = problem.objective, problem.constraints
    for function in (objective, constraint):
        function.convex = False
    plain = replace(problem, objective=objective, constraints=[constraint])
    solution = mm.solve(plain, solver(levels=8, tolerance=0.5))
    assert solution.certificate.lower == -np.inf
    assert not solution.feasible or float(COSTS @ solution.x) <= BOUND
    assert solution.status is mm.Status.BUDGET
    assert solution.reason.startswith("The level-set rule U >= -eps_opt holds, U being 0.4")


def test_runs_on_a_stream_are_those_alone() -> None:
    problem, _ = half_space()
    both = mm.solve(problem.with_bounds(np.array([0.2, 0.5])), solver(levels=2))
    for j, bound in enumerate((0.2, 0.5)):
        alone = mm.solve(problem.with_bounds(bound), solver(levels=2))
        assert both[j].objective == pytest.approx(alone.objective, rel=1e-9)
        assert both[j].certificate.lower == pytest.approx(alone.certificate.lower, abs=1e-5)
        assert both[j].certificate.confidence == alone.certificate.confidence
