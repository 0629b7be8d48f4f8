"""Ordinary mistakes of Python: each is refused by one of the package's own errors, in the argument's name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from tests import cases
from tests.problem_library import HalfSquare, Linear

Array = Any

PARTS: list[tuple[dict[str, Any], str]] = [
    ({"objective": None}, "^objective=None: must be a StochasticMinMaxConstraint"),
    ({"objective": [HalfSquare()]}, "^objective="),
    ({"constraints": [3]}, r"^constraints\[0\]=3"),
    ({"constraints": [Linear(1.0), HalfSquare]}, r"^constraints\[1\]="),
    ({"constraints": Linear(1.0)}, r"^constraints=.*put a single one in \[ \]"),
    ({"constraints": None}, "^constraints=None"),
    ({"constraints": "ab"}, "^constraints='ab'"),
    ({"primal": None}, "^primal=None: must be a DistanceGenerator"),
    ({"primal": 3}, "^primal=3"),
    ({"primal": mm.Ball(4, 1.0)}, r"^start=\(3,\): must have shape \(4,\), the dimension of primal"),
    ({"data": np.zeros((9, 3))}, r"^data=.*wrap arrays: Finite"),
    ({"data": {"points": np.zeros((9, 3))}}, "^data="),
    ({"start": "ab"}, "^start='ab'"),
    ({"start": [[1.0], [1.0, 2.0]]}, "^start="),
]


@pytest.mark.parametrize("changes, message", PARTS)
def test_parts_of_a_problem(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(mm.InvalidInput, match=message) as caught:
        replace(cases.quadratic(), **changes)
    assert "\n" not in str(caught.value)


def test_constraints_may_come_from_an_iterator() -> None:
    problem = replace(cases.quadratic(), constraints=(Linear(bound) for bound in (0.5, 1.0)))
    assert problem.bounds().tolist() == [[0.5, 1.0]]


CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: mm.solve(3), "^problem=3: must be a MinMaxProblem"),
    (lambda: mm.solve("fair_auc"), "^problem='fair_auc'"),
    (lambda: next(mm.iterate(None, mm.SFLS())), "^problem=None"),
    (lambda: next(mm.iterate(cases.quadratic(), mm.SMD())), "^solver="),
    (lambda: mm.solve(cases.quadratic(), callbacks=print), r"^callbacks=.*put a single one in \[ \]"),
    (lambda: mm.solve(cases.quadratic(), callbacks=[3]), "^callbacks="),
    (lambda: mm.solve(cases.quadratic(), callbacks=None), "^callbacks=None"),
    (lambda: mm.solve(cases.quadratic(), x0="ab"), "^x0='ab'"),
    (lambda: mm.solve(cases.quadratic(), x0=[[1.0, 2.0, 3.0], [1.0]]), "^x0="),
    (lambda: mm.solve(cases.quadratic(), x0=[["a", "b", "c"]]), "^x0="),
    (lambda: mm.solve(cases.quadratic(), x0=3), "^x0="),
    (lambda: mm.SMD(step_rule=[1]), "^step_rule="),
    (lambda: mm.SMD(step_rule={"adaptive": 1}), "^step_rule="),
    (lambda: mm.SMD(batch_size=10**20), "^batch_size=100000000000000000000: at most 1,000,000 samples"),
    (lambda: mm.SMD(batch_size=10**12), "^batch_size=1000000000000: at most 1,000,000 samples"),
    (lambda: mm.SMD(steps=10, batch_size=10**8), "^batch_size=100000000: at most 10,000,000 samples"),
]


@pytest.mark.parametrize("call, message", CALLS)
def test_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(mm.InvalidInput, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_large_batches_that_fit_are_taken() -> None:
    assert mm.SMD(batch_size=10**6).batch_size == 10**6
    assert mm.SMD(block=1, batch_size=10**8).batch_size == 10**8


def a_float(_x: Array, _batch: mm.Batch) -> Any:
    return 3.0


def no_pair(x: Array, batch: mm.Batch) -> Any:
    return (x @ batch["costs"].mean(0)), None, None


def one_tensor(x: Array, batch: mm.Batch) -> Any:
    return x @ batch["costs"].mean(0)


def floats(_x: Array, _batch: mm.Batch) -> Any:
    return 3.0, None


def array_moment(x: Array, batch: mm.Batch) -> Any:
    return x @ batch["costs"].mean(0), np.zeros(3)


def detached(x: Array, batch: mm.Batch) -> Any:
    return (x @ batch["costs"].mean(0)).detach(), None


def stepped(x: Array, batch: mm.Batch) -> Any:
    return (x @ batch["costs"].mean(0) > 0).to(x), None


def every_sample(x: Array, batch: mm.Batch) -> Any:
    return x @ batch["costs"].T, None


def one_number(x: Array, batch: mm.Batch) -> Any:
    return (x @ batch["costs"].mean(0)).sum(), None


def unasked_moment(x: Array, batch: mm.Batch) -> Any:
    return x @ batch["costs"].mean(0), x


WRONG = {
    a_float: "pair",
    no_pair: "pair",
    one_tensor: "pair",
    floats: "F must be an array of torch",
    array_moment: "G must be an array of torch",
    detached: "autograd sees no dependence",
    stepped: "autograd sees no dependence .* or comparisons, whose steps have no slope; .* is a TrueMeasure",
    every_sample: "F must have shape",
    one_number: "F must have shape",
    unasked_moment: "F must have shape .* and G",
}


@pytest.mark.parametrize("solver", ["sfls", "iqrc"])
@pytest.mark.parametrize("terms", WRONG, ids=lambda terms: terms.__name__)
def test_terms_of_a_plug_in(terms: Any, solver: str) -> None:
    class Mine(mm.StochasticMinMaxConstraint):
        name, bound = "mine", 1.0

        def terms(self, x: Array, batch: mm.Batch) -> Any:
            return terms(x, batch)

    problem = replace(cases.quadratic(engine="torch"), constraints=[Mine()])
    with pytest.raises(mm.InvalidInput, match=f"^terms of mine=.*{WRONG[terms]}") as caught:
        mm.solve(problem, cases.SOLVERS[solver]())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "found, message",
    [(3.0, "^evaluate of mine=3.0"), ((1.0, 2.0), "^evaluate of mine="), (None, "^evaluate of mine=None")],
)
def test_evaluations_of_a_plug_in(found: Any, message: str) -> None:
    class Mine(Linear):
        def evaluate(self, x: Array, batch: mm.Batch) -> Any:
            return found

    with pytest.raises(mm.InvalidInput, match=message):
        mm.solve(replace(cases.quadratic(), constraints=[Mine(1.0, name="mine")]))


def test_a_pullback_that_is_no_array() -> None:
    class Mine(Linear):
        def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
            part = super().evaluate(x, batch)
            return mm.Evaluation(part.F, part.G, lambda _y, _a: 0.0)

    problem = mm.MinMaxProblem(Mine(name="mine"), [Mine(9.0, name="mine")], mm.Ball(3, 1.0), cases.finite("costs"))
    with pytest.raises(mm.InvalidInput, match=r"^pullback of mine=0\.0"):
        mm.solve(problem)
