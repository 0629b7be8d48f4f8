"""Problems with a true measure: what they hold, refuse, and give back when their surrogates are refreshed."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from tests.cases import quadratic
from tests.staircases import POINTS, Staircase, Steps, Tangent, bowl, staircase, wave


def test_a_measure_is_required() -> None:
    plain = quadratic()
    parts = {field.name: getattr(plain, field.name) for field in fields(mm.MinMaxProblem) if field.init}
    for bad in (None, "gap", bowl):
        with pytest.raises(mm.InvalidInput, match=r"measure=.*TrueMeasure.*MinMaxProblem"):
            mm.RefreshedProblem(**parts, measure=bad)


def test_the_problem_that_comes_first_has_all_coordinates() -> None:
    first = staircase()
    small = mm.Ball(first.primal.dimension - 1, 1.0)
    parts = {field.name: getattr(first, field.name) for field in fields(type(first)) if field.init}
    short = mm.RefreshedProblem(**{**parts, "primal": small, "start": None})
    with pytest.raises(mm.InvalidInput, match="first=1: must have at least 2 coordinates, those of the problem that"):
        replace(first, first=short)
    assert replace(first, first=first).first is first


def test_what_an_ordinary_problem_refuses_is_refused() -> None:
    with pytest.raises(mm.InvalidInput, match="constraints="):
        replace(staircase(), constraints=[])
    with pytest.raises(mm.InvalidInput, match="start="):
        replace(staircase(), start=np.array([9.0, 9.0]))


def test_the_measure_survives_other_bounds_and_chosen_runs() -> None:
    problem = staircase(bound=[0.1, 0.2, 0.3])
    for other in (problem.take([0, 2]), problem.with_bounds(0.5), replace(problem, start=None)):
        assert isinstance(other, mm.RefreshedProblem)
        assert other.measure is problem.measure
    assert problem.take([0, 2]).bounds()[:, 0].tolist() == [0.1, 0.3]


@pytest.mark.parametrize("engine", ["numpy", "torch"])
def test_refreshed_surrogates_agree_with_the_measure_where_it_was_observed(engine: str) -> None:
    problem = staircase(wave, bound=[0.1, 0.2, 0.3], engine=engine)
    x = problem.start_point(3) + problem.data.arrays["points"][:3]
    observation = problem.measure.observe(x)
    refreshed = problem.refreshed(observation)
    assert type(refreshed) is mm.MinMaxProblem
    assert refreshed.bounds()[:, 0].tolist() == [0.1, 0.2, 0.3]
    assert refreshed.at_level(np.zeros(3)).values(x)[:, 1] == pytest.approx(observation.smoothed[:, 0], abs=1e-12)
    assert np.abs(observation.values - observation.smoothed).max() <= 0.5e-3 + 1e-12
    kept = ("objective", "primal", "data", "start", "name", "details")
    assert all(getattr(refreshed, name) is getattr(problem, name) for name in kept)


def test_any_solver_may_try_the_refreshed_problem() -> None:
    """It is an ordinary problem: one linear constraint, solved by the level-set method."""
    problem = staircase(bound=0.2, start=(0.3, 0.1))
    refreshed = problem.refreshed(problem.measure.observe(problem.start_point()))
    solution = mm.solve(refreshed, mm.SFLS(oracle=mm.SMD(steps=300, batch_size=20)), seed=0)
    value, slope = bowl(np.array([[0.3, 0.1]]))
    mean = POINTS.mean(axis=0)
    miss = float(value[0] + slope[0] @ (mean - [0.3, 0.1]) - 0.2)  # the projection onto a half-space
    nearest = mean - miss / (slope[0] @ slope[0]) * slope[0]
    assert solution.feasible
    assert solution.x == pytest.approx(nearest, abs=0.03)


def test_as_many_surrogates_as_constraints() -> None:
    class Two(Steps):
        def surrogates(self) -> list[Tangent]:
            return super().surrogates() * 2

    with pytest.raises(mm.InvalidInput, match=r"surrogates=2.*1 constraint"):
        staircase().refreshed(Two([bowl], 0.1, np.zeros((1, 2))))


def test_without_a_curvature_model_there_is_none() -> None:
    assert Staircase([bowl], 0.1).curvature(np.zeros((1, 2))) is None


def test_abstract_parts_name_what_is_missing() -> None:
    for part in (mm.TrueMeasure, mm.Observation):
        kind: Any = part
        with pytest.raises(TypeError, match="abstract"):
            kind()
