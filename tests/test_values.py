"""Values that hold arrays compare by identity: ``==`` never raises, and they stay hashable."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

import minmaxcon as mm
import minmaxcon_problems
from tests import cases

ARRAYS = re.compile(r"\b(Any|Array|NDArray|ndarray|object)\b")
CALLABLES = re.compile(r"Callable\[(\.\.\.|\[[^\]]*\]), [^|]*\]")


def dataclasses_of_the_packages() -> Iterator[type]:
    for package in (mm, minmaxcon_problems):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            try:
                found = vars(importlib.import_module(module.name))
            except ModuleNotFoundError as missing:  # an extra that is not installed
                if str(missing.name).startswith("minmaxcon"):
                    raise
                continue
            for value in list(found.values()):
                if inspect.isclass(value) and dataclasses.is_dataclass(value) and value.__module__ == module.name:
                    yield value


def test_no_dataclass_compares_arrays() -> None:
    classes = list(dataclasses_of_the_packages())
    assert len(classes) > 80  # the walk has seen them
    faulty = [
        f"{found.__module__}.{found.__name__}.{field.name}"
        for found in classes
        if found.__eq__ is not object.__eq__
        for field in dataclasses.fields(found)
        if field.compare and ARRAYS.search(CALLABLES.sub("", str(field.type)))
    ]
    assert not faulty, "give their classes eq=False"


def values() -> Iterator[Any]:
    problem = cases.quadratic(np.array([0.5, 0.7]))
    level, x = problem.at_level(np.zeros(2)), problem.start_point()
    yield from (problem, level, problem.family, problem.data, problem.primal, problem.objective)
    yield from (problem.with_proximal(x[0], 1.0).proximal, problem.family.evaluate(x, problem.data.arrays))
    start = mm.Start(x, level.dual().center(x), mm.Position.start(np.random.Generator(np.random.MT19937(0))))
    yield from (start, start.dual, start.position)
    for oracle in cases.ORACLES.values():
        state = oracle().begin(level, start, accuracy=0.0, confidence=0.9)
        yield from (state, oracle().estimate(state))
    for solver in cases.SOLVERS.values():
        state = solver().init(problem, start)
        yield from (state, solver().outcome(state))
    yield mm.solve(problem, budget=100)
    yield mm.estimate_modulus(problem, pairs=2, rounds=0)


def test_values_equal_themselves_and_nothing_else() -> None:
    for value in values():
        other = copy.copy(value)
        assert value == value
        assert value != other, type(value)
        assert len({value, other}) == 2, type(value)
