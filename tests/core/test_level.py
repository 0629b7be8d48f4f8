"""Level problems on full data against formulas by hand: means in pieces, the Lagrangian and proximal terms."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

import minmaxcon as mm
from minmaxcon.arrays import compiled
from minmaxcon.core.level import Proximal, expectations
from minmaxcon.data import ArrayBlocks
from tests import cases
from tests.problem_library import HalfSquare, Linear, WorstGroup

Array = Any
X = np.array([[0.5, -1.0, 2.0], [1.0, 0.25, -0.5]])


def grouped(data: mm.Source | None = None) -> mm.MinMaxProblem:
    """Return a worst group with an entropic penalty, and a cost to bound."""
    data = cases.finite("points", "costs", "shares") if data is None else data
    return mm.MinMaxProblem(WorstGroup(3, temperature=0.5), [Linear(0.75)], mm.Ball(3, 6.0), data)


def by_hand(x: Array) -> tuple[Array, Array, Array]:
    """Return cost (R,), group losses (R, 3) and the losses' gradients (R, 3, d), from the rows one by one."""
    rows = cases.arrays()
    away = x[:, None, :] - rows["points"]
    half = 0.5 * (away**2).sum(-1)
    return x @ rows["costs"].mean(0), half @ rows["shares"] / 120, np.einsum("rnd,ng->rgd", away, rows["shares"]) / 120


@pytest.mark.parametrize("kind", ["whole", "pieces", "streamed"])
def test_means_and_gradients_are_those_of_the_rows(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {name: cases.arrays()[name] for name in ("points", "costs", "shares")}
    source: mm.Source = mm.Finite(rows)
    if kind == "pieces":
        whole = source.chunks
        monkeypatch.setattr(source, "chunks", lambda _: _pieces(next(whole())[1], 50))
    elif kind == "streamed":
        source = mm.OnDisk(ArrayBlocks(rows), window=32)
        whole = source.chunks
        monkeypatch.setattr(source, "chunks", lambda _: whole(50))
        assert source.streamed
    problem = grouped(source)
    found = expectations(problem.family, X, problem.data)
    cost, losses, slopes = by_hand(X)
    np.testing.assert_allclose(found.F, np.stack([0.0 * cost, cost], axis=1), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.G, losses, rtol=1e-12)
    y, a = np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([[0.1, 0.05, 0.1], [0.2, 0.3, 0.0]])
    expected = y[:, 1:] * rows["costs"].mean(0) + np.einsum("rg,rgd->rd", a, slopes)
    np.testing.assert_allclose(found.pullback(y, a), expected, rtol=1e-11)


def _pieces(batch: Any, count: int) -> Any:
    """Yield a batch in pieces, and the share of each."""
    total = len(batch["points"])
    for begin in range(0, total, count):
        part = {name: value[begin : begin + count] for name, value in batch.items()}
        yield len(part["points"]) / total, part


@pytest.mark.parametrize("runs, expected", [(1, 2**22), (5, 2**22 // 5), (4096, 1024), (50_000, 1024)])
def test_a_pass_over_many_runs_takes_fewer_rows_at_once(
    monkeypatch: pytest.MonkeyPatch, runs: int, expected: int
) -> None:
    problem, asked = grouped(), list[Any]()
    whole = problem.data.chunks

    def chunks(rows: int) -> Any:
        asked.append(rows)
        return whole()

    monkeypatch.setattr(problem.data, "chunks", chunks)
    expectations(problem.family, np.zeros((runs, 3)), problem.data)
    assert asked == [expected]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("wrong", ["whole numbers", "shape"])
def test_values_of_another_type_or_shape_are_refused(wrong: str, streamed: bool) -> None:
    class Wrong(HalfSquare):
        def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
            found = super().evaluate(x, batch)
            F = found.F.astype(int) if wrong == "whole numbers" else found.F[..., None]
            return mm.Evaluation(F, found.G, found.pullback)

    rows = {"points": cases.arrays()["points"]}
    data: mm.Source = mm.OnDisk(ArrayBlocks(rows), window=32) if streamed else mm.Finite(rows)
    problem = mm.MinMaxProblem(Wrong(), [Wrong(9.0)], mm.Ball(3, 6.0), data)
    with pytest.raises(mm.MinMaxConError) as caught:
        expectations(problem.family, X, problem.data)
    assert "\n" not in str(caught.value)
    assert "int64" in str(caught.value) if wrong == "whole numbers" else "shape" in str(caught.value)


WAYS = ["means", "whole", "pieces", "streamed"]
"""How the means over the data are found: they are known, by one piece, by several, or the data are streamed."""


def known_as(way: str, part: str, kind: Any, monkeypatch: pytest.MonkeyPatch) -> mm.MinMaxProblem:
    """Return a problem one of whose parts, F, G or the gradient, is of a type, where means are found in one way."""

    class Family(mm.ConstraintFamily):
        def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
            def typed(name: str, value: Array) -> Array:
                return value.astype(kind) if name == part else value

            lead = x.shape[:-1]
            gradient = typed("gradient", 3.0 * np.ones_like(x))
            return mm.Evaluation(typed("F", np.ones((*lead, 2))), typed("G", np.ones((*lead, 2))), lambda *_: gradient)

        def knows_means(self, data: mm.Source) -> bool:
            return way == "means"

        def means(self, x: Array, data: mm.Source) -> mm.Evaluation:
            return self.evaluate(x, {})

    class Typed(mm.StochasticMinMaxConstraint):
        dual, name, bound = mm.interval(1.0), "typed", 2.0

        def evaluate(self, x: Array, batch: mm.Batch) -> mm.Evaluation:
            raise AssertionError("all are evaluated together")

        @classmethod
        def fuse(cls, constraints: Any) -> mm.ConstraintFamily:
            return Family(constraints)

    rows = {"points": cases.arrays()["points"]}
    data: mm.Source = mm.OnDisk(ArrayBlocks(rows), window=32) if way == "streamed" else mm.Finite(rows)
    if way == "pieces":
        whole = data.chunks
        monkeypatch.setattr(data, "chunks", lambda _: _pieces(next(whole())[1], 50))
    return mm.MinMaxProblem(Typed(), [Typed()], mm.Ball(3, 6.0), data)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("part, argument", [("F", "F"), ("G", "G"), ("gradient", "pullback")])
def test_only_real_numbers_are_means(way: str, part: str, argument: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole numbers are real, and are added to others in moments and gradients; values are of floating point."""
    duals = np.full((2, 2), 0.5), np.zeros((2, 2))
    for kind in (complex, object, str):
        problem = known_as(way, part, kind, monkeypatch)
        with pytest.raises(mm.InvalidInput, match=r"it must be an array of real numbers") as caught:
            expectations(problem.family, X, problem.data).pullback(*duals)
        assert caught.value.argument == argument
    problem = known_as(way, part, int, monkeypatch)
    if part == "F":
        with pytest.raises(mm.InvalidInput, match=r"evaluate gives F of type int64") as caught:
            expectations(problem.family, X, problem.data)
        assert caught.value.argument == "F"
    else:
        found = expectations(problem.family, X, problem.data)
        np.testing.assert_allclose(found.G, np.ones((2, 2)), rtol=1e-12)
        np.testing.assert_allclose(found.pullback(*duals), np.full((2, 3), 3.0), rtol=1e-12)
        assert expectations(problem.family, X[None], problem.data).G.shape == (1, 2, 2)  # any axes count runs


def test_a_traced_centre_has_no_values_to_refuse() -> None:
    pytest.importorskip("jax", reason="jax is not installed: pip install 'minmaxcon[jax]'")
    center = np.array([[1.0, 2.0]])
    moved = compiled(lambda center, weight: Proximal(center, weight).center * weight)
    np.testing.assert_allclose(moved(center, np.array([3.0])), 3.0 * center, rtol=1e-12)
    for wrong in (1j * center, np.array([[np.nan, 1.0]]), torch.tensor([[1j, 1.0]])):
        with pytest.raises(mm.InvalidInput) as caught:
            Proximal(wrong, 1.0)
        assert caught.value.argument == "center"


@pytest.mark.parametrize("engine", ["numpy", "torch"])
@pytest.mark.parametrize("weight", [None, 2.0, np.array([2.0, 3.0])])
def test_the_lagrangian_is_its_formula(engine: str, weight: Any) -> None:
    problem = grouped(cases.finite("points", "costs", "shares", engine=engine))
    center, bounds = np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]]), np.array([[0.3, 0.75], [0.4, 0.75]])
    level = problem.at_level(bounds[:, 0])
    if weight is not None:
        level = dataclasses.replace(level, proximal=Proximal(center, weight))
    y, a = np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([[0.1, 0.05, 0.1], [0.2, 0.3, 0.0]])
    cost, losses, slopes = by_hand(X)
    share = a / y[:, :1]
    entropy = np.where(share > 0, share * np.log(3.0 * np.where(share > 0, share, 1.0)), 0.0).sum(-1)
    penalty, F = y[:, 0] * 0.5 * entropy, np.stack([0.0 * cost, cost], axis=1)
    far = np.zeros(2) if weight is None else 0.5 * weight * ((X - center) ** 2).sum(-1)
    value = (y * (F - bounds)).sum(-1) + (a * losses).sum(-1) - penalty + far
    size = (y * (np.abs(F) + bounds)).sum(-1) + (a * np.abs(losses)).sum(-1) + np.abs(penalty) + far
    slope = y[:, 1:] * cases.arrays()["costs"].mean(0) + np.einsum("rg,rgd->rd", a, slopes)
    slope += 0.0 if weight is None else np.reshape(weight, (-1, 1)) * (X - center)
    put = (lambda array: array) if engine == "numpy" else torch.as_tensor
    found = level.lagrangian_terms(put(X), put(y), put(a))
    for one, other in zip(found, (value, slope, size), strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-11)
    for one, other in zip(level.lagrangian(put(X), put(y), put(a)), (value, slope), strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-11)
    worst = 0.5 * np.log(np.exp(losses / 0.5).mean(-1))
    np.testing.assert_allclose(level.values(put(X)), np.stack([worst, cost], axis=1) + far[:, None], rtol=1e-11)


def test_proximal_terms_of_one_and_of_several_runs() -> None:
    ball, center = mm.Ball(3, 6.0), np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]])
    for weight in (3.0, np.array([2.0, 5.0])):
        for place in (center, center[1]):
            term, column = Proximal(place, weight), np.broadcast_to(weight, 2)
            assert term.least == np.min(weight)
            np.testing.assert_allclose(term.value(ball, X), 0.5 * column * ((X - place) ** 2).sum(-1), rtol=1e-12)
            np.testing.assert_allclose(term.gradient(ball, X), column[:, None] * (X - place), rtol=1e-12)
            part = term.take([1])
            np.testing.assert_allclose(part.value(ball, X[1:]), term.value(ball, X)[1:], rtol=1e-12)
            middle, of_prox = term.parts(X)
            assert np.array_equal(middle, place)
            assert type(of_prox) is float if np.ndim(weight) == 0 else of_prox.shape == (2, 1)
            single = term.value(ball, torch.as_tensor(X, dtype=torch.float32))
            assert single.dtype == torch.float32
    assert type(Proximal(center, np.float64(3.0)).parts(X)[1]) is float
