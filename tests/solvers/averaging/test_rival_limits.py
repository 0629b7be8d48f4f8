"""Rival solvers on streams, weakly convex problems and values that are not finite, and their settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.arrays import to_numpy
from tests import cases
from tests.solvers.averaging.rivals import RIVALS, bits, each, one_of_them, small
from tests.solvers.test_crossed import exact
from tests.solvers.test_nonfinite import first_poisoned_step, poisoned
from tests.solvers.test_settings import NOT_COUNTS, NOT_POSITIVE, NOT_SHARES

# ------------------------------------------------------------------------------------------------------------- streams


def stream(count: int | None = None) -> mm.MinMaxProblem:
    """The rows of the case ``quadratic``, drawn with replacement, without end or ``count`` of them."""
    drawn = cases.arrays()

    def read() -> Iterator[dict[str, Any]]:
        rng = np.random.default_rng(8)
        read = 0
        while count is None or read < count:
            i = int(rng.integers(len(drawn["points"])))
            yield {"points": drawn["points"][i], "costs": drawn["costs"][i]}
            read += 1

    return replace(cases.quadratic(), data=mm.Stream(read))


@one_of_them
def test_on_streams_fresh_samples_say_what_is_claimed(rival: str) -> None:
    """Bounds from samples that no iterate has seen hold for the rows that the stream draws from."""
    problem, plain = stream(), cases.quadratic()
    solution = mm.solve(problem, small(rival, steps=300, evaluations=2), seed=0)
    assert solution.status is mm.Status.BUDGET
    best, certificate = float(cases.optimum("quadratic").objective), solution.certificate
    assert (certificate.kind, certificate.confidence) == ("with confidence", 0.9)
    assert certificate.lower <= best <= certificate.upper
    objective, constraints = exact(plain, solution.x)
    assert objective <= solution.objective
    assert (constraints <= solution.constraints).all()
    assert solution.records()[-1]["objective"] == pytest.approx(best, abs=0.3 * cases.span("quadratic", 11.0))
    if solution.feasible:
        assert "feasible with confidence 0.9" in solution.reason


@each
def test_a_stream_that_ends_ends_the_solve(rival: str) -> None:
    solution = mm.solve(stream(1000), small(rival, steps=600), seed=0)
    assert solution.steps == 1000 // {"conex": 40, "switching": 60, "primal_dual": 20}[rival]
    assert "the stream has ended" in solution.reason.lower()
    assert len(solution.records()) >= 1


# ------------------------------------------------------------------------------------- weak convexity, values, settings


@pytest.mark.parametrize("rival", cases.promises(["conex", "primal_dual"], ["conex"]))
def test_weakly_convex_problems_are_refused_and_iqrc_helps(rival: str) -> None:
    problem = cases.problem("regression_weakly_convex")
    with pytest.raises(
        mm.Unsupported,
        match=rf"^{RIVALS[rival].__name__} .*needs convex functions.*convex = True where it is, or use IQRC\(oracle=",
    ):
        mm.solve(problem, small(rival))
    modulus = float(problem.objective.weak_convexity)
    solution = mm.solve(problem, mm.IQRC(oracle=small(rival, steps=100), weight=2.0 * modulus, iterations=2), seed=0)
    begun = exact(problem, problem.start_point()[0])
    assert solution.feasible
    assert solution.objective < begun[0] - 0.1


def test_the_switching_subgradient_takes_weakly_convex_problems() -> None:
    """Its answer is an iterate, no average; no bound is claimed."""
    problem, solver = cases.problem("regression_weakly_convex"), small("switching", steps=300)
    state = list(mm.iterate(problem, solver, seed=0))[-1]
    row = state.trace[-1]
    objective, constraints = exact(problem, to_numpy(state.iterate.kept)[0])
    assert (row["objective"], row["violation"]) == pytest.approx((objective, constraints.max()), abs=1e-12)
    solution = mm.solve(problem, solver, seed=0)
    assert solution.feasible
    assert solution.objective < exact(problem, problem.start_point()[0])[0] - 0.1
    assert solution.certificate.lower == -np.inf
    assert solution.status is mm.Status.BUDGET


@one_of_them
def test_the_proximal_term_is_part_of_every_function(rival: str) -> None:
    """A strong term around a feasible centre: the answer is near the reference's, in another place than without it."""
    from minmaxcon.reference import solve_exact

    problem = cases.quadratic(bound=0.5).with_proximal(np.array([-1.0, -1.0, -1.0]), 4.0)
    larger = {"test_size": 400} if rival == "switching" else {}
    best, solution = solve_exact(problem), mm.solve(problem, small(rival, steps=800, **larger), seed=0)
    assert solution.objective == pytest.approx(float(best.objective), rel=0.05)
    assert solution.certificate.lower <= float(best.objective) + 1e-7
    assert solution.x == pytest.approx(best.x, abs=0.15)


@one_of_them
@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["F", "G"])
def test_step_and_term_that_are_not_finite_are_named(where: str, poison: float, rival: str) -> None:
    problem = poisoned(where, poison)
    settings = {"test_size": 2} if rival == "switching" else {}
    solver = RIVALS[rival](steps=400, batch_size=2, evaluations=2, **settings)
    step = first_poisoned_step(problem, 0, 2 if rival == "primal_dual" else 4)
    solution = mm.solve(problem, solver, seed=0)
    assert solution.status is mm.Status.DIVERGED
    assert solution.reason == f"{where} of 'spoiled' is not finite at step {step}."
    assert np.isfinite(solution.x).all()
    assert np.isfinite(solution.objective)
    assert solution.feasible


def test_a_gradient_that_is_not_finite_is_named() -> None:
    problem = poisoned("gradient", np.nan)
    solution = mm.solve(problem, mm.PrimalDual(steps=400, batch_size=2, evaluations=2), seed=0)
    assert solution.reason == f"The gradient is not finite at step {first_poisoned_step(problem, 0, 2)}."


@one_of_them
def test_one_run_diverges_and_the_others_go_on(rival: str) -> None:
    problem = poisoned("F", np.nan, above=5.0)
    starts = np.array([np.zeros(3), [0.0, 5.9, 0.0]])
    few = small(rival, evaluations=2)
    both, alone = (mm.solve(problem, few, seed=0, x0=start) for start in (starts, starts[0]))
    assert both.status[1] is mm.Status.DIVERGED
    assert both[0].x == pytest.approx(alone.x, abs=1e-9)
    assert both[0].status is alone.status


ALL: dict[str, list[Any]] = {
    "steps": NOT_COUNTS,
    "batch_size": [*NOT_COUNTS, 10**9],
    "evaluations": [*NOT_COUNTS, 10_001],
    "block": NOT_COUNTS,
    "tail": [0.0, -0.1, 1.1, np.nan, "much", None],
    "tolerance": NOT_SHARES,
    "distance": NOT_POSITIVE,
}
OWN: dict[str, dict[str, list[Any]]] = {
    "conex": {
        "strong_convexity": [-1.0, np.nan, np.inf, "much"],
        "smoothness": [-1.0, np.nan, np.inf, "much"],
        "primal_step": NOT_POSITIVE,
        "dual_step": NOT_POSITIVE,
        "cap": NOT_POSITIVE,
        "dual_scale": NOT_POSITIVE,
    },
    "switching": {"test_size": NOT_COUNTS, "threshold": [-0.1, np.nan, np.inf, "much"]},
    "primal_dual": {"cap": NOT_POSITIVE, "dual_scale": NOT_POSITIVE},
}


@each
def test_settings_out_of_range_are_refused_by_name(rival: str) -> None:
    for name, values in {**ALL, **OWN[rival]}.items():
        for value in values:
            with pytest.raises(mm.InvalidInput, match=f"^{name}="):
                RIVALS[rival](**{name: value})


CHANGED: dict[str, dict[str, Any]] = {
    "conex": {"cap": 1e-3, "primal_step": 0.01, "dual_step": 0.3, "dual_scale": 0.1, "strong_convexity": 0.5},
    "switching": {"test_size": 50, "threshold": 0.05},
    "primal_dual": {"cap": 1e-3, "dual_scale": 0.1},
}


@each
def test_every_setting_matters(rival: str) -> None:
    problem = cases.problem("fair_auc_inter")
    few = {"steps": 60, "evaluations": 2}
    base = {"steps": 70, "batch_size": 21, "evaluations": 3, "tail": 1.0, "distance": 0.1, **CHANGED[rival]}
    found = [bits(mm.solve(problem, small(rival, **{**few, name: value}), seed=0)) for name, value in base.items()]
    found.append(bits(mm.solve(problem, small(rival, **few), seed=0)))
    if rival == "conex":
        found.append(bits(mm.solve(problem, small(rival, **few, strong_convexity=0.5, smoothness=1.0), seed=0)))
    assert len(set(found)) == len(found)


@each
def test_steps_fixed_by_strong_convexity_reach_the_optimum(rival: str) -> None:
    """HalfSquare is strongly convex with modulus 1 and smooth with 1; other rivals adapt to it."""
    settings = {"strong_convexity": 1.0, "smoothness": 1.0} if rival == "conex" else {}
    solution = mm.solve(cases.problem("quadratic"), small(rival, steps=800, **settings), seed=0)
    best = float(cases.optimum("quadratic").objective)
    assert abs(solution.records()[-1]["objective"] - best) <= 0.05 * cases.span("quadratic", 11.0)
