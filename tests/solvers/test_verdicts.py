"""What SFLS concludes from numbers: each rule at both sides of its threshold, and the segment that a look confirms."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.core import Points
from tests import cases
from tests.problem_library import Linear, RobustRegression

SOLVED, BUDGET = mm.Status.SOLVED, mm.Status.BUDGET
SOLVER = mm.SFLS(tolerance=0.01, levels=7, searches=5, theta=0.75, delta=0.2, oracle_error=0.5)


@pytest.mark.parametrize("unit", [1.0, 1e-3])
@pytest.mark.parametrize(
    "violation, bound, rounds, status, said",
    [
        (-1.1e-9, -1.0, 1, None, "a strictly feasible point was found"),
        (-0.9e-9, -1.0, 1, None, "looking"),
        (0.1, 1.1e-9, 1, mm.Status.INFEASIBLE, "every point violates some constraint by at least 1.1e"),
        (0.1, 0.9e-9, 1, None, "looking"),
        (0.9e-6, -0.9e-6, 1, mm.Status.NOT_STRICTLY_FEASIBLE, "the least violation lies between -9e-"),
        (1.1e-6, -0.9e-6, 1, None, "looking"),
        (0.9e-6, -1.1e-6, 1, None, "looking"),
        (0.1, -0.25, 4, None, "looking"),
        (0.1, -0.25, 5, BUDGET, "after 5 searches there is no point with room to spare, and it cannot be below -0."),
        (
            0.1,
            -np.inf,
            6,
            BUDGET,
            "after 6 searches there is no point with room to spare, and no lower bound is known.",
        ),
    ],
)
def test_a_search_on_finite_data(
    violation: float, bound: float, rounds: int, status: Any, said: str, unit: float
) -> None:
    found, text = SOLVER._search_verdict(violation * unit, bound * unit, unit, rounds)
    assert found is status
    assert text.startswith(said)
    assert text.endswith(".")


@pytest.mark.parametrize("run", [0, 1])
@pytest.mark.parametrize(
    "objective, first, nearby, rounds, status, said",
    [
        (1.0, 3.0, 0.0, 1, SOLVED, "the objective is optimal up to rounding"),
        (1.0199, 3.0, np.nan, 1, SOLVED, "relative optimality is at most 0.00995, exactly"),
        (1.0201, 3.0, np.nan, 1, None, "relative optimality is at most 0.0101."),
        (1.0201, 3.0, np.nan, 6, None, "relative optimality is at most 0.0101."),
        (1.0201, 3.0, np.nan, 7, BUDGET, "after 7 levels relative optimality is at most 0.0101."),
        (
            1.039,
            3.0,
            4.0,
            1,
            SOLVED,
            "the objective is within 0.039 of the optimal value, exactly on the data; near the s",
        ),
        (1.041, 3.0, 4.0, 1, None, "relative optimality is at most 0.0205."),
        (1.5, 1.0, 0.0, 1, None, "relative optimality is at most 0."),
        (0.5, 3.0, 0.0, 1, SOLVED, "the objective is optimal up to rounding"),
    ],
)
def test_a_level_with_a_lower_bound(
    objective: float, first: float, nearby: float, rounds: int, status: Any, said: str, run: int
) -> None:
    """The lower bound is 1, so that the objective minus 1 is the gap; it is measured against first minus 1."""
    one = {"lower": 1.0, "first": first, "nearby": nearby, "opening": -1.0}
    known = SimpleNamespace(**{name: np.array([value, value]) for name, value in one.items()})
    known.points = Points(np.zeros((2, 1)), np.array([objective, objective]), np.zeros((2, 1)))
    for name in (*one, "points.objective"):  # of the other run nothing may be read
        values = known.points.objective if "." in name else getattr(known, name)
        values[1 - run] = np.nan
    found, text = SOLVER._level_verdict(known, run, -1.0, rounds)
    assert found is status
    assert text.startswith(said)
    assert text.endswith(".")


STOP = 4.0 * 0.75 / (6.0 * 0.75 - 1.0) * 0.01
"""The factor of |H(r_0)| in the rule that ends runs without a certificate, for the settings above."""


def test_the_rule_without_a_certificate_takes_off_the_error_of_the_oracle() -> None:
    assert SOLVER._stop(-2.5) == pytest.approx(STOP * 2.0, rel=1e-12)
    assert SOLVER._stop(-0.4) == 0.0
    assert SOLVER._stop(1.0) == 0.0


@pytest.mark.parametrize(
    "opening, upper, rounds, status, said",
    [
        (-2.5, -1.99 * STOP, 1, BUDGET, "the level-set rule U >= -eps_opt holds; no lower bound is known."),
        (-2.5, 0.0, 1, BUDGET, "the level-set rule"),
        (-2.5, -2.01 * STOP, 1, None, "after 1 levels; no lower bound is known."),
        (-2.5, 1e-9, 1, None, "after 1 levels; "),
        (0.0, 0.0, 6, None, "after 6 levels; "),
        (0.0, 0.0, 7, BUDGET, "after 7 levels; "),
    ],
)
def test_a_level_without_a_lower_bound(opening: float, upper: float, rounds: int, status: Any, said: str) -> None:
    known = SimpleNamespace(lower=np.array([-np.inf]), first=np.array([3.0]), opening=np.array([opening]))
    known.points = Points(np.zeros((1, 1)), np.array([1.0]), np.zeros((1, 1)))
    found, text = SOLVER._level_verdict(known, 0, upper, rounds)
    assert found is status
    assert text.startswith(said)


@pytest.mark.parametrize(
    "hit, exhausted, rounds, status, said",
    [
        (True, False, 9, None, "a strictly feasible point was found, by estimate."),
        (True, True, 1, BUDGET, "the stream has ended; the point is feasible by estimate."),
        (False, False, 4, None, "looking"),
        (False, False, 5, BUDGET, "after 5 searches there is no point with room to spare, by estimate."),
        (False, True, 1, BUDGET, "after 1 searches"),
    ],
)
def test_a_search_on_a_stream(hit: bool, exhausted: bool, rounds: int, status: Any, said: str) -> None:
    found, text = SOLVER._stream_search(hit, 0.1, exhausted, rounds)
    assert found is status
    assert text.startswith(said)


def streamed(**changes: Any) -> tuple[Any, str]:
    """Return the verdict on a level of a stream, other than usual in some respects."""
    usual = {"objective": 1.5, "violation": -0.1, "lower": 1.0, "below": 3.0, "opening": -2.5, "proved": True}
    usual |= {"path": -1.0, "seen": -0.1, "levels": 1, "exhausted": False} | changes
    known = SimpleNamespace(**{name: np.array([usual[name]]) for name in ("lower", "below", "opening", "proved")})
    known.points = Points(np.zeros((1, 1)), np.array([usual["objective"]]), np.array([[usual["violation"]]]))
    verdict: tuple[Any, str] = SOLVER._stream_level(
        known, 0, usual["path"], usual["seen"], usual["levels"], usual["exhausted"]
    )
    return verdict


@pytest.mark.parametrize(
    "changes, status, said",
    [
        ({}, None, "after 1 levels; feasible with confidence 0.8."),
        ({"objective": 0.9}, None, "the bounds with confidence 0.8 contradict each other."),
        ({"objective": 0.9, "exhausted": True}, BUDGET, "the bounds with confidence 0.8 contradict each other."),
        ({"objective": 1.0}, SOLVED, "relative optimality is at most 0, with confidence 0.8."),
        ({"objective": 1.0199}, SOLVED, "relative optimality is at most 0.00995, with confidence 0.8."),
        ({"objective": 1.0201}, None, "after 1 levels; feasible with confidence 0.8."),
        ({"objective": 1.01, "below": np.inf}, None, "after 1 levels; feasible with confidence 0.8."),
        ({"objective": 1.01, "violation": 0.0}, SOLVED, "relative optimality"),
        ({"objective": 1.01, "violation": 1e-9}, None, "after 1 levels; feasible by estimate."),
        ({"objective": 1.01, "proved": False}, None, "after 1 levels; feasible by estimate."),
        ({"proved": False, "seen": 1e-9}, None, "after 1 levels; no feasible point was confirmed."),
        (
            {"path": -1.99 * STOP},
            BUDGET,
            "the level-set rule U >= -eps_opt holds, U being 0.00682 of its first",
        ),
        ({"path": -2.01 * STOP}, None, "after 1 levels"),
        (
            {"path": 0.3, "seen": 0.0},
            BUDGET,
            "the level-set rule U >= -eps_opt holds, U being 0 of its first value",
        ),
        ({"path": 0.3, "seen": 1e-9}, None, "after 1 levels; feasible with confidence 0.8."),
        ({"levels": 6}, None, "after 6 levels"),
        ({"levels": 7}, BUDGET, "after 7 levels; feasible with confidence 0.8."),
        ({"exhausted": True}, BUDGET, "the stream has ended; feasible with confidence 0.8."),
    ],
)
def test_a_level_on_a_stream(changes: Any, status: Any, said: str) -> None:
    found, text = streamed(**changes)
    assert found is status
    assert text.startswith(said)
    assert text.endswith(".")


@pytest.mark.parametrize("convex", [True, False])
def test_the_best_confirmed_point_of_the_segment_is_kept(convex: bool) -> None:
    """Bounds at both ends bound what is between for convex functions: the best feasible mixture, by a fine grid."""
    problem = cases.quadratic()
    if not convex:
        data = cases.finite("points", "target", "costs")
        problem = mm.MinMaxProblem(RobustRegression(0.5), [Linear(0.5)], mm.Ball(3, 6.0), data)
    rng, runs, bound = np.random.default_rng(3), 400, float(problem.bounds()[0, 0])
    low, high = rng.normal(size=(2, runs, 2)) + np.array([0.0, bound])
    low[:20, 1], high[5:25, 1], high[40, 0], low[41, 1] = bound, bound, np.nan, np.nan
    interior, x = rng.normal(size=(2, runs, 3))
    known = SimpleNamespace(interior=interior, level=np.zeros(runs))
    estimate: Any = SimpleNamespace(x=x)
    found, proved = mm.SFLS._confirmed(problem, SimpleNamespace(upper=[low, high]), estimate, known, False)
    grid = np.linspace(0.0, 1.0, 4001) if convex else np.array([0.0, 1.0])
    for run in range(runs):
        mixed = (1.0 - grid[:, None]) * low[run] + grid[:, None] * high[run]
        good = mixed[:, 1] <= bound
        finite = np.isfinite(low[run]).all() and np.isfinite(high[run]).all()
        assert proved[run] == bool(finite and good.any())
        if proved[run]:
            best, slope = mixed[good, 0].min(), abs(high[run, 0] - low[run, 0])
            assert found.constraints[run, 0] <= 0
            assert best - 1e-3 * slope <= found.objective[run] <= best + 1e-3 * slope
            share = 1.0 if slope == 0 else (found.objective[run] - low[run, 0]) / (high[run, 0] - low[run, 0])
            np.testing.assert_allclose(found.x[run], interior[run] + share * (x[run] - interior[run]), atol=1e-9)
            expected = (1.0 - share) * low[run, 1] + share * high[run, 1] - bound
            assert found.constraints[run, 0] == pytest.approx(min(expected, 0.0), abs=1e-12)
        else:
            np.testing.assert_allclose(found.x[run], x[run], atol=1e-12)
            assert np.array_equal(
                [found.objective[run], found.constraints[run, 0]], high[run] - [0, bound], equal_nan=True
            )


def test_of_a_search_the_estimate_is_kept_with_its_bounds() -> None:
    problem = cases.problem("quadratic")
    bound, x = float(problem.bounds()[0, 0]), np.zeros((3, 3))
    high = np.array([[1.0, bound], [2.0, bound + 1e-9], [3.0, bound - 1.0]])
    seen: Any = SimpleNamespace(upper=[0.0 * high, high])
    estimate: Any = SimpleNamespace(x=x)
    known: Any = SimpleNamespace(interior=x + 1.0, level=np.zeros(3))
    found, proved = mm.SFLS._confirmed(problem, seen, estimate, known, True)
    assert proved.tolist() == [True, False, True]
    assert found.x is x
    np.testing.assert_array_equal(found.objective, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(found.constraints[:, 0], high[:, 1] - bound)
