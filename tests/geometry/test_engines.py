"""Every operation on NumPy and torch, in both precisions, with any run axes, and without touching its arguments."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np
import pytest
import torch

from minmaxcon.arrays import compiled, to_numpy
from minmaxcon.arrays import engine as functions
from minmaxcon.geometry import DistanceGenerator, DualPoint, PerspectiveGenerator
from tests.geometry.cases import (
    GENERATORS,
    Blocks,
    converted,
    dual_interior,
    each_dual,
    each_engine,
    each_generator,
    interior,
)

Results = dict[str, Any]


def primal_results(generator: DistanceGenerator, given: Results) -> Results:
    """Return what every operation gives."""
    u, v, g, step, weight = (given[name] for name in ("u", "v", "g", "step", "weight"))
    value, corner = generator.linear_minimum(g)
    results = {
        "value": generator.value(u),
        "gradient": generator.gradient(u),
        "divergence": generator.divergence(u, v),
        "prox": generator.prox(u, g, step),
        "prox_penalty": generator.prox(u, g, step, center=v, weight=weight),
        "prox_float": generator.prox(u, g, 0.3, center=v, weight=2.0),
        "linear_minimum": value,
        "corner": corner,
        "norm": generator.norm(g),
        "dual_norm": generator.dual_norm(g),
        "contains": generator.contains(u, 1e-5),
    }
    if generator.euclidean:
        results["project"] = generator.project(g + 0.0)
    return results


def dual_results(generator: PerspectiveGenerator, given: Results) -> Results:
    point, anchor, u, v, step = (given[name] for name in ("point", "anchor", "u", "v", "step"))
    points = {
        "prox": generator.prox(anchor, u, v, step),
        "prox_float": generator.prox(anchor, u, v, 0.7),
        "center": generator.center(u),
        "warm": generator.warm(point, 0.1),
        "point": generator.point(point.weights, point.inner),
    }
    results = {
        "support": generator.support(u, v),
        "penalty": generator.penalty(point),
        "value": generator.value(point),
        "divergence": generator.divergence(point, anchor),
        "squared_distance": generator.squared_distance(point, anchor),
        "scaled": generator.scaled(point),
        "spread": generator.spread(u),
        "maximizer": generator.stack.maximize(v)[0],
    }
    for name, found in points.items():
        for part in ("log_weights", "weights", "inner"):
            results[f"{name}.{part}"] = getattr(found, part)
    return results


def primal_given(generator: DistanceGenerator, runs: tuple[int, ...], seed: int = 40) -> Results:
    rng = np.random.default_rng(seed)
    count = int(np.prod(runs))
    return {
        "u": interior(generator, rng, count).reshape(*runs, -1),
        "v": interior(generator, rng, count).reshape(*runs, -1),
        "g": 5.0 * rng.standard_normal((*runs, generator.dimension)),
        "step": 10.0 ** rng.uniform(-2.0, 1.0, (*runs, 1)),
        "weight": 10.0 ** rng.uniform(-2.0, 1.0, (*runs, 1)),
    }


def dual_given(generator: PerspectiveGenerator, runs: tuple[int, ...], seed: int = 41) -> Results:
    rng = np.random.default_rng(seed)
    count = int(np.prod(runs))

    def shaped(point: DualPoint) -> DualPoint:
        return converted(point, lambda array: array.reshape(*runs, array.shape[-1]))

    return {
        "point": shaped(dual_interior(generator, rng, count)),
        "anchor": shaped(dual_interior(generator, rng, count)),
        "u": 3.0 * rng.standard_normal((*runs, generator.levels)),
        "v": 3.0 * rng.standard_normal((*runs, generator.inner_dimension)),
        "step": 10.0 ** rng.uniform(-2.0, 1.0, (*runs, 1)),
    }


def mapped(given: Results, convert: Callable[[Any], Any]) -> Results:
    return {k: converted(x, convert) if isinstance(x, DualPoint) else convert(x) for k, x in given.items()}


def assert_close(found: Results, expected: Results, tolerance: float) -> None:
    assert found.keys() == expected.keys()
    for name in expected:
        got, want = to_numpy(found[name]), to_numpy(expected[name])
        assert got.shape == want.shape, name
        scale = 1.0 + np.abs(want).max(initial=0.0)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale, err_msg=name)


def assert_precision(found: Results, dtype: Any, boolean: Any) -> None:
    for name, array in found.items():
        assert array.dtype == (boolean if name == "contains" else dtype), name


SHAPES = pytest.mark.parametrize("runs", [(), (2, 3)], ids=str)


@each_generator
@SHAPES
def test_primal_engines_agree(generator: DistanceGenerator, runs: tuple[int, ...]) -> None:
    given = primal_given(generator, runs)
    found = primal_results(generator, mapped(given, torch.from_numpy))
    assert_close(found, primal_results(generator, given), 1e-12)
    assert_precision(found, torch.float64, torch.bool)


@pytest.mark.parametrize("name", ["simplex", "nested_product", "mixed_product"])
def test_a_compiled_step_is_the_interpreted_one(name: str) -> None:
    """Traced arrays cannot be written into, so a projection in place has a second form."""
    pytest.importorskip("jax", reason="the extra jax is not installed")
    generator = GENERATORS[name]

    def steps(u: Any, v: Any, g: Any, step: Any, weight: Any) -> Results:
        found = {
            "gradient": generator.gradient(u),
            "divergence": generator.divergence(u, v),
            "prox": generator.prox(u, g, step),
            "prox_penalty": generator.prox(u, g, step, center=v, weight=weight),
        }
        return found | ({"project": generator.project(g + 0.0)} if generator.euclidean else {})

    given = tuple(primal_given(generator, (5,)).values())
    assert_close(compiled(steps)(*given), steps(*given), 1e-12)


@each_dual
@SHAPES
def test_dual_engines_agree(blocks: Blocks, runs: tuple[int, ...]) -> None:
    generator = PerspectiveGenerator(blocks)
    given = dual_given(generator, runs)
    found = dual_results(generator, mapped(given, torch.from_numpy))
    assert_close(found, dual_results(generator, given), 1e-12)
    assert_precision(found, torch.float64, torch.bool)


@each_generator
@each_engine
def test_primal_float32_stays(generator: DistanceGenerator, engine: str) -> None:
    xp = functions(engine)
    given = primal_given(generator, (2, 3))
    found = primal_results(generator, mapped(given, lambda array: xp.create(array, "float32")))
    assert_precision(found, *((torch.float32, torch.bool) if engine == "torch" else (np.float32, np.bool_)))
    assert_close(found, primal_results(generator, given), 2e-5)


@each_dual
@each_engine
@pytest.mark.parametrize("rule", ["theorem", np.float64(3.0)], ids=str)
def test_dual_float32_stays(blocks: Blocks, engine: str, rule: Any) -> None:
    xp = functions(engine)
    generator = PerspectiveGenerator(blocks, rule)
    given = dual_given(generator, (2, 3))
    found = dual_results(generator, mapped(given, lambda array: xp.create(array, "float32")))
    assert_precision(found, torch.float32 if engine == "torch" else np.float32, None)
    assert_close(found, dual_results(generator, given), 1e-4)


@each_dual
@each_engine
def test_dual_runs_at_once_equal_one_by_one(blocks: Blocks, engine: str) -> None:
    generator = PerspectiveGenerator(blocks)
    given = mapped(dual_given(generator, (5,)), functions(engine).create)
    together = dual_results(generator, given)
    for j in range(5):
        alone = dual_results(generator, mapped(given, itemgetter(j)))
        assert_close(alone, {name: array[j] for name, array in together.items()}, 1e-14)


def arrays_of(given: Results) -> list[Any]:
    found = []
    for x in given.values():
        found += [x.log_weights, x.weights, x.inner] if isinstance(x, DualPoint) else [x]
    return found


@each_generator
@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_a_primal_prox_leaves_its_arguments_alone(generator: DistanceGenerator, size: float) -> None:
    """Small gradients end inside the set, large ones outside: no path may change or hand out what came in."""
    given = primal_given(generator, (4,))
    given["g"] = size * given["g"]
    kept = [array.copy() for array in arrays_of(given)]
    for array in arrays_of(given):
        array.setflags(write=False)
    results = primal_results(generator, given)
    for name in ("prox", "prox_penalty", "prox_float", "corner", "gradient"):
        assert not any(np.shares_memory(results[name], array) for array in arrays_of(given)), name
        results[name] += 1.0
    for array, before in zip(arrays_of(given), kept, strict=True):
        np.testing.assert_array_equal(array, before)
    assert_close(primal_results(generator, given), primal_results(copy.deepcopy(generator), given), 0.0)


@each_dual
def test_a_dual_prox_leaves_its_arguments_alone(blocks: Blocks) -> None:
    generator = PerspectiveGenerator(blocks)
    given = dual_given(generator, (4,))
    for array in arrays_of(given):
        array.setflags(write=False)
    results = dual_results(generator, given)
    for name in ("prox.log_weights", "prox.weights", "prox.inner", "center.weights", "center.inner", "maximizer"):
        assert not any(np.shares_memory(results[name], array) for array in arrays_of(given) if array.size), name
        results[name] += 1.0
    assert_close(dual_results(generator, given), dual_results(PerspectiveGenerator(blocks), given), 0.0)


@each_generator
def test_primal_copies_do_the_same(generator: DistanceGenerator) -> None:
    given = primal_given(generator, (3,))
    expected = primal_results(generator, given)
    twin = pickle.loads(pickle.dumps(generator))
    assert repr(twin) == repr(generator)
    assert_close(primal_results(twin, given), expected, 0.0)


@each_dual
def test_dual_copies_do_the_same(blocks: Blocks) -> None:
    generator = PerspectiveGenerator(blocks)
    given = dual_given(generator, (3,))
    expected = dual_results(generator, given)
    twin, point = pickle.loads(pickle.dumps((generator, given["point"])))
    assert repr(twin) == repr(generator)
    assert_close(dual_results(twin, {**given, "point": point}), expected, 0.0)


@each_dual
def test_a_shared_anchor_serves_every_run(blocks: Blocks) -> None:
    """One point without a run axis broadcasts against gradients that have one, as at the first step of a solve."""
    generator = PerspectiveGenerator(blocks)
    given = dual_given(generator, (3,))
    anchor = converted(given["anchor"], lambda array: array[0])
    found = generator.prox(anchor, given["u"], given["v"], given["step"])
    for j in range(3):
        alone = generator.prox(anchor, given["u"][j], given["v"][j], given["step"][j])
        np.testing.assert_allclose(found.weights[j], alone.weights, rtol=1e-13)
        np.testing.assert_allclose(found.inner[j], alone.inner, rtol=1e-13)
