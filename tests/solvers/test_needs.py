"""What solvers and oracles accept, and the choice of a solver that fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.solvers import automatic
from tests import cases
from tests.staircases import staircase


def stream() -> mm.MinMaxProblem:
    """The nearest point in a half-space, from a stream."""
    rows = cases.finite("points", "costs").arrays
    points = [{name: column[i] for name, column in rows.items()} for i in range(20)]
    return replace(cases.quadratic(), data=mm.Stream(points), name="stream")


PROBLEMS: dict[str, Callable[[], mm.MinMaxProblem]] = {
    "plain": cases.quadratic,
    "stream": stream,
    "not convex": cases.regression,
    "not Euclidean": cases.portfolio,
    "proximal": lambda: cases.quadratic().with_proximal(np.zeros(3), 1.0),
    "refreshed": staircase,
}
FINITE = "finite data"
CONVEX = "convex functions"
ORDINARY = "an ordinary problem"
PROXIMAL = "without a proximal term"
REFRESHED = "a RefreshedProblem"
EVERY: dict[str, str] = dict.fromkeys(PROBLEMS, REFRESHED)
SOLVERS: dict[str, tuple[mm.Solver, dict[str, str]]] = {
    "SFLS": (mm.SFLS(), {}),
    "SFLS(MirrorProx)": (mm.SFLS(oracle=mm.MirrorProx()), {"stream": FINITE}),
    "SFLS(VarianceReduced)": (mm.SFLS(oracle=mm.VarianceReduced()), {"stream": FINITE}),
    "IQRC": (mm.IQRC(), {"proximal": PROXIMAL}),
    "IQRC(SFLS(MirrorProx))": (
        mm.IQRC(oracle=mm.SFLS(oracle=mm.MirrorProx())),
        {"stream": FINITE, "proximal": PROXIMAL},
    ),
    "IQRC(ConEx), weight below the modulus": (
        mm.IQRC(oracle=mm.ConEx(), weight=1.0),
        {"proximal": PROXIMAL, "not convex": CONVEX},
    ),
    "IQRC(ConEx), weight above the modulus": (mm.IQRC(oracle=mm.ConEx(), weight=4.0), {"proximal": PROXIMAL}),
    "ConEx": (mm.ConEx(), {"not convex": CONVEX}),
    "PrimalDual": (mm.PrimalDual(), {"not convex": CONVEX}),
    "SwitchingSubgradient": (mm.SwitchingSubgradient(), {}),
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("method", [*SOLVERS, "SuccessiveApproximation"])
def test_a_problem_is_taken_or_refused_by_name_before_any_work(method: str, name: str) -> None:
    if method == "SuccessiveApproximation":
        solver, refused = mm.SuccessiveApproximation(), {k: v for k, v in EVERY.items() if k != "refreshed"}
    else:
        solver, known = SOLVERS[method]
        refused = {"refreshed": ORDINARY, **known}
    problem = PROBLEMS[name]()
    if name not in refused:
        solver.needs.check(solver.title, problem)
        return
    for solve in (mm.solve, lambda *parts: next(mm.iterate(*parts))):
        with pytest.raises(mm.Unsupported, match=refused[name]) as refusal:
            solve(problem, solver)
        assert type(solver).__name__ in str(refusal.value)
        assert repr(problem.name) in str(refusal.value)


def test_the_remedy_is_none_that_has_been_taken() -> None:
    with pytest.raises(mm.Unsupported, match="or use IQRC"):
        mm.solve(cases.regression(), mm.ConEx())
    with pytest.raises(
        mm.Unsupported, match=r"weak_convexity of at most the proximal term's weight, 1, or use SFLS\(\)"
    ):
        mm.solve(cases.regression(), mm.IQRC(oracle=mm.ConEx(), weight=1.0))


def test_an_oracle_refuses_a_level_problem() -> None:
    problem, start = stream(), mm.Start(np.zeros((1, 3)), None, mm.Position.start(np.random.default_rng(0)))
    with pytest.raises(mm.Unsupported, match=rf"MirrorProx .*{FINITE}: on a stream use SMD"):
        mm.MirrorProx().query(problem.at_level(1.0), start)


@pytest.mark.parametrize("oracle", [mm.SMD(), mm.ExtraGradient(), mm.MirrorProx(), mm.VarianceReduced()])
def test_an_oracle_refuses_level_problems_of_surrogates(oracle: mm.Oracle) -> None:
    """A level problem made of a refreshed one by hand does not forget what its functions stand for."""
    problem = staircase()
    start = mm.Start(problem.start_point(), None, mm.Position.start(np.random.default_rng(0)))
    center = problem.start_point()[0]
    proximal = problem.with_proximal(center, 1.0)
    for level in (
        problem.at_level(1.0),
        problem.feasibility(),
        problem.at_level([1.0]).take([0]),
        proximal.at_level(1.0),
    ):
        with pytest.raises(mm.Unsupported, match=rf"cannot solve this level problem\. It needs {ORDINARY}"):
            oracle.query(level, start)


class Wrapped(mm.BallBlock):
    """A block that says itself whether it has mirror coordinates."""

    mirrored = False


def test_blocks_say_whether_they_have_mirror_coordinates() -> None:
    assert mm.BallBlock(2, 1.0).mirrored
    assert mm.SimplexBlock(3).mirrored
    assert not Wrapped(2, 1.0).mirrored
    problem = cases.problem("robust")
    constraint = problem.constraints[0].with_bound(0.6)
    constraint.dual = Wrapped(3, 0.3)
    assert mm.core.Needs(mirror=True).missing(problem) is None
    missing = mm.core.Needs(mirror=True).missing(replace(problem, constraints=[constraint]))
    assert missing is not None
    assert "inner blocks with mirror coordinates" in missing


@pytest.mark.parametrize("make", [mm.IQRC, mm.SuccessiveApproximation])
def test_no_method_of_proximal_problems_is_one_that_adds_a_proximal_term(make: Any) -> None:
    with pytest.raises(mm.InvalidInput, match="proximal term"):
        make(**{"oracle" if make is mm.IQRC else "inner": mm.IQRC()})


@pytest.mark.parametrize(
    "name, method, oracle",
    [
        ("plain", mm.SFLS, mm.MirrorProx),
        ("stream", mm.SFLS, mm.SMD),
        ("not convex", mm.IQRC, mm.SFLS),
        ("not Euclidean", mm.SFLS, mm.MirrorProx),
        ("proximal", mm.SFLS, mm.MirrorProx),
        ("refreshed", mm.SuccessiveApproximation, None),
    ],
)
def test_without_a_solver_one_is_chosen_that_fits(name: str, method: type, oracle: type | None) -> None:
    chosen: Any = automatic(PROBLEMS[name]())
    assert type(chosen) is method
    assert oracle is None or type(chosen.oracle) is oracle
    chosen.needs.check(chosen.title, PROBLEMS[name]())


def test_many_numbers_ask_for_samples() -> None:
    data = mm.Finite({"points": np.zeros((200_000, 30)), "costs": np.zeros((200_000, 30))})
    chosen: Any = automatic(mm.MinMaxProblem(cases.HalfSquare(), [cases.Linear(0.5)], mm.Ball(30, 6.0), data))
    assert type(chosen.oracle) is mm.SMD


def test_a_true_gap_is_never_solved_by_its_surrogates() -> None:
    problem = mm.load_problem("fair_auc", max_gap=0.005)
    with pytest.raises(mm.Unsupported, match=r"SFLS\(oracle=SMD\) cannot solve 'fair_auc.*SuccessiveApproximation"):
        mm.solve(problem, mm.SFLS())
    assert mm.solve(problem, budget=1).settings["solver"]["name"] == "SuccessiveApproximation"
