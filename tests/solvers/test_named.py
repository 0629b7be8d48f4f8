"""Solvers by name."""

from __future__ import annotations

from typing import Any

import pytest

import minmaxcon as mm
from minmaxcon.solvers import named_solver, solver_names
from minmaxcon.solvers.loop import describe


@pytest.mark.parametrize("name", solver_names())
def test_every_name_gives_a_solver_of_its_own(name: str) -> None:
    assert isinstance(named_solver(name), mm.Solver)
    assert named_solver(name) is not named_solver(name)


def test_names_are_distinct_methods() -> None:
    described = [str(describe(named_solver(name))) for name in solver_names()]
    assert len(set(described)) == len(described)


@pytest.mark.parametrize("name, solver", [("sfls", mm.SFLS()), ("iqrc", mm.IQRC())])
def test_without_settings_a_name_is_its_class_by_default(name: str, solver: mm.Solver) -> None:
    assert describe(named_solver(name)) == describe(solver)


def test_settings_reach_the_outermost_part_that_has_them() -> None:
    made: Any = named_solver("iqrc", steps=77, levels=3, tolerance=0.3)
    assert (made.tolerance, made.oracle.levels, made.oracle.oracle.steps) == (0.3, 3, 77)
    assert made.oracle.tolerance == mm.SFLS().tolerance
    # What was not named stays as it was, the oracle's own settings among it.
    assert made.oracle.least_span == mm.IQRC().oracle.least_span == 0.0
    assert made.oracle.oracle.batch_size == mm.SMD().batch_size


@pytest.mark.parametrize("name", solver_names())
def test_settings_that_no_part_has_are_refused_by_name(name: str) -> None:
    with pytest.raises(mm.InvalidInput, match=f"colour='red'.*{name}"):
        named_solver(name, colour="red")


def test_a_value_is_refused_by_the_part_that_takes_it() -> None:
    with pytest.raises(mm.InvalidInput, match="steps=0"):
        named_solver("sfls", steps=0)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(mm.UnknownName, match="did you mean 'sfls'"):
        named_solver("slfs")


@pytest.mark.parametrize("name", [["sfls"], None, 3])
def test_what_is_no_name_is_refused(name: Any) -> None:
    with pytest.raises(mm.UnknownName, match=r"solver=.*Known: sfls"):
        named_solver(name)
