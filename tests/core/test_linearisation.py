"""Exact values and gradients against central differences, autograd of the definitions, and data in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minmaxcon as mm
from minmaxcon.arrays import namespace, to_numpy
from minmaxcon.core.linearisation import exact_gradients, exact_values
from minmaxcon_problems.fair_auc import METRICS
from minmaxcon_problems.fair_auc.surrogate.build import pair_masks
from tests import cases

Array = Any

NUMPY_ONLY = {"cvar", "regression_weakly_convex", "fair_auc_sparse"}
NAMES = [name for name in cases.PROBLEMS if name != "fair_auc_torch"]
PAIRS = [(name, "numpy") for name in NAMES] + [(name, "torch") for name in NAMES if name not in NUMPY_ONLY]


class InPieces(mm.Finite):
    """The same rows, seven at a time."""

    def chunks(self, rows: int | None = None) -> Iterator[tuple[float, mm.Batch]]:
        return super().chunks(7)


def on(name: str, engine: str, kind: type[mm.Finite] = mm.Finite) -> mm.MinMaxProblem:
    problem = cases.problem(name)
    return replace(problem, data=kind(problem.data.arrays, engine=engine))


def points(problem: mm.MinMaxProblem, runs: int, seed: int = 0) -> Array:
    """Points without anything special: no maximiser is tied at them."""
    center = np.asarray(problem.primal.center)
    drawn = center + 0.6 * (problem.primal.sample(np.random.default_rng(seed), runs) - center)
    return namespace(problem.data.like).asarray(drawn, problem.data.like)


@pytest.mark.parametrize("name, engine", PAIRS)
def test_gradients_are_central_differences(name: str, engine: str) -> None:
    problem = on(name, engine)
    x = points(problem, 3)
    values, gradients = exact_gradients(problem.family, x, problem.data)
    levels, d = 1 + len(problem.constraints), problem.primal.dimension
    assert values.shape == (3, levels)
    assert gradients.shape == (3, levels, d)
    assert values.dtype == gradients.dtype == np.float64
    step = 1e-6
    for j in range(d):
        shift = namespace(x).asarray(step * np.eye(d)[j], x)
        ahead, behind = (exact_values(problem.family, at, problem.data) for at in (x + shift, x - shift))
        slope = (ahead - behind) / (2 * step)
        assert gradients[:, :, j] == pytest.approx(slope, rel=1e-5, abs=2e-6)


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_the_level_problem_at_zero(name: str) -> None:
    problem = on(name, "numpy")
    x = points(problem, 4, seed=1)
    expected = problem.at_level(np.zeros(4)).values(x)
    np.testing.assert_array_equal(exact_values(problem.family, x, problem.data), expected)
    assert exact_gradients(problem.family, x, problem.data)[0] == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("name, engine", PAIRS)
def test_pieces_add_up(name: str, engine: str) -> None:
    whole, pieces = on(name, engine), on(name, engine, InPieces)
    x = points(whole, 2)
    assert len(list(pieces.data.chunks())) > 10
    for one, other in zip(
        exact_gradients(pieces.family, x, pieces.data), exact_gradients(whole.family, x, whole.data), strict=True
    ):
        assert one == pytest.approx(other, rel=1e-11, abs=1e-12)
    assert exact_values(pieces.family, x, pieces.data) == pytest.approx(
        exact_values(whole.family, x, whole.data), rel=1e-12
    )


def by_autograd(problem: mm.MinMaxProblem, x: Array) -> tuple[Array, Array]:
    """f_0, f_1, f_2 of fair AUC at one x, written in torch from the formula: sum of F + max of alpha G - c1 alpha^2."""
    import torch

    rows, c1, c2 = problem.details.dataset.train, problem.details.c1, problem.details.c2
    d = rows.features.shape[1]
    point = torch.tensor(x, requires_grad=True)
    h = torch.tensor(rows.features) @ point[:d]
    totals = [torch.zeros((), dtype=torch.float64) for _ in range(3)]
    masks = pair_masks(rows.label, problem.details.metric, rows.group)
    for pair, (owner, (g, other)) in enumerate(zip([0, 1, 1, 2, 2], masks, strict=True)):
        a, b = point[d + 2 * pair], point[d + 2 * pair + 1]
        left, right = h[torch.tensor(g)], h[torch.tensor(other)]
        loss = c1 * c2**2 + c1 * ((left - a) ** 2).mean() + c1 * ((right - b) ** 2).mean()
        difference = left.mean() - right.mean()
        totals[owner] = totals[owner] + loss - 2 * c1 * c2 * difference + c1 * difference**2
    gradients = [torch.autograd.grad(total, point, retain_graph=True)[0].numpy() for total in totals]
    return np.array([total.item() for total in totals]), np.stack(gradients)


@pytest.mark.parametrize("engine", ["numpy", "torch"])
@pytest.mark.parametrize("metric", METRICS)
def test_fair_auc_against_autograd_of_its_definition(metric: str, engine: str) -> None:
    problem = cases.fair_auc(metric, 5.0, engine=engine)
    x = 0.3 * np.random.default_rng(5).normal(size=(2, problem.primal.dimension))
    values, gradients = exact_gradients(
        problem.family, namespace(problem.data.like).asarray(x, problem.data.like), problem.data
    )
    for r in range(2):
        expected = by_autograd(problem, x[r])
        assert values[r] == pytest.approx(expected[0], rel=1e-11)
        assert gradients[r] == pytest.approx(expected[1], rel=1e-10, abs=1e-11)


def test_arguments_are_left_as_they_were() -> None:
    problem = cases.problem("fair_auc_torch")
    x = points(problem, 2)
    before = np.array(to_numpy(x))
    exact_gradients(problem.family, x, problem.data)
    np.testing.assert_array_equal(to_numpy(x), before)
    assert not x.requires_grad
