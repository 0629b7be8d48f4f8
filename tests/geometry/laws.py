"""Laws of every prox, as numbers: residuals and slacks, each relative to the size of what enters it.

All of them take many points at once. None of them solves anything: a minimiser over a convex set is recognised by its
own first-order condition, evaluated with the smallest value of a linear function over the set.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from minmaxcon.geometry import DistanceGenerator, DualPoint, PerspectiveGenerator

Instance = dict[str, Any]


def draw_instance(generator: DistanceGenerator, rng: np.random.Generator, count: int, margin: float = 0.02) -> Instance:
    """Draw ``count`` proximal steps: interior anchors and centres, steps and weights over many orders of magnitude."""
    middle = generator.center
    anchor, center = ((1.0 - margin) * generator.sample(rng, count) + margin * middle for _ in range(2))
    gradient = rng.standard_normal((count, generator.dimension)) * 10.0 ** rng.uniform(-2.0, 2.0, (count, 1))
    step = 10.0 ** rng.uniform(-3.0, 2.0, (count, 1))
    weight = 10.0 ** rng.uniform(-2.0, 2.0, (count, 1)) * (rng.random((count, 1)) < 0.5)
    return {"anchor": anchor, "gradient": gradient, "step": step, "center": center, "weight": weight}


def draw_dual_instance(generator: PerspectiveGenerator, rng: np.random.Generator, count: int) -> Instance:
    """Draw ``count`` dual steps, anchors with weights down to 1e-12."""
    anchor = generator.sample(rng, count)
    start = np.concatenate([b.start for b in generator.blocks if b is not None] or [np.zeros(0)])
    size = 10.0 ** rng.uniform(-2.0, 2.0, (count, 1))
    return {
        "anchor": DualPoint(anchor.log_weights, anchor.weights, 0.98 * anchor.inner + 0.02 * start),
        "u": size * rng.standard_normal((count, generator.levels)),
        "v": size * rng.standard_normal((count, generator.inner_dimension)),
        "step": 10.0 ** rng.uniform(-3.0, 2.0, (count, 1)),
    }


def kkt_residual(generator: DistanceGenerator, point: Any, instance: Instance) -> Any:
    r"""Return :math:`\langle r, u\rangle - \min_X\langle r, \cdot\rangle`, r the gradient at u, relative."""
    here, before, middle = (generator.gradient(z) for z in (point, instance["anchor"], instance["center"]))
    inverse, weight = 1.0 / instance["step"], instance["weight"]
    slope = instance["gradient"] + inverse * (here - before) + weight * (here - middle)
    gap = np.vecdot(slope, point) - generator.linear_minimum(slope)[0]
    entering = (instance["gradient"], (inverse + weight) * here, inverse * before, weight * middle)
    size = sum(generator.dual_norm(term) for term in entering) * (generator.norm(point) + diameter(generator))
    outside = ~generator.contains(point, 1e-12 * (1.0 + float(np.abs(point).max())))
    return np.where(outside, np.inf, gap / size)


def three_point_slack(generator: DistanceGenerator, point: Any, other: Any, instance: Instance) -> Any:
    """Return the excess of the objective at ``other`` over minimum plus divergence from the minimiser, relative."""

    def terms(u: Any) -> list[Any]:
        return [
            np.vecdot(instance["gradient"], u),
            generator.divergence(u, instance["anchor"]) / instance["step"][:, 0],
            instance["weight"][:, 0] * generator.divergence(u, instance["center"]),
        ]

    strength = 1.0 / instance["step"][:, 0] + instance["weight"][:, 0]
    left, right = terms(other), [*terms(point), strength * generator.divergence(other, point)]
    # A divergence is a difference of values of omega, so that it carries their rounding however small it is itself.
    size = sum(map(np.abs, left)) + sum(map(np.abs, right)) + strength * (generator.squared_diameter + 1e-12)
    return (sum(left) - sum(right)) / size


def diameter(generator: DistanceGenerator) -> float:
    """Return an upper bound of the set's diameter in the generator's norm, by strong convexity about the centre."""
    return 2.0 * float(np.sqrt(2.0 * generator.squared_diameter)) + 1e-12


def block_slopes(generator: PerspectiveGenerator, point: DualPoint, instance: Instance) -> tuple[Any, Any]:
    r"""Return value and gradient of :math:`B_i(\alpha, \alpha')/\tau + g_i(\alpha)` for every level, by autograd."""
    inner = torch.tensor(point.inner, requires_grad=True)
    anchor = torch.tensor(instance["anchor"].inner)
    values, begin = torch.zeros(point.weights.shape, dtype=torch.float64), 0
    for i, block in enumerate(generator.blocks):
        if block is not None:
            cut = slice(begin, begin + block.dimension)
            cost = block.divergence(inner[:, cut], anchor[:, cut]) / torch.tensor(instance["step"][:, 0])
            values[:, i], begin = cost + block.penalty(inner[:, cut]), begin + block.dimension
    if begin:
        values.sum().backward()
    slope = np.zeros(point.inner.shape) if inner.grad is None else inner.grad.numpy()
    return values.detach().numpy(), slope


def dual_kkt_residual(generator: PerspectiveGenerator, point: DualPoint, instance: Instance) -> Any:
    r"""Return the first-order residual of the dual prox in (y, a), jointly, relative.

    With :math:`\varphi_i = B_i/\tau + g_i` the gradient of :math:`y_i\varphi_i(a_i/y_i)` is
    :math:`\varphi_i - \langle\nabla\varphi_i, \alpha_i\rangle` in :math:`y_i`, and :math:`\nabla\varphi_i` in
    :math:`a_i`.
    """
    anchor, u, v, step = instance["anchor"], instance["u"], instance["v"], instance["step"]
    value, slope = block_slopes(generator, point, instance)
    owner = np.eye(generator.levels)[generator.owner].reshape(-1, generator.levels)
    entropy = generator.entropy_weight / step
    in_inner = slope - v
    in_weights = entropy * (point.log_weights - anchor.log_weights) + value - (slope * point.inner) @ owner - u
    lowest, begin = in_weights.copy(), 0
    size = np.abs(value) + entropy * (np.abs(point.log_weights) + np.abs(anchor.log_weights)) + np.abs(u)
    entering = np.abs(slope) + np.abs(v) + (np.abs(point.inner) + np.abs(anchor.inner)) / step
    for i, block in enumerate(generator.blocks):
        if block is not None:
            cut = slice(begin, begin + block.dimension)
            outside = ~block.set.contains(point.inner[:, cut], 1e-6 * block.reach)
            lowest[:, i] += np.where(outside, -np.inf, block.set.linear_minimum(in_inner[:, cut])[0])
            size[:, i] += entering[:, cut].sum(1) * block.reach
            begin = cut.stop
    here = in_weights + (in_inner * point.inner) @ owner
    return (np.vecdot(point.weights, here) - lowest.min(1)) / size.max(1)


def dual_three_point_slack(
    generator: PerspectiveGenerator, point: DualPoint, other: DualPoint, instance: Instance
) -> Any:
    """Return the slack of the three-point inequality of the dual prox, relative."""

    def terms(at: DualPoint) -> list[Any]:
        return [
            -np.vecdot(instance["u"], at.weights),
            -np.vecdot(instance["v"], generator.scaled(at)),
            generator.divergence(at, instance["anchor"]) / instance["step"][:, 0],
            generator.penalty(at),
        ]

    left, right = terms(other), [*terms(point), generator.divergence(other, point) / instance["step"][:, 0]]
    size = sum(map(np.abs, left)) + sum(map(np.abs, right)) + generator.squared_diameter / instance["step"][:, 0]
    return (sum(left) - sum(right)) / (size + 1e-12)


def projection_faults(generator: Any, rng: np.random.Generator, count: int) -> dict[str, float]:
    """Return the worst violation, relative, of each law of a projection at random points in and out of the set."""
    spread = diameter(generator) * 10.0 ** rng.uniform(-1.0, 1.5, (count, 1))
    x, y = (generator.center + spread * rng.standard_normal((count, generator.dimension)) for _ in range(2))
    p, q, z = generator.project(x.copy()), generator.project(y.copy()), generator.sample(rng, count)
    scale = 1.0 + np.vecdot(x, x) + np.vecdot(y, y)
    rest = x - p
    return {
        "idempotent": float(np.max(np.abs(generator.project(p.copy()) - p).max(1) / np.sqrt(scale))),
        "firmly non-expansive": float(np.max((np.vecdot(p - q, p - q) - np.vecdot(p - q, x - y)) / scale)),
        # Moreau: what is left over is normal to the set, so the support function at it is attained at the projection
        "Moreau": float(np.max(np.abs(np.vecdot(rest, p) + generator.linear_minimum(-rest)[0]) / scale)),
        "nearest": float(np.max((np.vecdot(rest, rest) - np.vecdot(x - z, x - z)) / scale)),
    }
