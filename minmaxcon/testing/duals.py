"""What the perspective generator over the levels of a problem must satisfy."""

from __future__ import annotations

from typing import Any

import numpy as np

from minmaxcon.geometry import DualPoint, PerspectiveGenerator, entropy_weight_bound
from minmaxcon.testing.harness import Fault, Skip, Suite, at, reference, require, shown

__all__ = ["DUAL"]

DUAL = Suite()

_HOW_LARGE = "theory/generator.html#how-large-must-k-be"
_DIAMETER = "theory/generator.html#divergence-diameter"
_PROX = "theory/generator.html#the-prox-is-a-formula"

_COUNT = 200


def _start(generator: PerspectiveGenerator) -> Any:
    parts = [np.asarray(block.start) for block in generator.blocks if block is not None]
    return np.concatenate(parts) if parts else np.zeros(0)


def _interior(generator: PerspectiveGenerator, rng: np.random.Generator, count: int, margin: float = 0.05) -> DualPoint:
    point = generator.sample(rng, count)
    weights = (1.0 - margin) * point.weights + margin / generator.levels
    return generator.point(weights, (1.0 - margin) * point.inner + margin * _start(generator))


def _row(point: DualPoint, j: int) -> str:
    return shown(y=point.weights[j], alpha=point.inner[j])


def _size(generator: PerspectiveGenerator) -> float:
    return 1.0 + float(generator.squared_diameter)


@DUAL.check("V_y >= 1/2 (|y - y'|_1^2 + |a - a'|_2^2) when K is at least the theorem's.", _HOW_LARGE)
def strong_convexity(generator: PerspectiveGenerator, rng: np.random.Generator) -> str:
    least = entropy_weight_bound(generator.blocks)
    if generator.entropy_weight < least:
        raise Skip(f"K = {generator.entropy_weight:g} is below the theorem's {least:.4g}: no modulus is claimed")
    count = 20 * _COUNT
    second, far = _interior(generator, rng, count, 1e-4), generator.sample(rng, count)
    near = 10.0 ** rng.uniform(-3.0, 0.0, (count, 1))
    weights = second.weights + near * (far.weights - second.weights)
    inner = second.inner + near * (far.inner - second.inner)
    # Random, near, and in the direction in which the theorem is tight.
    pairs = [(generator.point(weights, inner), second), _tight_pairs(generator, rng, count)]
    for first, other in pairs:
        bregman = np.asarray(generator.divergence(first, other))
        half = 0.5 * np.asarray(generator.squared_distance(first, other))
        worst = at((half * (1.0 - 1e-6) - bregman) / _size(generator), 1e-12)
        if worst is not None:
            seen = f"V = {bregman[worst]:.6g} < {half[worst]:.6g} with K = {generator.entropy_weight:g}."
            raise Fault(seen, f"{_row(first, worst)}; from {_row(other, worst)}")
    return f"{2 * count} pairs, K = {generator.entropy_weight:g}"


def _tight_pairs(generator: PerspectiveGenerator, rng: np.random.Generator, count: int) -> tuple[DualPoint, DualPoint]:
    """Move weight between two levels whose inner variables lie near the rim, and each alpha along itself."""
    levels = generator.levels
    order = np.argsort(rng.random((count, levels)), axis=1)
    giver, taker = np.eye(levels)[order[:, 0]], np.eye(levels)[order[:, -1]]
    weights = np.maximum(0.5 * (giver + taker), 1e-9)
    weights /= weights.sum(1, keepdims=True)
    change = 10.0 ** rng.uniform(-3.0, -0.6, (count, 1)) * 0.5 * (taker - giver)
    moved = np.maximum(weights + change, 1e-12)
    moved /= moved.sum(1, keepdims=True)
    parts = [(i, block) for i, block in enumerate(generator.blocks) if block is not None]
    inner, after = np.zeros((2, count, generator.inner_dimension))
    begin = 0
    for i, block in parts:
        cut = slice(begin, begin + block.dimension)
        begin = cut.stop
        rim = np.asarray(block.maximize(1e9 * rng.standard_normal((count, block.dimension)))[0])
        base = block.start + (1.0 - 10.0 ** rng.uniform(-3.0, -0.3, (count, 1))) * (rim - block.start)
        # In the direction d(alpha) = 2 alpha dy/y the theorem is tight; a point of A again by a step towards it.
        aim = base * (1.0 + rng.uniform(1.0, 3.0, (count, 1)) * (change / weights)[:, [i]])
        inner[:, cut] = base
        after[:, cut] = np.asarray(block.prox(np.zeros_like(aim), aim, 1e12)[0]) if not block.entropic else base
    return generator.point(moved, after), generator.point(weights, inner)


@DUAL.check("squared_diameter = max omega_y - min omega_y: neither less nor more.", _DIAMETER)
def diameter(generator: PerspectiveGenerator, rng: np.random.Generator) -> str:
    # omega_y is convex, so its maximum lies at a corner of y, with the alpha of that level at an extreme point.
    tops = [0.0]
    for block in generator.blocks:
        if block is not None:
            g = 1e9 * np.concatenate([rng.standard_normal((400, block.dimension)), np.eye(block.dimension)])
            tops.append(float(np.max(block.value(np.asarray(block.maximize(np.concatenate([g, -g]))[0])))))
    found = generator.entropy_weight * float(np.log(generator.levels)) + max(tops)
    corners = generator.point(np.eye(generator.levels), np.tile(_start(generator), (generator.levels, 1)))
    lowest = float(generator.value(generator.center(np.zeros(1))))
    require(abs(lowest) <= 1e-9 * _size(generator), f"omega_y is {lowest:.3g} at the centre, not 0.")
    found = max(found, float(np.max(generator.value(corners))))
    declared = float(generator.squared_diameter)
    require(declared >= found - 1e-9 * _size(generator), f"declared {declared:.6g}, but {found:.6g} is attained.")
    require(
        declared <= found * (1.0 + 1e-3) + 1e-9, f"declared {declared:.6g}, but nothing above {found:.6g} was found."
    )
    return f"{found:.6g} attained of {declared:.6g}"


@DUAL.check("prox() minimises -<u,y> - <v,a> + V_y/tau + d_y over the dual set (three-point inequality).", _PROX)
def prox(generator: PerspectiveGenerator, rng: np.random.Generator) -> str:
    anchor = _interior(generator, rng, _COUNT)
    size = 10.0 ** rng.uniform(-1.0, 1.5, (_COUNT, 1))
    u = size * rng.standard_normal((_COUNT, generator.levels))
    v = size * rng.standard_normal((_COUNT, generator.inner_dimension))
    step = 10.0 ** rng.uniform(-2.0, 1.0, (_COUNT, 1))
    found = generator.prox(anchor, u, v, step)
    total = np.abs(found.weights.sum(1) - 1.0) + np.maximum(-found.weights.min(1), 0.0)
    worst = at(total, 1e-9)
    if worst is not None:
        raise Fault("the weights are no point of the simplex.", _row(found, worst))

    def objective(point: DualPoint) -> Any:
        linear = np.vecdot(u, point.weights) + np.vecdot(v, np.asarray(generator.scaled(point)))
        cost = np.asarray(generator.divergence(point, anchor)) / step[:, 0]
        return cost + np.asarray(generator.penalty(point)) - linear

    other = _interior(generator, rng, _COUNT)
    excess = objective(found) + np.asarray(generator.divergence(other, found)) / step[:, 0] - objective(other)
    scale = (_size(generator) + size[:, 0]) * (1.0 + 1.0 / step[:, 0]) + np.abs(objective(other))
    worst = at(excess / scale, 1e-9)
    if worst is not None:
        seen = f"another point is better than the inequality allows, by {excess[worst]:.3g}."
        raise Fault(seen, shown(u=u[worst], v=v[worst], step=step[worst, 0]) + f"; better: {_row(other, worst)}")
    return f"{_COUNT} steps"


@DUAL.check("The largest entry of support(u, v) = max of <u,y> + <v,a> - d_y over the dual set, by cvxpy too.", _PROX)
def support(generator: PerspectiveGenerator, rng: np.random.Generator) -> str:
    u = rng.standard_normal((_COUNT, generator.levels))
    v = 3.0 * rng.standard_normal((_COUNT, generator.inner_dimension))
    top = np.asarray(generator.support(u, v)).max(1)
    point = generator.sample(rng, _COUNT)
    linear = np.vecdot(u, point.weights) + np.vecdot(v, np.asarray(generator.scaled(point)))
    worst = at((linear - np.asarray(generator.penalty(point)) - top) / _size(generator), 1e-9)
    if worst is not None:
        raise Fault("a dual point has a larger value.", shown(u=u[worst], v=v[worst]) + f"; {_row(point, worst)}")
    exact = reference()
    for j in range(2):
        best = exact.reference_support(generator, u[j], v[j])[1]
        seen = f"support gives {top[j]:.7g}, cvxpy {best:.7g}."
        require(abs(best - top[j]) <= 1e-6 * _size(generator), seen, shown(u=u[j], v=v[j]))
    return f"{_COUNT} points; 2 by cvxpy"
